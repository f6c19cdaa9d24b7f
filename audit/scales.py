"""Conservative scales: the smallest scale for which a claim is verified, and the largest found for which it is refuted.

Floats propose a scale, a Newton step in balls sharpens it to far below the spacing of doubles, and then only decisions
count: the scale that is returned was verified as it stands, the scale below it refuted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import flint

from audit.decide import decide, decide_from, propose_shifts
from audit.exact import ball, lower
from audit.lattice import MAX_DECIMALS, Decimals, Doubles, Lattice
from audit.losses import Losses, enclose_losses
from audit.single import NeedBits, NeedBoxes, Points
from audit.verdict import Decision, Enclosure, Expired, Limits, Verdict
from mechanisms.calibration import float_sigma
from mechanisms.claims import Claim, Direct, Statement, Theorem32, Theorem42
from mechanisms.families import FAMILIES, MultiGaussian, QuasiGaussian, ScaledFamily
from mechanisms.numbers import InputError

Loss = Literal["l1", "l2"]

POLISH_BITS = 192
POLISH_TIGHTNESS = Fraction(1, 2**90)
WIDER_GAPS = (Fraction(1, 10**12), Fraction(1, 10**9), Fraction(1, 10**6), Fraction(1, 100))
"""Relative gaps to try, one after the other, where the last digits cost more than the limits allow."""
COSTLY_LINES, COSTLY_THRESHOLD = 100, Fraction(1, 10**50)
"""Of more lines, or below this threshold, the widest gap is decided first: the time may end before the last digits."""
MAX_STEPS = 62
"""Doublings of the step from the proposal, which reach every double."""
NEARLY = 1e-9
"""Members whose float losses are this close, relatively, are calibrated where they cannot be excluded."""
EQUAL = Fraction(1, 10**12)
"""Losses this close, relatively, count as equal: the smaller K is taken."""


@dataclass(frozen=True)
class Trial:
    """One K of an automatic choice: its float scale and loss, and whether it is proved that no scale makes its loss
    smaller than the chosen one (but for the 12 digits within which losses count as equal)."""

    K: int
    float_sigma: float
    float_loss: float
    excluded: bool


@dataclass(frozen=True)
class Calibration:
    """A conservative scale with its proofs."""

    statement: Statement
    """With the scale that was chosen."""
    decision: Decision
    """Of that statement: VERIFIED, or INCONCLUSIVE where the limits ended the search."""
    refuted_below: Fraction | None
    """A smaller scale for which the same claim is refuted."""
    refutation: Decision | None
    float_sigma: float
    """The tight float calibration, which proves nothing."""
    adjacent: bool
    """Whether refuted_below is the next smaller double (or decimal)."""
    note: str
    """What is proved of the scale's optimality, in one sentence."""
    losses: Losses
    tried: tuple[Trial, ...] = ()


def calibrate(
    family: str,
    claim: Claim,
    *,
    sensitivity: Fraction = Fraction(1),
    K: int | None = None,
    candidates: Sequence[int] | None = None,
    loss: Loss = "l2",
    decimals: int | None = None,
    limits: Limits | None = None,
    progress: Callable[[float], None] | None = None,
) -> Calibration:
    """The smallest scale of the lattice (doubles, or decimals of that many places) for which the claim is verified.

    ``K`` is for ``multi-gaussian``; ``candidates`` instead lets the K of least loss be chosen among them. Raises
    InputError for a family without a scale, a claim that is not one about it, and (ε, δ) that no scale serves; Expired
    where the time is over before the floats have proposed a scale.
    """
    limits = limits or Limits()
    lattice = make_lattice(decimals)
    if candidates is None:
        return calibrate_member(template(family, claim, sensitivity, K), claim, lattice, limits, progress)
    if family != MultiGaussian.family:
        raise InputError("K", "auto", f"a family with a K, that is {MultiGaussian.family}")
    if not candidates:
        raise InputError("K", "no candidates", "at least one K to choose from")
    members = [template(family, claim, sensitivity, k) for k in sorted(set(candidates))]
    return _choose(members, claim, loss, lattice, limits, progress)


