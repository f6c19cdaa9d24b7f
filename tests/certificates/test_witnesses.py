"""Findings about a recorded witness, the smaller scale that it refutes, and the spellings of σ."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import certificates.agreement
from audit.verdict import Decision, Verdict, Witness
from certificates.agreement import (
    CONTRADICTED,
    ENDS,
    FLOAT_SCALE,
    FLOATS,
    SPARE_INTERVALS,
    UNCONFIRMED,
    Finding,
    below,
    show,
)
from mechanisms.claims import Statement
from mechanisms.families import ScaledFamily
from tests.certificates.findings import (
    DIRECT,
    GRID_WITNESS,
    HELD,
    LIMITS,
    NO_SCALE,
    OPEN,
    REFUTED,
    TINY,
    WITNESS,
    against,
    between,
    findings,
    recorded,
    reproof,
    slip,
)


def contradicted(text: str) -> list[Finding]:
    return [Finding(CONTRADICTED, text)]


def unconfirmed(text: str) -> list[Finding]:
    return [Finding(UNCONFIRMED, text)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Every witness has the figures of WITNESS; what was asked for."""
    asked: list[tuple[Any, ...]] = []

    def figures(*given: Any) -> Any:
        asked.append(given)
        return WITNESS.probability_shifted, WITNESS.bound

    monkeypatch.setattr(certificates.agreement, "witness_figures", figures)
    return asked


def of(theirs: Witness | None, ours: Witness | None = WITNESS) -> list[Finding]:
    """What is said of ``theirs``, of a claim that is refuted."""
    return findings(reproof(verdict=REFUTED, witness=ours), witness=theirs)


def test_witness_is_evaluated_itself(asked: list[Any]) -> None:
    theirs = replace(WITNESS, shift=Fraction(1, 2), event=((None, Fraction(-8)),))
    assert of(theirs) == []
    assert asked == [(DIRECT, theirs, LIMITS)]


def test_witness_on_one_side_only(asked: list[Any]) -> None:
    assert of(None) == against("witness", "nothing", "a witness")
    assert of(WITNESS, None) == against("witness", "a witness", "nothing")
    assert of(None, None) == []
    assert asked == []


def test_witness_is_not_looked_at_where_a_search_ended_early(asked: list[Any]) -> None:
    assert findings(reproof(verdict=OPEN, witness=WITNESS), witness=None) == []
    assert asked == []


def test_figures_that_prove_nothing(asked: list[Any]) -> None:
    text = "witness: its own figures do not prove P(A − φ) > e^ε P(A) + threshold"
    assert of(replace(WITNESS, bound=between("0.1", "0.3"))) == contradicted(text)
    assert of(replace(WITNESS, bound=between("0.1", "0.29999999"))) == against(
        "witness.bound", "[0.1, 0.29999999]", "[0.1, 0.11]"
    )


def test_event_that_is_none(asked: list[Any]) -> None:
    expected = contradicted("witness.event: not disjoint intervals in order")
    assert of(replace(WITNESS, event=())) == expected
    assert of(replace(WITNESS, event=((Fraction(1), Fraction(0)),))) == expected


@pytest.mark.parametrize(("many", "evaluated"), [(4 + SPARE_INTERVALS, True), (5 + SPARE_INTERVALS, False)])
def test_very_many_intervals_are_not_evaluated(asked: list[Any], many: int, evaluated: bool) -> None:
    """The re-proof's own event has two."""
    event = tuple((Fraction(2 * i), Fraction(2 * i + 1)) for i in range(many))
    said = of(replace(WITNESS, event=event), replace(WITNESS, event=event[:2]))
    assert said == ([] if evaluated else unconfirmed("witness: the limits do not allow to evaluate it"))
    assert bool(asked) is evaluated


def test_figures_of_a_witness_are_compared(asked: list[Any]) -> None:
    for name, own in (("probability_shifted", WITNESS.probability_shifted), ("bound", WITNESS.bound)):
        edge = own.lower * (1 - ENDS)
        assert of(replace(WITNESS, **{name: replace(own, lower=edge)})) == []
        wrong = replace(own, lower=edge - TINY)
        assert of(replace(WITNESS, **{name: wrong})) == against(f"witness.{name}", show(wrong), show(own))


