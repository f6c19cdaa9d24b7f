"""Sums of very many lines: the work goes with the lines that matter near each point, and so does the memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms.arithmetic import FLOAT
from mechanisms.calibration import float_sigma
from mechanisms.claims import Direct
from mechanisms.components import Components
from mechanisms.difference import difference
from mechanisms.divergence import Curve, float_divergence, local_maxima, positive_intervals
from mechanisms.envelope import Envelope
from mechanisms.families import DeclaredMixture, MultiGaussian
from mechanisms.form import Form
from mechanisms.lines import LineSum
from mechanisms.log_ratio import LogRatio
from tests.mechanisms.support import MECHANISMS, declared, divergence, mechanism, piece, relative

MEGABYTE = 10**6
LARGE = [("1", "0.36"), ("0.001", "0.4"), ("1", "1e-300"), ("0.001", "200")]


def multi(epsilon: str, sigma: str, K: int) -> Form:
    """The multi-Gaussian at Δ = 1."""
    form: Form = mechanism(MultiGaussian, sensitivity=1, sigma=sigma, K=K, epsilon=epsilon).unit_form
    return form


def peak_of(work: Callable[[], Any]) -> int:
    """The most bytes that the work holds beyond what was there before."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("epsilon", "sigma"), LARGE)
def test_memory_stays_small_with_thousands_of_lines(epsilon: str, sigma: str) -> None:
    form, eps = multi(epsilon, sigma, 1000), Fraction(epsilon)
    assert peak_of(lambda: local_maxima(form, eps)) < 100 * MEGABYTE
    assert peak_of(lambda: float_divergence(form, Fraction(2, 3), eps)) < 100 * MEGABYTE
    curve = Curve(form, eps)
    assert peak_of(lambda: curve.at(np.linspace(0.01, 0.99, 30))) < 50 * MEGABYTE
    assert peak_of(lambda: curve.intervals(0.7)) < 50 * MEGABYTE


def test_memory_of_a_calibration_stays_small() -> None:
    template = mechanism(MultiGaussian, sensitivity=1, sigma=1, K=50, epsilon="0.01")
    claim = Direct(epsilon=Fraction(1, 100), delta=Fraction(1, 1000))
    assert peak_of(lambda: float_sigma(template, claim)) < 100 * MEGABYTE


@pytest.mark.parametrize(("epsilon", "sigma", "K"), [("0.001", "0.4", 33), ("0.02", "3", 35)])
@pytest.mark.parametrize("shift", ["0.4", "0.93"])
def test_values_of_many_lines(epsilon: str, sigma: str, K: int, shift: str) -> None:
    form, phi, eps = multi(epsilon, sigma, K), Fraction(shift), Fraction(epsilon)
    intervals = positive_intervals(difference(form, phi, eps))
    right = divergence(form, phi, eps, intervals.tolist())
    assert relative(float_divergence(form, phi, eps), right) < 1e-11
    assert relative(float(Curve(form, eps).at(np.array([float(phi)]))[0][0]), right) < 1e-9


@pytest.mark.parametrize("name", ["multi-gaussian", "mixture", "two-rates", "steps", "quasi-gaussian"])
def test_evaluate_is_intervals_and_value(name: str) -> None:
    curve = Curve(MECHANISMS[name].unit_form, Fraction(1, 2))
    for shift, level in [(0.2, 0.0), (0.83, -0.25)]:
        intervals, value = curve.evaluate(shift, level)
        np.testing.assert_array_equal(intervals, curve.intervals(shift, level))
        assert value == curve.at(np.array([shift]), np.array([level]))[0][0]


def mixture(count: int, sigma: str, spread: float) -> LineSum:
    """Many components at places and with weights that have no order."""
    rng = np.random.default_rng(count)
    pairs = [[repr(float(10**w)), repr(float(m))] for w, m in rng.uniform([-6, 0], [0, spread], (count, 2))]
    return mechanism(DeclaredMixture, sensitivity=1, sigma=sigma, components=pairs).unit_form.pieces[0].sum


