"""Enclosure of the hockey-stick divergence at one shift: D(φ) = ∫ max( f(x+φ) − e^ε f(x), 0 ) dx. (trusted)

With R = log f(x+φ) − log f(x) − ε the line is cut into cells of three kinds:

    P   R ≥ 0 on the whole cell is proved: the cell's exact mass counts
    N   R ≤ 0 on the whole cell is proved: the cell counts nothing
    U   neither: charged with an upper bound of ∫ max(…, 0) over it

so that  S ≤ D(φ) ≤ S + charges,  S the mass of f(x+φ) − e^ε f(x) over the P cells. The cell with the largest charge is
split first. Float proposals only say where to cut; every cell is decided in balls, from its two ends (audit.cells,
audit.anchor).
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from flint import arb, fmpq

from audit.anchor import Anchor
from audit.cells import End, StretchBalls
from audit.exact import dyadic
from audit.frame import Frame
from audit.masses import Interval
from audit.verdict import Limits

NARROW = fmpq(1, 4096)
"""Cuts of narrower cells are those round sign changes, which move with the shift: they are not handed on."""
MOST_CUTS = 800
"""Of more cuts handed on, only the new ones are kept."""
FAR_BELOW, WORTH_IT = 24.0, 16.0
"""Lines with masses below e^−FAR_BELOW of the budget are left to the tails, where the line gets so much shorter."""
NEGLIGIBLE = 6.0
"""Masses of lines that come to e^−NEGLIGIBLE of the budget in all are bounded instead of evaluated."""


class Cells:
    """All cells at one shift: the P intervals of each stretch, and the U cells in one heap by their charge."""

    def __init__(self, anchor: Anchor | None = None) -> None:
        self._anchor = anchor
        self.proved: dict[StretchBalls, list[Interval]] = {}
        self.heap: list[tuple[float, int, StretchBalls, End, End, arb]] = []
        self.tail_charge = arb(0)
        self.count = 0
        self.unresolved = False
        """Whether a charge is NaN: more bits help, more cells do not."""
        self.splits: list[fmpq] = []
        self.outstanding = 0.0
        """The sum of the heap's charges, in floats: guides the search and proves nothing."""

    def add(self, balls: StretchBalls, left: End, right: End) -> None:
        """Decide a finite cell, or put it on the heap."""
        self.count += 1
        ratio = balls.upper_ratio(left, right)
        if ratio <= 0:
            return
        if balls.lower_ratio(left, right) >= 0:
            self.proved[balls].append((left.x, right.x))
            return
        if self._anchor is not None:
            ratio = ratio.min(self._anchor.upper_ratio(left, right))
            if ratio <= 0:
                return
            anchored = self._anchor.lower_ratio(left, right)
            if anchored is not None and anchored >= 0:
                self.proved[balls].append((left.x, right.x))
                return
        charge = balls.upper_charge(left, right, ratio)
        key = float(charge.upper())
        if math.isnan(key):
            key, self.unresolved = math.inf, True
        self.outstanding += key
        heapq.heappush(self.heap, (-key, self.count, balls, left, right, charge))

    def add_tail(self, balls: StretchBalls, end: End, to_right: bool, budget: float) -> None:
        """Decide the infinite cell beyond ``end``; where that fails, go further out, or charge its positive mass."""
        step = fmpq(1, 4)
        while True:
            interval: Interval = (end.x, None) if to_right else (None, end.x)
            sign = balls.tail_sign(end, to_right)
            if sign > 0:
                self.proved[balls].append(interval)
            if sign != 0:
                return
            charge = balls.positive_mass.over(interval)
            if float(charge.upper()) <= budget / 64 or step > 2**80:
                self.tail_charge += charge
                return
            further = balls.at(end.x + step if to_right else end.x - step)
            self.add(balls, *((end, further) if to_right else (further, end)))
            end, step = further, 2 * step

    def refine(self, budget: float, limits: Limits) -> None:
        """Split cells, the largest charge first, until the charges come to at most the budget."""
        while self.heap and self.count < limits.cells and not self.unresolved:
            most = -self.heap[0][0] * len(self.heap)
            # Add up anew where the running sum is small enough, or shows its own rounding errors.
            if not math.isfinite(self.outstanding) or self.outstanding <= budget or self.outstanding > most:
                self.outstanding = sum(-entry[0] for entry in self.heap)
                if self.outstanding <= budget:
                    return
            key, _, balls, left, right, _ = heapq.heappop(self.heap)
            self.outstanding += key
            middle = balls.at((left.x + right.x) / 2)
            if right.x - left.x > NARROW:
                self.splits.append(middle.x)
            self.add(balls, left, middle)
            self.add(balls, middle, right)
            if self.count % 512 < 2:
                limits.check()

    def charges(self) -> arb:
        """Upper bound of ∫ max(positive − negative, 0) over all U cells and undecided tails."""
        return sum((entry[5] for entry in self.heap), self.tail_charge)


