"""Signers: key files, and keys in devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from securesystemslib.signer import (  # type: ignore[attr-defined]
    SIGNER_FOR_URI_SCHEME,
    CryptoSigner,
    Signature,
    Signer,
    SSlibKey,
)

from certificates.errors import KeyRefusedError, PassphraseError, PermissionsError, SigningError
from certificates.signing import PublicKey, create_key_file, load_key_file, load_signer, sign
from tests.certificates.support import MESSAGE, PUBLIC, SIGNATURE, message


def test_signer_of_another_kind() -> None:
    with pytest.raises(KeyRefusedError) as caught:
        sign(CryptoSigner(ec.generate_private_key(ec.SECP256R1())), b"m")
    assert message(caught) == ("signer", "a key of type ecdsa/ecdsa-sha2-nistp256", "an Ed25519 key")


@pytest.mark.parametrize(
    ("key", "got"),
    [
        (SSlibKey("0", "ed25519", "another", {"public": PUBLIC}), "a key of type ed25519/another"),
        (SSlibKey("0", "another", "ed25519", {"public": PUBLIC}), "a key of type another/ed25519"),
        (SSlibKey("0", "ed25519", "ed25519", {"public": "x"}), "x"),
    ],
)
def test_signer_whose_key_is_no_sound_one(key: SSlibKey, got: str) -> None:
    with pytest.raises(KeyRefusedError) as caught:
        PublicKey.of_signer(_Device(key))
    assert message(caught)[:2] == ("signer", got)


def test_signer_from_a_path_or_a_file_uri(tmp_path: Path) -> None:
    key = PublicKey.of_signer(create_key_file(tmp_path / "key.pem"))
    for reference in (str(tmp_path / "key.pem"), f"file2:{tmp_path / 'key.pem'}"):
        assert PublicKey.of_signer(load_signer(reference, key)) == key
    other = PublicKey.from_text(PUBLIC)
    with pytest.raises(KeyRefusedError) as caught:
        load_signer(str(tmp_path / "key.pem"), other)
    assert message(caught) == (str(tmp_path / "key.pem"), "a key with another public half", f"that of {other.keyid}")


def test_path_with_a_colon_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheme is lower-case letters, digits and +, two at least; what is none is a path."""
    monkeypatch.chdir(tmp_path)
    for name in ("C:key.pem", "my key:2.pem", ":key.pem"):
        create_key_file(Path(name))
        assert PublicKey.of_signer(load_signer(name)) == PublicKey.of_signer(load_key_file(name))


def test_encrypted_signer_from_a_path(tmp_path: Path) -> None:
    made = create_key_file(tmp_path / "key.pem", b"open sesame")
    loaded = load_signer(str(tmp_path / "key.pem"), PublicKey.of_signer(made), lambda: b"open sesame")
    assert PublicKey.of_signer(loaded) == PublicKey.of_signer(made)


def test_file_uri_does_not_escape_the_mode_check(tmp_path: Path) -> None:
    create_key_file(tmp_path / "key.pem")
    (tmp_path / "key.pem").chmod(0o644)
    with pytest.raises(PermissionsError):
        load_signer(f"file2:{tmp_path / 'key.pem'}")


class _Device(Signer):
    """A key in a device: asks for a PIN."""

    answer: str | Exception = ""

    def __init__(self, public_key: Any) -> None:
        self._key = public_key

    @property
    def public_key(self) -> Any:
        return self._key

    @classmethod
    def from_priv_key_uri(cls, priv_key_uri: str, public_key: Any, secrets_handler: Any = None) -> Signer:
        if secrets_handler("PIN") != "1234":
            raise ValueError("wrong PIN")
        return cls(public_key)

    def sign(self, payload: bytes) -> Signature:
        if isinstance(self.answer, Exception):
            raise self.answer
        return Signature("a name of its own", self.answer)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> type[_Device]:
    monkeypatch.setitem(SIGNER_FOR_URI_SCHEME, "device", _Device)
    monkeypatch.setattr(_Device, "answer", SIGNATURE)
    return _Device


def test_device_signs(device: type[_Device]) -> None:
    key = PublicKey.from_text(PUBLIC)
    for uri in ("device:slot", "device:slot:2"):
        signer = load_signer(uri, key, lambda: b"1234")
        assert sign(signer, MESSAGE) == (key.keyid, SIGNATURE)


def test_device_needs_the_public_half(device: type[_Device]) -> None:
    with pytest.raises(KeyRefusedError) as caught:
        load_signer("device:slot")
    assert message(caught) == ("signer device", "no public key", "the public half of the key in the device")


def test_device_without_its_secret(device: type[_Device]) -> None:
    key = PublicKey.from_text(PUBLIC)
    with pytest.raises(PassphraseError) as caught:
        load_signer("device:slot", key)
    assert message(caught) == ("signer device", "nothing", "the PIN")
    with pytest.raises(SigningError) as failed:
        load_signer("device:slot", key, lambda: b"0000")
    assert message(failed) == ("signer device", "wrong PIN", "a key that can be used")


def test_unknown_scheme() -> None:
    with pytest.raises(SigningError) as caught:
        load_signer("nosuch:x", PublicKey.from_text(PUBLIC))
    where, got, expected = message(caught)
    assert (where, expected) == ("signer nosuch", "a key that can be used")
    assert "nosuch" in str(got)


@pytest.mark.parametrize("answer", ["00" * 64, SIGNATURE.upper(), ValueError("gone"), OSError("unplugged")])
def test_device_that_fails(device: type[_Device], monkeypatch: pytest.MonkeyPatch, answer: object) -> None:
    monkeypatch.setattr(_Device, "answer", answer)
    key = PublicKey.from_text(PUBLIC)
    signer = load_signer("device:slot", key, lambda: b"1234")
    with pytest.raises(SigningError) as caught:
        sign(signer, MESSAGE)
    if isinstance(answer, Exception):
        assert message(caught) == ("signer", str(answer), "a signature")
    else:
        assert message(caught) == ("signer", "a signature that does not verify", f"one by the key {key.keyid}")
