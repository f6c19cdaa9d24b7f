"""The declared form: an even density in finitely many pieces on [0, ∞), sums of exponentials of lines. (trusted)

Density, log-density, score, cdf, tail, E|X| and E X² are written here once, for float64, balls and mpmath. The density
need not be normalised where it is declared: the form divides by its own mass.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from mechanisms.arithmetic import FLOAT, Arithmetic, Array
from mechanisms.lines import ZERO, LineSum, evaluate
from mechanisms.numbers import InputError


@dataclass(frozen=True)
class Piece:
    """The function ``sum`` on [start, stop); stop = None is +∞, start = None (on the whole line only) is −∞."""

    start: Fraction | None
    stop: Fraction | None
    sum: LineSum


@dataclass(frozen=True)
class Form:
    """An even density on the line, declared on [0, ∞): pieces in order, from 0, without gaps or overlaps.

    Beyond the last piece the density is 0. Raises InputError where the pieces do not make a density.
    """

    pieces: tuple[Piece, ...]

    def __post_init__(self) -> None:
        at: Fraction | None = ZERO
        for number, piece in enumerate(self.pieces):
            where = f"pieces[{number}]"
            if at is None or piece.start != at:
                raise InputError(f"{where}.from", str(piece.start), f"{at}, where the piece before it ends")
            if piece.stop is not None and piece.stop <= at:
                raise InputError(f"{where}.to", str(piece.stop), f"a number greater than {at}")
            if piece.stop is None and piece.sum.c == 0 and any(line.slope >= 0 for line in piece.sum.lines):
                expected = "slopes below 0 on a piece to inf with c = 0"
                raise InputError(f"{where}.lines", "a slope of 0 or more", expected)
            at = piece.stop
        if not any(piece.sum.lines for piece in self.pieces):
            raise InputError("pieces", "none with a line", "a density that is not 0 everywhere")

    @classmethod
    def normalised_height(cls, pieces: tuple[Piece, ...]) -> Form:
        """The same density times a constant that brings the largest line near 1, so that floats do not overflow."""
        peaks = [line.peak(piece.sum.c) for piece in pieces for line in piece.sum.lines]
        if not peaks or abs(top := max(peaks)) < 200:
            return cls(pieces)
        return cls(pieces).lifted(Fraction(-round(top)))

    def lifted(self, lift: Fraction) -> Form:
        """The same density, declared e^lift times as high."""
        return Form(tuple(Piece(p.start, p.stop, p.sum.lifted(lift)) for p in self.pieces))

    def scaled(self, sensitivity: Fraction) -> Form:
        """The density of X/Δ."""

        def divide(end: Fraction | None) -> Fraction | None:
            return None if end is None else end / sensitivity

        return Form(tuple(Piece(divide(p.start), divide(p.stop), p.sum.scaled(sensitivity)) for p in self.pieces))

    @cached_property
    def whole_line(self) -> tuple[Piece, ...]:
        """The pieces on (−∞, ∞), in order; the two halves of the first are one piece where they are one formula.

        Where the support ends, the density 0 beyond it is a piece of its own, without lines.
        """
        right = list(self.pieces)
        if right[-1].stop is not None:
            right.append(Piece(right[-1].stop, None, LineSum(ZERO, ())))
        left = [
            Piece(None if p.stop is None else -p.stop, None if p.start is None else -p.start, p.sum.reflected())
            for p in reversed(right)
        ]
        first = right[0].sum
        if first.by_slope == first.reflected().by_slope:
            middle = Piece(left[-1].start, right[0].stop, first)
            return (*left[:-1], middle, *right[1:])
        return (*left, *right)

    def mass(self, arithmetic: Arithmetic = FLOAT) -> Any:
        """∫ of the declared function over the line: what the density is divided by."""
        return 2 * self._moment(0, arithmetic)

    def mean_absolute(self, arithmetic: Arithmetic = FLOAT) -> Any:
        """E|X|, the ℓ₁ loss, in the unit of the pieces."""
        return self._moment(1, arithmetic) / self._moment(0, arithmetic)

    def mean_square(self, arithmetic: Arithmetic = FLOAT) -> Any:
        """E X², the ℓ₂ loss, in the square of the unit of the pieces."""
        return self._moment(2, arithmetic) / self._moment(0, arithmetic)

    def _moment(self, order: int, arithmetic: Arithmetic) -> Any:
        total = arithmetic.numbers([ZERO])
        for piece in self.pieces:
            u, v = self._ends(piece, arithmetic)
            total = total + piece.sum.moments(u, v, order, arithmetic)[order]
        return total[0]

    @staticmethod
    def _ends(piece: Piece, arithmetic: Arithmetic) -> tuple[Array, Array | None]:
        assert piece.start is not None
        return arithmetic.numbers([piece.start]), None if piece.stop is None else arithmetic.numbers([piece.stop])

    def density(self, x: Any, arithmetic: Arithmetic = FLOAT) -> Any:
        """f(x), of the shape of x. At an end of pieces, the right-hand limit (for x ≥ 0)."""
        return evaluate(lambda t: self._piecewise("value", t, arithmetic, 0) / self.mass(arithmetic), x, arithmetic)

    def log_density(self, x: Any, arithmetic: Arithmetic = FLOAT) -> Any:
        """log f(x); −∞ (float only) outside the support."""

        def log_density(t: Array) -> Array:
            log_mass = arithmetic.log(arithmetic.array([self.mass(arithmetic)]))[0]
            return self._piecewise("log_value", t, arithmetic, -np.inf) - log_mass

        return evaluate(log_density, x, arithmetic)

    def score(self, x: Any, arithmetic: Arithmetic = FLOAT) -> Any:
        """d/dx log f(x), inside the pieces."""
        return evaluate(lambda t: self._piecewise("score", t, arithmetic, np.nan), x, arithmetic)

    def tail(self, x: Any, arithmetic: Arithmetic = FLOAT) -> Any:
        """P(X > x): a sum of masses, never 1 − cdf, so that it keeps its relative accuracy for every x."""

        def tail(t: Array) -> Array:
            total = arithmetic.numbers([ZERO])
            for piece in self.whole_line:
                start, stop = (None if end is None else arithmetic.number(end) for end in (piece.start, piece.stop))
                v = None if stop is None else arithmetic.array([stop] * len(t))
                total = total + piece.sum.moments(arithmetic.clip(t, start, stop), v, 0, arithmetic)[0]
            return total / self.mass(arithmetic)

        return evaluate(tail, x, arithmetic)

    def cdf(self, x: Any, arithmetic: Arithmetic = FLOAT) -> Any:
        """P(X ≤ x) = P(X > −x), the density being even."""
        return self.tail(-x, arithmetic)

    def _piecewise(self, name: str, x: Array, arithmetic: Arithmetic, outside: float) -> Array:
        """``name`` of each piece at its points; a ball that meets several pieces gets the hull of their values."""
        found: list[Any] = [None] * len(x)
        for piece in self.whole_line:
            inside = [i for i in range(len(x)) if _may_meet(piece, x[i], arithmetic)] if x.dtype == object else (
                np.flatnonzero(_meets(piece, x)).tolist()
            )
            if not inside:
                continue
            if piece.sum.lines:
                values = getattr(piece.sum, name)(x[inside], arithmetic)
            else:
                values = [outside if x.dtype != object else arithmetic.number(ZERO)] * len(inside)
            for i, value in zip(inside, values, strict=True):
                found[i] = value if found[i] is None else found[i].union(value)
        return arithmetic.array(found)


def _meets(piece: Piece, x: Array) -> Any:
    above = True if piece.start is None else x >= float(piece.start)
    return above & (True if piece.stop is None else x < float(piece.stop)) & np.ones(x.shape, dtype=bool)


def _may_meet(piece: Piece, x: Any, arithmetic: Arithmetic) -> bool:
    """Whether the point, or any point of the ball, may lie in the piece."""
    if piece.start is not None and x < arithmetic.number(piece.start):
        return False
    return not (piece.stop is not None and x >= arithmetic.number(piece.stop))
