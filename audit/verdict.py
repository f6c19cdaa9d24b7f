"""The three verdicts, and what stands behind one. (trusted)"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction


class Verdict(enum.Enum):
    """What the audit says of a statement. There is no fourth value, and only VERIFIED is a pass."""

    VERIFIED = "verified"
    """The statement is proved for the exact real numbers that it names."""
    REFUTED = "refuted"
    """Its negation is proved, with a witness."""
    INCONCLUSIVE = "inconclusive"
    """A limit on precision, boxes or time ended the search first."""

    def __bool__(self) -> bool:
        raise TypeError("a verdict has three values; compare it with Verdict.VERIFIED")


@dataclass(frozen=True)
class Enclosure:
    """lower ≤ (the true real number) ≤ upper, both exact."""

    lower: Fraction
    upper: Fraction


@dataclass(frozen=True)
class Witness:
    """An event A and a shift φ (in the unit of the query) with P(A − φ) > e^ε P(A) + t, t the claim's threshold.

    ``event`` is a union of disjoint intervals, None for an infinite end; P(A − φ) is the probability that X + φ... is
    in A, for the query value moved by −φ: ∫_A f(x + φ) dx. Anyone can check it with four cdf values an interval.
    """

    shift: Fraction
    event: tuple[tuple[Fraction | None, Fraction | None], ...]
    probability_shifted: Enclosure
    bound: Enclosure
    grid_index: int | None = None
    """Under theorem-3.2: the i of the grid point i Δ / grid_size."""
    grid_size: int | None = None


@dataclass(frozen=True)
class Condition:
    """One of a theorem's conditions: its name, what it demands, the quantity enclosed, and the verdict on it."""

    name: str
    demand: str
    value: Enclosure
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A verdict with its evidence."""

    verdict: Verdict
    reason: str
    """One sentence for people; for INCONCLUSIVE it says what to raise."""
    sup_delta: Enclosure | None = None
    """sup of D(φ) over the shifts that the claim speaks of; None where the claim does not bound it (theorem-4.2)."""
    worst_shift: Fraction | None = None
    """The shift where the lower end of sup_delta was found, in the unit of the query."""
    witness: Witness | None = None
    conditions: tuple[Condition, ...] = ()
    bits: int
    """The largest precision that was used."""
    boxes: int
    """How many boxes of shifts were decided."""


class Expired(Exception):
    """Raised inside a search when its caller's watch says that the time is over."""


@dataclass(frozen=True)
class Limits:
    """When a search gives up. The audit has no clock of its own: ``expired`` is the caller's."""

    bits: int = 4096
    """Largest working precision."""
    boxes: int = 20_000
    """Largest number of boxes of shifts for one decision."""
    cells: int = 200_000
    """Largest number of x-cells for one shift."""
    expired: Callable[[], bool] = field(default=lambda: False)
    """Asked now and then; True ends the search as INCONCLUSIVE."""

    def check(self) -> None:
        """Raise Expired when the time is over."""
        if self.expired():
            raise Expired
