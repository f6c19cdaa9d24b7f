"""Arrays: the fixed point is right wherever it is certain, and what it leaves open is the same value."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mechanisms.sampling import bulk as bulk_module
from mechanisms.sampling.bits import Uniform
from mechanisms.sampling.bulk import (
    LARGEST_K,
    BulkMixture,
    _half_normals,
    _half_trials,
    _high_product,
    _Lanes,
    _trials,
    _tries,
)
from mechanisms.sampling.kernels import whole_mixture
from mechanisms.sampling.sampler import CHUNK, sampler
from tests.mechanisms.sampling.support import FAMILIES, Scripted, Seeded


def mixture(name: str, grid: Fraction, width: int = 64) -> BulkMixture:
    normals = whole_mixture(FAMILIES[name].form)
    assert normals is not None
    return BulkMixture(normals, grid, width)


@pytest.mark.parametrize("exponent", [-56, -50, -40, -20, 0, 60])
@pytest.mark.parametrize("name", ["ten", "multi-gaussian-narrow"])
def test_the_fixed_point_is_right_where_it_is_certain(name: str, exponent: int) -> None:
    """At both ends of the interval of x, by fractions; with x at random, near the ends, and near ties of the sum."""
    grid = Fraction(2) ** exponent
    bulk = mixture(name, grid)
    rng = np.random.default_rng(51)
    count = 240
    x = rng.integers(0, 2**64 - 1, count, dtype=np.uint64, endpoint=True)
    x[:40] = np.arange(40)
    x[40:80] = np.uint64(2**64 - 1) - np.arange(40, dtype=np.uint64)
    k = rng.integers(0, LARGEST_K + 3, count)
    component = rng.integers(0, len(bulk.means), count)
    negative = rng.random(count) < 0.5
    rest, b = 5, 7
    ratio = bulk.ratio
    for i in range(80, 130):  # as near to a tie as 64 bits of x come
        mean = bulk.means[component[i]]
        for whole in range(200):
            edge = ((whole - 100 - Fraction(rest, b) - mean) * (-1 if negative[i] else 1)) / ratio - int(k[i])
            if 0 <= edge < 1:
                x[i] = math.floor(edge * 2**64)
                break
    rounded, certain = bulk._fixed_point(rest, b, k, x, component, negative)
    assert not certain[k > LARGEST_K].any()
    if exponent >= -40:
        assert certain[160:][k[160:] <= LARGEST_K].mean() > 0.97
    for i in np.flatnonzero(certain).tolist():
        for end in (0, 1):
            size = ratio * (int(k[i]) + Fraction(int(x[i]) + end, 2**64))
            exact = Fraction(rest, b) + bulk.means[component[i]]
            assert math.floor(exact + (-size if negative[i] else size)) == rounded[i]


def test_high_products() -> None:
    rng = np.random.default_rng(52)
    x = np.concatenate([rng.integers(0, 2**64 - 1, 300, dtype=np.uint64), np.array([0, 2**64 - 1], dtype=np.uint64)])
    for ratio in (0, 1, 2**32 - 1, 2**32, 2**62 - 1, int(rng.integers(2**61))):
        for value, found in zip(x.tolist(), _high_product(ratio, x).tolist(), strict=True):
            assert 0 <= (ratio * value >> 64) - found <= 3


@pytest.mark.parametrize("width", [64, 3])
@pytest.mark.parametrize("exponent", [-20, -45, -52, 2])
def test_values_are_the_same_without_the_fixed_point(exponent: int, width: int) -> None:
    """All by Python's integers, on the same bits. (On short words more bits are drawn for that, after all else.)"""
    grid = Fraction(2) ** exponent
    with_it, without = mixture("ten", grid, width), mixture("ten", grid, width)
    without.point = 0
    a, b = (Fraction(1, 3) / grid + Fraction(1, 2)).as_integer_ratio()
    count = 3000 if width == 64 else 40
    found = with_it(Seeded(53, width), a, b, count).tolist()
    if width == 64:
        assert found == without(Seeded(53, width), a, b, count).tolist()
    else:
        assert len(found) == count


