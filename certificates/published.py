"""``audit published``: what printed improvements in E X² need, and whether any multi- or quasi-Gaussian reaches it.

A figure p says that a mechanism's loss m is p per cent below a benchmark's loss a, p = 100 (a − m)/max(a, m). It is
read in its own favour: half a unit of its last place lower, with the benchmark's certified loss.
"""

from __future__ import annotations

import csv
import functools
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from audit.attain import Attempt, attempt_multi, attempt_quasi
from audit.offers import OFFERED, offer
from audit.verdict import Enclosure, Limits, Verdict
from certificates.canonical import strict_json
from certificates.errors import FileError
from certificates.files import read_bounded
from certificates.pool import compute, open_executor
from certificates.present import enclosure_document
from mechanisms.claims import Direct
from mechanisms.numbers import InputError, exact_text, read_delta, read_epsilon, read_real

REQUIRED = ("epsilon", "delta", "percent")
OPTIONAL = ("table", "against", "reachable_by_any")
GAUSSIAN = "gaussian"
ONE = Fraction(1)
WORDS = {Verdict.VERIFIED: "attainable", Verdict.REFUTED: "refuted", Verdict.INCONCLUSIVE: "inconclusive"}


@dataclass(frozen=True)
class Figure:
    """A printed figure, at sensitivity 1."""

    epsilon: Fraction
    delta: Fraction
    percent: str
    table: str = ""
    against: str = GAUSSIAN
    reachable_by_any: str = ""
    """What the file says of any additive mechanism: ``yes``, ``no`` or nothing. Quoted, not proved here."""

    @property
    def least_percent(self) -> Fraction:
        """The smallest number that is rounded to the printed one."""
        places = len(self.percent.partition(".")[2])
        return read_real(self.percent, "percent") - Fraction(1, 2 * 10**places)

    def implied(self, benchmark: Enclosure) -> Enclosure:
        """Encloses the greatest loss that the figure allows, given the benchmark's."""
        percent = self.least_percent
        factor = 1 - percent / 100 if percent >= 0 else 1 / (1 + percent / 100)
        return Enclosure(benchmark.lower * factor, benchmark.upper * factor)


def read_figures(path: str) -> list[Figure]:
    """The figures in a CSV file with a head, or in a JSON list of objects. Raises InputError that names the line."""
    data, suffix = read_bounded(path), Path(path).suffix.lower()
    if suffix == ".json":
        items = strict_json(data, path)
        named = [
            (f"{path}: item {number}", item) for number, item in enumerate(items if isinstance(items, list) else [], 1)
        ]
    elif suffix == ".csv":
        try:
            reader = csv.DictReader(data.decode("utf-8").splitlines(), skipinitialspace=True)
            named = [(f"{path}: line {number}", item) for number, item in enumerate(reader, 2)]
        except (UnicodeDecodeError, csv.Error):
            raise FileError(path, "something else", "lines of text with commas, in UTF-8") from None
    else:
        raise FileError(path, f"a name that ends in {suffix!r}", "one that ends in .csv or .json")
    if not named:
        raise InputError(path, "no figures", f"a list of them, each with {', '.join(REQUIRED)}")
    return [_figure(item, where) for where, item in named]


def _figure(item: object, where: str) -> Figure:
    fields = item if isinstance(item, dict) else {}
    names = {name for name in fields if isinstance(name, str)}
    if not set(REQUIRED) <= names <= {*REQUIRED, *OPTIONAL} or not all(isinstance(v, str) for v in fields.values()):
        raise InputError(where, item, f"{', '.join(REQUIRED)}, and perhaps {', '.join(OPTIONAL)}, each as text")
    percent = read_real(fields["percent"], f"{where}: percent")
    if not -100 < percent <= 100 or set(fields["percent"]) - set("+-.0123456789"):
        raise InputError(f"{where}: percent", fields["percent"], "a decimal above -100 and up to 100, such as 87.22")
    against = fields.get("against") or GAUSSIAN
    if against not in OFFERED:
        raise InputError(f"{where}: against", against, f"one of {', '.join(OFFERED)}")
    reachable = fields.get("reachable_by_any", "")
    if reachable not in ("", "yes", "no"):
        raise InputError(f"{where}: reachable_by_any", reachable, "yes, no or nothing")
    epsilon, delta = (
        read_epsilon(fields["epsilon"], f"{where}: epsilon"),
        read_delta(fields["delta"], f"{where}: delta"),
    )
    return Figure(epsilon, delta, fields["percent"], fields.get("table", ""), against, reachable)


