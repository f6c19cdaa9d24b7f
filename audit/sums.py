"""Exact sums of exponentials Σ w e^a, w and a rational: their signs, and quotients of two of them. (trusted)

Equal exponents are added exactly, so that a sum which is 0 has no terms left: by the theorem of Lindemann and
Weierstrass a sum of different exponents with weights other than 0 is never 0. So its sign is always found, by balls of
rising precision.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import flint
from flint import arb

from audit.exact import ball, enclosure
from audit.single import NeedBits
from audit.verdict import Enclosure, Limits
from mechanisms.lines import ZERO, Terms, merge_terms

START_BITS = 128
TIGHT_BITS = 64
"""Quotients are enclosed to a relative width of 2^−TIGHT_BITS or less."""


def times(terms: Terms, factor: Terms) -> Terms:
    """The product of two sums."""
    return merge_terms((v * w, a + b) for v, a in terms for w, b in factor)


def plus(*sums: Terms) -> Terms:
    """The sum of sums."""
    return merge_terms(term for terms in sums for term in terms)


def scaled(terms: Iterable[tuple[Fraction, Fraction]], weight: Fraction, exponent: Fraction = ZERO) -> Terms:
    """weight · e^exponent times the sum."""
    return tuple((w * weight, a + exponent) for w, a in terms) if weight else ()


def _value(terms: Terms) -> arb:
    """The sum divided by the exponential of its largest exponent, at the precision in force. Rounding: outward."""
    top = terms[0][1]
    return sum((ball(w) * ball(a - top).exp() for w, a in terms), arb(0))


def sign_of(terms: Iterable[tuple[Fraction, Fraction]], limits: Limits) -> int:
    """−1, 0 or 1: the sign of the sum, proved. Raises NeedBits where limits.bits do not tell it from 0."""
    merged = merge_terms(terms)
    signs = {weight > 0 for weight, _ in merged}
    if len(signs) < 2:
        return 0 if not merged else 1 if merged[0][0] > 0 else -1
    bits = START_BITS
    while True:
        with flint.ctx.workprec(bits):
            value = _value(merged)
            if value > 0:
                return 1
            if value < 0:
                return -1
        if 2 * bits > limits.bits:
            raise NeedBits
        bits *= 2


def quotient(terms: Terms, divisor: Terms, apart: Fraction, limits: Limits) -> Enclosure:
    """terms / divisor, enclosed so that ``apart`` is outside; exactly 0 where no terms are left. Rounding: outward.

    Precondition: both are merged, the divisor is positive, the quotient is not ``apart``. Raises NeedBits as sign_of.
    """
    if not terms:
        return Enclosure(ZERO, ZERO)
    bits = START_BITS
    while True:
        with flint.ctx.workprec(bits):
            value = _value(terms) / _value(divisor) * ball(terms[0][1] - divisor[0][1]).exp()
            if value.is_finite() and value.rel_accuracy_bits() >= TIGHT_BITS:
                found = enclosure(value)
                if found.upper < apart or found.lower > apart:
                    return found
        if 2 * bits > limits.bits:
            raise NeedBits
        bits *= 2
