"""A density of infinitely many steps: the last one repeats for ever, each time by the same factor lower. (trusted)"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from mechanisms.arithmetic import FLOAT, Arithmetic, Array
from mechanisms.form import Form, Piece
from mechanisms.lines import evaluate
from mechanisms.numbers import InputError

MOST_STEPS = 100_000
"""More are not written out."""


@dataclass(frozen=True)
class EndlessSteps(Form):
    """An even density: the pieces [0, s) and [s, s + L), and e^(−drop·k) times the latter on [s + kL, s + (k+1)L).

    Mass and moments close the tail geometrically; density and tail probabilities write out the steps that they need.
    ``whole_line`` does not exist: no finite list of pieces is this density. For pictures take ``unrolled``.
    """

    drop: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.pieces) != 2 or self.pieces[1].stop is None or self.drop <= 0:
            raise InputError("pieces", "others", "two pieces that end, and a fall from one to the next")

    @property
    def start(self) -> Fraction:
        """Where the step that repeats begins."""
        assert self.pieces[0].stop is not None
        return self.pieces[0].stop

    @property
    def period(self) -> Fraction:
        """Its length L."""
        assert self.pieces[1].stop is not None
        return self.pieces[1].stop - self.start

    @property
    def whole_line(self) -> NoReturn:
        raise TypeError("a density of infinitely many pieces has no list of them")

    def lifted(self, lift: Fraction) -> EndlessSteps:
        return EndlessSteps(super().lifted(lift).pieces, self.drop)

    def scaled(self, sensitivity: Fraction) -> EndlessSteps:
        return EndlessSteps(super().scaled(sensitivity).pieces, self.drop)

    def unrolled(self, reach: Fraction) -> Form:
        """The same up to the end of the step that ``reach`` lies in, and 0 beyond. Raises InputError for too many."""
        count = max(math.floor((reach - self.start) / self.period), 0) + 1
        if count > MOST_STEPS:
            raise InputError("reach", str(reach), f"at most {MOST_STEPS} steps")
        first, repeated = self.pieces
        found = [first]
        for k in range(count):
            start = self.start + k * self.period
            height = repeated.sum.shifted(-k * self.period).lifted(-k * self.drop)
            found.append(Piece(start, start + self.period, height))
        return Form(tuple(found))

    def _moment(self, order: int, arithmetic: Arithmetic) -> Any:
        """∫ x^order over [0, ∞): Σ_k q^k ∫ (x + kL)^order over the step that repeats, q = e^(−drop)."""
        first, repeated = self.pieces
        total = first.sum.moments(*self._ends(first, arithmetic), order, arithmetic)[order]
        step = repeated.sum.moments(*self._ends(repeated, arithmetic), order, arithmetic)
        q, rest = self._ratio(arithmetic)
        length = arithmetic.numbers([self.period])
        sums = [1 / rest, q / rest**2, q * (1 + q) / rest**3]  # Σ q^k, Σ k q^k, Σ k² q^k
        for i in range(order + 1):
            total = total + math.comb(order, i) * length**i * sums[i] * step[order - i]
        return total[0]

    def _ratio(self, arithmetic: Arithmetic) -> tuple[Array, Array]:
        """(q, 1 − q), the latter without cancellation."""
        drop = arithmetic.numbers([self.drop])
        return arithmetic.exp(-drop), -arithmetic.expm1(-drop)

    def tail(self, x: Any, arithmetic: Arithmetic = FLOAT) -> Any:
        def tail(t: Array) -> Array:
            finite = self.unrolled(_reach(t))
            last = finite.pieces[-1]
            q, rest = self._ratio(arithmetic)
            beyond = last.sum.moments(*self._ends(last, arithmetic), 0, arithmetic)[0] * q / rest
            found = (finite.tail(t, arithmetic) * finite.mass(arithmetic) + beyond[0]) / self.mass(arithmetic)
            if arithmetic is FLOAT:
                found = np.where(np.isinf(t), np.where(t > 0, 0.0, 1.0), found)
            return found

        return evaluate(tail, x, arithmetic)

    def _piecewise(self, name: str, x: Array, arithmetic: Arithmetic, outside: float) -> Array:
        return self.unrolled(_reach(x))._piecewise(name, x, arithmetic, outside)


def _reach(x: Array) -> Fraction:
    """A number at least as large as every finite |x|."""
    sizes = (abs(float(value)) for value in np.asarray(x).reshape(-1))
    return Fraction(max((size for size in sizes if math.isfinite(size)), default=0.0)) + 1
