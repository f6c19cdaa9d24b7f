"""Sums of exponentials at a point, in balls: log and slope in one polynomial for evenly spaced slopes. (trusted)

The same formula as LineSum.log_value and LineSum.score, which the tests hold it against.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce

import flint
import numpy as np
from flint import arb, arb_poly, fmpq, fmpz

from audit.exact import ball
from mechanisms.lines import ZERO, Line, LineSum, Terms

MOST_KEPT = 200_000
"""Values at so many points are kept at a time."""
MANY = 150
"""Degree from which a polynomial is taken in parts."""
BLOCK, SPARE_BITS = 16, 16
LARGEST_EXPONENT = 1e9
"""Below this, exponents in floats are right to far less than 1."""
TINY_RADIUS = 2.0**-20


def coefficient(terms: Terms) -> arb:
    """Σ w_i e^(a_i), with the largest exponential in front so that near-cancelling terms keep their digits."""
    top = terms[0][1]
    total = ball(sum((weight for weight, _ in terms), ZERO))
    for weight, exponent in terms[1:]:
        total += ball(weight) * ball(exponent - top).expm1()
    return total * ball(top).exp()


def peak_height(line: Line, c: Fraction) -> arb:
    """The largest value of C e^(b x − c x²), c > 0: the peak b²/(4c) goes into the exponents exactly, before any
    rounding."""
    rise = line.slope * line.slope / (4 * c)
    return coefficient(tuple((weight, exponent + rise) for weight, exponent in line.terms))


class ConvexLog:
    """log Σ C_j e^(b_j x): convex, as a log-sum-exp of lines. Values at exact points are kept."""

    def __init__(self, sum_: LineSum) -> None:
        # One line a slope, equal slopes added exactly: the polynomial below has one place for each.
        lines = [Line(terms, slope) for slope, terms in sorted(sum_.by_slope.items())]
        self.least_slope = ball(lines[0].slope)
        self.largest_slope = ball(lines[-1].slope)
        rows = [(coefficient(line.terms), line.slope - lines[0].slope) for line in lines]
        step = _common_step([offset for _, offset in rows])
        self._step: arb | None = None
        if step is not None:
            degree = int(rows[-1][1] / step)
            values, slopes = [arb(0)] * (degree + 1), [arb(0)] * (degree + 1)
            for weight, offset in rows:
                place = int(offset / step)
                values[place], slopes[place] = weight, weight * ball(offset)
            self._step = ball(step)
            self._window = _Window(values, slopes, step) if degree > MANY else None
            self._values, self._slopes = arb_poly(values), arb_poly(slopes)
        else:
            self._lines = [(weight, weight * ball(offset), ball(offset)) for weight, offset in rows]
        self._kept: dict[tuple[fmpz, fmpz], tuple[arb, arb]] = {}

    def at(self, x: fmpq) -> tuple[arb, arb]:
        """(value, slope) at x, enclosed.

        Guarantee: both contain the true value. Rounding: outward (arb). Coefficients are positive, so nothing cancels
        in the sums.
        """
        key = (x.p, x.q)  # hashing an fmpq itself costs more than the evaluation
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            found = self._kept[key] = self._evaluate(arb(x))
        return found

    def _evaluate(self, x: arb) -> tuple[arb, arb]:
        if self._step is not None:
            z = (self._step * x).exp()
            if self._window is not None and (found := self._window.at(x, z)) is not None:
                power, total, rise = found
                return (self.least_slope + power * self._step) * x + total.log(), self.least_slope + rise / total
            total, rise = self._values(z), self._slopes(z)
        else:
            total, rise = arb(0), arb(0)
            for weight, weighted_slope, offset in self._lines:
                e = (offset * x).exp()
                total += weight * e
                rise += weighted_slope * e
        return self.least_slope * x + total.log(), self.least_slope + rise / total


class _Window:
    """A polynomial with coefficients ≥ 0 of high degree, by the terms that matter near a point, the others bounded.

    Floats pick the terms. Of the others, each is below the largest by a factor e^−depth, less one e for the error of
    floats below LARGEST_EXPONENT; so 0 ≤ their sum ≤ count · e^(largest − depth + 1).
    """

    def __init__(self, values: list[arb], slopes: list[arb], step: Fraction) -> None:
        self._values, self._slopes, self._step = values, slopes, float(step)
        self._largest_slope = ball(step) * (len(values) - 1)
        logs = [None if value.is_zero() else value.log() for value in values]
        self._logs = np.array([-math.inf if log is None else float(log) for log in logs])
        self._serves = all(
            log is None or (bool(log.rad() < TINY_RADIUS) and abs(float(log)) < LARGEST_EXPONENT) for log in logs
        )
        self._places = np.arange(len(values))
        self._parts: dict[tuple[int, int], tuple[arb_poly, arb_poly]] = {}

    def at(self, x: arb, z: arb) -> tuple[int, arb, arb] | None:
        """(k, Σ a_j z^(j−k), Σ a′_j z^(j−k)) enclosed, z = e^(step x), a′_j = j · step · a_j; None where floats do not
        serve."""
        turn = self._step * float(x)
        if not self._serves or not abs(turn) * len(self._values) < LARGEST_EXPONENT:
            return None
        exponents = self._logs + self._places * turn
        top = float(exponents.max())
        depth = (flint.ctx.prec + SPARE_BITS) * math.log(2)
        kept = np.flatnonzero(exponents > top - depth)
        first, last = int(kept[0]) // BLOCK * BLOCK, min(-(-(int(kept[-1]) + 1) // BLOCK) * BLOCK, len(self._values))
        if (first, last) not in self._parts:
            part = slice(first, last)
            self._parts[first, last] = arb_poly(self._values[part]), arb_poly(self._slopes[part])
        values, slopes = self._parts[first, last]
        rest = (arb(top - depth + 1).exp() * len(self._values) / z**first).union(arb(0))
        return first, values(z) + rest, slopes(z) + rest * self._largest_slope


def _common_step(offsets: list[Fraction]) -> Fraction | None:
    """The largest rational of which all offsets are whole multiples, where a polynomial in it is not wasteful."""
    if len(offsets) < 3:
        return None
    denominator = reduce(math.lcm, (offset.denominator for offset in offsets))
    numerators = [int(offset * denominator) for offset in offsets]
    step = reduce(math.gcd, numerators)
    return Fraction(step, denominator) if step and numerators[-1] // step <= 3 * len(offsets) else None
