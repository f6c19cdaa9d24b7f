"""A declared density in balls at one precision, and its integrand f(x+φ) − e^ε f(x) at any shift. (trusted)

All that does not depend on φ is made once: L(x) = log Σ C e^(bx) of each piece serves f(x+φ), as L(x+φ), and f(x).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise

from flint import arb, fmpq

from audit.anchor import REACH, Anchor, AtOne
from audit.cells import Side, StretchBalls
from audit.exact import ball, rational
from audit.frame import Span
from audit.masses import Interval, Masses, MovedMasses
from audit.points import ConvexLog
from mechanisms.arithmetic import BALL
from mechanisms.difference import Stretch, cancel
from mechanisms.form import Form, Piece
from mechanisms.lines import LineSum


class Density:
    """One form at the precision in force when it was made."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.mass: arb = form.mass(BALL)
        self.pieces = form.whole_line
        self._convex = [ConvexLog(piece.sum) if piece.sum.lines else None for piece in self.pieces]
        self._masses = [Masses(piece.sum) for piece in self.pieces]
        self._breaks = [piece.stop for piece in self.pieces if piece.stop is not None]
        self._stops = [rational(stop) for stop in self._breaks]
        self._slopes = _Slopes.of(self.pieces)
        self._cancels: dict[Fraction, bool] = {}
        self._at_one: tuple[Fraction, AtOne | None] | None = None

    def cancels(self, shift: Fraction) -> bool:
        """Whether some exponentials of f(x+φ) and f(x) have the same slope, so that they must be added exactly."""
        if shift not in self._cancels:
            self._cancels[shift] = any(slopes.meet(shift) for slopes in self._slopes)
        return self._cancels[shift]

    def stretches(self, shift: Fraction, epsilon: Fraction) -> list[StretchBalls]:
        """The integrand on the whole line but for finitely many points, in order."""
        moved, lift, factor = rational(shift), ball(epsilon), ball(epsilon).exp()
        ends = [None, *sorted({b for stop in self._breaks for b in (stop, stop - shift)}), None]
        found: list[StretchBalls] = []
        for start, stop in pairwise(ends):
            inside = _inside(start, stop)
            there, here = self._piece_at(inside + shift), self._piece_at(inside)
            above, below = self.pieces[there].sum, self.pieces[here].sum
            masses = MovedMasses(self._masses[there], moved), MovedMasses(self._masses[here], None, factor)
            if (ratio := _affine_ratio(above, below, shift, epsilon)) is not None:
                for whole, sign in _signed_parts(ratio, start, stop):
                    sides = Side(self._convex_of(there)), Side(self._convex_of(here))
                    found.append(StretchBalls(whole, *sides, masses, (above.c, below.c), sign=sign))
            elif self.cancels(shift):
                positive, negative = cancel(above.shifted(shift), below.lifted(epsilon))
                found.append(StretchBalls.cancelled(Stretch(start, stop, positive, negative)))
            else:
                upper = lower = None
                if above.lines:
                    fall, tilt = ball(-above.c * shift * shift), ball(-2 * above.c * shift)
                    upper = Side(self._convex_of(there), moved, fall, tilt, max(below.c - above.c, Fraction(0)))
                if below.lines:
                    lower = Side(self._convex_of(here), None, lift, None, max(above.c - below.c, Fraction(0)))
                whole = (_rational(start), _rational(stop))
                middles = [m - shift for m in _middles(self.pieces[there])] + _middles(self.pieces[here])
                found.append(StretchBalls(whole, upper, lower, masses, (above.c, below.c), middles))
        return found

    def _convex_of(self, number: int) -> ConvexLog:
        convex = self._convex[number]
        assert convex is not None
        return convex

    def _piece_at(self, x: Fraction) -> int:
        return bisect_right(self._breaks, x)

    def anchor(self, shift: Fraction, epsilon: Fraction) -> Anchor | None:
        """The bounds anchored at Δ, where they apply: a cancelled stretch has other ends than those of f."""
        if not 1 - REACH <= shift < 1 or self._convex[0] is None or self.cancels(shift):
            return None
        if self._at_one is None:
            self._at_one = epsilon, AtOne.of(self.form, epsilon)
        base, at_one = self._at_one
        if at_one is None:
            return None
        return Anchor(at_one, base - epsilon, self._convex[0], self.pieces[0].sum.c, shift)

    def span(self, shifts: tuple[Fraction, Fraction], epsilon: Fraction, lift: Fraction) -> Span | None:
        """Cells decided for a range of shifts and of ε; None where the density has several pieces, or lines cancel."""
        convex = self._convex[0]
        if len(self.pieces) != 1 or convex is None or self.cancels(shifts[0]):
            return None
        (balls, *rest) = self.stretches(shifts[0], epsilon)
        if rest or balls.sign:
            return None
        return Span(shifts, lift, balls, self.anchor(shifts[0], epsilon), convex, self.pieces[0].sum.c)

    def probability(self, interval: Interval, floor: float = -math.inf) -> arb:
        """∫ f over the interval, divided by the mass; what lines add below e^floor is bounded instead of evaluated."""
        start, stop = interval
        total, log_mass = arb(0), float(self.mass.log())
        first = 0 if start is None else bisect_right(self._stops, start)
        last = len(self._stops) if stop is None else bisect_left(self._stops, stop)
        for piece, masses in zip(self.pieces[first : last + 1], self._masses[first : last + 1], strict=True):
            low, high = _rational(piece.start), _rational(piece.stop)
            a = start if low is None else low if start is None else max(start, low)
            b = stop if high is None else high if stop is None else min(stop, high)
            if piece.sum.lines and (a is None or b is None or a < b):
                total += masses.over((a, b), floor + log_mass)
        return total / self.mass


