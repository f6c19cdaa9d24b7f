"""Cells decided for a range of shifts and of ε at once."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import pytest
from flint import fmpq

from audit.density import Density
from audit.divergence import DivergenceAt
from audit.exact import fraction, lower, upper
from audit.frame import Frame, Validity
from audit.verdict import Limits
from tests.audit.support import ZOO, bits, mixture, multi_gaussian, point
from tests.soundness.referee import CONTEXT, MPF, number

CASES = {
    "interior": (multi_gaussian("0.33", 4, "1"), Fraction(7, 10), Fraction(1), "1/50"),
    "near the end": (multi_gaussian("0.35", 3, "1"), Fraction(98, 100), Fraction(1), "1/100"),
    "irregular": (ZOO["irregular"], Fraction(1, 2), Fraction(1, 2), "1/200"),
    "very near the end": (multi_gaussian("0.35", 3, "1"), Fraction(999, 1000), Fraction(1), "1/100000"),
    "wide range": (multi_gaussian("0.5", 2, "1"), Fraction(1, 4), Fraction(2), "1/4"),
}
LIFT = Fraction(1, 1000)
TOLD = {
    "interior": (19, 10),
    "near the end": (3, 26),
    "irregular": (93, 2),
    "very near the end": (7, 33),
    "wide range": (0, 0),
}
"""Of 240 cells, how many at least are told to be positive, and how many at most are left open."""


def frame_of(ours: Density, shifts: tuple[Fraction, Fraction], epsilon: Fraction, cuts: list[fmpq]) -> Frame:
    span = ours.span(shifts, epsilon, LIFT)
    assert span is not None
    return Frame(Validity(shifts, epsilon, LIFT), span, cuts)


@pytest.mark.parametrize("name", CASES)
def test_what_a_frame_says_holds_for_every_shift_and_epsilon_that_it_covers(name: str) -> None:
    (mechanism, density), first, epsilon, width = CASES[name]
    rng = random.Random(name)
    shifts = first, first + Fraction(width)
    cuts = [point(Fraction(i, 40)) for i in range(-120, 121)]
    f = density.pieces[0].value
    with bits(128):
        ours = Density(mechanism.unit_form)
        frame = frame_of(ours, shifts, epsilon, cuts)
    assert len(frame.positive) >= TOLD[name][0]
    assert sum(fraction((stop - start) * 40) for start, stop in frame.open) <= TOLD[name][1]
    assert all(left[1] < right[0] for left, right in itertools.pairwise(frame.open))
    settled = 0
    for left, right in itertools.pairwise(cuts):
        positive = any(a <= left and right <= b for a, b in frame.positive if a is not None and b is not None)
        unknown = any(a <= left and right <= b for a, b in frame.open)
        settled += not unknown
        for _ in range(0 if unknown else 3):
            x = number(fraction(left + (right - left) * rng.randint(0, 100) / 100))
            phi = number(shifts[0] + (shifts[1] - shifts[0]) * Fraction(rng.randint(0, 100), 100))
            level = number(epsilon - LIFT * Fraction(rng.randint(0, 10), 10))
            ratio = CONTEXT.log(f(x + phi) / f(x)) - level
            assert ratio >= -(MPF(10) ** -50) if positive else ratio <= MPF(10) ** -50
    assert settled > 20
    with bits(128):
        for _ in range(3):
            shift = shifts[0] + (shifts[1] - shifts[0]) * Fraction(rng.randint(0, 100), 100)
            level = epsilon - LIFT * Fraction(rng.randint(0, 10), 10)
            assert frame.covers(shift, level)
            budget = 1e-9
            anchor, roots = ours.anchor(shift, level), [-0.62, 0.3, 7.0]
            search = DivergenceAt(ours.stretches(shift, level), roots, budget, anchor, cuts, frame)
            found = search.bound(budget, Limits())
            true = density.divergence(shift, level)
            assert number(lower(found.lower / ours.mass)) <= true <= number(upper(found.upper / ours.mass))
            assert float(found.upper - found.lower) < 2e-9


def test_what_a_frame_does_not_cover() -> None:
    with bits(128):
        ours = Density(CASES["interior"][0][0].unit_form)
        frame = frame_of(ours, (Fraction(1, 2), Fraction(3, 5)), Fraction(1), [point(Fraction(0)), point(Fraction(1))])
    assert frame.covers(Fraction(1, 2), Fraction(1)) and frame.covers(Fraction(3, 5), 1 - LIFT)
    for shift, epsilon in (("0.49", "1"), ("0.61", "1"), ("0.55", "1.0001"), ("0.55", "0.99")):
        assert not frame.covers(Fraction(shift), Fraction(epsilon))


@pytest.mark.parametrize("name", ["laplace", "quasi-gaussian", "camel", "gaussian"])
def test_there_is_none_where_the_density_has_several_pieces_or_lines_cancel(name: str) -> None:
    with bits(128):
        if name != "gaussian":
            assert Density(ZOO[name][0].unit_form).span((Fraction(1, 2), Fraction(3, 5)), Fraction(1), LIFT) is None
        eighths = Density(ZOO["eighths"][0].unit_form)
        assert eighths.span((Fraction(7, 8), Fraction(9, 10)), Fraction(1), LIFT) is None


@pytest.mark.parametrize(
    ("name", "positive", "unknown"), [("interior", 89, 18), ("near the end", 33, 58), ("very near the end", 64, 81)]
)
def test_finer_cells_tell_more(name: str, positive: int, unknown: int) -> None:
    (mechanism, _), first, epsilon, width = CASES[name]
    cuts = [point(Fraction(i, 160)) for i in range(-480, 481)]
    with bits(128):
        ours, shifts = Density(mechanism.unit_form), (first, first + Fraction(width))
        frame, span = frame_of(ours, shifts, epsilon, cuts), ours.span(shifts, epsilon, LIFT)
        assert span is not None and span.sign(span.balls.at(cuts[0]), span.balls.at(cuts[-1])) == 0
    assert len(frame.positive) >= positive
    assert sum(fraction((stop - start) * 160) for start, stop in frame.open) <= unknown
    assert (frame.first, frame.last) == (cuts[0], cuts[-1])


@pytest.mark.parametrize(
    ("epsilon", "lift", "positive", "negative"),
    [("1/10", "1/2", 74, 16), ("1/10", "0", 74, 51), ("-1/5", "0", 87, 42), ("1/2", "0", 9, 75)],
)
def test_signs_hold_at_both_ends_of_wide_ranges(epsilon: str, lift: str, positive: int, negative: int) -> None:
    """Nearly a Gaussian, on the left: R = −φ x − φ²/2 − ε there, and the bounds by scores have little to spare."""
    mechanism, density = mixture("1", ("1", "0"), ("1e-9", "5"))
    shifts, largest, most = (Fraction(1, 4), Fraction(3, 4)), Fraction(epsilon), Fraction(lift)
    f = density.pieces[0].value
    told: dict[int, int] = {1: 0, -1: 0, 0: 0}
    with bits(128):
        ours = Density(mechanism.unit_form)
        span = ours.span(shifts, largest, most)
        assert span is not None
        ends = [span.balls.at(point(Fraction(i, 32))) for i in range(-96, 65)]
        signs = [(span.sign(left, right), fraction(left.x)) for left, right in itertools.pairwise(ends)]
    for sign, x in signs:
        told[sign] += 1
        level = number(largest if sign > 0 else largest - most)
        for place in (number(x), number(x + Fraction(1, 32))) if sign else ():
            for phi in map(number, (*shifts, Fraction(1, 2))):
                assert sign * (CONTEXT.log(f(place + phi) / f(place)) - level) >= 0
    assert told[1] >= positive and told[-1] >= negative


def test_a_frame_holds_where_its_last_cells_are_positive() -> None:
    """The cuts end where R > 0 on both sides of the last of them: nothing is counted twice, and nothing left out."""
    (mechanism, density), first, epsilon, _ = CASES["interior"]
    shifts = first, first + Fraction(1, 200)
    true = density.divergence(first, epsilon)
    with bits(128):
        ours = Density(mechanism.unit_form)
        whole = frame_of(ours, shifts, epsilon, [point(Fraction(i, 40)) for i in range(-120, 121)])
        for place in [stop for _, stop in whole.positive if stop is not None][5:15:3]:
            for cuts in ([place - 1, place], [place, place + 1], [place - fmpq(1, 40), place, place + fmpq(1, 40)]):
                frame = frame_of(ours, shifts, epsilon, cuts)
                search = DivergenceAt(ours.stretches(first, epsilon), [], 1e-6, None, cuts, frame)
                found = search.bound(1e-6, Limits())
                assert number(lower(found.lower / ours.mass)) <= true <= number(upper(found.upper / ours.mass))
