"""Sums of exponentials of lines under one Gaussian factor: the formula that every density here is made of. (trusted)

    e^(−c x²) · Σ_j C_j e^(b_j x),     C_j = Σ_i w_i e^(a_i) > 0,   all of c ≥ 0, w_i, a_i, b_j rational

A Gaussian component is a line under c = 1/(2σ²); an exponential is a line under c = 0; a step has b = 0. Value, slope
and integrals are written once, for every arithmetic of mechanisms.arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from mechanisms.arithmetic import Arithmetic, Array

Terms = tuple[tuple[Fraction, Fraction], ...]
"""A coefficient Σ w_i e^(a_i), as pairs (w_i, a_i) with different a_i, the largest a_i first."""

ZERO = Fraction(0)


def merge_terms(terms: Iterable[tuple[Fraction, Fraction]]) -> Terms:
    """The same sum with equal exponents added, exactly, and zeros dropped."""
    weights: dict[Fraction, Fraction] = {}
    for weight, exponent in terms:
        weights[exponent] = weights.get(exponent, ZERO) + weight
    return tuple((weight, exponent) for exponent, weight in sorted(weights.items(), reverse=True) if weight)


@dataclass(frozen=True, slots=True)
class Line:
    """C e^(b x): the coefficient C > 0 as exact terms, and the slope b."""

    terms: Terms
    slope: Fraction

    @classmethod
    def of(cls, weight: Fraction, intercept: Fraction, slope: Fraction) -> Line:
        """w e^(a + b x)."""
        return cls(((weight, intercept),), slope)

    def peak(self, c: Fraction) -> Fraction:
        """max over x of (a + b x − c x²) for c > 0, or a for c = 0; a is the largest exponent of the terms."""
        return self.terms[0][1] + (self.slope * self.slope / (4 * c) if c else 0)


@dataclass(frozen=True)
class LineSum:
    """e^(−c x²) Σ_j C_j e^(b_j x); no lines means the zero function."""

    c: Fraction
    lines: tuple[Line, ...]
    _cache: dict[object, tuple[Array, Array, Any]] = field(default_factory=dict, compare=False, repr=False)

    def reflected(self) -> LineSum:
        """The same function of −x."""
        return LineSum(self.c, tuple(Line(line.terms, -line.slope) for line in self.lines))

    def scaled(self, factor: Fraction) -> LineSum:
        """The same function of x·factor."""
        return LineSum(self.c * factor**2, tuple(Line(line.terms, line.slope * factor) for line in self.lines))

    def shifted(self, phi: Fraction) -> LineSum:
        """x ↦ this at x + φ, exactly: a line stays a line, c stays."""
        drop = self.c * phi * phi
        turn = 2 * self.c * phi

        def move(line: Line) -> Line:
            extra = line.slope * phi - drop
            return Line(tuple((w, a + extra) for w, a in line.terms), line.slope - turn)

        return LineSum(self.c, tuple(move(line) for line in self.lines))

    def lifted(self, lift: Fraction) -> LineSum:
        """This times e^lift, exactly."""
        return LineSum(
            self.c, tuple(Line(tuple((w, a + lift) for w, a in line.terms), line.slope) for line in self.lines)
        )

    @cached_property
    def slopes(self) -> frozenset[tuple[int, int]]:
        """The slopes as (numerator, denominator): cheap to hash, where a Fraction is not."""
        return frozenset((line.slope.numerator, line.slope.denominator) for line in self.lines)

    @cached_property
    def by_slope(self) -> dict[Fraction, Terms]:
        """The coefficient of each slope, equal slopes added exactly."""
        found: dict[Fraction, list[tuple[Fraction, Fraction]]] = {}
        for line in self.lines:
            found.setdefault(line.slope, []).extend(line.terms)
        return {slope: merge_terms(terms) for slope, terms in found.items()}

    def parameters(self, arithmetic: Arithmetic) -> tuple[Array, Array, Any]:
        """(log amplitudes, centres where c > 0 or slopes where c = 0, c); an entry for each line."""
        key = arithmetic.key
        if key not in self._cache:
            c = self.c
            heights = []
            for line in self.lines:
                height = arithmetic.number(line.peak(c))
                if len(line.terms) > 1 or line.terms[0][0] != 1:
                    height = height + log_factor(line.terms, arithmetic)
                heights.append(height)
            middles = arithmetic.numbers(line.slope / (2 * c) if c else line.slope for line in self.lines)
            self._cache[key] = (arithmetic.array(heights), middles, arithmetic.number(c))
        return self._cache[key]

    def exponents(self, x: Array, arithmetic: Arithmetic) -> Array:
        """log of each line's value times e^(−c x²); shape (lines, *x.shape). Centred where c > 0: no cancellation."""
        return exponents(x, *self._columns(x, arithmetic))

    def _columns(self, x: Array, arithmetic: Arithmetic) -> tuple[Array, Array, Any]:
        """The parameters as columns that broadcast against x[None]; c is None where it is 0."""
        heights, middles, c = self.parameters(arithmetic)
        shape = (len(self.lines),) + (1,) * x.ndim
        return heights.reshape(shape), middles.reshape(shape), c if self.c else None

    def value(self, x: Array, arithmetic: Arithmetic) -> Array:
        """The sum itself."""
        return arithmetic.exp(self.exponents(x, arithmetic)).sum(axis=0)

    def log_value(self, x: Array, arithmetic: Arithmetic) -> Array:
        """log of the sum, stable where the sum itself would underflow."""
        return self.log_value_and_score(x, arithmetic)[0]

    def score(self, x: Array, arithmetic: Arithmetic) -> Array:
        """d/dx of log_value: μ(x) − 2 c x, μ the mean slope, nondecreasing in x (log of the lines' sum is convex)."""
        return self.log_value_and_score(x, arithmetic)[1]

    def log_value_and_score(self, x: Array, arithmetic: Arithmetic) -> tuple[Array, Array]:
        """(log_value, score) with each exponential evaluated once."""
        return log_sum_and_score(x, *self._columns(x, arithmetic), arithmetic)

    def moments(self, u: Array, v: Array | None, order: int, arithmetic: Arithmetic) -> list[Array]:
        """[∫ x^i (this) dx over [u, v]] for i = 0..order (at most 2), u ≤ v; v = None is +∞.

        The mass (i = 0) of a Gaussian line is taken on the side of its centre where nothing cancels.
        """
        if not self.lines:
            return [np.full(u.shape, arithmetic.number(ZERO)) for _ in range(order + 1)]
        if self.c:
            return self._gaussian_moments(u, v, order, arithmetic)
        return self._exponential_moments(u, v, order, arithmetic)

    def _gaussian_moments(self, u: Array, v: Array | None, order: int, arithmetic: Arithmetic) -> list[Array]:
        heights, middles, c = self.parameters(arithmetic)
        shape = (len(self.lines),) + (1,) * u.ndim
        whole = 2 * arithmetic.exp(heights.reshape(shape))
        middles = middles.reshape(shape)
        root = arithmetic.sqrt(arithmetic.array([c]))[0]
        scale = arithmetic.sqrt(arithmetic.array([arithmetic.pi()]))[0] / (2 * root)

        def end(x: Array) -> tuple[Array, Array, Array, Array]:
            """At one end: value of the line, z, and the scaled mass beyond it to the right and to the left."""
            value = arithmetic.exp(self.exponents(x, arithmetic))
            z = root * (x[None] - middles)
            left_of_centre = arithmetic.negative(z)
            near = value * arithmetic.erfcx(arithmetic.where(left_of_centre, -z, z))
            far = whole - near
            right = arithmetic.where(left_of_centre, far, near)
            return value, z, right, arithmetic.where(left_of_centre, near, far)

        value_u, z_u, right_u, left_u = end(u)
        if v is None:
            mass = scale * right_u
            rise, rise_x = value_u, u[None] * value_u
        else:
            value_v, z_v, right_v, left_v = end(v)
            mass = scale * arithmetic.where(arithmetic.negative(z_u + z_v), left_v - left_u, right_u - right_v)
            rise, rise_x = value_u - value_v, u[None] * value_u - v[None] * value_v
        results = [mass]
        if order >= 1:
            results.append(middles * mass + rise / (2 * c))
        if order >= 2:
            results.append(middles * results[1] + (mass + rise_x) / (2 * c))
        return [result.sum(axis=0) for result in results]

    def _exponential_moments(self, u: Array, v: Array | None, order: int, arithmetic: Arithmetic) -> list[Array]:
        heights, slopes, _ = self.parameters(arithmetic)
        totals = [np.full(u.shape, arithmetic.number(ZERO)) for _ in range(order + 1)]
        for line, height, b in zip(self.lines, heights, slopes, strict=True):
            value_u = arithmetic.exp(height + b * u)
            if v is None:
                powers = [-(u**i) * value_u for i in range(order + 1)]
            else:
                value_v = arithmetic.exp(height + b * v)
                powers = [v**i * value_v - u**i * value_u for i in range(order + 1)]
            if not line.slope:
                assert v is not None, "a step that does not end has no finite mass"
                for i in range(order + 1):
                    totals[i] = totals[i] + value_u * (v ** (i + 1) - u ** (i + 1)) / (i + 1)
                continue
            if v is None:
                mass = -value_u / b
            elif line.slope > 0:  # from the larger end, so that nothing overflows and u may be -inf
                mass = -value_v * arithmetic.expm1(b * (u - v)) / b
            else:
                mass = value_u * arithmetic.expm1(b * (v - u)) / b
            parts = [mass]
            for i in range(1, order + 1):
                parts.append((powers[i] - i * parts[i - 1]) / b)
            totals = [total + part for total, part in zip(totals, parts, strict=True)]
        return totals


