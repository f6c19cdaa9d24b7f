"""The outcome of a verification, from a re-proof and findings that are given: exit code, reason, progress."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta, timezone
from fractions import Fraction
from typing import Any

import pytest

import certificates.verify
from audit.composition import Part, compose
from audit.decide import decide
from audit.losses import enclose_losses
from audit.verdict import Decision, Limits, Verdict
from certificates.agreement import CONTRADICTED, UNCONFIRMED, Finding, Reproof
from certificates.compositions import issue_composition
from certificates.verify import Outcome, verify_certificate
from mechanisms.families import Gaussian
from mechanisms.numbers import InputError
from tests.certificates.conftest import Workshop
from tests.certificates.support import TIME

SLIP = Finding(CONTRADICTED, "a slip", is_slip=True)
FALSE, OPEN = Finding(CONTRADICTED, "false"), Finding(UNCONFIRMED, "open")
PROVED = Decision(verdict=Verdict.VERIFIED, reason="proved", bits=1, boxes=1)


@pytest.fixture
def given(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """The outcome where decide answers PROVED, and these are the findings of step 6."""

    def given(*findings: Finding, name: str = "laplace", change: Any = None, own: Decision = PROVED) -> Outcome:
        monkeypatch.setattr(certificates.verify, "decide", lambda *_: own)
        monkeypatch.setattr(certificates.verify, "disagreements", lambda *_: iter(findings))
        document = workshop.document(name)
        if change is not None:
            document["signatures"] = change(document["signatures"])
        return workshop.verify(json.dumps(document).encode())

    return given


def test_nothing_against_it(given: Callable[..., Outcome], workshop: Workshop) -> None:
    assert given() == Outcome("verified", "trusted", 0, "proved", workshop.statement("laplace"))


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        (lambda own: [], "missing", "not signed"),
        (lambda own: [{**own[0], "keyid": "0"}], "untrusted", "signed by no key that you trust"),
        (lambda own: [{**own[0], "keyid": "0"}] * 2, "untrusted", "signed by no key that you trust"),
        (
            lambda own: [{**own[0], "sig": "0"}],
            "invalid",
            "a signature under the name of a trusted key does not verify",
        ),
    ],
)
def test_signature_that_does_not_count(
    given: Callable[..., Outcome], workshop: Workshop, change: Any, status: Any, reason: str
) -> None:
    statement = workshop.statement("laplace")
    assert given(change=change) == Outcome("verified", status, 4, reason, statement)
    assert given(SLIP, change=change) == Outcome("verified", status, 4, reason, statement)
    assert given(OPEN, change=change) == Outcome("verified", status, 4, f"{reason}; open", statement)
    assert given(FALSE, SLIP, change=change) == Outcome("verified", status, 1, f"false; {reason}", statement)


@pytest.mark.parametrize(
    ("findings", "code", "reason"),
    [
        ([SLIP], 1, "a slip"),
        ([OPEN], 3, "open"),
        ([OPEN, FALSE], 1, "false; open"),
        ([OPEN, FALSE, SLIP], 1, "false; a slip; open"),
        ([OPEN, FALSE, SLIP, FALSE], 1, "false; a slip; false; and 1 more"),
        ([OPEN, OPEN, FALSE, SLIP, FALSE], 1, "false; a slip; false; and 2 more"),
    ],
)
def test_what_decides_comes_first(
    given: Callable[..., Outcome], findings: list[Finding], code: int, reason: str
) -> None:
    outcome = given(*findings)
    assert (outcome.signature, outcome.exit_code, outcome.reason) == ("trusted", code, reason)


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (InputError("claim.delta", "0", "more"), 2, "claim.delta: got 0, expected more"),
        (OverflowError("too large"), 3, "inconclusive: the re-proof met OverflowError (too large)"),
    ],
)
def test_reproof_that_fails(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, reason: str
) -> None:
    def fail(*_: object) -> Decision:
        raise error

    monkeypatch.setattr(certificates.verify, "decide", fail)
    outcome = workshop.verify(workshop.sound("laplace"))
    assert outcome == Outcome(None, "trusted", code, reason, workshop.statement("laplace"))


def test_what_cannot_be_read(workshop: Workshop) -> None:
    text = "document: got expecting value at line 1, column 1, expected one JSON document"
    assert workshop.verify(b"") == Outcome(None, None, 2, text, None)
    outcome = workshop.verify(workshop.with_field("statement.claim.kind", "trust-me"))
    assert outcome.exit_code == 2
    assert outcome.reason.startswith("signed.statement.claim.kind: got trust-me, expected ")


def test_one_signature_that_counts_is_enough(given: Callable[..., Outcome]) -> None:
    for change in (lambda own: [*own, {**own[0], "keyid": "0"}], lambda own: [{**own[0], "keyid": "0"}, *own]):
        assert given(change=change).signature == "trusted"


@pytest.mark.parametrize(
    ("verdict", "code", "reason"),
    [(Verdict.REFUTED, 1, "refuted: why; open"), (Verdict.INCONCLUSIVE, 3, "inconclusive: why; open")],
)
def test_verdict_of_the_reproof(given: Callable[..., Outcome], verdict: Verdict, code: int, reason: str) -> None:
    own = Decision(verdict=verdict, reason="why", bits=1, boxes=1)
    outcome = given(OPEN, own=own)
    assert (outcome.verdict, outcome.exit_code, outcome.reason) == (verdict.value, code, reason)


@pytest.mark.parametrize(
    ("scale", "reason"),
    [
        ("0x1.0e61239070a9cp+2", "proved; at the next smaller double the claim is refuted"),
        ("0x1.0e61239070a9bp+2", "proved; at the scale 0x1.0e61239070a9bp+2 the claim is refuted"),
        ("4", "proved; at the scale 4 the claim is refuted"),
        (None, "proved"),
    ],
)
def test_how_tight_the_scale_is(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, scale: str | None, reason: str
) -> None:
    monkeypatch.setattr(certificates.verify, "decide", lambda *_: PROVED)
    monkeypatch.setattr(certificates.verify, "disagreements", lambda *_: iter(()))
    outcome = workshop.verify(workshop.with_field("evidence.refuted_below", scale))
    assert (outcome.exit_code, outcome.reason) == (0, reason)


def test_next_smaller_double_of_a_scale_below_1(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(signed: Any) -> None:
        signed["statement"]["mechanism"]["sigma"] = "0.5"
        signed["evidence"]["refuted_below"] = "0x1.fffffffffffffp-2"

    monkeypatch.setattr(certificates.verify, "decide", lambda *_: PROVED)
    monkeypatch.setattr(certificates.verify, "disagreements", lambda *_: iter(()))
    assert workshop.verify(workshop.resigned(change)).reason.endswith("at the next smaller double the claim is refuted")


def test_what_is_held_against_the_record(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The re-proof: of the statement and of the one at the smaller scale, within the limits that were given."""
    seen: list[tuple[Any, Reproof]] = []

    def disagreements(recorded: Any, own: Reproof) -> Iterator[Finding]:
        seen.append((recorded, own))
        return iter(())

    monkeypatch.setattr(certificates.verify, "disagreements", disagreements)
    limits, statement = Limits(bits=2048), workshop.statement()
    verify_certificate(workshop.sound(), workshop.trust, limits)
    ((recorded, own),) = seen
    assert (own.statement, own.limits) == (statement, limits)
    assert own.decision == decide(statement, limits)
    assert own.below is not None and own.below.verdict is Verdict.REFUTED
    assert own.losses == enclose_losses(statement.mechanism, 192)
    assert recorded.refuted_below == Fraction(float.fromhex("0x1.0e61239070a9cp+2"))
    verify_certificate(workshop.sound("laplace"), workshop.trust, limits)
    assert seen[1][1].below is None


