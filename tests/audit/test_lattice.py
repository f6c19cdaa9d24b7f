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
    with pytest.raises(InputError):
        Doubles().rank_at_least(value)


def test_decimals_finer_than_doubles_are_refused() -> None:
    with pytest.raises(InputError, match="decimals"):
        Decimals(15).rank_at_least(Fraction(12345))
    assert Decimals(14).value(Decimals(14).rank_at_least(Fraction(1, 3))) >= Fraction(1, 3)
