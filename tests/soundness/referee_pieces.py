"""Pieces of the referee's densities, Σ w e^(a + b x − c x²) in mpmath, and where f(x+φ) exceeds e^ε f(x).

Floats say where to look; signs, roots and masses are those of 60 digits. No formula and no code of the packages under
test is used.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

CONTEXT = mpmath.MPContext()
CONTEXT.dps = 60
MPF = CONTEXT.mpf
LOG_10 = 2.302585092994046


@contextmanager
def digits(count: int) -> Iterator[None]:
    """More than 60 digits for the densities that are made and evaluated inside: where what is left of exact
    cancellation is tiny."""
    before, CONTEXT.dps = CONTEXT.dps, max(count, 60)
    try:
        yield
    finally:
        CONTEXT.dps = before


def noise() -> Any:
    """Relative difference below which two sums count as equal: what the digits leave of exact cancellation."""
    return MPF(10) ** (8 - CONTEXT.dps)


def root_width() -> Any:
    """Width to which a sign change is found; D feels the square of the error."""
    return MPF(10) ** (4 - CONTEXT.dps // 2)


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

    def __post_init__(self) -> None:
        self._logs = np.array([float(CONTEXT.log(w) + a) for w, a, _ in self.terms])
        self._slopes = np.array([float(b) for _, _, b in self.terms])
        self._c = float(self.c)
        if self.c:
            root = CONTEXT.sqrt(CONTEXT.pi / self.c)
            self._masses = [w * CONTEXT.exp(a + b * b / (4 * self.c)) * root for w, a, b in self.terms]
            self._log_masses = np.array([float(CONTEXT.log(mass)) for mass in self._masses])

    def value(self, x: Any) -> Any:
        """f(x); terms beyond the digits are left out."""
        return CONTEXT.fsum(part for part, _ in self._parts(x))

    def steepness(self, x: Any) -> Any:
        """d log f/dx."""
        parts = list(self._parts(x))
        return CONTEXT.fsum(part * slope for part, slope in parts) / CONTEXT.fsum(part for part, _ in parts)

    def _parts(self, x: Any) -> Iterator[tuple[Any, Any]]:
        """Each term at x, and the slope of its logarithm."""
        near = float(x)
        logs = self._logs + (self._slopes - self._c * near) * near
        least = logs.max(initial=-np.inf) - LOG_10 * (CONTEXT.dps + 5)
        kept = [term for term, log in zip(self.terms, logs, strict=True) if log > least]
        return ((w * CONTEXT.exp(a + (b - self.c * x) * x), b - 2 * self.c * x) for w, a, b in kept)

    def floats(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(log value, a measure of the size of its parts) in float64."""
        if not self.terms:
            return np.full(x.shape, -np.inf), np.ones(x.shape)
        parts = self._logs[:, None] + (self._slopes[:, None] - self._c * x) * x
        top = parts.max(axis=0)
        size = 1 + np.abs(self._logs).max() + np.abs(self._slopes).max() * np.abs(x) + self._c * x * x
        return top + np.log(np.exp(parts - top).sum(axis=0)), size

    def mass(self, u: Any, v: Any) -> Any:
        """∫ over [u, v], None for infinite; largest terms first, and those beyond the digits left out."""
        if not self.c:
            return CONTEXT.fsum(self._exponential_mass(*term, u, v) for term in self.terms)
        centres = self._slopes / (2 * self._c)
        below = 0.0 if u is None else np.maximum(float(u) - centres, 0)
        above = 0.0 if v is None else np.maximum(centres - float(v), 0)
        bounds = self._log_masses - self._c * np.maximum(below, above) ** 2
        total = MPF(0)
        for i in np.argsort(-bounds).tolist():
            if total and bounds[i] < float(CONTEXT.log(total)) - LOG_10 * (CONTEXT.dps + 5):
                break
            total += self._gaussian_mass(i, u, v)
        return total

    def _gaussian_mass(self, i: int, u: Any, v: Any) -> Any:
        root, centre = CONTEXT.sqrt(self.c), self.terms[i][2] / (2 * self.c)
        low, high = (None if x is None else root * (x - centre) for x in (u, v))
        if low is None or (high is not None and low + high < 0):
            low, high = (None if high is None else -high), (None if low is None else -low)
        if low is None:
            return self._masses[i]
        if high is not None and low > 0 and high * high - low * low > LOG_10 * (CONTEXT.dps + 10):
            high = None
        return self._masses[i] / 2 * (CONTEXT.erfc(low) - (0 if high is None else CONTEXT.erfc(high)))

    @staticmethod
    def _exponential_mass(w: Any, a: Any, b: Any, u: Any, v: Any) -> Any:
        if not b:
            return w * CONTEXT.exp(a) * (v - u)
        if u is None or v is None:
            return w * CONTEXT.exp(a + b * (v if u is None else u)) / abs(b)
        return w * CONTEXT.exp(a + b * u) * CONTEXT.expm1(b * (v - u)) / b


