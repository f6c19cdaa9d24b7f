"""The user's own key: where it can be made, and what a run that was killed while it made one leaves."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certificates import trust
from certificates.errors import FileError, KeyExistsError, KeyRefusedError, PermissionsError
from certificates.signing import PublicKey, save_key
from certificates.trust import (
    KEY_NAME,
    STORE_NAME,
    UNFINISHED_NAME,
    TrustStore,
    create_signing_key,
    ensure_signing_key,
    require_place,
)
from tests.certificates.support import PUBLIC, message

PLACE = "a directory for your keys"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "above" / "home"


def test_directories_above_are_made_and_closed(directory: Path) -> None:
    before = os.umask(0)
    try:
        ensure_signing_key(directory)
    finally:
        os.umask(before)
    for path, mode in ((directory.parent, 0o700), (directory, 0o700), (directory / ".lock", 0o600)):
        assert path.stat().st_mode & 0o777 == mode
    assert ensure_signing_key(directory).made is False


def test_place_for_keys(directory: Path) -> None:
    require_place(directory)
    assert not directory.parent.exists()
    ensure_signing_key(directory)
    require_place(directory)


def test_usual_place_for_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setattr(trust, "home", lambda: tmp_path / "file" / "home")
    with pytest.raises(FileError) as caught:
        require_place()
    assert message(caught) == (str(tmp_path / "file"), "something that is not a directory", PLACE)


@pytest.mark.parametrize("denied", [os.W_OK, os.X_OK])
def test_place_that_cannot_be_written_to(directory: Path, monkeypatch: pytest.MonkeyPatch, denied: int) -> None:
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & denied)
    with pytest.raises(FileError) as caught:
        require_place(directory)
    assert message(caught) == (str(directory.parent.parent), "a directory that cannot be written to", PLACE)


def test_link_that_leads_nowhere_is_no_place(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(FileError) as caught:
        require_place(tmp_path / "link")
    assert message(caught) == (str(tmp_path / "link"), "something that is not a directory", PLACE)


def test_store_in_a_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileError) as caught:
        TrustStore(tmp_path / "file")
    expected = (str(tmp_path / "file"), "something that is not a directory", "the directory of your keys")
    assert message(caught) == expected


def test_store_that_is_a_link_into_a_directory_of_others(tmp_path: Path) -> None:
    mine, others = tmp_path / "mine", tmp_path / "others"
    TrustStore(others).add("friend", PublicKey.from_text(PUBLIC))
    mine.mkdir(mode=0o700)
    (mine / STORE_NAME).symlink_to(others / STORE_NAME)
    assert TrustStore(mine).keys == TrustStore(others).keys
    others.chmod(0o770)
    with pytest.raises(PermissionsError) as caught:
        TrustStore(mine)
    assert message(caught) == (str(others), "mode 0770", "mode 0750, closed to others")


@pytest.mark.parametrize(
    ("error", "got"),
    [(PermissionError(errno.EACCES, "Permission denied"), "permission denied"), (OSError(), "an error")],
)
def test_store_that_cannot_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, got: str) -> None:
    """It is no empty store."""

    def refuse(_: Path) -> os.stat_result:
        raise error

    monkeypatch.setattr(Path, "lstat", refuse)
    with pytest.raises(FileError) as caught:
        TrustStore(tmp_path)
    assert message(caught) == (str(tmp_path), got, "the directory of your keys")


def test_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileError) as caught:
        ensure_signing_key(tmp_path / "file" / "home")
    assert message(caught) == (str(tmp_path / "file" / "home"), "not a directory", PLACE)


def test_own_key_that_is_there_is_not_made_again(directory: Path) -> None:
    path = ensure_signing_key(directory).path
    with pytest.raises(KeyExistsError) as caught:
        create_signing_key(directory)
    assert message(caught) == (str(path), "a file that exists", "a new one (none is replaced)")
    path.unlink()
    path.symlink_to(directory / "gone")
    with pytest.raises(KeyExistsError):
        create_signing_key(directory)


# What a run that was killed leaves.


class Killed:
    """A directory with one key that is trusted, and another that was being made."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.note = directory, directory / UNFINISHED_NAME
        self.private = Ed25519PrivateKey.generate()
        self.key = PublicKey(self.private.public_key().public_bytes_raw())
        self.store = TrustStore(directory)
        self.store.add("friend", PublicKey.from_text(PUBLIC))
        self.note.write_text(self.key.text)

    def names(self) -> list[str]:
        return [trusted.name for trusted in TrustStore(self.directory).keys]


@pytest.fixture
def killed(directory: Path) -> Killed:
    return Killed(directory)


@pytest.mark.parametrize("is_trusted", [False, True])
@pytest.mark.parametrize("make", [create_signing_key, ensure_signing_key])
def test_key_that_did_not_come_to_be_is_not_trusted(killed: Killed, is_trusted: bool, make: object) -> None:
    if is_trusted:
        killed.store.add("own key", killed.key)
    left = killed.directory / f".{KEY_NAME}.0123456789abcdef.tmp"
    left.write_bytes(b"half a key")
    assert callable(make)
    made = make(killed.directory)
    assert made.made
    keyid = PublicKey.of_signer(made.signer).keyid
    assert killed.names() == ["friend", f"own key {keyid[:8]}"]
    assert sorted(os.listdir(killed.directory)) == [".lock", KEY_NAME, STORE_NAME]


def test_key_that_is_on_the_disk_is_trusted(killed: Killed) -> None:
    killed.store.add("own key", killed.key)
    save_key(killed.private, killed.directory / KEY_NAME)
    found = ensure_signing_key(killed.directory)
    assert not found.made
    assert PublicKey.of_signer(found.signer) == killed.key
    assert killed.names() == ["friend", "own key"]
    assert not killed.note.exists()


def test_store_that_needs_no_change_is_not_written(killed: Killed) -> None:
    before = killed.store.path.stat().st_ino
    trust._settle(killed.directory)
    assert killed.store.path.stat().st_ino == before
    assert not killed.note.exists()


@pytest.mark.parametrize("text", [b"", b"\xff" * 64, b"01" + b"00" * 31])
def test_note_that_is_no_key(killed: Killed, text: bytes) -> None:
    killed.note.write_bytes(text)
    with pytest.raises(KeyRefusedError) as caught:
        ensure_signing_key(killed.directory)
    assert caught.value.where == str(killed.note)


def test_note_that_others_can_write(killed: Killed) -> None:
    killed.note.chmod(0o666)
    with pytest.raises(PermissionsError) as caught:
        ensure_signing_key(killed.directory)
    assert caught.value.where == str(killed.note)
