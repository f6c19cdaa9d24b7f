"""Sign changes, D(φ), its slope and its local maxima in float64, against the referee and against closed forms."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms.difference import difference
from mechanisms.divergence import Curve, divergence_and_slope, float_divergence, local_maxima, positive_intervals
from mechanisms.families import DeclaredMixture, Gaussian, Mechanism, MultiGaussian, QuasiGaussian
from mechanisms.form import Form
from tests.mechanisms.support import (
    MECHANISMS,
    MP,
    REFEREE,
    declared,
    divergence,
    mechanism,
    mpf,
    piece,
    read_json,
    relative,
)

EPSILONS = [Fraction(1), Fraction(1, 3), Fraction(5)]
SHIFTS = [Fraction(1), Fraction(9, 10), Fraction(1, 3)]


def multi(epsilon: str, sigma: str | Fraction, K: int) -> Form:
    """The multi-Gaussian at Δ = 1."""
    form: Form = mechanism(MultiGaussian, sensitivity=1, sigma=sigma, K=K, epsilon=epsilon).unit_form
    return form


def log_ratio(form: Form, x: Any, shift: Fraction, epsilon: Fraction) -> Any:
    """log f(x + φ) − log f(x) − ε by the referee."""
    return form.log_density(x + mpf(shift), REFEREE) - form.log_density(x, REFEREE) - mpf(epsilon)


def breaks(form: Form, shift: Fraction) -> set[float]:
    """Where the formula of the integrand changes."""
    ends = [p.stop for p in form.whole_line if p.stop is not None]
    return {float(end) for stop in ends for end in (stop, stop - shift)}


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("shift", SHIFTS)
def test_intervals_have_the_right_sign(name: str, shift: Fraction) -> None:
    form, rng = MECHANISMS[name].unit_form, random.Random(name)
    spread = float(form.mean_absolute())
    for epsilon in EPSILONS:
        intervals = positive_intervals(difference(form, shift, epsilon))
        assert intervals.shape == (len(intervals), 2)
        assert (np.diff(intervals.ravel()) >= 0).all() and (intervals[:, 0] < intervals[:, 1]).all()
        ends = intervals[np.isfinite(intervals)]
        for _ in range(12):
            x = Fraction(rng.uniform(-6 * spread - 2, 6 * spread + 2))
            lift = MP.exp(mpf(epsilon))
            value = form.density(mpf(x + shift), REFEREE) - lift * form.density(mpf(x), REFEREE)
            inside = bool(((intervals[:, 0] < float(x)) & (float(x) < intervals[:, 1])).any())
            if not len(ends) or np.abs(ends - float(x)).min() > 1e-9 * (1 + abs(x)):
                assert inside is bool(value > 0) or abs(value) < MP.mpf(10) ** -40


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name != "steps"])
def test_ends_are_sign_changes(name: str) -> None:
    form = MECHANISMS[name].unit_form
    fixed = breaks(form, Fraction(9, 10))
    for epsilon in EPSILONS:
        for low, high in positive_intervals(difference(form, Fraction(9, 10), epsilon)):
            for end, outward in ((low, -1), (high, 1)):
                if math.isfinite(end) and end not in fixed:
                    step = outward * mpf(1e-11) * max(1, abs(mpf(end)))
                    assert log_ratio(form, mpf(end) - step, Fraction(9, 10), epsilon) > 0
                    assert log_ratio(form, mpf(end) + step, Fraction(9, 10), epsilon) < 0


@pytest.mark.parametrize("sigma", ["1e-3", "1", "36.8", "1e9"])
@pytest.mark.parametrize("epsilon", ["1e-9", "1", "710"])
def test_the_gaussian_has_one_change_in_closed_form(sigma: str, epsilon: str) -> None:
    """It may be 36 σ and more from the centre."""
    form = mechanism(Gaussian, sensitivity=1, sigma=sigma).unit_form
    for shift in SHIFTS:
        ((low, high),) = positive_intervals(difference(form, shift, Fraction(epsilon)))
        assert low == -math.inf
        assert high == float(-Fraction(epsilon) * Fraction(sigma) ** 2 / shift - shift / 2)


def gaussian_divergence(sigma: Fraction, shift: Fraction, epsilon: Fraction) -> Any:
    """Balle and Wang's formula, by the referee with digits enough."""
    with MP.workdps(400):
        half, slope = mpf(shift) / (2 * mpf(sigma)), mpf(epsilon) * mpf(sigma) / mpf(shift)
        return MP.ncdf(half - slope) - MP.exp(mpf(epsilon)) * MP.ncdf(-half - slope)


