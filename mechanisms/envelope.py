"""A sum of exponentials as its leading line and the few lines next to it, in float64. Proposes, never decides."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mechanisms.components import Components, Floats, Indices

OFFSETS = (1.5, 3.0, 6.0, 12.0, 24.0)
"""Nodes around a change of lead, in units of its width: the bend of the log of the sum fades like e^−offset."""
FAR, CLOSE = 8.0, 0.4
SHARES = (0.2, 0.4, 0.6, 0.8)
"""Nodes between two changes of lead from CLOSE to FAR widths apart; closer ones are all but one smooth bend."""
DENSE = 0.25
"""Of changes of lead closer than that, and than this share of the scale length, only some are nodes."""
NEGLIGIBLE = 42.0
"""A line this far below the leading one, in log, is left out of a sum."""
HUGE = 1e300
CHUNK = 1 << 15
"""Most numbers in an array of lines by points: a few of them fit the processor's cache."""


class Table:
    """For each line that leads somewhere, the lines that matter there, as they are relative to it.

    A line's exponent less the leading one's is steep · (x − middle − crossing), ``middles`` being those of the leading
    lines, or None for 0. ``steeps`` and ``crossings`` are of shape (lines, leads).
    """

    def __init__(self, steeps: Floats, crossings: Floats, middles: Floats | None, check: Callable[[], None]) -> None:
        self.steeps, self.crossings, self.middles, self.check = steeps, crossings, middles, check

    def joined(self, other: Table) -> Table:
        """One table, with the leads of both in order; both with a Gaussian factor or both without."""
        width = max(len(self.steeps), len(other.steeps))
        steeps, crossings = (  # a line that is made up for the shape crosses far out
            np.concatenate([_padded(values, width) for values in both], axis=1)
            for both in ((self.steeps, other.steeps), (self.crossings, other.crossings))
        )
        middles = None
        if self.middles is not None and other.middles is not None:
            middles = np.concatenate([self.middles, other.middles])
        return Table(steeps, crossings, middles, self.check)

    def sums(self, x: Floats, at: Indices) -> tuple[Floats, Floats]:
        """(log of the sum less its leading line's, mean slope less the leading one's) at x, where ``at`` leads."""
        log_sum, mean = np.empty_like(x), np.empty_like(x)
        distance = x if self.middles is None else x - self.middles[at]
        for part in chunks(len(x), len(self.steeps)):
            self.check()
            steep = self.steeps.take(at[part], axis=1)
            share = distance[part] - self.crossings.take(at[part], axis=1)
            share *= steep
            np.exp(share, out=share)
            total = share.sum(axis=0)
            share *= steep
            np.log(total, out=log_sum[part])
            np.divide(share.sum(axis=0), total, out=mean[part])
        return log_sum, mean


def _padded(values: Floats, width: int) -> Floats:
    return np.concatenate([values, np.full((width - len(values), values.shape[1]), HUGE)])


