"""What a second opinion says, what stands behind it, and how its numbers are written."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction


class Answer(enum.Enum):
    """What the second opinion says. There is no fourth value."""

    AGREES = "agrees"
    CONTRADICTED = "contradicted"
    OPEN = "open"

    def __bool__(self) -> bool:
        raise TypeError("an answer has three values; compare it with Answer.AGREES")


@dataclass(frozen=True)
class Visit:
    """lower ≤ D(shift) ≤ upper; the shift in the unit of the query, and why it was visited."""

    shift: Fraction
    why: str
    lower: Fraction
    upper: Fraction


@dataclass(frozen=True)
class Opinion:
    """The answer, in one line why, and what stands behind it."""

    answer: Answer
    reason: str
    proved: tuple[str, ...] = ()
    """What was proved, in sentences."""
    sampled: str = ""
    """What was only sampled; empty where nothing was."""
    visits: tuple[Visit, ...] = ()


@dataclass
class Notes:
    """What was found so far."""

    against: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    proved: list[str] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)
    sampled: str = ""

    def opinion(self) -> Opinion:
        if self.against:
            answer, reason = Answer.CONTRADICTED, self.against[0]
        elif self.undecided:
            answer, reason = Answer.OPEN, self.undecided[0]
        else:
            answer, reason = Answer.AGREES, "; ".join(self.proved)
        return Opinion(answer, reason, tuple(self.proved), self.sampled, tuple(self.visits))


def decimal(value: Fraction, up: bool, least: int = 6, above: Fraction | None = None) -> str:
    """A decimal rounded up or down, with more digits where it is to stay above a number that the value is above."""
    for digits in (least, 17, 40, 100, 400):
        context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR, Emin=-(10**6), Emax=10**6)
        found = context.divide(Decimal(value.numerator), Decimal(value.denominator))
        if above is None or Fraction(found) > above:
            break
    return str(found)


def short(value: Fraction) -> str:
    """For people: the decimal where it is short, else the nearest with 12 digits."""
    context = Context(prec=12, Emin=-(10**6), Emax=10**6)
    found = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return str(found.normalize(context)) if Fraction(found) == value else f"≈ {found}"
