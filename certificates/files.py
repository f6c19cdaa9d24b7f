"""Files: read with a bound, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from certificates.errors import CertificateError, FileError, KeyExistsError, PermissionsError, TooLargeError
from certificates.temporary import temporary_beside

MAX_BYTES: Final = 1 << 20
"""Largest certificate, key or trust store that is read: 1 MiB."""

OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
OTHERS_ACCESS: Final = stat.S_IRWXG | stat.S_IRWXO

_POSIX: Final = os.name == "posix"
# Opening must have no effect: not wait for a pipe that nobody writes to, not take a terminal for this program's own.
_READ: Final = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_BINARY", "O_NONBLOCK", "O_NOCTTY"))


def read_bounded(path: str | os.PathLike[str], limit: int = MAX_BYTES, forbidden: int = 0) -> bytes:
    """The bytes of a regular file of at most ``limit`` bytes; a larger one is refused without being read.

    ``forbidden`` holds mode bits that the file must not have (OTHERS_WRITE, OTHERS_ACCESS); where any are named, the
    file must also belong to this user or to root. Raises FileError, TooLargeError, PermissionsError.
    """
    where = os.fspath(path)
    expected = f"a readable file of at most {limit} bytes"
    with clear_errors(where, expected):
        descriptor = os.open(path, _READ)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise FileError(where, "something that is not a regular file", expected)
            if forbidden:
                require_mode(where, status, forbidden)
            if status.st_size > limit:
                raise TooLargeError(where, f"{status.st_size} bytes", f"at most {limit} bytes")
            data = file.read(limit + 1)
            if data is None:  # How Python says that it would have to wait, as for a file of /proc.
                raise FileError(where, "nothing to read as yet", expected)
    if len(data) > limit:
        raise TooLargeError(where, f"more than {limit} bytes", f"at most {limit} bytes")
    return data


def require_mode(where: str, status: os.stat_result, forbidden: int) -> None:
    """Refuse what belongs to another user, or has any of the ``forbidden`` mode bits. Checked on POSIX only."""
    if not _POSIX:
        return
    if status.st_uid not in (os.geteuid(), 0):
        raise PermissionsError(where, f"a file of user {status.st_uid}", "one that belongs to you")
    mode = stat.S_IMODE(status.st_mode)
    if mode & forbidden:
        raise PermissionsError(where, f"mode {mode:04o}", f"mode {mode & ~forbidden:04o}, closed to others")


def require_writable(path: str | os.PathLike[str]) -> None:
    """Refuse, before work that may be long, a path where no file can be written as things stand. Raises FileError."""
    target, expected = Path(path), "a file in a directory that can be written to"
    with clear_errors(os.fspath(path), expected):
        usable = target.parent.is_dir() and os.access(target.parent, os.W_OK | os.X_OK)
        if not usable or (target.exists() and not target.is_file()):
            raise FileError(os.fspath(path), "a path where no file can be written", expected)


def write_atomically(path: str | os.PathLike[str], data: bytes, mode: int = 0o644) -> None:
    """Put ``data`` at ``path``, replacing a regular file there in one step: it is the old one or the new at any moment.

    ``mode`` is narrowed by the umask. A symbolic link is followed. Raises FileError; the old file stands then, unless
    all that failed was to make the new name survive a power cut.
    """
    target = Path(os.path.realpath(path))
    where, expected = os.fspath(path), "a path where a file can be written"
    with clear_errors(where, expected):
        if target.exists() and not target.is_file():
            raise FileError(where, "something that is not a regular file", expected)
        with temporary_beside(target, data, mode) as temporary:
            os.replace(temporary, target)
        _flush_directory(target.parent)


def write_new(path: str | os.PathLike[str], data: bytes, mode: int = 0o600) -> None:
    """As write_atomically, but never over anything that is there: raises KeyExistsError."""
    target = Path(path)
    with clear_errors(os.fspath(path), "a path where a new file can be written"):
        with temporary_beside(target, data, mode) as temporary:
            try:
                if _POSIX:
                    os.link(temporary, target)
                else:
                    os.rename(temporary, target)
            except FileExistsError:
                raise KeyExistsError(os.fspath(path), "a file that exists", "a new one (none is replaced)") from None
        _flush_directory(target.parent)


def _flush_directory(directory: Path) -> None:
    """Make the new name survive a power cut, where directories can be flushed (one that cannot be listed cannot)."""
    if not _POSIX:
        return
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def clear_errors(where: str, expected: str) -> Iterator[None]:
    """OSError as FileError; ValueError is a NUL in the path."""
    try:
        yield
    except CertificateError:
        raise
    except (OSError, ValueError) as error:
        got = error.strerror if isinstance(error, OSError) else None
        raise FileError(where, (got or str(error)).lower(), expected) from None
