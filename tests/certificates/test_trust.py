"""The trust store and the user's own key."""

from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from certificates import trust
from certificates.canonical import strict_json
from certificates.errors import (
    CertificateError,
    FieldNameError,
    FileError,
    KeyExistsError,
    KeyRefusedError,
    NotJsonError,
    PassphraseError,
    PermissionsError,
    SchemaError,
    TooLargeError,
    TrustStoreError,
)
from certificates.signing import PublicKey, create_key_file
from certificates.trust import KEY_NAME, STORE_NAME, TrustStore, create_signing_key, ensure_signing_key, home


@pytest.fixture
def keys(tmp_path: Path) -> list[PublicKey]:
    return [PublicKey.of_signer(create_key_file(tmp_path / f"{number}.pem")) for number in range(3)]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_home_is_where_the_user_says() -> None:
    assert home({"AUDIT_HOME": "/keys", "XDG_CONFIG_HOME": "/config"}, "linux") == Path("/keys")
    assert home({"AUDIT_HOME": "keys"}, "linux") == Path("keys").absolute()


@pytest.mark.parametrize(
    ("environ", "platform", "expected"),
    [
        ({"XDG_CONFIG_HOME": "/config"}, "linux", Path("/config/sigmacert")),
        ({"XDG_CONFIG_HOME": "relative"}, "linux", Path.home() / ".config/sigmacert"),
        ({"AUDIT_HOME": ""}, "linux", Path.home() / ".config/sigmacert"),
        ({"XDG_CONFIG_HOME": "/config"}, "darwin", Path.home() / "Library/Application Support/sigmacert"),
        ({"APPDATA": "/roaming"}, "win32", Path("/roaming/sigmacert")),
        ({}, "win32", Path.home() / "AppData/Roaming/sigmacert"),
    ],
)
def test_usual_home(environ: dict[str, str], platform: str, expected: Path) -> None:
    assert home(environ, platform) == expected


def test_no_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(FileError, match="AUDIT_HOME"):
        home({}, "linux")


