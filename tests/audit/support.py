"""Mechanisms of every kind, each with the referee's own density, and how a ball is held against 60 digits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import flint
from flint import arb, fmpq
from hypothesis import settings

from audit.exact import lower, upper
from mechanisms.claims import Claim, Direct, Statement
from mechanisms.families import Declared, DeclaredMixture, Gaussian, Mechanism, MultiGaussian, QuasiGaussian
from tests.soundness import referee
from tests.soundness.referee import Density, number

PRECISIONS = (96, 256)
FEW = settings(max_examples=20, deadline=None)
"""For properties whose referee is slow."""


def statement(mechanism: Mechanism, epsilon: Any, delta: Any) -> Statement:
    """A direct claim."""
    return Statement(mechanism, Direct(epsilon=epsilon, delta=delta))


def claimed(mechanism: Mechanism, claim: Claim) -> Statement:
    return Statement(mechanism, claim)


@contextmanager
def bits(precision: int) -> Iterator[None]:
    with flint.ctx.workprec(precision):
        yield


def contains(ball: arb, value: Any, slack: float = 0.0) -> bool:
    """Whether a 60-digit value lies in the ball, give or take its own rounding."""
    assert ball.is_finite()
    room = abs(value) * referee.MPF(10) ** -45 + referee.MPF(10) ** -300 + slack
    return bool(number(lower(ball)) - room <= value <= number(upper(ball)) + room)


def point(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)


def gaussian(sigma: str) -> tuple[Mechanism, Density]:
    return Gaussian(sensitivity=1, sigma=sigma), referee.mixture(sigma, [(1, 0)])


def multi_gaussian(sigma: str, K: int, epsilon: str) -> tuple[Mechanism, Density]:
    mechanism = MultiGaussian(sensitivity=1, sigma=sigma, K=K, epsilon=epsilon)
    return mechanism, referee.multi_gaussian(sigma, K, epsilon)


def quasi_gaussian(sigma: str, epsilon: str) -> tuple[Mechanism, Density]:
    return QuasiGaussian(sensitivity=1, sigma=sigma, epsilon=epsilon), referee.quasi_gaussian(sigma, epsilon)


def mixture(sigma: str, *components: tuple[str, str]) -> tuple[Mechanism, Density]:
    """Components (weight, mean) as DeclaredMixture reads them: a mean m > 0 stands for m and −m."""
    both = [(w, sign * Fraction(m)) for w, m in components for sign in ((1, -1) if Fraction(m) else (1,))]
    mechanism = DeclaredMixture(sensitivity=1, sigma=sigma, components=[list(pair) for pair in components])
    return mechanism, referee.mixture(sigma, both)


def declared(
    *pieces: tuple[str, str, str, list[tuple[str, str]]], scale: float, sensitivity: str = "1"
) -> tuple[Mechanism, Density]:
    """Pieces (from, to, c, lines) on x ≥ 0, in the unit of the query."""
    unit = Fraction(sensitivity)
    rows = [{"from": a, "to": b, "c": c, "lines": [list(line) for line in lines]} for a, b, c, lines in pieces]
    ours = [
        (
            Fraction(a) / unit,
            None if b == "inf" else Fraction(b) / unit,
            Fraction(c) * unit**2,
            [(Fraction(i), Fraction(k) * unit) for i, k in lines],
        )
        for a, b, c, lines in pieces
    ]
    return Declared(sensitivity=sensitivity, declared_pieces=rows), referee.even(ours, scale)


LAPLACE = declared(("0", "inf", "0", [("0", "-1.1")]), scale=1)
TRUNCATED_LAPLACE = declared(("0", "5/2", "0", [("0", "-1")]), scale=1)
UNIFORM = declared(("0", "5", "0", [("0", "0")]), scale=1)
STEPS = declared(
    ("0", "0.3", "0", [("0", "0")]), ("0.3", "1.3", "0", [("-1", "0")]), ("1.3", "2.4", "0", [("-2", "0")]), scale=1
)
TWO_RATES = declared(("0", "inf", "0", [("0", "-0.8"), ("1", "-3")]), scale=0.5)
"""A mixture of two Laplace densities: log-convex on each side, a peak at 0."""
HUBER = declared(("0", "1", "0.5", [("0", "0")]), ("1", "inf", "0", [("0.5", "-1")]), scale=1)
"""A Gaussian with exponential tails, log f continuous with its slope at 1."""
FLIPPED_HUBER = declared(("0", "1", "0", [("0", "-1")]), ("1", "inf", "0.5", [("-0.5", "0")]), scale=1)
"""Exponential in the middle with Gaussian tails: another c on each piece."""
GAP = declared(("0", "1", "0", [("0", "-1")]), ("1", "1.5", "0", []), ("1.5", "inf", "2", [("1", "0")]), scale=0.5)
"""A support with a gap, and jumps."""
CAMEL = declared(("0", "2", "3", [("0", "0"), ("-1", "5")]), ("2", "3.5", "1/7", [("-2", "1/3")]), scale=0.4)
"""Two lines on the first piece, a jump, another c, a bounded support."""
FLAT_SUM = declared(("0", "1", "0", [("0", "1"), ("0", "-1")]), ("1", "inf", "0", [("2", "-1")]), scale=0.5)
"""A hyperbolic cosine, then an exponential, with a jump between."""
IRREGULAR = mixture("0.37", ("1", "0"), ("0.41", "0.63"), ("0.2", "1.17"), ("0.05", "2"))
REPEATED = mixture("0.3", ("0.01", "0"), ("0.001", "0"), ("1", "0.45"), ("1e-6", "0.45"), ("0.5", "0.9"), ("1", "1.35"))
"""The same mean several times, with very different weights."""
EIGHTHS = mixture("0.3", ("1", "0"), ("0.3", "7/8"), ("0.27", "1"), ("0.08", "15/8"), ("0.1", "2"))
"""Exponentials of f(x+φ) and f(x) meet at φ = 1/8, 7/8 and 1."""

ZOO: dict[str, tuple[Mechanism, Density]] = {
    "gaussian": gaussian("1.3"),
    "multi-gaussian": multi_gaussian("0.35", 3, "1"),
    "quasi-gaussian": quasi_gaussian("0.5", "2"),
    "laplace": LAPLACE,
    "truncated-laplace": TRUNCATED_LAPLACE,
    "uniform": UNIFORM,
    "steps": STEPS,
    "two-rates": TWO_RATES,
    "huber": HUBER,
    "flipped-huber": FLIPPED_HUBER,
    "gap": GAP,
    "camel": CAMEL,
    "flat-sum": FLAT_SUM,
    "irregular": IRREGULAR,
    "repeated": REPEATED,
    "eighths": EIGHTHS,
}
