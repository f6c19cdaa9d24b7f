"""Files: bounded reading, writing whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from certificates import files
from certificates.errors import FileError, KeyExistsError, PermissionsError, TooLargeError
from certificates.files import (
    OTHERS_ACCESS,
    OTHERS_WRITE,
    read_bounded,
    require_writable,
    write_atomically,
    write_new,
)
from tests.certificates.support import message

READABLE = "a readable file of at most 1048576 bytes"
WRITABLE = "a path where a file can be written"
NOWHERE = ("a path where no file can be written", "a file in a directory that can be written to")


def test_reads_what_was_written(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", b"one")
    write_atomically(tmp_path / "a", b"two")
    assert read_bounded(tmp_path / "a") == b"two"
    assert os.listdir(tmp_path) == ["a"]


def test_100_megabytes_are_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    tracemalloc.start()
    start = time.process_time()
    with pytest.raises(TooLargeError) as caught:
        read_bounded(path)
    assert message(caught) == (str(path), "100000000 bytes", "at most 1048576 bytes")
    assert time.process_time() - start < 0.5
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "growing"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    real = os.fstat

    def small(descriptor: int) -> os.stat_result:
        status = list(real(descriptor))
        status[6] = 0
        return os.stat_result(status)

    monkeypatch.setattr(os, "fstat", small)
    tracemalloc.start()
    with pytest.raises(TooLargeError) as caught:
        read_bounded(path, 5)
    assert message(caught) == (str(path), "more than 5 bytes", "at most 5 bytes")
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_bounded(tmp_path / "file", 5) == b"12345"
    with pytest.raises(TooLargeError, match="got 5 bytes, expected at most 4 bytes"):
        read_bounded(tmp_path / "file", 4)


def test_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="directory") as caught:
        read_bounded(tmp_path)
    assert message(caught)[::2] == (str(tmp_path), READABLE)


def test_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError) as caught:
        read_bounded(tmp_path / "pipe")
    assert message(caught) == (str(tmp_path / "pipe"), "something that is not a regular file", READABLE)


def test_file_that_would_have_to_be_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As some of /proc are: regular files by their mode, and nothing to read."""
    path, real = tmp_path / "pipe", os.fstat
    os.mkfifo(path)
    monkeypatch.setattr(os, "fstat", lambda descriptor: os.stat_result([stat.S_IFREG, *real(descriptor)[1:]]))
    writer = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        with pytest.raises(FileError) as caught:
            read_bounded(path)
    finally:
        os.close(writer)
    assert message(caught) == (str(path), "nothing to read as yet", READABLE)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileError) as caught:
        read_bounded(tmp_path / "missing")
    assert message(caught) == (str(tmp_path / "missing"), "no such file or directory", READABLE)


def test_null_in_the_path() -> None:
    with pytest.raises(FileError, match="null"):
        read_bounded("a\0b")


