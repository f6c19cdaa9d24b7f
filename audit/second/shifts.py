"""The second opinion's choice of shifts: where D may be largest, found anew. Nothing here is believed; D is enclosed
at each shift afterwards.

Three sources. *A scan* of D over a lattice of shifts, in float64, as fine as the density is narrow; its maxima are
polished by the sign of dD/dφ = Σ f(b + φ) − f(a + φ) over the intervals [a, b] of the event. *Valleys and peaks*: where
sup of f(x + φ)/f(x) barely exceeds e^ε, D is positive only in a window of shifts, narrower than any lattice, around one
that takes a local minimum of f to a local maximum. *Breaks*: shifts at which a break of f(x + φ) meets one of f(x).
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from flint import arb

from audit.second.density import ONE, ZERO, Density, Floats
from audit.second.signs import MOST_EXPONENT, Convex, ball, rational

COARSEST, FINEST = 512, 8192
"""Fewest and most shifts of the scan."""
FEWEST = 8
"""Fewest where the density is too wide for MOST_POINTS; of one that is wider still, the scan sees the middle."""
PER_SCALE = 96
MOST_POINTS, MOST_TERMS = 4_000_000, 1_000_000_000
"""Of the scan: points at which f is evaluated, and terms of all its sums together."""
SCAN_BITS = 64
NEAR, MOST_DIPS = 0.1, 64
WIDE = 32
"""Beyond this scale, in units of Δ, D has no detail in [0, Δ]: no scan."""
KEPT = 3
"""Local maxima, and pairs of a valley and a peak, that are kept."""
RELEVANT = 0.05
"""A local maximum below this share of the largest is left out."""
MOST_MEETINGS = 256

Slope = Callable[[Fraction], float]


@dataclass(frozen=True)
class Proposal:
    """A shift, the width within which a maximum of D is looked for, and the bits that this takes."""

    shift: Fraction
    width: Fraction
    bits: int


def is_made_of_steps(density: Density) -> bool:
    """Constant on each part: D is then linear in φ between the shifts of ``meetings``."""
    return all(term.c == 0 == term.m for part in density.right for term in part.terms)


def meetings(density: Density) -> tuple[list[Fraction], bool]:
    """The shifts in (0, 1) at which a break of f(x + φ) meets one of f(x), and whether those are all of them.

    Endless steps have the differences of their first ones. At most MOST_MEETINGS are given.
    """
    edges, found = sorted(set(density.edges())), set[Fraction]()
    for i, edge in enumerate(edges):
        last = bisect.bisect_left(edges, edge + 1, i)
        for other in edges[i + 1 : last]:
            found.add(other - edge)
            if len(found) > MOST_MEETINGS:
                return sorted(found)[:MOST_MEETINGS], False
    return sorted(found), True


def propose(density: Density, epsilon: Fraction, log_threshold: float) -> list[Proposal]:
    """Proposals from the scan and from valleys and peaks, the most promising first. ``log_threshold`` is that of D."""
    if density.scale > WIDE or is_made_of_steps(density):
        return []
    with np.errstate(all="ignore"):
        scan = _Scan(density, float(epsilon), log_threshold)
        return [*scan.maxima(), *scan.windows(epsilon, math.ceil(-log_threshold / math.log(2)))]


class _Scan:
    """log f on a fine lattice, and D over the shifts of a coarser one."""

    def __init__(self, density: Density, epsilon: float, log_threshold: float) -> None:
        self._density, self._epsilon = density, epsilon
        reach = min(2 + max(_reach(density, 30 - log_threshold), 0.0), MOST_POINTS / (2 * FEWEST))
        steps = min(max(math.ceil(PER_SCALE / density.scale), COARSEST), FINEST)
        self.steps = max(min(steps, int(MOST_POINTS / (2 * reach))), FEWEST)
        half = math.ceil(reach * self.steps)
        self.x: Floats = np.arange(-half, half + 1) / self.steps
        self.log = density.log_values(self.x)
        top = float(self.log.max())
        self._level = max(log_threshold, top - 600)

    def maxima(self) -> list[Proposal]:
        """The local maxima of D."""
        stride = max(1, int(self.steps * self._density.scale / 16), len(self.x) * self.steps // MOST_TERMS)
        there = np.exp(self.log - self._level)
        here = np.exp(np.minimum(self.log - self._level + self._epsilon, 709.0))[: -self.steps : stride]
        count = len(here)
        sums = np.array([np.maximum(there[j::stride][:count] - here, 0.0).sum() for j in range(self.steps + 1)])
        inner = sums[1:-1]
        tops = np.flatnonzero((inner >= sums[:-2]) & (inner >= sums[2:]) & (inner > RELEVANT * sums.max())) + 1
        best = sorted(tops.tolist(), key=lambda j: -sums[j])[:KEPT]
        return [Proposal(Fraction(j, self.steps), Fraction(1, 4 * self.steps), SCAN_BITS) for j in best]

    def windows(self, epsilon: Fraction, bits: int) -> list[Proposal]:
        """Shifts from a valley to a peak, at which f(x + φ)/f(x) is locally largest, where it exceeds e^ε.

        ``bits`` is how much precision the window may need.
        """
        with flint.ctx.workprec(96 + bits):
            turns = sorted(self._turns())
            pairs = []
            for number, (x, is_valley) in enumerate(turns):
                for y, also_valley in turns[number + 1 :] if is_valley else ():
                    if y - x >= 1:
                        break
                    if not also_valley:
                        rough = self._rough(y) - self._rough(x) - self._epsilon
                        pairs.append((rough, x, y))
            found: list[tuple[float, Proposal]] = []
            for rough, x, y in sorted(pairs, reverse=True)[: 4 * KEPT]:
                excess = self._log(y) - self._log(x) - ball(epsilon) if rough > -NEAR else arb(-1)
                if excess > 0:
                    width = ball(Fraction(self._density.scale)) * excess.min(arb(1)).sqrt() / 64
                    found.append((float(excess), Proposal(y - x, fraction_of(width), flint.ctx.prec)))
        kept: list[Proposal] = []
        for _, proposal in sorted(found, key=lambda pair: -pair[0]):
            # Valleys and peaks at the same distance, give or take a step, have one window.
            if len(kept) < KEPT and all(abs(proposal.shift - other.shift) * self.steps > 2 for other in kept):
                kept.append(proposal)
        return kept

    def _turns(self) -> Iterator[tuple[Fraction, bool]]:
        """Where log f turns, to the precision in force, and whether that is a minimum.

        Where the slope comes near 0 between points of the lattice, and turns back, it may cross 0 twice.
        """
        rise = np.diff(self.log)
        for i in np.flatnonzero(np.isfinite(rise[:-1]) & np.isfinite(rise[1:]) & (rise[:-1] * rise[1:] < 0)).tolist():
            if score := self._score(i, i + 2):
                yield bracketed_zero(score, self._at(i), self._at(i + 2), flint.ctx.prec // 2), rise[i] < 0
        for i in self._dips(rise):
            score, sign = self._score(i - 1, i + 2), 1 if rise[i] > 0 else -1
            if score:
                a, b = self._at(i - 1), self._at(i + 2)
                middle = _least(score, sign, a, b, flint.ctx.prec // 2)
                if sign * score(middle) < 0:
                    for ends in ((a, middle), (middle, b)):
                        yield bracketed_zero(score, *ends, flint.ctx.prec // 2), (ends[0] == a) == (sign < 0)

    def _dips(self, rise: Floats) -> list[int]:
        """Where the slope comes near 0, beside what it is a length of the density away, and does not cross it."""
        size, far = np.abs(rise), max(2, int(self._density.scale * self.steps))
        inner = size[far:-far]
        dips = (inner <= size[far - 1 : -far - 1]) & (inner <= size[far + 1 : len(size) - far + 1])
        dips &= inner < NEAR * np.minimum(size[: -2 * far], size[2 * far :])
        dips &= rise[far - 1 : -far - 1] * rise[far + 1 : len(size) - far + 1] > 0
        found = np.flatnonzero(dips & np.isfinite(inner)) + far
        return sorted(found.tolist(), key=lambda i: float(size[i]))[:MOST_DIPS]

    def _at(self, index: int) -> Fraction:
        return Fraction(index - len(self.x) // 2, self.steps)

    def _rough(self, x: Fraction) -> float:
        return float(np.interp(float(x), self.x, self.log))

    def _score(self, first: int, last: int) -> Callable[[Fraction], arb] | None:
        """The slope of log f, where these points of the lattice are in one part of the density."""
        a, b = self._at(first), self._at(last)
        for part in self._density.line:
            if part.terms and (part.start is None or part.start < a) and (part.stop is None or b < part.stop):
                convex, c = Convex(part.terms, ZERO), ball(part.terms[0].c)
                return lambda x: convex.at(rational(x)).slope - 2 * c * ball(x)
        return None

    def _log(self, x: Fraction) -> arb:
        """log f at a point that is no break."""
        part = next(part for part in self._density.line if part.stop is None or x < part.stop)
        return Convex(part.terms, ZERO).at(rational(x)).value - ball(part.terms[0].c) * ball(x) ** 2


def _least(function: Callable[[Fraction], arb], sign: int, a: Fraction, b: Fraction, bits: int) -> Fraction:
    """Where sign · function, which falls and then rises, is least, as far as the precision shows it, by thirds."""
    digits = Fraction(2) ** bits / (b - a)
    for _ in range(2 * bits):
        x, y = (Fraction(round((a + (b - a) * share) * digits)) / digits for share in (Fraction(3, 8), Fraction(5, 8)))
        if not a < x < y < b:
            break
        low, high = sign * function(x), sign * function(y)
        if low < high:
            b = y
        elif low > high:
            a = x
        else:
            return x
    return (a + b) / 2


def fraction_of(value: arb) -> Fraction:
    """The midpoint, to 32 bits; 0 where it is below 2^−MOST_EXPONENT. Raises ArithmeticError for one as large."""
    mantissa, exponent = (int(part) for part in value.mid().man_exp())
    extra = max(mantissa.bit_length() - 32, 0)
    exponent += extra
    if exponent > MOST_EXPONENT:
        raise ArithmeticError("a number too large to be written out")
    return Fraction(mantissa >> extra) * Fraction(2) ** exponent if exponent > -MOST_EXPONENT else ZERO


def bracketed_zero(function: Callable[[Fraction], arb], a: Fraction, b: Fraction, bits: int) -> Fraction:
    """A change of sign in [a, b], to (b − a)/2^bits, by false position with halved weights (Illinois).

    An end, where there is none.
    """
    width, goal = b - a, (b - a) / 2**bits
    at_a, at_b = function(a).mid(), function(b).mid()
    if (at_a > 0) == (at_b > 0):
        return a if abs(at_a) < abs(at_b) else b
    side, digits = 0, 1 / (width / 2 ** (bits + 8))
    for turn in range(4 * bits):
        if b - a <= goal:
            break
        share = at_a / (at_a - at_b)
        middle = a + (b - a) * (fraction_of(share) if turn % 8 != 7 and share.is_finite() else Fraction(1, 2))
        middle = Fraction(round(middle * digits)) / digits
        if not a < middle < b:
            middle = (a + b) / 2
        value = function(middle).mid()
        if value == 0:
            return middle
        if (value > 0) == (at_a > 0):
            a, at_a = middle, value
            at_b = at_b / 2 if side < 0 else at_b
            side = -1
        else:
            b, at_b = middle, value
            at_a = at_a / 2 if side > 0 else at_a
            side = 1
    return (a + b) / 2


def polish(slope: Slope, proposal: Proposal) -> Fraction:
    """Uphill from the proposal until dD/dφ changes its sign, and to its zero; at most to 0 or 1."""
    at, width = proposal.shift, proposal.width
    first = slope(at)
    if not first:
        return at
    direction = 1 if first > 0 else -1
    for _ in range(40):
        beyond = min(max(at + direction * width, ZERO), ONE)
        if beyond == at:
            return at
        if direction * slope(beyond) <= 0:
            ends = sorted((at, beyond))
            return bracketed_zero(lambda x: arb(slope(x)), ends[0], ends[1], 24)
        at, width = beyond, 2 * width
    return at


def _reach(density: Density, depth: float) -> float:
    """Beyond it every term is below e^−depth."""
    found = [0.0]
    for part in density.right:
        for term in part.terms:
            height, m = float(term.height) + depth, float(term.m)
            far = math.inf if part.stop is None else float(part.stop)
            if term.c:
                far = min(far, m + math.sqrt(max(height, 0.0) / float(term.c)))
            elif m < 0:
                far = min(far, max(height, 0.0) / -m)
            found.append(far)
    return max(found)
