"""Numbers as their user wrote them: exact, bounded, and refused in one line when they are not numbers. (trusted)

The text ``0.1`` is the rational 1/10; a Python float is the double that it is. Nothing here rounds, except
the two functions that turn a real into a float for display and say so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

MAX_CHARACTERS: Final = 1000
MAX_EXPONENT: Final = 400
"""Largest decimal exponent that is read, in absolute value (a double ends at 324)."""
MAX_EPSILON: Final = 100_000
MAX_BINARY_EXPONENT: Final = 1400
MAX_PARTS: Final = 1000
"""Most mechanisms in one composition."""
MAX_COUNT: Final = 10**9
"""Most releases by one of them."""

_DECIMAL = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,20}))?", re.ASCII)
_RATIONAL = re.compile(r"([+-]?\d+)/(\d+)", re.ASCII)
_HEX = re.compile(r"([+-]?)0[xX]([0-9a-fA-F]*)(?:\.([0-9a-fA-F]*))?(?:[pP]([+-]?\d{1,20}))?", re.ASCII)

Real = Fraction | int | float | str
"""What the constructors take for an exact real number."""


MAX_EXACT_BITS: Final = 1 << 23
"""Most that the numbers of one mechanism may take, over their common denominator."""


def one_line(text: str) -> str:
    """For people: one line without control characters, whatever is in it; a file's name must not make a second one."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


class InputError(ValueError):
    """Input that cannot be used: says where it stood, what was got, and what was expected."""

    def __init__(self, where: str, got: object, expected: str) -> None:
        try:
            text = str(got) if isinstance(got, (str, Fraction)) else repr(got)
        except ValueError:  # Python writes out no whole number of more than 4300 digits
            text = f"{type(got).__name__} of too many digits to show"
        if len(text) > 60:
            text = f"{text[:40]}… ({len(text)} characters)"
        super().__init__(f"{where}: got {one_line(text)}, expected {expected}")
        self.where = where
        self.got = got
        self.expected = expected


_FORMS = "a number such as 0.1, 1e-5, 1/3 or 0x1.8p-2"


def read_real(value: object, where: str) -> Fraction:
    """The exact rational that ``value`` denotes.

    Text may be decimal (``0.1``, ``1e-5``), rational (``1/3``) or a C99 hex float (``0x1.8p-2``); an int and a
    Fraction are themselves; a float is the double that it is. Raises InputError for all else, for NaN and
    infinities, and for text over MAX_CHARACTERS long or with an exponent over MAX_EXPONENT.
    """
    if isinstance(value, bool):
        raise InputError(where, value, _FORMS)
    if isinstance(value, (Fraction, int)):
        return Fraction(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(where, value, "a finite number")
        return Fraction(value)
    if not isinstance(value, str):
        raise InputError(where, value, _FORMS)
    return _read_text(value, where)


def _read_text(text: str, where: str) -> Fraction:
    if len(text) > MAX_CHARACTERS:
        raise InputError(where, text, f"a number of at most {MAX_CHARACTERS} characters")
    if match := _RATIONAL.fullmatch(text):
        if int(match[2]) == 0:
            raise InputError(where, text, "a denominator other than 0")
        return Fraction(int(match[1]), int(match[2]))
    for pattern, radix, step, limit in ((_HEX, 16, 2, MAX_BINARY_EXPONENT), (_DECIMAL, 10, 10, MAX_EXPONENT)):
        match = pattern.fullmatch(text)
        if match is None or not (match[2] or match[3]):
            continue
        exponent = int(match[4] or 0)
        if abs(exponent) > limit:
            raise InputError(where, text, f"an exponent of at most {limit} in absolute value")
        digits = int((match[2] or "") + (match[3] or ""), radix)
        value = Fraction(digits) * Fraction(step) ** exponent / Fraction(radix) ** len(match[3] or "")
        return -value if match[1] == "-" else value
    raise InputError(where, text, _FORMS)


def read_positive(value: object, where: str) -> Fraction:
    """As read_real, and greater than 0."""
    number = read_real(value, where)
    if number <= 0:
        raise InputError(where, value, "a number greater than 0")
    return number


def read_epsilon(value: object, where: str = "epsilon") -> Fraction:
    """A privacy loss ε in [0, MAX_EPSILON], exact."""
    number = read_real(value, where)
    if not 0 <= number <= MAX_EPSILON:
        raise InputError(where, value, f"a number from 0 to {MAX_EPSILON}")
    return number


def read_delta(value: object, where: str = "delta") -> Fraction:
    """A failure probability δ in [0, 1), exact."""
    number = read_real(value, where)
    if not 0 <= number < 1:
        raise InputError(where, value, "a number in [0, 1)")
    return number


def read_count(value: object, where: str, limit: int) -> int:
    """A whole number in 0..limit, given as an int or as text."""
    expected = f"a whole number from 0 to {limit}"
    if isinstance(value, str) and re.fullmatch(r"\d{1,12}", value, re.ASCII):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= limit:
        raise InputError(where, value, expected)
    return value


def require_common(numbers: Sequence[Fraction], where: str, lines: int = 1) -> None:
    """Refuse numbers that take more than MAX_EXACT_BITS when they are written over their common denominator, ``lines``
    times: what is exact about all of them would take long. Doubles and decimals share theirs, as do small fractions."""
    common, count = 1, max(len(numbers), lines)
    for number in numbers:
        common = math.lcm(common, number.denominator)
        if (bits := common.bit_length()) * count > MAX_EXACT_BITS:
            got = f"{count} numbers over a denominator of {bits} bits or more"
            raise InputError(where, got, "fewer numbers, or ones with fewer digits or like denominators")


def exact_text(number: Fraction) -> str:
    """The shortest of this project's spellings that denotes ``number`` exactly.

    A double that is not a short decimal is a hex float; a number that is neither is ``p/q``. read_real inverts it.
    """
    decimal = _decimal_text(number)
    if decimal is not None and len(decimal) <= 24:
        return decimal
    try:
        double = float(number)
    except OverflowError:
        double = math.inf
    if math.isfinite(double) and Fraction(double) == number:
        return double.hex()
    return decimal if decimal is not None and len(decimal) <= 60 else f"{number.numerator}/{number.denominator}"


def _decimal_text(number: Fraction) -> str | None:
    """The exact decimal of ``number``, or None where it does not end (or only after 400 places)."""
    denominator = number.denominator
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    places = max(twos, fives)
    if rest != 1 or places > 400:
        return None
    digits = abs(number.numerator) * 10**places // denominator
    text = str(digits)
    stripped = text.rstrip("0") or "0"
    exponent = len(text) - len(stripped) - places if digits else 0
    sign = "-" if number < 0 else ""
    if 0 <= exponent <= 6:
        return sign + stripped + "0" * exponent
    if exponent < 0 and len(stripped) + exponent > -5:
        padded = stripped.rjust(1 - exponent, "0")
        return f"{sign}{padded[:exponent]}.{padded[exponent:]}"
    power = exponent + len(stripped) - 1
    fraction = f".{stripped[1:]}" if len(stripped) > 1 else ""
    return f"{sign}{stripped[0]}{fraction}e{power}"


def nearest_float(number: Fraction) -> float:
    """The double nearest to ``number``; ±inf beyond the range. For proposals and display only."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def natural_log(number: Fraction) -> float:
    """ln(number) as a float, for any positive rational, however large or small. For proposals and display only."""
    if number <= 0:
        raise ValueError(f"logarithm of {number}")
    shift = number.numerator.bit_length() - number.denominator.bit_length()
    scaled = number / Fraction(2) ** shift
    return math.log(scaled) + shift * math.log(2.0)
