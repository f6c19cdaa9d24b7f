"""Standard streams that are closed, full or left by their reader. A result that was not written is no pass."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from certificates import grid
from tests.cli.conftest import ROOT
from tests.cli.support import ClaimFile, Run
from tests.faults.support import Attempt, Child

FULL = "audit: output: got No space left on device, expected a place that can be written to\n"
CLOSED = "audit: output: got a closed one, expected a place that can be written to\n"
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")


def _full(number: int) -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), number)


def _left(number: int) -> None:
    """A pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, number)


def _closed(number: int) -> None:
    """As Python finds a stream that was closed before it began."""
    os.close(number)
    setattr(sys, ("stdin", "stdout", "stderr")[number], None)


@pytest.fixture
def ran(run: Run, claim: ClaimFile, tmp_path: Path) -> Callable[..., Attempt]:
    """``ran(how, stream, "verify", path)``: a command whose standard stream was treated so."""
    claim("4.5", "holds.toml")
    claim("4", "not.toml")
    assert run("certify", "holds.toml", "-o", "holds.json").exit_code == 0
    assert run("certify", "not.toml", "-o", "not.json").exit_code == 1

    def ran(how: Callable[[int], None], stream: int, *arguments: str) -> Attempt:
        return Child(tmp_path, arguments, lambda: how(stream)).wait()

    return ran


Ran = Callable[..., Attempt]
VERDICTS = {("verify", "holds.json"): 0, ("verify", "not.json"): 1, ("verify", "holds.json", "not.json"): 1}


@pytest.mark.parametrize("json", [(), ("--json",)])
@pytest.mark.parametrize(("command", "code"), VERDICTS.items(), ids=map("-".join, VERDICTS))
def test_a_reader_that_went_away_changes_no_exit_code(
    ran: Ran, command: tuple[str, ...], code: int, json: tuple[str, ...]
) -> None:
    found = ran(_left, 1, *command, *json)
    assert (found.exit_code, found.stderr) == (code, "")


@pytest.mark.parametrize("command", [("--help",), ("verify", "--help"), ("--version",), ("show", "holds.json")])
def test_a_reader_that_went_away_from_what_is_no_verdict(ran: Ran, command: tuple[str, ...]) -> None:
    found = ran(_left, 1, *command)
    assert (found.exit_code, found.stderr) == (0, "")


def test_a_broken_connection_is_not_taken_for_a_reader_that_went_away(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """click ends with exit code 1, in silence, where it meets a broken pipe."""

    def broken(*_: object, **__: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(grid, "run", broken)
    found = run("grid", "-o", "--help", "--executor", "dask://127.0.0.1:1")
    assert (found.exit_code, found.stderr) == (2, "audit: connection: got one that broke, expected one that lasts\n")


@needs_full
@pytest.mark.parametrize("command", [*VERDICTS, ("show", "holds.json"), ("certify", "holds.toml"), ("trust", "list")])
@pytest.mark.parametrize("json", [(), ("--json",)])
def test_a_result_that_could_not_be_written_is_no_pass(
    ran: Ran, command: tuple[str, ...], json: tuple[str, ...]
) -> None:
    for how, message in ((_full, FULL), (_closed, CLOSED)):
        found = ran(how, 1, *command, *json)
        assert (found.exit_code, found.stderr) == (2, message)


@needs_full
@pytest.mark.parametrize("how", [_full, _closed])
def test_an_error_whose_object_could_not_be_written_is_a_line(ran: Ran, how: Callable[[int], None]) -> None:
    found = ran(how, 1, "verify", "--json", "--seconds", "-1", "holds.json")
    assert found.exit_code == 2
    assert found.stderr.startswith("audit: --seconds: got -1") and found.stderr.count("\n") == 1


@pytest.mark.parametrize(("command", "code"), VERDICTS.items(), ids=map("-".join, VERDICTS))
def test_quiet_needs_no_standard_output(ran: Ran, command: tuple[str, ...], code: int) -> None:
    assert ran(_closed, 1, *command, "--quiet").exit_code == code


COMMANDS = {
    ("verify", "holds.json"): 0,
    ("verify", "not.json"): 1,
    ("certify", "none.toml"): 2,
    ("none",): 2,
    (): 2,
    ("certify", "holds.toml", "-o", "again.json"): 0,
}


@needs_full
@pytest.mark.parametrize("how", [_full, _left, _closed])
@pytest.mark.parametrize(
    ("command", "code"), COMMANDS.items(), ids=["-".join(command) or "none" for command in COMMANDS]
)
def test_without_standard_error_the_exit_code_speaks(
    ran: Ran, command: tuple[str, ...], code: int, how: Callable[[int], None], audit_home: Path
) -> None:
    shutil.rmtree(audit_home) if "-o" in command else None  # the notice of a new key goes to standard error
    found = ran(how, 2, *command)
    assert found.exit_code == code
    assert "Traceback" not in found.stdout


def test_without_standard_input_there_is_nobody_to_ask(ran: Ran) -> None:
    found = ran(_closed, 0, "keygen", "--passphrase", "-o", "other.pem")
    assert found.exit_code == 2
    assert found.stderr.startswith("audit: AUDIT_PASSPHRASE: got nothing") and found.stderr.count("\n") == 1
    assert ran(_closed, 0, "verify", "holds.json").exit_code == 0


def test_no_file_is_opened_in_the_place_of_a_closed_stream(ran: Ran, tmp_path: Path) -> None:
    """What C libraries print to 1 and 2 would be in the certificate."""

    def all_closed(_: int) -> None:
        for number in (0, 1, 2):
            _closed(number)

    assert ran(all_closed, 0, "certify", "holds.toml", "-o", "again.json", "--quiet").exit_code == 0
    code = (
        "import sys, os\nfrom certificates.console import Program\nimport click\n"
        "def say():\n    with open('file', 'wb') as file:\n        assert file.fileno() > 2\n"
        "        os.write(1, b'noise'); os.write(2, b'noise')\n        return 0\n"
        "Program('audit', commands=[click.Command('say', callback=say)]).main(['say'])"
    )
    closing = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} <&- >&- 2>&-"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run(["sh", "-c", closing], cwd=tmp_path, env=environment).returncode == 0
    assert (tmp_path / "file").read_bytes() == b""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_in_a_shell(ran: Ran, tmp_path: Path) -> None:
    """The same with a real shell's pipes, and nothing forked from a test."""
    audit = f"{shlex.quote(sys.executable)} {shlex.quote(str(ROOT / 'cli.py'))}"
    lines = {
        "audit show holds.json | head -c 1": (0, "{v"),
        "audit verify . | true": (1, ""),
        "audit verify holds.json | true": (0, ""),
        "audit verify --json . | head -c 1": (1, ""),
        "audit verify holds.json >&-": (2, CLOSED),
        "audit verify holds.json >/dev/full": (2, FULL),
        "audit verify --json holds.json >/dev/full": (2, FULL),
        "audit verify holds.json >/dev/null 2>&-": (0, ""),
        "audit --help | true": (0, ""),
        "audit certify none.toml 2>/dev/full": (2, ""),
    }
    for line, (code, error) in lines.items():
        script = f'set -o pipefail; audit() {{ {audit} "$@"; }}; {line}'
        found = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert (found.returncode, found.stderr) == (code, error if code else ""), line
