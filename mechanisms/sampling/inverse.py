"""Noise of any declared density, exactly: the inverse of its distribution function, decided in balls.

|X| is where its upper tail T(y) = P(|X| > y) equals a uniform number V; X has a fair sign. For whole e, "the rounded
sum is at least e" says that |X| lies on one side of an exact rational y_e, and V ≤ T(y_e) or V ≥ T(y_e) decides it: T
in balls, V by the bits that are drawn. Floats only say where to look. Where the ball meets V's interval, more bits are
drawn and finer balls taken: both shrink to numbers that are equal with probability 0.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from typing import Any

import numpy as np

from mechanisms.arithmetic import BALL, FLOAT
from mechanisms.form import Form
from mechanisms.lines import ZERO
from mechanisms.numbers import natural_log, nearest_float
from mechanisms.sampling.balls import precision, scaled_ends
from mechanisms.sampling.bits import Uniform, Word

GUARD_BITS = 64
KNOTS = 4096
"""Points of the float table that proposes."""
TABLE_BITS = 12
"""About how many bits of the distance between two knots the table's interpolation gets right."""
MAX_PRECISION = 1 << 15
"""Balls are never finer, beyond the bits that are drawn."""


class InverseKernel:
    """A kernel (see mechanisms.sampling.kernels) for any density of finitely many pieces.

    Ends with probability 1. Bits that tie with a threshold for ever, which fair bits do with probability 0, end in
    StuckBits at bits.MAX_BITS.
    """

    def __init__(self, form: Form, grid: Fraction, width: int) -> None:
        self.form, self.grid, self.width = form, grid, width
        self.starts = [piece.start for piece in form.pieces if piece.start is not None]
        self.end = form.pieces[-1].stop
        self._masses: dict[int, tuple[list[Any], Any]] = {}
        self.knots, self.tails = _table(form)
        self.spacing = Fraction(float(self.knots[1])) if len(self.knots) > 1 else grid
        self.fineness = max(math.floor(self.spacing / grid), 1).bit_length()
        """About log₂ of how many cells of the grid lie between two knots."""

    def __call__(self, word: Word, a: int, b: int) -> int:
        negative = bool(word() & 1)
        v = Uniform(word, self.width)
        shift = Fraction(a, b)
        sign = -1 if negative else 1

        def at_least(e: int) -> bool:
            """Whether the rounded sum is at least e."""
            y = sign * (e - shift) * self.grid
            if y <= 0:
                return not negative
            if self.end is not None and y >= self.end:
                return negative
            below = self._tail_above(y, v)  # V < T(y): |X| > y
            return below != negative

        while v.count < self.fineness:
            v.extend()
        return largest(at_least, math.floor(shift + sign * self._propose(v) / self.grid))

    def _tail_above(self, y: Fraction, v: Uniform) -> bool:
        """V < T(y), for y inside the support."""
        while True:
            low, high = self._tail(y, v.count)
            if v.bits < low:
                return True
            if v.bits > high:
                return False
            for _ in range(1 + v.count // (8 * self.width)):  # more at once where many were in vain
                v.extend()

    def _tail(self, y: Fraction, bits: int) -> tuple[int, int]:
        """(⌊2^bits · lower end⌋, ⌊2^bits · upper end⌋) of an enclosure of T(y), at most 2 apart."""
        number = bisect_right(self.starts, y) - 1
        piece = self.form.pieces[number]
        working = bits + GUARD_BITS
        while working <= MAX_PRECISION + bits:
            with precision(working), np.errstate(all="ignore"):  # numpy warns of flags that FLINT leaves behind
                beyond, whole = self._beyond(working)
                stop = None if piece.stop is None else BALL.numbers([piece.stop])
                part = piece.sum.moments(BALL.numbers([y]), stop, 0, BALL)[0][0]
                ends = scaled_ends((part + beyond[number]) / whole, bits)
            if ends is not None and ends[1] - ends[0] <= 2:
                return ends
            working *= 2
        raise ArithmeticError("the distribution function cannot be enclosed")

    def _beyond(self, working: int) -> tuple[list[Any], Any]:
        """(the mass beyond each piece, all of it) on [0, ∞), at the precision in force, ``working``."""
        if working not in self._masses:
            total, beyond = BALL.number(ZERO), []
            for piece in reversed(self.form.pieces):
                beyond.append(total)
                start, stop = self.form._ends(piece, BALL)
                total = total + piece.sum.moments(start, stop, 0, BALL)[0][0]
            self._masses[working] = beyond[::-1], total
        return self._masses[working]

    def _propose(self, v: Uniform) -> Fraction:
        """Near where T(y) = V: from the table, and by Newton's steps where the grid is fine. Any answer is correct."""
        y = Fraction(float(np.interp(-natural_log(Fraction(2 * v.bits + 1, 2 << v.count)), self.tails, self.knots)))
        digits = TABLE_BITS
        while digits < self.fineness and y > 0 and (self.end is None or y < self.end):
            low, high = self._tail(y, v.count)
            with np.errstate(all="ignore"):
                slope = 2 * float(self.form.density(nearest_float(y), FLOAT))
            if not 1e-300 < slope < 1e300:
                break
            step = Fraction(low + high - 2 * v.bits, 2 << v.count) / Fraction(slope)
            if abs(step) > self.spacing:
                break
            y += step
            digits *= 2
        return y


def largest(holds: Any, guess: int) -> int:
    """The largest whole e for which ``holds(e)``, which is true below it and false above, from a guess."""
    step = 1
    if holds(guess):
        low = guess
        while holds(low + step):
            low, step = low + step, 2 * step
        high = low + step
    else:
        high = guess
        while not holds(high - step):
            high, step = high - step, 2 * step
        low = high - step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _table(form: Form) -> tuple[Any, Any]:
    """(points y, −log T(y)) in order, by floats."""
    end = form.pieces[-1].stop
    with np.errstate(all="ignore"):
        if end is None:  # where the tail is small enough never to be met in practice
            scales = 2.0 ** np.arange(-1000, 1000, 0.5)
            small = scales[form.tail(scales, FLOAT) < 1e-20]
            reach = float(small[0]) if len(small) else 1.0
        else:
            reach = nearest_float(end)
        knots = np.linspace(0.0, reach if 0 < reach < np.inf else 1.0, KNOTS)
        tails = -np.log(2.0 * form.tail(knots, FLOAT))
    tails[0] = 0.0
    good = np.isfinite(tails)
    return knots[good], np.maximum.accumulate(tails[good])
