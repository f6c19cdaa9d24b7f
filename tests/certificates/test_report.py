"""The page about a certificate: what it says, that hostile text stays text, and that it loads nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from audit.decide import decide
from audit.losses import enclose_losses
from certificates.canonical import strict_json
from certificates.report import Report, page
from certificates.schema import CertificateRecord, convert, read_recorded
from certificates.signing import CryptoSigner
from certificates.trust import TrustStore
from certificates.verify import verify_certificate
from mechanisms.claims import read_statement
from tests.certificates.conftest import Workshop

TIME = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
SVG = b'<?xml version="1.0"?>\n<!DOCTYPE svg>\n<svg width="1pt"><path d="M 0 0"/></svg>\n'
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>&\"'"


class Elements(HTMLParser):
    """All elements of a page with their attributes, and its text."""

    def __init__(self, data: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(data.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def _report(data: bytes, trust: TrustStore, path: str = "cert.json", picture: bytes | str = SVG) -> Report:
    document: Any = strict_json(data)
    record = convert(document, CertificateRecord)
    statement = read_statement(msgspec.to_builtins(record.signed.statement), "signed.statement")
    return Report(
        path=path,
        data=data,
        record=record,
        recorded=read_recorded(record.signed),
        statement=statement,
        outcome=verify_certificate(data, trust),
        decision=decide(statement),
        losses=enclose_losses(statement.mechanism),
        picture=picture,
        time=TIME,
    )


def _page(workshop: Workshop, data: bytes, **more: Any) -> Elements:
    return Elements(page(_report(data, workshop.trust, **more), workshop.trust))


def test_what_a_verified_certificate_says(workshop: Workshop) -> None:
    found = _page(workshop, workshop.sound())
    assert "verified" in found.text
    assert "(1, 1e-6)-differential privacy at sensitivity 1, by gaussian noise (sigma = 4.2246788893268" in found.text
    assert "P(answer on D in A) ≤ e^ε · P(answer on D′ in A) + δ" in found.text
    assert "0x1.0e61239070a9dp+2" in found.text
    assert "refuted at the smaller scale" in found.text and "0x1.0e61239070a9cp+2" in found.text
    assert "E X²" in found.text
    assert workshop.document()["signatures"][0]["keyid"] in found.text
    assert "Signature: trusted." in found.text
    assert "2026-02-03 04:05:06 UTC" in found.text
    assert "audit verify cert.json" in found.text
    assert ("class", "verdict passed") in found.attributes


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("refuted", ["witness: event A", "∞", "Refuted: an event at the worst shift found breaks the inequality"]),
        ("theorem-4.2", ["conditions (4a) and (5a) of Theorem 4.2", "condition (4a)", "condition (5a)"]),
        ("theorem-3.2", ["condition (2) of Theorem 3.2", "(1 − η) δ"]),
        ("laplace", ["pieces", "declared"]),
    ],
)
def test_what_other_claims_say(workshop: Workshop, name: str, words: list[str]) -> None:
    found = _page(workshop, workshop.sound(name))
    assert [word for word in words if word not in found.text] == []
    assert (("class", "verdict failed") in found.attributes) == (name == "refuted")


def test_a_signature_that_does_not_count_is_no_pass(workshop: Workshop) -> None:
    unsigned = workshop.document()
    unsigned["signatures"] = []
    found = _page(workshop, msgspec.json.encode(unsigned))
    assert "missing signature" in found.text
    assert "Signature: missing." in found.text
    assert ("class", "verdict failed") in found.attributes
    stranger = workshop.resigned(lambda signed: None, signer=CryptoSigner.generate_ed25519())
    found = _page(workshop, stranger)
    assert "untrusted signature" in found.text
    assert "a key that you do not trust" in found.text


def test_an_edited_record_stands_beside_what_was_proved(workshop: Workshop) -> None:
    found = _page(workshop, workshop.with_field("losses.l1", {"lower": "1", "upper": "2"}))
    assert "contradicted" in found.text
    assert "1 … 2" in found.text
    assert "3.370806" in found.text


@pytest.mark.parametrize("field", ["evidence.note", "evidence.reason", "tool.version"])
def test_hostile_text_is_text(workshop: Workshop, field: str) -> None:
    data = page(_report(workshop.with_field(field, HOSTILE), workshop.trust), workshop.trust)
    assert HOSTILE in Elements(data).text
    assert b"<script" not in data and b"<img" not in data


def test_a_hostile_path_is_text(workshop: Workshop) -> None:
    path = f"a'{HOSTILE}\x1b[2J\n\u202e.json"
    data = page(_report(workshop.sound(), workshop.trust, path=path), workshop.trust)
    found = Elements(data)
    assert b"<script" not in data and b"<img" not in data
    assert HOSTILE in found.text
    assert "\x1b" not in data.decode() and "\u202e" not in data.decode()
    assert "audit verify 'a'\"'\"'<script>" in found.text  # quoted for a shell


def test_a_hostile_name_of_a_key_is_text(workshop: Workshop, tmp_path: Any) -> None:
    store = TrustStore(tmp_path / "other")
    (own,) = workshop.trust.keys
    store.add("<b onclick=x>", own.key)
    data = page(_report(workshop.sound(), store), store)
    assert "<b onclick=x>" in Elements(data).text
    assert b"<b onclick" not in data


def test_the_page_loads_and_runs_nothing(workshop: Workshop) -> None:
    found = _page(workshop, workshop.sound())
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form", "a"} & set(found.tags)
    loads = {"src", "href", "xlink:href", "action", "data", "srcset", "poster", "background"}
    assert [(name, value) for name, value in found.attributes if name in loads] == []
    assert [name for name, _ in found.attributes if name.startswith("on")] == []
    policy = [value for name, value in found.attributes if name == "content" and value and "default-src" in value]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_the_picture_is_inline_and_without_its_prologue(workshop: Workshop) -> None:
    data = page(_report(workshop.sound(), workshop.trust), workshop.trust)
    assert data.count(b"<svg") == 1 and b"<?xml" not in data and data.count(b"<!DOCTYPE") == 1
    assert b'<svg role="img" aria-label="' in data


def test_without_pictures_the_page_says_why(workshop: Workshop) -> None:
    found = _page(workshop, workshop.sound(), picture="numbers <beyond> floats")
    assert "No pictures: numbers <beyond> floats." in found.text
    assert "svg" not in found.tags
