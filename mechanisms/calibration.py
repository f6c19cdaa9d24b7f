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
from mechanisms.curve import Curve
from mechanisms.families import (
    DeclaredMixture,
    Gaussian,
    GaussianMixture,
    Mechanism,
    MultiGaussian,
    QuasiGaussian,
    ScaledFamily,
)
from mechanisms.numbers import InputError, natural_log, nearest_float
from mechanisms.shifts import Scan, refine

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
NODES = np.array([0.25, 0.5, 0.6, 0.7, 0.78, 0.85, 0.9, 0.94, 0.97, 0.985, 0.993, 0.998])
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
LEFT_OUT = 1e-15
"""Share of the threshold that the mass left out of D may have."""
STEADY = 1e-3
"""Share of an excess that its error may have while the bracket shrinks."""


@dataclasses.dataclass(frozen=True)
class _Peak:
    """A shift, and log(D / threshold) there."""

    shift: float
    excess: float


class _Condition:
    """sup D ≤ threshold for the members of a family, each given by its σ."""

    def __init__(self, curves: Callable[[float], Curve], threshold: Fraction) -> None:
        self.log_goal = natural_log(threshold)
        self.curve = lru_cache(maxsize=4)(curves)
        """The curve at a scale."""

    def _peak(self, shift: float, value: float) -> _Peak:
        return _Peak(shift, max(math.log(value), LEAST_LOG) - self.log_goal if value > 0 else LEAST_LOG)

    def end(self, sigma: float) -> _Peak:
        """The peak at φ = 1."""
        return self._peak(1.0, self.curve(sigma).end()[0])

    def glance(self, sigma: float) -> _Peak:
        """The largest D at a few shifts: above the threshold shows that the condition fails, below it shows nothing."""
        if self.curve(sigma).rises:
            return self.end(sigma)
        value, slope, _ = self.curve(sigma).at(NODES, precise=False)
        at = int(value.argmax())
        found = self._peak(float(NODES[at]), float(value[at]))
        if at == len(NODES) - 1 and slope[at] >= 0 and found.excess <= 0:
            return max(found, self.end(sigma), key=lambda peak: peak.excess)
        return found

    def worst(self, sigma: float, known: _Peak) -> _Peak:
        """A shift with D clearly above the threshold if there is one, else the largest local maximum.

        ``known`` is a local maximum at this scale.
        """
        curve = self.curve(sigma)
        end, slope = curve.end()
        peaks = [known, self._peak(1.0, end)]
        if peaks[1].excess > CLEAR or curve.rises:
            return peaks[1]
        scan = Scan(curve, end, slope)
        scan.add(np.array([known.shift]))
        scan.run(math.exp(self.log_goal + CLEAR))
        top = self._peak(*scan.best())
        if top.excess > CLEAR:
            return top
        peaks += [self._peak(*pair) for pair in scan.maxima(math.exp(self.log_goal), known.shift)]
        return max(peaks, key=lambda peak: peak.excess)

    def follow(self, sigma: float, shift: float) -> _Peak:
        """The local maximum near a shift at this scale, by Newton's method on D′; see STEADY for its accuracy."""
        curve = self.curve(sigma)
        for _ in range(6):
            if shift == 1:
                break
            value, slope, curvature = (float(part[0]) for part in curve.at(np.array([shift])))
            if not (value > 0 and curvature < 0):
                break
            step = -slope / curvature
            if not abs(step) < 0.5 * (1 - shift):
                break
            gain = slope * step / 2
            found = self._peak(shift + step, value + gain)
            if (gain / value) ** 1.5 <= max(STEADY * abs(found.excess), TOLERANCE):
                return found
            shift = shift + step
        return self.climb(sigma, shift)

    def climb(self, sigma: float, shift: float) -> _Peak:
        """The local maximum uphill of a shift at this scale, or the shift itself where that is higher."""
        if shift == 1:
            return self.end(sigma)
        curve = self.curve(sigma)
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

    def curves(sigma: float) -> Curve:
        return Curve(member(Fraction(sigma)).unit_form, epsilon, floor=_floor(threshold))

    return _least_sigma(curves, threshold, upper)


