"""What a proof costs: certification, calibration, float calibration, and a plain quadrature baseline, in one run.

    python benchmarks/run.py [--cells N] [--baseline N] [--json FILE]

Times are process seconds on this machine; compare ratios within one run, not seconds between runs. Exit code 0: it
measures, it does not judge.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from audit.decide import decide_from
from audit.scales import calibrate
from audit.verdict import Limits
from certificates.paper import CELLS
from mechanisms.calibration import float_sigma
from mechanisms.claims import Claim, Direct, Statement, Theorem32
from mechanisms.families import MultiGaussian

ROOT = Path(__file__).resolve().parent.parent
ABOVE = Fraction(101, 100)
BASELINE_SHIFTS = 2000
BASELINE_POINTS = 4001


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """(what the work returns, process seconds)."""
    start = time.process_time()
    return work(), time.process_time() - start


def member(epsilon: str, K: int, sigma: Fraction = Fraction(1)) -> MultiGaussian:
    """A multi-Gaussian of sensitivity 1."""
    return MultiGaussian(sensitivity=Fraction(1), sigma=sigma, K=K, epsilon=Fraction(epsilon))


def certify(claim: Claim, K: int, sigma: Fraction) -> str:
    """The verdict on a claim, without the enclosure that only a certificate needs."""
    epsilon = str(claim.epsilon)
    return decide_from(Statement(member(epsilon, K, sigma), claim), Limits(), enclose_refuted=False).verdict.value


def quadrature_supremum(epsilon: float, K: int, sigma: float) -> float:
    """Algorithm 2 written plainly: the integral of the positive part by the trapezoidal rule, at 2000 shifts."""
    weights = np.exp(-np.abs(np.arange(-K, K + 1)) * epsilon)
    weights /= weights.sum()
    x = np.linspace(-K - 2 - 10 * sigma, K + 1 + 10 * sigma, BASELINE_POINTS)
    means = np.arange(-K, K + 1)[:, None]

    def density(at: np.ndarray) -> np.ndarray:
        lines = np.exp(-((at[None, :] - means) ** 2) / (2 * sigma**2)) / (math.sqrt(2 * math.pi) * sigma)
        return np.asarray(weights @ lines)

    here = math.exp(epsilon) * density(x)
    shifts = np.linspace(0, 1, BASELINE_SHIFTS + 1)
    return max(float(np.trapezoid(np.maximum(density(x + shift) - here, 0), x)) for shift in shifts)


def quadrature_calibration(epsilon: float, delta: float, K: int, upper: float) -> float:
    """Algorithm 1 written plainly: bisection on sigma to a relative 1e-4."""
    low, high = 0.0, upper
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if quadrature_supremum(epsilon, K, middle) <= 0.99 * delta else (middle, high)
    return high


def show(title: str, rows: Iterable[tuple[str, list[float]]]) -> dict[str, Any]:
    """Print a table of medians and maxima, and give it back."""
    print(f"\n{title}\n{'':34}{'count':>7}{'median s':>12}{'max s':>12}")
    found = {}
    for name, values in rows:
        if values:
            found[name] = {"count": len(values), "median": statistics.median(values), "max": max(values)}
            print(f"{name:34}{len(values):7}{found[name]['median']:12.4f}{found[name]['max']:12.4f}", flush=True)
    return found


def best_K(epsilon: str, delta: str) -> int:
    """The K of least E X² in 1..20, by floats."""
    claim = Direct(epsilon=Fraction(epsilon), delta=Fraction(delta))

    def loss(K: int) -> float:
        return float(member(epsilon, K, Fraction(float_sigma(member(epsilon, K), claim))).form.mean_square())

    losses = {K: loss(K) for K in range(1, 21)}
    return min(K for K in losses if losses[K] <= min(losses.values()) * (1 + 1e-9))


def over_the_grid(cells: list[tuple[str, str]]) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Certification 1 % above the tight scale, calibration to the smallest double, and float calibration."""
    times: dict[str, list[float]] = {}
    wrong: dict[str, list[str]] = {}

    def note(name: str, cell: str, seconds: float, right: bool) -> None:
        times.setdefault(name, []).append(seconds)
        if not right:
            wrong.setdefault(name, []).append(cell)

    for number, (epsilon, delta) in enumerate(cells):
        if sys.stderr.isatty():
            print(f"\rcell {number + 1} of {len(cells)}", end="", file=sys.stderr)
        for K in (1, 5, 10, 20):
            cell = f"epsilon={epsilon} delta={delta} K={K}"
            direct = Direct(epsilon=Fraction(epsilon), delta=Fraction(delta))
            grid = Theorem32(epsilon=direct.epsilon, delta=direct.delta, eta=Fraction("0.01"))
            sigma, seconds = timed(lambda K=K, e=epsilon, c=direct: float_sigma(member(e, K), c))
            note(f"float, K = {K}", cell, seconds, True)
            for name, claim, tight in (("direct", direct, sigma), ("theorem-3.2", grid, None)):
                tight = float_sigma(member(epsilon, K), claim) if tight is None else tight
                verdict, seconds = timed(lambda K=K, c=claim, s=tight: certify(c, K, Fraction(s) * ABOVE))
                note(f"{name}, 1 % above, K = {K}", cell, seconds, verdict == "verified")
        K = best_K(epsilon, delta)
        found, seconds = timed(lambda K=K, c=direct: calibrate("multi-gaussian", c, K=K))
        note("smallest double, best K", f"epsilon={epsilon} delta={delta} K={K}", seconds, found.adjacent)
        if number % 10 == 0:
            found, seconds = timed(lambda c=direct: calibrate("multi-gaussian", c, candidates=range(1, 21)))
            right = found.adjacent and all(trial.excluded for trial in found.tried)
            note("smallest double, K auto", cell, seconds, right)
    return show("over the grid", sorted(times.items())), wrong


