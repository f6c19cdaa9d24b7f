"""The intervals on which a log ratio is positive, in float64 and for many shifts at once. Proposes, never decides.

R is that of mechanisms.log_ratio. The unit of work is a row: one shift φ, one level, one stretch of x; everything is
vectorised over rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.components import Floats
from mechanisms.log_ratio import LogRatio

MAX_SPLITS = 12
NEARLY = 0.8
"""R is looked at between two nodes where a cubic through them comes nearer to 0 than this share of the nearer end."""
SHARE = 0.02
"""A step of Newton's is short where it is below this share of the distance to the ends of the bracket."""
CLOSE = 1e-10
"""A step of Newton's so short, in scale lengths, is the last one where it is far shorter than the one before."""


@dataclass(frozen=True)
class Rows:
    """The stretch (start, stop) of each row, ±∞ allowed, its shift and its level; all of shape (rows,).

    Rows of one shift have one stretch.
    """

    start: Floats
    stop: Floats
    shift: Floats
    level: Floats


def positive_runs(ratio: LogRatio, rows: Rows, slack: float = 0.0) -> tuple[NDArray[np.intp], Floats, Floats]:
    """(row, a, b): the maximal intervals with R > 0 inside each row's stretch, in order; of shape (intervals,).

    A sign change is refined until Newton's step is at most ``slack`` scale lengths, or a few units in the last place.
    Intervals end at the cuts of the ratio's windows; what is between the two ends of a cut is left out.
    """
    shift, first, back = np.unique(rows.shift, return_index=True, return_inverse=True)
    nodes = _nodes(ratio, rows.start[first], rows.stop[first], shift)
    value, slope = ratio.rough(nodes, shift[:, None])
    if len(shift) < len(rows.shift) or (np.diff(rows.shift) < 0).any():
        nodes, value, slope = nodes[back], value[back], slope[back]
    value, slope = ratio.levelled(value - rows.level[:, None], slope, nodes, rows.shift[:, None], rows.level[:, None])
    found = _Changes(ratio, rows, slack * ratio.scale)
    found.look_between(nodes, value, slope)
    begins = found.look_outside(nodes[:, 0], value[:, 0], slope[:, 0], rows.start, right=False)
    ends = found.look_outside(nodes[:, -1], value[:, -1], slope[:, -1], rows.stop, right=True)
    every = np.arange(len(rows.shift))
    found.add_ends(every[begins], rows.start[begins], up=True)
    found.add_ends(every[ends], rows.stop[ends], up=False)
    for low, high in ratio.windows.cuts:
        above = value[every, (nodes < low).sum(axis=1)] > 0
        found.add_ends(every[above], np.full(int(above.sum()), low), up=False, cut=True)
        if low < high:
            above = value[every, (nodes < high).sum(axis=1)] > 0
        found.add_ends(every[above], np.full(int(above.sum()), high), up=True, cut=True)
    return found.runs()


def _nodes(ratio: LogRatio, start: Floats, stop: Floats, shift: Floats) -> Floats:
    """Where R is looked at, in order, of shape (rows, nodes); some more than once."""
    over, under = ratio.nodes
    cuts = np.array(ratio.windows.cuts).ravel()
    parts = [over - shift[:, None]]
    parts += [np.broadcast_to(fixed, (len(shift), len(fixed))) for fixed in (under, cuts)]
    parts += [np.where(np.isfinite(end), end, 0.0)[:, None] for end in (start, stop)]
    nodes = np.clip(np.concatenate(parts, axis=1), start[:, None], stop[:, None])
    for low, high in ratio.windows.cuts:
        nodes[(nodes > low) & (nodes < high)] = low
    nodes.sort(axis=1)
    return nodes


