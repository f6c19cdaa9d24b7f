"""Step 6 of verification: what a certificate records, against what the re-proof found. (trusted)

Two things can be wrong with a record: the re-proof contradicts it, or the re-proof ended before it could confirm it.
Each is a Finding, and no finding at all is the only agreement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from audit.losses import Losses
from audit.recheck import is_event, is_shift_of_claim, reaches, witness_figures
from audit.verdict import Decision, Enclosure, Limits, Verdict, Witness
from certificates.figures import as_double, float_losses, scale_of, slack
from certificates.schema import Recorded
from mechanisms.claims import Claim, Statement
from mechanisms.families import ScaledFamily
from mechanisms.numbers import exact_text, nearest_float

CONTRADICTED: Final = 1
UNCONFIRMED: Final = 3

ENDS: Final = Fraction(1, 10**6)
"""How far, relatively, an end of an enclosure of D may lie from the re-proof's: libraries differ in their last digits,
and so do the searches that these guide."""
NEGLIGIBLE: Final = 2**40
LOSS_ENDS: Final = Fraction(1, 10**12)
FLOATS: Final = Fraction(1, 10**9)
FLOAT_SCALE: Final = Fraction(1, 10**6)
SHORT_BITS: Final = 1100
SHORT_CHARACTERS: Final = 24
"""A number of more bits or characters is shown as the nearest float; every double is below both."""
SPARE_INTERVALS: Final = 8
"""A recorded event with many more intervals than the re-proof's is not evaluated: it could be made to take long."""


@dataclass(frozen=True)
class Finding:
    """Something recorded that the re-proof does not bear out."""

    exit_code: int
    text: str
    is_slip: bool = False
    """False, but by so little that a statement edited in its last digit explains it. Where the signature does not
    count, that is all there is to say; under one that counts, it is a contradiction like any other."""


@dataclass(frozen=True)
class Reproof:
    """What verification found itself, from the statement and, for ``below``, the smaller scale that is recorded."""

    statement: Statement
    decision: Decision
    below: Decision | None
    losses: Losses | None
    limits: Limits


def disagreements(recorded: Recorded, own: Reproof) -> Iterator[Finding]:
    """Every Finding; none means that all of ``recorded`` agrees with ``own``."""
    yield from _verdict(recorded, own)
    yield from _supremum(recorded, own)
    yield from _conditions(recorded, own)
    if not _is_open(recorded, own):
        yield from _witness("witness", own.statement, recorded.witness, own.decision.witness, own.limits)
    yield from _smaller_scale(recorded, own)
    yield from _losses(recorded, own)
    yield from _scales(recorded, own.statement)


def _contradicted(field: str, recorded: object, own: object, is_slip: bool = False) -> Finding:
    text = f"{field}: the certificate records {show(recorded)}, the re-proof says {show(own)}"
    return Finding(CONTRADICTED, text, is_slip)


def show(value: object) -> str:
    """A recorded or computed value as it stands in a reason: short, exact where that is short."""
    if isinstance(value, Enclosure):
        return f"[{show(value.lower)}, {show(value.upper)}]"
    if isinstance(value, Verdict):
        return value.value
    if isinstance(value, Fraction):
        small = max(value.numerator.bit_length(), value.denominator.bit_length()) <= SHORT_BITS
        text = exact_text(value) if small else ""
        return text if 0 < len(text) <= SHORT_CHARACTERS else f"{nearest_float(value):.17g}"
    return "nothing" if value is None else str(value)


def _near(recorded: Fraction, own: Fraction, relative: Fraction) -> bool:
    return abs(recorded - own) <= relative * abs(own)


def _compare(
    field: str,
    recorded: Enclosure,
    own: Enclosure,
    relative: Fraction,
    *,
    spare: Fraction = Fraction(0),
    slip_scale: Fraction = Fraction(0),
) -> Iterator[Finding]:
    """Ends far from the own ones contradict them, as do ends near them where the two cannot both enclose the truth.

    Far is more than ``relative`` of the own end and ``spare``; up to ``relative`` of ``slip_scale`` it is a slip.
    """
    ends = ((recorded.lower, own.lower), (recorded.upper, own.upper))
    distance = max(abs(theirs - ours) - relative * abs(ours) for theirs, ours in ends)
    if distance > spare:
        yield _contradicted(field, recorded, own, is_slip=distance <= relative * slip_scale)
    elif not _overlap(recorded, own):
        yield _contradicted(field, recorded, own, is_slip=True)


def _overlap(one: Enclosure, other: Enclosure) -> bool:
    return max(one.lower, other.lower) <= min(one.upper, other.upper)


def _is_open(recorded: Recorded, own: Reproof) -> bool:
    """Whether one of the two searches ended early. It contradicts nothing, but what it did enclose must be true."""
    return Verdict.INCONCLUSIVE in (recorded.verdict, own.decision.verdict)


