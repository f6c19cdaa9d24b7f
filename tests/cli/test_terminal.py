"""The edges: interrupts, full disks, readers that go away, terminals."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import audit.decide
from tests.cli.support import ClaimFile, Program, Run

needs_posix = pytest.mark.skipif(os.name != "posix", reason="POSIX signals, devices and terminals")


def _raise(error: BaseException) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_an_interrupt_during_the_proof(run: Run, claim: ClaimFile, monkeypatch: pytest.MonkeyPatch) -> None:
    path = claim()
    monkeypatch.setattr(audit.decide, "decide", _raise(KeyboardInterrupt()))
    ran = run("certify", path, "-o", "cert.json")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (130, "", "audit: interrupted\n")
    assert _files(Path()) == ["claim.toml"]
    ran = run("certify", path, "-o", "cert.json", "--json")
    assert (ran.exit_code, ran.json) == (130, {"error": "interrupted", "where": ""})


@pytest.mark.parametrize("where", ["os.fsync", "os.replace"])
@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "audit: interrupted\n"),
        (OSError(28, "No space left on device"), 2, "audit: cert.json: got no space left on device, expected"),
        (OSError(30, "Read-only file system"), 2, "audit: cert.json: got read-only file system, expected"),
    ],
    ids=["interrupt", "disk-full", "read-only"],
)
def test_no_half_written_certificate_and_no_lost_key(
    run: Run,
    claim: ClaimFile,
    monkeypatch: pytest.MonkeyPatch,
    audit_home: Path,
    where: str,
    error: BaseException,
    code: int,
    message: str,
) -> None:
    run("certify", claim(), "-o", "cert.json")
    before, key = Path("cert.json").read_bytes(), (audit_home / "signing-key.pem").read_bytes()
    with monkeypatch.context() as broken:
        broken.setattr(where, _raise(error))
        ran = run("certify", claim("5"), "-o", "cert.json")
    assert (ran.exit_code, ran.stdout) == (code, "")
    assert ran.stderr.startswith(message)
    assert ran.stderr.count("\n") == 1
    assert Path("cert.json").read_bytes() == before
    assert (audit_home / "signing-key.pem").read_bytes() == key
    assert _files(Path()) == ["cert.json", "claim.toml"]


@needs_posix
def test_ctrl_c(program: Program, claim: ClaimFile) -> None:
    # A run in the background of a shell inherits that interrupts are ignored: the handler is Python's own here.
    handler = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    wait = "import audit.decide, time\naudit.decide.decide = lambda *_: (print('ready', flush=True), time.sleep(60))"
    path = claim()
    with program("certify", path, "-o", "cert.json", before=handler + wait) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=20)
    assert (process.returncode, output, error) == (130, b"", b"audit: interrupted\n")
    assert _files(path.parent) == ["claim.toml"]


@needs_posix
def test_a_reader_that_goes_away(program: Program, claim: ClaimFile) -> None:
    """Quiet, and the verdict still stands in the exit code."""
    for sigma, code in (("4.5", 0), ("4", 1)):
        read, write = os.pipe()
        os.close(read)
        with program("certify", claim(sigma), stdout=write) as process:
            os.close(write)
            _, error = process.communicate(timeout=20)
        assert (process.returncode, error) == (code, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_standard_output_on_a_full_disk(program: Program, claim: ClaimFile) -> None:
    with open("/dev/full", "wb") as full, program("certify", claim("4.5"), stdout=full) as process:
        _, error = process.communicate(timeout=20)
    assert process.returncode == 2
    assert error == b"audit: output: got No space left on device, expected a place that can be written to\n"


@needs_posix
def test_progress_is_for_terminals(program: Program, claim: ClaimFile) -> None:
    import pty

    report = "import audit.decide as d\nold = d.decide\nd.decide = lambda s, l, p: (p and p(0.5), old(s, l))[1]"
    for arguments, expected in ((["--json"], True), (["--quiet"], False)):
        ours, theirs = pty.openpty()
        with program("certify", claim(), *arguments, before=report, stderr=theirs) as process:
            os.close(theirs)
            output, _ = process.communicate(timeout=20)
        assert process.returncode == 0
        shown = _drain(ours)
        assert ("proving" in shown and "50%" in shown) is expected
        assert output.startswith(b'{"verdict": "verified"') is expected
    with program("certify", claim(), before=report) as process:
        assert process.communicate(timeout=20)[1] == b""


def _drain(descriptor: int) -> str:
    """What a terminal was sent, until its other end is closed (Linux reports that as an error)."""
    shown = b""
    with os.fdopen(descriptor, "rb", buffering=0) as terminal:
        try:
            while part := terminal.read(4096):
                shown += part
        except OSError:
            pass
    return shown.decode()


@needs_posix
def test_the_passphrase_is_asked_for_on_the_terminal_and_not_shown(program: Program, audit_home: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    options = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "start_new_session": True}
    adopt = f"import fcntl, termios\nfcntl.ioctl({theirs}, termios.TIOCSCTTY, 0)"
    with program("keygen", "--passphrase", before=adopt, pass_fds=(theirs,), **options) as process:
        os.close(theirs)
        shown = b""
        for label in (b"Passphrase", b"Repeat"):
            # The blank comes when echoing is off; what is typed before it is thrown away.
            while not (label in shown and shown.endswith(b": ")):
                assert select.select([ours], [], [], 20)[0], shown
                shown += os.read(ours, 1000)
            os.write(ours, b"horse\n")
        process.wait(timeout=20)
        shown += _drain(ours).encode()
    assert process.returncode == 0, shown
    assert b"horse" not in shown
    assert b"ENCRYPTED" in (audit_home / "signing-key.pem").read_bytes()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_greek_letters(
    program: Program, claim: ClaimFile, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    with program("certify", claim("4")) as process:
        output, error = process.communicate(timeout=20)
    assert (process.returncode, error) == (1, b"")
    assert b"witness ?" in output


def test_a_path_cannot_make_a_line_of_its_own(run: Run) -> None:
    ran = run("verify", "\x1b[31m\nverified             good.json")
    assert ran.exit_code == 2
    assert "\x1b" not in ran.stdout
    assert [line.split()[0] for line in ran.stdout.splitlines()] == ["unusable", "1"]
