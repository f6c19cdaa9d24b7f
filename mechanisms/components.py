"""A sum of exponentials as arrays of floats, one set for all σ of a Gaussian mixture. Proposes, never decides.

    Σ_j e^(h_j − c (x − m_j)²),     or     Σ_j e^(h_j + m_j x) where c = 0

The heights h and middles m of a mixture do not change with its σ, only c does. Each is kept as a float and the rest
that the float leaves out, so that differences of neighbours are as good as exact, and equal lines are known as such.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechanisms.arithmetic import FLOAT
from mechanisms.lines import Line, LineSum, log_factor
from mechanisms.numbers import nearest_float

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

EQUAL = 1e-28
"""Two reals nearer than this, relative to their size, are taken for one."""
LEAST_C, LARGEST_C = 1e-280, 1e280
"""Components are never narrower or wider than that (σ beyond 10^±140 Δ): floats would overflow."""


@dataclass(frozen=True)
class Reals:
    """Reals to 32 digits, each as two floats: the nearest one, and the rest. All of shape (count,)."""

    near: Floats
    rest: Floats

    @classmethod
    def of(cls, values: Iterable[Fraction]) -> Reals:
        """The reals that are given exactly."""
        exact = list(values)
        near = [nearest_float(value) for value in exact]
        rest = [_rest(value, close) for value, close in zip(exact, near, strict=True)]
        return cls(np.array(near, dtype=np.float64), np.array(rest, dtype=np.float64))

    def take(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> Reals:
        """Those at an index."""
        return Reals(self.near[index], self.rest[index])

    def __add__(self, other: Reals) -> Reals:
        total, rest = _two_sum(self.near, other.near)
        return Reals(*_two_sum(total, rest + self.rest + other.rest))

    def less(self, other: Reals) -> Floats:
        """The differences, rounded once or so."""
        difference: Floats = (self.near - other.near) + (self.rest - other.rest)
        return difference


def _rest(value: Fraction, near: float) -> float:
    """value − near; 0 where ``near`` is infinite."""
    if not math.isfinite(near):
        return 0.0
    numerator, denominator = near.as_integer_ratio()
    top = value.numerator * denominator - numerator * value.denominator
    return nearest_float(Fraction(top, value.denominator * denominator)) if top else 0.0


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """a + b rounded, and what the rounding left out."""
    with np.errstate(invalid="ignore"):
        total = a + b
        part = total - a
        rest = (a - (total - part)) + (b - part)
    return total, np.where(np.isfinite(rest), rest, 0.0)


@dataclass(frozen=True)
class Components:
    """The lines of a sum in order of their slopes; ``c`` = 0 where there is no Gaussian factor."""

    heights: Reals
    middles: Reals
    """Centres; slopes where c = 0."""
    c: float

    @classmethod
    @np.errstate(all="ignore")
    def of(cls, lines: LineSum) -> Components:
        """Those of a sum with lines; equal slopes are added exactly first."""
        c = lines.c
        rows = lines.lines
        if len(lines.slopes) < len(rows):
            rows = tuple(Line(terms, slope) for slope, terms in lines.by_slope.items())
        middles = Reals.of(line.slope / (2 * c) if c else line.slope for line in rows)
        heights = Reals.of(line.peak(c) for line in rows)
        if any(len(line.terms) > 1 or line.terms[0][0] != 1 for line in rows):
            factors = np.array([log_factor(line.terms, FLOAT) for line in rows])
            heights += Reals(factors, np.zeros_like(factors))
        order = np.lexsort((heights.near, middles.near))
        width = min(max(nearest_float(c), LEAST_C), LARGEST_C) if c else 0.0
        return cls(heights.take(order), middles.take(order), width)

    def __len__(self) -> int:
        return len(self.heights.near)

    def with_c(self, c: float) -> Components:
        """The same heights and middles under another Gaussian factor."""
        return replace(self, c=min(max(c, LEAST_C), LARGEST_C))

    def lifted(self, lift: Fraction) -> Components:
        """e^lift times the sum."""
        return replace(self, heights=self.heights + Reals.of([lift]))

    def steepness(self) -> float:
        """The slope of the sum at 0, up to a factor above 0; NaN where floats do not hold it."""
        with np.errstate(all="ignore"):
            exponent = self.heights.near - (self.c * self.middles.near**2 if self.c else 0.0)
            share = np.exp(exponent - exponent.max())
            return float((share * self.middles.near).sum())


def without_equals(there: Components, here: Components) -> tuple[Components, Components]:
    """Components whose difference, there(x + 1) − here(x), is the same, with equal exponentials cancelled.

    With geometric weights nearly all of them are equal, and no evaluation one by one could tell that.
    """
    if there.c != here.c:
        return there, here
    one = Reals(np.ones(1), np.zeros(1))
    minus_one = Reals(-one.near, one.rest)
    places = there.middles + minus_one if there.c else there.middles
    heights = there.heights if there.c else there.heights + there.middles
    of_positive = np.full(len(there), -1)
    nearest = np.searchsorted(here.middles.near, places.near)
    for step in (-1, 0, 1):
        at = np.clip(nearest + step, 0, len(here) - 1)
        equal = np.abs(here.middles.take(at).less(places)) <= EQUAL * (1 + np.abs(places.near))
        of_positive[equal] = at[equal]
    i = np.flatnonzero(of_positive >= 0)
    j = of_positive[i]
    rise = heights.take(i).less(here.heights.take(j))
    rise[np.abs(rise) <= EQUAL * (1 + np.abs(heights.near[i]))] = 0.0
    with np.errstate(divide="ignore"):
        factor = np.log(-np.expm1(-np.abs(rise)))
    found = []
    for part, at, kept in ((there, i, rise > 0), (here, j, rise < 0)):
        change = np.zeros(len(part))
        change[at] = np.where(kept, factor, -np.inf)
        some = np.isfinite(change)
        lifted = part.heights.take(some) + Reals(change[some], np.zeros(int(some.sum())))
        found.append(Components(lifted, part.middles.take(some), part.c))
    return found[0], found[1]


def masses(lines: Components, a: Floats, b: Floats) -> Floats:
    """∫ of a sum with c = 0 over each [a, b], of shape (intervals,); an infinite end is one where it falls."""
    slopes, heights = lines.middles.near[:, None], lines.heights.near[:, None]
    larger = np.where(slopes > 0, b, a)
    size, width = np.abs(slopes), b - a
    with np.errstate(all="ignore"):
        length = np.where(size > 0, -np.expm1(-size * width) / size, width)
        found: Floats = (np.exp(heights + slopes * larger) * length).sum(axis=0)
    return found
