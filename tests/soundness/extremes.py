"""Hard mechanisms that are constructed: local maxima that nearly tie, narrow peaks of a large ε, tiny D, tight σ.

Everything is in units of Δ. Floats and the referee choose the parameters; what is claimed of them is judged afterwards.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from mechanisms.calibration import float_sigma
from mechanisms.claims import Direct
from mechanisms.families import DeclaredMixture, Gaussian, Mechanism, MultiGaussian, QuasiGaussian, ScaledFamily
from tests.audit import support
from tests.soundness import referee
from tests.soundness.hard import Case, log_uniform, text
from tests.soundness.referee import CONTEXT, Density, digits

ONE = Fraction(1)


def density_of(member: ScaledFamily) -> Density:
    """The referee's density of a scaled family at sensitivity 1."""
    sigma = member.sigma
    if isinstance(member, MultiGaussian):
        return referee.multi_gaussian(sigma, member.K, member.epsilon)
    if isinstance(member, QuasiGaussian):
        return referee.quasi_gaussian(sigma, member.epsilon)
    if isinstance(member, DeclaredMixture):
        return referee.mixture(sigma, signed(member))
    return referee.mixture(sigma, [(1, 0)])


def signed(member: ScaledFamily) -> list[tuple[Fraction, Fraction]]:
    """Weights and means of both signs of a mixture; those of a multi-Gaussian to 60 digits."""
    if isinstance(member, DeclaredMixture):
        return [(w, sign * m) for w, m in member.components for sign in ((1, -1) if m else (1,))]
    if isinstance(member, MultiGaussian):
        powers = [
            Fraction(CONTEXT.nstr(CONTEXT.exp(-k * referee.number(member.epsilon)), 60)) for k in range(member.K + 1)
        ]
        return [(powers[abs(k)], Fraction(k)) for k in range(-member.K, member.K + 1)]
    return [(ONE, Fraction(0))]


def scaled_member(rng: random.Random) -> tuple[ScaledFamily, Fraction]:
    """A member of a scaled family, at any scale, and an ε: the family's own, where it has one, or near it."""
    kind = rng.randrange(5)
    epsilon = Fraction(log_uniform(rng, 0.1, 12, 3))
    if kind == 0:
        return Gaussian(sensitivity=1, sigma=1), epsilon
    if kind == 1:
        return QuasiGaussian(sensitivity=1, sigma=1, epsilon=epsilon), epsilon
    if kind == 2:
        components = [
            ("1", "0"),
            *((log_uniform(rng, 1e-3, 1), text(rng, 0, 2.5, 2)) for _ in range(rng.randint(1, 4))),
        ]
        return DeclaredMixture(sensitivity=1, sigma=1, components=components), epsilon
    own = epsilon if kind == 3 else epsilon * Fraction(rng.choice(["0.9", "1.1"]))
    return MultiGaussian(sensitivity=1, sigma=1, K=rng.randint(1, rng.choice([8, 8, 20])), epsilon=own), epsilon


def tight(member: ScaledFamily, epsilon: Fraction, delta: Fraction) -> ScaledFamily:
    """The member at its float scale, written with ten digits."""
    sigma = float_sigma(member, Direct(epsilon=epsilon, delta=delta))
    return member.with_sigma(Fraction(f"{sigma:.10g}"))


def narrow(rng: random.Random) -> Case:
    """ε of 5 to 25: peaks 10⁻³ wide and less, and cliffs in σ."""
    epsilon = Fraction(text(rng, 5, 25, 1))
    delta = Fraction(log_uniform(rng, 1e-12, 1e-2))
    member = tight(MultiGaussian(sensitivity=1, sigma=1, K=rng.randint(1, 12), epsilon=epsilon), epsilon, delta)
    return Case("narrow", member, density_of(member), str(epsilon))


def tiny(rng: random.Random) -> Case:
    """D from 10⁻¹² to 10⁻³⁰⁰."""
    member, epsilon = scaled_member(rng)
    delta = Fraction(10) ** -rng.randint(12, 299)
    member = tight(member, epsilon, delta)
    count = 60 if isinstance(member, Gaussian) else 64 - round(math.log10(delta))
    with digits(count):
        return Case("tiny", member, density_of(member), str(epsilon), count)


def sliver(rng: random.Random) -> Case:
    """A peak of D that is 10⁻³ wide and less: f(x+φ) exceeds e^ε f(x) by a hair for a small range of x, or nearly."""
    while True:
        epsilon, K = Fraction(text(rng, 2, 20, 1)), rng.randint(1, 8)
        excess = rng.choice([1, 1, 1, -1]) * float(log_uniform(rng, 1e-9, 0.03))

        def above(sigma: float, epsilon: Fraction = epsilon, K: int = K, excess: float = excess) -> bool:
            summits = referee.multi_gaussian(Fraction(sigma), K, epsilon).summits()
            return max((ratio for _, _, ratio, _ in summits), default=0.0) > float(epsilon) + excess

        low, high = 0.08, 0.5
        if not above(low):
            continue
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if above(middle) else (low, middle)
        return Case("sliver", *support.multi_gaussian(f"{low:.13g}", K, str(epsilon)), str(epsilon))


