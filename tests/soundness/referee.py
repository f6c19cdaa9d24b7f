"""A second opinion on D(φ), in mpmath, that shares no formula and no code with the packages under test.

A density is a list of pieces on the whole line, each a sum of terms w e^(a + b x − c x²). D(φ) is found by brute force:
the sign of f(x+φ) − e^ε f(x) on a fine grid, bisection between neighbours of different sign, closed-form masses between
the sign changes. sup D over [0, 1] is looked for by an array of Riemann sums and polished at 50 digits.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

CONTEXT = mpmath.MPContext()
CONTEXT.dps = 60
MPF = CONTEXT.mpf
NOISE = MPF(10) ** -52
"""Relative difference below which two sums count as equal: what the digits leave of exact cancellation."""
ROOT_WIDTH = MPF(10) ** -26
"""D feels the square of an error in a sign change."""


def number(value: Any) -> Any:
    """An exact rational (or text of one) at 60 digits."""
    exact = Fraction(value)
    return MPF(exact.numerator) / exact.denominator


@dataclass
class Piece:
    """Σ w e^(a + b x − c x²) on (start, stop), None for an infinite end."""

    start: Any
    stop: Any
    c: Any
    terms: list[tuple[Any, Any, Any]]

    def value(self, x: Any) -> Any:
        return CONTEXT.fsum(w * CONTEXT.exp(a + (b - self.c * x) * x) for w, a, b in self.terms)

    def floats(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(log value, a measure of the size of its parts) in float64."""
        w, a, b = (np.array([float(term[i]) for term in self.terms])[:, None] for i in range(3))
        parts = np.log(w) + a + (b - float(self.c) * x) * x
        top = parts.max(axis=0)
        size = 1 + np.abs(a).max() + np.abs(b).max() * np.abs(x) + float(self.c) * x * x
        return top + np.log(np.exp(parts - top).sum(axis=0)), size

    def mass(self, u: Any, v: Any) -> Any:
        """∫ over [u, v], None for infinite."""
        return CONTEXT.fsum(self._term_mass(*term, u, v) for term in self.terms)

    def _term_mass(self, w: Any, a: Any, b: Any, u: Any, v: Any) -> Any:
        if self.c:
            root = CONTEXT.sqrt(self.c)
            height = w * CONTEXT.exp(a + b * b / (4 * self.c)) * CONTEXT.sqrt(CONTEXT.pi) / (2 * root)
            low = None if u is None else root * (u - b / (2 * self.c))
            high = None if v is None else root * (v - b / (2 * self.c))
            if low is None or (high is not None and low + high < 0):
                low, high = (None if high is None else -high), (None if low is None else -low)
            if low is None:
                return 2 * height
            return height * (CONTEXT.erfc(low) - (0 if high is None else CONTEXT.erfc(high)))
        if not b:
            return w * CONTEXT.exp(a) * (v - u)
        at_u = 0 if u is None else CONTEXT.exp(a + b * u)
        at_v = 0 if v is None else CONTEXT.exp(a + b * v)
        return w * (at_v - at_u) / b


def bracketed_zero(function: Any, x: Any, y: Any, fx: Any, fy: Any, width: Any) -> Any:
    """A change of sign between x and y, to that width, by false position with halved weights (Illinois)."""
    side = 0
    for turn in range(300):
        if y - x <= width:
            break
        guess = x - fx * (y - x) / (fy - fx)
        middle = min(max(guess, x + width / 4), y - width / 4) if turn % 8 != 7 else (x + y) / 2
        fm = function(middle)
        if (fm > 0) == (fx > 0):
            x, fx = middle, fm
            fy = fy / 2 if side < 0 else fy
            side = -1
        else:
            y, fy = middle, fm
            fx = fx / 2 if side > 0 else fx
            side = 1
    return (x + y) / 2