def judge(max_K: int, seconds: float, bits: int, numbered: tuple[int, Figure]) -> str:
    """One figure's verdict as JSON. Every K is tried until one attains it; the quasi-Gaussian is tried last."""
    number, figure = numbered
    end = time.monotonic() + seconds
    limits = Limits(bits=bits, expired=lambda: time.monotonic() > end)
    document: dict[str, Any] = {
        "number": number,
        "table": figure.table,
        "epsilon": exact_text(figure.epsilon),
        "delta": exact_text(figure.delta),
        "percent": figure.percent,
        "against": figure.against,
        "reachable_by_any": figure.reachable_by_any or None,
    }
    benchmark = offer(figure.against, figure.epsilon, figure.delta, loss="l2", limits=limits)
    if benchmark is None or benchmark.decision.verdict is not Verdict.VERIFIED:
        return json.dumps({**document, "verdict": WORDS[Verdict.INCONCLUSIVE], "implied_l2": None, "attempts": []})
    loss = figure.implied(benchmark.losses.l2)
    attempts = _attempts(figure, loss, max_K, limits)
    attained = any(attempt.verdict is Verdict.VERIFIED for attempt in attempts)
    every_K = all(attempt.verdict is Verdict.REFUTED for attempt in attempts if attempt.K is not None)
    verdict = Verdict.VERIFIED if attained else Verdict.REFUTED if every_K else Verdict.INCONCLUSIVE
    return json.dumps(
        {
            **document,
            "verdict": WORDS[verdict],
            "implied_l2": enclosure_document(loss),
            "attempts": [_attempt_document(attempt) for attempt in attempts],
        }
    )


def _attempts(figure: Figure, loss: Enclosure, max_K: int, limits: Limits) -> list[Attempt]:
    claim = Direct(epsilon=figure.epsilon, delta=figure.delta)
    found: list[Attempt] = []
    for K in range(1, max_K + 1):
        found.append(attempt_multi(claim, ONE, K, loss, limits))
        if found[-1].verdict is Verdict.VERIFIED:
            return found
    return [*found, attempt_quasi(claim, ONE, loss, limits)]


def _attempt_document(attempt: Attempt) -> dict[str, Any]:
    sigma = None if attempt.sigma is None else exact_text(attempt.sigma)
    return {"family": attempt.family, "K": attempt.K, "sigma": sigma, "verdict": attempt.verdict.value}


def judge_all(
    figures: Sequence[Figure],
    max_K: int,
    *,
    seconds: float,
    bits: int,
    jobs: int,
    progress: Callable[[float], None] | None = None,
) -> list[dict[str, Any]]:
    """Every figure's verdict, in the order given; ``seconds`` is for each of them."""
    found: list[dict[str, Any]] = []

    def done(text: str) -> None:
        found.append(json.loads(text))
        if progress is not None:
            progress(len(found) / len(figures))

    with open_executor(jobs, None) as executor:
        compute(functools.partial(judge, max_K, seconds, bits), list(enumerate(figures)), executor, done)
    return sorted(found, key=lambda item: item["number"])


def published_block(found: Sequence[dict[str, Any]], max_K: int) -> str:
    """A table: by table and ε, how many figures came to which verdict."""
    lines = []
    for table in dict.fromkeys(item["table"] for item in found):
        rows = [item for item in found if item["table"] == table]
        quoted = any(item["reachable_by_any"] for item in rows)
        against = ", ".join(dict.fromkeys(item["against"] for item in rows))
        lines += [f"Table {table or '(no name)'}: E X² against {against}; refuted: for every K in 1..{max_K}", ""]
        head = ["ε", "figures", *WORDS.values(), *(["out of reach of any mechanism (quoted)"] if quoted else [])]
        body = []
        for epsilon in [*dict.fromkeys(item["epsilon"] for item in rows), None]:
            some = [item for item in rows if epsilon in (None, item["epsilon"])]
            verdicts = Counter(item["verdict"] for item in some)
            unreachable = sum(item["reachable_by_any"] == "no" for item in some)
            counts = [len(some), *(verdicts[word] for word in WORDS.values()), *([unreachable] if quoted else [])]
            body.append([epsilon or "all", *map(str, counts)])
        lines += [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body)]
        lines.append("")
    return "\n".join(lines).rstrip("\n")
