"""Where one sum of exponentials exceeds another, in float64 and for many shifts at once. Proposes, never decides.

R(x) = log positive(x + φ) − log negative(x) − level, for two sums of mechanisms.lines. The unit of work is a row: one
shift φ, one level, one stretch of x; everything is vectorised over rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.arithmetic import FLOAT
from mechanisms.envelope import Envelope, Floats
from mechanisms.lines import LineSum

NEAR = 1e-8
FLAT = 1e-5
"""Where |R| is below NEAR and changes by less than FLAT over one scale length, R is summed from paired differences:
it keeps its digits."""
CANCELLED = 5e-2
"""Where the mass of a difference is below this share of the positive mass, it is integrated from paired differences."""
MAX_SPLITS = 12
NEARLY = 0.8
"""R is looked at between two nodes where a cubic through them comes nearer to 0 than this share of the nearer end."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(14)


class LogRatio:
    """R for two sums with lines; ``shift`` is the φ near which the lines of the two are paired."""

    def __init__(self, positive: LineSum, negative: LineSum, shift: float = 0.0) -> None:
        self.positive, self.negative = positive, negative
        self.over, self.under = Envelope(positive), Envelope(negative)
        height_p, middle_p, c_p = positive.parameters(FLOAT)
        height_n, middle_n, _ = negative.parameters(FLOAT)
        self.c = c_p
        self.same_c = positive.c == negative.c
        self.pairs: tuple[Any, Any] | None = None
        self._middles = middle_p, middle_n
        steepest = max(float(np.abs(middle_p).max()), float(np.abs(middle_n).max()))
        self.scale = float(1 / np.sqrt(2 * self.c)) if self.c else 1 / steepest if steepest else np.inf
        """The σ of a Gaussian sum, or the length over which the steepest exponential changes by e."""
        if self.same_c:
            gap = (middle_p - shift if c_p else middle_p)[:, None] - middle_n[None, :]
            apart = np.abs(gap) * (np.sqrt(2 * c_p) if c_p else min(self.scale, 1.0))
            self._pair(np.abs(height_p[:, None] - height_n[None, :]) + apart)
        self._ends = _end(positive), _end(negative)

    def _pair(self, distance: Floats) -> None:
        """Each line of the one sum with the nearest of the other, where that is mutual."""
        j = distance.argmin(axis=1)
        i = np.flatnonzero(distance.argmin(axis=0)[j] == np.arange(len(j)))
        self.pairs = i, j[i]

    @cached_property
    def _paired(self) -> tuple[Floats, Floats, Floats, Any, Any]:
        """(log ratio of heights, distance of centres, their mean) of each pair, exact until rounded; unpaired lines.

        For c = 0: (log ratio at 0, distance of slopes, positive slope).
        """
        assert self.pairs is not None
        i, j = self.pairs
        twice_c = 2 * self.positive.c or Fraction(1)
        lines_p, lines_n = self.positive.lines, self.negative.lines
        gap = [(lines_p[a].slope - lines_n[b].slope) / twice_c for a, b in zip(i, j, strict=True)]
        (height_p, middle_p, _), (height_n, middle_n, _) = (s.parameters(FLOAT) for s in (self.positive, self.negative))
        centre = (middle_p[i] + middle_n[j]) / 2 if self.c else middle_p[i]
        free = [np.setdiff1d(np.arange(len(a)), b) for a, b in ((middle_p, i), (middle_n, j))]
        return height_p[i] - height_n[j], FLOAT.numbers(gap), centre, *free

    def __call__(self, x: Floats, shift: Floats, level: Floats) -> tuple[Floats, Floats]:
        """(R, R′) at x; shift and level broadcast against x."""
        if not self.same_c:
            log_p, score_p = self.over.log_and_score(x + shift)
            log_n, score_n = self.under.log_and_score(x)
            return log_p - log_n - level, score_p - score_n
        log_p, offset_p, height_p, middle_p = self.over.relative(x + shift)
        log_n, offset_n, height_n, middle_n = self.under.relative(x)
        ratio = log_p - log_n + (height_p - height_n - level)
        if self.c:
            gap = middle_p - middle_n - shift
            ratio += 2 * self.c * gap * (x - (middle_p + middle_n - shift) / 2)
            slope = 2 * self.c * (gap + offset_p - offset_n)
        else:
            ratio += (middle_p - middle_n) * x + middle_p * shift
            slope = middle_p - middle_n + offset_p - offset_n
        if self.pairs is not None:
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
        """(P − N, (P − N)′, N, N′, pivot), P and N the two sums divided by e^pivot; x is one-dimensional.

        Each pair of lines gives N_j expm1(exponent of P_i − exponent of N_j): small differences keep their digits.
        """
        assert self.pairs is not None
        i, j = self.pairs
        c = self.c
        rise, gap, centre, free_p, free_n = self._paired
        if c:
            slope_gap = 2 * c * (gap[:, None] - shift)
            delta = rise[:, None] - level + slope_gap * (x - (centre[:, None] - shift / 2))
        else:
            slope_gap = gap[:, None] + 0 * x
            delta = rise[:, None] - level + centre[:, None] * shift + slope_gap * x
        log_n = self.negative.exponents(x, FLOAT) + level
        log_p = self.positive.exponents(x + shift, FLOAT)
        pivot = log_n.max(axis=0)
        n, p = np.exp(log_n - pivot), np.exp(log_p - pivot)
        middle_p, middle_n = self._middles
        slope_n = -2 * c * (x - middle_n[:, None]) if c else middle_n[:, None] + 0 * x
        slope_p = -2 * c * (x + shift - middle_p[:, None]) if c else middle_p[:, None] + 0 * x
        small = np.abs(delta) < 1
        delta = np.where(small, delta, 0)
        terms = np.where(small, n[j] * np.expm1(delta), p[i] - n[j])
        paired = slope_n[j] * terms + n[j] * np.exp(delta) * slope_gap
        rises = np.where(small, paired, p[i] * slope_p[i] - n[j] * slope_n[j])
        fall = n * slope_n
        excess = terms.sum(axis=0) + p[free_p].sum(axis=0) - n[free_n].sum(axis=0)
        increase = rises.sum(axis=0) + (p * slope_p)[free_p].sum(axis=0) - fall[free_n].sum(axis=0)
        return excess, increase, n.sum(axis=0), fall.sum(axis=0), pivot

    def far(self, shift: Floats, level: Floats, right: bool) -> NDArray[np.bool_]:
        """Whether R > 0 as x → −∞ (or +∞), for each shift."""
        c = self.c
        if not self.same_c:
            return np.full(shift.shape, self.positive.c < self.negative.c)
        (low_p, high_p), (low_n, high_n) = self._ends
        (middle_p, height_p), (middle_n, height_n) = (high_p, high_n) if right else (low_p, low_n)
        # the steepest line wins; exponents of the two differ by a line in x
        slope = (middle_p - middle_n) - shift if c else middle_p - middle_n + 0 * shift
        tie = height_p - height_n - level + (0 if c else middle_p * shift)
        steeper: NDArray[np.bool_] = np.where(slope == 0, tie > 0, (slope > 0) == right)
        return steeper

    def integral(self, a: Floats, b: Floats, shift: Floats, level: Floats, otherwise: Floats) -> Floats:
        """∫ positive(x + φ) − e^level negative(x) over [a, b] where the two nearly cancel, by Gauss's quadrature.

        All of shape (intervals,). ``otherwise`` stands where an interval is too long, or the lines are not paired.
        """
        with np.errstate(all="ignore"):
            steepness = np.array([np.abs(self.over.log_and_score(end + shift)[1]) for end in (a, b)])
            rate = np.where(np.isfinite(steepness), steepness, 0.0).max(axis=0) + 1 / self.scale
            if self.c:  # beyond all centres the integrand falls like a Gaussian, and faster than at the end
                middles = np.concatenate([self._middles[0], self._middles[1]])
                low, high = middles.min() - shift, middles.max()
                reach = np.minimum(50 / rate, 10 * self.scale)
                a = np.where(np.isneginf(a), np.where(b < low, b - reach, low - 10 * self.scale), a)
                b = np.where(np.isposinf(b), np.where(a > high, a + reach, high + 10 * self.scale), b)
            pieces = np.ceil((b - a) * rate / 3)
            chosen = np.flatnonzero(pieces <= 200) if self.pairs is not None else np.array([], dtype=np.intp)
        result = otherwise.copy()
        if not len(chosen):
            return result
        counts = np.maximum(pieces[chosen].astype(np.intp), 1)
        owner = np.repeat(chosen, counts)
        index = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        width = ((b - a)[chosen] / counts).repeat(counts)
        x = (a[owner] + width * index)[:, None] + width[:, None] * (_NODES + 1) / 2
        weights = width[:, None] / 2 * _WEIGHTS
        spread = [np.repeat(value[owner], len(_NODES)) for value in (shift, level)]
        excess, _, _, _, pivot = self.excess(x.ravel(), *spread)
        parts = (excess * np.exp(pivot)).reshape(x.shape) * weights
        result[chosen] = np.bincount(owner, parts.sum(axis=1), minlength=len(a))[chosen]
        return result


