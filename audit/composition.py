"""Several releases together: ρ of zCDP adds up, and converts to (ε, δ). (trusted)

1. Each release is ρ_i-zCDP: Gaussian mixtures by Corollary 3.7 (audit.zcdp), and noise that is proved to be ε-DP with
   ρ = ε²/2 (Bun and Steinke 2016, Proposition 1.4).
2. Together they are Σ ρ_i-zCDP (Bun and Steinke 2016, the lemma behind Corollary 3.8), also where each query is chosen
   after the answers before it: whatever these were, ∫ p^α q^(1−α) of the next release is at most e^((α−1) α ρ_i), so
   that the factors multiply. The list of mechanisms itself is fixed beforehand.
3. ρ-zCDP implies (ε, δ)-DP with ε = ρ + 2√(ρ log(1/δ)) (Corollary 3.8), and, better, for each order α > 1 with

       ε(α) = α ρ + log(1 − 1/α) + (log(1/δ) − log α)/(α − 1)

   (Canonne, Kamath and Steinke 2020). Proof: let Z be the privacy loss log dP/dQ under P. Then
   δ = E (1 − e^(ε−Z))_+, where (1 − e^(ε−z))_+ ≤ e^((α−1)(z−ε)) (1 − 1/α)^(α−1)/α for every z (the quotient is largest
   at e^(ε−z) = 1 − 1/α), and E e^((α−1)Z) = e^((α−1) D_α) ≤ e^((α−1) α ρ). Solve for ε. Where ε(α) ≤ 0, ε = 0 serves.
   The order of Corollary 3.8 is among them, and without the factor (1 − 1/α)^(α−1)/α < 1, so the best ε(α) is less.

Whatever order floats or balls propose, ε(α) is a theorem; only its enclosure is trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import flint
from flint import arb, fmpq

from audit.decide import decide
from audit.exact import ball, decimal_upper, fraction, lower, rational, upper
from audit.verdict import Enclosure, Limits, Verdict
from audit.zcdp import mixture_rho
from mechanisms.claims import AnyClaim, Direct, Statement
from mechanisms.families import Mechanism
from mechanisms.numbers import MAX_PARTS, InputError, exact_text

MAX_RHO_BITS = 1 << 17
"""Digits of an exact sum are bounded, so that hostile input costs bounded time; a thousand doubles stay below it."""
START_BITS = 128
PROPOSAL_BITS = 256
ORDER_DIGITS = 20
TIGHTNESS = Fraction(1, 2**60)
"""Relative width of an enclosure of ε, where the bits allow it."""


@dataclass(frozen=True)
class Part:
    """So many releases by one mechanism. ``pure_epsilon`` is the ε for which it is to be proved ε-DP, and None for a
    Gaussian mixture, whose ρ needs no proof but Corollary 3.7's."""

    mechanism: Mechanism
    count: int
    pure_epsilon: Fraction | None

    def __post_init__(self) -> None:
        if not isinstance(self.count, int) or self.count < 1:
            raise InputError("count", self.count, "a whole number of at least 1")

    @property
    def rho(self) -> Fraction:
        """Of one release."""
        known = mixture_rho(self.mechanism)
        if self.pure_epsilon is not None:
            return self.pure_epsilon**2 / 2
        if known is None:
            raise InputError("part", self.mechanism.family, "a Gaussian mixture, or an epsilon for which it is pure DP")
        return known

    @property
    def premise(self) -> Statement | None:
        """What has to be proved before the part counts."""
        if self.pure_epsilon is None:
            return None
        return Statement(self.mechanism, Direct(epsilon=self.pure_epsilon, delta=Fraction(0)))


def part_of(mechanism: Mechanism, claim: AnyClaim, count: int, where: str) -> Part:
    """How a mechanism counts, given a claim about it. Raises InputError where no finite ρ of it is known."""
    if mixture_rho(mechanism) is not None:
        return Part(mechanism, count, None)
    if isinstance(claim, Direct) and claim.delta == 0:
        return Part(mechanism, count, claim.epsilon)
    delta = f" at delta {exact_text(claim.delta)}" if isinstance(claim, Direct) else ""
    expected = "a mixture of Gaussians of one sigma, or a direct claim with delta = 0 (pure DP): else no ρ is known"
    raise InputError(where, f"{claim.kind} of {mechanism.family}{delta}", expected)


@dataclass(frozen=True, kw_only=True)
class Composition:
    """What all parts come to at δ. ``epsilon`` is set only where the verdict is VERIFIED."""

    parts: tuple[Part, ...]
    delta: Fraction
    verdict: Verdict
    reason: str
    rho: Fraction
    """Σ count · ρ, exact."""
    epsilon: Fraction | None = None
    """The releases together are (ε, δ)-DP. An upper end: never below the exact ε(α)."""
    order_above_1: Fraction | None = None
    """α − 1 for the order α at which ε was found."""
    corollary_epsilon: Fraction | None = None
    """The upper end of Corollary 3.8's, ρ + 2√(ρ log(1/δ))."""

    @property
    def releases(self) -> int:
        """How many there are in all."""
        return sum(part.count for part in self.parts)


