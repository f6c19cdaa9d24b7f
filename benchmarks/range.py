"""Is every request answered or refused? The corners of the range, each as a process of its own.

    python benchmarks/range.py [--seconds T] [--every N] [--lines FILE]

Calibrates over epsilon × delta × sensitivity × family × claim, K up to 1000; then certifies each scale found, 1 %
larger and 1 % smaller. Counts how it went, the longest run and the most memory, and names whatever ended in another way
than an answer or one clear line.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EPSILONS = ("1e-9", "1e-3", "0.1", "1", "10", "100", "1000")
DELTAS = ("1e-300", "1e-100", "1e-12", "1e-6", "0.01", "0.5", "0.9")
SENSITIVITIES = ("1", "1e-30", "1e30")
ETAS = ("1e-9", "0.01", "0.5")
FAMILIES = ("gaussian", "quasi-gaussian", "multi-gaussian")
COUNTS = (1, 2, 10, 100, 1000)
WORDS = {0: "verified", 1: "refuted", 2: "refused", 3: "inconclusive"}


@dataclass(frozen=True)
class Request:
    """A mechanism without its scale, and a claim."""

    family: str
    K: int | None
    kind: str
    eta: str | None
    epsilon: str
    delta: str
    sensitivity: str

    def calibrate(self) -> list[str]:
        """The arguments of the command line."""
        found = ["calibrate", self.family, "--epsilon", self.epsilon, "--delta", self.delta]
        found += ["--sensitivity", self.sensitivity, "--claim", self.kind, "--json"]
        return found + (["-K", str(self.K)] if self.K else []) + (["--eta", self.eta] if self.eta else [])

    def document(self, sigma: Fraction) -> dict[str, Any]:
        """A claim file."""
        mechanism = {"family": self.family, "sensitivity": self.sensitivity, "sigma": str(sigma)}
        claim = {"kind": self.kind, "epsilon": self.epsilon, "delta": self.delta}
        return {
            "mechanism": {**mechanism, **({"K": self.K} if self.K else {})},
            "claim": {**claim, **({"eta": self.eta} if self.eta else {})},
        }


def requests() -> Iterator[Request]:
    """Every corner, in a fixed order."""
    for epsilon, delta, sensitivity in itertools.product(EPSILONS, DELTAS, SENSITIVITIES):
        for family in FAMILIES:
            for K in COUNTS if family == "multi-gaussian" else (None,):
                kinds: list[tuple[str, str | None]] = [("direct", None)]
                if family == "quasi-gaussian":
                    kinds.append(("theorem-4.2", None))
                else:
                    kinds += [("theorem-3.2", eta) for eta in ETAS]
                for kind, eta in kinds:
                    yield Request(family, K, kind, eta, epsilon, delta, sensitivity)


@dataclass(frozen=True)
class Run:
    """What one process did."""

    code: int
    out: str
    err: str
    seconds: float
    megabytes: float


def run(arguments: list[str]) -> Run:
    """One process of the command line, with what it took."""
    command = [sys.executable, str(ROOT / "cli.py"), *arguments]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=err, cwd=ROOT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - start
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return Run(process.returncode, texts[0], texts[1], seconds, usage.ru_maxrss / 1024)


def is_clean(done: Run) -> bool:
    """An answer in JSON, or one line that says why not."""
    if done.code == 2:
        return len((done.out + done.err).strip().splitlines()) == 1 and "Traceback" not in done.err
    return done.code in WORDS and not done.err and json.loads(done.out).get("verdict") == WORDS[done.code]


def main() -> None:
    """Try them all and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", default="60", help="the time limit that each request is given")
    parser.add_argument("--every", type=int, default=1, help="only every N-th request")
    parser.add_argument("--lines", help="append every run to this file, as a line of JSON, as it ends")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    chosen = list(requests())[:: options.every]
    for number, request in enumerate(chosen):
        if sys.stderr.isatty():
            print(f"\r{number + 1} of {len(chosen)}", end="", file=sys.stderr)
        name = f"{request.family}{'' if request.K is None else f' K={request.K}'}"
        limit = ["--seconds", options.seconds]
        found = run([*request.calibrate(), *limit])
        tried = [("calibrate", found)]
        if found.code == 0:
            sigma = Fraction(float.fromhex(json.loads(found.out)["sigma"]))
            for what, factor in (("1 % above", Fraction(101, 100)), ("1 % below", Fraction(99, 100))):
                with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                    json.dump(request.document(sigma * factor), file)
                    file.flush()
                    tried.append((what, run(["certify", file.name, "--json", *limit])))
        for what, done in tried:
            rows.append({"family": name, "what": what, "request": vars(request), **vars(done), "clean": is_clean(done)})
            if options.lines:
                with open(options.lines, "a", encoding="utf-8") as lines:
                    print(json.dumps(rows[-1]), file=lines)
    show(rows)


def show(rows: list[dict[str, Any]]) -> None:
    """A table by family and task, and a line for whatever was not clean."""
    heads = [*WORDS.values(), "other"]
    print("| family | task | runs | " + " | ".join(heads) + " | longest s | most MB |")
    print("| --- | --- | --- | " + " --- |" * (len(heads) + 2))
    groups: dict[tuple[str, str], list[dict[str, Any]]] = collections.defaultdict(list)
    for row in rows:
        groups[row["family"], row["what"]].append(row)
    for (family, what), group in groups.items():
        counts = collections.Counter(WORDS[row["code"]] if row["clean"] else "other" for row in group)
        seconds, megabytes = (max(row[key] for row in group) for key in ("seconds", "megabytes"))
        cells = [family, what, len(group), *(counts[head] for head in heads), f"{seconds:.1f}", f"{megabytes:.0f}"]
        print("| " + " | ".join(map(str, cells)) + " |")
    for row in rows:
        wrong = (row["what"], row["code"]) in {("1 % above", 1), ("1 % below", 0)}
        if not row["clean"] or wrong:
            request, error = row["request"], row["err"].strip()[-200:]
            print(f"not clean or not as expected: {row['family']} {row['what']} {request}: {row['code']} {error}")


if __name__ == "__main__":
    main()
