"""Disks that are full or fail, places where nothing can be written: one line, exit code 2, the old file untouched."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import audit.decide
from certificates import comparison, grid, trust
from certificates.errors import FileError
from certificates.trust import KEY_NAME, TrustStore
from tests.cli.support import ClaimFile, Program, Run
from tests.faults.scenarios import FIRST, GAUSSIAN, GRID, SCENARIOS, Check, trusted
from tests.faults.support import Attempt, Child, fail

NOBODY = 65534
BEFORE = (*GAUSSIAN, "0.1", "-o", "cert.json")


def _one_line(ran: Attempt) -> str:
    """What a refused command said."""
    assert (ran.exit_code, ran.stdout) == (2, ""), ran
    assert ran.stderr.count("\n") == 1 and ran.stderr.startswith("audit: "), ran
    return ran.stderr.removeprefix("audit: ").strip()


@pytest.mark.parametrize("name", ["first-certificate", "next-certificate", "trust-add", "keygen-file", "grid"])
def test_a_call_that_fails(name: str, check: Check) -> None:
    check(name, fail(errno.ENOSPC), 19)


@pytest.mark.slow
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("name", SCENARIOS)
def test_any_call_that_fails(name: str, error: int, check: Check) -> None:
    check(name, fail(error), 1)


def test_a_key_that_is_on_the_disk_stays_trusted(run: Run, audit_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory cannot be flushed once the key is in it: the key is there, and must count."""
    real = trust.save_key

    def save(*arguments: object) -> None:
        real(*arguments)  # type: ignore[arg-type]
        raise FileError("signing-key.pem", "input/output error", "a disk that works")

    with monkeypatch.context() as broken:
        broken.setattr(trust, "save_key", save)
        assert run("keygen").exit_code == 2
    assert (audit_home / KEY_NAME).exists() and trusted(run) == ["own"]
    assert run(*FIRST).exit_code == run("verify", "cert.json").exit_code == 0


