"""The theorems that give a verdict its meaning, attacked by the referee: what would make them false is looked for."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.calibration import float_sigma
from mechanisms.claims import Theorem42
from mechanisms.families import QuasiGaussian
from tests.audit.support import ZOO
from tests.soundness import referee
from tests.soundness.referee import CONTEXT, MPF, number

ROUNDING = MPF(10) ** -40
MIXTURES = ("gaussian", "multi-gaussian", "irregular", "repeated", "eighths")
SIGMA = {"gaussian": "1.3", "multi-gaussian": "0.35", "irregular": "0.37", "repeated": "0.3", "eighths": "0.3"}


@pytest.mark.parametrize("name", ZOO)
def test_no_event_exceeds_the_divergence_and_one_attains_it(name: str) -> None:
    """P(A − φ) − e^ε P(A) ≤ D(φ) for any union of intervals A, with equality where f(x+φ) > e^ε f(x)."""
    density, rng = ZOO[name][1], random.Random(name)
    shift, epsilon = Fraction(rng.randint(1, 64), 64), Fraction(rng.randint(0, 16), 16)
    top, best = density.divergence(shift, epsilon), density.events(shift, epsilon)

    def gain(event: list[tuple[object, object]]) -> object:
        there = [(None if a is None else a + number(shift), None if b is None else b + number(shift)) for a, b in event]
        inside = CONTEXT.fsum(density.probability(_exact(a), _exact(b)) for a, b in there)
        return inside - CONTEXT.exp(number(epsilon)) * CONTEXT.fsum(
            density.probability(_exact(a), _exact(b)) for a, b in event
        )

    assert abs(gain(best) - top) < ROUNDING  # type: ignore[operator]
    for _ in range(30):
        ends = sorted(Fraction(rng.uniform(-4, 4)) for _ in range(2 * rng.randint(1, 4)))
        event = [(number(a), number(b)) for a, b in zip(ends[::2], ends[1::2], strict=True)]
        assert gain(event) <= top + ROUNDING  # type: ignore[operator]


def _exact(value: object) -> Fraction | None:
    return None if value is None else Fraction(CONTEXT.nstr(value, 60))


@pytest.mark.parametrize("name", ZOO)
def test_the_divergence_is_that_of_the_shift_the_other_way(name: str) -> None:
    """f is even: D(−φ) = D(φ). Riemann sums of the declared density against the referee."""
    mechanism, density = ZOO[name]
    x = np.arange(-12 * 2**12, 12 * 2**12) / 2**12 + 2.0**-13
    for shift in (0.25, 0.875):
        moved, here = mechanism.form.density(x - shift), mechanism.form.density(x)
        backwards = np.maximum(moved - math.exp(0.5) * here, 0).sum() / 2**12
        assert backwards == pytest.approx(float(density.divergence(Fraction(shift), "0.5")), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("name", MIXTURES)
def test_the_divergence_moves_by_no_more_than_the_grid_of_theorem_3_2_allows(name: str) -> None:
    """|D(φ) − D(φ′)| ≤ |φ − φ′| / (σ√(2π)): what is between two grid points is at most ηδ above both."""
    density, rng = ZOO[name][1], random.Random(name)
    rate = 1 / (number(SIGMA[name]) * CONTEXT.sqrt(2 * CONTEXT.pi))
    steepest = MPF(0)
    for _ in range(8):
        epsilon, shift = Fraction(rng.randint(0, 12), 8), Fraction(rng.randint(0, 60), 64)
        step = Fraction(1, 2 ** rng.randint(2, 20))
        change = abs(density.divergence(shift + step, epsilon) - density.divergence(shift, epsilon))
        assert change <= number(step) * rate
        steepest = max(steepest, change / (number(step) * rate))
    assert steepest > MPF("0.01")  # it is no idle bound


@pytest.mark.parametrize("K", [0, 1, 3])
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_a_larger_scale_keeps_the_guarantee(K: int, epsilon: str) -> None:
    """Lemma 3.4: sup D falls as σ rises, K fixed."""
    tops = [referee.multi_gaussian(sigma, K, epsilon).supremum(epsilon)[1] for sigma in ("0.3", "0.33", "0.4", "0.7")]
    assert tops == sorted(tops, reverse=True)
    assert len(set(tops)) == len(tops)


@pytest.mark.parametrize("seed", range(3))
def test_the_conditions_of_theorem_4_2_imply_the_guarantee(seed: int) -> None:
    rng = random.Random(seed)
    epsilon, delta = Fraction(rng.randint(1, 40), 8), Fraction(1, 10 ** rng.randint(1, 6))
    member = QuasiGaussian(sensitivity=1, sigma=1, epsilon=epsilon)
    sigma = Fraction(float_sigma(member, Theorem42(epsilon=epsilon, delta=delta))) * (1 + Fraction(1, 10**12))
    assert referee.quasi_gaussian(sigma, epsilon).supremum(epsilon)[1] <= number(delta)
