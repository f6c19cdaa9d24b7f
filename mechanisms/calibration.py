"""Float calibration: the least scale for which a claim holds, tight and fast. It proposes, it never decides.

A direct condition is sup D(φ) ≤ threshold over 0 ≤ φ ≤ Δ. As a function of σ, D has cliffs (a factor of 20 within 10⁻⁴
of σ), so roots are bracketed, on log D. A larger σ keeps the guarantee (Lemma 3.4): the upper end of a bracket is the
side where the claim holds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from mechanisms.calibration_gaussian import gaussian_sigma, quasi_gaussian_sigma_theorem
from mechanisms.claims import Claim, Theorem42
from mechanisms.divergence import Curve, divergence_and_slope
from mechanisms.families import DeclaredMixture, Gaussian, Mechanism, MultiGaussian, QuasiGaussian, ScaledFamily
from mechanisms.form import Form
from mechanisms.numbers import InputError, natural_log, nearest_float
from mechanisms.shifts import Scan, refine, rises_with_shift

__all__ = [
    "direct_sigma",
    "float_sigma",
    "gaussian_sigma",
    "multi_gaussian_sigma",
    "quasi_gaussian_sigma_direct",
    "quasi_gaussian_sigma_theorem",
]

MAX_SEARCH = 200
COARSE = 1.1
"""Ratio of the ends of a bracket from which a peak is followed instead of sought again."""
NODES = np.concatenate([np.arange(1, 16) / 16, 1 - 2.0 ** -np.arange(5, 12)])
_STEPS = np.array([1e-4, 1e-3, 1e-2, 0.05, 0.15, 0.4, 1.0])
LADDER = np.concatenate([-_STEPS[::-1], [0.0], _STEPS, [2.0, 4.0, 8.0, 16.0]])
"""Steps of log(1 − φ), from a shift, in which its local maximum is sought."""
LEAST_LOG = -800.0
CLEAR = 1e-5
"""An excess of log D that a scan's rough values show for certain."""
HOLDS = 2e-10
"""An excess of log D that is counted as none."""
NUDGE = 1e-13
"""First step of log σ to where another peak than the one that was followed is below the threshold."""
TOLERANCE = 1e-13
"""Width of the last bracket of log σ."""


@dataclasses.dataclass(frozen=True)
class _Peak:
    """A shift, D there, and log(D / threshold)."""

    shift: float
    value: float
    excess: float


class _Condition:
    """sup D ≤ threshold for the members of a family, each given by its σ."""

    def __init__(self, member: Callable[[Fraction], Mechanism], epsilon: Fraction, threshold: Fraction) -> None:
        self.member, self.epsilon = member, epsilon
        self.goal = nearest_float(threshold)
        self.log_goal = natural_log(threshold)
        self._form = lru_cache(maxsize=4)(lambda sigma: member(Fraction(sigma)).unit_form)
        self._curve = lru_cache(maxsize=4)(lambda sigma: Curve(self.form(sigma), epsilon))
        self._last = lru_cache(maxsize=4)(lambda sigma: divergence_and_slope(self.form(sigma), Fraction(1), epsilon))

    def form(self, sigma: float) -> Form:
        """The density at this scale, in units of Δ."""
        return self._form(sigma)

    def _peak(self, shift: float, value: float) -> _Peak:
        return _Peak(shift, value, max(math.log(value), LEAST_LOG) - self.log_goal if value > 0 else LEAST_LOG)

    def end(self, sigma: float) -> _Peak:
        """The peak at φ = 1."""
        return self._peak(1.0, self._last(sigma)[0])

    def glance(self, sigma: float) -> _Peak:
        """The largest D at a few shifts: above the threshold shows that the condition fails, below it shows nothing."""
        end = self.end(sigma)
        if end.excess > 0 or rises_with_shift(self.form(sigma)):
            return end
        value = self._curve(sigma).at(NODES, precise=False)[0]
        at = int(value.argmax())
        return max(end, self._peak(float(NODES[at]), float(value[at])), key=lambda peak: peak.excess)

    def worst(self, sigma: float) -> _Peak:
        """A shift with D clearly above the threshold if there is one, else the largest local maximum."""
        end = self.end(sigma)
        if end.excess > CLEAR or rises_with_shift(self.form(sigma)):
            return end
        scan = Scan(self._curve(sigma), *self._last(sigma))
        scan.run(self.goal)
        top = self._peak(*scan.best())
        if top.excess > CLEAR:
            return top
        return max((self._peak(*pair) for pair in [(1.0, end.value), *scan.maxima()]), key=lambda peak: peak.excess)

    def climb(self, sigma: float, shift: float) -> _Peak:
        """The local maximum uphill of a shift at this scale, or the shift itself where that is higher."""
        if shift == 1:
            return self.end(sigma)
        curve = self._curve(sigma)
        rungs = 1 - np.minimum((1 - shift) * np.exp(-LADDER), 1.0)
        value, slope, _ = curve.at(rungs, precise=False)
        start = int(np.flatnonzero(LADDER == 0)[0])
        here = self._peak(shift, float(value[start]))
        falls = slope <= 0
        if falls[start]:
            below = np.flatnonzero(~falls[:start])
            at = int(below[-1]) if len(below) else None
        else:
            above = np.flatnonzero(falls[start:])
            at = start + int(above[0]) - 1 if len(above) else None
        if at is None:
            return max(here, self.end(sigma), key=lambda peak: peak.excess)
        share = slope[at] / (slope[at] - slope[at + 1])
        bracket = rungs[at], rungs[at + 1], rungs[at] + share * (rungs[at + 1] - rungs[at])
        phi, top = refine(curve, *(np.array([x]) for x in bracket))
        found = self._peak(float(phi[0]), float(top[0]))
        return found if found.excess > here.excess - CLEAR else here


