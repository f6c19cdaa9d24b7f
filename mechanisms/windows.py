"""Which x an integral over the shifts needs to look at, in float64. Proposes, never decides.

Where the lines of a sum stand at equal distances p and their heights fall by equal steps, f(x + p) = e^(−fall) f(x),
so log f(x + φ) − log f(x) has the period p: one period stands for all. Beyond some x all mass is negligible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechanisms.components import Components, Floats
from mechanisms.envelope import Envelope

LEAST_COPIES = 3
"""Fewer periods are looked at one by one."""
MOST_REPEATS = 8
SAME = 4e-16
"""Relative difference of two steps that are taken for equal."""


@dataclass(frozen=True)
class Repeat:
    """[low, high] stands for ``copies`` of itself, the n-th moved by n · step, with masses times e^(−fall n)."""

    low: float
    high: float
    step: float
    fall: float
    copies: int

    @property
    def cuts(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Where it meets what is looked at for itself, and the stretch of the copies; in order."""
        rest = (self.copies - 1) * self.step
        if self.step > 0:
            return (self.low, self.low), (self.high, self.high + rest)
        return (self.low + rest, self.low), (self.high, self.high)

    @property
    def weight(self) -> float:
        """Σ e^(−fall n) over the copies."""
        if not self.fall:
            return float(self.copies)
        return math.expm1(-self.fall * self.copies) / math.expm1(-self.fall)


@dataclass(frozen=True)
class Windows:
    """The x from ``start`` to ``stop``, less the copies of the ``repeats``."""

    start: float = -math.inf
    stop: float = math.inf
    repeats: tuple[Repeat, ...] = ()

    @property
    def cuts(self) -> list[tuple[float, float]]:
        """Stretches (of no length, some) that no interval crosses: those inside are left out."""
        return [cut for repeat in self.repeats for cut in repeat.cuts]

    def kept(self, nodes: Floats, reach: float = 0.0) -> Floats:
        """The nodes that are inside, or less than ``reach`` above."""
        inside = (nodes >= self.start) & (nodes <= self.stop + reach)
        for low, high in self.cuts:
            inside &= (nodes <= low + reach) | (nodes >= high)
        return nodes[inside]

    def weights(self, a: Floats, b: Floats) -> Floats:
        """For how many copies of itself each interval (a, b) stands, with their falling masses."""
        weight = np.ones_like(a)
        for repeat in self.repeats:
            weight[(a >= repeat.low) & (b <= repeat.high)] = repeat.weight
        return weight

    def unfolded(self, intervals: Floats) -> Floats:
        """All intervals, of shape (intervals, 2), in order, with the copies."""
        parts = [intervals]
        for repeat in self.repeats:
            mine = intervals[(intervals[:, 0] >= repeat.low) & (intervals[:, 1] <= repeat.high)]
            moves = repeat.step * np.arange(1, repeat.copies)
            parts.append((mine[:, None, :] + moves[:, None]).reshape(-1, 2))
        found = np.concatenate(parts)
        return found[np.argsort(found[:, 0], kind="stable")]


def windows_of(envelope: Envelope, floor: float = 0.0) -> Windows:
    """What to look at of f(x + φ) and of multiples of f(x), 0 ≤ φ ≤ 1, f the Gaussian sum of the envelope.

    ``floor`` is the share of the mass of f that may be left out.
    """
    start, stop = _range(envelope, floor) if floor > 0 else (-math.inf, math.inf)
    if len(envelope.leading) < len(envelope.components):
        return Windows(start, stop)
    repeats = []
    for first, last in _runs(envelope.components)[:MOST_REPEATS]:
        repeat = _repeat(envelope, first + envelope.reach, last - envelope.reach, start, stop)
        if repeat is not None:
            repeats.append(repeat)
    return Windows(start, stop, tuple(sorted(repeats, key=lambda repeat: repeat.low)))


def _range(envelope: Envelope, floor: float) -> tuple[float, float]:
    """From where to where f has all its mass but for a share ``floor``, moved to the left by up to 1."""
    weight = np.exp(envelope.heights - envelope.heights.max())
    beyond = np.cumsum(weight), np.cumsum(weight[::-1])
    low, high = (int(np.searchsorted(total, floor / 4 * total[-1])) for total in beyond)
    reach = envelope.scale * math.sqrt(2 * math.log(4 / floor))
    return float(envelope.middles[low]) - reach - 1, float(envelope.middles[-1 - high]) + reach


def _runs(components: Components) -> list[tuple[int, int]]:
    """First and last line of the longest rows with equal distances and equal steps of heights; longest first."""
    if len(components) < LEAST_COPIES:
        return []
    after, before = np.arange(1, len(components)), np.arange(len(components) - 1)
    same = np.ones(len(components) - 2, dtype=bool)
    for values in (components.middles, components.heights):
        step = values.take(after).less(values.take(before))
        same &= np.abs(np.diff(step)) <= SAME * np.abs(step[1:])
    edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
    found = [(int(a), int(b) + 1) for a, b in edges.reshape(-1, 2)]
    return sorted(found, key=lambda run: run[0] - run[1])


def _repeat(envelope: Envelope, first: int, last: int, start: float, stop: float) -> Repeat | None:
    """The period between the leads ``first`` and ``last``, all of whose lines that matter are of one row."""
    if last <= first or first < 1:
        return None
    low = max(float(envelope.takeover[first - 1]), start)
    high = min(float(envelope.takeover[last - 1]) - 1, stop)
    period = float(envelope.middles[first + 1] - envelope.middles[first])
    fall = float(envelope.heights[first] - envelope.heights[first + 1])
    if not high - low >= LEAST_COPIES * period:
        return None
    copies = int((high - low) / period)
    if fall >= 0:
        return Repeat(low, low + period, period, fall, copies)
    return Repeat(high - period, high, -period, -fall, copies)
