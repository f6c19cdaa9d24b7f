"""D bounded over a range of shifts round an interior worst shift."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

import audit.shifts
import audit.summit
from audit.density import Density
from audit.exact import lower, upper
from audit.shifts import Search
from audit.single import Points
from audit.summit import Range, Summit, _Gap, find_summit
from audit.sweep import Sweep
from audit.verdict import Limits
from mechanisms.families import Mechanism
from tests.audit.support import FEW, ZOO, bits, contains, mixture, multi_gaussian, point
from tests.soundness import referee
from tests.soundness.referee import CONTEXT, MPF, number

ROUNDING = MPF(10) ** -40
Pair = tuple[Mechanism, referee.Density]
INTERIOR, TEETH = multi_gaussian("0.33", 4, "1"), mixture("0.12", ("1", "0"), ("0.8", "0.5"), ("0.6", "1"))
FOREIGN = multi_gaussian("0.25", 3, "2")
PEAKS: dict[str, tuple[Pair, str, Fraction]] = {
    # name: (mechanism and referee, ε, a local maximum of D by the referee)
    "multi-gaussian": (INTERIOR, "1", Fraction("0.7486171667403057")),
    "highest of two": (TEETH, "1", Fraction("0.8154238370659903")),
    "lower of two": (TEETH, "1", Fraction("0.2819541323793779")),
    "foreign epsilon": (FOREIGN, "2.4", Fraction("0.6745403366927368")),
}
VALLEYS = (Fraction("0.41"), Fraction("0.94"))
"""Local minima of D between the peaks of TEETH."""


def touching(weight: str) -> Pair:
    """Far to the left R comes down to a local minimum, which is 0 at φ = TOUCH for a weight of 6.5608e-5."""
    inner = [("1", "0"), ("0.367879", "1"), ("0.135335", "2"), ("0.049787", "3")]
    return mixture("0.33", *inner, (weight, "4.6"))


TOUCH = Fraction("0.7827")


def summit(pair: Pair, epsilon: str, shifts: Range, precision: int = 128) -> tuple[arb | None, Summit | None]:
    """(excess divided by the mass, the summit), proposals as the search makes them."""
    with bits(precision):
        points = Points(pair[0].unit_form, Limits(), Fraction(1, 100))
        found = points.summit(shifts, Fraction(epsilon))
        return None if found is None else found.excess / points.mass, found


def proposed(
    pair: Pair, epsilon: str, shifts: Range, roots: list[float], cuts: list[fmpq]
) -> tuple[arb | None, Summit | None]:
    """The same for proposals of any kind."""
    with bits(128):
        ours = Density(pair[0].unit_form)
        span = ours.span((shifts.start, shifts.stop), Fraction(epsilon), Fraction(0))
        (balls,) = ours.stretches(shifts.at, Fraction(epsilon))
        assert span is not None
        found = find_summit(span, balls, shifts, Fraction(epsilon), roots, cuts)
        return None if found is None else found.excess / ours.mass, found


def roots_of(pair: Pair, epsilon: str, shift: Fraction) -> list[float]:
    return [float(x) for event in pair[1].events(shift, epsilon) for x in event if x is not None]


def within(rng: random.Random, start: Fraction, stop: Fraction) -> Fraction:
    return start + (stop - start) * Fraction(rng.randint(0, 1000), 1000)


def holds(pair: Pair, epsilon: str, shifts: Range, excess: arb, others: list[Fraction]) -> bool:
    """Whether D ≤ D(φ₀) + excess at the ends of the range and at other shifts of it."""
    bound = pair[1].divergence(shifts.at, epsilon) + number(upper(excess))
    asked = [shifts.start, shifts.stop, *(shift for shift in others if shifts.start <= shift <= shifts.stop)]
    return all(pair[1].divergence(shift, epsilon) <= bound * (1 + ROUNDING) for shift in asked)


@pytest.mark.parametrize("name", PEAKS)
def test_the_bound_holds_in_the_range_and_is_near_the_truth(name: str) -> None:
    pair, epsilon, peak = PEAKS[name]
    rng = random.Random(name)
    for level in (10, 13):
        width = Fraction(1, 2**level)
        start, stop = within(rng, peak - width, peak), within(rng, peak, peak + width)
        at = within(rng, start, stop)
        excess, found = summit(pair, epsilon, Range(start, at, stop))
        assert excess is not None and found is not None
        assert holds(pair, epsilon, Range(start, at, stop), excess, [within(rng, start, stop)])
        gain = pair[1].divergence(peak, epsilon) - pair[1].divergence(at, epsilon)
        assert 0 <= gain <= number(upper(excess))
        if level == 13:
            assert number(upper(excess)) <= gain * MPF("1.3")
            assert abs(Fraction(float(at) - found.slope / found.bend) - peak) < abs(at - peak) / 3


@pytest.mark.parametrize("name", PEAKS)
def test_two_precisions_agree(name: str) -> None:
    pair, epsilon, peak = PEAKS[name]
    shifts = Range(peak - Fraction(1, 2**11), peak, peak + Fraction(1, 2**11))
    (coarse, first), (fine, second) = (summit(pair, epsilon, shifts, precision) for precision in (96, 256))
    assert coarse is not None and fine is not None and first is not None and second is not None
    assert coarse.overlaps(fine)
    assert first.slope == pytest.approx(second.slope, rel=1e-9) and first.bend == pytest.approx(second.bend, rel=1e-9)


def wrong(rng: random.Random, roots: list[float]) -> list[float]:
    """Proposals with a fault of some kind."""
    found, kind = list(roots), rng.randrange(7)
    if kind == 0:
        found.pop(rng.randrange(len(found)))
    elif kind == 1:
        at = rng.randrange(len(found) - 1)
        del found[at : at + 2]
    elif kind == 2:
        found = sorted([*found, rng.choice(found)])
    elif kind == 3:
        found = sorted([*found, rng.uniform(-6, 6)])
    elif kind == 4:
        rng.shuffle(found)
    elif kind == 5:
        found = [root + rng.choice([-1, 1]) * 10 ** -rng.uniform(2, 12) for root in found]
    else:
        found = [*found, rng.choice([1e3, 1e9, 1e200])]
    return found


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(sorted(PEAKS)), st.integers(0, 10**9), st.integers(10, 13))
def test_wrong_proposals_give_nothing_or_a_bound_that_holds(name: str, seed: int, level: int) -> None:
    pair, epsilon, peak = PEAKS[name]
    rng, width = random.Random(seed), Fraction(1, 2**level)
    shifts = Range(peak - width, within(rng, peak - width, peak + width), peak + width)
    cuts = [fmpq(rng.randint(-5000, 5000), 1000) for _ in range(rng.choice([0, 10, 60]))]  # in no order
    excess, _ = proposed(pair, epsilon, shifts, wrong(rng, roots_of(pair, epsilon, shifts.at)), cuts)
    assert excess is None or holds(pair, epsilon, shifts, excess, [peak])


def test_a_missing_root_gives_no_summit_and_a_superfluous_one_does_no_harm() -> None:
    pair, epsilon, peak = PEAKS["multi-gaussian"]
    shifts = Range(peak - Fraction(1, 2**11), peak + Fraction(1, 2**12), peak + Fraction(1, 2**11))
    roots = roots_of(pair, epsilon, shifts.at)
    right, _ = proposed(pair, epsilon, shifts, roots, [])
    more, _ = proposed(pair, epsilon, shifts, sorted([*roots, 0.05]), [])
    assert right is not None and more is not None and right.overlaps(more)
    assert holds(pair, epsilon, shifts, right, [peak])
    for lost in range(len(roots)):
        assert proposed(pair, epsilon, shifts, [*roots[:lost], *roots[lost + 1 :]], [])[1] is None
        assert proposed(pair, epsilon, shifts, sorted([*roots, roots[lost]]), [])[1] is None
    assert proposed(pair, epsilon, shifts, [], [])[1] is None
    assert proposed(pair, epsilon, shifts, roots[::-1], [])[1] is None


def test_a_shift_outside_the_range_and_a_root_that_is_no_number_give_no_summit() -> None:
    pair, epsilon, peak = PEAKS["multi-gaussian"]
    roots, near, far = roots_of(pair, epsilon, peak), Fraction(1, 2**12), Fraction(1, 2**11)
    assert proposed(pair, epsilon, Range(peak - near, peak, peak + near), roots, [])[1] is not None
    for start, stop in ((peak - far, peak - near), (peak + near, peak + far)):
        assert proposed(pair, epsilon, Range(start, peak, stop), roots, [])[1] is None
    for wild in (float("nan"), float("inf")):
        assert proposed(pair, epsilon, Range(peak - near, peak, peak + near), [*roots, wild], [])[1] is None


@pytest.mark.parametrize("name", PEAKS)
def test_the_density_at_a_root_is_enclosed_closely(name: str) -> None:
    """Near the root that floats found f may rise or fall: both count."""
    pair, epsilon, peak = PEAKS[name]
    shifts, width = Range(peak - Fraction(1, 2**11), peak, peak + Fraction(1, 2**11)), fmpq(1, 1000)
    exact = [x for event in pair[1].events(peak, epsilon) for x in event if x is not None]
    with bits(128):
        ours = Density(pair[0].unit_form)
        span = ours.span((shifts.start, shifts.stop), Fraction(epsilon), Fraction(0))
        (balls,) = ours.stretches(peak, Fraction(epsilon))
        assert span is not None
        for true in exact:
            root = point(Fraction(float(true)))
            gap = _Gap(root - width, root + width, span, shifts, Fraction(epsilon))
            found = audit.summit._density_at_root(span.convex, balls, shifts, gap, float(true)) / ours.mass
            value = pair[1].pieces[0].value(true + number(peak)) / pair[1].mass
            assert contains(found, value) and found.rel_accuracy_bits() > 30


def test_no_more_cells_are_looked_at_than_the_budget_has(monkeypatch: pytest.MonkeyPatch) -> None:
    pair, epsilon, peak = PEAKS["multi-gaussian"]
    shifts = Range(peak - Fraction(1, 2**11), peak, peak + Fraction(1, 2**11))
    roots = roots_of(pair, epsilon, peak)
    found = []
    for most in range(60):
        monkeypatch.setattr(audit.summit, "MOST_CELLS", most)
        found.append(proposed(pair, epsilon, shifts, roots, [])[1] is not None)
    first = found.index(True)
    assert first > 5 and found == [False] * first + [True] * (60 - first)


def test_outermost_points_are_sought_by_doubling() -> None:
    """A quarter, a half, 1 … beyond the gaps: R_x < 0 from there on, for every shift of the range."""
    for name, (pair, _, peak) in PEAKS.items():
        start, stop = peak - Fraction(1, 2**11), peak + Fraction(1, 2**11)
        with bits(128):
            span = Density(pair[0].unit_form).span((start, stop), Fraction(1), Fraction(0))
            assert span is not None
            for low, high in ((fmpq(-1), fmpq(1)), (fmpq(-9), fmpq(9)), (fmpq(-1, 3), fmpq(5))):
                first, last = audit.summit._outermost(span, Range(start, peak, stop), low, high)
                assert first is not None and last is not None, name
                for away in (low - first, last - high):
                    assert away * 4 in [2**k for k in range(audit.summit.MOST_STEPS)]
                for shift in (start, stop):
                    for x in (first, first - 1, last, last + 1):
                        there, here = number(Fraction(int(x.p), int(x.q)) + shift), number(Fraction(int(x.p), int(x.q)))
                        assert log_slope(pair[1], there) < log_slope(pair[1], here)


def test_there_is_none_where_two_roots_are_about_to_appear() -> None:
    shifts = Range(TOUCH - Fraction(1, 2**11), TOUCH, TOUCH + Fraction(1, 2**11))
    assert summit(touching("6.5608e-5"), "1", shifts)[1] is None
    for weight in ("5e-5", "1e-4"):  # R > 0 there, or well below
        pair = touching(weight)
        excess, _ = summit(pair, "1", shifts)
        assert excess is not None and holds(pair, "1", shifts, excess, [TOUCH - Fraction(1, 4096)])


def test_two_roots_taken_for_one_give_no_summit() -> None:
    """A proposal between two roots of which the gap holds both, and R the same sign on its two sides."""
    pair, width = touching("1e-4"), Fraction(1, 2**12)
    shifts = Range(TOUCH - width, TOUCH, TOUCH + width)
    first, second, *others = roots_of(pair, "1", TOUCH)
    assert first < -5.05 < -4.95 < second
    assert proposed(pair, "1", shifts, [first, second, *others], [])[1] is not None
    assert proposed(pair, "1", shifts, [-5.0081, *others], [])[1] is None


@pytest.mark.parametrize("valley", VALLEYS)
def test_there_is_none_at_a_minimum(valley: Fraction) -> None:
    for level in (9, 14, 20):
        width = Fraction(1, 2**level)
        assert summit(TEETH, "1", Range(valley - width, valley, valley + width))[1] is None


def test_there_is_none_where_the_ratio_may_be_flat() -> None:
    """At φ = 0 R is constant; and the least slope of f(x+φ)/f(x) far out is 2cφ."""
    for pair, epsilon in ((INTERIOR, "1"), (TEETH, "0.2")):
        assert summit(pair, epsilon, Range(Fraction(0), Fraction(1, 2**12), Fraction(1, 2**11)))[1] is None
        assert summit(pair, epsilon, Range(Fraction(0), Fraction(3, 4), Fraction(1)))[1] is None


@pytest.mark.parametrize("name", ["laplace", "quasi-gaussian", "camel", "gaussian"])
def test_there_is_none_where_the_density_has_several_pieces_or_a_single_line(name: str) -> None:
    assert summit(ZOO[name], "0.5", Range(Fraction(1, 2), Fraction(11, 20), Fraction(3, 5)))[1] is None


def test_there_is_none_round_a_shift_at_which_lines_cancel() -> None:
    start, at, stop = Fraction(13, 16), Fraction(7, 8), Fraction(9, 10)
    assert summit(ZOO["eighths"], "0.5", Range(start, at, stop))[1] is None
    assert summit(ZOO["eighths"], "0.5", Range(at, Fraction(57, 64), stop))[1] is None


def log_slope(density: referee.Density, x: Any) -> Any:
    """(log f)′."""
    piece = density.pieces[0]
    parts = [(w * CONTEXT.exp(a + (b - piece.c * x) * x), b - 2 * piece.c * x) for w, a, b in piece.terms]
    return CONTEXT.fsum(value * slope for value, slope in parts) / CONTEXT.fsum(value for value, _ in parts)


@FEW
@given(st.sampled_from(sorted(PEAKS)), st.integers(0, 10**9))
def test_bounds_of_a_gap_hold_in_it(name: str, seed: int) -> None:
    (mechanism, density), epsilon, _ = PEAKS[name]
    rng = random.Random(seed)
    left, start = Fraction(rng.randint(-4000, 4000), 1000), Fraction(rng.randint(1, 900), 1000)
    right, stop = left + Fraction(1, rng.choice([5, 50, 1000])), start + Fraction(1, rng.choice([10, 100, 1000]))
    level = CONTEXT.exp(number(epsilon))
    with bits(128):
        ours = Density(mechanism.unit_form)
        span = ours.span((start, stop), Fraction(epsilon), Fraction(0))
        if span is None:  # lines cancel at the first shift
            return
        gap = _Gap(point(left), point(right), span, Range(start, start, stop), Fraction(epsilon))
        factors = number(lower(ours.mass)), number(upper(ours.mass))
        adds = {sign: gap.upper_bend(sign) for sign in (1, -1) if gap.is_monotone}
    least, largest = number(lower(gap._least_slope)), number(upper(gap._largest_slope))
    for k in range(12):
        x, phi = within(rng, left, right), within(rng, start, stop)
        if k < 4:
            x, phi = (left, right)[k % 2], (start, stop)[k // 2]
        there, here = number(x + phi), number(x)
        score, slope = log_slope(density, there), log_slope(density, there) - log_slope(density, here)
        value = density.pieces[0].value(there) / density.mass
        top = max(value, level * density.pieces[0].value(here) / density.mass)
        assert number(lower(gap.score)) <= score + ROUNDING and score - ROUNDING <= number(upper(gap.score))
        assert abs(score) <= number(upper(gap.steepest)) + ROUNDING
        assert least <= slope + ROUNDING and slope - ROUNDING <= largest
        assert number(lower(gap.density)) <= value * factors[1] * (1 + ROUNDING)
        assert value * factors[0] * (1 - ROUNDING) <= number(upper(gap.density))
        assert top * factors[0] * (1 - ROUNDING) <= number(upper(gap.highest))
        for sign, add in adds.items():
            assert slope and (sign * score * value + top * score**2 / abs(slope)) * factors[0] <= number(upper(add))
    assert gap.is_monotone == (least > 0 or largest < 0)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of every box a search asks about, whether it lay on a summit."""
    asked: list[bool] = []
    found = audit.shifts.is_within

    def is_within(i: int, level: int, ranges: Sequence[tuple[Fraction, Fraction]]) -> bool:
        asked.append(found(i, level, ranges))
        return asked[-1]

    monkeypatch.setattr(audit.shifts, "is_within", is_within)
    return asked


