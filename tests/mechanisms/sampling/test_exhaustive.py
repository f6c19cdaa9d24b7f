"""Every string of bits up to a length, at words of one bit to three: the probabilities themselves, not samples of them.

What the strings decide bounds each probability from below, and with what they leave open from above.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mechanisms.families import Staircase
from mechanisms.mechanism import Mechanism
from mechanisms.sampling import exponential as exponential_module
from mechanisms.sampling import normal as normal_module
from mechanisms.sampling.bits import StuckBits, Uniform, Word, at_least_zero, floor_of
from mechanisms.sampling.bulk import _half_trials, _Lanes, _trials
from mechanisms.sampling.exponential import exponential, falls
from mechanisms.sampling.normal import finish_trial, half_normal, half_trial
from mechanisms.sampling.sampler import sampler
from mechanisms.sampling.weights import Choice
from tests.mechanisms.sampling.support import FAMILIES
from tests.mechanisms.sampling.test_weights import MIXED, terms
from tests.mechanisms.support import MP, REFEREE, mechanism, mpf

Draw = Callable[[Word], Hashable]
SHORT = [(1, 14), (2, 7), (3, 5)]
"""(bits in a word, words)."""
STAIRCASE = mechanism(Staircase, sensitivity=1, epsilon="0.7", gamma="0.5")


class _NoMore(Exception):
    """All words of a string are used up."""


def exhaust(draw: Draw, width: int, words: int) -> tuple[dict[Hashable, Any], Any]:
    """(the probability of each outcome that the strings decide, the rest)."""
    path, used, top = [0] * words, 0, (1 << width) - 1
    found: dict[Hashable, int] = {}

    def word() -> int:
        nonlocal used
        if used == words:
            raise _NoMore
        used += 1
        return path[used - 1]

    while True:
        used = 0
        try:
            outcome = draw(word)
            found[outcome] = found.get(outcome, 0) + (1 << width * (words - used))
        except _NoMore:
            pass
        last = used - 1
        while last >= 0 and path[last] == top:
            last -= 1
        if last < 0:
            break
        path[last:] = [path[last] + 1, *[0] * (words - last - 1)]
    whole = MP.mpf(2) ** (width * words)
    return {outcome: count / whole for outcome, count in found.items()}, 1 - sum(found.values()) / whole


def agrees(draw: Draw, width: int, words: int, right: dict[Hashable, Any], least: float = 0.5) -> None:
    """Each probability is the right one as far as the strings tell; they decide at least a share of ``least``."""
    found, rest = exhaust(draw, width, words)
    assert rest < 1 - least and set(found) <= set(right)
    slack = MP.mpf(10) ** -40
    for outcome, probability in right.items():
        low = found.get(outcome, MP.mpf(0))
        assert low <= probability + slack and probability <= low + rest + slack, (outcome, low, probability, rest)


def on_halves(success: Callable[[Any], Any]) -> dict[Hashable, Any]:
    """{(succeeded, first bit of x)} for a trial that succeeds with probability success(x), x uniform."""
    found: dict[Hashable, Any] = {}
    for bit in (0, 1):
        found[True, bit] = MP.quad(success, [MP.mpf(bit) / 2, MP.mpf(bit + 1) / 2])
        found[False, bit] = MP.mpf(1) / 2 - found[True, bit]
    return found


def first_bit(x: Uniform) -> int:
    return x.bits >> (x.count - 1)


class OneTry:
    """Rounds for a loop: one for the outermost, which is the first that asks, and all for those within."""

    def __init__(self) -> None:
        self.outermost = True

    def __iter__(self) -> Iterator[int]:
        rounds, self.outermost = range(1 if self.outermost else 1024), False
        return iter(rounds)


class Source:
    """The words of a string, one by one and many at once."""

    def __init__(self, word: Word, width: int) -> None:
        self.word, self.width = word, width

    def reader(self) -> Word:
        return self.word

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.array([self.word() for _ in range(count)], dtype=np.uint64)


@pytest.mark.parametrize(("width", "words"), SHORT)
def test_half_trials(width: int, words: int) -> None:
    right = {True: MP.exp(-0.5), False: 1 - MP.exp(-0.5)}
    agrees(lambda word: half_trial(word, width), width, words, right, 0.95)
    agrees(lambda word: bool(_half_trials(_Lanes(Source(word, width), width), 1)[0]), width, words, right, 0.95)


@pytest.mark.parametrize(("width", "words"), SHORT)
@pytest.mark.parametrize("k", [0, 1, 4])
def test_trials_of_algorithm_n(k: int, width: int, words: int) -> None:
    right = on_halves(lambda x: MP.exp(-x * (2 * k + x) / (2 * k + 2)))

    def one_by_one(word: Word) -> Hashable:
        x = Uniform(word, width)
        return finish_trial(k, x, x, Uniform(word, width), None, True), first_bit(x)

    def in_bulk(word: Word) -> Hashable:
        lanes, kept = _Lanes(Source(word, width), width), {}
        x = lanes.take(1)
        found = _trials(lanes, np.array([k]), x, lambda i: kept.setdefault(i, lanes.uniform(x[i])))
        return bool(found[0]), int(x[0]) >> (width - 1)

    agrees(one_by_one, width, words, right, 0.7)
    agrees(in_bulk, width, min(words - 1, 11), right)


@pytest.mark.parametrize(("width", "words"), SHORT)
@pytest.mark.parametrize("k", [0, 1, 2])
def test_a_try_of_algorithm_n_after_its_first_step(
    k: int, width: int, words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words before are those that give k, and, for k = 2, two trials H that succeed."""
    top, draw = (1 << width) - 1, half_normal(width)

    def one_try(word: Word) -> Hashable:
        monkeypatch.setattr(normal_module, "PATIENCE", OneTry())
        before = [top] * (k * (k - 1)) + [top, 0] + [top] * k
        try:
            found, first, lazy = draw(lambda: before.pop() if before else word())
        except StuckBits:
            return "thrown away"
        assert found == k and (lazy is None or lazy.bits >> (lazy.count - width) == first)
        return first >> (width - 1)

    halves = on_halves(lambda x: MP.exp(-x * (2 * k + x) / 2))
    right = {0: halves[True, 0], 1: halves[True, 1], "thrown away": halves[False, 0] + halves[False, 1]}
    agrees(one_try, width, words, right, 0.45)


