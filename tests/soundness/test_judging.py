"""The referee's rulings: on verdicts that are right, on the same ones turned round, and on false evidence."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import pytest

from audit.decide import decide
from audit.verdict import Decision, Enclosure, Verdict
from mechanisms.claims import Direct, Statement, Theorem32, Theorem42, ZeroConcentrated
from mechanisms.families import Gaussian, QuasiGaussian
from tests.soundness import referee
from tests.soundness.judging import Conditions, GridShifts, RenyiOrders, Ruling, Shifts, holds
from tests.soundness.referee import MPF

NOISE = Gaussian(sensitivity=3, sigma=6)
DENSITY = referee.mixture(2, [(1, 0)])
QUESTION = Shifts(DENSITY)
TOP = Fraction(str(DENSITY.supremum("0.5")[1]))
TRUE, FALSE = (
    Statement(NOISE, Direct(epsilon="0.5", delta=TOP * side)) for side in (Fraction(11, 10), Fraction(9, 10))
)
VERIFIED, REFUTED = decide(TRUE), decide(FALSE)


def changed(decision: Decision, **witness: Any) -> Decision:
    assert decision.witness is not None
    return dataclasses.replace(decision, witness=dataclasses.replace(decision.witness, **witness))


def test_right_verdicts_stand() -> None:
    assert (VERIFIED.verdict, REFUTED.verdict) == (Verdict.VERIFIED, Verdict.REFUTED)
    assert QUESTION.rule(TRUE, VERIFIED) == QUESTION.rule(FALSE, REFUTED) == Ruling()


def test_a_verified_claim_that_is_false() -> None:
    assert "verified, but sup D is" in QUESTION.rule(FALSE, VERIFIED).contradiction


def test_a_refuted_claim_that_is_true() -> None:
    assert "an event that keeps the inequality" in QUESTION.rule(TRUE, REFUTED).contradiction


def test_a_referee_that_finds_too_little_is_short_where_an_event_shows_it_and_only_there() -> None:
    class Blind(referee.Density):
        def supremum(self, epsilon: Any) -> tuple[Any, Any]:
            shift, top = super().supremum(epsilon)
            return shift, top / 2

    question = Shifts(Blind(DENSITY.pieces, DENSITY.scale))
    assert question.rule(TRUE, VERIFIED) == Ruling(short=True)
    assert VERIFIED.sup_delta is not None
    higher = dataclasses.replace(VERIFIED, sup_delta=Enclosure(TOP * Fraction(101, 100), TOP * Fraction(11, 10)))
    assert "not in the enclosure" in question.rule(TRUE, higher).contradiction


def test_an_inconclusive_claim_is_none_of_both() -> None:
    for statement in (TRUE, FALSE):
        assert QUESTION.rule(statement, Decision(verdict=Verdict.INCONCLUSIVE, reason="", bits=0, boxes=0)) == Ruling()


@pytest.mark.parametrize("evidence", [{"shift": Fraction(1)}, {"event": ((None, None),)}, {"event": ()}])
def test_false_evidence(evidence: dict[str, Any]) -> None:
    assert "an event that keeps the inequality" in QUESTION.rule(FALSE, changed(REFUTED, **evidence)).contradiction


def test_a_part_of_an_event_counts_once() -> None:
    """Twice the true event would exceed any threshold."""
    assert REFUTED.witness is not None
    for event in (REFUTED.witness.event * 2, (*REFUTED.witness.event, (Fraction(-50), None))):
        assert "no union" in QUESTION.rule(TRUE, changed(REFUTED, event=event)).contradiction


def test_a_shift_beyond_the_sensitivity() -> None:
    assert "beyond the sensitivity" in QUESTION.rule(FALSE, changed(REFUTED, shift=Fraction(4))).contradiction


def test_no_witness() -> None:
    assert "without a witness" in QUESTION.rule(FALSE, dataclasses.replace(REFUTED, witness=None)).contradiction


@pytest.mark.parametrize("side", [Fraction(99, 100), Fraction(101, 100)])
def test_an_enclosure_that_misses(side: Fraction) -> None:
    found = dataclasses.replace(VERIFIED, sup_delta=Enclosure(TOP * side, TOP * side))
    assert "not in the enclosure" in QUESTION.rule(TRUE, found).contradiction


def test_a_gap_in_the_referee_is_no_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the witness exceeds a threshold that the largest D which was found does not."""
    density = referee.mixture(2, [(1, 0)])
    density._maxima[Fraction("0.5")] = [(MPF(0), MPF(0))]
    assert Shifts(density).rule(FALSE, REFUTED) == Ruling(short=True)
    monkeypatch.setattr(QUESTION.density, "divergence", lambda *_: MPF(0))
    assert QUESTION.rule(FALSE, REFUTED) == Ruling(short=True)


def test_a_tie_is_left_undecided() -> None:
    tie = Statement(NOISE, Direct(epsilon="0.5", delta=TOP))
    assert QUESTION.rule(tie, Decision(verdict=Verdict.VERIFIED, reason="", bits=0, boxes=0)) == Ruling(undecided=True)
    assert holds(MPF(0), MPF(0)) is True and holds(MPF(1), MPF(1)) is None
    assert holds(MPF(1), 1 + MPF(10) ** -39) is True and holds(1 + MPF(10) ** -39, MPF(1)) is False


def test_grids_are_the_referees_own() -> None:
    """Another size, or a shift that is no point, is a contradiction; so is a verdict on the wrong threshold."""
    claim = Theorem32(epsilon="0.5", delta=TOP * Fraction(9, 5), eta="0.5")
    statement, question = Statement(NOISE, claim), GridShifts(DENSITY, 60, Fraction(2))
    found = decide(statement)
    assert found.verdict is Verdict.REFUTED and question.rule(statement, found) == Ruling()
    for evidence in ({"grid_size": 7}, {"shift": Fraction(3) - Fraction(1, 10**9)}):
        assert "no point of the grid" in question.rule(statement, changed(found, **evidence)).contradiction
    assert question.rule(statement, VERIFIED).contradiction


def test_conditions_of_theorem_4_2() -> None:
    noise = QuasiGaussian(sensitivity=3, sigma=3, epsilon=2)
    for delta in ("0.5", "1e-9"):
        statement = Statement(noise, Theorem42(epsilon=2, delta=delta))
        found = decide(statement)
        other = Verdict.VERIFIED if found.verdict is Verdict.REFUTED else Verdict.REFUTED
        assert Conditions(Fraction(1)).rule(statement, found) == Ruling()
        assert Conditions(Fraction(1)).rule(statement, dataclasses.replace(found, verdict=other)).contradiction
        named = tuple(dataclasses.replace(c, verdict=Verdict.REFUTED) for c in found.conditions)
        assert (
            "holds"
            in Conditions(Fraction(1)).rule(statement, dataclasses.replace(found, conditions=named)).contradiction
        )


def test_orders_of_renyi_divergences() -> None:
    question = RenyiOrders([(1, 0)], Fraction(2), [Fraction(2), Fraction(10) ** 6])
    for rho in ("0.13", "0.12"):
        statement = Statement(NOISE, ZeroConcentrated(rho=rho))
        found = decide(statement)
        other = Verdict.VERIFIED if found.verdict is Verdict.REFUTED else Verdict.REFUTED
        assert question.rule(statement, found) == Ruling()
        assert question.rule(statement, dataclasses.replace(found, verdict=other)).contradiction
