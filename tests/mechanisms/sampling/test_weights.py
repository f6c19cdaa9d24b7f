"""Choices with real probabilities: the thresholds to hundreds of bits, and bits that come near them."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Sequence
from fractions import Fraction

import flint
import numpy as np
import pytest
from scipy import stats

from mechanisms.arithmetic import Multiprecision
from mechanisms.lines import Terms
from mechanisms.numbers import InputError
from mechanisms.sampling.balls import scaled_ends
from mechanisms.sampling.bits import StuckBits, Uniform
from mechanisms.sampling.weights import Choice
from tests.mechanisms.sampling.support import ONES, Scripted, Seeded

FINE = Multiprecision(120)
MP = FINE.context


def terms(*pairs: tuple[object, object]) -> Terms:
    return tuple((Fraction(str(w)), Fraction(str(a))) for w, a in pairs)


GEOMETRIC = [terms((1, -abs(k))) for k in range(-3, 4)]
MIXED = [terms((1, 0), (-1, -1)), terms(("1/3", "-2.5")), terms((2, -3), ("1/7", -1)), terms((5, -40))]


def threshold(masses: Sequence[Terms], number: int, bits: int) -> int:
    """⌊2^bits times the cumulative share⌋, by mpmath."""

    def mass(part: Sequence[Terms]) -> object:
        numbers = [FINE.number(w) * MP.exp(FINE.number(a)) for one in part for w, a in one]
        return MP.fsum(numbers)

    return int(MP.floor(mass(masses[: number + 1]) / mass(masses) * MP.mpf(2) ** bits))  # type: ignore[operator]


def words_of(bits: int, count: int) -> list[int]:
    return [bits >> (64 * (count - 1 - i)) & ONES for i in range(count)]


@pytest.mark.parametrize("masses", [GEOMETRIC, MIXED])
def test_bits_next_to_each_threshold(masses: list[Terms]) -> None:
    """The first 256 bits of a threshold less and plus 1 in the last place: decided, and rightly, with all of them."""
    choose = Choice(masses, 64)
    for number in range(len(masses) - 1):
        at = threshold(masses, number, 256)
        for offset, right in ((-1, number), (1, number + 1)):
            script = Scripted(words_of(at + offset, 4))
            assert choose(script.word) == right
            assert script.used == 4, "the first word alone does not decide this"


def test_thresholds_on_words_are_those_of_the_referee() -> None:
    choose = Choice(MIXED, 64)
    for number in range(len(MIXED) - 1):
        at = threshold(MIXED, number, 64)
        assert choose.low[number] <= at <= choose.high[number] <= choose.low[number] + 1


def test_equal_weights_tie_with_no_word() -> None:
    choose = Choice([terms((1, "-0.3"))] * 4, 64)
    quarter = 1 << 62
    for word, right in ((0, 0), (quarter - 1, 0), (quarter, 1), (2 * quarter, 2), (3 * quarter - 1, 2), (ONES, 3)):
        assert choose(Scripted([word]).word) == right
        assert choose.finish(Uniform(Scripted([word]).word, 64)) == right


def test_a_rational_threshold_that_no_word_ends_on() -> None:
    choose = Choice([terms((1, 2), (1, 0)), terms((2, 2), (2, 0))], 64)
    assert choose.rational == [Fraction(1, 3)]
    third = ONES // 3
    assert choose(Scripted([third] * 30 + [third + 1]).word) == 1
    assert choose(Scripted([third] * 30 + [third - 1]).word) == 0
    with pytest.raises(StuckBits):
        choose(Scripted([third] * 600).word)


@pytest.mark.parametrize("word", [0, ONES, ONES // 3, 1 << 63])
def test_constant_words_end(word: int) -> None:
    for masses in (GEOMETRIC, MIXED):
        assert 0 <= Choice(masses, 64)(Scripted(itertools.repeat(word)).word) < len(masses)


def test_a_last_share_far_below_any_word() -> None:
    """The thresholds are 1 to more than a thousand bits: all ones meet them, and longer still pass them."""
    choose = Choice([terms((1, 0)), terms((1, -1000)), terms((1, -100_000))], 64)
    assert choose(Scripted([ONES - 1]).word) == 0
    assert choose(Scripted([*[ONES] * 22, 0]).word) == 0
    assert choose(Scripted([*[ONES] * 23, 0]).word) == 1


def test_differences_that_nearly_cancel() -> None:
    tiny = Fraction(1, 10**300)
    masses: list[Terms] = [((Fraction(1), Fraction(0)), (Fraction(-1), -tiny)), ((tiny, Fraction(0)),)]
    assert Choice(masses, 64).low[0] in ((1 << 63) - 1, (1 << 63))


@pytest.mark.parametrize("width", [1, 2, 5])
def test_shares_on_short_words(width: int) -> None:
    bits = Seeded(31, width)
    choose = Choice(MIXED[:3], width)
    count = 6_000
    found = np.bincount([choose(bits.word) for _ in range(count)], minlength=3)
    shares = np.diff([0, *(threshold(MIXED[:3], i, 60) / 2**60 for i in range(2)), 1])
    assert stats.chisquare(found, shares * count).pvalue > 1e-3


def test_precision_is_restored() -> None:
    with flint.ctx.workprec(77):
        Choice(GEOMETRIC, 64).finish(Uniform(Scripted([threshold(GEOMETRIC, 0, 64), 1 << 63]).word, 64))
        assert flint.ctx.prec == 77


def test_threads_take_turns_with_the_precision() -> None:
    before = flint.ctx.prec
    expected = Choice(MIXED, 64).low
    wrong: list[object] = []

    def work() -> None:
        for _ in range(20):
            found = Choice(MIXED, 64).low
            if any(abs(a - b) > 1 for a, b in zip(found, expected, strict=True)):
                wrong.append(found)
            time.sleep(0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and flint.ctx.prec == before


def test_balls_as_whole_numbers() -> None:
    """Outward by no more than what is said; too wide or not finite is None, whatever the exponents."""
    arb = flint.arb
    with flint.ctx.workprec(200):
        for number, radius in ((Fraction(1, 3), 70), (Fraction(7, 8), 80), (Fraction(-5, 7), 65), (Fraction(2), 66)):
            low, high = number - Fraction(1, 2**radius), number + Fraction(1, 2**radius)
            ball = arb(flint.fmpq(number.numerator, number.denominator), arb(2) ** -radius)
            found = scaled_ends(ball, 64)
            assert found is not None
            for end, exact, outward in ((found[0], low, -1), (found[1], high, 1)):
                slack = Fraction(2**64, 2**90) + Fraction(1, 2**32)
                assert end in {math.floor(exact * 2**64), math.floor(exact * 2**64 + outward * slack)}
            assert found[0] <= math.floor(low * 2**64) and math.floor(high * 2**64) <= found[1]
        assert scaled_ends(arb(1) / 8, 3) in ((0, 1), (1, 1))
        huge = arb(2) ** (10**30)
        for ball in (arb("nan"), arb("inf"), arb(0, 1), arb(0, huge), huge, arb(1, arb(2) ** -63)):
            assert scaled_ends(ball, 64) is None
        assert scaled_ends(arb(2) ** (-(10**30)), 64) in ((0, 0), (-1, 0))


def test_exact_sums_of_too_many_digits_are_left_to_the_bits() -> None:
    """The share is 1/2, and the source of the test ties with it for ever: an error, and any other bit decides."""
    long = Fraction(1, 3**50_000)
    choose = Choice([((long, Fraction(0)),)] * 2, 64)
    assert choose.rational == [None]
    assert choose(Scripted([1 << 63, *[0] * 20, 1]).word) == 1
    assert choose(Scripted([(1 << 63) - 1, *[ONES] * 20, 1]).word) == 0
    with pytest.raises(StuckBits):
        choose(Scripted([1 << 63, *[0] * 600]).word)


def test_shares_that_are_rational_by_proportion_alone() -> None:
    """Proportional in every exponent: known. With one that cancels in the whole but not in the part: not."""
    both = terms((1, 0), (2, -1))
    assert Choice([both, terms((2, 0), (4, -1)), terms((1, 0))], 64).rational == [None, None]
    assert Choice([both, terms((2, 0), (4, -1))], 64).rational == [Fraction(1, 3)]
    assert Choice([terms((1, 0), ("1/2", -1)), terms((1, 0), ("-1/2", -1))], 64).rational == [None]


def test_nothing_to_choose_from() -> None:
    with pytest.raises(InputError, match="masses: got none"):
        Choice([], 64)
