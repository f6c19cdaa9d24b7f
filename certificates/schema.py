"""What a certificate says: its structure, read strictly, and the exact numbers that its text denotes. (trusted)

A certificate is ``{"signed": …, "signatures": […]}``. Every real number is a string (a decimal, a rational ``p/q`` or a
hex float) that denotes it exactly; the ends of an enclosure are rounded outward. Counts alone are JSON numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from audit.verdict import Condition, Enclosure, Verdict, Witness
from certificates.canonical import MAX_INTEGER
from certificates.errors import NumberError, SchemaError
from mechanisms.numbers import MAX_CHARACTERS, MAX_COUNT, MAX_PARTS, read_real

TYPE: Final = "sigmacert certificate"
COMPOSITION_TYPE: Final = "sigmacert composition"
VERSION: Final = "1"
MAX_SIGNATURES: Final = 16
MAX_TEXT: Final = 2000

Real = Annotated[
    str, Meta(min_length=1, max_length=MAX_CHARACTERS, description="An exact number: 0.1, 1e-5, 1/3 or 0x1.8p-2.")
]
Text = Annotated[str, Meta(max_length=MAX_TEXT, description="One line for people; nothing depends on it.")]
Count = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]

T = TypeVar("T")


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the records: frozen, every field required, no other field allowed."""


class EnclosureRecord(Record, frozen=True):
    """lower ≤ (the true number) ≤ upper."""

    lower: Real
    upper: Real


class WitnessRecord(Record, frozen=True):
    """A shift and an event (disjoint intervals, null for an infinite end) that refute a claim."""

    shift: Real
    event: tuple[tuple[Real | None, Real | None], ...]
    probability_shifted: EnclosureRecord
    bound: EnclosureRecord
    grid_index: Real | None
    grid_size: Real | None


class ConditionRecord(Record, frozen=True):
    """One condition of a theorem."""

    name: Text
    demand: Text
    value: EnclosureRecord
    verdict: Literal["verified", "refuted", "inconclusive"]


class EvidenceRecord(Record, frozen=True):
    """What the proof found."""

    reason: Text
    sup_delta: EnclosureRecord | None
    worst_shift: Real | None
    slack: EnclosureRecord | None
    bits: Count
    boxes: Count
    witness: WitnessRecord | None
    conditions: tuple[ConditionRecord, ...]
    refuted_below: Real | None
    refutation: WitnessRecord | None
    note: Text


class ScalesRecord(Record, frozen=True):
    """The scale as a double, where it is one: a hex float, and the shortest decimal; and the tight float scale."""

    sigma: Real | None
    sigma_decimal: Real | None
    float_sigma: Real | None


class FloatFiguresRecord(Record, frozen=True):
    """E|X| and E X² in float64, as hex floats; null where they overflow."""

    l1: Real | None
    l2: Real | None


class LossesRecord(Record, frozen=True):
    """E|X| and E X², enclosed; in the unit of the query, and its square."""

    l1: EnclosureRecord
    l2: EnclosureRecord


class StatementRecord(Record, frozen=True):
    """The mechanism as declared, and the claim about it: read by mechanisms.claims."""

    mechanism: dict[str, Any]
    claim: dict[str, Any]


class ToolRecord(Record, frozen=True):
    """What made the certificate. Nothing depends on it."""

    name: Text
    version: Text
    python: Text
    python_flint: Text
    flint: Text
    numpy: Text
    scipy: Text


class SignedRecord(Record, frozen=True):
    """The part that is signed."""

    type_: Literal["sigmacert certificate"] = msgspec.field(name="_type")
    schema_version: Literal["1"]
    issued: Annotated[str, Meta(max_length=20, description="UTC, as in 2026-01-31T12:00:00Z.")]
    statement: StatementRecord
    verdict: Literal["verified", "refuted", "inconclusive"]
    evidence: EvidenceRecord
    scales: ScalesRecord
    float_figures: FloatFiguresRecord
    losses: LossesRecord
    tool: ToolRecord


