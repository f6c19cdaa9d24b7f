"""A declared density in balls at one precision, and its integrand f(x+φ) − e^ε f(x) at any shift. (trusted)

All that does not depend on φ is made once: L(x) = log Σ C e^(bx) of each piece serves f(x+φ), as L(x+φ), and f(x).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from flint import arb, fmpq

from audit.anchor import REACH, Anchor, AtOne
from audit.cells import Side, StretchBalls
from audit.exact import ball, rational
from audit.masses import Masses, MovedMasses
from audit.points import ConvexLog
from mechanisms.arithmetic import BALL
from mechanisms.difference import difference
from mechanisms.form import Form, Piece


class Density:
    """One form at the precision in force when it was made."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.mass: arb = form.mass(BALL)
        self.pieces = form.whole_line
        self._convex = [ConvexLog(piece.sum) if piece.sum.lines else None for piece in self.pieces]
        self._masses = [Masses(piece.sum) for piece in self.pieces]
        self._breaks = [piece.stop for piece in self.pieces if piece.stop is not None]
        self._cancelling = _cancelling_shifts(form)
        self._at_one: dict[Fraction, AtOne | None] = {}

    def cancels(self, shift: Fraction) -> bool:
        """Whether some exponentials of f(x+φ) and f(x) have the same slope, so that they must be added exactly."""
        return self._cancelling is None or shift in self._cancelling

    def stretches(self, shift: Fraction, epsilon: Fraction) -> list[StretchBalls]:
        """The integrand on the whole line but for finitely many points, in order."""
        if self.cancels(shift):
            return [StretchBalls.cancelled(stretch) for stretch in difference(self.form, shift, epsilon)]
        moved, lift, factor = rational(shift), ball(epsilon), ball(epsilon).exp()
        ends = [None, *sorted({b for stop in self._breaks for b in (stop, stop - shift)}), None]
        found = []
        for start, stop in pairwise(ends):
            inside = _inside(start, stop)
            there, here = self._piece_at(inside + shift), self._piece_at(inside)
            c_there, c_here = self.pieces[there].sum.c, self.pieces[here].sum.c
            above, below = self._convex[there], self._convex[here]
            upper = lower = None
            if above is not None:
                tilt = ball(-2 * c_there * shift)
                upper = Side(above, moved, ball(-c_there * shift * shift), tilt, max(c_here - c_there, Fraction(0)))
            if below is not None:
                lower = Side(below, None, lift, None, max(c_there - c_here, Fraction(0)))
            whole = (None if start is None else rational(start), None if stop is None else rational(stop))
            masses = MovedMasses(self._masses[there], moved), MovedMasses(self._masses[here], None, factor)
            middles = [m - shift for m in _middles(self.pieces[there])] + _middles(self.pieces[here])
            found.append(StretchBalls(whole, upper, lower, masses, (c_there, c_here), middles))
        return found

    def _piece_at(self, x: Fraction) -> int:
        return next(i for i, piece in enumerate(self.pieces) if piece.stop is None or x < piece.stop)

    def anchor(self, shift: Fraction, epsilon: Fraction) -> Anchor | None:
        """The bounds anchored at Δ, where they apply."""
        if not 1 - REACH <= shift < 1 or self._convex[0] is None:
            return None
        if epsilon not in self._at_one:
            self._at_one[epsilon] = AtOne.of(self.form, epsilon)
        at_one = self._at_one[epsilon]
        return None if at_one is None else Anchor(at_one, self._convex[0], self.pieces[0].sum.c, shift)

    def probability(self, interval: tuple[fmpq | None, fmpq | None]) -> arb:
        """∫ f over the interval, divided by the mass."""
        start, stop = interval
        total = arb(0)
        for piece, masses in zip(self.pieces, self._masses, strict=True):
            low = None if piece.start is None else rational(piece.start)
            high = None if piece.stop is None else rational(piece.stop)
            a = start if low is None else low if start is None else max(start, low)
            b = stop if high is None else high if stop is None else min(stop, high)
            if piece.sum.lines and (a is None or b is None or a < b):
                total += masses.over((a, b))
        return total / self.mass


def _middles(piece: Piece) -> list[Fraction]:
    """Where the outermost lines of a piece are centred."""
    slopes = [line.slope for line in piece.sum.lines]
    return [min(slopes) / (2 * piece.sum.c), max(slopes) / (2 * piece.sum.c)] if piece.sum.c else []


def _inside(start: Fraction | None, stop: Fraction | None) -> Fraction:
    if start is None:
        return Fraction(0) if stop is None else stop - 1
    return start + 1 if stop is None else (start + stop) / 2


def _cancelling_shifts(form: Form) -> frozenset[Fraction] | None:
    """The shifts at which a line of f(x+φ) and one of f(x) have the same slope; None where that is every shift.

    A line of slope b under c has slope b − 2cφ after the shift, so it meets b′ where φ = (b − b′)/2c.
    """
    found: set[Fraction] = set()
    for there in form.whole_line:
        for here in form.whole_line:
            if there.sum.c != here.sum.c:
                continue
            gaps = {a.slope - b.slope for a in there.sum.lines for b in here.sum.lines}
            if there.sum.c == 0:
                if 0 in gaps:
                    return None
                continue
            found |= {shift for gap in gaps if 0 <= (shift := gap / (2 * there.sum.c)) <= 1}
    return frozenset(found)
