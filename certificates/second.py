"""``audit verify --second-opinion``: what a checker that shares no code with the search says of a certificate.

It can only take a pass away: a contradiction is exit code 1, an open question 3, and agreement leaves the exit code as
verification found it.
"""

from __future__ import annotations

import dataclasses
import random
from fractions import Fraction
from typing import Any, Final

from audit.second.answer import decimal
from audit.second_opinion import Answer, Opinion, second_opinion
from audit.verdict import Limits
from certificates.agreement import CONTRADICTED, UNCONFIRMED
from certificates.canonical import strict_json
from certificates.verify import MALFORMED, PRECEDENCE, Outcome
from mechanisms.numbers import exact_text

RANDOM_SHIFTS: Final = 8
DIGITS: Final = 17
_STEPS: Final = 1 << 48


def ask(data: bytes, outcome: Outcome, limits: Limits, shifts: int = RANDOM_SHIFTS) -> Opinion | None:
    """The second opinion on a certificate's bytes, of which ``outcome`` is what verification found.

    None where it could not be read. The random shifts are the operating system's, so that no one can foresee them.
    """
    if outcome.exit_code == MALFORMED or outcome.verdict is None:
        return None
    source = random.SystemRandom()
    drawn = [Fraction(source.randrange(1, _STEPS), _STEPS) for _ in range(shifts)]
    return second_opinion(strict_json(data)["signed"], drawn, limits.expired, limits.bits)


def combined(outcome: Outcome, opinion: Opinion | None) -> Outcome:
    """The outcome with the second opinion counted. Only a certificate on which both agree passes."""
    if opinion is None or opinion.answer is Answer.AGREES:
        return outcome
    contradicted = opinion.answer is Answer.CONTRADICTED
    word, code = ("contradicted by", CONTRADICTED) if contradicted else ("left open by", UNCONFIRMED)
    reason = f"{word} the second opinion: {opinion.reason}"
    first = min((outcome.exit_code, code), key=PRECEDENCE.index)
    if outcome.exit_code:
        reason = "; ".join((reason, outcome.reason) if first == code else (outcome.reason, reason))
    return dataclasses.replace(outcome, exit_code=first, reason=reason)


def opinion_line(opinion: Opinion | None) -> str:
    """For people, under the line of the certificate."""
    if opinion is None:
        return "  second opinion       not asked: there is nothing to read"
    text = "; ".join((*opinion.proved, opinion.sampled)) if opinion.answer is Answer.AGREES else opinion.reason
    return f"  second opinion       {opinion.answer.value}: {text.rstrip('; ')}"


def opinion_document(opinion: Opinion | None) -> dict[str, Any] | None:
    """For scripts; null where there was nothing to read."""
    if opinion is None:
        return None
    visits = [
        {
            "shift": exact_text(visit.shift),
            "why": visit.why,
            "divergence": {"lower": decimal(visit.lower, False, DIGITS), "upper": decimal(visit.upper, True, DIGITS)},
        }
        for visit in opinion.visits
    ]
    return {
        "answer": opinion.answer.value,
        "reason": opinion.reason,
        "proved": list(opinion.proved),
        "sampled": opinion.sampled,
        "shifts": visits,
    }
