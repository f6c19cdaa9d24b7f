"""Verification of a certificate: nothing in it is believed but what it claims. (trusted)

 1. Read: strict JSON (certificates.canonical), of bounded size and depth.
 2. Schema: every field, no other; every number exact (certificates.schema).
 3. Statement: the mechanism and the claim, read as from any other file (mechanisms.claims).
 4. Signatures: of the RFC 8785 bytes of ``signed``, by keys of the trust store. ``trusted`` where at least one key of
    the store has signed and no signature under the name of such a key fails; ``invalid`` where one fails; ``untrusted``
    where no key of the store is named; ``missing`` where there is no signature. The key decides the algorithm.
 5. Re-proof: audit.decide on the statement alone, also where the signature is bad; and on the statement at the smaller
    scale, where one is recorded for which the claim fails.
 6. Agreement: all that is recorded, against the re-proof (certificates.agreement). The float scale is held between
    the scale that is refuted and the one that is verified. The time of issue, the tool, the numbers of bits and boxes
    and the two lines of prose (reason, note) say how the certificate came about; there is nothing to check them
    against, and the signature alone vouches for them. A time of issue that is still to come is worth a warning.
 7. Result: 1 the claim is refuted, or a record contradicted; 4 the signature does not count; 2 malformed;
    3 inconclusive; 0 verified; the first that applies. A certificate that is unusable at step 1, 2 or 3 is malformed
    and ends there.

Nothing else of the file counts: not the order of the fields, the white space or the escapes, which RFC 8785 does not
keep, and not how often a key has signed. A certificate that no trusted key has signed cannot pass, so that its
re-proof is not worth much time: the caller may set narrower limits for it.

A certificate of kind ``composition`` goes through the same steps; its own part of them is in certificates.compositions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np

from audit.decide import decide
from audit.losses import Losses, enclose_losses
from audit.verdict import Decision, Limits, Verdict
from certificates.agreement import CONTRADICTED, UNCONFIRMED, Finding, Reproof, below, disagreements, show
from certificates.canonical import canonical_bytes, strict_json
from certificates.compositions import is_composition, read_composition, reprove_composition
from certificates.figures import as_double, scale_of
from certificates.schema import (
    CertificateRecord,
    CompositionCertificateRecord,
    Recorded,
    SignatureRecord,
    convert,
    read_recorded,
)
from certificates.trust import TrustStore
from mechanisms.claims import Statement, read_statement
from mechanisms.numbers import InputError

SignatureStatus = Literal["trusted", "untrusted", "invalid", "missing"]
Progress = Callable[[float], None]

VERIFIED: Final = 0
LOSS_BITS: Final = 192
BAD_SIGNATURE: Final = 4
MALFORMED: Final = 2
PRECEDENCE: Final = (CONTRADICTED, BAD_SIGNATURE, MALFORMED, UNCONFIRMED, VERIFIED)
MAX_FINDINGS: Final = 3

_SIGNATURE_REASONS: Final = {
    "untrusted": "signed by no key that you trust",
    "invalid": "a signature under the name of a trusted key does not verify",
    "missing": "not signed",
}


@dataclass(frozen=True)
class Outcome:
    """What verification says of one certificate. Only exit code 0 is a pass."""

    verdict: str | None
    """The re-proof's verdict on the claim; None where there is none."""
    signature: SignatureStatus | None
    exit_code: int
    reason: str
    """One line: everything that stands against the certificate, or what is proved."""
    statement: Statement | None
    """None where there is none to read, and for a composition, which ``reason`` states."""
    warning: str = ""
    """One line on what is strange and proves nothing against the certificate; empty where nothing is."""


def verify_certificate(
    data: bytes,
    trust: TrustStore,
    limits: Limits | None = None,
    progress: Progress | None = None,
    *,
    strangers: Limits | None = None,
    now: datetime | None = None,
) -> Outcome:
    """The outcome for a certificate's bytes. Bad data is an outcome (exit code 2), never an exception.

    ``strangers`` are the limits for a certificate that no trusted key has signed, ``limits`` unless given; ``now`` is
    the time (with its zone) that a time of issue is held against, where one is given.
    """
    limits = limits or Limits()
    strangers = strangers or limits
    try:
        # 1. Read.
        document = strict_json(data)
        if is_composition(document):
            return _verify_composition(document, trust, limits, strangers, progress, now)
        # 2. Schema.
        record = convert(document, CertificateRecord)
        recorded = read_recorded(record.signed)
        # 3. Statement.
        statement = read_statement(document["signed"]["statement"], "signed.statement")
    except ValueError as error:  # InputError, or a number too long for Python to write.
        return Outcome(None, None, MALFORMED, str(error), None)
    # 4. Signatures.
    signature = signature_status(canonical_bytes(document["signed"]), record.signatures, trust)
    # 5. Re-proof, and 6. Agreement.
    allowed = limits if signature == "trusted" else strangers
    verdict, findings, proved = _reprove(statement, recorded, allowed, progress)
    return _result(verdict, signature, findings, proved, statement, _warning(recorded.issued, now))


