"""Evidence that another search recorded, evaluated anew."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import pytest
from flint import fmpq

from audit.decide import decide, event_probabilities
from audit.exact import lower
from audit.recheck import is_event, is_shift_of_claim, reaches, witness_figures
from audit.theorems import grid_size
from audit.verdict import Limits, Verdict
from mechanisms.claims import Direct, Statement, Theorem32
from mechanisms.families import Declared, Gaussian, MultiGaussian, TruncatedStaircase
from tests.audit.support import ZOO, bits, multi_gaussian, point, statement
from tests.soundness.referee import CONTEXT, MPF

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
    assert reaches(claim, Fraction("0.8"), true, Limits(bits=64)) is None


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


@pytest.mark.parametrize("unit", ["1", "2.5", "1/7"])
def test_evidence_is_in_the_unit_of_the_query(unit: str) -> None:
    """The same witness and shifts, stretched: the same figures."""
    size = Fraction(unit)
    one = MultiGaussian(sensitivity=1, sigma="0.35", K=3, epsilon="1")
    wide = MultiGaussian(sensitivity=size, sigma=size * Fraction("0.35"), K=3, epsilon="1")
    density = multi_gaussian("0.35", 3, "1")[1]
    found = decide(statement(one, "1", "0.01"))
    assert found.verdict is Verdict.REFUTED and found.witness is not None
    event = tuple(tuple(None if end is None else end * size for end in part) for part in found.witness.event)
    stretched = dataclasses.replace(found.witness, shift=found.witness.shift * size, event=event)  # type: ignore[arg-type]
    figures = witness_figures(statement(wide, "1", "0.01"), stretched, LIMITS)
    assert figures is not None
    for again, before in zip(figures, (found.witness.probability_shifted, found.witness.bound), strict=True):
        assert again.lower <= before.upper and before.lower <= again.upper
    true = Fraction(str(density.divergence("0.8", "1")))
    for gap, reached in ((-Fraction(1, 10**11), True), (Fraction(1, 10**11), False)):
        assert reaches(statement(wide, "1", "0.01"), size * Fraction("0.8"), true * (1 + gap), LIMITS) is reached


def test_steps_reach_their_level_exactly() -> None:
    """Uniform noise on [−5Δ, 5Δ]: D(φ) = φ/(10Δ); equality reaches."""
    rows = [{"from": "0", "to": "35", "c": "0", "lines": [["0", "0"]]}]
    claim = statement(Declared(sensitivity=7, declared_pieces=rows), "0.7", "0.1")  # type: ignore[arg-type]
    for shift in (Fraction(7), Fraction(2), Fraction(1, 3)):
        level = shift / 70
        assert reaches(claim, shift, level, LIMITS) is True
        assert reaches(claim, shift, level + Fraction(1, 10**80), LIMITS) is False


def test_a_level_of_steps_that_needs_more_bits_is_open() -> None:
    mechanism = TruncatedStaircase(sensitivity=1, epsilon="1", gamma="0.3", T="2.7")
    claim = statement(mechanism, "1", "0.001")
    with CONTEXT.workdps(120):
        e1, e2, e3 = (CONTEXT.exp(-k) for k in (1, 2, 3))
        true = (3 * e2 + 2 * e3) / (3 + 10 * e1 + 10 * e2 + 4 * e3)  # the mass of (1.7, 2.7]
        level = Fraction(CONTEXT.nstr(true, 110)) * (1 + Fraction(1, 10**60))
    assert reaches(claim, Fraction(1), level, Limits(bits=128)) is None
    assert reaches(claim, Fraction(1), level, LIMITS) is False


def test_heights_that_need_more_bits_to_be_told_apart() -> None:
    rows: Any = [
        {"from": "0", "to": "1", "c": "0", "lines": [["1e-60", "0"]]},
        {"from": "1", "to": "2", "c": "0", "lines": [["0", "0"]]},
    ]
    claim = statement(Declared(sensitivity=1, declared_pieces=rows), "0", "0.1")
    assert reaches(claim, Fraction(1), Fraction(1, 4), LIMITS) is True
    assert reaches(claim, Fraction(1), Fraction(1, 4) + Fraction(1, 10**59), LIMITS) is False
    assert reaches(claim, Fraction(1), Fraction(1, 4), Limits(bits=128)) is None


def test_bits_rise_until_a_level_far_below_is_told_from_what_is_left_of_the_balls() -> None:
    """A level of 10^−60 asks for cells of such a charge: 128 bits do not do, 256 do."""
    mechanism, _ = multi_gaussian("0.35", 3, "1")
    claim = statement(mechanism, "1", "0.01")
    for limit, found in ((128, None), (255, None), (256, True), (4096, True)):
        assert reaches(claim, Fraction("0.8"), Fraction(1, 10**60), Limits(bits=limit)) is found
    tiny, here, there = (
        statement(Gaussian(sensitivity=1, sigma="40"), "1", "1e-300"),
        MPF(1) / 80 - 40,
        -MPF(1) / 80 - 40,
    )
    true = Fraction(CONTEXT.nstr(CONTEXT.ncdf(here) - CONTEXT.e * CONTEXT.ncdf(there), 40))
    assert 0 < true < Fraction(1, 10**340), "below every double"
    assert reaches(tiny, Fraction(1), true * (1 - Fraction(1, 10**9)), LIMITS) is True
    assert reaches(tiny, Fraction(1), true * (1 + Fraction(1, 10**9)), LIMITS) is False


def test_bits_rise_until_the_sides_of_a_witness_are_told_apart() -> None:
    """δ such that the two sides of an event differ in about the 70th digit: 192 bits do not tell, 384 do."""
    mechanism, _ = multi_gaussian("0.35", 3, "1")
    found = decide(statement(mechanism, "1", "0.01"))
    assert found.witness is not None
    event, shift = found.witness.event, found.witness.shift
    with bits(512):
        there, bound = event_probabilities(mechanism, [(point_or_none(a), point_or_none(b)) for a, b in event], shift,
                                           Direct(epsilon="1", delta="0.01"))  # fmt: skip
        slack = lower(there - bound)
    assert slack > 0
    for gap, above in ((Fraction(1, 10**70), True), (-Fraction(1, 10**70), False)):
        claim = statement(mechanism, "1", Fraction(1, 100) + slack * (1 - gap))
        assert witness_figures(claim, found.witness, Limits(bits=383)) is None
        figures = witness_figures(claim, found.witness, Limits(bits=384))
        assert figures is not None and (figures[0].lower > figures[1].upper) is above
        assert (figures[0].upper < figures[1].lower) is not above


def point_or_none(end: Fraction | None) -> fmpq | None:
    return None if end is None else point(end)