def direct_sigma(
    member: Callable[[Fraction], Mechanism], epsilon: Fraction, threshold: Fraction, upper: float | None = None
) -> float:
    """The least σ for which member(σ) has D(φ) ≤ threshold at every shift, to about 10⁻¹², on the side where it holds.

    ``upper`` is a σ from which to search, best one where the condition holds. The search goes down from there to the
    first σ that fails; where D is not monotone in σ the answer is local. Raises InputError where no σ is found.
    """
    if not 0 < threshold < 1:
        raise InputError("delta", nearest_float(threshold), "a number between 0 and 1")
    condition = _Condition(member, epsilon, threshold)
    low, peak = _failing(condition, 1.0 if upper is None else upper)
    sigma, step = _follow(condition, low, peak, math.log(COARSE)), NUDGE
    for _ in range(MAX_SEARCH):
        peak = condition.worst(sigma)
        if peak.excess <= HOLDS:
            return sigma
        # another peak rules there; where D ends in a cliff, its peaks differ by little more than rounding
        low = sigma
        sigma = max(_follow(condition, low, peak, step), low * (1 + step))
        step *= 4
    raise InputError("sigma", low, "a family whose divergence falls as sigma grows")


def _failing(condition: _Condition, start: float) -> tuple[float, _Peak]:
    """(σ, a peak above the threshold there), within a factor of COARSE or so of a σ where none is seen at a glance."""
    low, failing, high = None, None, start
    while (peak := condition.glance(high)).excess > 0:
        low, failing, high = high, peak, 2 * high
        if high > 1e300:
            raise InputError("sigma", high, "a family for which some sigma meets the claim")
    while low is None or failing is None:
        trial = high / 2
        if trial < 1e-300:
            raise InputError("sigma", trial, "a family for which some sigma fails the claim")
        peak = condition.glance(trial)
        if peak.excess > 0:
            low, failing = trial, peak
        else:
            high = trial
    while high > low * COARSE:
        middle = math.sqrt(low * high)
        peak = condition.glance(middle)
        if peak.excess > 0:
            low, failing = middle, peak
        else:
            high = middle
    return low, failing


