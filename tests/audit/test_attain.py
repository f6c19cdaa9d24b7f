"""Scales that a loss implies, and what is said of the promise there: sides, units, and scales too small to look at."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.attain import SMALLEST, Attempt, _root, attempt_multi, attempt_quasi
from audit.decide import decide
from audit.exact import double_at, double_rank, float_upper
from audit.losses import enclose_losses
from audit.scales import calibrate
from audit.verdict import Enclosure, Limits, Verdict
from mechanisms.claims import Direct, Statement
from mechanisms.families import MultiGaussian, QuasiGaussian, ScaledFamily
from tests.soundness.referee import CONTEXT, number

F = Fraction
ONE = F(1)
CLAIM = Direct(epsilon=F(3), delta=F("0.01"))
FAMILIES: dict[str, tuple[str, int | None]] = {"multi, K = 2": ("multi-gaussian", 2), "quasi": ("quasi-gaussian", None)}


def attempt(K: int | None, loss: Enclosure, unit: Fraction = ONE, limits: Limits | None = None) -> Attempt:
    limits = limits or Limits()
    if K is None:
        return attempt_quasi(CLAIM, unit, loss, limits)
    return attempt_multi(CLAIM, unit, K, loss, limits)


def member(K: int | None, unit: Fraction, sigma: Fraction) -> ScaledFamily:
    if K is None:
        return QuasiGaussian(sensitivity=unit, sigma=sigma, epsilon=3)
    return MultiGaussian(sensitivity=unit, sigma=sigma, K=K, epsilon=3)


def quasi_square(epsilon: Any, sigma: Any) -> Any:
    """E X² of the quasi-Gaussian at Δ = 1, at 60 digits."""
    e, s = CONTEXT.exp(number(epsilon)), number(sigma)
    cdf, pdf = CONTEXT.ncdf(1 / s), CONTEXT.npdf(1 / s)
    return (e * s * s + 2 * (cdf * (s * s + 1) + s * pdf)) / (e + 2 * cdf)


@settings(deadline=None)
@given(st.fractions(F(1, 10**40), 10**40), st.integers(0, 120))
def test_roots_are_doubles_next_to_the_root(square: Fraction, places: int) -> None:
    for of in (square, square / 2**places, F(int(square)) ** 2 + 1):
        above, below = _root(of, up=True), _root(of, up=False)
        assert below**2 <= of <= above**2
        for side in (above, below):
            assert F(float(side)) == side
        assert double_rank(float(above)) - double_rank(float(below)) <= 2


def test_the_root_of_a_square_is_met_from_below() -> None:
    assert _root(F(9), up=False) == 3 and _root(F(0), up=False) == 0
    assert 3 < _root(F(9), up=True) <= F(double_at(double_rank(3.0) + 1))
    assert 0 < _root(F(0), up=True) < F(1, 10**60)


@pytest.mark.parametrize("unit", ["1", "7/3"])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_scale_has_the_loss_and_the_verdict_is_that_of_the_scale(name: str, unit: str) -> None:
    family, K = FAMILIES[name]
    size = F(unit)
    best = calibrate(family, CLAIM, sensitivity=size, K=K)
    scale = best.statement.mechanism.sigma  # type: ignore[attr-defined]
    for factor in ("0.8", "0.999999", "1.000001", "2", "50"):
        loss = best.losses.l2.upper * F(factor)
        found = attempt(K, Enclosure(loss, loss), size)
        assert found.family == family and found.K == K and found.sigma is not None
        assert F(float(found.sigma)) == found.sigma
        noise = member(K, size, found.sigma)
        own = enclose_losses(noise).l2
        assert abs(own.upper / loss - 1) < F(1, 10**11)
        if F(factor) > 1:
            assert found.verdict is Verdict.VERIFIED and own.upper <= loss and found.sigma >= scale
        else:
            assert found.verdict is Verdict.REFUTED and own.upper >= loss and found.sigma < scale
        assert decide(Statement(noise, CLAIM)).verdict is found.verdict


@pytest.mark.parametrize("name", FAMILIES)
def test_a_loss_known_to_some_digits_only_is_read_against_either_verdict(name: str) -> None:
    """Between the two ends the promise starts to hold: neither is proved."""
    family, K = FAMILIES[name]
    best = calibrate(family, CLAIM, K=K).losses.l2.upper
    wide = attempt(K, Enclosure(best * F("0.99"), best * F("1.01")))
    assert wide.verdict is Verdict.INCONCLUSIVE
    assert attempt(K, Enclosure(best * F("1.001"), best * F("1.002"))).verdict in (
        (Verdict.VERIFIED,) if K is not None else (Verdict.VERIFIED, Verdict.INCONCLUSIVE)
    )
    assert attempt(K, Enclosure(best * F("0.98"), best * F("0.99"))).verdict is Verdict.REFUTED
    if K is not None:  # from nothing to much: some scale of the loss is not even known
        most = attempt(K, Enclosure(F(0), best * 2))
        assert (most.verdict, most.sigma) == (Verdict.INCONCLUSIVE, None)


@pytest.mark.parametrize("name", FAMILIES)
def test_without_time_it_is_open(name: str) -> None:
    K = FAMILIES[name][1]
    found = attempt(K, Enclosure(F("0.3"), F("0.3")), limits=Limits(expired=lambda: True))
    assert found.verdict is Verdict.INCONCLUSIVE and found.sigma is not None


@settings(deadline=None)
@given(st.fractions(F(1, 1000), 12), st.fractions(F(1, 1000), 40))
def test_no_quasi_gaussian_has_less_than_the_loss_of_its_centres(epsilon: Fraction, sigma: Fraction) -> None:
    least = 2 / (CONTEXT.exp(number(epsilon)) + 2)
    assert quasi_square(epsilon, sigma) > least


@pytest.mark.parametrize("unit", ["1", "1/7", "1000"])
@pytest.mark.parametrize("epsilon", ["0", "1", "20"])
def test_at_the_loss_of_its_centres_there_is_no_quasi_gaussian_and_above_it_one_is_decided(
    epsilon: str, unit: str
) -> None:
    size = F(unit)
    claim = Direct(epsilon=F(epsilon), delta=F(1, 100))
    least = F(CONTEXT.nstr(2 / (CONTEXT.exp(number(epsilon)) + 2), 50)) * size**2
    for gap in (F(1, 10**40), F(1, 2)):
        below = attempt_quasi(claim, size, _both(least * (1 - gap)), Limits())
        assert below == Attempt("quasi-gaussian", None, None, Verdict.REFUTED)
    above = attempt_quasi(claim, size, _both(least * (1 + F(1, 10**40))), Limits())
    assert above.verdict is Verdict.REFUTED and above.sigma == F(float_upper(size / SMALLEST))


def _both(loss: Fraction) -> Enclosure:
    return Enclosure(loss, loss)


def test_a_scale_below_the_smallest_that_is_looked_at_is_not_said_to_be_none() -> None:
    """At ε = 50 the centres have E X² = 4e-22, so that σ = Δ/2^23 has less than Δ/SMALLEST has: at that scale, which
    has more than the loss, the promise is refuted."""
    claim = Direct(epsilon=F(50), delta=F(1, 100))
    loss = F(1, 10**13)
    assert quasi_square(50, F(1, 2**23)) < number(loss) < quasi_square(50, F(1, SMALLEST))
    found = attempt_quasi(claim, F(1), _both(loss), Limits())
    assert (found.verdict, found.sigma) == (Verdict.REFUTED, F(1, SMALLEST))
    assert attempt_quasi(claim, F(1), _both(loss), Limits(expired=lambda: True)).verdict is Verdict.INCONCLUSIVE


def test_the_multi_gaussian_at_and_below_the_loss_of_its_centres() -> None:
    rng = random.Random(5)
    for K in (1, 3):
        weights = [CONTEXT.exp(-3 * k) for k in range(K + 1)]
        total = weights[0] + 2 * sum(weights[1:])
        centres = 2 * sum(w * k * k for k, w in enumerate(weights)) / total
        least = F(CONTEXT.nstr(centres, 45))
        for _ in range(3):
            gap = F(1, 10 ** rng.randint(2, 40))
            below = attempt_multi(CLAIM, F(1), K, _both(least * (1 - gap)), Limits())
            assert below == Attempt("multi-gaussian", K, None, Verdict.REFUTED)
            above = attempt_multi(CLAIM, F(1), K, _both(least * (1 + gap)), Limits())
            assert above.verdict is Verdict.REFUTED and above.sigma is not None
            assert abs(above.sigma**2 / (least * gap) - 1) < F(1, 10**3)
