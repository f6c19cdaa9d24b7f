"""The scales of other libraries for the Gaussian mechanism, each judged by proof, and ours beside them.

    python benchmarks/peers.py [--pairs N] [--venv DIR] [--json FILE]

It makes an environment of its own for the libraries, with the versions below, asks each for the scale of random
(ε, δ) and of extreme ones, and prints two tables in Markdown. Every library gets doubles, and is judged at exactly
these: a scale is too small where (ε, δ)-differential privacy is refuted at it; exact where it is verified, and refuted
at the double below; too large where it is verified there too. mpmath says by how much, and must agree: it finds the
smallest double that holds by itself. Exit code 0: it measures, it sets no threshold.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import json
import math
import os
import queue
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath

from audit.decide import decide
from audit.exact import double_at, double_rank
from audit.scales import calibrate
from audit.verdict import Expired, Limits, Verdict
from certificates.files import write_atomically
from mechanisms.claims import Direct, Statement
from mechanisms.families import Gaussian
from mechanisms.numbers import InputError

HERE = Path(__file__).resolve().parent
WORKER = HERE / "peers_worker.py"
PINS = (
    *("dp-accounting==0.6.0", "opendp==0.16.0", "diffprivlib==0.6.6", "autodp==0.2.3.1"),
    *("prv-accountant==0.2.0", "python-dp==1.1.5"),
)
CONSTRAINTS = (*PINS, "numpy==2.4.6", "scipy==1.17.1", "scikit-learn==1.6.1")
"""diffprivlib does not load with a later scikit-learn."""
SECONDS = 8.0
"""For one answer."""
LOADING_SECONDS = 300.0
SEED = 20
OURS = "sigmacert"
RANDOM = "random pairs"


@dataclass(frozen=True)
class Tool:
    """One way to calibrate that a library offers: its name in the worker, and how many pairs it is asked (slow ones
    fewer)."""

    name: str
    pin: str
    pairs: int = 300


TOOLS = (
    Tool("dp_accounting.get_sigma_gaussian", PINS[0]),
    Tool("dp_accounting.get_smallest_gaussian_noise", PINS[0]),
    Tool("dp_accounting.calibrate_dp_mechanism, PLD", PINS[0], 40),
    Tool("dp_accounting.calibrate_dp_mechanism, RDP", PINS[0]),
    Tool("opendp.binary_search_param, zCDP", PINS[1]),
    Tool("diffprivlib.GaussianAnalytic", PINS[2]),
    Tool("diffprivlib.Gaussian", PINS[2]),
    Tool("autodp.ana_gaussian_mech", PINS[3]),
    Tool("autodp.ana_gaussian_calibrator", PINS[3]),
    Tool("autodp.classical_gaussian_mech", PINS[3]),
    Tool("prv_accountant.find_noise_multiplier", PINS[4], 40),
    Tool("pydp.GaussianMechanism", PINS[5]),
)


@dataclass(frozen=True)
class Case:
    """A request: the noise of a query of this sensitivity for (ε, δ)-differential privacy."""

    epsilon: float
    delta: float
    sensitivity: float = 1.0

    @property
    def claim(self) -> Direct:
        """The promise, of exactly these doubles."""
        return Direct(epsilon=Fraction(self.epsilon), delta=Fraction(self.delta))


EXTREMES = (
    *(Case(1, 1e-6), Case(0.1, 1e-5), Case(50, 1e-6), Case(700, 1e-6), Case(710, 1e-6), Case(1000, 1e-6)),
    *(Case(1e-3, 1e-9), Case(1e-9, 1e-10), Case(1e-9, 1e-300), Case(0, 1e-6)),
    *(Case(1, 1e-13), Case(1, 1e-18), Case(1, 1e-100), Case(1, 1e-300), Case(1, 5e-324)),
    *(Case(1, 0.499), Case(1, 0.5), Case(1, 0.9), Case(1000, 0.499)),
    *(Case(1, 1e-6, 1e-30), Case(1, 1e-6, 1e30)),
)


def log_uniform(count: int) -> list[Case]:
    """Pairs with ε in [0.01, 20] and δ in [1e-11, 1e-3], the same ones every time."""
    source = random.Random(SEED)

    def draw(low: float, high: float) -> float:
        return float(f"{math.exp(source.uniform(math.log(low), math.log(high))):.9g}")

    return [Case(draw(0.01, 20), draw(1e-11, 1e-3)) for _ in range(count)]


@dataclass(frozen=True)
class Answer:
    """``sigma``, or None and what happened instead: crash, hang or refuse."""

    sigma: float | None
    instead: str = ""
    said: str = ""


@dataclass(frozen=True)
class Judged:
    """``outcome`` is too small, exact, too large or undecided, or what happened instead of an answer. ``log_ratio`` is
    ln(real δ / δ), ``excess`` the relative distance from the smallest double that holds."""

    outcome: str
    answer: Answer
    log_ratio: float | None = None
    excess: float | None = None


@functools.cache
def verdict(case: Case, sigma: float) -> Verdict:
    """Whether N(0, σ²) keeps the promise, by proof."""
    noise = Gaussian(sensitivity=Fraction(case.sensitivity), sigma=Fraction(sigma))
    return decide(Statement(noise, case.claim)).verdict


def cdf(x: mpmath.mpf) -> mpmath.mpf:
    """Φ(x); beyond ±10⁶, where mpmath overflows, 0 or 1, as far as any use here can tell."""
    return mpmath.ncdf(x) if abs(x) < 10**6 else mpmath.mpf(x > 0)


def log_ratio(case: Case, sigma: float) -> float:
    """ln(real δ / δ) of N(0, σ²), with 150 digits: Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ) (Balle and Wang, 2018)."""
    with mpmath.workdps(150):
        scale, epsilon = mpmath.mpf(sigma) / mpmath.mpf(case.sensitivity), mpmath.mpf(case.epsilon)
        half = 1 / (2 * scale)
        real = cdf(half - epsilon * scale) - mpmath.exp(epsilon) * cdf(-half - epsilon * scale)
        return float(mpmath.log(max(real, 0) / mpmath.mpf(case.delta)))


@functools.cache
def smallest_double(case: Case) -> float:
    """The smallest double that holds, by mpmath: D falls as σ grows."""
    low, high = 1, double_rank(sys.float_info.max)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if log_ratio(case, double_at(middle)) > 0 else (low, middle)
    return double_at(high)


def ours(case: Case) -> Answer:
    """Our scale, under the limit that the others have."""
    end = time.monotonic() + SECONDS
    limits = Limits(expired=lambda: time.monotonic() > end)
    try:
        found = calibrate("gaussian", case.claim, sensitivity=Fraction(case.sensitivity), limits=limits)
    except InputError as error:
        return Answer(None, "refuse", str(error))
    except Expired:
        return Answer(None, "hang")
    if found.decision.verdict is not Verdict.VERIFIED:
        return Answer(None, "hang", found.decision.reason)
    return Answer(float(found.statement.mechanism.sigma))  # type: ignore[attr-defined]  # a double, exactly


def judge(case: Case, answer: Answer) -> Judged:
    """What an answer is worth. Raises ArithmeticError where mpmath contradicts the proof."""
    sigma = answer.sigma
    if sigma is None:
        return Judged(answer.instead, answer)
    if not 0 < sigma < math.inf:
        return Judged("crash", Answer(None, "crash", f"answered {sigma}"))
    here, below = verdict(case, sigma), verdict(case, math.nextafter(sigma, 0))
    if Verdict.INCONCLUSIVE in (here, below):
        return Judged("undecided", answer)
    best = smallest_double(case)
    if (here is Verdict.REFUTED, below is Verdict.REFUTED) != (sigma < best, sigma <= best):
        raise ArithmeticError(f"{case}, sigma = {sigma!r}: proved {here.value}, but mpmath has {best!r}")
    if here is Verdict.REFUTED:
        return Judged("too small", answer, log_ratio=log_ratio(case, sigma))
    if below is Verdict.REFUTED:
        return Judged("exact", answer)
    return Judged("too large", answer, excess=float(Fraction(sigma) / Fraction(best) - 1))


class Worker:
    """A process that calibrates with one tool; ended and started again where it does not answer in time."""

    def __init__(self, python: Path, tool: str) -> None:
        self._command = [str(python), str(WORKER), tool]
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str] = queue.Queue()

    def start(self) -> str:
        """What is wrong with it, or nothing."""
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        environment.pop("PYTHONPATH", None)
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self._lines = queue.Queue()
        threading.Thread(target=_read, args=(self._process, self._lines), daemon=True).start()
        line = self._next(LOADING_SECONDS)
        if not line:
            self.stop()
            return "does not load" if line is not None else "does not load in time"
        return ""

    def ask(self, case: Case) -> Answer:
        """The tool's answer to one case."""
        if self._process is None and (wrong := self.start()):
            return Answer(None, "crash", wrong)
        assert self._process is not None and self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended: the next line is the end of its output
            print(json.dumps(dataclasses.asdict(case)), file=self._process.stdin, flush=True)
        line = self._next(SECONDS)
        if not line:
            self.stop()
            return Answer(None, "hang") if line is None else Answer(None, "crash", "the process ended")
        found: dict[str, Any] = json.loads(line)
        if "sigma" in found:
            return Answer(found["sigma"])
        ((instead, said),) = found.items()
        return Answer(None, instead, said)

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _next(self, seconds: float) -> str | None:
        """The next line, nothing at the end of the output, None where the time is over."""
        try:
            return self._lines.get(timeout=seconds)
        except queue.Empty:
            return None