@dataclass
class Density:
    """An even density in units of Δ. ``scale`` is the length on which it varies."""

    pieces: list[Piece]
    scale: float
    mass: Any = field(init=False)
    _suprema: dict[Any, tuple[Any, Any]] = field(init=False, default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.mass = CONTEXT.fsum(piece.mass(piece.start, piece.stop) for piece in self.pieces)
        self.edges = [piece.stop for piece in self.pieces[:-1]]
        centres = [abs(b / (2 * p.c)) for p in self.pieces if p.c for _, _, b in p.terms]
        far = [abs(e) for e in self.edges] + centres
        self.reach = float(max(far, default=MPF(0))) + 12 * self.scale
        """Where the interesting part of the density ends."""

    def piece_at(self, x: Any) -> Piece:
        return next(p for p in self.pieces if p.stop is None or x < p.stop)

    def divergence(self, shift: Any, epsilon: Any) -> Any:
        """D(φ), to about 45 digits."""
        return self._parts(number(shift), number(epsilon))[0]

    def slope(self, shift: Any, epsilon: Any) -> Any:
        """dD/dφ where no jump of f is met: Σ f(b+φ) − f(a+φ) over the intervals with a positive integrand."""
        return self._parts(number(shift), number(epsilon))[1]

    def events(self, shift: Any, epsilon: Any) -> list[tuple[Any, Any]]:
        """The intervals on which f(x+φ) > e^ε f(x)."""
        return self._parts(number(shift), number(epsilon))[2]

    def _parts(self, phi: Any, epsilon: Any) -> tuple[Any, Any, list[tuple[Any, Any]]]:
        factor = CONTEXT.exp(epsilon)
        cuts = sorted({*self.edges, *(edge - phi for edge in self.edges)})
        total, slope = MPF(0), MPF(0)
        found: list[tuple[Any, Any]] = []
        for start, stop in itertools.pairwise([None, *cuts, None]):
            inside = MPF(0) if start is None and stop is None else self._between(start, stop)
            there, here = self.piece_at(inside + phi), self.piece_at(inside)
            if not there.terms:
                continue
            for a, b in self._positive(there, here, phi, factor, start, stop):
                shifted = there.mass(None if a is None else a + phi, None if b is None else b + phi)
                total += shifted - (factor * here.mass(a, b) if here.terms else 0)
                slope += (there.value(b + phi) if b is not None else 0) - (there.value(a + phi) if a is not None else 0)
                found.append((a, b))
        return total / self.mass, slope / self.mass, found

    @staticmethod
    def _between(start: Any, stop: Any) -> Any:
        return stop - 1 if start is None else start + 1 if stop is None else (start + stop) / 2

    def _positive(
        self, there: Piece, here: Piece, phi: Any, factor: Any, start: Any, stop: Any
    ) -> list[tuple[Any, Any]]:
        if not here.terms:
            return [(start, stop)]

        def excess(x: Any) -> Any:
            p, n = there.value(x + phi), factor * here.value(x)
            return CONTEXT.log(p / n) if abs(p - n) > NOISE * (p + n) else -NOISE

        # Beyond all centres the log-ratio of Gaussian tails has slope 2cφ; it may take that long to make up for ε.
        reach = self.reach + (abs(CONTEXT.log(factor)) / (2 * there.c * phi) if there.c and phi else 0)
        low = -MPF(reach) - 1 if start is None else start
        high = MPF(reach) if stop is None else stop
        low, high = (min(low, high - 1) if start is None else low), (max(high, low + 1) if stop is None else high)
        count = min(max(16, int((high - low) / min(self.scale / 4, 1 / 24))), 4000)
        points = [low + (high - low) * i / count for i in range(count + 1)]
        if start is not None:
            points[0] += (high - low) * MPF(10) ** -40
        if stop is not None:
            points[-1] -= (high - low) * MPF(10) ** -40
        points = self._with_extrema(points, there, here, phi, float(CONTEXT.log(factor)))
        rough, certain = self._float_ratio(points, there, here, phi, float(CONTEXT.log(factor)))
        values = [rough[i] if certain[i] else excess(x) for i, x in enumerate(points)]
        roots = [
            bracketed_zero(excess, x, y, excess(x), excess(y), ROOT_WIDTH * max(1, abs(x)))
            for (x, fx), (y, fy) in itertools.pairwise(zip(points, values, strict=True))
            if (fx > 0) != (fy > 0)
        ]
        ends = [start, *roots, stop]
        positive = values[0] > 0
        return [pair for i, pair in enumerate(itertools.pairwise(ends)) if (i % 2 == 0) == positive]

    @staticmethod
    def _float_ratio(
        points: Sequence[Any], there: Piece, here: Piece, phi: Any, epsilon: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """log of f(x+φ)/(e^ε f(x)) in float64, and where its sign is beyond doubt."""
        grid = np.array([float(x) for x in points])
        log_there, error_there = there.floats(grid + float(phi))
        log_here, error_here = here.floats(grid)
        ratio = log_there - log_here - epsilon
        return ratio, np.abs(ratio) > 1e-12 * (error_there + error_here)

    def _with_extrema(self, points: list[Any], there: Piece, here: Piece, phi: Any, epsilon: float) -> list[Any]:
        """The points, with those added where the log-ratio comes near 0 between two of them and turns back."""
        for _ in range(3):
            ratio, _ = self._float_ratio(points, there, here, phi, epsilon)
            size = np.abs(ratio)
            turns = np.minimum(size[:-2], size[2:]) - size[1:-1] > 1e-11 * (1 + size[1:-1])
            same = (ratio[1:-1] > 0) == (ratio[:-2] > 0)
            same &= (ratio[1:-1] > 0) == (ratio[2:] > 0)
            added = []
            for i in (np.flatnonzero(turns & same) + 1).tolist():
                a, b = points[i - 1], points[i + 1]
                added += [a + (b - a) * k / 16 for k in range(1, 16)]
            points = sorted({*points, *added})
        return points

    def scan(self, epsilon: float, steps: int = 2000) -> np.ndarray:
        """D at φ = 0, 1/steps, …, 1 as Riemann sums: good to a few digits, to see where the peaks are."""
        steps *= max(1, int(np.ceil(0.02 / self.scale)))
        half = int((self.reach + 2) * steps)
        x = (np.arange(-half, half + steps + 1) + 0.5) / steps
        density = np.zeros(len(x))
        for piece in self.pieces:
            inside = (x >= float(piece.start if piece.start is not None else -np.inf)) & (
                x < float(piece.stop if piece.stop is not None else np.inf)
            )
            for w, a, b in piece.terms:
                exponent = float(a) + float(b) * x[inside] - float(piece.c) * x[inside] ** 2
                density[inside] += float(w) * np.exp(np.maximum(exponent, -745.0))
        base = np.exp(epsilon) * density[: 2 * half]
        sums = [np.maximum(density[j : j + 2 * half] - base, 0).sum() for j in range(steps + 1)]
        return np.array(sums) / steps / float(self.mass)

    def supremum(self, epsilon: Any) -> tuple[Any, Any]:
        """(φ, D(φ)) with the largest D over [0, 1] that was found; the shifts where edges meet are looked at too."""
        if epsilon not in self._suprema:
            self._suprema[epsilon] = self._supremum(epsilon)
        return self._suprema[epsilon]

    def _supremum(self, epsilon: Any, peaks: int = 2) -> tuple[Any, Any]:
        rough = self.scan(float(Fraction(epsilon)))
        last = len(rough) - 1
        high = 0.2 * rough.max()
        tops = [j for j in range(1, last) if rough[j] >= max(rough[j - 1], rough[j + 1]) and rough[j] > high]
        tops.sort(key=lambda j: -rough[j])
        shifts = [MPF(1), *(self._climb(MPF(j) / last, MPF(1) / last, number(epsilon)) for j in tops[:peaks])]
        shifts += [a - b for a in self.edges for b in self.edges if 0 < a - b < 1]
        pairs = [(shift, self._parts(shift, number(epsilon))[0]) for shift in shifts]
        return max(pairs, key=lambda pair: pair[1])

    def _climb(self, shift: Any, width: Any, epsilon: Any) -> Any:
        """A zero of dD/dφ near a grid point, to 18 digits: D there is right to twice as many."""
        last = MPF(1) - MPF(10) ** -12
        if epsilon > 50 * self.scale**2:  # peaks may be narrower than the scan's step
            near = [min(shift + width * i / 16, last) for i in range(-16, 17)]
            shift, width = max(near, key=lambda t: self._parts(t, epsilon)[0]), width / 16
        x, y = shift - width, min(shift + width, last)
        fx, fy = (self._parts(t, epsilon)[1] for t in (x, y))
        if not fx > 0 > fy:
            return shift
        return bracketed_zero(lambda t: self._parts(t, epsilon)[1], x, y, fx, fy, MPF(10) ** -17)

    def probability(self, a: Any, b: Any) -> Any:
        """P(a < X < b), None for infinite ends."""
        total = MPF(0)
        for piece in self.pieces:
            low = piece.start if a is None else number(a) if piece.start is None else max(number(a), piece.start)
            high = piece.stop if b is None else number(b) if piece.stop is None else min(number(b), piece.stop)
            if piece.terms and (low is None or high is None or low < high):
                total += piece.mass(low, high)
        return total / self.mass


def mixture(sigma: Any, components: Sequence[tuple[Any, Any]], log_weights: Sequence[Any] | None = None) -> Density:
    """Σ w_k N(m_k, σ²) over (w, m) with means of both signs; or weights w_k e^(log weight)."""
    sigma = number(sigma)
    c = 1 / (2 * sigma * sigma)
    logs = [number(0)] * len(components) if log_weights is None else [number(value) for value in log_weights]
    terms = [
        (number(w), log - c * number(m) ** 2, 2 * c * number(m)) for (w, m), log in zip(components, logs, strict=True)
    ]
    return Density([Piece(None, None, c, terms)], float(sigma))


def multi_gaussian(sigma: Any, K: int, epsilon: Any) -> Density:
    """Definition 3.1 at Δ = 1."""
    ks = range(-K, K + 1)
    return mixture(sigma, [(1, k) for k in ks], [-abs(k) * Fraction(epsilon) for k in ks])


def even(pieces: Sequence[tuple[Any, Any, Any, Sequence[tuple[Any, Any]]]], scale: float) -> Density:
    """An even density from (start, stop, c, [(a, b), …]) on x ≥ 0, stop None for ∞."""
    right = [
        Piece(number(a), b if b is None else number(b), number(c), [(MPF(1), number(i), number(k)) for i, k in lines])
        for a, b, c, lines in pieces
    ]
    if right[-1].stop is not None:
        right.append(Piece(right[-1].stop, None, MPF(0), []))
    left = [
        Piece(None if p.stop is None else -p.stop, -p.start, p.c, [(w, a, -b) for w, a, b in p.terms])
        for p in reversed(right)
    ]
    return Density([*left, *right], scale)


def quasi_gaussian(sigma: Any, epsilon: Any) -> Density:
    """Definition 4.1 at Δ = 1."""
    c = 1 / (2 * Fraction(sigma) ** 2)
    return even([(0, None, c, [(Fraction(epsilon), 0), (-c, 2 * c)])], float(Fraction(sigma)))
