"""The numbers that a scale may be."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from audit.lattice import Decimals, Doubles
from mechanisms.numbers import InputError


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_the_smallest_double_at_least_a_number(value: Fraction) -> None:
    lattice = Doubles()
    rank = lattice.rank_at_least(value)
    assert lattice.value(rank - 1) < value <= lattice.value(rank)
    assert math.nextafter(float(lattice.value(rank)), math.inf) == float(lattice.value(rank + 1))


@given(st.fractions(min_value=Fraction(1, 100), max_value=10**4), st.integers(0, 9))
@example(Fraction(6249999999999951, 624999999999995090), 2)  # between 1/100 and its double
@example(Fraction(0.07), 2)  # the double of 7/100 itself, above 7/100
@example(Fraction(3, 10), 1)  # above the double that it is read as
def test_the_smallest_decimal_whose_double_is_at_least_a_number(value: Fraction, places: int) -> None:
    lattice = Decimals(places)
    rank = lattice.rank_at_least(value)
    assert lattice.value(rank) >= value
    assert rank == 1 or lattice.value(rank - 1) < value
    assert lattice.value(rank) == Fraction(float(f"{rank}e-{places}"))


def test_what_exists() -> None:
    assert Doubles().exists(1) and not Doubles().exists(0)
    largest = Doubles().rank_at_least(Fraction(1.7976931348623157e308))
    assert Doubles().exists(largest) and not Doubles().exists(largest + 1)
    assert Decimals(3).exists(1) and not Decimals(3).exists(0)
    assert "3" in Decimals(3).name and Doubles().name == "double"


@pytest.mark.parametrize("value", [Fraction(10) ** 400, Fraction(0), Fraction(-1)])
def test_what_no_double_is_refused(value: Fraction) -> None:
    with pytest.raises(InputError) as error:
        Doubles().rank_at_least(value)
    assert str(error.value) == (
        "sensitivity: got a scale outside the doubles, expected one for which the scale is a double"
    )


@pytest.mark.parametrize(("places", "exponent"), [(0, 51), (1, 47), (15, 1)])
def test_decimals_finer_than_a_quarter_of_the_doubles_are_refused(places: int, exponent: int) -> None:
    largest = Fraction(2) ** (exponent - 1)
    assert Decimals(places).rank_at_least(largest) == largest * 10**places
    with pytest.raises(InputError) as error:
        Decimals(places).rank_at_least(2 * largest)
    near = f"{float(2 * largest):.6g}"
    assert str(error.value) == (f"decimals: got {places}, expected fewer: near {near} doubles are no finer than that")