def test_witness_that_does_not_refute_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its figures are true to within the tolerance, and the truth is on the other side."""
    same = between("0.3", "0.3")
    monkeypatch.setattr(certificates.agreement, "witness_figures", lambda *_: (same, same))
    theirs = replace(WITNESS, probability_shifted=between(Fraction("0.3") + TINY, "0.30000001"), bound=same)
    assert of(theirs) == [
        *slip("witness.probability_shifted", show(theirs.probability_shifted), "[0.3, 0.3]"),
        Finding(CONTRADICTED, "witness: it does not refute the claim"),
    ]


@pytest.mark.parametrize(
    ("theirs", "ours", "placed"),
    [
        ({"shift": Fraction(0)}, WITNESS, True),
        ({"shift": Fraction(2)}, WITNESS, True),
        ({"shift": -TINY}, WITNESS, False),
        ({"shift": 2 + TINY}, WITNESS, False),
        ({"grid_index": 3}, WITNESS, False),
        ({"grid_size": 6}, WITNESS, False),
        ({"grid_index": 3, "grid_size": 6}, WITNESS, False),
        ({"grid_index": 3, "grid_size": 6}, GRID_WITNESS, True),
        ({"grid_index": 0, "grid_size": 6, "shift": Fraction(0)}, GRID_WITNESS, True),
        ({"grid_index": 6, "grid_size": 6, "shift": Fraction(2)}, GRID_WITNESS, True),
        ({"grid_index": 7, "grid_size": 6, "shift": Fraction(7, 3)}, GRID_WITNESS, False),
        ({"grid_index": -1, "grid_size": 6, "shift": Fraction(-1, 3)}, GRID_WITNESS, False),
        ({"grid_index": 3, "grid_size": 6, "shift": 1 + TINY}, GRID_WITNESS, False),
        ({"grid_index": 5, "grid_size": 10}, GRID_WITNESS, False),
        ({"grid_index": 3}, GRID_WITNESS, False),
        ({"grid_size": 6}, GRID_WITNESS, False),
        ({}, GRID_WITNESS, False),
    ],
)
def test_witness_stands_at_a_shift_of_the_claim(
    asked: list[Any], theirs: dict[str, Any], ours: Witness, placed: bool
) -> None:
    witness = replace(WITNESS, **theirs)
    text = f"witness.shift: {show(witness.shift)} is no shift of the claim"
    assert of(witness, ours) == ([] if placed else contradicted(text))
    assert bool(asked) is placed


# The smaller scale.


def smaller(verdict: Verdict, witness: Witness | None = WITNESS) -> Decision:
    return Decision(verdict=verdict, reason="too few bits", bits=1, boxes=1, witness=witness)


def test_smaller_scale_that_is_refuted(asked: list[Any]) -> None:
    own = reproof(below=smaller(REFUTED))
    assert findings(own, refuted_below=Fraction(4)) == []
    assert asked == []
    assert findings(own, refuted_below=Fraction(4), refutation=WITNESS) == []
    mechanism = DIRECT.mechanism
    assert isinstance(mechanism, ScaledFamily)
    assert asked == [(Statement(mechanism.with_sigma(Fraction(4)), DIRECT.claim), WITNESS, LIMITS)]
    without = reproof(below=smaller(REFUTED, None))
    expected = against("refutation", "a witness", "nothing")
    assert findings(without, refuted_below=Fraction(4), refutation=WITNESS) == expected


def test_smaller_scale_that_is_not_refuted() -> None:
    held = reproof(below=smaller(HELD))
    expected = against("refuted_below", "4", "that the claim holds there")
    assert findings(held, refuted_below=Fraction(4), refutation=WITNESS) == expected
    early = reproof(below=smaller(OPEN))
    expected = unconfirmed("refuted_below: at 4 the re-proof is inconclusive (too few bits)")
    assert findings(early, refuted_below=Fraction(4), refutation=WITNESS) == expected


def test_refutation_of_no_scale() -> None:
    expected = contradicted("refutation: a witness is recorded, but no scale that it refutes")
    assert findings(reproof(below=smaller(REFUTED)), refutation=WITNESS) == expected


@pytest.mark.parametrize("scale", [Fraction("4.5"), 5 - TINY, Fraction(0), Fraction(-1)])
def test_scale_that_is_not_below(scale: Fraction) -> None:
    expected = f"refuted_below: {show(scale)} is no scale below the mechanism's own, 4.5"
    own = reproof(below=smaller(REFUTED))
    assert findings(own, refuted_below=scale, float_sigma=None) == contradicted(expected)
    assert below(DIRECT, recorded(own, refuted_below=scale)) is None


def test_scale_that_was_not_decided() -> None:
    expected = contradicted("refuted_below: 4 is no scale below the mechanism's own, 4.5")
    assert findings(reproof(), refuted_below=Fraction(4)) == expected


def test_scale_of_a_mechanism_without_one() -> None:
    expected = contradicted("refuted_below: 4 is no scale below the mechanism's own, nothing")
    own = reproof(NO_SCALE, below=smaller(REFUTED))
    assert findings(own, refuted_below=Fraction(4)) == expected


def test_statement_at_the_smaller_scale() -> None:
    own = reproof()
    assert below(DIRECT, recorded(own)) is None
    for scale in (Fraction("4.5") - TINY, TINY):
        found = below(DIRECT, recorded(own, refuted_below=scale))
        assert found is not None
        assert (found.mechanism, found.claim) == (DIRECT.mechanism.with_sigma(scale), DIRECT.claim)  # type: ignore[attr-defined]


# The spellings of σ.


@pytest.mark.parametrize("name", ["sigma", "sigma_decimal"])
def test_spellings_of_the_scale(name: str) -> None:
    def said(shown: str, is_slip: bool = False) -> list[Finding]:
        text = f"scales.{name}: the certificate records {shown}, the statement names 4.5"
        return [Finding(CONTRADICTED, text, is_slip)]

    own, sigma = reproof(), Fraction("4.5")
    assert findings(own, **{name: sigma + sigma * FLOATS}) == said(show(sigma + sigma * FLOATS), is_slip=True)
    far = sigma + sigma * FLOATS + TINY
    assert findings(own, **{name: far}) == said(show(far))
    assert findings(own, **{name: None}) == said("nothing")


@pytest.mark.parametrize("name", ["sigma", "sigma_decimal"])
def test_spelling_of_no_scale(name: str) -> None:
    text = f"scales.{name}: the certificate records 1, the statement names nothing"
    assert findings(reproof(NO_SCALE), **{name: Fraction(1)}) == contradicted(text)


def test_scale_that_is_no_double() -> None:
    """A third has no spelling as a double; 0.1 has a decimal that is not the double."""
    mechanism = DIRECT.mechanism
    assert isinstance(mechanism, ScaledFamily)
    third = reproof(Statement(mechanism.with_sigma(Fraction(1, 3)), DIRECT.claim))
    fits = {"sigma": None, "sigma_decimal": None, "float_sigma": Fraction(1, 3)}
    assert findings(third, **fits) == []
    text = "scales.sigma: the certificate records 1/3, the statement names 1/3"
    assert findings(third, **fits | {"sigma": Fraction(1, 3)}) == contradicted(text)
    tenth = reproof(Statement(mechanism.with_sigma(Fraction(0.1)), DIRECT.claim))
    fits = {"sigma": Fraction(0.1), "sigma_decimal": Fraction("0.1"), "float_sigma": Fraction(0.1)}
    assert findings(tenth, **fits) == []


@pytest.mark.parametrize(
    ("tight", "refuted", "fits"),
    [
        (Fraction("4.5"), None, True),
        (Fraction("4.5") * (1 + FLOAT_SCALE), None, True),
        (Fraction("4.5") * (1 + FLOAT_SCALE) + TINY, None, False),
        (TINY, None, True),
        (Fraction(0), None, False),
        (-TINY, None, False),
        (4 * (1 - FLOAT_SCALE), Fraction(4), True),
        (4 * (1 - FLOAT_SCALE) - TINY, Fraction(4), False),
        (None, Fraction(4), True),
    ],
)
def test_float_scale_lies_between_what_is_refuted_and_what_holds(
    tight: Fraction | None, refuted: Fraction | None, fits: bool
) -> None:
    own = reproof(below=smaller(REFUTED))
    expected = [] if fits else against("scales.float_sigma", show(tight), "that it is not the tight scale")
    assert findings(own, refuted_below=refuted, float_sigma=tight) == expected


def test_float_scale_of_a_mechanism_without_one() -> None:
    expected = against("scales.float_sigma", "1", "that it is not the tight scale")
    assert findings(reproof(NO_SCALE), float_sigma=Fraction(1)) == expected
