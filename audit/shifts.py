"""sup of D(φ) over the shifts of a claim: verified, refuted at a shift, or inconclusive. (trusted)

A box of shifts is bounded from its two ends by the inequality of audit.shape.Roughness, or halved. On a grid
(theorem-3.2) only the grid's points count: a box without any is done, and one with few is decided point by point.
Everything is in units of Δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import flint
from flint import arb

from audit.cover import propose_cover
from audit.divergence import PointBound
from audit.exact import ball, lower, upper
from audit.masses import Interval
from audit.shape import Roughness, falls_from_centre, is_log_concave, is_pure
from audit.single import NeedBits, NeedBoxes, Points
from audit.summit import Range
from audit.sweep import Sweep, is_within
from audit.verdict import Expired, Limits
from mechanisms.form import Form
from mechanisms.lines import ZERO

START_BITS = 128
SHIFT_STEP = Fraction(1, 2**40)
"""Proposed shifts are rounded to this: D is flat to second order at an interior worst shift."""
NARROWER = 8
FEWEST, MOST = 8, 512
"""Cells are decided for all boxes left at once when these span so much less than the last time, and are so many."""
MOST_LIFT = 400
"""A box whose log κ is above this is halved without a look."""
SMALL_GRID = 64
"""A grid of so many points is decided point by point."""
FEW = 2
"""Up to so many grid points in a box are decided one by one."""
MEASURED = Fraction(1, 2**26)
"""Relative width of the enclosure of D at the highest peak."""
NEAR_GOAL = Fraction(1, 2**8)
"""Maxima within this share of the goal are worth a summit."""
PEAK_STEP = Fraction(1, 2**80)
TIGHT_BOXES = 64
"""How many boxes may be spent on a bound of sup D below the threshold before only the threshold is proved."""


@dataclass(frozen=True)
class Peak:
    """A shift at which D was enclosed from below, and the event that attains it."""

    shift: Fraction
    index: int | None
    lower: Fraction
    event: tuple[Interval, ...]


@dataclass(frozen=True)
class Supremum:
    """What a search found of sup D: the peak, an upper bound (None where the search did not get that far), and its
    cost."""

    peak: Peak | None
    upper: Fraction | None
    exceeds: bool
    """The peak's lower bound is above the threshold: refuted."""
    bits: int
    boxes: int
    stopped: str
    """Why the search ended early; empty where it did not."""


@dataclass(frozen=True)
class Box:
    """The shifts from i/2^level to (i+1)/2^level."""

    i: int
    level: int

    @property
    def width(self) -> Fraction:
        return Fraction(1, 1 << self.level)

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        return self.i * self.width, (self.i + 1) * self.width

    def halves(self) -> tuple[Box, Box]:
        """Two boxes with a common end."""
        return Box(2 * self.i, self.level + 1), Box(2 * self.i + 1, self.level + 1)

    def grid_points(self, size: int) -> tuple[int, int]:
        """The first and the last i for which i/size lies in the box; the last before the first where none does."""
        start, stop = self.ends
        return math.ceil(start * size), math.floor(stop * size)


def is_cover(boxes: Sequence[tuple[int, int]]) -> bool:
    """Whether the boxes [i, i+1]/2^level, given as (i, level), cover [0, 1] without a gap or an overlap."""
    deepest = max((level for _, level in boxes), default=0)
    at = 0
    for start, width in sorted((i << (deepest - level), 1 << (deepest - level)) for i, level in boxes):
        if start != at:
            return False
        at += width
    return at == 1 << deepest


