"""Certificates of kind ``composition``: issued, read, and held against what all releases together come to. (trusted)

Such a certificate is verified in the same steps as any other (certificates.verify). Its statement is the list of
mechanisms with their counts, and δ; ρ, ε and the order are the record. The recorded order proves the recorded ε anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Final

import msgspec
from securesystemslib.signer import Signer  # type: ignore[attr-defined]

from audit.composition import Composition, Part, compose, enclose_corollary, enclose_epsilon
from audit.exact import decimal_lower, decimal_upper
from audit.verdict import Enclosure, Limits, Verdict
from audit.zcdp import mixture_rho
from certificates.agreement import CONTRADICTED, LOSS_ENDS, UNCONFIRMED, Finding, show
from certificates.canonical import canonical_bytes, strict_json
from certificates.errors import CertificateError, SchemaError
from certificates.issue import tool
from certificates.schema import (
    COMPOSITION_TYPE,
    VERSION,
    CompositionCertificateRecord,
    EnclosureRecord,
    PartRecord,
    SignedCompositionRecord,
    convert,
    read_time,
)
from certificates.signing import sign
from mechanisms.claims import read_mechanism
from mechanisms.numbers import InputError, exact_text, read_epsilon, read_positive, read_real

DIGITS: Final = 17


def is_composition(document: object) -> bool:
    """Whether a document calls itself a certificate of this kind."""
    signed = document.get("signed") if isinstance(document, dict) else None
    return isinstance(signed, dict) and signed.get("_type") == COMPOSITION_TYPE


def issue_composition(composition: Composition, *, time: datetime, signer: Signer) -> bytes:
    """The signed certificate of a composition that is VERIFIED, as UTF-8 JSON.

    Raises CertificateError where it could not be read back as it was meant, where nothing was proved, and where the
    signer fails.
    """
    found = composition
    if time.tzinfo is None:
        raise SchemaError("time", time.isoformat(), "a time with its zone")
    if found.epsilon is None or found.order_above_1 is None or found.corollary_epsilon is None:
        raise CertificateError("composition", found.verdict.value, "one that is verified")
    signed = SignedCompositionRecord(
        type_=COMPOSITION_TYPE,
        schema_version=VERSION,
        issued=time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        parts=tuple(map(_part, found.parts)),
        delta=exact_text(found.delta),
        rho_total=_around(found.rho),
        epsilon_total=decimal_upper(found.epsilon, DIGITS),
        order_above_1=exact_text(found.order_above_1),
        epsilon_corollary=decimal_upper(found.corollary_epsilon, DIGITS),
        tool=tool(),
    )
    document = msgspec.to_builtins(signed)
    keyid, signature = sign(signer, canonical_bytes(document))
    certificate = {"signed": document, "signatures": [{"keyid": keyid, "sig": signature}]}
    data = f"{json.dumps(certificate, indent=2, ensure_ascii=False)}\n".encode()
    read = read_composition(convert(strict_json(data), CompositionCertificateRecord).signed)
    if (read.parts, read.delta) != (found.parts, found.delta):
        raise CertificateError("signed.parts", "other releases when read back", "those that were composed")
    return data


def _part(part: Part) -> PartRecord:
    return PartRecord(
        mechanism=part.mechanism.document(),
        epsilon=None if part.pure_epsilon is None else exact_text(part.pure_epsilon),
        count=part.count,
        rho=_around(part.rho),
    )


def _around(value: Fraction) -> EnclosureRecord:
    return EnclosureRecord(lower=decimal_lower(value, DIGITS), upper=decimal_upper(value, DIGITS))


@dataclass(frozen=True, kw_only=True)
class RecordedComposition:
    """What a certificate of this kind records, in exact numbers."""

    issued: datetime
    parts: tuple[Part, ...]
    part_rhos: tuple[Enclosure, ...]
    delta: Fraction
    rho: Enclosure
    epsilon: Fraction
    order_above_1: Fraction
    corollary_epsilon: Fraction


def read_composition(signed: SignedCompositionRecord) -> RecordedComposition:
    """The releases and the exact numbers of a certificate. Raises an InputError that names the field."""
    for name, text in msgspec.structs.asdict(signed.tool).items():
        if not text.isprintable():
            raise SchemaError(f"signed.tool.{name}", text, "printable characters only")
    delta = read_real(signed.delta, "signed.delta")
    if not 0 < delta < 1:
        raise SchemaError("signed.delta", signed.delta, "a number between 0 and 1")
    places = [(f"signed.parts[{number}]", record) for number, record in enumerate(signed.parts)]
    return RecordedComposition(
        issued=read_time(signed.issued, "signed.issued"),
        parts=tuple(_read_part(record, where) for where, record in places),
        part_rhos=tuple(_enclosure(record.rho, f"{where}.rho") for where, record in places),
        delta=delta,
        rho=_enclosure(signed.rho_total, "signed.rho_total"),
        epsilon=read_real(signed.epsilon_total, "signed.epsilon_total"),
        order_above_1=read_positive(signed.order_above_1, "signed.order_above_1"),
        corollary_epsilon=read_real(signed.epsilon_corollary, "signed.epsilon_corollary"),
    )


def _read_part(record: PartRecord, where: str) -> Part:
    mechanism = read_mechanism(record.mechanism, f"{where}.mechanism")
    epsilon = None if record.epsilon is None else read_epsilon(record.epsilon, f"{where}.epsilon")
    if (mixture_rho(mechanism) is None) != (epsilon is not None):
        expected = "null for a mixture of Gaussians of one sigma, else the epsilon for which the noise is pure DP"
        raise SchemaError(f"{where}.epsilon", "nothing" if epsilon is None else exact_text(epsilon), expected)
    return Part(mechanism, record.count, epsilon)


def _enclosure(record: EnclosureRecord, where: str) -> Enclosure:
    return Enclosure(read_real(record.lower, f"{where}.lower"), read_real(record.upper, f"{where}.upper"))


def reprove_composition(
    recorded: RecordedComposition, limits: Limits, progress: Callable[[float], None] | None
) -> tuple[str | None, list[Finding], str]:
    """Steps 5 and 6: the verdict, all that stands against the certificate, and what is proved where nothing does."""
    try:
        own = compose(recorded.parts, recorded.delta, limits, progress)
        if own.verdict is not Verdict.VERIFIED:
            code = CONTRADICTED if own.verdict is Verdict.REFUTED else UNCONFIRMED
            return own.verdict.value, [Finding(code, f"{own.verdict.value}: {own.reason}")], ""
        findings = list(_disagreements(recorded, own, limits))
    except InputError as error:
        return None, [Finding(UNCONFIRMED, f"inconclusive: {error}")], ""
    except (ValueError, ArithmeticError, MemoryError) as error:
        # Numbers can be beyond what the libraries hold. That proves nothing, and it is no pass.
        return None, [Finding(UNCONFIRMED, f"inconclusive: the re-proof met {type(error).__name__} ({error})")], ""
    return own.verdict.value, findings, composition_in_words(own)


def composition_in_words(composition: Composition) -> str:
    """What is proved, in one line; ε to 17 digits, rounded up."""
    count, kinds = composition.releases, len(composition.parts)
    what = "1 release" if count == 1 else f"{count} releases in all"
    by = "1 mechanism" if kinds == 1 else f"{kinds} mechanisms"
    epsilon = "epsilon" if composition.epsilon is None else decimal_upper(composition.epsilon, DIGITS)
    return f"({epsilon}, {exact_text(composition.delta)})-differential privacy of {what}, by {by}"


def _disagreements(recorded: RecordedComposition, own: Composition, limits: Limits) -> Iterator[Finding]:
    for number, (theirs, part) in enumerate(zip(recorded.part_rhos, recorded.parts, strict=True)):
        yield from _rho(f"parts[{number}].rho", theirs, part.rho)
    yield from _rho("rho_total", recorded.rho, own.rho)
    proved = enclose_epsilon(own.rho, own.delta, recorded.order_above_1, limits)
    yield from _epsilon("epsilon_total", recorded.epsilon, proved, own.epsilon)
    corollary = enclose_corollary(own.rho, own.delta, limits)
    yield from _epsilon("epsilon_corollary", recorded.corollary_epsilon, corollary, own.corollary_epsilon)


def _rho(field: str, recorded: Enclosure, own: Fraction) -> Iterator[Finding]:
    """It must enclose the exact ρ, and tightly."""
    encloses = recorded.lower <= own <= recorded.upper
    if not encloses or recorded.upper - recorded.lower > LOSS_ENDS * own:
        near = max(abs(recorded.lower - own), abs(recorded.upper - own)) <= LOSS_ENDS * own
        yield Finding(CONTRADICTED, _text(field, recorded, own), is_slip=near)


def _epsilon(field: str, recorded: Fraction, proved: Enclosure | None, own: Fraction | None) -> Iterator[Finding]:
    """Not below what is proved, and not above the own ε by more than another library's rounding."""
    if proved is None or own is None:
        yield Finding(UNCONFIRMED, f"{field}: the limits do not allow to enclose it")
    elif recorded < proved.lower or recorded > own * (1 + LOSS_ENDS):
        yield Finding(CONTRADICTED, _text(field, recorded, own), is_slip=abs(recorded - own) <= LOSS_ENDS * own)
    elif recorded < proved.upper:
        yield Finding(UNCONFIRMED, f"{field}: the limits do not allow to tell it from {show(recorded)}")


def _text(field: str, recorded: object, own: object) -> str:
    return f"{field}: the certificate records {show(recorded)}, the re-proof says {show(own)}"
