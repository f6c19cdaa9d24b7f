"""One statement in, one decision out. (trusted)"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import flint
import numpy as np
from flint import arb, fmpq

from audit.density import Density
from audit.divergence import joined
from audit.exact import ball, enclosure, fraction, rational
from audit.masses import Interval
from audit.shifts import Peak, Search, Supremum
from audit.steps import StaircaseMasses, exact_divergence, supremum
from audit.theorems import decide_theorem_4_2, grid_size
from audit.verdict import Decision, Enclosure, Expired, Limits, Verdict, Witness
from audit.zcdp import decide_zcdp
from mechanisms.claims import Claim, Statement, Theorem32, Theorem42, ZeroConcentrated
from mechanisms.divergence import local_maxima
from mechanisms.families import Mechanism, QuasiGaussian, ScaledFamily, Staircase
from mechanisms.form import Form
from mechanisms.numbers import InputError, natural_log

TIGHTNESS = Fraction(1, 2**6)
"""Relative width of the enclosure of sup D that a decision carries, where nothing but the threshold stops it."""
LOOSE = Fraction(1, 2**10)
"""The same where the claim is refuted: the lower end proves that, the upper end informs."""


def decide(
    statement: Statement, limits: Limits | None = None, progress: Callable[[float], None] | None = None
) -> Decision:
    """Prove the statement, or its negation, or say which limit ended the search.

    Deterministic: the same statement and limits give the same decision, unless ``limits.expired`` intervenes.
    ``progress`` gets the share of the shifts that is done, in [0, 1]. Numbers beyond what the libraries hold leave the
    statement INCONCLUSIVE.
    """
    limits = limits or Limits()
    try:
        return decide_from(statement, limits, progress=progress)
    except InputError:
        raise
    except (ValueError, ArithmeticError, MemoryError) as error:
        reason = f"the proof met numbers beyond what the libraries hold ({type(error).__name__}: {error})"
        return Decision(verdict=Verdict.INCONCLUSIVE, reason=reason, bits=limits.bits, boxes=0)


@np.errstate(all="ignore")  # Where floats overflow, an infinity or a NaN proposes badly or proves nothing: no news.
def decide_from(
    statement: Statement,
    limits: Limits,
    *,
    seeds: Sequence[Fraction] = (),
    enclose_refuted: bool = True,
    progress: Callable[[float], None] | None = None,
) -> Decision:
    """As decide, looking at the shifts ``seeds`` (in units of Δ) too.

    Without ``enclose_refuted`` the upper end of sup D is left at 1 where the claim is refuted: a search over scales
    asks for many refutations and needs none of their upper ends.
    """
    mechanism, claim = statement.mechanism, statement.claim
    if isinstance(claim, ZeroConcentrated):
        return decide_zcdp(mechanism, claim)
    if isinstance(claim, Theorem42):
        assert isinstance(mechanism, QuasiGaussian)
        return decide_theorem_4_2(mechanism, claim, limits)
    grid = None
    if isinstance(claim, Theorem32):
        assert isinstance(mechanism, ScaledFamily)
        grid = grid_size(mechanism, claim, limits)
        if grid is None:
            reason = f"{limits.bits} bits do not tell the size of the grid; raise the limit on bits"
            return Decision(verdict=Verdict.INCONCLUSIVE, reason=reason, bits=limits.bits, boxes=0)
    if grid is None and (exact := exact_divergence(mechanism, claim.epsilon)) is not None:
        found = supremum(exact, claim.threshold, limits, progress)
        if found.exceeds:
            return _refuted(mechanism, claim, found, grid, limits, Fraction(1) if found.upper is None else found.upper)
        return _not_refuted(mechanism, claim, found)
    form = mechanism.unit_form
    search = Search(
        form,
        claim.epsilon,
        claim.threshold,
        grid=grid,
        tightness=TIGHTNESS,
        floor=claim.threshold / 2**4,
        limits=limits,
        progress=progress,
    )
    found = search.run(lambda: propose_shifts(form, claim.epsilon, limits.check), seeds)
    if found.exceeds:
        top = _enclose_fully(form, claim, grid, limits, found) if enclose_refuted else Fraction(1)
        return _refuted(mechanism, claim, found, grid, limits, top)
    return _not_refuted(mechanism, claim, found)


def propose_shifts(form: Form, epsilon: Fraction, check: Callable[[], None] = lambda: None) -> list[Fraction]:
    """Shifts in units of Δ to look at, the most promising last; floats propose, so these prove nothing.

    ``check`` is called now and then, and may raise to end it.
    """
    return [Fraction(1), *(Fraction(shift) for shift, _ in reversed(local_maxima(form, epsilon, check=check)[:4]))]


def _enclose_fully(form: Form, claim: Claim, grid: int | None, limits: Limits, found: Supremum) -> Fraction:
    """An upper bound of sup D for a claim that is refuted: tight where a search for it ends, else 1."""
    assert found.peak is not None
    few = dataclasses.replace(limits, boxes=min(limits.boxes, 64))
    floor = found.peak.lower * LOOSE
    search = Search(
        form, claim.epsilon, Fraction(1), grid=grid, tightness=LOOSE, floor=floor, limits=few, progress=None
    )
    everything = search.run(lambda: [], [found.peak.shift])
    return Fraction(1) if everything.upper is None else everything.upper


def _not_refuted(mechanism: Mechanism, claim: Claim, found: Supremum) -> Decision:
    sup = None
    if found.peak is not None:
        sup = Enclosure(found.peak.lower, Fraction(1) if found.upper is None else found.upper)
    proved = found.upper is not None and found.upper <= claim.threshold
    where = "points of the grid of Theorem 3.2" if isinstance(claim, Theorem32) else "shifts"
    return Decision(
        verdict=Verdict.VERIFIED if proved else Verdict.INCONCLUSIVE,
        reason=f"D is at most the threshold over all {where}" if proved else found.stopped,
        sup_delta=sup,
        worst_shift=None if found.peak is None else found.peak.shift * mechanism.sensitivity,
        bits=found.bits,
        boxes=found.boxes,
    )


def _refuted(
    mechanism: Mechanism, claim: Claim, found: Supremum, grid: int | None, limits: Limits, sup_upper: Fraction
) -> Decision:
    assert found.peak is not None
    try:
        witness = make_witness(mechanism, claim, found.peak, grid, limits)
    except Expired:
        witness = None
    if witness is None:
        reason = "a shift exceeds the threshold, but the limits ended the search for a witness; raise bits or time"
        return Decision(verdict=Verdict.INCONCLUSIVE, reason=reason, bits=limits.bits, boxes=found.boxes)
    return Decision(
        verdict=Verdict.REFUTED,
        reason="an event at the worst shift found breaks the inequality",
        sup_delta=Enclosure(found.peak.lower, sup_upper),
        worst_shift=witness.shift,
        witness=witness,
        bits=found.bits,
        boxes=found.boxes,
    )


def make_witness(mechanism: Mechanism, claim: Claim, peak: Peak, grid: int | None, limits: Limits) -> Witness | None:
    """The event of the peak with P(A − φ) and e^ε P(A) + threshold, enclosed apart; None where limits.bits do not
    part them."""
    event = joined(peak.event)
    bits = 128
    while bits <= limits.bits:
        limits.check()
        with flint.ctx.workprec(bits):
            shifted, bound = event_probabilities(mechanism, event, peak.shift, claim, limits.check)
            if shifted > bound:
                unit = mechanism.sensitivity
                return Witness(
                    shift=peak.shift * unit,
                    event=tuple((_in_unit(start, unit), _in_unit(stop, unit)) for start, stop in event),
                    probability_shifted=enclosure(shifted),
                    bound=enclosure(bound),
                    grid_index=peak.index,
                    grid_size=grid,
                )
        bits *= 2
    return None


def event_probabilities(
    mechanism: Mechanism,
    event: Sequence[Interval],
    shift: Fraction,
    claim: Claim,
    check: Callable[[], None] = lambda: None,
) -> tuple[arb, arb]:
    """(P(A − φ), e^ε P(A) + threshold) for a union A of intervals in units of Δ, at the precision in force.

    ``check`` is called for each interval, and may raise to end it.
    """
    move = rational(shift)
    moved = [(None if a is None else a + move, None if b is None else b + move) for a, b in event]
    density = StaircaseMasses(mechanism) if isinstance(mechanism, Staircase) else Density(mechanism.unit_form)
    # What lines add far below the threshold is not worth an error function each.
    floor = natural_log(claim.threshold) - flint.ctx.prec * math.log(2) if claim.threshold else -math.inf
    here, there = arb(0), arb(0)
    for interval, shifted in zip(event, moved, strict=True):
        check()
        here += density.probability(interval, floor - float(claim.epsilon))
        there += density.probability(shifted, floor)
    return there, ball(claim.epsilon).exp() * here + ball(claim.threshold)


def _in_unit(end: fmpq | None, unit: Fraction) -> Fraction | None:
    return None if end is None else fraction(end) * unit
