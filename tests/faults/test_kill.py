"""``kill -9`` and Ctrl-C at any point of a command that writes; processes of a grid that die."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from certificates import pool
from certificates.temporary import temporary_beside
from mechanisms.numbers import InputError
from tests.cli.support import Program, Run
from tests.faults.scenarios import SCENARIOS, Check
from tests.faults.support import Fault, die_or_say, interrupt, kill


@pytest.mark.parametrize("name", sorted({*SCENARIOS} - {"plot", "report"}))
def test_a_run_that_is_killed_leaves_the_old_file_or_the_new(name: str, check: Check) -> None:
    check(name, kill, 23)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [kill, interrupt])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_that_is_stopped_at_any_point_leaves_the_old_file_or_the_new(
    name: str, fault: Fault, check: Check
) -> None:
    check(name, fault, 1)


def test_what_a_killed_process_left_is_thrown_away_and_what_is_in_use_is_not(tmp_path: Path) -> None:
    left, other = tmp_path / ".cert.json.0123456789abcdef.tmp", tmp_path / ".cert.jsonl.0123456789abcdef.tmp"
    for path in (left, other):
        path.write_bytes(b"half")
    with temporary_beside(tmp_path / "cert.json", b"one", 0o644) as first:
        with temporary_beside(tmp_path / "cert.json", b"two", 0o644) as second:
            assert (first.read_bytes(), second.read_bytes()) == (b"one", b"two")
        assert first.exists() and not left.exists() and other.exists()
    assert list(tmp_path.iterdir()) == [other]


def test_cells_that_were_finished_when_a_worker_died_are_kept() -> None:
    finished: list[str] = []
    with pytest.raises(InputError, match="workers: got one that died"), pool.open_executor(1, None) as executor:
        pool.compute(die_or_say, ["one", "two", "die", "three"], executor, finished.append)
    assert finished[:2] == ["one", "two"]


def _workers(process: int) -> list[int]:
    """The processes that this one started and that run."""
    command = ["ps", "-ww", "-o", "pid=,stat=,args=", "--ppid", str(process)]
    found = subprocess.run(command, capture_output=True, text=True)
    rows = [line.split(None, 2) for line in found.stdout.splitlines()]
    return [int(row[0]) for row in rows if "Z" not in row[1] and "spawn_main" in row[2]]


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


FAMILIES = ("--families", "gaussian,truncated-laplace")
ENDS = {"terminate": (signal.SIGTERM, 143, b""), "interrupt": (signal.SIGINT, 130, b"audit: interrupted\n")}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here")
@pytest.mark.parametrize(("number", "code", "message"), ENDS.values(), ids=ENDS)
def test_the_workers_of_a_grid_end_with_it(
    program: Program, run: Run, tmp_path: Path, number: signal.Signals, code: int, message: bytes
) -> None:
    (tmp_path / "pairs.csv").write_text("".join(f"{n}/10,1e-7\n" for n in range(1, 600)))
    out = tmp_path / "out.jsonl"
    handler = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)"
    with program("grid", "pairs.csv", *FAMILIES, "-o", out, "--jobs", "2", before=handler) as process:
        _wait_for(lambda: out.exists() and b"\n" in out.read_bytes())
        workers = _workers(process.pid)
        process.send_signal(number)
        start = time.monotonic()
        _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (code, message)
    assert len(workers) == 2 and time.monotonic() - start < 20
    _wait_for(lambda: not any(map(_runs, workers)))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here")
def test_a_grid_whose_worker_is_killed_is_taken_up(program: Program, run: Run, tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("".join(f"{n}/10,1e-7\n" for n in range(1, 60)))
    arguments = ("grid", "pairs.csv", *FAMILIES)
    out = tmp_path / "out.jsonl"
    with program(*arguments, "-o", out, "--jobs", "2") as process:
        _wait_for(lambda: out.exists() and b"\n" in out.read_bytes())
        subprocess.run(["kill", "-9", str(_workers(process.pid)[0])], check=True)
        _, error = process.communicate(timeout=120)
    assert process.returncode == 2
    assert error == b"audit: workers: got one that died, expected all to live; run it again\n"
    kept = out.read_bytes().count(b"\n")
    assert kept >= 1
    assert run(*arguments, "-o", out, "--jobs", "1", "--json").json["kept"] == kept
    assert run(*arguments, "-o", "whole.jsonl", "--jobs", "1").exit_code == 0
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
