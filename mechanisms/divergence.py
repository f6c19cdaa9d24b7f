"""The hockey-stick divergence D(φ) in float64: sign changes, values, and its local maxima over the shifts in [0, Δ].

D(φ) = ∫ max( f(x+φ) − e^ε f(x), 0 ) dx, f the normalised density. Float code proposes, it never decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from mechanisms.arithmetic import FLOAT
from mechanisms.components import LARGEST_C, LEAST_C, Components, Floats, masses
from mechanisms.curve import Curve
from mechanisms.difference import Stretch, difference
from mechanisms.envelope import Envelope, chunks
from mechanisms.form import Form, Piece
from mechanisms.lines import Line, LineSum, log_factor
from mechanisms.log_ratio import CANCELLED, LogRatio
from mechanisms.numbers import natural_log, nearest_float
from mechanisms.shifts import Scan
from mechanisms.sign_changes import Rows, positive_runs

__all__ = ["Curve", "divergence_and_slope", "float_divergence", "local_maxima", "positive_intervals"]

MAX_PIECES = 64
"""Most pieces on the whole line for a scan over the shifts: its cost grows with their square."""
_LEAST_C, _LARGEST_C = Fraction(LEAST_C), Fraction(LARGEST_C)


def positive_intervals(stretches: Sequence[Stretch], check: Callable[[], None] = lambda: None) -> Floats:
    """The intervals on which positive > negative, in order, as an array of shape (n, 2); ends may be ±∞.

    Sign changes are good to a few units in the last place where the two sums are well resolved in float64; touching
    intervals of neighbouring stretches are one. ``check`` is called for each stretch, and may raise.
    """
    found: list[tuple[float, float]] = []
    with np.errstate(all="ignore"):
        for stretch in stretches:
            check()
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
    ratio = _ratio(stretch)
    zero = np.zeros(1)
    _, a, b = positive_runs(ratio, Rows(np.array([start]), np.array([stop]), zero, zero))
    return list(zip(a.tolist(), b.tolist(), strict=True)), ratio


def _ratio(stretch: Stretch) -> LogRatio:
    over, under = (Envelope(Components.of(sum_)) for sum_ in (stretch.positive, stretch.negative))
    return LogRatio(over, under)


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


def float_divergence(form: Form, shift: Fraction, epsilon: Fraction, check: Callable[[], None] = lambda: None) -> float:
    """D(φ) of the normalised density at φ = ``shift``; equal exponentials cancel exactly, before any rounding."""
    return divergence_and_slope(form, shift, epsilon, check)[0]


def divergence_and_slope(
    form: Form, shift: Fraction, epsilon: Fraction, check: Callable[[], None] = lambda: None
) -> tuple[float, float]:
    """(D(φ), dD/dφ); the derivative by the envelope theorem, Σ f(b+φ) − f(a+φ) over the intervals [a, b] with R > 0.

    ``check`` is called for each stretch, and may raise.
    """
    form = _tamed_form(form)
    moving = [nearest_float(p.stop - shift) for p in form.whole_line if p.stop is not None]
    value, jumps = 0.0, 0.0
    found: list[tuple[float, float]] = []
    with np.errstate(all="ignore"):
        for stretch in difference(form, shift, epsilon):
            check()
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
    positive = _mass(stretch.positive, a, b)
    mass = positive - _mass(stretch.negative, a, b) if stretch.negative.lines else positive
    lost = mass < CANCELLED * positive
    if stretch.negative.lines and lost.any():
        zero = np.zeros(int(lost.sum()))
        ratio = _ratio(stretch) if ratio is None else ratio
        mass[lost] = ratio.integral(a[lost], b[lost], zero, zero, mass[lost])
    return mass


def _mass(lines: LineSum, a: Floats, b: Floats) -> Floats:
    """∫ of the sum over each [a, b]."""
    components = Components.of(lines)
    return Envelope(components).mass(a, b) if components.c else masses(components, a, b)


@np.errstate(all="ignore")
def local_maxima(
    form: Form,
    epsilon: Fraction,
    seeds: Sequence[float] = (),
    curve: Curve | None = None,
    check: Callable[[], None] = lambda: None,
    floor: float = 0.0,
) -> list[tuple[float, float]]:
    """(φ, D(φ)) of the local maxima of D over [0, 1], largest D first; φ = 1 is always among them.

    ``form`` is in units of Δ. ``seeds`` are shifts that are looked at besides the scan's own; of a form of very many
    pieces only they are. ``curve`` is that of this form and ε, where there is one; else ``check`` is called now and
    then, and may raise. Maxima below ``floor`` may be left out: where D is all but 0 almost everywhere, it takes long
    to look for them.
    """
    if len(form.whole_line) > MAX_PIECES:
        shifts = {*(seed for seed in seeds if 0 < seed < 1), 1.0}
        found = [(s, float_divergence(form, Fraction(s), epsilon, check)) for s in shifts]
        return sorted(found, key=lambda pair: -pair[1])
    curve = Curve(form, epsilon, check=check) if curve is None else curve
    last, slope = curve.end()
    found = [(1.0, last)]
    if not curve.rises:
        scan = Scan(curve, last, slope)
        scan.run(floor=floor)
        scan.add(np.array(seeds, dtype=np.float64))
        found += scan.maxima()
    return sorted(found, key=lambda pair: -pair[1])
