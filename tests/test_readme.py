"""The README's commands, run as they stand there: its outputs are real."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from audit.verdict import Verdict
from cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.toml"))


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def _matches(expected: str, shown: str) -> bool:
    """``…`` stands for anything within a line."""
    return re.fullmatch(re.escape(expected).replace("…", ".*"), shown) is not None


def test_the_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    commands = 0
    for block in _blocks("console"):
        for part in block.removeprefix("$ ").split("\n$ "):
            command, _, expected = part.partition("\n")
            program, *arguments = shlex.split(command)
            assert program == "audit"
            result = CliRunner().invoke(main, arguments)
            shown = result.stderr + result.stdout
            assert _matches(expected.rstrip("\n"), shown.rstrip("\n")), f"{command}\n{shown}"
            commands += 1
    assert commands >= 3


def test_the_python(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = _blocks("python")
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["sigma"] == float.fromhex("0x1.567428b65f04ep-2")
    assert names["decision"].verdict is Verdict.VERIFIED  # type: ignore[attr-defined]
    assert len(names["ahead"]) == len(names["floats"]) == 10_000  # type: ignore[arg-type]


@pytest.mark.parametrize("number", range(len(_blocks("toml"))))
def test_the_claim_files(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that show a mechanism alone get a claim."""
    text = _blocks("toml")[number]
    if "[claim]" not in text:
        text += '[claim]\nkind = "direct"\nepsilon = "1.5"\ndelta = "0.05"\n'
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claim.toml").write_text(text)
    result = CliRunner().invoke(main, ["certify", "claim.toml"])
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_that_the_demo_runs(name: str) -> None:
    result = CliRunner().invoke(main, ["certify", str(ROOT / "examples" / f"{name}.toml")])
    assert result.exit_code == (1 if name == "table-4" else 0)