def test_store_is_that_of_home_unless_another_is_named(
    directory: Path, keys: list[PublicKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust, "home", lambda: directory)
    TrustStore().add("a", keys[0])
    assert TrustStore(directory).keys == TrustStore().keys
    assert create_signing_key().path.parent == directory
    assert not ensure_signing_key().made


def test_no_directory_is_an_empty_store(directory: Path) -> None:
    assert TrustStore(directory).keys == ()
    assert not directory.exists()
    directory.mkdir()
    assert TrustStore(directory).keys == ()


def test_add_lookup_remove(directory: Path, keys: list[PublicKey]) -> None:
    store = TrustStore(directory)
    store.add("alpha", keys[0])
    store.add("beta", keys[1])
    again = TrustStore(directory)
    assert [item.name for item in again.keys] == ["alpha", "beta"]
    found = again.lookup(keys[1].keyid)
    assert found is not None
    assert found.key == keys[1]
    assert again.lookup(keys[2].keyid) is None
    assert again.remove("alpha").key == keys[0]
    assert again.remove(keys[1].keyid).name == "beta"
    assert again.keys == TrustStore(directory).keys == ()
    assert directory.stat().st_mode & 0o777 == 0o700


def test_adding_the_same_again_changes_nothing(directory: Path, keys: list[PublicKey]) -> None:
    store = TrustStore(directory)
    store.add("alpha", keys[0])
    before = store.path.stat().st_mtime_ns
    store.add("alpha", keys[0])
    assert store.path.stat().st_mtime_ns == before
    assert len(store.keys) == 1


def test_name_of_another_key(directory: Path, keys: list[PublicKey]) -> None:
    store = TrustStore(directory)
    store.add("alpha", keys[0])
    with pytest.raises(TrustStoreError, match="two keys named alpha"):
        store.add("alpha", keys[1])
    with pytest.raises(TrustStoreError, match="a key that is there as alpha"):
        store.add("beta", keys[0])
    assert [item.name for item in TrustStore(directory).keys] == ["alpha"]


@pytest.mark.parametrize("name", ["", "x" * 65, "a\nb", "a\u202eb"])
def test_name_that_is_none(directory: Path, keys: list[PublicKey], name: str) -> None:
    with pytest.raises(TrustStoreError, match="1 to 64 printable characters"):
        TrustStore(directory).add(name, keys[0])


def test_removing_what_is_not_there(directory: Path, keys: list[PublicKey]) -> None:
    store = TrustStore(directory)
    store.add("alpha", keys[0])
    with pytest.raises(TrustStoreError, match="beta"):
        store.remove("beta")
    with pytest.raises(TrustStoreError):
        store.remove(keys[0].keyid[:8])  # a part of an identifier could be made to fit another key


def test_two_stores_of_one_directory_see_each_other(directory: Path, keys: list[PublicKey]) -> None:
    one, other = TrustStore(directory), TrustStore(directory)
    one.add("alpha", keys[0])
    other.add("beta", keys[1])
    assert [item.name for item in TrustStore(directory).keys] == ["alpha", "beta"]
    one.remove("beta")
    assert [item.name for item in one.keys] == ["alpha"]


def _entry(key: PublicKey | str, name: str = "alpha", **more: Any) -> dict[str, Any]:
    return {"name": name, "keytype": "ed25519", "public": key if isinstance(key, str) else key.text, **more}


def _store(*entries: object) -> dict[str, Any]:
    return {"_type": "sigmacert trusted keys", "schema_version": "1", "keys": list(entries)}


def _written(directory: Path, text: str) -> Path:
    directory.mkdir(mode=0o700)
    (directory / STORE_NAME).write_text(text)
    return directory


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda key: _store(_entry(key, keyid="0" * 64)), SchemaError),
        (lambda key: _store({"name": "alpha", "keytype": "hmac", "public": key.text}), SchemaError),
        (lambda key: _store(_entry(key, name="")), SchemaError),
        (lambda key: _store(_entry(key), _entry(key, "beta")), TrustStoreError),
        (lambda key: _store(_entry("01" + "00" * 31)), KeyRefusedError),
        (lambda key: _store(_entry(key.text.upper())), KeyRefusedError),
        (lambda key: {**_store(), "schema_version": "2"}, SchemaError),
        (lambda key: {**_store(), "more": 1}, SchemaError),
        (lambda key: [], SchemaError),
    ],
    ids=["keyid_field", "other_algorithm", "no_name", "key_twice", "small_order_key", "upper_case", "other_version",
         "unknown_field", "list"],
)  # fmt: skip
def test_store_spoiled_by_hand(
    directory: Path, keys: list[PublicKey], change: Any, error: type[CertificateError]
) -> None:
    with pytest.raises(error) as caught:
        TrustStore(_written(directory, json.dumps(change(keys[0]))))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("text", "error"),
    [("", NotJsonError), ('{"keys":[],"keys":[]}', FieldNameError), (" " * (1 << 20) + "1", TooLargeError)],
)
def test_store_that_is_not_strict_json(directory: Path, text: str, error: type[CertificateError]) -> None:
    with pytest.raises(error, match="trusted-keys"):
        TrustStore(_written(directory, text))


def test_store_is_not_written_over_when_it_is_malformed(directory: Path, keys: list[PublicKey]) -> None:
    store = TrustStore(directory)
    _written(directory, "{")
    with pytest.raises(NotJsonError):
        store.add("alpha", keys[0])
    assert (directory / STORE_NAME).read_text() == "{"


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_store_that_others_can_write(directory: Path, keys: list[PublicKey], mode: int) -> None:
    TrustStore(directory).add("alpha", keys[0])
    (directory / STORE_NAME).chmod(mode)
    with pytest.raises(PermissionsError, match="mode 0644"):
        TrustStore(directory)


