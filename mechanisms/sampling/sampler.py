"""Release of q + X, X distributed exactly as declared, rounded to a grid: what a certificate speaks of.

The certified noise is a real number; what is released is m·g, m = ⌊(q + X)/g + 1/2⌋, for a grid g that is a power of
two. That is a function of q + X alone, so that every guarantee of q + X is one of the release (post-processing), as it
is. q enters the sum exactly, and only the sum is rounded. Rounding moves it by g/2 at most.

No float decides anything here. Random bits come from the operating system, each is used once, and more are drawn until
m is certain (mechanisms.sampling.bits). How X is drawn depends on the density, read off the declared form:

* a mixture of normal densities of one rational σ: mechanisms.sampling.normal and .weights, whole numbers only but for
  the weights' thresholds (gaussian, multi-gaussian, declared components);
* such a mixture on [0, ∞) with its mirror image (quasi-gaussian): the same, with restarts;
* exponentials and steps (laplace, truncated-laplace, staircase, truncated-staircase, tulap, declared pieces that have
  c = 0): mechanisms.sampling.segments, likewise;
* all else (flipped-huber, other declared pieces): mechanisms.sampling.inverse, in balls.

What is not covered. *Time*: a draw takes the longer the further out the noise is, and more bits where q + X is near a
tie; nothing in Python takes constant time. Where somebody may time a release, answer at fixed times, or draw ahead:
where all answers are multiples of the grid, q + X rounded is q plus ``multiples(0, count)`` times the grid, drawn
before q is known. *Memory* is not wiped. *The query*: q must be the exact answer, and answers on neighbouring data at
most the sensitivity apart; a q computed in floats need not be. *The grid* must not depend on the data.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.mechanism import Mechanism
from mechanisms.numbers import MAX_BINARY_EXPONENT, InputError, read_positive
from mechanisms.sampling.bits import BitSource, SystemBits
from mechanisms.sampling.bulk import BulkMixture
from mechanisms.sampling.inverse import InverseKernel
from mechanisms.sampling.kernels import (
    Kernel,
    half_mixture,
    half_mixture_kernel,
    mixture_kernel,
    whole_mixture,
)
from mechanisms.sampling.segments import segments, segments_kernel

DEFAULT_GRID_BITS = 20
"""The default grid is 2^−20 of the sensitivity, rounded down to a power of two."""
CHUNK = 1 << 15
"""Values that are drawn at once in bulk; bounds the memory."""
_INT64 = 1 << 63


def default_grid(mechanism: Mechanism) -> Fraction:
    """The largest power of two that is at most 2^−20 Δ, in the unit of the query."""
    return Fraction(2) ** (_exponent_below(mechanism.sensitivity) - DEFAULT_GRID_BITS)


def _exponent_below(number: Fraction) -> int:
    """⌊log₂ number⌋."""
    guess = number.numerator.bit_length() - number.denominator.bit_length()
    return guess if Fraction(2) ** guess <= number else guess - 1


def read_grid(value: object, where: str = "grid") -> Fraction:
    """A grid: an exact power of two, 2^−1400 to 2^1400. Raises InputError for all else."""
    grid = read_positive(value, where)
    exponent = _exponent_below(grid)
    if Fraction(2) ** exponent != grid or abs(exponent) > MAX_BINARY_EXPONENT:
        raise InputError(where, value, f"a power of two, from 2^-{MAX_BINARY_EXPONENT} to 2^{MAX_BINARY_EXPONENT}")
    return grid


def read_query(value: object, where: str = "value") -> tuple[int, int]:
    """(numerator, denominator) of an exact query value: an int, a Fraction, or a float, which is the double that it is.

    Raises InputError, which does not repeat it, for all else, for NaN and for infinities.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(where, "a float that is not finite", "a finite number")
        return value.as_integer_ratio()
    if isinstance(value, (int, Fraction)) and not isinstance(value, bool):
        return value.numerator, value.denominator
    # the type says what is wrong; the value may be secret
    raise InputError(where, f"a value of type {type(value).__name__}", "an int, a Fraction or a float")