def _end(lines: LineSum) -> tuple[tuple[float, float], tuple[float, float]]:
    """(middle, height) of the lines of least and of largest slope."""
    heights, middles, _ = lines.parameters(FLOAT)
    order = np.lexsort((heights, middles))
    return tuple((float(middles[k]), float(heights[k])) for k in (order[0], order[-1]))  # type: ignore[return-value]


@dataclass(frozen=True)
class Rows:
    """The stretch (start, stop) of each row, ±∞ allowed, its shift and its level; all of shape (rows,)."""

    start: Floats
    stop: Floats
    shift: Floats
    level: Floats


def positive_runs(ratio: LogRatio, rows: Rows, slack: float = 0.0) -> tuple[NDArray[np.intp], Floats, Floats]:
    """(row, a, b): the maximal intervals with R > 0 inside each row's stretch, in order; of shape (intervals,).

    A sign change is refined until Newton's step is at most ``slack`` scale lengths, or a few units in the last place.
    """
    count = len(rows.shift)
    parts = [
        ratio.over.nodes - rows.shift[:, None],
        np.broadcast_to(ratio.under.nodes, (count, len(ratio.under.nodes))),
        *(np.where(np.isfinite(end), end, 0.0)[:, None] for end in (rows.start, rows.stop)),
    ]
    nodes = np.concatenate(parts, axis=1)
    nodes = np.sort(np.clip(nodes, rows.start[:, None], rows.stop[:, None]), axis=1)
    value, slope = ratio(nodes, rows.shift[:, None], rows.level[:, None])
    found = _Changes(ratio, rows, slack * ratio.scale if slack else 0.0)
    row, at = np.nonzero(nodes[:, :-1] < nodes[:, 1:])
    found.look_between(row, *(np.stack([a[row, at + k] for a in (nodes, value, slope)]) for k in (0, 1)))
    first = found.look_outside(nodes[:, 0], value[:, 0], slope[:, 0], rows.start, right=False)
    last = found.look_outside(nodes[:, -1], value[:, -1], slope[:, -1], rows.stop, right=True)
    every = np.arange(count)
    found.add_ends(every[first], rows.start[first], up=True)
    found.add_ends(every[last], rows.stop[last], up=False)
    return found.runs()


