"""Fair bits from the operating system, and uniform numbers whose bits are drawn when a decision asks for them.

A uniform number is an endless string of fair bits, of which some have been drawn. Every comparison here draws more bits
of the numbers that it compares until the answer is certain; bits that were drawn stay, and none is drawn twice.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Word = Callable[[], int]
"""Gives the next word of bits."""

MAX_BITS = 1 << 14
"""Most bits that are drawn of one uniform number.

Fair bits leave a decision open after n bits more than the numbers in it need with probability below 2^(1 − n), and no
parameter and no grid that is written as text asks for more than 7000.
"""
ROUNDS = 1 << 10
PATIENCE = range(ROUNDS)
"""Most rounds of a loop. Fair bits leave each in every round with probability 0.36 or more (or, a run, have n rounds
with probability below 1/n!): they use all rounds up with probability below 2^-600."""


class StuckBits(RuntimeError):
    """The source's bits decide nothing: they are not random. Nothing is released."""

    def __init__(self) -> None:
        super().__init__("the source of random bits repeats itself: no value was drawn")


class BitSource(Protocol):
    """Independent fair bits, each given out once, in words of ``width`` bits (1 to 32, or 64), most significant
    first."""

    @property
    def width(self) -> int:
        """Bits in a word."""
        ...

    def reader(self) -> Word:
        """A function that gives word after word, for one value: asked for anew before each."""
        ...

    def words(self, count: int) -> NDArray[np.uint64]:
        """Many words at once, of shape (count,)."""
        ...


_pool: list[int] = []
"""Words of this process that were not given out yet. ``pop`` takes one out, at once for all threads."""
_owner = os.getpid()
_POOL_WORDS = 512


def _forget() -> None:
    """Empties the pool: a forked process draws bits of its own."""
    global _owner
    _pool.clear()
    _owner = os.getpid()


if hasattr(os, "register_at_fork"):  # where processes fork
    os.register_at_fork(after_in_child=_forget)


def _word() -> int:
    try:
        return _pool.pop()
    except IndexError:
        fresh = array("Q", os.urandom(8 * _POOL_WORDS))
        word = fresh.pop()
        _pool.extend(fresh)
        return word


class SystemBits:
    """The operating system's generator, ``os.urandom``, and nothing else.

    A few kilobytes are kept ahead in a pool of the process. A forked process forgets the pool: at the fork, and, for
    forks that Python is not told of, by the process number before each value. Threads may share it.
    """

    width = 64

    def reader(self) -> Word:
        if os.getpid() != _owner:
            _forget()
        return _word

    def words(self, count: int) -> NDArray[np.uint64]:
        """Straight from the system, past the pool."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class Uniform:
    """A uniform number in [0, 1), known to lie in [bits, bits + 1) / 2^count."""

    __slots__ = ("bits", "count", "width", "word")

    def __init__(self, word: Word, width: int, bits: int | None = None, count: int | None = None) -> None:
        """``bits``: those that were drawn already, ``count`` of them (a word by default); None draws a word."""
        self.word = word
        self.width = width
        self.bits = word() if bits is None else bits
        self.count = width if count is None else count

    def extend(self) -> None:
        """Draws one word more. Raises StuckBits beyond MAX_BITS."""
        if self.count >= MAX_BITS:
            raise StuckBits
        self.bits = self.bits << self.width | self.word()
        self.count += self.width


def less(a: Uniform, b: Uniform) -> bool:
    """a < b, drawing as many bits as that takes."""
    while True:
        shared = min(a.count, b.count)
        left, right = a.bits >> (a.count - shared), b.bits >> (b.count - shared)
        if left != right:
            return left < right
        if a.count == shared:
            a.extend()
        if b.count == shared:
            b.extend()


def at_least_zero(constant: int, *terms: tuple[int, Uniform]) -> bool:
    """constant + Σ factor · uniform ≥ 0, for whole factors, drawing as many bits as that takes.

    The value lies between its bounds at the ends of the uniforms' intervals; those are half-open, so a bound that takes
    an upper end of one is not attained.
    """
    while True:
        shift = max(uniform.count for _, uniform in terms)
        low = high = constant << shift
        high_attained = True
        for factor, uniform in terms:
            unit = factor << (shift - uniform.count)
            if factor > 0:
                low += unit * uniform.bits
                high += unit * (uniform.bits + 1)
                high_attained = False
            elif factor < 0:
                low += unit * (uniform.bits + 1)
                high += unit * uniform.bits
        if low >= 0:
            return True
        if high < 0 or (high == 0 and not high_attained):
            return False
        for _, uniform in terms:
            if uniform.count < shift + uniform.width:
                uniform.extend()


def floor_of(constant: int, factor: int, divisor: int, uniform: Uniform) -> int:
    """⌊(constant + factor · uniform) / divisor⌋, divisor > 0, drawing as many bits as that takes."""
    while True:
        shift = uniform.count
        whole = divisor << shift
        found, rest = divmod((constant << shift) + factor * uniform.bits, whole)
        # the value runs over [0, factor) from here, or over (factor, 0] where that is negative
        if rest + factor <= whole if factor >= 0 else rest + factor >= 0:
            return found
        uniform.extend()
