"""The trust store and the user's own key."""

from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from certificates import locks, trust
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
from tests.certificates.support import message


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
    with pytest.raises(FileError) as caught:
        home({}, "linux")
    assert message(caught) == ("AUDIT_HOME", "nothing, and no home directory", "the directory of your keys")


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


def test_store_is_text_for_people(directory: Path, keys: list[PublicKey]) -> None:
    store = TrustStore(directory)
    store.add("Zoë", keys[0])
    expected = f"{json.dumps(_store(_entry(keys[0], 'Zoë')), indent=2, ensure_ascii=False)}\n"
    assert store.path.read_text("utf-8") == expected


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
    with pytest.raises(TrustStoreError) as caught:
        store.add("alpha", keys[1])
    assert message(caught) == ("trust store", "two keys named alpha", "one key to a name")
    with pytest.raises(TrustStoreError) as caught:
        store.add("beta", keys[0])
    assert message(caught) == ("trust store", "a key that is there as alpha", "each key once")
    assert [item.name for item in TrustStore(directory).keys] == ["alpha"]


@pytest.mark.parametrize("name", ["", "x" * 65, "a\nb", "a\u202eb"])
def test_name_that_is_none(directory: Path, keys: list[PublicKey], name: str) -> None:
    with pytest.raises(TrustStoreError) as caught:
        TrustStore(directory).add(name, keys[0])
    assert message(caught) == ("name", name, "1 to 64 printable characters")
    assert not directory.exists()


@pytest.mark.parametrize("name", ["x", "x" * 64])
def test_shortest_and_longest_name(directory: Path, keys: list[PublicKey], name: str) -> None:
    added = TrustStore(directory).add(name, keys[0])
    assert (added.name, added.key) == (name, keys[0])
    assert TrustStore(directory).keys == (added,)


def test_removing_what_is_not_there(directory: Path, keys: list[PublicKey]) -> None:
    store = TrustStore(directory)
    store.add("alpha", keys[0])
    with pytest.raises(TrustStoreError) as caught:
        store.remove("beta")
    assert message(caught) == ("trust store", "beta", "the name or the identifier of a trusted key")
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
    ("change", "error", "field"),
    [
        (lambda key: _store(_entry(key, keyid="0" * 64)), SchemaError, "keys[0].keyid"),
        (lambda key: _store({"name": "alpha", "keytype": "hmac", "public": key.text}), SchemaError, "keys[0].keytype"),
        (lambda key: _store(_entry(key, name="")), SchemaError, "keys[0].name"),
        (lambda key: _store(_entry(key, name="x" * 65)), SchemaError, "keys[0].name"),
        (lambda key: _store(_entry(key), _entry(key, "beta")), TrustStoreError, ""),
        (lambda key: _store(_entry(key), _entry("01" + "00" * 31, "beta")), KeyRefusedError, "keys[1].public"),
        (lambda key: _store(_entry(key), _entry(key.text.upper(), "beta")), KeyRefusedError, "keys[1].public"),
        (lambda key: {**_store(), "schema_version": "2"}, SchemaError, "schema_version"),
        (lambda key: {**_store(), "more": 1}, SchemaError, "more"),
        (lambda key: [], SchemaError, ""),
    ],
    ids=["keyid_field", "other_algorithm", "no_name", "long_name", "key_twice", "small_order_key",
         "upper_case", "other_version", "unknown_field", "list"],
)  # fmt: skip
def test_store_spoiled_by_hand(
    directory: Path, keys: list[PublicKey], change: Any, error: type[CertificateError], field: str
) -> None:
    with pytest.raises(error) as caught:
        TrustStore(_written(directory, json.dumps(change(keys[0]))))
    assert caught.value.where == ": ".join(filter(None, (str(directory / STORE_NAME), field)))
    assert str(caught.value).isprintable()


def test_name_in_the_store_that_cannot_be_shown(directory: Path, keys: list[PublicKey]) -> None:
    with pytest.raises(TrustStoreError) as caught:
        TrustStore(_written(directory, json.dumps(_store(_entry(keys[0]), _entry(keys[1], "a\x1b[2J")))))
    where = f"{directory / STORE_NAME}: keys[1].name"
    assert message(caught) == (where, "a\x1b[2J", "printable characters only")


@pytest.mark.parametrize(
    ("text", "error"),
    [("", NotJsonError), ('{"keys":[],"keys":[]}', FieldNameError), (" " * (1 << 20) + "1", TooLargeError)],
)
def test_store_that_is_not_strict_json(directory: Path, text: str, error: type[CertificateError]) -> None:
    with pytest.raises(error) as caught:
        TrustStore(_written(directory, text))
    assert caught.value.where.startswith(str(directory / STORE_NAME))


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
    with pytest.raises(PermissionsError) as caught:
        TrustStore(directory)
    assert message(caught) == (str(directory / STORE_NAME), f"mode {mode:04o}", "mode 0644, closed to others")


def test_directory_that_others_can_write(directory: Path, keys: list[PublicKey]) -> None:
    store = TrustStore(directory)
    store.add("alpha", keys[0])
    directory.chmod(0o770)
    for use in (lambda: TrustStore(directory), lambda: store.remove("alpha"), lambda: ensure_signing_key(directory)):
        with pytest.raises(PermissionsError) as caught:
            use()
        assert message(caught) == (str(directory), "mode 0770", "mode 0750, closed to others")


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
    assert [(item.name, item.key) for item in TrustStore(directory).keys] == [(f"own key {key.keyid[:8]}", key)]
    again = ensure_signing_key(directory)
    assert again.path == first.path
    assert not again.made
    assert PublicKey.of_signer(again.signer) == key
    assert len(TrustStore(directory).keys) == 1


def test_key_with_a_passphrase(directory: Path) -> None:
    made = create_signing_key(directory, b"open sesame")
    assert made.made
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
    monkeypatch.setattr(locks, "fcntl", None)
    TrustStore(directory).add("alpha", keys[0])
    document = strict_json((directory / STORE_NAME).read_bytes())
    assert document == _store(_entry(keys[0]))