def _read(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    assert process.stdout is not None
    with process.stdout as stream:
        for line in stream:
            lines.put(line)
    lines.put("")


def install(
    folder: Path, pins: Sequence[str] = PINS, constraints: Sequence[str] = CONSTRAINTS
) -> tuple[Path, dict[str, str]]:
    """(the Python of an environment with the libraries, what went wrong by pin)."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        _say(f"making {folder}")
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    listed = folder / "constraints.txt"
    listed.write_text("\n".join(constraints) + "\n", encoding="utf-8")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", str(listed)]
    wrong = {}
    for pin in pins:
        _say(f"installing {pin}")
        done = subprocess.run([*pip, pin], capture_output=True, text=True, check=False)
        if done.returncode:
            wrong[pin] = f"not installable: {(done.stderr.strip().splitlines() or ['pip failed'])[-1]}"
    return python, wrong


def _say(text: str) -> None:
    """Progress, for a person who watches."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


OUTCOMES = ("too small", "exact", "too large")
NO_ANSWER = ("refuse", "crash", "hang", "undecided")


def row(name: str, judged: list[Judged]) -> str:
    """One tool's line of a table."""
    counts = {outcome: sum(found.outcome == outcome for found in judged) for outcome in (*OUTCOMES, *NO_ANSWER)}
    ratios = [found.log_ratio for found in judged if found.log_ratio is not None]
    excesses = [found.excess for found in judged if found.excess is not None]
    missing = ", ".join(f"{counts[outcome]} {outcome}" for outcome in NO_ANSWER if counts[outcome])
    cells = [name, str(len(judged)), *(str(counts[outcome]) for outcome in OUTCOMES), missing or "0"]
    cells += [ratio_text(max(ratios)) if ratios else "", excess_text(statistics.median(excesses)) if excesses else ""]
    return f"| {' | '.join(cells)} |"


def ratio_text(log: float) -> str:
    """A ratio of at least 1 from its logarithm."""
    if log < 1e-3:
        return f"1 + {math.expm1(log):.1e}"
    return f"{math.exp(log):.4g}" if log < 700 else f"1e{log / math.log(10):.0f}"


def excess_text(excess: float) -> str:
    """A relative excess: as a percentage, or with a power of ten where that is small or large."""
    return f"{excess:.2%}" if 1e-4 <= excess < 10 else f"{excess:.1e}"


TITLES = "| tool | asked | too small | exact | too large | no answer | worst real δ / δ | median excess |"


def table(results: dict[str, list[Judged]]) -> str:
    """The results in Markdown."""
    return "\n".join([TITLES, "| --- |" + " --- |" * 7, *(row(name, judged) for name, judged in results.items())])


def run(worker: Callable[[Case], Answer], name: str, cases: list[Case]) -> Iterator[Judged]:
    """Ask a tool every case, and judge."""
    for number, case in enumerate(cases):
        _say(f"{name}: {number + 1} of {len(cases)}")
        yield judge(case, worker(case))


def measure(python: Path, wrong: dict[str, str], sets: dict[str, list[Case]]) -> dict[str, dict[str, list[Judged]]]:
    """Per set of cases and tool, what each answer is worth; ours last. Adds the tools that do not load to ``wrong``."""
    results: dict[str, dict[str, list[Judged]]] = {title: {} for title in sets}
    for tool in TOOLS:
        if tool.pin in wrong:
            continue
        worker = Worker(python, tool.name)
        if failed := worker.start():
            wrong[tool.name] = failed
            continue
        for title, cases in sets.items():
            asked = cases[: tool.pairs] if title == RANDOM else cases
            results[title][tool.name] = list(run(worker.ask, tool.name, asked))
        worker.stop()
    for title, cases in sets.items():
        results[title][OURS] = list(run(ours, OURS, cases))
    return results


def main() -> None:
    """Install, ask, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=300, help="how many random pairs")
    parser.add_argument("--venv", type=Path, default=HERE.parent / "build" / "peers-venv", help="the environment")
    parser.add_argument("--json", help="write every answer to this file too")
    options = parser.parse_args()
    python, wrong = install(options.venv.absolute())
    sets = {RANDOM: log_uniform(max(0, options.pairs)), "extreme points": list(EXTREMES)}
    results = measure(python, wrong, sets)
    _say("")
    print(f"{', '.join(CONSTRAINTS).replace('==', ' ')}; at most {SECONDS:g} s an answer")
    for name, reason in wrong.items():
        print(f"left out: {name}: {reason}")
    for title, cases in sets.items():
        print(f"\n{len(cases)} {title}\n\n{table(results[title])}")
    if options.json:
        figures = {
            title: {
                name: [
                    {"case": dataclasses.asdict(case), **dataclasses.asdict(found)}
                    for case, found in zip(sets[title], judged, strict=False)
                ]
                for name, judged in tools.items()
            }
            for title, tools in results.items()
        }
        document = {"versions": CONSTRAINTS, "left_out": wrong, "results": figures}
        write_atomically(options.json, json.dumps(document, indent=1, ensure_ascii=False).encode())


if __name__ == "__main__":
    main()
