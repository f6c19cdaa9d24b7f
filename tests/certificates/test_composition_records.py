"""Records of compositions one by one: how each is written, read, and held against a re-proof that is given."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

import msgspec
import pytest

import certificates.compositions
from audit.composition import Composition, Part, compose
from audit.verdict import Enclosure, Limits, Verdict
from certificates.agreement import CONTRADICTED, LOSS_ENDS, UNCONFIRMED, Finding, show
from certificates.canonical import canonical_bytes
from certificates.compositions import (
    RecordedComposition,
    composition_in_words,
    is_composition,
    issue_composition,
    read_composition,
    reprove_composition,
)
from certificates.errors import CertificateError, SchemaError
from certificates.issue import tool
from certificates.schema import CompositionCertificateRecord, convert
from certificates.signing import sign
from mechanisms.families import Declared, Gaussian, MultiGaussian
from mechanisms.numbers import InputError
from tests.certificates.conftest import Workshop, put
from tests.certificates.support import TIME, message

PIECES: Any = ({"from": "0", "to": "inf", "c": "0", "lines": [["0", "-1"]]},)
PARTS = (
    Part(Gaussian(sensitivity=1, sigma="10"), 100, None),
    Part(MultiGaussian(sensitivity="0.5", sigma="0x1.8p+1", K=4, epsilon=2), 3, None),
    Part(Declared(sensitivity=1, declared_pieces=PIECES), 2, Fraction(1)),
)
DELTA = Fraction(1, 10**6)
TINY = Fraction(1, 10**60)
OWN = Composition(
    parts=PARTS,
    delta=DELTA,
    verdict=Verdict.VERIFIED,
    reason="why",
    rho=Fraction(37, 24),
    epsilon=Fraction(10),
    order_above_1=Fraction(3),
    corollary_epsilon=Fraction(11),
)
ROOM = Fraction(37, 24) * LOSS_ENDS


def between(lower: Any, upper: Any) -> Enclosure:
    return Enclosure(Fraction(lower), Fraction(upper))


RECORDED = RecordedComposition(
    issued=TIME,
    parts=PARTS,
    part_rhos=tuple(between(part.rho, part.rho) for part in PARTS),
    delta=DELTA,
    rho=between(OWN.rho, OWN.rho),
    epsilon=Fraction(10),
    order_above_1=Fraction(3),
    corollary_epsilon=Fraction(11),
)


@pytest.fixture
def against(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Finding]]:
    """The findings about a record where the re-proof is OWN, and its two ε lie in 9.9 … 9.95 and 10.9 … 10.95."""

    def against(recorded: RecordedComposition = RECORDED, **changes: Any) -> list[Finding]:
        ends: dict[str, Enclosure | None] = {
            "enclose_epsilon": between("9.9", "9.95"),
            "enclose_corollary": between("10.9", "10.95"),
        }
        ends |= {name: changes.pop(name) for name in ends.keys() & changes}
        own = replace(OWN, **changes)
        monkeypatch.setattr(certificates.compositions, "compose", lambda *_: own)
        for name, value in ends.items():
            monkeypatch.setattr(certificates.compositions, name, lambda *_, value=value: value)
        verdict, findings, proved = reprove_composition(recorded, Limits(), None)
        assert (verdict, proved) == ("verified", composition_in_words(own))
        return findings

    return against


def contradicted(field: str, recorded: str, own: str, is_slip: bool = False) -> list[Finding]:
    text = f"{field}: the certificate records {recorded}, the re-proof says {own}"
    return [Finding(CONTRADICTED, text, is_slip)]


def test_what_is_equal_agrees(against: Callable[..., list[Finding]]) -> None:
    assert against() == []


@pytest.mark.parametrize(
    ("below", "above", "is_slip"),
    [
        (LOSS_ENDS, 0, None),
        (0, LOSS_ENDS, None),
        (LOSS_ENDS / 2, LOSS_ENDS / 2, None),
        (LOSS_ENDS / 2, LOSS_ENDS / 2 + TINY, True),
        (LOSS_ENDS, LOSS_ENDS, True),
        (LOSS_ENDS + TINY, 0, False),
        (0, LOSS_ENDS + TINY, False),
        (-TINY, LOSS_ENDS / 2, True),
        (LOSS_ENDS / 2, -TINY, True),
        (-LOSS_ENDS, LOSS_ENDS, True),
        (LOSS_ENDS, -LOSS_ENDS, True),
        (-LOSS_ENDS - TINY, 1, False),
        (1, -LOSS_ENDS - TINY, False),
    ],
)
def test_recorded_rho_encloses_the_exact_one(
    against: Callable[..., list[Finding]], below: Fraction, above: Fraction, is_slip: bool | None
) -> None:
    def around(value: Fraction) -> Enclosure:
        return between(value - below * value, value + above * value)

    total = around(OWN.rho)
    expected = [] if is_slip is None else contradicted("rho_total", show(total), "37/24", is_slip)
    assert against(replace(RECORDED, rho=total)) == expected
    second = around(PARTS[1].rho)
    rhos = (RECORDED.part_rhos[0], second, RECORDED.part_rhos[2])
    expected = [] if is_slip is None else contradicted("parts[1].rho", show(second), "1/72", is_slip)
    assert against(replace(RECORDED, part_rhos=rhos)) == expected


@pytest.mark.parametrize(
    ("field", "name", "own", "least", "proved"),
    [
        ("epsilon", "epsilon_total", 10, "9.9", "9.95"),
        ("corollary_epsilon", "epsilon_corollary", 11, "10.9", "10.95"),
    ],
)
def test_recorded_epsilon(
    against: Callable[..., list[Finding]], field: str, name: str, own: int, least: str, proved: str
) -> None:
    """Proved by the recorded order, and no larger than the own one."""

    def said(value: Fraction) -> list[Finding]:
        return against(replace(RECORDED, **{field: value}))

    room = own * LOSS_ENDS
    for agrees in (Fraction(proved), Fraction(own), own + room):
        assert said(agrees) == []
    for untold in (Fraction(least), Fraction(proved) - TINY):
        text = f"{name}: the limits do not allow to tell it from {show(untold)}"
        assert said(untold) == [Finding(UNCONFIRMED, text)]
    for false in (Fraction(least) - TINY, own + room + TINY):
        assert said(false) == contradicted(name, show(false), str(own))


@pytest.mark.parametrize(
    ("value", "proved", "is_slip"),
    [
        (10 - 10 * LOSS_ENDS, between(10, 10), True),
        (10 - 10 * LOSS_ENDS - TINY, between(10, 10), False),
        (10 - TINY, between(10, 10), True),
    ],
)
def test_epsilon_below_by_little_is_a_slip(
    against: Callable[..., list[Finding]], value: Fraction, proved: Enclosure, is_slip: bool
) -> None:
    findings = against(replace(RECORDED, epsilon=value), enclose_epsilon=proved)
    assert findings == contradicted("epsilon_total", show(value), "10", is_slip)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("epsilon", "epsilon_total"),
        ("enclose_epsilon", "epsilon_total"),
        ("corollary_epsilon", "epsilon_corollary"),
        ("enclose_corollary", "epsilon_corollary"),
    ],
)
def test_epsilon_that_the_limits_do_not_allow(against: Callable[..., list[Finding]], change: str, name: str) -> None:
    assert against(**{change: None}) == [Finding(UNCONFIRMED, f"{name}: the limits do not allow to enclose it")]


def test_what_is_proved_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the recorded releases and δ, with the recorded order, within the limits."""
    asked: dict[str, tuple[Any, ...]] = {}

    def answer(name: str, value: Any) -> Callable[..., Any]:
        return lambda *given: asked.update({name: given}) or value

    limits, progress = Limits(bits=2048), [].append
    for name, value in (("compose", OWN), ("enclose_epsilon", None), ("enclose_corollary", None)):
        monkeypatch.setattr(certificates.compositions, name, answer(name, value))
    reprove_composition(replace(RECORDED, order_above_1=Fraction(5)), limits, progress)
    assert asked == {
        "compose": (PARTS, DELTA, limits, progress),
        "enclose_epsilon": (OWN.rho, DELTA, Fraction(5), limits),
        "enclose_corollary": (OWN.rho, DELTA, limits),
    }