class _Changes:
    """Brackets of sign changes, collected, then refined all at once."""

    def __init__(self, ratio: LogRatio, rows: Rows, slack: float) -> None:
        self.ratio, self.rows, self.slack = ratio, rows, slack
        self._parts: list[tuple[Any, Any, Any, Any]] = []
        self._ends: list[tuple[Any, Any, Any]] = []

    def add(self, row: Any, low: Any, high: Any, up: Any) -> None:
        """R changes sign between low and high, to above 0 where ``up``."""
        if len(row):
            self._parts.append((row, low, high, up))

    def add_ends(self, row: Any, x: Any, up: bool) -> None:
        """R > 0 next to the end x of the stretch."""
        self._ends.append((row, x, np.full(len(row), up)))

    def _at(self, row: Any, x: Floats) -> tuple[Floats, Floats]:
        return self.ratio(x, self.rows.shift[row], self.rows.level[row])

    def look_between(self, row: NDArray[np.intp], low: Floats, high: Floats) -> None:
        """The changes between neighbouring nodes, given as (x, R, R′) of shape (3, intervals).

        Two changes between neighbours of one sign are looked for where R may come near to 0: its turning point is
        tried. So it is, once, between neighbours of opposite signs: three changes make one.
        """
        x, chosen = _turning(low, high, opposite=True)
        row, low, high = self._split(row, low, high, x, chosen)
        change = (low[1] > 0) != (high[1] > 0)
        self.add(row[change], low[0][change], high[0][change], high[1][change] > 0)
        row, low, high = row[~change], low[:, ~change], high[:, ~change]
        for _ in range(MAX_SPLITS):
            x, chosen = _turning(low, high)
            if not chosen.any():
                return
            row, low, high = row[chosen], low[:, chosen], high[:, chosen]
            row, low, high = self._split(row, low, high, x[chosen], np.ones(len(row), dtype=bool))
            change = (low[1] > 0) != (high[1] > 0)
            self.add(row[change], low[0][change], high[0][change], high[1][change] > 0)
            row, low, high = row[~change], low[:, ~change], high[:, ~change]

    def _split(
        self, row: NDArray[np.intp], low: Floats, high: Floats, x: Floats, chosen: NDArray[np.bool_]
    ) -> tuple[NDArray[np.intp], Floats, Floats]:
        """The intervals, those chosen divided at x."""
        if not chosen.any():
            return row, low, high
        middle = np.stack([x[chosen], *self._at(row[chosen], x[chosen])])
        new_low, new_high = np.concatenate([low, middle], axis=1), np.concatenate([high, high[:, chosen]], axis=1)
        new_high[:, : len(row)][:, chosen] = middle
        return np.concatenate([row, row[chosen]]), new_low, new_high

    def look_outside(self, x: Floats, value: Floats, slope: Floats, end: Floats, right: bool) -> NDArray[np.bool_]:
        """Whether R > 0 at the end of each row; where that differs from the outermost node, the change is found.

        Beyond that node R is all but linear.
        """
        near = value > 0
        infinite = np.isinf(end)
        result: NDArray[np.bool_] = np.where(infinite, self.ratio.far(self.rows.shift, self.rows.level, right), near)
        row = np.flatnonzero(result != near)
        if not len(row):
            return result
        step = 1.5 * np.abs(value[row] / slope[row]) + np.spacing(np.abs(x[row]))
        step = np.where(np.isfinite(step), step, 1 + np.abs(x[row]))
        direction = 1.0 if right else -1.0
        inner = x[row]
        for _ in range(200):
            outer = x[row] + direction * step
            r, _ = self._at(row, outer)
            there = (r > 0) == result[row]
            lost = ~np.isfinite(r)
            done = there & ~lost
            low, high = (inner, outer) if right else (outer, inner)
            # to the left R is `result` at `low`, to the right at `high`
            up = result[row] if right else ~result[row]
            self.add(row[done], low[done], high[done], up[done])
            result[row[lost]] = near[row[lost]]
            more = ~(there | lost)
            if not more.any():
                break
            row, inner, step = row[more], outer[more], 2 * step[more]
        else:
            result[row] = near[row]
        return result

    def _refined(self) -> tuple[Any, Any, Any]:
        """(row, x, up) of every change: safeguarded Newton to a few units in the last place."""
        row, low, high, up = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        roots = (low + high) / 2
        todo = np.arange(len(row))
        x = roots.copy()
        for _ in range(100):
            r, s = self._at(row[todo], x)
            right_of = (r > 0) == up[todo]
            high[todo] = np.where(right_of, x, high[todo])
            low[todo] = np.where(right_of, low[todo], x)
            newton = x - r / s
            tolerance = np.maximum(4 * np.spacing(np.abs(x)), self.slack)
            settled = (np.abs(newton - x) <= tolerance) | (high[todo] - low[todo] <= tolerance) | (r == 0)
            inside = (newton > low[todo]) & (newton < high[todo])
            roots[todo] = np.where(inside, newton, np.where(settled, x, (low[todo] + high[todo]) / 2))
            if settled.all():
                break
            todo = todo[~settled]
            x = roots[todo]
        return row, roots, up

    def runs(self) -> tuple[NDArray[np.intp], Floats, Floats]:
        """The intervals between a change upwards and the next one down."""
        parts = [*self._ends, *([self._refined()] if self._parts else [])]
        row, x, up = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((~up, x, row))
        row, x, up = row[order], x[order], up[order]
        opens = np.flatnonzero(up[:-1] & ~up[1:] & (row[:-1] == row[1:]))
        return row[opens], x[opens], x[opens + 1]


