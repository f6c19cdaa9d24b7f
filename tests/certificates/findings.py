"""Records and re-proofs made by hand: equal, but for what a test changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from audit.losses import Losses
from audit.verdict import Condition, Decision, Enclosure, Limits, Verdict, Witness
from certificates.agreement import CONTRADICTED, Finding, Reproof, disagreements
from certificates.figures import float_losses
from certificates.schema import Recorded
from mechanisms.claims import Statement, read_statement

LIMITS = Limits()
DELTA = Fraction(1, 10**6)
TINY = Fraction(1, 10**60)
NOISE = {"family": "gaussian", "sensitivity": "2", "sigma": "4.5"}
LAPLACE = {
    "family": "declared",
    "sensitivity": "1",
    "pieces": [{"from": "0", "to": "inf", "c": "0", "lines": [["0", "-1"]]}],
}
DIRECT = read_statement({"mechanism": NOISE, "claim": {"kind": "direct", "epsilon": "1", "delta": "1e-6"}})
ZCDP = read_statement({"mechanism": NOISE, "claim": {"kind": "zcdp", "rho": "1/8"}})
NO_SCALE = read_statement({"mechanism": LAPLACE, "claim": {"kind": "direct", "epsilon": "1", "delta": "1e-6"}})
HELD, REFUTED, OPEN = Verdict.VERIFIED, Verdict.REFUTED, Verdict.INCONCLUSIVE


def between(lower: Any, upper: Any) -> Enclosure:
    return Enclosure(Fraction(lower), Fraction(upper))


def shares(lower: Any, upper: Any) -> Enclosure:
    """In units of δ."""
    return between(Fraction(lower) * DELTA, Fraction(upper) * DELTA)


SUP = shares("1/2", "4/5")
WITNESS = Witness(Fraction(1), ((None, Fraction(-9)),), between("0.3", "0.31"), between("0.1", "0.11"))
GRID_WITNESS = replace(WITNESS, grid_index=3, grid_size=6)
CONDITIONS = (
    Condition("(4a)", "at least 0", between(3, "3.5"), HELD),
    Condition("(5a)", "below 0", between(-7, -7), HELD),
)
SLACK = object()
"""Stands for the slack that belongs to the recorded sup_delta."""


def reproof(statement: Statement = DIRECT, **changes: Any) -> Reproof:
    """One of a claim that is VERIFIED."""
    at = statement.mechanism.sensitivity
    claimed = {"sup_delta": SUP, "worst_shift": at} if statement is not ZCDP else {}
    decision = {"verdict": HELD, "reason": "", "bits": 1, "boxes": 1, "conditions": CONDITIONS, **claimed}
    own = {"losses": Losses(between(1000, 1001), between(5, 5)), "below": None}
    own |= {name: changes.pop(name) for name in ("losses", "below") if name in changes}
    return Reproof(statement, Decision(**{**decision, **changes}), limits=LIMITS, **own)  # type: ignore[arg-type]


def recorded(own: Reproof, **changes: Any) -> Recorded:
    """What agrees with ``own``, but for the changes."""
    decision, statement = own.decision, own.statement
    losses = own.losses or Losses(between(1, 1), between(1, 1))
    float_l1, float_l2 = (Fraction(value) for value in float_losses(statement.mechanism) if value is not None)
    sigma = None if statement is NO_SCALE else Fraction("4.5")
    values: dict[str, Any] = {
        "issued": datetime(2026, 1, 31, tzinfo=UTC),
        "verdict": decision.verdict,
        "sup_delta": decision.sup_delta,
        "worst_shift": decision.worst_shift,
        "slack": SLACK,
        "witness": decision.witness,
        "conditions": decision.conditions,
        "refuted_below": None,
        "refutation": None,
        "l1": losses.l1,
        "l2": losses.l2,
        "float_l1": float_l1,
        "float_l2": float_l2,
        "sigma": sigma,
        "sigma_decimal": sigma,
        "float_sigma": sigma,
    }
    values |= changes
    if values["slack"] is SLACK:
        sup = values["sup_delta"]
        values["slack"] = None if sup is None else between(DELTA - sup.upper, DELTA - sup.lower)
    return Recorded(**values)


def findings(own: Reproof, **changes: Any) -> list[Finding]:
    return list(disagreements(recorded(own, **changes), own))


def against(field: str, recorded: str, own: str, is_slip: bool = False) -> list[Finding]:
    text = f"{field}: the certificate records {recorded}, the re-proof says {own}"
    return [Finding(CONTRADICTED, text, is_slip)]


def slip(field: str, recorded: str, own: str) -> list[Finding]:
    return against(field, recorded, own, is_slip=True)