class _Changes:
    """Brackets of sign changes, collected, then refined all at once."""

    def __init__(self, ratio: LogRatio, rows: Rows, slack: float) -> None:
        self.ratio, self.rows, self.slack = ratio, rows, slack
        self._parts: list[tuple[Any, ...]] = []
        self._ends: list[tuple[Any, ...]] = []

    def add(self, row: Any, low: Floats, high: Floats) -> None:
        """R changes sign between two points, given as (x, R, R′)."""
        if len(row):
            self._parts.append((row, low[0], high[0], _between(low, high), high[1] > 0))

    def add_ends(self, row: Any, x: Any, up: bool, cut: bool = False) -> None:
        """R > 0 next to the end x of the stretch, or to a cut."""
        rank = (3 if up else 0) if cut else (1 if up else 2)
        self._ends.append((row, x, np.full(len(row), rank)))

    def _at(self, row: Any, x: Floats) -> tuple[Floats, Floats]:
        return self.ratio(x, self.rows.shift[row], self.rows.level[row])

    def look_between(self, nodes: Floats, value: Floats, slope: Floats) -> None:
        """The changes between neighbouring nodes; all of shape (rows, nodes).

        Two changes between neighbours of one sign are looked for where R may come near to 0: its turning point is
        tried. So it is, once, between neighbours of opposite signs: three changes make one.
        """
        row, at = np.nonzero(_worth_a_look(nodes, value, slope, self.ratio.windows.cuts))
        low, high = (np.stack([part[row, at + k] for part in (nodes, value, slope)]) for k in (0, 1))
        x, chosen = _turning(low, high, opposite=True)
        row, low, high = self._keep(*self._split(row, low, high, x, chosen))
        for _ in range(MAX_SPLITS):
            x, chosen = _turning(low, high)
            if not chosen.any():
                return
            row, low, high = row[chosen], low[:, chosen], high[:, chosen]
            row, low, high = self._keep(*self._split(row, low, high, x[chosen], np.ones(len(row), dtype=bool)))

    def _keep(self, row: Any, low: Floats, high: Floats) -> tuple[Any, Floats, Floats]:
        """Adds the intervals with a change; returns the others."""
        change = (low[1] > 0) != (high[1] > 0)
        self.add(row[change], low[:, change], high[:, change])
        return row[~change], low[:, ~change], high[:, ~change]

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
            ends = np.stack([low, high])[:, done]
            # to the left R is `result` at `low`, to the right at `high`
            up = (result[row] if right else ~result[row])[done]
            self._parts.append((row[done], *ends, ends.mean(axis=0), up))
            result[row[lost]] = near[row[lost]]
            more = ~(there | lost)
            if not more.any():
                break
            row, inner, step = row[more], outer[more], 2 * step[more]
        else:
            result[row] = near[row]
        return result

    def _refined(self) -> tuple[Any, Any, Any]:
        """(row, x, rank) of every change: safeguarded Newton to a few units in the last place."""
        row, low, high, roots, up = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        todo, before = np.arange(len(row)), np.full(len(row), np.inf)
        first, last, x = low.copy(), high.copy(), roots.copy()
        for _ in range(100):
            r, s = self._at(row[todo], x)
            right_of = (r > 0) == up[todo]
            high[todo] = np.where(right_of, x, high[todo])
            low[todo] = np.where(right_of, low[todo], x)
            newton = x - r / s
            step = np.abs(newton - x)
            # two changes next to each other have a bracket that ends between them
            slack = np.minimum(self.slack, SHARE * np.minimum(newton - first[todo], last[todo] - newton))
            tolerance = np.maximum(4 * np.spacing(np.abs(x)), slack)
            settled = (step <= tolerance) | (high[todo] - low[todo] <= tolerance) | (r == 0)
            settled |= (step <= CLOSE * self.ratio.scale) & (step <= 1e-3 * before)
            inside = (newton > low[todo]) & (newton < high[todo])
            roots[todo] = np.where(inside, newton, np.where(settled, x, (low[todo] + high[todo]) / 2))
            if settled.all():
                break
            before = np.where(inside, step, np.inf)[~settled]
            todo = todo[~settled]
            x = roots[todo]
        return row, roots, np.where(up, 1, 2)

    def runs(self) -> tuple[NDArray[np.intp], Floats, Floats]:
        """The intervals between a change upwards and the next one down."""
        parts = [*self._ends, *([self._refined()] if self._parts else [])]
        row, x, rank = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((rank, x, row))
        row, x, up = row[order], x[order], rank[order] % 2 == 1
        opens = np.flatnonzero(up[:-1] & ~up[1:] & (row[:-1] == row[1:]))
        return row[opens], x[opens], x[opens + 1]


def _worth_a_look(x: Floats, value: Floats, slope: Floats, cuts: list[tuple[float, float]]) -> NDArray[np.bool_]:
    """Between which neighbours R may change sign by its cubic or its tangents; of shape (rows, nodes − 1)."""
    above, size = value > 0, np.abs(value)
    # a cubic falls below its smaller end by at most 4/27 of what its tangents fall
    heading = np.where(above, slope, -slope)
    fall = np.maximum(heading[:, 1:], 0.0) - np.minimum(heading[:, :-1], 0.0)
    width = x[:, 1:] - x[:, :-1]
    dips = width * fall * (4 / 27 / (1 - NEARLY)) > np.minimum(size[:, 1:], size[:, :-1])
    found: NDArray[np.bool_] = (dips | (above[:, 1:] != above[:, :-1])) & (width > 0)
    for low, high in cuts:
        if low < high:
            found &= (x[:, :-1] != low) | (x[:, 1:] != high)
    return found


def _between(low: Floats, high: Floats) -> Floats:
    """Where R, given as (x, R, R′) at two points of opposite signs, is 0 by the cubic for x as a function of R."""
    (x0, r0, s0), (x1, r1, s1) = low, high
    width, rise = x1 - x0, r1 - r0
    t = np.clip(-r0 / rise, 0.0, 1.0)
    d0, d1 = (np.clip(np.where(np.isfinite(rise / s), rise / s, width), 0.0, 3 * width) for s in (s0, s1))
    x: Floats = x0 + t * t * (3 - 2 * t) * width + t * (1 - t) * ((1 - t) * d0 - t * d1)
    return np.where(np.isfinite(x), np.clip(x, x0, x1), (x0 + x1) / 2)


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
