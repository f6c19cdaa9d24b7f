"""Masses over intervals, against 60 digits; masses too small to matter are bounded, never dropped."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from audit.exact import lower, upper
from audit.masses import Masses, MovedMasses, _erfc_between, mass
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


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("distance", [0, 1])
def test_a_distance_that_floats_get_wrong_is_not_believed(distance: int, side: int) -> None:
    """Floats near 10^12 are 1.2e-4 apart. The end of the interval rounds away from a centre, the line is as narrow."""
    c, centre = Fraction(10**8), 10**12 + Fraction("6.0e-5")
    start = 10**12 + distance + Fraction("6.2e-5")
    sums = LineSum(c, (Line.of(Fraction(1), -c * centre**2, side * 2 * c * centre),))
    z = 1e4 * (float(start) - float(centre))
    with bits(512):
        masses = Masses(sums)
        floor = float(masses._log_amplitudes[0]) - z * z + 1e-3
        ends = (point(start), None) if side > 0 else (None, point(-start))
        found = masses.over(ends, floor)
        true = arb.pi().sqrt() / (2 * 10**4) * (10**4 * (arb(point(start)) - arb(point(centre)))).erfc()
    assert found.overlaps(true)  # such numbers are too small to be written out


def test_a_narrow_line_is_far_away_soon() -> None:
    """Of width 1e-8, at 1e-4: the error of floats is bounded by what the distances are, not by their difference."""
    sums = LineSum(Fraction(10**16), (Line.of(Fraction(1), Fraction(0), Fraction(0)),))
    ends = point(Fraction(1, 10**4)), None
    with bits(512):
        masses = Masses(sums)
        found = masses.over(ends, float(masses._log_amplitudes[0]) - 1e8 - 20)
        true = arb.pi().sqrt() / (2 * 10**8) * arb(10**4).erfc()
    assert found.overlaps(true)


def test_an_amplitude_that_is_known_roughly_is_taken_at_its_largest() -> None:
    """(e^g − 1)², of which 48 bits keep one."""
    g = Fraction(3, 7 * 10**13)
    line = Line(((Fraction(1), 2 * g), (Fraction(-2), g), (Fraction(1), Fraction(0))), Fraction(0))
    with bits(48):
        masses = Masses(LineSum(Fraction(1), (line,)))
    true = CONTEXT.sqrt(CONTEXT.pi) / 2 * CONTEXT.expm1(number(g)) ** 2
    assert CONTEXT.log(true) < masses._log_amplitudes[0] < CONTEXT.log(true) + 2


@pytest.mark.parametrize("side", [1, -1])
def test_a_bound_holds_where_it_has_the_least_to_spare(side: int) -> None:
    """Just over one unit from the centre erfc(z) is 0.43 of what bounds it."""
    sums = LineSum(Fraction(1), (Line.of(Fraction(1), Fraction(0), Fraction(0)),))
    start = Fraction("1.0001")
    floor = math.log(math.sqrt(math.pi) / 2) - float(start) ** 2 + 1e-9
    with bits(128):
        found = Masses(sums).over((point(start), None) if side > 0 else (None, point(-start)), floor)
    true = CONTEXT.sqrt(CONTEXT.pi) / 2 * CONTEXT.erfc(number(start))
    assert contains(found, true)
    assert not lower(found) > 0, "it was bounded, not evaluated"
    assert number(upper(found)) <= CONTEXT.exp(floor + 1) * (1 + MPF(10) ** -6)


def test_of_lines_far_away_none_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated: list[float] = []

    def counted(z_u: arb | None, z_v: arb | None) -> arb:
        evaluated.append(0.0 if z_u is None else float(z_u))
        return _erfc_between(z_u, z_v)

    monkeypatch.setattr("audit.masses._erfc_between", counted)
    rows = [(Fraction(1), -Fraction(i * i), Fraction(2 * i)) for i in range(-20, 21)]
    sums, piece = both(Fraction(1), rows)  # a Gaussian at each whole number, all alike
    with bits(128):
        for ends in (("1/4", "3/4"), ("-1/4", "1/4"), (None, "-21/2"), ("21/2", None)):
            start, stop = (None if end is None else Fraction(end) for end in ends)
            evaluated.clear()
            interval = None if start is None else point(start), None if stop is None else point(stop)
            found = Masses(sums).over(interval, -9.0)
            assert contains(found, piece.mass(*(None if end is None else number(end) for end in (start, stop))))
            assert 0.0 < float(found.rad()) < 41 * math.exp(-8)
            middle = start if stop is None else stop if start is None else (start + stop) / 2
            near = sum(1 for i in range(-20, 21) if _apart(i, start, stop) ** 2 < 9 + math.log(math.sqrt(math.pi) / 2))
            assert len(evaluated) == near < 20, (ends, middle)
            evaluated.clear()
            Masses(sums).over(interval)
            assert len(evaluated) == 41


def _apart(centre: int, start: Fraction | None, stop: Fraction | None) -> float:
    """How far a centre is from an interval."""
    left = 0.0 if start is None else float(start) - centre
    right = 0.0 if stop is None else centre - float(stop)
    return max(left, right, 0.0)


def test_where_floats_cannot_tell_every_line_is_evaluated() -> None:
    """Amplitudes or widths beyond floats that can be trusted."""
    one = Fraction(1)
    with bits(128):
        for c, exponent, estimates in (
            (one, Fraction(0), True),
            (one, Fraction(10**10), False),
            (one, -Fraction(10**10), False),
            (Fraction(10**20), Fraction(0), False),
        ):
            masses = Masses(LineSum(c, (Line.of(one, exponent, Fraction(0)), Line.of(one, Fraction(0), one))))
            assert masses._may_estimate == estimates
            interval = point(Fraction(2)), point(Fraction(3))
            found, full = masses.over(interval, -50.0), masses.over(interval)
            assert found.is_finite() and not found < 0
            assert found.overlaps(full) and (estimates or float(found.rad()) == float(full.rad()))
            assert masses.over((None, None), -50.0).overlaps(masses.over((None, None)))
        assert Masses(LineSum(one, ()))._may_estimate


def test_where_the_lines_that_matter_are_centred() -> None:
    rows = [(Fraction(1), -Fraction(abs(i)) * 5 - Fraction(i * i), Fraction(2 * i)) for i in range(-5, 7)]
    with bits(128):
        masses = Masses(both(Fraction(1), rows)[0])
        level = math.log(math.sqrt(math.pi) / 2)
        assert masses.span(level - 12.5) == (-2.0, 2.0) and masses.span(level - 1e3) == (-5.0, 6.0)
        assert masses.span(level + 0.1) is None
        assert Masses(LineSum(Fraction(0), (Line.of(Fraction(1), Fraction(0), Fraction(1)),))).span(-9.0) is None
        moved = MovedMasses(masses, point(Fraction(1, 2)), arb(20).exp())
        assert moved.span(level - 12.5 + 20) == (-2.5, 1.5) and moved.span(level + 20.1) is None
        assert MovedMasses(masses).span(level - 14.5) == (-2.0, 2.0)


def test_masses_that_are_moved_and_lifted_are_as_tight_as_their_floor() -> None:
    rows = [(Fraction(1), -Fraction(i * i), Fraction(2 * i)) for i in range(-9, 10)]
    sums, piece = both(Fraction(1), rows)
    with bits(128):
        moved = MovedMasses(Masses(sums), point(Fraction(1, 2)), arb(8).exp())
        for floor in (4.0, -8.0):
            found = moved.over((point(Fraction(0)), point(Fraction(1))), floor)
            assert contains(found, CONTEXT.exp(8) * piece.mass(number("1/2"), number("3/2")))
            assert 0.0 < float(found.rad()) < 19 * math.exp(floor + 1)
        assert moved.lines == 19


def test_kept_masses_are_those_of_their_own_floor() -> None:
    rows = [(Fraction(1), -Fraction(i * i), Fraction(2 * i)) for i in range(-9, 10)]
    with bits(128):
        moved = MovedMasses.of(both(Fraction(1), rows)[0])
        interval = (point(Fraction(0)), point(Fraction(1)))
        rough = moved.over(interval, -3.0)
        fine = moved.over(interval, -9.0)
        assert float(fine.rad()) < float(rough.rad())
        assert moved.over(interval, -3.0) is fine and moved.over(interval, -9.0) is fine
        assert float(moved.over(interval).rad()) < 1e-35


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
        for start, stop in ((None, "2"), ("1", None), (None, None)):
            interval = tuple(None if end is None else point(Fraction(end)) for end in (start, stop))
            there = [None if end is None else number(Fraction(end) + Fraction(3, 4)) for end in (start, stop)]
            assert contains(moved.over(interval), CONTEXT.exp(3) * piece.mass(*there))  # type: ignore[arg-type]


def test_the_zero_function_has_no_mass() -> None:
    assert Masses(LineSum(Fraction(0), ())).over((None, None)) == 0
