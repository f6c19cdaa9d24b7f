"""Mechanisms of every family, and the 50-digit referee."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from mechanisms.arithmetic import Multiprecision
from mechanisms.families import Declared, DeclaredMixture, Gaussian, Mechanism, MultiGaussian, QuasiGaussian

DATA = Path(__file__).parents[1] / "data"
REFEREE = Multiprecision(50)
MP = REFEREE.context


def piece(start: str, stop: str, c: str, *lines: tuple[str, str]) -> dict[str, Any]:
    """A declared piece as a file states it."""
    return {"from": start, "to": stop, "c": c, "lines": [list(line) for line in lines]}


def declared(*pieces: dict[str, Any], sensitivity: str = "1") -> Declared:
    """A declared mechanism."""
    return Declared(sensitivity=sensitivity, declared_pieces=list(pieces))  # type: ignore[arg-type]


LAPLACE = declared(piece("0", "inf", "0", ("0", "-1")))
TRUNCATED = declared(piece("0", "3", "0", ("0", "-1")))
STEPS = declared(
    piece("0", "0.3", "0", ("0", "0")), piece("0.3", "1.3", "0", ("-1", "0")), piece("1.3", "2.3", "0", ("-2", "0"))
)
GRAFTED = declared(piece("0", "1", "2", ("0", "0")), piece("1", "inf", "0", ("1", "-3")))
"""A Gaussian with exponential tails, continuous at 1."""
TWO_RATES = declared(piece("0", "inf", "0", ("0", "-1"), ("1", "-4")), sensitivity="0.5")


def mechanism(family: type[Mechanism], **parameters: Any) -> Any:
    """A member of a family; parameters as text or numbers."""
    return family(**parameters)


MECHANISMS: dict[str, Mechanism] = {
    "gaussian": mechanism(Gaussian, sensitivity=1, sigma="4.2"),
    "gaussian-scaled": mechanism(Gaussian, sensitivity="2.5", sigma="0.07"),
    "multi-gaussian": mechanism(MultiGaussian, sensitivity=1, sigma="0.3355", K=4, epsilon=1),
    "multi-gaussian-narrow": mechanism(MultiGaussian, sensitivity="1/3", sigma="0.06158", K=9, epsilon=10),
    "multi-gaussian-wide": mechanism(MultiGaussian, sensitivity=1, sigma=37, K=3, epsilon="0.1"),
    "quasi-gaussian": mechanism(QuasiGaussian, sensitivity=1, sigma="0.2", epsilon=5),
    "quasi-gaussian-wide": mechanism(QuasiGaussian, sensitivity=2, sigma=3, epsilon="0.5"),
    "mixture": mechanism(DeclaredMixture, sensitivity=1, sigma="0.3", components=[[1, 0], ["0.2", "0.9"], ["1/7", 2]]),
    "laplace": LAPLACE,
    "truncated-laplace": TRUNCATED,
    "steps": STEPS,
    "grafted": GRAFTED,
    "two-rates": TWO_RATES,
}


def mpf(value: Any) -> Any:
    """The referee's number nearest to an exact one."""
    exact = Fraction(value)
    return MP.mpf(exact.numerator) / exact.denominator


def read_json(name: str) -> Any:
    """A file of tests/data."""
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def relative(value: float, right: Any) -> float:
    """|value/right − 1|, the right value being the referee's."""
    return abs(float(mpf(value) / right - 1)) if right else abs(value)


def divergence(form: Any, shift: Fraction, epsilon: Fraction, intervals: Sequence[Sequence[float]]) -> Any:
    """∫ f(x + φ) − e^ε f(x) over the intervals, by the referee: for events near the worst one, D to second order."""
    phi, lift = mpf(shift), MP.exp(mpf(epsilon))

    def above(x: Any) -> Any:
        return form.tail(x + phi, REFEREE) - lift * form.tail(x, REFEREE)

    total = MP.mpf(0)
    for low, high in intervals:
        # on the left the lower tails, P(X ≤ x) = P(X > −x), are the ones that do not cancel
        if low == float("-inf"):
            x = mpf(high)
            total += form.tail(-x - phi, REFEREE) - lift * form.tail(-x, REFEREE)
        else:
            total += above(mpf(low)) - (above(mpf(high)) if high != float("inf") else 0)
    return total