class Envelope:
    """A sum of lines as its largest line and the few next to it: where which line leads, and log and slope of the sum.

    ``nodes`` are the x at which one line takes over from the next, each with nodes around it; never empty. ``heights``
    and ``middles`` are those of the components; ``width`` is how many neighbours among them the sum is taken over.
    Whatever the number of points, a temporary array of lines by points holds at most CHUNK numbers, or those of one
    point; ``check`` is called before each.
    """

    def __init__(self, components: Components, check: Callable[[], None] = lambda: None) -> None:
        self.components, self.check = components, check
        self.heights, self.middles = components.heights.near, components.middles.near
        self.c = c = components.c
        slopes = 2 * c * self.middles if c else self.middles
        intercepts = self.heights - c * self.middles**2 if c else self.heights
        steepest = float(np.abs(self.middles).max())
        self.scale = float(1 / np.sqrt(2 * c)) if c else 1 / steepest if steepest else np.inf
        """The σ of a Gaussian sum, or the length over which the steepest exponential changes by e."""
        self.leading = _hull(slopes, intercepts)
        self.takeover: Floats = -np.diff(intercepts[self.leading]) / np.diff(slopes[self.leading])
        self.nodes = self._nodes(1 / np.diff(slopes[self.leading]), float(self.middles[-1]) if c else 0.0)
        self.reach = self._reach(slopes, intercepts)
        self.width = min(2 * self.reach + 1, len(slopes))
        self._first = np.clip(self.leading - self.reach, 0, len(slopes) - self.width)
        self.table = self._relatives(np.arange(len(self.leading))) if self._fits(len(self.leading)) else None

    def lifted(self, components: Components) -> Envelope:
        """The same for components whose heights differ from these by a constant."""
        found = copy.copy(self)
        found.components, found.heights = components, components.heights.near
        return found

    def _nodes(self, width: Floats, middle: float) -> Floats:
        """Each change of lead, where its bend fades on both sides, and points between two that are near."""
        at = self.takeover
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
        at = self.takeover
        cell = np.floor(at / (DENSE * self.scale))
        spared = np.ones(len(at), dtype=bool)
        spared[1:-1] = ~(close[:-1] & close[1:] & (cell[1:-1] == cell[:-2]))
        found: Floats = at[spared]
        return found

    def _reach(self, slopes: Floats, intercepts: Floats) -> int:
        """How far from the leading line, in order of slope, a line within e^−NEGLIGIBLE of it can be."""
        x, leading = self.takeover, self.leading
        count, reach, steps = len(x), 0, 1
        if not count:  # one line leads everywhere: those of its slope stay next to it, the others fall behind
            logs = intercepts - intercepts[leading[0]]
            near = np.flatnonzero(~(logs < -NEGLIGIBLE))
            return int(np.abs(near - leading[0]).max(initial=0))
        change: Indices = np.arange(count)
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
            self.check()
            line = np.minimum(first[part, None] + offsets, len(slopes) - 1)
            lead = leading[:-1][part, None]
            logs = intercepts[line] - intercepts[lead] + (slopes[line] - slopes[lead]) * x[part, None]
            close = ~(logs < -NEGLIGIBLE)
            distance = np.maximum(line - lead, leading[1:][part, None] - line)
            reach = max(reach, int(distance[close].max(initial=0)))
        return reach

    def _fits(self, points: int) -> bool:
        return self.width * points <= CHUNK

    def first(self, x: Floats) -> Indices:
        """The first of the ``width`` lines that matter at x, in order of slope."""
        found: Indices = self._first[np.searchsorted(self.takeover, x)]
        return found

    def _relatives(self, at: Indices) -> Table:
        """The lines that matter where the at-th line leads."""
        lead = self.leading[at]
        band = self._first[at] + np.arange(self.width)[:, None]
        rise, offset = self.heights[band] - self.heights[lead], self.middles[band] - self.middles[lead]
        steep = 2 * self.c * offset if self.c else offset
        steep = np.where((steep == 0) & (rise != 0), 1 / HUGE, steep)  # of one slope: they cross very far out
        with np.errstate(all="ignore"):
            crossing = np.where(steep == 0, 0.0, (offset / 2 if self.c else 0.0) - rise / steep)
        return Table(steep, crossing, self.middles[lead] if self.c else None, self.check)

    def leads(self, x: Floats) -> Indices:
        """Which of the leading lines leads at x."""
        found: Indices = np.searchsorted(self.takeover, x)
        return found

    def sums(self, x: Floats, at: Indices) -> tuple[Floats, Floats]:
        """As Table.sums."""
        if self.table is not None:
            return self.table.sums(x, at)
        log_sum, mean = np.empty_like(x), np.empty_like(x)
        for part in chunks(len(x), self.width):
            count = len(at[part])
            log_sum[part], mean[part] = self._relatives(at[part]).sums(x[part], np.arange(count))
        return log_sum, mean

    def log_and_score(self, x: Floats) -> tuple[Floats, Floats]:
        """log of the sum and its slope."""
        shape, x = x.shape, x.ravel()
        at = self.leads(x)
        log_sum, mean = self.sums(x, at)
        height, middle = self.heights[self.leading[at]], self.middles[self.leading[at]]
        if not self.c:
            return (log_sum + height + middle * x).reshape(shape), (middle + mean).reshape(shape)
        distance = x - middle
        return (log_sum + height - self.c * distance**2).reshape(shape), (mean - 2 * self.c * distance).reshape(shape)

    def mass(self, a: Floats, b: Floats) -> Floats:
        """∫ of a Gaussian sum over each [a, b]: the whole of the lines centred inside, and the tails at both ends."""
        (right_a, right_b), (left_a, left_b) = self._tails(np.concatenate([a, b])).reshape(2, 2, -1)
        from_a, from_b = np.searchsorted(self.middles, np.stack([a, b]), side="right")
        whole = np.append(2 * np.exp(self.heights), 0.0)
        inside = np.add.reduceat(whole, np.stack([from_a, from_b], axis=1).ravel())[::2] if len(a) else 0.0
        inside = np.where(from_a < from_b, inside, 0.0)
        mass: Floats = self.scale * np.sqrt(np.pi / 2) * (right_a - right_b + inside + left_b - left_a)
        return mass

    def _tails(self, x: Floats) -> Floats:
        """Scaled masses to the right of x of the lines centred left of it, and the other way; of shape (2, points)."""
        found = np.empty((2, len(x)))
        root = np.sqrt(0.5) / self.scale
        for part in chunks(len(x), self.width):
            self.check()
            at = x[part]
            band = self.first(at) + np.arange(self.width)[:, None]
            distance = at - self.middles[band]
            z = root * np.abs(distance)
            tail = np.exp(self.heights[band] - z * z) * special.erfcx(z)
            left = np.where(distance < 0, tail, 0.0)
            found[0, part], found[1, part] = (tail - left).sum(axis=0), left.sum(axis=0)
        return found


def chunks(points: int, lines: int) -> Iterator[slice]:
    """Slices of the points such that an array of lines by points stays within CHUNK."""
    step = max(1, CHUNK // lines)
    return (slice(start, start + step) for start in range(0, points, step))


def _hull(slopes: Floats, intercepts: Floats) -> Indices:
    """The lines that lead somewhere, in order; slopes do not fall."""
    with np.errstate(all="ignore"):
        if (np.diff(slopes) > 0).all() and (np.diff(np.diff(intercepts) / np.diff(slopes)) < 0).all():
            return np.arange(len(slopes))  # of a concave row of lines, every one leads
    return np.array(_upper(slopes.tolist(), intercepts.tolist()))


def _upper(slopes: list[float], intercepts: list[float]) -> list[int]:
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