@pytest.mark.parametrize("size", [0, 100])
def test_a_limit_on_the_size_of_files(run: Run, program: Program, tmp_path: Path, audit_home: Path, size: int) -> None:
    """The system's own refusal (SIGXFSZ, which Python ignores, and EFBIG), not one that was put in its place."""
    run(*FIRST)
    before = (tmp_path / "cert.json").read_bytes()
    limit = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))"
    with program(*BEFORE, before=limit) as process:
        output, error = process.communicate(timeout=60)
    assert (process.returncode, output) == (2, b"")
    assert error == b"audit: cert.json: got file too large, expected a path where a file can be written\n"
    assert (tmp_path / "cert.json").read_bytes() == before
    assert os.listdir(tmp_path) == ["cert.json"]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own of 64 KiB, where this user can make one."""
    place = tmp_path / "small"
    place.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if mount is None or os.geteuid() or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_disk_that_is_full(run: Run, small: Path, monkeypatch: pytest.MonkeyPatch, audit_home: Path) -> None:
    monkeypatch.setenv("AUDIT_HOME", str(small / "home"))
    certificate = small / "cert.json"
    assert run(*FIRST[:-1], certificate).exit_code == 0
    before, files = certificate.read_bytes(), {path.name for path in small.rglob("*")}
    with (small / "filling").open("wb", buffering=0) as filling, pytest.raises(OSError):
        while True:
            filling.write(bytes(1024))
    ran = run(*GAUSSIAN, "0.1", "-o", certificate)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert (
        ran.stderr
        == f"audit: {certificate}: got no space left on device, expected a path where a file can be written\n"
    )
    ran = run("trust", "add", "--name", "team", "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    assert ran.exit_code == 2 and ran.stderr.count("\n") == 1 and "no space left" in ran.stderr
    ran = run("grid", "-o", small / "out.jsonl", "--families", "laplace", "--jobs", "1")
    assert ran.exit_code == 2 and ran.stderr.count("\n") == 1 and "no space left" in ran.stderr
    assert certificate.read_bytes() == before
    assert {path.name for path in small.rglob("*")} == {*files, "filling", "out.jsonl"}
    (small / "filling").unlink()
    assert run("verify", certificate).exit_code == 0


@pytest.fixture
def nobody() -> Iterator[Path]:
    """A folder that anyone can enter, for commands run as a user without rights."""
    if os.geteuid():
        pytest.skip("needs to be root, to become somebody else")
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


def _become_nobody() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def test_a_folder_that_is_read_only(run: Run, nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = nobody / "home"
    monkeypatch.setenv("AUDIT_HOME", str(home))
    run(*BEFORE)  # imports what is needed, as root
    shutil.rmtree(home)
    home.mkdir(mode=0o700)
    os.chown(home, NOBODY, NOBODY)
    (nobody / "pairs.csv").write_text("1,0.1\n")
    for command, message in {
        FIRST: "cert.json: got a path where no file can be written, expected a file in a directory that can be",
        GRID: "out.jsonl: got permission denied, expected a file where a grid can be written",
        ("keygen", "-o", "team.pem"): "team.pem: got permission denied, expected a path where a new file",
    }.items():
        assert _one_line(Child(nobody, command, _become_nobody).wait()).startswith(message)
    assert sorted(os.listdir(nobody)) == ["home", "pairs.csv"]
    assert os.listdir(home) == []


def test_a_home_that_is_not_to_be_written_is_refused_before_the_proof(
    run: Run, nobody: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*BEFORE)
    work = nobody / "work"
    work.mkdir()
    os.chown(work, NOBODY, NOBODY)
    monkeypatch.setenv("AUDIT_HOME", str(nobody / "deep" / "home"))
    message = _one_line(Child(work, FIRST, _become_nobody).wait())
    assert message == f"{nobody}: got a directory that cannot be written to, expected a directory for your keys"
    assert os.listdir(work) == []


@pytest.mark.parametrize("command", [FIRST, ("keygen",), ("trust", "list")])
def test_a_home_that_is_a_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("AUDIT_HOME", str(tmp_path / "file"))
    ran = run(*command)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"audit: {tmp_path / 'file'}: got ") and ran.stderr.count("\n") == 1
    assert (tmp_path / "file").read_text() == "mine" and os.listdir(tmp_path) == ["file"]


def test_a_certificate_is_not_judged_by_a_home_that_is_a_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*FIRST)
    monkeypatch.setenv("AUDIT_HOME", str(tmp_path / "cert.json"))
    ran = run("verify", "cert.json")
    assert (ran.exit_code, ran.stderr.count("\n")) == (2, 1)


PLACES = {
    "folder": "folder",
    "missing": "no/cert.json",
    "too-long": f"{'a' * 256}.json",
    "too-long-in-all": "/".join(["a" * 200] * 25) + "/cert.json",
    "not-a-folder": "claim.toml/cert.json",
}


@pytest.mark.parametrize("output", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("command", ["certify", "grid"])
def test_outputs_that_cannot_be(
    run: Run, claim: ClaimFile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, output: str
) -> None:
    (tmp_path / "folder").mkdir()
    path = claim()
    monkeypatch.setattr(audit.decide, "decide", lambda *_: pytest.fail("proved for nothing"))
    arguments = (path,) if command == "certify" else ("--families", "laplace", "--jobs", "1")
    ran = run(command, *arguments, "-o", output)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"audit: {output[:100]}") and ran.stderr.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == ["claim.toml", "folder"]


def test_the_longest_name_has_a_temporary_file_too(run: Run, tmp_path: Path) -> None:
    name = f"{'a' * 250}.json"
    assert run(*FIRST[:-1], name).exit_code == 0
    assert run("verify", name).exit_code == 0
    assert os.listdir(tmp_path) == [name]


def test_folders_above_the_keys_are_closed_to_others(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with trust.locked(tmp_path / "config" / "sigmacert"):
            pass
    finally:
        os.umask(old)
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "config", tmp_path / "config" / "sigmacert")] == [
        0o700
    ] * 2
    assert TrustStore(tmp_path / "config" / "sigmacert").keys == ()


LATE = {
    "plot": ("compare", "--epsilon", "1", "--delta", "0.1", "--plot", "no/picture.svg"),
    "table": (*GRID, "--table", "no/table.md"),
}


@pytest.mark.parametrize("command", LATE.values(), ids=LATE)
def test_pictures_and_tables_without_a_folder_are_refused_before_the_work(
    run: Run, here: None, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(comparison, "make_row", lambda *_: pytest.fail("worked for nothing"))
    monkeypatch.setattr(grid, "make_row", lambda *_: pytest.fail("worked for nothing"))
    ran = run(*command)
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert f"{command[-1]}: got a path where no file can be written" in ran.stderr


@pytest.mark.parametrize("umask", [0, 0o022, 0o077, 0o777])
def test_modes_whatever_the_umask(run: Run, tmp_path: Path, audit_home: Path, umask: int) -> None:
    if umask == 0o777 and os.geteuid():
        pytest.skip("only root can read what nobody may")
    old = os.umask(umask)
    try:
        assert run(*FIRST).exit_code == 0
        assert run("keygen", "-o", "team.pem").exit_code == 0
    finally:
        os.umask(old)
    paths = (audit_home / KEY_NAME, tmp_path / "team.pem", audit_home / trust.STORE_NAME, tmp_path / "cert.json")
    modes = [path.stat().st_mode & 0o777 for path in paths]
    assert modes == [mode & ~umask for mode in (0o600, 0o600, 0o644, 0o644)]