class Search:
    """Branch and bound over the shifts in [0, 1], for one form, ε and threshold."""

    def __init__(
        self,
        form: Form,
        epsilon: Fraction,
        threshold: Fraction,
        *,
        grid: int | None,
        tightness: Fraction | None,
        floor: Fraction = Fraction(0),
        limits: Limits,
        progress: Callable[[float], None] | None,
    ) -> None:
        self.form, self.epsilon, self.threshold = form, epsilon, threshold
        self.grid, self.limits, self.progress = grid, limits, progress
        self.tightness, self.floor = tightness, floor
        self.bits = START_BITS
        self.boxes = 0
        self.peak: Peak | None = None
        self._aimed = False
        self._sweep: Sweep | None = None
        self._holds = False
        """Whether tables have proved D ≤ threshold; what follows only makes the bound tighter."""
        self._todo: list[Fraction] | None = None
        self._tops: dict[Fraction, Fraction] = {}
        """Shifts looked at, and lower bounds of D there."""
        self._summits: list[tuple[Fraction, Fraction]] = []
        """Ranges of shifts in which D is at most the goal."""
        self.goal = threshold
        """What is being proved: at most the threshold, less where the peaks seen so far allow a tighter bound."""

    def run(self, propose: Callable[[], Sequence[Fraction]], seeds: Sequence[Fraction] = ()) -> Supremum:
        """Decide sup D ≤ threshold, looking first at the shifts ``seeds`` and at those where floats see peaks.

        ``propose`` finds these, the highest last, where no table serves.
        """
        pending: list[Box] = []
        stopped = ""
        while True:
            try:
                with flint.ctx.workprec(self.bits):
                    done = self._attempt(propose, seeds, pending)
                break
            except NeedBits:
                if 2 * self.bits > self.limits.bits:
                    stopped = f"{self.bits} bits do not resolve it; raise the limit on bits"
                    done = False
                    break
                self.bits *= 2
            except NeedBoxes as error:
                stopped, done = f"{error}; raise the limit on boxes", False
                break
            except Expired:
                where = _span(pending[-1] if pending else Box(0, 0))
                stopped, done = f"the time limit ended the search in the box of shifts {where}; raise it", False
                break
        exceeds = self.peak is not None and self.peak.lower > self.threshold
        if self._holds and not done and not exceeds:
            return Supremum(self.peak, self.threshold, False, self.bits, self.boxes, "")  # only the evidence is looser
        return Supremum(self.peak, self.goal if done else None, exceeds, self.bits, self.boxes, stopped)

    def _attempt(
        self, propose: Callable[[], Sequence[Fraction]], seeds: Sequence[Fraction], pending: list[Box]
    ) -> bool:
        """Work off the lists at the precision in force; True when every shift is bounded by the goal."""
        points = Points(self.form, self.limits, self.threshold)
        if is_log_concave(self.form) or falls_from_centre(self.form) or is_pure(self.form, self.epsilon):
            return not self._look(points, Fraction(1))
        if self.grid is not None and self.grid <= SMALL_GRID:
            return not any(self._look(points, Fraction(i, self.grid)) for i in range(self.grid + 1))
        rough = Roughness.of(self.form)
        if self._todo is None:
            self._todo = self._plan(rough, propose, seeds)
        while self._todo:
            if self._look(points, self._todo[-1]):
                return False
            self._todo.pop()
        if self._sweep is not None and not pending:
            if self._sweep.waiting:
                self.goal, self.tightness = self.threshold, None
            elif self.goal == self.threshold or self._sweep.run(self.goal):
                self._report(Fraction(0))
                return True
            self.boxes = len(self._sweep.settled)
        return self._cover(points, rough, pending)

    def _plan(
        self, rough: Roughness, propose: Callable[[], Sequence[Fraction]], seeds: Sequence[Fraction]
    ) -> list[Fraction]:
        """The shifts to look at, the most promising last; what a table decides is decided first."""
        if not rough.points and self.threshold > 0:
            self._sweep = Sweep.of(self.form, self.epsilon, rough.c, self.threshold, self.limits)
        if self._sweep is None:
            peaks = propose()
        elif self._sweep.run(self.threshold):
            self._holds = True
            peaks, seeds = self._sweep.peaks(polish=False)[-1:], ()
        else:
            peaks = [Fraction(1), *self._sweep.peaks(polish=True)]
        if not peaks and not seeds:
            peaks = [Fraction(1)]
        step = SHIFT_STEP if self.grid is None else Fraction(1, self.grid)
        rounded = [min(max(round(shift / step) * step, ZERO), Fraction(1)) for shift in [*peaks, *seeds]]
        return list(dict.fromkeys(reversed(rounded)))[::-1]

    def _find_summits(self, points: Points, rough: Roughness) -> None:
        """Ranges of shifts round the highest local maxima, in which D is at most the goal."""
        level = 8 if self._sweep is None else self._sweep.waiting[0][1]
        for shift, low in list(self._tops.items()):
            near = not rough.points and 0 < shift < 1 and low > self.goal * (1 - NEAR_GOAL)
            if not near or any(start < shift < stop for start, stop in self._summits):
                continue
            for finer in range(level, level + 24, 3):
                self.limits.check()
                found, shift = self._summit_of(points, shift, finer)
                if found is not None:
                    self._summits.append(found)
                    break

    def _summit_of(
        self, points: Points, shift: Fraction, level: int
    ) -> tuple[tuple[Fraction, Fraction] | None, Fraction]:
        """The box of that level round the shift with its neighbours, where D ≤ goal is proved in them; and a shift
        nearer to the local maximum."""
        i = math.floor(shift * 2**level)
        start, stop = Fraction(max(i - 1, 0), 2**level), Fraction(min(i + 2, 2**level), 2**level)
        for _ in range(2):
            summit = points.summit(Range(start, shift, stop), self.epsilon)
            if summit is None:
                break
            excess = summit.excess / points.mass
            if excess < ball(self.goal * NEAR_GOAL):
                goal = ball(self.goal - upper(excess))
                bound, low, high = points.evaluate(shift, self.epsilon, goal)
                if self.grid is None:
                    self._note_peak(shift, low, bound)
                if high <= goal:
                    return (start, stop), shift
            nearer = round((shift - Fraction(summit.slope / summit.bend)) / PEAK_STEP) * PEAK_STEP
            if not start < nearer < stop:
                break
            shift = nearer
        return None, shift

    def _cover(self, points: Points, rough: Roughness, pending: list[Box]) -> bool:
        if not pending:
            self._find_summits(points, rough)
            if self._sweep is not None:
                self._sweep.refine(self.goal, self._summits)
            pending += self._first_boxes(rough)
        focused = 1.0
        remaining = sum((box.width for box in pending), Fraction(0))
        while pending:
            self.limits.check()
            focused = self._focus(points, rough, pending, focused)
            box = pending[-1]
            first, last = (0, FEW) if self.grid is None else box.grid_points(self.grid)
            settled = last < first or is_within(box.i, box.level, self._summits) or self._is_bounded(points, rough, box)
            if not settled and self.grid is not None:
                settled = last - first < FEW
                if settled and any(self._look(points, Fraction(i, self.grid)) for i in range(first, last + 1)):
                    return False
            if settled:
                pending.pop()
                self.boxes += 1
                remaining -= box.width
                self._report(remaining)
                continue
            if self.boxes + len(pending) > self.limits.boxes or box.level > self.limits.bits:
                raise NeedBoxes(f"{self.boxes} boxes of shifts were not enough (working on {_span(box)})")
            if self.boxes >= TIGHT_BOXES:
                self.goal, self.tightness = self.threshold, None  # the verdict comes before the evidence
            left, right = box.halves()
            if self.grid is None and self._look(points, left.ends[1]):
                return False
            pending[-1:] = [right, left]
        return True

    def _report(self, remaining: Fraction) -> None:
        if self.progress is not None:
            self.progress(1 - float(remaining))

    def _first_boxes(self, rough: Roughness) -> list[Box]:
        """A cover to start from, in the order of work, from the last: the wider of two neighbours first, whose bound
        at the common end serves both; and what lies beyond the worst shift before what surrounds it."""
        if rough.points or self.goal == 0:
            return [Box(0, 0)]
        most = min(self.limits.boxes, 4096)
        worst = None if self.peak is None else float(self.peak.shift)
        settled, waiting = ([], [(0, 0)]) if self._sweep is None else (self._sweep.settled, self._sweep.waiting)
        if not waiting:
            return []
        found = propose_cover(
            self.form, self.epsilon, float(self.goal), rough.c, most, worst, waiting, self._summits, self.limits.check
        )
        if len(found) > self.limits.boxes:
            raise NeedBoxes(f"more than {self.limits.boxes} boxes of shifts would be needed")
        if not is_cover([*settled, *found]):  # floats made it
            return [Box(*box) for box in waiting]
        middle = Fraction(1) if worst is None else (1 + Fraction(worst)) / 2
        boxes = [Box(i, level) for i, level in found]
        return sorted(boxes, key=lambda box: (box.ends[0] >= middle, -box.level))

    def _focus(self, points: Points, rough: Roughness, pending: list[Box], focused: float) -> float:
        """Where the boxes left have drawn together, decide cells for all of them at once; the width last focused on."""
        if not FEWEST <= len(pending) <= MOST or max(box.level for box in pending) > 1000:  # that is beyond floats
            return focused
        start = min(math.ldexp(box.i, -box.level) for box in pending)
        stop = max(math.ldexp(box.i + 1, -box.level) for box in pending)
        if stop - start > focused / NARROWER:
            return focused
        points.focus((Fraction(start), Fraction(stop)), self.epsilon, rough.lift(pending[-1].width))
        return stop - start

    def _look(self, points: Points, shift: Fraction) -> bool:
        """Enclose D at one shift of the claim; True where it exceeds the threshold. Raises the goal where it must."""
        threshold, goal = ball(self.threshold), ball(self.goal)
        bound, low, high = points.evaluate(shift, self.epsilon, goal)
        self._note_peak(shift, low, bound)
        if low > threshold:
            if self.tightness is not None:
                bound, low, _ = points.measure(shift, self.epsilon, MEASURED, threshold)
                self._note_peak(shift, low, bound)
            return True
        if self.tightness is None or (self._aimed and high <= goal):
            return False
        # The first shift, or a higher peak than those seen: measure it, and aim a little above it.
        bound, low, high = points.measure(shift, self.epsilon, MEASURED, ball(self.floor))
        self._note_peak(shift, low, bound)
        self._aimed = True
        self.goal = min(self.threshold, max(upper(high), self.floor) * (1 + self.tightness))
        if high <= threshold:
            return False
        bound, low, high = points.evaluate(shift, self.epsilon, threshold)
        self._note_peak(shift, low, bound)
        return bool(low > threshold)

    def _note_peak(self, shift: Fraction, low: arb, bound: PointBound) -> None:
        """Keep the shift with the largest lower bound."""
        least = max(lower(low), Fraction(0))
        self._tops[shift] = max(least, self._tops.get(shift, ZERO))
        if self.peak is None or least > self.peak.lower:
            index = None if self.grid is None else int(shift * self.grid)
            self.peak = Peak(shift, index, least, bound.event)

    def _is_bounded(self, points: Points, rough: Roughness, box: Box) -> bool:
        """Whether D ≤ goal is proved for every shift of the claim in the box."""
        lift = rough.lift(box.width)
        if lift > MOST_LIFT:
            return False
        goal = ball(self.goal)
        if rough.points:
            goal = goal - rough.upper_charge(points.form, box.width) / points.mass
        goal = goal * ball(-lift).exp()
        if goal > 0:
            return all(points.is_at_most(shift, self.epsilon - lift, goal) for shift in box.ends)
        return False


def _span(box: Box) -> str:
    return f"[{box.i}, {box.i + 1}]/2^{box.level}·Δ"
