"""Staircases, Tulap, truncated Laplace, flipped Huber: their pieces, what they refuse, how they stand in a file."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from mechanisms.calibration_steps import cut, endless_first_step, first_step
from mechanisms.calibration_tails import classic_sigma, flipped_huber, laplace_cut
from mechanisms.claims import Direct, Statement, read_mechanism, read_statement
from mechanisms.endless import EndlessSteps
from mechanisms.families import (
    FAMILIES,
    FlippedHuber,
    Laplace,
    Mechanism,
    Staircase,
    TruncatedLaplace,
    TruncatedStaircase,
    Tulap,
)
from mechanisms.numbers import InputError

F = Fraction
MEMBERS: list[Mechanism] = [
    Laplace(sensitivity="2.5", scale="1/3"),
    TruncatedLaplace(sensitivity="2.5", scale="1/3", A=4.25),
    FlippedHuber(sensitivity="2.5", alpha="0.7", sigma="1.1"),
    Staircase(sensitivity="2.5", epsilon="1", gamma="0.3"),
    TruncatedStaircase(sensitivity="2.5", epsilon="1", gamma="0.3", T="7.1"),
    Tulap(sensitivity="2.5", epsilon="1", T="7.1"),
]


def density(member: Mechanism, x: float) -> float:
    """Written down from the papers, up to a factor; x ≥ 0 in the unit of the query, sensitivity 2.5."""
    if isinstance(member, (Laplace, TruncatedLaplace)):
        return math.exp(-3 * x) if x < getattr(member, "A", math.inf) else 0.0
    if isinstance(member, FlippedHuber):
        return math.exp(-0.7 * x / 1.21) if x < 0.7 else math.exp(-(x * x + 0.49) / 2.42)
    if isinstance(member, Tulap):
        return math.exp(-round(x / 2.5)) if x < 7.1 else 0.0
    share = x / 2.5 - math.floor(x / 2.5)
    height = math.exp(-math.floor(x / 2.5)) if share < 0.3 else math.exp(-math.floor(x / 2.5) - 1)
    return height if x < getattr(member, "T", math.inf) else 0.0


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.family)
def test_the_density_is_that_of_the_paper(member: Mechanism) -> None:
    at_zero = float(member.form.density(0.001)) / density(member, 0.001)
    for x in (0.2, 0.6, 0.74, 0.76, 1.2, 1.3, 2.6, 3.2, 3.3, 4.2, 6.3, 7.0, 7.2, 9.9):
        for signed in (x, -x):
            assert float(member.form.density(signed)) == pytest.approx(at_zero * density(member, x), rel=1e-12)


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.family)
def test_mass_moments_and_tails(member: Mechanism) -> None:
    """Riemann sums of the paper's density."""
    x = (np.arange(400_000) + 0.5) / 4000
    f = np.array([density(member, v) for v in x[:120_000].tolist()] + [0.0] * 280_000)
    mass = f.sum()
    assert float(member.form.mean_absolute()) == pytest.approx((x * f).sum() / mass, rel=1e-3)
    assert float(member.form.mean_square()) == pytest.approx((x * x * f).sum() / mass, rel=1e-3)
    for end in (0.5, 1.7, 4.0):
        tail = f[x > end].sum() / mass / 2
        assert float(member.form.tail(end)) == pytest.approx(tail, rel=2e-3)
        assert float(member.form.cdf(-end)) == pytest.approx(tail, rel=2e-3)
        assert float(member.form.tail(-end)) == pytest.approx(1 - tail, rel=1e-3)


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.family)
def test_they_stand_in_a_file_and_are_read_from_it(member: Mechanism) -> None:
    text = json.dumps(Statement(member, Direct(epsilon="1", delta="0.01")).document())
    statement = read_statement(json.loads(text, parse_float=pytest.fail))
    assert statement.mechanism == member and json.dumps(statement.document()) == text


def test_the_names() -> None:
    assert {member.family for member in MEMBERS} < set(FAMILIES)
    assert all(FAMILIES[member.family] is type(member) for member in MEMBERS)


def test_the_claims_epsilon_stands_in() -> None:
    fields = {"family": "staircase", "sensitivity": "1", "gamma": "0.3"}
    found = read_mechanism(fields, epsilon=F(2))
    assert isinstance(found, Staircase) and found.epsilon == 2


@pytest.mark.parametrize(
    ("family", "fields", "where"),
    [
        ("laplace", {"scale": "0"}, "scale"),
        ("truncated-laplace", {"scale": "1", "A": "-1"}, "A"),
        ("truncated-laplace", {"scale": "1"}, "A"),
        ("flipped-huber", {"alpha": "0", "sigma": "1"}, "alpha"),
        ("staircase", {"epsilon": "0", "gamma": "0.5"}, "epsilon"),
        ("staircase", {"epsilon": "1", "gamma": "0"}, "gamma"),
        ("staircase", {"epsilon": "1", "gamma": "1.01"}, "gamma"),
        ("truncated-staircase", {"epsilon": "1", "gamma": "0.5", "T": "0"}, "T"),
        ("truncated-staircase", {"epsilon": "1", "gamma": "0.5", "T": "1e300"}, "T"),
        ("tulap", {"epsilon": "1", "T": "5000"}, "T"),
        ("tulap", {"epsilon": "1", "T": "3", "gamma": "0.4"}, "gamma"),
        ("tulap", {"epsilon": "1", "T": 3.5}, "T"),
    ],
)
def test_refusals(family: str, fields: dict[str, Any], where: str) -> None:
    with pytest.raises(InputError) as found:
        read_mechanism({"family": family, "sensitivity": "1", **fields})
    assert found.value.where == f"mechanism.{where}"


