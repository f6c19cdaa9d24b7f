"""The second opinion's enclosure of D(φ) at one shift, by arb's rigorous quadrature.

D(φ) = ∫ max(f(x + φ) − e^ε f(x), 0) dx. audit.second.signs gives the cells A where the integrand is positive; ∫ over
them, and the mass of f, are enclosed by ``acb.integral``. No error function is used. Constants are integrated exactly,
as rational multiples of exponentials of rationals, so that ties are seen. A cell of no known sign, and a tail that is
cut off, add between 0 and a bound to the upper end; the lower end is P(A − φ) − e^ε P(A), and needs nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import flint
from flint import acb, arb, fmpq

from audit.second.density import ZERO, Density, Stretch, Term, Terms
from audit.second.quadrature import integral
from audit.second.signs import MOST_EXPONENT, Check, Region, Signs, ball, rational

SPARE_BITS = 38
"""How many of the bits the quadrature need not find of a mass, or of the mass asked for where that is larger."""
PIECE = 16
"""Longest interval of one call of the quadrature, in units of the density's scale."""


def lower(value: arb) -> Fraction:
    """An exact number at most the real number. Raises ArithmeticError where there is none to write out."""
    return _dyadic(value.lower(), -1)


def upper(value: arb) -> Fraction:
    """An exact number at least the real number. Raises ArithmeticError where there is none to write out."""
    return _dyadic(value.upper(), 1)


def _dyadic(value: arb, side: int) -> Fraction:
    """The number; for one too near 0, 0 or the nearest that is far enough, on that side of it."""
    if not value.is_finite():
        raise ArithmeticError("a ball without finite ends")
    mantissa, exponent = (int(part) for part in value.man_exp())
    size = exponent + mantissa.bit_length()
    if size > MOST_EXPONENT:
        raise ArithmeticError("a number too large to be written out")
    if mantissa and size < -MOST_EXPONENT:
        return Fraction(side, 1 << MOST_EXPONENT) if side * mantissa > 0 else ZERO
    return Fraction(mantissa) * Fraction(2) ** exponent


@dataclass
class Mass:
    """An integral: Σ exact[h] e^h + ``found``, and on top of it between 0 and ``charge``."""

    exact: dict[Fraction, Fraction]
    found: arb
    charge: arb

    @classmethod
    def nothing(cls) -> Mass:
        return cls({}, arb(0), arb(0))

    def add(self, other: Mass, times: arb | None = None) -> None:
        """Add another, so many times (None: once, exactly)."""
        if times is None:
            for height, share in other.exact.items():
                self.exact[height] = self.exact.get(height, ZERO) + share
            self.found += other.found
            self.charge += other.charge
        elif other.exact or other.found != 0 or other.charge != 0:
            self.found += times * other.least
            self.charge += times * other.charge

    @property
    def least(self) -> arb:
        """Without the charge."""
        return self.found + sum((ball(share) * ball(h).exp() for h, share in self.exact.items() if share), arb(0))

    @property
    def most(self) -> arb:
        """With all of it."""
        return self.least + self.charge


@dataclass(frozen=True)
class Divergence:
    """D(φ) = gained/mass, enclosed; ``bits`` is the precision of that, at which it is compared too."""

    gained: Mass
    mass: Mass
    bits: int

    @property
    def lower(self) -> Fraction:
        with flint.ctx.workprec(self.bits):
            return max(lower(self.gained.least / self.mass.most), ZERO)

    @property
    def upper(self) -> Fraction:
        with flint.ctx.workprec(self.bits):
            return min(upper(self.gained.most / self.mass.least), Fraction(1))

    def exceeds(self, threshold: Fraction) -> bool:
        """Whether D(φ) > threshold is proved."""
        with flint.ctx.workprec(self.bits):
            return bool(self._less(threshold) > 0)

    def is_at_most(self, threshold: Fraction) -> bool:
        """Whether D(φ) ≤ threshold is proved; equality of rational multiples of exponentials is seen."""
        with flint.ctx.workprec(self.bits):
            return bool(self._less(threshold) + self.gained.charge <= 0)

    def _less(self, threshold: Fraction) -> arb:
        """(D(φ) − threshold) · mass, without the charges of D; those of the mass are in the ball."""
        exact = dict(self.gained.exact)
        for height, share in self.mass.exact.items():
            exact[height] = exact.get(height, ZERO) - threshold * share
        mass = self.mass.found + (self.mass.charge * arb(0.5, 0.5) if self.mass.charge != 0 else arb(0))
        return Mass(exact, self.gained.found - ball(threshold) * mass, arb(0)).least


