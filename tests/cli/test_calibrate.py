"""``audit calibrate``: the smallest scale, as a script and as a person sees it."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import audit.scales
from audit.scales import Calibration
from audit.verdict import Decision, Verdict
from mechanisms.families import Gaussian
from mechanisms.numbers import read_real
from tests.cli.support import Run

GAUSSIAN = ("calibrate", "gaussian", "--epsilon", "1", "--delta", "1e-6")
FIELDS = {
    "verdict",
    "claim",
    "sigma",
    "sigma_decimal",
    "refuted_below",
    "float_sigma",
    "sup_delta",
    "worst_shift",
    "l1",
    "l2",
    "K",
    "certificate",
}


def test_the_fields_that_scripts_rely_on(run: Run) -> None:
    ran = run(*GAUSSIAN, "--json")
    assert (ran.exit_code, ran.stderr) == (0, "")
    found = ran.json
    assert found.keys() >= FIELDS
    assert (found["verdict"], found["sigma"], found["sigma_decimal"]) == (
        "verified",
        "0x1.0e61239070a9dp+2",
        "4.224678889326836",
    )
    assert found["refuted_below"] == "0x1.0e61239070a9cp+2"
    assert float.fromhex(found["float_sigma"]) == pytest.approx(float.fromhex(found["sigma"]), rel=1e-9)
    assert found["claim"] == {"kind": "direct", "epsilon": "1", "delta": "1e-6"}
    assert (found["K"], found["certificate"], found["worst_shift"]) == (None, None, "1")
    for name, value in (("sup_delta", 1e-6), ("l1", 3.3708), ("l2", 17.8479)):
        lower, upper = (read_real(found[name][end], end) for end in ("lower", "upper"))
        assert lower <= upper
        assert float(lower) == pytest.approx(value, rel=1e-4)


def test_the_paper_s_first_cell(run: Run) -> None:
    ran = run("calibrate", "multi-gaussian", "--epsilon", "1", "--delta", "0.01", "-K", "4", "--json")
    found = ran.json
    assert (ran.exit_code, found["sigma"], found["K"]) == (0, "0x1.567428b65f04ep-2", 4)
    assert found["refuted_below"] == "0x1.567428b65f04dp-2"


def test_a_certificate_of_it_verifies(run: Run) -> None:
    ran = run(*GAUSSIAN, "-o", "cert.json", "--json")
    assert ran.json["certificate"] == "cert.json"
    assert ran.stderr.startswith("audit: made your signing key, ")
    signed = json.loads(Path("cert.json").read_text())["signed"]
    assert signed["statement"]["mechanism"]["sigma"] == ran.json["sigma"]
    assert signed["evidence"]["refuted_below"] == ran.json["refuted_below"]
    assert run("verify", "cert.json").exit_code == 0
    assert "own key" in run("show", "cert.json").stdout


def test_for_people(run: Run) -> None:
    title, *rows = run(*GAUSSIAN).stdout.splitlines()
    assert title == (
        "verified: (1, 1e-6)-differential privacy at sensitivity 1, by gaussian noise (sigma = 4.224678889326836)"
    )
    labels = [row[2:15].strip() for row in rows]
    assert labels == ["sigma", "sup of D", "worst shift", "refuted", "optimal", "E|X|", "E X²", "float sigma"]
    assert rows[0].endswith("4.224678889326836   0x1.0e61239070a9dp+2")


def test_for_people_with_K_chosen(run: Run) -> None:
    text = run("calibrate", "multi-gaussian", "--epsilon", "3", "--delta", "0.01", "--max-K", "2").stdout
    assert "by multi-gaussian noise (sigma = 0.26152300171241116, K = 2)" in text
    assert "  K            2   chosen among 1 … 2\n" in text


def test_conditions_of_a_theorem_are_shown(run: Run) -> None:
    arguments = ("quasi-gaussian", "--epsilon", "2", "--delta", "1e-5", "--claim", "theorem-4.2")
    text = run("calibrate", *arguments, "-o", "cert.json").stdout
    assert text.startswith(
        "verified: the conditions of Theorem 4.2 for (2, 0.00001) at sensitivity 1, by quasi-gaussian"
    )
    assert "condition (4a)" in text
    shown = run("show", "cert.json").stdout
    assert "condition (5a)" in shown
    assert "refuted" in shown
    found = run("calibrate", *arguments, "--json").json
    assert found["sigma"] == "0x1.ee8d97078e168p+0"
    assert [item["verdict"] for item in found["conditions"]] == ["verified", "verified"]


def test_quiet(run: Run) -> None:
    ran = run(*GAUSSIAN, "--quiet")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "", "")


def test_decimals_are_the_doubles_that_they_are_read_as(run: Run) -> None:
    found = run(*GAUSSIAN, "--decimals", "3", "--json").json
    assert found["sigma_decimal"] == "4.225"
    assert (found["sigma"], found["refuted_below"]) == ((4.225).hex(), (4.224).hex())
    assert read_real(found["mechanism"]["sigma"], "sigma") == Fraction(4.225)


def test_out_of_time_is_inconclusive(run: Run) -> None:
    ran = run(*GAUSSIAN, "--seconds", "1e-9", "--json")
    assert (ran.exit_code, ran.json["verdict"], ran.json["refuted_below"]) == (3, "inconclusive", None)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the calibration was asked for; it answers with one and the same."""
    calls: list[dict[str, Any]] = []
    real = audit.scales.calibrate
    answer: list[Calibration] = []

    def calibrate(family: str, claim: Any, **options: Any) -> Calibration:
        calls.append({"family": family, "claim": claim, **options})
        if not answer:
            answer.append(real("gaussian", claim))
        return answer[0]

    monkeypatch.setattr(audit.scales, "calibrate", calibrate)
    return calls