def _turning(low: Floats, high: Floats, opposite: bool = False) -> tuple[Floats, NDArray[np.bool_]]:
    """Where R comes nearest to 0 between two points of one sign, and whether it may come so near as to cross it.

    ``low`` and ``high`` are (x, R, R′), of shape (3, intervals). By the cubic with those values; where R heads for 0
    from both ends and its tangents meet beyond 0, by the tangents. With ``opposite``, where the cubic turns between two
    points of opposite signs.
    """
    (x0, r0, s0), (x1, r1, s1) = low, high
    sign, width = np.where(r0 > 0, 1.0, -1.0), x1 - x0
    d0, d1, rise = s0 * width, s1 * width, r1 - r0
    square, cube = 3 * rise - 2 * d0 - d1, d0 + d1 - 2 * rise
    root = -(square + np.where(square < 0, -1.0, 1.0) * np.sqrt(square**2 - 3 * cube * d0))
    best, least = np.full_like(x0, 0.5), np.full_like(x0, np.inf)
    for t in (root / (3 * cube), d0 / root):
        cubic = sign * (r0 + t * (d0 + t * (square + t * cube)))
        better = (t > 0) & (t < 1) & (cubic < least)
        best, least = np.where(better, t, best), np.where(better, cubic, least)
    wide = width > 8 * np.spacing(np.abs(x0))
    if opposite:
        return x0 + best * width, np.isfinite(least) & wide & ((r0 > 0) != (r1 > 0))
    chosen = least < NEARLY * np.minimum(np.abs(r0), np.abs(r1))
    meet = (rise - d1) / (d0 - d1)
    dips = (sign * d0 < 0) & (sign * d1 > 0) & (sign * (r0 + d0 * meet) < 0) & ~chosen
    t = np.clip(np.where(dips, meet, best), 1 / 16, 15 / 16)
    return x0 + t * width, (chosen | dips) & wide
