"""Random hard mechanisms with the referee's density of each, and claims a hair above and below the true sup D."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mechanisms.families import Mechanism
from tests.audit import support
from tests.soundness.referee import Density


@dataclass(frozen=True)
class Case:
    """A mechanism in units of Δ = 1, the same in the referee's terms, and an ε."""

    name: str
    mechanism: Mechanism
    density: Density
    epsilon: str


def _text(rng: random.Random, low: float, high: float, digits: int = 4) -> str:
    return f"{rng.uniform(low, high):.{digits}f}"


def multi_gaussian(rng: random.Random) -> Case:
    """Interior or last worst shift, σ from narrow to wide."""
    K, epsilon = rng.randint(0, 6), rng.choice(["0.3", "1", "2.5", "5"])
    mechanism, density = support.multi_gaussian(_text(rng, 0.2, 0.8), K, epsilon)
    return Case("multi-gaussian", mechanism, density, epsilon)


def cliff(rng: random.Random) -> Case:
    """K where w_K ≈ D: the largest K whose w_K is above the interior peak, or the next."""
    K, epsilon = rng.randint(2, 5), rng.choice(["1", "2", "3"])
    mechanism, density = support.multi_gaussian(_text(rng, 0.25, 0.4), K, epsilon)
    return Case("cliff", mechanism, density, epsilon)


def foreign_epsilon(rng: random.Random) -> Case:
    """A multi-Gaussian whose own ε is not the claim's: nothing cancels at φ = Δ."""
    mechanism, density = support.multi_gaussian(_text(rng, 0.3, 0.7), rng.randint(1, 4), rng.choice(["0.5", "1", "3"]))
    return Case("foreign-epsilon", mechanism, density, _text(rng, 0.2, 2, 2))


def quasi_gaussian(rng: random.Random) -> Case:
    epsilon = rng.choice(["1", "3", "10"])
    mechanism, density = support.quasi_gaussian(_text(rng, 0.14, 0.9), epsilon)
    return Case("quasi-gaussian", mechanism, density, epsilon)


def mixture(rng: random.Random) -> Case:
    """Irregular means, weights over six decades, now and then a mean twice."""
    components = [(f"{10 ** rng.uniform(-3, 0):.6f}", _text(rng, 0, 2.5, 3)) for _ in range(rng.randint(2, 6))]
    if rng.random() < 0.4:
        components.append((f"{10 ** rng.uniform(-6, 0):.7f}", components[0][1]))
    mechanism, density = support.mixture(_text(rng, 0.15, 0.8), *components)
    return Case("mixture", mechanism, density, _text(rng, 0.2, 3, 2))


def lattice_mixture(rng: random.Random) -> Case:
    """Means on a grid of which 1 is a multiple: exponentials cancel at several shifts."""
    step = Fraction(1, rng.choice([2, 3, 4, 8]))
    components = [(f"{10 ** rng.uniform(-3, 0):.6f}", str(step * i)) for i in range(rng.randint(3, 10))]
    mechanism, density = support.mixture(_text(rng, 0.2, 0.8), *components)
    return Case("lattice-mixture", mechanism, density, _text(rng, 0.2, 3, 2))


def laplace_sum(rng: random.Random) -> Case:
    lines = [(_text(rng, -2, 1), f"-{_text(rng, 0.5, 5)}") for _ in range(rng.randint(1, 4))]
    mechanism, density = support.declared(("0", "inf", "0", lines), scale=0.2)
    return Case("laplace-sum", mechanism, density, _text(rng, 0.2, 2, 2))


def steps(rng: random.Random) -> Case:
    edges = ["0", *(str(Fraction(sum(rng.randint(2, 9) for _ in range(i + 1)), 10)) for i in range(rng.randint(2, 4)))]
    edges = sorted(set(edges), key=Fraction)
    rows = [(a, b, "0", [(_text(rng, -3, 0), "0")]) for a, b in itertools.pairwise(edges)]
    mechanism, density = support.declared(*rows, scale=0.5)
    return Case("steps", mechanism, density, _text(rng, 0.2, 2, 2))


def pieces(rng: random.Random) -> Case:
    """Two to four pieces, each with a c and lines of its own, with jumps; bounded or not, now and then a gap."""
    count = rng.randint(2, 4)
    edges = [Fraction(0)]
    for _ in range(count):
        edges.append(edges[-1] + Fraction(rng.randint(3, 20), 10))
    rows: list[Any] = []
    for number, (a, b) in enumerate(itertools.pairwise(edges)):
        c = rng.choice(["0", "0.5", "2", "1/7"])
        lines = [(_text(rng, -3, 0), _text(rng, -2, 2)) for _ in range(rng.randint(1, 3))]
        if number and number + 1 < count and rng.random() < 0.2:
            lines = []
        last = number + 1 == count
        if last and rng.random() < 0.6:
            lines = lines if c != "0" else [(i, f"-{_text(rng, 0.5, 3)}") for i, _ in lines]
            rows.append((str(a), "inf", c, lines))
        else:
            rows.append((str(a), str(b), c, lines))
    mechanism, density = support.declared(*rows, scale=0.3)
    return Case("pieces", mechanism, density, _text(rng, 0.2, 2, 2))


def spliced(rng: random.Random) -> Case:
    """Continuous single lines of different c (flipped Huber and its like): kinks up, kinks down, neither."""
    at = Fraction(rng.randint(3, 15), 10)
    first, second = (rng.choice(["0", "0.5", "2"]) for _ in range(2))
    b1, b2 = Fraction(_text(rng, -1.5, 0.3, 2)), Fraction(_text(rng, -2, -0.5, 2))
    value = b1 * at - Fraction(first) * at * at
    intercept = value - b2 * at + Fraction(second) * at * at
    rows = [("0", str(at), first, [("0", str(b1))]), (str(at), "inf", second, [(str(intercept), str(b2))])]
    mechanism, density = support.declared(*rows, scale=0.5)
    return Case("spliced", mechanism, density, _text(rng, 0.1, 1.5, 2))


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
