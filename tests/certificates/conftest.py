"""Certificates to check, and ways to spoil them."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from certificates.canonical import canonical_bytes
from certificates.signing import sign
from certificates.trust import SigningKey, TrustStore, ensure_signing_key
from certificates.verify import Outcome, verify_certificate
from mechanisms.claims import Statement, read_statement
from mechanisms.numbers import read_real
from tests.certificates.support import certificate

GAUSSIAN = {"family": "gaussian", "sensitivity": "1", "sigma": "0x1.0e61239070a9dp+2"}
BELOW = "0x1.0e61239070a9cp+2"
"""The double below the σ of GAUSSIAN: 4.2246…, the smallest that holds at ε = 1, δ = 1e-6."""
DIRECT = {"kind": "direct", "epsilon": "1", "delta": "1e-6"}
LAPLACE = {
    "family": "declared",
    "sensitivity": "1",
    "pieces": [{"from": "0", "to": "inf", "c": "0", "lines": [["0", "-1"]]}],
}
QUASI = {"family": "quasi-gaussian", "sensitivity": "1", "sigma": "0x1.ee8d97078e168p+0", "epsilon": "2"}
PEAKED = {"family": "multi-gaussian", "sensitivity": "2", "sigma": "0.7", "K": 1, "epsilon": "1"}

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str | None]] = {
    # name: (mechanism, claim, a scale for which it is refuted)
    "gaussian": (GAUSSIAN, DIRECT, BELOW),
    "refuted": ({**GAUSSIAN, "sigma": "4"}, DIRECT, None),
    "laplace": (LAPLACE, {"kind": "direct", "epsilon": "0.9", "delta": "0.05"}, None),
    "theorem-4.2": (
        QUASI, {"kind": "theorem-4.2", "epsilon": "2", "delta": "1e-5"}, "0x1.ee8d97078e167p+0"
    ),
    "theorem-3.2": (
        {**GAUSSIAN, "sigma": "4.3"}, {"kind": "theorem-3.2", "epsilon": "1", "delta": "1e-6", "eta": "0.01"}, "4.1"
    ),
    "peaked": (PEAKED, {"kind": "direct", "epsilon": "1", "delta": "0.3"}, "0.1"),
}  # fmt: skip


def make(name: str, signer: Any) -> bytes:
    """A sound certificate of one of the CASES."""
    mechanism, claim, scale = CASES[name]
    float_sigma = float(read_real(mechanism["sigma"], "sigma")) if "sigma" in mechanism else None
    return certificate(mechanism, claim, scale, float_sigma, signer)


@dataclass
class Workshop:
    """A directory of keys, its trust store, and sound certificates to spoil."""

    home: Path
    key: SigningKey
    certificates: dict[str, bytes]

    @property
    def trust(self) -> TrustStore:
        return TrustStore(self.home)

    def sound(self, name: str = "gaussian") -> bytes:
        if name not in self.certificates:
            self.certificates[name] = make(name, self.key.signer)
        return self.certificates[name]

    def verify(self, data: bytes) -> Outcome:
        return verify_certificate(data, self.trust)

    def resigned(self, change: Callable[[Any], None], name: str = "gaussian", signer: Any = None) -> bytes:
        """The certificate with ``change`` made to its ``signed``, under a new and valid signature."""
        document = json.loads(self.sound(name))
        change(document["signed"])
        keyid, signature = sign(signer or self.key.signer, canonical_bytes(document["signed"]))
        document["signatures"] = [{"keyid": keyid, "sig": signature}]
        return json.dumps(document).encode()

    def with_field(self, path: str, value: Any, name: str = "gaussian") -> bytes:
        """The certificate with the field at ``path`` (``evidence.bits``) replaced, signed again by the trusted key."""
        return self.resigned(lambda signed: put(signed, path, value), name)

    @staticmethod
    def put(document: Any, path: str, value: Any) -> None:
        put(document, path, value)

    def document(self, name: str = "gaussian") -> Any:
        return copy.deepcopy(json.loads(self.sound(name)))

    def statement(self, name: str = "gaussian") -> Statement:
        mechanism, claim, _ = CASES[name]
        return read_statement({"mechanism": mechanism, "claim": claim})


def put(document: Any, path: str, value: Any) -> None:
    """Replace what stands at a dotted path, or remove it (``...``); numbers in the path are places in lists."""
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in way:
        document = document[part]
    if value is ...:
        del document[last]
    else:
        document[last] = value


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The machine's own time is not UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "XYZ+5")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    home = tmp_path_factory.mktemp("keys") / "home"
    return Workshop(home, ensure_signing_key(home), {})