@pytest.mark.parametrize(("verdict", "code"), [(Verdict.REFUTED, CONTRADICTED), (Verdict.INCONCLUSIVE, UNCONFIRMED)])
def test_releases_that_are_not_verified(monkeypatch: pytest.MonkeyPatch, verdict: Verdict, code: int) -> None:
    monkeypatch.setattr(certificates.compositions, "compose", lambda *_: replace(OWN, verdict=verdict))
    finding = Finding(code, f"{verdict.value}: why")
    assert reprove_composition(RECORDED, Limits(), None) == (verdict.value, [finding], "")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (InputError("delta", "0", "more"), "inconclusive: delta: got 0, expected more"),
        (OverflowError("too large"), "inconclusive: the re-proof met OverflowError (too large)"),
        (ValueError("not finite"), "inconclusive: the re-proof met ValueError (not finite)"),
        (MemoryError(), "inconclusive: the re-proof met MemoryError ()"),
    ],
)
def test_numbers_beyond_the_libraries_are_no_pass(monkeypatch: pytest.MonkeyPatch, error: Exception, text: str) -> None:
    def fail(*_: object) -> Any:
        raise error

    for name in ("compose", "enclose_epsilon"):
        with monkeypatch.context() as patch:
            patch.setattr(certificates.compositions, "compose", lambda *_: OWN)
            patch.setattr(certificates.compositions, name, fail)
            assert reprove_composition(RECORDED, Limits(), None) == (None, [Finding(UNCONFIRMED, text)], "")


