"""Findings one by one: a record and a re-proof, equal but for one place, and exactly what is said of it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import certificates.agreement
from audit.losses import Losses
from audit.verdict import Condition, Enclosure, Verdict
from certificates.agreement import ENDS, FLOATS, LOSS_ENDS, NEGLIGIBLE, UNCONFIRMED, Finding, Reproof, show
from mechanisms.claims import Statement
from tests.certificates.findings import (
    CONDITIONS,
    DELTA,
    DIRECT,
    HELD,
    LIMITS,
    NO_SCALE,
    OPEN,
    REFUTED,
    SUP,
    TINY,
    ZCDP,
    against,
    between,
    findings,
    reproof,
    shares,
    slip,
)


@pytest.mark.parametrize("statement", [DIRECT, ZCDP, NO_SCALE])
@pytest.mark.parametrize("verdict", [HELD, REFUTED, OPEN])
def test_what_is_equal_agrees(statement: Statement, verdict: Verdict) -> None:
    assert findings(reproof(statement, verdict=verdict)) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "nothing"),
        ("as it is", "as it is"),
        (3, "3"),
        (Verdict.REFUTED, "refuted"),
        (Fraction(1, 3), "1/3"),
        (between("1/3", 2), "[1/3, 2]"),
        (Fraction("1.0000000000000000000001"), "1.0000000000000000000001"),
        (Fraction("1.00000000000000000000001"), "1"),
        (Fraction(2, 10**13 - 1), "2/9999999999999"),
        (Fraction(12345678901, 123456789012), "12345678901/123456789012"),
        (Fraction(123456789011, 123456789012), "0.99999999999190003"),
        (Fraction(10**331), "1e331"),
        (Fraction(1, 10**331), "1e-331"),
        (Fraction(10**332), "inf"),
        (Fraction(1, 10**332), "0"),
    ],
)
def test_values_are_shown_in_few_characters(value: object, text: str) -> None:
    """Exact where that is at most 24 characters."""
    assert show(value) == text


# Enclosures: the losses, which may differ by 1e-12 of an end, and must meet.

ROOM = 1000 * LOSS_ENDS


@pytest.mark.parametrize(
    ("recorded", "own", "is_slip"),
    [
        (between(1000 - ROOM, 1001), between(1000, 1001), None),
        (between(1000 + ROOM, 1001), between(1000, 1001), None),
        (between(1000, 1001 + 1001 * LOSS_ENDS), between(1000, 1001), None),
        (between(1000 - ROOM - TINY, 1001), between(1000, 1001), False),
        (between(1000 + ROOM + TINY, 1001), between(1000, 1001), False),
        (between(1000, 1001 + 1001 * LOSS_ENDS + TINY), between(1000, 1001), False),
        (between(1000, 1001 - 1001 * LOSS_ENDS - TINY), between(1000, 1001), False),
        (between(1000, 1000 + ROOM / 2), between(1000, 1000), None),
        (between(1000 - ROOM / 2, 1000), between(1000, 1000), None),
        (between(1000 + TINY, 1000 + ROOM / 2), between(1000, 1000), True),
        (between(1000 - ROOM / 2, 1000 - TINY), between(1000, 1000), True),
        (between(1000 + ROOM / 2, 1000 - ROOM / 2), between(1000, 1000), True),
    ],
)
def test_losses_are_held_to_their_last_digits(recorded: Enclosure, own: Enclosure, is_slip: bool | None) -> None:
    for name in ("l1", "l2"):
        losses = replace(Losses(between(1000, 1001), between(5, 5)), **{name: own})
        expected = [] if is_slip is None else against(f"losses.{name}", show(recorded), show(own), is_slip)
        assert findings(reproof(losses=losses), **{name: recorded}) == expected


def test_losses_that_the_limits_do_not_allow() -> None:
    assert findings(reproof(losses=None), l1=between(7, 7), float_l1=None) == [
        Finding(UNCONFIRMED, "losses: the limits do not allow to enclose them")
    ]


def test_float_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates.agreement, "float_losses", lambda _: (1024.0, None))
    own = reproof()
    fits = {"float_l1": Fraction(1024), "float_l2": None}
    room = 1024 * FLOATS
    assert findings(own, **fits) == []
    for edge in (1024 - room, 1024 + room):
        assert findings(own, **fits | {"float_l1": edge}) == []
    for outside in (1024 - room - TINY, 1024 + room + TINY):
        assert findings(own, **fits | {"float_l1": outside}) == against("float_figures.l1", show(outside), "1024.0")
    assert findings(own, **fits | {"float_l1": None}) == against("float_figures.l1", "nothing", "1024.0")
    assert findings(own, **fits | {"float_l2": Fraction(3)}) == against("float_figures.l2", "3", "nothing")


# The verdict.


def no_proof(verdict: str) -> Finding:
    return Finding(UNCONFIRMED, f"verdict: the certificate records no proof; the re-proof says {verdict}")


@pytest.mark.parametrize(
    ("own", "recorded", "changes", "expected"),
    [
        (OPEN, HELD, {}, []),
        (OPEN, REFUTED, {}, []),
        (HELD, REFUTED, {}, against("verdict", "refuted", "verified")),
        (REFUTED, HELD, {}, against("verdict", "verified", "refuted")),
        (HELD, OPEN, {"sup_delta": shares("1/2", 1), "conditions": ()}, against("verdict", "inconclusive", "verified")),
        (HELD, OPEN, {"sup_delta": shares("1/2", "1.01")}, against("verdict", "inconclusive", "verified")),
        (HELD, OPEN, {"sup_delta": shares("1/2", "1.01"), "conditions": ()}, "verified"),
        (HELD, OPEN, {"sup_delta": None, "conditions": ()}, "verified"),
        (
            HELD, OPEN,
            {"sup_delta": None, "conditions": (CONDITIONS[0], replace(CONDITIONS[1], verdict=OPEN))},
            "verified",
        ),
        (REFUTED, OPEN, {"sup_delta": None, "conditions": ()}, "refuted"),
    ],
)  # fmt: skip
def test_verdict(own: Verdict, recorded: Verdict, changes: dict[str, Any], expected: Any) -> None:
    if isinstance(expected, str):
        expected = [no_proof(expected)]
    assert findings(reproof(verdict=own), verdict=recorded, **changes) == expected


def test_verdict_of_a_claim_without_a_supremum() -> None:
    assert findings(reproof(ZCDP), verdict=OPEN) == against("verdict", "inconclusive", "verified")
    assert findings(reproof(ZCDP), verdict=OPEN, conditions=()) == [no_proof("verified")]


# sup D, and what is left.

SPARE = ENDS * DELTA / NEGLIGIBLE


@pytest.mark.parametrize(
    ("own", "recorded", "agrees"),
    [
        (SUP, between(SUP.lower * (1 - ENDS) - SPARE, SUP.upper), True),
        (SUP, between(SUP.lower * (1 - ENDS) - SPARE - TINY, SUP.upper), False),
        (SUP, between(SUP.lower, SUP.upper * (1 + ENDS) + SPARE), True),
        (SUP, between(SUP.lower, SUP.upper * (1 + ENDS) + SPARE + TINY), False),
        (shares(0, "1/2"), between(SPARE, DELTA / 2), True),
        (shares(0, "1/2"), between(SPARE + TINY, DELTA / 2), False),
        (shares("1/2", 1), between(DELTA / 2, DELTA), True),
        (shares(1, 1), shares(1, 1), True),
        (shares("1/2", 1), between(DELTA / 2, DELTA + TINY), False),
        (shares("1/2", 1) , between(DELTA / 2, DELTA - TINY), True),
        (between(DELTA / 2, DELTA + TINY), shares("1/2", 1), False),
        (shares(1, 2), between(DELTA + TINY, 2 * DELTA), False),
        (between(DELTA + TINY, 2 * DELTA), shares(1, 2), False),
        (SUP, None, False),
        (None, SUP, False),
        (None, None, True),
    ],
)  # fmt: skip
def test_supremum(own: Enclosure | None, recorded: Enclosure | None, agrees: bool) -> None:
    shift = None if own is None or recorded is None else Fraction(2)
    expected = [] if agrees else against("sup_delta", show(recorded), show(own))
    assert findings(reproof(sup_delta=own, worst_shift=shift), sup_delta=recorded) == expected


@pytest.mark.parametrize("early", ["recorded", "own"])
@pytest.mark.parametrize(
    ("own", "recorded", "agrees"),
    [
        (SUP, shares(0, 1), True),
        (SUP, shares("4/5", 1), True),
        (SUP, between(SUP.upper + TINY, 2 * DELTA), False),
        (SUP, between(0, SUP.lower - TINY), False),
        (SUP, None, True),
        (None, SUP, True),
        (None, None, True),
    ],
)
def test_supremum_of_a_search_that_ended_early(
    early: str, own: Enclosure | None, recorded: Enclosure | None, agrees: bool
) -> None:
    verdict = {"own": OPEN, "recorded": HELD} if early == "own" else {"own": REFUTED, "recorded": OPEN}
    mine = reproof(verdict=verdict["own"], sup_delta=own, conditions=())
    expected = [] if agrees else against("sup_delta", show(recorded), show(own))
    if early == "recorded":
        proves = recorded is not None and recorded.upper <= DELTA
        expected = (against("verdict", "inconclusive", "refuted") if proves else [no_proof("refuted")]) + expected
    assert findings(mine, verdict=verdict["recorded"], sup_delta=recorded) == expected


@pytest.mark.parametrize(
    ("name", "value"), [("sup_delta", SUP), ("worst_shift", Fraction(1)), ("slack", between(0, 1))]
)
def test_supremum_where_the_claim_has_none(name: str, value: object) -> None:
    changes = {"slack": None, name: value}
    assert findings(reproof(ZCDP), **changes) == against(name, show(value), "that zcdp has none")


def test_slack() -> None:
    own = reproof()
    left = between(DELTA - SUP.upper, DELTA - SUP.lower)
    low, high = left.lower * LOSS_ENDS, left.upper * LOSS_ENDS
    for fits in (between(left.lower - low, left.upper + high), between(left.lower + low, left.upper - high)):
        assert findings(own, slack=fits) == []
    for wrong in (
        between(left.lower - low - TINY, left.upper),
        between(left.lower, left.upper + high + TINY),
        None,
    ):
        assert findings(own, slack=wrong) == against("slack", show(wrong), show(left))
    without = reproof(sup_delta=None, worst_shift=None)
    assert findings(without, slack=left) == against("slack", show(left), "nothing")


def test_negative_slack() -> None:
    """A bound that is broken leaves less than nothing; the tolerance is as wide there."""
    own = reproof(verdict=REFUTED, sup_delta=shares(2, 3))
    left = between(-2 * DELTA, -DELTA)
    room = DELTA * LOSS_ENDS
    assert findings(own, slack=between(left.lower - 2 * room, left.upper + room)) == []
    wrong = between(left.lower, left.upper + room + TINY)
    assert findings(own, slack=wrong) == against("slack", show(wrong), show(left))


# The worst shift.


@pytest.mark.parametrize(
    ("placed", "attained", "expected"),
    [
        (True, True, []),
        (True, False, against("worst_shift", "0.5", "2")),
        (False, True, against("worst_shift", "0.5", "2")),
        (True, None, [Finding(UNCONFIRMED, "worst_shift: the limits do not allow to evaluate D at 0.5")]),
        (None, True, [Finding(UNCONFIRMED, "worst_shift: the limits do not allow to evaluate D at 0.5")]),
    ],
)
def test_another_worst_shift_must_attain_the_lower_end(
    monkeypatch: pytest.MonkeyPatch, placed: bool | None, attained: bool | None, expected: list[Finding]
) -> None:
    own, shift, asked = reproof(), Fraction(1, 2), []
    monkeypatch.setattr(certificates.agreement, "is_shift_of_claim", lambda *given: asked.append(given) or placed)
    monkeypatch.setattr(certificates.agreement, "reaches", lambda *given: asked.append(given) or attained)
    assert findings(own, worst_shift=shift) == expected
    assert asked[0] == (DIRECT, shift, LIMITS)
    assert asked[1:] == ([(DIRECT, shift, SUP.lower * (1 - ENDS), LIMITS)] if placed else [])


def test_own_worst_shift_is_not_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates.agreement, "is_shift_of_claim", lambda *_: pytest.fail("asked"))
    assert findings(reproof()) == []


@pytest.mark.parametrize(
    ("shift", "inside"), [(Fraction(0), True), (Fraction(2), True), (-TINY, False), (2 + TINY, False)]
)
def test_worst_shift_where_nothing_is_attained(shift: Fraction, inside: bool) -> None:
    outside = against("worst_shift", show(shift), "that it is no shift of the claim")
    early = reproof(verdict=OPEN, worst_shift=Fraction(1))
    assert findings(early, worst_shift=shift) == ([] if inside else outside)
    without = reproof(sup_delta=None, worst_shift=Fraction(1))
    assert findings(without, worst_shift=shift) == (against("worst_shift", show(shift), "1") if inside else outside)
    assert findings(without) == []
    assert findings(without, worst_shift=None) == against("worst_shift", "nothing", "1")
    assert findings(reproof(), worst_shift=None) == against("worst_shift", "nothing", "2")


# The conditions of a theorem.


def _conditions(own: Reproof, number: int, **changes: Any) -> list[Finding]:
    conditions = list(own.decision.conditions)
    conditions[number] = replace(conditions[number], **changes)
    return findings(own, conditions=tuple(conditions))


def test_conditions() -> None:
    own = reproof()
    assert findings(own, conditions=CONDITIONS[:1]) == against("conditions", "1", "2")
    assert _conditions(own, 1, name="(9)") == against("conditions[1].name", "(9)", "(5a)")
    assert _conditions(own, 1, demand="any") == against("conditions[1].demand", "any", "below 0")
    assert _conditions(own, 0, verdict=REFUTED) == against("conditions[0].verdict", "refuted", "verified")
    early = reproof(verdict=OPEN)
    assert findings(early, conditions=()) == []


@pytest.mark.parametrize(("statement", "scale"), [(DIRECT, DELTA), (ZCDP, Fraction(1, 8))])
def test_value_of_a_condition(statement: Statement, scale: Fraction) -> None:
    """To within its own width and 1e-6 of the end; up to 1e-6 of δ or ρ it is a slip of the statement's last digit."""
    own = reproof(statement)
    edge = 3 * (1 - ENDS) - Fraction(1, 2)
    assert _conditions(own, 0, value=between(edge, "3.5")) == []
    wrong = between(edge - TINY, "3.5")
    assert _conditions(own, 0, value=wrong) == against("conditions[0].value", show(wrong), "[3, 3.5]")
    exact = -7 * (1 + ENDS)
    assert _conditions(own, 1, value=between(exact, -7)) == []
    near = between(exact - ENDS * scale, -7)
    assert _conditions(own, 1, value=near) == slip("conditions[1].value", show(near), "[-7, -7]")
    far = between(exact - ENDS * scale - TINY, -7)
    assert _conditions(own, 1, value=far) == against("conditions[1].value", show(far), "[-7, -7]")


def test_value_of_a_condition_on_the_other_side_of_0() -> None:
    zero = Condition("(4a)", "at least 0", between(0, 0), HELD)
    own = reproof(conditions=(zero,))
    assert findings(own) == []
    for wrong in (between(0, TINY), between(TINY, 0)):
        assert _conditions(own, 0, value=wrong) == against("conditions[0].value", show(wrong), "[0, 0]")
    own = reproof(conditions=(replace(zero, value=between(TINY, TINY)),))
    half = between(0, TINY)
    expected = against("conditions[0].value", show(half), show(between(TINY, TINY)))
    assert _conditions(own, 0, value=half) == expected
