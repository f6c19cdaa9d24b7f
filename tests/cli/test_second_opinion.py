"""``audit verify --second-opinion``: it takes a false pass away, says what it proved, and never gives a pass."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import audit.decide
import certificates.second
import certificates.verify
from audit.second_opinion import Answer, Opinion
from audit.verdict import Decision, Enclosure, Limits, Verdict
from certificates.second import ask, combined
from certificates.verify import Outcome
from mechanisms.claims import Statement
from tests.cli.support import ClaimFile, Run

TABLE_4 = Path(__file__).parents[2] / "examples" / "table-4.toml"


def believe_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """A main audit that is broken in the one unforgivable way: whatever is claimed is verified."""

    def decide(statement: Statement, *_: object, **__: object) -> Decision:
        delta = statement.claim.delta  # type: ignore[union-attr]
        return Decision(
            verdict=Verdict.VERIFIED,
            reason="D is at most the threshold over all shifts",
            sup_delta=Enclosure(delta * Fraction(99, 100), delta),
            worst_shift=Fraction(1, 10),
            bits=128,
            boxes=1,
        )

    monkeypatch.setattr(audit.decide, "decide", decide)
    monkeypatch.setattr(certificates.verify, "decide", decide)


def test_a_false_verified_is_contradicted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """(3, 0.01) of the multi-Gaussian with K = 9 and σ = 0.0526, signed by a key that is trusted."""
    believe_everything(monkeypatch)
    assert run("certify", TABLE_4, "-o", "cert.json").exit_code == 0
    assert run("verify", "cert.json").exit_code == 0
    ran = run("verify", "cert.json", "--second-opinion", "--json")
    (found,) = ran.json["certificates"]
    assert ran.exit_code == found["exit_code"] == ran.json["exit_code"] == 1
    assert found["reason"].startswith("contradicted by the second opinion: D(")
    assert found["second_opinion"]["answer"] == "contradicted"
    text = run("verify", "cert.json", "--second-opinion").stdout
    assert text.startswith("contradicted ")


@pytest.mark.parametrize("share", ["0.999999", "0.999999999"])
def test_a_hair_too_small(run: Run, monkeypatch: pytest.MonkeyPatch, claim: ClaimFile, share: str) -> None:
    believe_everything(monkeypatch)
    smallest = Fraction("4.2246788893268365")
    run("certify", claim(str(float(smallest * Fraction(share)))), "-o", "cert.json")
    assert run("verify", "cert.json", "--second-opinion").exit_code == 1


def test_agreement_keeps_the_pass_and_says_what_was_proved(run: Run, claim: ClaimFile) -> None:
    run("certify", claim(), "-o", "cert.json")
    assert "second_opinion" not in run("verify", "cert.json", "--json").json["certificates"][0]
    ran = run("verify", "cert.json", "--second-opinion")
    assert ran.exit_code == 0
    assert "second opinion       agrees: D is at most" in ran.stdout
    runs = [run("verify", "cert.json", "--second-opinion", "--json").json["certificates"][0] for _ in range(2)]
    shifts = [[v["shift"] for v in item["second_opinion"]["shifts"] if v["why"] == "random"] for item in runs]
    assert len(shifts[0]) == len(shifts[1]) == certificates.second.RANDOM_SHIFTS
    assert not set(shifts[0]) & set(shifts[1])  # nobody can foresee them
    for visit in runs[0]["second_opinion"]["shifts"]:
        assert Fraction(visit["divergence"]["lower"]) <= Fraction(visit["divergence"]["upper"]) <= Fraction(1, 10**6)


def test_what_was_only_sampled_is_said(run: Run) -> None:
    Path("claim.toml").write_text(
        '[mechanism]\nfamily = "multi-gaussian"\nsensitivity = "1"\nsigma = "0.25"\nK = 1\n'
        '[claim]\nkind = "direct"\nepsilon = "1"\ndelta = "0.3"\n'
    )
    run("certify", "claim.toml", "-o", "cert.json")
    ran = run("verify", "cert.json", "--second-opinion")
    assert ran.exit_code == 0
    assert "between the shifts visited nothing is proved by this" in ran.stdout
    assert f"{certificates.second.RANDOM_SHIFTS} × random" in ran.stdout


def test_without_time_it_is_left_open(run: Run, claim: ClaimFile, monkeypatch: pytest.MonkeyPatch) -> None:
    run("certify", claim(), "-o", "cert.json")
    monkeypatch.setattr(
        certificates.second, "second_opinion", lambda *_: Opinion(Answer.OPEN, "the time limit ended it")
    )
    ran = run("verify", "cert.json", "--second-opinion", "--json")
    assert ran.exit_code == 3
    assert ran.json["certificates"][0]["reason"] == "left open by the second opinion: the time limit ended it"


def test_what_cannot_be_read_is_not_asked_about(run: Run) -> None:
    Path("bad.json").write_text("{")
    ran = run("verify", "bad.json", "--second-opinion", "--json")
    assert (ran.exit_code, ran.json["certificates"][0]["second_opinion"]) == (2, None)
    assert "not asked" in run("verify", "bad.json", "--second-opinion").stdout
    assert ask(b"{", Outcome(None, None, 2, "", None), Limits()) is None


GOOD = Outcome("verified", "trusted", 0, "proved", None)


@pytest.mark.parametrize(
    ("code", "answer", "expected"),
    [
        (0, Answer.AGREES, 0),
        (0, Answer.OPEN, 3),
        (0, Answer.CONTRADICTED, 1),
        (4, Answer.AGREES, 4),
        (4, Answer.OPEN, 4),
        (4, Answer.CONTRADICTED, 1),
        (3, Answer.AGREES, 3),
        (3, Answer.CONTRADICTED, 1),
        (1, Answer.AGREES, 1),
        (1, Answer.OPEN, 1),
    ],
)
def test_it_can_only_take_a_pass_away(code: int, answer: Answer, expected: int) -> None:
    outcome = dataclasses.replace(GOOD, exit_code=code)
    found = combined(outcome, Opinion(answer, "so"))
    assert found.exit_code == expected
    assert ("second opinion: so" in found.reason) == (answer is not Answer.AGREES)
    assert combined(outcome, None) == outcome


def test_a_tampered_statement_is_contradicted_under_a_broken_audit(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the signature is bad: the contradiction comes first."""
    believe_everything(monkeypatch)
    run("certify", TABLE_4, "-o", "cert.json")
    document: Any = json.loads(Path("cert.json").read_text())
    document["signed"]["statement"]["mechanism"]["sigma"] = "0.05"
    Path("cert.json").write_text(json.dumps(document))
    ran = run("verify", "cert.json", "--second-opinion", "--json")
    assert ran.exit_code == 1
    assert ran.json["certificates"][0]["signature"] == "invalid"
    assert ran.json["certificates"][0]["reason"].startswith("contradicted by the second opinion: D(")
