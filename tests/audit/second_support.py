"""What a certificate says, in as little as the second opinion needs."""

from __future__ import annotations

from typing import Any

from audit.decide import decide
from audit.second_opinion import Opinion, second_opinion
from mechanisms.claims import Direct, Statement
from mechanisms.families import Mechanism
from mechanisms.numbers import exact_text


def signed(mechanism: Mechanism | dict[str, Any], claim: Any, verdict: str = "verified", **evidence: Any) -> Any:
    """What a certificate says, with as little evidence as it may have."""
    bare = {"worst_shift": None, "sup_delta": None, "witness": None, "conditions": [], "refuted_below": None}
    return {
        "statement": {
            "mechanism": mechanism if isinstance(mechanism, dict) else mechanism.document(),
            "claim": claim if isinstance(claim, dict) else claim.document(),
        },
        "verdict": verdict,
        "evidence": {**bare, "refutation": None, **evidence},
    }


def direct(epsilon: Any, delta: Any) -> Direct:
    return Direct(epsilon=epsilon, delta=delta)


def opinion(mechanism: Any, claim: Any, verdict: str = "verified", **evidence: Any) -> Opinion:
    return second_opinion(signed(mechanism, claim, verdict, **evidence))


def certificate(statement: Statement) -> Any:
    """What the main audit would sign, as far as it is judged here."""
    found = decide(statement)
    sup = found.sup_delta
    witness = None if found.witness is None else {"shift": exact_text(found.witness.shift)}
    conditions = [
        {"name": item.name, "value": {"lower": str(item.value.lower), "upper": str(item.value.upper)}}
        for item in found.conditions
    ]
    return signed(
        statement.mechanism,
        statement.claim,
        found.verdict.value,
        worst_shift=None if found.worst_shift is None else exact_text(found.worst_shift),
        sup_delta=None if sup is None else {"lower": str(sup.lower), "upper": str(sup.upper)},
        witness=witness,
        conditions=conditions,
    )
