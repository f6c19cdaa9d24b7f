"""The conditions of Theorem 3.2 (its grid) and Theorem 4.2, in balls. (trusted)"""

from __future__ import annotations

import heapq
from fractions import Fraction

import flint
from flint import arb, fmpq

from audit.exact import ball, ceiling, enclosure, lower, upper
from audit.shape import CurvePoint, LogCurve
from audit.verdict import Condition, Decision, Enclosure, Expired, Limits, Verdict
from mechanisms.claims import Theorem32, Theorem42
from mechanisms.families import QuasiGaussian, ScaledFamily

START_BITS = 128
RELATIVE_TIGHTNESS = Fraction(1, 2**30)


def grid_size(mechanism: ScaledFamily, claim: Theorem32, limits: Limits) -> int | None:
    """n = ⌈Δ / (√(2π) η σ δ)⌉: the grid of Theorem 3.2 is {0, Δ/n, 2Δ/n, …, Δ}. None where limits.bits do not decide
    it.

    The quotient is irrational, so that enough bits always do.
    """
    ratio = mechanism.sensitivity / (claim.eta * mechanism.sigma * claim.delta)
    bits = START_BITS
    while bits <= limits.bits:
        with flint.ctx.workprec(bits):
            size = ceiling(ball(ratio) / (2 * arb.pi()).sqrt())
        if size is not None:
            return max(size, 1)
        bits *= 2
    return None


def normal_cdf(z: arb) -> arb:
    """Φ(z), through erfc: relative accuracy in the lower tail."""
    return (-z / arb(2).sqrt()).erfc() / 2


def condition_4a(mechanism: QuasiGaussian, claim: Theorem42) -> arb:
    """(h₁(σ) + h₂(σ)) / (e^ε + 2Φ(Δ/σ)) of (4a), at the precision in force. With λ = σ/Δ:

    h₁ = e^{2ε} Φ(−ελ − 1/λ) − Φ(−ελ + 1/λ),  h₂ = (e^ε + 2Φ(1/λ)) δ.

    The quotient has the sign of h₁ + h₂, equals δ − D(Δ) and does not grow like e^ε.
    """
    scale = mechanism.sigma / mechanism.sensitivity
    drift, inverse = claim.epsilon * scale, 1 / scale
    h1 = ball(2 * claim.epsilon).exp() * normal_cdf(ball(-drift - inverse)) - normal_cdf(ball(inverse - drift))
    return h1 / (ball(claim.epsilon).exp() + 2 * normal_cdf(ball(inverse))) + ball(claim.delta)


class _Extremum:
    """max (sign 1) or min (sign −1) of log f over [0, 1], by splitting the cell with the most extreme bound."""

    def __init__(self, curve: LogCurve, sign: int, unit: arb) -> None:
        self._curve, self._sign, self._unit = curve, sign, unit
        left, right = curve.at(fmpq(0)), curve.at(fmpq(1))
        self.attained = self._outer(left.log, right.log)
        self._heap: list[tuple[float, int, CurvePoint, CurvePoint, arb]] = []
        self._count = 0
        self._push(left, right)

    def _outer(self, a: arb, b: arb) -> arb:
        return a.max(b) if self._sign > 0 else a.min(b)

    def _push(self, left: CurvePoint, right: CurvePoint) -> None:
        curve = self._curve
        bound = curve.upper_log(left, right) if self._sign > 0 else curve.lower_log(left, right)
        self._count += 1
        heapq.heappush(self._heap, (-self._sign * float(bound / self._unit), self._count, left, right, bound))

    def split(self) -> None:
        """Halve the cell whose bound is the most extreme."""
        _, _, left, right, _ = heapq.heappop(self._heap)
        middle = self._curve.at((left.x + right.x) / 2)
        self.attained = self._outer(self.attained, middle.log)
        self._push(left, middle)
        self._push(middle, right)

    def bound(self) -> arb:
        """Beyond every value of log f: over the max, or under the min."""
        best = self._heap[0][4]
        for entry in self._heap[1:]:
            best = self._outer(best, entry[4])
        return best

    def gap(self) -> float:
        """How far the bound is from what is attained, in the unit. Guides the search."""
        return abs(float((self.bound() - self.attained) / self._unit))


def ratio_5a(mechanism: QuasiGaussian, claim: Theorem42, limits: Limits) -> Condition | None:
    """(5a): max f / min f over [0, Δ] is at most e^ε; the value enclosed is the log of the ratio.

    None where the precision gives no finite enclosure.

    Both extrema are found by bisection, each cell bounded by LogCurve; no use is made of Lemma 4.4.
    """
    epsilon = ball(claim.epsilon)
    density = mechanism.unit_form.pieces[0].sum
    curve, unit = LogCurve(density), 1 + ball(density.c)  # log f varies by c or so: floats of it would overflow
    top, bottom = _Extremum(curve, 1, unit), _Extremum(curve, -1, unit)
    verdict = Verdict.INCONCLUSIVE
    for _ in range(limits.cells):
        limits.check()
        high, low = top.bound() - bottom.bound(), top.attained - bottom.attained
        if not (high.is_finite() and low.is_finite()):
            return None
        if high <= epsilon:
            verdict = Verdict.VERIFIED
        elif low > epsilon:
            verdict = Verdict.REFUTED
        if verdict is not Verdict.INCONCLUSIVE and high - low <= ball(RELATIVE_TIGHTNESS) * high:
            break
        top_gap, bottom_gap = top.gap(), bottom.gap()
        if max(top_gap, bottom_gap) <= float(high.rad() / unit):
            break  # the cells are below what this precision resolves
        (top if top_gap >= bottom_gap else bottom).split()
    value = Enclosure(lower(top.attained - bottom.attained), upper(top.bound() - bottom.bound()))
    return Condition("(5a)", "log(max f / min f) over [0, Δ] is at most ε", value, verdict)


def decide_theorem_4_2(mechanism: QuasiGaussian, claim: Theorem42, limits: Limits) -> Decision:
    """Both conditions of Theorem 4.2: verified where both are, refuted where one is."""
    bits = START_BITS
    conditions: tuple[Condition, ...] = ()
    stopped = ""
    while not stopped:
        try:
            with flint.ctx.workprec(bits):
                h = condition_4a(mechanism, claim)
                sign = Verdict.VERIFIED if h >= 0 else Verdict.REFUTED if h < 0 else Verdict.INCONCLUSIVE
                first = Condition("(4a)", "(h₁ + h₂)/(e^ε + 2Φ(Δ/σ)) is at least 0", enclosure(h), sign)
                second = ratio_5a(mechanism, claim, limits)
                conditions = (first,) if second is None else (first, second)
        except Expired:
            stopped = "the time limit ended the search; raise it"
            break
        verdicts = [condition.verdict for condition in conditions]
        if len(verdicts) == 2 and Verdict.INCONCLUSIVE not in verdicts:
            break
        bits *= 2
        if bits > limits.bits:
            stopped = f"{limits.bits} bits do not resolve it; raise the limit on bits"
    failed = [condition.name for condition in conditions if condition.verdict is Verdict.REFUTED]
    if failed:
        reason = f"condition {' and '.join(failed)} of Theorem 4.2 does not hold"
        return Decision(verdict=Verdict.REFUTED, reason=reason, conditions=conditions, bits=bits, boxes=0)
    if stopped:
        return Decision(verdict=Verdict.INCONCLUSIVE, reason=stopped, conditions=conditions, bits=bits, boxes=0)
    reason = "both conditions of Theorem 4.2 hold"
    return Decision(verdict=Verdict.VERIFIED, reason=reason, conditions=conditions, bits=bits, boxes=0)
