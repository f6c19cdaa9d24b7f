"""Parameters of truncated Laplace and flipped Huber noise, and the classic Gaussian formula. Nothing is decided here.

Everything is in units of Δ.
"""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
from scipy import optimize

from mechanisms.calibration_steps import DIGITS, as_fraction

LEAST_RATIO, LARGEST_RATIO, RATIOS = 0.01, 60.0, 24
"""Ratios α/σ that are tried: near Gaussian noise, near Laplace noise."""
ROOT_TOLERANCE = 1e-15


def laplace_cut(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A = ln(1 + (e^ε − 1)/(2δ))/ε (Geng et al. 2020), to DIGITS digits. Preconditions: ε > 0, 0 < δ < 1/2."""
    context = mpmath.MPContext()
    context.dps = DIGITS + 10
    e, d = (context.mpf(x.numerator) / x.denominator for x in (epsilon, delta))
    return as_fraction(context.log1p(context.expm1(e) / (2 * d)) / e)


def classic_sigma(epsilon: Fraction, delta: Fraction) -> Fraction:
    """√(2 ln(1.25/δ))/ε (Dwork & Roth 2014, Theorem A.1, for ε < 1), to DIGITS digits. Preconditions: ε > 0, δ > 0."""
    context = mpmath.MPContext()
    context.dps = DIGITS + 10
    e, d = (context.mpf(x.numerator) / x.denominator for x in (epsilon, delta))
    return as_fraction(context.sqrt(2 * context.log(context.mpf(5) / 4 / d)) / e)


def _energy(x: float, ratio: float) -> float:
    """ρ at σ = 1: −log f, up to a constant."""
    size = abs(x)
    return ratio * size if size <= ratio else (size * size + ratio * ratio) / 2


def _half_moments(ratio: float) -> tuple[float, float, float]:
    """∫ x^k e^(−ρ) over [0, ∞), k = 0, 1, 2, at σ = 1, ratio = α/σ."""
    t = ratio
    fall = math.exp(-t * t)
    inner = (-math.expm1(-t * t) / t, (1 - fall * (1 + t * t)) / t**2, (2 - fall * (2 + 2 * t**2 + t**4)) / t**3)
    if t < 0.5:  # the closed forms cancel
        nodes, weights = np.polynomial.legendre.leggauss(24)
        x, w = t * (nodes + 1) / 2, t * weights / 2
        inner = tuple(float(w @ (x**k * np.exp(-t * x))) for k in range(3))  # type: ignore[assignment]
    edge = math.exp(-t * t / 2)
    bell = math.sqrt(math.pi / 2) * math.erfc(t / math.sqrt(2))
    outer = (edge * bell, edge * math.exp(-t * t / 2), edge * (t * math.exp(-t * t / 2) + bell))
    return inner[0] + outer[0], inner[1] + outer[1], inner[2] + outer[2]


def _below(x: float, ratio: float) -> float:
    """∫ e^(−ρ) over (−∞, x], x ≤ 0, at σ = 1."""
    bell = math.sqrt(math.pi / 2) * math.exp(-ratio * ratio / 2)
    if x <= -ratio:
        return bell * math.erfc(-x / math.sqrt(2))
    centre = -math.exp(ratio * x) * math.expm1(-ratio * (x + ratio)) / ratio
    return bell * math.erfc(ratio / math.sqrt(2)) + centre


def _divergence(shift: float, ratio: float, epsilon: float) -> float:
    """D at a shift, σ = 1: the density is log-concave, so that the event is a half-line up to r."""

    def excess(x: float) -> float:
        return _energy(x, ratio) - _energy(x + shift, ratio) - epsilon

    far = -(epsilon / shift + shift + ratio + 1)
    if excess(-shift / 2) >= 0:
        return 0.0
    root = optimize.brentq(excess, far, -shift / 2, xtol=ROOT_TOLERANCE * (1 + abs(far)), rtol=4 * ROOT_TOLERANCE)
    whole = 2 * _half_moments(ratio)[0]
    above = _below(root + shift, ratio) if root + shift <= 0 else whole - _below(-root - shift, ratio)
    return max((above - math.exp(epsilon) * _below(root, ratio)) / whole, 0.0)


def flipped_huber_sigma(ratio: float, epsilon: float, delta: float) -> float:
    """The σ at which D is δ, for α = ratio · σ: a larger σ is a smaller shift, at which D is no larger."""

    def excess(log_shift: float) -> float:
        found = _divergence(math.exp(log_shift), ratio, epsilon)
        return math.log(found) - math.log(delta) if found > 0 else -800.0

    low, high = -1.0, 0.0
    while excess(low) > 0:
        low -= 1
    while excess(high) < 0:
        high += 1
    return math.exp(-optimize.brentq(excess, low, high, xtol=1e-15, rtol=4 * ROOT_TOLERANCE))


def flipped_huber(epsilon: float, delta: float, order: int) -> tuple[float, float]:
    """(ratio α/σ, σ) of least E|X|^order among flipped Huber noise with D = δ. Preconditions: ε > 0, 0 < δ < 1."""

    def loss(log_ratio: float) -> float:
        ratio = math.exp(log_ratio)
        moments = _half_moments(ratio)
        return float(flipped_huber_sigma(ratio, epsilon, delta) ** order * moments[order] / moments[0])

    grid = np.linspace(math.log(LEAST_RATIO), math.log(LARGEST_RATIO), RATIOS)
    values = [loss(float(x)) for x in grid]
    best = int(np.argmin(values))
    ends = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, RATIOS - 1)])
    found = optimize.minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-6})
    ratio = math.exp(float(found.x))
    return ratio, flipped_huber_sigma(ratio, epsilon, delta)
