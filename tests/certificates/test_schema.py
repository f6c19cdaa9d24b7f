"""The schema of a certificate, and its published form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import certificates.schema
from certificates.errors import NumberError, SchemaError
from certificates.schema import CertificateRecord, convert, json_schema, read_recorded
from mechanisms.numbers import InputError


def read(document: Any) -> None:
    read_recorded(convert(document, CertificateRecord).signed)


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


@pytest.mark.parametrize("document", [None, [], "x", 1, True, {}])
def test_not_an_object(document: Any) -> None:
    with pytest.raises(SchemaError):
        read(document)


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
