"""The referee's densities made of steps: exact lengths, heights of 60 digits, every shift at which edges meet."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tests.soundness.referee_pieces import CONTEXT, MPF, noise, number

MOST_SHIFTS = 400
ENDLESS = 165
"""Steps e^(−165) = 10^(−71) as high as the first are left out."""


class StepDensity:
    """An even density, e^h on each (edge before, edge) for (edge, h) in order on x ≥ 0; h = None is height 0.

    ``goes_on`` says that there are more steps, too low to count: where the list ends, the support does not.
    """

    def __init__(self, steps: Sequence[tuple[Any, Any]], goes_on: bool = False) -> None:
        self._goes_on = goes_on
        right = [Fraction(edge) for edge, _ in steps]
        heights = [MPF(0) if h is None else CONTEXT.exp(number(h)) for _, h in steps]
        self.edges = [*(-edge for edge in reversed(right)), Fraction(0), *right]
        self._heights = [MPF(0), *reversed(heights), *heights, MPF(0)]
        self.mass = 2 * CONTEXT.fsum(
            number(stop - start) * h for (start, stop), h in zip(itertools.pairwise([0, *right]), heights, strict=True)
        )
        self._suprema: dict[Fraction, tuple[Any, Any]] = {}

    def _height(self, x: Fraction) -> Any:
        return self._heights[bisect_right(self.edges, x)]

    def divergence(self, shift: Any, epsilon: Any) -> Any:
        """D(φ): between two neighbouring edges of f(x+φ) and f(x) both are constant."""
        phi, factor, least = Fraction(shift), CONTEXT.exp(number(epsilon)), noise()
        cuts = sorted({*self.edges, *(edge - phi for edge in self.edges)})
        total = MPF(0)
        for start, stop in itertools.pairwise(cuts):
            middle = (start + stop) / 2
            there, here = self._height(middle + phi), factor * self._height(middle)
            if there - here > least * (there + here) and not (self._goes_on and not (there and here)):
                total += number(stop - start) * (there - here)
        return total / self.mass

    def shifts(self) -> list[Fraction]:
        """1, and the shifts in (0, 1) where an edge meets one, give or take whole numbers: D is linear between them."""
        parts = {edge % 1 for edge in self.edges}
        return sorted({Fraction(1), *((a - b) % 1 for a in parts for b in parts if a != b)})

    def supremum(self, epsilon: Any) -> tuple[Any, Any]:
        """(φ, D(φ)) with the largest D over [0, 1]."""
        exact = Fraction(epsilon)
        if exact not in self._suprema:
            shifts = self.shifts()
            assert len(shifts) <= MOST_SHIFTS
            pairs = [(shift, self.divergence(shift, exact)) for shift in shifts]
            self._suprema[exact] = max(pairs, key=lambda pair: pair[1])
        return self._suprema[exact]

    def probability(self, a: Any, b: Any) -> Any:
        """P(a < X < b), None for infinite ends."""
        low = self.edges[0] if a is None else max(Fraction(a), self.edges[0])
        high = self.edges[-1] if b is None else min(Fraction(b), self.edges[-1])
        inside = [low, *(edge for edge in self.edges if low < edge < high), high]
        parts = (number(v - u) * self._height((u + v) / 2) for u, v in itertools.pairwise(inside) if u < v)
        return CONTEXT.fsum(parts) / self.mass


def cut_steps(gamma: Any, own: Any, T: Any, goes_on: bool = False) -> StepDensity:
    """Steps of width 1, the first γ, each e^(−own ε) as high as the one before, up to T."""
    edges = [Fraction(gamma)]
    while edges[-1] < Fraction(T):
        edges.append(edges[-1] + 1)
    edges[-1] = Fraction(T)
    return StepDensity([(edge, -i * Fraction(own)) for i, edge in enumerate(edges)], goes_on)


def staircase(gamma: Any, own: Any) -> StepDensity:
    """The same without an end, to 70 digits."""
    return cut_steps(gamma, own, int(ENDLESS / Fraction(own)) + 2, goes_on=True)
