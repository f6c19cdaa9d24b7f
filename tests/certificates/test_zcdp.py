"""Certificates of zCDP claims: a round trip, and what each edit is taken for."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from audit.decide import decide
from audit.losses import enclose_losses
from certificates.canonical import canonical_bytes, strict_json
from certificates.issue import issue
from certificates.present import certificate_block, decision_block, decision_document, statement_in_words
from certificates.signing import sign
from mechanisms.claims import Statement, read_statement
from tests.certificates.conftest import Workshop, put
from tests.certificates.support import TIME

NOISE = {"family": "multi-gaussian", "sensitivity": "1", "sigma": "2", "K": 4, "epsilon": "0.5"}
ENCLOSURE = {"lower": "0.1", "upper": "0.2"}


def statement(rho: str = "0.125") -> Statement:
    return read_statement({"mechanism": NOISE, "claim": {"kind": "zcdp", "rho": rho}})


def make(workshop: Workshop, about: Statement, **evidence: Any) -> bytes:
    losses = enclose_losses(about.mechanism)
    return issue(about, decide(about), losses=losses, time=TIME, signer=workshop.key.signer, **evidence)


@pytest.mark.parametrize(
    ("rho", "verdict", "code"), [("0.125", "verified", 0), ("0.2", "verified", 0), ("0.1249999", "refuted", 1)]
)
def test_round_trip(workshop: Workshop, rho: str, verdict: str, code: int) -> None:
    about = statement(rho)
    data = make(workshop, about)
    outcome = workshop.verify(data)
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == (verdict, "trusted", code)
    assert outcome.statement == about
    assert "records" not in outcome.reason
    assert f"{rho}-zero-concentrated differential privacy" in certificate_block("c.json", strict_json(data))


def test_smaller_scale_is_refuted(workshop: Workshop) -> None:
    below = Fraction(2) - Fraction(1, 2**51)
    smaller = read_statement({**statement().document(), "mechanism": {**NOISE, "sigma": str(below)}})
    data = make(workshop, statement(), refuted_below=below, refutation=decide(smaller))
    outcome = workshop.verify(data)
    assert outcome.exit_code == 0
    assert "the claim is refuted" in outcome.reason


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("verdict", "refuted"),
        ("evidence.sup_delta", ENCLOSURE),
        ("evidence.slack", ENCLOSURE),
        ("evidence.worst_shift", "1"),
        ("evidence.conditions", []),
        ("evidence.conditions.0.value", ENCLOSURE),
        ("evidence.conditions.0.value", {"lower": "-1e-9", "upper": "0"}),
        ("evidence.conditions.0.demand", "anything"),
        ("evidence.refuted_below", "2.5"),
        ("evidence.refuted_below", "1"),
        ("statement.claim.rho", "0.1"),
        ("statement.mechanism.sigma", "1.9"),
        ("losses.l2", ENCLOSURE),
    ],
)
def test_edit_is_contradicted(workshop: Workshop, path: str, value: Any) -> None:
    document = json.loads(make(workshop, statement()))
    put(document["signed"], path, value)
    if path == "evidence.refuted_below" and value == "1":
        put(document["signed"], "statement.claim.rho", "10")  # which holds there too
    keyid, signature = sign(workshop.key.signer, canonical_bytes(document["signed"]))
    document["signatures"] = [{"keyid": keyid, "sig": signature}]
    outcome = workshop.verify(json.dumps(document).encode())
    assert (outcome.signature, outcome.exit_code) == ("trusted", 1), outcome.reason


def test_words() -> None:
    about = statement("0.1")
    assert statement_in_words(about) == (
        "0.1-zero-concentrated differential privacy at sensitivity 1, "
        "by multi-gaussian noise (sigma = 2, K = 4, its own epsilon = 0.5)"
    )
    text = decision_block(about, decide(about), None)
    assert "ρ − Δ²/(2σ²) is at least 0: -0.025   refuted" in text
    assert "at every order α above" in text
    document = decision_document(about, decide(about), None)
    assert (document["verdict"], document["sup_delta"], document["witness"]) == ("refuted", None, None)
    assert document["claim"] == {"kind": "zcdp", "rho": "0.1"}
