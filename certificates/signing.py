"""Ed25519 keys: made, read, refused where unsound; signatures made and checked. (trusted)

The signers are those of securesystemslib, so that a key can be a file, or stay inside a KMS or an HSM. What it leaves
to its caller is done here: the key identifier is computed from the key and never taken from a file, a signature is
exactly 128 lower-case hex digits, an encrypted key file is opened with its passphrase, and a public key is refused
unless it is the one encoding of a point of the curve that is not of small order.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from securesystemslib.exceptions import Error as SecureSystemsError
from securesystemslib.exceptions import UnverifiedSignatureError
from securesystemslib.signer import CryptoSigner, Signature, Signer, SSlibKey  # type: ignore[attr-defined]

from certificates.canonical import canonical_bytes
from certificates.errors import KeyRefusedError, PassphraseError, SigningError
from certificates.files import OTHERS_ACCESS, read_bounded, write_new

KEY_TYPE: Final = "ed25519"
MAX_KEY_BYTES: Final = 1 << 16
FILE_SCHEME: Final = "file2:"

Passphrase = Callable[[], bytes]
"""Asked for the passphrase of an encrypted key, only when there is one to open."""

_KEY = re.compile(r"[0-9a-f]{64}", re.ASCII)
_SIGNATURE = re.compile(r"[0-9a-f]{128}", re.ASCII)

# The curve −x² + y² = 1 + d x² y² over the integers modulo p (RFC 8032, section 5.1).
_P: Final = 2**255 - 19
_D: Final = -121665 * pow(121666, -1, _P) % _P


def _require_sound(raw: bytes, where: str) -> None:
    """Refuse 32 bytes that are not the encoding of a point, a second encoding of one, or a point of small order.

    With a key of small order some signatures verify for very many messages, and no private key stands behind it. The
    y of the points whose order divides 8 are the roots of y (y² − 1) (d y⁴ + 2 y² − 1): order 4 has y = 0, orders 1
    and 2 have y = ±1, and the double of a point of order 8 has y = 0, that is x² = −y².
    """
    encoded = int.from_bytes(raw, "little") & (2**255 - 1)
    y = encoded % _P
    square = y * y % _P
    if y * (square - 1) * (_D * square * square + 2 * square - 1) % _P == 0:
        raise KeyRefusedError(where, raw.hex(), "a key that is not of small order (with this one, anyone can sign)")
    if encoded >= _P:
        raise KeyRefusedError(where, raw.hex(), "the shortest encoding of a public key")
    # x² = (y² − 1) / (d y² + 1) has a solution only where (y² − 1) (d y² + 1) is a square (Euler's criterion).
    if pow((square - 1) * (_D * square + 1), (_P - 1) // 2, _P) != 1:
        raise KeyRefusedError(where, raw.hex(), "a point of the curve edwards25519")


@dataclass(frozen=True)
class PublicKey:
    """A sound Ed25519 public key: 32 bytes. Raises KeyRefusedError, which names ``where``, for any other."""

    raw: bytes
    where: InitVar[str] = "public key"

    def __post_init__(self, where: str) -> None:
        if len(self.raw) != 32:
            raise KeyRefusedError(where, f"{len(self.raw)} bytes", "the 32 bytes of an Ed25519 key")
        _require_sound(self.raw, where)

    @classmethod
    def from_text(cls, text: str, where: str = "public key") -> PublicKey:
        """From 64 lower-case hex digits."""
        if not _KEY.fullmatch(text):
            raise KeyRefusedError(where, text, "64 lower-case hex digits")
        return cls(bytes.fromhex(text), where)

    @classmethod
    def from_pem(cls, pem: bytes, where: str = "public key") -> PublicKey:
        """From a PEM file's bytes (SubjectPublicKeyInfo)."""
        expected = "an Ed25519 public key in PEM form"
        if b"PRIVATE KEY" in pem:
            raise KeyRefusedError(where, "a private key", expected)
        try:
            key = load_pem_public_key(pem)
        except (ValueError, UnsupportedAlgorithm):
            raise KeyRefusedError(where, "something else", expected) from None
        if not isinstance(key, Ed25519PublicKey):
            raise KeyRefusedError(where, f"a key of another kind ({type(key).__name__})", expected)
        return cls(key.public_bytes_raw(), where)

    @classmethod
    def of_signer(cls, signer: Signer) -> PublicKey:
        """The public half of a signer's key."""
        key = signer.public_key
        if (key.keytype, key.scheme) != (KEY_TYPE, KEY_TYPE):
            raise KeyRefusedError("signer", f"a key of type {key.keytype}/{key.scheme}", "an Ed25519 key")
        return cls.from_text(str(key.keyval.get("public")), "signer")

    @property
    def text(self) -> str:
        """64 lower-case hex digits."""
        return self.raw.hex()

    @property
    def keyid(self) -> str:
        """SHA-256, in hex, of the RFC 8785 bytes of the key as The Update Framework writes one."""
        document = {"keytype": KEY_TYPE, "scheme": KEY_TYPE, "keyval": {"public": self.text}}
        return hashlib.sha256(canonical_bytes(document)).hexdigest()

    def pem(self) -> bytes:
        """The key as a PEM file, to hand to others."""
        key = Ed25519PublicKey.from_public_bytes(self.raw)
        return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def verifies(self, signature: str, message: bytes) -> bool:
        """Whether ``signature`` (hex) is this key's Ed25519 signature of ``message``."""
        if not _SIGNATURE.fullmatch(signature):
            return False
        try:
            self.shared().verify_signature(Signature(self.keyid, signature), message)
        except UnverifiedSignatureError:
            return False
        return True

    def shared(self) -> SSlibKey:
        """The key as securesystemslib holds one."""
        return SSlibKey(self.keyid, KEY_TYPE, KEY_TYPE, {"public": self.text})


