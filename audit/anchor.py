"""Bounds of R near φ = Δ, where f(x+Δ) and e^ε f(x) are equal but for a few lines. (trusted)

With geometric weights R(x, Δ) vanishes on a half-line up to exponentially small terms, so that close to Δ the
log-ratio is small there and no bound that looks at f(x+φ) and f(x) apart tells its sign. Anchored at Δ (here 1) it
does:

    R(x, φ) = R(x, 1) − ∫_φ^1 s(x+ψ) dψ,   s = (log f)′,   R(x, 1) = log(1 + (P₁ − N₁)/(e^ε f)),

P₁ − N₁ the difference at shift 1 after exact cancellation.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from audit.cells import End, upper_gap
from audit.exact import ball
from audit.points import ConvexLog
from mechanisms.difference import Stretch, difference
from mechanisms.form import Form

REACH = Fraction(1, 4)
"""How far from Δ the bounds are tried."""


class AtOne:
    """P₁ and N₁ for one form and ε. Neither is 0: the outermost lines of f(x+1) and of f have no partners."""

    def __init__(self, stretch: Stretch) -> None:
        self.positive, self.negative = ConvexLog(stretch.positive), ConvexLog(stretch.negative)

    @classmethod
    def of(cls, form: Form, epsilon: Fraction) -> AtOne | None:
        """Where the density is one formula on the whole line and lines cancel at shift 1; else None."""
        if len(form.whole_line) != 1:
            return None
        (stretch,) = difference(form, Fraction(1), epsilon)
        left = len(stretch.positive.lines) + len(stretch.negative.lines)
        return cls(stretch) if left < 2 * len(form.whole_line[0].sum.lines) else None


class Anchor:
    """The bounds for one density, ε′ and shift φ in [1 − REACH, 1), at the precision in force.

    ``at_one`` may be for another ε: with ``lift`` = ε − ε′, R for ε′ is R for ε plus that. (The ends of cells are for
    ε′.)
    """

    def __init__(self, at_one: AtOne, lift: Fraction, density: ConvexLog, c: Fraction, shift: Fraction) -> None:
        self._positive, self._negative = at_one.positive, at_one.negative
        self._lift, self._factor = ball(lift), ball(-lift).exp()
        self._density = density
        self._twice_c = ball(2 * c)
        self._shift, self._distance = ball(shift), ball(1 - shift)

    def _largest_share(self, convex: ConvexLog, left: End, right: End) -> arb:
        """Upper bound of convex / (e^ε f) over the cell; V of its ends is log of e^ε′ f."""
        u, u_next = convex.at(left.x)[0], convex.at(right.x)[0]
        gap = upper_gap(u, u_next, left.v, left.dv, right.v, right.dv, arb(right.x - left.x))
        return gap.exp() * self._factor

    def upper_ratio(self, left: End, right: End) -> arb:
        """Upper bound of R(x, φ) on the cell.

        Source: R(x, 1) ≤ log(1 + P₁/(e^ε f)); μ rises, so s(x+ψ) ≥ μ(x₁+φ) − 2c(x₂+1). Rounding: outward.
        """
        least_score = left.du + self._twice_c * (self._shift - arb(right.x) - 1)
        share = self._largest_share(self._positive, left, right)
        return self._lift - self._distance * least_score + share.log1p()

    def lower_ratio(self, left: End, right: End) -> arb | None:
        """Lower bound of R(x, φ) on the cell, None where N₁ is not certainly below e^ε f.

        Source: R(x, 1) ≥ log(1 − N₁/(e^ε f)); s(x+ψ) ≤ μ(x₂+1) − 2c(x₁+φ). Rounding: outward.
        """
        _, mean_slope = self._density.at(right.x + 1)
        largest_score = mean_slope - self._twice_c * (arb(left.x) + self._shift)
        share = self._largest_share(self._negative, left, right)
        return self._lift - self._distance * largest_score + (-share).log1p() if share < 1 else None
