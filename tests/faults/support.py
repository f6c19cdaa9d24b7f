"""Commands in forked children, which start at once and can be given faults.

A fault is put just before the n-th call of a system function that looks at or changes a file: the child is killed
there, or that call fails. What a command imports should be imported already: what an import opens is counted too.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from cli import main

CHANGES = frozenset(
    {"open", "write", "flush", "fsync", "replace", "rename", "link", "unlink", "remove", "mkdir", "truncate", "flock"}
)
"""C functions before which a fault is put; their modules are posix, io and fcntl, or they are methods of a file."""

Fault = Callable[[], None]


def kill() -> None:
    """As kill -9: nothing more is run."""
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt() -> NoReturn:
    """Ctrl-C."""
    raise KeyboardInterrupt


def fail(error: int) -> Fault:
    """The call fails with this errno."""

    def raise_it() -> NoReturn:
        raise OSError(error, os.strerror(error))

    return raise_it


@dataclass(frozen=True)
class Attempt:
    """How a run ended; ``met`` names the function before which a fault was, None where there was none."""

    exit_code: int
    stdout: str
    stderr: str
    met: str | None


class Child:
    """A command that runs in ``folder``, in a process of its own; ``prepare`` is called there first."""

    def __init__(self, folder: Path, arguments: tuple[str, ...], prepare: Callable[[], object] = lambda: None) -> None:
        ends = [os.pipe() for _ in range(3)]
        sys.stdout.flush()
        sys.stderr.flush()
        self.process = os.fork()
        if self.process == 0:
            _run(folder, arguments, prepare, [end for _, end in ends])
        for _, end in ends:
            os.close(end)
        self._ends = [end for end, _ in ends]

    def wait(self) -> Attempt:
        """How it ended."""
        texts = []
        for end in self._ends:
            with open(end, "rb") as pipe:
                texts.append(pipe.read().decode())
        code = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        return Attempt(code, texts[0], texts[1], texts[2] or None)


def _run(folder: Path, arguments: tuple[str, ...], prepare: Callable[[], object], ends: list[int]) -> NoReturn:
    code = 99
    try:
        os.dup2(ends[0], 1)
        os.dup2(ends[1], 2)
        sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(number, "w"), "utf-8") for number in (1, 2))
        os.chdir(folder)
        _Faults.note = ends[2]
        prepare()
        main.main(list(arguments))
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 98
    except BaseException:
        traceback.print_exc()
    finally:
        sys.setprofile(None)
        os._exit(code)


class _Faults:
    note = 2
    """Where a child writes which function it was that met the fault."""


def attempt(folder: Path, number: int, fault: Fault, *arguments: str) -> Attempt:
    """Run a command with a fault before its ``number``-th call of CHANGES, counted from 1."""
    left = number

    def before(_: FrameType, event: str, function: Any) -> None:
        nonlocal left
        if event != "c_call" or function.__name__ not in CHANGES:
            return
        owner = function.__self__
        of_file = isinstance(owner, io.IOBase) and not isinstance(owner, (io.StringIO, io.BytesIO))
        if not of_file and getattr(owner, "__name__", "") not in ("posix", "_io", "io", "fcntl"):
            return
        left -= 1
        if left == 0:
            os.write(_Faults.note, function.__name__.encode())
            fault()

    return Child(folder, arguments, lambda: sys.setprofile(before)).wait()


def together(folder: Path, commands: list[tuple[str, ...]]) -> list[Attempt]:
    """Run commands in processes that begin at the same moment."""
    reader, writer = os.pipe()

    def ready() -> None:
        os.close(writer)
        os.read(reader, 1)  # returns when nobody can write any more

    children = [Child(folder, command, ready) for command in commands]
    os.close(writer)
    os.close(reader)
    return [child.wait() for child in children]


def die_or_say(text: str) -> str:
    """Work for a pool of processes: one word ends its worker."""
    if text == "die":
        kill()
    return text
