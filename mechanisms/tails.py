"""Families of one line on each piece, exponential, cut or Gaussian tails: log-concave, one shift decides. (trusted)

``scale``, ``A``, ``alpha`` and ``sigma`` are in the unit of the query.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from mechanisms.form import Piece
from mechanisms.lines import ZERO, Line, LineSum
from mechanisms.mechanism import Mechanism, parameter
from mechanisms.numbers import read_positive

ONE = Fraction(1)


def _one_line(c: Fraction, intercept: Fraction, slope: Fraction) -> LineSum:
    return LineSum(c, (Line.of(ONE, intercept, slope),))


@dataclass(frozen=True, kw_only=True)
class Laplace(Mechanism):
    """Density ∝ e^(−|x|/scale) (Dwork et al. 2006): (ε, 0)-differentially private exactly where scale ≥ Δ/ε."""

    family: ClassVar[str] = "laplace"
    scale: Fraction = parameter(read_positive)

    def pieces(self) -> tuple[Piece, ...]:
        return (Piece(ZERO, None, _one_line(ZERO, ZERO, -1 / self.scale)),)


@dataclass(frozen=True, kw_only=True)
class TruncatedLaplace(Mechanism):
    """Density ∝ e^(−|x|/scale) on |x| ≤ A, 0 beyond (Geng, Ding, Guo & Kumar 2020).

    At scale Δ/ε it is (ε, δ)-differentially private exactly where A ≥ (Δ/ε) ln(1 + (e^ε − 1)/(2δ)), for δ < 1/2.
    """

    family: ClassVar[str] = "truncated-laplace"
    scale: Fraction = parameter(read_positive)
    A: Fraction = parameter(read_positive)

    def pieces(self) -> tuple[Piece, ...]:
        return (Piece(ZERO, self.A, _one_line(ZERO, ZERO, -1 / self.scale)),)


@dataclass(frozen=True, kw_only=True)
class FlippedHuber(Mechanism):
    """Density ∝ e^(−ρ(x)/σ²), ρ(x) = α|x| for |x| ≤ α and (x² + α²)/2 beyond (Muthukrishnan & Kalyani 2023).

    A Laplace centre under Gaussian tails; log f and its slope are continuous at ±α, and the slope falls: log-concave.
    """

    family: ClassVar[str] = "flipped-huber"
    alpha: Fraction = parameter(read_positive)
    sigma: Fraction = parameter(read_positive)

    def pieces(self) -> tuple[Piece, ...]:
        c = 1 / (2 * self.sigma**2)
        centre = _one_line(ZERO, ZERO, -2 * c * self.alpha)
        return Piece(ZERO, self.alpha, centre), Piece(self.alpha, None, _one_line(c, -c * self.alpha**2, ZERO))
