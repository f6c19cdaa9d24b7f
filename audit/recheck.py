"""Evidence of another search, evaluated anew: its witness, and the shift where it found the supremum. (trusted)

Needed only where a certificate records other evidence than the re-proof found. Floats guide a search, so that another
machine can meet another of several good witnesses first.
"""

from __future__ import annotations

from fractions import Fraction

import flint

from audit.decide import event_probabilities
from audit.exact import ball, enclosure, lower, rational
from audit.shifts import START_BITS
from audit.single import NeedBits, NeedBoxes, Points
from audit.steps import exact_divergence
from audit.sums import plus, scaled, sign_of
from audit.theorems import grid_size
from audit.verdict import Enclosure, Expired, Limits, Witness
from mechanisms.claims import Claim, Statement, Theorem32
from mechanisms.families import ScaledFamily

Event = tuple[tuple[Fraction | None, Fraction | None], ...]

FINE = Fraction(1, 2**40)
"""Relative tightness of a divergence that is evaluated anew: finer than any that a decision records."""
EVENT_BITS = 64
"""Bits beyond START_BITS with which the first try of a witness begins: its two sides often differ late."""


def is_shift_of_claim(statement: Statement, shift: Fraction, limits: Limits) -> bool | None:
    """Whether the claim speaks of ``shift``: in [0, Δ], under theorem-3.2 on its grid. None where that is not known."""
    mechanism, claim = statement.mechanism, statement.claim
    if not 0 <= shift <= mechanism.sensitivity:
        return False
    if not isinstance(claim, Theorem32) or not isinstance(mechanism, ScaledFamily):
        return True
    size = grid_size(mechanism, claim, limits)
    return None if size is None else (shift / mechanism.sensitivity * size).denominator == 1


def reaches(statement: Statement, shift: Fraction, level: Fraction, limits: Limits) -> bool | None:
    """Whether D(shift) ≥ level is proved; None where the limits end the search first.

    Precondition: the claim is one at (ε, δ).
    """
    mechanism, claim = statement.mechanism, statement.claim
    assert isinstance(claim, Claim)
    bits = START_BITS
    if (exact := exact_divergence(mechanism, claim.epsilon)) is not None:
        try:
            excess = exact.at(shift / mechanism.sensitivity, limits)
            return sign_of(plus(excess.terms, scaled(exact.mass, -level)), limits) >= 0
        except NeedBits:
            return None
    while bits <= limits.bits:
        try:
            with flint.ctx.workprec(bits):
                points = Points(mechanism.unit_form, limits, level)
                floor = ball(level / 2)
                _, low, _ = points.measure(shift / mechanism.sensitivity, claim.epsilon, FINE, floor)
                return lower(low) >= level
        except NeedBits:
            bits *= 2
        except (NeedBoxes, Expired):
            return None
    return None


def witness_figures(statement: Statement, witness: Witness, limits: Limits) -> tuple[Enclosure, Enclosure] | None:
    """P(A − φ) and e^ε P(A) + threshold for a witness's shift and event, enclosed apart; None where the limits forbid.

    Preconditions: is_event(witness.event); the claim is one at (ε, δ).
    """
    claim = statement.claim
    assert isinstance(claim, Claim)
    unit = statement.mechanism.sensitivity
    event = [tuple(None if end is None else rational(end / unit) for end in interval) for interval in witness.event]
    bits = START_BITS + EVENT_BITS
    while bits <= limits.bits and not limits.expired():
        with flint.ctx.workprec(bits):
            shifted, bound = event_probabilities(
                statement.mechanism, [(a, b) for a, b in event], witness.shift / unit, claim
            )
            if shifted.is_finite() and bound.is_finite() and not shifted.overlaps(bound):
                return enclosure(shifted), enclosure(bound)
        bits *= 2
    return None


def is_event(event: Event) -> bool:
    """Whether the intervals are not empty, disjoint and in order: a part that counted twice would prove too much."""
    last: Fraction | None = None
    for number, (start, stop) in enumerate(event):
        if number and (start is None or last is None or start < last):
            return False
        if start is not None and stop is not None and start >= stop:
            return False
        last = stop
    return bool(event)
