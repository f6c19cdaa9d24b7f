"""Certified losses: E|X| and E X², enclosed."""

from __future__ import annotations

from dataclasses import dataclass

import flint

from audit.exact import enclosure
from audit.verdict import Enclosure
from mechanisms.arithmetic import BALL
from mechanisms.families import Mechanism


@dataclass(frozen=True)
class Losses:
    """ℓ₁ = E|X| in the unit of the query, ℓ₂ = E X² in its square."""

    l1: Enclosure
    l2: Enclosure


def enclose_losses(mechanism: Mechanism, bits: int = 192) -> Losses:
    """Enclosures of both losses from the closed forms of the declared form.

    Rounding: outward (arb). Raises ValueError where that precision gives no finite enclosure.
    """
    with flint.ctx.workprec(bits):
        form = mechanism.form
        return Losses(enclosure(form.mean_absolute(BALL)), enclosure(form.mean_square(BALL)))
