"""Evidence of another search, evaluated anew."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import flint
import pytest

from audit.decide import decide
from audit.recheck import is_event, is_shift_of_claim, reaches, witness_figures
from audit.shifts import NeedBits, NeedBoxes, Points
from audit.verdict import Decision, Enclosure, Limits, Verdict, Witness

HALF = Fraction(1, 2)


def _witness(workshop: Any) -> tuple[Any, Witness]:
    statement = workshop.statement("refuted")
    witness = decide(statement).witness
    assert witness is not None
    return statement, witness


@pytest.mark.parametrize(
    ("event", "sound"),
    [
        (((None, Fraction(1)),), True),
        (((None, None),), True),
        (((None, Fraction(0)), (Fraction(0), Fraction(1)), (Fraction(2), None)), True),
        ((), False),
        (((Fraction(1), Fraction(1)),), False),
        (((Fraction(2), Fraction(1)),), False),
        (((Fraction(0), Fraction(2)), (Fraction(1), Fraction(3))), False),
        (((Fraction(0), None), (Fraction(1), Fraction(3))), False),
        (((Fraction(0), Fraction(1)), (None, Fraction(3))), False),
        (((Fraction(2), Fraction(3)), (Fraction(0), Fraction(1))), False),
    ],
)
def test_event(event: Any, sound: bool) -> None:
    assert is_event(event) is sound


def test_figures_are_those_of_the_decision(workshop: Any) -> None:
    statement, witness = _witness(workshop)
    figures = witness_figures(statement, witness, Limits())
    assert figures is not None
    for found, own in zip(figures, (witness.probability_shifted, witness.bound), strict=True):
        assert found.lower <= own.upper
        assert own.lower <= found.upper


def test_figures_in_the_unit_of_the_query(workshop: Any) -> None:
    """Ten times the sensitivity, σ, the shift and the event: the same probabilities."""
    statement, witness = _witness(workshop)
    mechanism = replace(statement.mechanism, sensitivity=Fraction(10), sigma=statement.mechanism.sigma * 10)
    event = tuple((None if a is None else a * 10, None if b is None else b * 10) for a, b in witness.event)
    larger = replace(witness, shift=witness.shift * 10, event=event)
    one = witness_figures(statement, witness, Limits())
    other = witness_figures(replace(statement, mechanism=mechanism), larger, Limits())
    assert one is not None
    assert other is not None
    assert other[0].lower <= one[0].upper
    assert one[0].lower <= other[0].upper


def test_event_that_proves_nothing(workshop: Any) -> None:
    statement, witness = _witness(workshop)
    figures = witness_figures(statement, replace(witness, event=((None, None),)), Limits())
    assert figures is not None
    assert figures[0].upper < figures[1].lower


def test_limits_end_the_evaluation(workshop: Any) -> None:
    statement, witness = _witness(workshop)
    assert witness_figures(statement, witness, Limits(bits=64)) is None
    assert witness_figures(statement, witness, Limits(expired=lambda: True)) is None
    assert reaches(statement, HALF, HALF, Limits(bits=64)) is None
    assert reaches(statement, HALF, HALF, Limits(expired=lambda: True)) is None


@pytest.mark.parametrize("name", ["gaussian", "peaked", "theorem-3.2"])
def test_supremum_is_reached_where_it_was_found(workshop: Any, name: str) -> None:
    statement = workshop.statement(name)
    decision: Decision = decide(statement)
    assert decision.verdict is Verdict.VERIFIED
    assert decision.worst_shift is not None
    assert decision.sup_delta is not None
    level = decision.sup_delta.lower * (1 - Fraction(1, 10**6))
    assert reaches(statement, decision.worst_shift, level, Limits()) is True
    assert reaches(statement, decision.worst_shift / 2, level, Limits()) is False


def test_shifts_of_a_claim(workshop: Any) -> None:
    plain = workshop.statement("peaked")
    assert is_shift_of_claim(plain, Fraction(2), Limits())
    assert is_shift_of_claim(plain, Fraction(0), Limits())
    assert is_shift_of_claim(plain, Fraction(21, 10), Limits()) is False
    assert is_shift_of_claim(plain, Fraction(-1), Limits()) is False
    on_grid = workshop.statement("theorem-3.2")
    assert is_shift_of_claim(on_grid, Fraction(1), Limits())
    assert is_shift_of_claim(on_grid, Fraction(1, 3**30), Limits()) is False
    assert is_shift_of_claim(on_grid, Fraction(1), Limits(bits=64)) is None


def test_figures_that_differ_late_get_more_bits(workshop: Any) -> None:
    """P(A − φ) and the bound agree to 10⁻⁶⁰ for an event chosen so; the first precision does not part them."""
    statement = workshop.statement("refuted")
    everywhere = Witness(Fraction(0), ((None, Fraction(0)),), Enclosure(HALF, HALF), Enclosure(HALF, HALF))
    tiny = replace(statement.claim, epsilon=Fraction(0), delta=Fraction(1, 10**60))
    figures = witness_figures(replace(statement, claim=tiny), everywhere, Limits())
    assert figures is not None
    assert figures[0].upper < figures[1].lower
    assert witness_figures(replace(statement, claim=tiny), everywhere, Limits(bits=200)) is None


def test_small_divergence_gets_more_bits(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def measure(self: Any, *rest: Any) -> Any:
        asked.append(flint.ctx.prec)
        if flint.ctx.prec < 500:
            raise NeedBits
        raise NeedBoxes

    monkeypatch.setattr(Points, "measure", measure)
    assert reaches(workshop.statement("peaked"), HALF, HALF, Limits()) is None
    assert asked == [128, 256, 512]
