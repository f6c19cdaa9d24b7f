"""The soundness campaign: random hard claims, decided by the auditor, each verdict checked by the referee.

    python -m tests.soundness.campaign --claims 10000 [--seed N] [--jobs J]

prints a table and exits with 1 if a verdict contradicts the referee. A seed makes the same claims wherever it runs:
what is reported of seed N is seen again with ``--seed N --claims 12``.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import multiprocessing
import os
import random
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from audit.decide import decide
from audit.verdict import Decision, Limits, Verdict
from tests.soundness.drawing import DRAWS, Trial

SECONDS = 120.0
"""Processor time after which a claim is inconclusive."""


@dataclass(frozen=True)
class Result:
    """One claim, decided and judged."""

    seed: int
    kind: str
    verdict: str
    seconds: float
    """Processor time of the decision."""
    judging: float
    """Of the referee."""
    contradiction: str
    undecided: bool
    short: bool
    statement: str

    @property
    def remark(self) -> str:
        """What a person should see at once; empty for an ordinary result."""
        what = self.contradiction or ("the referee found less than the auditor" if self.short else "")
        what = what or ("undecided by the referee" if self.undecided else "")
        what = what or ("inconclusive" if self.verdict == Verdict.INCONCLUSIVE.value else "")
        return what and f"seed {self.seed}, {self.kind}: {what}, {self.seconds:.1f} s: {self.statement}"


def watched(seconds: float = SECONDS) -> Limits:
    """The usual limits, and a watch on processor time."""
    end = time.process_time() + seconds
    return Limits(expired=lambda: time.process_time() > end)


def _judged(seed: int, kind: str, trial: Trial) -> Result:
    start = time.process_time()
    decision: Decision = trial.decision or decide(trial.statement, watched())
    middle = time.process_time()
    ruling = trial.question.rule(trial.statement, decision)
    return Result(
        seed=seed,
        kind=kind,
        verdict=decision.verdict.value,
        seconds=middle - start + trial.seconds,
        judging=time.process_time() - middle,
        contradiction=ruling.contradiction,
        undecided=ruling.undecided,
        short=ruling.short,
        statement=json.dumps(trial.statement.document()),
    )


def run_seed(seed: int, most: int | None = None) -> list[Result]:
    """All claims of one seed, or the first few; the kinds take turns."""
    kind, draw = DRAWS[seed % len(DRAWS)]
    rng = random.Random(f"{kind} {seed}")
    return [_judged(seed, kind, trial) for trial in draw(rng, watched)[:most]]


def run(first: int, executor: Executor | None = None, ahead: int = 8) -> Iterator[Result]:
    """The results of all seeds from the first on, in order, without an end."""
    seeds = itertools.count(first)
    if executor is None:
        for seed in seeds:
            yield from run_seed(seed)
        return
    waiting: deque[Future[list[Result]]] = deque()
    while True:
        while len(waiting) < ahead:
            waiting.append(executor.submit(run_seed, next(seeds)))
        yield from waiting.popleft().result()


def table(results: Iterable[Result]) -> str:
    """A line for each kind of draw, and one for all."""
    heads = (
        "claims",
        "verified",
        "refuted",
        "inconclusive",
        "contradictions",
        "undecided",
        "short",
        "seconds",
        "longest",
    )
    rows: dict[str, Counter[str]] = {}
    longest: Counter[str] = Counter()
    for result in results:
        for name in (result.kind, "all"):
            row = rows.setdefault(name, Counter())
            row.update({"claims": 1, result.verdict: 1, "contradictions": int(bool(result.contradiction))})
            row.update({"undecided": int(result.undecided), "short": int(result.short)})
            row["milliseconds"] += round(1000 * (result.seconds + result.judging))
            longest[name] = max(longest[name], round(1000 * result.seconds))
    order = sorted(rows, key=lambda name: (name == "all", name))
    lines = [f"{'kind':<20}" + "".join(f"{head:>{len(head) + 2}}" for head in heads)]
    for name in order:
        row = rows[name]
        cells = [str(row[head]) for head in heads[:-2]]
        cells += [f"{row['milliseconds'] / 1000:.0f}", f"{longest[name] / 1000:.1f}"]
        lines.append(
            f"{name:<20}" + "".join(f"{cell:>{len(head) + 2}}" for head, cell in zip(heads, cells, strict=True))
        )
    return "\n".join(lines)


def collect(results: Iterator[Result], claims: int, record: TextIO) -> list[Result]:
    """That many results, each a line of JSON in the record at once; remarks, and the progress where a person watches,
    go to standard error."""
    found: list[Result] = []
    watching = sys.stderr.isatty()
    for result in itertools.islice(results, claims):
        found.append(result)
        print(json.dumps(dataclasses.asdict(result)), file=record, flush=True)
        if result.remark:
            print(result.remark, file=sys.stderr, flush=True)
        if watching and len(found) % 10 == 0:
            print(f"\r{len(found)} of {claims} claims", end="", file=sys.stderr, flush=True)
    if watching:
        print(file=sys.stderr)
    return found


def _campaign(claims: int, seed: int, jobs: int, record: TextIO) -> list[Result]:
    if jobs == 1:
        return collect(run(seed), claims, record)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as executor:
        found = collect(run(seed, executor, 4 * jobs), claims, record)
        executor.shutdown(cancel_futures=True)
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soundness.campaign", description="The soundness campaign.")
    parser.add_argument("--claims", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--record", type=Path, default=Path(os.devnull), help="a file for a line of JSON a claim")
    chosen = parser.parse_args(arguments)
    if min(chosen.claims, chosen.jobs) < 1 or chosen.seed < 0:
        parser.error("--claims and --jobs are at least 1, --seed at least 0")
    with chosen.record.open("w", encoding="utf-8") as record:
        found = _campaign(chosen.claims, chosen.seed, chosen.jobs, record)
    print(table(found))
    return 1 if any(result.contradiction for result in found) else 0


if __name__ == "__main__":
    sys.exit(main())