def _verdict(recorded: Recorded, own: Reproof) -> Iterator[Finding]:
    verdict, sup = own.decision.verdict, recorded.sup_delta
    if verdict in (Verdict.INCONCLUSIVE, recorded.verdict):
        return
    claim = own.statement.claim
    proves = isinstance(claim, Claim) and sup is not None and sup.upper <= claim.threshold
    proves |= {condition.verdict for condition in recorded.conditions} == {Verdict.VERIFIED}
    if recorded.verdict is Verdict.INCONCLUSIVE and not proves:
        yield Finding(UNCONFIRMED, f"verdict: the certificate records no proof; the re-proof says {verdict.value}")
    else:
        yield _contradicted("verdict", recorded.verdict, verdict)


def _supremum(recorded: Recorded, own: Reproof) -> Iterator[Finding]:
    """sup D, where it is attained, and what is left of the promise."""
    sup, decision, claim = recorded.sup_delta, own.decision, own.statement.claim
    if not isinstance(claim, Claim):
        for name in ("sup_delta", "worst_shift", "slack"):
            if getattr(recorded, name) is not None:
                yield _contradicted(name, getattr(recorded, name), f"that {claim.kind} has none")
        return
    threshold = claim.threshold
    if _is_open(recorded, own):
        if sup is not None and decision.sup_delta is not None and not _overlap(sup, decision.sup_delta):
            yield _contradicted("sup_delta", sup, decision.sup_delta)
    elif sup is None or decision.sup_delta is None:
        if sup != decision.sup_delta:
            yield _contradicted("sup_delta", sup, decision.sup_delta)
    elif not _same_side(sup, decision.sup_delta, threshold):
        yield _contradicted("sup_delta", sup, decision.sup_delta)
    else:
        # Far below the threshold a search does not look closely: what little there is, it need not enclose tightly.
        yield from _compare("sup_delta", sup, decision.sup_delta, ENDS, spare=ENDS * threshold / NEGLIGIBLE)
    yield from _worst_shift(recorded, own)
    left = None if sup is None else slack(threshold, sup)
    if left is None or recorded.slack is None:
        if left != recorded.slack:
            yield _contradicted("slack", recorded.slack, left)
    elif not all(_near(getattr(recorded.slack, end), getattr(left, end), LOSS_ENDS) for end in ("lower", "upper")):
        yield _contradicted("slack", recorded.slack, left)


def _worst_shift(recorded: Recorded, own: Reproof) -> Iterator[Finding]:
    """The recorded shift must attain the recorded lower end; the re-proof may have found another that does."""
    shift, sup, found = recorded.worst_shift, recorded.sup_delta, own.decision.worst_shift
    if _is_open(recorded, own) or shift is None or sup is None:
        if shift is not None and not 0 <= shift <= own.statement.mechanism.sensitivity:
            yield _contradicted("worst_shift", shift, "that it is no shift of the claim")
        elif not _is_open(recorded, own) and shift != found:
            yield _contradicted("worst_shift", shift, found)
        return
    if shift == found:
        return
    placed = is_shift_of_claim(own.statement, shift, own.limits)
    attained = placed and reaches(own.statement, shift, sup.lower * (1 - ENDS), own.limits)
    if attained is None:
        yield Finding(UNCONFIRMED, f"worst_shift: the limits do not allow to evaluate D at {show(shift)}")
    elif not attained:
        yield _contradicted("worst_shift", shift, found)


def _same_side(recorded: Enclosure, own: Enclosure, mark: Fraction) -> bool:
    """Both ends are on the side of ``mark`` where the own ones are: what proved the verdict still proves it."""
    return (recorded.lower > mark) == (own.lower > mark) and (recorded.upper > mark) == (own.upper > mark)


def _conditions(recorded: Recorded, own: Reproof) -> Iterator[Finding]:
    if _is_open(recorded, own):
        return
    if len(recorded.conditions) != len(own.decision.conditions):
        yield _contradicted("conditions", len(recorded.conditions), len(own.decision.conditions))
        return
    for number, (theirs, ours) in enumerate(zip(recorded.conditions, own.decision.conditions, strict=True)):
        field = f"conditions[{number}]"
        for part in ("name", "demand", "verdict"):
            if getattr(theirs, part) != getattr(ours, part):
                yield _contradicted(f"{field}.{part}", getattr(theirs, part), getattr(ours, part))
        if not _same_side(theirs.value, ours.value, Fraction(0)):
            yield _contradicted(f"{field}.value", theirs.value, ours.value)
        else:
            # It can be a small difference of terms of the size of δ, or of ρ: its rounding is not small then, and the
            # last digit of σ changes it by much.
            width, claim = ours.value.upper - ours.value.lower, own.statement.claim
            scale = claim.delta if isinstance(claim, Claim) else claim.rho
            yield from _compare(f"{field}.value", theirs.value, ours.value, ENDS, spare=width, slip_scale=scale)


