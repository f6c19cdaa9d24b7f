"""Keys and signatures."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from certificates import signing
from certificates.errors import (
    CertificateError,
    FileError,
    KeyExistsError,
    KeyRefusedError,
    PassphraseError,
    PermissionsError,
    SigningError,
    TooLargeError,
)
from certificates.signing import (
    MAX_KEY_BYTES,
    PublicKey,
    create_key_file,
    load_key_file,
    read_public_key,
    sign,
)
from tests.certificates.support import MESSAGE, PUBLIC, SIGNATURE, message

P = 2**255 - 19

SMALL_ORDER = [
    # y = 0 (order 4), 1 (order 1), −1 (order 2), the two of order 8, and p, p + 1: each with the sign bit 0 and 1
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
]


@pytest.mark.parametrize("text", SMALL_ORDER)
def test_small_order_key_is_refused(text: str) -> None:
    with pytest.raises(KeyRefusedError) as caught:
        PublicKey.from_text(text)
    expected = "a key that is not of small order (with this one, anyone can sign)"
    assert message(caught) == ("public key", text, expected)


def test_unsound_key_is_named_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "public.pem"
    pem = PublicKey.from_text(PUBLIC).pem()
    der = base64.b64decode(b"".join(pem.splitlines()[1:-1]))
    unsound = base64.b64encode(der[:-32] + bytes.fromhex(SMALL_ORDER[2]))
    path.write_bytes(b"-----BEGIN PUBLIC KEY-----\n" + unsound + b"\n-----END PUBLIC KEY-----\n")
    with pytest.raises(KeyRefusedError) as caught:
        read_public_key(str(path))
    assert message(caught)[:2] == (str(path), SMALL_ORDER[2])
    with pytest.raises(KeyRefusedError) as caught:
        PublicKey.from_text(SMALL_ORDER[2], "keys[0]")
    assert caught.value.where == "keys[0]"


def test_small_order_table_is_complete() -> None:
    """Every encoding whose y is a root of the polynomial: 7 values of y below 2^255, 2 signs each."""
    d = -121665 * pow(121666, -1, P) % P
    roots = {int.from_bytes(bytes.fromhex(text), "little") & (2**255 - 1) for text in SMALL_ORDER}
    assert len(roots) == 7
    assert all(y * (y * y - 1) * (d * y**4 + 2 * y * y - 1) % P == 0 for y in roots)
    assert {y % P for y in roots} == {0, 1, P - 1, *(y for y in roots if 1 < y < P - 1)}
    assert len({y % P for y in roots}) == 5  # a polynomial of degree 7; d y⁴ + 2y² − 1 has two roots in the field


def test_key_that_signs_everything() -> None:
    """The crafted signature verifies under the neutral element for any message, in the library that is used here."""
    crafted = bytes.fromhex("01" + "00" * 63)
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    Ed25519PublicKey.from_public_bytes(bytes.fromhex(SMALL_ORDER[2])).verify(crafted, b"anything at all")
    with pytest.raises(KeyRefusedError):
        PublicKey.from_text(SMALL_ORDER[2])


@pytest.mark.parametrize("y", range(2, 19))
def test_second_encoding_of_a_point_is_refused(y: int) -> None:
    raw = (y + P).to_bytes(32, "little")
    with pytest.raises(KeyRefusedError) as caught:
        PublicKey(raw)
    assert message(caught) == ("public key", raw.hex(), "the shortest encoding of a public key")


def test_bytes_that_are_no_point_are_refused() -> None:
    refused = 0
    for y in range(2, 60):
        try:
            PublicKey(y.to_bytes(32, "little"))
        except KeyRefusedError as error:
            assert error.where == "public key"
            assert error.got == y.to_bytes(32, "little").hex()
            assert error.expected == "a point of the curve edwards25519"
            refused += 1
    assert 15 < refused < 45  # about half of all y have no x


@pytest.mark.parametrize(
    "text", [PUBLIC.upper(), PUBLIC[:-1], PUBLIC + "0", " " + PUBLIC[1:], "x" * 64, "", PUBLIC + "\n"]
)
def test_key_text_of_another_form(text: str) -> None:
    with pytest.raises(KeyRefusedError) as caught:
        PublicKey.from_text(text)
    assert message(caught) == ("public key", text, "64 lower-case hex digits")
    with pytest.raises(KeyRefusedError) as caught:
        PublicKey.from_text(text, "keys[0]")
    assert caught.value.where == "keys[0]"


def test_key_of_another_length() -> None:
    with pytest.raises(KeyRefusedError) as caught:
        PublicKey(bytes(31))
    assert message(caught) == ("public key", "31 bytes", "the 32 bytes of an Ed25519 key")


def test_published_vector() -> None:
    key = PublicKey.from_text(PUBLIC)
    assert key.verifies(SIGNATURE, MESSAGE)
    assert not key.verifies(SIGNATURE, MESSAGE + b"x")


def test_keyid_is_the_digest_of_the_key() -> None:
    text = f'{{"keytype":"ed25519","keyval":{{"public":"{PUBLIC}"}},"scheme":"ed25519"}}'
    assert PublicKey.from_text(PUBLIC).keyid == hashlib.sha256(text.encode()).hexdigest()


ORDER = 2**252 + 27742317777372353535851937790883648493


def _plus_order(signature: str) -> str:
    """The same signature with S + L for S: it satisfies the equation, and RFC 8032 says to refuse it."""
    s = int.from_bytes(bytes.fromhex(signature[64:]), "little") + ORDER
    return signature[:64] + s.to_bytes(32, "little").hex()


@pytest.mark.parametrize(
    "signature",
    [
        SIGNATURE.upper(),
        SIGNATURE[:64] + " " + SIGNATURE[64:],
        SIGNATURE + "\n",
        SIGNATURE[:-2],
        SIGNATURE + "00",
        SIGNATURE.replace("0", "\u0660", 1),
        "00" * 64,
        "",
        _plus_order(SIGNATURE),
    ],
    ids=["upper_case", "blank", "line_break", "short", "long", "other_digits", "zero", "empty", "second_encoding"],
)
def test_signature_that_is_not_the_one(signature: str) -> None:
    assert not PublicKey.from_text(PUBLIC).verifies(signature, MESSAGE)


def test_key_file_round_trip(tmp_path: Path) -> None:
    made = create_key_file(tmp_path / "key.pem")
    assert (tmp_path / "key.pem").stat().st_mode & 0o777 == 0o600
    assert b"BEGIN PRIVATE KEY" in (tmp_path / "key.pem").read_bytes()
    loaded = load_key_file(tmp_path / "key.pem")
    assert PublicKey.of_signer(loaded) == PublicKey.of_signer(made)
    keyid, signature = sign(loaded, b"m")
    assert keyid == PublicKey.of_signer(made).keyid
    assert PublicKey.of_signer(made).verifies(signature, b"m")


def test_key_file_is_not_replaced(tmp_path: Path) -> None:
    create_key_file(tmp_path / "key.pem")
    before = (tmp_path / "key.pem").read_bytes()
    with pytest.raises(KeyExistsError):
        create_key_file(tmp_path / "key.pem")
    assert (tmp_path / "key.pem").read_bytes() == before


def test_encrypted_key_file(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    made = create_key_file(path, b"open sesame")
    assert b"BEGIN ENCRYPTED PRIVATE KEY" in path.read_bytes()
    assert PublicKey.of_signer(load_key_file(path, lambda: b"open sesame")) == PublicKey.of_signer(made)
    with pytest.raises(PassphraseError) as caught:
        load_key_file(path, lambda: b"close sesame")
    assert message(caught) == (str(path), "a passphrase that does not open it", "the key's own")
    for ask in (None, lambda: b""):
        with pytest.raises(PassphraseError) as caught:
            load_key_file(path, ask)
        assert message(caught) == (str(path), "an encrypted key", "its passphrase")


def test_passphrase_is_not_asked_in_vain(tmp_path: Path) -> None:
    create_key_file(tmp_path / "key.pem")
    load_key_file(tmp_path / "key.pem", lambda: pytest.fail("asked"))


def test_empty_passphrase(tmp_path: Path) -> None:
    with pytest.raises(PassphraseError) as caught:
        create_key_file(tmp_path / "key.pem", b"")
    assert message(caught) == ("passphrase", "an empty one", "at least one character")
    assert not (tmp_path / "key.pem").exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_key_file_open_to_others(tmp_path: Path, mode: int) -> None:
    create_key_file(tmp_path / "key.pem")
    (tmp_path / "key.pem").chmod(mode)
    with pytest.raises(PermissionsError, match="mode 0600"):
        load_key_file(tmp_path / "key.pem")


def _other_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def test_key_file_of_another_kind(tmp_path: Path) -> None:
    pem = _other_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(KeyRefusedError) as caught:
        load_key_file(_write(tmp_path / "key.pem", pem))
    where, got, expected = message(caught)
    assert (where, expected) == (str(tmp_path / "key.pem"), "an Ed25519 private key in PEM form")
    assert re.fullmatch(r"a key of another kind \(\w*PrivateKey\)", str(got))


@pytest.mark.parametrize("data", [b"", b"nonsense", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_key_file_without_a_key(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(KeyRefusedError) as caught:
        load_key_file(_write(tmp_path / "key.pem", data))
    assert message(caught) == (str(tmp_path / "key.pem"), "something else", "an Ed25519 private key in PEM form")


@pytest.mark.parametrize(("read", "mode"), [(load_key_file, 0o600), (read_public_key, 0o644)])
def test_key_file_too_large(tmp_path: Path, read: Callable[[str], object], mode: int) -> None:
    (tmp_path / "key.pem").write_bytes(b"x" * (MAX_KEY_BYTES + 1))
    (tmp_path / "key.pem").chmod(mode)
    with pytest.raises(TooLargeError):
        read(str(tmp_path / "key.pem"))


def test_public_key_from_file_and_from_text(tmp_path: Path) -> None:
    key = PublicKey.of_signer(create_key_file(tmp_path / "key.pem"))
    (tmp_path / "public.pem").write_bytes(key.pem())
    assert read_public_key(str(tmp_path / "public.pem")) == key
    assert read_public_key(key.text) == key


def test_public_key_file_with_a_private_key(tmp_path: Path) -> None:
    create_key_file(tmp_path / "key.pem")
    path = str(tmp_path / "key.pem")
    with pytest.raises(KeyRefusedError) as caught:
        read_public_key(path)
    assert message(caught) == (path, "a private key", "an Ed25519 public key in PEM form")
    with pytest.raises(KeyRefusedError, match=r"^public key: got a private key"):
        PublicKey.from_pem((tmp_path / "key.pem").read_bytes())


def test_public_key_file_of_another_kind(tmp_path: Path) -> None:
    pem = _other_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    path = str(_write(tmp_path / "public.pem", pem))
    with pytest.raises(KeyRefusedError) as caught:
        read_public_key(path)
    where, got, expected = message(caught)
    assert (where, expected) == (path, "an Ed25519 public key in PEM form")
    assert re.fullmatch(r"a key of another kind \(\w*PublicKey\)", str(got))


def test_public_key_file_without_a_key(tmp_path: Path) -> None:
    path = str(_write(tmp_path / "public.pem", b"nonsense"))
    with pytest.raises(KeyRefusedError) as caught:
        read_public_key(path)
    assert message(caught) == (path, "something else", "an Ed25519 public key in PEM form")
    with pytest.raises(FileError):
        read_public_key(str(tmp_path / "missing.pem"))


def test_every_error_is_one_class_of_this_package() -> None:
    assert issubclass(SigningError, CertificateError)
    assert issubclass(CertificateError, ValueError)
    assert signing.KEY_TYPE == "ed25519"


def test_keys_of_generated_pairs_are_sound() -> None:
    for _ in range(20):
        raw = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
        assert PublicKey(raw).raw == raw
