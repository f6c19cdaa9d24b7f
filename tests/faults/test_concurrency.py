"""Processes that share one AUDIT_HOME and one folder of outputs."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certificates import grid, pool
from certificates.locks import hold
from certificates.trust import KEY_NAME, STORE_NAME
from tests.cli.support import Run
from tests.faults.scenarios import FIRST, GAUSSIAN, GRID, trusted
from tests.faults.support import Child, together

PROCESSES = 6


def _public(number: int) -> str:
    seed = hashlib.sha256(str(number).encode()).digest()
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw().hex()


def test_first_uses_at_the_same_moment_make_one_key(run: Run, tmp_path: Path, audit_home: Path) -> None:
    commands = [(*GAUSSIAN, f"0.{n + 1}", "-o", f"{n}.json") for n in range(PROCESSES)]
    ended = together(tmp_path, [*commands, ("keygen",)])
    made = [ran for ran in ended if "made your signing key" in ran.stderr or (ran.exit_code == 0 and not ran.stderr)]
    assert [ran.exit_code for ran in ended[:-1]] == [0] * PROCESSES
    assert ended[-1].exit_code in (0, 2)
    assert sum("made your signing key" in ran.stderr for ran in ended) + (ended[-1].exit_code == 0) == 1, made
    assert trusted(run) == ["own"]
    assert run("verify", ".").exit_code == 0
    assert sorted(os.listdir(audit_home)) == [".lock", KEY_NAME, STORE_NAME]
    assert sorted(os.listdir(tmp_path)) == [f"{n}.json" for n in range(PROCESSES)]


def test_keys_added_and_removed_at_the_same_moment(run: Run, tmp_path: Path) -> None:
    """None is lost, none comes back."""
    for number in range(PROCESSES):
        assert run("trust", "add", "--name", f"old{number}", _public(number)).exit_code == 0
    add = [("trust", "add", "--name", f"new{n}", _public(100 + n)) for n in range(PROCESSES)]
    remove = [("trust", "remove", f"old{n}") for n in range(PROCESSES)]
    ended = together(tmp_path, [*add, *remove])
    assert [(ran.exit_code, ran.stderr) for ran in ended] == [(0, "")] * (2 * PROCESSES)
    assert sorted(trusted(run)) == [f"new{n}" for n in range(PROCESSES)]


def test_one_name_for_two_keys_at_the_same_moment(run: Run, tmp_path: Path) -> None:
    ended = together(tmp_path, [("trust", "add", "--name", "team", _public(n)) for n in range(PROCESSES)])
    assert sorted(ran.exit_code for ran in ended) == [0, *[2] * (PROCESSES - 1)]
    assert trusted(run) == ["team"]


def test_certificates_at_one_path_at_the_same_moment(run: Run, tmp_path: Path) -> None:
    run(*FIRST)
    ended = together(tmp_path, [(*GAUSSIAN, f"0.{n + 1}", "-o", "cert.json") for n in range(PROCESSES)])
    assert [(ran.exit_code, ran.stderr) for ran in ended] == [(0, "")] * PROCESSES
    assert run("verify", "cert.json").exit_code == 0
    assert os.listdir(tmp_path) == ["cert.json"]


def test_a_reader_while_certificates_are_replaced(run: Run, tmp_path: Path) -> None:
    run(*FIRST)
    writers = [Child(tmp_path, (*GAUSSIAN, f"0.0{n + 1}", "-o", "cert.json")) for n in range(4)]
    readers = [Child(tmp_path, ("verify", ".")) for _ in range(4)]
    assert [child.wait().exit_code for child in [*writers, *readers]] == [0] * 8


def test_a_grid_that_another_run_is_writing_is_refused(run: Run, here: None, tmp_path: Path) -> None:
    assert run(*GRID[:3], "whole.jsonl", *GRID[4:]).exit_code == 0
    with (tmp_path / "out.jsonl").open("wb") as other:
        other.write((tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)[0])
        other.flush()
        assert hold(other, wait=False)
        ran = Child(tmp_path, GRID).wait()
        assert (ran.exit_code, ran.stdout) == (2, "")
        message = "audit: out.jsonl: got a file that another run is writing, expected one run at a time\n"
        assert ran.stderr == message
    assert run(*GRID, "--json").json["kept"] == 1
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_grids_at_one_path_at_the_same_moment(run: Run, here: None, tmp_path: Path) -> None:
    assert run(*GRID[:3], "whole.jsonl", *GRID[4:]).exit_code == 0
    ended = together(tmp_path, [GRID] * PROCESSES)
    assert {ran.exit_code for ran in ended} <= {0, 2} and 0 in {ran.exit_code for ran in ended}
    assert all("another run is writing" in ran.stderr for ran in ended if ran.exit_code)
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_run_that_finishes_between_the_opening_and_the_lock(
    run: Run, here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that was opened is no longer the output: cells added to it would be lost."""
    assert run(*GRID).exit_code == 0
    whole = (tmp_path / "out.jsonl").read_bytes()
    replaced: list[int] = []

    def slow(file: object, *, wait: bool) -> bool:
        if not replaced:
            replaced.append(1)
            os.replace("out.jsonl", "old.jsonl")
            (tmp_path / "out.jsonl").write_bytes(whole.splitlines(keepends=True)[0])
        return True

    (tmp_path / "out.jsonl").write_bytes(b"")
    monkeypatch.setattr(grid, "hold", slow)
    assert run(*GRID, "--json").json["kept"] == 1
    assert (tmp_path / "out.jsonl").read_bytes() == whole
    assert (tmp_path / "old.jsonl").read_bytes() == b""


def test_a_fault_while_workers_are_busy_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    """Their pool's thread does not stumble over work that was not begun."""

    def full(_: str) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"), pool.open_executor(1, None) as executor:
        pool.compute(str, list(range(50)), executor, full)
    executor.shutdown(wait=True)
    assert capfd.readouterr() == ("", "")
