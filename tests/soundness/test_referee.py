"""The referee against closed forms that are not its own."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.soundness import referee
from tests.soundness.referee import CONTEXT, MPF, number

TINY = MPF(10) ** -45


def cdf(z: object) -> object:
    return CONTEXT.erfc(-z / CONTEXT.sqrt(2)) / 2  # type: ignore[operator]


@pytest.mark.parametrize(("sigma", "epsilon"), [("1", "1"), ("4.2", "1"), ("0.3", "5"), ("0.03", "700"), ("30", "0.1")])
def test_the_gaussian(sigma: str, epsilon: str) -> None:
    s, e = number(sigma), number(epsilon)
    for phi in (MPF(1), MPF(1) / 3):
        true = cdf(phi / (2 * s) - e * s / phi) - CONTEXT.exp(e) * cdf(-phi / (2 * s) - e * s / phi)
        found = referee.mixture(sigma, [(1, 0)]).divergence(Fraction(1) if phi == 1 else Fraction(1, 3), epsilon)
        assert abs(found - true) < TINY


def test_the_laplace() -> None:
    """D(φ) = 1 − e^((ε − φ/b)/2) for φ > ε b."""
    density = referee.even([(0, None, 0, [(0, "-1.25")])], 1)
    for phi, epsilon in (("1", "1"), ("0.9", "0.5"), ("0.5", "1")):
        true = max(MPF(0), 1 - CONTEXT.exp((number(epsilon) - number("1.25") * number(phi)) / 2))
        assert abs(density.divergence(phi, epsilon) - true) < TINY


def test_the_uniform() -> None:
    density = referee.even([(0, 5, 0, [(0, 0)])], 1)
    assert abs(density.divergence("0.7", "1") - MPF("0.07")) < TINY
    assert density.supremum("1") == (1, pytest.approx(MPF("0.1")))


def test_the_quasi_gaussian_at_the_sensitivity() -> None:
    """D(Δ) = −h₁ / (e^ε + 2Φ(1/σ)), h₁ of Theorem 4.2."""
    s, e = number("0.8"), number("2")
    h1 = CONTEXT.exp(2 * e) * cdf(-e * s - 1 / s) - cdf(-e * s + 1 / s)
    true = -h1 / (CONTEXT.exp(e) + 2 * cdf(1 / s))
    assert abs(referee.quasi_gaussian("0.8", "2").divergence(1, "2") - true) < TINY


@pytest.mark.parametrize("K", [1, 4])
def test_the_multi_gaussian_at_the_sensitivity(K: int) -> None:
    """With geometric weights only w_K e^(−…) is left: D(Δ) = w_K · (mass where the outermost component exceeds 0 …)."""
    density = referee.multi_gaussian("0.4", K, "1")
    weight = CONTEXT.exp(-K) / (1 + 2 * sum(CONTEXT.exp(-k) for k in range(1, K + 1)))
    assert 0 < density.divergence(1, "1") <= weight


def test_quadrature_agrees() -> None:
    """Another way to the same integral."""
    density = referee.multi_gaussian("0.35", 2, "1")
    f = density.pieces[0].value
    phi, factor = number("0.7"), CONTEXT.exp(1)
    events = density.events("0.7", "1")
    total = MPF(0)
    for a, b in events:
        start, stop = (-MPF(9) if a is None else a), (MPF(9) if b is None else b)
        total += CONTEXT.quad(lambda x: f(x + phi) - factor * f(x), CONTEXT.linspace(start, stop, 12))
    assert abs(total / density.mass - density.divergence("0.7", "1")) < MPF(10) ** -30


def test_the_supremum_is_a_maximum() -> None:
    density = referee.multi_gaussian("0.33", 4, "1")
    shift, top = density.supremum("1")
    for step in ("1e-3", "-1e-3", "1e-6", "-1e-6", "0.1", "-0.2"):
        assert density.divergence(Fraction(str(shift)) + Fraction(step), "1") < top
    assert abs(density.slope(Fraction(str(shift)), "1")) < MPF(10) ** -14