def _affine_ratio(
    above: LineSum, below: LineSum, shift: Fraction, epsilon: Fraction
) -> tuple[Fraction, Fraction] | None:
    """(r₀, r₁) with R(x) = r₀ + r₁ x exactly, where each side is one line with one and the same weight and c; else
    None."""
    if above.c != below.c or len(above.lines) != 1 or len(below.lines) != 1:
        return None
    (line,), (other,) = above.lines, below.lines
    if len(line.terms) != 1 or len(other.terms) != 1 or line.terms[0][0] != other.terms[0][0]:
        return None
    constant = line.terms[0][1] - other.terms[0][1] - epsilon + line.slope * shift - above.c * shift * shift
    return constant, line.slope - 2 * above.c * shift - other.slope


def _signed_parts(
    ratio: tuple[Fraction, Fraction], start: Fraction | None, stop: Fraction | None
) -> list[tuple[Interval, int]]:
    """(start, stop) cut where an affine R changes its sign, with that sign (−1 where R ≤ 0)."""
    constant, slope = ratio
    if slope == 0:
        return [((_rational(start), _rational(stop)), 1 if constant > 0 else -1)]
    root = -constant / slope
    before = -1 if slope > 0 else 1
    if start is not None and root <= start:
        return [((_rational(start), _rational(stop)), -before)]
    if stop is not None and root >= stop:
        return [((_rational(start), _rational(stop)), before)]
    return [((_rational(start), rational(root)), before), ((rational(root), _rational(stop)), -before)]


def _rational(end: Fraction | None) -> fmpq | None:
    return None if end is None else rational(end)


def _middles(piece: Piece) -> list[Fraction]:
    """Where the outermost lines of a piece are centred."""
    slopes = [line.slope for line in piece.sum.lines]
    return [min(slopes) / (2 * piece.sum.c), max(slopes) / (2 * piece.sum.c)] if slopes and piece.sum.c else []


def _inside(start: Fraction | None, stop: Fraction | None) -> Fraction:
    if start is None:
        return Fraction(0) if stop is None else stop - 1
    return start + 1 if stop is None else (start + stop) / 2


class _Slopes:
    """The slopes of all lines under one factor e^(−c x²), as multiples of 1/denominator: they are compared at every
    shift."""

    def __init__(self, c: Fraction, slopes: list[Fraction]) -> None:
        self.c = c
        self._denominator = math.lcm(*(slope.denominator for slope in slopes))
        self._places = {int(slope * self._denominator) for slope in slopes}

    @classmethod
    def of(cls, pieces: Iterable[Piece]) -> list[_Slopes]:
        """One for each c."""
        slopes: dict[Fraction, list[Fraction]] = {}
        for piece in pieces:
            slopes.setdefault(piece.sum.c, []).extend(line.slope for line in piece.sum.lines)
        return [cls(c, found) for c, found in slopes.items()]

    def meet(self, shift: Fraction) -> bool:
        """Whether some line at x + shift has the slope of one at x: b − 2cφ = b′."""
        turn = 2 * self.c * shift * self._denominator
        return turn.denominator == 1 and any(place - turn.numerator in self._places for place in self._places)
