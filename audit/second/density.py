"""The second opinion's own reading of a mechanism: from the text of its document to a density, by its definition.

Nothing of mechanisms/ is used, nor of the rest of audit/: numbers are read from their text again, and each family is
written out from the formula that names it. Lengths are in units of the sensitivity Δ; a density is not normalised.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ZERO, ONE = Fraction(0), Fraction(1)


def exact(text: Any) -> Fraction:
    """The rational that a number's text denotes: ``0.1``, ``1e-5``, ``1/3`` or the hex float ``0x1.8p-2``.

    The text is one that verification has read before, so its length and its exponent are bounded. Raises ValueError.
    """
    text = str(text)
    body = text.lstrip("+-").lower()
    if not body.startswith("0x"):
        return Fraction(text)
    digits, _, exponent = body[2:].partition("p")
    whole, _, places = digits.partition(".")
    size = Fraction(int(whole + places, 16)) * Fraction(2) ** (int(exponent or "0") - 4 * len(places))
    return -size if text.startswith("-") else size


@dataclass(frozen=True)
class Term:
    """w e^(h − c (x − m)²) where c > 0; w e^(h + m x) where c = 0. Exact; w > 0."""

    weight: Fraction
    height: Fraction
    c: Fraction
    m: Fraction

    def moved(self, shift: Fraction) -> Term:
        """The same at x + shift, as a function of x."""
        if self.c:
            return replace(self, m=self.m - shift)
        return replace(self, height=self.height + self.m * shift)

    def mirrored(self) -> Term:
        """The same at −x."""
        return replace(self, m=-self.m)

    def raised(self, by: Fraction) -> Term:
        """e^by times as high."""
        return replace(self, height=self.height + by)

    @property
    def line(self) -> tuple[Fraction, Fraction]:
        """(a, b) with the term equal to w e^(a + b x − c x²)."""
        return (self.height - self.c * self.m**2, 2 * self.c * self.m) if self.c else (self.height, self.m)

    def top(self, start: Fraction | None, stop: Fraction | None) -> Fraction:
        """max of h − c (x − m)², or h + m x, over [start, stop]; finite where the term is integrable there."""
        if self.c:
            near = self.m if start is None else max(self.m, start)
            near = near if stop is None else min(near, stop)
            return self.height - self.c * (near - self.m) ** 2
        ends = [end for end in (start, stop) if end is not None]
        return max(self.height + self.m * end for end in ends)


Terms = tuple[Term, ...]


@dataclass(frozen=True)
class Part:
    """The sum of ``terms`` on (start, stop); None is infinite. No terms: the density is 0 there."""

    start: Fraction | None
    stop: Fraction | None
    terms: Terms


@dataclass(frozen=True)
class Stretch:
    """Where f(x + φ) is the sum of ``there`` and e^ε f(x) that of ``here``: one formula each.

    ``gain`` − ``loss`` is their difference after equal exponentials were subtracted exactly. ``copies`` = r stands for
    1 + r + r² + …, r = e^(−fall): so often the stretch repeats, each time r as high (steps without end); None for once.
    ``start_moves`` and ``stop_moves`` say that the end is a break of f(x + φ), which moves with φ.
    """

    start: Fraction | None
    stop: Fraction | None
    there: Terms
    here: Terms
    gain: Terms
    loss: Terms
    start_moves: bool
    stop_moves: bool
    fall: Fraction | None


@dataclass(frozen=True)
class Density:
    """An even density: ``right`` are its parts on [0, ∞), in order; ``scale`` is a length on which it varies.

    ``fall`` and ``edge``: beyond ``edge`` the steps go on for ever, one unit wide, each e^(−fall) as high as the one
    before; ``right`` then has those up to edge + 3. A density without that has ``fall`` None.
    """

    right: tuple[Part, ...]
    scale: float
    fall: Fraction | None = None
    edge: Fraction = ZERO

    @cached_property
    def line(self) -> tuple[Part, ...]:
        """The parts on the whole line. A mixture of Gaussians is one part, which says the same of both halves."""
        first = self.right[0]
        mirrored = Counter(term.mirrored() for term in first.terms)
        if len(self.right) == 1 and first.stop is None and Counter(first.terms) == mirrored:
            return (Part(None, None, first.terms),)
        parts = list(self.right)
        if parts[-1].stop is not None:
            parts.append(Part(parts[-1].stop, None, ()))
        left = [
            Part(None if p.stop is None else -p.stop, -(p.start or ZERO), tuple(t.mirrored() for t in p.terms))
            for p in reversed(parts)
        ]
        return (*left, *parts)

    def stretches(self, shift: Fraction, epsilon: Fraction) -> list[Stretch]:
        """The line cut wherever f(x) or f(x + φ) changes its formula."""
        line = self.line
        breaks = [part.stop for part in line if part.stop is not None]
        cuts = {edge: False for edge in breaks} | {edge - shift: True for edge in breaks}
        left, right = -self.edge - shift, self.edge
        if self.fall is not None:
            cuts |= {left: False, left - 1: False, right: False, right + 1: False}
        ends: list[Fraction | None] = [None, *sorted(cuts), None]
        found = []
        for start, stop in itertools.pairwise(ends):
            inside = _inside(start, stop)
            fall = None
            if self.fall is not None:
                if start is None or stop is None or start < left - 1 or stop > right + 1:
                    continue
                fall = self.fall if stop <= left or start >= right else None
            there = tuple(term.moved(shift) for term in line[bisect.bisect_right(breaks, inside + shift)].terms)
            here = tuple(term.raised(epsilon) for term in line[bisect.bisect_right(breaks, inside)].terms)
            gain, loss = subtract(there, here)
            moves = [end is not None and cuts[end] for end in (start, stop)]
            found.append(Stretch(start, stop, there, here, gain, loss, moves[0], moves[1], fall))
        return found

    def edges(self) -> list[Fraction]:
        """Where the density changes its formula, on the whole line."""
        return [part.stop for part in self.line if part.stop is not None]

    def log_values(self, x: Floats, level: float = 0.0) -> Floats:
        """log f(x) − level in float64, −∞ where f is 0 or far below. It proposes only."""
        found = np.full(x.shape, -np.inf)
        for part in self.line:
            low = 0 if part.start is None else int(np.searchsorted(x, float(part.start)))
            high = len(x) if part.stop is None else int(np.searchsorted(x, float(part.stop)))
            for term in part.terms:
                first, last = low, high
                if term.c:  # where the term is within e^−800 of its peak
                    reach = math.sqrt(800 / float(term.c))
                    first = max(low, int(np.searchsorted(x, float(term.m) - reach)))
                    last = min(high, int(np.searchsorted(x, float(term.m) + reach)))
                if first < last:
                    at = x[first:last]
                    m = float(term.m)
                    shape = -float(term.c) * (at - m) ** 2 if term.c else m * at
                    weight = math.log(term.weight.numerator) - math.log(term.weight.denominator)
                    value = weight + float(term.height) - level + shape
                    found[first:last] = np.logaddexp(found[first:last], value)
        return found


def _inside(start: Fraction | None, stop: Fraction | None) -> Fraction:
    if start is None:
        return ZERO if stop is None else stop - 1
    return start + 1 if stop is None else (start + stop) / 2


def subtract(there: Iterable[Term], here: Iterable[Term]) -> tuple[Terms, Terms]:
    """there − here as (gain, loss): of terms that differ in their weight alone, only the difference is left."""
    total: dict[tuple[Fraction, Fraction, Fraction], Fraction] = {}
    for sign, terms in ((1, there), (-1, here)):
        for term in terms:
            key = (term.height, term.c, term.m)
            total[key] = total.get(key, ZERO) + sign * term.weight
    gain = tuple(Term(weight, *key) for key, weight in total.items() if weight > 0)
    return gain, tuple(Term(-weight, *key) for key, weight in total.items() if weight < 0)


def read_density(mechanism: Mapping[str, Any], claim_epsilon: Fraction | None = None) -> Density:
    """The density of X/Δ from a mechanism's document. Raises ValueError or KeyError for what is none.

    ``claim_epsilon`` stands in where the family has an ε of its own and the document leaves it out.
    """
    numbers = {name: exact(value) for name, value in mechanism.items() if isinstance(value, (str, int))
               and name != "family"}  # fmt: skip
    if claim_epsilon is not None:
        numbers.setdefault("epsilon", claim_epsilon)
    family = mechanism["family"]
    if family == "declared":
        family = "pieces" if "pieces" in mechanism else "components"
    found = _FAMILIES[family](numbers, mechanism)
    tops = [term.top(part.start, part.stop) for part in found.right for term in part.terms]
    lower = Fraction(-round(max(tops)))  # a common factor; it keeps floats in their range
    right = tuple(Part(p.start, p.stop, tuple(term.raised(lower) for term in p.terms)) for p in found.right)
    return replace(found, right=right)


Numbers = Mapping[str, Fraction]


def _gaussians(numbers: Numbers, means: Iterable[tuple[Fraction, Fraction, Fraction]]) -> Density:
    """Gaussians of one σ from (w, log-weight, mean in the unit of the query) on the half-line."""
    unit = numbers["sensitivity"]
    sigma = numbers["sigma"] / unit
    c = 1 / (2 * sigma**2)
    terms = tuple(Term(weight, height, c, mean / unit) for weight, height, mean in means)
    return Density((Part(ZERO, None, terms),), float(sigma))


def _gaussian(numbers: Numbers, _: Any) -> Density:
    return _gaussians(numbers, [(ONE, ZERO, ZERO)])


def _multi_gaussian(numbers: Numbers, _: Any) -> Density:
    """Σ_{k=−K..K} e^(−|k| ε) N(kΔ, σ²) (Definition 3.1)."""
    largest = int(numbers["K"])
    ks = range(-largest, largest + 1)
    return _gaussians(numbers, [(ONE, -abs(k) * numbers["epsilon"], k * numbers["sensitivity"]) for k in ks])


def _quasi_gaussian(numbers: Numbers, _: Any) -> Density:
    """e^ε e^(−x²/2σ²) + e^(−(x−Δ)²/2σ²) for x ≥ 0 (Definition 4.1)."""
    return _gaussians(numbers, [(ONE, numbers["epsilon"], ZERO), (ONE, ZERO, numbers["sensitivity"])])


def _components(numbers: Numbers, mechanism: Any) -> Density:
    """Σ w N(m, σ²) + w N(−m, σ²), the latter for m > 0."""
    pairs = [(exact(weight), exact(mean)) for weight, mean in mechanism["components"]]
    return _gaussians(
        numbers, [(weight, ZERO, signed) for weight, mean in pairs for signed in ((mean, -mean) if mean else (mean,))]
    )


def _pieces(numbers: Numbers, mechanism: Any) -> Density:
    """On each piece e^(−c x²) Σ e^(a + b x), x ≥ 0 in the unit of the query."""
    unit, parts, lengths = numbers["sensitivity"], [], [1.0]
    for piece in mechanism["pieces"]:
        c = exact(piece["c"]) * unit**2
        start = exact(piece["from"]) / unit
        stop = None if piece["to"] == "inf" else exact(piece["to"]) / unit
        terms = []
        for a, b in piece["lines"]:
            height, slope = exact(a), exact(b) * unit
            if c:
                terms.append(Term(ONE, height + slope**2 / (4 * c), c, slope / (2 * c)))
            else:
                terms.append(Term(ONE, height, ZERO, slope))
        parts.append(Part(start, stop, tuple(terms)))
        lengths += [] if stop is None else [float(stop - start)]
        lengths += [1 / math.sqrt(2 * float(t.c)) if t.c else 1 / abs(float(t.m)) for t in terms if t.c or t.m]
    return Density(tuple(parts), min(lengths))


def _exponential(numbers: Numbers) -> tuple[Term, float]:
    rate = numbers["sensitivity"] / numbers["scale"]
    return Term(ONE, ZERO, ZERO, -rate), 1 / float(rate)


def _laplace(numbers: Numbers, _: Any) -> Density:
    """e^(−|x|/scale)."""
    term, scale = _exponential(numbers)
    return Density((Part(ZERO, None, (term,)),), scale)


def _truncated_laplace(numbers: Numbers, _: Any) -> Density:
    """e^(−|x|/scale) for |x| ≤ A."""
    term, scale = _exponential(numbers)
    return Density((Part(ZERO, numbers["A"] / numbers["sensitivity"], (term,)),), scale)


def _flipped_huber(numbers: Numbers, _: Any) -> Density:
    """e^(−ρ(x)/σ²), ρ(x) = α|x| for |x| ≤ α, (x² + α²)/2 beyond."""
    sigma, alpha = numbers["sigma"] / numbers["sensitivity"], numbers["alpha"] / numbers["sensitivity"]
    centre = Term(ONE, ZERO, ZERO, -alpha / sigma**2)
    tail = Term(ONE, -(alpha**2) / (2 * sigma**2), 1 / (2 * sigma**2), ZERO)
    return Density((Part(ZERO, alpha, (centre,)), Part(alpha, None, (tail,))), float(sigma))


def _steps(epsilon: Fraction, gamma: Fraction, end: Fraction) -> tuple[Part, ...]:
    """Step 0 on [0, γ), step i on [γ + i − 1, γ + i), of height e^(−iε), up to ``end``; in units of Δ."""
    parts, start, number = [], ZERO, 0
    while start < end:
        stop = min(gamma + number, end)
        parts.append(Part(start, stop, (Term(ONE, -number * epsilon, ZERO, ZERO),)))
        start, number = stop, number + 1
    return tuple(parts)


def _staircase(numbers: Numbers, _: Any) -> Density:
    gamma = numbers["gamma"]
    return Density(_steps(numbers["epsilon"], gamma, gamma + 3), 1.0, numbers["epsilon"], gamma)


def _truncated_staircase(numbers: Numbers, _: Any) -> Density:
    return Density(_steps(numbers["epsilon"], numbers["gamma"], numbers["T"] / numbers["sensitivity"]), 1.0)


def _tulap(numbers: Numbers, _: Any) -> Density:
    """b^|nearest integer to x| for |x| < T, b = e^(−ε): steps of γ = 1/2."""
    return Density(_steps(numbers["epsilon"], Fraction(1, 2), numbers["T"] / numbers["sensitivity"]), 1.0)


_FAMILIES: dict[str, Callable[[Numbers, Any], Density]] = {
    "gaussian": _gaussian,
    "multi-gaussian": _multi_gaussian,
    "quasi-gaussian": _quasi_gaussian,
    "components": _components,
    "pieces": _pieces,
    "laplace": _laplace,
    "truncated-laplace": _truncated_laplace,
    "flipped-huber": _flipped_huber,
    "staircase": _staircase,
    "truncated-staircase": _truncated_staircase,
    "tulap": _tulap,
}
