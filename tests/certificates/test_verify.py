"""Verification: a zoo of defective certificates, each named by its defect, and what each must be taken for."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from securesystemslib.signer import CryptoSigner  # type: ignore[attr-defined]

import certificates.agreement
import certificates.verify
from audit.decide import decide
from audit.losses import enclose_losses
from audit.verdict import Limits
from certificates.canonical import canonical_bytes
from certificates.files import MAX_BYTES
from certificates.signing import PublicKey, sign
from certificates.trust import TrustStore
from certificates.verify import verify_certificate
from mechanisms.numbers import InputError

SIGMA = "0x1.0e61239070a9dp+2"
RAISED = "0x1.0e61239070a9ep+2"
LOWERED = "0x1.0e61239070a9cp+2"


@pytest.mark.parametrize("name", ["gaussian", "laplace", "theorem-4.2", "theorem-3.2", "peaked"])
def test_sound_certificate(workshop: Any, name: str) -> None:
    outcome = workshop.verify(workshop.sound(name))
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("verified", "trusted", 0), outcome.reason
    assert outcome.statement == workshop.statement(name)


def test_sound_certificate_of_a_false_claim(workshop: Any) -> None:
    outcome = workshop.verify(workshop.sound("refuted"))
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("refuted", "trusted", 1)
    assert outcome.reason.startswith("refuted: ")
    assert "records" not in outcome.reason


def test_reason_says_how_tight_the_scale_is(workshop: Any) -> None:
    assert "at the next smaller double the claim is refuted" in workshop.verify(workshop.sound()).reason
    assert "at the scale 4.1 the claim is refuted" in workshop.verify(workshop.sound("theorem-3.2")).reason
    assert "smaller" not in workshop.verify(workshop.sound("laplace")).reason


def test_other_white_space_is_the_same_certificate(workshop: Any) -> None:
    assert workshop.verify(json.dumps(workshop.document(), indent=None).encode()).exit_code == 0


# Malformed: exit code 2.


def _text(change: Callable[[str], str]) -> Callable[[Any], bytes]:
    return lambda workshop: change(workshop.sound().decode()).encode()


def _statement(path: str, value: Any) -> Callable[[Any], bytes]:
    return lambda workshop: workshop.with_field(f"statement.{path}", value)


MALFORMED: dict[str, tuple[Callable[[Any], bytes], str]] = {
    "empty": (lambda _: b"", "document"),
    "not_json": (lambda _: b"certificate", "document"),
    "truncated": (lambda workshop: workshop.sound()[:-100], "document"),
    "followed_by_another": (lambda workshop: workshop.sound() * 2, "document"),
    "duplicate_field": (
        _text(lambda text: text.replace('"verdict": "verified"', '"verdict": "refuted", "verdict": "verified"', 1)),
        "signed.verdict",
    ),
    "duplicate_signed": (_text(lambda text: text.replace('"signatures"', '"signed": {}, "signatures"')), "signed"),
    "unknown_field": (lambda workshop: workshop.with_field("trusted", True), "signed.trusted"),
    "unknown_field_in_the_statement": (_statement("mechanism.mean", "0"), "signed.statement.mechanism.mean"),
    "algorithm_in_the_signature": (
        _text(lambda text: text.replace('"keyid"', '"alg": "none", "keyid"')),
        "signatures[0].alg",
    ),
    "float": (_statement("claim.epsilon", 0.5), "signed.statement.claim.epsilon"),
    "nan": (_text(lambda text: text.replace('"1e-6"', "NaN", 1)), "signed.statement.claim.delta"),
    "huge_exponent_as_a_number": (
        _text(lambda text: text.replace('"1e-6"', "1e999999999", 1)), "signed.statement.claim.delta"
    ),
    "huge_exponent_as_text": (_statement("mechanism.sigma", "1e999999999"), "signed.statement.mechanism.sigma"),
    "huge_hex_exponent": (_statement("mechanism.sigma", "0x1p999999999"), "signed.statement.mechanism.sigma"),
    "megabyte_of_digits": (_statement("mechanism.sigma", "1" * 900_000), "signed.statement.mechanism.sigma"),
    "megabyte_of_fraction": (
        _statement("mechanism.sigma", f"1/{'3' * 900_000}"), "signed.statement.mechanism.sigma"
    ),
    "huge_count": (
        _statement("mechanism", {"family": "multi-gaussian", "sensitivity": "1", "sigma": "1", "K": 10**9}),
        "signed.statement.mechanism.K",
    ),
    "negative_sigma": (_statement("mechanism.sigma", "-4.3"), "signed.statement.mechanism.sigma"),
    "delta_of_one": (_statement("claim.delta", "1"), "signed.statement.claim.delta"),
    "unknown_family": (_statement("mechanism.family", "cauchy"), "signed.statement.mechanism.family"),
    "unknown_claim": (_statement("claim.kind", "trust-me"), "signed.statement.claim.kind"),
    "claim_about_another_family": (_statement("claim.kind", "theorem-4.2"), "claim.kind"),
    "nesting_of_100000": (lambda _: b'{"signed":' * 100_000, "document"),
    "nesting_in_the_statement": (
        _text(lambda text: text.replace('"1e-6"', "[" * 1000 + "]" * 1000, 1)), "document"
    ),
    "too_large": (lambda workshop: workshop.sound() + b" " * MAX_BYTES, "document"),
    "other_type": (lambda workshop: workshop.with_field("_type", "sigmacert receipt"), "signed._type"),
    "other_version": (lambda workshop: workshop.with_field("schema_version", "2"), "signed.schema_version"),
    "trust_store_for_a_certificate": (lambda workshop: workshop.trust.path.read_bytes(), "_type"),
    "signed_only": (lambda workshop: json.dumps(workshop.document()["signed"]).encode(), "_type"),
    "signatures_missing": (
        lambda workshop: json.dumps({"signed": workshop.document()["signed"]}).encode(), "signatures"
    ),
    "terminal_escape_in_the_note": (
        lambda workshop: workshop.with_field("evidence.note", "\x1b]0;verified\x07"), "signed.evidence.note"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(workshop: Any, name: str) -> None:
    change, where = MALFORMED[name]
    if name == "float":
        document = workshop.document()
        document["signed"]["statement"]["claim"]["epsilon"] = 0.5
        data = json.dumps(document).encode()
    else:
        data = change(workshop)
    start = time.process_time()
    outcome = workshop.verify(data)
    assert time.process_time() - start < 1.5
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == (None, None, 2)
    assert outcome.reason.startswith(f"{where}: got ")
    assert outcome.reason.isprintable()
    assert len(outcome.reason) < 250


# Signatures: exit code 4.


def _signatures(workshop: Any, change: Callable[[list[dict[str, str]]], Any]) -> Any:
    document = workshop.document()
    document["signatures"] = change(document["signatures"])
    return workshop.verify(json.dumps(document).encode())


def _one(key: str, value: Callable[[str], str]) -> Callable[[list[dict[str, str]]], Any]:
    return lambda signatures: [{**signatures[0], key: value(signatures[0][key])}]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda signatures: [], "missing"),
        (_one("keyid", lambda keyid: keyid.upper()), "untrusted"),
        (_one("keyid", lambda keyid: keyid[:-1]), "untrusted"),
        (_one("keyid", lambda keyid: ""), "untrusted"),
        (_one("sig", lambda sig: sig.upper()), "invalid"),
        (_one("sig", lambda sig: f" {sig}"), "invalid"),
        (_one("sig", lambda sig: f"{sig}\n"), "invalid"),
        (_one("sig", lambda sig: sig[:-2]), "invalid"),
        (_one("sig", lambda sig: ""), "invalid"),
        (_one("sig", lambda sig: "01" + "00" * 63), "invalid"),
        (_one("sig", lambda sig: sig[64:] + sig[:64]), "invalid"),
    ],
    ids=[
        "none",
        "keyid_upper_case",
        "keyid_short",
        "keyid_empty",
        "upper_case",
        "blank",
        "line_break",
        "short",
        "empty",
        "neutral",
        "halves_swapped",
    ],
)
def test_signature_that_does_not_count(workshop: Any, change: Any, status: str) -> None:
    outcome = _signatures(workshop, change)
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("verified", status, 4)


def test_signature_of_another_certificate(workshop: Any) -> None:
    other = workshop.document("laplace")["signatures"]
    outcome = _signatures(workshop, lambda _: other)
    assert (outcome.signature, outcome.exit_code) == ("invalid", 4)


def test_signed_by_an_unknown_key(workshop: Any) -> None:
    outcome = workshop.verify(workshop.resigned(lambda _: None, signer=CryptoSigner.generate_ed25519()))
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("verified", "untrusted", 4)
    assert "no key that you trust" in outcome.reason


def test_unknown_key_under_the_name_of_a_trusted_one(workshop: Any) -> None:
    document = workshop.document()
    _, signature = sign(CryptoSigner.generate_ed25519(), canonical_bytes(document["signed"]))
    outcome = _signatures(workshop, _one("sig", lambda _: signature))
    assert (outcome.signature, outcome.exit_code) == ("invalid", 4)


def test_empty_trust_store(workshop: Any, tmp_path: Any) -> None:
    outcome = verify_certificate(workshop.sound(), TrustStore(tmp_path))
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("verified", "untrusted", 4)


def _unknown(workshop: Any) -> dict[str, str]:
    keyid, signature = sign(CryptoSigner.generate_ed25519(), canonical_bytes(workshop.document()["signed"]))
    return {"keyid": keyid, "sig": signature}


def test_second_signature_by_an_unknown_key_takes_nothing_away(workshop: Any) -> None:
    unknown = _unknown(workshop)
    for change in (lambda own: [*own, unknown], lambda own: [unknown, *own]):
        assert _signatures(workshop, change).exit_code == 0


def test_same_signature_twice_counts_once(workshop: Any) -> None:
    assert _signatures(workshop, lambda own: own * 2).signature == "trusted"


def test_one_good_and_one_bad_signature_of_a_trusted_key(workshop: Any) -> None:
    for change in (
        lambda own: [*own, {**own[0], "sig": "0" * 128}],
        lambda own: [{**own[0], "sig": "0" * 128}, *own],
        lambda own: [{**own[0], "sig": "0" * 128}, _unknown(workshop)],
    ):
        outcome = _signatures(workshop, change)
        assert (outcome.signature, outcome.exit_code) == ("invalid", 4)


def test_key_that_is_no_longer_trusted(workshop: Any, tmp_path: Any) -> None:
    store = TrustStore(tmp_path / "store")
    store.add("a", PublicKey.of_signer(workshop.key.signer))
    assert verify_certificate(workshop.sound(), store).exit_code == 0
    store.remove("a")
    assert verify_certificate(workshop.sound(), store).exit_code == 4


# The limits and the re-proof.


def test_time_is_over(workshop: Any) -> None:
    outcome = verify_certificate(workshop.sound("peaked"), workshop.trust, Limits(expired=lambda: True))
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("inconclusive", "trusted", 3)
    assert outcome.reason.startswith("inconclusive: ")


def test_bad_signature_comes_before_inconclusive(workshop: Any) -> None:
    document = workshop.document("peaked")
    document["signatures"] = []
    limits = Limits(expired=lambda: True)
    outcome = verify_certificate(json.dumps(document).encode(), workshop.trust, limits)
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("inconclusive", "missing", 4)


def test_statement_that_cannot_be_decided(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise InputError("claim.delta", "0", "more")

    monkeypatch.setattr(certificates.verify, "decide", refuse)
    outcome = workshop.verify(workshop.sound())
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == (None, "trusted", 2)
    assert outcome.reason.startswith("claim.delta: got ")
    document = workshop.document()
    document["signatures"] = []
    outcome = workshop.verify(json.dumps(document).encode())
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == (None, "missing", 4)


@pytest.mark.parametrize("error", [ValueError("not finite"), OverflowError("too large"), MemoryError()])
@pytest.mark.parametrize("at_smaller_scale", [False, True])
def test_numbers_beyond_the_libraries_are_no_pass(
    workshop: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, at_smaller_scale: bool
) -> None:
    sigma = workshop.statement().mechanism.sigma

    def fail(statement: Any, decision: Any) -> Any:
        if at_smaller_scale == (statement.mechanism.sigma != sigma):
            raise error
        return decision

    _decide_with(monkeypatch, fail)
    outcome = workshop.verify(workshop.sound())
    assert (outcome.verdict, outcome.exit_code) == ("verified" if at_smaller_scale else None, 3)
    assert type(error).__name__ in outcome.reason


def test_refuted_stays_refuted_whatever_fails_after_it(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Any:
        raise OverflowError("too large")

    monkeypatch.setattr(certificates.verify, "disagreements", fail)
    outcome = workshop.verify(workshop.sound("refuted"))
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("refuted", "trusted", 1)


def test_losses_that_need_more_bits(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real, asked = enclose_losses, []

    def enclose(mechanism: Any, bits: int) -> Any:
        asked.append(bits)
        if bits < 500:
            raise ValueError("an enclosure that is not finite has no ends")
        return real(mechanism, bits)

    monkeypatch.setattr(certificates.verify, "enclose_losses", enclose)
    assert workshop.verify(workshop.sound()).exit_code == 0
    assert asked == [192, 384, 768]
    outcome = verify_certificate(workshop.sound(), workshop.trust, Limits(bits=256))
    assert (outcome.verdict, outcome.exit_code) == ("verified", 3)
    assert "losses" in outcome.reason


def _decide_with(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any, Any], Any]) -> None:
    def decide_and_change(statement: Any, *rest: Any) -> Any:
        return change(statement, decide(statement, *rest))

    monkeypatch.setattr(certificates.verify, "decide", decide_and_change)


def test_progress_rises_from_0_to_1(workshop: Any) -> None:
    seen: list[float] = []
    verify_certificate(workshop.sound("peaked"), workshop.trust, Limits(), seen.append)
    assert seen == sorted(seen)
    assert min(seen) >= 0
    assert max(seen) <= 1


def test_many_findings_are_counted(workshop: Any) -> None:
    other = workshop.document("peaked")["signed"]["statement"]
    outcome = workshop.verify(workshop.with_field("statement", other))
    assert outcome.exit_code == 1
    assert "more" in outcome.reason.split("; ")[-1]
    assert len(outcome.reason) < 1000


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(position=st.integers(0, 10_000), byte=st.integers(0, 255), cut=st.booleans())
def test_any_byte_changed_never_passes(workshop: Any, position: int, byte: int, cut: bool) -> None:
    data = bytearray(workshop.sound("laplace"))
    position %= len(data)
    if cut:
        del data[position]
    else:
        data[position] = byte
    try:
        same = json.loads(data) == json.loads(workshop.sound("laplace"))
    except ValueError:
        same = False
    outcome = verify_certificate(bytes(data), workshop.trust)
    assert (outcome.exit_code == 0) == same
    assert outcome.reason.isprintable()
