"""A choice with probabilities that are real numbers, made exactly: thresholds in balls, compared bit by bit.

A share Σ w e^a / Σ w e^a of exact rationals w, a is irrational unless numerator and denominator have proportional
weights, exponent by exponent (Lindemann and Weierstrass: e^a for different rationals a are linearly independent over
the rationals). So each threshold is known as a rational, and compared as one, or has no bit string that never leaves it
but its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

from mechanisms.arithmetic import BALL
from mechanisms.lines import ZERO, Terms
from mechanisms.numbers import InputError
from mechanisms.sampling.balls import precision, scaled_ends
from mechanisms.sampling.bits import Uniform, Word

GUARD_BITS = 64
MAX_PRECISION = 1 << 16
"""Balls are never finer, which no numbers that are read ask for."""
MAX_DIGITS = 1 << 16
"""Most bits in the denominators of all weights together for which sums of them are taken exactly."""
KEPT_BITS = 256
"""Thresholds of at most so many bits are kept."""


class Choice:
    """Chooses 0, 1, … with probabilities proportional to ``masses``; a mass is a positive sum of terms w e^a.

    The chosen number is that of the cumulative shares c₀ ≤ c₁ ≤ … that a uniform number U is not below: exactly
    P(i) = c_i − c_(i−1). Preparing costs one exponential for each term; a choice costs one word and a bisection, unless
    the word meets a threshold's enclosure (probability about 2^-width for each), when further bits of the same U
    decide.
    """

    def __init__(self, masses: Sequence[Terms], width: int) -> None:
        if not masses:
            raise InputError("masses", "none", "at least one")
        self.width = width
        self.masses = tuple(masses)
        self.top = max(exponent for mass in self.masses for _, exponent in mass)
        self.rational = _rational_shares(self.masses)
        self._known: dict[int, list[tuple[int, int]]] = {}
        ends = self._thresholds(width)
        self.low = [low for low, _ in ends]
        self.high = [high for _, high in ends]

    def __call__(self, word: Word) -> int:
        """A choice. Raises StuckBits where the bits decide nothing."""
        first = word()
        found = bisect_right(self.low, first)
        if found and first <= self.high[found - 1]:
            return self.finish(Uniform(word, self.width, first))
        return found

    def finish(self, uniform: Uniform) -> int:
        """The choice that a uniform number makes, drawing as many bits of it as that takes."""
        while True:
            found = self._decide(uniform)
            if found is not None:
                return found
            uniform.extend()

    def _decide(self, uniform: Uniform) -> int | None:
        """How many thresholds are at most the uniform number, or None where its bits leave it open."""
        count = 0
        ends = self._thresholds(uniform.count)
        for (low, high), rational in zip(ends, self.rational, strict=False):
            if rational is not None:
                scaled = rational * (1 << uniform.count)
                if uniform.bits < scaled < uniform.bits + 1:
                    return None
                count += uniform.bits >= scaled
            elif low <= uniform.bits <= high:
                return None
            else:
                count += uniform.bits > high
        return count

    def _thresholds(self, bits: int) -> list[tuple[int, int]]:
        """For every share c but the last (which is 1, and no uniform number reaches it), a pair (low, high).

        A word w of so many bits is past the share if w > high, before it if w < low, and else its further bits decide.
        low ≤ ⌊2^bits c⌋ ≤ high ≤ low + 1 comes from an enclosure; where 2^bits c is known to be whole, a word equal to
        it is past it, and the pair is (2^bits c, 2^bits c − 1). Both lists are nondecreasing, as c is.
        """
        if bits not in self._known:
            found = self._prepare(bits)
            if bits > KEPT_BITS:
                return found
            self._known[bits] = found
        return self._known[bits]

    def _prepare(self, bits: int) -> list[tuple[int, int]]:
        working = bits + GUARD_BITS
        while True:
            found = self._enclosures(bits, working)
            if found is not None:
                break
            working *= 2
            if working > MAX_PRECISION + bits:
                raise ArithmeticError("the weights of the components cannot be told apart")
        pairs, least = [], (0, 0)
        for pair, rational in zip(found, self.rational, strict=False):
            if rational is not None:
                whole, rest = divmod(rational.numerator << bits, rational.denominator)
                pair = (whole, whole) if rest else (whole, whole - 1)
            least = max(least[0], pair[0]), max(least[1], pair[1])
            pairs.append(least)
        return pairs

    def _enclosures(self, bits: int, working: int) -> list[tuple[int, int]] | None:
        """The pairs of ``_thresholds`` from balls of ``working`` bits; None where one is wider than 1."""
        with precision(working):

            @cache
            def power(exponent: Fraction) -> Any:
                return BALL.number(exponent - self.top).exp()

            total, sums = BALL.number(ZERO), []
            for mass in self.masses:
                for weight, exponent in mass:
                    total = total + BALL.number(weight) * power(exponent)
                sums.append(total)
            found = []
            for part in sums[:-1]:
                ends = scaled_ends(part / total, bits)
                if ends is None or ends[1] - ends[0] > 1:
                    return None
                found.append(ends)
            return found


def _rational_shares(masses: Sequence[Terms]) -> list[Fraction | None]:
    """Each cumulative share but the last, where it is rational, and known to be.

    Not looked for where the exact sums would be of many digits: a word that ties with a share then needs bits after it.
    """
    if sum(weight.denominator.bit_length() for mass in masses for weight, _ in mass) > MAX_DIGITS:
        return [None] * (len(masses) - 1)
    whole: dict[Fraction, Fraction] = {}
    for mass in masses:
        for weight, exponent in mass:
            whole[exponent] = whole.get(exponent, ZERO) + weight
    part = dict.fromkeys(whole, ZERO)
    # how many exponents have each ratio of part to whole, and those of the part that cancel in the whole
    ratios = Counter({ZERO: sum(1 for weight in whole.values() if weight)})
    stray: set[Fraction] = set()
    shares: list[Fraction | None] = []
    for mass in masses[:-1]:
        for weight, exponent in mass:
            before, after = part[exponent], part[exponent] + weight
            part[exponent] = after
            if full := whole[exponent]:
                ratios[before / full] -= 1
                if not ratios[before / full]:
                    del ratios[before / full]
                ratios[after / full] += 1
            elif after:
                stray.add(exponent)
            else:
                stray.discard(exponent)
        shares.append(next(iter(ratios)) if len(ratios) == 1 and not stray else None)
    return shares
