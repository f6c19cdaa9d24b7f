"""``audit compose``, and zCDP claims on the command line."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cli import main
from tests.cli.support import ClaimFile, Refused, Run

ZCDP = """
[mechanism]
family = "multi-gaussian"
sensitivity = "1"
sigma = "3"
K = 2
epsilon = "1"
[claim]
kind = "zcdp"
rho = "{rho}"
"""
LAPLACE = """
[mechanism]
family = "declared"
sensitivity = "1"
[[mechanism.pieces]]
from = "0"
to = "inf"
c = "0"
lines = [["0", "-1"]]
[claim]
kind = "direct"
epsilon = "{epsilon}"
delta = "{delta}"
"""


@pytest.fixture
def files(tmp_path: Path, claim: ClaimFile) -> Path:
    claim("10", "gaussian.toml")
    (tmp_path / "multi.toml").write_text(ZCDP.format(rho="1/18"))
    (tmp_path / "laplace.toml").write_text(LAPLACE.format(epsilon="1", delta="0"))
    return tmp_path


def test_is_registered() -> None:
    assert "compose" in main.commands


def test_mixed_list_with_counts(run: Run, files: Path) -> None:
    ran = run(
        "compose", "gaussian.toml:100", "multi.toml:3", "laplace.toml", "--count", "2", "--delta", "1e-6", "--json"
    )
    assert ran.exit_code == 0
    assert ran.json["rho"] == "5/3"
    assert Fraction(ran.json["rho_upper"]) >= Fraction(5, 3)
    assert (ran.json["delta"], ran.json["releases"], ran.json["verdict"]) == ("1e-6", 105, "verified")
    assert 10.4 < float(ran.json["epsilon_total"]) < 10.6 < float(ran.json["epsilon_corollary"])
    parts = ran.json["parts"]
    assert [part["count"] for part in parts] == [100, 3, 2]
    assert [part["rho"] for part in parts] == ["0.005", "1/18", "0.5"]
    assert [part["epsilon"] for part in parts] == [None, None, "1"]
    assert [part["spec"] for part in parts] == ["gaussian.toml", "multi.toml", "laplace.toml"]


def test_text(run: Run, files: Path) -> None:
    ran = run("compose", "gaussian.toml:100", "multi.toml:3", "laplace.toml:2", "--delta", "1e-6")
    assert ran.stdout.startswith("verified: (10.4")
    assert "differential privacy of 105 releases in all, by 3 mechanisms" in ran.stdout
    assert "  100 ×  " in ran.stdout
    assert run("compose", "gaussian.toml", "--delta", "1e-6", "--quiet").stdout == ""


def test_certificate_goes_round(run: Run, files: Path) -> None:
    assert run("compose", "gaussian.toml:100", "laplace.toml", "--delta", "1e-6", "-o", "c.json").exit_code == 0
    verified = run("verify", "c.json", "--json")
    assert (verified.exit_code, verified.json["certificates"][0]["signature"]) == (0, "trusted")
    assert "differential privacy of 101 releases in all" in run("verify", "c.json").stdout
    assert "100 ×" in run("show", "c.json").stdout
    assert run("show", "c.json", "--json").json["signed"]["_type"] == "sigmacert composition"
    document = json.loads((files / "c.json").read_text())
    document["signed"]["epsilon_total"] = "1"
    (files / "c.json").write_text(json.dumps(document))
    edited = run("verify", "c.json")
    assert edited.exit_code == 1
    assert "epsilon_total: the certificate records 1" in edited.stdout


def test_certificate_as_spec_counts_by_its_mechanism(run: Run, files: Path) -> None:
    assert run("certify", "gaussian.toml", "-o", "cert.json").exit_code == 0
    from_file = run("compose", "gaussian.toml", "--delta", "1e-6", "--json").json
    document = json.loads((files / "cert.json").read_text())
    document["signed"]["verdict"], document["signatures"] = "refuted", []
    (files / "cert.json").write_text(json.dumps(document))
    from_certificate = run("compose", "cert.json", "--delta", "1e-6", "--json").json
    assert from_certificate["epsilon_total"] == from_file["epsilon_total"]


def test_name_that_ends_like_a_count(run: Run, files: Path) -> None:
    (files / "a:7.toml").write_text((files / "gaussian.toml").read_text())
    assert run("compose", "a:7.toml:3", "--delta", "1e-6", "--json").json["releases"] == 3


@pytest.mark.parametrize(("rho", "code"), [("1/18", 0), ("0.0555555555555555", 1)])
def test_certify_zcdp(run: Run, files: Path, rho: str, code: int) -> None:
    (files / "multi.toml").write_text(ZCDP.format(rho=rho))
    ran = run("certify", "multi.toml", "-o", "c.json")
    assert ran.exit_code == code
    assert f"{rho}-zero-concentrated differential privacy" in ran.stdout
    assert run("verify", "c.json").exit_code == code


def test_pure_dp_that_does_not_hold(run: Run, files: Path) -> None:
    (files / "laplace.toml").write_text(LAPLACE.format(epsilon="0.99", delta="0"))
    ran = run("compose", "gaussian.toml", "laplace.toml", "--delta", "1e-6", "-o", "c.json", "--json")
    assert ran.exit_code == 1
    assert (ran.json["verdict"], ran.json["epsilon_total"], ran.json["certificate"]) == ("refuted", None, None)
    assert not (files / "c.json").exists()
    assert run("compose", "laplace.toml", "--delta", "1e-6").stdout.startswith("refuted: pure DP of declared noise")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gaussian.toml"], "--delta"),
        (["--delta", "1e-6"], "SPEC"),
        (["gaussian.toml", "--delta", "0"], "--delta: got 0, expected a number between 0 and 1"),
        (["gaussian.toml", "--delta", "1"], "--delta: got 1, expected a number between 0 and 1"),
        (["gaussian.toml", "--delta", "nan"], "--delta: got nan"),
        (["gaussian.toml", "--delta", "1e-999999999"], "--delta: got 1e-999999999"),
        (["gaussian.toml:0", "--delta", "1e-6"], "COUNT of gaussian.toml: got 0, expected a whole number from 1"),
        (["gaussian.toml:1000000001", "--delta", "1e-6"], "COUNT of gaussian.toml: got 1000000001"),
        (["gaussian.toml:" + "9" * 5000, "--delta", "1e-6"], "COUNT of gaussian.toml: got 999"),
        (["gaussian.toml", "--count", "0", "--delta", "1e-6"], "--count: got 0"),
        (["gaussian.toml", "--count", "-3", "--delta", "1e-6"], "--count: got -3"),
        (["gaussian.toml", "--count", "1.5", "--delta", "1e-6"], "--count: got 1.5"),
        (["gaussian.toml:x", "--delta", "1e-6"], "gaussian.toml:x: got"),
        (["missing.toml", "--delta", "1e-6"], "missing.toml: got no such file or directory"),
        (["quasi.toml", "--delta", "1e-6"], "quasi.toml: got direct of quasi-gaussian at delta 0.1"),
        (["approximate.toml", "--delta", "1e-6"], "approximate.toml: got direct of declared at delta 1e-9"),
        (["empty.json", "--delta", "1e-6"], "empty.json: document.mechanism: got nothing"),
        (["signed.json", "--delta", "1e-6"], "signed.json: signed: got"),
        (["together.json", "--delta", "1e-6"], "together.json: got a certificate of a composition"),
        (["gaussian.toml"] * 1001 + ["--delta", "1e-6"], "SPEC: got 1001 of them, expected at most 1000"),
        (["gaussian.toml", "--delta", "1e-6", "--key", "k.pem"], "--key: got k.pem, expected --output with it"),
    ],
)
def test_unusable(refused: Refused, run: Run, files: Path, arguments: list[str], message: str) -> None:
    quasi: dict[str, Any] = {"family": "quasi-gaussian", "sensitivity": "1", "sigma": "3", "epsilon": "1"}
    claim = {"kind": "direct", "epsilon": "1", "delta": "0.1"}
    (files / "quasi.toml").write_text(
        "".join(
            f"[{table}]\n" + "".join(f'{name} = "{value}"\n' for name, value in fields.items())
            for table, fields in (("mechanism", quasi), ("claim", claim))
        )
    )
    (files / "approximate.toml").write_text(LAPLACE.format(epsilon="1", delta="1e-9"))
    (files / "empty.json").write_text("{}")
    (files / "signed.json").write_text('{"signed": 1}')
    (files / "together.json").write_text('{"signed": {"_type": "sigmacert composition"}}')
    assert refused("compose", *arguments).removeprefix("compose: ").startswith(message)


def test_calibrate_does_not_take_zcdp(refused: Refused) -> None:
    message = refused("calibrate", "gaussian", "--epsilon", "1", "--delta", "1e-6", "--claim", "zcdp")
    assert message.startswith("--claim: got zcdp, expected one of direct")
