"""A sum of exponentials as its leading line and the few lines next to it, in float64. Proposes, never decides."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mechanisms.arithmetic import FLOAT
from mechanisms.lines import LineSum

Floats = NDArray[np.float64]

OFFSETS = (1.5, 3.0, 6.0, 12.0, 24.0)
"""Nodes around a change of lead, in units of its width: the bend of the log of the sum fades like e^−offset."""
FAR, CLOSE = 8.0, 0.4
SHARES = (0.2, 0.4, 0.6, 0.8)
"""Nodes between two changes of lead from CLOSE to FAR widths apart; closer ones are all but one smooth bend."""
NEGLIGIBLE = 42.0
"""A line this far below the leading one, in log, is left out of a sum."""


class Envelope:
    """A sum of lines as its largest line and the few next to it: where which line leads, and log and slope of the sum.

    ``nodes`` are the x at which one line takes over from the next, each with nodes around it; never empty.
    """

    def __init__(self, lines: LineSum) -> None:
        heights, middles, c = lines.parameters(FLOAT)
        slopes = 2 * c * middles if lines.c else middles
        intercepts = heights - c * middles**2 if lines.c else heights
        order = np.lexsort((intercepts, slopes))
        slopes, intercepts = slopes[order], intercepts[order]
        leading = _hull(slopes.tolist(), intercepts.tolist())
        self._takeover = -np.diff(intercepts[leading]) / np.diff(slopes[leading])
        self.nodes = self._nodes(1 / np.diff(slopes[leading]), float(middles[order[-1]]) if lines.c else 0.0)
        reach = self._reach(slopes, intercepts, leading)
        self._c = c if lines.c else None
        self._heights, self._middles = heights[order][leading], middles[order][leading]
        band = np.array(leading) + np.arange(2 * reach + 1)[:, None]
        self._rise = np.pad(heights[order], reach, constant_values=-np.inf)[band] - self._heights
        self._offset = np.pad(middles[order], reach)[band] - self._middles

    def _nodes(self, width: Floats, middle: float) -> Floats:
        """Each change of lead, where its bend fades on both sides, and points between two that are near."""
        at = self._takeover
        if not len(at):
            return np.array([middle])
        low, high = at[:-1], at[1:]
        gap, narrow = high - low, np.minimum(width[:-1], width[1:])
        far = gap > FAR * narrow
        near = ~far & (gap > CLOSE * narrow)
        parts = [at, (low + high)[far] / 2, *(low[near] + gap[near] * share for share in SHARES)]
        for offset in OFFSETS:
            parts += [at[:1] - offset * width[:1], at[-1:] + offset * width[-1:]]
            left, right = (far & (offset * w < gap / 2) for w in (width[:-1], width[1:]))
            parts += [low[left] + offset * width[:-1][left], high[right] - offset * width[1:][right]]
        nodes = np.concatenate(parts)
        return np.sort(nodes[np.isfinite(nodes)])

    def _reach(self, slopes: Floats, intercepts: Floats, leading: list[int]) -> int:
        """How far from the leading line, in order of slope, a line within e^−NEGLIGIBLE of it can be."""
        reach = 0
        for k, line in enumerate(leading):
            for x in self._takeover[max(k - 1, 0) : k + 1]:
                logs = intercepts + slopes * x
                near = np.flatnonzero(~(logs < logs[line] - NEGLIGIBLE))
                reach = max(reach, int(near[-1]) - line, line - int(near[0]))
        return reach

    def relative(self, x: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """(log of the sum less that of its leading line, mean middle less the leading one's, its height, its middle).

        Differences of exponents are lines in x, so they keep their digits far out, where the exponents are huge.
        """
        at = np.searchsorted(self._takeover, x)
        rise, offset, middle = self._rise[:, at], self._offset[:, at], self._middles[at]
        if self._c is None:
            share = np.exp(rise + offset * x)
        else:
            share = np.exp(rise + 2 * self._c * offset * (x - middle - offset / 2))
        total = share.sum(axis=0)
        return np.log(total), (share * offset).sum(axis=0) / total, self._heights[at], middle

    def log_and_score(self, x: Floats) -> tuple[Floats, Floats]:
        """log of the sum and its slope."""
        log_sum, offset, height, middle = self.relative(x)
        if self._c is None:
            return log_sum + height + middle * x, middle + offset
        return log_sum + height - self._c * (x - middle) ** 2, -2 * self._c * (x - middle - offset)


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
