"""One stretch of the integrand in balls: what two points tell of the cell between them. (trusted)

R = log f(x+φ) − log f(x) − ε = U − V with U and V convex (log-sum-exps of lines plus lines and convex squares), so on a
cell U lies below its chord and above its tangents, V likewise, and chord of one minus tangents of the other bounds R.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, fmpq

from audit.exact import ball, rational
from audit.masses import Interval, MovedMasses
from audit.points import ConvexLog
from mechanisms.difference import Stretch
from mechanisms.lines import ZERO


@dataclass(frozen=True, slots=True)
class End:
    """What is known of the integrand at one point: U, U′, V, V′ and log of its positive part."""

    x: fmpq
    u: arb
    du: arb
    v: arb
    dv: arb
    log_positive: arb


def upper_gap(a: arb, a_next: arb, b: arb, db: arb, b_next: arb, db_next: arb, width: arb) -> arb:
    """Upper bound of A − B over a cell, A and B convex, from values at its ends and slopes of B there.

    Guarantee: A(x) − B(x) ≤ the upper end of the result, for every x in the cell. Precondition: A and B are convex on
    the closed cell of that width. Source: A lies below its chord, B above its tangent at either end; the smaller of
    the two linear bounds is largest at an end or where they cross. Rounding: outward (arb).
    """
    left, right = a - b, a_next - b_next
    above_left = a - (b_next - db_next * width)  # chord of A minus the right-hand tangent of B, at the left end
    above_right = a_next - (b + db * width)  # chord of A minus the left-hand tangent of B, at the right end
    opening = (above_left - left) + (above_right - right)
    if opening > 0:
        crossing = left + (above_left - left) / opening * (above_right - left)
        return left.max(right).max(crossing)
    return above_left.max(above_right)


class Side:
    """L(x + shift) + lift + tilt · x + q x², L a ConvexLog and q ≥ 0: convex."""

    def __init__(
        self,
        convex: ConvexLog,
        shift: fmpq | None = None,
        lift: arb | None = None,
        tilt: arb | None = None,
        q: Fraction = ZERO,
    ) -> None:
        self._convex, self._shift, self._lift, self._tilt = convex, shift, lift, tilt
        self._q = ball(q) if q else None
        self.least_slope: arb | None = None
        self.largest_slope: arb | None = None
        if self._q is None:
            extra = arb(0) if tilt is None else tilt
            self.least_slope, self.largest_slope = convex.least_slope + extra, convex.largest_slope + extra
        """Limits of the slope at −∞ and +∞; None where a square makes them infinite."""

    def at(self, x: fmpq, point: arb) -> tuple[arb, arb]:
        """(value, slope) at x, of which ``point`` is the ball."""
        value, slope = self._convex.at(x if self._shift is None else x + self._shift)
        if self._lift is not None:
            value = value + self._lift
        if self._tilt is not None:
            value, slope = value + self._tilt * point, slope + self._tilt
        if self._q is not None:
            value, slope = value + self._q * point * point, slope + 2 * self._q * point
        return value, slope


class StretchBalls:
    """f(x+φ) − e^ε f(x) on one interval of x, ready for evaluation in balls at the precision in force.

    ``upper`` and ``lower`` are U and V, None for a side that is 0 there; ``c`` are those of the two Gaussian factors;
    ``middles`` are points that the interesting part of the line should contain. ``sign`` is 1 or −1 where the sign of
    the integrand on the whole stretch is known exactly, else 0.
    """

    def __init__(
        self,
        whole: Interval,
        upper: Side | None,
        lower: Side | None,
        masses: tuple[MovedMasses, MovedMasses],
        c: tuple[Fraction, Fraction],
        middles: Sequence[Fraction] = (),
        sign: int = 0,
    ) -> None:
        self.sign = -1 if upper is None else 1 if lower is None else sign
        self.whole, self.upper, self.lower = whole, upper, lower
        self.middles = [rational(middle) for middle in middles]
        self.positive_mass, self.negative_mass = masses
        self._drop, self._c = ball(max(c)), ball(c[0])

    @classmethod
    def cancelled(cls, stretch: Stretch) -> StretchBalls:
        """A stretch of the exact difference, in which equal exponentials have been added."""
        positive, negative = stretch.positive, stretch.negative
        surplus = negative.c - positive.c
        upper = Side(ConvexLog(positive), q=max(surplus, ZERO)) if positive.lines else None
        lower = Side(ConvexLog(negative), q=max(-surplus, ZERO)) if negative.lines else None
        whole = (
            None if stretch.start is None else rational(stretch.start),
            None if stretch.stop is None else rational(stretch.stop),
        )
        middles = [line.slope / (2 * s.c) for s in (positive, negative) for line in s.lines if s.c]
        masses = MovedMasses.of(positive), MovedMasses.of(negative)
        return cls(whole, upper, lower, masses, (positive.c, negative.c), middles)

    def at(self, x: fmpq) -> End:
        """U, U′, V, V′ and log positive at x; both sides must be there."""
        assert self.upper is not None and self.lower is not None
        point = arb(x)
        u, du = self.upper.at(x, point)
        v, dv = self.lower.at(x, point)
        return End(x, u, du, v, dv, u - self._drop * point * point)

    @staticmethod
    def upper_ratio(left: End, right: End) -> arb:
        """Upper bound of R on the cell between two ends; see upper_gap."""
        return upper_gap(left.u, right.u, left.v, left.dv, right.v, right.dv, arb(right.x - left.x))

    @staticmethod
    def lower_ratio(left: End, right: End) -> arb:
        """Lower bound (its lower end) of R on the cell: minus the upper bound of V − U."""
        return -upper_gap(left.v, right.v, left.u, left.du, right.u, right.du, arb(right.x - left.x))

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

        Source: slopes of convex functions rise, so beyond ``end`` U′ and V′ lie between their value there and their
        limit at infinity.
        """
        assert self.upper is not None and self.lower is not None
        ratio = end.u - end.v
        if to_right:
            limit_u, limit_v = self.upper.largest_slope, self.lower.largest_slope
            least_rise = None if limit_v is None else end.du - limit_v
            largest_rise = None if limit_u is None else limit_u - end.dv
        else:
            limit_u, limit_v = self.upper.least_slope, self.lower.least_slope
            least_rise = None if limit_v is None else limit_v - end.du
            largest_rise = None if limit_u is None else end.dv - limit_u
        if least_rise is not None and least_rise >= 0 and ratio >= 0:
            return 1
        if largest_rise is not None and largest_rise <= 0 and ratio <= 0:
            return -1
        return 0
