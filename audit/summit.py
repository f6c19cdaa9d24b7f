"""D round an interior worst shift, for a range of shifts at once. (trusted)

For φ = φ₀ + d in a range Φ, let the line be cells on which R = log f(x+φ) − log f(x) − ε has one sign for all of Φ, and
gaps between cells of different sign, in each of which R_x ≠ 0 for all of Φ: one root ξ lies in each, at every φ. With
A the set where R(x, φ₀) > 0,

    D(φ) = ∫_A ( f(x+φ) − α f(x) ) dx + Σ ∫ |f(x+φ) − α f(x)| dx over the gaps, between ξ(φ₀) and ξ(φ).

The first part has at φ₀ the derivative D′(φ₀) = Σ ± f(ξ+φ₀), and the second derivative Σ ± f′(ξ(φ₀)+φ), + at the
upper ends of A. In a gap |ξ(φ) − ξ(φ₀)| ≤ |d| max|R_φ| / min|R_x|, |R| ≤ max|R_x| |x − ξ(φ)|, and |f(x+φ) − α f(x)|
is at most |R| times the larger of the two. So D(φ) ≤ D(φ₀) + D′(φ₀) d + B d²/2, and where B < 0

    sup over Φ of D ≤ D(φ₀) + D′(φ₀)² / (−2B).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from flint import arb, fmpq

from audit.cells import End, StretchBalls
from audit.divergence import around
from audit.exact import ball, dyadic, rational
from audit.frame import Span
from audit.points import ConvexLog

WIDER = 2.0
"""A gap is so many times wider than floats see its root move."""
LEAST_REACH = 2.0**-38
"""And reaches at least so far from the root, relatively."""
MOST_CELLS, MOST_HALVINGS, MOST_STEPS = 4000, 16, 12
"""When a proposal is given up: cells looked at, halvings of one, doublings of the way out to the tails."""


@dataclass(frozen=True)
class Summit:
    """D over Φ, times the mass of f, is at most D(φ₀) times the mass plus ``excess``."""

    excess: arb
    slope: float
    """D′(φ₀) and B in floats: φ₀ − slope/bend is nearer to the worst shift."""
    bend: float


@dataclass(frozen=True)
class Range:
    """Φ = [start, stop] and φ₀ in it."""

    start: Fraction
    at: Fraction
    stop: Fraction


class _Gap:
    """Bounds on U × Φ, U = (left, right)."""

    def __init__(self, left: fmpq, right: fmpq, span: Span, shifts: Range, epsilon: Fraction) -> None:
        self.left, self.right = left, right
        convex, twice_c = span.convex, ball(2 * span.c)
        low, high = left + rational(shifts.start), right + rational(shifts.stop)
        (sum_low, mean_low), (sum_left, mean_left) = convex.at(low), convex.at(left)
        # (log f)′ = μ − 2c x, and μ rises
        there = mean_low - twice_c * arb(high), convex.at(high)[1] - twice_c * arb(low)
        here = mean_left - twice_c * arb(right), convex.at(right)[1] - twice_c * arb(left)
        self.half_c = twice_c / 2
        self._least_slope, self._largest_slope = there[0] - here[1], there[1] - here[0]
        self.steepest = _largest(*there)
        rise = self.steepest * arb(high - low)
        log_low = sum_low - self.half_c * arb(low) * arb(low)
        log_left = sum_left - self.half_c * arb(left) * arb(left) + ball(epsilon)
        self.score = there[0].union(there[1])
        self.density = (log_low - rise).exp().union((log_low + rise).exp())
        self.highest = (log_low + rise).exp().max((log_left + _largest(*here) * arb(right - left)).exp())

    @property
    def is_monotone(self) -> bool:
        """Whether R_x ≠ 0 is proved on all of U × Φ."""
        return bool(self._least_slope > 0) or bool(self._largest_slope < 0)

    def upper_bend(self, sign: int) -> arb:
        """Upper bound of what the gap adds to B, ``sign`` that of f(ξ+φ₀) in D′; for a monotone gap."""
        rising = bool(self._least_slope > 0)
        least, largest = (
            (self._least_slope, self._largest_slope) if rising else (-self._largest_slope, -self._least_slope)
        )
        speed = self.steepest / least
        return sign * self.score * self.density + self.highest * largest * speed * speed


def _largest(low: arb, high: arb) -> arb:
    """Upper bound of |s| where low ≤ s ≤ high."""
    return high.max(-low)


def find_summit(
    span: Span, at: StretchBalls, shifts: Range, epsilon: Fraction, roots: Sequence[float], cuts: Sequence[fmpq]
) -> Summit | None:
    """A bound over Φ, or None where cells stay open, R_x may be 0 in a gap, or B is not certainly below 0.

    ``span`` is for Φ without a lift, ``at`` for φ₀. ``roots`` of R(x, φ₀), in order, and ``cuts`` are proposals.
    """
    if not shifts.start <= shifts.at <= shifts.stop or not all(map(math.isfinite, roots)):
        return None
    places = _propose_gaps(span, shifts, roots)
    signs = None if places is None else _signs_between(span, shifts, places, cuts)
    if places is None or signs is None:
        return None
    slope, bend = arb(0), arb(0)
    for number, (root, left, right) in enumerate(places):
        gap = _Gap(left, right, span, shifts, epsilon)
        if not gap.is_monotone:
            return None
        before, after = signs[number], signs[number + 1]
        if before != after:  # else R has that sign in the gap too
            bend += gap.upper_bend(before)
            slope += before * _density_at_root(span.convex, at, shifts, gap, root)
    if not bend < 0:
        return None
    return Summit(slope * slope / (-2 * bend), float(slope), float(bend))


def _propose_gaps(span: Span, shifts: Range, roots: Sequence[float]) -> list[tuple[float, fmpq, fmpq]] | None:
    """(root, left, right), in order and apart, as wide as the root moves; None where two would meet."""
    twice_c, far = float(2 * span.c), float(max(shifts.at - shifts.start, shifts.stop - shifts.at))
    move = rational(shifts.at)
    found: list[tuple[float, fmpq, fmpq]] = []
    for root in roots:
        x = dyadic(root)
        here = float(span.convex.at(x)[1]) - twice_c * root
        there = float(span.convex.at(x + move)[1]) - twice_c * (root + float(shifts.at))
        if there == here:
            return None
        reach = WIDER * abs(there / (there - here)) * far + LEAST_REACH * max(abs(root), 1.0)
        if not math.isfinite(reach):
            return None
        left, right = dyadic(root - reach), dyadic(root + reach)
        if found and left <= found[-1][2]:
            return None
        found.append((root, left, right))
    return found or None


def _signs_between(
    span: Span, shifts: Range, gaps: Sequence[tuple[float, fmpq, fmpq]], cuts: Sequence[fmpq]
) -> list[int] | None:
    """The sign of R left of the first gap, between each two, and right of the last, for all of Φ; None where it is
    not proved."""
    first, last = _outermost(span, shifts, gaps[0][1], gaps[-1][2])
    if first is None or last is None:
        return None
    starts, stops = [first, *(right for _, _, right in gaps)], [*(left for _, left, _ in gaps), last]
    budget = [MOST_CELLS]
    found: list[int] = []
    for start, stop in zip(starts, stops, strict=True):
        inside = cuts[bisect_right(cuts, start) : bisect_left(cuts, stop)]
        ends = [span.balls.at(x) for x in (start, *inside, stop)]
        signs = {_sign(span, left, right, MOST_HALVINGS, budget) for left, right in pairwise(ends)}
        if len(signs) != 1 or 0 in signs:
            return None
        found += signs
    return found if found[0] > 0 > found[-1] else None


def _sign(span: Span, left: End, right: End, halvings: int, budget: list[int]) -> int:
    """The sign of R on a cell for all of Φ, halving it where need be; 0 where that is not proved."""
    sign = span.sign(left, right)
    if sign or not halvings or budget[0] <= 0:
        return sign
    budget[0] -= 1
    middle = span.balls.at((left.x + right.x) / 2)
    sign = _sign(span, left, middle, halvings - 1, budget)
    return sign if sign and _sign(span, middle, right, halvings - 1, budget) == sign else 0


def _outermost(span: Span, shifts: Range, low: fmpq, high: fmpq) -> tuple[fmpq | None, fmpq | None]:
    """Points left and right of the gaps beyond which R_x < 0 for all of Φ: there R ≥ 0 to the left, if it is at the
    point, and R ≤ 0 to the right. None where there is none nearby.

    Source: R_x = μ(x+φ) − μ(x) − 2cφ, and μ rises from the least slope to the largest.
    """
    convex, stop = span.convex, rational(shifts.stop)
    least_fall = ball(2 * span.c * shifts.start)
    step = fmpq(1, 4)
    for _ in range(MOST_STEPS):
        if convex.at(low - step + stop)[1] - convex.least_slope < least_fall:
            break
        step *= 2
    else:
        return None, None
    first, step = low - step, fmpq(1, 4)
    for _ in range(MOST_STEPS):
        if convex.largest_slope - convex.at(high + step)[1] < least_fall:
            return first, high + step
        step *= 2
    return first, None


def _density_at_root(convex: ConvexLog, at: StretchBalls, shifts: Range, gap: _Gap, root: float) -> arb:
    """f(ξ + φ₀), not normalised: closely where floats have found ξ, else over the gap."""
    left, right = (at.at(x) for x in around(root))
    before, after = left.u - left.v, right.u - right.v
    if not (gap.left <= left.x and right.x <= gap.right and ((before < 0 < after) or (after < 0 < before))):
        return gap.density
    low = left.x + rational(shifts.at)
    width = gap.steepest * arb(right.x - left.x)
    log = convex.at(low)[0] - gap.half_c * arb(low) * arb(low)
    return (log - width).exp().union((log + width).exp())
