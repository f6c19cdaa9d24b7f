"""The hockey-stick divergence D(φ) in float64: sign changes, values, and its local maxima over the shifts in [0, Δ].

D(φ) = ∫ max( f(x+φ) − e^ε f(x), 0 ) dx, f the normalised density. Float code proposes, it never decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechanisms.arithmetic import FLOAT
from mechanisms.difference import Stretch, difference
from mechanisms.envelope import Floats, chunks, masses
from mechanisms.form import Form, Piece
from mechanisms.lines import Line, LineSum, log_factor
from mechanisms.log_ratio import CANCELLED, LogRatio
from mechanisms.numbers import natural_log, nearest_float
from mechanisms.shifts import Scan, rises_with_shift
from mechanisms.sign_changes import Rows, positive_runs

ROUGH = 1e-6
"""Error of a sign change, in scale lengths, that a scan accepts: D feels its square."""
MAX_PIECES = 64
"""Most pieces on the whole line for a scan over the shifts: its cost grows with their square."""
POINTS = 40_000
"""Nodes of log ratios that are worked on at a time, unless those of one shift are more."""
_LEAST_C, _LARGEST_C = Fraction(10) ** -280, Fraction(10) ** 280


def positive_intervals(stretches: Sequence[Stretch]) -> Floats:
    """The intervals on which positive > negative, in order, as an array of shape (n, 2); ends may be ±∞.

    Sign changes are good to a few units in the last place where the two sums are well resolved in float64; touching
    intervals of neighbouring stretches are one.
    """
    found: list[tuple[float, float]] = []
    with np.errstate(all="ignore"):
        for stretch in stretches:
            for a, b in _intervals(stretch)[0]:
                if found and found[-1][1] == a:
                    found[-1] = (found[-1][0], b)
                elif b > a:
                    found.append((a, b))
    return np.array(found, dtype=np.float64).reshape(-1, 2)


def _ends(stretch: Stretch) -> tuple[float, float]:
    start = -np.inf if stretch.start is None else nearest_float(stretch.start)
    return start, np.inf if stretch.stop is None else nearest_float(stretch.stop)


def _intervals(stretch: Stretch) -> tuple[list[tuple[float, float]], LogRatio | None]:
    """The intervals on which positive > negative, and the log ratio of the two where that was needed."""
    start, stop = _ends(stretch)
    if not stretch.positive.lines:
        return [], None
    if not stretch.negative.lines:
        return [(start, stop)], None
    if len(stretch.positive.lines) == len(stretch.negative.lines) == 1 and stretch.positive.c == stretch.negative.c:
        return _half_line(stretch.positive.lines[0], stretch.negative.lines[0], start, stop), None
    ratio = LogRatio(_tamed(stretch.positive), _tamed(stretch.negative))
    zero = np.zeros(1)
    _, a, b = positive_runs(ratio, Rows(np.array([start]), np.array([stop]), zero, zero))
    return list(zip(a.tolist(), b.tolist(), strict=True)), ratio


def _half_line(positive: Line, negative: Line, start: float, stop: float) -> list[tuple[float, float]]:
    """Where one line exceeds another: R is linear, with an exact slope."""
    slope = positive.slope - negative.slope
    rise = _log_coefficient(positive) - _log_coefficient(negative)
    if not slope:
        return [(start, stop)] if rise > 0 else []
    root = nearest_float(-rise / slope)
    a, b = (max(start, root), stop) if slope > 0 else (start, min(stop, root))
    return [(a, b)] if a < b else []


def _log_coefficient(line: Line) -> Fraction:
    """log C of the line C e^(b x), as exact as it can be."""
    weight, exponent = line.terms[0]
    if len(line.terms) > 1:
        return exponent + Fraction(float(log_factor(line.terms, FLOAT)))
    return exponent + (Fraction(natural_log(weight)) if weight != 1 else 0)


def _tamed(lines: LineSum) -> LineSum:
    """The same sum; of components too narrow or too wide for float64 (σ beyond 10^±140 Δ), with a width that is not."""
    c = min(max(lines.c, _LEAST_C), _LARGEST_C)
    if c == lines.c or not lines.c:
        return lines
    moved = []
    for line in lines.lines:
        middle = line.slope / (2 * lines.c)
        extra = (lines.c - c) * middle**2
        moved.append(Line(tuple((w, a + extra) for w, a in line.terms), 2 * c * middle))
    return LineSum(c, tuple(moved))


def _tamed_form(form: Form) -> Form:
    pieces = tuple(Piece(p.start, p.stop, _tamed(p.sum)) for p in form.pieces)
    return form if all(new.sum is old.sum for new, old in zip(pieces, form.pieces, strict=True)) else Form(pieces)


def float_divergence(form: Form, shift: Fraction, epsilon: Fraction) -> float:
    """D(φ) of the normalised density at φ = ``shift``; equal exponentials cancel exactly, before any rounding."""
    return divergence_and_slope(form, shift, epsilon)[0]


def divergence_and_slope(form: Form, shift: Fraction, epsilon: Fraction) -> tuple[float, float]:
    """(D(φ), dD/dφ); the derivative by the envelope theorem, Σ f(b+φ) − f(a+φ) over the intervals [a, b] with R > 0."""
    form = _tamed_form(form)
    moving = [nearest_float(p.stop - shift) for p in form.whole_line if p.stop is not None]
    value, jumps = 0.0, 0.0
    found: list[tuple[float, float]] = []
    with np.errstate(all="ignore"):
        for stretch in difference(form, shift, epsilon):
            intervals, ratio = _intervals(stretch)
            if intervals:
                ends = np.array(intervals).T
                value += float(_masses(stretch, ratio, *ends).sum())
                found += intervals
                # where f(x + φ) jumps, the end of the interval moves against φ
                for x, sign in zip(ends, (1.0, -1.0), strict=True):
                    x = x[np.isin(x, moving)]
                    jumps += sign * float((stretch.positive.value(x, FLOAT) - stretch.negative.value(x, FLOAT)).sum())
        mass = float(form.mass(FLOAT))
        return value / mass, _rise(form, np.array(found).reshape(-1, 2), nearest_float(shift)) + jumps / mass


def _rise(form: Form, intervals: Floats, phi: float) -> float:
    """Σ f(b + φ) − f(a + φ), each taken just inside its interval."""
    inside = 4 * np.spacing(np.maximum(np.abs(intervals), np.abs(intervals + phi)))
    ends = (intervals + inside * np.array([1, -1]) + phi).ravel()
    signs = np.tile([-1.0, 1.0], len(intervals))
    finite = np.isfinite(ends)
    ends, signs = ends[finite], signs[finite]
    lines = max(len(piece.sum.lines) for piece in form.pieces)
    return sum(float(signs[part] @ form.density(ends[part])) for part in chunks(len(ends), 1 + lines))


def _masses(stretch: Stretch, ratio: LogRatio | None, a: Floats, b: Floats) -> Floats:
    """∫ positive − negative over each interval [a, b]."""
    over, under = (ratio.over, ratio.under) if ratio is not None else (None, None)
    positive = masses(stretch.positive, over, a, b)
    mass: Floats = positive - masses(stretch.negative, under, a, b)
    lost = mass < CANCELLED * positive
    if stretch.negative.lines and lost.any():
        zero = np.zeros(int(lost.sum()))
        ratio = LogRatio(stretch.positive, stretch.negative) if ratio is None else ratio
        mass[lost] = ratio.integral(a[lost], b[lost], zero, zero, mass[lost])
    return mass


@dataclass(frozen=True)
class _Overlap:
    """Two pieces of the form: x + φ in the one, x in the other. Ends as floats, ±∞ allowed."""

    there: LineSum
    here: LineSum
    there_ends: tuple[float, float]
    here_ends: tuple[float, float]
    ratio: LogRatio | None

    @property
    def points(self) -> int:
        """Numbers in the largest array for one shift, or so."""
        nodes = 0 if self.ratio is None else len(self.ratio.over.nodes) + len(self.ratio.under.nodes)
        return max(nodes, len(self.there.lines))


class Curve:
    """D, D′ and D″ as functions of φ, for one form and one ε, vectorised over φ. For 0 ≤ φ < 1, not exactly 1.

    At φ = 1 exactly, where exponentials cancel, ``divergence_and_slope`` is the one to ask. Many shifts are worked
    off a few at a time, so that memory does not grow with their number.
    """

    def __init__(self, form: Form, epsilon: Fraction) -> None:
        self.form = form = _tamed_form(form)
        with np.errstate(all="ignore"):
            self.mass = float(form.mass(FLOAT))
        pieces = form.whole_line
        ends = [_float_ends(piece.start, piece.stop) for piece in pieces]
        lifted = [piece.sum.lifted(epsilon) for piece in pieces]
        self._overlaps = []
        for there, there_ends in zip(pieces, ends, strict=True):
            for here, here_ends in zip(lifted, ends, strict=True):
                if there.sum.lines and there_ends[0] - 1 < here_ends[1] and here_ends[0] < there_ends[1]:
                    ratio = LogRatio(there.sum, here, 1.0) if here.lines else None
                    self._overlaps.append(_Overlap(there.sum, here, there_ends, here_ends, ratio))
        self.points = max((overlap.points for overlap in self._overlaps), default=1)
        """Numbers in the largest array that one shift needs, or so."""
        self._rows = max(1, POINTS // self.points)

    def at(self, shift: Floats, level: Floats | None = None, precise: bool = True) -> tuple[Floats, Floats, Floats]:
        """(D, D′, D″) at each shift, of ε + level in place of ε. D″ leaves out what comes from jumps and kinks of f.

        ``precise``: D to about 11 digits where positive and negative masses nearly cancel, else to about 7.
        """
        level = np.zeros_like(shift) if level is None else level
        value, slope, curvature = np.zeros_like(shift), np.zeros_like(shift), np.zeros_like(shift)
        with np.errstate(all="ignore"):
            for start in range(0, len(shift), self._rows):
                part = slice(start, start + self._rows)
                found = self._runs(shift[part], level[part], precise)
                value[part] = self._total(found, len(shift[part]), 1e4 if precise else 1e8)
                for runs in found:
                    self._add_slopes(slope[part], curvature[part], runs)
            return value / self.mass, slope / self.mass, curvature / self.mass

    def intervals(self, shift: float, level: float = 0.0) -> Floats:
        """As positive_intervals, of f(x + φ) − e^(ε + level) f(x); neighbours that touch are not joined."""
        with np.errstate(all="ignore"):
            return _bounds(self._runs(np.array([shift]), np.array([level]), True))

    def evaluate(self, shift: float, level: float = 0.0) -> tuple[Floats, float]:
        """(intervals, D): those of ``intervals`` and the D of ``at``, for the cost of one of the two."""
        with np.errstate(all="ignore"):
            found = self._runs(np.array([shift]), np.array([level]), True)
            return _bounds(found), float(self._total(found, 1, 1e4)[0]) / self.mass

    def _runs(self, shift: Floats, level: Floats, precise: bool) -> list[_Runs]:
        found = []
        for overlap in self._overlaps:
            moving = overlap.there_ends[0] - shift, overlap.there_ends[1] - shift
            start, stop = np.maximum(moving[0], overlap.here_ends[0]), np.minimum(moving[1], overlap.here_ends[1])
            some = np.flatnonzero(start < stop)
            if not len(some):
                continue
            rows = Rows(start[some], stop[some], shift[some], level[some])
            if overlap.ratio is None:
                row, a, b = np.arange(len(some)), rows.start, rows.stop
            else:
                row, a, b = positive_runs(overlap.ratio, rows, 0.0 if precise else ROUGH)
            bounds = [
                (end, sign, end == fixed[row], end == move[some][row])
                for end, sign, fixed, move in ((a, -1.0, rows.start, moving[0]), (b, 1.0, rows.stop, moving[1]))
            ]
            found.append(_Runs(overlap, some[row], bounds, rows.shift[row], rows.level[row]))
        return found

    @staticmethod
    def _total(found: list[_Runs], count: int, tolerated: float) -> Floats:
        """Σ of positive − negative mass for each shift, integrated anew where it cancels more than is tolerated."""
        parts = []
        for runs in found:
            a, b = (bound[0] for bound in runs.bounds)
            there, here, ratio = runs.overlap.there, runs.overlap.here, runs.overlap.ratio
            over, under = (ratio.over, ratio.under) if ratio is not None else (None, None)
            positive = masses(there, over, a + runs.shift, b + runs.shift)
            parts.append((positive, positive - np.exp(runs.level) * masses(here, under, a, b)))
        total = np.zeros(count)
        for runs, (_, mass) in zip(found, parts, strict=True):
            total += np.bincount(runs.owner, mass, count)
        for runs, (positive, mass) in zip(found, parts, strict=True):
            lost = (positive > tolerated * total[runs.owner]) & (mass < CANCELLED * positive)
            if runs.overlap.ratio is not None and lost.any():
                a, b = (bound[0][lost] for bound in runs.bounds)
                better = runs.overlap.ratio.integral(a, b, runs.shift[lost], runs.level[lost], mass[lost])
                total += np.bincount(runs.owner[lost], better - mass[lost], count)
        return total

    @staticmethod
    def _add_slopes(slope: Floats, curvature: Floats, runs: _Runs) -> None:
        overlap = runs.overlap
        for end, sign, fixed, moving in runs.bounds:
            finite = np.isfinite(end)
            x, phi, owner = end[finite], runs.shift[finite], runs.owner[finite]
            jumps = (fixed & moving)[finite]
            if overlap.ratio is None:
                density = overlap.there.value(x + phi, FLOAT)
                slope += sign * np.bincount(owner, np.where(jumps, 0.0, density), len(slope))
                continue
            log_there, score_there = overlap.ratio.over.log_and_score(x + phi)
            log_here, score_here = overlap.ratio.under.log_and_score(x)
            density, here = np.exp(log_there), np.exp(log_here + runs.level[finite])
            slope += sign * np.bincount(owner, np.where(jumps, here, density), len(slope))
            bend = -density * score_there * score_here / (score_there - score_here)
            root = ~fixed[finite] & np.isfinite(bend)
            curvature += sign * np.bincount(owner[root], bend[root], len(slope))


@dataclass(frozen=True)
class _Runs:
    """Intervals with R > 0 of one overlap, for many shifts.

    ``owner`` is the shift that each belongs to; ``bounds``, of the lower and of the upper ends: x, the sign in D′,
    whether it is the end of the stretch, and whether that end moves with φ.
    """

    overlap: _Overlap
    owner: NDArray[np.intp]
    bounds: list[tuple[Floats, float, NDArray[np.bool_], NDArray[np.bool_]]]
    shift: Floats
    level: Floats


def _bounds(found: list[_Runs]) -> Floats:
    """All intervals, of shape (intervals, 2)."""
    ends = [np.stack([runs.bounds[0][0], runs.bounds[1][0]], axis=1) for runs in found]
    return np.concatenate(ends) if ends else np.empty((0, 2))


def _float_ends(start: Fraction | None, stop: Fraction | None) -> tuple[float, float]:
    return -np.inf if start is None else nearest_float(start), np.inf if stop is None else nearest_float(stop)


def local_maxima(form: Form, epsilon: Fraction, seeds: Sequence[float] = ()) -> list[tuple[float, float]]:
    """(φ, D(φ)) of the local maxima of D over [0, 1], largest D first; φ = 1 is always among them.

    ``form`` is in units of Δ. ``seeds`` are shifts that are looked at besides the scan's own; of a form of very many
    pieces only they are.
    """
    if len(form.whole_line) > MAX_PIECES:
        shifts = {*(seed for seed in seeds if 0 < seed < 1), 1.0}
        return sorted(((s, float_divergence(form, Fraction(s), epsilon)) for s in shifts), key=lambda pair: -pair[1])
    last, slope = divergence_and_slope(form, Fraction(1), epsilon)
    found = [(1.0, last)]
    if not rises_with_shift(form):
        scan = Scan(Curve(form, epsilon), last, slope)
        scan.run()
        scan.add(np.array(seeds, dtype=np.float64))
        found += scan.maxima()
    return sorted(found, key=lambda pair: -pair[1])
