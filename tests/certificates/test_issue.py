"""What a certificate says, as it is written."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from fractions import Fraction
from importlib import metadata
from typing import Any

import pytest

from audit.decide import decide
from audit.losses import enclose_losses
from audit.verdict import Enclosure, Verdict
from certificates.canonical import canonical_bytes, strict_json
from certificates.errors import CertificateError, SchemaError, TooLargeError
from certificates.figures import as_double, float_losses
from certificates.issue import issue, rounded, tool
from certificates.schema import CertificateRecord, convert, read_recorded
from certificates.signing import PublicKey
from mechanisms.claims import read_statement
from mechanisms.numbers import InputError, read_real

NOON = datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=2)))


def make(workshop: Any, **changes: Any) -> Any:
    statement = changes.pop("statement", workshop.statement())
    decision = changes.pop("decision", None) or decide(statement)
    options = {"losses": enclose_losses(statement.mechanism), "time": NOON, "signer": workshop.key.signer, **changes}
    return json.loads(issue(statement, decision, **options))


def test_contents(workshop: Any) -> None:
    signed = workshop.document()["signed"]
    assert signed["statement"] == workshop.statement().document()
    assert signed["verdict"] == "verified"
    assert signed["issued"] == "2026-01-31T12:00:00Z"
    assert signed["scales"] == {
        "sigma": "0x1.0e61239070a9dp+2",
        "sigma_decimal": "4.224678889326836",
        "float_sigma": "0x1.0e61239070a9dp+2",
    }
    assert signed["evidence"]["refuted_below"] == "0x1.0e61239070a9cp+2"
    assert signed["evidence"]["refutation"]["shift"] == "1"
    assert signed["evidence"]["witness"] is None
    assert signed["evidence"]["worst_shift"] == "1"
    assert signed["evidence"]["sup_delta"]["upper"] == "1e-6"
    assert signed["evidence"]["note"] == "for tests"


def test_signature_covers_the_canonical_bytes(workshop: Any) -> None:
    document = strict_json(workshop.sound())
    key = PublicKey.of_signer(workshop.key.signer)
    (signature,) = document["signatures"]
    assert signature["keyid"] == key.keyid
    assert key.verifies(signature["sig"], canonical_bytes(document["signed"]))


def test_no_number_in_it_is_a_float(workshop: Any) -> None:
    for name in ("gaussian", "laplace", "theorem-4.2", "theorem-3.2"):
        strict_json(workshop.sound(name))


def test_time_is_utc(workshop: Any) -> None:
    assert make(workshop)["signed"]["issued"] == "2026-01-31T10:00:00Z"
    with pytest.raises(SchemaError, match="a time with its zone"):
        make(workshop, time=NOON.replace(tzinfo=None))


def test_scale_that_is_no_double(workshop: Any) -> None:
    mechanism = {"family": "gaussian", "sensitivity": "1", "sigma": "4.3"}
    statement = read_statement({"mechanism": mechanism, "claim": {"kind": "direct", "epsilon": "1", "delta": "1e-6"}})
    assert make(workshop, statement=statement)["signed"]["scales"] == {
        "sigma": None,
        "sigma_decimal": None,
        "float_sigma": None,
    }


def test_mechanism_without_a_scale(workshop: Any) -> None:
    signed = workshop.document("laplace")["signed"]
    assert set(signed["scales"].values()) == {None}
    assert float.fromhex(signed["float_figures"]["l1"]) == pytest.approx(1)
    assert float.fromhex(signed["float_figures"]["l2"]) == pytest.approx(2)


def test_recorded_numbers_enclose_the_decided_ones(workshop: Any) -> None:
    for name in ("gaussian", "refuted", "theorem-4.2", "theorem-3.2", "peaked"):
        statement = workshop.statement(name)
        decision, losses = decide(statement), enclose_losses(statement.mechanism)
        recorded = read_recorded(convert(workshop.document(name), CertificateRecord).signed)
        pairs = [(recorded.l1, losses.l1), (recorded.l2, losses.l2), (recorded.sup_delta, decision.sup_delta)]
        pairs += [(c.value, d.value) for c, d in zip(recorded.conditions, decision.conditions, strict=True)]
        for written, exact in pairs:
            if written is not None and exact is not None:
                assert written.lower <= exact.lower <= exact.upper <= written.upper
        assert recorded.verdict is decision.verdict
        assert recorded.worst_shift == decision.worst_shift


def test_witness_still_proves_its_point(workshop: Any) -> None:
    """The two probabilities of a refutation one unit in the last place away differ in the 17th digit."""
    for name in ("gaussian", "theorem-3.2"):
        recorded = read_recorded(convert(workshop.document(name), CertificateRecord).signed)
        assert recorded.refutation is not None
        assert recorded.refutation.probability_shifted.lower > recorded.refutation.bound.upper


@pytest.mark.parametrize("threshold", [Fraction(1, 100), Fraction(1, 3), Fraction(99, 10**8)])
def test_rounding_does_not_cross_the_threshold(threshold: Fraction) -> None:
    for distance in (Fraction(0), Fraction(1, 10**19), Fraction(1, 10**90), Fraction(1, 10**450)):
        below = Enclosure(threshold / 2, threshold - distance)
        assert read_real(rounded(below, [threshold]).upper, "") <= threshold
        above = Enclosure(threshold + distance, threshold * 2)
        if distance:
            assert read_real(rounded(above, [threshold]).lower, "") > threshold


def test_rounding_is_short_where_it_can_be() -> None:
    assert rounded(Enclosure(Fraction(1, 3), Fraction(2, 3)), []).lower == "0.33333333333333333"
    assert rounded(Enclosure(Fraction(1, 4), Fraction(1, 3)), [Fraction(1, 3)]).upper == "1/3"


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"note": "two\nlines"}, "signed.evidence.note"),
        ({"note": "x" * 2001}, "signed.evidence.note"),
        ({"float_sigma": float("inf")}, "signed.scales.float_sigma"),
    ],
)
def test_what_could_not_be_read_is_not_issued(workshop: Any, changes: dict[str, Any], where: str) -> None:
    with pytest.raises(InputError) as caught:
        make(workshop, **changes)
    assert caught.value.where == where


def test_number_too_long_to_be_read_is_not_issued(workshop: Any) -> None:
    statement = workshop.statement()
    precise = replace(decide(statement), worst_shift=Fraction(1, 3**5000))
    with pytest.raises(InputError, match="worst_shift"):
        make(workshop, decision=precise)


def test_certificate_too_large_to_be_read_is_not_issued(workshop: Any) -> None:
    components = [["1", f"0.{'123456789' * 40}{number:04d}"] for number in range(1500)]
    mechanism = {"family": "declared", "sensitivity": "1", "sigma": "5", "components": components}
    statement = read_statement({"mechanism": mechanism, "claim": {"kind": "direct", "epsilon": "1", "delta": "0.5"}})
    decision = decide(workshop.statement())
    losses = enclose_losses(workshop.statement().mechanism)
    with pytest.raises(TooLargeError):
        issue(statement, decision, losses=losses, time=NOON, signer=workshop.key.signer)


def test_statement_that_reads_back_as_another_is_not_issued(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    other = workshop.statement("laplace")
    monkeypatch.setattr("certificates.issue.read_statement", lambda *_: other)
    with pytest.raises(CertificateError, match="another statement"):
        make(workshop)


def test_inconclusive_decision(workshop: Any) -> None:
    decision = replace(decide(workshop.statement()), verdict=Verdict.INCONCLUSIVE, sup_delta=None, worst_shift=None)
    signed = make(workshop, decision=decision)["signed"]
    assert signed["verdict"] == "inconclusive"
    assert signed["evidence"]["sup_delta"] is signed["evidence"]["slack"] is signed["evidence"]["worst_shift"] is None


def test_float_figures_of_extreme_mechanisms() -> None:
    def losses(sigma: str) -> tuple[float | None, float | None]:
        mechanism = {"family": "gaussian", "sensitivity": "1", "sigma": sigma}
        claim = {"kind": "direct", "epsilon": "1", "delta": "0.1"}
        return float_losses(read_statement({"mechanism": mechanism, "claim": claim}).mechanism)

    assert losses("1e-400")[1] is None
    assert losses("1e400")[1] is None
    l1, l2 = losses("1")
    assert l1 == pytest.approx(0.7978845608)
    assert l2 == pytest.approx(1)


def test_doubles() -> None:
    assert as_double(None) is None
    assert as_double(Fraction(1, 2)) == 0.5
    assert as_double(Fraction(1, 10)) is None
    assert as_double(Fraction(10) ** 400) is None


def test_tool_names_its_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> str:
        raise metadata.PackageNotFoundError

    tool.cache_clear()
    monkeypatch.setattr(metadata, "version", missing)
    assert tool().version == "not installed"
    assert tool().flint
    tool.cache_clear()
    monkeypatch.setattr(metadata, "version", lambda _: "1.2.3")
    assert tool().version == "1.2.3"
    tool.cache_clear()
