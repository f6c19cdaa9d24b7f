"""D, D′ and D″ over the shifts in float64, for one form and one ε: vectorised, and cheap to move to another σ.

D(φ) = ∫ max( f(x+φ) − e^ε f(x), 0 ) dx, f the normalised density. Float code proposes, it never decides.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mechanisms.components import Components, Floats, masses, without_equals
from mechanisms.envelope import Envelope
from mechanisms.form import Form
from mechanisms.log_ratio import CANCELLED, LogRatio
from mechanisms.numbers import nearest_float
from mechanisms.shifts import rises_with_shift
from mechanisms.sign_changes import Rows, positive_runs
from mechanisms.windows import Windows, windows_of

ROUGH = 1e-4
"""The last step of Newton's, in scale lengths, for a sign change that a scan accepts: it is then good to the square of
that or so, and D feels the square of its error."""
POINTS = 40_000
"""Nodes of log ratios that are worked on at a time, unless those of one shift are more."""


@dataclass(frozen=True)
class _Part:
    """A piece of f on [start, stop], ±∞ allowed, and the same lifted by ε."""

    start: float
    stop: float
    there: Components
    here: Components


class _Density:
    """A sum of Components with its envelope."""

    def __init__(self, components: Components, check: Callable[[], None]) -> None:
        self.components = components
        self.envelope = Envelope(components, check)

    def lifted(self, components: Components) -> _Density:
        """The same sum with other heights, that differ from its own by a constant."""
        found = copy.copy(self)
        found.components, found.envelope = components, self.envelope.lifted(components)
        return found

    def mass(self, a: Floats, b: Floats) -> Floats:
        """∫ of the sum over each [a, b]."""
        return self.envelope.mass(a, b) if self.components.c else masses(self.components, a, b)


@dataclass(frozen=True)
class _Overlap:
    """Two pieces of the form: x + φ in the one, x in the other. Ends as floats, ±∞ allowed.

    ``positive`` and ``negative`` have the same difference as the two, where equal exponentials cancel.
    """

    there: _Density
    here: _Density | None
    there_ends: tuple[float, float]
    here_ends: tuple[float, float]
    positive: _Density
    negative: _Density | None
    ratio: LogRatio | None

    @classmethod
    def of(cls, there: _Density, here: _Density | None, ends: _Ends, windows: Windows | None = None) -> _Overlap:
        """With nothing cancelled."""
        return cls(there, here, *ends, there, here, _ratio(there, here, windows))

    def cancelled(self, check: Callable[[], None]) -> _Overlap | None:
        """For φ = 1, with equal exponentials cancelled; None where nothing positive is left."""
        if self.here is None:
            return self
        sums = without_equals(self.there.components, self.here.components)
        if len(sums[0]) == len(self.there.components):
            return self
        if not len(sums[0]):
            return None
        positive = _Density(sums[0], check)
        negative = _Density(sums[1], check) if len(sums[1]) else None
        return replace(self, positive=positive, negative=negative, ratio=_ratio(positive, negative, None))

    @property
    def windows(self) -> Windows:
        return Windows() if self.ratio is None else self.ratio.windows

    @property
    def points(self) -> int:
        """Nodes for one shift, with the two ends."""
        return 2 if self.ratio is None else 2 + sum(len(nodes) for nodes in self.ratio.nodes)


_Ends = tuple[tuple[float, float], tuple[float, float]]


def _ratio(there: _Density, here: _Density | None, windows: Windows | None) -> LogRatio | None:
    return None if here is None else LogRatio(there.envelope, here.envelope, 1.0, windows)


class Curve:
    """D, D′ and D″ as functions of φ, for one form and one ε, vectorised over φ; 0 ≤ φ ≤ 1.

    At φ = 1 exactly and level 0 equal exponentials cancel first, as Reals. At φ = 1 and a level that is not 0 nothing
    cancels exactly, and D is as good as at any other φ. Many shifts are worked off a few at a time, so that memory does
    not grow with their number; ``check`` is called in between, and may raise. ``floor`` is a mass that D may leave out.
    """

    def __init__(
        self, form: Form, epsilon: Fraction, *, floor: float = 0.0, check: Callable[[], None] = lambda: None
    ) -> None:
        self._floor, self._check = floor, check
        self._rises = rises_with_shift(form)
        parts = []
        for piece in form.whole_line:
            there = Components.of(piece.sum)
            start = -np.inf if piece.start is None else nearest_float(piece.start)
            stop = np.inf if piece.stop is None else nearest_float(piece.stop)
            parts.append(_Part(start, stop, there, there.lifted(epsilon)))
        self._build(tuple(parts))

    def with_scale(self, sigma: float) -> Curve:
        """The curve of the same Gaussians at another σ, in the unit of the form: all heights and middles stay."""
        found = copy.copy(self)
        found.__dict__.pop("_last", None)
        c = 0.5 / sigma / sigma
        found._build(tuple(_Part(p.start, p.stop, p.there.with_c(c), p.here.with_c(c)) for p in self._parts))
        return found

    def _build(self, parts: tuple[_Part, ...]) -> None:
        self._parts = parts
        with np.errstate(all="ignore"):
            densities = [_Density(part.there, self._check) if len(part.there) else None for part in parts]
            ends = [(part.start, part.stop) for part in parts]
            bounds = [(np.array([start]), np.array([stop])) for start, stop in ends]
            self.mass = sum(
                float(density.mass(*bound)[0]) for density, bound in zip(densities, bounds, strict=True) if density
            )
            self._overlaps = []
            for there, there_ends in zip(densities, ends, strict=True):
                for part, density, here_ends in zip(parts, densities, ends, strict=True):
                    if there and there_ends[0] - 1 < here_ends[1] and here_ends[0] < there_ends[1]:
                        here = density and density.lifted(part.here)
                        windows = windows_of(there.envelope, self._floor) if len(parts) == 1 and part.there.c else None
                        self._overlaps.append(_Overlap.of(there, here, (there_ends, here_ends), windows))
        self.points = max((overlap.points for overlap in self._overlaps), default=2)
        """Points at which the integrand is looked at, for one shift."""
        self._rows = max(1, POINTS // self.points)

    @property
    def rises(self) -> bool:
        """Whether D is known to rise with φ, as f is log-concave: σ² is no less than any variance of the means."""
        (first, *others) = self._parts
        reach = float(np.abs(first.there.middles.near).max(initial=0.0))
        return self._rises or (not others and first.there.c > 0 and 2 * first.there.c * reach * reach <= 1)

    @property
    def breaks(self) -> Floats:
        """Where the formula of f changes."""
        return np.array([part.stop for part in self._parts if np.isfinite(part.stop)])

    @property
    def roughness(self) -> float | None:
        """The c of f = e^(−c x²) E(x), log E convex on the line; None where the form does not show one."""
        inner = self._parts[len(self._parts) // 2]
        if len(self._parts) > 2 or np.isfinite(inner.stop) or not inner.there.c:
            return None
        return inner.there.c if len(self._parts) == 1 or inner.there.steepness() >= 0 else None

    def at(self, shift: Floats, level: Floats | None = None, precise: bool = True) -> tuple[Floats, Floats, Floats]:
        """(D, D′, D″) at each shift, of ε + level in place of ε. D″ leaves out what comes from jumps and kinks of f.

        ``precise``: D to about 11 digits where positive and negative masses nearly cancel, else to about 7.
        """
        level = np.zeros_like(shift) if level is None else level
        found = np.zeros((3, len(shift)))
        last = (shift == 1) & (level == 0)
        for overlaps, chosen in ((self._overlaps, np.flatnonzero(~last)), (self._last, np.flatnonzero(last))):
            for start in range(0, len(chosen), self._rows):
                part = chosen[start : start + self._rows]
                found[:, part] = self._evaluate(overlaps, shift[part], level[part], precise)
        with np.errstate(all="ignore"):
            value, slope, curvature = found / self.mass
        return value, slope, curvature

    def intervals(self, shift: float, level: float = 0.0) -> Floats:
        """As positive_intervals, of f(x + φ) − e^(ε + level) f(x); neighbours that touch are not joined."""
        return self.evaluate(shift, level)[0]

    def evaluate(self, shift: float, level: float = 0.0) -> tuple[Floats, float]:
        """(the intervals, D) at one shift."""
        overlaps = self._last if shift == 1 and level == 0 else self._overlaps
        with np.errstate(all="ignore"):
            found = self._runs(overlaps, np.array([shift]), np.array([level]), True)
            return _bounds(found), float(self._total(found, 1, 1e4)[0]) / self.mass

    def end(self) -> tuple[float, float]:
        """(D(1), D′(1))."""
        value, slope, _ = self.at(np.ones(1))
        return float(value[0]), float(slope[0])

    @cached_property
    def _last(self) -> list[_Overlap]:
        """The overlaps for φ = 1, equal exponentials cancelled."""
        with np.errstate(all="ignore"):
            cancelled = [overlap.cancelled(self._check) for overlap in self._overlaps]
        return [overlap for overlap in cancelled if overlap is not None]

    def _evaluate(self, overlaps: list[_Overlap], shift: Floats, level: Floats, precise: bool) -> Floats:
        with np.errstate(all="ignore"):
            found = self._runs(overlaps, shift, level, precise)
            result = np.zeros((3, len(shift)))
            result[0] = self._total(found, len(shift), 1e4 if precise else 1e8)
            for runs in found:
                self._add_slopes(result[1], result[2], runs)
        return result

    def _runs(self, overlaps: list[_Overlap], shift: Floats, level: Floats, precise: bool) -> list[_Runs]:
        found = []
        for overlap in overlaps:
            windows = overlap.windows
            moving = overlap.there_ends[0] - shift, overlap.there_ends[1] - shift
            start = np.maximum(np.maximum(moving[0], overlap.here_ends[0]), windows.start)
            stop = np.minimum(np.minimum(moving[1], overlap.here_ends[1]), windows.stop)
            some = np.flatnonzero(start < stop)
            if not len(some):
                continue
            rows = Rows(start[some], stop[some], shift[some], level[some])
            if overlap.ratio is None:
                row, a, b = np.arange(len(some)), rows.start, rows.stop
            else:
                row, a, b = positive_runs(overlap.ratio, rows, 0.0 if precise else ROUGH)
            cuts = np.array(windows.cuts).ravel()
            bounds = [
                (end, np.full(len(end), sign), (end == fixed[row]) | np.isin(end, cuts), end == move[some][row])
                for end, sign, fixed, move in ((a, -1.0, rows.start, moving[0]), (b, 1.0, rows.stop, moving[1]))
            ]
            found.append(_Runs(overlap, some[row], bounds, rows.shift[row], rows.level[row], windows.weights(a, b)))
        return found

    @staticmethod
    def _total(found: list[_Runs], count: int, tolerated: float) -> Floats:
        """Σ of positive − negative mass for each shift, integrated anew where it cancels more than is tolerated."""
        parts = []
        for runs in found:
            a, b = (bound[0] for bound in runs.bounds)
            positive, negative = runs.overlap.positive.mass(a + runs.shift, b + runs.shift), runs.overlap.negative
            mass = positive if negative is None else positive - np.exp(runs.level) * negative.mass(a, b)
            parts.append((positive, mass))
        total = np.zeros(count)
        for runs, (_, mass) in zip(found, parts, strict=True):
            total += np.bincount(runs.owner, mass * runs.weight, count)
        for runs, (positive, mass) in zip(found, parts, strict=True):
            lost = (positive > tolerated * total[runs.owner]) & (mass < CANCELLED * positive)
            if runs.overlap.ratio is not None and lost.any():
                a, b = (bound[0][lost] for bound in runs.bounds)
                better = runs.overlap.ratio.integral(a, b, runs.shift[lost], runs.level[lost], mass[lost])
                total += np.bincount(runs.owner[lost], (better - mass[lost]) * runs.weight[lost], count)
        return total

    def _add_slopes(self, slope: Floats, curvature: Floats, runs: _Runs) -> None:
        overlap, count = runs.overlap, len(slope)
        end, sign, fixed, moving = (np.concatenate(part) for part in zip(*runs.bounds, strict=True))
        finite = np.isfinite(end)
        phi, owner, weight, level = (
            np.tile(values, 2)[finite] for values in (runs.shift, runs.owner, runs.weight, runs.level)
        )
        x, signed, jumps = end[finite], sign[finite] * weight, (fixed & moving)[finite]
        log_there, score_there = overlap.there.envelope.log_and_score(x + phi)
        density = np.exp(log_there)
        if overlap.here is None:
            slope += np.bincount(owner, np.where(jumps, 0.0, signed * density), count)
            return
        log_here, score_here = overlap.here.envelope.log_and_score(x)
        slope += np.bincount(owner, signed * np.where(jumps, np.exp(log_here + level), density), count)
        bend = -density * score_there * score_here / (score_there - score_here)
        root = ~fixed[finite] & np.isfinite(bend)
        curvature += np.bincount(owner[root], (signed * bend)[root], count)


@dataclass(frozen=True)
class _Runs:
    """Intervals with R > 0 of one overlap, for many shifts.

    ``owner`` is the shift that each belongs to; ``bounds``, of the lower and of the upper ends: x, the sign in D′,
    whether it is the end of the stretch or a cut, and whether that end moves with φ. ``weight`` is as Windows.weights.
    """

    overlap: _Overlap
    owner: NDArray[np.intp]
    bounds: list[tuple[Floats, Floats, NDArray[np.bool_], NDArray[np.bool_]]]
    shift: Floats
    level: Floats
    weight: Floats


def _bounds(found: list[_Runs]) -> Floats:
    """All intervals, of shape (intervals, 2)."""
    ends = [
        runs.overlap.windows.unfolded(np.stack([runs.bounds[0][0], runs.bounds[1][0]], axis=1)) for runs in found
    ]
    return np.concatenate(ends) if ends else np.empty((0, 2))
