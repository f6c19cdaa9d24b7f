"""Temporary files beside their targets, and locks."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import IO

import pytest

from certificates import locks, temporary
from certificates.locks import hold
from certificates.temporary import MAX_NAME, temporary_beside, throw_away_left

LEFT = ".cert.json.0123456789abcdef.tmp"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "cert.json"


def test_holds_the_data_and_is_gone_afterwards(target: Path) -> None:
    with temporary_beside(target, b"data", 0o640) as path:
        assert path.read_bytes() == b"data"
        assert path.stat().st_mode & 0o777 == 0o640
        assert path.parent == target.parent
        assert not target.exists()
    assert os.listdir(target.parent) == []


def test_moved_away_is_well(target: Path) -> None:
    with temporary_beside(target, b"data", 0o600) as path:
        path.rename(target)
    assert os.listdir(target.parent) == ["cert.json"]


def test_name_as_long_as_file_systems_allow(tmp_path: Path) -> None:
    target = tmp_path / ("x" * 255)
    with temporary_beside(target, b"data", 0o600) as path:
        assert path.name.startswith(f".{'x' * MAX_NAME}.")
        path.rename(target)
    assert target.read_bytes() == b"data"


def test_what_is_left_by_nobody_is_thrown_away(target: Path) -> None:
    """And nothing else: not what another writer holds, what has another form of name, or what cannot be opened."""
    folder = target.parent
    others = {
        ".cert.json.0123456789abcde.tmp",
        ".cert.json.0123456789abcdef0.tmp",
        ".cert.json.0123456789abcdeF.tmp",
        ".certxjson.0123456789abcdef.tmp",
        ".other.json.0123456789abcdef.tmp",
        "cert.json",
    }
    for name in (LEFT, ".cert.json.ffffffffffffffff.tmp", *others):
        (folder / name).write_bytes(b"")
    (folder / ".cert.json.aaaaaaaaaaaaaaaa.tmp").symlink_to(target)
    (folder / ".cert.json.bbbbbbbbbbbbbbbb.tmp").mkdir()
    others |= {".cert.json.aaaaaaaaaaaaaaaa.tmp", ".cert.json.bbbbbbbbbbbbbbbb.tmp"}
    with temporary_beside(target, b"data", 0o600) as held:
        assert set(os.listdir(folder)) == {held.name, *others}
        throw_away_left(target)
        assert set(os.listdir(folder)) == {held.name, *others}
    assert set(os.listdir(folder)) == others


def test_long_names_left_are_thrown_away(tmp_path: Path) -> None:
    target = tmp_path / ("x" * 200)
    (tmp_path / f".{'x' * MAX_NAME}.0123456789abcdef.tmp").write_bytes(b"")
    throw_away_left(target)
    assert os.listdir(tmp_path) == []


def test_no_folder_has_nothing_left(tmp_path: Path) -> None:
    throw_away_left(tmp_path / "no" / "cert.json")


def test_without_locks_nothing_is_thrown_away(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system that has none; files are written all the same."""

    def fail(*_: object, **__: object) -> bool:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(temporary, "hold", fail)
    (target.parent / LEFT).write_bytes(b"")
    with temporary_beside(target, b"data", 0o600) as path:
        assert path.read_bytes() == b"data"
    assert os.listdir(target.parent) == [LEFT]


def test_taken_for_one_left_behind_before_it_was_locked(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process threw it away: a second one is made."""
    seen: list[str] = []

    def thrown_away_once(file: IO[bytes], *, wait: bool) -> bool:
        path = next(target.parent.glob(".cert.json.*.tmp"))
        if not seen:
            path.unlink()
        seen.append(path.name)
        return hold(file, wait=wait)

    monkeypatch.setattr(temporary, "hold", thrown_away_once)
    with temporary_beside(target, b"data", 0o600) as path:
        assert path.read_bytes() == b"data"
    assert len(seen) == 2


def test_own_file_is_waited_for(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks at it for a moment, to throw it away, is let finish."""
    asked: list[int] = []
    monkeypatch.setattr(fcntl, "flock", lambda _, how: asked.append(how))
    with temporary_beside(target, b"data", 0o600):
        assert asked == [fcntl.LOCK_EX]


def test_name_with_a_line_break(tmp_path: Path) -> None:
    (tmp_path / ".a\nb.0123456789abcdef.tmp").write_bytes(b"")
    throw_away_left(tmp_path / "a\nb")
    assert os.listdir(tmp_path) == []


def test_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "fcntl", None)
    with (tmp_path / "lock").open("wb") as file:
        assert hold(file, wait=True) is True
        assert hold(file, wait=False) is True


def test_lock_is_held_by_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_bytes(b"")
    with path.open("rb") as one, path.open("rb") as other:
        assert hold(one, wait=True) is True
        assert hold(other, wait=False) is False
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        one.close()
        assert hold(other, wait=False) is True


def test_lock_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(fcntl, "flock", lambda _, how: asked.append(how))
    with (tmp_path / "lock").open("wb") as file:
        assert hold(file, wait=True) and hold(file, wait=False)
    assert asked == [fcntl.LOCK_EX, fcntl.LOCK_EX | fcntl.LOCK_NB]
