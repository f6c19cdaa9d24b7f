"""Many values at once of a mixture of normal densities: the exact algorithm over arrays of whole numbers.

The steps are those of mechanisms.sampling.normal, each taken for all values that it concerns, on words of 32 bits.
Where the first words of two uniforms leave a comparison open, that trial is completed, for that value, by the
one-by-one code with more bits of the same uniforms; none is drawn anew, which would bend the distribution. Rounding is
decided in fixed point with the bounds of its error, all in int64; what they leave open is decided by Python's integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechanisms.sampling.bits import PATIENCE, BitSource, StuckBits, Uniform, Word, floor_of
from mechanisms.sampling.kernels import Normals
from mechanisms.sampling.normal import finish_run, finish_trial
from mechanisms.sampling.weights import Choice

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Lazy = dict[int, Uniform]
"""The uniforms of which more than the first word was drawn, by their place in the array."""

LANE_BITS = 32
LARGEST_K = 15
"""Values of a larger whole part, of probability below e^-120, are rounded one by one."""
FIXED_BITS = 62
_INT64 = 1 << 63


class BulkMixture:
    """Σ w N(m, σ²) + q, rounded to a grid: many values, each with a component of its own, as int64 or Python's ints."""

    def __init__(self, normals: Normals, grid: Fraction, width: int) -> None:
        self.components = normals.on_grid(grid)
        self.ratio = normals.sigma / grid
        self.means = [mean / grid for mean in normals.means]
        self.lane_bits = min(width, LANE_BITS)
        self.choose = Choice(normals.masses, self.lane_bits) if len(self.components) > 1 else None
        reach = math.ceil(self.ratio * (LARGEST_K + 1) + max(abs(mean) for mean in self.means)) + 3
        self.point = FIXED_BITS - reach.bit_length()
        """Bits after the point in fixed point: |X/g| + 2 is below 2^(62 − point) up to LARGEST_K."""

    def __call__(self, bits: BitSource, a: int, b: int, count: int) -> NDArray[np.int64] | NDArray[np.object_]:
        """``count`` values of ⌊a/b + X/g⌋, as a kernel of mechanisms.sampling.kernels gives them."""
        lanes = _Lanes(bits, self.lane_bits)
        k, x, lazy = _half_normals(lanes, count)
        component = self._components(lanes, count)
        negative = (lanes.take(count) & np.uint64(1)).astype(bool)
        x = (x << np.uint64(self.lane_bits)) | lanes.take(count)
        whole, rest = divmod(a, b)
        rounded, certain = self._fixed_point(rest, b, k, x, component, negative)
        certain[list(lazy)] = False
        left: dict[int, int] = {}
        for i in np.flatnonzero(~certain).tolist():
            uniform = lazy.get(i) or Uniform(lanes.word, lanes.width, int(x[i]), 2 * self.lane_bits)
            mean, scale, divisor = self.components[component[i]]
            factor = -scale if negative[i] else scale
            left[i] = floor_of(a * divisor + b * (mean + factor * int(k[i])), b * factor, b * divisor, uniform)
        if abs(whole) < _INT64 >> 1 and all(-_INT64 <= m < _INT64 for m in left.values()):
            rounded += whole
            rounded[list(left)] = list(left.values())
            return rounded
        found = rounded.astype(object) + whole
        for i, m in left.items():
            found[i] = m
        return found

    def _components(self, lanes: _Lanes, count: int) -> Integers:
        """A component for each value, by a uniform number for each."""
        if self.choose is None:
            return np.zeros(count, dtype=np.int64)
        low, high = np.array(self.choose.low, dtype=np.int64), np.array(self.choose.high, dtype=np.int64)
        first = lanes.take(count).astype(np.int64)
        found = np.searchsorted(low, first, side="right")
        tied = (found > 0) & (first <= high[np.maximum(found, 1) - 1])
        for i in np.flatnonzero(tied).tolist():
            found[i] = self.choose.finish(lanes.uniform(first[i]))
        return found

    def _fixed_point(
        self, rest: int, b: int, k: Integers, x: Words, component: Integers, negative: Flags
    ) -> tuple[Integers, Flags]:
        """(⌊rest/b + X/g⌋, whether that is certain); x has 2 lane_bits bits.

        In units of 2^−point, with R = ⌊σ/g⌋: σ/g (k + x) lies in [T, T + E] for T = R k + ⌊R x⌋ less 3 at most, k at
        most LARGEST_K, E = LARGEST_K + 8 + R times the unit of x; mean and rest in [C, C + 1].
        """
        point = self.point
        if point < 1:
            return np.zeros(len(k), dtype=np.int64), np.zeros(len(k), dtype=bool)
        ratio = math.floor(self.ratio * (1 << point))
        spread = LARGEST_K + 8 + (ratio >> 2 * self.lane_bits)
        offsets = [math.floor((Fraction(rest, b) + mean) * (1 << point)) for mean in self.means]
        usual = k <= LARGEST_K
        size = ratio * np.where(usual, k, 0) + _high_product(ratio, x << np.uint64(64 - 2 * self.lane_bits))
        low = np.array(offsets, dtype=np.int64)[component] + np.where(negative, -size - spread, size)
        rounded = low >> point
        return rounded, usual & (rounded == (low + (spread + 1)) >> point)


def _high_product(ratio: int, x: Words) -> Integers:
    """⌊ratio · x / 2^64⌋, or up to 3 less, for 0 ≤ ratio < 2^62."""
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    ratio_high, ratio_low = np.uint64(ratio >> 32), np.uint64(ratio & 0xFFFFFFFF)
    x_high, x_low = x >> half, x & low
    product = ratio_high * x_high + (ratio_high * x_low >> half) + (ratio_low * x_high >> half)
    return np.asarray(product, dtype=np.int64)


