"""What the shape of a density lets the search over shifts conclude, decided in rational arithmetic. (trusted)

Facts that are proved in the docstrings of what uses them: for a density that is log-concave, or that falls from 0 on,
the largest shift is the worst; for all others a box of shifts is bounded by its two ends. (Densities made of steps are
decided exactly: audit.steps.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from flint import arb, fmpq

from audit.exact import ball, rational
from audit.points import ConvexLog
from mechanisms.form import Form, Piece
from mechanisms.lines import LineSum

CELLS_PER_SHIFT, MOST_SHIFTS = (8, 64), 32
"""How finely, and how far, densities are looked at to show that no shift of at most 1 raises them by more than e^ε."""


def is_log_concave(form: Form) -> bool:
    """Whether log f is shown to be concave on the line (True is proved; False means «not shown»).

    Then D(φ) does not fall as φ rises, so that φ = Δ alone decides. Proof: f(x+φ)/f(x) does not rise with x, so the
    positive part of f(x+φ) − αf(x) lives on some (−∞, r), and D(φ) = max over r of F(r+φ) − αF(r), each term of which
    does not fall as φ rises.

    Source: concavity holds on a piece of one line, and across the end of a piece where f is continuous and the slope of
    log f does not rise; f may drop to 0 where the support ends.
    """
    pieces = form.pieces
    if any(len(piece.sum.lines) != 1 or len(piece.sum.lines[0].terms) != 1 for piece in pieces):
        return False
    if pieces[0].sum.lines[0].slope > 0:
        return False
    return all(
        _is_continuous(left, right) and _slope(left, left.stop) >= _slope(right, left.stop)
        for left, right in pairwise(pieces)
    )


def falls_from_centre(form: Form) -> bool:
    """Whether f is shown not to rise on [0, ∞) (True is proved; False means «not shown»).

    Then D(φ) does not fall as φ rises: again φ = Δ alone decides. Proof for α ≥ 1: D(φ) is the integral over u of
    max(f(u) − αf(u−φ), 0), and for 0 ≤ φ₁ < φ₂ that is at φ₂ no less than at φ₁: for u ≤ φ₁ because |u−φ₂| ≥ |u−φ₁|;
    for u > φ₁ because 0 ≤ u−φ₁ ≤ u, so that f(u) ≤ f(u−φ₁) and the maximum is 0 at φ₁. For α < 1,
    D_α = 1 − α + α D_{1/α}, f being even.

    Source: every e^(bx − cx²) with b ≤ 0 ≤ c falls on [0, ∞), and where two pieces meet the values are compared.
    Rounding: outward, at the precision in force.
    """
    pieces = form.pieces
    if any(line.slope > 0 for piece in pieces for line in piece.sum.lines):
        return False
    return all(_falls(left, right) for left, right in pairwise(pieces))


def _falls(left: Piece, right: Piece) -> bool:
    """Whether the right of two neighbours is shown to be no higher than the left where they meet."""
    if not (left.sum.lines and right.sum.lines):
        return not right.sum.lines
    if len(left.sum.lines) == len(right.sum.lines) == 1 and _is_continuous(left, right):
        return True
    assert left.stop is not None
    at = rational(left.stop)
    return bool(LogCurve(left.sum).at(at).log >= LogCurve(right.sum).at(at).log)


def is_pure(form: Form, epsilon: Fraction) -> bool:
    """Whether f(u) ≤ e^ε f(x), ε ≥ 0, is shown for all |u − x| ≤ 1 (True is proved; False means «not shown»).

    Then D is 0 at every shift: φ = Δ decides as well as any. Only densities without gaps that end in falling
    exponentials are looked at; E is where these start. By evenness x ≥ 0 is enough, and so is x ≤ E + 1: from E on
    log f is convex and falls, so that log f(x − d) − log f(x), 0 ≤ d ≤ 1, is no larger at x > E + 1 than at E + 1.

    Source: the range of f on cells of width 1/n, against those of all cells that a shift can reach. Rounding: outward,
    at the precision in force.
    """
    last = form.pieces[-1]
    if last.stop is not None or last.sum.c or epsilon < 0 or not all(piece.sum.lines for piece in form.pieces):
        return False
    assert last.start is not None
    width = math.ceil(last.start) + 2
    factor = ball(epsilon).exp()
    for n in CELLS_PER_SHIFT if width <= MOST_SHIFTS else ():
        right = [_range_of(form.pieces, Fraction(i, n), Fraction(i + 1, n)) for i in range(width * n)]
        cells = [*reversed(right), *right]
        for i in range(width * n, (2 * width - 1) * n):
            least = cells[i][0] * factor
            if not all(top <= least for _, top in cells[i - n : i + n + 1]):
                break
        else:
            return True
    return False


def _range_of(pieces: Sequence[Piece], start: Fraction, stop: Fraction) -> tuple[arb, arb]:
    """(lower bound of the minimum, upper bound of the maximum) of neighbouring pieces over [start, stop], of those that
    meet it."""
    ranges = []
    for piece in pieces:
        first = start if piece.start is None else max(piece.start, start)
        last = stop if piece.stop is None else min(piece.stop, stop)
        if first <= last:
            ranges.append(range_on(piece.sum, first, last))
    bottom, top = ranges[0]
    for low, high in ranges[1:]:
        bottom, top = bottom.min(low), top.max(high)
    return bottom, top


def _slope(piece: Piece, x: Fraction | None) -> Fraction:
    assert x is not None
    return piece.sum.lines[0].slope - 2 * piece.sum.c * x


def _is_continuous(left: Piece, right: Piece) -> bool:
    """Whether two neighbours of one line each are shown to have the same value where they meet, exactly."""
    x = left.stop
    assert x is not None
    if len(left.sum.lines[0].terms) != 1 or len(right.sum.lines[0].terms) != 1:
        return False
    (w1, a1), (w2, a2) = left.sum.lines[0].terms[0], right.sum.lines[0].terms[0]
    value1 = a1 + left.sum.lines[0].slope * x - left.sum.c * x * x
    value2 = a2 + right.sum.lines[0].slope * x - right.sum.c * x * x
    return w1 == w2 and value1 == value2


@dataclass(frozen=True)
class Roughness:
    """How far f is from e^(−c x²) times a log-convex function: c, and the points where that fails.

    Away from the rough points (log f)″ ≥ −2c, and at the other ends of pieces log f has a convex kink. So for φ
    between φ₁ and φ₂ = φ₁ + w, φ = (1−θ)φ₁ + θφ₂, wherever [x+φ₁, x+φ₂] meets no rough point,

        f(x+φ) ≤ e^(c θ(1−θ) w²) f(x+φ₁)^(1−θ) f(x+φ₂)^θ ≤ κ [ (1−θ) f(x+φ₁) + θ f(x+φ₂) ],   κ = e^(c w²/4);

    where it meets one, at b say, f(x+φ) exceeds that by at most the oscillation of f over [b−w, b+w]. Hence

        D_α(φ) ≤ κ max( D_{α/κ}(φ₁), D_{α/κ}(φ₂) ) + Σ_b w (sup f − inf f over [b−w, b+w]).
    """

    c: Fraction
    points: tuple[Fraction, ...]

    @classmethod
    def of(cls, form: Form) -> Roughness:
        """The roughness of a form on the whole line."""
        pieces = form.whole_line
        rough = [left.stop for left, right in pairwise(pieces) if left.stop is not None and not _kinks_up(left, right)]
        return cls(max(piece.sum.c for piece in pieces), tuple(rough))

    def lift(self, width: Fraction) -> Fraction:
        """log κ for a box of that width, exactly."""
        return self.c * width * width / 4

    def upper_charge(self, form: Form, width: Fraction) -> arb:
        """Upper bound of Σ_b w (sup f − inf f over [b−w, b+w]), f not normalised. Rounding: outward."""
        total = arb(0)
        for point in self.points:
            bottom, top = _range_of(form.whole_line, point - width, point + width)
            total += ball(width) * (top - bottom).max(arb(0))
        return total


def _kinks_up(left: Piece, right: Piece) -> bool:
    """Whether log f is shown to be continuous with a convex kink where two neighbours on the whole line meet."""
    if left.stop == 0 and left.sum.by_slope == right.sum.reflected().by_slope:
        return bool(right.sum.lines) and all(line.slope >= 0 for line in right.sum.lines)
    if len(left.sum.lines) != 1 or len(right.sum.lines) != 1:
        return False
    return _is_continuous(left, right) and _slope(left, left.stop) <= _slope(right, left.stop)


def range_on(sum_: LineSum, start: Fraction, stop: Fraction) -> tuple[arb, arb]:
    """(lower bound of the minimum, upper bound of the maximum) of a sum over [start, stop]. Rounding: outward."""
    if not sum_.lines:
        return arb(0), arb(0)
    curve = LogCurve(sum_)
    left, right = curve.at(rational(start)), curve.at(rational(stop))
    return curve.lower_log(left, right).exp(), curve.upper_log(left, right).exp()


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """x, U(x), U′(x) and log f(x) = U(x) − c x²."""

    x: fmpq
    u: arb
    du: arb
    log: arb


class LogCurve:
    """log of a sum, U(x) − c x² with U convex, and its bounds between two points."""

    def __init__(self, sum_: LineSum) -> None:
        self._convex = ConvexLog(sum_)
        self._c = ball(sum_.c)

    def at(self, x: fmpq) -> CurvePoint:
        """The curve at an exact point."""
        point = arb(x)
        u, du = self._convex.at(x)
        return CurvePoint(x, u, du, u - self._c * point * point)

    def upper_log(self, left: CurvePoint, right: CurvePoint) -> arb:
        """Upper bound of log f between two points: log f + c x² is convex, so at most c w²/4 above the larger end
        value."""
        width = arb(right.x - left.x)
        return left.log.max(right.log) + self._c * width * width / 4

    def lower_log(self, left: CurvePoint, right: CurvePoint) -> arb:
        """Lower bound of log f between two points: a tangent of U minus c x² is concave, so least at an end."""
        width = arb(right.x - left.x)
        x, y = arb(left.x), arb(right.x)
        by_left = left.log.min(left.u + left.du * width - self._c * y * y)
        by_right = right.log.min(right.u - right.du * width - self._c * x * x)
        return by_left.max(by_right)
