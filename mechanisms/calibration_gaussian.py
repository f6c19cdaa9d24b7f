"""Float scales with a closed condition: the Gaussian (Balle & Wang 2018) and the quasi-Gaussian by Theorem 4.2.

Everything is for Δ = 1, in the log domain. With s = 1/σ, x = ε/s − s/2 and y = ε/s + s/2 = √(x² + 2ε),

    D(s) = Φ(−x) − e^ε Φ(−y) = e^(−x²/2) (erfcx(x/√2) − erfcx(y/√2)) / 2,      dD/ds = e^(−x²/2) / √(2π).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy import optimize, special

from mechanisms.numbers import InputError, natural_log, nearest_float, read_epsilon

_ROOT2 = math.sqrt(2.0)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def gaussian_sigma(epsilon: Fraction, delta: Fraction) -> float:
    """The least σ for which N(0, σ²) is (ε, δ)-DP at Δ = 1, to a few units in the last place; inf beyond the floats.

    Above 1e300 intermediate results are subnormal, and about 13 digits are left.
    0 < δ < 1, any ε ≥ 0. Raises InputError else.
    """
    eps, log_delta = _floats(epsilon, delta)
    if delta <= Fraction(1, 2):
        target = _split(delta)
        if log_delta < -700 and _log_divergence(1e-307, eps, target)[0] > 0:
            return math.inf
        return 1 / _solve(lambda s: _log_divergence(s, eps, target))
    log_rest = natural_log(1 - delta)
    return 1 / _solve(lambda s: _log_complement(s, eps, log_rest))


def _floats(epsilon: Fraction, delta: Fraction) -> tuple[float, float]:
    if not 0 < delta < 1:
        expected = "a number between 0 and 1" if delta else "a number greater than 0: no Gaussian is pure DP"
        raise InputError("delta", nearest_float(delta), expected)
    return nearest_float(read_epsilon(epsilon)), natural_log(delta)


def _split(delta: Fraction) -> tuple[float, int]:
    """δ as mantissa · 2^exponent, for any size of δ."""
    exponent = delta.numerator.bit_length() - delta.denominator.bit_length()
    return float(delta / Fraction(2) ** exponent), exponent


def _solve(function: Callable[[float], tuple[float, float]]) -> float:
    """The root s > 0 of an increasing function of s, given as (value, derivative in log s), by safeguarded Newton."""
    low, high, s = 1e-307, 1e307, 1.0
    for _ in range(200):
        value, slope = function(s)
        if value == 0:
            return s
        low, high = (s, high) if value < 0 else (low, s)
        # far from the root a Newton step gains little (log D falls like 1/s²), and its slope is lost in rounding
        step = -value / slope if slope > 0 and abs(value) < 1 else math.nan
        newton = s + s * math.expm1(step) if abs(step) < 1 else s * math.exp(step) if abs(step) < 700 else math.nan
        following = newton if low <= newton <= high else math.sqrt(low) * math.sqrt(high)
        if abs(following - s) <= 1.2e-16 * s:
            return following
        s = following
    return s


def _arguments(s: float, eps: float) -> tuple[float, float]:
    """(x/√2, y/√2)."""
    return (eps / s - s / 2) / _ROOT2, (eps / s + s / 2) / _ROOT2


def _log_divergence(s: float, eps: float, target: tuple[float, int] = (1.0, 0)) -> tuple[float, float]:
    """(log D − log target, its derivative in log s), without cancellation for any ε and s."""
    x, y = _arguments(s, eps)
    if s <= 1:  # −erfcx′ between x and y, by quadrature: the difference of the ends would cancel
        width = s / _ROOT2
        scaled = width * float(_WEIGHTS @ _fall(x + width * (_NODES + 1) / 2)) / 4
    elif x > 0:
        scaled = float(special.erfcx(x) - special.erfcx(y)) / 2
    else:
        value = float(special.erfc(x) - math.exp(-x * x) * special.erfcx(y)) / 2
        return _log_ratio(value, target), _slope(s, x, math.log(value))
    if not scaled > 0 or not math.isfinite(x * x):
        return -math.inf, math.nan
    return _log_ratio(scaled, target) - x * x, _slope(s, x, math.log(scaled) - x * x)


def _log_ratio(value: float, target: tuple[float, int]) -> float:
    """log(value / target), the powers of two cancelled first."""
    mantissa, exponent = math.frexp(value)
    return math.log(mantissa / target[0]) + (exponent - target[1]) * math.log(2.0)


def _slope(s: float, x: float, log_value: float) -> float:
    """d log D / d log s = s e^(−x²/2)/√(2π) / D, x here being x/√2."""
    return s / math.sqrt(2 * math.pi) * math.exp(min(-x * x - log_value, 700.0))


def _fall(t: np.ndarray) -> np.ndarray:
    """−erfcx′(t) = 2/√π − 2 t erfcx(t), by its asymptotic series where the difference cancels."""
    with np.errstate(all="ignore"):
        u = 1 / (2 * t * t)
        far = 2 * u / math.sqrt(math.pi) * (1 - 3 * u * (1 - 5 * u * (1 - 7 * u * (1 - 9 * u * (1 - 11 * u)))))
        return np.where(t > 50, far, 2 / math.sqrt(math.pi) - 2 * t * special.erfcx(t))


def _log_complement(s: float, eps: float, target: float) -> tuple[float, float]:
    """(target − log(1 − D), its derivative in log s): for δ near 1."""
    x, y = _arguments(s, eps)
    if x > 20:
        return -math.inf, math.nan
    rest = float(special.erfc(-x) + (special.erfcx(y) * math.exp(-x * x) if x * x < 700.0 else 0)) / 2
    log_rest = math.log(rest) if rest > 0 else -x * x + math.log(
        float(special.erfcx(-x) + special.erfcx(y)) / 2
    )
    return target - log_rest, _slope(s, x, log_rest)


def quasi_gaussian_sigma_theorem(epsilon: Fraction, delta: Fraction) -> tuple[float, float]:
    """(σ₁, σ₂) of Theorem 4.2 at Δ = 1, by Lemmas 4.3 to 4.5; the scale is the larger. σ₁ = 0 where e^ε + 2 ≥ 1/δ.

    ε > 0 and 0 < δ < 1. Raises InputError else.
    """
    eps, log_delta = _floats(epsilon, delta)
    if not epsilon > 0:
        raise InputError("epsilon", "0", "a number greater than 0 (no sigma meets Theorem 4.2 at epsilon 0)")
    return _sigma_1(eps, log_delta, _split(delta)), _sigma_2(eps)


def _sigma_1(eps: float, log_delta: float, delta: tuple[float, int]) -> float:
    """−h₁(σ) is the Gaussian's D at 2ε and s = 2/σ, so (4a) reads D(2ε, 2/σ) ≤ (e^ε + 2Φ(1/σ)) δ."""
    if eps + math.log1p(2 * math.exp(-eps)) + log_delta >= 0:
        return 0.0

    def excess(s: float) -> tuple[float, float]:
        half = s / 2
        twice = float(special.erfc(-half / _ROOT2))
        value, slope = _log_divergence(s, 2 * eps, delta)
        rise = half * math.exp(-half * half / 2) * math.sqrt(2 / math.pi) / (math.exp(min(eps, 700.0)) + twice)
        return value - eps - math.log1p(twice * math.exp(-eps)), slope - rise

    return 2 / _solve(excess)