def test_in_words() -> None:
    words = "(10, 1e-6)-differential privacy of 105 releases in all, by 3 mechanisms"
    assert composition_in_words(OWN) == words
    one = replace(OWN, parts=(replace(PARTS[0], count=1),), epsilon=Fraction(1, 3))
    assert composition_in_words(one) == (
        "(0.33333333333333334, 1e-6)-differential privacy of 1 release, by 1 mechanism"
    )
    many = replace(OWN, parts=PARTS[:1], epsilon=None)
    assert composition_in_words(many) == ("(epsilon, 1e-6)-differential privacy of 100 releases in all, by 1 mechanism")


# Written.


def test_signed_text(workshop: Workshop, elsewhere: None) -> None:
    zone = timezone(timedelta(hours=2))
    found = replace(compose(PARTS, DELTA), epsilon=Fraction(1, 3), corollary_epsilon=Fraction(2, 3))
    data = issue_composition(found, time=datetime(2026, 1, 31, 14, 0, 59, tzinfo=zone), signer=workshop.key.signer)
    text = data.decode()
    assert text == f"{json.dumps(json.loads(text), indent=2, ensure_ascii=False)}\n"
    document = json.loads(text)
    assert document["signatures"] == [
        dict(zip(("keyid", "sig"), sign(workshop.key.signer, canonical_bytes(document["signed"])), strict=True))
    ]
    order = document["signed"].pop("order_above_1")
    assert Fraction(order) == found.order_above_1
    assert document["signed"] == {
        "_type": "sigmacert composition",
        "schema_version": "1",
        "issued": "2026-01-31T12:00:59Z",
        "parts": [
            {
                "mechanism": PARTS[0].mechanism.document(),
                "epsilon": None,
                "count": 100,
                "rho": {"lower": "0.005", "upper": "0.005"},
            },
            {
                "mechanism": PARTS[1].mechanism.document(),
                "epsilon": None,
                "count": 3,
                "rho": {"lower": "0.013888888888888888", "upper": "0.013888888888888889"},
            },
            {
                "mechanism": PARTS[2].mechanism.document(),
                "epsilon": "1",
                "count": 2,
                "rho": {"lower": "0.5", "upper": "0.5"},
            },
        ],
        "delta": "1e-6",
        "rho_total": {"lower": "1.5416666666666666", "upper": "1.5416666666666667"},
        "epsilon_total": "0.33333333333333334",
        "epsilon_corollary": "0.66666666666666667",
        "tool": msgspec.to_builtins(tool()),
    }


@pytest.mark.parametrize("missing", ["epsilon", "order_above_1", "corollary_epsilon"])
def test_what_is_not_proved_is_not_issued(workshop: Workshop, missing: str) -> None:
    found = replace(OWN, verdict=Verdict.INCONCLUSIVE, **{missing: None})
    with pytest.raises(CertificateError) as caught:
        issue_composition(found, time=TIME, signer=workshop.key.signer)
    assert message(caught) == ("composition", "inconclusive", "one that is verified")


