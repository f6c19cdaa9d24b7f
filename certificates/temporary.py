"""Temporary files beside the file that they are to become, on the same file system, so that one step puts them there.

A process that is killed leaves its own behind. Every writer locks the one that it uses; one that nobody holds is thrown
away by whoever next writes to the same path. The names are hidden and end in ``.tmp``: `audit verify DIR` passes them
over.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from certificates.locks import hold

MAX_NAME: Final = 50
"""Characters of the target's name that are taken over, so that a name as long as file systems allow has one too."""
_POSIX: Final = os.name == "posix"
_FLAGS: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS
_LOOK: Final = os.O_RDONLY | _FLAGS | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@contextlib.contextmanager
def temporary_beside(target: Path, data: bytes, mode: int) -> Iterator[Path]:
    """A file beside ``target`` with ``data`` on the disk; whatever happens but the end of the process, it is gone
    afterwards. ``mode`` is narrowed by the umask. Raises OSError."""
    throw_away_left(target)
    temporary = target.parent / f".{target.name[:MAX_NAME]}.{secrets.token_hex(8)}.tmp"
    try:
        with _created(temporary, mode) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if not _POSIX:
                file.close()  # Windows renames no open file.
            yield temporary
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def _created(path: Path, mode: int) -> BinaryIO:
    """A new file that this process has locked; anew where another took it for one left behind before it was."""
    while True:
        file = open(os.open(path, _CREATE, mode), "wb")  # noqa: SIM115 the caller closes it
        if not _is_held(file, wait=True) or os.fstat(file.fileno()).st_nlink:
            return file
        file.close()


def throw_away_left(target: Path) -> None:
    """Remove what killed processes left beside ``target``; what cannot be looked at or removed stays."""
    name = re.compile(rf"\.{re.escape(target.name[:MAX_NAME])}\.[0-9a-f]{{16}}\.tmp")
    try:
        left = [path for path in target.parent.iterdir() if name.fullmatch(path.name)]
    except OSError:
        return
    for path in left:
        with contextlib.suppress(OSError), open(os.open(path, _LOOK), "rb") as file:
            if _is_held(file, wait=False):
                path.unlink()


def _is_held(file: BinaryIO, *, wait: bool) -> bool:
    """As hold; False too where the file system has no locks, and nothing is thrown away."""
    try:
        return hold(file, wait=wait)
    except OSError:
        return False