def bracketed_zero(function: Any, x: Any, y: Any, fx: Any, fy: Any, width: Any) -> Any:
    """A change of sign between x and y, to that width, by false position with halved weights (Illinois); by halving
    where three turns did not halve the interval."""
    side, halve, before = 0, False, y - x
    for turn in range(1, 600):
        if y - x <= width:
            break
        guess = x - fx * (y - x) / (fy - fx)
        middle = (x + y) / 2 if halve else min(max(guess, x + width / 4), y - width / 4)
        fm = function(middle)
        if (fm > 0) == (fx > 0):
            x, fx = middle, fm
            fy = fy / 2 if side < 0 else fy
            side = -1
        else:
            y, fy = middle, fm
            fx = fx / 2 if side > 0 else fx
            side = 1
        halve = halve and turn % 3 != 0
        if turn % 3 == 0:
            halve, before = y - x > before / 2, y - x
    return (x + y) / 2


def _polished(function: Any, x: Any, slope: float, width: Any) -> Any:
    """A zero near x by secants, the first of the given slope; None where they do not settle."""
    value = function(x)
    for turn in range(8):
        step = -value / slope
        if turn > 1 and abs(step) <= width:
            return x + step
        if abs(step) > 1e-6:
            return None
        moved = function(x + step)
        if step and moved != value:
            slope = (moved - value) / step
        x, value = x + step, moved
    return None


