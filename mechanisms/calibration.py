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
from mechanisms.numbers import InputError, nearest_float
from mechanisms.peaks import CLEAR, Condition, Peak

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
HOLDS = 2e-10
"""An excess of log D that is counted as none."""
NARROW = 1e-2
"""Width of a bracket of log σ in which a peak that is lost is sought by a scan."""
STEEP = 1e-4
"""Width of a bracket of log σ in which a change of log D by 1 may mean that another peak was found."""
TOLERANCE = 1e-13
"""Width of the last bracket of log σ."""
NUDGE = 1e-12
"""Width of the last bracket where D ends in a cliff, and the first step of σ to where another peak is gone too."""
LEFT_OUT = 1e-15
"""Share of the threshold that the mass left out of D may have."""


def direct_sigma(
    member: Callable[[Fraction], Mechanism], epsilon: Fraction, threshold: Fraction, upper: float | None = None
) -> float:
    """The least σ for which member(σ) has D(φ) ≤ threshold at every shift, to about 10⁻¹², on the side where it holds.

    ``upper`` is a σ from which to search, best one where the condition holds. The search goes down from there to the
    first σ that fails; where D is not monotone in σ the answer is local. Raises InputError where no σ is found.
    """

    def curves(sigma: float) -> Curve:
        return Curve(member(Fraction(sigma)).unit_form, epsilon, floor=_floor(threshold))

    return _least_sigma(curves, threshold, upper, holds=False)


def _floor(threshold: Fraction) -> float:
    return LEFT_OUT * nearest_float(threshold)


def _mixture_sigma(
    template: GaussianMixture, claim: tuple[Fraction, Fraction], upper: float | None, check: Callable[[], None]
) -> float:
    """As direct_sigma, of a claim (ε, threshold), in units of Δ: the curve of one member makes those of all scales.

    ``upper`` is a scale where the claim holds.
    """
    epsilon, threshold = claim
    one = template.with_sigma(template.sensitivity)
    curve = Curve(one.unit_form, epsilon, floor=_floor(threshold), check=check)

    def curves(sigma: float) -> Curve:
        check()
        return curve.with_scale(sigma)

    return _least_sigma(curves, threshold, upper, holds=upper is not None)


def _least_sigma(curves: Callable[[float], Curve], threshold: Fraction, upper: float | None, holds: bool) -> float:
    """The search of direct_sigma; with ``holds``, the condition is known to hold at ``upper``."""
    if not 0 < threshold < 1:
        raise InputError("delta", nearest_float(threshold), "a number between 0 and 1")
    condition = Condition(curves, threshold)
    path = _failing(condition, 1.0 if upper is None else upper, holds)
    least, nudge = 0.0, TOLERANCE
    for _ in range(MAX_SEARCH):
        sigma, peak = path.run()
        sigma = max(sigma, least)
        worst = condition.worst(sigma, peak)
        if worst.excess > HOLDS:
            # another peak rules there; where D ends in a cliff, its peaks differ by little more than rounding
            nudge = max(nudge, NUDGE) if worst.excess > CLEAR else nudge
            least, nudge = sigma * (1 + nudge), 2 * nudge
            step = max(TOLERANCE, 1e-4 * min(worst.excess, 1.0))
            path = _Path(condition, (sigma, worst), None, step)
        elif path.doubtful:
            path.trust()
        else:
            return sigma
    raise InputError("sigma", sigma, "a family whose divergence falls as sigma grows")


def _failing(condition: Condition, start: float, holds: bool) -> _Path:
    """A path from a σ that fails, within a factor of COARSE or so of one where no failure is seen at a glance.

    That factor is larger for a peak at φ = 1, which is followed without difficulty.
    """
    low: tuple[float, Peak] | None = None
    high: tuple[float, Peak | None] = start, None
    while not holds and (peak := condition.glance(high[0])).excess > 0:
        low, high = (high[0], peak), (2 * high[0], None)
        if high[0] > 1e300:
            raise InputError("sigma", high[0], "a family for which some sigma meets the claim")
    while low is None or (high[0] > low[0] * COARSE and low[1].shift < 1):
        trial = high[0] / 2 if low is None else math.sqrt(low[0] * high[0])
        if trial < 1e-300:
            raise InputError("sigma", trial, "a family for which some sigma fails the claim")
        peak = condition.glance(trial)
        if peak.excess > 0:
            low = trial, peak
        else:
            high = trial, peak
    return _Path(condition, low, high if low[1].shift < 1 else None, math.log(high[0] / low[0]))


