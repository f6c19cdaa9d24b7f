"""The referee on the other claims: the grid of Theorem 3.2, the conditions of Theorem 4.2, Rényi divergences.

All in units of Δ.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tests.soundness.referee import Density
from tests.soundness.referee_pieces import CONTEXT, MPF, bracketed_zero, digits, number

FEW, MANY = 24, 4000
"""Grids of few points are looked at one by one; of those of up to many, the points where Riemann sums are large."""


def grid_size(sigma: Any, eta: Any, delta: Any) -> int:
    """⌈1/(√(2π) η σ δ)⌉ of Theorem 3.2, exactly: by as many digits as it has, and 60 more."""
    ratio = 1 / (Fraction(eta) * Fraction(sigma) * Fraction(delta))
    with digits(60 + len(str(int(ratio)))):
        return int(CONTEXT.ceil(number(ratio) / CONTEXT.sqrt(2 * CONTEXT.pi)))


def grid_maximum(density: Density, epsilon: Any, size: int) -> tuple[Fraction, Any]:
    """(φ, D(φ)) with the largest D on the grid {0, 1/size, …, 1} that was found."""
    if size <= FEW:
        chosen = list(range(1, size + 1))
    elif size <= MANY:
        rough = density.scan(float(Fraction(epsilon)), size, range(size + 1))
        order = np.argsort(-rough)[:16].tolist()
        chosen = sorted({size, *(j for j in order if rough[j] > rough[order[0]] - 0.1)})
    else:
        below = [int(shift * size) for shift, _ in density.maxima(epsilon)]
        chosen = sorted({size, *(j + k for j in below for k in (-1, 0, 1, 2) if 0 <= j + k <= size)})
    pairs = [(Fraction(j, size), density.divergence(Fraction(j, size), epsilon)) for j in chosen]
    return max(pairs, key=lambda pair: pair[1])


def normal_cdf(z: Any) -> Any:
    return CONTEXT.erfc(-z / CONTEXT.sqrt(2)) / 2


def least_delta_4a(sigma: Any, epsilon: Any) -> Any:
    """The δ at which h₁ + h₂ = 0; (4a) holds from there on."""
    s, e = number(sigma), number(epsilon)
    h1 = CONTEXT.exp(2 * e) * normal_cdf(-e * s - 1 / s) - normal_cdf(-e * s + 1 / s)
    return -h1 / (CONTEXT.exp(e) + 2 * normal_cdf(1 / s))


def log_ratio_5a(sigma: Any, epsilon: Any) -> Any:
    """log(max f / min f) over [0, 1] for the quasi-Gaussian: at the ends and where f' = 0."""
    s, e = number(sigma), number(epsilon)
    c = 1 / (2 * s * s)

    def log_density(x: Any) -> Any:
        return CONTEXT.log(CONTEXT.exp(e - c * x * x) + CONTEXT.exp(-c * (x - 1) ** 2))

    def slope(x: Any) -> Any:
        """f'(x)/(2c f(x)): −x plus the share of the component at 1."""
        return 1 / (1 + CONTEXT.exp(e + c - 2 * c * x)) - x

    grid = np.linspace(0, 1, 20001)
    with np.errstate(over="ignore"):
        rough = 1 / (1 + np.exp(float(e + c) - 2 * float(c) * grid)) - grid
    points = [MPF(0), MPF(1)]
    for i in np.flatnonzero((rough[1:] > 0) != (rough[:-1] > 0)).tolist():
        x, y = MPF(i) / 20000, MPF(i + 1) / 20000
        points.append(bracketed_zero(slope, x, y, slope(x), slope(y), MPF(10) ** -30))
    logs = [log_density(x) for x in points]
    return max(logs) - min(logs)


def renyi_divergence(components: Sequence[tuple[Any, Any]], sigma: Any, order: Any) -> Any:
    """D_α of f moved by 1 from f, for f = Σ w N(m, σ²) over (w, m); by the trapezoidal rule, which is nearly exact for
    what falls like a Gaussian."""
    s, alpha = number(sigma), number(order)
    weights = [number(w) for w, _ in components]
    total, means = CONTEXT.fsum(weights), [number(m) for _, m in components]
    logs = [CONTEXT.log(w / total) for w in weights]

    def log_density(x: Any) -> Any:
        exponents = [log - ((x - m) / s) ** 2 / 2 for log, m in zip(logs, means, strict=True)]
        top = max(exponents)
        return top + CONTEXT.log(CONTEXT.fsum(CONTEXT.exp(e - top) for e in exponents if e - top > -160))

    def log_integrand(x: Any) -> Any:
        return alpha * log_density(x - 1) - (alpha - 1) * log_density(x)

    # Each mean m gives a hump near m + α where it is the largest component; far apart ones may be looked at one by one.
    step, far = s / 6, 14
    if alpha > 40:
        starts = [(max(means) + alpha, far)]
    else:
        low, high = min(means) - 1, max(means) + alpha
        starts = [((low + high) / 2, far + float((high - low) / (2 * s)))]
    found = []
    for centre, reach in starts:
        count = int(6 * reach)
        found += [log_integrand(centre + step * i) for i in range(-count, count + 1)]
    top = max(found)
    integral = step * CONTEXT.fsum(CONTEXT.exp(v - top) for v in found) / (s * CONTEXT.sqrt(2 * CONTEXT.pi))
    return (top + CONTEXT.log(integral)) / (alpha - 1)


def least_rho_seen(components: Sequence[tuple[Any, Any]], sigma: Any, orders: Sequence[Any]) -> Any:
    """The largest D_α/α over the orders: no smaller ρ holds."""
    return max(renyi_divergence(components, sigma, order) / number(order) for order in orders)
