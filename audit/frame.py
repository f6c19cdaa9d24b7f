"""Cells decided for a whole range of shifts at once, for the many shifts close to the worst one. (trusted)

From R at one shift, its other values follow by R(x, φ) = R(x, φ₀) + ∫_{φ₀}^φ s(x+ψ) dψ, s = (log f)′ = μ − 2c x, and μ
rises. Only what the range leaves open, mostly round sign changes, is looked at again at each shift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from flint import arb, fmpq

from audit.anchor import Anchor
from audit.cells import End, StretchBalls
from audit.exact import ball, rational
from audit.masses import Interval
from audit.points import ConvexLog


class Span:
    """The sign of R on cells, for every shift in [φ₀, φ₁] and every ε′ in [ε − lift, ε]; a density of one piece on the
    whole line, whose log-sum is ``convex``.

    ``balls`` and ``anchor`` are for φ₀ and ε.
    """

    def __init__(
        self,
        shifts: tuple[Fraction, Fraction],
        lift: Fraction,
        balls: StretchBalls,
        anchor: Anchor | None,
        convex: ConvexLog,
        c: Fraction,
    ) -> None:
        self.convex, self.c, self.balls, self._anchor = convex, c, balls, anchor
        self._start, self._stop = rational(shifts[0]), rational(shifts[1])
        self._height, self._twice_c, self._rise = ball(shifts[1] - shifts[0]), ball(2 * c), ball(lift)

    def sign(self, left: End, right: End) -> int:
        """1 where R ≥ 0 on the whole cell is proved, −1 where R ≤ 0 is, else 0; the ends are of ``balls``."""
        largest_score = self.convex.at(right.x + self._stop)[1] - self._twice_c * arb(left.x + self._start)
        least_score = self.convex.at(left.x + self._start)[1] - self._twice_c * arb(right.x + self._stop)
        above, below = self.balls.upper_ratio(left, right), self.balls.lower_ratio(left, right)
        if self._anchor is not None:
            above = above.min(self._anchor.upper_ratio(left, right))
            anchored = self._anchor.lower_ratio(left, right)
            below = below if anchored is None else below.max(anchored)
        if above + self._rise + self._height * largest_score.max(arb(0)) <= 0:
            return -1
        return 1 if below + self._height * least_score.min(arb(0)) >= 0 else 0


@dataclass(frozen=True)
class Validity:
    """Of which shifts and ε′ a frame speaks."""

    shifts: tuple[Fraction, Fraction]
    epsilon: Fraction
    lift: Fraction


class Frame:
    """What a span decides of the cells between cuts.

    Between ``first`` and ``last``: R ≥ 0 on each of ``positive``, nothing is known on ``open``, and R ≤ 0 elsewhere.
    """

    def __init__(self, validity: Validity, span: Span, cuts: Sequence[fmpq]) -> None:
        self.validity = validity
        self.first, self.last = cuts[0], cuts[-1]
        self.positive: list[Interval] = []
        self.open: list[tuple[fmpq, fmpq]] = []
        for left, right in pairwise([span.balls.at(x) for x in cuts]):
            sign = span.sign(left, right)
            if sign > 0:
                self.positive.append((left.x, right.x))
            elif sign == 0 and self.open and self.open[-1][1] == left.x:
                self.open[-1] = (self.open[-1][0], right.x)
            elif sign == 0:
                self.open.append((left.x, right.x))

    def covers(self, shift: Fraction, epsilon: Fraction) -> bool:
        """Whether the frame speaks of this shift and ε."""
        valid = self.validity
        return (
            valid.shifts[0] <= shift <= valid.shifts[1] and valid.epsilon - valid.lift <= epsilon <= valid.epsilon
        )
