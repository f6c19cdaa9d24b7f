"""Upper bounds of D in float64 from a table of f on a lattice, proved: numpy decides most boxes of shifts. (trusted)

For densities of one c > 0 whose centres and breaks are multiples of a lattice step h, at shifts that are too. With
g(x) = f(x+φ) − α f(x), and −g″ ≤ B inside a cell of the lattice,

    g ≤ chord + B (x − x_i)(x_{i+1} − x)/2,   so   ∫ max(g, 0) over the cell ≤ h (g_i⁺ + g_{i+1}⁺)/2 + B h³/12,

and the cell holds nothing where both ends are at most −B h²/8. No sign change is sought and no cell is split. As φ is a
multiple of h, f(x+φ) is the table itself, moved.

Rounding: balls give the values of one Gaussian and the weights. All else is +, −, × and maxima of float64, which IEEE
754 rounds to nearest: a sum of J products ≥ 0 is off by a factor within 1 ± (J + 8)·2⁻⁵², and by less than TINY where
products underflow. Entries are moved outward by more than that when the table is made, sums by OUTWARD.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from audit.exact import ball, float_lower, float_upper, lower, upper
from audit.points import peak_height
from mechanisms.arithmetic import BALL
from mechanisms.form import Form, Piece
from mechanisms.numbers import natural_log

Floats = NDArray[np.float64]

MOST_POINTS = 1 << 20
"""Of finer tables the balls are as fast."""
LEAST_LOG = -500.0
"""Thresholds below e^LEAST_LOG are left to the balls: entries of the table would underflow."""
DEPTH = 32.0
"""A line is tabled down to e^−DEPTH times the threshold."""
DEEPEST = 560
"""And not below e^−DEEPEST, far from where floats underflow."""
TINY = 1e-300
ACCURATE = 80
"""Relative accuracy, in bits, that is asked of the balls."""
OUTWARD = 1 + 2.0**-30
"""More than what a sum of 2·MOST_POINTS terms ≥ 0 and a dozen products lose to rounding, as a factor."""
LARGEST_EPSILON = 300
"""e^ε, and its product with an entry, stay far within the floats."""


@dataclass(frozen=True, slots=True)
class Alpha:
    """α = e^ε between two doubles; ``lower`` is below it by more than two roundings."""

    lower: float
    upper: float

    @classmethod
    def of(cls, epsilon: Fraction) -> Alpha:
        """At the precision in force."""
        alpha = ball(epsilon).exp()
        return cls(float_lower(lower(alpha) * (1 - Fraction(1, 2**50))), float_upper(upper(alpha)))


class Table:
    """f, normalised, at the multiples of 1/steps, and bounds of f″ between them; Δ = 1.

    ``above`` ≥ f and ``below`` ≤ f at the points; ``bend`` ≥ −f″ and ``dent`` ≥ f″ inside the cells; at a break both
    one-sided values of f count. ``below`` and ``dent`` begin ``steps`` entries further to the left than the others.
    ``tail`` is at least the mass of f outside.
    """

    def __init__(self, form: Form, steps: int, reach: int) -> None:
        pieces, c = form.whole_line, form.whole_line[0].sum.c
        if not is_on_lattice(form, steps) or not 1 <= c * reach**2 / steps**2 <= DEEPEST:
            raise ValueError(f"a lattice of {steps} points for each Δ, reach {reach}, does not serve this density")
        gauss = _gauss(c / steps**2, reach)
        square, twice_c = float(4 * c * c / Fraction(steps) ** 2), float(2 * c)
        at = np.arange(reach + 1, dtype=np.float64)
        # for N = e^(−c y²), y in units of Δ and at ≤ y·steps ≤ at + 1:   −N″ = (2c − 4c²y²) N,   N″ ≤ 4c²y² N
        bend = gauss[:-1] * np.maximum(twice_c * OUTWARD - square * at[:-1] ** 2, 0.0)
        dent = gauss[:-1] * (square * at[1:] ** 2 * OUTWARD)
        beyond_dent = gauss[-1] * square * reach**2 * OUTWARD
        self.steps, mass = steps, form.mass(BALL)
        self.level = (steps & -steps).bit_length() - 1
        """Multiples of 2^−level lie on the lattice."""
        bells = [_Bells.of(piece, steps, mass) for piece in pieces]
        start = min(min(b.centres) for b in bells) - reach
        size = max(max(b.centres) for b in bells) + reach - start + 1
        self.above, self.bend = np.zeros(size), np.zeros(size - 1)
        below, dents = np.full(size, np.inf), np.zeros(size - 1)
        for piece, b in zip(pieces, bells, strict=True):
            first = 0 if piece.start is None else max(0, int(piece.start * steps) - start)
            last = size - 1 if piece.stop is None else min(size - 1, int(piece.stop * steps) - start)
            if first >= last:
                continue
            points, cells = slice(first, last + 1), slice(first, last)
            left = [centre - reach - start for centre in b.centres]
            wide = 1 + (len(left) + 16) * 2.0**-52
            beyond = sum(b.upper) * gauss[-1] * OUTWARD  # lines further off than the reach: N and y²N fall with y
            high = _sum(left, b.upper, np.concatenate([gauss[:0:-1], gauss]), points)
            low = _sum(left, b.lower, np.concatenate([gauss[:0:-1], gauss]), points)
            self.above[points] = np.maximum(self.above[points], high * wide + (beyond + TINY))
            below[points] = np.minimum(below[points], np.maximum(low * (2 - wide) - TINY, 0.0))
            self.bend[cells] = _sum(left, b.upper, np.concatenate([bend[::-1], bend]), cells) * wide + TINY
            far = sum(b.upper) * beyond_dent * OUTWARD + TINY
            dents[cells] = _sum(left, b.upper, np.concatenate([dent[::-1], dent]), cells) * wide + far
        far = max(sum(b.upper) for b in bells) * beyond_dent * OUTWARD + TINY
        self.below = np.concatenate([np.zeros(steps), below])
        self.dent = np.concatenate([np.full(steps, far), dents])
        # Beyond either end, the lines of every piece are further off than the reach.
        share = (ball(c).sqrt() * ball(Fraction(reach, steps))).erfc() * (arb.pi() / ball(c)).sqrt() / 2
        self.tail = float_upper(upper(share)) * 2 * max(sum(b.upper) for b in bells) * OUTWARD

    def upper_divergence(self, shift: int, alpha: Alpha) -> float:
        """Upper bound of D(φ) = ∫ max(f(x+φ) − α f(x), 0) dx at φ = shift/steps, 0 ≤ shift ≤ steps.

        Source: the module's docstring. Rounding: outward; NaN where something overflows, which is below nothing.
        """
        size = len(self.above)
        begin = self.steps - shift
        values = self.below[begin : begin + size] * -alpha.lower
        values += self.above
        bound = self.dent[begin : begin + size - 1] * alpha.upper
        bound += self.bend
        step = 1 / self.steps
        active = np.maximum(values[:-1], values[1:]) > bound * (-(step * step) / 8 * OUTWARD)
        positive = float(np.maximum(values, 0.0).sum())
        curved = float(bound[active].sum())
        return (positive * step + curved * (step**3 / 12)) * OUTWARD**2 + self.tail * OUTWARD

    def estimate(self, shift: int, alpha: Alpha) -> float:
        """D(φ) by the trapezoidal rule: a proposal."""
        begin = self.steps - shift
        values = self.above - alpha.upper * self.below[begin : begin + len(self.above)]
        return float(np.maximum(values, 0.0).sum()) / self.steps


def is_on_lattice(form: Form, steps: int) -> bool:
    """Whether a table with so many points for each Δ can serve: one c > 0, all centres and breaks on the lattice."""
    pieces = form.whole_line
    c = pieces[0].sum.c
    if not c or any(piece.sum.c != c or not piece.sum.lines for piece in pieces):
        return False
    return all((place * steps).denominator == 1 for place in _places(form))


def _places(form: Form) -> list[Fraction]:
    """The centres of all lines, and the breaks, of a form of one c > 0."""
    pieces = form.whole_line
    centres = [line.slope / (2 * pieces[0].sum.c) for piece in pieces for line in piece.sum.lines]
    return [*centres, *(piece.stop for piece in pieces if piece.stop is not None)]


def propose_table(form: Form, epsilon: Fraction, threshold: Fraction, per_scale: int) -> Table | None:
    """A table with at least ``per_scale`` points for each 1/√(2c) (the σ of Gaussians), where one can serve."""
    c = form.whole_line[0].sum.c
    if not c or threshold <= 0 or epsilon > LARGEST_EPSILON:
        return None
    depth = DEPTH - natural_log(threshold)
    places = _places(form)
    steps = math.lcm(*(place.denominator for place in places))
    if depth > DEPTH - LEAST_LOG or steps > MOST_POINTS or not 2.0**-60 < c < 2.0**60:
        return None
    while steps < per_scale * math.sqrt(2 * c):
        steps *= 2
    reach = math.ceil(math.sqrt(depth / c) * steps) + 1
    if steps * (1 + max(places) - min(places)) + 2 * reach > MOST_POINTS:  # 1: what comes before it
        return None
    try:
        return Table(form, steps, reach)
    except ValueError:  # several c, or weights that balls of so few bits do not enclose
        return None


@dataclass(frozen=True)
class _Bells:
    """The lines of one piece as W e^(−c (x − centre/steps)²), with bounds of the weight W, f normalised."""

    centres: list[int]
    upper: list[float]
    lower: list[float]

    @classmethod
    def of(cls, piece: Piece, steps: int, mass: arb) -> _Bells:
        c = piece.sum.c
        weights = [peak_height(line, c) / mass for line in piece.sum.lines]
        centres = [int(line.slope / (2 * c) * steps) for line in piece.sum.lines]
        return cls(centres, [float_upper(upper(w)) for w in weights], [float_lower(lower(w)) for w in weights])


def _gauss(c: Fraction, reach: int) -> Floats:
    """e^(−c t²) for t = 0 … reach, each within a factor 1 ± 2⁻⁵²; raises ValueError where balls are not that tight."""
    minus_c = ball(-c)
    balls = [(minus_c * (t * t)).exp() for t in range(reach + 1)]
    if not all(value.rel_accuracy_bits() >= ACCURATE for value in balls):
        raise ValueError("too few bits for a table")
    return np.array([float(value) for value in balls])


def _sum(left: Sequence[int], weights: Sequence[float], table: Floats, span: slice) -> Floats:
    """Σ weight · table, each table put down with its first entry at ``left``, over the places of ``span``."""
    total = np.zeros(span.stop - span.start)
    for place, weight in zip(left, weights, strict=True):
        begin, end = max(place, span.start), min(place + len(table), span.stop)
        if begin < end:
            total[begin - span.start : end - span.start] += weight * table[begin - place : end - place]
    return total
