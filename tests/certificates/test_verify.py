"""Verification: a zoo of defective certificates, each named by its defect, and what each must be taken for."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from securesystemslib.signer import CryptoSigner  # type: ignore[attr-defined]

import certificates.verify
from audit.decide import decide
from audit.losses import enclose_losses
from audit.verdict import Limits, Verdict
from certificates.canonical import canonical_bytes
from certificates.files import MAX_BYTES
from certificates.signing import PublicKey, sign
from certificates.trust import TrustStore
from certificates.verify import verify_certificate
from mechanisms.numbers import InputError, read_real

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
    start = time.perf_counter()
    outcome = workshop.verify(data)
    assert time.perf_counter() - start < 1.5
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


# The statement edited, with or without a new signature.


def _sigma(workshop: Any, sigma: str, everywhere: bool) -> Any:
    text = workshop.sound().decode()
    return workshop.verify(text.replace(f'"sigma": "{SIGMA}"', f'"sigma": "{sigma}"', -1 if everywhere else 1).encode())


@pytest.mark.parametrize("everywhere", [False, True])
def test_last_digit_of_sigma_raised(workshop: Any, everywhere: bool) -> None:
    outcome = _sigma(workshop, RAISED, everywhere)
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("verified", "invalid", 4)


@pytest.mark.parametrize("everywhere", [False, True])
def test_last_digit_of_sigma_lowered(workshop: Any, everywhere: bool) -> None:
    outcome = _sigma(workshop, LOWERED, everywhere)
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("refuted", "invalid", 1)
    assert outcome.reason.startswith("refuted: ")


def test_last_digit_of_sigma_raised_and_signed_again(workshop: Any) -> None:
    """The other figures nearly fit; but the signature counts, and says that they are of this statement."""
    outcome = workshop.verify(workshop.with_field("statement.mechanism.sigma", RAISED))
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("verified", "trusted", 1)
    assert "scales.sigma" in outcome.reason


@pytest.mark.parametrize(("epsilon", "code"), [("1.0000001", 4), ("0.9999999", 1), ("2", 1)])
def test_epsilon_edited(workshop: Any, epsilon: str, code: int) -> None:
    document = workshop.document()
    document["signed"]["statement"]["claim"]["epsilon"] = epsilon
    outcome = workshop.verify(json.dumps(document).encode())
    assert outcome.exit_code in (code, 1)
    assert outcome.signature == "invalid"


def test_statement_of_another_certificate(workshop: Any) -> None:
    other = workshop.document("laplace")["signed"]["statement"]
    outcome = workshop.verify(workshop.with_field("statement", other))
    assert (outcome.verdict, outcome.exit_code) == ("verified", 1)


def test_false_claim_with_the_verdict_verified(workshop: Any) -> None:
    outcome = workshop.verify(workshop.with_field("verdict", "verified", "refuted"))
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("refuted", "trusted", 1)


@pytest.mark.parametrize("verdict", ["refuted", "inconclusive"])
def test_verdict_edited(workshop: Any, verdict: str) -> None:
    outcome = workshop.verify(workshop.with_field("verdict", verdict))
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("verified", "trusted", 1)
    assert f"the certificate records {verdict}, the re-proof says verified" in outcome.reason


# Evidence edited and signed again by a trusted key: exit code 1.

EDITED: dict[str, tuple[str, str, Any]] = {
    "sup_delta_looser": ("gaussian", "evidence.sup_delta.upper", "1.1e-6"),
    "sup_delta_tighter": ("gaussian", "evidence.sup_delta.upper", "9.99e-7"),
    "sup_delta_over_the_threshold": ("gaussian", "evidence.sup_delta.upper", "1.0000000001e-6"),
    "sup_delta_lower_end_looser": ("gaussian", "evidence.sup_delta.lower", "0"),
    "sup_delta_lower_end_tighter": ("gaussian", "evidence.sup_delta.lower", "1.00001e-6"),
    "sup_delta_missing": ("gaussian", "evidence.sup_delta", None),
    "sup_delta_where_none_is_proved": ("theorem-4.2", "evidence.sup_delta", {"lower": "0", "upper": "1e-5"}),
    "worst_shift_outside": ("gaussian", "evidence.worst_shift", "1.5"),
    "worst_shift_negative": ("gaussian", "evidence.worst_shift", "-1"),
    "worst_shift_where_d_is_small": ("gaussian", "evidence.worst_shift", "0.5"),
    "worst_shift_beside_the_peak": ("peaked", "evidence.worst_shift", "1.9"),
    "worst_shift_missing": ("gaussian", "evidence.worst_shift", None),
    "worst_shift_where_none_is_proved": ("theorem-4.2", "evidence.worst_shift", "1"),
    "worst_shift_outside_where_none_is_proved": ("theorem-4.2", "evidence.worst_shift", "2"),
    "worst_shift_off_the_grid": ("theorem-3.2", "evidence.worst_shift", "0x1.fffffffffffffp-1"),
    "slack": ("gaussian", "evidence.slack.upper", "1e-7"),
    "slack_missing": ("gaussian", "evidence.slack", None),
    "slack_where_there_is_none": ("theorem-4.2", "evidence.slack", {"lower": "0", "upper": "1e-5"}),
    "witness_of_a_true_claim": (
        "gaussian", "evidence.witness",
        {"shift": "1", "event": [[None, "-18"]], "probability_shifted": {"lower": "0.5", "upper": "0.5"},
         "bound": {"lower": "0.4", "upper": "0.4"}, "grid_index": None, "grid_size": None},
    ),
    "witness_missing": ("refuted", "evidence.witness", None),
    "conditions_missing": ("theorem-4.2", "evidence.conditions", []),
    "condition_where_there_is_none": (
        "gaussian", "evidence.conditions",
        [{"name": "(4a)", "demand": "any", "value": {"lower": "0", "upper": "1"}, "verdict": "verified"}],
    ),
    "condition_renamed": ("theorem-4.2", "evidence.conditions.0.name", "(4b)"),
    "condition_demands_less": ("theorem-4.2", "evidence.conditions.1.demand", "any"),
    "condition_verdict": ("theorem-4.2", "evidence.conditions.0.verdict", "refuted"),
    "condition_value_looser": ("theorem-4.2", "evidence.conditions.1.value.upper", "0.2"),
    "condition_value_tighter": ("theorem-4.2", "evidence.conditions.1.value.lower", "0.1035126"),
    "condition_value_of_another_sign": ("theorem-4.2", "evidence.conditions.0.value.lower", "-1e-17"),
    "refuted_below_is_sigma": ("gaussian", "evidence.refuted_below", SIGMA),
    "refuted_below_is_larger": ("gaussian", "evidence.refuted_below", "5"),
    "refuted_below_is_negative": ("gaussian", "evidence.refuted_below", "-1"),
    "refuted_below_where_there_is_no_scale": ("laplace", "evidence.refuted_below", "0.5"),
    "refuted_below_where_the_claim_holds": ("peaked", "evidence.refuted_below", "0.69"),
    "refuted_below_missing": ("gaussian", "evidence.refuted_below", None),
    "refutation_with_other_figures": ("gaussian", "evidence.refutation.probability_shifted.upper", "0.5"),
    "refutation_with_another_bound": ("gaussian", "evidence.refutation.bound.lower", "1e-9"),
    "refutation_that_proves_nothing": (
        "gaussian", "evidence.refutation.bound", {"lower": "0.0001", "upper": "0.0001"}
    ),
    "refutation_with_an_empty_event": ("gaussian", "evidence.refutation.event", []),
    "refutation_with_an_interval_twice": (
        "gaussian", "evidence.refutation.event", [[None, "-18.348291"], [None, "-18.348291"]]
    ),
    "refutation_with_intervals_that_overlap": (
        "gaussian", "evidence.refutation.event", [[None, "-18.3"], ["-18.4", "-18.2"]]
    ),
    "refutation_with_an_interval_turned_round": (
        "gaussian", "evidence.refutation.event", [["-18", "-19"]]
    ),
    "refutation_with_another_event": ("gaussian", "evidence.refutation.event", [[None, "-10"]]),
    "refutation_at_another_shift": ("gaussian", "evidence.refutation.shift", "0.5"),
    "refutation_outside": ("gaussian", "evidence.refutation.shift", "2"),
    "refutation_on_a_grid_that_is_none": ("gaussian", "evidence.refutation.grid_size", "10"),
    "refutation_on_another_grid": ("theorem-3.2", "evidence.refutation.grid_size", "10"),
    "refutation_on_no_grid": ("theorem-3.2", "evidence.refutation.grid_index", None),
    "refutation_beside_its_grid_point": ("theorem-3.2", "evidence.refutation.shift", "0.99"),
    "loss_l1_looser": ("gaussian", "losses.l1.upper", "3.4"),
    "loss_l1_smaller": ("gaussian", "losses.l1", {"lower": "3", "upper": "3.1"}),
    "loss_l2_tighter": ("gaussian", "losses.l2", {"lower": "17.84", "upper": "17.84"}),
    "float_l1": ("gaussian", "float_figures.l1", "3.37"),
    "float_l2_missing": ("gaussian", "float_figures.l2", None),
    "scale_of_another": ("gaussian", "scales.sigma", "0x1p+2"),
    "scale_missing": ("gaussian", "scales.sigma", None),
    "scale_where_there_is_none": ("laplace", "scales.sigma", "1"),
    "decimal_of_another": ("gaussian", "scales.sigma_decimal", "4.22"),
    "float_scale_too_large": ("gaussian", "scales.float_sigma", "4.3"),
    "float_scale_too_small": ("gaussian", "scales.float_sigma", "4.2"),
    "float_scale_where_there_is_none": ("laplace", "scales.float_sigma", "1"),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITED)
def test_edited_and_signed_again(workshop: Any, name: str) -> None:
    of, path, value = EDITED[name]
    outcome = workshop.verify(workshop.with_field(path, value, of))
    assert (outcome.signature, outcome.exit_code) == ("trusted", 1), outcome.reason
    assert outcome.reason.isprintable()
    if of != "refuted":
        assert outcome.verdict == "verified"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("scales.sigma", RAISED),
        ("scales.sigma_decimal", "4.2246788893268365"),
        ("evidence.sup_delta.upper", "9.999999999e-7"),
        ("losses.l1.lower", "3.3708060601436799"),
    ],
)
def test_slip(workshop: Any, path: str, value: str) -> None:
    """False by less than a tolerance: a contradiction where the signature counts, else the signature says it all."""
    data = workshop.with_field(path, value)
    assert (workshop.verify(data).signature, workshop.verify(data).exit_code) == ("trusted", 1)
    if path != "evidence.sup_delta.upper":  # the slack tells that one
        document = json.loads(data)
        document["signatures"] = []
        assert workshop.verify(json.dumps(document).encode()).exit_code == 4


def test_every_recorded_figure_is_checked(workshop: Any) -> None:
    """Each number of the signed part, changed by a thousandth, is noticed; the cost of the proof is not checked."""
    free = {"evidence.bits", "evidence.boxes"}
    words = ("name", "demand", "verdict", "reason", "note", "kind", "family", "schema_version")
    for name in ("gaussian", "theorem-4.2", "theorem-3.2"):
        for path, value in _leaves(workshop.document(name)["signed"]):
            if path in free or not isinstance(value, str) or path.split(".")[0] in ("tool", "issued", "_type"):
                continue
            if path.split(".")[-1] in words:
                continue
            number = read_real(value, path)
            wrong = str(number * Fraction(1001, 1000) or Fraction(1, 3))
            outcome = workshop.verify(workshop.with_field(path, wrong, name))
            assert outcome.exit_code != 0, (name, path, value, wrong)


def _leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [leaf for name, item in value.items() for leaf in _leaves(item, f"{path}.{name}".lstrip("."))]
    if isinstance(value, list):
        return [leaf for number, item in enumerate(value) for leaf in _leaves(item, f"{path}.{number}")]
    return [(path, value)]


def test_other_evidence_that_is_as_good(workshop: Any) -> None:
    """Another machine's search may meet another event first, or another shift near the peak."""
    other = [[None, "-18.348290"]]
    refuted = workshop.document("refuted")["signed"]["evidence"]["witness"]
    assert refuted["event"] != other
    outcome = workshop.verify(workshop.with_field("evidence.worst_shift", "0.9999999999999", "gaussian"))
    assert outcome.exit_code == 0
    assert workshop.verify(workshop.with_field("evidence.refutation", None)).exit_code == 0


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


