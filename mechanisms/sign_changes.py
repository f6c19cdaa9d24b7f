"""The intervals on which a log ratio is positive, in float64 and for many shifts at once. Proposes, never decides.

R is that of mechanisms.log_ratio. The unit of work is a row: one shift φ, one level, one stretch of x; everything is
vectorised over rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.envelope import Floats
from mechanisms.log_ratio import LogRatio

MAX_SPLITS = 12
NEARLY = 0.8
"""R is looked at between two nodes where a cubic through them comes nearer to 0 than this share of the nearer end."""


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