def last_weight(epsilon: Fraction, K: int) -> Fraction:
    """w_K, to 40 digits."""
    powers = [CONTEXT.exp(-k * referee.number(epsilon)) for k in range(K + 1)]
    return Fraction(CONTEXT.nstr(powers[K] / (2 * sum(powers) - 1), 40))


def cliff_delta(rng: random.Random, epsilon: Fraction, K: int) -> Fraction:
    """A hair to either side of w_K, the largest weight that the worst shift Δ allows."""
    return last_weight(epsilon, K) * (1 + Fraction(rng.choice([-1, 1]), 10 ** rng.randint(2, 14)))


def at_cliff(rng: random.Random) -> Case:
    """K at the cliff w_K ≈ δ, σ the tight one."""
    epsilon, K = Fraction(text(rng, 0.5, 6, 1)), rng.randint(1, 5)
    delta = cliff_delta(rng, epsilon, K)
    member = tight(MultiGaussian(sensitivity=1, sigma=1, K=K, epsilon=epsilon), epsilon, delta)
    return Case("at-cliff", member, density_of(member), str(epsilon))


def tie_with_the_end(rng: random.Random) -> Case:
    """σ at which the inner peak is as high as D(Δ), or a hair off: near where it is w_K, which D(Δ) is below."""
    while True:
        epsilon, K = text(rng, 0.5, 8, 1), rng.randint(1, 6)
        member = MultiGaussian(sensitivity=1, sigma=1, K=K, epsilon=epsilon)
        start = tight(member, member.epsilon, last_weight(member.epsilon, K) * (1 + Fraction(1, 10**6))).sigma
        inner = [(top, shift) for shift, top in density_of(member.with_sigma(start)).maxima(epsilon) if shift < 0.99]

        def build(sigma: Fraction, K: int = K, epsilon: str = epsilon) -> tuple[Mechanism, Density]:
            return support.multi_gaussian(str(sigma), K, epsilon)

        for share in (1e-5, 1e-4, 1e-3, 1e-2) if inner else ():
            ends = float(start), float(start) * (1 + share)
            found = _polish_tie(rng, build, epsilon, ends, (float(max(inner)[1]), 1.0))
            if found is not None:
                return Case("tie-with-end", *found, epsilon)


def tie_inside(rng: random.Random) -> Case:
    """Two inner peaks of the same height, by the weight of one component, or a hair off."""
    while True:
        epsilon = text(rng, 0.5, 3, 1)
        sigma, components = (
            text(rng, 0.1, 0.3, 3),
            [(log_uniform(rng, 0.05, 1, 3), text(rng, 0.2, 2.2, 2)) for _ in range(2)],
        )
        mean = text(rng, 0.2, 2.2, 2)

        def build(
            weight: Fraction, sigma: str = sigma, parts: list[tuple[str, str]] = components, mean: str = mean
        ) -> tuple[Mechanism, Density]:
            return support.mixture(sigma, ("1", "0"), *parts, (str(weight), mean))

        found = _tie(rng, build, epsilon, [math.exp(v) for v in np.linspace(math.log(0.003), math.log(3), 25)])
        if found is not None:
            return Case("tie-inside", *found, epsilon)


Build = Callable[[Fraction], tuple[Mechanism, Density]]


def _tie(rng: random.Random, build: Build, epsilon: str, values: list[float]) -> tuple[Mechanism, Density] | None:
    """The mechanism at the parameter where the order of the two highest maxima changes; None where none is found."""
    level = float(epsilon)
    steps = 200
    before: tuple[float, float] | None = None
    for value in values:
        _, density = build(Fraction(f"{value:.12g}"))
        rough = density.scan(level, steps, range(steps + 1))
        highest = int(rough.argmax()) / steps
        if before is not None and abs(highest - before[1]) > 0.12:
            break
        before = value, highest
    else:
        return None
    return _polish_tie(rng, build, epsilon, (before[0], value), (before[1], highest))


def _polish_tie(
    rng: random.Random, build: Build, epsilon: str, ends: tuple[float, float], at: tuple[float, float]
) -> tuple[Mechanism, Density] | None:
    """The parameter between the ends at which the maxima near the two shifts ``at`` are equally high, or a hair off."""
    near = list(at)

    def gap(value: Any) -> Any:
        """log of the ratio of the two; climbs start where the last ones ended."""
        density = build(exact(value))[1]
        for i, shift in enumerate(near):
            if shift < 0.9999:
                near[i] = float(density.climb(referee.MPF(shift), referee.MPF("0.002"), referee.number(epsilon))[0])
        heights = [density.divergence(Fraction(shift), epsilon) for shift in near]
        return CONTEXT.log(heights[0] / heights[1])

    def exact(value: Any) -> Fraction:
        return Fraction(CONTEXT.nstr(referee.MPF(value), 17))

    below, above = gap(ends[0]), gap(ends[1])
    if not below > 0 > above:
        return None
    low, high = (referee.MPF(end) for end in ends)
    middle = referee.bracketed_zero(gap, low, high, below, above, low * referee.MPF(10) ** -14)
    if abs(gap(middle)) > 1e-6 or abs(near[0] - near[1]) < 0.02:
        return None
    return build(exact(middle) * (1 + Fraction(rng.choice([-1, 0, 1]), 10 ** rng.randint(3, 14))))