def _floor(threshold: Fraction) -> float:
    return LEFT_OUT * nearest_float(threshold)


def _mixture_sigma(
    template: GaussianMixture, claim: tuple[Fraction, Fraction], upper: float | None, check: Callable[[], None]
) -> float:
    """As direct_sigma, of a claim (ε, threshold), in units of Δ: the curve of one member makes those of all scales."""
    epsilon, threshold = claim
    one = template.with_sigma(template.sensitivity)
    curve = Curve(one.unit_form, epsilon, floor=_floor(threshold), check=check)

    def curves(sigma: float) -> Curve:
        check()
        return curve.with_scale(sigma)

    return _least_sigma(curves, threshold, upper)


def _least_sigma(curves: Callable[[float], Curve], threshold: Fraction, upper: float | None) -> float:
    if not 0 < threshold < 1:
        raise InputError("delta", nearest_float(threshold), "a number between 0 and 1")
    condition = _Condition(curves, threshold)
    low, peak = _failing(condition, 1.0 if upper is None else upper)
    (sigma, peak), step = _follow(condition, low, peak, math.log(COARSE)), NUDGE
    for _ in range(MAX_SEARCH):
        peak = condition.worst(sigma, peak)
        if peak.excess <= HOLDS:
            return sigma
        # another peak rules there; where D ends in a cliff, its peaks differ by little more than rounding
        low = sigma
        sigma, peak = _follow(condition, low, peak, step)
        sigma = max(sigma, low * (1 + step))
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


def _follow(condition: _Condition, low: float, peak: _Peak, step: float) -> tuple[float, _Peak]:
    """The σ above ``low``, where this peak is above the threshold, at which it is so no more; and the peak there.

    Chandrupatla's method on log D over log σ, from a bracket that begins with the width ``step``.
    """
    found: dict[float, _Peak] = {}
    shift = peak.shift

    def excess(log_sigma: float) -> float:
        nonlocal shift
        peak = condition.follow(math.exp(log_sigma), shift)
        if peak.excess > 0:  # below the threshold the peak may be gone, and another one found
            shift = peak.shift
        found[log_sigma] = peak
        return peak.excess

    b = math.log(low)
    f_b = excess(b)
    if f_b <= 0:
        return low, found[b]
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
    at = a if f_a <= 0 else b
    return math.exp(at), found[at]


def multi_gaussian_sigma(epsilon: Fraction, threshold: Fraction, K: int) -> float:
    """The least σ for which the multi-Gaussian of that K has D ≤ threshold at every shift, Δ = 1."""
    # a mixture of shifted Gaussians is a Gaussian and more noise: what holds for the Gaussian holds for it
    upper = gaussian_sigma(epsilon, threshold)
    if K == 0:
        return upper
    template = MultiGaussian(sensitivity=Fraction(1), sigma=Fraction(1), K=K, epsilon=epsilon)
    return _mixture_sigma(template, (epsilon, threshold), upper, _unwatched)


def _unwatched() -> None:
    """No limit."""


def quasi_gaussian_sigma_direct(epsilon: Fraction, delta: Fraction) -> float:
    """The least σ found for which the quasi-Gaussian has D ≤ δ at every shift, Δ = 1; at most that of Theorem 4.2."""
    upper = max(quasi_gaussian_sigma_theorem(epsilon, delta)) if epsilon > 0 else None
    template = QuasiGaussian(sensitivity=Fraction(1), sigma=Fraction(1), epsilon=epsilon)
    return _mixture_sigma(template, (epsilon, delta), upper, _unwatched)


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

    if isinstance(template, GaussianMixture):
        return _mixture_sigma(template, (epsilon, threshold), upper, check or _unwatched)

    def member(sigma: Fraction) -> Mechanism:
        if check is not None:
            check()
        return template.with_sigma(sigma * template.sensitivity)

    return direct_sigma(member, epsilon, threshold, upper)