class SignatureRecord(Record, frozen=True):
    """An Ed25519 signature of the RFC 8785 bytes of ``signed``; the key decides the algorithm, the file does not."""

    keyid: Annotated[str, Meta(max_length=64, description="64 lower-case hex digits.")]
    sig: Annotated[str, Meta(max_length=MAX_TEXT, description="128 lower-case hex digits.")]


class CertificateRecord(Record, frozen=True):
    """A certificate."""

    signed: SignedRecord
    signatures: Annotated[tuple[SignatureRecord, ...], Meta(max_length=MAX_SIGNATURES)]


class PartRecord(Record, frozen=True):
    """So many releases by one mechanism, read by mechanisms.claims; ``rho`` encloses the ρ of one of them.

    ``epsilon`` is the ε for which the noise is proved ε-DP, so that it is ε²/2-zCDP; null for a Gaussian mixture, which
    is Δ²/(2σ²)-zCDP.
    """

    mechanism: dict[str, Any]
    epsilon: Real | None
    count: Annotated[int, Meta(ge=1, le=MAX_COUNT)]
    rho: EnclosureRecord


class SignedCompositionRecord(Record, frozen=True):
    """The part of a certificate of kind ``composition`` that is signed: all releases together are (ε, δ)-DP.

    ``epsilon_total`` is that ε, rounded up; ``order_above_1`` is α − 1 for the Rényi order α at which it was found;
    ``epsilon_corollary`` is ρ + 2√(ρ log(1/δ)) of Corollary 3.8, rounded up.
    """

    type_: Literal["sigmacert composition"] = msgspec.field(name="_type")
    schema_version: Literal["1"]
    issued: Annotated[str, Meta(max_length=20, description="UTC, as in 2026-01-31T12:00:00Z.")]
    parts: Annotated[tuple[PartRecord, ...], Meta(min_length=1, max_length=MAX_PARTS)]
    delta: Real
    rho_total: EnclosureRecord
    epsilon_total: Real
    order_above_1: Real
    epsilon_corollary: Real
    tool: ToolRecord


class CompositionCertificateRecord(Record, frozen=True):
    """A certificate of kind ``composition``."""

    signed: SignedCompositionRecord
    signatures: Annotated[tuple[SignatureRecord, ...], Meta(max_length=MAX_SIGNATURES)]