@pytest.mark.parametrize(
    ("limits", "asked"),
    [
        (Limits(bits=64), [192]),
        (Limits(bits=383), [192]),
        (Limits(bits=384), [192, 384]),
        (Limits(expired=lambda: True), []),
    ],
)
def test_losses_are_tried_with_more_bits(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, limits: Limits, asked: list[int]
) -> None:
    tried: list[int] = []

    def enclose(_: Any, bits: int) -> Any:
        tried.append(bits)
        raise ValueError

    monkeypatch.setattr(certificates.verify, "enclose_losses", enclose)
    monkeypatch.setattr(certificates.verify, "decide", lambda *_: PROVED)
    outcome = verify_certificate(workshop.sound("laplace"), workshop.trust, limits)
    assert tried == asked
    assert "losses: the limits do not allow to enclose them" in outcome.reason


@pytest.mark.parametrize(
    ("name", "shares"), [("laplace", [0.0, 0.5, 1.0]), ("gaussian", [0.0, 0.25, 0.5, 0.5, 0.75, 1.0])]
)
def test_progress_is_shared_between_the_two_scales(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, name: str, shares: list[float]
) -> None:
    given = Limits(bits=2048)

    def decide(statement: Any, limits: Any, progress: Any) -> Decision:
        assert limits is given
        for share in (0.0, 0.5, 1.0):
            progress(share)
        return PROVED

    monkeypatch.setattr(certificates.verify, "decide", decide)
    seen: list[float] = []
    verify_certificate(workshop.sound(name), workshop.trust, given, seen.append)
    assert seen == shares


