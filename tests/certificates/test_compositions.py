"""Certificates of kind ``composition``: a round trip, and what each edit is taken for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from fractions import Fraction
from typing import Any

import pytest
from securesystemslib.signer import CryptoSigner  # type: ignore[attr-defined]

from audit.composition import Part, compose
from audit.verdict import Limits, Verdict
from certificates.canonical import canonical_bytes, strict_json
from certificates.compositions import issue_composition
from certificates.errors import CertificateError, SchemaError
from certificates.layout import noise_in_words
from certificates.present import certificate_block, outcome_line
from certificates.signing import sign
from certificates.verify import verify_certificate
from mechanisms.families import Declared, Gaussian, MultiGaussian
from mechanisms.numbers import InputError, read_real
from tests.certificates.conftest import Workshop, put
from tests.certificates.support import TIME

LAPLACE = Declared(
    sensitivity=1,
    declared_pieces=({"from": "0", "to": "inf", "c": "0", "lines": [["0", "-1"]]},),  # type: ignore[arg-type]
)
PARTS = (
    Part(Gaussian(sensitivity=1, sigma="10"), 100, None),
    Part(MultiGaussian(sensitivity="0.5", sigma="0x1.8p+1", K=4, epsilon=2), 3, None),
    Part(LAPLACE, 2, Fraction(1)),
)
DELTA = Fraction(1, 10**6)


@pytest.fixture(scope="module")
def sound(workshop: Workshop) -> bytes:
    return issue_composition(compose(PARTS, DELTA), time=TIME, signer=workshop.key.signer)


@pytest.fixture
def resigned(workshop: Workshop, sound: bytes) -> Callable[..., bytes]:
    """The certificate with the field at a path replaced, under a new and valid signature."""

    def resigned(path: str, value: Any) -> bytes:
        document = json.loads(sound)
        put(document["signed"], path, value)
        keyid, signature = sign(workshop.key.signer, canonical_bytes(document["signed"]))
        document["signatures"] = [{"keyid": keyid, "sig": signature}]
        return json.dumps(document).encode()

    return resigned


def test_round_trip(workshop: Workshop, sound: bytes) -> None:
    outcome = workshop.verify(sound)
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("verified", "trusted", 0), outcome.reason
    found = compose(PARTS, DELTA)
    assert found.epsilon is not None
    signed = json.loads(sound)["signed"]
    assert signed["_type"] == "sigmacert composition"
    assert read_real(signed["epsilon_total"], "epsilon") >= found.epsilon
    assert read_real(signed["rho_total"]["upper"], "rho") >= found.rho >= read_real(signed["rho_total"]["lower"], "rho")
    assert f"({signed['epsilon_total']}, 1e-6)-differential privacy of 105 releases in all" in outcome.reason
    assert outcome_line("c.json", outcome).startswith("verified             c.json: (")


def test_is_shown(workshop: Workshop, sound: bytes) -> None:
    text = certificate_block("c.json", strict_json(sound))
    for part in PARTS:
        assert f"{part.count} ×" in text
        assert noise_in_words(part.mechanism) in text
    assert "which is (1, 0)-DP" in text
    assert workshop.key.signer.public_key.keyid in text


CONTRADICTED: dict[str, tuple[str, Any]] = {
    "smaller_epsilon": ("epsilon_total", "8"),
    "smaller_epsilon_by_little": ("epsilon_total", None),
    "larger_epsilon": ("epsilon_total", "50"),
    "negative_epsilon": ("epsilon_total", "-1"),
    "smaller_rho": ("rho_total", {"lower": "0.1", "upper": "0.2"}),
    "wide_rho": ("rho_total", {"lower": "0", "upper": "100"}),
    "ends_the_other_way_round": ("rho_total", {"lower": "3", "upper": "1"}),
    "rho_of_a_part": ("parts.0.rho", {"lower": "0.004", "upper": "0.004"}),
    "more_releases": ("parts.0.count", 101),
    "fewer_releases": ("parts.0.count", 99),
    "one_part_less": ("parts.1", ...),
    "smaller_sigma": ("parts.0.mechanism.sigma", "9.9"),
    "larger_sensitivity": ("parts.1.mechanism.sensitivity", "0.6"),
    "smaller_delta": ("delta", "1e-7"),
    "larger_delta": ("delta", "1e-5"),
    "another_order": ("order_above_1", "2"),
    "corollary": ("epsilon_corollary", "9"),
    "larger_corollary": ("epsilon_corollary", "90"),
    "pure_dp_that_does_not_hold": ("parts.2.epsilon", "0.99"),
    "weaker_pure_dp": ("parts.2.epsilon", "1.5"),
}


@pytest.mark.parametrize("name", CONTRADICTED)
def test_edit_is_contradicted(workshop: Workshop, sound: bytes, resigned: Callable[..., bytes], name: str) -> None:
    path, value = CONTRADICTED[name]
    if value is None:
        value = str(json.loads(sound)["signed"][path])[:-2]  # 15 digits, rounded down
    outcome = workshop.verify(resigned(path, value))
    assert (outcome.signature, outcome.exit_code) == ("trusted", 1), outcome.reason
    assert outcome.reason.isprintable()


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """The dotted paths of all that is no object and no list."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield path
        return
    for name, item in items:
        yield from leaves(item, f"{path}.{name}".lstrip("."))


