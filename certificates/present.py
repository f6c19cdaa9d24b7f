"""How a result is shown: as a JSON object for scripts and as a short block of text for people. Decides nothing.

In JSON every real is text: exact where it is exact, decimals rounded outward in an enclosure. ``sigma``,
``refuted_below`` and ``float_sigma`` are C99 hex floats, for ``float.fromhex`` and its likes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec

from audit.exact import decimal_lower, decimal_upper
from audit.verdict import Condition, Decision, Enclosure, Verdict, Witness
from certificates.composition_view import composition_certificate_block
from certificates.compositions import is_composition
from certificates.issue import rounded
from certificates.layout import Rows, between, block, noise_in_words, signature_rows
from certificates.schema import CertificateRecord, Recorded, convert, read_recorded
from certificates.verify import Outcome
from mechanisms.claims import AnyClaim, Claim, Statement, read_statement
from mechanisms.families import ScaledFamily
from mechanisms.numbers import exact_text, nearest_float, one_line

if TYPE_CHECKING:
    from audit.scales import Calibration

SHOWN_INTERVALS = 4
"""Intervals of an event that people are shown; JSON has them all."""

_CLAIM_WORDS = {
    "direct": "({epsilon}, {delta})-differential privacy",
    "theorem-3.2": "condition (2) of Theorem 3.2 for ({epsilon}, {delta}) and eta {eta}",
    "theorem-4.2": "the conditions of Theorem 4.2 for ({epsilon}, {delta})",
    "zcdp": "{rho}-zero-concentrated differential privacy",
}


def decision_document(statement: Statement, decision: Decision, certificate: str | None) -> dict[str, Any]:
    """What ``certify --json`` prints; ``certificate`` is the path it was written to."""
    conditions = [
        {
            "name": condition.name,
            "demand": condition.demand,
            "value": enclosure_document(condition.value, Fraction(0)),
            "verdict": condition.verdict.value,
        }
        for condition in decision.conditions
    ]
    sup = decision.sup_delta
    return {
        "verdict": decision.verdict.value,
        **statement.document(),
        "sup_delta": None if sup is None else enclosure_document(sup, *_thresholds(statement.claim)),
        "worst_shift": None if decision.worst_shift is None else exact_text(decision.worst_shift),
        "conditions": conditions,
        "witness": None if decision.witness is None else _witness(decision.witness),
        "reason": decision.reason,
        "bits": decision.bits,
        "boxes": decision.boxes,
        "certificate": certificate,
    }


def calibration_document(calibration: Calibration, certificate: str | None) -> dict[str, Any]:
    """What ``calibrate --json`` prints; a scale that was calibrated is a double."""
    sigma, below = nearest_float(_sigma(calibration)), calibration.refuted_below
    return {
        **decision_document(calibration.statement, calibration.decision, certificate),
        "sigma": sigma.hex(),
        "sigma_decimal": repr(sigma),
        "refuted_below": None if below is None else nearest_float(below).hex(),
        "refuted_below_is_next": calibration.adjacent,
        "float_sigma": calibration.float_sigma.hex(),
        "l1": enclosure_document(calibration.losses.l1),
        "l2": enclosure_document(calibration.losses.l2),
        "K": getattr(calibration.statement.mechanism, "K", None),
        "note": calibration.note,
        "tried": [
            {
                "K": trial.K,
                "float_sigma": trial.float_sigma.hex(),
                "float_loss": trial.float_loss.hex(),
                "excluded": trial.excluded,
            }
            for trial in calibration.tried
        ],
    }


def expired(claim: Claim) -> tuple[dict[str, Any], str]:
    """What calibration says, as JSON and for people, where the time was over before a scale was proposed."""
    reason = "the time limit ended the float calibration, before any proof; raise it"
    missing = ("sigma", "sigma_decimal", "refuted_below", "float_sigma", "sup_delta", "worst_shift", "l1", "l2", "K")
    document = {"verdict": Verdict.INCONCLUSIVE.value, "claim": claim.document(), "reason": reason}
    return {**document, **dict.fromkeys(missing), "certificate": None}, f"inconclusive: {reason}"


def outcome_document(path: str, outcome: Outcome) -> dict[str, Any]:
    """One certificate in what ``verify --json`` prints."""
    return {
        "path": path,
        "verdict": outcome.verdict,
        "signature": outcome.signature,
        "exit_code": outcome.exit_code,
        "reason": outcome.reason,
        "warning": outcome.warning or None,
        "statement": None if outcome.statement is None else outcome.statement.document(),
    }


def enclosure_document(value: Enclosure, *marks: Fraction) -> Any:
    """{"lower", "upper"}, rounded outward and not across a mark, as in a certificate."""
    return msgspec.to_builtins(rounded(value, marks))


def _witness(witness: Witness) -> dict[str, Any]:
    """An end of the event that is infinite is null, as in a certificate."""
    middle = (witness.probability_shifted.lower + witness.bound.upper) / 2
    document: dict[str, Any] = {
        "shift": exact_text(witness.shift),
        "event": [[None if end is None else exact_text(end) for end in ends] for ends in witness.event],
        "probability_shifted": enclosure_document(witness.probability_shifted, middle),
        "bound": enclosure_document(witness.bound, middle),
    }
    if witness.grid_size is not None:
        document |= {"grid_index": str(witness.grid_index), "grid_size": str(witness.grid_size)}
    return document


def _sigma(calibration: Calibration) -> Fraction:
    mechanism = calibration.statement.mechanism
    if not isinstance(mechanism, ScaledFamily):
        raise TypeError(f"a calibration of {mechanism.family}, which has no scale")
    return mechanism.sigma


def calibration_block(calibration: Calibration, certificate: str | None) -> str:
    """What ``calibrate`` prints; ``certificate`` is the path it was written to."""
    statement, decision, below = calibration.statement, calibration.decision, calibration.refuted_below
    rows = [("sigma", _scale(_sigma(calibration))), *_evidence_rows(statement, decision)]
    if below is not None:
        rows.append(("refuted", f"{_scale(below)}   {'the next' if calibration.adjacent else 'not the next'} below"))
    if tried := [trial.K for trial in calibration.tried]:
        rows.append(("K", f"{getattr(statement.mechanism, 'K', None)}   chosen among {min(tried)} … {max(tried)}"))
    if decision.verdict is Verdict.INCONCLUSIVE:
        rows.append(("reason", decision.reason))
    rows += [
        ("optimal", calibration.note),
        ("E|X|", between(calibration.losses.l1)),
        ("E X²", between(calibration.losses.l2)),
        ("float sigma", f"{calibration.float_sigma!r}   tight, proves nothing"),
        ("certificate", certificate or ""),
    ]
    return block(_title(decision.verdict, statement), rows)


def decision_block(statement: Statement, decision: Decision, certificate: str | None) -> str:
    """What ``certify`` prints; ``certificate`` is the path it was written to."""
    rows = [*_evidence_rows(statement, decision), ("reason", decision.reason), ("certificate", certificate or "")]
    return block(_title(decision.verdict, statement), rows)


def outcome_line(path: str, outcome: Outcome) -> str:
    """One certificate: what it comes to, where it is, and why, or what is verified."""
    passed = outcome.exit_code == 0 and outcome.statement is not None
    text = statement_in_words(outcome.statement) if passed and outcome.statement else outcome.reason
    return one_line(f"{outcome_word(outcome):<19}  {path}: {text}")


def outcomes_summary(outcomes: list[Outcome]) -> str:
    """How many certificates came to what."""
    counts = Counter(map(outcome_word, outcomes))
    noun = "certificate" if len(outcomes) == 1 else "certificates"
    return f"{len(outcomes)} {noun}: {', '.join(f'{count} {word}' for word, count in counts.most_common())}"


def outcome_word(outcome: Outcome) -> str:
    """What one certificate comes to, in a word or two."""
    if outcome.exit_code == 1:
        return "refuted" if outcome.verdict == Verdict.REFUTED.value else "contradicted"
    words = {0: "verified", 2: "unusable", 3: "inconclusive", 4: f"{outcome.signature} signature"}
    return words[outcome.exit_code]


def certificate_block(path: str, document: Any) -> str:
    """What ``show`` prints of a parsed certificate. Raises InputError where it is malformed."""
    if is_composition(document):
        return composition_certificate_block(path, document)
    record = convert(document, CertificateRecord, path)
    signed = record.signed
    recorded = read_recorded(signed)
    statement = read_statement(document["signed"]["statement"], "signed.statement")
    rows = _evidence_rows(statement, recorded)
    if recorded.refuted_below is not None:
        rows.append(("refuted", _scale(recorded.refuted_below)))
    rows += [
        ("reason", signed.evidence.reason),
        ("optimal", signed.evidence.note),
        ("E|X|", between(recorded.l1)),
        ("E X²", between(recorded.l2)),
        ("issued", f"{signed.issued} by {signed.tool.name} {signed.tool.version}"),
    ]
    rows += signature_rows(record.signatures)
    return block(f"{path} records, unchecked: {_title(recorded.verdict, statement)}", rows)


def statement_in_words(statement: Statement) -> str:
    """The claim and the noise, in one line."""
    noise, claim = statement.mechanism.document(), statement.claim.document()
    words = _CLAIM_WORDS.get(claim["kind"], claim["kind"]).format(**claim)
    return f"{words} at sensitivity {noise['sensitivity']}, by {noise_in_words(statement.mechanism, claim)}"


def _thresholds(claim: AnyClaim) -> list[Fraction]:
    """What D is held against, where the claim speaks of it."""
    return [claim.threshold] if isinstance(claim, Claim) else []


def _scale(sigma: Fraction) -> str:
    nearest = nearest_float(sigma)
    return f"{nearest!r}   {nearest.hex()}" if nearest == sigma else exact_text(sigma)


def _short(number: Fraction) -> str:
    """Exact where that is a short decimal, else 12 digits and a sign that says so."""
    text = exact_text(number)
    return text if len(text) <= 24 and "0x" not in text and "/" not in text else f"≈ {nearest_float(number):.12g}"


def _evidence_rows(statement: Statement, found: Decision | Recorded) -> Rows:
    rows: Rows = []
    if found.sup_delta is not None:
        allowed = "".join(f"   allowed: {_short(threshold)}" for threshold in _thresholds(statement.claim))
        rows.append(("sup of D", between(found.sup_delta) + allowed))
    if found.worst_shift is not None:
        rows.append(("worst shift", _short(found.worst_shift)))
    rows += _condition_rows(found.conditions)
    return rows if found.witness is None else rows + _witness_rows(found.witness)


def _condition_rows(conditions: Sequence[Condition]) -> Rows:
    return [(f"condition {c.name}", f"{c.demand}: {between(c.value)}   {c.verdict.value}") for c in conditions]


def _witness_rows(witness: Witness) -> Rows:
    def end(value: Fraction | None, infinity: str) -> str:
        return infinity if value is None else f"{nearest_float(value):.6g}"

    event = [f"[{end(start, '-∞')}, {end(stop, '∞')}]" for start, stop in witness.event]
    hidden = len(event) - SHOWN_INTERVALS
    at = _short(witness.shift)
    if witness.grid_size is not None:
        at += f"   grid point {witness.grid_index} of {witness.grid_size}"
    low, high = decimal_lower(witness.probability_shifted.lower, 10), decimal_upper(witness.bound.upper, 10)
    return [
        ("witness φ", at),
        ("event A", " ∪ ".join(event[:SHOWN_INTERVALS]) + (f" ∪ {hidden} more" if hidden > 0 else "")),
        ("P(A − φ)", f"at least {low}, and at most {high} is allowed"),
    ]


def _title(verdict: Verdict, statement: Statement) -> str:
    return f"{verdict.value}: {statement_in_words(statement)}"