def exponents(x: Array, heights: Array, middles: Array, c: Any | None) -> Array:
    """height − c (x − middle)², or height + middle · x where c is None; the first axis is that of the lines."""
    if c is None:
        return heights + middles * x[None]
    distance = x[None] - middles
    return heights - c * (distance * distance)


def log_sum_and_score(
    x: Array, heights: Array, middles: Array, c: Any | None, arithmetic: Arithmetic
) -> tuple[Array, Array]:
    """log of the sum of the exponentials, and its slope in x."""
    logs = exponents(x, heights, middles, c)
    pivot = arithmetic.pivot(logs)
    share = arithmetic.exp(logs - pivot[None])
    total = share.sum(axis=0)
    slopes = middles if c is None else -2 * c * (x[None] - middles)
    return pivot + arithmetic.log(total), (share * slopes).sum(axis=0) / total


def log_factor(terms: Terms, arithmetic: Arithmetic) -> Any:
    """log( Σ w_i e^(a_i − a_1) ), the weights added exactly first so that near-cancelling terms keep their digits."""
    top = terms[0][1]
    total = arithmetic.numbers([sum((weight for weight, _ in terms), ZERO)])
    for weight, exponent in terms[1:]:
        total = total + arithmetic.number(weight) * arithmetic.expm1(arithmetic.numbers([exponent - top]))
    return arithmetic.log(total)[0]


def evaluate(function: Any, x: Any, arithmetic: Arithmetic) -> Any:
    """``function`` of an array, given a number or an array of any shape; the answer has x's shape."""
    if isinstance(x, np.ndarray):
        return function(x.reshape(-1)).reshape(x.shape)
    return function(arithmetic.array([x]))[0]