def test_options_arrive_exactly(run: Run, asked: list[dict[str, Any]]) -> None:
    options = ("--epsilon", "0.1", "--delta", "1/3", "--sensitivity", "0x1.8p0", "--loss", "l1", "--decimals", "4")
    run("calibrate", "multi-gaussian", *options, "-K", "7", "--bits", "512")
    (call,) = asked
    assert (call["claim"].epsilon, call["claim"].delta) == (Fraction(1, 10), Fraction(1, 3))
    assert (call["sensitivity"], call["K"], call["loss"], call["decimals"]) == (Fraction(3, 2), 7, "l1", 4)
    assert call["limits"].bits == 512
    assert "candidates" not in call


@pytest.mark.parametrize(
    ("options", "candidates"),
    [((), range(1, 21)), (("-K", "auto"), range(1, 21)), (("-K", "auto", "--max-K", "3"), range(1, 4))],
)
def test_auto_is_the_default_of_K(
    run: Run, asked: list[dict[str, Any]], options: tuple[str, ...], candidates: range
) -> None:
    run("calibrate", "multi-gaussian", "--epsilon", "1", "--delta", "0.01", *options)
    assert asked[0]["candidates"] == candidates
    assert "K" not in asked[0]


def test_eta_belongs_to_theorem_3_2(run: Run, asked: list[dict[str, Any]]) -> None:
    run(*GAUSSIAN, "--claim", "theorem-3.2", "--eta", "0.01")
    assert asked[0]["claim"].eta == Fraction(1, 100)


def test_a_gap_that_is_wider_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = audit.scales.calibrate

    def calibrate(*arguments: Any, **options: Any) -> Calibration:
        return dataclasses.replace(
            real(*arguments, **options), refuted_below=Fraction(4), adjacent=False, note="a wider gap"
        )

    monkeypatch.setattr(audit.scales, "calibrate", calibrate)
    text = run(*GAUSSIAN).stdout
    assert "not the next below" in text
    assert "a wider gap" in text
    assert run(*GAUSSIAN, "--json").json["refuted_below_is_next"] is False


def test_an_inconclusive_scale_is_no_pass_and_its_certificate_neither(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = audit.scales.calibrate

    def calibrate(*arguments: Any, **options: Any) -> Calibration:
        found = real(*arguments, **options)
        mechanism = found.statement.mechanism
        assert isinstance(mechanism, Gaussian)
        decision = Decision(verdict=Verdict.INCONCLUSIVE, reason="raise the limit on time", bits=64, boxes=1)
        return dataclasses.replace(found, decision=decision, refuted_below=None, refutation=None, note="")

    monkeypatch.setattr(audit.scales, "calibrate", calibrate)
    ran = run(*GAUSSIAN, "-o", "cert.json")
    assert ran.exit_code == 3
    assert ran.stdout.startswith("inconclusive: ")
    assert run("verify", "cert.json").exit_code != 0