@pytest.mark.parametrize(("width", "words"), SHORT)
def test_a_try_of_an_exponential_number(width: int, words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_try(word: Word) -> Hashable:
        monkeypatch.setattr(exponential_module, "PATIENCE", OneTry())
        try:
            whole, x = exponential(word, width)
        except StuckBits:
            return "next"
        return whole, first_bit(x)

    half, one = MP.exp(-0.5), MP.exp(-1)
    agrees(one_try, width, words, {(0, 0): 1 - half, (0, 1): half - one, "next": one}, 0.9)


@pytest.mark.parametrize("p", [Fraction(1), Fraction(2, 3), Fraction(1, 7)])
def test_falls(p: Fraction) -> None:
    def trial(word: Word) -> Hashable:
        x = Uniform(word, 1)
        return falls(p.numerator, p.denominator, x), first_bit(x)

    agrees(trial, 1, 14, on_halves(lambda x: MP.exp(-x * mpf(p))), 0.9)


def test_signs_and_floors() -> None:
    def sign(word: Word) -> Hashable:
        return at_least_zero(-2, (4, Uniform(word, 1)), (-1, Uniform(word, 1)))  # r ≥ (2 + x)/4

    agrees(sign, 1, 13, {True: MP.mpf(3) / 8, False: MP.mpf(5) / 8}, 0.95)
    for factor, right in ((7, {0: 2, 1: 3, 2: 2}), (-7, {-2: 3, -1: 3, 0: 1})):

        def floor(word: Word, factor: int = factor) -> Hashable:
            return floor_of(1, factor, 3, Uniform(word, 1))  # ⌊(1 ± 7 u)/3⌋

        agrees(floor, 1, 12, {m: MP.mpf(share) / 7 for m, share in right.items()}, 0.99)


@pytest.mark.parametrize(("width", "words"), [(1, 12), (3, 4), (5, 3)])
@pytest.mark.parametrize(
    "masses",
    [
        MIXED,
        [terms((1, 0))] * 3,
        [terms((1, 0))] * 4,
        [terms((1, -1000)), terms((1, 0)), terms((1, -1000)), terms((1, -3))],
        [terms((1, 2), (1, 0)), terms((2, 2), (2, 0)), terms((1, 0))],
    ],
    ids=["sums", "thirds", "quarters", "far apart", "nearly in proportion"],
)
def test_choices(masses: list[Any], width: int, words: int) -> None:
    sizes = [MP.fsum(mpf(w) * MP.exp(mpf(a)) for w, a in mass) for mass in masses]
    right: dict[Hashable, Any] = {i: size / MP.fsum(sizes) for i, size in enumerate(sizes)}
    agrees(Choice(masses, width), width, words, right, 0.99)


def cells(noise: Mechanism, grid: Fraction, q: Fraction) -> dict[Hashable, Any]:
    """P(⌊(q + X)/g + 1/2⌋ = m), by the referee."""

    def above(y: Fraction) -> Any:
        tail = noise.form.tail(abs(mpf(y)), REFEREE)
        return tail if y >= 0 else 1 - tail

    middle = math.floor(q / grid)
    ends = [above((m - Fraction(1, 2)) * grid - q) for m in range(middle - 20, middle + 22)]
    return {middle - 20 + i: left - right for i, (left, right) in enumerate(itertools.pairwise(ends))}


@pytest.mark.parametrize(
    ("name", "words", "least"),
    [
        ("uniform", 9, 0.97),
        ("tulap", 11, 0.95),
        ("truncated-staircase", 11, 0.95),
        ("short-laplace", 11, 0.6),
        ("cut-laplace", 11, 0.5),
        ("rising", 12, 0.5),
        ("staircase", 12, 0.6),
        ("flipped-huber", 6, 0.6),
        ("grafted", 6, 0.6),
        ("steps", 10, 0.8),
    ],
)
@pytest.mark.parametrize(("grid", "q"), [("1/2", "1/4"), ("1", "-7/3")])
def test_releases(name: str, words: int, least: float, grid: str, q: str) -> None:
    """Ties of q + X with a half among them."""
    noise, step, answer = {**FAMILIES, "staircase": STAIRCASE}[name], Fraction(grid), Fraction(q)

    source = Source(lambda: 0, 1)
    releases = sampler(noise, step, source)

    def draw(word: Word) -> Hashable:
        source.word = word
        return releases.multiple(answer)

    agrees(draw, 1, words, cells(noise, step, answer), least)
