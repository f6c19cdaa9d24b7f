"""Whose signature counts: the user's own signing key, and the public keys that the user trusts. (trusted)

Both live in one directory that only its owner can change. The store is read as strictly as a certificate, whole, when
a TrustStore is made; changes are made under a lock and replace the file in one step, so that several processes can
share the directory.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.signer import CryptoSigner, Signer  # type: ignore[attr-defined]

from certificates.canonical import strict_json
from certificates.errors import FileError, TrustStoreError
from certificates.files import OTHERS_WRITE, read_bounded, require_mode, write_atomically
from certificates.schema import convert
from certificates.signing import KEY_TYPE, Passphrase, PublicKey, load_key_file, save_key

try:
    import fcntl
except ImportError:  # Windows: one process at a time.
    fcntl = None  # type: ignore[assignment]

STORE_NAME: Final = "trusted-keys.json"
KEY_NAME: Final = "signing-key.pem"
MAX_NAME: Final = 64


class _KeyRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
    keytype: Literal["ed25519"]
    public: str


class _StoreRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    type_: Literal["sigmacert trusted keys"] = msgspec.field(name="_type")
    schema_version: Literal["1"]
    keys: tuple[_KeyRecord, ...]


@dataclass(frozen=True)
class TrustedKey:
    """A public key and the name that the user gave it."""

    name: str
    key: PublicKey


@dataclass(frozen=True)
class SigningKey:
    """The user's signing key; ``made`` says that there was none before."""

    signer: Signer
    path: Path
    made: bool


def home(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """The directory of keys: AUDIT_HOME, or ``sigmacert`` in the user's configuration directory. It need not exist."""
    if chosen := environ.get("AUDIT_HOME"):
        return Path(chosen).absolute()
    variable = {"win32": "APPDATA", "darwin": ""}.get(platform, "XDG_CONFIG_HOME")
    # The XDG specification: a relative path there is to be ignored.
    if (configured := environ.get(variable)) and Path(configured).is_absolute():
        return Path(configured) / "sigmacert"
    usual = {"win32": "AppData/Roaming", "darwin": "Library/Application Support"}.get(platform, ".config")
    try:
        return Path.home() / usual / "sigmacert"
    except RuntimeError:
        raise FileError("AUDIT_HOME", "nothing, and no home directory", "the directory of your keys") from None


class TrustStore:
    """The trusted keys of a directory (home() unless one is named), as they were when this was made or last changed it.

    Raises CertificateError where the store is malformed, holds an unsound key, or can be changed by other users.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = home() if directory is None else directory
        self._keys = self._read()

    @property
    def path(self) -> Path:
        """The store's file; it need not exist."""
        return self.directory / STORE_NAME

    @property
    def keys(self) -> tuple[TrustedKey, ...]:
        """All trusted keys, in the order in which they were added."""
        return self._keys

    def lookup(self, keyid: str) -> TrustedKey | None:
        """The trusted key with this identifier, which is computed from the key."""
        return next((trusted for trusted in self._keys if trusted.key.keyid == keyid), None)

    def add(self, name: str, key: PublicKey) -> TrustedKey:
        """Trust ``key`` under ``name``; nothing changes where it is there already under that name."""
        if not 0 < len(name) <= MAX_NAME or not name.isprintable():
            raise TrustStoreError("name", name, f"1 to {MAX_NAME} printable characters")
        trusted = TrustedKey(name, key)
        with locked(self.directory):
            self._add(trusted)
        return trusted

    def _add(self, trusted: TrustedKey) -> None:
        """As add; the caller holds the lock."""
        self._keys = self._read()
        if trusted not in self._keys:
            _require_distinct((*self._keys, trusted), "trust store")
            self._write((*self._keys, trusted))

    def remove(self, name_or_keyid: str) -> TrustedKey:
        """Trust the key of this name, or of this identifier, no longer."""
        with locked(self.directory):
            self._keys = self._read()
            for trusted in self._keys:
                if name_or_keyid in (trusted.name, trusted.key.keyid):
                    self._write(tuple(other for other in self._keys if other != trusted))
                    return trusted
        raise TrustStoreError("trust store", name_or_keyid, "the name or the identifier of a trusted key")

    def _read(self) -> tuple[TrustedKey, ...]:
        if not self.directory.exists():
            return ()
        require_mode(str(self.directory), self.directory.stat(), OTHERS_WRITE)
        # A link that leads nowhere is an error, not an empty store.
        if not os.path.lexists(self.path):
            return ()
        where = str(self.path)
        document = strict_json(read_bounded(self.path, forbidden=OTHERS_WRITE), where)
        record = convert(document, _StoreRecord, where)
        keys = tuple(
            TrustedKey(item.name, PublicKey.from_text(item.public, f"{where}: keys[{number}].public"))
            for number, item in enumerate(record.keys)
        )
        _require_distinct(keys, where)
        return keys

    def _write(self, keys: tuple[TrustedKey, ...]) -> None:
        records = tuple(_KeyRecord(name=item.name, keytype=KEY_TYPE, public=item.key.text) for item in keys)
        record = _StoreRecord(type_="sigmacert trusted keys", schema_version="1", keys=records)
        text = json.dumps(msgspec.to_builtins(record), indent=2, ensure_ascii=False)
        write_atomically(self.path, f"{text}\n".encode())
        self._keys = keys


def _require_distinct(keys: tuple[TrustedKey, ...], where: str) -> None:
    for number, trusted in enumerate(keys):
        for other in keys[:number]:
            if other.name == trusted.name:
                raise TrustStoreError(where, f"two keys named {trusted.name}", "one key to a name")
            if other.key == trusted.key:
                raise TrustStoreError(where, f"a key that is there as {other.name}", "each key once")


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the directory, made where it is not there (mode 0700), against other processes that change it."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_mode(str(directory), directory.stat(), OTHERS_WRITE)
        descriptor = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise FileError(str(directory), (error.strerror or "").lower(), "a directory for your keys") from None
    with open(descriptor, "rb") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def create_signing_key(directory: Path | None = None, passphrase: bytes | None = None) -> SigningKey:
    """A new signing key for this user, trusted from now on. Raises KeyExistsError where there is one."""
    directory = home() if directory is None else directory
    with locked(directory):
        return _create(directory, passphrase)


def ensure_signing_key(directory: Path | None = None, passphrase: Passphrase | None = None) -> SigningKey:
    """The user's signing key; on first use it is made, without a passphrase, and trusted.

    A key that is there is not trusted again: its owner may have had a reason to remove it from the store.
    """
    directory = home() if directory is None else directory
    path = directory / KEY_NAME
    with locked(directory):
        if not os.path.lexists(path):
            return _create(directory, None)
    return SigningKey(load_key_file(path, passphrase), path, made=False)


def _create(directory: Path, passphrase: bytes | None) -> SigningKey:
    """Under the lock. Trusted first, then on the disk: at no moment is there a key whose certificates do not count."""
    path = directory / KEY_NAME
    private = Ed25519PrivateKey.generate()
    public_key = PublicKey(private.public_key().public_bytes_raw())
    store = TrustStore(directory)
    before = store.keys
    with contextlib.ExitStack() as undo:
        store._add(TrustedKey(f"own key {public_key.keyid[:8]}", public_key))
        undo.callback(store._write, before)
        save_key(private, path, passphrase)
        undo.pop_all()
    return SigningKey(CryptoSigner(private), path, made=True)
