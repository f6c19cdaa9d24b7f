"""Commands that write files, stopped at a point: the old file or the new is there, and the same command works next."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from certificates.inputs import certificate_paths
from certificates.trust import KEY_NAME
from tests.cli.support import Run
from tests.faults.support import Attempt, Fault, attempt, interrupt, kill

GAUSSIAN = ("calibrate", "gaussian", "--epsilon", "1", "--delta")
FIRST = (*GAUSSIAN, "0.01", "-o", "cert.json")
GRID = ("grid", "pairs.csv", "-o", "out.jsonl", "--families", "laplace,gaussian", "--jobs", "1")
PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
"""The public key of the first test vector of RFC 8032."""
ADD = ("trust", "add", "--name", "team", PUBLIC)

Scenario = tuple[list[tuple[str, ...]], tuple[str, ...], str | None]
"""Commands that were run before, the command that is stopped, and the file that it writes."""
SCENARIOS: dict[str, Scenario] = {
    "keygen": ([], ("keygen",), None),
    "keygen-file": ([], ("keygen", "-o", "team.pem"), "team.pem"),
    "first-certificate": ([], FIRST, "cert.json"),
    "next-certificate": ([FIRST], (*GAUSSIAN, "0.1", "-o", "cert.json"), "cert.json"),
    "trust-add": ([("keygen",)], ADD, None),
    "trust-remove": ([("keygen",), ADD], ("trust", "remove", "team"), None),
    "compose": ([FIRST], ("compose", "cert.json:2", "--delta", "0.1", "-o", "both.json"), "both.json"),
    "report": ([FIRST], ("report", "cert.json", "-o", "cert.html"), "cert.html"),
    "plot": ([FIRST], ("plot", "cert.json", "-o", "cert.svg"), "cert.svg"),
    "grid": ([], GRID, "out.jsonl"),
}

Check = Callable[..., None]
"""``check(name, fault, step)``: the fault before every ``step``-th call of the scenario's command."""


class Here(Executor):
    """Work is done where it is handed in, so that it is part of the run that is stopped."""

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(work(*arguments, **options))
        return future


class Place:
    """The folder and AUDIT_HOME as they were before the command that is stopped, to be put back again and again."""

    def __init__(self, folder: Path, home: Path, store: Path) -> None:
        self.folder, self.home, self.store = folder, home, store
        shutil.copytree(folder, store / "folder", dirs_exist_ok=True)
        if home.exists():
            shutil.copytree(home, store / "home")

    def restore(self) -> None:
        for place in (self.folder, self.home):
            shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.store / "folder", self.folder)
        if (self.store / "home").exists():
            shutil.copytree(self.store / "home", self.home)
        os.chdir(self.folder)

    def left(self) -> list[str]:
        """Temporary files."""
        return [path.name for place in (self.folder, self.home) for path in place.rglob("*.tmp")]


def meaning(path: Path) -> object:
    """What is in a file that is whole, but for what no two runs have in common: keys, signatures and times."""
    if not path.exists():
        return None
    data = path.read_bytes()
    if path.suffix == ".json":
        signed = json.loads(data)["signed"]
        return {name: value for name, value in signed.items() if name != "issued"}
    if path.suffix == ".pem":
        return data.startswith(b"-----BEGIN PRIVATE KEY-----\n") and data.endswith(b"\n-----END PRIVATE KEY-----\n")
    if path.suffix == ".html":
        return data.startswith(b"<!DOCTYPE html>") and data.endswith(b"</html>\n")
    return data


def trusted(run: Run) -> list[str]:
    """The names of the trusted keys, without the digits of one's own."""
    return [key["name"].split()[0] for key in run("trust", "list", "--json").json["keys"]]


def check_scenario(name: str, fault: Fault, step: int, run: Run, place: Place) -> None:
    """Put the fault before every ``step``-th call of the scenario's command, and look at what is there after each."""
    _, command, output = SCENARIOS[name]
    target, key = place.folder / (output or "none"), place.home / KEY_NAME
    old = meaning(target)
    assert run(*command).exit_code == 0
    new, names = meaning(target), trusted(run)
    for number in itertools.count(1, step):
        place.restore()
        ran = attempt(place.folder, number, fault, *command)
        if ran.met is None:
            assert ran.exit_code == 0 and number > 4
            return
        where = f"before call {number}, {ran.met}: {ran}"
        _check_end(ran, fault, where)
        assert fault is kill or ran.met == "unlink" or not place.left(), where
        found = meaning(target)
        if name == "grid":  # lines are added as they are finished
            assert isinstance(new, bytes) and isinstance(found, bytes | None), where
            assert set((found or b"").splitlines()) <= set(new.splitlines()), where
        else:
            assert found in (old, new), where
            assert ran.exit_code or found == new, where
        assert not [path for path, _ in certificate_paths([str(place.folder)]) if path.endswith(".tmp")], where
        if found is not None and target.suffix == ".json":
            assert run("verify", target).exit_code == 0, where

        # What is done already is refused: no key is replaced, and none removed twice.
        done = {"keygen": key.exists(), "keygen-file": found is not None, "trust-remove": trusted(run) == names}
        again = run(*command)
        assert again.exit_code == (2 if done.get(name, False) else 0), (where, again)
        assert meaning(target) == new, where
        assert trusted(run) == names, where
        assert place.left() == [], where
        assert run(*GAUSSIAN, "0.2", "-o", "check.json").exit_code == 0, where
        assert run("verify", "check.json").exit_code == 0, where


def _check_end(ran: Attempt, fault: Fault, where: str) -> None:
    """A killed run says nothing; others end in one line, or ended as if nothing had been."""
    assert "Traceback" not in ran.stderr, where
    said = [line for line in ran.stderr.splitlines() if not line.startswith("audit: made your signing key")]
    if fault is kill:
        assert (ran.exit_code, said) == (-9, []), where
    elif fault is interrupt:
        assert (ran.exit_code, said) == (130, ["audit: interrupted"]), where
    elif ran.exit_code == 0:
        assert said == [], where
    else:
        # Where standard error itself fails, nothing can be said, and the exit code is that of the command.
        assert ran.exit_code == 2, where
        assert len(said) == 1 and said[0].startswith("audit: ") and said[0].isprintable(), where