def joined(cells: Iterable[Interval]) -> list[Interval]:
    """The same set of points, in order, with intervals that touch joined."""
    parts = list(cells)
    ordered = [part for part in parts if part[0] is None]
    ordered += sorted((part for part in parts if part[0] is not None), key=_start)
    found: list[Interval] = []
    for start, stop in ordered:
        if found and start is not None and found[-1][1] is not None and found[-1][1] == start:
            found[-1] = (found[-1][0], stop)
        else:
            found.append((start, stop))
    return found


def _start(interval: Interval) -> fmpq:
    start = interval[0]
    assert start is not None
    return start


def around(root: float) -> list[fmpq]:
    """Two points closely round a proposed sign change."""
    radius = max(abs(root), 2.0**-20) * 2.0**-42
    return [dyadic(root - radius), dyadic(root + radius)]


def cut_points(
    balls: StretchBalls, roots: Sequence[float], extra: Sequence[fmpq], budget: float = 0.0
) -> list[fmpq]:
    """Where to cut a stretch: its finite ends, round each proposed sign change, and beyond everything of interest.

    Lines whose mass is far below the budget are of none.
    """
    start, stop = balls.whole
    points = [end for end in (start, stop) if end is not None]
    middles = balls.middles
    if start is None and stop is None and budget > 0:
        span = balls.positive_mass.span(math.log(budget) - FAR_BELOW)
        if span is not None and span[1] - span[0] < float(max(middles) - min(middles)) - WORTH_IT:
            middles = [dyadic(end) for end in span]
            roots = [root for root in roots if span[0] - 1 <= root <= span[1] + 1]
    for root in roots:
        points += around(root)
    if start is None or stop is None:
        inner = [*points, *middles] or [fmpq(0)]
        low, high = min(inner), max(inner)
        margin = max(fmpq(1), high - low) / 8 + fmpq(1, 64)
        if start is None:
            points.append(fmpq(((low - margin) * 2**16).floor(), 2**16))
        if stop is None:
            points.append(fmpq(((high + margin) * 2**16).ceil(), 2**16))
    points = sorted(p for p in points if (start is None or p >= start) and (stop is None or p <= stop))
    first, last = points[0], points[-1]
    # The cuts of a neighbour come in order: sorting two runs costs next to nothing.
    points = sorted([*points, *(p for p in extra if first < p < last)])
    return [p for i, p in enumerate(points) if i == 0 or points[i - 1] != p]


@dataclass(frozen=True)
class PointBound:
    """lower ≤ ∫ max(f(x+φ) − e^ε f(x), 0) dx ≤ upper, both as balls, f not normalised.

    On ``event`` the integrand is proved ≥ 0 and ``lower`` is its integral there. ``weight`` is at most that of e^ε f
    (what cancels is left out of it), so that for ε′ ≤ ε the event shows ∫ max(f(x+φ) − e^ε′ f(x), 0) dx ≥ lower + (1
    − e^(ε′−ε)) weight.
    """

    lower: arb
    upper: arb
    weight: arb
    event: tuple[Interval, ...]


