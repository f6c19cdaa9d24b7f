"""How fast noise is drawn, exactly, and by other libraries beside it in the same run.

    python benchmarks/samplers.py [--values N] [--venv DIR]

Values a second of processor time, the best of three rounds, as a table in Markdown; the last column compares with our
own draws one by one. The other libraries are installed into an environment of their own. They draw the Gaussian; ours
are drawn for every family. numpy's floats are no release: they are there to compare. Exit code 0: it measures, it sets
no threshold.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
PINS = ("opendp==0.16.0", "tmlt.core==0.20.0")
CONSTRAINTS = (*PINS, "pandas==1.5.3", "numpy==1.26.4")
ROUNDS = 3
Draw = Callable[[int], object]
"""Draws so many values."""


def numpy_normal() -> Draw:
    """Floats of a generator that is no source of secrets."""
    import numpy as np

    return np.random.default_rng(1).standard_normal


def opendp(k: int | None, size: int | None) -> Draw:
    """make_gaussian on the grid 2^k (its own where None), for a vector of ``size`` at a time, or one by one."""
    import opendp.prelude as library

    library.enable_features("contrib")
    atoms = library.atom_domain(T=float, nan=False)
    if size is None:
        one = library.m.make_gaussian(atoms, library.absolute_distance(T=float), scale=2.0, k=k)
        return lambda count: [one(0.0) for _ in range(count)]
    space = library.vector_domain(atoms, size=size), library.l2_distance(T=float)
    many, zeros = library.m.make_gaussian(*space, scale=2.0, k=k), [0.0] * size
    return lambda count: [many(zeros) for _ in range(max(count // size, 1))]


def tmlt() -> Draw:
    """The continuous Gaussian, by the inverse of its distribution function in balls."""
    from tmlt.core.random.continuous_gaussian import gaussian

    return lambda count: [gaussian(0, 4.0) for _ in range(count)]


PEERS: dict[str, Callable[[], Draw]] = {
    "opendp make_gaussian, one by one, k = -20": lambda: opendp(-20, None),
    "opendp make_gaussian, vector, k = -20": lambda: opendp(-20, 10_000),
    "opendp make_gaussian, vector, its own k": lambda: opendp(None, 10_000),
    "tmlt.core gaussian": tmlt,
    "numpy standard_normal (floats, no release)": numpy_normal,
}


def rate(draw: Draw, count: int) -> float:
    """Values a second of processor time, the best of the rounds."""
    draw(max(count // 10, 1))
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        draw(count)
        times.append(time.process_time() - start)
    return count / min(times)


def ours(count: int) -> dict[str, float]:
    """The rates of every family, one by one, and in bulk where there is a way of its own."""
    from mechanisms import families as known
    from mechanisms.sampling.sampler import sampler

    ten = known.MultiGaussian(sensitivity=1, sigma="0.3355", K=10, epsilon=1)
    noises = {
        "gaussian": known.Gaussian(sensitivity=1, sigma=2),
        "multi-gaussian, K = 10": ten,
        "quasi-gaussian": known.QuasiGaussian(sensitivity=1, sigma="0.66", epsilon=3),
        "laplace": known.Laplace(sensitivity=1, scale=1),
        "truncated-laplace": known.TruncatedLaplace(sensitivity=1, scale="1/3", A="2.28"),
        "staircase": known.Staircase(sensitivity=1, epsilon=1, gamma="0.3"),
        "truncated-staircase": known.TruncatedStaircase(sensitivity=1, epsilon=3, gamma="0.26", T="2.18"),
        "tulap": known.Tulap(sensitivity=1, epsilon=1, T="4.3"),
        "flipped-huber": known.FlippedHuber(sensitivity=1, alpha="1.6", sigma="0.73"),
    }
    found = {}
    for name, noise in noises.items():
        source = sampler(noise)
        slow = max(count // 10, 1) if name == "flipped-huber" else count
        found[f"sigmacert {name}, one by one"] = rate(
            lambda n, source=source: [source.multiple(3) for _ in range(n)], slow  # type: ignore[misc]
        )
        if "gaussian" in name and "quasi" not in name:
            bulk = rate(lambda n, source=source: source.multiples(3, n), 10 * count)  # type: ignore[misc]
            found[f"sigmacert {name}, in bulk"] = bulk
    return found


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=50_000, help="values in one round")
    parser.add_argument("--venv", type=Path, default=HERE.parent / "build" / "samplers-venv", help="the environment")
    parser.add_argument("--peer", choices=list(PEERS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer is not None:
        print(rate(PEERS[options.peer](), options.values))
        return
    sys.path.insert(0, str(HERE.parent))
    from benchmarks.peers import install

    python, wrong = install(options.venv.absolute(), PINS, CONSTRAINTS)
    rates, failed = ours(options.values), dict[str, str]()
    base = rates["sigmacert multi-gaussian, K = 10, one by one"]
    for peer in PEERS:
        command = [str(python), __file__, "--peer", peer, "--values", str(options.values)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            failed[peer] = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        else:
            rates[peer] = float(done.stdout)
    print("| sampler | values a second | ratio |\n| --- | --- | --- |")
    for name, value in rates.items():
        print(f"| {name} | {value:,.0f} | {value / base:.2f} |")
    for name, problem in {**wrong, **failed}.items():
        print(f"left out: {name}: {problem}")


if __name__ == "__main__":
    main()
