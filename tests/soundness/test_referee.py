"""The referee against closed forms that are not its own."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from tests.soundness import hard, referee, referee_steps, referee_theorems
from tests.soundness.referee import CONTEXT, MPF, bracketed_zero, digits, number
from tests.soundness.referee_steps import StepDensity

TINY = MPF(10) ** -45


def cdf(z: object) -> object:
    return CONTEXT.erfc(-z / CONTEXT.sqrt(2)) / 2  # type: ignore[operator]


@pytest.mark.parametrize(("sigma", "epsilon"), [("1", "1"), ("4.2", "1"), ("0.3", "5"), ("0.03", "700"), ("30", "0.1")])
def test_the_gaussian(sigma: str, epsilon: str) -> None:
    s, e = number(sigma), number(epsilon)
    for phi in (MPF(1), MPF(1) / 3):
        true = cdf(phi / (2 * s) - e * s / phi) - CONTEXT.exp(e) * cdf(-phi / (2 * s) - e * s / phi)
        found = referee.mixture(sigma, [(1, 0)]).divergence(Fraction(1) if phi == 1 else Fraction(1, 3), epsilon)
        assert abs(found - true) < TINY


def test_the_laplace() -> None:
    """D(φ) = 1 − e^((ε − φ/b)/2) for φ > ε b."""
    density = referee.even([(0, None, 0, [(0, "-1.25")])], 1)
    for phi, epsilon in (("1", "1"), ("0.9", "0.5"), ("0.5", "1")):
        true = max(MPF(0), 1 - CONTEXT.exp((number(epsilon) - number("1.25") * number(phi)) / 2))
        assert abs(density.divergence(phi, epsilon) - true) < TINY


def test_the_uniform() -> None:
    density = referee.even([(0, 5, 0, [(0, 0)])], 1)
    assert abs(density.divergence("0.7", "1") - MPF("0.07")) < TINY
    assert density.supremum("1") == (1, pytest.approx(MPF("0.1")))


def test_the_quasi_gaussian_at_the_sensitivity() -> None:
    """D(Δ) = −h₁ / (e^ε + 2Φ(1/σ)), h₁ of Theorem 4.2."""
    s, e = number("0.8"), number("2")
    h1 = CONTEXT.exp(2 * e) * cdf(-e * s - 1 / s) - cdf(-e * s + 1 / s)
    true = -h1 / (CONTEXT.exp(e) + 2 * cdf(1 / s))
    assert abs(referee.quasi_gaussian("0.8", "2").divergence(1, "2") - true) < TINY


@pytest.mark.parametrize("K", [1, 4])
def test_the_multi_gaussian_at_the_sensitivity(K: int) -> None:
    """With geometric weights only w_K e^(−…) is left: D(Δ) = w_K · (mass where the outermost component exceeds 0 …)."""
    density = referee.multi_gaussian("0.4", K, "1")
    weight = CONTEXT.exp(-K) / (1 + 2 * sum(CONTEXT.exp(-k) for k in range(1, K + 1)))
    assert 0 < density.divergence(1, "1") <= weight


def test_quadrature_agrees() -> None:
    """Another way to the same integral."""
    density = referee.multi_gaussian("0.35", 2, "1")
    f = density.pieces[0].value
    phi, factor = number("0.7"), CONTEXT.exp(1)
    events = density.events("0.7", "1")
    total = MPF(0)
    for a, b in events:
        start, stop = (-MPF(9) if a is None else a), (MPF(9) if b is None else b)
        total += CONTEXT.quad(lambda x: f(x + phi) - factor * f(x), CONTEXT.linspace(start, stop, 12))
    assert abs(total / density.mass - density.divergence("0.7", "1")) < MPF(10) ** -30


def test_the_supremum_is_a_maximum() -> None:
    density = referee.multi_gaussian("0.33", 4, "1")
    shift, top = density.supremum("1")
    for step in ("1e-3", "-1e-3", "1e-6", "-1e-6", "0.1", "-0.2"):
        assert density.divergence(Fraction(str(shift)) + Fraction(step), "1") < top
    assert abs(density.slope(Fraction(str(shift)), "1")) < MPF(10) ** -14


@pytest.mark.parametrize("epsilon", ["3", "8"])
def test_tiny_values_of_the_gaussian(epsilon: str) -> None:
    """D(1) near 10⁻¹⁰⁰ and 10⁻³⁰⁰, to 45 digits of its own."""
    s, e = number("7"), number(epsilon)
    true = cdf(1 / (2 * s) - e * s) - CONTEXT.exp(e) * cdf(-1 / (2 * s) - e * s)
    shift, found = referee.mixture("7", [(1, 0)]).supremum(epsilon)
    assert shift == 1 and abs(found / true - 1) < MPF(10) ** -45
    assert CONTEXT.log10(true) < -90


def test_more_digits_where_nearly_everything_cancels() -> None:
    """K = 20 at ε = 5: D(Δ) is of the size of w_K = e^(−100), and the two densities are equal to 40 digits near 0."""
    with digits(140):
        density = referee.multi_gaussian("1/2", 20, "5")
        value = density.divergence(1, "5")
        weight = CONTEXT.exp(-100) / (1 + 2 * sum(CONTEXT.exp(-5 * k) for k in range(1, 21)))
        tail = cdf(number("11.5") * 2) - CONTEXT.exp(5) * 0
        assert abs(value / (weight * tail) - 1) < MPF("0.1")
    assert CONTEXT.dps == 60


def test_a_peak_that_riemann_sums_do_not_see() -> None:
    """f(x+φ) exceeds e^ε f(x) by a part in a million, for x between two components, at φ round 0.9547: there D is 300
    times as large as at the maximum that meets the eye."""
    density = referee.multi_gaussian("0.1487572221", 8, "17.5")
    shift, top = density.supremum("17.5")
    assert abs(shift - MPF("0.95470672")) < MPF("1e-7") and top > 300 * density.divergence("0.9688299", "17.5")


def test_a_sign_change_far_out_in_the_tail() -> None:
    """Two exponentials: the slower one takes over 3.6 sensitivities out, or 40."""
    for lines, last in (([("0.5273", "-1.6223"), ("-1.2504", "-0.5353")], -3.5647848), ([(0, -1), (-30, "-0.4")], -50)):
        density = referee.even([(0, None, 0, lines)], 0.2)
        first, *_ = density.events(1, "0.73")
        assert first[0] is not None and abs(float(first[0]) - last) < (1e-6 if last > -4 else 10)


def test_an_interval_that_a_grid_steps_over() -> None:
    """10⁻⁴ wide, and all that counts: the log-ratio comes up to ε by a part in 10⁷ between two points of the grid."""
    density, shift = referee.multi_gaussian("0.1311899855", 9, "23.7"), "0.9649353027343774"
    assert any(a is not None and -0.96500 < a < b < -0.96489 for a, b in density.events(shift, "23.7"))
    assert abs(density.divergence(shift, "23.7") / MPF("2.12526812978e-11") - 1) < MPF("1e-10")


@pytest.mark.parametrize("make", [hard.pieces, hard.multi_gaussian, hard.spliced])
def test_the_slope_is_that_of_the_divergence(make: object) -> None:
    """Also where jumps move over one another."""
    for seed in range(3):
        case = make(random.Random(seed))  # type: ignore[operator]
        step = Fraction(1, 10**9)
        low, high = (case.density.divergence(Fraction("0.4371") + k * step, case.epsilon) for k in (-1, 1))
        slope = case.density.slope("0.4371", case.epsilon)
        assert abs(slope - (high - low) / (2 * number(step))) < MPF(10) ** -14 * (1 + abs(slope)) + MPF(10) ** -12


def test_steps_by_two_routes() -> None:
    rows = [("0.3", "0"), ("1.3", "-1"), ("2.4", "-2")]
    steps = StepDensity(rows)
    ends = ["0", *(edge for edge, _ in rows)]
    density = referee.even([(a, b, 0, [(h, 0)]) for a, (b, h) in zip(ends, rows, strict=False)], 1)
    for shift in ("0.37", "0.9", "1"):
        assert abs(steps.divergence(shift, "0.7") - density.divergence(shift, "0.7")) < TINY
    assert abs(steps.supremum("0.7")[1] - density.supremum("0.7")[1]) < TINY
    assert abs(steps.probability("-0.5", "2.1") - density.probability("-0.5", "2.1")) < TINY
    assert abs(steps.probability(None, None) - 1) < TINY


@pytest.mark.parametrize(("gamma", "own", "epsilon"), [("0.3", "1", "0.5"), ("0.8", "0.4", "0.1"), ("1", "3", "3")])
def test_the_staircase(gamma: str, own: str, epsilon: str) -> None:
    """D(Δ) with the tail summed as a geometric series."""
    g, q = number(gamma), CONTEXT.exp(-number(own))
    gain = max(MPF(0), 1 - CONTEXT.exp(number(epsilon)) * q) if own != epsilon else MPF(0)
    true = gain * (min(1, 2 * g) * (1 - q) + q) / (2 * (g * (1 - q) + q))
    shift, found = referee_steps.staircase(gamma, own).supremum(epsilon)
    assert abs(found - true) < TINY and (shift == 1 or not true)


@pytest.mark.parametrize("order", ["1.5", "2", "30", "1e6", "1e18"])
def test_the_renyi_divergence_of_the_gaussian(order: str) -> None:
    """α Δ²/(2σ²)."""
    true = number(order) / (2 * number("0.7") ** 2)
    assert abs(referee_theorems.renyi_divergence([(1, 0)], "0.7", order) / true - 1) < MPF(10) ** -42


def test_the_renyi_divergence_by_quadrature() -> None:
    parts = [(Fraction(1), Fraction(0)), (Fraction("0.2"), Fraction(1)), (Fraction("0.2"), Fraction(-1))]
    density = referee.mixture("0.7", parts)
    f = density.pieces[0].value
    integral = CONTEXT.quad(lambda x: f(x - 1) ** 3 / f(x) ** 2, CONTEXT.linspace(-9, 13, 23)) / density.mass
    assert abs(referee_theorems.renyi_divergence(parts, "0.7", 3) - CONTEXT.log(integral) / 2) < MPF(10) ** -25


def test_the_conditions_of_theorem_4_2() -> None:
    """δ of (4a) is D(Δ); (5a) on a grid."""
    found = referee.quasi_gaussian("0.3", "5").divergence(1, "5")
    assert abs(referee_theorems.least_delta_4a("0.3", "5") - found) < TINY
    for sigma, epsilon in (("1", "2"), ("0.3", "5"), ("0.2", "0.5")):
        f = referee.quasi_gaussian(sigma, epsilon).pieces[-1].value
        values = [f(MPF(i) / 400) for i in range(401)]
        seen = CONTEXT.log(max(values) / min(values))
        assert 0 <= referee_theorems.log_ratio_5a(sigma, epsilon) - seen < MPF(10) ** -4


@pytest.mark.parametrize("size", [7, 100, 9000])
def test_the_largest_value_on_a_grid(size: int) -> None:
    density = referee.multi_gaussian("0.33", 4, "1")
    shift, top = referee_theorems.grid_maximum(density, "1", size)
    assert (shift * size).denominator == 1 and top == density.divergence(shift, "1")
    best = Fraction(round(float(density.supremum("1")[0]) * size), size)
    others = [Fraction(i, size) for i in range(1, size + 1, max(1, size // 25))] + [best]
    assert top >= max(density.divergence(other, "1") for other in others)


def test_the_size_of_a_grid() -> None:
    assert referee_theorems.grid_size(1, "0.7", "0.1") == 6  # 1/(√(2π) · 0.07) = 5.7
    size = referee_theorems.grid_size(1, "0.5", "1e-130")  # of more than 60 digits
    with digits(300):
        assert 0 <= size - 2 * MPF(10) ** 130 / CONTEXT.sqrt(2 * CONTEXT.pi) < 1


def test_a_sign_change_of_steps() -> None:
    """Where false position alone would creep."""
    calls = []
    found = bracketed_zero(
        lambda x: calls.append(x) or (1 if x < MPF(2) / 3 else -1e-9), MPF(0), MPF(1), 1, -1e-9, TINY
    )
    assert abs(found - MPF(2) / 3) < TINY and len(calls) < 500


def _exact(value: Any) -> Fraction:
    return Fraction(CONTEXT.nstr(value, 50))


def test_what_exceeds_by_less_than_floats_can_tell() -> None:
    """At this σ twelve intervals 2·10⁻⁷ wide have f(x+φ) > e^ε f(x), by 10⁻¹³ of it, for φ in a range as narrow."""
    epsilon, sigma = Fraction("6.81"), Fraction("0.18381010715216")
    density = referee.multi_gaussian(sigma, 13, "6.129")
    _, peak, trough = max((high, x, y) for x, y, ratio, high in density.summits() if abs(ratio - 6.81) < 1e-9)
    found, top = density.supremum(epsilon)
    assert abs(found - (MPF(peak) - MPF(trough))) < 1e-6
    shift = _exact(found)
    events = [(a, b) for a, b in density.events(shift, epsilon) if a is not None and b - a < 1e-5]
    narrow = [(_exact(a), _exact(b)) for a, b in events]
    assert len(narrow) == 12
    alone = CONTEXT.fsum(
        density.probability(a + shift, b + shift) - CONTEXT.exp(number(epsilon)) * density.probability(a, b)
        for a, b in narrow
    )
    assert 0 < alone <= top < alone * (1 + MPF(10) ** -10)
    assert top > 10**10 * density.divergence(1, epsilon)
    wider = referee.multi_gaussian(sigma * (1 + Fraction(1, 10**10)), 13, "6.129")
    assert wider.supremum(epsilon)[1] < MPF(10) ** -30


def test_the_steepness_of_a_piece() -> None:
    piece, x, step = referee.multi_gaussian("0.33", 2, "1").pieces[0], MPF("0.7"), MPF(10) ** -20
    around = (CONTEXT.log(piece.value(x + step)) - CONTEXT.log(piece.value(x - step))) / (2 * step)
    assert abs(piece.steepness(x) - around) < MPF(10) ** -35


def test_a_peak_a_few_millionths_from_the_end() -> None:
    density = referee.multi_gaussian("0.177171068954", 11, "11.5")
    shift, top = density.supremum("11.5")
    assert MPF(10) ** -6 < 1 - shift < MPF(10) ** -5
    assert top > 10**29 * density.divergence(1, "11.5")


@pytest.mark.parametrize("epsilon", ["0", "1", "3", "8"])
def test_a_negative_epsilon(epsilon: str) -> None:
    """D at −ε is 1 − e^−ε + e^−ε D at ε, as densities are even."""
    rows = [("0", "0.25", "0", [("-0.5", "-1"), ("0.25", "1")]), ("0.25", None, "0.5", [("17/32", "-2.5")])]
    factor = CONTEXT.exp(-number(epsilon))
    for density in (referee.even(rows, 0.4), referee.mixture("0.3", [(1, 0), ("0.2", "1"), ("0.2", "-1")])):
        there, back = (density.divergence("0.5", sign * Fraction(epsilon)) for sign in (1, -1))
        assert abs(back - (1 - factor + factor * there)) < MPF(10) ** -40
