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
from tests.audit.support import ZOO, bits, multi_gaussian, point
from tests.soundness.referee import CONTEXT, MPF, number

CASES = {
    "interior": (multi_gaussian("0.33", 4, "1"), Fraction(7, 10), Fraction(1), "1/50"),
    "near the end": (multi_gaussian("0.35", 3, "1"), Fraction(98, 100), Fraction(1), "1/100"),
    "irregular": (ZOO["irregular"], Fraction(1, 2), Fraction(1, 2), "1/200"),
    "wide range": (multi_gaussian("0.5", 2, "1"), Fraction(1, 4), Fraction(2), "1/4"),
}
LIFT = Fraction(1, 1000)


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
    assert (frame.positive or name == "wide range")
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
            search = DivergenceAt(ours.stretches(shift, level), [], budget, ours.anchor(shift, level), cuts, frame)
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