class DivergenceAt:
    """The divergence at one shift, enclosed as tightly as asked, at the precision in force.

    Guarantee of ``bound``: lower ≤ the integral ≤ upper, whatever the proposals and the budget. Precondition: the
    stretches cover the line but for finitely many points (audit.density). Rounding: outward (arb).
    """

    def __init__(
        self,
        stretches: Sequence[StretchBalls],
        proposals: Iterable[float],
        budget: float,
        anchor: Anchor | None = None,
        cuts: Sequence[fmpq] = (),
        frame: Frame | None = None,
        limits: Limits | None = None,
    ) -> None:
        check = (limits or Limits()).check
        roots = [root for root in proposals if math.isfinite(root)]
        self._inherited = cuts
        self._cells = cells = Cells(anchor)
        self._settled: list[tuple[StretchBalls, Interval]] = []
        for balls in stretches:
            if balls.sign > 0:
                self._settled.append((balls, balls.whole))
            if balls.sign != 0:
                continue
            cells.proved[balls] = []
            if frame is not None:
                self._take(balls, frame, roots, budget)
                continue
            ends = []
            for x in cut_points(balls, roots, cuts, budget):
                check()
                ends.append(balls.at(x))
            for left, right in pairwise(ends):
                check()
                cells.add(balls, left, right)
            if balls.whole[0] is None:
                cells.add_tail(balls, ends[0], False, budget)
            if balls.whole[1] is None:
                cells.add_tail(balls, ends[-1], True, budget)

    def _take(self, balls: StretchBalls, frame: Frame, roots: Sequence[float], budget: float) -> None:
        """The cells of a frame that speaks of this shift: what it left open is decided, the rest stands."""
        cells = self._cells
        cells.proved[balls] += frame.positive
        near = sorted([*self._inherited, *(point for root in roots for point in around(root))])
        for start, stop in frame.open:
            inside = near[bisect_right(near, start) : bisect_left(near, stop)]
            for left, right in pairwise([balls.at(x) for x in (start, *inside, stop)]):
                cells.add(balls, left, right)
        cells.add_tail(balls, balls.at(frame.first), False, budget)
        cells.add_tail(balls, balls.at(frame.last), True, budget)

    def has_coarse_tails(self, budget: float) -> bool:
        """Whether tails, charged for a larger budget, cost too much of this one."""
        return float(self._cells.tail_charge.upper()) > budget / 4

    def is_exhausted(self, limits: Limits) -> bool:
        """Whether the limit on cells has been reached."""
        return self._cells.count >= limits.cells

    def bound(self, budget: float, limits: Limits) -> PointBound:
        """The enclosure after splitting cells until their charges come to at most ``budget``.

        Where that cannot be met within ``limits.cells`` cells, the enclosure is what it is by then.
        """
        cells = self._cells
        cells.refine(budget, limits)
        event: list[Interval] = []
        total, weight = arb(0), arb(0)
        proved = [*self._settled, *((balls, part) for balls, parts in cells.proved.items() for part in joined(parts))]
        count = sum(balls.positive_mass.lines + balls.negative_mass.lines for balls, _ in proved)
        floor = math.log(budget / count) - NEGLIGIBLE if budget > 0 and count else -math.inf
        for balls, interval in proved:
            limits.check()
            event.append(interval)
            here = balls.negative_mass.over(interval, floor) if balls.lower is not None else arb(0)
            total += balls.positive_mass.over(interval, floor) - here
            weight += here
        # The mass of P cells is ≥ 0 by proof; the ball that encloses it may reach below.
        total = total.max(arb(0))
        return PointBound(total, total + cells.charges(), weight, tuple(event))

    def cuts(self) -> list[fmpq]:
        """Where cells were split, in order, but for the narrow ones round sign changes: good cuts for a shift
        nearby."""
        new = sorted(self._cells.splits)
        return new if len(self._inherited) > MOST_CUTS else sorted([*self._inherited, *new])
