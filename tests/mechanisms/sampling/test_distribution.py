"""What is drawn has the declared distribution: goodness of fit on the certified cdf, at fixed seeds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mechanisms.sampling.sampler import sampler
from tests.mechanisms.sampling.support import FAMILIES, INVERSE, MIXTURES, Seeded, p_values

LEAST = 2e-4
"""The least p-value of some 150 that is consistent. A sampler that is wrong by a few per cent falls far below."""


def fits(name: str, bits: Seeded, count: int, bulk: bool, grid: Fraction | None = None) -> None:
    noise = FAMILIES[name]
    draw = sampler(noise, grid, bits)
    q = Fraction(1, 3)
    values = draw.multiples(q, count) if bulk else np.array([draw.multiple(q) for _ in range(count)])
    exact = values.astype(np.float64) * float(draw.grid) - float(q)
    if noise.form.pieces[-1].stop is not None:
        bound = float(noise.form.pieces[-1].stop) if name not in ("staircase", "staircase-flat") else np.inf
        assert np.abs(exact).max() <= bound + float(draw.grid)
    smirnov, chi_square = p_values(exact, noise.form)
    assert min(smirnov, chi_square) > LEAST, (smirnov, chi_square)


@pytest.mark.parametrize("name", FAMILIES)
def test_one_by_one(name: str) -> None:
    fits(name, Seeded(11), 600 if name in INVERSE else 6_000, bulk=False)


@pytest.mark.parametrize("name", MIXTURES)
def test_in_bulk(name: str) -> None:
    fits(name, Seeded(12), 100_000, bulk=True)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("width", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_short_words_that_tie_all_the_time(name: str, width: int) -> None:
    """Words of so few bits tie in every other comparison: what is done after a tie makes most of the distribution."""
    fits(name, Seeded(13, width), 200 if name in INVERSE else 2_000, bulk=False)


@pytest.mark.parametrize("name", ["ten", "gaussian", "mixture", "equal-weights"])
@pytest.mark.parametrize(("width", "count"), [(2, 5_000), (6, 20_000)])
def test_short_words_in_bulk(name: str, width: int, count: int) -> None:
    fits(name, Seeded(14, width), count, bulk=True)


@pytest.mark.parametrize("grid", [Fraction(1, 2**60), Fraction(1, 2**44), Fraction(1, 2**10)])
def test_grids_in_bulk(grid: Fraction) -> None:
    fits("ten", Seeded(15), 20_000, bulk=True, grid=grid)


@pytest.mark.parametrize("name", INVERSE)
def test_a_fine_grid_by_the_inverse(name: str) -> None:
    fits(name, Seeded(16), 200, bulk=False, grid=Fraction(1, 2**90))


@pytest.mark.parametrize("bulk", [False, True])
def test_a_component_for_each_value(bulk: bool) -> None:
    """A sampler that draws one component for the whole batch, or one for many values, would be seen here."""
    noise = FAMILIES["equal-weights"]
    narrow = type(noise)(sensitivity=1, sigma=Fraction(1, 2**30), K=1, epsilon=Fraction(1, 2))  # type: ignore[call-arg]
    count = 60_000 if bulk else 6_000
    draw = sampler(narrow, 1, Seeded(17))
    found = draw.multiples(0, count) if bulk else np.array([draw.multiple(0) for _ in range(count)])
    weights = np.exp(-0.5 * np.abs(np.arange(-1, 2)))
    expected = weights / weights.sum() * count
    assert stats.chisquare(np.bincount(found + 1), expected).pvalue > LEAST
    pairs = np.bincount((found[:-1:2] + 1) * 3 + found[1::2] + 1, minlength=9)
    together = np.outer(weights, weights).reshape(-1) / weights.sum() ** 2 * pairs.sum()
    assert stats.chisquare(pairs, together).pvalue > LEAST


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_many_one_by_one(name: str) -> None:
    fits(name, Seeded(18), 100_000, bulk=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", MIXTURES)
def test_very_many_in_bulk(name: str) -> None:
    fits(name, Seeded(19), 2_000_000, bulk=True)
    fits(name, Seeded(20, 5), 200_000, bulk=True)