def read_public_key(source: str) -> PublicKey:
    """A public key from 64 hex digits, or from the PEM file of that name."""
    if _KEY.fullmatch(source):
        return PublicKey.from_text(source)
    return PublicKey.from_pem(read_bounded(source, MAX_KEY_BYTES), source)


def create_key_file(path: Path, passphrase: bytes | None = None) -> CryptoSigner:
    """A new key in a new file, as save_key writes it."""
    private = Ed25519PrivateKey.generate()
    save_key(private, path, passphrase)
    return CryptoSigner(private)


def save_key(private: Ed25519PrivateKey, path: Path, passphrase: bytes | None = None) -> None:
    """The private key into a new file: PKCS8 in PEM, mode 0600, encrypted where there is a passphrase.

    Raises KeyExistsError rather than write over a file.
    """
    encryption: KeySerializationEncryption = NoEncryption()
    if passphrase is not None:
        if not passphrase:
            raise PassphraseError("passphrase", "an empty one", "at least one character")
        encryption = BestAvailableEncryption(passphrase)
    write_new(path, private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption), 0o600)


def load_key_file(path: str | Path, passphrase: Passphrase | None = None) -> CryptoSigner:
    """The signer of a private key file (PEM), which no other user may read; ``passphrase`` is asked if encrypted."""
    where = str(path)
    pem = read_bounded(path, MAX_KEY_BYTES, OTHERS_ACCESS)
    expected = "an Ed25519 private key in PEM form"
    private: object
    try:
        private = load_pem_private_key(pem, None)
    except TypeError:  # How that library says that the key is encrypted.
        private = _decrypt(pem, where, passphrase)
    except (ValueError, UnsupportedAlgorithm):
        raise KeyRefusedError(where, "something else", expected) from None
    if not isinstance(private, Ed25519PrivateKey):
        raise KeyRefusedError(where, f"a key of another kind ({type(private).__name__})", expected)
    return CryptoSigner(private)


def _decrypt(pem: bytes, where: str, passphrase: Passphrase | None) -> object:
    secret = passphrase() if passphrase is not None else b""
    if not secret:
        raise PassphraseError(where, "an encrypted key", "its passphrase")
    try:
        return load_pem_private_key(pem, secret)
    except ValueError:
        raise PassphraseError(where, "a passphrase that does not open it", "the key's own") from None


def load_signer(reference: str, public_key: PublicKey | None = None, passphrase: Passphrase | None = None) -> Signer:
    """A signer from the path of a key file, or from a URI of securesystemslib (``gcpkms:…``, ``hsm:…``, ``hv:…``).

    A key that stays in its device needs ``public_key``, its public half; with a file it is compared. Raises
    CertificateError; a service's own errors (network, access) come from its client library as they are.
    """
    scheme, colon, _ = reference.partition(":")
    if reference.startswith(FILE_SCHEME):
        reference = reference.removeprefix(FILE_SCHEME)
    elif colon and re.fullmatch(r"[a-z][a-z0-9+]+", scheme):
        return _load_remote(reference, scheme, public_key, passphrase)
    signer = load_key_file(reference, passphrase)
    if public_key is not None and PublicKey.of_signer(signer) != public_key:
        raise KeyRefusedError(reference, "a key with another public half", f"that of {public_key.keyid}")
    return signer


def _load_remote(uri: str, scheme: str, public_key: PublicKey | None, passphrase: Passphrase | None) -> Signer:
    where = f"signer {scheme}"
    if public_key is None:
        raise KeyRefusedError(where, "no public key", "the public half of the key in the device")

    def secret(name: str) -> str:
        if passphrase is None:
            raise PassphraseError(where, "nothing", f"the {name}")
        return passphrase().decode("utf-8")

    try:
        return Signer.from_priv_key_uri(uri, public_key.shared(), secret)
    except PassphraseError:
        raise
    except (ValueError, OSError, SecureSystemsError) as error:
        raise SigningError(where, str(error), "a key that can be used") from None


def sign(signer: Signer, message: bytes) -> tuple[str, str]:
    """(keyid, signature in hex) of ``message``; the signature is checked before it is handed out.

    Raises SigningError where the signer fails or answers with a signature that does not verify.
    """
    public_key = PublicKey.of_signer(signer)
    try:
        made = signer.sign(message).signature
    except (ValueError, OSError, SecureSystemsError) as error:
        raise SigningError("signer", str(error), "a signature") from None
    if not public_key.verifies(made, message):
        raise SigningError("signer", "a signature that does not verify", f"one by the key {public_key.keyid}")
    return public_key.keyid, made
