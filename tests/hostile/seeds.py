"""Sound certificates to spoil: small ones of every kind and many families, under one key that is always the same."""

from __future__ import annotations

import functools
import hashlib
import tempfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.signer import CryptoSigner  # type: ignore[attr-defined]

from audit.composition import compose, part_of
from audit.verdict import Limits
from certificates.compositions import issue_composition
from certificates.signing import PublicKey
from certificates.trust import TrustStore
from mechanisms.claims import Statement, read_statement
from mechanisms.numbers import read_real
from tests.certificates.support import TIME, Document, certificate


def key(name: str) -> CryptoSigner:
    """A signing key that is made of its name: what it signs is the same in every run."""
    return CryptoSigner(Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest()))


TRUSTED, STRANGER = key("trusted"), key("stranger")

_GAUSSIAN = {"family": "gaussian", "sensitivity": "1"}
_DIRECT = {"kind": "direct", "epsilon": "1", "delta": "1e-6"}
_LAPLACE = [{"from": "0", "to": "inf", "c": "0", "lines": [["0", "-1"]]}]
_QUASI = {"family": "quasi-gaussian", "sensitivity": "1", "sigma": "0x1.ee8d97078e168p+0", "epsilon": "2"}
_PEAKED = {"family": "multi-gaussian", "sensitivity": "2", "sigma": "0.7", "K": 1, "epsilon": "1"}
_STEPS = {"sensitivity": "1", "epsilon": "1"}
_MIXTURE = [["1", "0"], ["0.3", "1"], ["0.05", "2.5"]]

CLAIMS: dict[str, tuple[Document, Document, str | None]] = {
    # name: (mechanism, claim, a smaller scale for which it is refuted)
    "gaussian": ({**_GAUSSIAN, "sigma": "0x1.0e61239070a9dp+2"}, _DIRECT, "0x1.0e61239070a9cp+2"),
    "plain": ({**_GAUSSIAN, "sigma": "5"}, _DIRECT, None),
    "refuted": ({**_GAUSSIAN, "sigma": "4"}, _DIRECT, None),
    "rho": ({**_GAUSSIAN, "sigma": "3"}, {"kind": "zcdp", "rho": "1/18"}, None),
    "laplace": ({"family": "laplace", "sensitivity": "1", "scale": "2"}, {**_DIRECT, "delta": "0"}, None),
    "declared": (
        {"family": "declared", "sensitivity": "1", "pieces": _LAPLACE}, {**_DIRECT, "epsilon": "0.9", "delta": "0.05"},
        None,
    ),
    "mixture": (
        {"family": "declared", "sensitivity": "1", "sigma": "2", "components": _MIXTURE}, {**_DIRECT, "delta": "0.1"},
        None,
    ),
    "theorem-4.2": (_QUASI, {"kind": "theorem-4.2", "epsilon": "2", "delta": "1e-5"}, "0x1.ee8d97078e167p+0"),
    "theorem-3.2": (
        {**_GAUSSIAN, "sigma": "4.3"}, {**_DIRECT, "kind": "theorem-3.2", "eta": "0.01"}, "4.1",
    ),
    "peaked": (_PEAKED, {**_DIRECT, "delta": "0.3"}, "0.1"),
    "staircase": ({**_STEPS, "family": "staircase", "gamma": "0.3"}, {**_DIRECT, "delta": "0"}, None),
    "tulap": ({**_STEPS, "family": "tulap", "T": "12"}, {**_DIRECT, "delta": "0.01"}, None),
}  # fmt: skip


@dataclass(frozen=True)
class Seed:
    """A sound certificate: exit code 0, or 1 where its claim is refuted and it says so."""

    name: str
    data: bytes
    exit_code: int


def _issued(name: str) -> bytes:
    mechanism, claim, scale = CLAIMS[name]
    float_sigma = None if scale is None else float(read_real(mechanism["sigma"], "sigma"))
    return certificate(mechanism, claim, scale, float_sigma, TRUSTED)


def _composed() -> bytes:
    def part(name: str, count: int) -> Any:
        mechanism, claim, _ = CLAIMS[name]
        statement: Statement = read_statement({"mechanism": mechanism, "claim": claim})
        return part_of(statement.mechanism, statement.claim, count, name)

    found = compose([part("gaussian", 100), part("laplace", 2)], Fraction(1, 10**6), Limits(), None)
    return issue_composition(found, time=TIME, signer=TRUSTED)


@functools.cache
def seeds() -> tuple[Seed, ...]:
    """All of them, made once."""
    made = [Seed(name, _issued(name), 1 if name == "refuted" else 0) for name in CLAIMS]
    return (*made, Seed("composition", _composed(), 0))


@functools.cache
def trust() -> TrustStore:
    """A store that trusts TRUSTED, and another key that has signed nothing."""
    with tempfile.TemporaryDirectory() as folder:
        store = TrustStore(Path(folder) / "home")
        store.add("the house", PublicKey.of_signer(TRUSTED))
        store.add("another", PublicKey.of_signer(key("another")))
    return store
