"""Evidence that another search recorded, evaluated anew."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import pytest

from audit.decide import decide
from audit.recheck import is_event, is_shift_of_claim, reaches, witness_figures
from audit.theorems import grid_size
from audit.verdict import Limits, Verdict
from mechanisms.claims import Statement, Theorem32
from mechanisms.families import MultiGaussian
from tests.audit.support import ZOO, multi_gaussian, statement

LIMITS = Limits()


@pytest.mark.parametrize(
    ("event", "fine"),
    [
        (((None, None),), True),
        (((None, Fraction(0)), (Fraction(1), Fraction(2)), (Fraction(2), None)), True),
        ((), False),
        (((Fraction(0), Fraction(0)),), False),
        (((Fraction(1), Fraction(0)),), False),
        (((Fraction(0), Fraction(2)), (Fraction(1), Fraction(3))), False),
        (((Fraction(2), Fraction(3)), (Fraction(0), Fraction(1))), False),
        (((None, None), (Fraction(0), Fraction(1))), False),
        (((Fraction(0), None), (Fraction(1), Fraction(2))), False),
        (((Fraction(0), Fraction(1)), (None, Fraction(2))), False),
    ],
)
def test_events_are_disjoint_and_in_order(
    event: tuple[tuple[Fraction | None, Fraction | None], ...], fine: bool
) -> None:
    assert is_event(event) == fine


def test_which_shifts_a_claim_speaks_of() -> None:
    mechanism = MultiGaussian(sensitivity="2.5", sigma="1", K=1, epsilon="1")
    direct = statement(mechanism, "1", "0.1")
    for shift, inside in (("0", True), ("2.5", True), ("1.234", True), ("-1e-9", False), ("2.6", False)):
        assert is_shift_of_claim(direct, Fraction(shift), LIMITS) is inside
    claim = Theorem32(epsilon="1", delta="0.1", eta="0.5")
    grid = Statement(mechanism, claim)
    size = grid_size(mechanism, claim, LIMITS)
    assert size == 20
    assert is_shift_of_claim(grid, Fraction("2.5") * 7 / 20, LIMITS) is True
    assert is_shift_of_claim(grid, Fraction("2.5") * 7 / 21, LIMITS) is False
    assert is_shift_of_claim(grid, Fraction(3), LIMITS) is False
    fine = Statement(mechanism, Theorem32(epsilon="1", delta="1e-60", eta="0.5"))
    assert is_shift_of_claim(fine, Fraction(0), Limits(bits=128)) is None


@pytest.mark.parametrize("name", ["multi-gaussian", "camel", "laplace", "repeated"])
def test_a_level_is_reached_below_the_truth_only(name: str) -> None:
    mechanism, density = ZOO[name]
    claim = statement(mechanism, "0.7", "0.1")
    true = Fraction(str(density.divergence("0.8", "0.7")))
    assert reaches(claim, Fraction("0.8"), true * (1 - Fraction(1, 10**11)), LIMITS) is True
    assert reaches(claim, Fraction("0.8"), true * (1 + Fraction(1, 10**15)), LIMITS) is False
    assert reaches(claim, Fraction("0.8"), true * 2, LIMITS) is False
    if name != "laplace":  # which needs no cells
        assert reaches(claim, Fraction("0.8"), true, Limits(cells=3)) is None
    assert reaches(claim, Fraction("0.8"), true, Limits(expired=lambda: True)) is None


def test_the_figures_of_a_witness_come_out_again() -> None:
    mechanism, _ = multi_gaussian("0.0526", 9, "3")
    claim = statement(mechanism, "3", "0.01")
    found = decide(claim)
    assert found.verdict is Verdict.REFUTED and found.witness is not None and is_event(found.witness.event)
    figures = witness_figures(claim, found.witness, LIMITS)
    assert figures is not None
    for again, before in zip(figures, (found.witness.probability_shifted, found.witness.bound), strict=True):
        assert again.lower <= before.upper and before.lower <= again.upper
    assert figures[0].lower > figures[1].upper
    # An event that proves nothing is told as that.
    weak = dataclasses.replace(found.witness, event=((None, None),))
    weak_figures = witness_figures(claim, weak, LIMITS)
    assert weak_figures is not None and weak_figures[0].upper < weak_figures[1].lower
    assert witness_figures(claim, found.witness, Limits(expired=lambda: True)) is None
    assert witness_figures(claim, found.witness, Limits(bits=64)) is None