@pytest.mark.parametrize(
    ("mode", "forbidden"),
    [(0o620, OTHERS_WRITE), (0o602, OTHERS_WRITE), (0o640, OTHERS_ACCESS), (0o604, OTHERS_ACCESS)],
)
def test_open_to_others(tmp_path: Path, mode: int, forbidden: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    path.chmod(mode)
    assert read_bounded(path) == b"x"
    with pytest.raises(PermissionsError) as caught:
        read_bounded(path, forbidden=forbidden)
    assert message(caught) == (str(path), f"mode {mode:04o}", "mode 0600, closed to others")


def test_closed_to_others(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    for mode, forbidden in ((0o600, OTHERS_ACCESS), (0o400, OTHERS_ACCESS), (0o655, OTHERS_WRITE), (0o677, 0)):
        path.chmod(mode)
        assert read_bounded(path, forbidden=forbidden) == b"x"
    assert read_bounded(path) == b"x"


def test_owned_by_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    path.chmod(0o600)
    real = os.fstat

    def owned_by(owner: int) -> Callable[[int], os.stat_result]:
        return lambda descriptor: os.stat_result([*real(descriptor)[:4], owner, *real(descriptor)[5:]])

    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    for owner in (4321, 1):
        monkeypatch.setattr(os, "fstat", owned_by(owner))
        assert read_bounded(path) == b"x"
        with pytest.raises(PermissionsError) as caught:
            read_bounded(path, forbidden=OTHERS_ACCESS)
        assert message(caught) == (str(path), f"a file of user {owner}", "one that belongs to you")
    for owner in (1234, 0):
        monkeypatch.setattr(os, "fstat", owned_by(owner))
        assert read_bounded(path, forbidden=OTHERS_ACCESS) == b"x"


def test_modes_mean_nothing_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    path.chmod(0o666)
    monkeypatch.setattr(files, "_POSIX", False)
    assert read_bounded(path, forbidden=OTHERS_ACCESS) == b"x"
    write_atomically(path, b"y")
    assert read_bounded(path) == b"y"
    write_new(tmp_path / "other", b"z")
    assert read_bounded(tmp_path / "other") == b"z"


def test_umask_narrows_the_mode(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_atomically(tmp_path / "file", b"x", 0o644)
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_mode_where_none_is_named(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_atomically(tmp_path / "file", b"x")
        write_new(tmp_path / "key", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


def test_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_atomically(tmp_path / "link", b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"x"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_is_not_replaced(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "there")
    with pytest.raises(FileError) as caught:
        write_atomically(tmp_path / "there", b"x")
    assert message(caught) == (str(tmp_path / "there"), "something that is not a regular file", WRITABLE)
    assert os.listdir(tmp_path) == ["there"]


@pytest.mark.parametrize(
    ("write", "expected"), [(write_atomically, WRITABLE), (write_new, "a path where a new file can be written")]
)
def test_missing_directory(tmp_path: Path, write: Callable[[Path, bytes], None], expected: str) -> None:
    path = tmp_path / "no" / "file"
    with pytest.raises(FileError) as caught:
        write(path, b"x")
    assert message(caught) == (str(path), "no such file or directory", expected)


@pytest.mark.parametrize("write", [write_atomically, write_new])
def test_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: object) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert callable(write)
    with pytest.raises(FileError, match="no space left"):
        write(tmp_path / "file", b"x")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_interrupt_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    (tmp_path / "file").write_bytes(b"old")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, step, interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "file", b"new")
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_path_where_a_file_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked beforehand, and nothing is made."""
    (tmp_path / "there").write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    for name in ("new", "there"):
        require_writable(tmp_path / name)
    for path in (tmp_path / "no" / "file", tmp_path / "there" / "file", tmp_path / "folder"):
        with pytest.raises(FileError) as caught:
            require_writable(path)
        assert message(caught) == (str(path), *NOWHERE)
    for denied in (os.W_OK, os.X_OK):
        monkeypatch.setattr(os, "access", lambda path, mode, denied=denied: path != tmp_path or not mode & denied)
        with pytest.raises(FileError) as caught:
            require_writable(tmp_path / "new")
        assert message(caught) == (str(tmp_path / "new"), *NOWHERE)
    assert sorted(os.listdir(tmp_path)) == ["folder", "there"]

    def refuse(_: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", refuse)
    with pytest.raises(FileError) as caught:
        require_writable(tmp_path / "new")
    assert message(caught) == (str(tmp_path / "new"), "permission denied", NOWHERE[1])


def test_new_file_is_never_written_over_another(tmp_path: Path) -> None:
    write_new(tmp_path / "key", b"first")
    with pytest.raises(KeyExistsError) as caught:
        write_new(tmp_path / "key", b"second")
    assert message(caught) == (str(tmp_path / "key"), "a file that exists", "a new one (none is replaced)")
    assert (tmp_path / "key").read_bytes() == b"first"
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["key"]


def test_directories_that_cannot_be_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync
    code = errno.EINVAL

    def refuse(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(code, "Refused")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    write_atomically(tmp_path / "file", b"x")
    assert (tmp_path / "file").read_bytes() == b"x"
    code = errno.EIO
    with pytest.raises(FileError, match="refused"):
        write_atomically(tmp_path / "file", b"y")


def test_directory_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be flushed; the file is written."""
    real = os.open

    def refuse(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_DIRECTORY:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse)
    write_atomically(tmp_path / "file", b"x")
    assert read_bounded(tmp_path / "file") == b"x"