def _witness(
    field: str, statement: Statement, theirs: Witness | None, ours: Witness | None, limits: Limits
) -> Iterator[Finding]:
    """The recorded witness itself is evaluated: the re-proof's own need not be the same one."""
    if theirs is None or ours is None:
        if theirs != ours:
            yield _contradicted(field, "a witness" if theirs else None, "a witness" if ours else None)
        return
    if theirs.probability_shifted.lower <= theirs.bound.upper:
        yield Finding(CONTRADICTED, f"{field}: its own figures do not prove P(A − φ) > e^ε P(A) + threshold")
        return
    if not is_event(theirs.event):
        yield Finding(CONTRADICTED, f"{field}.event: not disjoint intervals in order")
        return
    if not _is_placed(statement, theirs, ours):
        yield Finding(CONTRADICTED, f"{field}.shift: {show(theirs.shift)} is no shift of the claim")
        return
    figures = None
    if len(theirs.event) <= 2 * len(ours.event) + SPARE_INTERVALS:
        figures = witness_figures(statement, theirs, limits)
    if figures is None:
        yield Finding(UNCONFIRMED, f"{field}: the limits do not allow to evaluate it")
        return
    for name, own in zip(("probability_shifted", "bound"), figures, strict=True):
        yield from _compare(f"{field}.{name}", getattr(theirs, name), own, ENDS)
    if figures[0].lower <= figures[1].upper:
        yield Finding(CONTRADICTED, f"{field}: it does not refute the claim")


def _is_placed(statement: Statement, theirs: Witness, ours: Witness) -> bool:
    """Whether the witness is at a shift that the claim speaks of; the size of a grid is the statement's own."""
    sensitivity = statement.mechanism.sensitivity
    if ours.grid_size is None or theirs.grid_index is None:
        return 0 <= theirs.shift <= sensitivity and theirs.grid_index == ours.grid_index and theirs.grid_size is None
    on_grid = theirs.grid_size == ours.grid_size and 0 <= theirs.grid_index <= ours.grid_size
    return on_grid and theirs.shift == sensitivity * theirs.grid_index / ours.grid_size


def _smaller_scale(recorded: Recorded, own: Reproof) -> Iterator[Finding]:
    """The scale below σ for which the claim is recorded to fail."""
    field, scale, smaller = "refuted_below", recorded.refuted_below, below(own.statement, recorded)
    if scale is None:
        if recorded.refutation is not None:
            yield Finding(CONTRADICTED, "refutation: a witness is recorded, but no scale that it refutes")
    elif smaller is None or own.below is None:
        sigma = show(scale_of(own.statement.mechanism))
        yield Finding(CONTRADICTED, f"{field}: {show(scale)} is no scale below the mechanism's own, {sigma}")
    elif own.below.verdict is Verdict.INCONCLUSIVE:
        yield Finding(UNCONFIRMED, f"{field}: at {show(scale)} the re-proof is inconclusive ({own.below.reason})")
    elif own.below.verdict is Verdict.VERIFIED:
        yield _contradicted(field, scale, "that the claim holds there")
    elif recorded.refutation is not None:
        yield from _witness("refutation", smaller, recorded.refutation, own.below.witness, own.limits)


def below(statement: Statement, recorded: Recorded) -> Statement | None:
    """The same statement at the smaller scale that is recorded; None where there is none, or it is none."""
    mechanism, scale = statement.mechanism, recorded.refuted_below
    if scale is None or not isinstance(mechanism, ScaledFamily) or not 0 < scale < mechanism.sigma:
        return None
    return Statement(mechanism.with_sigma(scale), statement.claim)


def _losses(recorded: Recorded, own: Reproof) -> Iterator[Finding]:
    if own.losses is None:
        yield Finding(UNCONFIRMED, "losses: the limits do not allow to enclose them")
        return
    floats = float_losses(own.statement.mechanism)
    for name, value in zip(("l1", "l2"), floats, strict=True):
        theirs, ours = getattr(recorded, name), getattr(own.losses, name)
        yield from _compare(f"losses.{name}", theirs, ours, LOSS_ENDS)
        yield from _float(f"float_figures.{name}", getattr(recorded, f"float_{name}"), value)


def _float(field: str, theirs: Fraction | None, ours: float | None) -> Iterator[Finding]:
    if theirs is None or ours is None:
        if theirs is not None or ours is not None:
            yield _contradicted(field, theirs, ours)
    elif not _near(theirs, Fraction(ours), FLOATS):
        yield _contradicted(field, theirs, ours)


def _scales(recorded: Recorded, statement: Statement) -> Iterator[Finding]:
    """The spellings of σ, and the float scale: the tight one lies between what is refuted and what is verified."""
    sigma = scale_of(statement.mechanism)
    double = as_double(sigma)
    for name, theirs, ours in (
        ("sigma", recorded.sigma, None if double is None else sigma),
        ("sigma_decimal", recorded.sigma_decimal, None if double is None else Fraction(repr(double))),
    ):
        if theirs == ours:
            continue
        slip = theirs is not None and ours is not None and _near(theirs, ours, FLOATS)
        text = f"scales.{name}: the certificate records {show(theirs)}, the statement names {show(sigma)}"
        yield Finding(CONTRADICTED, text, slip)
    tight = recorded.float_sigma
    if tight is None:
        return
    least = (recorded.refuted_below or Fraction(0)) * (1 - FLOAT_SCALE)
    if sigma is None or tight <= 0 or not least <= tight <= sigma * (1 + FLOAT_SCALE):
        yield _contradicted("scales.float_sigma", tight, "that it is not the tight scale")
