"""A certificate's bytes: a decision with its evidence, written so that verification finds in it what was proved."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from importlib import metadata
from typing import Any, Final

import flint
import msgspec
import numpy
import scipy
from securesystemslib.signer import Signer  # type: ignore[attr-defined]

from audit.exact import decimal_lower, decimal_upper
from audit.losses import Losses
from audit.verdict import Condition, Decision, Enclosure, Verdict, Witness
from certificates.canonical import canonical_bytes, strict_json
from certificates.errors import CertificateError, SchemaError
from certificates.figures import as_double, float_losses, scale_of, slack
from certificates.schema import (
    TYPE,
    VERSION,
    CertificateRecord,
    ConditionRecord,
    EnclosureRecord,
    EvidenceRecord,
    FloatFiguresRecord,
    LossesRecord,
    ScalesRecord,
    SignedRecord,
    StatementRecord,
    ToolRecord,
    WitnessRecord,
    convert,
    read_recorded,
)
from certificates.signing import sign
from mechanisms.claims import Claim, Statement, read_statement
from mechanisms.numbers import exact_text, read_real

DIGITS: Final = (17, 40, 100, 400)
"""Significant digits of an end that are tried, until rounding does not move it across what it was compared with."""
CONDITION_DIGITS: Final = 40


def issue(
    statement: Statement,
    decision: Decision,
    *,
    losses: Losses,
    refuted_below: Fraction | None = None,
    refutation: Decision | None = None,
    float_sigma: float | None = None,
    note: str = "",
    time: datetime,
    signer: Signer,
) -> bytes:
    """The signed certificate of ``decision`` about ``statement``, as UTF-8 JSON.

    ``refuted_below`` is a smaller scale for which the claim is refuted, by ``refutation``; ``float_sigma`` the tight
    float scale; ``note`` one line for people; ``time`` the time of issue, with its zone. Raises CertificateError where
    the certificate could not be read back as it was meant (a statement or an event too large for one), and where the
    signer fails.
    """
    if time.tzinfo is None:
        raise SchemaError("time", time.isoformat(), "a time with its zone")
    threshold = statement.claim.threshold if isinstance(statement.claim, Claim) else None
    marks = [] if threshold is None else [threshold]
    sup_delta = None if decision.sup_delta is None else rounded(decision.sup_delta, marks)
    l1, l2 = float_losses(statement.mechanism)
    sigma = as_double(scale_of(statement.mechanism))
    signed = SignedRecord(
        type_=TYPE,
        schema_version=VERSION,
        issued=time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        statement=StatementRecord(**statement.document()),
        verdict=_verdict(decision.verdict),
        evidence=EvidenceRecord(
            reason=decision.reason,
            sup_delta=sup_delta,
            worst_shift=None if decision.worst_shift is None else exact_text(decision.worst_shift),
            slack=None if sup_delta is None or threshold is None else rounded(slack(threshold, _read(sup_delta)), []),
            bits=decision.bits,
            boxes=decision.boxes,
            witness=_witness(decision.witness),
            conditions=tuple(map(_condition, decision.conditions)),
            refuted_below=None if refuted_below is None else exact_text(refuted_below),
            refutation=None if refutation is None else _witness(refutation.witness),
            note=note,
        ),
        scales=ScalesRecord(
            sigma=_hex(sigma),
            sigma_decimal=None if sigma is None else repr(sigma),
            float_sigma=_hex(float_sigma),
        ),
        float_figures=FloatFiguresRecord(l1=_hex(l1), l2=_hex(l2)),
        losses=LossesRecord(l1=rounded(losses.l1, []), l2=rounded(losses.l2, [])),
        tool=tool(),
    )
    document = msgspec.to_builtins(signed)
    keyid, signature = sign(signer, canonical_bytes(document))
    certificate = {"signed": document, "signatures": [{"keyid": keyid, "sig": signature}]}
    data = f"{json.dumps(certificate, indent=2, ensure_ascii=False)}\n".encode()
    _require_readable(data, statement)
    return data


def _require_readable(data: bytes, statement: Statement) -> None:
    """What verification would call malformed is not handed out."""
    record = convert(strict_json(data), CertificateRecord)
    read_recorded(record.signed)
    if read_statement(msgspec.to_builtins(record.signed.statement), "signed.statement") != statement:
        raise CertificateError("signed.statement", "another statement when read back", "the statement that was decided")


def rounded(value: Enclosure, marks: Iterable[Fraction]) -> EnclosureRecord:
    """The enclosure as decimals, rounded outward, with each end still on its side of every mark.

    An end that only its exact value keeps there is written exactly.
    """
    marks = list(marks)
    for digits in DIGITS:
        record = EnclosureRecord(lower=decimal_lower(value.lower, digits), upper=decimal_upper(value.upper, digits))
        read = _read(record)
        if all((read.lower > mark, read.upper > mark) == (value.lower > mark, value.upper > mark) for mark in marks):
            return record
    return EnclosureRecord(lower=exact_text(value.lower), upper=exact_text(value.upper))


def _read(record: EnclosureRecord) -> Enclosure:
    return Enclosure(read_real(record.lower, "lower"), read_real(record.upper, "upper"))


def _witness(witness: Witness | None) -> WitnessRecord | None:
    if witness is None:
        return None
    # A point between the two, so that each is rounded against it and they stay apart.
    middle = (witness.probability_shifted.lower + witness.bound.upper) / 2
    return WitnessRecord(
        shift=exact_text(witness.shift),
        event=tuple((_end(lower), _end(upper)) for lower, upper in witness.event),
        probability_shifted=rounded(witness.probability_shifted, [middle]),
        bound=rounded(witness.bound, [middle]),
        grid_index=None if witness.grid_index is None else str(witness.grid_index),
        grid_size=None if witness.grid_size is None else str(witness.grid_size),
    )


def _end(value: Fraction | None) -> str | None:
    return None if value is None else exact_text(value)


def _condition(condition: Condition) -> ConditionRecord:
    return ConditionRecord(
        name=condition.name,
        demand=condition.demand,
        value=EnclosureRecord(
            lower=decimal_lower(condition.value.lower, CONDITION_DIGITS),
            upper=decimal_upper(condition.value.upper, CONDITION_DIGITS),
        ),
        verdict=_verdict(condition.verdict),
    )


def _verdict(verdict: Verdict) -> Any:
    """The verdict's text; the schema's Literal, for which there is no narrower type to name here."""
    return verdict.value


def _hex(value: float | None) -> str | None:
    return None if value is None else value.hex()


@cache
def tool() -> ToolRecord:
    """This program and the libraries that its figures depend on."""
    try:
        version = metadata.version("sigmacert")
    except metadata.PackageNotFoundError:
        version = "not installed"
    return ToolRecord(
        name="sigmacert",
        version=version,
        python=platform.python_version(),
        python_flint=flint.__version__,
        flint=flint.__FLINT_VERSION__,
        numpy=numpy.__version__,
        scipy=scipy.__version__,
    )