class _Path:
    """A peak that is above the threshold at a ``low`` σ, followed to the σ above at which it is so no more.

    Chandrupatla's method on log D over log σ, from a bracket up to ``high``, or one that begins with the width
    ``step``. Where the peak is lost above the threshold, and is not found again in a narrow bracket, the path is
    ``doubtful``: D ends in a cliff there, or the peak moved on.
    """

    def __init__(
        self, condition: Condition, low: tuple[float, Peak], high: tuple[float, Peak | None] | None, step: float
    ) -> None:
        self._condition, self._step = condition, step
        self._start = math.log(low[0])
        self._seen: dict[float, Peak] = {}
        if high is not None and high[1] is not None:
            self._seen[math.log(high[0])] = dataclasses.replace(high[1], tracked=False)
        self._track = [(self._start, low[1].shift)]
        self._narrow = NARROW
        self._bracket: tuple[float, float] | None = None
        self.doubtful = False

    def trust(self) -> None:
        """The condition holds at the upper end of the bracket: doubt it once more when the bracket is STEEP."""
        self._narrow = STEEP if self._narrow > STEEP else 0.0

    def _excess(self, x: float) -> float:
        found = self._condition.follow(math.exp(x), self._expected(x))
        self._seen[x] = found
        # well below the threshold the peak may be gone, and another one found
        if found.excess > 0 or (found.tracked and found.excess > -0.05):
            self._track = [*self._track[-1:], (x, found.shift)]
        return found.excess

    def _expected(self, x: float) -> float:
        """Where the peak should be, log(1 − φ) taken for linear in log σ."""
        at, shift = self._track[-1]
        before, shift_before = self._track[0]
        if at == before or shift == 1 or shift_before == 1:
            return shift
        turn = math.log((1 - shift) / (1 - shift_before)) * (x - at) / (at - before)
        return 1 - (1 - shift) * math.exp(min(max(turn, -1.0), math.log(min(2.0, 1 / (1 - shift)))))

    def run(self) -> tuple[float, Peak]:
        """(σ, the peak there), within TOLERANCE; coarser where the path is doubtful."""
        a, b = self._bracket or self._bracketed()
        seen = self._seen
        c, t = b, 0.5
        for _ in range(MAX_SEARCH):
            if self._ends(a, b):
                break
            x = a + t * (b - a)
            self._excess(x)
            if (seen[x].excess > 0) == (seen[a].excess > 0):
                c = a
            else:
                c, b = b, a
            a = x
            share = TOLERANCE / 2 / abs(b - a)
            f_a, f_b, f_c = (seen[at].excess for at in (a, b, c))
            xi, phi = (a - b) / (c - b), (f_a - f_b) / (f_c - f_b)
            t = 0.5
            if phi**2 < xi and (1 - phi) ** 2 < 1 - xi:
                t = f_a / (f_b - f_a) * f_c / (f_b - f_c) + (c - a) / (b - a) * f_a / (f_c - f_a) * f_b / (f_c - f_b)
            t = min(max(t, share), 1 - share)
        self._bracket = a, b
        at = a if self._flush(a, b) or seen[a].excess <= 0 else b
        return math.exp(at), seen[at]

    def _bracketed(self) -> tuple[float, float]:
        b, step = self._start, self._step
        a = max(self._seen, default=b + step)
        if self._excess(b) <= 0:
            return b, b
        if a in self._seen:
            return a, b
        while self._excess(a) > 0:
            step *= 2 if step > 0.05 else 16
            b, a = a, a + step
        return a, b

    def _ends(self, a: float, b: float) -> bool:
        width, low, high = abs(b - a), self._seen[min(a, b)], self._seen[max(a, b)]
        jumps = low.excess - high.excess > 1
        self.doubtful = width < self._narrow and (jumps or not high.tracked)
        return width <= (NUDGE if jumps else TOLERANCE) or self._flush(a, b) or self.doubtful

    def _flush(self, a: float, b: float) -> bool:
        """Whether the excess at a is that of a σ nearer than TOLERANCE to the root."""
        rise = self._seen[a].excess - self._seen[b].excess
        return abs(self._seen[a].excess * (a - b)) <= TOLERANCE * abs(rise)


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

    Under theorem-3.2, D ≤ (1 − η) δ over all shifts. ``check`` is called at every σ that is tried and, for mixtures of
    Gaussians, many times in between; it may raise to end the search. Raises InputError where no σ does, or none that is
    a float.
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