def growth() -> dict[str, Any]:
    """Certification 1 % above the tight scale as one thing grows."""
    tables = {}
    series: dict[str, list[tuple[str, str, str, int, Fraction]]] = {
        "delta": [(f"1e-{n}", "1", f"1e-{n}", 5, Fraction(1, 100)) for n in (3, 10, 30, 100, 300)],
        "slack": [(f"1e-{n}", "1", "0.01", 4, Fraction(1, 10**n)) for n in (2, 4, 6, 9, 12, 15)],
        "K": [(str(n), "1", "1e-5", n, Fraction(1, 100)) for n in (1, 5, 20, 50, 100, 200)],
        "epsilon": [(e, e, "1e-4", 5, Fraction(1, 100)) for e in ("0.01", "0.1", "1", "10", "100")],
    }
    for name, steps in series.items():
        rows = []
        for label, epsilon, delta, K, slack in steps:
            claim = Direct(epsilon=Fraction(epsilon), delta=Fraction(delta))
            exact = calibrate("multi-gaussian", claim, K=K).statement.mechanism if slack < Fraction(1, 10**9) else None
            tight = Fraction(float_sigma(member(epsilon, K), claim)) if exact is None else exact.sigma  # type: ignore
            runs = [timed(lambda c=claim, K=K, s=tight * (1 + slack): certify(c, K, s)) for _ in range(3)]
            rows.append((f"{label} ({runs[0][0]})", [seconds for _, seconds in runs]))
        tables[name] = show(f"growth with {name}", rows)
    return tables


def baseline(count: int) -> dict[str, Any]:
    """The baseline on a few cells, beside the proof in the same run."""
    rows: dict[str, list[float]] = {"quadrature calibration": [], "proof, 1 % above": [], "ratio": []}
    for epsilon, delta, K in [("1", "0.01", 4), ("3", "0.01", 2), ("0.5", "5e-3", 10)][:count]:
        claim = Direct(epsilon=Fraction(epsilon), delta=Fraction(delta))
        tight = float_sigma(member(epsilon, K), claim)
        _, slow = timed(lambda e=epsilon, d=delta, K=K, s=tight: quadrature_calibration(float(e), float(d), K, 2 * s))
        _, fast = timed(lambda c=claim, K=K, s=tight: certify(c, K, Fraction(s) * ABOVE))
        for name, value in zip(rows, (slow, fast, slow / fast), strict=True):
            rows[name].append(value)
    return show("baseline (the row «ratio» is not seconds)", rows.items())


def start_up() -> dict[str, Any]:
    """The command's help, as a process of its own, in wall time: what loading costs."""

    def once() -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, str(ROOT / "cli.py"), "--help"], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start

    return show("start-up", [("audit --help", [once() for _ in range(7)])])


def main() -> None:
    """Run everything and print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=150, help="how many cells of the grid, spread evenly")
    parser.add_argument("--baseline", type=int, default=3, help="how many cells of the baseline")
    parser.add_argument("--json", help="write the figures to this file too")
    options = parser.parse_args()
    every = list(CELLS)
    step = max(1, len(every) // max(1, options.cells))
    grid, wrong = over_the_grid(every[::step])
    figures = {"grid": grid, "wrong": wrong, "start-up": start_up(), "growth": growth()}
    figures["baseline"] = baseline(options.baseline)
    for name, cells in wrong.items():
        print(f"not as expected: {name}: {', '.join(cells)}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=2)


if __name__ == "__main__":
    main()