def test_smaller_scale_not_confirmed(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sigma = workshop.statement().mechanism.sigma

    def inconclusive_below(statement: Any, decision: Any) -> Any:
        if statement.mechanism.sigma == sigma:
            return decision
        return replace(decision, verdict=Verdict.INCONCLUSIVE, reason="too few bits")

    _decide_with(monkeypatch, inconclusive_below)
    outcome = workshop.verify(workshop.sound())
    assert (outcome.verdict, outcome.exit_code) == ("verified", 3)
    assert "refuted_below" in outcome.reason
    assert "too few bits" in outcome.reason


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("evidence.sup_delta", {"lower": "9e-7", "upper": "2e-6"}, 1),  # the slack does not fit
        ("evidence.sup_delta", {"lower": "2e-6", "upper": "3e-6"}, 1),
        ("evidence.sup_delta", {"lower": "1e-6", "upper": "0"}, 1),
        ("evidence.worst_shift", "2", 1),
        ("evidence.worst_shift", "0.5", 3),
        ("evidence.conditions", [], 3),
        ("verdict", "inconclusive", 3),
    ],
)
def test_inconclusive_contradicts_only_what_it_can(
    workshop: Any, monkeypatch: pytest.MonkeyPatch, path: str, value: Any, code: int
) -> None:
    _decide_with(monkeypatch, lambda statement, decision: replace(decision, verdict=Verdict.INCONCLUSIVE))
    outcome = workshop.verify(workshop.with_field(path, value))
    assert (outcome.verdict, outcome.exit_code) == ("inconclusive", code), outcome.reason


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