def test_no_progress_is_told_where_nobody_listens(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(certificates.verify, "decide", lambda _, __, progress: told.append(progress) or PROVED)
    workshop.verify(workshop.sound())
    assert told == [None, None]


@pytest.fixture
def composition(workshop: Workshop) -> bytes:
    found = compose([Part(Gaussian(sensitivity=1, sigma=10), 7, None)], Fraction(1, 1000))
    return issue_composition(found, time=TIME, signer=workshop.key.signer)


def test_composition_is_proved_within_the_same_limits(
    workshop: Workshop, composition: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def reprove(recorded: Any, *rest: Any) -> Any:
        asked.append((recorded.delta, *rest))
        return "verified", [], "proved"

    monkeypatch.setattr(certificates.verify, "reprove_composition", reprove)
    limits, progress = Limits(bits=2048), [].append
    outcome = verify_certificate(composition, workshop.trust, limits, progress)
    assert outcome == Outcome("verified", "trusted", 0, "proved", None)
    assert asked == [(Fraction(1, 1000), limits, progress)]


@pytest.mark.parametrize("kind", ["claim", "composition"])
def test_strangers_have_limits_of_their_own(
    workshop: Workshop, composition: bytes, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    asked: list[Limits] = []
    monkeypatch.setattr(certificates.verify, "decide", lambda _, limits, __: asked.append(limits) or PROVED)
    monkeypatch.setattr(
        certificates.verify, "reprove_composition", lambda _, limits, __: asked.append(limits) or ("verified", [], "")
    )
    signed = workshop.sound("laplace") if kind == "claim" else composition
    unsigned = json.dumps({**json.loads(signed), "signatures": []}).encode()
    own, strangers = Limits(bits=2048), Limits(bits=512)
    for data, given in ((signed, strangers), (unsigned, strangers), (unsigned, None)):
        verify_certificate(data, workshop.trust, own, strangers=given)
    assert asked == [own, strangers, own]


@pytest.mark.parametrize("kind", ["claim", "composition"])
def test_time_of_issue_that_is_still_to_come(
    workshop: Workshop, composition: bytes, elsewhere: None, kind: str
) -> None:
    data = workshop.sound("laplace") if kind == "claim" else composition
    before = TIME.astimezone(timezone(timedelta(hours=2))) - timedelta(seconds=1)
    text = "issued at 2026-01-31T12:00:00Z, which is still to come by the clock here (2026-01-31T11:59:59Z)"
    for now, warning in ((before, text), (TIME, ""), (None, "")):
        outcome = verify_certificate(data, workshop.trust, now=now)
        assert (outcome.exit_code, outcome.warning) == (0, warning)
