"""What ``calibrate`` shows of a family that audit.offers chooses the parameters of: no one scale, so no scale below."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from audit.offers import Offer, offer
from audit.scales import Loss
from audit.verdict import Limits
from certificates import present
from certificates.digits import certain
from certificates.present import enclosure_document
from mechanisms.claims import Claim, Direct
from mechanisms.numbers import InputError, exact_text


def choose(family: str, claim: Claim, sensitivity: Fraction, loss: Loss, decimals: int | None, limits: Limits) -> Offer:
    """The family's offer. Raises InputError for what such a family has not, and where it cannot serve the claim."""
    if not isinstance(claim, Direct):
        raise InputError("kind", claim.kind, f"{Direct.kind}, the one claim that {family} noise is calibrated for")
    if decimals is not None:
        raise InputError("decimals", str(decimals), f"none: {family} noise has no single scale")
    found = offer(family, claim.epsilon, claim.delta, sensitivity=sensitivity, loss=loss, limits=limits)
    if found is None:
        point = f"({exact_text(claim.epsilon)}, {exact_text(claim.delta)})"
        raise InputError("family", family, f"a family that can serve {point}")
    return found


def offer_document(found: Offer, certificate: str | None) -> dict[str, Any]:
    """What ``calibrate --json`` prints; there is no single sigma."""
    return {
        **present.decision_document(found.statement, found.decision, certificate),
        **dict.fromkeys(("sigma", "sigma_decimal", "refuted_below", "float_sigma", "K")),
        "scale": found.scale,
        "l1": enclosure_document(found.losses.l1),
        "l2": enclosure_document(found.losses.l2),
    }


def offer_block(found: Offer, certificate: str | None) -> str:
    """What ``calibrate`` prints."""
    lines = [
        present.decision_block(found.statement, found.decision, certificate),
        f"  parameters   {found.scale}",
        f"  E|X|         {certain(found.losses.l1)}",
        f"  E X²         {certain(found.losses.l2)}",
    ]
    return "\n".join(lines)
