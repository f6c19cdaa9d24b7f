"""Masses over intervals, against 60 digits; masses too small to matter are bounded, never dropped."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from audit.exact import lower, upper
from audit.masses import Masses, MovedMasses, mass
from mechanisms.lines import Line, LineSum
from tests.audit.support import FEW, PRECISIONS, bits, contains, point
from tests.soundness.referee import CONTEXT, MPF, Piece, number

SMALL = st.fractions(min_value=-6, max_value=6, max_denominator=50)
ROWS = st.lists(
    st.tuples(st.fractions(Fraction(1, 100), 100, max_denominator=100), SMALL, SMALL), min_size=1, max_size=5
)
CURVES = st.fractions(min_value=Fraction(1, 20), max_value=200, max_denominator=20)
ENDS = st.tuples(SMALL, st.fractions(min_value=Fraction(1, 10**6), max_value=9, max_denominator=10**6)).map(
    lambda pair: (pair[0], pair[0] + pair[1])
)
Row = tuple[Fraction, Fraction, Fraction]


def both(c: Fraction, rows: list[Row]) -> tuple[LineSum, Piece]:
    ours = LineSum(c, tuple(Line.of(*row) for row in rows))
    return ours, Piece(None, None, number(c), [(number(w), number(a), number(b)) for w, a, b in rows])


@FEW
@given(st.just(Fraction(0)) | CURVES, ROWS, ENDS, st.sampled_from(PRECISIONS))
def test_a_mass_contains_the_integral(
    c: Fraction, rows: list[Row], ends: tuple[Fraction, Fraction], precision: int
) -> None:
    sums, piece = both(c, rows)
    with bits(precision):
        found = mass(sums, (point(ends[0]), point(ends[1])))
    true = piece.mass(number(ends[0]), number(ends[1]))
    assert contains(found, true)
    around = piece.mass(number(ends[0]) - 1, number(ends[1]) + 1)
    assert float(found.rad()) <= 2.0 ** (30 - precision) * float(around) + 1e-290


@FEW
@given(CURVES, ROWS, SMALL, st.booleans(), st.sampled_from(PRECISIONS))
def test_infinite_ends(c: Fraction, rows: list[Row], end: Fraction, right: bool, precision: int) -> None:
    sums, piece = both(c, rows)
    with bits(precision):
        found = mass(sums, (point(end), None) if right else (None, point(end)))
        whole = mass(sums, (None, None))
    assert contains(found, piece.mass(number(end), None) if right else piece.mass(None, number(end)))
    assert contains(whole, piece.mass(None, None))


@FEW
@given(ROWS, SMALL, st.booleans())
def test_infinite_ends_of_exponentials(rows: list[Row], end: Fraction, right: bool) -> None:
    falling = [(w, a, -(abs(b) + 1) if right else abs(b) + 1) for w, a, b in rows]
    sums, piece = both(Fraction(0), falling)
    with bits(128):
        found = mass(sums, (point(end), None) if right else (None, point(end)))
    assert contains(found, piece.mass(number(end), None) if right else piece.mass(None, number(end)))


@FEW
@given(CURVES, ROWS, ENDS, st.floats(-200, 3))
def test_with_a_floor_the_integral_is_still_inside(
    c: Fraction, rows: list[Row], ends: tuple[Fraction, Fraction], floor: float
) -> None:
    sums, piece = both(c, rows)
    with bits(128):
        found = Masses(sums).over((point(ends[0]), point(ends[1])), floor)
    assert contains(found, piece.mass(number(ends[0]), number(ends[1])))
    assert number(upper(found) - lower(found)) <= 2 * len(rows) * CONTEXT.exp(floor + 1) + MPF(10) ** -20


@pytest.mark.parametrize("far", ["6", "13.2", "37.9", "400", "25000"])
@pytest.mark.parametrize("centre", ["0", "1e6", "-12345.678"])
def test_a_negligible_line_is_bounded_by_its_true_size(far: str, centre: str) -> None:
    """The floor lies just above the estimate: as much as the bound may promise."""
    c, middle = Fraction(1, 2), Fraction(centre)
    sums = LineSum(c, (Line.of(Fraction(1), -c * middle**2, 2 * c * middle),))
    start = middle + Fraction(far)
    z_squared = float(c * Fraction(far) ** 2)
    floor = math.log(math.sqrt(math.pi / 2)) - z_squared + 1e-6 * (1 + z_squared) + 0.01
    with bits(256):
        found = Masses(sums).over((point(start), point(start + 1)), floor)
    true = Piece(None, None, MPF(1) / 2, [(MPF(1), number(-c * middle**2), number(middle))])
    CONTEXT.dps = 90  # the exponents are of size 10^12
    try:
        assert contains(found, true.mass(number(start), number(start + 1)))
    finally:
        CONTEXT.dps = 60


def test_masses_that_are_moved_and_lifted() -> None:
    sums, piece = both(
        Fraction(1, 2), [(Fraction(1), Fraction(0), Fraction(1)), (Fraction(2), Fraction(-1), Fraction(-3))]
    )
    with bits(128):
        moved = MovedMasses(Masses(sums), point(Fraction(3, 4)), arb(3).exp())
        for floor in (2.0, -1.0, -math.inf, -5.0):  # the tighter one is kept
            found = moved.over((point(Fraction(1)), point(Fraction(2))), floor)
            assert contains(found, CONTEXT.exp(3) * piece.mass(number("1.75"), number("2.75")))
    assert float(found.rad()) < 1e-30


def test_the_zero_function_has_no_mass() -> None:
    assert Masses(LineSum(Fraction(0), ())).over((None, None)) == 0