def make_lattice(decimals: int | None) -> Lattice:
    """All doubles, or all decimals of that many places."""
    if decimals is None:
        return Doubles()
    if not 0 <= decimals <= MAX_DECIMALS:
        raise InputError("decimals", str(decimals), f"a whole number from 0 to {MAX_DECIMALS}")
    return Decimals(decimals)


def template(family: str, claim: Claim, sensitivity: Fraction, K: int | None) -> ScaledFamily:
    """A member of the family at a scale of Δ, for its scale to be chosen."""
    cls = FAMILIES.get(family)
    if cls is None or not issubclass(cls, ScaledFamily):
        scaled = [name for name, known in FAMILIES.items() if issubclass(known, ScaledFamily)]
        raise InputError("family", family, f"one of {', '.join(scaled)}")
    parameters: dict[str, Any] = {"sensitivity": sensitivity, "sigma": sensitivity}
    names = {parameter.name for parameter in dataclasses.fields(cls)}
    if "epsilon" in names:
        parameters["epsilon"] = claim.epsilon
    if "K" in names:
        if K is None:
            raise InputError("K", "nothing", "a whole number, or auto")
        parameters["K"] = K
    elif K is not None:
        raise InputError("K", str(K), f"no K: {family} has none")
    if claim.delta == 0:
        raise InputError("delta", "0", f"a number greater than 0: no scale makes {family} noise satisfy pure DP")
    return cls(**parameters)


def calibrate_member(
    member: ScaledFamily,
    claim: Claim,
    lattice: Lattice,
    limits: Limits,
    progress: Callable[[float], None] | None = None,
    proposal: float | None = None,
) -> Calibration:
    """As calibrate, for one member of a family; its scale is not looked at. ``proposal`` is what float_sigma says."""
    Statement(member, claim)
    if proposal is None:
        proposal = float_sigma(member, claim, limits.check)
    start = _polish(member, claim, Fraction(proposal), limits)
    search = _LatticeSearch(member, claim, lattice, limits)
    found = search.run(lattice.rank_at_least(start))
    statement = Statement(member.with_sigma(lattice.value(found.high)), claim)
    decision = decide(statement, limits, progress) if found.decision is None else found.decision
    refuted = None if found.low is None else lattice.value(found.low)
    return Calibration(
        statement=statement,
        decision=decision,
        refuted_below=refuted,
        refutation=found.refutation,
        float_sigma=proposal,
        adjacent=found.low is not None and found.low == found.high - 1,
        note=_note(member, claim, lattice, found.low is not None and found.low == found.high - 1, refuted),
        losses=enclose_losses(statement.mechanism),
    )


def _note(member: ScaledFamily, claim: Claim, lattice: Lattice, adjacent: bool, refuted: Fraction | None) -> str:
    if refuted is None:
        return "no smaller scale was refuted: nothing is proved of how small the scale could be"
    gap = f"the {lattice.name} below is refuted" if adjacent else f"{float(refuted):.17g} below is refuted"
    if isinstance(claim, Theorem32):
        return f"{gap}; sup D ≤ (1−η)δ is verified over all shifts, which implies the grid condition"
    if isinstance(claim, Direct) and isinstance(member, QuasiGaussian):
        return f"{gap}; that no smaller scale holds is seen but not proved for this family (the statement is local)"
    theorem = "Lemmas 4.3 and 4.5" if isinstance(claim, Theorem42) else "a larger scale keeps the guarantee (Lemma 3.4)"
    smallest = f"the smallest {lattice.name} that holds" if adjacent else "optimal to that gap"
    return f"{smallest}: {gap}, and {theorem}"


def searched_claim(claim: Claim) -> Claim:
    """The claim whose smallest scale is looked for: for theorem-3.2 the threshold over all shifts, which implies the
    grid."""
    return Direct(epsilon=claim.epsilon, delta=claim.threshold) if isinstance(claim, Theorem32) else claim


