"""The schema of a certificate, and its published form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import certificates.schema
from audit.verdict import Condition, Enclosure, Verdict, Witness
from certificates.errors import NumberError, SchemaError
from certificates.schema import CertificateRecord, Recorded, convert, json_schema, read_recorded
from mechanisms.numbers import InputError
from tests.certificates.support import message

TIMES = "a time in UTC such as 2026-01-31T12:00:00Z"


def read(document: Any) -> Recorded:
    return read_recorded(convert(document, CertificateRecord).signed)


def leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The dotted paths of all that is no object and no list, and what stands there."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield path, value
        return
    for name, item in items:
        yield from leaves(item, f"{path}.{name}")


def test_published_schema_is_that_of_the_code() -> None:
    path = Path(certificates.schema.__file__).with_name("certificate.schema.json")
    assert json.loads(path.read_text()) == json_schema()


def test_every_object_of_the_schema_is_closed() -> None:
    for name, definition in json_schema()["$defs"].items():
        assert definition["additionalProperties"] is False, name
        assert sorted(definition["required"]) == sorted(definition["properties"]), name


def test_sound_certificates_are_read(workshop: Any) -> None:
    for name in ("gaussian", "refuted", "theorem-4.2"):
        read(workshop.document(name))


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("signed", ..., "signed"),
        ("signatures", ..., "signatures"),
        ("more", 1, "more"),
        ("signed.more", 1, "signed.more"),
        ("signed.evidence.witness", ..., "signed.evidence.witness"),
        ("signed.evidence.sup_delta.radius", "1", "signed.evidence.sup_delta.radius"),
        ("signed._type", "trusted keys", "signed._type"),
        ("signed._type", ..., "signed._type"),
        ("signed.schema_version", "2", "signed.schema_version"),
        ("signed.schema_version", 1, "signed.schema_version"),
        ("signed.verdict", "true", "signed.verdict"),
        ("signed.verdict", True, "signed.verdict"),
        ("signed.evidence.bits", "128", "signed.evidence.bits"),
        ("signed.evidence.bits", -1, "signed.evidence.bits"),
        ("signed.evidence.bits", True, "signed.evidence.bits"),
        ("signed.evidence.sup_delta.lower", 0, "signed.evidence.sup_delta.lower"),
        ("signed.evidence.sup_delta.lower", "1e999999999", "signed.evidence.sup_delta.lower"),
        ("signed.evidence.sup_delta.lower", "", "signed.evidence.sup_delta.lower"),
        ("signed.evidence.sup_delta.upper", "nan", "signed.evidence.sup_delta.upper"),
        ("signed.evidence.sup_delta", [], "signed.evidence.sup_delta"),
        ("signed.evidence.sup_delta", "0.01", "signed.evidence.sup_delta"),
        ("signed.evidence.worst_shift", "inf", "signed.evidence.worst_shift"),
        ("signed.evidence.worst_shift", "1" * 100_000, "signed.evidence.worst_shift"),
        ("signed.evidence.conditions", None, "signed.evidence.conditions"),
        ("signed.evidence.conditions", ["x"], "signed.evidence.conditions[0]"),
        ("signed.evidence.reason", "a\x1b[2Jb", "signed.evidence.reason"),
        ("signed.evidence.reason", "x" * 2001, "signed.evidence.reason"),
        ("signed.evidence.note", "a\u202eb", "signed.evidence.note"),
        ("signed.evidence.refutation.event.0.1", "x", "signed.evidence.refutation.event[0][1]"),
        ("signed.evidence.refutation.event.0", ["1"], "signed.evidence.refutation.event[0]"),
        ("signed.evidence.refutation.grid_size", "1/2", "signed.evidence.refutation.grid_size"),
        ("signed.tool.version", "1\n2", "signed.tool.version"),
        ("signed.tool.name", ..., "signed.tool.name"),
        ("signed.issued", "yesterday", "signed.issued"),
        ("signed.issued", "2026-01-31T12:00:00+01:00", "signed.issued"),
        ("signed.issued", "2026-02-30T12:00:00Z", "signed.issued"),
        ("signed.issued", "2026-01-31T12:00:00Z ", "signed.issued"),
        ("signed.statement", None, "signed.statement"),
        ("signed.statement.more", {}, "signed.statement.more"),
        ("signed.statement.mechanism", [], "signed.statement.mechanism"),
        ("signed.scales.sigma", "1e", "signed.scales.sigma"),
        ("signed.float_figures.l1", "0x1p99999", "signed.float_figures.l1"),
        ("signed.losses.l1", None, "signed.losses.l1"),
        ("signatures", {}, "signatures"),
        ("signatures.0.sig", 0, "signatures[0].sig"),
        ("signatures.0.alg", "none", "signatures[0].alg"),
        ("signatures.0.keyid", "0" * 65, "signatures[0].keyid"),
        ("signatures", [{"keyid": "", "sig": ""}] * 17, "signatures"),
    ],
)
def test_defect_is_named(workshop: Any, path: str, value: Any, where: str) -> None:
    document = workshop.document()
    workshop.put(document, path, value)
    with pytest.raises(InputError) as caught:
        read(document)
    assert caught.value.where == where
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("path", "value", "got", "expected"),
    [
        ("signed", ..., "nothing", "this field"),
        ("signed.evidence.bits", ..., "nothing", "this field"),
        ("X1", 1, "an unknown field", "only fields of the schema"),
        ("signed.evidence.more", 1, "an unknown field", "only fields of the schema"),
        ("signed.verdict", "true", "true", "a value that the schema names"),
        ("signed.evidence.bits", "128", "str", "int"),
        ("signed.evidence.bits", -1, "something else", "int >= 0"),
        ("signed.evidence.reason", "\x07", "\x07", "printable characters only"),
        ("signed.issued", "2026-02-30T12:00:00Z", "2026-02-30T12:00:00Z", TIMES),
        ("signed.issued", "２０２６-01-31T12:00:00Z", "２０２６-01-31T12:00:00Z", TIMES),
        ("signed.evidence.refutation.grid_index", "1/2", "1/2", "a whole number"),
    ],
)
def test_message_says_what_was_got_and_expected(workshop: Any, path: str, value: Any, got: str, expected: str) -> None:
    document = workshop.document()
    workshop.put(document, path, value)
    with pytest.raises(InputError) as caught:
        read(document)
    assert message(caught) == (path, got, expected)


@pytest.mark.parametrize("document", [None, [], "x", 1, True, {}])
def test_not_an_object(document: Any) -> None:
    with pytest.raises(SchemaError) as caught:
        read(document)
    assert caught.value.where == ("signed" if document == {} else "document")


def test_file_stands_before_the_field(workshop: Any) -> None:
    with pytest.raises(SchemaError) as caught:
        convert(None, CertificateRecord, "c.json")
    assert message(caught) == ("c.json", "null", "object")
    document = workshop.document()
    workshop.put(document, "signed.evidence.bits", "128")
    with pytest.raises(SchemaError) as caught:
        convert(document, CertificateRecord, "c.json")
    assert message(caught) == ("c.json: signed.evidence.bits", "str", "int")


PROSE = {"reason", "note", "name", "demand", "version", "python", "python_flint", "flint", "numpy", "scipy"}
OF_ITS_OWN = ("signed._type", "signed.schema_version", "signed.verdict", "signed.issued", "signed.statement")


@pytest.mark.parametrize("name", ["refuted", "peaked", "theorem-3.2", "theorem-4.2"])
def test_every_field_is_named_by_its_own_defect(workshop: Any, name: str) -> None:
    seen = 0
    for path, value in leaves(workshop.document(name)["signed"], "signed"):
        if not isinstance(value, str) or path.startswith(OF_ITS_OWN) or path.endswith(".verdict"):
            continue
        is_prose = path.rpartition(".")[2] in PROSE
        document = workshop.document(name)
        workshop.put(document, path, "\x07" if is_prose else "nan")
        with pytest.raises(InputError) as caught:
            read(document)
        assert caught.value.where == re.sub(r"\.(\d+)", r"[\1]", path)
        seen += 1
    assert seen > 20


def test_every_number_is_read_from_its_own_field(workshop: Any) -> None:
    """Each field of the same type with a number of its own."""
    document = workshop.document("theorem-4.2")
    signed = document["signed"]
    evidence = signed["evidence"]

    def ends(lower: int) -> dict[str, str]:
        return {"lower": str(lower), "upper": f"{lower}.5"}

    def witness(number: int) -> dict[str, Any]:
        return {
            "shift": str(number),
            "event": [[None, str(number + 1)], [str(number + 2), None]],
            "probability_shifted": ends(number + 3),
            "bound": ends(number + 4),
            "grid_index": str(number + 5),
            "grid_size": str(number + 6),
        }

    condition = {"name": "(4a)", "demand": "positive", "value": ends(4), "verdict": "inconclusive"}
    evidence |= {"sup_delta": ends(1), "worst_shift": "2", "slack": ends(3), "conditions": [condition]}
    evidence |= {"witness": witness(10), "refuted_below": "5", "refutation": witness(20)}
    signed["losses"] = {"l1": ends(6), "l2": ends(7)}
    signed["float_figures"] = {"l1": "8", "l2": "9"}
    signed["scales"] = {"sigma": "30", "sigma_decimal": "31", "float_sigma": "32"}
    signed |= {"issued": "2026-01-31T12:34:56Z", "verdict": "refuted"}

    def enclosure(lower: int) -> Enclosure:
        return Enclosure(Fraction(lower), lower + Fraction(1, 2))

    def read_witness(number: int) -> Witness:
        return Witness(
            shift=Fraction(number),
            event=((None, Fraction(number + 1)), (Fraction(number + 2), None)),
            probability_shifted=enclosure(number + 3),
            bound=enclosure(number + 4),
            grid_index=number + 5,
            grid_size=number + 6,
        )

    assert read(document) == Recorded(
        issued=datetime(2026, 1, 31, 12, 34, 56, tzinfo=UTC),
        verdict=Verdict.REFUTED,
        sup_delta=enclosure(1),
        worst_shift=Fraction(2),
        slack=enclosure(3),
        witness=read_witness(10),
        conditions=(Condition("(4a)", "positive", enclosure(4), Verdict.INCONCLUSIVE),),
        refuted_below=Fraction(5),
        refutation=read_witness(20),
        l1=enclosure(6),
        l2=enclosure(7),
        float_l1=Fraction(8),
        float_l2=Fraction(9),
        sigma=Fraction(30),
        sigma_decimal=Fraction(31),
        float_sigma=Fraction(32),
    )


def test_text_of_a_condition_is_for_a_terminal(workshop: Any) -> None:
    document = workshop.document("theorem-4.2")
    document["signed"]["evidence"]["conditions"][1]["demand"] = "\x07"
    with pytest.raises(SchemaError, match=r"conditions\[1\]\.demand"):
        read(document)


def test_grid_numbers_may_be_large(workshop: Any) -> None:
    """A grid of 10³² points is no JSON number."""
    document = workshop.document("theorem-3.2")
    document["signed"]["evidence"]["refutation"]["grid_size"] = str(10**32)
    recorded = read_recorded(convert(document, CertificateRecord).signed)
    assert recorded.refutation is not None
    assert recorded.refutation.grid_size == 10**32
    document["signed"]["evidence"]["refutation"]["grid_size"] = "0.5"
    with pytest.raises(NumberError, match="a whole number"):
        read(document)
