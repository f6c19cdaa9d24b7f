"""Locks on open files, between processes. A lock ends with the process that holds it, so that none is left behind."""

from __future__ import annotations

from typing import IO

try:
    import fcntl
except ImportError:  # Windows: one process at a time.
    fcntl = None  # type: ignore[assignment]


def hold(file: IO[bytes], *, wait: bool) -> bool:
    """Lock an open file against other processes until it is closed; False where another holds it and ``wait`` is off.

    Always True where the system has no such locks. Raises OSError where the file system has none.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
