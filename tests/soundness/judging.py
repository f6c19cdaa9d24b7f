"""What the referee says of a verdict: no contradiction, or which."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from audit.decide import decide
from audit.verdict import Decision, Verdict
from mechanisms.claims import AnyClaim, Claim, Direct, Statement, Theorem32, Theorem42, ZeroConcentrated
from tests.soundness import referee_theorems
from tests.soundness.referee import Density
from tests.soundness.referee_pieces import CONTEXT, MPF, digits, number
from tests.soundness.referee_steps import StepDensity

SAME = MPF(10) ** -40
"""Relative difference below which the referee leaves a comparison undecided."""
ROOM = MPF(10) ** -35
"""What an enclosure of sup D may miss of the largest D that the referee found."""


@dataclass(frozen=True)
class Ruling:
    """The referee's word on one decision."""

    contradiction: str = ""
    """What it contradicts; empty for nothing."""
    undecided: bool = False
    """The two sides of the claim are closer than the referee's digits."""
    short: bool = False
    """The auditor's event exceeds a threshold that the referee's D, there or at its largest, does not: a gap in the
    referee."""


class Question(Protocol):
    """A claim about a mechanism, in the referee's own terms."""

    def rule(self, statement: Statement, decision: Decision) -> Ruling:
        """What the referee says of that decision."""


def holds(value: Any, limit: Any) -> bool | None:
    """value ≤ limit; None where the two are the same to the digits and not both 0."""
    if value == limit == 0:
        return True
    return None if abs(value - limit) <= SAME * max(abs(value), abs(limit)) else bool(value < limit)


@dataclass(frozen=True)
class Shifts:
    """D(φ) against a threshold at every shift in [0, 1]: direct claims."""

    density: Density | StepDensity
    digits: int = 60

    def largest(self, claim: Claim) -> tuple[Any, Any]:
        """(φ, D(φ)) with the largest D that the claim speaks of."""
        return self.density.supremum(claim.epsilon)

    def threshold(self, claim: Claim) -> Any:
        """What D must not exceed."""
        return number(claim.delta)

    def strays(self, statement: Statement, decision: Decision) -> str:
        """What is wrong with where the witness is, if anything."""
        witness = decision.witness
        assert witness is not None
        return "" if 0 <= witness.shift <= statement.mechanism.sensitivity else "a witness beyond the sensitivity"

    def rule(self, statement: Statement, decision: Decision) -> Ruling:
        claim = statement.claim
        assert isinstance(claim, Claim)
        with digits(self.digits):
            _, top = self.largest(claim)
            true = holds(top, self.threshold(claim))
            if decision.verdict is Verdict.VERIFIED and true is False:
                return Ruling(f"verified, but sup D is {CONTEXT.nstr(top, 20)}")
            missed = self._misses(decision, top)
            if missed:
                return Ruling(short=True) if self._is_attained(statement, decision, top) else Ruling(missed)
            if decision.verdict is Verdict.REFUTED:
                return self._of_refutation(statement, decision, true)
            return Ruling(undecided=true is None)

    @staticmethod
    def _misses(decision: Decision, top: Any) -> str:
        found = decision.sup_delta
        if found is None or (number(found.lower) <= top * (1 + ROOM) and top * (1 - ROOM) <= number(found.upper)):
            return ""
        if number(found.lower) > top and decision.verdict is Verdict.REFUTED:
            return ""  # the witness will show whose error it is
        return (
            f"sup D is {CONTEXT.nstr(top, 20)}, not in the enclosure from {float(found.lower)} to {float(found.upper)}"
        )

    def _is_attained(self, statement: Statement, decision: Decision, top: Any) -> bool:
        """Whether an event shows that D comes to the lower end of the enclosure, but for a millionth of it: the
        referee's D was too small then. The auditor names the event, for a lower threshold; its probabilities are the
        referee's."""
        claim, found = statement.claim, decision.sup_delta
        if not isinstance(claim, Direct) or found is None or number(found.lower) <= top:
            return False
        lower = Direct(epsilon=claim.epsilon, delta=found.lower * (1 - Fraction(1, 10**6)))
        below = Statement(statement.mechanism, lower)
        ruling = self._of_refutation(below, decide(below), None)
        return not ruling.contradiction and not ruling.undecided

    def _of_refutation(self, statement: Statement, decision: Decision, true: bool | None) -> Ruling:
        claim, witness, unit = statement.claim, decision.witness, statement.mechanism.sensitivity
        assert isinstance(claim, Claim)
        if witness is None:
            return Ruling("refuted without a witness")
        threshold, shift = self.threshold(claim), witness.shift / unit
        event = [tuple(None if end is None else end / unit for end in pair) for pair in witness.event]
        inner = [end for pair in event for end in pair][1:-1]
        if None in inner or any(a > b for a, b in itertools.pairwise(inner)):
            return Ruling("refuted by what is no union of disjoint intervals")
        there = here = MPF(0)
        for start, stop in event:
            here += self.density.probability(start, stop)
            moved = (None if end is None else end + shift for end in (start, stop))
            there += self.density.probability(*moved)
        excess = holds(there, CONTEXT.exp(number(claim.epsilon)) * here + threshold)
        if excess is True:
            return Ruling(f"refuted by an event that keeps the inequality at φ = {float(shift)}Δ")
        # The event is proof enough; that D exceeds too says that the referee sees what the auditor saw.
        at_witness = holds(self.density.divergence(shift, claim.epsilon), threshold)
        return Ruling(
            self.strays(statement, decision),
            undecided=at_witness is None or excess is None,
            short=true is True or at_witness is True,
        )


