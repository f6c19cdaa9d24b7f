"""Masses of sums of exponentials over intervals, in balls, for the many intervals of one shift. (trusted)

The closed forms of LineSum.moments, which the tests hold them against; a Gaussian line whose share of an interval is too
small to matter costs one exponential instead of two error functions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from flint import arb, ctx, fmpq

from audit.exact import ball
from audit.points import coefficient
from mechanisms.arithmetic import BALL
from mechanisms.lines import Line, LineSum

Interval = tuple[fmpq | None, fmpq | None]
"""(a, b) on the line, None for an infinite end."""


@dataclass(frozen=True, slots=True)
class _Bell:
    """C e^(b x − c x²), whose mass over [u, v] is amplitude · (erfc(z_u) − erfc(z_v)), z = √c (x − centre)."""

    centre: arb
    amplitude: arb
    log_amplitude: float


class Masses:
    """∫ of one LineSum over intervals, at the precision in force.

    Guarantee: the ball contains the integral. Rounding: outward. Lines below 2^−precision on an interval are enclosed between
    0 and an upper bound, by erfc(z) ≤ e^(−z²) for z ≥ 0.
    """

    def __init__(self, sum_: LineSum) -> None:
        self._sum = sum_
        self._floor = -ctx.prec * math.log(2.0)
        if sum_.c:
            root = ball(sum_.c).sqrt()
            self._root = root
            self._root_float = float(root)
            half = arb.pi().sqrt() / (2 * root)
            self._bells = [self._bell(line, half) for line in sum_.lines]

    def _bell(self, line: Line, half: arb) -> _Bell:
        c = self._sum.c
        # The peak b²/(4c) goes into the exponents exactly, before any rounding.
        terms = tuple((w, a + line.slope * line.slope / (4 * c)) for w, a in line.terms)
        amplitude = coefficient(terms) * half
        return _Bell(ball(line.slope / (2 * c)), amplitude, float(amplitude.log()))

    def over(self, interval: Interval) -> arb:
        """The mass over one interval."""
        if not self._sum.lines:
            return arb(0)
        if not self._sum.c:
            return _exponential_mass(self._sum, interval)
        start, stop = interval
        u, v = None if start is None else arb(start), None if stop is None else arb(stop)
        total = arb(0)
        negligible: list[arb] = []
        for bell in self._bells:
            z_u = None if u is None else self._root * (u - bell.centre)
            z_v = None if v is None else self._root * (v - bell.centre)
            if z_u is not None and (near := float(z_u)) > 1 and bell.log_amplitude - near * near < self._floor:
                negligible.append(bell.amplitude * _upper_erfc(z_u))
            elif z_v is not None and (near := float(z_v)) < -1 and bell.log_amplitude - near * near < self._floor:
                negligible.append(bell.amplitude * _upper_erfc(-z_v))
            else:
                total += bell.amplitude * _erfc_between(z_u, z_v)
        return total + sum(negligible, arb(0)).union(arb(0)) if negligible else total


def _upper_erfc(z: arb) -> arb:
    """Upper bound of erfc(z) where z ≥ 0 (2, the bound for every z, where that is not certain)."""
    return (-z * z).exp() if z >= 0 else arb(2)


def _erfc_between(z_u: arb | None, z_v: arb | None) -> arb:
    """erfc(z_u) − erfc(z_v), None for −∞ (left) and +∞ (right), taken on the side where nothing cancels."""
    if z_u is None:
        return arb(2) if z_v is None else (-z_v).erfc()
    if z_v is None:
        return z_u.erfc()
    if float(z_u) >= 0:
        return z_u.erfc() - z_v.erfc()
    if float(z_v) <= 0:
        return (-z_v).erfc() - (-z_u).erfc()
    return 2 - (-z_u).erfc() - z_v.erfc()


def _exponential_mass(sum_: LineSum, interval: Interval) -> arb:
    start, stop = interval
    if start is None:
        if stop is None:
            return _exponential_mass(sum_, (fmpq(0), None)) + _exponential_mass(sum_, (None, fmpq(0)))
        return _exponential_mass(sum_.reflected(), (-stop, None))
    u = BALL.array([arb(start)])
    v = None if stop is None else BALL.array([arb(stop)])
    return sum_.moments(u, v, 0, BALL)[0][0]


def mass(sum_: LineSum, interval: Interval) -> arb:
    """∫ of the sum over one interval."""
    return Masses(sum_).over(interval)