def test_directory_that_others_can_write(directory: Path, keys: list[PublicKey]) -> None:
    store = TrustStore(directory)
    store.add("alpha", keys[0])
    directory.chmod(0o770)
    for use in (lambda: TrustStore(directory), lambda: store.remove("alpha"), lambda: ensure_signing_key(directory)):
        with pytest.raises(PermissionsError, match="mode 0770"):
            use()


def test_link_that_leads_nowhere_is_no_empty_store(directory: Path) -> None:
    directory.mkdir()
    (directory / STORE_NAME).symlink_to(directory / "gone")
    with pytest.raises(FileError):
        TrustStore(directory)


def test_directory_that_is_a_file(directory: Path, keys: list[PublicKey]) -> None:
    directory.write_text("")
    with pytest.raises(FileError, match="a directory for your keys"):
        ensure_signing_key(directory)


def test_first_key_on_first_use(directory: Path) -> None:
    first = ensure_signing_key(directory)
    assert first.made
    assert first.path == directory / KEY_NAME
    assert first.path.stat().st_mode & 0o777 == 0o600
    key = PublicKey.of_signer(first.signer)
    assert [item.key for item in TrustStore(directory).keys] == [key]
    again = ensure_signing_key(directory)
    assert not again.made
    assert PublicKey.of_signer(again.signer) == key
    assert len(TrustStore(directory).keys) == 1


def test_key_with_a_passphrase(directory: Path) -> None:
    made = create_signing_key(directory, b"open sesame")
    with pytest.raises(PassphraseError):
        ensure_signing_key(directory)
    again = ensure_signing_key(directory, lambda: b"open sesame")
    assert PublicKey.of_signer(again.signer) == PublicKey.of_signer(made.signer)


def test_own_key_is_not_replaced(directory: Path) -> None:
    key = PublicKey.of_signer(create_signing_key(directory).signer)
    with pytest.raises(KeyExistsError):
        create_signing_key(directory)
    assert [item.key for item in TrustStore(directory).keys] == [key]
    assert PublicKey.of_signer(ensure_signing_key(directory).signer) == key


def test_own_key_that_is_trusted_no_longer_stays_so(directory: Path) -> None:
    ensure_signing_key(directory)
    store = TrustStore(directory)
    store.remove(store.keys[0].name)
    ensure_signing_key(directory)
    assert TrustStore(directory).keys == ()


def test_own_key_that_others_can_read(directory: Path) -> None:
    ensure_signing_key(directory).path.chmod(0o640)
    with pytest.raises(PermissionsError):
        ensure_signing_key(directory)


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_key_that_cannot_be_written_is_not_trusted(
    directory: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(os, "link", fail)
    with pytest.raises((FileError, KeyboardInterrupt)):
        ensure_signing_key(directory)
    assert TrustStore(directory).keys == ()
    assert sorted(os.listdir(directory)) == [".lock", STORE_NAME]
    monkeypatch.undo()
    assert ensure_signing_key(directory).made


def test_many_first_uses_at_once_make_one_key(directory: Path) -> None:
    found: list[str] = []
    made: list[bool] = []

    def use() -> None:
        key = ensure_signing_key(directory)
        found.append(PublicKey.of_signer(key.signer).keyid)
        made.append(key.made)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert sum(made) == 1


def test_many_additions_at_once_lose_none(directory: Path, keys: list[PublicKey]) -> None:
    def use(number: int) -> None:
        TrustStore(directory).add(f"key {number}", keys[number])

    threads = [threading.Thread(target=use, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {item.key for item in TrustStore(directory).keys} == set(keys)


def test_without_locks_it_still_works(directory: Path, keys: list[PublicKey], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "fcntl", None)
    TrustStore(directory).add("alpha", keys[0])
    document = strict_json((directory / STORE_NAME).read_bytes())
    assert document == _store(_entry(keys[0]))
