"""ρ-zero-concentrated differential privacy (zCDP) of Gaussian mixtures, in exact rationals. (trusted)

Let f = Σ w_i N(m_i, σ²), of weights w_i > 0 whose sum is 1, and let D_α be the Rényi divergence of order α > 1.

At most Δ²/(2σ²) (Corollary 3.7). Such noise is Gaussian noise of that σ plus an independent shift, and adding the
shift is post-processing. So D_α of f and its translate by φ is at most that of N(0, σ²) and N(φ, σ²), α φ²/(2σ²).

Not less. Let M be the largest mean and w its weight. For x ≥ M every component of f is at most N(x; M, σ²), hence so is
f; and f(x − Δ) ≥ w N(x; M + Δ, σ²). With N(x; M + Δ, σ²)^α N(x; M, σ²)^(1−α) = e^(α(α−1)Δ²/2σ²) N(x; M + αΔ, σ²),
whose mass beyond M is at least 1/2,

    D_α(f(· − Δ) ‖ f) ≥ α Δ²/(2σ²) − (α log(1/w) + log 2)/(α − 1),

and the fraction is at most 2 log(1/w) + log 2 for α ≥ 2: for ρ < Δ²/(2σ²) a large enough order exceeds ρ α. So the
least ρ is Δ²/(2σ²) for every such mixture, as it is for the Gaussian, and the verdict is never inconclusive.
"""

from __future__ import annotations

from fractions import Fraction

from audit.exact import decimal_upper
from audit.verdict import Condition, Decision, Enclosure, Verdict
from mechanisms.claims import ZeroConcentrated
from mechanisms.families import DeclaredMixture, Mechanism, MultiGaussian, ScaledFamily

ABOVE_LOG_2 = Fraction(7, 10)


def mixture_rho(mechanism: Mechanism) -> Fraction | None:
    """The least ρ of a mixture of Gaussians of one σ, Δ²/(2σ²); None for any other noise."""
    if not isinstance(mechanism, ZeroConcentrated.applies_to) or not isinstance(mechanism, ScaledFamily):
        return None
    return (mechanism.sensitivity / mechanism.sigma) ** 2 / 2


def decide_zcdp(mechanism: Mechanism, claim: ZeroConcentrated) -> Decision:
    """Verified where ρ ≥ Δ²/(2σ²), else refuted; exact. Precondition: the claim applies to the mechanism."""
    least = mixture_rho(mechanism)
    assert least is not None
    slack = claim.rho - least
    verdict = Verdict.VERIFIED if slack >= 0 else Verdict.REFUTED
    reason = "ρ is at least Δ²/(2σ²), which Corollary 3.7 gives" if slack >= 0 else _refutation(mechanism, -slack)
    condition = Condition("ρ", "ρ − Δ²/(2σ²) is at least 0", Enclosure(slack, slack), verdict)
    return Decision(verdict=verdict, reason=reason, conditions=(condition,), bits=0, boxes=0)


def _refutation(mechanism: Mechanism, gap: Fraction) -> str:
    """Which orders exceed ρ α."""
    logarithm = _above_log_inverse_weight(mechanism)
    orders = "at every order α"
    if logarithm:
        orders += f" above {decimal_upper(max(Fraction(2), (2 * logarithm + ABOVE_LOG_2) / gap), 6)}"
    return f"ρ is below Δ²/(2σ²): the Rényi divergence at shift Δ exceeds ρ α {orders}"


def _above_log_inverse_weight(mechanism: Mechanism) -> Fraction:
    """An upper bound of log(1/w), w the weight of the largest mean; 0 for one Gaussian alone, else above 0."""
    if isinstance(mechanism, MultiGaussian):
        # w = e^(−Kε) / Σ_j e^(−|j|ε), and the sum is at most 2K + 1 ≤ e^(2K).
        return mechanism.K * (mechanism.epsilon + 2)
    if isinstance(mechanism, DeclaredMixture):
        top = max(mean for _, mean in mechanism.components)
        weight = sum((weight for weight, mean in mechanism.components if mean == top), Fraction(0))
        total = sum((weight * (2 if mean else 1) for weight, mean in mechanism.components), Fraction(0))
        return total / weight - 1  # log x ≤ x − 1
    return Fraction(0)
