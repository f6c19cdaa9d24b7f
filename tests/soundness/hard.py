"""Random hard mechanisms with the referee's density of each, and claims a hair above and below the true sup D."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mechanisms.families import (
    Declared,
    DeclaredMixture,
    FlippedHuber,
    Laplace,
    Mechanism,
    Staircase,
    TruncatedLaplace,
    TruncatedStaircase,
    Tulap,
)
from tests.audit import support
from tests.soundness import referee, referee_steps
from tests.soundness.referee import Density
from tests.soundness.referee_steps import StepDensity


@dataclass(frozen=True)
class Case:
    """A mechanism in units of Δ = 1, the same in the referee's terms, and an ε."""

    name: str
    mechanism: Mechanism
    density: Density | StepDensity
    epsilon: str
    digits: int = 60
    """What the referee needs: more than 60 where D is tiny and what exceeds nearly cancels."""


def text(rng: random.Random, low: float, high: float, digits: int = 4) -> str:
    """A decimal between the two."""
    return f"{rng.uniform(low, high):.{digits}f}"


def multi_gaussian(rng: random.Random) -> Case:
    """Interior or last worst shift, σ from narrow to wide."""
    K, epsilon = rng.randint(0, 6), rng.choice(["0.3", "1", "2.5", "5"])
    mechanism, density = support.multi_gaussian(text(rng, 0.2, 0.8), K, epsilon)
    return Case("multi-gaussian", mechanism, density, epsilon)


def cliff(rng: random.Random) -> Case:
    """K where w_K ≈ D: the largest K whose w_K is above the interior peak, or the next."""
    K, epsilon = rng.randint(2, 5), rng.choice(["1", "2", "3"])
    mechanism, density = support.multi_gaussian(text(rng, 0.25, 0.4), K, epsilon)
    return Case("cliff", mechanism, density, epsilon)


def foreign_epsilon(rng: random.Random) -> Case:
    """A multi-Gaussian whose own ε is not the claim's: nothing cancels at φ = Δ."""
    mechanism, density = support.multi_gaussian(text(rng, 0.3, 0.7), rng.randint(1, 4), rng.choice(["0.5", "1", "3"]))
    return Case("foreign-epsilon", mechanism, density, text(rng, 0.2, 2, 2))


def quasi_gaussian(rng: random.Random) -> Case:
    epsilon = rng.choice(["1", "3", "10"])
    mechanism, density = support.quasi_gaussian(text(rng, 0.14, 0.9), epsilon)
    return Case("quasi-gaussian", mechanism, density, epsilon)


def mixture(rng: random.Random) -> Case:
    """Irregular means, weights over six decades, now and then a mean twice."""
    components = [(f"{10 ** rng.uniform(-3, 0):.6f}", text(rng, 0, 2.5, 3)) for _ in range(rng.randint(2, 6))]
    if rng.random() < 0.4:
        components.append((f"{10 ** rng.uniform(-6, 0):.7f}", components[0][1]))
    mechanism, density = support.mixture(text(rng, 0.15, 0.8), *components)
    return Case("mixture", mechanism, density, rng.choice(["0", *(text(rng, 0.2, 3, 2) for _ in range(9))]))


def lattice_mixture(rng: random.Random) -> Case:
    """Means on a grid of which 1 is a multiple: exponentials cancel at several shifts."""
    step = Fraction(1, rng.choice([2, 3, 4, 8]))
    components = [(f"{10 ** rng.uniform(-3, 0):.6f}", str(step * i)) for i in range(rng.randint(3, 10))]
    mechanism, density = support.mixture(text(rng, 0.2, 0.8), *components)
    return Case("lattice-mixture", mechanism, density, text(rng, 0.2, 3, 2))


def laplace_sum(rng: random.Random) -> Case:
    lines = [(text(rng, -2, 1), f"-{text(rng, 0.5, 5)}") for _ in range(rng.randint(1, 4))]
    mechanism, density = support.declared(("0", "inf", "0", lines), scale=0.2)
    return Case("laplace-sum", mechanism, density, text(rng, 0.2, 2, 2))


def steps(rng: random.Random) -> Case:
    edges = ["0", *(str(Fraction(sum(rng.randint(2, 9) for _ in range(i + 1)), 10)) for i in range(rng.randint(2, 4)))]
    edges = sorted(set(edges), key=Fraction)
    rows = [(a, b, "0", [(text(rng, -3, 0), "0")]) for a, b in itertools.pairwise(edges)]
    mechanism, _ = support.declared(*rows, scale=0.5)
    density = StepDensity([(stop, lines[0][0]) for _, stop, _, lines in rows])
    return Case("steps", mechanism, density, text(rng, 0.2, 2, 2))