_MISSING = re.compile(r"Object missing required field `(.*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_LITERAL = re.compile(r"Invalid enum value '(.*)'", re.DOTALL)


def convert(document: object, record: type[T], where: str = "") -> T:
    """The document as a ``record``. Raises SchemaError, one line, with the path of the field."""
    try:
        return msgspec.convert(document, record, strict=True)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `")
        field = path.rstrip("`").removeprefix("$").removeprefix(".")
    if match := _MISSING.fullmatch(message):
        field, got, expected = f"{field}.{match[1]}".lstrip("."), "nothing", "this field"
    elif match := _UNKNOWN.fullmatch(message):
        field, got, expected = f"{field}.{match[1]}".lstrip("."), "an unknown field", "only fields of the schema"
    elif match := _LITERAL.fullmatch(message):
        got, expected = match[1], "a value that the schema names"
    else:
        expected, _, got = message.removeprefix("Expected ").partition(", got ")
    place = ": ".join(filter(None, (where, field))) or "document"
    raise SchemaError(place, got.replace("`", "") or "something else", expected.replace("`", ""))


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a certificate of either kind, as published in certificate.schema.json."""
    kinds = (CertificateRecord, CompositionCertificateRecord)
    references, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{TYPE}, schema version {VERSION}",
        "oneOf": list(references),
        "$defs": definitions,
    }


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """What a certificate records, in exact numbers. No order of the two ends of an enclosure is promised."""

    issued: datetime
    verdict: Verdict
    sup_delta: Enclosure | None
    worst_shift: Fraction | None
    slack: Enclosure | None
    witness: Witness | None
    conditions: tuple[Condition, ...]
    refuted_below: Fraction | None
    refutation: Witness | None
    l1: Enclosure
    l2: Enclosure
    float_l1: Fraction | None
    float_l2: Fraction | None
    sigma: Fraction | None
    sigma_decimal: Fraction | None
    float_sigma: Fraction | None


def read_recorded(signed: SignedRecord) -> Recorded:
    """The exact numbers of a certificate. Raises an InputError that names the field."""
    evidence, where = signed.evidence, "signed.evidence"
    texts = [(f"{where}.reason", evidence.reason), (f"{where}.note", evidence.note)]
    texts += [(f"signed.tool.{name}", text) for name, text in msgspec.structs.asdict(signed.tool).items()]
    for number, condition in enumerate(evidence.conditions):
        texts += [(f"{where}.conditions[{number}].{name}", getattr(condition, name)) for name in ("name", "demand")]
    for at, text in texts:
        # A line for a terminal: no line breaks, no control sequences, no change of direction.
        if not text.isprintable():
            raise SchemaError(at, text, "printable characters only")
    return Recorded(
        issued=read_time(signed.issued, "signed.issued"),
        verdict=Verdict(signed.verdict),
        sup_delta=_optional(_enclosure, evidence.sup_delta, f"{where}.sup_delta"),
        worst_shift=_optional(read_real, evidence.worst_shift, f"{where}.worst_shift"),
        slack=_optional(_enclosure, evidence.slack, f"{where}.slack"),
        witness=_optional(_witness, evidence.witness, f"{where}.witness"),
        conditions=tuple(
            _condition(item, f"{where}.conditions[{number}]") for number, item in enumerate(evidence.conditions)
        ),
        refuted_below=_optional(read_real, evidence.refuted_below, f"{where}.refuted_below"),
        refutation=_optional(_witness, evidence.refutation, f"{where}.refutation"),
        l1=_enclosure(signed.losses.l1, "signed.losses.l1"),
        l2=_enclosure(signed.losses.l2, "signed.losses.l2"),
        float_l1=_optional(read_real, signed.float_figures.l1, "signed.float_figures.l1"),
        float_l2=_optional(read_real, signed.float_figures.l2, "signed.float_figures.l2"),
        sigma=_optional(read_real, signed.scales.sigma, "signed.scales.sigma"),
        sigma_decimal=_optional(read_real, signed.scales.sigma_decimal, "signed.scales.sigma_decimal"),
        float_sigma=_optional(read_real, signed.scales.float_sigma, "signed.scales.float_sigma"),
    )


def read_time(text: str, where: str) -> datetime:
    """A time in UTC, to the second."""
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z", text, re.ASCII):
        try:
            return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        except ValueError:
            pass
    raise SchemaError(where, text, "a time in UTC such as 2026-01-31T12:00:00Z")


def _optional(read: Any, value: Any, where: str) -> Any:
    return None if value is None else read(value, where)


def _enclosure(record: EnclosureRecord, where: str) -> Enclosure:
    return Enclosure(read_real(record.lower, f"{where}.lower"), read_real(record.upper, f"{where}.upper"))


def _condition(record: ConditionRecord, where: str) -> Condition:
    return Condition(record.name, record.demand, _enclosure(record.value, f"{where}.value"), Verdict(record.verdict))


def _whole(text: str, where: str) -> int:
    number = read_real(text, where)
    if number.denominator != 1:
        raise NumberError(where, text, "a whole number")
    return int(number)


def _witness(record: WitnessRecord, where: str) -> Witness:
    return Witness(
        shift=read_real(record.shift, f"{where}.shift"),
        event=tuple(
            (
                _optional(read_real, lower, f"{where}.event[{number}][0]"),
                _optional(read_real, upper, f"{where}.event[{number}][1]"),
            )
            for number, (lower, upper) in enumerate(record.event)
        ),
        probability_shifted=_enclosure(record.probability_shifted, f"{where}.probability_shifted"),
        bound=_enclosure(record.bound, f"{where}.bound"),
        grid_index=_optional(_whole, record.grid_index, f"{where}.grid_index"),
        grid_size=_optional(_whole, record.grid_size, f"{where}.grid_size"),
    )
