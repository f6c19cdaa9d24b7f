"""Files: bounded reading, writing whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import time
import tracemalloc
from pathlib import Path

import pytest

from certificates import files
from certificates.errors import FileError, KeyExistsError, PermissionsError, TooLargeError
from certificates.files import OTHERS_ACCESS, OTHERS_WRITE, read_bounded, write_atomically, write_new


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
    with pytest.raises(TooLargeError, match="100000000 bytes, expected at most 1048576 bytes"):
        read_bounded(path)
    assert time.process_time() - start < 0.5
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "growing"
    path.write_bytes(b"123456")
    real = os.fstat

    def small(descriptor: int) -> os.stat_result:
        status = list(real(descriptor))
        status[6] = 0
        return os.stat_result(status)

    monkeypatch.setattr(os, "fstat", small)
    with pytest.raises(TooLargeError, match="more than 5 bytes"):
        read_bounded(path, 5)


def test_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="directory"):
        read_bounded(tmp_path)


def test_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="not a regular file"):
        read_bounded(tmp_path / "pipe")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file"):
        read_bounded(tmp_path / "missing")


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
    with pytest.raises(PermissionsError, match=f"mode {mode:04o}, expected mode 0600"):
        read_bounded(path, forbidden=forbidden)


def test_owned_by_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    path.chmod(0o600)
    real = os.fstat

    def foreign(descriptor: int) -> os.stat_result:
        status = list(real(descriptor))
        status[4] = os.geteuid() + 4321
        return os.stat_result(status)

    monkeypatch.setattr(os, "fstat", foreign)
    with pytest.raises(PermissionsError, match="expected one that belongs to you"):
        read_bounded(path, forbidden=OTHERS_ACCESS)


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


def test_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_atomically(tmp_path / "link", b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"x"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_is_not_replaced(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "there")
    with pytest.raises(FileError, match="not a regular file"):
        write_atomically(tmp_path / "there", b"x")
    assert os.listdir(tmp_path) == ["there"]


def test_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file"):
        write_atomically(tmp_path / "no" / "file", b"x")


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


def test_new_file_is_never_written_over_another(tmp_path: Path) -> None:
    write_new(tmp_path / "key", b"first")
    with pytest.raises(KeyExistsError, match="a file that exists"):
        write_new(tmp_path / "key", b"second")
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
