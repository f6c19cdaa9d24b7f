"""Environments that are odd: optimised Python, no Greek letters, narrow terminals, no home."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT
from tests.cli.support import ClaimFile, Program, Run
from tests.faults.scenarios import FIRST

SHIPPED = [
    ROOT / "cli.py",
    *(path for name in ("audit", "certificates", "mechanisms") for path in (ROOT / name).rglob("*.py")),
]


def _only_narrows(test: ast.expr) -> bool:
    """Whether a condition tells a type checker something, and what follows would fail without it anyway."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            return all(map(_only_narrows, values))
        case ast.Compare(ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
        case ast.Call(func=ast.Name(id="isinstance")):
            return True
    return False


def test_no_check_is_an_assertion() -> None:
    """PYTHONOPTIMIZE takes assertions away."""
    assert len(SHIPPED) > 80
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in SHIPPED
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert) and not _only_narrows(node.test)
    ]
    assert found == []


@pytest.mark.parametrize(("sigma", "code"), [("4.5", 0), ("4", 1)])
def test_optimised_python_decides_the_same(
    run: Run, program: Program, claim: ClaimFile, monkeypatch: pytest.MonkeyPatch, sigma: str, code: int
) -> None:
    path = claim(sigma)
    usual = run("certify", path, "-o", "cert.json", "--json").json
    monkeypatch.setenv("PYTHONOPTIMIZE", "2")
    with program("certify", path, "-o", "cert.json", "--json") as process:
        output, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (code, b"")
    assert json.loads(output) == usual
    assert run("verify", "cert.json").exit_code == code


def test_a_bad_signature_is_found_by_optimised_python(
    run: Run, program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*FIRST)
    path = tmp_path / "cert.json"
    document = json.loads(path.read_text())
    document["signatures"][0]["sig"] = document["signatures"][0]["sig"][:-1] + "0"
    path.write_text(json.dumps(document))
    expected = run("verify", path).exit_code
    monkeypatch.setenv("PYTHONOPTIMIZE", "2")
    with program("verify", path) as process:
        process.communicate(timeout=60)
    assert process.returncode == expected != 0


@pytest.mark.slow
def test_greek_letters_where_there_are_none(
    program: Program, claim: ClaimFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}.items():
        monkeypatch.setenv(name, value)
    for command, code in (
        (("certify", claim("4")), 1),
        (("calibrate", "--help"), 0),
        (("δ",), 2),
        (("certify", "δ.toml"), 2),
    ):
        with program(*command) as process:
            _, error = process.communicate(timeout=60)
        assert process.returncode == code
        assert b"Traceback" not in error and error.count(b"\n") == (code == 2)


@pytest.mark.slow
@pytest.mark.parametrize("setting", [{"COLUMNS": "1"}, {"NO_COLOR": "1", "TERM": "dumb"}, {"TERM": ""}])
def test_terminals(
    program: Program, claim: ClaimFile, monkeypatch: pytest.MonkeyPatch, setting: dict[str, str]
) -> None:
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    for command, code in ((("certify", claim("4.5")), 0), (("verify", "--help"), 0)):
        with program(*command) as process:
            output, error = process.communicate(timeout=60)
        assert (process.returncode, error) == (code, b"") and b"\x1b" not in output


def test_without_a_home(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line where no directory of keys can be found, as in a container whose user has no name."""

    def unknown(_: int) -> None:
        raise KeyError

    for name in ("AUDIT_HOME", "HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    for command in (FIRST, ("trust", "list"), ("keygen",)):
        ran = run(*command)
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert (
            ran.stderr == "audit: AUDIT_HOME: got nothing, and no home directory, expected the directory of your keys\n"
        )
    assert os.listdir(tmp_path) == []
