"""Families of steps one sensitivity wide, each e^(−ε) times the one before: staircase, truncated, Tulap. (trusted)

Step 0 is |x| < γΔ, step i ≥ 1 is (γ + i − 1)Δ ≤ |x| < (γ + i)Δ, of height e^(−εi). ``epsilon`` is the family's own,
that of its heights; ``gamma`` is a share of Δ; ``T`` is in the unit of the query.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from mechanisms.endless import EndlessSteps
from mechanisms.form import Form, Piece
from mechanisms.lines import ZERO, Line, LineSum
from mechanisms.mechanism import MAX_LINES, Mechanism, parameter
from mechanisms.numbers import InputError, read_epsilon, read_positive

ONE = Fraction(1)


def _read_gamma(value: object, where: str) -> Fraction:
    gamma = read_positive(value, where)
    if gamma > 1:
        raise InputError(where, value, "a number greater than 0 and at most 1 (a share of the sensitivity)")
    return gamma


def _read_falling(value: object, where: str) -> Fraction:
    epsilon = read_epsilon(value, where)
    if epsilon == 0:
        raise InputError(where, value, "a number greater than 0: steps for ever need to fall")
    return epsilon


def step(start: Fraction, stop: Fraction, log_height: Fraction) -> Piece:
    """The constant e^log_height on [start, stop)."""
    return Piece(start, stop, LineSum(ZERO, (Line.of(ONE, log_height, ZERO),)))


def steps_needed(T: Fraction, gamma: Fraction) -> int:
    """How many steps there are on [0, T), T in units of Δ."""
    return max(math.ceil(T - gamma), 0) + 1


class _CutSteps(Mechanism):
    """Steps up to T, nothing beyond: of a family that has an epsilon, a gamma and a T."""

    epsilon: Fraction
    T: Fraction
    if TYPE_CHECKING:  # a parameter, or the same for all members

        @property
        def gamma(self) -> Fraction: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        if steps_needed(self.T / self.sensitivity, self.gamma) > MAX_LINES:
            raise InputError("T", str(self.T), f"at most {MAX_LINES} steps of the sensitivity")

    def pieces(self) -> tuple[Piece, ...]:
        unit, found = self.sensitivity, []
        for i in range(steps_needed(self.T / unit, self.gamma)):
            start = ZERO if i == 0 else (self.gamma + i - 1) * unit
            found.append(step(start, min((self.gamma + i) * unit, self.T), -i * self.epsilon))
        return tuple(found)


@dataclass(frozen=True, kw_only=True)
class TruncatedStaircase(_CutSteps):
    """The staircase on |x| < T, 0 beyond.

    Within the support a shift of at most Δ changes the step by at most one, so that D(φ) is the mass of (T − φ, T]:
    (ε, δ)-differential privacy holds exactly where the mass of (T − Δ, T] is at most δ.
    """

    family: ClassVar[str] = "truncated-staircase"
    epsilon: Fraction = parameter(read_epsilon)
    gamma: Fraction = parameter(_read_gamma)
    T: Fraction = parameter(read_positive)


@dataclass(frozen=True, kw_only=True)
class Tulap(_CutSteps):
    """Truncated Tulap noise (Awan & Slavković 2020, Δ = 1): G₁ − G₂ + U given |X| < T.

    G₁, G₂ are geometric with P(G = k) = (1 − b) b^k, b = e^(−ε), U is uniform on (−1/2, 1/2): the density is
    (1 − b)/(1 + b) · b^|[x]|, [x] the integer nearest to x. That is the staircase of γ = 1/2. Truncated to the
    quantiles q/2 and 1 − q/2, q = 2δb/(1 − b + 2δb), it is (ε, δ)-differentially private; the claim names the quantile
    T, and the condition on it is that of the truncated staircase.
    """

    family: ClassVar[str] = "tulap"
    epsilon: Fraction = parameter(read_epsilon)
    T: Fraction = parameter(read_positive)
    gamma: ClassVar[Fraction] = Fraction(1, 2)


@dataclass(frozen=True, kw_only=True)
class Staircase(Mechanism):
    """The staircase mechanism (Geng & Viswanath 2014): infinitely many steps, (ε, 0)-differentially private."""

    family: ClassVar[str] = "staircase"
    epsilon: Fraction = parameter(_read_falling)
    gamma: Fraction = parameter(_read_gamma)

    def pieces(self) -> tuple[Piece, ...]:
        """Step 0, and step 1, which repeats for ever: see ``form``."""
        unit, edge = self.sensitivity, self.gamma * self.sensitivity
        return step(ZERO, edge, ZERO), step(edge, edge + unit, -self.epsilon)

    @cached_property
    def form(self) -> Form:
        return EndlessSteps(self.pieces(), self.epsilon)

    @cached_property
    def unit_form(self) -> Form:
        return self.form.scaled(self.sensitivity)
