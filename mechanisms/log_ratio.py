"""Where one sum of exponentials exceeds another, in float64 and for many shifts at once. Proposes, never decides.

R(x) = log positive(x + φ) − log negative(x) − level, for two sums of mechanisms.lines. Work and memory go with the
lines that matter near each x, not with all of them.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mechanisms.components import Floats, Indices
from mechanisms.envelope import Envelope, chunks
from mechanisms.windows import Windows

NEAR = 1e-8
FLAT = 1e-5
"""Where |R| is below NEAR and changes by less than FLAT over one scale length, R is summed from paired differences:
it keeps its digits."""
CANCELLED = 5e-2
"""Where the mass of a difference is below this share of the positive mass, it is integrated from paired differences."""
MAX_PIECES = 200
"""Most pieces that an interval is divided into for its integral."""
CANDIDATES = 64
"""Among so many lines a partner is sought."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(14)


class LogRatio:
    """R for two sums with lines; ``shift`` is the φ near which the lines of the two are paired.

    ``windows`` say where R is looked at; ``nodes`` are those of the two envelopes that are inside, for all φ.
    """

    def __init__(self, over: Envelope, under: Envelope, shift: float = 0.0, windows: Windows | None = None) -> None:
        self.over, self.under, self.windows = over, under, windows or Windows()
        self.c = over.c
        self.same_c = over.c == under.c
        self.scale = over.scale if over.c else min(over.scale, under.scale)
        """The σ of a Gaussian sum, or the length over which the steepest exponential changes by e."""
        self.nodes = self.windows.kept(over.nodes, 1.0), self.windows.kept(under.nodes)
        self._shift = shift
        self._table = None
        if over.table is not None and under.table is not None and bool(over.c) == bool(under.c):
            self._table = over.table.joined(under.table)

    def _partners(self) -> tuple[Indices, Indices]:
        """For each line of the one sum the nearest of the other, where that is mutual, else −1."""
        over, under = self.over, self.under
        unit = np.sqrt(2 * self.c) if self.c else min(self.scale, 1.0)
        middle_p = over.middles - self._shift if self.c else over.middles
        there = _nearest(over.heights, middle_p, under.heights, under.middles, unit)
        back = _nearest(under.heights, under.middles, over.heights, middle_p, unit)
        return (
            np.where(back[there] == np.arange(len(there)), there, -1),
            np.where(there[back] == np.arange(len(back)), back, -1),
        )

    @cached_property
    def _pairs(self) -> tuple[Indices, Indices, Floats, Floats, Floats]:
        """(negative partner of each positive line, the other way round; rise, gap, centre of each negative line).

        Of a pair: log ratio of heights, distance of centres and their mean; for c = 0: log ratio at 0, distance of
        slopes, positive slope. Rise and gap are exact until rounded. No partner is −1, with zeros.
        """
        over, under = self.over.components, self.under.components
        of_positive, of_negative = self._partners()
        j = np.flatnonzero(of_negative >= 0)
        i = of_negative[j]
        rise, gap, centre = (np.zeros(len(of_negative)) for _ in range(3))
        gap[j] = over.middles.take(i).less(under.middles.take(j))
        rise[j] = over.heights.take(i).less(under.heights.take(j))
        middle_p, middle_n = over.middles.near[i], under.middles.near[j]
        centre[j] = (middle_p + middle_n) / 2 if self.c else middle_p
        return of_positive, of_negative, rise, gap, centre

    def __call__(self, x: Floats, shift: Floats, level: Floats) -> tuple[Floats, Floats]:
        """(R, R′) at x; shift and level broadcast against x."""
        ratio, slope = self.rough(x, shift)
        return self.levelled(ratio - level, slope, x, shift, level)

    def rough(self, x: Floats, shift: Floats) -> tuple[Floats, Floats]:
        """(R, R′) for the level 0, where |R| is not so small that it loses its digits."""
        over, under = self.over, self.under
        z, phi = x.ravel(), shift if shift.shape == x.shape else np.broadcast_to(shift, x.shape).ravel()
        y = z + phi
        if not self.same_c:
            log_p, score_p = over.log_and_score(y)
            log_n, score_n = under.log_and_score(z)
            return (log_p - log_n).reshape(x.shape), (score_p - score_n).reshape(x.shape)
        at_p, at_n = over.leads(y), under.leads(z)
        if self._table is not None:
            at = np.concatenate([at_p, at_n + len(over.leading)])
            log_sum, mean = self._table.sums(np.concatenate([y, z]), at)
            log_p, log_n, mean_p, mean_n = (half for both in (log_sum, mean) for half in both.reshape(2, -1))
        else:
            (log_p, mean_p), (log_n, mean_n) = over.sums(y, at_p), under.sums(z, at_n)
        lead_p, lead_n = over.leading[at_p], under.leading[at_n]
        middle_p, middle_n = over.middles[lead_p], under.middles[lead_n]
        ratio = (log_p - log_n) + (over.heights[lead_p] - under.heights[lead_n])
        slope = mean_p - mean_n
        if self.c:  # differences of exponents are lines in x: they keep their digits far out
            gap = middle_p - middle_n - phi
            ratio += 2 * self.c * gap * (z - (middle_p + middle_n - phi) / 2)
            slope += 2 * self.c * gap
        else:
            ratio += (middle_p - middle_n) * z + middle_p * phi
            slope += middle_p - middle_n
        return ratio.reshape(x.shape), slope.reshape(x.shape)

    def levelled(
        self, ratio: Floats, slope: Floats, x: Floats, shift: Floats, level: Floats
    ) -> tuple[Floats, Floats]:
        """The same (R, R′), summed anew where R is so small that it lost its digits."""
        if self.same_c:
            near = (np.abs(ratio) < NEAR) & (np.abs(slope) * self.scale < FLAT)
            if near.any():
                shift, level = (np.broadcast_to(value, x.shape)[near] for value in (shift, level))
                ratio[near], slope[near] = self._near(x[near], shift, level)
        return ratio, slope

    def _near(self, x: Floats, shift: Floats, level: Floats) -> tuple[Floats, Floats]:
        excess, rise, negative, fall, _ = self.excess(x, shift, level)
        share = excess / negative
        return np.log1p(share), (rise - share * fall) / (negative + excess)

    def excess(self, x: Floats, shift: Floats, level: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """(P − N, (P − N)′, N, N′, pivot), P and N the two sums divided by e^pivot; all of the shape of x, (points,).

        Each pair of lines gives N_j expm1(exponent of P_i − exponent of N_j): small differences keep their digits.
        """
        found = np.empty((5, len(x)))
        for part in chunks(len(x), max(self.over.width, self.under.width)):
            self.over.check()
            found[:, part] = self._excess(x[part], shift[part], level[part])
        excess, rise, negative, fall, pivot = found
        return excess, rise, negative, fall, pivot

    def _excess(self, x: Floats, shift: Floats, level: Floats) -> tuple[Floats, ...]:
        """The negative lines that matter at each x, with their partners; then positive ones whose partners do not."""
        over, under, c = self.over, self.under, self.c
        of_positive, of_negative, rise, gap, centre = self._pairs
        first = under.first(x)
        n_at = first + np.arange(under.width)[:, None]
        log_n, slope_n = self._line(under, n_at, x)
        log_n = log_n + level
        pivot = log_n.max(axis=0)
        n = np.exp(log_n - pivot)
        partner = of_negative[n_at]
        log_p, slope_p = self._line(over, partner, x + shift)
        p = np.where(partner >= 0, np.exp(log_p - pivot), 0.0)
        if c:
            slope_gap = 2 * c * (gap[n_at] - shift)
            delta = rise[n_at] - level + slope_gap * (x - (centre[n_at] - shift / 2))
        else:
            slope_gap = gap[n_at]
            delta = rise[n_at] - level + centre[n_at] * shift + slope_gap * x
        small = (np.abs(delta) < 1) & (partner >= 0)
        delta = np.where(small, delta, 0)
        fall = n * slope_n
        terms = np.where(small, n * np.expm1(delta), p - n)
        paired = slope_n * terms + n * np.exp(delta) * slope_gap
        rises = np.where(small, paired, p * slope_p - fall)
        excess, increase = terms.sum(axis=0), rises.sum(axis=0)
        p_at = over.first(x + shift) + np.arange(over.width)[:, None]
        partner = of_positive[p_at]
        alone = (partner < first) | (partner >= first + under.width)
        if alone.any():
            log_p, slope_p = self._line(over, p_at, x + shift)
            p = np.where(alone, np.exp(log_p - pivot), 0.0)
            excess, increase = excess + p.sum(axis=0), increase + (p * slope_p).sum(axis=0)
        return excess, increase, n.sum(axis=0), fall.sum(axis=0), pivot

    def _line(self, envelope: Envelope, at: Indices, x: Floats) -> tuple[Floats, Floats]:
        """Exponent of the lines ``at``, in order of slope, at x, and its slope."""
        height, middle = envelope.heights[at], envelope.middles[at]
        if not self.c:
            return height + middle * x, middle
        distance = x - middle
        return height - self.c * (distance * distance), -2 * self.c * distance

    def far(self, shift: Floats, level: Floats, right: bool) -> NDArray[np.bool_]:
        """Whether R > 0 as x → −∞ (or +∞), for each shift."""
        c = self.c
        if not self.same_c:
            return np.full(shift.shape, self.c < self.under.c)
        (middle_p, height_p), (middle_n, height_n) = (
            (envelope.middles[-1 if right else 0], envelope.heights[-1 if right else 0])
            for envelope in (self.over, self.under)
        )
        # the steepest line wins; exponents of the two differ by a line in x
        slope = (middle_p - middle_n) - shift if c else middle_p - middle_n + 0 * shift
        tie = height_p - height_n - level + (0 if c else middle_p * shift)
        steeper: NDArray[np.bool_] = np.where(slope == 0, tie > 0, (slope > 0) == right)
        return steeper

    def integral(self, a: Floats, b: Floats, shift: Floats, level: Floats, otherwise: Floats) -> Floats:
        """∫ positive(x + φ) − e^level negative(x) over [a, b] where the two nearly cancel, by Gauss's quadrature.

        All of shape (intervals,). ``otherwise`` stands where an interval is too long, or c differs.
        """
        with np.errstate(all="ignore"):
            steepness = np.array([np.abs(self.over.log_and_score(end + shift)[1]) for end in (a, b)])
            rate = np.where(np.isfinite(steepness), steepness, 0.0).max(axis=0) + 1 / self.scale
            if self.c:  # beyond all centres the integrand falls like a Gaussian, and faster than at the end
                low = min(self.over.middles[0], self.under.middles[0]) - shift
                high = max(self.over.middles[-1], self.under.middles[-1])
                reach = np.minimum(50 / rate, 10 * self.scale)
                a = np.where(np.isneginf(a), np.where(b < low, b - reach, low - 10 * self.scale), a)
                b = np.where(np.isposinf(b), np.where(a > high, a + reach, high + 10 * self.scale), b)
            pieces = np.ceil((b - a) * rate / 3)
        result = otherwise.copy()
        chosen = np.flatnonzero(pieces <= MAX_PIECES) if self.same_c else np.array([], dtype=np.intp)
        counts = np.maximum(pieces[chosen].astype(np.intp), 1)
        width = (b - a)[chosen] / counts
        total = np.cumsum(counts)
        owner = np.repeat(np.arange(len(chosen)), counts)
        index = np.arange(len(owner)) - (total - counts)[owner]
        parts = np.empty(len(owner))
        for part in chunks(len(owner), len(_NODES)):
            which = owner[part]
            row = chosen[which]
            x = (a[row] + width[which] * index[part])[:, None] + width[which, None] * (_NODES + 1) / 2
            spread = [np.repeat(value[row], len(_NODES)) for value in (shift, level)]
            excess, _, _, _, pivot = self.excess(x.ravel(), *spread)
            parts[part] = width[which] / 2 * ((excess * np.exp(pivot)).reshape(x.shape) @ _WEIGHTS)
        result[chosen] = np.bincount(owner, parts, minlength=len(chosen))
        return result


def _nearest(heights: Floats, middles: Floats, heights_there: Floats, middles_there: Floats, unit: float) -> Indices:
    """For each line the nearest among the CANDIDATES of the other sum whose middles are closest; both in order."""
    width = min(CANDIDATES, len(middles_there))
    first = np.clip(np.searchsorted(middles_there, middles) - width // 2, 0, len(middles_there) - width)
    there = first[:, None] + np.arange(width)
    distance = np.abs(middles[:, None] - middles_there[there]) * unit
    distance += np.abs(heights[:, None] - heights_there[there])
    found: Indices = first + distance.argmin(axis=1)
    return found
