"""Noise of exponentials and steps, exactly: densities whose pieces have no Gaussian factor, endless steps included.

Such a density is a mixture of lines C e^(b x), each on one piece. Its mass is a sum of exact terms w e^a, so that a
line is chosen as a component of a mixture is; on it, the value is a uniform or a (cut) exponential number. All in whole
numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.endless import EndlessSteps
from mechanisms.form import Form, Piece
from mechanisms.lines import ZERO, Terms, merge_terms
from mechanisms.sampling.bits import PATIENCE, StuckBits, Uniform, Word, floor_of
from mechanisms.sampling.exponential import exponential, falls
from mechanisms.sampling.kernels import Kernel, over_common
from mechanisms.sampling.weights import Choice


@dataclass(frozen=True)
class Segment:
    """The density ∝ e^(−rate·t) of t in [0, length); |X| is origin + t, or origin − t where ``backward``."""

    origin: Fraction
    backward: bool
    length: Fraction | None
    rate: Fraction
    repeats: tuple[Fraction, Fraction] | None = None
    """(period, drop): n periods further with probability ∝ e^(−drop·n)."""


def segments(form: Form) -> tuple[list[Segment], list[Terms]] | None:
    """The segments of a density and their masses, up to a common factor; None where a piece has a Gaussian factor."""
    if any(piece.sum.c for piece in form.pieces):
        return None
    found, masses = [], []
    for number, piece in enumerate(form.pieces):
        endless = isinstance(form, EndlessSteps) and number > 0
        repeats = (form.period, form.drop) if isinstance(form, EndlessSteps) and endless else None
        for slope, terms in piece.sum.by_slope.items():
            start, stop = piece.start, piece.stop
            assert start is not None
            origin = stop if slope > 0 and stop is not None else start
            length = None if stop is None else stop - start
            found.append(Segment(origin, slope > 0, length, abs(slope), repeats))
            mass = _mass(piece, slope, terms)
            if isinstance(form, EndlessSteps) and not endless:
                # the sum over the repeats divides by 1 − e^−drop; all masses are multiplied by it
                mass = merge_terms([*mass, *((-weight, exponent - form.drop) for weight, exponent in mass)])
            masses.append(mass)
    return found, masses


def _mass(piece: Piece, slope: Fraction, terms: Terms) -> Terms:
    """∫ Σ w e^(a + slope x) over the piece, as exact terms."""
    start, stop = piece.start, piece.stop
    assert start is not None
    mass = []
    for weight, exponent in terms:
        if slope:
            mass.append((-weight / slope, exponent + slope * start))
            if stop is not None:
                mass.append((weight / slope, exponent + slope * stop))
        else:
            assert stop is not None, "a step that does not end has no finite mass"
            mass.append((weight * (stop - start), exponent))
    return merge_terms(mass)


def segments_kernel(parts: Sequence[Segment], masses: Sequence[Terms], grid: Fraction, width: int) -> Kernel:
    """A segment by an exact choice, one for each value; a value on it; then a fair sign."""
    choose = Choice(masses, width) if len(masses) > 1 else None
    draws = [_Draw(part, grid, width) for part in parts]

    def kernel(word: Word, a: int, b: int) -> int:
        draw = draws[0 if choose is None else choose(word)]
        constant, factor, uniform = draw(word)
        if word() & 1:
            constant, factor = -constant, -factor
        divisor = draw.divisor
        return floor_of(a * divisor + b * constant, b * factor, b * divisor, uniform)

    return kernel


class _Draw:
    """|X|/g on a segment as (constant + factor · uniform)/divisor."""

    def __init__(self, part: Segment, grid: Fraction, width: int) -> None:
        mean = 1 / part.rate if part.rate else ZERO
        length = part.length or ZERO
        period, drop = part.repeats or (ZERO, ZERO)
        ends, self.divisor = over_common(part.origin / grid, mean / grid, length / grid, period / grid)
        self.origin, self.mean, self.length, self.period = ends
        if part.backward:
            self.mean, self.length = -self.mean, -self.length
        self.drop = drop
        self.width = width
        self.cut = None if part.length is None else part.length * part.rate
        """The length in means; where it is at most 1, at least e^−1 of the uniform numbers are kept, and else at least
        1 − e^−1 of the exponential ones."""

    def __call__(self, word: Word) -> tuple[int, int, Uniform]:
        constant, factor, uniform = self._within(word)
        if self.drop:
            # the whole part of an exponential number over drop: n or more with probability e^(−drop·n)
            whole, part = exponential(word, self.width)
            up, down = self.drop.denominator, self.drop.numerator
            constant += self.period * floor_of(up * whole, up, down, part)
        return constant, factor, uniform

    def _within(self, word: Word) -> tuple[int, int, Uniform]:
        cut = self.cut
        if cut is None or cut > 1:
            for _ in PATIENCE:
                whole, part = exponential(word, self.width)
                if cut is None or floor_of(cut.denominator * whole, cut.denominator, cut.numerator, part) == 0:
                    return self.origin + self.mean * whole, self.mean, part
            raise StuckBits
        for _ in PATIENCE:
            part = Uniform(word, self.width)
            if not cut or falls(cut.numerator, cut.denominator, part):
                return self.origin, self.length, part
        raise StuckBits