def test_chunks_are_independent_and_of_bounded_size() -> None:
    draw = sampler(FAMILIES["gaussian"], Fraction(1, 2**20), Seeded(54))
    count = 2 * CHUNK + 17
    found = draw.multiples(0, count)
    assert found.shape == (count,) and found.dtype == np.int64
    assert len(np.unique(found)) > 0.98 * count
    halves = found[:CHUNK].astype(float), found[CHUNK : 2 * CHUNK].astype(float)
    assert abs(np.corrcoef(*halves)[0, 1]) < 0.03


def test_half_trials_on_single_bits() -> None:
    hits = int(_half_trials(_Lanes(Seeded(55, 1), 1), 6_000).sum())
    assert stats.binomtest(hits, 6_000, math.exp(-0.5)).pvalue > 1e-3


@pytest.mark.parametrize(("width", "count"), [(1, 12_000), (2, 12_000)])
def test_half_normals_on_short_words(width: int, count: int) -> None:
    """Every comparison ties every other time; the x of a tie are those that come out, each in its place."""
    lanes = _Lanes(Seeded(56, width), width)
    k, first, lazy = _half_normals(lanes, count)
    assert len(lazy) > count // 4 and max(lazy) < count
    found = []
    for i in range(count):
        x = lazy.get(i) or lanes.uniform(first[i])
        assert x.bits >> (x.count - width) == first[i]
        while x.count < 40:
            x.extend()
        found.append(int(k[i]) + x.bits / 2**x.count)
    assert stats.kstest(found, "halfnorm").pvalue > 1e-3


@pytest.mark.parametrize(("width", "exponent"), [(1, 1), (1, -20), (2, 2), (3, 0), (3, -30)])
def test_rounding_uses_the_bits_that_a_tie_drew(width: int, exponent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the same bits, where the fixed point decides, Python's integers decide alike; where a tie drew bits of x, the
    value is that of those bits."""
    caught: list[Any] = []

    class Catching(BulkMixture):
        def _fixed_point(self, *arguments: Any) -> Any:
            caught.append(super()._fixed_point(*arguments))
            return caught[-1]

    def half_normals(lanes: _Lanes, count: int) -> Any:
        caught.append(_half_normals(lanes, count))
        return caught[-1]

    monkeypatch.setattr(bulk_module, "_half_normals", half_normals)
    grid = Fraction(2) ** exponent
    normals = whole_mixture(FAMILIES["gaussian"].form)
    assert normals is not None
    shift = Fraction(1, 3) / grid + Fraction(1, 2)
    found = Catching(normals, grid, width)(Seeded(57, width), shift.numerator, shift.denominator, 3_000).tolist()
    (k, _, lazy), (_, certain) = caught
    assert len(lazy) > 300
    without = BulkMixture(normals, grid, width)
    without.point = 0
    other = without(Seeded(57, width), shift.numerator, shift.denominator, 3_000).tolist()
    assert [found[i] for i in np.flatnonzero(certain)] == [other[i] for i in np.flatnonzero(certain)]
    assert exponent < 0 or certain.sum() > 100
    for i, x in lazy.items():
        ends = (normals.sigma / grid * (int(k[i]) + Fraction(x.bits + end, 1 << x.count)) for end in (0, 1))
        sums = [(shift - size, shift + size) for size in ends]
        assert found[i] in (math.ceil(sums[0][0]) - 1, math.floor(sums[0][1]))
        assert found[i] in (math.floor(sums[1][0]), math.ceil(sums[1][1]) - 1)


def test_a_tie_in_a_trial_goes_on_with_the_same_x() -> None:
    script = Scripted([5, 9, 7])  # z has the word of x; then further words: of z, and of x
    x = Uniform(script.word, 64, 5, 32)
    kept = _trials(_Lanes(script, 32), np.array([0]), np.array([5], dtype=np.uint64), lambda i: x)
    assert kept.tolist() == [True] and (x.bits, x.count) == (5 << 64 | 7, 96)


def test_the_ties_of_later_rounds_are_kept_in_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries are taken until there are enough; what is drawn beyond the number asked for is left out, with its ties."""
    monkeypatch.setattr(bulk_module, "_tries", lambda lanes, count: _tries(lanes, 7))
    lanes = _Lanes(Seeded(58, 2), 2)
    k, first, lazy = _half_normals(lanes, 500)
    assert len(k) == len(first) == 500 and len(lazy) > 50 and min(lazy) < 100 and max(lazy) > 400
    assert all(lazy[i].bits >> (lazy[i].count - 2) == first[i] for i in lazy)
