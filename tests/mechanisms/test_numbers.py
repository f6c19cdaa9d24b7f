"""Reading numbers exactly, and refusing what is not one."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.numbers import (
    MAX_BINARY_EXPONENT,
    MAX_CHARACTERS,
    MAX_EPSILON,
    MAX_EXPONENT,
    InputError,
    exact_text,
    natural_log,
    nearest_float,
    read_count,
    read_delta,
    read_epsilon,
    read_positive,
    read_real,
)
from tests.mechanisms.support import MP, mpf

GOOD = {
    "0.1": Fraction(1, 10),
    "1e-5": Fraction(1, 10**5),
    "5E-324": Fraction(5, 10**324),
    "1/3": Fraction(1, 3),
    "-7/2": Fraction(-7, 2),
    "6/4": Fraction(3, 2),
    "0x1.8p-2": Fraction(3, 8),
    "0X1.567428B65F04Ep-2": Fraction(float.fromhex("0x1.567428b65f04ep-2")),
    "-0x.8": Fraction(-1, 2),
    "0x10": Fraction(16),
    ".5": Fraction(1, 2),
    "5.": Fraction(5),
    "+2": Fraction(2),
    "-0": Fraction(0),
    "0007": Fraction(7),
    f"1e{MAX_EXPONENT}": Fraction(10) ** MAX_EXPONENT,
    "0x1p-1074": Fraction(1, 2**1074),
}
BAD = [
    "", " ", "1 ", " 1", "1_000", "1,5", "0x", "0x.", "x", ".", "e5", "1e", "1e+", "--1", "1/0", "1/-2", "1/2/3",
    "0.1/2", "nan", "NaN", "inf", "-inf", "Infinity", f"1e{MAX_EXPONENT + 1}", f"1e-{MAX_EXPONENT + 1}",
    "1e999999999", "1e" + "9" * 30, f"0x1p{MAX_BINARY_EXPONENT + 1}",
    "٣", "１", "1\n", "\n1", "1\x00", "0b1", "0o7", "1j", "½",
]  # fmt: skip


@pytest.mark.parametrize("text", GOOD)
def test_text_is_the_number_that_is_written(text: str) -> None:
    assert read_real(text, "sigma") == GOOD[text]


@pytest.mark.parametrize("text", BAD)
def test_what_is_not_a_number_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError) as refusal:
        read_real(text, "claim.delta")
    message = str(refusal.value)
    assert message.startswith("claim.delta: got ") and ", expected " in message
    assert all(character.isprintable() for character in message) and len(message) < 300
    assert refusal.value.where == "claim.delta"


@pytest.mark.parametrize("value", [None, True, False, b"1", [1], {"a": 1}, 1j, object()])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(InputError):
        read_real(value, "sigma")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_floats_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(InputError, match="finite"):
        read_real(value, "sigma")


def test_length_is_bounded_before_any_arithmetic() -> None:
    assert read_real("1" * MAX_CHARACTERS, "n") == int("1" * MAX_CHARACTERS)
    with pytest.raises(InputError, match=r"\(1000000 characters\), expected a number of at most"):
        read_real("1" * 1_000_000, "n")


def test_a_float_is_the_double_that_it_is() -> None:
    assert read_real(0.1, "delta") == Fraction(0.1) != Fraction(1, 10)
    assert read_real(5e-324, "delta") == Fraction(1, 2**1074)


@pytest.mark.parametrize(
    ("reader", "good", "bad"),
    [
        (read_positive, ["1e-400", 5], ["0", "-1", 0.0]),
        (read_epsilon, ["0", "1e4", 0, MAX_EPSILON], ["-1e-9", -1, MAX_EPSILON + 1]),
        (read_delta, ["0", "1e-300", "0.9999999999999999999"], ["1", "-1e-9", "1.5", 1]),
    ],
)
def test_ranges(reader: object, good: list[object], bad: list[object]) -> None:
    assert callable(reader)
    for value in good:
        assert reader(value, "x") == read_real(value, "x")
    for value in bad:
        with pytest.raises(InputError, match=r"^x: got"):
            reader(value, "x")


@pytest.mark.parametrize("value", [0, 7, 20, "7", "0", "020"])
def test_counts(value: object) -> None:
    assert read_count(value, "K", 20) == int(value)  # type: ignore[call-overload]


@pytest.mark.parametrize("value", [-1, 21, "21", True, 1.0, "1.0", "-1", "1e1", None, "1" * 13, 10**9])
def test_counts_that_are_refused(value: object) -> None:
    with pytest.raises(InputError, match="a whole number from 0 to 20"):
        read_count(value, "K", 20)


rationals = st.one_of(
    st.fractions(),
    st.floats(allow_nan=False, allow_infinity=False).map(Fraction),
    st.builds(lambda m, e: m * Fraction(10) ** e, st.integers(-(10**20), 10**20), st.integers(-350, 350)),
)


@given(rationals)
def test_exact_text_denotes_the_number(number: Fraction) -> None:
    assert read_real(exact_text(number), "x") == number


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(1, 10), "0.1"),
        (Fraction(0), "0"),
        (Fraction(-5, 2), "-2.5"),
        (Fraction(1, 10**5), "0.00001"),
        (Fraction(1, 10**6), "1e-6"),
        (Fraction(1, 3), "1/3"),
        (Fraction(10) ** 9, "1e9"),
        (Fraction(0.1), "0x1.999999999999ap-4"),
    ],
)
def test_exact_text_is_short(number: Fraction, text: str) -> None:
    assert exact_text(number) == text


def test_nearest_float_does_not_overflow() -> None:
    assert nearest_float(Fraction(10) ** 400) == math.inf
    assert nearest_float(-(Fraction(10) ** 400)) == -math.inf
    assert nearest_float(Fraction(1, 10**400)) == 0.0
    assert nearest_float(Fraction(1, 3)) == 1 / 3


@given(st.fractions(min_value=0).filter(bool), st.integers(-3000, 3000))
def test_natural_log(number: Fraction, exponent: int) -> None:
    scaled = number * Fraction(2) ** exponent
    right = MP.log(mpf(scaled))
    assert abs(natural_log(scaled) - right) <= 1e-15 * (1 + abs(right)) + 1e-15 * abs(exponent)


@pytest.mark.parametrize("number", [Fraction(0), Fraction(-1)])
def test_natural_log_of_nothing(number: Fraction) -> None:
    with pytest.raises(ValueError, match="logarithm"):
        natural_log(number)