class Sampler:
    """Draws releases of one mechanism's noise on one grid.

    ``mechanism`` and ``grid`` are as given. Methods may be called from several threads, and after a fork. They raise
    InputError for a query value that is not an exact number, and StuckBits, in place of a value, where the source of
    bits gives bits that decide nothing (fair bits do so with probability below 2^-600).
    """

    def __init__(self, mechanism: Mechanism, grid: Fraction, bits: BitSource) -> None:
        if bits.width != 64 and not 1 <= bits.width <= 32:
            raise InputError("bits.width", bits.width, "1 to 32, or 64")
        self.mechanism = mechanism
        self.grid = grid
        self._bits = bits
        self._exponent = _exponent_below(grid)
        self._kernel, self._bulk = _kernel(mechanism, grid, bits.width)

    def multiple(self, q: object) -> int:
        """m = ⌊(q + X)/g + 1/2⌋ for fresh noise X of exactly the declared distribution; the release is m·g.

        q is an int, a Fraction or a float (the double that it is), in the unit of the query.
        """
        return self._kernel(self._bits.reader(), *self._shifted(q))

    def release(self, q: object) -> Fraction:
        """The release m·g itself, exactly: ``multiple`` times the grid."""
        return self.multiple(q) * self.grid

    def multiples(self, q: object, count: int) -> NDArray[Any]:
        """``count`` independent values of ``multiple``, of shape (count,).

        Of dtype int64, or object (Python's ints) where one does not fit. Mixtures of normal densities are drawn with
        arrays, about ten times as fast as one by one, in chunks that bound the memory beside the result.
        """
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise InputError("count", count, "a whole number from 0")
        a, b = self._shifted(q)
        found: NDArray[Any] = np.empty(count, dtype=np.int64)
        for start in range(0, count, CHUNK):
            size = min(CHUNK, count - start)
            if self._bulk is not None:
                part = self._bulk(self._bits, a, b, size)
            else:
                values = [self._kernel(self._bits.reader(), a, b) for _ in range(size)]
                part = np.array(values, dtype=np.int64 if all(-_INT64 <= m < _INT64 for m in values) else object)
            if part.dtype == object and found.dtype != object:
                found = found.astype(object)
            found[start : start + size] = part
        return found

    def _shifted(self, q: object) -> tuple[int, int]:
        """q/g + 1/2 as numerator and denominator."""
        numerator, denominator = read_query(q)
        exponent = self._exponent
        if exponent <= 0:
            return (numerator << 1 - exponent) + denominator, denominator << 1
        return (numerator << 1) + (denominator << exponent), denominator << exponent + 1


def sampler(mechanism: Mechanism, grid: object = None, bits: BitSource | None = None) -> Sampler:
    """What releases q + X, X distributed exactly as the mechanism declares, rounded to the grid.

    ``grid`` is a power of two in the unit of the query, a number or text (``default_grid`` by default); it must not
    depend on the data. ``bits`` is for tests; by default they come from the operating system. Preparing computes the
    weights' thresholds, a few milliseconds. Raises InputError for a grid that is none.
    """
    step = default_grid(mechanism) if grid is None else read_grid(grid)
    return Sampler(mechanism, step, SystemBits() if bits is None else bits)


def _kernel(mechanism: Mechanism, grid: Fraction, width: int) -> tuple[Kernel, BulkMixture | None]:
    form = mechanism.form
    if (normals := whole_mixture(form)) is not None:
        return mixture_kernel(normals, grid, width), BulkMixture(normals, grid, width)
    if (normals := half_mixture(form)) is not None:
        return half_mixture_kernel(normals, grid, width), None
    if (lines := segments(form)) is not None:
        return segments_kernel(*lines, grid, width), None
    return InverseKernel(form, grid, width), None
