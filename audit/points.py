"""Sums of exponentials at a point, in balls: log and slope by one polynomial evaluation where slopes are evenly spaced.

The same formula as LineSum.log_value and LineSum.score, which the tests hold it against. (trusted)
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce

from flint import arb, arb_poly, fmpq, fmpz

from audit.exact import ball
from mechanisms.lines import ZERO, Line, LineSum, Terms


def coefficient(terms: Terms) -> arb:
    """Σ w_i e^(a_i), with the largest exponential in front so that near-cancelling terms keep their digits."""
    top = terms[0][1]
    total = ball(sum((weight for weight, _ in terms), ZERO))
    for weight, exponent in terms[1:]:
        total += ball(weight) * ball(exponent - top).expm1()
    return total * ball(top).exp()


class ConvexLog:
    """log Σ C_j e^(b_j x): convex, as a log-sum-exp of lines. Values at exact points are kept."""

    def __init__(self, sum_: LineSum) -> None:
        # One line a slope, equal slopes added exactly: the polynomial below has one place for each.
        lines = [Line(terms, slope) for slope, terms in sorted(sum_.by_slope.items())]
        self.least_slope = ball(lines[0].slope)
        self.largest_slope = ball(lines[-1].slope)
        steps = [line.slope - lines[0].slope for line in lines]
        step = _common_step(steps)
        weights = [coefficient(line.terms) for line in lines]
        rises = [weight * ball(rise) for weight, rise in zip(weights, steps, strict=True)]
        self._step: arb | None = None
        if step is not None:
            degree = int(steps[-1] / step)
            values, slopes = [arb(0)] * (degree + 1), [arb(0)] * (degree + 1)
            for weight, rise, offset in zip(weights, rises, steps, strict=True):
                values[int(offset / step)], slopes[int(offset / step)] = weight, rise
            self._values, self._slopes = arb_poly(values), arb_poly(slopes)
            self._step = ball(step)
        else:
            self._lines = list(zip(weights, rises, [ball(offset) for offset in steps], strict=True))
        self._kept: dict[tuple[fmpz, fmpz], tuple[arb, arb]] = {}

    def at(self, x: fmpq) -> tuple[arb, arb]:
        """(value, slope) at x, enclosed.

        Guarantee: both contain the true value. Rounding: outward (arb). Coefficients are positive, so nothing cancels
        in the sums.
        """
        key = (x.p, x.q)  # hashing an fmpq itself costs more than the evaluation
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._evaluate(arb(x))
        return found

    def _evaluate(self, x: arb) -> tuple[arb, arb]:
        if self._step is not None:
            z = (self._step * x).exp()
            total, rise = self._values(z), self._slopes(z)
        else:
            total, rise = arb(0), arb(0)
            for weight, weighted_slope, offset in self._lines:
                e = (offset * x).exp()
                total += weight * e
                rise += weighted_slope * e
        return self.least_slope * x + total.log(), self.least_slope + rise / total


def _common_step(offsets: list[Fraction]) -> Fraction | None:
    """The largest rational of which all offsets are whole multiples, where a polynomial in it is not wasteful."""
    if len(offsets) < 3:
        return None
    denominator = reduce(math.lcm, (offset.denominator for offset in offsets))
    numerators = [int(offset * denominator) for offset in offsets]
    step = reduce(math.gcd, numerators)
    return Fraction(step, denominator) if step and numerators[-1] // step <= 3 * len(offsets) else None
