"""Faults are tried where processes fork and signals are those of POSIX."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path

import pytest

from certificates import drawing, grid
from tests.cli.conftest import claim, program, run
from tests.cli.support import Run
from tests.faults.scenarios import SCENARIOS, Check, Here, Place, check_scenario
from tests.faults.support import Fault

__all__ = ["claim", "program", "run"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skipif(os.name != "posix", reason="forks and POSIX signals"))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No picture is drawn, and no process started; pairs.csv is there for grids."""

    @contextmanager
    def executor(jobs: int, address: str | None) -> Iterator[Executor]:
        yield Here()

    monkeypatch.setattr(drawing, "draw", lambda *_: b"<svg/>")
    monkeypatch.setattr(grid, "open_executor", executor)
    (tmp_path / "pairs.csv").write_text("1,0.1\n2,0.01\n")


@pytest.fixture
def check(here: None, run: Run, tmp_path: Path, audit_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Check:
    def check(name: str, fault: Fault, step: int) -> None:
        for command in SCENARIOS[name][0]:
            assert run(*command).exit_code == 0
        check_scenario(name, fault, step, run, Place(tmp_path, audit_home, tmp_path_factory.mktemp("before")))

    return check