SUMS = {
    "apart": mixture(60, "0.05", 40),
    "crowded": mixture(60, "0.7", 3),
    "multi": multi("0.01", "0.4", 50).pieces[0].sum,
    "wide": multi("0.01", "60", 200).pieces[0].sum,
    "exponentials": declared(
        piece("0", "inf", "0", *[(str(-i % 7), str(-1 - i * 0.25)) for i in range(90)])
    ).unit_form.pieces[0].sum,
    "one slope": declared(
        piece("0", "inf", "0.5", ("0", "0.25"), ("1", "0.25"), ("0.5", "0.25"))
    ).unit_form.pieces[0].sum,
}


@pytest.mark.parametrize("name", SUMS)
def test_an_envelope_is_the_sum_of_all_lines(name: str) -> None:
    lines = SUMS[name]
    envelope = Envelope(Components.of(lines))
    x = np.random.default_rng(1).uniform(-70, 70, (40, 50))
    for value, right in zip(envelope.log_and_score(x), lines.log_value_and_score(x, FLOAT), strict=True):
        np.testing.assert_allclose(value, right, rtol=1e-12, atol=1e-10 * np.abs(right).max())


@pytest.mark.parametrize("name", ["apart", "crowded", "multi", "wide"])
def test_masses_of_an_envelope_are_those_of_all_lines(name: str) -> None:
    lines = SUMS[name]
    envelope = Envelope(Components.of(lines))
    rng = np.random.default_rng(2)
    a = rng.uniform(-70, 70, 300)
    b = a + rng.exponential(rng.choice([0.1, 1, 30], 300))
    a[:3], b[:5] = -np.inf, np.inf
    with np.errstate(all="ignore"):
        value, right = envelope.mass(a, b), lines.moments(a, b, 0, FLOAT)[0]
        near = np.exp([envelope.log_and_score(np.clip(end, -500, 500))[0] for end in (a, b)]).sum(axis=0)
    assert (np.abs(value - right) <= 1e-13 * (right + envelope.scale * near) + 1e-300).all()


@pytest.mark.parametrize("name", ["apart", "crowded", "multi"])
def test_the_excess_is_the_difference_of_the_sums(name: str) -> None:
    """Also where a line has no partner, or one that does not matter there."""
    positive, negative = SUMS[name], LineSum(SUMS[name].c, SUMS[name].lines[::3] + SUMS[name].lines[5::7])
    x = np.random.default_rng(3).uniform(-30, 30, 400)
    shift, level = np.full_like(x, 0.3), np.full_like(x, 0.1)
    log_p, log_n = positive.log_value(x + shift, FLOAT), negative.log_value(x, FLOAT)
    x, shift, level = (values[np.abs(log_p - log_n) < 20] for values in (x, shift, level))
    assert len(x) > 100
    ratio = LogRatio(*(Envelope(Components.of(part)) for part in (positive, negative)))
    excess, rise, n, fall, pivot = ratio.excess(x, shift, level)
    log_p, score_p = positive.log_value_and_score(x + shift, FLOAT)
    log_n, score_n = negative.log_value_and_score(x, FLOAT)
    p_right, n_right = np.exp(log_p - pivot), np.exp(log_n + level - pivot)
    np.testing.assert_allclose(n, n_right, rtol=1e-11)
    np.testing.assert_allclose(fall, n_right * score_n, rtol=1e-9, atol=1e-9)
    assert (np.abs(excess - (p_right - n_right)) <= 1e-11 * (p_right + n_right)).all()
    steep = p_right * np.abs(score_p) + n_right * np.abs(score_n)
    assert (np.abs(rise - (p_right * score_p - n_right * score_n)) <= 1e-9 * (steep + p_right + n_right)).all()