def search(pair: Pair, epsilon: str, threshold: Fraction, grid: int | None = None) -> Search:
    form, limits = pair[0].unit_form, Limits()
    return Search(form, Fraction(epsilon), threshold, grid=grid, tightness=None, limits=limits, progress=None)


@pytest.mark.parametrize("tables", [True, False])
@pytest.mark.parametrize("name", ["multi-gaussian", "highest of two"])
@pytest.mark.parametrize("gap", [12, 18])
def test_a_search_that_ends_by_a_summit_is_right_on_both_sides(
    name: str, tables: bool, gap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, epsilon, near = PEAKS[name]
    if not tables:
        monkeypatch.setattr(Sweep, "of", lambda *arguments: None)
    top = pair[1].divergence(near, epsilon)
    true, asked = Fraction(CONTEXT.nstr(top, 45)), counted(monkeypatch)
    above = search(pair, epsilon, true * (1 + Fraction(1, 10**gap)))
    found = above.run(lambda: [near])
    assert not found.exceeds and found.upper == above.threshold and found.peak is not None
    assert any(start < near < stop for start, stop in above._summits)
    assert tables or any(asked)
    assert found.boxes < 1500 and number(found.peak.lower) <= top * (1 + ROUNDING)
    below = search(pair, epsilon, true * (1 - Fraction(1, 10**gap)))
    found = below.run(lambda: [near])
    assert found.exceeds and found.upper is None and found.peak is not None
    assert pair[1].divergence(found.peak.shift, epsilon) > number(below.threshold)


@pytest.mark.parametrize("share", ["1/100", "1/2", "1.1"])
def test_on_a_grid_the_evidence_is_of_its_points(share: str) -> None:
    """Thresholds between the largest D on the grid and sup D, and above both: true, whatever D is off the grid."""
    size = 1000
    peak = PEAKS["multi-gaussian"][2]
    top = INTERIOR[1].divergence(peak, "1")
    nearest = [Fraction(int(peak * size) + i, size) for i in (0, 1)]
    largest = max(INTERIOR[1].divergence(at, "1") for at in nearest)
    threshold = Fraction(CONTEXT.nstr(largest + (top - largest) * number(share), 45))
    found = search(INTERIOR, "1", threshold, size).run(lambda: [])
    assert not found.exceeds and found.upper == threshold and found.peak is not None
    assert found.peak.shift in nearest and found.peak.index == found.peak.shift * size
    assert number(found.peak.lower) <= largest * (1 + ROUNDING)
