"""certificates.console in this process, where its standard streams can be made to fail."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError

import click
import pytest

from certificates import console
from certificates.console import Console, Program, ask_passphrase, write
from mechanisms.numbers import InputError
from tests.cli.support import Run


class _Broken(io.StringIO):
    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def write(self, _: str) -> int:
        raise self.error

    def fileno(self) -> int:
        raise OSError("no descriptor")


class _Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_a_reader_that_goes_away_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = _Broken(BrokenPipeError(32, "Broken pipe"))
    monkeypatch.setattr(sys, "stdout", broken)
    write("text")
    assert broken.getvalue() == ""


def test_a_full_disk_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", _Broken(OSError(28, "No space left on device")))
    with pytest.raises(InputError, match="output: got No space left on device"):
        write("text")


def test_progress_reaches_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Console(as_json=True, quiet=False).progress("proving") as progress:
        assert progress is not None
        for share in (0.25, 0.1, 1.5):
            progress(share)
    assert "25%" in terminal.getvalue()
    assert "100%" in terminal.getvalue()


@pytest.mark.parametrize(("quiet", "stream"), [(True, _Terminal), (False, io.StringIO)])
def test_no_progress(monkeypatch: pytest.MonkeyPatch, quiet: bool, stream: Callable[[], io.StringIO]) -> None:
    monkeypatch.setattr(sys, "stderr", stream())
    with Console(as_json=False, quiet=quiet).progress("proving") as progress:
        assert progress is None


@pytest.mark.parametrize("new", [True, False])
def test_a_passphrase_is_prompted_for(monkeypatch: pytest.MonkeyPatch, new: bool) -> None:
    asked = []

    def prompt(text: str, **options: object) -> str:
        asked.append((text, options["hide_input"], options["confirmation_prompt"]))
        return "hörse"

    monkeypatch.setattr(sys, "stdin", _Terminal())
    monkeypatch.setattr(click, "prompt", prompt)
    assert ask_passphrase(new) == "hörse".encode()
    assert asked == [("Passphrase", True, new)]


def test_errors_of_the_system_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise PermissionError(13, "Permission denied", "the/file")

    program = Program("audit", commands=[click.Command("fail", callback=fail)])
    with pytest.raises(SystemExit) as exit_:
        program.main(["fail"])
    assert exit_.value.code == 2
    assert capsys.readouterr().err == "audit: the/file: Permission denied\n"


def test_inside_another_program_errors_pass_through() -> None:
    def fail() -> None:
        raise InputError("here", "this", "that")

    program = Program("audit", commands=[click.Command("fail", callback=fail)])
    with pytest.raises(InputError, match="here: got this, expected that"):
        program.main(["fail"], standalone_mode=False)


def test_the_version_of_what_is_not_installed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", version)
    assert run("--version").stdout == "audit, of sigmacert (not installed)\n"
    monkeypatch.setattr("importlib.metadata.version", lambda name: "9.9")
    assert run("--version").stdout == "audit, of sigmacert 9.9\n"


def test_long_messages_are_cut(run: Run) -> None:
    ran = run("certify", f"{'a' * 5000}.toml")
    assert ran.exit_code == 2
    assert len(ran.stderr) < 3 * console.MAX_MESSAGE
