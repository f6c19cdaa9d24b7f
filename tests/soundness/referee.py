"""A second opinion on D(φ), in mpmath, that shares no formula and no code with the packages under test.

A density is a list of pieces on the whole line, each a sum of terms w e^(a + b x − c x²). D(φ) is found by brute force:
the sign of f(x+φ) − e^ε f(x) on a fine grid, sign changes polished, closed-form masses between them. sup D over [0, 1]
is looked for by an array of Riemann sums in logarithms, and each local maximum near the top is polished. Floats say
where to look; signs, roots and masses are those of 60 digits.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tests.soundness.referee_pieces import CONTEXT, MPF, Pair, Piece, bracketed_zero, digits, number

__all__ = [
    "CONTEXT",
    "MPF",
    "Density",
    "Piece",
    "bracketed_zero",
    "digits",
    "even",
    "mixture",
    "multi_gaussian",
    "number",
    "quasi_gaussian",
]


@dataclass
class Density:
    """An even density in units of Δ. ``scale`` is the length on which it varies."""

    pieces: list[Piece]
    scale: float
    mass: Any = field(init=False)
    _maxima: dict[Any, list[tuple[Any, Any]]] = field(init=False, default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.mass = CONTEXT.fsum(piece.mass(piece.start, piece.stop) for piece in self.pieces)
        self.edges = [piece.stop for piece in self.pieces[:-1]]
        centres = [abs(b / (2 * p.c)) for p in self.pieces if p.c for _, _, b in p.terms]
        far = [abs(e) for e in self.edges] + centres
        last = self.pieces[-1]
        slowest = 0.0 if last.c or not last.terms else float(1 / min(abs(b) for _, _, b in last.terms))
        self.reach = float(max(far, default=MPF(0))) + 12 * max(self.scale, slowest)
        """Where the interesting part of the density ends."""
        self.spacing = min(self.scale / 4, max(self.scale**2, 0.004))

    def piece_at(self, x: Any) -> Piece:
        return next(p for p in self.pieces if p.stop is None or x < p.stop)

    def divergence(self, shift: Any, epsilon: Any) -> Any:
        """D(φ), to about 45 digits."""
        return self._parts(number(shift), number(epsilon))[0]

    def slope(self, shift: Any, epsilon: Any) -> Any:
        """dD/dφ, where no edge of f(x+φ) meets one of f(x)."""
        return self._slope(number(shift), number(epsilon))

    def events(self, shift: Any, epsilon: Any) -> list[tuple[Any, Any]]:
        """The intervals on which f(x+φ) > e^ε f(x)."""
        phi, epsilon = number(shift), number(epsilon)
        return [(a, b) for a, b, _, _ in self._positives(phi, epsilon)]

    def _parts(self, phi: Any, epsilon: Any) -> tuple[Any, list[tuple[Any, Any]]]:
        factor = CONTEXT.exp(epsilon)
        total = MPF(0)
        found = self._positives(phi, epsilon)
        for a, b, there, here in found:
            shifted = there.mass(None if a is None else a + phi, None if b is None else b + phi)
            total += shifted - (factor * here.mass(a, b) if here.terms else 0)
        return total / self.mass, [(a, b) for a, b, _, _ in found]

    def _slope(self, phi: Any, epsilon: Any) -> Any:
        """Over the ends of intervals: f(x+φ) where an end stays or is a sign change, e^ε f(x) where it moves with φ."""
        factor, moving = CONTEXT.exp(epsilon), {edge - phi for edge in self.edges}
        total = MPF(0)
        for a, b, there, here in self._positives(phi, epsilon):
            for end, sign in ((a, -1), (b, 1)):
                if end is not None and end in moving:
                    total += sign * factor * here.value(end) if here.terms else 0
                elif end is not None:
                    total += sign * there.value(end + phi)
        return total / self.mass

    def _positives(self, phi: Any, epsilon: Any) -> list[tuple[Any, Any, Piece, Piece]]:
        """The intervals with f(x+φ) > e^ε f(x), cut at all edges, with the pieces that hold at x+φ and at x."""
        cuts = sorted({*self.edges, *(edge - phi for edge in self.edges)})
        found = []
        for start, stop in itertools.pairwise([None, *cuts, None]):
            inside = MPF(0) if start is None and stop is None else self._between(start, stop)
            there, here = self.piece_at(inside + phi), self.piece_at(inside)
            if there.terms:
                pair = Pair(there, here, phi, epsilon, self.reach, self.spacing)
                found += [(a, b, there, here) for a, b in pair.positive(start, stop)]
        return found

    @staticmethod
    def _between(start: Any, stop: Any) -> Any:
        return stop - 1 if start is None else start + 1 if stop is None else (start + stop) / 2

    def steps(self, epsilon: float) -> int:
        """How finely shifts are to be looked at: peaks of a large ε are narrow."""
        least = 40 if self.scale >= 1 else 1000
        return int(min(max(least, 10 / self.scale, 3 * epsilon / self.scale**2), 3000))

    def _logs(self, x: np.ndarray) -> np.ndarray:
        """log of the density in float64, before it is normalised."""
        found = np.full(len(x), -np.inf)
        for piece in self.pieces:
            inside = (x >= (-np.inf if piece.start is None else float(piece.start))) & (
                x < (np.inf if piece.stop is None else float(piece.stop))
            )
            found[inside] = piece.floats(x[inside])[0]
        return found

    def scan(self, epsilon: float, steps: int, chosen: Sequence[int]) -> np.ndarray:
        """log D at φ = j/steps for the chosen j, as Riemann sums: good to a percent, to see where the peaks are."""
        c = min((piece.c for piece in self.pieces if piece.stop is None or piece.start is None), default=MPF(0))
        far = self.reach + 2 + (2 * epsilon / float(c) if c else epsilon * self.scale)
        width = min(self.scale / 160, self.scale**2 / 24) if self.scale < 1 and c else self.scale / 40
        if self.scale >= 1:
            x = np.arange(-far, far, width)
            base = epsilon + self._logs(x)
            there = (self._logs(x + j / steps) for j in chosen)
        else:  # x and φ on one lattice
            fine = int(np.ceil(1 / width / steps))  # points for each step of φ
            size = steps * fine
            stride, half = max(1, int(width * size)), int(far * size)
            logs = self._logs((np.arange(-half, half + size + 1) + 0.5) / size)
            width = stride / size
            base = epsilon + logs[: 2 * half : stride]
            there = (logs[j * fine : j * fine + 2 * half : stride] for j in chosen)
        return np.array([_log_sum(shifted, base, width) for shifted in there]) - float(CONTEXT.log(self.mass))

    def supremum(self, epsilon: Any) -> tuple[Any, Any]:
        """(φ, D(φ)) with the largest D over [0, 1] that was found."""
        return max(self.maxima(epsilon), key=lambda pair: pair[1])

    def maxima(self, epsilon: Any) -> list[tuple[Any, Any]]:
        """(φ, D(φ)) at φ = 1, at every local maximum within a tenth of the largest D, and where edges meet near it."""
        exact = Fraction(epsilon)
        if exact not in self._maxima:
            shifts = [MPF(1), *self._candidates(exact)]
            self._maxima[exact] = [(shift, self._parts(shift, number(exact))[0]) for shift in shifts]
        return self._maxima[exact]

    def _candidates(self, epsilon: Fraction) -> list[Any]:
        level, steps = float(epsilon), self.steps(float(epsilon))
        coarse = sorted({*range(0, steps, max(1, steps // 1000)), steps})
        rough = dict(zip(coarse, self.scan(level, steps, coarse), strict=True))
        top = max(rough.values())
        if top == -np.inf:
            return []
        near: set[int] = set()
        for i, j in enumerate(coarse):
            if rough[j] > top - 8 and self._is_top(rough, coarse, i):
                near.update(range(coarse[max(i - 1, 0)], coarse[min(i + 1, len(coarse) - 1)] + 1))
        more = sorted(near - set(coarse))
        rough.update(zip(more, self.scan(level, steps, more), strict=True))
        order, top = sorted(rough), max(rough.values())
        high = [
            j for i, j in enumerate(order) if 0 < j < steps and rough[j] > top - 0.1 and self._is_top(rough, order, i)
        ]
        found: list[Any] = []
        for j in sorted(high, key=lambda j: -rough[j]):
            if not any(x <= MPF(j) / steps <= y for _, x, y in found) and len(found) < 6:
                found.append(self.climb(MPF(j) / steps, MPF(1) / steps, number(epsilon)))
        if rough[steps] > top - 0.1:
            found += self._near_the_end(number(epsilon))
        for shift, width in self._slivers(level, top):
            if not any(x <= shift <= y for _, x, y in found):
                found.append(self.climb(shift, width, number(epsilon)))
        meetings = {a - b for a in self.edges for b in self.edges if 0 < a - b < 1}
        return [shift for shift, _, _ in found] + [
            m for m in meetings if rough[min(order, key=lambda j: abs(j / steps - float(m)))] > top - 0.3
        ]

    def _slivers(self, epsilon: float, log_top: float) -> list[tuple[Any, Any]]:
        """Shifts where what exceeds may be too narrow for a Riemann sum, at most three: where a summit is just above ε,
        f(x+φ) exceeds e^ε f(x) for a small range of x and of φ. And how far a step in φ may go there."""
        found: dict[float, tuple[float, Any, Any]] = {}
        for peak, trough, ratio, high in self.summits():
            if not -1e-9 < ratio - epsilon < 0.05:
                continue
            shift, over = MPF(peak) - MPF(trough), MPF(ratio - epsilon)
            if over < 1e-6:  # too near for floats
                x, y = self._turn(peak), self._turn(trough)
                shift = x - y
                over = CONTEXT.log(self.piece_at(x).value(x) / self.piece_at(y).value(y)) - number(Fraction(epsilon))
            if over > 0:
                part = high + 1.5 * float(CONTEXT.log(over))
                name = round(float(shift), 6)
                if part > max(log_top - 3, found.get(name, (-np.inf,))[0]):
                    found[name] = part, shift, min(MPF(10) ** -5, CONTEXT.sqrt(over) * self.scale**2 / 4)
        return [pair for _, *pair in sorted(found.values(), key=lambda entry: -entry[0])[:3]]  # type: ignore[misc]

    def _turn(self, x: float) -> Any:
        """The zero of f′ near x, within a piece; x itself at an edge."""
        piece, near = self.piece_at(MPF(x)), MPF(self.spacing) / 100
        ends = [
            MPF(x) - near if piece.start is None else max(MPF(x) - near, piece.start),
            MPF(x) + near if piece.stop is None else min(MPF(x) + near, piece.stop),
        ]
        slopes = [piece.steepness(end) for end in ends]
        if slopes[0] * slopes[1] >= 0:
            return MPF(x)
        return bracketed_zero(piece.steepness, *ends, *slopes, MPF(10) ** -25)

    def summits(self) -> list[tuple[float, float, float, float]]:
        """(x+φ, x, log-ratio, log f(x+φ)) at the local maxima of log f(x+φ) − log f(x) over x and φ, 0 < φ < 1, in
        float64: x+φ is a peak of f and x a trough."""
        x = np.arange(-self.reach, self.reach, min(self.scale / 40, self.scale**2 / 6))
        logs = self._logs(x)
        found: dict[int, list[tuple[float, float]]] = {1: [], -1: []}
        for sign, places in found.items():
            with np.errstate(invalid="ignore"):
                turns = (sign * (logs[1:-1] - logs[:-2]) > 0) & (sign * (logs[1:-1] - logs[2:]) >= 0)
            for i in (np.flatnonzero(turns & np.isfinite(logs[1:-1])) + 1).tolist():
                near = x[i - 1 : i + 2]
                for _ in range(4):
                    near = np.linspace(near[0], near[-1], 17)
                    best = min(max(int(np.argmax(sign * self._logs(near))), 1), 15)
                    near = near[best - 1 : best + 2]
                places.append((float(near[1]), float(self._logs(near[1:2])[0])))
        mass = float(CONTEXT.log(self.mass))
        pairs = [(p, q, high - low, high - mass) for p, high in found[1] for q, low in found[-1]]
        return [pair for pair in pairs if 0 < pair[0] - pair[1] < 1]

    @staticmethod
    def _is_top(rough: dict[int, float], order: Sequence[int], i: int) -> bool:
        around = [rough[order[k]] for k in (i - 1, i + 1) if 0 <= k < len(order)]
        return rough[order[i]] >= max(around)

    def _near_the_end(self, epsilon: Any) -> list[tuple[Any, Any, Any]]:
        """Local maxima between 1 − 2⁻⁵ and 1, in which D may change faster and faster, as from climb."""
        ends = [1 - MPF(2) ** -k for k in range(5, 31)]
        slopes = [self._slope(end, epsilon) for end in ends]
        turns = [i for i in range(len(ends) - 1) if slopes[i] > 0 > slopes[i + 1]]
        return [
            (self._zero(ends[i], ends[i + 1], slopes[i], slopes[i + 1], epsilon), ends[i], ends[i + 1]) for i in turns
        ]

    def _zero(self, x: Any, y: Any, fx: Any, fy: Any, epsilon: Any) -> Any:
        """Where dD/dφ changes its sign, to 22 digits."""
        return bracketed_zero(lambda t: self._slope(t, epsilon), x, y, fx, fy, MPF(10) ** -22)

    def climb(self, shift: Any, width: Any, epsilon: Any) -> tuple[Any, Any, Any]:
        """A zero of dD/dφ near a grid point, to 22 digits: D there is right to twice as many; and a range round both,
        in which no other maximum is sought."""
        last = MPF(1) - MPF(10) ** -12
        start = min(shift, last)
        slope = self._slope(start, epsilon)
        near, before, step = start, slope, width if slope > 0 else -width
        while (far := min(max(near + step, MPF(0)), last)) != near:
            after = self._slope(far, epsilon)
            if (after > 0) != (slope > 0):
                x, y, fx, fy = (near, far, before, after) if step > 0 else (far, near, after, before)
                return self._zero(x, y, fx, fy, epsilon), min(shift, x) - width, max(shift, y) + width
            near, before, step = far, after, 2 * step
        return near, min(shift, near) - width, max(shift, near) + width

    def probability(self, a: Any, b: Any) -> Any:
        """P(a < X < b), None for infinite ends."""
        total = MPF(0)
        for piece in self.pieces:
            low = piece.start if a is None else number(a) if piece.start is None else max(number(a), piece.start)
            high = piece.stop if b is None else number(b) if piece.stop is None else min(number(b), piece.stop)
            if piece.terms and (low is None or high is None or low < high):
                total += piece.mass(low, high)
        return total / self.mass


def _log_sum(there: np.ndarray, base: np.ndarray, width: float) -> float:
    """log ∫ max(e^there − e^base, 0), as a Riemann sum of values that far apart."""
    positive = there > base
    if not positive.any():
        return -np.inf
    high, low = there[positive], base[positive]
    top = high.max()
    return float(top + np.log((np.exp(high - top) * -np.expm1(low - high)).sum() * width))


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