def _polish(member: ScaledFamily, claim: Claim, proposal: Fraction, limits: Limits) -> Fraction:
    """The scale at which D at the worst shift meets the threshold, to far below the spacing of doubles. Proves nothing.

    Two Newton steps on log D at a fixed shift: at the worst shift D is flat, so that its own movement does not matter.
    """
    if isinstance(claim, Theorem42):
        return proposal
    seeds = propose_shifts(member.with_sigma(proposal).unit_form, claim.epsilon)
    sigma, shift = proposal, seeds[-1]

    def log_excess(at: Fraction) -> Fraction:
        points = Points(member.with_sigma(at).unit_form, limits, claim.threshold)
        _, low, high = points.measure(shift, claim.epsilon, POLISH_TIGHTNESS, ball(claim.threshold / 2**90))
        return fraction_of_middle((low + high).log() - (2 * ball(claim.threshold)).log())

    try:
        with flint.ctx.workprec(POLISH_BITS):
            step = sigma / 2**30
            here = log_excess(sigma)
            slope = (log_excess(sigma + step) - here) / step
            for _ in range(2):
                if slope >= 0 or abs(here / slope) > sigma / 1000:
                    return proposal
                sigma = Fraction(round((sigma - here / slope) * 2**120 / proposal), 2**120) * proposal
                here = log_excess(sigma)
    except (NeedBits, NeedBoxes, Expired, ValueError):
        return proposal
    return sigma


def fraction_of_middle(value: flint.arb) -> Fraction:
    """The midpoint of a finite ball, exactly."""
    return lower(value.mid())


@dataclass
class _Found:
    high: int
    decision: Decision | None
    low: int | None
    refutation: Decision | None


class _LatticeSearch:
    """Decisions at lattice points until one is verified and one below it is refuted, as close as the limits allow."""

    def __init__(self, member: ScaledFamily, claim: Claim, lattice: Lattice, limits: Limits) -> None:
        self._member, self._claim, self._lattice, self._limits = member, claim, lattice, limits
        self._searched = searched_claim(claim)
        self._seeds: list[Fraction] = []
        self._known: dict[int, Decision] = {}

    def _decide(self, rank: int) -> Decision:
        if rank not in self._known:
            statement = Statement(self._member.with_sigma(self._lattice.value(rank)), self._searched)
            found = decide_from(statement, self._limits, seeds=self._seeds, enclose_refuted=False)
            if found.witness is not None:
                self._seeds = [*self._seeds[-3:], found.witness.shift / self._member.sensitivity]
            self._known[rank] = found
        return self._known[rank]

    def run(self, start: int) -> _Found:
        """Gallop from the start to a verified and a refuted rank, then halve between them."""
        lines = sum(len(piece.sum.lines) for piece in self._member.pieces())
        if lines > COSTLY_LINES or self._claim.threshold < COSTLY_THRESHOLD:
            self._around(start, WIDER_GAPS[-1:])
        high, low = self._bracket(start)
        while high is not None and low is not None and high - low > 1:
            middle = (high + low) // 2
            verdict = self._decide(middle).verdict
            if verdict is Verdict.VERIFIED:
                high = middle
            elif verdict is Verdict.REFUTED:
                low = middle
            else:
                break
        if high is None:
            reason = "no scale near the float proposal was verified within the limits; raise them, or give another K"
            bits = max(decision.bits for decision in self._known.values())
            nothing = Decision(verdict=Verdict.INCONCLUSIVE, reason=reason, bits=bits, boxes=0)
            first = self._known[start]
            nothing = first if first.verdict is Verdict.INCONCLUSIVE else nothing
            return _Found(start, nothing, low if low is not None and low < start else None, None)
        return self._for_claim(high, low)

    def _bracket(self, start: int) -> tuple[int | None, int | None]:
        high = low = None
        rank, step = start, 1
        for _ in range(MAX_STEPS):
            verdict = self._decide(rank).verdict
            if verdict is Verdict.VERIFIED:
                high = rank
            elif verdict is Verdict.REFUTED:
                low = rank
            else:
                return self._around(start, WIDER_GAPS)
            if high is not None and low is not None:
                break
            rank = rank - step if high is not None else rank + step
            step *= 2
            if not self._lattice.exists(rank):
                break
        return high, low

    def _around(self, start: int, gaps: Sequence[Fraction]) -> tuple[int | None, int | None]:
        """A wider pair round a rank that the limits do not decide."""
        centre = self._lattice.value(start)
        high = low = None
        for gap in gaps:
            above = self._lattice.rank_at_least(centre * (1 + gap))
            below = self._lattice.rank_at_least(centre * (1 - gap))
            if high is None and self._decide(above).verdict is Verdict.VERIFIED:
                high = above
            if low is None and self._decide(below).verdict is Verdict.REFUTED:
                low = below
            if high is not None and low is not None:
                break
        return high, low

    def _for_claim(self, high: int, low: int | None) -> _Found:
        """The pair for the claim itself, where another was searched (theorem-3.2): refuted at a grid point."""
        if self._searched is self._claim:
            return _Found(high, self._known[high], low, None if low is None else self._known[low])
        for gap in (1, 1 << 8, 1 << 16, 1 << 24, 1 << 32):
            rank = high - gap
            if not self._lattice.exists(rank):
                break
            statement = Statement(self._member.with_sigma(self._lattice.value(rank)), self._claim)
            found = decide_from(statement, self._limits, seeds=self._seeds, enclose_refuted=False)
            if found.verdict is Verdict.REFUTED:
                return _Found(high, None, rank, found)
        return _Found(high, None, None, None)


