"""Cells decided for a whole range of shifts at once, for the many shifts close to the worst one. (trusted)

From R at one shift, its other values follow by R(x, φ) = R(x, φ₀) + ∫_{φ₀}^φ s(x+ψ) dψ, s = (log f)′ = μ − 2c x, and μ
rises. Only what the range leaves open, mostly round sign changes, is looked at again at each shift.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from flint import arb, fmpq

from audit.anchor import Anchor
from audit.cells import StretchBalls
from audit.exact import ball, rational
from audit.masses import Interval
from audit.points import ConvexLog


class Frame:
    """What holds for every shift in [φ₀, φ₁] and every ε′ in [ε − lift, ε], for a density of one piece on the whole
    line.

    Between ``first`` and ``last``: R ≥ 0 on each of ``positive``, nothing is known on ``open``, and R ≤ 0 elsewhere.
    """

    def __init__(
        self,
        shifts: tuple[Fraction, Fraction],
        epsilon: Fraction,
        lift: Fraction,
        at_first: tuple[StretchBalls, Anchor | None],
        density: tuple[ConvexLog, Fraction],
        cuts: Sequence[fmpq],
    ) -> None:
        self.shifts, self.epsilon, self.lift = shifts, epsilon, lift
        self.first, self.last = cuts[0], cuts[-1]
        self.positive: list[Interval] = []
        self.open: list[tuple[fmpq, fmpq]] = []
        balls, anchor = at_first
        convex, c = density
        start, stop = rational(shifts[0]), rational(shifts[1])
        height, twice_c, rise = ball(shifts[1] - shifts[0]), ball(2 * c), ball(lift)
        ends = [balls.at(x) for x in cuts]
        for left, right in pairwise(ends):
            low_slope = convex.at(left.x + start)[1]
            high_slope = convex.at(right.x + stop)[1]
            largest_score = high_slope - twice_c * arb(left.x + start)
            least_score = low_slope - twice_c * arb(right.x + stop)
            above = balls.upper_ratio(left, right)
            below = balls.lower_ratio(left, right)
            if anchor is not None:
                above = above.min(anchor.upper_ratio(left, right))
                anchored = anchor.lower_ratio(left, right)
                below = below if anchored is None else below.max(anchored)
            if above + rise + height * largest_score.max(arb(0)) <= 0:
                continue
            if below + height * least_score.min(arb(0)) >= 0:
                self.positive.append((left.x, right.x))
            elif self.open and self.open[-1][1] == left.x:
                self.open[-1] = (self.open[-1][0], right.x)
            else:
                self.open.append((left.x, right.x))

    def covers(self, shift: Fraction, epsilon: Fraction) -> bool:
        """Whether the frame speaks of this shift and ε."""
        return self.shifts[0] <= shift <= self.shifts[1] and self.epsilon - self.lift <= epsilon <= self.epsilon
