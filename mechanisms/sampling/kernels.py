"""Kernels: a value of the noise is drawn and the rounded sum with the query decided, in whole numbers.

A kernel maps (word, a, b) to m = ⌊a/b + X/g⌋, a/b = q/g + 1/2 and b > 0 whole: that is q + X rounded to the grid g. X
is affine in one uniform number of which bits are drawn until m is certain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.form import Form
from mechanisms.lines import LineSum, Terms
from mechanisms.sampling.bits import PATIENCE, StuckBits, Uniform, Word, at_least_zero, floor_of
from mechanisms.sampling.normal import half_normal
from mechanisms.sampling.weights import Choice

Kernel = Callable[[Word, int, int], int]


def over_common(*numbers: Fraction) -> tuple[list[int], int]:
    """(numerators, denominator) of the numbers over one denominator."""
    denominator = math.lcm(*(number.denominator for number in numbers))
    return [number.numerator * (denominator // number.denominator) for number in numbers], denominator


def rational_root(number: Fraction) -> Fraction | None:
    """√number where it is rational."""
    if number < 0:
        return None
    root = Fraction(math.isqrt(number.numerator), math.isqrt(number.denominator))
    return root if root * root == number else None


@dataclass(frozen=True)
class Normals:
    """Σ w N(m, σ²), up to a factor: masses Σ w e^a, means and σ, all exact, in the unit of the query."""

    masses: tuple[Terms, ...]
    means: tuple[Fraction, ...]
    sigma: Fraction

    @classmethod
    def of(cls, lines: LineSum) -> Normals | None:
        """The sum as normal densities; None where it has no Gaussian factor or its σ is irrational."""
        if not lines.c:
            return None
        sigma = rational_root(1 / (2 * lines.c))
        if sigma is None:
            return None
        masses, means = [], []
        for slope, terms in sorted(lines.by_slope.items()):
            lift = slope * slope / (4 * lines.c)
            masses.append(tuple((weight, exponent + lift) for weight, exponent in terms))
            means.append(slope / (2 * lines.c))
        return cls(tuple(masses), tuple(means), sigma)

    def on_grid(self, grid: Fraction) -> list[tuple[int, int, int]]:
        """(m, σ, divisor) for each component, all whole: m/g and σ/g over a denominator of the component's own."""
        found = []
        for mean in self.means:
            (middle, scale), divisor = over_common(mean / grid, self.sigma / grid)
            found.append((middle, scale, divisor))
        return found


def whole_mixture(form: Form) -> Normals | None:
    """The density as one sum of normal densities on the whole line, or None where it is not."""
    if type(form) is not Form or len(form.pieces) != 1 or form.pieces[0].stop is not None:
        return None
    lines = form.pieces[0].sum
    return Normals.of(lines) if lines.by_slope == lines.reflected().by_slope else None


def half_mixture(form: Form) -> Normals | None:
    """The density as one sum of normal densities of means at least 0 on [0, ∞), and its mirror image, or None."""
    if type(form) is not Form or len(form.pieces) != 1 or form.pieces[0].stop is not None:
        return None
    found = Normals.of(form.pieces[0].sum)
    return found if found is not None and min(found.means) >= 0 else None


def mixture_kernel(normals: Normals, grid: Fraction, width: int) -> Kernel:
    """Σ w N(m, σ²): the component by an exact choice, one for each value; then m ± σ(k + x) with a fair sign."""
    components = normals.on_grid(grid)
    choose = Choice(normals.masses, width) if len(components) > 1 else None
    only = components[0]
    normal = half_normal(width)

    def kernel(word: Word, a: int, b: int) -> int:
        mean, scale, divisor = only if choose is None else components[choose(word)]
        k, x, lazy = normal(word)
        whole = b * divisor
        base = a * divisor + b * mean
        factor = b * scale
        shifted = whole << width
        if word() & 1:
            found, rest = divmod((base << width) + factor * ((k << width) + x), shifted)
            if rest + factor <= shifted:  # x runs over [0, 2^-width) from here
                return found
        else:
            factor = -factor
            found, rest = divmod((base << width) + factor * ((k << width) + x), shifted)
            if rest + factor >= 0:
                return found
        return floor_of(base + factor * k, factor, whole, lazy or Uniform(word, width, x))

    return kernel


def half_mixture_kernel(normals: Normals, grid: Fraction, width: int) -> Kernel:
    """The density Σ w N(m, σ²) on [0, ∞), m ≥ 0, and its mirror image, as quasi-Gaussian noise is.

    A component is chosen and Y drawn from it; a Y below 0 throws everything away, the choice of the component included,
    so that what is kept has density ∝ Σ w N(m, σ²) on [0, ∞), whatever share of each component lies there. For m = 0 Y
    is σ|N| and never below 0: it has twice the density there, and half the weight. Then a fair sign. At least half of
    the tries are kept.
    """
    components = normals.on_grid(grid)
    half = Fraction(1, 2)
    masses = [
        tuple((weight if mean else weight * half, exponent) for weight, exponent in terms)
        for terms, mean in zip(normals.masses, normals.means, strict=True)
    ]
    choose = Choice(masses, width)
    normal = half_normal(width)

    def kernel(word: Word, a: int, b: int) -> int:
        for _ in PATIENCE:
            mean, scale, divisor = components[choose(word)]
            k, x, lazy = normal(word)
            factor = scale
            if mean and word() & 1:
                factor = -scale
                room = (mean << width) - scale * ((k << width) + x)
                if room < scale:
                    if room < 0:
                        continue
                    lazy = lazy or Uniform(word, width, x)
                    if not at_least_zero(mean - scale * k, (-scale, lazy)):
                        continue
            if word() & 1:
                mean, factor = -mean, -factor
            base, whole = a * divisor + b * (mean + factor * k), b * divisor
            return floor_of(base, b * factor, whole, lazy or Uniform(word, width, x))
        raise StuckBits

    return kernel