@pytest.mark.parametrize(
    ("sigma", "epsilon"),
    [("4.2", "1"), ("0.03", "710"), ("36.8655", "1"), ("38.2", "1"), ("3e5", "0"), ("1e9", "1e-9"), ("0.3", "1e-3")],
)
def test_gaussian_values_down_to_the_underflow_limit(sigma: str, epsilon: str) -> None:
    form = mechanism(Gaussian, sensitivity=1, sigma=sigma).unit_form
    for shift in SHIFTS:
        right = gaussian_divergence(Fraction(sigma), shift, Fraction(epsilon))
        value = float_divergence(form, shift, Fraction(epsilon))
        if right > 1e-305:
            assert relative(value, right) < 1e-12
        else:
            assert abs(value - float(right)) <= 1e-316


@pytest.mark.parametrize(
    ("epsilon", "sigma", "K", "shift"),
    [
        ("1", "0.3353", 4, "0.85"),
        ("10", "0.18475", 9, "0.9287"),
        ("10", "0.1855", 9, "0.999999"),
        ("1", "0.36", 20, "0.97"),
        ("0.1", "37", 20, "0.5"),
        ("30", "0.1184589", 4, "0.963073"),
        ("5", "0.2373", 14, "0.9629"),
    ],
)
def test_multi_gaussian_values_where_masses_cancel(epsilon: str, sigma: str, K: int, shift: str) -> None:
    form, phi, eps = multi(epsilon, sigma, K), Fraction(shift), Fraction(epsilon)
    intervals = positive_intervals(difference(form, phi, eps))
    right = divergence(form, phi, eps, intervals.tolist())
    assert relative(float_divergence(form, phi, eps), right) < 1e-11
    assert relative(float(Curve(form, eps).at(np.array([float(phi)]))[0][0]), right) < 1e-9


@pytest.mark.parametrize(("epsilon", "K"), [("1", 4), ("10", 9), ("0.1", 20), ("100", 3)])
def test_the_end_is_bounded_by_the_last_weight(epsilon: str, K: int) -> None:
    """D(Δ) ≤ w_K however small σ is, which only exact cancellation shows."""
    weights = [MP.exp(-abs(k) * mpf(epsilon)) for k in range(-K, K + 1)]
    last = weights[0] / sum(weights)
    value = float_divergence(multi(epsilon, "0.01", K), Fraction(1), Fraction(epsilon))
    assert relative(value, last) < 1e-12 or value < last


@pytest.mark.parametrize(("epsilon", "sigma"), [("1", "0.8"), ("5", "0.2"), ("2", "1.93"), ("0.1", "30")])
def test_quasi_gaussian_at_the_end(epsilon: str, sigma: str) -> None:
    """D(Δ) = −h₁/(e^ε + 2Φ(Δ/σ)) where the integrand has the one sign change that Theorem 4.2 is about."""
    form = mechanism(QuasiGaussian, sensitivity=1, sigma=sigma, epsilon=epsilon).unit_form
    eps, s = mpf(epsilon), mpf(sigma)
    h = MP.exp(2 * eps) * MP.ncdf(-eps * s - 1 / s) - MP.ncdf(-eps * s + 1 / s)
    right = -h / (MP.exp(eps) + 2 * MP.ncdf(1 / s))
    assert relative(float_divergence(form, Fraction(1), Fraction(epsilon)), right) < 1e-12