def _sigma_2(eps: float) -> float:
    """(5a): min over [0, 1] of log f ≥ max − ε. With c = 1/2σ² = ε + d and f scaled so that log f(0) ≈ ε."""
    high = 1.0
    while _dip(high, eps) >= 0:
        high *= 2
        if high > 1e300:
            raise InputError("epsilon", eps, "a number for which Theorem 4.2 can be met")
    low = 0.0
    if _dip(low, eps) < 0:  # below the resolution of the floats: Lemma 4.5 gives the bound
        return 1 / math.sqrt(2 * eps)
    d = float(optimize.brentq(_dip, low, high, args=(eps,), xtol=1e-300, rtol=4 * np.finfo(float).eps))
    return 1 / math.sqrt(2 * (eps + d))


def _dip(d: float, eps: float) -> float:
    """min over z = 1 − x in [0, 1/2] of −c z² + log(1 + e^(2cz − d)), less (max of log f) − ε; falls as d rises.

    Lemma 4.4: the minimum is at z = 0, or at the root z of z = 1/(1 + e^(d − 2cz)) behind the least of the difference.
    """
    c = eps + d

    def log_f(z: float) -> float:
        return -c * z * z + math.log1p(math.exp(2 * c * z - d))

    def turn(z: float) -> float:
        return float(special.expit(2 * c * z - d)) - z

    least = log_f(0.0)
    if c > 2:
        share = (1 - math.sqrt(1 - 2 / c)) / 2
        start = (math.log(share / (1 - share)) + d) / (2 * c)
        if 0 < start < 0.5 and turn(start) < 0:
            least = min(least, log_f(float(optimize.brentq(turn, start, 0.5, xtol=1e-300, rtol=1e-15))))
    return least - _peak(c, eps)


def _peak(c: float, eps: float) -> float:
    """max of log f over [0, 1/2], less ε: at the root of x = (1 − x) e^(c(2x − 1) − ε)."""

    def fall(x: float) -> float:
        return x - (1 - x) * math.exp(c * (2 * x - 1) - eps)

    # where Δ² > 4σ² the first root lies before the first turn of `fall`
    end = 0.5 if c <= 2 else (1 - math.sqrt(1 - 2 / c)) / 2
    x = float(optimize.brentq(fall, 0.0, end, xtol=1e-300, rtol=1e-15)) if fall(end) > 0 else end
    return -c * x * x + math.log1p(math.exp(c * (2 * x - 1) - eps))
