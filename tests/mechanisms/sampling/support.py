"""Sources of bits that repeat themselves, a mechanism for every way of drawing, and goodness-of-fit tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mechanisms.families import (
    FlippedHuber,
    Laplace,
    Mechanism,
    MultiGaussian,
    QuasiGaussian,
    Staircase,
    TruncatedLaplace,
    TruncatedStaircase,
    Tulap,
)
from tests.mechanisms.support import MECHANISMS, declared, mechanism, piece

FAMILIES: dict[str, Mechanism] = {
    **MECHANISMS,
    "ten": mechanism(MultiGaussian, sensitivity=1, sigma="0.3355", K=10, epsilon=1),
    "equal-weights": mechanism(MultiGaussian, sensitivity=1, sigma="0.2", K=1, epsilon=0),
    "exact-laplace": mechanism(Laplace, sensitivity="2.5", scale="5/3"),
    "cut-laplace": mechanism(TruncatedLaplace, sensitivity=1, scale="1/3", A="2.28"),
    "short-laplace": mechanism(TruncatedLaplace, sensitivity=1, scale=3, A="1.25"),
    "flipped-huber": mechanism(FlippedHuber, sensitivity=1, alpha="1.6", sigma="0.73"),
    "staircase": mechanism(Staircase, sensitivity=1, epsilon="0.7", gamma="0.3"),
    "staircase-flat": mechanism(Staircase, sensitivity="1/3", epsilon="0.05", gamma=1),
    "truncated-staircase": mechanism(TruncatedStaircase, sensitivity=1, epsilon=3, gamma="0.26", T="2.18"),
    "tulap": mechanism(Tulap, sensitivity=1, epsilon=1, T="4.3"),
    "quasi-narrow": mechanism(QuasiGaussian, sensitivity=1, sigma="2/3", epsilon=0),
    "rising": declared(piece("0", "1", "0", ("0", "3")), piece("1", "1.5", "0", ("2", "-1"), ("0", "1"))),
    "irrational-sigma": declared(piece("0", "inf", "1", ("0", "0"))),
    "uniform": declared(piece("0", "0.75", "0", ("0", "0"))),
}
"""By a name each; those that the rest of the tests use among them."""
INVERSE = ("grafted", "flipped-huber", "irrational-sigma")
"""Those drawn by the inverse of the distribution function."""
MIXTURES = ("gaussian", "gaussian-scaled", "multi-gaussian", "multi-gaussian-narrow", "mixture", "ten", "equal-weights")


class Seeded:
    """Fair bits that are the same for each seed, one stream for words one by one and for arrays of them."""

    def __init__(self, seed: int, width: int = 64) -> None:
        self.width = width
        self.rng = np.random.Generator(np.random.Philox(seed))
        self.ahead: list[int] = []

    def words(self, count: int) -> NDArray[np.uint64]:
        return self.rng.integers(0, (1 << self.width) - 1, count, dtype=np.uint64, endpoint=True)

    def word(self) -> int:
        if not self.ahead:
            self.ahead = self.words(4096).tolist()
        return self.ahead.pop()

    def reader(self) -> Callable[[], int]:
        return self.word


class Scripted:
    """The words that it is given, in order; more than there are is an error of the test."""

    def __init__(self, words: Iterable[int], width: int = 64) -> None:
        self.width = width
        self.stream: Iterator[int] = iter(words)
        self.used = 0

    def word(self) -> int:
        self.used += 1
        return next(self.stream)

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.array([self.word() for _ in range(count)], dtype=np.uint64)

    def reader(self) -> Callable[[], int]:
        return self.word


def recorded(seed: int, count: int) -> list[int]:
    """Fair words of 64 bits."""
    words: list[int] = Seeded(seed).words(count).tolist()
    return words


ONES = (1 << 64) - 1
ALTERNATING = 0x5555555555555555
ADVERSARIAL: dict[str, Callable[[], Iterator[int]]] = {
    "zeros": lambda: itertools.repeat(0),
    "ones": lambda: itertools.repeat(ONES),
    "one bit": lambda: itertools.repeat(1 << 63),
    "alternating bits": lambda: itertools.repeat(ALTERNATING),
    "alternating words": lambda: itertools.cycle([0, ONES]),
    "alternating words, the other way": lambda: itertools.cycle([ONES, 0]),
    "three words": lambda: itertools.cycle([0, ALTERNATING, ONES]),
    "falling words": lambda: itertools.count(ONES, -1),
    "zeros for long": lambda: itertools.chain(itertools.repeat(0, 150), iter(recorded(5, 4000))),
    "ones for long": lambda: itertools.chain(itertools.repeat(ONES, 150), iter(recorded(6, 4000))),
}


def p_values(values: Any, form: Any, cells: int = 50) -> tuple[float, float]:
    """(Kolmogorov-Smirnov, chi-square in cells of equal width between two quantiles, and beyond) on the form's cdf."""
    sample = np.sort(np.asarray(values, dtype=np.float64))
    smirnov = float(stats.kstest(sample, form.cdf).pvalue)
    edges = np.linspace(*np.quantile(sample, [0.01, 0.99]), cells)
    expected = np.diff(np.concatenate([[0.0], form.cdf(edges), [1.0]])) * len(sample)
    observed = np.diff(np.concatenate([[0], np.searchsorted(sample, edges), [len(sample)]]))
    merged = expected >= 5
    rest = [observed[~merged].sum()], [expected[~merged].sum()]
    observed, expected = np.append(observed[merged], rest[0]), np.append(expected[merged], rest[1])
    if not expected[-1]:
        assert not observed[-1]
        observed, expected = observed[:-1], expected[:-1]
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return smirnov, float(stats.chi2.sf(statistic, len(observed) - 1))
