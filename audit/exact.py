"""The only door between rationals, doubles and balls: exact numbers in, outward-rounded numbers out. (trusted)"""

from __future__ import annotations

import math
import struct
import sys
from fractions import Fraction

from flint import arb, fmpq, fmpz

from audit.verdict import Enclosure


def ball(value: Fraction) -> arb:
    """A ball that contains ``value``, at the precision in force; exact where that many bits hold it."""
    return arb(fmpq(value.numerator, value.denominator))


def rational(value: Fraction) -> fmpq:
    """The same rational, in FLINT's type."""
    return fmpq(value.numerator, value.denominator)


def fraction(value: fmpq) -> Fraction:
    """The same rational, in Python's type."""
    return Fraction(int(value.p), int(value.q))


def dyadic(value: float) -> fmpq:
    """The finite double ``value``, exactly."""
    numerator, denominator = value.as_integer_ratio()
    return fmpq(numerator, denominator)


LARGEST_EXPONENT = 1 << 17
"""Ends of balls beyond 2^±LARGEST_EXPONENT are not written out as integers."""


def _exact(point: arb) -> Fraction | None:
    """A ball of radius 0 as the dyadic rational that it is; None where that is too small to be written out."""
    mantissa, exponent = point.man_exp()
    man, exp = int(mantissa), int(exponent)
    size = exp + man.bit_length()
    if man and size < -LARGEST_EXPONENT:
        return None
    if size > LARGEST_EXPONENT:
        raise ValueError("an enclosure too large to be written out")
    return Fraction(man << exp) if exp >= 0 else Fraction(man, 1 << -exp)


_TINY = Fraction(1, 1 << LARGEST_EXPONENT)


def _ends(value: arb) -> tuple[Fraction, Fraction]:
    if not value.is_finite():
        raise ValueError("an enclosure that is not finite has no ends")
    middle, radius = _exact(value.mid()), _exact(value.rad())
    half = _TINY if radius is None else radius
    return (-_TINY if middle is None else middle) - half, (_TINY if middle is None else middle) + half


def lower(value: arb) -> Fraction:
    """The exact lower end of a ball, mid − rad; where one of them is below 2^−LARGEST_EXPONENT, something smaller.

    Raises ValueError where the ball is not finite, or too large to be written out.
    """
    return _ends(value)[0]


def upper(value: arb) -> Fraction:
    """The exact upper end of a ball; as lower, and never below the true end."""
    return _ends(value)[1]


def enclosure(value: arb) -> Enclosure:
    """The exact ends of a finite ball."""
    return Enclosure(lower(value), upper(value))


def float_upper(value: Fraction) -> float:
    """The smallest double ≥ value (+∞ beyond the largest)."""
    try:
        nearest = float(value)
    except OverflowError:  # never ±∞ instead: the quotient of two ints
        return math.inf if value > 0 else -sys.float_info.max
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_lower(value: Fraction) -> float:
    """The largest double ≤ value (−∞ beyond the largest in absolute value)."""
    return -float_upper(-value)


def _decimal(value: Fraction, digits: int, up: bool) -> str:
    if value == 0:
        return "0"
    magnitude = abs(value)
    # The power of ten of the leading digit, found from below and corrected, so that no rounding enters.
    power = math.floor((magnitude.numerator.bit_length() - magnitude.denominator.bit_length() - 1) * math.log10(2)) - 1
    while Fraction(10) ** (power + 1) <= magnitude:
        power += 1
    scaled = value / Fraction(10) ** (power - digits + 1)
    units = math.ceil(scaled) if up else math.floor(scaled)
    text = str(abs(units))
    power += len(text) - digits
    text = text.rstrip("0")
    sign = "-" if units < 0 else ""
    if -5 < power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{text}"
    if 0 <= power < 16:
        whole, rest = text[: power + 1].ljust(power + 1, "0"), text[power + 1 :]
        return f"{sign}{whole}.{rest}" if rest else f"{sign}{whole}"
    return f"{sign}{text[0]}{'.' + text[1:] if len(text) > 1 else ''}e{power}"


def decimal_lower(value: Fraction, digits: int = 17) -> str:
    """The largest decimal of ``digits`` significant digits that is ≤ value. read_real inverts it."""
    return _decimal(value, digits, up=False)


def decimal_upper(value: Fraction, digits: int = 17) -> str:
    """The smallest decimal of ``digits`` significant digits that is ≥ value. read_real inverts it."""
    return _decimal(value, digits, up=True)


def double_rank(value: float) -> int:
    """The place of a positive finite double among them all: neighbours differ by 1."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def double_at(rank: int) -> float:
    """The positive double of that place; inverse of double_rank."""
    return float(struct.unpack("<d", struct.pack("<q", rank))[0])


def ceiling(value: arb) -> int | None:
    """⌈x⌉ where it is the same for every x in the ball, else None."""
    integer = value.ceil().unique_fmpz()
    return int(fmpz(integer)) if integer is not None else None
