"""Masses of sums of exponentials over intervals, in balls, for the many intervals of one shift. (trusted)

The closed forms of LineSum.moments, which the tests hold them against; a Gaussian line whose share of an interval is
too small to matter is bounded instead of evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb, fmpq

from audit.exact import ball
from audit.points import peak_height
from mechanisms.arithmetic import BALL
from mechanisms.lines import Line, LineSum

Interval = tuple[fmpq | None, fmpq | None]
"""(a, b) on the line, None for an infinite end."""


LARGEST_LOG = 1e9
LARGEST_Z = 3e4
"""Beyond these, float estimates of magnitudes are not tried: their rounding would eat the margin."""


@dataclass(frozen=True, slots=True)
class _Bell:
    """C e^(b x − c x²), whose mass over [u, v] is amplitude · (erfc(z_u) − erfc(z_v)), z = √c (x − centre)."""

    centre: arb
    amplitude: arb
    float_centre: float
    log_amplitude: float


class Masses:
    """∫ of one LineSum over intervals, at the precision in force.

    Guarantee: the ball contains the integral. Rounding: outward. Of a line whose mass on the interval is below
    e^floor by a float estimate, 0 ≤ mass ≤ e^(floor + 1) is used instead, from erfc(z) ≤ e^(−z²) for z ≥ 0; the
    estimate adds a bound of its own rounding error, and the factor e covers what is left.
    """

    def __init__(self, sum_: LineSum) -> None:
        self._sum = sum_
        self.lines = len(sum_.lines)
        if sum_.c:
            root = ball(sum_.c).sqrt()
            self._root = root
            self._float_root = float(root)
            half = arb.pi().sqrt() / (2 * root)
            self._bells = [self._bell(line, half) for line in sum_.lines]
            self._centres = np.array([bell.float_centre for bell in self._bells])
            self._log_amplitudes = np.array([bell.log_amplitude for bell in self._bells])
            largest = max((abs(bell.log_amplitude) for bell in self._bells), default=0.0)
            self._may_estimate = largest < LARGEST_LOG and 0 < self._float_root < LARGEST_LOG

    def _bell(self, line: Line, half: arb) -> _Bell:
        c = self._sum.c
        amplitude, centre = peak_height(line, c) * half, ball(line.slope / (2 * c))
        return _Bell(centre, amplitude, float(centre), float(amplitude.log().upper()))

    def span(self, floor: float) -> tuple[float, float] | None:
        """The least and the largest centre of a Gaussian line whose mass is above e^floor, in floats; None where there
        is none, or c = 0. A proposal."""
        if not self._sum.c:
            return None
        centres = [bell.float_centre for bell in self._bells if bell.log_amplitude > floor]
        return (min(centres), max(centres)) if centres else None

    def over(self, interval: Interval, floor: float = -math.inf) -> arb:
        """The mass over one interval; ``floor`` only trades tightness for speed."""
        if not self._sum.lines:
            return arb(0)
        if not self._sum.c:
            return _exponential_mass(self._sum, interval)
        start, stop = interval
        u, v = None if start is None else arb(start), None if stop is None else arb(stop)
        left, right = -math.inf if u is None else float(u), math.inf if v is None else float(v)
        total = arb(0)
        wanted: Sequence[int] = range(len(self._bells))
        if self._may_estimate and floor > -LARGEST_LOG:
            # Distance of each centre from the interval, in units where the line falls like e^(−z²).
            # An infinite end times a distance of 0; or a distance beyond floats, which is not below LARGEST_Z.
            with np.errstate(invalid="ignore", over="ignore"):
                z = self._float_root * np.maximum(np.maximum(left - self._centres, self._centres - right), 0.0)
                nearest = min(abs(left), abs(right))
                error = 2.0**-48 * z * self._float_root * (nearest + np.abs(self._centres) + z)
                small = (z > 1) & (z < LARGEST_Z) & (self._log_amplitudes - z * z + error < floor)
            wanted = np.flatnonzero(~small).tolist()
        for number in wanted:
            bell = self._bells[number]
            z_u = None if u is None else self._root * (u - bell.centre)
            z_v = None if v is None else self._root * (v - bell.centre)
            total += bell.amplitude * _erfc_between(z_u, z_v)
        negligible = len(self._bells) - len(wanted)
        if negligible:
            total += (negligible * arb(floor + 1).exp()).union(arb(0))
        return total


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
        assert stop is not None  # on the whole line an exponential has no finite mass
        return _exponential_mass(sum_.reflected(), (-stop, None))
    u = BALL.array([arb(start)])
    v = None if stop is None else BALL.array([arb(stop)])
    total: arb = sum_.moments(u, v, 0, BALL)[0][0]
    return total


class MovedMasses:
    """factor · ∫ of a sum over intervals moved by a shift; each is kept."""

    def __init__(self, masses: Masses, shift: fmpq | None = None, factor: arb | None = None) -> None:
        self._masses, self._shift, self._factor = masses, shift, factor
        self._log_factor = 0.0 if factor is None else float(factor.log())
        self.lines = masses.lines
        """How many lines the sum has."""
        self._kept: dict[Interval, tuple[float, arb]] = {}

    @classmethod
    def of(cls, sum_: LineSum) -> MovedMasses:
        """The masses of a sum as it stands."""
        return cls(Masses(sum_))

    def span(self, floor: float) -> tuple[float, float] | None:
        """See Masses.span."""
        found = self._masses.span(floor - self._log_factor)
        move = 0.0 if self._shift is None else float(arb(self._shift))
        return None if found is None else (found[0] - move, found[1] - move)

    def over(self, interval: Interval, floor: float = -math.inf) -> arb:
        """The mass over one interval; see Masses.over."""
        known = self._kept.get(interval)
        if known is not None and known[0] <= floor:
            return known[1]
        start, stop = interval
        move = self._shift
        if move is not None:
            start, stop = None if start is None else start + move, None if stop is None else stop + move
        found = self._masses.over((start, stop), floor - self._log_factor)
        if self._factor is not None:
            found = self._factor * found
        self._kept[interval] = (floor, found)
        return found


def mass(sum_: LineSum, interval: Interval) -> arb:
    """∫ of the sum over one interval."""
    return Masses(sum_).over(interval)