@pytest.mark.parametrize("name", MECHANISMS)
def test_curve_and_slope_agree_with_single_shifts(name: str) -> None:
    form = MECHANISMS[name].unit_form
    shifts = np.array([0.11, 0.37, 0.52, 0.83, 0.97])
    for epsilon in EPSILONS:
        values, slopes, _ = Curve(form, epsilon).at(shifts)
        for shift, value, slope in zip(shifts, values, slopes, strict=True):
            single = divergence_and_slope(form, Fraction(shift), epsilon)
            assert value == pytest.approx(single[0], rel=1e-9, abs=1e-18)
            assert slope == pytest.approx(single[1], rel=1e-6, abs=1e-12)
            h = Fraction(1, 10**6)
            below, above = (float_divergence(form, Fraction(shift) + step, epsilon) for step in (-h, h))
            assert single[1] == pytest.approx((above - below) / float(2 * h), rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("name", ["gaussian", "laplace", "truncated-laplace", "grafted"])
def test_a_log_concave_density_has_its_maximum_at_the_end(name: str) -> None:
    form = MECHANISMS[name].unit_form
    ((shift, value),) = local_maxima(form, Fraction(1, 2))
    assert shift == 1 and relative(value, mpf(float_divergence(form, Fraction(1), Fraction(1, 2)))) < 1e-13
    values = Curve(form, Fraction(1, 2)).at(np.linspace(0.01, 0.99, 50))[0]
    assert (np.diff(values) >= 0).all() and values[-1] <= value


CELLS = read_json("scale-grid.json")["cells"]


@pytest.mark.parametrize("cell", CELLS[::13], ids=lambda cell: f"{cell['epsilon']}-{cell['delta']}")
def test_worst_shifts_of_the_grid(cell: dict[str, Any]) -> None:
    """At the least σ of the grid (10 digits) the largest maximum is δ, at the shift that the grid states."""
    for K, sigma, shift in cell["multi_gaussian"]:
        form, epsilon = multi(cell["epsilon"], Fraction(sigma), K), Fraction(cell["epsilon"])
        found = local_maxima(form, epsilon)
        assert found == sorted(found, key=lambda pair: -pair[1]) and 1.0 in [phi for phi, _ in found]
        assert found[0][1] == pytest.approx(float(cell["delta"]), rel=2e-8)
        again = float_divergence(form, Fraction(found[0][0]), epsilon)
        assert found[0][1] == pytest.approx(again, rel=1e-9)
        assert float_divergence(form, Fraction(shift), epsilon) <= found[0][1] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("epsilon", "sigma", "K"),
    [
        ("10", "0.18474", 9),
        ("10", "0.18475", 9),
        ("3", "0.26931", 3),
        ("30", "0.11845891384394915", 4),
        ("0", "0.3", 3),
        ("0.01", "0.2", 20),
        ("1000", "0.0218", 3),
        ("1", "0.05", 14),
    ],
)
def test_no_peak_is_stepped_over(epsilon: str, sigma: str, K: int) -> None:
    """At ε = 30 the peak is 10⁻⁵ wide; at ε = 10 there is a second one, 20 times lower."""
    form, eps = multi(epsilon, sigma, K), Fraction(epsilon)
    (shift, top), *rest = local_maxima(form, eps)
    shifts = np.unique(np.concatenate([np.linspace(0.001, 0.999, 500), 1 - np.geomspace(1e-7, 0.1, 700)]))
    curve = Curve(form, eps)
    values = np.concatenate([curve.at(part, precise=False)[0] for part in np.array_split(shifts, 20)])
    assert values.max() <= top * (1 + 1e-6)
    if shift < 1:
        for step in (-1e-9, 1e-9):
            assert float_divergence(form, Fraction(shift + step * 30 * (1 - shift)), eps) <= top * (1 + 1e-10)
        assert abs(divergence_and_slope(form, Fraction(shift), eps)[1]) < 1e-4 * top / (1 - shift)
    assert all(value <= top for _, value in rest)


def test_two_peaks_are_both_reported() -> None:
    found = local_maxima(multi("10", "0.184741279345", 9), Fraction(10))
    assert [round(shift, 4) for shift, _ in found] == [0.9291, 0.9511, 1.0]


def test_seeds_are_looked_at() -> None:
    form = multi("1", "0.3353", 4)
    with_seeds, without = (np.array(local_maxima(form, Fraction(1), seeds)) for seeds in ([0.3, 0.5], []))
    np.testing.assert_allclose(with_seeds, without, rtol=1e-9)
    many = declared(*[piece(str(k), str(k + 1), "0", (str(-(k % 7)), "0")) for k in range(100)]).unit_form
    found = local_maxima(many, Fraction(1), [0.25, 2.0])
    assert sorted(shift for shift, _ in found) == [0.25, 1.0] and found[0][1] >= found[1][1]


def test_steps_have_their_maxima_where_edges_meet() -> None:
    """A histogram of width 0.4: D is piecewise linear, with a peak in (0, 1)."""
    form = declared(
        piece("0", "0.2", "0", ("0", "0")),
        piece("0.2", "0.6", "0", ("-3", "0")),
        piece("0.6", "1", "0", ("0", "0")),
        piece("1", "1.4", "0", ("-3", "0")),
    ).unit_form
    found = local_maxima(form, Fraction(1))
    brute = max(float_divergence(form, Fraction(k, 40), Fraction(1)) for k in range(1, 41))
    assert found[0][1] == pytest.approx(brute, rel=1e-9) and found[0][0] < 1


@pytest.mark.parametrize(
    "member",
    [
        mechanism(Gaussian, sensitivity=1, sigma="2.2e-308"),
        mechanism(MultiGaussian, sensitivity=1, sigma="2.2e-308", K=3, epsilon=2),
        mechanism(QuasiGaussian, sensitivity=1, sigma="1e-200", epsilon=2),
        mechanism(DeclaredMixture, sensitivity="1e300", sigma="1", components=[[1, 0], [1, "0.5"]]),
    ],
)
def test_noise_that_is_all_but_none(member: Mechanism) -> None:
    """A narrow peak tells two inputs apart for sure; nothing overflows, no warning leaks (here they are errors)."""
    form = member.unit_form
    assert local_maxima(form, Fraction(2))[0][1] == pytest.approx(1, rel=1e-12)
    assert len(positive_intervals(difference(form, Fraction(1, 2), Fraction(2))))


@pytest.mark.parametrize(
    "member",
    [
        mechanism(Gaussian, sensitivity=1, sigma="1e300"),
        mechanism(MultiGaussian, sensitivity=1, sigma="1e300", K=3, epsilon=2),
    ],
)
def test_noise_without_end(member: Mechanism) -> None:
    assert local_maxima(member.unit_form, Fraction(2))[0] == (1.0, 0.0)
