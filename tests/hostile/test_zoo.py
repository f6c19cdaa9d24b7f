"""The zoo: the right exit code, one line, little time."""

from __future__ import annotations

import dataclasses
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from audit.verdict import Limits
from certificates.canonical import canonical_bytes, strict_json
from certificates.errors import CertificateError, KeyRefusedError, NumberError
from certificates.signing import PublicKey
from certificates.verify import verify_certificate
from tests.certificates.support import TIME
from tests.hostile.judge import ASKED_SECONDS, MOST_SECONDS, processor_limits
from tests.hostile.seeds import seeds, trust
from tests.hostile.zoo import CASES, SMALL_ORDER, document, edit, one_signature, set_at, sound, written

SIGNATURES = {"trusted", "untrusted", "invalid", "missing", None}


@pytest.mark.parametrize("name", CASES)
def test_zoo(name: str) -> None:
    make, codes = CASES[name]
    data = make()
    seconds = 0.5 if 4 in codes else ASKED_SECONDS  # what must be decided gets the time, on a slow machine too
    start = time.process_time()
    outcome = verify_certificate(data, trust(), processor_limits(seconds), now=TIME)
    assert time.process_time() - start < MOST_SECONDS
    assert outcome.exit_code in codes, outcome.reason
    assert outcome.reason and outcome.reason.isprintable()
    assert len(outcome.reason) < 1500
    assert (outcome.exit_code == 2) == (outcome.signature is None)


RECORDED = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "data/hostile-cases.json").read_text())["cases"]
}


def test_no_recorded_case_is_left_out() -> None:
    assert set(RECORDED) == {
        "json-nan-inf",
        "in-toto-golang-50-truncation",
        "cosign-type-fallthrough",
        "pyjwt-key-confusion",
        "ed25519-small-order-key",
    }


def test_numbers_that_overflow_underflow_or_are_none() -> None:
    text = RECORDED["json-nan-inf"]["input"]["certificate_text"]
    with pytest.raises(NumberError):
        strict_json(text.encode())
    for number in ("NaN", "1e400", "1e-400"):
        assert number in text
        with pytest.raises(NumberError, match=number):
            strict_json(f'{{"epsilon":{number}}}'.encode())


def test_a_number_cut_off_before_signing() -> None:
    """A canonicaliser that cut 4.99 to 4 would let the signature of σ = 4.99 stand for σ = 4."""
    long, short = (edit(set_at("statement.mechanism.sigma", sigma))() for sigma in ("5.99", "5"))
    assert canonical_bytes(strict_json(long)) != canonical_bytes(strict_json(short))
    assert verify_certificate(long, trust()).exit_code == 1  # σ is not the recorded one
    assert verify_certificate(long, trust()).signature == "invalid"


def test_a_valid_certificate_of_another_type_is_no_pass() -> None:
    for name in ("signed_statement_of_another_type", "composition_for_a_certificate", "certificate_for_a_composition"):
        assert verify_certificate(CASES[name][0](), trust()).exit_code == 2


def test_the_file_does_not_choose_the_algorithm() -> None:
    for fields in ({"alg": "HS256"}, {"alg": "none"}, {"alg": "none", "sig": ""}):
        assert verify_certificate(one_signature(**fields)(), trust()).exit_code == 2
    assert verify_certificate(one_signature(sig="")(), trust()).exit_code == 4


def test_a_key_that_signs_everything_is_never_trusted() -> None:
    recorded = RECORDED["ed25519-small-order-key"]["input"]
    assert recorded["public_key"] == SMALL_ORDER
    with pytest.raises(KeyRefusedError, match="small order"):
        PublicKey.from_text(recorded["public_key"])
    assert verify_certificate(one_signature(sig=recorded["signature"])(), trust()).exit_code == 4


# The time of issue.


@pytest.mark.parametrize("name", ["plain", "refuted", "composition"])
def test_a_time_of_issue_to_come_is_a_warning_and_no_more(name: str) -> None:
    before, after = TIME - timedelta(seconds=1), TIME + timedelta(seconds=1)
    plain = verify_certificate(sound(name), trust())
    early = verify_certificate(sound(name), trust(), now=before)
    assert early.warning.startswith(
        "issued at 2026-01-31T12:00:00Z, which is still to come by the clock here (2026-01-"
    )
    assert early.warning.isprintable()
    assert dataclasses.replace(early, warning="") == plain
    for now in (TIME, after, None):
        assert verify_certificate(sound(name), trust(), now=now) == plain


@pytest.mark.parametrize("issued", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
def test_the_ends_of_time(issued: str) -> None:
    data = edit(set_at("issued", issued))()
    for now in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
        assert verify_certificate(data, trust(), now=now).exit_code == 4


# How much a stranger can make this machine do.


def test_a_certificate_of_a_stranger_gets_the_time_of_a_stranger() -> None:
    asked: list[str] = []

    def limits(name: str) -> Limits:
        return Limits(expired=lambda: asked.append(name) is not None)

    for name in ("peaked", "laplace", "composition"):
        own, other = sound(name), written({**document(name), "signatures": []})
        for data, expected in ((own, "own"), (other, "stranger")):
            asked.clear()
            verify_certificate(data, trust(), limits("own"), strangers=limits("stranger"))
            assert set(asked) <= {expected}, name
            if name == "peaked":
                assert asked


def test_without_limits_for_strangers_those_for_all_hold() -> None:
    data = written({**document("peaked"), "signatures": []})
    outcome = verify_certificate(data, trust(), Limits(expired=lambda: True))
    assert (outcome.verdict, outcome.exit_code) == ("inconclusive", 4)


def test_sound_certificates_pass() -> None:
    for seed in seeds():
        assert verify_certificate(seed.data, trust(), now=TIME).exit_code == seed.exit_code


def test_one_document_of_the_zoo_is_refused_for_what_it_is() -> None:
    """That the exit code is right says little if all are refused alike."""
    reasons: dict[str, Any] = {
        name: verify_certificate(CASES[name][0](), trust()).reason
        for name in (
            "another_algorithm_named",
            "signed_verdict_twice",
            "byte_order_mark",
            "lone_surrogate_as_an_escape",
        )
    }
    assert reasons["another_algorithm_named"].startswith("signatures[0].alg: got an unknown field")
    assert reasons["signed_verdict_twice"].startswith("signed.verdict: got this field twice")
    assert "byte order mark" in reasons["byte_order_mark"]
    assert reasons["lone_surrogate_as_an_escape"].startswith("signed.evidence.note: got half of a surrogate pair")
    with pytest.raises(CertificateError):
        strict_json(CASES["signed_twice"][0]())
