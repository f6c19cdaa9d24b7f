"""``audit grid``: the comparison over many (ε, δ), one JSON line a cell, which can be stopped and taken up again.

A line depends on its cell and the options alone, never on the time or the machine (unless a limit on time was reached),
so that a run that was stopped and taken up ends with the same bytes as one that was not.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO

from audit.scales import Loss
from audit.verdict import Limits
from certificates.canonical import strict_json
from certificates.comparison import Request, make_row, row_document
from certificates.errors import FileError
from certificates.files import clear_errors, read_bounded, write_atomically
from certificates.locks import hold
from certificates.paper import CELLS
from certificates.pool import compute, open_executor
from mechanisms.numbers import InputError, exact_text, read_delta, read_epsilon

MAX_CELLS = 100_000
MAX_BYTES = 1 << 28
"""Largest output that is taken up again."""
BY_LOSS = frozenset({"multi-gaussian", "staircase", "truncated-staircase", "flipped-huber"})
"""Families with a parameter that is chosen for the loss; the others are the same for both."""
_ONE_AT_A_TIME = threading.Lock()
"""FLINT's precision belongs to the process, and a dask worker may have several threads."""
_BEGINNING = b'{"epsilon": "'
_EXPECTED = "cells of this grid, of the same options"

Cell = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Settings:
    """What all cells share; the limits are those of one family's proof."""

    sensitivity: Fraction
    max_K: int
    families: tuple[str, ...]
    seconds: float
    bits: int

    def head(self, cell: Cell) -> dict[str, Any]:
        """What a line says of its question."""
        return {
            "epsilon": exact_text(cell[0]),
            "delta": exact_text(cell[1]),
            "sensitivity": exact_text(self.sensitivity),
            "max_K": self.max_K,
            "families": list(self.families),
        }


@dataclass(frozen=True)
class Done:
    """The finished grid: its lines in the order of the cells, and how many were there before."""

    lines: tuple[dict[str, Any], ...]
    kept: int


def read_cells(path: str | None) -> list[Cell]:
    """The pairs (ε, δ) in a file: CSV (``epsilon,delta`` a line, perhaps under these names) or a JSON list of pairs.

    The paper's 150 where there is no file. Raises InputError that names the line.
    """
    if path is None:
        rows: list[tuple[str, Any]] = [("the paper's grid", pair) for pair in CELLS]
    else:
        rows = _rows(path)
    cells: list[Cell] = []
    seen: set[Cell] = set()
    for where, row in rows:
        if not isinstance(row, (list, tuple)) or len(row) != 2:
            raise InputError(where, row, "a pair: epsilon, delta")
        cell = read_epsilon(row[0], f"{where}: epsilon"), read_delta(row[1], f"{where}: delta")
        if cell in seen:
            raise InputError(where, ", ".join(map(str, row)), "every pair once")
        seen.add(cell)
        cells.append(cell)
    if not 0 < len(cells) <= MAX_CELLS:
        raise InputError(path or "grid", f"{len(cells)} pairs", f"1 to {MAX_CELLS} pairs epsilon, delta")
    return cells


def _rows(path: str) -> list[tuple[str, Any]]:
    data, suffix = read_bounded(path), Path(path).suffix.lower()
    if suffix == ".json":
        document = strict_json(data, path)
        if not isinstance(document, list):
            raise InputError(path, type(document).__name__, "a list of pairs")
        return [(f"{path}: item {number}", row) for number, row in enumerate(document, 1)]
    if suffix != ".csv":
        raise FileError(path, f"a name that ends in {suffix!r}", "one that ends in .csv or .json")
    try:
        lines = list(csv.reader(data.decode("utf-8").splitlines()))
    except (UnicodeDecodeError, csv.Error):
        raise FileError(path, "something else", "lines of text with commas, in UTF-8") from None
    rows = [(f"{path}: line {number}", [item.strip() for item in row]) for number, row in enumerate(lines, 1) if row]
    return rows[1:] if rows and rows[0][1] == ["epsilon", "delta"] else rows


def cell_line(settings: Settings, cell: Cell) -> str:
    """One finished cell as a line of JSON: every family's offer for E X², and for E|X| where that is another."""
    with _ONE_AT_A_TIME:
        request = Request(*cell, settings.sensitivity, settings.max_K, settings.families)
        mechanisms = [found for family in settings.families for found in _family(request, family, settings)]
    return json.dumps({**settings.head(cell), "mechanisms": mechanisms}, ensure_ascii=False)