def test_tulap_is_what_its_definition_says() -> None:
    """G₁ − G₂ + U by sums over the geometric laws, and the quantiles of its truncation."""
    epsilon, delta = 0.8, 0.03
    b = math.exp(-epsilon)

    def cdf(x: float) -> float:
        """P(G₁ − G₂ + U ≤ x)."""
        law = {k: (1 - b) / (1 + b) * b ** abs(k) for k in range(-200, 201)}
        return sum(p * min(max(x - k + 0.5, 0.0), 1.0) for k, p in law.items())

    T = cut(F(1, 2), F("0.8"), F("0.03"))
    assert T is not None
    q = 2 * delta * b / (1 - b + 2 * delta * b)
    assert cdf(-float(T)) == pytest.approx(q / 2, rel=1e-12)
    member = Tulap(sensitivity=1, epsilon="0.8", T=T)
    for x in (-1.9, -0.4, 0.3, 1.1, 2.4):
        assert float(member.form.cdf(x)) == pytest.approx((cdf(x) - q / 2) / (1 - q), rel=1e-12)


@pytest.mark.parametrize(
    ("gamma", "epsilon", "delta"), [("0.3", "1", "0.01"), ("1", "5", "0.3"), ("0.01", "40", "0.1")]
)
def test_the_cut_leaves_delta(gamma: str, epsilon: str, delta: str) -> None:
    T = cut(F(gamma), F(epsilon), F(delta))
    assert T is not None
    form = TruncatedStaircase(sensitivity=1, epsilon=epsilon, gamma=gamma, T=T).form
    assert float(form.tail(float(T) - 1)) == pytest.approx(float(F(delta)), rel=1e-9)


def test_the_cut_of_laplace_noise() -> None:
    assert float(laplace_cut(F(3), F(1, 100))) == pytest.approx(math.log1p(math.expm1(3) / 0.02) / 3, rel=1e-14)
    assert float(classic_sigma(F(1, 2), F(1, 10**5))) == pytest.approx(2 * math.sqrt(2 * math.log(125000)), rel=1e-14)


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "4", "12"])
def test_the_first_step_of_least_loss(epsilon: str) -> None:
    """Against Geng & Viswanath's closed form for E X², and by moving it to either side."""
    with mpmath.workdps(60):
        b = mpmath.exp(-mpmath.mpf(epsilon))
        root = mpmath.cbrt(b - 2 * b**2 + 2 * b**4 - b**5)
        best = -b / (1 - b) + root / (mpmath.cbrt(2) * (1 - b) ** 2)
    assert endless_first_step(F(epsilon), 2) == pytest.approx(float(best), rel=1e-5)
    for order in (1, 2):
        found = endless_first_step(F(epsilon), order)
        losses = []
        for gamma in (found * 0.99, found, found * 1.01):
            form = Staircase(sensitivity=1, epsilon=epsilon, gamma=gamma).form
            losses.append(float(form.mean_absolute() if order == 1 else form.mean_square()))
        assert losses[1] < losses[0] and losses[1] < losses[2]


@pytest.mark.parametrize(("epsilon", "delta", "order"), [("1", "0.01", 1), ("3", "0.25", 2), ("5", "1e-5", 2)])
def test_the_first_step_of_the_truncated(epsilon: str, delta: str, order: int) -> None:
    best = first_step(F(epsilon), F(delta), order)

    def loss(gamma: float) -> float:
        T = cut(F(gamma), F(epsilon), F(delta))
        assert T is not None
        form = TruncatedStaircase(sensitivity=1, epsilon=epsilon, gamma=gamma, T=T).form
        return float(form.mean_absolute() if order == 1 else form.mean_square())

    least = loss(best)
    assert all(least <= loss(gamma) * (1 + 1e-12) for gamma in np.linspace(0.02, 1, 60).tolist())


def test_flipped_huber_calibration_meets_delta() -> None:
    for epsilon, delta in ((1.0, 1e-5), (3.0, 0.01), (0.1, 0.3)):
        ratio, sigma = flipped_huber(epsilon, delta, 2)
        form = FlippedHuber(sensitivity=1, alpha=ratio * sigma, sigma=sigma).form
        r = np.linspace(-12 * sigma, 0, 20001)
        event = np.array([float(v) for v in form.cdf(r + 1) - math.exp(epsilon) * form.cdf(r)])
        assert event.max() == pytest.approx(delta, rel=1e-4)


def test_an_endless_form_has_no_list_of_its_pieces() -> None:
    form = Staircase(sensitivity=1, epsilon="1", gamma="0.3").form
    assert isinstance(form, EndlessSteps)
    with pytest.raises(TypeError):
        len(form.whole_line)
    finite = form.unrolled(F(40))
    assert len(finite.pieces) == 41
    assert float(finite.mean_square()) == pytest.approx(float(form.mean_square()), rel=1e-12)
    with pytest.raises(InputError):
        form.unrolled(F(10**9))
    with pytest.raises(InputError):
        EndlessSteps(form.pieces, F(0))