class Quadrature:
    """The integrals of one density at the precision in force when they are asked for."""

    def __init__(self, density: Density, check: Check) -> None:
        self._density, self._check = density, check
        self._unit = Fraction(2) ** math.floor(math.log2(density.scale))
        self.mass = self._mass()

    def divergence(self, shift: Fraction, epsilon: Fraction, threshold: Fraction) -> Divergence:
        """D at a shift, closely enough to hold it against the threshold."""
        goal = self.goal(threshold)
        gained = Mass.nothing()
        for stretch, regions in self.events(shift, epsilon, threshold):
            here = Mass.nothing()
            for region in regions:
                here.add(self._over(stretch.gain, stretch.loss, region, goal))
            gained.add(here, None if stretch.fall is None else _copies(stretch.fall))
        return Divergence(gained, self.mass, flint.ctx.prec)

    def events(self, shift: Fraction, epsilon: Fraction, threshold: Fraction) -> list[tuple[Stretch, list[Region]]]:
        """Where f(x + φ) > e^ε f(x), stretch by stretch."""
        goal, found = self.goal(threshold), []
        for stretch in self._density.stretches(shift, epsilon):
            self._check()
            signs = Signs(stretch, self._density.scale, self._check)

            def reach(side: int, stretch: Stretch = stretch) -> Fraction:
                return self._reach(stretch.gain, side, stretch.stop if side < 0 else stretch.start, goal)

            found.append((stretch, signs.regions(reach)))
        return found

    def goal(self, threshold: Fraction) -> arb:
        """A mass that is negligible beside threshold · ∫ f; beside nothing, where that is 0."""
        return (abs(self.mass.most) * ball(threshold) / arb(2) ** (flint.ctx.prec - SPARE_BITS)).mid()

    def slope(self, shift: Fraction, epsilon: Fraction, threshold: Fraction) -> float:
        """dD/dφ times a positive constant, roughly; 0 where no event is found. It proposes only."""
        total = arb(0)
        for stretch, regions in self.events(shift, epsilon, threshold):
            times = arb(1) if stretch.fall is None else _copies(stretch.fall)
            for region in regions:
                if region.excess is None:
                    for sign, end in ((1, region.stop), (-1, region.start)):
                        if end is not None:
                            moves = stretch.stop_moves if end == stretch.stop else (
                                end == stretch.start and stretch.start_moves)  # fmt: skip
                            total += sign * times * _value(stretch.here if moves else stretch.there, end)
        size = self.mass.most * ball(threshold) if threshold else arb(1)
        return float((total / size).mid())

    def _mass(self) -> Mass:
        found, goal = Mass.nothing(), arb(2) ** -(2 * flint.ctx.prec) * arb(self._density.scale)
        for number, part in enumerate(self._density.right):
            fall = self._density.fall
            if fall is not None and number > 1:
                break  # the second step stands for all further ones
            half = self._over(part.terms, (), Region(part.start, part.stop), goal)
            times = None if fall is None or number == 0 else _copies(fall)
            for _half in range(2):
                found.add(half, times)
        return found

    def _over(self, gain: Terms, loss: Terms, region: Region, goal: arb) -> Mass:
        """∫ of gain − loss over a region of positive sign; 0 and a charge where the sign is not known."""
        start, stop, charge = region.start, region.stop, arb(0)
        if region.excess is not None:
            return Mass({}, arb(0), _charge(gain, region))
        if stop is None:
            stop = self._reach(gain, 1, start, goal)
            charge += _tail(gain, stop, 1)
        if start is None:
            start = self._reach(gain, -1, stop, goal)
            charge += _tail(gain, start, -1)
        found = self._integral(gain, loss, start, stop, goal)
        found.charge += charge
        return found

    def _reach(self, terms: Terms, side: int, origin: Fraction | None, goal: arb) -> Fraction:
        """A point on that side of ``origin``, beyond which the terms have less mass than ``goal``, or than a fraction
        of what they have beyond the origin."""
        means = [term.m for term in terms if term.c]
        outer = max(means, key=lambda m: side * m) if means else ZERO
        at = outer if origin is None else max(origin, outer, key=lambda x: side * x)
        at += side * self._unit
        start = _tail(terms, at, side)
        step = self._unit
        while not (tail := _tail(terms, at, side)) <= goal and not tail <= start / arb(2) ** flint.ctx.prec:
            self._check()
            at, step = at + side * step, step * 5 / 4
        return at

    def _integral(self, gain: Terms, loss: Terms, start: Fraction, stop: Fraction, goal: arb) -> Mass:
        """∫ of gain − loss over [start, stop]."""
        found, terms = Mass.nothing(), [(1, term) for term in gain] + [(-1, term) for term in loss]
        if all(term.c == 0 == term.m for _, term in terms):
            for sign, term in terms:
                share = sign * term.weight * (stop - start)
                found.exact[term.height] = found.exact.get(term.height, ZERO) + share
            return found
        signed = [(sign, _Factor(term)) for sign, term in terms]
        count = max(1, min(math.ceil((stop - start) / (PIECE * self._unit)), 4 * len(signed) + 4))
        for number in range(count):
            a, b = (start + (stop - start) * Fraction(i, count) for i in (number, number + 1))
            found.found += self._piece(signed, a, b, goal)
        return found

    def _piece(self, signed: list[tuple[int, _Factor]], a: Fraction, b: Fraction, goal: arb) -> arb:
        """By quadrature; terms that are negligible on the whole of [a, b] are replaced by a bound."""
        self._check()
        start, stop = rational(a), rational(b)
        width = arb(stop - start)
        kept: list[tuple[arb, arb, arb]] = []
        rest, noise, small = arb(0), arb(0), goal / 2**20
        for sign, term in signed:
            size = term.largest(start, stop) * width
            if size <= small:
                rest += size * arb(0, 1)
            else:
                kept.append((sign * term.factor, term.c, arb(term.m)))
                noise += size
        if not kept:
            return rest

        def integrand(z: acb) -> acb:
            total = acb(0)
            for factor, c, m in kept:
                if c == 0:
                    total += factor * (m * z).exp()
                else:
                    distance = z - m
                    total += factor * (-c * (distance * distance)).exp()
            return total

        tolerance = goal.max(noise / arb(2) ** (flint.ctx.prec - 20)).mid()
        share = arb(2) ** (SPARE_BITS - flint.ctx.prec)
        return integral(integrand, start, stop, share, tolerance) + rest


