"""A finished grid in the shape of the paper's Tables 3 to 7, from certified losses, as Markdown or CSV."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from audit.scales import Loss
from audit.verdict import Enclosure, Verdict
from certificates.files import require_writable, write_atomically
from mechanisms.numbers import InputError, read_real

Line = dict[str, Any]
"""A line of certificates.grid."""
Value = Enclosure | int | None

MISSING: Final = "NA"
MULTIMODAL: Final = ("multi-gaussian", "quasi-gaussian")
SUFFIXES: Final = (".md", ".csv")
PLACES: Final = {".md": 2, ".csv": 6}
"""Decimal places of a percentage."""


def loss_in(line: Line, family: str, loss: Loss) -> Enclosure | None:
    """The certified loss of a family where it was chosen for that loss; None where there is no proved one."""
    row = _row(line, family, loss)
    if row is None:
        return None
    return Enclosure(read_real(row[loss]["lower"], "lower"), read_real(row[loss]["upper"], "upper"))


def _row(line: Line, family: str, loss: Loss) -> Line | None:
    for row in line["mechanisms"]:
        if row["family"] == family and loss in row["least"] and row["verdict"] == Verdict.VERIFIED.value:
            found: Line = row
            return found
    return None


def improvement(old: Enclosure, new: Enclosure) -> Enclosure:
    """Encloses 100 (a − m)/max(a, m): how many per cent the loss m is below a (above, where negative)."""

    def exact(a: Fraction, m: Fraction) -> Fraction:
        return 100 * (a - m) / max(a, m)

    return Enclosure(exact(old.lower, new.upper), exact(old.upper, new.lower))


def _least(line: Line, families: Sequence[str], loss: Loss) -> Enclosure | None:
    """The least of the families' losses; None unless all are there."""
    losses = [loss_in(line, family, loss) for family in families]
    known = [value for value in losses if value is not None]
    if len(known) < len(losses):
        return None
    return Enclosure(min(value.lower for value in known), min(value.upper for value in known))


def _compared(news: Sequence[str], olds: Sequence[str], loss: Loss) -> Callable[[Line], Value]:
    def value(line: Line) -> Value:
        old, new = _least(line, olds, loss), _least(line, news, loss)
        return None if old is None or new is None else improvement(old, new)

    return value


def _best_K(line: Line) -> Value:
    row = _row(line, "multi-gaussian", "l1")
    return None if row is None else int(row["K"])


@dataclass(frozen=True)
class Table:
    """A table of the paper: its number there, what it shows, and a cell's value."""

    number: str
    title: str
    value: Callable[[Line], Value]


TABLES: Final = (
    Table("3", "K of the multi-Gaussian of least E|X|", _best_K),
    Table(
        "4",
        "E X²: the better of multi- and quasi-Gaussian over the Gaussian",
        _compared(MULTIMODAL, ["gaussian"], "l2"),
    ),
    Table("5", "E|X|: the quasi-Gaussian over the Gaussian", _compared(["quasi-gaussian"], ["gaussian"], "l1")),
    Table("6", "E X²: the quasi-Gaussian over the Gaussian", _compared(["quasi-gaussian"], ["gaussian"], "l2")),
    Table(
        "7",
        "E X²: the better of multi- and quasi-Gaussian over the truncated Laplace",
        _compared(MULTIMODAL, ["truncated-laplace"], "l2"),
    ),
    Table(
        "7, with Tulap",
        "E X²: the better of multi- and quasi-Gaussian over the better of truncated Laplace and Tulap",
        _compared(MULTIMODAL, ["truncated-laplace", "tulap"], "l2"),
    ),
)


def check_path(path: str) -> None:
    """Refuse a name that is not a table's, and a place where none can be, before any work."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise InputError("--table", path, f"a name that ends in {' or '.join(SUFFIXES)}")
    require_writable(path)


def write_tables(lines: Sequence[Line], path: str) -> None:
    """All the tables that the lines have figures for, as Markdown or CSV by the name's ending."""
    suffix = Path(path).suffix.lower()
    epsilons = list(dict.fromkeys(line["epsilon"] for line in lines))
    deltas = sorted(dict.fromkeys(line["delta"] for line in lines), key=lambda text: read_real(text, "delta"))
    cells = {(line["epsilon"], line["delta"]): line for line in lines}
    out = io.StringIO()
    if suffix == ".csv":
        print("table", "delta", *epsilons, sep=",", file=out)
    for table in TABLES:
        values = {key: _text(table.value(line), PLACES[suffix], suffix) for key, line in cells.items()}
        if set(values.values()) == {MISSING}:
            continue
        rows = [[delta, *(values.get((epsilon, delta), MISSING) for epsilon in epsilons)] for delta in deltas]
        if suffix == ".csv":
            out.writelines(f'"{table.number}",{",".join(row)}\n' for row in rows)
            continue
        out.write(f"**Table {table.number}.** {table.title}{'' if table.number == '3' else ', per cent'}.\n\n")
        out.writelines(
            f"| {' | '.join(row)} |\n" for row in (["δ \\ ε", *epsilons], ["---"] * (len(epsilons) + 1), *rows)
        )
        out.write("\n")
    write_atomically(path, out.getvalue().rstrip("\n").encode() + b"\n")


def _text(value: Value, places: int, suffix: str) -> str:
    """A number of that many places to which both ends round; where they differ, both."""
    if value is None:
        return MISSING
    if isinstance(value, int):
        return str(value)
    low, high = (_fixed(end, places) for end in (value.lower, value.upper))
    sign = "%" if suffix == ".md" else ""
    return f"{low}{sign}" if low == high else f"{low}{sign} … {high}{sign}"


def _fixed(number: Fraction, places: int) -> str:
    """The nearest decimal of that many places."""
    units = round(number * 10**places)
    whole, rest = divmod(abs(units), 10**places)
    return f"{'-' if units < 0 else ''}{whole}.{rest:0{places}}"