@pytest.mark.parametrize("value", ["7", "0", "-1", "x", 7, None, [], {}])
def test_no_edit_of_any_field_is_verified(
    workshop: Workshop, sound: bytes, resigned: Callable[..., bytes], value: Any
) -> None:
    for path in leaves(json.loads(sound)["signed"]):
        free = path.startswith("tool.") and isinstance(value, str)
        # Other noise that is as private, and a height that is normalised away.
        same_rho = path in ("parts.1.mechanism.K", "parts.1.mechanism.epsilon", "parts.2.mechanism.pieces.0.lines.0.0")
        if free or same_rho or json.loads(resigned(path, value)) == json.loads(sound):
            continue
        outcome = workshop.verify(resigned(path, value))
        assert outcome.exit_code in (1, 2), (path, value)
        assert outcome.reason.isprintable()


def test_edit_without_the_key_is_contradicted_too(workshop: Workshop, sound: bytes) -> None:
    outcome = workshop.verify(sound.replace(b'"count": 100', b'"count": 10'))
    assert (outcome.signature, outcome.exit_code) == ("invalid", 1)


MALFORMED: dict[str, tuple[str, Any, str]] = {
    "no_parts": ("parts", [], "signed.parts"),
    "no_releases": ("parts.0.count", 0, "signed.parts[0].count"),
    "negative_count": ("parts.0.count", -1, "signed.parts[0].count"),
    "count_as_text": ("parts.0.count", "100", "signed.parts[0].count"),
    "true_count": ("parts.0.count", True, "signed.parts[0].count"),
    "too_many_releases": ("parts.0.count", 10**9 + 1, "signed.parts[0].count"),
    "too_many_parts": ("parts", [{}] * 1001, "signed.parts"),
    "unknown_field": ("trusted", True, "signed.trusted"),
    "unknown_field_of_a_part": ("parts.1.note", "x", "signed.parts[1].note"),
    "verdict": ("verdict", "verified", "signed.verdict"),
    "no_epsilon": ("epsilon_total", ..., "signed.epsilon_total"),
    "empty_epsilon": ("epsilon_total", "", "signed.epsilon_total"),
    "infinite_epsilon": ("epsilon_total", "inf", "signed.epsilon_total"),
    "huge_exponent": ("epsilon_total", "1e999999999", "signed.epsilon_total"),
    "megabytes_of_digits": ("delta", "0." + "1" * 100_000, "signed.delta"),
    "delta_0": ("delta", "0", "signed.delta"),
    "delta_1": ("delta", "1", "signed.delta"),
    "order_1": ("order_above_1", "0", "signed.order_above_1"),
    "order_below_1": ("order_above_1", "-0.5", "signed.order_above_1"),
    "sigma_0": ("parts.0.mechanism.sigma", "0", "signed.parts[0].mechanism.sigma"),
    "huge_K": ("parts.1.mechanism.K", 10**9, "signed.parts[1].mechanism.K"),
    "unknown_family": ("parts.0.mechanism.family", "cauchy", "signed.parts[0].mechanism.family"),
    "quasi_gaussian": ("parts.1.mechanism.family", "quasi-gaussian", "signed.parts[1].mechanism.K"),
    "epsilon_of_a_mixture": ("parts.0.epsilon", "1", "signed.parts[0].epsilon"),
    "no_epsilon_of_pure_dp": ("parts.2.epsilon", None, "signed.parts[2].epsilon"),
    "control_sequence": ("tool.version", "1\x1b[2J", "signed.tool.version"),
    "time": ("issued", "today", "signed.issued"),
    "version": ("schema_version", "2", "signed.schema_version"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(workshop: Workshop, resigned: Callable[..., bytes], name: str) -> None:
    path, value, where = MALFORMED[name]
    data = resigned(path, value)
    outcome = workshop.verify(data)
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == (None, None, 2)
    assert outcome.reason.startswith(f"{where}: got ")
    assert outcome.reason.isprintable()
    with pytest.raises(InputError):
        certificate_block("c.json", strict_json(data))


def test_claim_under_the_name_of_a_composition(workshop: Workshop) -> None:
    document = workshop.document()
    document["signed"]["_type"] = "sigmacert composition"
    assert workshop.verify(json.dumps(document).encode()).exit_code == 2
    document["signed"]["_type"] = ["sigmacert composition"]
    assert workshop.verify(json.dumps(document).encode()).exit_code == 2


def test_signatures_count_as_for_any_certificate(workshop: Workshop, sound: bytes) -> None:
    document = json.loads(sound)
    document["signatures"][0]["sig"] = "0" * 128
    assert workshop.verify(json.dumps(document).encode()).exit_code == 4
    document["signatures"] = []
    missing = workshop.verify(json.dumps(document).encode())
    assert (missing.signature, missing.exit_code) == ("missing", 4)
    stranger = CryptoSigner.generate_ed25519()
    unknown = workshop.verify(issue_composition(compose(PARTS, DELTA), time=TIME, signer=stranger))
    assert (unknown.signature, unknown.exit_code) == ("untrusted", 4)


def test_time_over_is_inconclusive(workshop: Workshop, sound: bytes) -> None:
    outcome = verify_certificate(sound, workshop.trust, Limits(expired=lambda: True))
    assert (outcome.verdict, outcome.exit_code) == ("inconclusive", 3)


def test_only_what_is_verified_is_issued(workshop: Workshop) -> None:
    refuted = compose([Part(LAPLACE, 1, Fraction(1, 2))], DELTA)
    assert refuted.verdict is Verdict.REFUTED
    with pytest.raises(CertificateError, match="got refuted, expected one that is verified"):
        issue_composition(refuted, time=TIME, signer=workshop.key.signer)
    with pytest.raises(SchemaError, match="a time with its zone"):
        issue_composition(compose(PARTS, DELTA), time=datetime(2026, 1, 31), signer=workshop.key.signer)


def test_too_large_for_a_certificate(workshop: Workshop) -> None:
    found = compose([Part(Gaussian(sensitivity="1e300", sigma="1e-300"), 1, None)], DELTA)
    with pytest.raises(InputError, match=r"signed\..*an exponent of at most"):
        issue_composition(found, time=TIME, signer=workshop.key.signer)


@pytest.mark.parametrize("delta", ["1e-300", "0.3", "0.999999999999999999999999"])
@pytest.mark.parametrize("sigma", ["1e-20", "0.3", "1e9", "1e100"])
def test_extremes_go_round(workshop: Workshop, sigma: str, delta: str) -> None:
    found = compose([Part(Gaussian(sensitivity=1, sigma=sigma), 7, None)], read_real(delta, "delta"))
    outcome = workshop.verify(issue_composition(found, time=TIME, signer=workshop.key.signer))
    assert outcome.exit_code == 0, outcome.reason