def compose(
    parts: Sequence[Part],
    delta: Fraction,
    limits: Limits | None = None,
    progress: Callable[[float], None] | None = None,
) -> Composition:
    """ρ and ε of all parts together, at δ in (0, 1). Raises InputError for what cannot be summed.

    Where a part's pure DP is refuted or stays open, the verdict and the reason are that part's, and there is no ε.
    """
    limits = limits or Limits()
    if not 0 < delta < 1:
        raise InputError("delta", exact_text(delta), "a number between 0 and 1")
    if not 0 < len(parts) <= MAX_PARTS:
        raise InputError("parts", str(len(parts)), f"1 to {MAX_PARTS} mechanisms")
    rho = total_rho(parts)
    verdict, reason = _premises(parts, limits, progress)
    if verdict is not Verdict.VERIFIED:
        return Composition(parts=tuple(parts), delta=delta, verdict=verdict, reason=reason, rho=rho)
    order = propose_order(rho, delta)
    found = enclose_epsilon(rho, delta, order, limits)
    corollary = enclose_corollary(rho, delta, limits)
    if found is None or corollary is None:
        reason = f"{limits.bits} bits do not enclose ε; raise the limit on bits"
        return Composition(parts=tuple(parts), delta=delta, verdict=Verdict.INCONCLUSIVE, reason=reason, rho=rho)
    return Composition(
        parts=tuple(parts),
        delta=delta,
        verdict=Verdict.VERIFIED,
        reason="ρ adds up, and the Rényi divergence of one order gives ε",
        rho=rho,
        epsilon=found.upper,
        order_above_1=order,
        corollary_epsilon=corollary.upper,
    )


def total_rho(parts: Sequence[Part]) -> Fraction:
    """Σ count · ρ, exact. Raises InputError where its digits are too many."""
    total = fmpq(0)
    for part in parts:
        total += part.count * rational(part.rho)
        size = max(int(total.p.bit_length()), int(total.q.bit_length()))
        if size > MAX_RHO_BITS:
            raise InputError("parts", f"an exact ρ of {size} bits", f"at most {MAX_RHO_BITS} bits: shorter numbers")
    return fraction(total)


def _premises(parts: Sequence[Part], limits: Limits, progress: Callable[[float], None] | None) -> tuple[Verdict, str]:
    """VERIFIED, or the verdict on the first part that is not proved to be pure DP, and why."""
    premises = {part.premise: part for part in parts if part.premise is not None}
    for number, (premise, part) in enumerate(premises.items()):
        decision = decide(premise, limits)
        if decision.verdict is not Verdict.VERIFIED:
            what = f"{part.mechanism.family} noise at epsilon = {premise.claim.document()['epsilon']}"
            return decision.verdict, f"pure DP of {what}: {decision.reason}"
        if progress is not None:
            progress((number + 1) / len(premises))
    return Verdict.VERIFIED, ""


def log_inverse(delta: Fraction) -> arb:
    """log(1/δ), accurate also where δ is near 1."""
    return -ball(delta).log() if 2 * delta < 1 else -ball(delta - 1).log1p()


def epsilon_at(rho: Fraction, delta: Fraction, order_above_1: Fraction) -> arb:
    """ε(α) of step 3 at the precision in force, α = 1 + t. It can be below 0."""
    t = ball(order_above_1)
    return ball(rho) * (1 + t) - (1 / t).log1p() + (log_inverse(delta) - t.log1p()) / t


def enclose_epsilon(rho: Fraction, delta: Fraction, order_above_1: Fraction, limits: Limits) -> Enclosure | None:
    """max(ε(α), 0) for one order; None where limits.bits give no finite enclosure. Rounding: outward."""
    found = _enclose(lambda: epsilon_at(rho, delta, order_above_1), limits)
    return None if found is None else Enclosure(max(found.lower, Fraction(0)), max(found.upper, Fraction(0)))


def enclose_corollary(rho: Fraction, delta: Fraction, limits: Limits) -> Enclosure | None:
    """ρ + 2√(ρ log(1/δ)), as enclose_epsilon."""
    return _enclose(lambda: ball(rho) + 2 * (ball(rho) * log_inverse(delta)).sqrt(), limits)


def _enclose(value: Callable[[], arb], limits: Limits) -> Enclosure | None:
    """A number that may be the small difference of large terms, with as many bits as it needs or limits.bits allow."""
    found = None
    bits = START_BITS
    while bits <= max(limits.bits, START_BITS):
        with flint.ctx.workprec(bits):
            number = value()
            if number.is_finite():
                found = Enclosure(lower(number), upper(number))
                if found.upper <= 0 or found.upper - found.lower <= TIGHTNESS * found.upper:
                    return found
        bits *= 2
    return found


def propose_order(rho: Fraction, delta: Fraction) -> Fraction:
    """α − 1 for the order of least ε(α), to ORDER_DIGITS decimal digits. Proposes: nothing depends on its accuracy.

    dε/dt = ρ − (log(1/δ) − log(1 + t))/t² changes its sign once, where ρ t² + log(1 + t) = log(1/δ).
    """
    with flint.ctx.workprec(PROPOSAL_BITS):
        level, rate = log_inverse(delta), ball(rho)
        low = 2 * level / (1 + (1 + 4 * rate * level).sqrt())  # log(1 + t) ≤ t
        high = (level / rate).sqrt().min(ball(1 / delta - 1))
        for _ in range(PROPOSAL_BITS):
            middle = (low * high).sqrt().mid()
            if rate * middle * middle + middle.log1p() < level:
                low = middle
            else:
                high = middle
            if high < low * (1 + ball(TIGHTNESS) / 2**20):
                break
        return Fraction(decimal_upper(upper(low.mid()), ORDER_DIGITS))
