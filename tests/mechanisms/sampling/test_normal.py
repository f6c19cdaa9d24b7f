"""Algorithm N against a plain one that has whole words for real numbers, and where its first words tie."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mechanisms.sampling.bits import StuckBits, Uniform, at_least_zero, floor_of, less
from mechanisms.sampling.exponential import exponential, falls
from mechanisms.sampling.kernels import half_mixture, half_mixture_kernel, mixture_kernel, whole_mixture
from mechanisms.sampling.normal import half_normal, half_trial
from tests.mechanisms.sampling.support import FAMILIES, ONES, Scripted, Seeded, recorded
from tests.mechanisms.support import MP, mpf

WORD = Fraction(1, 2**64)


class Plain:
    """The algorithm as the article writes it, on uniforms of one word, which do not tie at the seeds used here."""

    def __init__(self, words: list[int]) -> None:
        self.stream = iter(words)

    def uniform(self) -> Fraction:
        return next(self.stream) * WORD

    def run(self, start: Fraction) -> bool:
        """Whether a run below ``start`` is of even length."""
        length, last = 0, start
        while (u := self.uniform()) < last:
            length, last = length + 1, u
        return length % 2 == 0

    def trial(self, k: int, x: Fraction) -> bool:
        length, last = 0, x
        while (z := self.uniform()) < last and self.uniform() < (2 * k + x) / (2 * k + 2):
            length, last = length + 1, z
        return length % 2 == 0

    def half_normal(self) -> tuple[int, Fraction]:
        while True:
            k = 0
            while self.run(Fraction(1, 2)):
                k += 1
            if not all(self.run(Fraction(1, 2)) for _ in range(k * (k - 1))):
                continue
            x = self.uniform()
            if all(self.trial(k, x) for _ in range(k + 1)):
                return k, x

    def choice(self, shares: list[object]) -> int:
        u = mpf(self.uniform())
        return sum(share <= u for share in shares)

    def sign(self) -> int:
        return 1 if next(self.stream) & 1 else -1


def shares(masses: list[object]) -> list[object]:
    return [sum(masses[: i + 1]) / sum(masses) for i in range(len(masses) - 1)]


@pytest.mark.parametrize("q", [Fraction(1, 3), Fraction(0), Fraction(-7, 2)])
@pytest.mark.parametrize("grid", [Fraction(1, 2**20), Fraction(4)])
@pytest.mark.parametrize("name", ["ten", "multi-gaussian-narrow", "gaussian"])
def test_mixture_is_the_plain_algorithm_rounded_by_the_referee(name: str, grid: Fraction, q: Fraction) -> None:
    noise = FAMILIES[name]
    words = recorded(21, 60_000)
    plain, script = Plain(words), Scripted(words)
    normals = whole_mixture(noise.form)
    assert normals is not None
    kernel = mixture_kernel(normals, grid, 64)
    shift = q / grid + Fraction(1, 2)
    K, epsilon = getattr(noise, "K", 0), mpf(getattr(noise, "epsilon", 0))
    weights = shares([MP.exp(-abs(k) * epsilon) for k in range(-K, K + 1)])
    for _ in range(400):
        mean = (plain.choice(weights) - K) * noise.sensitivity if K else 0
        k, x = plain.half_normal()
        exact = q + mean + plain.sign() * noise.sigma * (k + x)  # type: ignore[attr-defined]
        m = kernel(script.word, shift.numerator, shift.denominator)
        assert m == int(MP.floor(mpf(exact / grid) + MP.mpf("0.5")))


@pytest.mark.parametrize("name", ["quasi-gaussian", "quasi-gaussian-wide", "quasi-narrow"])
def test_half_mixture_is_the_plain_algorithm_rounded_by_the_referee(name: str) -> None:
    noise, q, grid = FAMILIES[name], Fraction(2, 7), Fraction(1, 1024)
    words = recorded(22, 60_000)
    plain, script = Plain(words), Scripted(words)
    normals = half_mixture(noise.form)
    assert normals is not None
    kernel = half_mixture_kernel(normals, grid, 64)
    shift = q / grid + Fraction(1, 2)
    weights = shares([MP.exp(mpf(noise.epsilon)) / 2, MP.mpf(1)])  # type: ignore[attr-defined]
    for _ in range(300):
        while True:
            side = plain.choice(weights)
            k, x = plain.half_normal()
            value = noise.sigma * (k + x)  # type: ignore[attr-defined]
            if side:
                # the sign bit for minus is 1 here, for plus 0
                value = noise.sensitivity - plain.sign() * value
            if value >= 0:
                break
        # and a final sign bit of 1 is minus
        exact = q - plain.sign() * value
        m = kernel(script.word, shift.numerator, shift.denominator)
        assert m == int(MP.floor(mpf(exact / grid) + MP.mpf("0.5")))


def test_trial_of_probability_exp_minus_half() -> None:
    bits = Seeded(23, 1)
    hits = sum(half_trial(bits.word, 1) for _ in range(20_000))
    assert stats.binomtest(hits, 20_000, float(np.exp(-0.5))).pvalue > 1e-3


@pytest.mark.parametrize("width", [1, 2])
def test_half_normal_on_short_words(width: int) -> None:
    """Every comparison ties every other time, those of the trials that are written out too."""
    bits = Seeded(27, width)
    draw = half_normal(width)
    found = []
    for _ in range(3_000):
        k, first, lazy = draw(bits.word)
        x = lazy or Uniform(bits.word, width, first)
        while x.count < 40:
            x.extend()
        found.append(k + x.bits / 2**x.count)
    assert stats.kstest(found, "halfnorm").pvalue > 1e-3


def test_exponential_on_single_bits() -> None:
    bits = Seeded(24, 1)
    found = []
    for _ in range(4_000):
        j, x = exponential(bits.word, 1)
        while x.count < 40:
            x.extend()
        found.append(j + x.bits / 2**x.count)
    assert stats.kstest(found, "expon").pvalue > 1e-3


def test_falling_with_probability_exp_minus_px() -> None:
    bits = Seeded(25, 1)
    hits, expected = 0, 0.0
    for _ in range(6_000):
        x = Uniform(bits.word, 1)
        hits += falls(2, 3, x)
        while x.count < 40:
            x.extend()
        expected += float(np.exp(-2 / 3 * x.bits / 2**x.count))
    assert abs(hits - expected) < 4 * np.sqrt(6_000 * 0.2)


def test_half_normal_without_a_tie_takes_no_more_words_than_the_plain_one() -> None:
    words = recorded(26, 5_000)
    plain, script = Plain(words), Scripted(words)
    draw = half_normal(64)
    for _ in range(100):
        k, x, lazy = draw(script.word)
        assert (k, x * WORD) == plain.half_normal() and lazy is None
    assert next(plain.stream) == script.word()


def test_a_tie_with_x_goes_on_with_the_same_x() -> None:
    """z ties with x; the bits of x drawn for that are those that later trials and the rounding see."""
    x = 1 << 62
    script = Scripted([0, 5, x, x, 9, 7])  # H fails (0 < 1/2, then 5 > 0): k = 0; x; z = x, then z: …9 is above x: …7
    k, first, lazy = half_normal(64)(script.word)
    assert (k, first) == (0, x)
    assert lazy is not None and (lazy.bits, lazy.count) == (x << 64 | 7, 128)
    assert script.used == 6


def test_a_tie_of_the_companion_is_settled_with_more_bits() -> None:
    """r = x/2 to 64 bits, k = 0; then the next words make r less or not less: the trial goes on, or succeeds."""
    x, z = 1 << 62, 5
    # x = …9, r = …0: 2r < x, the run has length 1, and a z above it ends it there: the try is thrown away
    thrown = Scripted([0, 5, x, z, x // 2, 0, 9, 6, 0, 5, 1, 2])
    assert half_normal(64)(thrown.word)[1] == 1
    # x = …0, r = …9: 2r > x, length 0: kept
    kept = Scripted([0, 5, x, z, x // 2, 9, 0])
    k, first, lazy = half_normal(64)(kept.word)
    assert (k, first) == (0, x) and lazy is not None and lazy.count == 128


def test_less_draws_until_it_is_certain() -> None:
    script = Scripted([3, 3, 8, 8, 1, 2])
    assert less(Uniform(script.word, 64), Uniform(script.word, 64))
    assert script.used == 6


def test_signs_of_sums() -> None:
    half = Scripted([1 << 63, 0, 0])
    assert at_least_zero(-1, (2, Uniform(half.word, 64)))  # 2u − 1 with u in [1/2, 1/2 + 2^-64)
    assert half.used == 1
    below = Scripted([(1 << 63) - 1])
    assert not at_least_zero(-1, (2, Uniform(below.word, 64)))
    other = Scripted([1 << 63, 0, 4])
    assert not at_least_zero(1, (-2, Uniform(other.word, 64)))  # 1 − 2u ≤ 0, and 0 only if all bits to come are 0
    assert other.used == 3
    with pytest.raises(StuckBits):
        at_least_zero(1, (-2, Uniform(Scripted([1 << 63, *[0] * 1000]).word, 64)))


def test_floors_at_a_boundary() -> None:
    quarter = 1 << 62
    assert floor_of(0, 4, 1, Uniform(Scripted([quarter]).word, 64)) == 1
    assert floor_of(0, 4, 1, Uniform(Scripted([quarter - 1]).word, 64)) == 0
    assert floor_of(1, -4, 1, Uniform(Scripted([quarter - 1]).word, 64)) == 0
    assert floor_of(1, -4, 1, Uniform(Scripted([quarter, *[0] * 200, 1]).word, 64)) == -1
    third = [ONES // 3] * 50
    assert floor_of(0, 3, 1, Uniform(Scripted([*third, ONES // 3 + 1]).word, 64)) == 1
    assert floor_of(0, 3, 1, Uniform(Scripted([*third, ONES // 3 - 1]).word, 64)) == 0
    assert floor_of(0, -3, 1, Uniform(Scripted([*third, ONES // 3 + 1]).word, 64)) == -2
    with pytest.raises(StuckBits):
        floor_of(0, 3, 1, Uniform(Scripted([ONES // 3] * 1000).word, 64))