def test_time_without_a_zone_is_not_issued(workshop: Workshop) -> None:
    with pytest.raises(SchemaError) as caught:
        issue_composition(OWN, time=datetime(2026, 1, 31), signer=workshop.key.signer)
    assert message(caught) == ("time", "2026-01-31T00:00:00", "a time with its zone")


@pytest.mark.parametrize("change", [{"parts": PARTS[:1]}, {"delta": 2 * DELTA}])
def test_what_reads_back_as_another_is_not_issued(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    monkeypatch.setattr(certificates.compositions, "read_composition", lambda _: replace(RECORDED, **change))
    with pytest.raises(CertificateError) as caught:
        issue_composition(OWN, time=TIME, signer=workshop.key.signer)
    assert message(caught) == ("signed.parts", "other releases when read back", "those that were composed")


# Read.


@pytest.fixture
def document(workshop: Workshop) -> Any:
    return json.loads(issue_composition(OWN, time=TIME, signer=workshop.key.signer))


def read(document: Any) -> RecordedComposition:
    return read_composition(convert(document, CompositionCertificateRecord).signed)


def test_every_number_is_read_from_its_own_field(document: Any) -> None:
    signed = document["signed"]
    for number, part in enumerate(signed["parts"]):
        part["rho"] = {"lower": str(number), "upper": f"{number}.5"}
    signed |= {"issued": "2026-01-31T12:34:56Z", "delta": "0.25", "rho_total": {"lower": "5", "upper": "6"}}
    signed |= {"epsilon_total": "7", "order_above_1": "8", "epsilon_corollary": "9"}
    assert read(document) == RecordedComposition(
        issued=datetime(2026, 1, 31, 12, 34, 56, tzinfo=UTC),
        parts=PARTS,
        part_rhos=(between(0, "0.5"), between(1, "1.5"), between(2, "2.5")),
        delta=Fraction(1, 4),
        rho=between(5, 6),
        epsilon=Fraction(7),
        order_above_1=Fraction(8),
        corollary_epsilon=Fraction(9),
    )


PRIVATE = "null for a mixture of Gaussians of one sigma, else the epsilon for which the noise is pure DP"
OPEN = "a number between 0 and 1"


@pytest.mark.parametrize(
    ("path", "value", "got", "expected"),
    [
        ("delta", "0", "0", OPEN),
        ("delta", "1", "1", OPEN),
        ("parts.0.epsilon", "0x1p-3", "0.125", PRIVATE),
        ("parts.2.epsilon", None, "nothing", PRIVATE),
        *((f"tool.{name}", "\x1b", "\x1b", "printable characters only") for name in msgspec.to_builtins(tool())),
        *((path, "nan", "nan", None) for path in ("delta", "epsilon_total", "order_above_1", "epsilon_corollary")),
        *((f"{path}.{end}", "nan", "nan", None) for path in ("rho_total", "parts.1.rho") for end in ("lower", "upper")),
        ("parts.1.mechanism.sigma", "nan", "nan", None),
        ("parts.2.epsilon", "nan", "nan", None),
        ("order_above_1", "0", "0", None),
        ("issued", "today", "today", None),
    ],
)
def test_defect_is_named(document: Any, path: str, value: Any, got: str, expected: str | None) -> None:
    put(document["signed"], path, value)
    with pytest.raises(InputError) as caught:
        read(document)
    where, found, wanted = message(caught)
    assert (where, found) == ("signed." + re.sub(r"\.(\d+)", r"[\1]", path), got)
    assert expected in (None, wanted)


@pytest.mark.parametrize(
    ("document", "is_one"),
    [
        ({"signed": {"_type": "sigmacert composition"}}, True),
        ({"signed": {"_type": "sigmacert certificate"}}, False),
        ({"signed": "sigmacert composition"}, False),
        ({"_type": "sigmacert composition"}, False),
        ([{"signed": {"_type": "sigmacert composition"}}], False),
        (None, False),
    ],
)
def test_kind_of_a_document(document: Any, is_one: bool) -> None:
    assert is_composition(document) is is_one
