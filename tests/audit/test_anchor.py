"""Bounds of R near φ = Δ that start from the exact difference at Δ."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from audit.anchor import REACH
from audit.density import Density
from audit.exact import lower, upper
from tests.audit.support import ZOO, bits, multi_gaussian, point
from tests.soundness.referee import CONTEXT, MPF, number

CASES = {
    "own epsilon": (multi_gaussian("0.35", 3, "1"), Fraction(1)),
    "wide": (multi_gaussian("1.2", 2, "1"), Fraction(1)),
    "below it": (multi_gaussian("0.35", 3, "1"), Fraction(9, 10)),
    "above it": (multi_gaussian("0.35", 3, "1"), Fraction(11, 10)),
    "eighths": (ZOO["eighths"], Fraction(1)),
}


@pytest.mark.parametrize("distance", ["1/4", "1/10", "1/1000", "1/1000000"])
@pytest.mark.parametrize("name", CASES)
def test_anchored_bounds_contain_the_ratio(name: str, distance: str) -> None:
    (mechanism, density), epsilon = CASES[name]
    shift = 1 - Fraction(distance)
    rng = random.Random(f"{name} {distance}")
    told = 0
    with bits(128):
        ours = Density(mechanism.unit_form)
        anchor = ours.anchor(shift, epsilon)
        assert anchor is not None
        (balls,) = ours.stretches(shift, epsilon)
        for _ in range(30):
            a, width = Fraction(rng.randint(-6000, 6000), 1000), Fraction(1, rng.choice([1, 8, 100, 10000]))
            left, right = balls.at(point(a)), balls.at(point(a + width))
            above, below = anchor.upper_ratio(left, right), anchor.lower_ratio(left, right)
            for i in range(9):
                x = number(a + width * i / 8)
                p, n = density.pieces[0].value(x + number(shift)), density.pieces[0].value(x)
                ratio = CONTEXT.log(p / n) - number(epsilon)
                assert ratio <= number(upper(above))
                assert below is None or number(lower(below)) <= ratio
            told += bool(above <= 0) or (below is not None and bool(below >= 0))
    assert told or distance == "1/4" or name != "own epsilon"


@pytest.mark.parametrize("first", ["9/10", "1", "11/10"])
def test_anchored_bounds_at_another_epsilon_than_the_first_hold_and_are_tight(first: str) -> None:
    """The exact difference at Δ is made once, for the first ε asked for; lines cancel well at ε = 1."""
    (mechanism, density), epsilon = CASES["own epsilon"]
    shift = 1 - Fraction(1, 1000)
    with bits(128):
        ours = Density(mechanism.unit_form)
        assert ours.anchor(shift, Fraction(first)) is not None
        anchor = ours.anchor(shift, epsilon)
        assert anchor is not None
        (balls,) = ours.stretches(shift, epsilon)
        for a in range(-5, 6):
            left, right = balls.at(point(Fraction(a))), balls.at(point(a + Fraction(1, 2**20)))
            above, below = anchor.upper_ratio(left, right), anchor.lower_ratio(left, right)
            assert below is not None
            ratio = CONTEXT.log(density.pieces[0].value(a + number(shift)) / density.pieces[0].value(MPF(a)))
            ratio -= number(epsilon)
            assert number(lower(below)) <= ratio <= number(upper(above))
            if a <= -5 or (a <= -3 and first != "11/10") or (a == -2 and first == "1"):
                assert number(upper(above)) < ratio + 2e-5
            if a > 0 or (a >= -2 and first != "9/10"):
                assert number(lower(below)) > ratio - 2e-5


def test_there_is_no_anchor_where_it_does_not_apply() -> None:
    with bits(128):
        assert Density(CASES["own epsilon"][0][0].unit_form).anchor(1 - REACH - Fraction(1, 1000), Fraction(1)) is None
        assert Density(CASES["own epsilon"][0][0].unit_form).anchor(Fraction(1), Fraction(1)) is None
        for name in ("gaussian", "irregular", "laplace", "gap", "quasi-gaussian"):
            assert Density(ZOO[name][0].unit_form).anchor(Fraction(9, 10), Fraction(1)) is None


def test_there_is_no_anchor_at_a_shift_where_exponentials_cancel() -> None:
    """There the ends of a cell tell of what is left after cancelling, not of f(x+φ) and f(x)."""
    with bits(128):
        ours = Density(ZOO["eighths"][0].unit_form)
        assert ours.cancels(Fraction(7, 8)) and ours.anchor(Fraction(7, 8), Fraction(1)) is None
        near = Fraction(7, 8) - Fraction(1, 10**9)
        assert not ours.cancels(near) and ours.anchor(near, Fraction(1)) is not None
