"""Running the command line: in this process, and as a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli import main
from tests.cli.support import GAUSSIAN, ClaimFile, Program, Ran, Refused, Run

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """``run("verify", path)`` in this process, in an empty directory. Only SystemExit may leave the program."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str | Path, stdin: str | None = None) -> Ran:
        result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def refused(run: Run) -> Refused:
    """Runs what must be refused: exit code 2, and one line on standard error alone, which it gives."""

    def refused(*arguments: str | Path, stdin: str | None = None) -> str:
        ran = run(*arguments, stdin=stdin)
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert ran.stderr.startswith("audit: ")
        assert ran.stderr.count("\n") == 1
        assert ran.stderr.strip().isprintable()
        assert len(ran.stderr) < 1200
        return ran.stderr.removeprefix("audit: ").strip()

    return refused


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Starts the command line as a program of its own; ``before`` is Python code that it runs first."""

    def program(*arguments: str | Path, before: str = "", **options: Any) -> subprocess.Popen[bytes]:
        code = f"{before}\nfrom cli import main\nmain()"
        command = [sys.executable, "-c", code, *map(str, arguments)]
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, **options)

    return program


@pytest.fixture
def claim(tmp_path: Path) -> ClaimFile:
    """Writes a claim file: the Gaussian at ε = 1, δ = 1e-6, which needs a sigma of 4.2246…"""

    def claim(sigma: str = "4.5", name: str = "claim.toml") -> Path:
        path = tmp_path / name
        path.write_text(GAUSSIAN.format(sigma=sigma))
        return path

    return claim
