"""One stretch of the difference in balls: what two points tell of the cell between them. (trusted)

R = log positive − log negative = U − V with U and V convex (log-sum-exps of lines plus convex squares), so on a cell U lies
below its chord and above its tangents, V likewise, and chord of one minus tangents of the other bounds R.
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb, fmpq

from audit.exact import ball, rational
from audit.masses import Interval, Masses
from audit.points import ConvexLog
from mechanisms.difference import Stretch
from mechanisms.lines import ZERO


@dataclass(frozen=True, slots=True)
class End:
    """What is known of the integrand at one point: U, U′, V, V′ and log positive."""

    x: fmpq
    u: arb
    du: arb
    v: arb
    dv: arb
    log_positive: arb


def upper_gap(a: arb, a_next: arb, b: arb, db: arb, b_next: arb, db_next: arb, width: arb) -> arb:
    """Upper bound of A − B over a cell, A and B convex, from values at its ends and slopes of B there.

    Guarantee: A(x) − B(x) ≤ the upper end of the result, for every x in the cell. Precondition: A and B are convex on the
    closed cell of that width. Source: A lies below its chord, B above its tangent at either end; the smaller of the two
    linear bounds is largest at an end or where they cross. Rounding: outward (arb).
    """
    left, right = a - b, a_next - b_next
    above_left = a - (b_next - db_next * width)  # chord of A minus the right-hand tangent of B, at the left end
    above_right = a_next - (b + db * width)  # chord of A minus the left-hand tangent of B, at the right end
    opening = (above_left - left) + (above_right - right)
    if opening > 0:
        crossing = left + (above_left - left) / opening * (above_right - left)
        return left.max(right).max(crossing)
    return above_left.max(above_right)


class StretchBalls:
    """One stretch of the difference, ready for evaluation in balls at the precision in force."""

    def __init__(self, stretch: Stretch) -> None:
        positive, negative = stretch.positive, stretch.negative
        self.stretch = stretch
        self.whole: Interval = (
            None if stretch.start is None else rational(stretch.start),
            None if stretch.stop is None else rational(stretch.stop),
        )
        self.trivial = not positive.lines or not negative.lines
        """One of the two sides is 0 on the whole stretch: its sign needs no proof."""
        self.positive_mass, self.negative_mass = Masses(positive), Masses(negative)
        if self.trivial:
            return
        surplus = negative.c - positive.c
        self.upper = ConvexLog(positive, max(surplus, ZERO))
        self.lower = ConvexLog(negative, max(-surplus, ZERO))
        # U holds log positive plus (c_n − c_p)⁺ x² − (−c_p x²) more than log of the positive part with its factor:
        self._drop = ball(max(positive.c, negative.c))
        self._c = ball(positive.c)

    def at(self, x: fmpq) -> End:
        """U, U′, V, V′ and log positive at x."""
        point = arb(x)
        u, du = self.upper.at(point)
        v, dv = self.lower.at(point)
        return End(x, u, du, v, dv, u - self._drop * point * point)

    def upper_ratio(self, left: End, right: End) -> arb:
        """Upper bound of R on the cell between two ends; see upper_gap."""
        width = arb(right.x - left.x)
        return upper_gap(left.u, right.u, left.v, left.dv, right.v, right.dv, width)

    def lower_ratio(self, left: End, right: End) -> arb:
        """Lower bound (its lower end) of R on the cell: minus the upper bound of V − U."""
        width = arb(right.x - left.x)
        return -upper_gap(left.v, right.v, left.u, left.du, right.u, right.du, width)

    def upper_charge(self, left: End, right: End, ratio: arb) -> arb:
        """Upper bound of ∫ max(positive − negative, 0) over the cell, given ``ratio``, an upper bound of R there.

        Source: positive − negative = positive (1 − e^−R); log positive + c x² is convex, so on a cell of width w
        positive ≤ max of its end values times e^(c w²/4). Rounding: outward.
        """
        width = arb(right.x - left.x)
        top = left.log_positive.max(right.log_positive) + self._c * width * width / 4
        excess = ratio.max(arb(0))
        return width * top.exp() * -((-excess).expm1())

    def tail_sign(self, end: End, to_right: bool) -> int:
        """1 where R ≥ 0 is proved on the whole line beyond ``end``, −1 where R ≤ 0 is, else 0.

        Source: slopes of convex functions rise, so beyond ``end`` U′ and V′ lie between their value there and their limit at
        infinity; a limit is the outermost slope of the lines, unless a square is added to them.
        """
        ratio = end.u - end.v
        if to_right:
            least_rise = None if self.lower.q is not None else end.du - self.lower.largest_slope
            largest_rise = None if self.upper.q is not None else self.upper.largest_slope - end.dv
        else:
            least_rise = None if self.lower.q is not None else self.lower.least_slope - end.du
            largest_rise = None if self.upper.q is not None else end.dv - self.upper.least_slope
        if least_rise is not None and least_rise >= 0 and ratio >= 0:
            return 1
        if largest_rise is not None and largest_rise <= 0 and ratio <= 0:
            return -1
        return 0
