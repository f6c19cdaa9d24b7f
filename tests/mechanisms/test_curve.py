"""Curves: moved to another scale, at φ = 1, folded where f repeats itself, and watched."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import mechanisms.curve
from mechanisms.components import Components
from mechanisms.divergence import Curve, divergence_and_slope, float_divergence, local_maxima
from mechanisms.envelope import Envelope
from mechanisms.families import DeclaredMixture, MultiGaussian, QuasiGaussian
from mechanisms.form import Form
from mechanisms.windows import Windows, windows_of
from tests.mechanisms.support import MECHANISMS, divergence, mechanism, relative

SHIFTS = np.array([0.05, 0.31, 0.6180339, 0.85, 0.97, 0.9999, 1.0])
ONE = Fraction(1)


def multi(epsilon: str, sigma: str, K: int) -> Form:
    form: Form = mechanism(MultiGaussian, sensitivity=1, sigma=sigma, K=K, epsilon=epsilon).unit_form
    return form


MEMBERS: list[tuple[Any, dict[str, Any]]] = [
    (MultiGaussian, {"K": 4, "epsilon": 1}),
    (MultiGaussian, {"K": 30, "epsilon": "0.1"}),
    (QuasiGaussian, {"epsilon": 3}),
    (DeclaredMixture, {"components": [[1, 0], ["0.2", "1.9"], ["0.01", 4], ["1/3", "1/7"]]}),
]


@pytest.mark.parametrize(("family", "parameters"), MEMBERS)
@pytest.mark.parametrize("sigma", ["0.05", "0.3355", "2.7", "900"])
def test_another_scale_needs_no_exact_arithmetic(family: Any, parameters: dict[str, Any], sigma: str) -> None:
    one, other = (mechanism(family, sensitivity="2.5", sigma=s, **parameters) for s in ("2.5", Fraction(sigma) * 5 / 2))
    moved, direct = Curve(one.unit_form, ONE).with_scale(float(sigma)), Curve(other.unit_form, ONE)
    for found, right in zip(moved.at(SHIFTS)[:2], direct.at(SHIFTS)[:2], strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-13 * np.abs(right).max())
    assert moved.rises == direct.rises and moved.roughness == pytest.approx(direct.roughness, rel=1e-14)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("epsilon", ["0", "1/3", "1", "10"])
def test_the_end_is_what_exact_cancellation_gives(name: str, epsilon: str) -> None:
    form, eps = MECHANISMS[name].unit_form, Fraction(epsilon)
    value, slope = Curve(form, eps).end()
    right, rise = divergence_and_slope(form, ONE, eps)
    assert value == pytest.approx(right, rel=1e-11, abs=1e-300)
    assert slope == pytest.approx(rise, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "sigma", "K"),
    [("1", "0.3353", 4), ("10", "0.18475", 9), ("0.1", "37", 20), ("0.5", "0.3889", 20), ("0.01", "0.4", 50)],
)
def test_levels_at_the_end(epsilon: str, sigma: str, K: int) -> None:
    """At φ = 1 and ε + level nothing cancels exactly; lines in pairs keep the digits."""
    form, eps = multi(epsilon, sigma, K), Fraction(epsilon)
    levels = -(10.0 ** -np.arange(1, 12))
    values = Curve(form, eps).at(np.ones_like(levels), levels)[0]
    for level, value in zip(levels.tolist(), values.tolist(), strict=True):
        assert value == pytest.approx(float_divergence(form, ONE, eps + Fraction(level)), rel=1e-11)


FOLDED = [("1", "0.36", 20), ("0.01", "0.4", 60), ("10", "0.18475", 14), ("0", "0.3", 15), ("0.05", "2.5", 80)]


@pytest.mark.parametrize(("epsilon", "sigma", "K"), FOLDED)
def test_one_period_stands_for_all(epsilon: str, sigma: str, K: int, monkeypatch: pytest.MonkeyPatch) -> None:
    form, eps = multi(epsilon, sigma, K), Fraction(epsilon)
    folded = Curve(form, eps)
    monkeypatch.setattr(mechanisms.curve, "windows_of", lambda envelope, floor: Windows())
    plain = Curve(form, eps)
    assert folded.points < plain.points
    level = np.linspace(-0.2, 0, len(SHIFTS))
    for levels in (np.zeros_like(SHIFTS), level):
        for found, right in zip(folded.at(SHIFTS, levels), plain.at(SHIFTS, levels), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-7, atol=1e-11 * np.abs(right).max())
        np.testing.assert_allclose(folded.at(SHIFTS, levels)[0], plain.at(SHIFTS, levels)[0], rtol=1e-11)
    for shift in (0.31, 0.85, 0.97):
        assert _joined(folded.intervals(shift)) == pytest.approx(_joined(plain.intervals(shift)), abs=1e-9)


def _joined(intervals: np.ndarray) -> np.ndarray:
    """The finite ends, without those where two intervals touch."""
    ends = intervals.ravel()
    touch = np.flatnonzero(np.diff(ends) < 1e-9)
    ends = np.delete(ends, np.concatenate([touch, touch + 1]))
    return ends[np.isfinite(ends)]


def test_where_lines_are_irregular_nothing_is_folded() -> None:
    rng = np.random.default_rng(5)
    pairs = [[repr(float(10**w)), repr(float(m))] for w, m in rng.uniform([-6, 0], [0, 40], (60, 2))]
    lines = mechanism(DeclaredMixture, sensitivity=1, sigma="0.3", components=pairs).unit_form.pieces[0].sum
    assert windows_of(Envelope(Components.of(lines))) == Windows()


@pytest.mark.parametrize(("epsilon", "sigma", "K"), FOLDED)
def test_a_floor_leaves_out_no_more_than_it_says(epsilon: str, sigma: str, K: int) -> None:
    form, eps = multi(epsilon, sigma, K), Fraction(epsilon)
    right = Curve(form, eps).at(SHIFTS)[0]
    for floor in (1e-20, 1e-6, 1e-2):
        found = Curve(form, eps, floor=floor).at(SHIFTS)[0]
        assert (np.abs(found - right) <= floor + 1e-11 * right).all()


@pytest.mark.parametrize("shift", ["0.5", "0.93"])
def test_values_of_folded_curves_by_the_referee(shift: str) -> None:
    form, eps = multi("0.02", "0.41", 40), Fraction("0.02")
    curve = Curve(form, eps)
    intervals, value = curve.evaluate(float(shift))
    assert len(intervals) > 40
    assert relative(value, divergence(form, Fraction(shift), eps, intervals.tolist())) < 1e-10


def test_random_mixtures_against_single_shifts() -> None:
    rng = np.random.default_rng(11)
    for _ in range(12):
        count = int(rng.integers(1, 12))
        pairs = [[repr(float(10**w)), repr(float(m))] for w, m in rng.uniform([-4, 0], [0, 5], (count, 2))]
        sigma, eps = repr(float(rng.uniform(0.05, 2))), Fraction(float(rng.uniform(0, 3)))
        form = mechanism(DeclaredMixture, sensitivity=1, sigma=sigma, components=pairs).unit_form
        shifts = rng.uniform(0.05, 0.999, 5)
        precise, rough = (Curve(form, eps).at(shifts, precise=p)[0] for p in (True, False))
        right = [float_divergence(form, Fraction(shift), eps) for shift in shifts.tolist()]
        np.testing.assert_allclose(precise, right, rtol=1e-9, atol=1e-15)
        np.testing.assert_allclose(rough, right, rtol=1e-5, atol=1e-12)


def test_two_changes_next_to_each_other_are_told_apart_in_a_scan() -> None:
    """Just below the cliff at ε = 100 R > 0 on intervals 10⁻⁵ σ long."""
    curve = Curve(multi("100", "0.068565495856519443", 10), Fraction(100))
    shifts = 1 - 10.0 ** -np.arange(6, 13)
    precise, rough = (curve.at(shifts, precise=p)[0] for p in (True, False))
    assert (precise > 0).all()
    np.testing.assert_allclose(rough, precise, rtol=0.05)


def test_a_wide_mixture_is_log_concave() -> None:
    form = multi("1", "4.1", 4)
    assert Curve(form, ONE).rises and not Curve(multi("1", "3.9", 4), ONE).rises
    assert local_maxima(form, ONE) == [(1.0, Curve(form, ONE).end()[0])]
    assert (np.diff(Curve(form, ONE).at(np.linspace(0.01, 1, 60))[0]) >= 0).all()


class Over(Exception):
    """The time is over."""


def test_a_curve_and_its_scan_can_be_ended() -> None:
    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls > 40:
            raise Over

    form = multi("1", "0.36", 10)
    local_maxima(form, ONE, curve=Curve(form, ONE))
    with pytest.raises(Over):
        local_maxima(form, ONE, check=check)
    assert calls == 41


def test_a_given_curve_and_a_floor() -> None:
    form, eps = multi("10", "0.184741279345", 9), Fraction(10)
    found = local_maxima(form, eps, curve=Curve(form, eps))
    assert found == local_maxima(form, eps)
    above = local_maxima(form, eps, floor=1e-8)
    assert above[0] == pytest.approx(found[0], rel=1e-8)
