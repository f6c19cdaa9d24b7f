"""Certified losses: E|X| and E X², enclosed. (trusted)"""

from __future__ import annotations

from dataclasses import dataclass

import flint

from audit.exact import enclosure
from audit.verdict import Enclosure
from mechanisms.arithmetic import BALL
from mechanisms.families import Mechanism

MAX_BITS = 8192


@dataclass(frozen=True)
class Losses:
    """ℓ₁ = E|X| in the unit of the query, ℓ₂ = E X² in its square."""

    l1: Enclosure
    l2: Enclosure


def enclose_losses(mechanism: Mechanism, bits: int = 192) -> Losses:
    """Enclosures of both losses from the closed forms of the declared form, at that many bits or as many more as they
    need.

    Rounding: outward (arb). Raises ValueError where MAX_BITS give no finite enclosure.
    """
    while True:
        with flint.ctx.workprec(bits):
            l1, l2 = mechanism.form.mean_absolute(BALL), mechanism.form.mean_square(BALL)
            if (l1.is_finite() and l2.is_finite()) or 2 * bits > MAX_BITS:
                return Losses(enclosure(l1), enclosure(l2))
        bits *= 2
