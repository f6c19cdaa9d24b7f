"""Densities made of steps: D at a shift is an exact sum of exponentials, and finitely many shifts decide. (trusted)

Nothing is smeared at the jumps and nothing is rounded before the last comparison, so that a claim which holds with
equality is verified. Everything is in units of Δ.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Protocol

from flint import arb, fmpq

from audit.exact import ball, fraction, rational
from audit.masses import Interval
from audit.shifts import START_BITS, Peak, Supremum
from audit.single import NeedBits
from audit.sums import plus, quotient, scaled, sign_of, times
from audit.verdict import Enclosure, Expired, Limits
from mechanisms.families import Mechanism, Staircase
from mechanisms.form import Form
from mechanisms.lines import ZERO, Terms, merge_terms

ONE = Fraction(1)
MOST_WORK = 2_000_000
"""Shifts times edges: of more, the density is left to the search that serves every form."""


@dataclass(frozen=True)
class Excess:
    """∫ max(f(x+φ) − e^ε f(x), 0) dx at one shift, exactly, and the set on which the integrand is positive."""

    terms: Terms
    event: tuple[Interval, ...]


class ExactDivergence(Protocol):
    """D(φ) = at(φ).terms / mass, exactly; its maximum over [0, 1] is attained at one of the ``shifts``."""

    @property
    def mass(self) -> Terms:
        """∫ f, up to the same factor as the excess."""

    @property
    def shifts(self) -> Sequence[Fraction]:
        """The shifts that decide."""

    def at(self, shift: Fraction, limits: Limits) -> Excess:
        """The excess at any shift in [0, 1]; the event only at those that decide."""


def exact_divergence(mechanism: Mechanism, epsilon: Fraction) -> ExactDivergence | None:
    """The exact divergence of a mechanism made of steps; None for any other, or one of too many edges."""
    if isinstance(mechanism, Staircase):
        return StaircaseDivergence(mechanism.gamma, mechanism.epsilon, epsilon)
    return StepDivergence.of(mechanism.unit_form, epsilon)


def meetings(edges: Sequence[Fraction], most: int) -> list[Fraction] | None:
    """0, 1 and the shifts between at which an edge of f(x+φ) meets one of f(x), in order; None for more than most."""
    found: set[Fraction] = {ZERO, ONE}
    pairs = 0
    for i, edge in enumerate(edges):
        near = edges[i + 1 : bisect_left(edges, edge + 1, i + 1)]
        pairs += len(near)
        if pairs > MOST_WORK:
            return None
        found.update(other - edge for other in near)
        if len(found) > most:
            return None
    return sorted(found)


class StepDivergence:
    """A density of finitely many steps.

    Between two neighbouring shifts at which edges of f(x+φ) and f(x) meet, the line is cut into segments on which
    both are constant and whose lengths are linear in φ: D is linear there, and largest at an end.
    """

    def __init__(self, form: Form, epsilon: Fraction, shifts: Sequence[Fraction]) -> None:
        self.shifts = shifts
        self._epsilon = epsilon
        numbers: dict[Terms, int] = {}
        pieces = form.whole_line
        self._edges = [piece.stop for piece in pieces if piece.stop is not None]
        heights = [merge_terms(term for line in piece.sum.lines for term in line.terms) for piece in pieces]
        self._at = [numbers.setdefault(height, len(numbers)) for height in heights]
        self._heights = list(numbers)
        inside = zip(pairwise(self._edges), heights[1:-1], strict=True)
        self.mass: Terms = plus(*(scaled(height, stop - start) for (start, stop), height in inside))
        self._gains: dict[tuple[int, int], Terms | None] = {}

    @classmethod
    def of(cls, form: Form, epsilon: Fraction) -> StepDivergence | None:
        """None where a piece is not a step, or the edges meet at too many shifts."""
        if any(piece.sum.c or any(line.slope for line in piece.sum.lines) for piece in form.pieces):
            return None
        edges = [piece.stop for piece in form.whole_line if piece.stop is not None]
        shifts = meetings(edges, MOST_WORK // len(edges))
        return None if shifts is None else cls(form, epsilon, shifts)

    def _gain(self, there: int, here: int, limits: Limits) -> Terms | None:
        """f(x+φ) − e^ε f(x) where these are the heights; None where that is not positive."""
        pair = there, here
        if pair not in self._gains:
            gain = plus(self._heights[there], scaled(self._heights[here], -ONE, self._epsilon))
            self._gains[pair] = gain if sign_of(gain, limits) > 0 else None
        return self._gains[pair]

    def at(self, shift: Fraction, limits: Limits) -> Excess:
        """See ExactDivergence: the segments between the edges of f(x+φ) and f(x), of their common heights."""
        lengths: dict[tuple[int, int], Fraction] = {}
        event: list[Interval] = []
        moved, fixed = [edge - shift for edge in self._edges], self._edges
        i = j = 0
        start: Fraction | None = None
        while i < len(moved) or j < len(fixed):
            stop = min(edges[k] for edges, k in ((moved, i), (fixed, j)) if k < len(edges))
            if start is not None and self._gain(self._at[i], self._at[j], limits) is not None:
                pair = self._at[i], self._at[j]
                lengths[pair] = lengths.get(pair, ZERO) + (stop - start)
                event.append((rational(start), rational(stop)))
            i += i < len(moved) and moved[i] == stop
            j += j < len(fixed) and fixed[j] == stop
            start = stop
        parts = [scaled(self._gain(*pair, limits) or (), length) for pair, length in lengths.items()]
        return Excess(plus(*parts), tuple(event))


class StaircaseDivergence:
    """The staircase of infinitely many steps: height q^i on step i, q = e^(−its own ε), first edge γ.

    A half-open interval of length at most 1 holds at most one of the edges γ, γ + 1, …, so a shift changes the step by
    at most one and no ratio exceeds 1/q. The integrand is positive, where e^ε q < 1, exactly for x < 0 whose step is
    one above that of x + φ: a length φ at each edge γ + i with i ≥ 1, and min(φ, 2γ) at the edge γ. So, times 1 − q,

        D(φ) · 2 (γ (1 − q) + q) = max(1 − e^ε q, 0) · (min(φ, 2γ) (1 − q) + φ q),

    the tail summed as a geometric series; that does not fall as φ rises, so that φ = 1 alone decides. There the event
    is the half-line up to −max(γ, 1 − γ).
    """

    def __init__(self, gamma: Fraction, own: Fraction, epsilon: Fraction) -> None:
        self.shifts = (ONE,)
        self._gamma, self._own, self._epsilon = gamma, own, epsilon
        self.mass: Terms = self._weighted(2 * gamma, Fraction(2))

    def _weighted(self, first: Fraction, others: Fraction) -> Terms:
        """first · (1 − q) + others · q."""
        return merge_terms([(first, ZERO), (others - first, -self._own)])

    def at(self, shift: Fraction, limits: Limits) -> Excess:
        """See ExactDivergence."""
        if self._own <= self._epsilon:
            return Excess((), ())
        gain = merge_terms([(ONE, ZERO), (-ONE, self._epsilon - self._own)])
        event = ((None, rational(-max(self._gamma, 1 - self._gamma))),) if shift == 1 else ()
        return Excess(times(gain, self._weighted(min(shift, 2 * self._gamma), shift)), event)


class StaircaseMasses:
    """Probabilities of intervals under the staircase, at the precision in force. Rounding: outward."""

    def __init__(self, mechanism: Staircase) -> None:
        self._gamma, self._own = mechanism.gamma, mechanism.epsilon
        self._rest = -ball(-self._own).expm1()  # 1 − q
        self._mass = 2 * (ball(self._gamma) + (1 - self._rest) / self._rest)

    def _beyond(self, x: Fraction) -> arb:
        """∫ of the heights over (x, ∞), x ≥ 0."""
        if x < self._gamma:
            return ball(self._gamma - x) + (1 - self._rest) / self._rest
        step = (x - self._gamma) // 1
        left = ball(self._gamma + step + 1 - x)
        return ball(-self._own * (step + 1)).exp() * (left + (1 - self._rest) / self._rest)

    def _tail(self, x: fmpq | None) -> arb:
        if x is None:
            return arb(0)
        at = fraction(x)
        return self._beyond(at) if at >= 0 else self._mass - self._beyond(-at)

    def probability(self, interval: Interval, floor: float = -math.inf) -> arb:
        """P(a < X < b); ``floor``, which lets Density leave out what is small, changes nothing here."""
        start, stop = interval
        if start is None:
            return self._mass / self._mass if stop is None else self._tail(-stop) / self._mass
        return (self._tail(start) - self._tail(stop)) / self._mass


def supremum(
    exact: ExactDivergence,
    threshold: Fraction,
    limits: Limits,
    progress: Callable[[float], None] | None = None,
) -> Supremum:
    """sup D over [0, 1] against the threshold, exactly: equality is no excess."""
    peak: Peak | None = None
    top, exceeds, stopped = ZERO, False, ""
    done = 0
    try:
        for shift in exact.shifts:
            limits.check()
            excess = exact.at(shift, limits)
            above = sign_of(plus(excess.terms, scaled(exact.mass, -threshold)), limits)
            ends = Enclosure(threshold, threshold)
            if above != 0:
                ends = quotient(excess.terms, exact.mass, threshold, limits)
            exceeds = exceeds or above > 0
            top = max(top, ends.upper)
            if peak is None or ends.lower > peak.lower:
                peak = Peak(shift, None, ends.lower, excess.event)
            done += 1
            if progress is not None:
                progress(done / len(exact.shifts))
    except NeedBits:
        stopped = f"{limits.bits} bits do not resolve it; raise the limit on bits"
    except Expired:
        stopped = "the time limit ended the search; raise it"
    return Supremum(peak, None if stopped else top, exceeds, START_BITS, done, stopped)
