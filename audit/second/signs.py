"""The second opinion's isolation of signs: where f(x + φ) > e^ε f(x), by convexity.

g(x) = f(x + φ) − e^ε f(x) = gain − loss has the sign of R = log(gain) − log(loss). Up to a term q x² each of the two
logarithms is that of a sum of exponentials of lines, which is convex; so R = U − V with U and V convex. Over a cell, U
lies under its chord and over its tangents, and so does V: R is bounded by linear functions, so by values at the ends.
Its slope lies between U'(left) − V'(right) and U'(right) − V'(left). So a cell is positive, negative, monotone with a
zero that Newton's method closes in, or cut in two. What is left is a tiny cell of no known sign, with a bound on R.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from flint import arb, fmpq

from audit.second.density import ZERO, Stretch, Terms

Check = Callable[[], None]
"""Called now and then; it may raise to end the work."""

ROOT_SHARE, CELL_SHARE = Fraction(15, 32), Fraction(9, 32)
"""Shares of the bits to which simple zeros, and cells of no known sign elsewhere, are closed in: D feels the square of
the first width, and the cube of the second."""
MOST_DOUBLINGS = 60
MOST_EXPONENT = 1 << 17
"""Numbers beyond 2^±MOST_EXPONENT are not written out as fractions: e^(−10^15) would fill any memory."""


def rational(value: Fraction) -> fmpq:
    """Exact."""
    return fmpq(value.numerator, value.denominator)


def fraction(value: fmpq) -> Fraction:
    """Exact."""
    return Fraction(int(value.p), int(value.q))


def ball(value: Fraction | int) -> arb:
    """At the precision in force."""
    return arb(rational(Fraction(value)))


@dataclass(frozen=True)
class At:
    """A function and its slope at a point."""

    x: fmpq
    value: arb
    slope: arb


class Convex:
    """log Σ w e^(a + b x) + q x² for terms w e^(a + b x − c x²) and q ≥ 0: convex on the whole line."""

    def __init__(self, terms: Terms, q: Fraction) -> None:
        lines = [term.line for term in terms]
        self._a = [ball(a) + ball(term.weight).log() for term, (a, _) in zip(terms, lines, strict=True)]
        self._b = [ball(b) for _, b in lines]
        self._rough_a = np.array([float(a) for a in self._a])
        self._rough_b = np.array([float(b) for b in self._b])
        self._q = ball(q)
        self._slopes = [b for _, b in lines]

    def outermost(self, sign: int) -> tuple[Fraction, arb]:
        """The least (sign −1) or greatest slope b of a line, and Σ w e^a over the lines of that slope."""
        b = max(self._slopes) if sign > 0 else min(self._slopes)
        return b, sum((a.exp() for a, slope in zip(self._a, self._slopes, strict=True) if slope == b), arb(0))

    def at(self, x: fmpq) -> At:
        """Value and slope; lines far below the largest are replaced by a bound."""
        point, n = arb(x), len(self._a)
        kept: Sequence[int] = range(n)
        depth = 0.7 * flint.ctx.prec + 20
        with np.errstate(all="ignore"):
            steep = self._rough_b * float(point)
            rough = self._rough_a + steep
            error = 1e-13 * float(np.abs(self._rough_a).max() + np.abs(steep).max())
            top = float(rough.max())
        base = arb(top) if math.isfinite(top) else arb(0)
        if error < 1 and n > 4:  # False for a NaN
            kept = np.flatnonzero(rough >= top - depth).tolist()
        total, moment = arb(0), arb(0)
        for i in kept:
            value = (self._a[i] + self._b[i] * point - base).exp()
            total += value
            moment += value * self._b[i]
        if len(kept) < n:
            rest = (n - len(kept)) * arb(2 - depth).exp() * arb(0, 1)
            total += rest
            moment += rest * arb(float(np.abs(self._rough_b).max()) * (1 + 1e-9))
        return At(x, base + total.log() + self._q * point * point, moment / total + 2 * self._q * point)


@dataclass(frozen=True)
class Region:
    """A cell where g > 0 (``excess`` None), or one of no known sign, where R ≤ ``excess``. None is an infinite end."""

    start: Fraction | None
    stop: Fraction | None
    excess: arb | None = None


@dataclass(frozen=True)
class _Pair:
    """U and V at one point."""

    u: At
    v: At

    @property
    def x(self) -> fmpq:
        return self.u.x

    @property
    def ratio(self) -> arb:
        return self.u.value - self.v.value

    @property
    def is_certain(self) -> bool:
        """Whether the sign of R is known."""
        return bool(self.ratio > 0 or self.ratio < 0)


class Signs:
    """The signs of g on a stretch, at the precision in force. ``scale`` is the length on which the density varies."""

    def __init__(self, stretch: Stretch, scale: float, check: Check) -> None:
        self._stretch, self._check = stretch, check
        unit = Fraction(2) ** math.floor(math.log2(scale))
        self._root, self._cell = (
            rational(unit / 2 ** math.floor(share * flint.ctx.prec)) for share in (ROOT_SHARE, CELL_SHARE)
        )
        self._unit = unit

    def regions(self, reach: Callable[[int], Fraction]) -> list[Region]:
        """All regions but the negative ones, from left to right.

        ``reach`` gives, for the side −1 or 1 on which the stretch is infinite, a point beyond which nothing counts.
        """
        stretch = self._stretch
        if not stretch.gain:
            return []
        if not stretch.loss:
            return [Region(stretch.start, stretch.stop)]
        if (exact := _of_a_line(stretch)) is not None:
            return exact
        plus, minus = stretch.gain[0].c, stretch.loss[0].c
        self._u = Convex(stretch.gain, max(minus - plus, ZERO))
        self._v = Convex(stretch.loss, max(plus - minus, ZERO))
        left, beyond_left = self._end(stretch.start, -1, reach)
        right, beyond_right = self._end(stretch.stop, 1, reach)
        cells = [*beyond_left, *self._between(left, right), *beyond_right]
        return _joined(cells)

    def _pair(self, x: fmpq) -> _Pair:
        self._check()
        return _Pair(self._u.at(x), self._v.at(x))

    def _end(self, end: Fraction | None, side: int, reach: Callable[[int], Fraction]) -> tuple[_Pair, list[Region]]:
        """The last point that is looked at on one side, and the region beyond it, if g may be positive there."""
        if end is not None:
            return self._pair(rational(end)), []
        at, step = reach(side), self._unit
        for _ in range(MOST_DOUBLINGS):
            pair = self._pair(rational(at))
            sign = self._beyond(pair, side)
            if sign:
                break
            at, step = at + side * step, 2 * step
        else:
            sign = 0
        if sign < 0:
            return pair, []
        excess = None if sign else arb("inf")
        return pair, [Region(None, at, excess) if side < 0 else Region(at, None, excess)]

    def _beyond(self, pair: _Pair, side: int) -> int:
        """The sign of g on the whole of one side of a point, where it is known; else 0.

        To the left of a: U(x) ≤ U(a) − B (a − x), B the least slope of U, and V(x) ≥ V(a) − V'(a) (a − x); also, where
        U and V have the same B, U(x) − B x ≤ U(a) − B a and V(x) − B x ≥ its limit, the logarithm of V's coefficient.
        The other way round, and to the right, likewise.
        """
        above, below = side * pair.u.slope, side * pair.v.slope
        (most, head), (least, foot) = self._u.outermost(side), self._v.outermost(side)
        if self._stretch.gain[0].c != self._stretch.loss[0].c:
            return 0
        if pair.ratio < 0 and side * ball(most) <= below:
            return -1
        if pair.ratio > 0 and side * ball(least) <= above:
            return 1
        if most == least:
            slant = ball(most) * arb(pair.x)
            if pair.u.value - slant < foot.log():
                return -1
            if head.log() > pair.v.value - slant:
                return 1
        return 0

    def _between(self, left: _Pair, right: _Pair) -> list[Region]:
        found: list[Region] = []
        todo = [(left, right)]
        while todo:
            a, b = todo.pop()
            width = arb(b.x - a.x)
            rise = (a.u.slope - b.v.slope, b.u.slope - a.v.slope)
            high = _highest(a, b, width)
            monotone = bool(rise[0] > 0 or rise[1] < 0)
            if high <= 0 or (monotone and a.ratio < 0 and b.ratio < 0):
                continue
            if _lowest(a, b, width) >= 0 or (monotone and a.ratio > 0 and b.ratio > 0):
                found.append(Region(fraction(a.x), fraction(b.x)))
            elif monotone and ((a.ratio < 0 and b.ratio > 0) or (a.ratio > 0 and b.ratio < 0)):
                low, top = self._close_in(a, b)
                if a.ratio > 0:
                    found.append(Region(fraction(a.x), fraction(low.x)))
                found.append(Region(fraction(low.x), fraction(top.x), _highest(low, top, arb(top.x - low.x))))
                if b.ratio > 0:
                    found.append(Region(fraction(top.x), fraction(b.x)))
            elif monotone and a.is_certain != b.is_certain and b.x - a.x > self._root:
                end, far = (b, a) if a.is_certain else (a, b)
                near = self._beside(end, far)
                low, top = (end, near) if end is a else (near, end)
                found.append(Region(fraction(low.x), fraction(top.x), _highest(low, top, arb(top.x - low.x))))
                if near is not far:
                    todo.append((near, far) if end is a else (far, near))
            elif b.x - a.x <= self._cell:
                found.append(Region(fraction(a.x), fraction(b.x), high))
            else:
                middle = self._pair(_short(a.x, b.x))
                todo += [(middle, b), (a, middle)]
        return found

    def _close_in(self, a: _Pair, b: _Pair) -> tuple[_Pair, _Pair]:
        """Points at most ``root`` apart, where the precision allows it, on the two sides of the zero of a monotone R.

        Newton's steps, each a little longer than they say, so that the bracket closes from both sides.
        """
        last = a
        for turn in range(200):
            width = b.x - a.x
            if width <= self._root:
                break
            slope = float((last.u.slope - last.v.slope).mid())
            step = -float(last.ratio.mid()) / slope if slope and turn % 16 != 15 else math.inf
            goal = float(last.x) + step
            if not float(a.x) <= goal <= float(b.x):
                at = (a.x + b.x) / 2
            else:
                far = fmpq(*step.as_integer_ratio())
                spare = max(abs(far) / 2**20, self._root / 4)
                at = last.x + far + (spare if step >= 0 else -spare)
                at = min(max(at, a.x + width / 64), b.x - width / 64) if not a.x < at < b.x else at
            at = _near(at, min(width, b.x - at, at - a.x) / 8)
            last = self._pair(at)
            if last.ratio > 0:
                a, b = (a, last) if b.ratio > 0 else (last, b)
            elif last.ratio < 0:
                a, b = (a, last) if b.ratio < 0 else (last, b)
            else:
                return self._around(a, last, b)
        return a, b

    def _around(self, a: _Pair, zero: _Pair, b: _Pair) -> tuple[_Pair, _Pair]:
        """The same, where the precision does not tell the sign at a point: as near to it as it does."""
        return self._beside(zero, a), self._beside(zero, b)

    def _beside(self, zero: _Pair, end: _Pair) -> _Pair:
        """The nearest point to one of no known sign, on the way to ``end``, whose sign is known; else the end."""
        room, side = self._root / 2, 1 if end.x > zero.x else -1
        while room < abs(end.x - zero.x):
            near = self._pair(zero.x + side * room)
            if near.is_certain:
                return near
            room *= 4
        return end


def _of_a_line(stretch: Stretch) -> list[Region] | None:
    """The exact answer where R is a line with rational coefficients: one exponential against one alike."""
    (gain, loss), alone = (stretch.gain[0], stretch.loss[0]), len(stretch.gain) == len(stretch.loss) == 1
    if not alone or gain.c != loss.c or gain.weight != loss.weight:
        return None
    (a, b), (c, d) = gain.line, loss.line
    if b == d:
        return [Region(stretch.start, stretch.stop)] if a > c else []
    zero = (c - a) / (b - d)
    start, stop = (stretch.start, zero) if b < d else (zero, stretch.stop)
    if b < d and stretch.stop is not None:
        stop = min(zero, stretch.stop)
    if b > d and stretch.start is not None:
        start = max(zero, stretch.start)
    if start is not None and stop is not None and start >= stop:
        return []
    return [Region(start, stop)]


def _highest(a: _Pair, b: _Pair, width: arb) -> arb:
    """An upper bound of R: the chord of U less a tangent of V, the better of two."""
    left = a.ratio.max(b.u.value - a.v.value - a.v.slope * width)
    right = b.ratio.max(a.u.value - b.v.value + b.v.slope * width)
    return left.min(right)


def _lowest(a: _Pair, b: _Pair, width: arb) -> arb:
    """A lower bound of R: a tangent of U less the chord of V, the better of two."""
    left = a.ratio.min(a.u.value + a.u.slope * width - b.v.value)
    right = b.ratio.min(b.u.value - b.u.slope * width - a.v.value)
    return left.max(right)


def _short(a: fmpq, b: fmpq) -> fmpq:
    """A number of few digits near the middle."""
    return _near((a + b) / 2, (b - a) / 16)


def _near(x: fmpq, room: fmpq) -> fmpq:
    """A dyadic number within ``room`` of x."""
    bits = max(int(room.q.bit_length()) - int(room.p.bit_length()) + 2, 0) if room > 0 else 0
    if room <= 0:
        return x
    unit = fmpq(1, 2**bits) if bits else fmpq(2 ** max(int(room.p.bit_length()) - int(room.q.bit_length()) - 2, 0))
    return (x / unit).floor() * unit


def _joined(cells: list[Region]) -> list[Region]:
    """Positive neighbours made one."""
    found: list[Region] = []
    for cell in sorted(cells, key=lambda cell: (cell.start is not None, cell.start or ZERO)):
        last = found[-1] if found else None
        if last and last.excess is None and cell.excess is None and last.stop is not None and last.stop == cell.start:
            found[-1] = Region(last.start, cell.stop)
        else:
            found.append(cell)
    return found
