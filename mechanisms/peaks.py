"""The highest peak of D over the shifts at one scale: at a glance, by a scan, or near one that is known. Proposes only.

Calibration asks at many scales: most of the time one evaluation of D, D′ and D″ near the peak of the scale before it
tells what it needs to know.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from mechanisms.curve import Curve
from mechanisms.numbers import natural_log
from mechanisms.shifts import Scan, refine

NODES = np.array([0.5, 0.65, 0.78, 0.87, 0.93, 0.97, 0.99, 0.998])
"""Shifts that are looked at for a glance."""
_STEPS = np.array([1e-4, 1e-3, 1e-2, 0.05, 0.15, 0.4, 1.0])
LADDER = np.concatenate([-_STEPS[::-1], [0.0], _STEPS, [2.0, 4.0, 8.0, 16.0]])
"""Steps of log(1 − φ), from a shift, in which its local maximum is sought."""
MAX_STEPS = 6
"""Most steps of Newton's before a peak is sought on the ladder."""
LEAST_LOG = -800.0
CLEAR = 1e-5
"""An excess of log D that a scan's rough values show for certain."""
ACCURATE = 1e-13
"""Error of log D that is always small enough."""
STEADY = 1e-3
"""Share of an excess that its error may have while a bracket shrinks."""


@dataclasses.dataclass(frozen=True)
class Peak:
    """A shift, and log(D / threshold) there."""

    shift: float
    excess: float
    tracked: bool = True
    """Whether it surely is the peak that was looked for."""


class Condition:
    """sup D ≤ threshold for the members of a family, each given by its σ."""

    def __init__(self, curves: Callable[[float], Curve], threshold: Fraction) -> None:
        self.log_goal = natural_log(threshold)
        self.curve = lru_cache(maxsize=4)(curves)
        """The curve at a scale."""

    def _peak(self, shift: float, value: float) -> Peak:
        return Peak(shift, max(math.log(value), LEAST_LOG) - self.log_goal if value > 0 else LEAST_LOG)

    def end(self, sigma: float) -> Peak:
        """The peak at φ = 1."""
        return self._peak(1.0, self.curve(sigma).end()[0])

    def glance(self, sigma: float) -> Peak:
        """The largest D at a few shifts: above the threshold shows that the condition fails, below it shows nothing."""
        if self.curve(sigma).rises:
            return self.end(sigma)
        value, slope, _ = self.curve(sigma).at(NODES, precise=False)
        at = int(value.argmax())
        found = self._peak(float(NODES[at]), float(value[at]))
        ahead = float(slope[at]) * (1 - found.shift)
        if at == len(NODES) - 1 and ahead >= 0 and self._peak(1.0, float(value[at]) + 2 * ahead).excess > -CLEAR:
            return max(found, self.end(sigma), key=lambda peak: peak.excess)
        return found

    def worst(self, sigma: float, known: Peak) -> Peak:
        """A shift with D clearly above the threshold if there is one, else the largest local maximum.

        ``known`` is a local maximum at this scale.
        """
        curve = self.curve(sigma)
        end, slope = curve.end()
        peaks = [known, self._peak(1.0, end)]
        if peaks[1].excess > CLEAR or curve.rises:
            return peaks[1]
        scan = Scan(curve, end, slope)
        scan.add(np.array([known.shift]))
        scan.run(math.exp(self.log_goal + CLEAR))
        top = self._peak(*scan.best())
        if top.excess > CLEAR:
            return top
        close = known.shift if abs(known.excess) < CLEAR else None
        peaks += [self._peak(*pair) for pair in scan.maxima(math.exp(self.log_goal), close)]
        return max(peaks, key=lambda peak: peak.excess)

    def follow(self, sigma: float, shift: float) -> Peak:
        """The local maximum near a shift at this scale, by Newton's method on D′; see STEADY for its accuracy."""
        curve = self.curve(sigma)
        start, least = shift, -math.inf
        for _ in range(MAX_STEPS):
            if shift == 1:
                break
            value, slope, curvature = (float(part[0]) for part in curve.at(np.array([shift])))
            if not (value > least and value > 0 and curvature < 0):
                break
            least, step = max(least, value * (1 - CLEAR)), -slope / curvature
            if not abs(step) < 0.5 * (1 - shift):
                break
            gain = slope * step / 2
            found = self._peak(shift + step, value + gain)
            if (gain / value) ** 1.5 <= max(STEADY * abs(found.excess), ACCURATE):
                return found
            shift = shift + step
        found = self.climb(sigma, start)
        return dataclasses.replace(found, tracked=found.excess > 0 or start == 1)

    def climb(self, sigma: float, shift: float) -> Peak:
        """The local maximum uphill of a shift at this scale, or the shift itself where that is higher."""
        if shift == 1:
            return self.end(sigma)
        curve = self.curve(sigma)
        rungs = 1 - np.minimum((1 - shift) * np.exp(-LADDER), 1.0)
        value, slope, _ = curve.at(rungs, precise=False)
        top = int(value.argmax())
        highest = self._peak(float(rungs[top]), float(value[top]))
        if highest.excess < -1:
            return highest
        start = int(np.flatnonzero(LADDER == 0)[0])
        here = self._peak(shift, float(value[start]))
        falls = slope <= 0
        if falls[start]:
            below = np.flatnonzero(~falls[:start])
            at = int(below[-1]) if len(below) else None
        else:
            above = np.flatnonzero(falls[start:])
            at = start + int(above[0]) - 1 if len(above) else None
        if at is None:
            return here if falls[start] else max(here, self.end(sigma), key=lambda peak: peak.excess)
        share = slope[at] / (slope[at] - slope[at + 1])
        bracket = rungs[at], rungs[at + 1], rungs[at] + share * (rungs[at + 1] - rungs[at])
        phi, height = refine(curve, *(np.array([x]) for x in bracket))
        found = self._peak(float(phi[0]), float(height[0]))
        return found if found.excess > here.excess - CLEAR else here