def _choose(
    members: Sequence[ScaledFamily],
    claim: Claim,
    loss: Loss,
    lattice: Lattice,
    limits: Limits,
    progress: Callable[[float], None] | None,
) -> Calibration:
    """The member of least certified loss, the smallest K among those whose loss is the same to 12 digits.

    Floats choose, proofs confirm: each other member is refuted at a scale at which its loss is no smaller than the
    chosen one's (Lemma 3.4, and the loss grows with the scale as with added independent noise), or calibrated and
    compared.
    """
    trials = []
    for number, member in enumerate(members):
        sigma = float_sigma(member, claim, limits.check)
        form = member.with_sigma(Fraction(sigma)).form
        value = float(form.mean_absolute() if loss == "l1" else form.mean_square())
        trials.append((value, member, sigma))
        if progress is not None:
            progress(number / (3 * len(members)))
    least = min(value for value, _, _ in trials)
    chosen, sigma = next((member, sigma) for value, member, sigma in trials if value <= least * (1 + float(EQUAL)))
    best = calibrate_member(chosen, claim, lattice, limits, proposal=sigma)
    tried = []
    for number, (value, member, sigma) in enumerate(trials):
        assert isinstance(member, MultiGaussian)
        bound = _loss(best.losses, loss).upper * (1 - EQUAL)
        excluded = member is chosen or _cannot_do_better(member, claim, sigma, bound, loss, limits)
        if not excluded and value <= least * (1 + NEARLY):
            found = calibrate_member(member, claim, lattice, limits, proposal=sigma)
            if _loss(found.losses, loss).upper < bound:
                best = found
        tried.append(Trial(member.K, sigma, value, excluded))
        if progress is not None:
            progress((2 + number / len(trials)) / 3)
    return dataclasses.replace(best, tried=tuple(tried))


def _cannot_do_better(
    member: ScaledFamily, claim: Claim, sigma: float, bound: Fraction, loss: Loss, limits: Limits
) -> bool:
    """Whether the claim is refuted at a scale at which the member's loss is at least ``bound``."""
    for gap in (Fraction(1, 2**34), Fraction(1, 2**42)):
        smaller = member.with_sigma(Fraction(sigma) * (1 - gap))
        if _loss(enclose_losses(smaller), loss).lower >= bound:
            statement = Statement(smaller, searched_claim(claim))
            return decide_from(statement, limits, enclose_refuted=False).verdict is Verdict.REFUTED
    return False


def _loss(losses: Losses, loss: Loss) -> Enclosure:
    return losses.l1 if loss == "l1" else losses.l2