def _follow(condition: _Condition, low: float, peak: _Peak, step: float) -> float:
    """The σ above ``low``, where this peak is above the threshold, at which it is so no more.

    Chandrupatla's method on log D over log σ, from a bracket that begins with the width ``step``.
    """
    shift = peak.shift

    def excess(log_sigma: float) -> float:
        nonlocal shift
        found = condition.climb(math.exp(log_sigma), shift)
        if found.excess > 0:  # below the threshold the peak may be gone, and another one found
            shift = found.shift
        return found.excess

    b = math.log(low)
    f_b = excess(b)
    if f_b <= 0:
        return low
    a, f_a = b + step, excess(b + step)
    while f_a > 0:
        step *= 2 if step > 0.05 else 16
        b, f_b, a, f_a = a, f_a, a + step, excess(a + step)
    t = 0.5
    for _ in range(MAX_SEARCH):
        x = a + t * (b - a)
        f = excess(x)
        if (f > 0) == (f_a > 0):
            c, f_c = a, f_a
        else:
            c, b, f_c, f_b = b, a, f_b, f_a
        a, f_a = x, f
        share = TOLERANCE / 2 / abs(b - a)
        if share >= 0.5 or f == 0:
            break
        xi, phi = (a - b) / (c - b), (f_a - f_b) / (f_c - f_b)
        t = 0.5
        if phi**2 < xi and (1 - phi) ** 2 < 1 - xi:
            t = f_a / (f_b - f_a) * f_c / (f_b - f_c) + (c - a) / (b - a) * f_a / (f_c - f_a) * f_b / (f_c - f_b)
        t = min(max(t, share), 1 - share)
    return math.exp(a if f_a <= 0 else b)


def multi_gaussian_sigma(epsilon: Fraction, threshold: Fraction, K: int) -> float:
    """The least σ for which the multi-Gaussian of that K has D ≤ threshold at every shift, Δ = 1."""
    # a mixture of shifted Gaussians is a Gaussian and more noise: what holds for the Gaussian holds for it
    upper = gaussian_sigma(epsilon, threshold)
    if K == 0:
        return upper
    template = MultiGaussian(sensitivity=Fraction(1), sigma=Fraction(1), K=K, epsilon=epsilon)
    return direct_sigma(template.with_sigma, epsilon, threshold, upper)


def quasi_gaussian_sigma_direct(epsilon: Fraction, delta: Fraction) -> float:
    """The least σ found for which the quasi-Gaussian has D ≤ δ at every shift, Δ = 1; at most that of Theorem 4.2."""
    upper = max(quasi_gaussian_sigma_theorem(epsilon, delta)) if epsilon > 0 else None
    template = QuasiGaussian(sensitivity=Fraction(1), sigma=Fraction(1), epsilon=epsilon)
    return direct_sigma(template.with_sigma, epsilon, delta, upper)


def float_sigma(template: ScaledFamily, claim: Claim, check: Callable[[], None] | None = None) -> float:
    """The least σ, in the unit of the query, for which the template meets the claim; its own σ does not matter.

    Under theorem-3.2, D ≤ (1 − η) δ over all shifts. ``check`` is called at every σ that is tried, and may raise to
    end the search. Raises InputError where no σ does, or none that is a float.
    """
    unit = _unit_sigma(template, claim, check)
    sigma = nearest_float(Fraction(unit) * template.sensitivity) if math.isfinite(unit) else unit
    if not 0 < sigma < math.inf:
        raise InputError("sensitivity", nearest_float(template.sensitivity), "a scale within the range of floats")
    return sigma


def _unit_sigma(template: ScaledFamily, claim: Claim, check: Callable[[], None] | None) -> float:
    epsilon, threshold = claim.epsilon, claim.threshold
    if threshold == 0:
        raise InputError("delta", "0", "a number greater than 0: no noise with Gaussian tails is pure DP")
    if isinstance(template, Gaussian):
        return gaussian_sigma(epsilon, threshold)
    upper: float | None = None
    if isinstance(template, QuasiGaussian):
        if isinstance(claim, Theorem42):
            return max(quasi_gaussian_sigma_theorem(epsilon, threshold))
        if template.epsilon == epsilon > 0:
            upper = max(quasi_gaussian_sigma_theorem(epsilon, threshold))
    elif isinstance(template, (MultiGaussian, DeclaredMixture)):
        upper = gaussian_sigma(epsilon, threshold)

    def member(sigma: Fraction) -> Mechanism:
        if check is not None:
            check()
        return template.with_sigma(sigma * template.sensitivity)

    return direct_sigma(member, epsilon, threshold, upper)
