"""A sum of exponentials as its leading line and the few lines next to it, in float64. Proposes, never decides."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mechanisms.arithmetic import FLOAT
from mechanisms.lines import LineSum

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

OFFSETS = (1.5, 3.0, 6.0, 12.0, 24.0)
"""Nodes around a change of lead, in units of its width: the bend of the log of the sum fades like e^−offset."""
FAR, CLOSE = 8.0, 0.4
SHARES = (0.2, 0.4, 0.6, 0.8)
"""Nodes between two changes of lead from CLOSE to FAR widths apart; closer ones are all but one smooth bend."""
DENSE = 0.25
"""Of changes of lead closer than that, and than this share of the scale length, only some are nodes."""
NEGLIGIBLE = 42.0
"""A line this far below the leading one, in log, is left out of a sum."""
CHUNK = 1 << 15
"""Most numbers in an array of lines by points: a few of them fit the processor's cache."""
FEW = 64
"""Up to so many lines, all of them are integrated; of more, those that matter at the ends."""


class Envelope:
    """A sum of lines as its largest line and the few next to it: where which line leads, and log and slope of the sum.

    ``nodes`` are the x at which one line takes over from the next, each with nodes around it; never empty. ``heights``
    and ``middles`` are the lines' parameters in order of slope, ``order`` says which line of the sum each one is;
    ``width`` is how many neighbours in that order the sum is taken over. Whatever the number of points, a temporary
    array of lines by points holds at most CHUNK numbers, or those of one point.
    """

    def __init__(self, lines: LineSum) -> None:
        heights, middles, c = lines.parameters(FLOAT)
        slopes = 2 * c * middles if lines.c else middles
        intercepts = heights - c * middles**2 if lines.c else heights
        self.order: Indices = np.lexsort((intercepts, slopes))
        self.heights, self.middles = heights[self.order], middles[self.order]
        slopes, intercepts = slopes[self.order], intercepts[self.order]
        self._c = c if lines.c else None
        steepest = float(np.abs(middles).max())
        self.scale = float(1 / np.sqrt(2 * c)) if lines.c else 1 / steepest if steepest else np.inf
        """The σ of a Gaussian sum, or the length over which the steepest exponential changes by e."""
        self._leading: Indices = np.array(_hull(slopes.tolist(), intercepts.tolist()))
        self._takeover = -np.diff(intercepts[self._leading]) / np.diff(slopes[self._leading])
        self.nodes = self._nodes(1 / np.diff(slopes[self._leading]), float(self.middles[-1]) if lines.c else 0.0)
        reach = self._reach(slopes, intercepts)
        self.width = min(2 * reach + 1, len(slopes))
        self._first = np.clip(self._leading - reach, 0, len(slopes) - self.width)
        self._table = self._relatives(np.arange(len(self._leading))) if self._fits(len(self._leading)) else None

    def _nodes(self, width: Floats, middle: float) -> Floats:
        """Each change of lead, where its bend fades on both sides, and points between two that are near."""
        at = self._takeover
        if not len(at):
            return np.array([middle])
        low, high = at[:-1], at[1:]
        gap, narrow = high - low, np.minimum(width[:-1], width[1:])
        far = gap > FAR * narrow
        near = ~far & (gap > CLOSE * narrow)
        parts = [self._thinned(gap < CLOSE * narrow), (low + high)[far] / 2]
        parts += [low[near] + gap[near] * share for share in SHARES]
        for offset in OFFSETS:
            parts += [at[:1] - offset * width[:1], at[-1:] + offset * width[-1:]]
            left, right = (far & (offset * w < gap / 2) for w in (width[:-1], width[1:]))
            parts += [low[left] + offset * width[:-1][left], high[right] - offset * width[1:][right]]
        nodes = np.concatenate(parts)
        return np.unique(nodes[np.isfinite(nodes)])

    def _thinned(self, close: NDArray[np.bool_]) -> Floats:
        """The changes of lead; of many close ones, one in every DENSE scale lengths: that is smooth enough."""
        at = self._takeover
        cell = np.floor(at / (DENSE * self.scale))
        spared = np.ones(len(at), dtype=bool)
        spared[1:-1] = ~(close[:-1] & close[1:] & (cell[1:-1] == cell[:-2]))
        found: Floats = at[spared]
        return found

    def _reach(self, slopes: Floats, intercepts: Floats) -> int:
        """How far from the leading line, in order of slope, a line within e^−NEGLIGIBLE of it can be."""
        x, leading = self._takeover, self._leading
        count, reach, steps = len(x), 0, 1
        if not count:  # one line leads everywhere: those of its slope stay next to it, the others fall behind
            logs = intercepts - intercepts[leading[0]]
            near = np.flatnonzero(~(logs < -NEGLIGIBLE))
            return int(np.abs(near - leading[0]).max(initial=0))
        change = np.arange(count)
        while steps < count:  # at a change of lead, the leading lines fall off to both sides in order
            ends = np.clip([change - steps, change + 1 + steps], 0, count)
            behind = intercepts[leading[ends]] - intercepts[leading[:-1]]
            behind += (slopes[leading[ends]] - slopes[leading[:-1]]) * x
            if (behind < -NEGLIGIBLE)[np.stack([change >= steps, change + 1 + steps <= count])].all():
                break
            steps *= 2
        first = np.where(change < steps, 0, leading[np.maximum(change - steps, 0)])
        last = leading[np.minimum(change + 1 + steps, count)]
        offsets = np.arange(int((last - first).max()) + 1)
        for part in chunks(count, len(offsets)):
            line = np.minimum(first[part, None] + offsets, len(slopes) - 1)
            lead = leading[:-1][part, None]
            logs = intercepts[line] - intercepts[lead] + (slopes[line] - slopes[lead]) * x[part, None]
            near = ~(logs < -NEGLIGIBLE)
            distance = np.maximum(line - lead, leading[1:][part, None] - line)
            reach = max(reach, int(distance[near].max(initial=0)))
        return reach

    def _fits(self, points: int) -> bool:
        return self.width * points <= CHUNK

    def first(self, x: Floats) -> Indices:
        """The first of the ``width`` lines that matter at x, in order of slope."""
        found: Indices = self._first[np.searchsorted(self._takeover, x)]
        return found

    def _relatives(self, at: Indices) -> tuple[Floats, Floats]:
        """(height, middle) less those of the leading line, of the lines that matter where the at-th line leads."""
        lead = self._leading[at]
        band = self._first[at] + np.arange(self.width)[:, None]
        return self.heights[band] - self.heights[lead], self.middles[band] - self.middles[lead]

    def relative(self, x: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """(log of the sum less that of its leading line, mean middle less the leading one's, its height, its middle).

        Differences of exponents are lines in x, so they keep their digits far out, where the exponents are huge.
        """
        shape, x = x.shape, x.ravel()
        at = np.searchsorted(self._takeover, x)
        lead = self._leading[at]
        middle = self.middles[lead]
        if self._fits(len(x)):
            log_sum, mean = self._sums(x, at, middle)
        else:
            log_sum, mean = np.empty_like(x), np.empty_like(x)
            for part in chunks(len(x), self.width):
                log_sum[part], mean[part] = self._sums(x[part], at[part], middle[part])
        return log_sum.reshape(shape), mean.reshape(shape), self.heights[lead].reshape(shape), middle.reshape(shape)

    def _sums(self, x: Floats, at: Indices, middle: Floats) -> tuple[Floats, Floats]:
        if self._table is None:
            rise, offset = self._relatives(at)
        else:
            rise, offset = (values.take(at, axis=1) for values in self._table)
        if self._c is None:
            share = offset * x
        else:
            share = offset * -0.5
            share += x - middle
            share *= offset * (2 * self._c)
        share += rise
        np.exp(share, out=share)
        total = share.sum(axis=0)
        share *= offset
        return np.log(total), share.sum(axis=0) / total

    def log_and_score(self, x: Floats) -> tuple[Floats, Floats]:
        """log of the sum and its slope."""
        log_sum, offset, height, middle = self.relative(x)
        if self._c is None:
            return log_sum + height + middle * x, middle + offset
        return log_sum + height - self._c * (x - middle) ** 2, -2 * self._c * (x - middle - offset)

    def mass(self, a: Floats, b: Floats) -> Floats:
        """∫ of a Gaussian sum over each [a, b]: the whole of the lines centred inside, and the tails at both ends."""
        (right_a, left_a, from_a), (right_b, left_b, from_b) = self._tails(a), self._tails(b)
        whole = np.append(2 * np.exp(self.heights), 0.0)
        inside = np.add.reduceat(whole, np.stack([from_a, from_b], axis=1).ravel())[::2] if len(a) else 0.0
        inside = np.where(from_a < from_b, inside, 0.0)
        mass: Floats = self.scale * np.sqrt(np.pi / 2) * (right_a - right_b + inside + left_b - left_a)
        return mass

    def _tails(self, x: Floats) -> tuple[Floats, Floats, Indices]:
        """Scaled masses to the right of x of the lines centred left of it, and the other way; the first line right."""
        right, left = np.empty_like(x), np.empty_like(x)
        root = np.sqrt(0.5) / self.scale
        for part in chunks(len(x), self.width):
            at = x[part]
            band = self.first(at) + np.arange(self.width)[:, None]
            distance = at - self.middles[band]
            z = root * np.abs(distance)
            tail = np.exp(self.heights[band] - z * z) * special.erfcx(z)
            right[part] = np.where(distance < 0, 0.0, tail).sum(axis=0)
            left[part] = np.where(distance < 0, tail, 0.0).sum(axis=0)
        return right, left, np.searchsorted(self.middles, x, side="right")


def chunks(points: int, lines: int) -> Iterator[slice]:
    """Slices of the points such that an array of lines by points stays within CHUNK."""
    step = max(1, CHUNK // lines)
    return (slice(start, start + step) for start in range(0, points, step))


def masses(lines: LineSum, envelope: Envelope | None, a: Floats, b: Floats) -> Floats:
    """∫ of the sum over each [a, b], of shape (intervals,); the envelope is that of these lines, if there is one."""
    if envelope is not None and lines.c and len(lines.lines) > FEW:
        return envelope.mass(a, b)
    found = np.zeros_like(a)
    for part in chunks(len(a), len(lines.lines) if lines.lines and lines.c else 1):  # exponentials go one by one
        found[part] = lines.moments(a[part], b[part], 0, FLOAT)[0]
    return found


def _hull(slopes: list[float], intercepts: list[float]) -> list[int]:
    """The lines that lead somewhere, in order; slopes do not fall."""
    hull: list[int] = []

    def crossing(i: int, j: int) -> float:
        return (intercepts[i] - intercepts[j]) / (slopes[j] - slopes[i])

    for k in range(len(slopes)):
        while hull and (
            slopes[hull[-1]] == slopes[k]
            or (len(hull) > 1 and crossing(hull[-2], k) <= crossing(hull[-2], hull[-1]))
        ):
            hull.pop()
        hull.append(k)
    return hull