def teeth(rng: random.Random) -> Case:
    """High steps about one sensitivity apart: D is large between 0 and Δ, or at both, or at neither."""
    rows, at = [], Fraction(text(rng, 0.05, 0.3, 2))
    rows.append((at, "0"))
    for _ in range(rng.randint(1, 3)):
        rows.append((at := at + Fraction(text(rng, 0.5, 1.1, 2)), text(rng, -8, -3, 1)))
        rows.append((at := at + Fraction(text(rng, 0.05, 0.3, 2)), text(rng, -1, 0, 1)))
    starts = [Fraction(0), *(edge for edge, _ in rows)]
    pieces = [(str(a), str(b), "0", [(height, "0")]) for a, (b, height) in zip(starts, rows, strict=False)]
    mechanism, _ = support.declared(*pieces, scale=0.1)
    return Case("teeth", mechanism, StepDensity(rows), text(rng, 0.2, 3, 2))


def pieces(rng: random.Random) -> Case:
    """Two to four pieces, each with a c and lines of its own, with jumps; bounded or not, now and then a gap."""
    count = rng.randint(2, 4)
    edges = [Fraction(0)]
    for _ in range(count):
        edges.append(edges[-1] + Fraction(rng.randint(3, 20), 10))
    rows: list[Any] = []
    for number, (a, b) in enumerate(itertools.pairwise(edges)):
        c = rng.choice(["0", "0.5", "2", "1/7"])
        lines = [(text(rng, -3, 0), text(rng, -2, 2)) for _ in range(rng.randint(1, 3))]
        if number and number + 1 < count and rng.random() < 0.2:
            lines = []
        last = number + 1 == count
        if last and rng.random() < 0.6:
            lines = lines if c != "0" else [(i, f"-{text(rng, 0.5, 3)}") for i, _ in lines]
            rows.append((str(a), "inf", c, lines))
        else:
            rows.append((str(a), str(b), c, lines))
    mechanism, density = support.declared(*rows, scale=0.3)
    return Case("pieces", mechanism, density, text(rng, 0.2, 2, 2))


def spliced(rng: random.Random) -> Case:
    """Continuous single lines of different c (flipped Huber and its like): kinks up, kinks down, neither."""
    at = Fraction(rng.randint(3, 15), 10)
    first, second = (rng.choice(["0", "0.5", "2"]) for _ in range(2))
    b1, b2 = Fraction(text(rng, -1.5, 0.3, 2)), Fraction(text(rng, -2, -0.5, 2))
    value = b1 * at - Fraction(first) * at * at
    intercept = value - b2 * at + Fraction(second) * at * at
    rows = [("0", str(at), first, [("0", str(b1))]), (str(at), "inf", second, [(str(intercept), str(b2))])]
    mechanism, density = support.declared(*rows, scale=0.5)
    return Case("spliced", mechanism, density, text(rng, 0.1, 1.5, 2))


def log_uniform(rng: random.Random, low: float, high: float, digits: int = 5) -> str:
    """A decimal between the two, small ones as likely as large ones."""
    return f"{math.exp(rng.uniform(math.log(low), math.log(high))):.{digits}g}"


def gaussian(rng: random.Random) -> Case:
    """From σ of a twentieth to forty, ε from a hundredth to twenty, as long as D is not below 10⁻³⁰⁰."""
    epsilon = "0" if rng.random() < 0.05 else log_uniform(rng, 0.01, 20)
    sigma = log_uniform(rng, 0.05, min(40, 30 / (float(epsilon) + 0.01)))
    mechanism, density = support.gaussian(sigma)
    return Case("gaussian", mechanism, density, epsilon)


def laplace(rng: random.Random) -> Case:
    """1/scale from below ε to above it; a hair above, and the same."""
    epsilon = Fraction(log_uniform(rng, 0.05, 8, 3))
    excess = rng.choice(["0", "-0.3", log_uniform(rng, 1e-12, 3), log_uniform(rng, 0.01, 3)])
    scale = 1 / (epsilon * (1 + Fraction(excess)))
    density = referee.even([(0, None, 0, [(0, -1 / scale)])], min(1.0, float(scale)))
    return Case("laplace", Laplace(sensitivity=1, scale=scale), density, str(epsilon))


