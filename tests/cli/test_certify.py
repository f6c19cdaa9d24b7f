"""``audit certify``: a claim in a file, a verdict, a certificate."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

import audit.decide
from audit.verdict import Decision, Verdict
from mechanisms.claims import read_statement
from mechanisms.numbers import read_real
from tests.cli.support import GAUSSIAN, ClaimFile, Run

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_verified_claim(run: Run, claim: ClaimFile) -> None:
    ran = run("certify", claim("4.5"), "--json")
    assert (ran.exit_code, ran.stderr) == (0, "")
    found = ran.json
    assert found["verdict"] == "verified"
    assert found["claim"] == {"kind": "direct", "epsilon": "1", "delta": "1e-6"}
    assert found["worst_shift"] == "1"
    assert found["witness"] is None
    assert found["certificate"] is None
    assert read_real(found["sup_delta"]["lower"], "lower") <= read_real(found["sup_delta"]["upper"], "upper")
    assert read_real(found["sup_delta"]["upper"], "upper") <= Fraction(1, 10**6)


def test_a_refuted_claim_has_a_witness(run: Run, claim: ClaimFile) -> None:
    ran = run("certify", claim("4"), "--json")
    assert ran.exit_code == 1
    found = ran.json
    assert found["verdict"] == "refuted"
    witness = found["witness"]
    assert witness["shift"] == "1"
    # P(A − φ) > e^ε P(A) + δ: the tail is the event, and its other end is infinite.
    assert None in witness["event"][0]
    shifted, bound = witness["probability_shifted"], witness["bound"]
    assert read_real(shifted["lower"], "lower") > read_real(bound["upper"], "upper") > Fraction(1, 10**6)


def test_for_people(run: Run, claim: ClaimFile) -> None:
    ran = run("certify", claim("4"))
    assert ran.exit_code == 1
    title, *rows = ran.stdout.splitlines()
    assert title == "refuted: (1, 1e-6)-differential privacy at sensitivity 1, by gaussian noise (sigma = 4)"
    labels = [row[2:15].strip() for row in rows]
    assert labels == ["sup of D", "worst shift", "witness φ", "event A", "P(A − φ)", "reason"]


def test_a_grid_point_is_named(run: Run, tmp_path: Path) -> None:
    text = GAUSSIAN.format(sigma="4").replace('"direct"', '"theorem-3.2"\neta = "0.01"')
    (tmp_path / "grid.toml").write_text(text)
    ran = run("certify", "grid.toml", "--json")
    witness = ran.json["witness"]
    assert (ran.exit_code, witness["grid_index"]) == (1, witness["grid_size"])
    assert f"grid point {witness['grid_index']} of {witness['grid_size']}" in run("certify", "grid.toml").stdout


def test_a_mechanism_with_an_epsilon_of_its_own(run: Run, tmp_path: Path) -> None:
    text = GAUSSIAN.format(sigma="4.5").replace('"gaussian"', '"multi-gaussian"\nK = 1\nepsilon = "2"')
    (tmp_path / "own.toml").write_text(text)
    ran = run("certify", "own.toml")
    assert ran.exit_code in (0, 1)
    assert "its own epsilon = 2" in ran.stdout.splitlines()[0]


def test_quiet_says_it_by_the_exit_code(run: Run, claim: ClaimFile) -> None:
    for sigma, code in (("4.5", 0), ("4", 1)):
        ran = run("certify", claim(sigma), "--quiet")
        assert (ran.exit_code, ran.stdout, ran.stderr) == (code, "", "")


def test_out_of_time_is_inconclusive(run: Run, claim: ClaimFile) -> None:
    ran = run("certify", claim("4.5"), "--seconds", "1e-9", "--json")
    assert (ran.exit_code, ran.json["verdict"]) == (3, "inconclusive")
    assert ran.json["reason"]


def test_the_limits_reach_the_proof(run: Run, claim: ClaimFile, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def decide(statement: object, limits: audit.decide.Limits, progress: object) -> Decision:
        seen.append((limits.bits, limits.expired()))
        return Decision(verdict=Verdict.INCONCLUSIVE, reason="raise it", bits=1, boxes=0)

    monkeypatch.setattr(audit.decide, "decide", decide)
    assert run("certify", claim(), "--bits", "777", "--seconds", "1000").exit_code == 3
    assert seen == [(777, False)]


def test_json_and_toml_say_the_same(run: Run, claim: ClaimFile, tmp_path: Path) -> None:
    found = run("certify", claim("4.5"), "--json").json
    path = tmp_path / "claim.json"
    path.write_text(json.dumps({"mechanism": found["mechanism"], "claim": found["claim"]}))
    assert run("certify", path, "--json").json == found


@pytest.mark.parametrize("name", ["mixture", "laplace"])
def test_mechanisms_of_ones_own(run: Run, name: str) -> None:
    ran = run("certify", EXAMPLES / f"{name}.toml", "-o", "cert.json", "--json")
    assert (ran.exit_code, ran.json["verdict"], ran.json["certificate"]) == (0, "verified", "cert.json")
    assert run("verify", "cert.json").exit_code == 0


def test_a_refutation_is_recorded_too(run: Run, claim: ClaimFile) -> None:
    ran = run("certify", claim("4"), "-o", "cert.json", "--json")
    assert (ran.exit_code, ran.json["certificate"]) == (1, "cert.json")
    assert json.loads(Path("cert.json").read_text())["signed"]["verdict"] == "refuted"
    verified = run("verify", "cert.json", "--json")
    assert (verified.exit_code, verified.json["certificates"][0]["verdict"]) == (1, "refuted")


def test_show(run: Run, claim: ClaimFile) -> None:
    run("certify", claim("4.5"), "-o", "cert.json")
    shown = run("show", "cert.json")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("cert.json records, unchecked: verified: (1, 1e-6)-differential privacy")
    assert "own key" in shown.stdout
    document = run("show", "cert.json", "--json").json
    assert document == json.loads(Path("cert.json").read_text())
    assert read_statement(document["signed"]["statement"]).claim.delta == Fraction(1, 10**6)