class _Factor:
    """A term in balls: factor · e^(−c (x − m)²), or factor · e^(m x) where c = 0."""

    def __init__(self, term: Term) -> None:
        self.factor = ball(term.weight) * ball(term.height).exp()
        self.c, self.m = ball(term.c), rational(term.m)

    def largest(self, start: fmpq, stop: fmpq) -> arb:
        """Its largest value on [start, stop]."""
        if self.c == 0:
            return self.factor * arb(max(self.m * start, self.m * stop)).exp()
        distance = arb(min(max(self.m, start), stop) - self.m)
        return self.factor * (-self.c * distance * distance).exp()


def _copies(fall: Fraction) -> arb:
    """1 + r + r² + …, r = e^(−fall)."""
    return 1 / -(-ball(fall)).expm1()


def _value(terms: Terms, x: Fraction) -> arb:
    return sum((_size(term, x, x) for term in terms), arb(0))


def _size(term: Term, start: Fraction, stop: Fraction) -> arb:
    """The largest value of a term on [start, stop]."""
    return ball(term.weight) * ball(term.top(start, stop)).exp()


def _tail(terms: Terms, at: Fraction, side: int) -> arb:
    """A bound of the mass beyond ``at``, which lies beyond the means on that side.

    ∫_t^∞ e^(−c y²) dy ≤ e^(−c t²)/(2 c t), since y/t ≥ 1 there; an exponential of the rate r has 1/r times its value.
    """
    total = arb(0)
    for term in terms:
        rate = 2 * term.c * side * (at - term.m) if term.c else -side * term.m
        if rate <= 0:
            raise ArithmeticError("a tail that does not fall")
        total += _size(term, at, at) / ball(rate)
    return total


def _charge(gain: Terms, region: Region) -> arb:
    """A bound of ∫ max(gain − loss, 0) over a region of no known sign; gain (1 − e^(−R)) ≤ gain · min(R, 1), R > 0."""
    start, stop = region.start, region.stop
    if start is None or stop is None:
        end, side = (stop, -1) if start is None else (start, 1)
        assert end is not None
        return _tail(gain, end, side)
    assert region.excess is not None
    height = sum((_size(term, start, stop) for term in gain), arb(0))
    return ball(stop - start) * height * region.excess.max(arb(0)).min(arb(1))