def truncated_laplace(rng: random.Random) -> Case:
    """Cut where the tail is worth a tenth down to 10⁻³⁰⁰; scale 1/ε and others."""
    epsilon = Fraction(log_uniform(rng, 0.05, 8, 3))
    scale = Fraction(rng.choice(["1", "1", "0.8", "1.7"])) / epsilon
    log_delta = -rng.choice([rng.uniform(2, 30), rng.uniform(30, 680)])
    A = Fraction(f"{max(float(scale) * (math.log(math.expm1(float(epsilon)) / 2) - log_delta), 0.2):.6g}")
    mechanism = TruncatedLaplace(sensitivity=1, scale=scale, A=A)
    return Case("truncated-laplace", mechanism, referee.even([(0, A, 0, [(0, -1 / scale)])], 0.5), str(epsilon))


def flipped_huber(rng: random.Random) -> Case:
    epsilon, alpha = log_uniform(rng, 0.1, 5, 3), Fraction(log_uniform(rng, 0.05, 4, 4))
    sigma = Fraction(log_uniform(rng, 0.2, 3, 4))
    c = 1 / (2 * sigma**2)
    rows = [(0, alpha, 0, [(0, -2 * c * alpha)]), (alpha, None, c, [(-c * alpha**2, 0)])]
    density = referee.even(rows, min(1.0, float(sigma)))
    return Case("flipped-huber", FlippedHuber(sensitivity=1, alpha=alpha, sigma=sigma), density, epsilon)


def staircase(rng: random.Random) -> Case:
    own = Fraction(log_uniform(rng, 0.2, 8, 3))
    epsilon = own if rng.random() < 0.2 else own * (1 - Fraction(log_uniform(rng, 1e-12, 0.9)))
    gamma = rng.choice(["1", "1/2", text(rng, 0.05, 0.95, 3)])
    mechanism = Staircase(sensitivity=1, epsilon=own, gamma=gamma)
    return Case("staircase", mechanism, referee_steps.staircase(gamma, own), str(epsilon))


def cut_steps(rng: random.Random) -> Case:
    """Truncated staircase and Tulap; the claim's ε is that of the steps, or another."""
    own = Fraction(log_uniform(rng, 0.2, 8, 3))
    epsilon = own * Fraction(rng.choice(["1", "1", "0.9", "1.3"]))
    T = Fraction(text(rng, 0.3, min(20, 600 / float(own)), 3))
    if rng.random() < 0.5:
        mechanism: Mechanism = Tulap(sensitivity=1, epsilon=own, T=T)
        return Case("tulap", mechanism, referee_steps.cut_steps("1/2", own, T), str(epsilon))
    gamma = rng.choice(["1", "1/2", text(rng, 0.05, 0.95, 3)])
    mechanism = TruncatedStaircase(sensitivity=1, epsilon=own, gamma=gamma, T=T)
    return Case("truncated-staircase", mechanism, referee_steps.cut_steps(gamma, own, T), str(epsilon))


def in_unit(mechanism: Mechanism, unit: Fraction) -> Mechanism:
    """The mechanism for a query of that sensitivity, from the one for sensitivity 1."""
    lengths = {"sensitivity", "sigma", "scale", "A", "alpha", "T"}
    names = [parameter.name for parameter in dataclasses.fields(mechanism)]
    changes: dict[str, Any] = {name: getattr(mechanism, name) * unit for name in names if name in lengths}
    if isinstance(mechanism, DeclaredMixture):
        changes["components"] = [(weight, mean * unit) for weight, mean in mechanism.components]
    if isinstance(mechanism, Declared):
        changes["declared_pieces"] = [
            {
                "from": piece.start * unit,  # type: ignore[operator]
                "to": "inf" if piece.stop is None else piece.stop * unit,
                "c": piece.sum.c / unit**2,
                "lines": [[line.terms[0][1], line.slope / unit] for line in piece.sum.lines],
            }
            for piece in mechanism.declared_pieces
        ]
    return dataclasses.replace(mechanism, **changes)


KINDS = (
    multi_gaussian,
    cliff,
    foreign_epsilon,
    quasi_gaussian,
    mixture,
    lattice_mixture,
    laplace_sum,
    steps,
    pieces,
    spliced,
)


def case(seed: int) -> Case:
    """The same case for the same seed; the kinds take turns."""
    return KINDS[seed % len(KINDS)](random.Random(seed))
