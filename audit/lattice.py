"""The numbers that a scale may be: all doubles, or all decimals of N places. Neighbours have neighbouring ranks.
(trusted)"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from audit.exact import double_at, double_rank, float_upper
from mechanisms.numbers import InputError

MAX_DECIMALS = 15
"""More places than a double near 1 tells apart."""


@dataclass(frozen=True)
class Doubles:
    """The positive doubles."""

    name = "double"

    def value(self, rank: int) -> Fraction:
        """The double of that rank, exactly."""
        return Fraction(double_at(rank))

    def rank_at_least(self, value: Fraction) -> int:
        """The rank of the smallest double ≥ value. Raises InputError beyond the largest double."""
        double = float_upper(value)
        if not 0 < double < math.inf:
            raise InputError("sensitivity", "a scale outside the doubles", "one for which the scale is a double")
        return double_rank(double)

    def exists(self, rank: int) -> bool:
        """Whether the rank is that of a positive finite double."""
        return 0 < rank < double_rank(math.inf)


@dataclass(frozen=True)
class Decimals:
    """The positive decimals of ``places`` places: each stands for the double that its text is read as.

    That double is what a program computes with, so it is what is proved.
    """

    places: int

    @property
    def name(self) -> str:
        return f"decimal of {self.places} places"

    def value(self, rank: int) -> Fraction:
        """The double nearest to rank / 10^places, exactly."""
        return Fraction(float(Fraction(rank, 10**self.places)))

    def rank_at_least(self, value: Fraction) -> int:
        """The rank of the smallest decimal whose double is ≥ value. Raises InputError where decimals are finer than
        doubles."""
        rank = math.ceil(value * 10**self.places)
        if Fraction(math.ulp(float(value))) * 10**self.places * 4 > 1:
            fewer = f"fewer: near {float(value):.6g} doubles are no finer than that"
            raise InputError("decimals", str(self.places), fewer)
        while self.value(rank) < value:
            rank += 1
        while rank > 1 and self.value(rank - 1) >= value:  # its double may be rounded up
            rank -= 1
        return max(int(rank), 1)

    def exists(self, rank: int) -> bool:
        """Whether the rank is that of a positive decimal."""
        return rank > 0


Lattice = Doubles | Decimals