class Pair:
    """The sign of f(x+φ) − e^ε f(x) where f is one piece at x+φ and one at x; ``reach`` and ``spacing`` say how far and
    how finely to look."""

    def __init__(self, there: Piece, here: Piece, phi: Any, epsilon: Any, reach: float, spacing: float) -> None:
        self._there, self._here, self._phi = there, here, phi
        self._reach, self._spacing = reach, spacing
        self._epsilon, self._factor, self._noise = float(epsilon), CONTEXT.exp(epsilon), noise()

    def positive(self, start: Any, stop: Any) -> list[tuple[Any, Any]]:
        """The intervals between start and stop on which it is positive."""
        if not self._here.terms:
            return [(start, stop)]
        low, high = self._range(start, stop)
        shares = self._with_extrema(self._grid(low, high), low, high)
        ratio, certain = self._rough(shares, low, high)
        signs = ratio > 0
        doubtful = np.flatnonzero(~certain)
        for run in np.split(doubtful, np.flatnonzero(np.diff(doubtful) > 1) + 1):
            _settle(run.tolist(), signs, lambda i: bool(self._excess(low + (high - low) * MPF(shares[i])) > 0))
        changes = np.flatnonzero(signs[1:] != signs[:-1])
        roots = self._roots(shares[changes], shares[changes + 1], signs[changes], low, high)
        roots = sorted([*roots, *self._touching(shares, signs, low, high)])
        pairs = itertools.pairwise([start, *roots, stop])
        return [pair for i, pair in enumerate(pairs) if (i % 2 == 0) == signs[0]]

    def _range(self, start: Any, stop: Any) -> tuple[Any, Any]:
        """Finite ends beyond all sign changes. Beyond all centres the log-ratio of Gaussian tails has slope 2cφ, and it
        may take that long to make up for ε; what two exponentials differ by falls by their slopes' difference."""
        far = abs(self._epsilon) / (2 * float(self._there.c * self._phi)) if self._there.c and self._phi else 0.0
        slopes = sorted({float(b) for _, _, b in self._there.terms})
        if not self._there.c and len(slopes) > 1:
            far = LOG_10 * CONTEXT.dps / min(b - a for a, b in itertools.pairwise(slopes))
        reach = MPF(self._reach + far)
        low = -reach - 1 if start is None else start
        high = reach if stop is None else stop
        return (min(low, high - 1) if start is None else low), (max(high, low + 1) if stop is None else high)

    def _grid(self, low: Any, high: Any) -> np.ndarray:
        """Shares of [low, high]: evenly within the reach, by steps that grow beyond it."""
        start, stop = max(float(low), -self._reach - 1), min(float(high), self._reach + 1)
        if stop <= start:
            return np.linspace(0, 1, 17)
        even = np.linspace(start, stop, min(max(16, int((stop - start) / self._spacing)), 4000) + 1)
        beyond = self._spacing * np.cumsum(1.1 ** np.arange(1, 400))
        points = np.concatenate(
            [start - beyond[start - beyond > float(low)], even, stop + beyond[stop + beyond < float(high)]]
        )
        return np.unique([0, 1, *np.clip((points - float(low)) / float(high - low), 0, 1)])

    def _excess(self, x: Any) -> Any:
        """log of f(x+φ)/(e^ε f(x)); below 0 where the two are equal to the digits."""
        p, n = self._there.value(x + self._phi), self._factor * self._here.value(x)
        return CONTEXT.log(p / n) if abs(p - n) > self._noise * (p + n) else -self._noise

    def _rough(self, shares: np.ndarray, low: Any, high: Any) -> tuple[np.ndarray, np.ndarray]:
        """The same in float64, and where its sign is beyond doubt."""
        x = float(low) + float(high - low) * shares
        log_there, error_there = self._there.floats(x + float(self._phi))
        log_here, error_here = self._here.floats(x)
        ratio = log_there - log_here - self._epsilon
        return ratio, np.abs(ratio) > 1e-12 * (error_there + error_here)

    def _with_extrema(self, shares: np.ndarray, low: Any, high: Any) -> np.ndarray:
        """The points, with those added where the log-ratio comes near 0 between two of them and turns back."""
        for _ in range(3):
            ratio, _ = self._rough(shares, low, high)
            size = np.abs(ratio)
            turns = np.minimum(size[:-2], size[2:]) - size[1:-1] > 1e-11 * (1 + size[1:-1])
            same = (ratio[1:-1] > 0) == (ratio[:-2] > 0)
            same &= (ratio[1:-1] > 0) == (ratio[2:] > 0)
            near = np.flatnonzero(turns & same)
            if not len(near):
                break
            parts = np.arange(1, 17) / 17  # none of which is the middle again
            added = shares[near, None] + (shares[near + 2] - shares[near])[:, None] * parts
            shares = np.unique(np.concatenate([shares, added.ravel()]))
        return shares

    def _touching(self, shares: np.ndarray, signs: np.ndarray, low: Any, high: Any) -> list[Any]:
        """Pairs of sign changes between two points, where the log-ratio comes so near 0 and turns back that floats
        cannot tell whether it passes 0: its extremum is found in 60 digits."""
        ratio, _ = self._rough(shares, low, high)
        size, alike = np.abs(ratio), (signs[1:-1] == signs[:-2]) & (signs[1:-1] == signs[2:])
        around = np.maximum(size[:-2], size[2:]) - size[1:-1]
        turns = (np.minimum(size[:-2], size[2:]) >= size[1:-1]) & (size[1:-1] <= 2 * around + 1e-9) & alike
        found: list[Any] = []
        for i in (np.flatnonzero(turns) + 1).tolist():
            x, y = (low + (high - low) * MPF(shares[k]) for k in (i - 1, i + 1))
            fx, fy = self._steepness(x), self._steepness(y)
            if fx * fy < 0 and (not found or x >= found[-1]):
                top = bracketed_zero(self._steepness, x, y, fx, fy, root_width())
                middle, ends = self._excess(top), [self._excess(x), self._excess(y)]
                if (ends[0] > 0) == (ends[1] > 0) != (middle > 0):
                    found += [
                        bracketed_zero(self._excess, x, top, ends[0], middle, root_width()),
                        bracketed_zero(self._excess, top, y, middle, ends[1], root_width()),
                    ]
        return found

    def _steepness(self, x: Any) -> Any:
        return self._there.steepness(x + self._phi) - self._here.steepness(x)

    def _roots(self, left: np.ndarray, right: np.ndarray, signs: np.ndarray, low: Any, high: Any) -> list[Any]:
        """One sign change in each [left, right]: narrowed by floats, polished by secants in 60 digits; bracketed in 60
        digits where floats cannot say."""
        starts, stops = left, right
        for _ in range(4):
            grid = left[:, None] + (right - left)[:, None] * np.linspace(0, 1, 17)
            ratio = self._rough(grid.ravel(), low, high)[0].reshape(grid.shape)
            changed = (ratio > 0) != signs[:, None]
            changed[:, -1] = True
            first = np.maximum(changed.argmax(axis=1), 1)[:, None]
            left, right = (np.take_along_axis(grid, first - k, axis=1)[:, 0] for k in (1, 0))
            values = [np.take_along_axis(ratio, first - k, axis=1)[:, 0] for k in (1, 0)]
        wide, width = high - low, root_width()
        found = []
        for i in range(len(left)):
            x, y = (low + wide * MPF(end[i]) for end in (starts, stops))
            slope = (values[1][i] - values[0][i]) / max(float(wide) * (right[i] - left[i]), 1e-300)
            root = None
            if slope and (values[0][i] > 0) != (values[1][i] > 0):
                share = left[i] - values[0][i] / slope / float(wide)
                root = _polished(self._excess, low + wide * MPF(share), slope, width * max(1, abs(x)))
            if root is None or not x <= root <= y:
                root = bracketed_zero(self._excess, x, y, self._excess(x), self._excess(y), width * max(1, abs(x)))
            found.append(root)
        return found


def _settle(run: list[int], signs: np.ndarray, sign: Callable[[int], bool]) -> None:
    """Signs of a row of doubtful points: of every so many, and between two of the same sign that same sign."""
    picked = sorted({*run[:: max(1, len(run) // 32)], *run[-1:]})
    for i in picked:
        signs[i] = sign(i)
    for start, stop in itertools.pairwise(picked):
        a, b = start, stop
        while b - a > 1 and signs[start] != signs[stop]:
            middle = (a + b) // 2
            a, b = (middle, b) if sign(middle) == signs[start] else (a, middle)
        signs[start:b], signs[b:stop] = signs[start], signs[stop]