def _verify_composition(
    document: Any,
    trust: TrustStore,
    limits: Limits,
    strangers: Limits,
    progress: Progress | None,
    now: datetime | None,
) -> Outcome:
    """The same steps for a certificate of kind ``composition``, whose statement is a list of releases and δ.

    Raises InputError at steps 2 and 3.
    """
    record = convert(document, CompositionCertificateRecord)
    recorded = read_composition(record.signed)
    signature = signature_status(canonical_bytes(document["signed"]), record.signatures, trust)
    allowed = limits if signature == "trusted" else strangers
    verdict, findings, proved = reprove_composition(recorded, allowed, progress)
    return _result(verdict, signature, findings, proved, None, _warning(recorded.issued, now))


def _warning(issued: datetime, now: datetime | None) -> str:
    if now is None or issued <= now:
        return ""
    here = f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return f"issued at {issued:%Y-%m-%dT%H:%M:%SZ}, which is still to come by the clock here ({here})"


def _result(
    verdict: str | None,
    signature: SignatureStatus,
    findings: list[Finding],
    proved: str,
    statement: Statement | None,
    warning: str,
) -> Outcome:
    """Step 7."""
    if signature != "trusted":
        findings = [finding for finding in findings if not finding.is_slip]
        findings.append(Finding(BAD_SIGNATURE, _SIGNATURE_REASONS[signature]))
    code = min((finding.exit_code for finding in findings), key=PRECEDENCE.index, default=VERIFIED)
    return Outcome(verdict, signature, code, _line(findings) if findings else proved, statement, warning)


@np.errstate(all="ignore")  # as in audit.decide
def _reprove(
    statement: Statement, recorded: Recorded, limits: Limits, progress: Progress | None
) -> tuple[str | None, list[Finding], str]:
    """Steps 5 and 6: the verdict, all that stands against the certificate, and what is proved where nothing does."""
    decision: Decision | None = None
    findings: list[Finding] = []
    smaller = below(statement, recorded)
    share = 1.0 if smaller is None else 0.5
    try:
        decision = decide(statement, limits, _part(progress, 0.0, share))
        if decision.verdict is Verdict.REFUTED:
            findings.append(Finding(CONTRADICTED, f"refuted: {decision.reason}"))
        elif decision.verdict is not Verdict.VERIFIED:
            findings.append(Finding(UNCONFIRMED, f"inconclusive: {decision.reason}"))
        refutation = None if smaller is None else decide(smaller, limits, _part(progress, share, 1.0))
        losses = _enclose_losses(statement, limits)
        findings.extend(disagreements(recorded, Reproof(statement, decision, refutation, losses, limits)))
    except InputError as error:
        findings.append(Finding(MALFORMED, str(error)))
    except (ValueError, ArithmeticError, MemoryError) as error:
        # Numbers can be beyond what the libraries hold. That proves nothing, and it is no pass.
        findings.append(Finding(UNCONFIRMED, f"inconclusive: the re-proof met {type(error).__name__} ({error})"))
    if decision is None:
        return None, findings, ""
    return decision.verdict.value, findings, f"{decision.reason}{_optimality(statement, smaller)}"


def signature_status(message: bytes, signatures: Iterable[SignatureRecord], trust: TrustStore) -> SignatureStatus:
    """Step 4. A key identifier in the file only chooses among the trusted keys; theirs are computed from the keys."""
    status: SignatureStatus = "missing"
    for signature in signatures:
        trusted = trust.lookup(signature.keyid)
        if trusted is None:
            status = "untrusted" if status == "missing" else status
        elif not trusted.key.verifies(signature.sig, message):
            return "invalid"
        else:
            status = "trusted"
    return status


def _enclose_losses(statement: Statement, limits: Limits) -> Losses | None:
    """With more bits until the enclosures are finite; None where the limits end that first."""
    bits = LOSS_BITS
    while bits <= max(limits.bits, LOSS_BITS) and not limits.expired():
        try:
            return enclose_losses(statement.mechanism, bits)
        except ValueError:
            bits *= 2
    return None


def _optimality(statement: Statement, smaller: Statement | None) -> str:
    """What the refuted scale says of the certified one."""
    if smaller is None:
        return ""
    scale, sigma = scale_of(smaller.mechanism), as_double(scale_of(statement.mechanism))
    if sigma is not None and scale == Fraction(math.nextafter(sigma, 0.0)):
        return "; at the next smaller double the claim is refuted"
    return f"; at the scale {show(scale)} the claim is refuted"


def _part(progress: Progress | None, start: float, end: float) -> Progress | None:
    return None if progress is None else lambda share: progress(start + (end - start) * share)


def _line(findings: list[Finding]) -> str:
    """What decided the exit code comes first; the rest is counted."""
    ordered = sorted(findings, key=lambda finding: PRECEDENCE.index(finding.exit_code))
    more = len(ordered) - MAX_FINDINGS
    texts = [finding.text for finding in ordered[:MAX_FINDINGS]] + ([f"and {more} more"] if more > 0 else [])
    return "; ".join(texts)
