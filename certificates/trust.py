"""Whose signature counts: the user's own signing key, and the public keys that the user trusts. (trusted)

Both live in one directory that only its owner can change. The store is read as strictly as a certificate, whole, when
a TrustStore is made; changes are made under a lock and replace the file in one step, so that several processes can
share the directory.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.signer import CryptoSigner, Signer  # type: ignore[attr-defined]

from certificates.canonical import strict_json
from certificates.errors import FileError, KeyExistsError, TrustStoreError
from certificates.files import OTHERS_WRITE, read_bounded, require_mode, write_atomically
from certificates.locks import hold
from certificates.schema import convert
from certificates.signing import KEY_TYPE, Passphrase, PublicKey, load_key_file, save_key
from certificates.temporary import throw_away_left

STORE_NAME: Final = "trusted-keys.json"
KEY_NAME: Final = "signing-key.pem"
UNFINISHED_NAME: Final = "unfinished-key.txt"
"""Says, while a signing key is made, which one: its public half."""
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
        if not self._exists():
            return ()
        where = str(self.path)
        document = strict_json(read_bounded(self.path, forbidden=OTHERS_WRITE), where)
        record = convert(document, _StoreRecord, where)
        keys = tuple(
            TrustedKey(item.name, PublicKey.from_text(item.public, f"{where}: keys[{number}].public"))
            for number, item in enumerate(record.keys)
        )
        for number, trusted in enumerate(keys):
            if not trusted.name.isprintable():
                raise TrustStoreError(f"{where}: keys[{number}].name", trusted.name, "printable characters only")
        _require_distinct(keys, where)
        return keys

    def _exists(self) -> bool:
        """Whether there is a store. Nobody else may change its directory, or that of the file which it is a link to.

        A link that leads nowhere is an error, not an empty store; so is what this user is not let see.
        """
        try:
            if not _is_there(self.directory):
                return False
            for place in (self.directory, Path(os.path.realpath(self.path)).parent):
                if not stat.S_ISDIR((status := place.stat()).st_mode):
                    raise FileError(str(place), "something that is not a directory", "the directory of your keys")
                require_mode(str(place), status, OTHERS_WRITE)
            return _is_there(self.path)
        except OSError as error:
            got = (error.strerror or "an error").lower()
            raise FileError(str(self.directory), got, "the directory of your keys") from None

    def _write(self, keys: tuple[TrustedKey, ...]) -> None:
        records = tuple(_KeyRecord(name=item.name, keytype=KEY_TYPE, public=item.key.text) for item in keys)
        record = _StoreRecord(type_="sigmacert trusted keys", schema_version="1", keys=records)
        text = json.dumps(msgspec.to_builtins(record), indent=2, ensure_ascii=False)
        write_atomically(self.path, f"{text}\n".encode())
        self._keys = keys


def _is_there(path: Path) -> bool:
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def _require_distinct(keys: tuple[TrustedKey, ...], where: str) -> None:
    for number, trusted in enumerate(keys):
        for other in keys[:number]:
            if other.name == trusted.name:
                raise TrustStoreError(where, f"two keys named {trusted.name}", "one key to a name")
            if other.key == trusted.key:
                raise TrustStoreError(where, f"a key that is there as {other.name}", "each key once")


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the directory, made where it is not there (mode 0700), against other processes that change it.

    Waits for them. A lock ends with its process, so that none is left by one that was killed.
    """
    with contextlib.ExitStack() as held:
        try:
            _make(directory)
            require_mode(str(directory), directory.stat(), OTHERS_WRITE)
            descriptor = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
            hold(held.enter_context(open(descriptor, "rb")), wait=True)
        except OSError as error:
            raise FileError(str(directory), (error.strerror or "").lower(), "a directory for your keys") from None
        yield


def _make(directory: Path) -> None:
    """The directory, and those above it that are missing; what is made is closed to others, whatever the umask."""
    for place in (*reversed(directory.parents), directory):
        if place == directory or not place.exists():
            place.mkdir(mode=0o700, exist_ok=True)


def require_place(directory: Path | None = None) -> None:
    """Refuse a directory in which no key could be made; nothing is made yet. Raises FileError."""
    directory = home() if directory is None else directory
    place = next(place for place in (directory, *directory.parents) if os.path.lexists(place))
    if not (place.is_dir() and os.access(place, os.W_OK | os.X_OK)):
        got = "a directory that cannot be written to" if place.is_dir() else "something that is not a directory"
        raise FileError(str(place), got, "a directory for your keys")


def create_signing_key(directory: Path | None = None, passphrase: bytes | None = None) -> SigningKey:
    """A new signing key for this user, trusted from now on. Raises KeyExistsError where there is one."""
    directory = home() if directory is None else directory
    with locked(directory):
        _settle(directory)
        return _create(directory, passphrase)


def ensure_signing_key(directory: Path | None = None, passphrase: Passphrase | None = None) -> SigningKey:
    """The user's signing key; on first use it is made, without a passphrase, and trusted.

    A key that is there is not trusted again: its owner may have had a reason to remove it from the store.
    """
    directory = home() if directory is None else directory
    path = directory / KEY_NAME
    with locked(directory):
        _settle(directory)
        if not os.path.lexists(path):
            return _create(directory, None)
    return SigningKey(load_key_file(path, passphrase), path, made=False)


def _create(directory: Path, passphrase: bytes | None) -> SigningKey:
    """Under the lock. Trusted first, then on the disk: at no moment is there a key whose certificates do not count."""
    path = directory / KEY_NAME
    if os.path.lexists(path):
        raise KeyExistsError(str(path), "a file that exists", "a new one (none is replaced)")
    private = Ed25519PrivateKey.generate()
    public_key = PublicKey(private.public_key().public_bytes_raw())
    store = TrustStore(directory)
    write_atomically(directory / UNFINISHED_NAME, public_key.text.encode())
    try:
        store._add(TrustedKey(f"own key {public_key.keyid[:8]}", public_key))
        save_key(private, path, passphrase)
    finally:
        _settle(directory)
    return SigningKey(CryptoSigner(private), path, made=True)


def _settle(directory: Path) -> None:
    """Under the lock: end the making of a signing key, perhaps by a process that was killed. A key that did not come to
    be is not trusted; one that is on the disk is."""
    note = directory / UNFINISHED_NAME
    if not os.path.lexists(note):
        return
    text = read_bounded(note, forbidden=OTHERS_WRITE).decode("ascii", "replace")
    key = PublicKey.from_text(text, str(note))
    throw_away_left(directory / KEY_NAME)
    if not os.path.lexists(directory / KEY_NAME):
        store = TrustStore(directory)
        if store.lookup(key.keyid) is not None:
            store._write(tuple(trusted for trusted in store.keys if trusted.key != key))
    note.unlink()