@dataclass(frozen=True)
class GridShifts(Shifts):
    """The same on the grid of Theorem 3.2."""

    sigma: Fraction = Fraction(1)
    """In units of Δ."""

    def largest(self, claim: Claim) -> tuple[Any, Any]:
        assert isinstance(self.density, Density)
        return referee_theorems.grid_maximum(self.density, claim.epsilon, self._size(claim))

    def threshold(self, claim: Claim) -> Any:
        assert isinstance(claim, Theorem32)
        return (1 - number(claim.eta)) * number(claim.delta)

    def _size(self, claim: Claim) -> int:
        assert isinstance(claim, Theorem32)
        return referee_theorems.grid_size(self.sigma, claim.eta, claim.delta)

    def strays(self, statement: Statement, decision: Decision) -> str:
        claim, witness, unit = statement.claim, decision.witness, statement.mechanism.sensitivity
        assert isinstance(claim, Claim) and witness is not None and witness.grid_index is not None
        size = self._size(claim)
        at_point = witness.grid_size == size and witness.shift == Fraction(witness.grid_index, size) * unit
        return "" if at_point and 0 <= witness.grid_index <= size else "a witness that is no point of the grid"


@dataclass(frozen=True)
class Conditions:
    """(4a) and (5a) of Theorem 4.2."""

    sigma: Fraction
    """In units of Δ."""

    def rule(self, statement: Statement, decision: Decision) -> Ruling:
        claim = statement.claim
        assert isinstance(claim, Theorem42)
        least = referee_theorems.least_delta_4a(self.sigma, claim.epsilon)
        ratio = referee_theorems.log_ratio_5a(self.sigma, claim.epsilon)
        return _of_conditions(
            decision, {"(4a)": holds(least, number(claim.delta)), "(5a)": holds(ratio, number(claim.epsilon))}
        )


@dataclass(frozen=True)
class RenyiOrders:
    """D_α against ρ α at a few orders."""

    components: Sequence[tuple[Any, Any]]
    """(weight, mean) of both signs, in units of Δ."""
    sigma: Fraction
    orders: Sequence[Any]

    def rule(self, statement: Statement, decision: Decision) -> Ruling:
        claim: AnyClaim = statement.claim
        assert isinstance(claim, ZeroConcentrated)
        least = referee_theorems.least_rho_seen(self.components, self.sigma, self.orders)
        return _of_conditions(decision, {"ρ": holds(least, number(claim.rho))})


def _of_conditions(decision: Decision, truths: dict[str, bool | None]) -> Ruling:
    true = None if None in truths.values() else all(truths.values())
    right = {True: Verdict.VERIFIED, False: Verdict.REFUTED, None: decision.verdict}[_false_first(truths, true)]
    named = [condition.name for condition in decision.conditions if condition.verdict is Verdict.REFUTED]
    if decision.verdict not in (right, Verdict.INCONCLUSIVE):
        return Ruling(f"{decision.verdict.value}, but the conditions hold as {truths}")
    wrong = [name for name in named if truths[name]]
    return Ruling(f"{', '.join(wrong)} holds" if wrong else "", undecided=true is None)


def _false_first(truths: dict[str, bool | None], true: bool | None) -> bool | None:
    """False where any condition is false, whatever is not known of the others."""
    return False if False in truths.values() else true