class _Lanes:
    """Words for arrays, and the function that gives words to the one-by-one code."""

    def __init__(self, bits: BitSource, lane_bits: int) -> None:
        self.bits = bits
        self.lane_bits = lane_bits
        self.word: Word = bits.reader()
        self.width = bits.width

    def take(self, count: int) -> Words:
        """``count`` words of ``lane_bits`` bits."""
        if self.width == 2 * LANE_BITS:
            return self.bits.words((count + 1) // 2).view(np.uint32)[:count].astype(np.uint64)
        return self.bits.words(count)

    def uniform(self, first: np.integer) -> Uniform:
        """The uniform number of which a lane drew the first word."""
        return Uniform(self.word, self.width, int(first), self.lane_bits)


def _half_trials(lanes: _Lanes, count: int) -> Flags:
    """``count`` trials H of probability e^(−1/2): see mechanisms.sampling.normal."""
    u = lanes.take(count)
    found = u >= np.uint64(1 << (lanes.lane_bits - 1))
    at = np.flatnonzero(~found)
    u = u[at]
    even = False
    for _ in PATIENCE:
        if not len(at):
            return found
        v = lanes.take(len(at))
        falling = v < u
        stopped = ~falling
        found[at[stopped]] = even
        for i in np.flatnonzero(v == u).tolist():
            found[at[i]] = finish_run(lanes.uniform(u[i]), lanes.uniform(v[i]), even)
        at, u, even = at[falling], v[falling], not even
    raise StuckBits


def _trials(lanes: _Lanes, k: Integers, x: Words, lazy: Callable[[int], Uniform]) -> Flags:
    """A trial B(k, x) for each of the arrays' entries; lazy(i) is the i-th x itself, for where its first word ties."""
    found = np.zeros(len(k), dtype=bool)
    at = np.arange(len(k))
    y, parts = x, (2 * k + 2).astype(np.uint64)
    bound = (2 * k).astype(np.uint64) << np.uint64(lanes.lane_bits) | x
    even = True

    def finish(i: int, y: np.uint64, z: np.uint64, r: np.uint64 | None) -> None:
        start = lazy(i)
        run = start if y == x[i] else lanes.uniform(y)  # later ones are below x
        companion = None if r is None else lanes.uniform(r)
        found[i] = finish_trial(int(k[i]), start, run, lanes.uniform(z), companion, even)

    for _ in PATIENCE:
        if not len(at):
            return found
        z = lanes.take(len(at))
        falling = z < y
        found[at[~falling]] = even
        for i in np.flatnonzero(z == y).tolist():
            finish(at[i], y[i], z[i], None)
        at, y, z = at[falling], y[falling], z[falling]
        r = lanes.take(len(at))
        share = parts[at] * r
        above = share > bound[at]
        below = share + parts[at] <= bound[at]
        found[at[above]] = even
        for i in np.flatnonzero(~(above | below)).tolist():
            finish(at[i], y[i], z[i], r[i])
        at, y, even = at[below], z[below], not even
    raise StuckBits


def _half_normals(lanes: _Lanes, count: int) -> tuple[Integers, Words, Lazy]:
    """(k, first words of x, the x of which more was drawn): ``count`` values k + x of |N|, independent."""
    ks: list[Integers] = []
    xs: list[Words] = []
    found: Lazy = {}
    done = 0
    for _ in PATIENCE:
        if done >= count:
            k, x = np.concatenate([np.zeros(0, np.int64), *ks]), np.concatenate([np.zeros(0, np.uint64), *xs])
            return k[:count], x[:count], {i: uniform for i, uniform in found.items() if i < count}
        k, x, lazy = _tries(lanes, (count - done) * 17 // 8 + 16)
        found.update((done + i, uniform) for i, uniform in lazy.items())
        ks.append(k)
        xs.append(x)
        done += len(k)
    raise StuckBits


def _tries(lanes: _Lanes, count: int) -> tuple[Integers, Words, Lazy]:
    """What ``count`` tries of algorithm N keep, in order; see mechanisms.sampling.normal for N1 to N4."""
    k = np.zeros(count, dtype=np.int64)
    at = np.arange(count)
    for _ in PATIENCE:
        at = at[_half_trials(lanes, len(at))]
        if not len(at):
            break
        k[at] += 1
    else:
        raise StuckBits
    needed = k * (k - 1)
    kept = np.ones(count, dtype=bool)
    at = np.flatnonzero(needed)
    trials = 0
    while len(at):
        good = _half_trials(lanes, len(at))
        kept[at[~good]] = False
        trials += 1
        at = at[good]
        at = at[needed[at] > trials]
    k = k[kept]
    x = lanes.take(len(k))
    drawn: Lazy = {}
    kept = np.ones(len(k), dtype=bool)
    at = np.arange(len(k))
    trials = 0
    while len(at):

        def lazy(i: int, at: NDArray[np.intp] = at) -> Uniform:
            return drawn.setdefault(int(at[i]), lanes.uniform(x[at[i]]))

        good = _trials(lanes, k[at], x[at], lazy)
        kept[at[~good]] = False
        trials += 1
        at = at[good]
        at = at[k[at] >= trials]
    place = np.cumsum(kept) - 1
    return k[kept], x[kept], {int(place[i]): uniform for i, uniform in drawn.items() if kept[i]}