def _family(request: Request, family: str, settings: Settings) -> list[dict[str, Any]]:
    def found(loss: Loss) -> dict[str, Any] | None:
        end = time.monotonic() + settings.seconds
        limits = Limits(bits=settings.bits, expired=lambda: time.monotonic() > end)
        row = make_row(family, request, loss, limits)
        return None if row is None else row_document(row)

    l2 = found("l2")
    l1 = found("l1") if l2 is not None and family in BY_LOSS else l2
    if l1 is None or l2 is None:
        return []
    if l1 == l2:
        return [{**l2, "least": ["l1", "l2"]}]
    return [{**l1, "least": ["l1"]}, {**l2, "least": ["l2"]}]


def run(
    cells: list[Cell],
    settings: Settings,
    output: str,
    *,
    jobs: int,
    address: str | None,
    progress: Callable[[float], None] | None = None,
) -> Done:
    """Compute what ``output`` does not hold yet, adding each cell as it is finished, and leave it in cell order.

    Raises InputError where ``output`` holds something else, is another run's, or cannot be written.
    """
    with _held(output) as file:
        lines = _finished(output, cells, settings)
        kept = len(lines)
        missing = [cell for cell in cells if cell not in lines]

        def done(line: str) -> None:
            _append(file, line.encode() + b"\n", output)
            document = json.loads(line)
            lines[Fraction(document["epsilon"]), Fraction(document["delta"])] = line
            if progress is not None:
                progress(len(lines) / len(cells))

        if missing:
            with open_executor(jobs, address) as executor:
                compute(functools.partial(cell_line, settings), missing, executor, done)
        ordered = [lines[cell] for cell in cells]
        if os.name == "nt":
            file.close()  # Windows replaces no open file.
        write_atomically(output, "".join(f"{line}\n" for line in ordered).encode())
    return Done(tuple(map(json.loads, ordered)), kept)


@contextlib.contextmanager
def _held(output: str) -> Iterator[BinaryIO]:
    """The output, open at its end and locked against other runs. Raises FileError."""
    expected = "a file where a grid can be written"
    with contextlib.ExitStack() as opened:
        with clear_errors(output, expected):
            while True:
                if os.path.exists(output) and not os.path.isfile(output):
                    raise FileError(output, "something that is not a regular file", expected)
                # Without a buffer: what could not be written is not tried again when the file is closed.
                file = opened.enter_context(open(output, "ab", 0, opener=functools.partial(os.open, mode=0o644)))
                if not hold(file, wait=False):
                    raise FileError(output, "a file that another run is writing", "one run at a time")
                # The other run may have put its finished file in place just before this one had the lock.
                if os.path.samestat(os.fstat(file.fileno()), os.stat(output)):
                    break
        yield file


def _append(file: BinaryIO, data: bytes, output: str) -> None:
    with clear_errors(output, "a file with room for more"):
        while data:
            data = data[file.write(data) :]
        os.fsync(file.fileno())


def _finished(output: str, cells: Iterable[Cell], settings: Settings) -> dict[Cell, str]:
    """The lines of an earlier run; a last line that was cut off is taken away, from the file too."""
    if not os.path.exists(output):
        return {}
    data = read_bounded(output, MAX_BYTES)
    whole = data[: data.rfind(b"\n") + 1]
    torn = data[len(whole) :]
    if torn[: len(_BEGINNING)] != _BEGINNING[: len(torn)]:
        raise InputError(output, "a file of another kind", f"{_EXPECTED}, or another output")
    heads = {json.dumps(settings.head(cell)): cell for cell in cells}
    names = list(settings.head((Fraction(0), Fraction(0))))
    lines: dict[Cell, str] = {}
    for number, line in enumerate(whole.splitlines(), 1):
        where = f"{output}: line {number}"
        document = strict_json(line, where)
        if not isinstance(document, dict) or list(document) != [*names, "mechanisms"]:
            raise InputError(where, "something else", f"{_EXPECTED}, or another output")
        cell = heads.get(json.dumps({name: document[name] for name in names}))
        if cell is None:
            raise InputError(where, "a cell of other pairs or options", f"{_EXPECTED}, or another output")
        lines[cell] = line.decode()
    if torn:
        os.truncate(output, len(whole))
    return lines
