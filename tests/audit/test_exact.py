"""Rationals, doubles and balls: what goes in is what comes out, or lies on the safe side of it."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as st

from audit.exact import (
    LARGEST_EXPONENT,
    ball,
    ceiling,
    decimal_lower,
    decimal_upper,
    double_at,
    double_rank,
    dyadic,
    enclosure,
    float_lower,
    float_upper,
    fraction,
    lower,
    rational,
    upper,
)
from mechanisms.numbers import read_real
from tests.audit.support import FEW, PRECISIONS, bits

RATIONALS = st.fractions() | st.builds(
    lambda n, e, d: Fraction(n) * Fraction(2) ** e / d, st.integers(), st.integers(-1200, 1200), st.integers(1, 10**30)
)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


@FEW
@given(RATIONALS, st.sampled_from(PRECISIONS))
def test_a_ball_contains_its_rational(value: Fraction, precision: int) -> None:
    with bits(precision):
        found = ball(value)
        ends = enclosure(found)
    assert ends.lower <= value <= ends.upper
    assert (ends.lower, ends.upper) == (lower(found), upper(found))
    assert ends.upper - ends.lower <= abs(value) * Fraction(1, 2 ** (precision - 3))


@FEW
@given(RATIONALS)
def test_rationals_survive_the_passage_through_flint(value: Fraction) -> None:
    assert fraction(rational(value)) == value


@FEW
@given(DOUBLES)
def test_a_double_is_taken_exactly(value: float) -> None:
    assert fraction(dyadic(value)) == Fraction(value)


@FEW
@given(DOUBLES, st.floats(0, 1e300))
def test_ends_of_a_ball_are_its_middle_and_radius(middle: float, radius: float) -> None:
    found = arb(middle, radius)
    assert lower(found) <= Fraction(middle) - Fraction(radius)
    assert upper(found) >= Fraction(middle) + Fraction(radius)
    assert upper(found) - lower(found) <= 2 * Fraction(radius) * (1 + Fraction(1, 2**20))


def test_ends_too_small_to_write_out_are_replaced_outwards() -> None:
    tiny = arb(2) ** -(10**7)
    assert lower(tiny) <= 0 < upper(tiny)
    assert lower(-tiny) < 0 <= upper(-tiny)
    assert upper(arb(1, tiny)) > 1 > lower(arb(1, tiny))


def test_what_stands_for_ends_too_small_is_as_small_as_what_is_written_out() -> None:
    least = Fraction(1, 1 << LARGEST_EXPONENT)
    tiny = arb(2) ** -(LARGEST_EXPONENT + 2)
    assert (lower(tiny), upper(tiny)) == (-least, least)
    assert (lower(arb(1, tiny)), upper(arb(1, tiny))) == (1 - least, 1 + least)
    for exponent in (LARGEST_EXPONENT + 1, LARGEST_EXPONENT - 1):  # the first and the last that are written out
        assert upper(3 * arb(2) ** -(exponent + 1)) == Fraction(3, 1 << (exponent + 1))
    assert upper(3 * arb(2) ** (LARGEST_EXPONENT - 2)) == 3 << (LARGEST_EXPONENT - 2)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (arb("nan"), "an enclosure that is not finite has no ends"),
        (arb("inf"), "an enclosure that is not finite has no ends"),
        (arb(0, arb("inf")), "an enclosure that is not finite has no ends"),
        (arb(2) ** (10**7), "an enclosure too large to be written out"),
        (arb(2) ** LARGEST_EXPONENT, "an enclosure too large to be written out"),
        (3 * arb(2) ** (LARGEST_EXPONENT - 1), "an enclosure too large to be written out"),
    ],
)
def test_what_has_no_ends_is_refused(value: arb, message: str) -> None:
    for end in (lower, upper, enclosure):
        with pytest.raises(ValueError, match=f"^{message}$"):
            end(value)


@FEW
@given(RATIONALS)
def test_float_bounds_are_the_nearest_doubles_outwards(value: Fraction) -> None:
    above, below = float_upper(value), float_lower(value)
    assert math.isinf(above) or Fraction(above) >= value
    assert math.isinf(below) or Fraction(below) <= value
    smaller = math.nextafter(above, -math.inf)
    assert smaller == -math.inf or Fraction(smaller) < value
    larger = math.nextafter(below, math.inf)
    assert larger == math.inf or Fraction(larger) > value


def test_float_bounds_beyond_the_doubles() -> None:
    huge = Fraction(10) ** 400
    assert float_upper(huge) == math.inf and float_lower(huge) == 1.7976931348623157e308
    assert float_lower(-huge) == -math.inf and float_upper(-huge) == -1.7976931348623157e308
    assert float_upper(1 / huge) == 5e-324 and float_lower(1 / huge) == 0


@FEW
@given(RATIONALS, st.integers(1, 20))
def test_decimals_enclose_and_are_as_near_as_their_digits_allow(value: Fraction, digits: int) -> None:
    exponent = 0 if value == 0 else math.log10(abs(value.numerator)) - math.log10(value.denominator)
    if abs(exponent) > 350:
        return  # beyond what a file may say
    low, high = (read_real(text, "") for text in (decimal_lower(value, digits), decimal_upper(value, digits)))
    assert low <= value <= high
    assert high - low <= abs(value) * Fraction(10) ** (1 - digits)
    assert (low == value) == (high == value)


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (Fraction(1, 3), "0.333", "0.334"),
        (Fraction(-1, 3), "-0.334", "-0.333"),
        (Fraction(9999, 10**10), "9.99e-7", "1e-6"),
        (Fraction(99999, 100), "999", "1000"),
        (Fraction(0), "0", "0"),
        (Fraction(10) ** 20, "1e20", "1e20"),
        (Fraction(1, 10**5000), "1e-5000", "1e-5000"),
        (Fraction(123456, 10**9), "0.000123", "0.000124"),
        (Fraction(123456, 10**10), "1.23e-5", "1.24e-5"),
        (Fraction(-999999, 10**10), "-0.0001", "-9.99e-5"),
        (Fraction(10) ** 15, "1000000000000000", "1000000000000000"),
        (Fraction(-1234567) * 10**10, "-1.24e16", "-1.23e16"),
        (Fraction(123456789), "123000000", "124000000"),
        (Fraction(25, 2), "12.5", "12.5"),
        (Fraction(2), "2", "2"),
    ],
)
def test_decimals_of_three_digits(value: Fraction, low: str, high: str) -> None:
    assert (decimal_lower(value, 3), decimal_upper(value, 3)) == (low, high)


def test_decimals_have_17_digits_where_nothing_else_is_asked() -> None:
    third = Fraction(1, 3)
    assert (decimal_lower(third), decimal_upper(third)) == ("0.33333333333333333", "0.33333333333333334")


@FEW
@given(st.floats(min_value=5e-324, max_value=1.7e308))
def test_ranks_count_the_doubles(value: float) -> None:
    assert double_at(double_rank(value)) == value
    assert double_at(double_rank(value) + 1) == math.nextafter(value, math.inf)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (arb(3), 3),
        (arb(2.5, 0.25), 3),
        (arb(3, 2.0**-60), None),
        (arb(0.5, 0.6), None),
        (arb(-0.5, 0.25), 0),
        (arb("nan"), None),
    ],
)
def test_a_ceiling_is_told_only_where_the_whole_ball_has_it(value: arb, expected: int | None) -> None:
    with bits(256):
        assert ceiling(value) == expected
        assert ceiling(arb(10) ** 30 + arb(0.5)) == 10**30 + 1


def test_a_ball_of_a_decimal_is_not_the_double() -> None:
    with bits(128):
        tenth = ball(Fraction(1, 10))
        assert not tenth.contains(arb(0.1))
        assert fmpq(1, 10) * 10 == 1
