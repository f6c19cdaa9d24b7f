"""Parameters of staircases: where to cut them, exactly to many digits, and the first step of least loss, in floats.

Everything is in units of Δ, and nothing is decided here: a claim with these parameters, rounded, is for the audit.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from mechanisms.mechanism import MAX_LINES

Floats = NDArray[np.float64]

DIGITS = 60
GRID = 400
"""First steps that are tried before the best are looked at closely."""
BEST = 3
ZOOM, ROUNDS = 32, 9


def as_fraction(value: Any) -> Fraction:
    """An mpmath number, exactly."""
    sign, mantissa, exponent, _ = value._mpf_
    whole = Fraction(int(-mantissa if sign else mantissa))
    return whole * Fraction(2) ** int(exponent)


def cut(gamma: Fraction, epsilon: Fraction, delta: Fraction, digits: int = DIGITS) -> Fraction | None:
    """The T for which the mass of (T − 1, T] is δ, to ``digits`` digits; None where that takes too many steps.

    Preconditions: ε > 0, 0 < δ < 1/2, so that T > 1. On step i, T = γ + i − 1 + r and both masses are linear in r:

        r = (1 − 2δ A) / (1 − q + 2δ q),   A = e^(ε(i−1)) (γ + q + … + q^(i−1)),   q = e^(−ε);

    i is the least for which r ≤ 1.
    """
    context = mpmath.MPContext()
    context.dps = digits + 10 + int(epsilon)  # where T is close to the end of a step, r is within e^(−ε) of 1
    e, d, g = (context.mpf(x.numerator) / x.denominator for x in (epsilon, delta, gamma))
    q = context.exp(-e)
    rest = -context.expm1(-e)
    ladder = q / rest

    def place(i: int) -> Any:
        reached = context.exp(e * (i - 1)) * (g + ladder) - ladder
        return (1 - 2 * d * reached) / (rest + 2 * d * q)

    guess = int(context.ceil(context.log((q / (2 * d) - q + ladder) / (g + ladder)) / e)) + 1
    if guess > MAX_LINES - 2:  # step 0, and room for rounding up
        return None
    i = max(guess - 1, 1)
    while place(i) > 1:
        i += 1
    return gamma + i - 1 + as_fraction(place(i))


def _float_cuts(gamma: Floats, epsilon: float, delta: float) -> tuple[Floats, Floats]:
    """(i, T) of ``cut`` for many first steps."""
    q, rest = np.exp(-epsilon), -np.expm1(-epsilon)
    ladder = q / rest
    i = np.maximum(np.ceil(np.log((q / (2 * delta) - q + ladder) / (gamma + ladder)) / epsilon - 1e-12) + 1, 1)
    reached = np.exp(epsilon * (i - 1)) * (gamma + ladder) - ladder
    r = np.clip((1 - 2 * delta * reached) / (rest + 2 * delta * q), 0, 1)
    return i, gamma + i - 1 + r


def _float_losses(gamma: Floats, epsilon: float, delta: float, order: int) -> Floats:
    """E|X|^order of the truncated staircase of each first step."""
    last, T = _float_cuts(gamma, epsilon, delta)
    mass, moment = np.minimum(gamma, T), np.minimum(gamma, T) ** (order + 1) / (order + 1)
    for i in range(1, int(last.max()) + 1):
        start, stop = gamma + i - 1, np.minimum(gamma + i, T)
        width = np.maximum(stop - start, 0)
        height = np.exp(-epsilon * i)
        mass = mass + height * width
        moment = moment + height * np.where(width > 0, stop ** (order + 1) - start ** (order + 1), 0) / (order + 1)
    return np.asarray(moment / mass)


def _least(function: Callable[[Floats], Floats], epsilon: float) -> float:
    """A γ in (0, 1] of least value: the best places of a grid, each looked at more and more closely."""
    smallest = max(np.exp(-epsilon / 2) / 8, 1e-300)
    grid = np.unique(np.concatenate([np.linspace(0, 1, GRID + 1)[1:], np.geomspace(smallest, 1, GRID)]))
    values = function(grid)
    tops = [k for k in range(len(grid)) if values[k] <= min(values[max(k - 1, 0)], values[min(k + 1, len(grid) - 1)])]
    found: list[tuple[float, float]] = []
    for k in sorted(tops, key=lambda k: float(values[k]))[:BEST]:
        low, high = float(grid[max(k - 1, 0)]), float(grid[min(k + 1, len(grid) - 1)])
        for _ in range(ROUNDS):
            near = np.linspace(low, high, 2 * ZOOM + 1)
            at = function(near)
            best = int(np.argmin(at))
            found.append((float(at[best]), float(near[best])))
            low, high = float(near[max(best - 1, 0)]), float(near[min(best + 1, 2 * ZOOM)])
    return min(found)[1]


def first_step(epsilon: Fraction, delta: Fraction, order: int) -> float:
    """The γ for which the truncated staircase of (ε, δ) has the least E|X|^order, order 1 or 2.

    Preconditions: those of ``cut``, and the float calibration's: at most MAX_LINES steps.
    """
    e, d = float(epsilon), float(delta)
    return _least(lambda gamma: _float_losses(gamma, e, d, order), e)


def endless_first_step(epsilon: Fraction, order: int) -> float:
    """The γ for which the staircase of infinitely many steps has the least E|X|^order (Geng & Viswanath 2014).

    Order 1: 1/(1 + e^(ε/2)). Order 2: Theorem 3's closed form loses its digits for small ε; the same minimum is found
    from the moments: with s_k = Σ_{i≥1} q^i (γ+i)^(k+1) − (γ+i−1)^(k+1), E X² = (γ³ + s₂) / (3 (γ + s₀)).
    """
    e = float(epsilon)
    if order == 1:
        return float(1 / (1 + np.exp(e / 2)))
    q, rest = np.exp(-e), -np.expm1(-e)

    def square(gamma: Floats) -> Floats:
        # (γ+i)³ − (γ+i−1)³ = 3 (γ+i−1)² + 3 (γ+i−1) + 1, summed by Σ q^i i^k
        one, first, second = q / rest, q / rest**2, q * (1 + q) / rest**3
        a = gamma - 1
        above = 3 * (a * a * one + 2 * a * first + second) + 3 * (a * one + first) + one
        return np.asarray((gamma**3 + above) / (3 * (gamma + one)))

    return _least(square, e)


