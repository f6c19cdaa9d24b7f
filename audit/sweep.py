"""Boxes of shifts decided by tables of f, from coarse to fine; what they leave open goes to the balls. (trusted)"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from audit.exact import ball, float_lower, float_upper, upper
from audit.table import Alpha, Table, propose_table
from audit.verdict import Limits
from mechanisms.divergence import Curve
from mechanisms.form import Form
from mechanisms.shifts import refine

COARSEST, FINER, FINEST = 64, (256, 1024), 1024
"""Points of a table for each scale length; the error falls with the square."""
ENOUGH = 0.4
"""A table settles everything if its error is at most this share of the slack."""
MOST_BOXES = 256
"""So many boxes of one level at most are looked at."""
MOST_LIFT = 1
"""A box whose log κ is above this is halved without a look."""
CANDIDATES = 48
"""Of the shifts seen, those with the largest bounds among which peaks are sought."""
NEARLY = 0.9
"""Peaks lower than this share of the highest are not proposed."""


class Sweep:
    """Decides boxes for one density, ε and c, log f + c x² convex on the line; at the precision in force."""

    def __init__(self, form: Form, epsilon: Fraction, c: Fraction, table: Table, limits: Limits) -> None:
        self._form, self._epsilon, self._c, self._table, self._limits = form, epsilon, c, table, limits
        self.settled: list[tuple[int, int]] = []
        """(i, level) of the boxes [i, i+1]/2^level in which D is proved to be at most the goal of the last run."""
        self.waiting: list[tuple[int, int]] = []
        """Those of the last run that are not decided; with the others they cover [0, 1]."""
        self._seen: dict[Fraction, float] = {}

    @classmethod
    def of(cls, form: Form, epsilon: Fraction, c: Fraction, threshold: Fraction, limits: Limits) -> Sweep | None:
        """Where a table can serve this density."""
        table = propose_table(form, epsilon, threshold, COARSEST)
        return None if table is None else cls(form, epsilon, c, table, limits)

    def run(self, goal: Fraction) -> bool:
        """Whether D ≤ goal is proved for every shift in [0, 1]; see ``settled`` and ``waiting``."""
        self.settled, self.waiting = [], [(0, 0)]
        per_scale = COARSEST
        while True:
            excess = self._halve(goal)
            if not self.waiting:
                return True
            while excess > ENOUGH and per_scale <= FINEST:
                excess, per_scale = excess / 4, 2 * per_scale
            if per_scale > FINEST or not self._make_finer(goal, per_scale):
                return False

    def refine(self, goal: Fraction, done: Sequence[tuple[Fraction, Fraction]]) -> None:
        """Decide more of what waits, with finer tables; in the ranges ``done`` D is at most the goal."""
        for per_scale in FINER:
            if self.waiting and self._make_finer(goal, per_scale):
                self._halve(goal, done)

    def _make_finer(self, goal: Fraction, per_scale: int) -> bool:
        finer = propose_table(self._form, self._epsilon, goal, per_scale)
        if finer is None or finer.steps <= self._table.steps:
            return False
        self._table = finer
        return True

    def _halve(self, goal: Fraction, done: Sequence[tuple[Fraction, Fraction]] | None = None) -> float:
        """Decide or halve what waits, down to the lattice; the error of the table as a multiple of the slack.

        Without ``done``, ends where floats see D above the goal. Source: the inequality of audit.shape.Roughness,
        D_α ≤ κ max(D_{α/κ}) over the ends of a box. Rounding: outward.
        """
        most, alpha = float_lower(goal), Alpha.of(self._epsilon)
        excess = 0.0
        while self.waiting:
            self._limits.check()
            level = self.waiting[0][1]
            self._settle([i for i, _ in self.waiting if is_within(i, level, done or ())])
            lift = self._c / (4 << (2 * level))
            if lift <= MOST_LIFT and self.waiting:
                lifted, kappa = Alpha.of(self._epsilon - lift), float_upper(upper(ball(lift).exp())) * (1 + 2.0**-50)
                unit = self._table.steps >> level
                ends = {end for i, _ in self.waiting for end in (i, i + 1)}
                bounds = {end: self._upper(end * unit, lifted) * kappa for end in ends}
                self._seen |= {Fraction(end, 1 << level): bound for end, bound in bounds.items()}
                self._settle([i for i, _ in self.waiting if bounds[i] <= most and bounds[i + 1] <= most])
                if done is None and self.waiting:
                    worst = max((end for i, _ in self.waiting for end in (i, i + 1)), key=bounds.__getitem__)
                    value = self._estimate(worst * unit, alpha)
                    if value >= most:
                        return math.inf
                    excess = (bounds[worst] - value) / (most - value)
            most_boxes = min(MOST_BOXES, self._limits.boxes - len(self.settled))
            if level == self._table.level or 2 * len(self.waiting) > most_boxes:
                return excess
            self.waiting = [(half, level + 1) for i, _ in self.waiting for half in (2 * i, 2 * i + 1)]
        return 0.0

    def _upper(self, at: int, alpha: Alpha) -> float:
        """As the table's, which takes a while where it is long."""
        self._limits.check()
        return self._table.upper_divergence(at, alpha)

    def _estimate(self, at: int, alpha: Alpha) -> float:
        """As the table's, which takes a while where it is long."""
        self._limits.check()
        return self._table.estimate(at, alpha)

    def _settle(self, boxes: Sequence[int]) -> None:
        level, settled = self.waiting[0][1], set(boxes)
        self.settled += [(i, level) for i in boxes]
        self.waiting = [(i, level) for i, level in self.waiting if i not in settled]

    def peaks(self, polish: bool) -> list[Fraction]:
        """Shifts where floats see a high local maximum of D, the highest last; to more digits with ``polish``."""
        table, alpha = self._table, Alpha.of(self._epsilon)
        top = sorted(self._seen, key=self._seen.__getitem__)[-CANDIDATES:]
        seen = {int(shift * table.steps): 0.0 for shift in [*top, Fraction(1)]}
        seen = {at: self._estimate(at, alpha) for at in sorted(seen)}
        places = list(seen)
        high = NEARLY * max(seen.values())
        found = {}
        for k, at in enumerate(places):
            left, right = places[max(k - 1, 0)], places[min(k + 1, len(places) - 1)]
            if seen[at] >= max(high, seen[left], seen[right]):
                climbed, value = self._climb(at, max(at - left, right - at), alpha)
                found[climbed] = value
        order = sorted(found, key=found.__getitem__)[-4:]
        if polish:
            curve = Curve(self._form, self._epsilon, check=self._limits.check)
            return [self._polished(curve, at) for at in order]
        return [Fraction(at, table.steps) for at in order]

    def _climb(self, at: int, step: int, alpha: Alpha) -> tuple[int, float]:
        """A local maximum on the lattice, and D there."""
        steps, value = self._table.steps, self._estimate(at, alpha)
        while step > 0:
            for trial in (at - step, at + step):
                if 0 <= trial <= steps and (there := self._estimate(trial, alpha)) > value:
                    at, value = trial, there
                    break
            else:
                step //= 2
        return at, value

    def _polished(self, curve: Curve, at: int) -> Fraction:
        """The local maximum between the neighbours of a point of the lattice, or the point."""
        steps = self._table.steps
        if not 0 < at < steps:
            return Fraction(at, steps)
        low, high = np.array([(at - 1) / steps]), np.array([min((at + 1) / steps, 1 - 2.0**-50)])
        _, slope, _ = curve.at(np.concatenate([low, high]))
        if not slope[0] > 0 > slope[1]:
            return Fraction(at, steps)
        start = low + (high - low) * slope[0] / (slope[0] - slope[1])
        return Fraction(float(refine(curve, low, high, start)[0][0]))


def is_within(i: int, level: int, ranges: Sequence[tuple[Fraction, Fraction]]) -> bool:
    """Whether the box [i, i+1]/2^level lies in one of the ranges."""
    start, stop = Fraction(i, 1 << level), Fraction(i + 1, 1 << level)
    return any(low <= start and stop <= high for low, high in ranges)
