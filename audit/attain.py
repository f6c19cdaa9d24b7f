"""Whether a family of Gaussian mixtures can keep (ε, δ) at a given E X²: at which scale it has that loss, and the
verdict there.

A multi-Gaussian has E X² = σ² + v with v free of σ, and a larger σ keeps the guarantee (Lemma 3.4). So a promise that
is refuted at a scale of that loss is refuted at every scale of that loss or less. For the quasi-Gaussian this is seen,
not proved, and a refutation is one at that scale alone.

Its E X² exceeds 2Δ²/(e^ε + 2), that of its components' centres as σ → 0, at every σ. Proof: with t = Δ/σ,

    (e^ε + 2Φ(t)) (E X² − 2Δ²/(e^ε + 2)) = (e^ε + 2Φ(t)) σ² + 2σΔ Φ′(t) − 2Δ² (1 − Φ(t)) e^ε/(e^ε + 2),

and 1 − Φ(t) ≤ Φ′(t)/t makes the last term at most the one before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import flint

from audit.decide import decide_from
from audit.exact import ball, float_lower, float_upper, lower
from audit.losses import enclose_losses
from audit.verdict import Enclosure, Limits, Verdict
from mechanisms.claims import Direct, Statement
from mechanisms.families import MultiGaussian, QuasiGaussian, ScaledFamily

SMALLEST = 2**20
TIGHTNESS = 2**40
"""The quasi-Gaussian's scale is looked for from Δ/SMALLEST on, to a relative 1/TIGHTNESS."""
BITS = 192


@dataclass(frozen=True)
class Attempt:
    """One member of a family at the scale that a loss implies."""

    family: str
    K: int | None
    sigma: Fraction | None
    """The scale that was decided; None where no scale of that loss or less was found: none exists if REFUTED."""
    verdict: Verdict
    """VERIFIED: the promise holds there, at no more than that loss. REFUTED: it fails at a scale of that loss or more
    (for a multi-Gaussian, then, at every scale of that loss). INCONCLUSIVE: neither was proved."""


def attempt_multi(claim: Direct, sensitivity: Fraction, K: int, loss: Enclosure, limits: Limits) -> Attempt:
    """The multi-Gaussian of that K, at the promise's own ε, at E X² = ``loss`` (the square of the query's unit)."""
    member = MultiGaussian(sensitivity=sensitivity, sigma=sensitivity, K=K, epsilon=claim.epsilon)
    own = enclose_losses(member).l2
    spread = Enclosure(own.lower - sensitivity**2, own.upper - sensitivity**2)
    most = loss.upper - spread.lower
    if most <= 0:
        return Attempt(member.family, K, None, Verdict.REFUTED)
    high = _root(most, up=True)
    least = max(loss.lower - spread.upper, Fraction(0))
    return _decide(member, claim, loss, high, lambda: _root(least, up=False), limits)


def attempt_quasi(claim: Direct, sensitivity: Fraction, loss: Enclosure, limits: Limits) -> Attempt:
    """The quasi-Gaussian at E X² = ``loss``. That its loss grows with σ is seen, not proved; nothing depends on it."""
    member = QuasiGaussian(sensitivity=sensitivity, sigma=sensitivity, epsilon=claim.epsilon)
    with flint.ctx.workprec(BITS):
        least = lower(2 * ball(sensitivity**2) / (ball(claim.epsilon).exp() + 2))
    if loss.upper <= least:
        return Attempt(member.family, None, None, Verdict.REFUTED)

    def too_much(sigma: Fraction) -> bool:
        return enclose_losses(member.with_sigma(sigma)).l2.lower >= loss.upper

    low, high = Fraction(float_upper(sensitivity / SMALLEST)), Fraction(float_upper(sensitivity))
    if too_much(low):  # only smaller scales may have that loss
        return _decide(member, claim, loss, low, lambda: Fraction(0), limits)
    while not too_much(high):
        high *= 2
    while high - low > high / TIGHTNESS:
        middle = Fraction(float_upper((low + high) / 2))
        low, high = (low, middle) if too_much(middle) else (middle, high)
    return _decide(member, claim, loss, high, lambda: low, limits)


def _decide(
    member: ScaledFamily, claim: Direct, loss: Enclosure, high: Fraction, low: Callable[[], Fraction], limits: Limits
) -> Attempt:
    """Refuted at ``high``, of at least that loss; else verified at ``low``, of at most that loss."""
    K = member.K if isinstance(member, MultiGaussian) else None

    def verdict(sigma: Fraction) -> Verdict:
        return decide_from(Statement(member.with_sigma(sigma), claim), limits, enclose_refuted=False).verdict

    if verdict(high) is Verdict.REFUTED:
        return Attempt(member.family, K, high, Verdict.REFUTED)
    sigma = low()
    within = sigma > 0 and enclose_losses(member.with_sigma(sigma)).l2.upper <= loss.lower
    verified = within and verdict(sigma) is Verdict.VERIFIED
    return Attempt(member.family, K, sigma or None, Verdict.VERIFIED if verified else Verdict.INCONCLUSIVE)


def _root(square: Fraction, up: bool) -> Fraction:
    """A double at or above (below) the root of a number, within a few units in the last place."""
    scale = 1 << 200
    root = Fraction(math.isqrt(square.numerator * scale**2 // square.denominator) + (1 if up else 0), scale)
    return Fraction(float_upper(root) if up else float_lower(root))
