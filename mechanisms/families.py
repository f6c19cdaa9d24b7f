"""The families of noise by their names, and those made of Gaussians. (trusted)

Each is frozen, exact-parameter data that states its pieces; all else follows from the form.

Parameters are keyword-only and exact: text is read as it is written, a float is the double that it is. ``sensitivity``
Δ and ``sigma`` σ are in the unit of the query; ``epsilon`` is the family's own, that of its weights.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self, cast

from mechanisms.form import Form, Piece
from mechanisms.lines import ZERO, Line, LineSum
from mechanisms.mechanism import MAX_LINES, Mechanism, parameter
from mechanisms.numbers import (
    InputError,
    exact_text,
    read_count,
    read_epsilon,
    read_positive,
    read_real,
    require_common,
)
from mechanisms.steps import Staircase, TruncatedStaircase, Tulap
from mechanisms.tails import FlippedHuber, Laplace, TruncatedLaplace

__all__ = [
    "FAMILIES",
    "MAX_K",
    "MAX_LINES",
    "Declared",
    "DeclaredMixture",
    "FlippedHuber",
    "Gaussian",
    "GaussianMixture",
    "Laplace",
    "Mechanism",
    "MultiGaussian",
    "QuasiGaussian",
    "ScaledFamily",
    "Staircase",
    "TruncatedLaplace",
    "TruncatedStaircase",
    "Tulap",
    "gaussian_line",
]

MAX_K = 1000
"""Bound on what a mechanism may declare, so that hostile input costs bounded time."""


@dataclass(frozen=True, kw_only=True)
class ScaledFamily(Mechanism):
    """A family with a scale σ that calibration may choose."""

    sigma: Fraction = parameter(read_positive)

    def with_sigma(self, sigma: Fraction) -> Self:
        """The same member at another scale."""
        return dataclasses.replace(self, sigma=sigma)

    @property
    def c(self) -> Fraction:
        """1/(2σ²)."""
        return 1 / (2 * self.sigma**2)


class GaussianMixture(ScaledFamily):
    """A scaled family whose density on [0, ∞) is one piece, Σ w N(m, σ²) up to a factor, of weights w and means m.

    Neither depends on σ: mechanisms.calibration goes from one σ to another without exact arithmetic.
    """

    @property
    def lengths(self) -> tuple[Fraction, ...]:
        """What the exact numbers of the lines are multiplied and divided by."""
        return self.sensitivity, 1 / self.sensitivity, self.sigma, 1 / self.sigma


def gaussian_line(weight: Fraction, log_weight: Fraction, mean: Fraction, c: Fraction) -> Line:
    """w e^(log_weight) e^(−c (x − mean)²) under the factor e^(−c x²)."""
    return Line.of(weight, log_weight - c * mean**2, 2 * c * mean)


@dataclass(frozen=True, kw_only=True)
class Gaussian(GaussianMixture):
    """N(0, σ²)."""

    family: ClassVar[str] = "gaussian"

    def pieces(self) -> tuple[Piece, ...]:
        return (Piece(ZERO, None, LineSum(self.c, (Line.of(Fraction(1), ZERO, ZERO),))),)


@dataclass(frozen=True, kw_only=True)
class MultiGaussian(GaussianMixture):
    """Σ_{k=−K..K} w_k N(kΔ, σ²), w_k ∝ e^(−|k| ε) (Definition 3.1). K = 0 is the Gaussian."""

    family: ClassVar[str] = "multi-gaussian"
    K: int = parameter(partial(read_count, limit=MAX_K))
    epsilon: Fraction = parameter(read_epsilon)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_common([*self.lengths, self.epsilon], "K", 2 * self.K + 1)

    def pieces(self) -> tuple[Piece, ...]:
        lines = (
            gaussian_line(Fraction(1), -abs(k) * self.epsilon, k * self.sensitivity, self.c)
            for k in range(-self.K, self.K + 1)
        )
        return (Piece(ZERO, None, LineSum(self.c, tuple(lines))),)


@dataclass(frozen=True, kw_only=True)
class QuasiGaussian(GaussianMixture):
    """Density ∝ e^ε e^(−x²/2σ²) + e^(−(|x|−Δ)²/2σ²) (Definition 4.1)."""

    family: ClassVar[str] = "quasi-gaussian"
    epsilon: Fraction = parameter(read_epsilon)

    def pieces(self) -> tuple[Piece, ...]:
        one = Fraction(1)
        centre = gaussian_line(one, self.epsilon, ZERO, self.c)
        side = gaussian_line(one, ZERO, self.sensitivity, self.c)
        return (Piece(ZERO, None, LineSum(self.c, (centre, side))),)


def _read_components(value: object, where: str) -> tuple[tuple[Fraction, Fraction], ...]:
    pairs = _read_rows(value, where, 2, "pairs [weight, mean]")
    components = []
    for number, (weight, mean) in enumerate(pairs):
        at = f"{where}[{number}]"
        if read_real(mean, f"{at}[1]") < 0:
            expected = "a mean of at least 0 (a mean m stands for m and −m, each with the weight)"
            raise InputError(f"{at}[1]", mean, expected)
        components.append((read_positive(weight, f"{at}[0]"), read_real(mean, f"{at}[1]")))
    if not components:
        raise InputError(where, "an empty list", "pairs [weight, mean]")
    return tuple(components)


@dataclass(frozen=True, kw_only=True)
class DeclaredMixture(GaussianMixture):
    """A mechanism of the user's own: Gaussians of one σ. (w, m) with m > 0 puts weight w at m and weight w at −m.

    Weights need not be normalised.
    """

    family: ClassVar[str] = "declared"
    components: tuple[tuple[Fraction, Fraction], ...] = parameter(_read_components)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_common([*self.lengths, *(number for pair in self.components for number in pair)], "components")

    def pieces(self) -> tuple[Piece, ...]:
        lines = []
        for weight, mean in self.components:
            for signed in {mean, -mean}:
                lines.append(gaussian_line(weight, ZERO, signed, self.c))
        return (Piece(ZERO, None, LineSum(self.c, tuple(sorted(lines, key=lambda line: line.slope)))),)

    def document(self) -> dict[str, Any]:
        found = super().document()
        found["components"] = [[exact_text(weight), exact_text(mean)] for weight, mean in self.components]
        return found


def _read_rows(value: object, where: str, width: int, expected: str) -> list[tuple[Any, ...]]:
    if not isinstance(value, (list, tuple)) or len(value) > MAX_LINES:
        raise InputError(where, value, f"a list of at most {MAX_LINES} {expected}")
    for number, row in enumerate(value):
        if not isinstance(row, (list, tuple)) or len(row) != width:
            raise InputError(f"{where}[{number}]", row, expected)
    return [tuple(row) for row in value]


def _read_pieces(value: object, where: str) -> tuple[Piece, ...]:
    if not isinstance(value, (list, tuple)) or not 0 < len(value) <= MAX_LINES:
        raise InputError(where, value, f"a list of 1 to {MAX_LINES} pieces")
    found = []
    for number, item in enumerate(value):
        piece = item if isinstance(item, Piece) else _read_piece(item, f"{where}[{number}]")
        if any(len(line.terms) != 1 or line.terms[0][0] != 1 for line in piece.sum.lines):
            raise InputError(f"{where}[{number}].lines", "weights", "lines of one term of weight 1, as e^(a + b x)")
        found.append(piece)
    return tuple(found)


def _numbers_of(piece: Piece) -> Iterator[Fraction]:
    yield from (end for end in (piece.start, piece.stop, piece.sum.c) if end is not None)
    yield from (number for line in piece.sum.lines for number in (line.terms[0][1], line.slope))


def _read_piece(item: object, where: str) -> Piece:
    keys = ("from", "to", "c", "lines")
    if not isinstance(item, dict) or sorted(item) != sorted(keys):
        raise InputError(where, item, "the fields from, to, c and lines")
    stop = None if item["to"] == "inf" else read_real(item["to"], f"{where}.to")
    c = read_real(item["c"], f"{where}.c")
    if c < 0:
        raise InputError(f"{where}.c", item["c"], "a number of at least 0")
    lines = tuple(
        Line.of(Fraction(1), read_real(a, f"{where}.lines[{i}][0]"), read_real(b, f"{where}.lines[{i}][1]"))
        for i, (a, b) in enumerate(_read_rows(item["lines"], f"{where}.lines", 2, "pairs [a, b]"))
    )
    return Piece(read_real(item["from"], f"{where}.from"), stop, LineSum(c, lines))


@dataclass(frozen=True, kw_only=True)
class Declared(Mechanism):
    """A mechanism of the user's own: on each piece, e^(−c x²) Σ e^(a + b x) for x ≥ 0, and even in x.

    ``declared_pieces`` takes Piece objects, or mappings with ``from``, ``to`` (``"inf"`` allowed), ``c`` and ``lines``.
    """

    family: ClassVar[str] = "declared"
    declared_pieces: tuple[Piece, ...] = parameter(lambda value, _: _read_pieces(value, "pieces"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(len(piece.sum.lines) for piece in self.declared_pieces) > MAX_LINES:
            raise InputError("pieces", "more", f"at most {MAX_LINES} lines in all")
        numbers = [number for piece in self.declared_pieces for number in _numbers_of(piece)]
        require_common([self.sensitivity, 1 / self.sensitivity, *numbers], "pieces")
        Form(self.declared_pieces)

    def pieces(self) -> tuple[Piece, ...]:
        return self.declared_pieces

    def document(self) -> dict[str, Any]:
        def lines(piece: Piece) -> list[list[str]]:
            return [[exact_text(line.terms[0][1]), exact_text(line.slope)] for line in piece.sum.lines]

        pieces = [
            {
                "from": exact_text(cast(Fraction, piece.start)),
                "to": "inf" if piece.stop is None else exact_text(piece.stop),
                "c": exact_text(piece.sum.c),
                "lines": lines(piece),
            }
            for piece in self.declared_pieces
        ]
        return {"family": self.family, "sensitivity": exact_text(self.sensitivity), "pieces": pieces}


_NAMED: tuple[type[Mechanism], ...] = (
    Gaussian,
    MultiGaussian,
    QuasiGaussian,
    Laplace,
    TruncatedLaplace,
    FlippedHuber,
    Staircase,
    TruncatedStaircase,
    Tulap,
)
FAMILIES: dict[str, type[Mechanism]] = {cls.family: cls for cls in _NAMED}
"""The families with a name of their own; ``declared`` is read by mechanisms.claims."""
