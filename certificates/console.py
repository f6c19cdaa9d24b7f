"""Where results, progress and errors go. Every error is one line, or one JSON object, and an exit code."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO

import click

from mechanisms.numbers import InputError, one_line

UNUSABLE: Final = 2
"""Exit code of unusable arguments or malformed input."""
INTERRUPTED: Final = 130
MAX_MESSAGE: Final = 500
"""Characters of an error that are shown: names of fields in hostile input can be megabytes long."""


class OutputError(InputError):
    """Standard output that takes no more: what was to be said was not."""

    def __init__(self, got: str) -> None:
        super().__init__("output", got, "a place that can be written to")


def write(text: str, *, err: bool = False) -> None:
    """Text to a standard stream, without control characters.

    A reader that went away is no error: the exit code stands, and is that of the verdict. Raises OutputError where
    standard output is closed or full, since nobody would know; of standard error only the exit code is left then.
    """
    stream = sys.stderr if err else sys.stdout
    if stream is None:  # Closed before Python began.
        if not err:
            raise OutputError("a closed one")
        return
    encoding = stream.encoding or "utf-8"
    shown = "\n".join(map(one_line, text.split("\n")))
    try:
        click.echo(shown.encode(encoding, "replace").decode(encoding), file=stream)
    except OSError as error:
        # What is left in the buffer would be written again when Python ends, and fail again.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not err and not isinstance(error, BrokenPipeError):
            raise OutputError(error.strerror or "an error") from None


@dataclass(frozen=True)
class Console:
    """Where results go: to people or to a script."""

    as_json: bool
    quiet: bool

    def result(self, document: dict[str, Any], text: str) -> None:
        """The result of a command."""
        if self.as_json:
            write(json.dumps(document))
        else:
            self.say(text)

    def say(self, text: str) -> None:
        """A line for people."""
        if not self.as_json and not self.quiet:
            write(text)

    def warn(self, where: str, warning: str) -> None:
        """A line on standard error for people, where there is a warning; in JSON it stands with the result."""
        if warning and not self.as_json and not self.quiet:
            write(" ".join(f"audit: {where}: warning: {warning}".split()), err=True)

    @contextlib.contextmanager
    def progress(self, label: str) -> Iterator[Callable[[float], None] | None]:
        """A bar on standard error where that is a terminal; what it yields takes a share in [0, 1]."""
        if self.quiet or not is_terminal(sys.stderr):
            yield None
            return
        # A file's name can hold what a terminal would obey.
        with click.progressbar(length=1000, label=one_line(label), file=sys.stderr, show_eta=False) as bar:
            yield lambda share: bar.update(max(0, min(1000, int(1000 * share)) - bar.pos))


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a standard stream, None where it was closed before Python began, is a terminal."""
    return stream is not None and stream.isatty()


def ask_passphrase(new: bool = False) -> bytes:
    """The passphrase of a key: from AUDIT_PASSPHRASE, or asked for on the terminal (twice for a new one)."""
    given = os.environ.get("AUDIT_PASSPHRASE")
    if given is None and not is_terminal(sys.stdin):
        raise InputError("AUDIT_PASSPHRASE", "nothing", "the passphrase of the key, or a terminal to ask for it")
    if given is None:
        given = click.prompt("Passphrase", hide_input=True, confirmation_prompt=new, err=True)
    return os.fsencode(given)


def _report(where: str, error: str, as_json: bool) -> None:
    """One error: an object on standard output, or where that is not wanted, or takes none, a line on standard error."""
    where, error = (" ".join(text.split()) for text in (where, error))
    where, error = (text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…" for text in (where, error))
    if as_json:
        with contextlib.suppress(OutputError):
            write(json.dumps({"error": error, "where": where}))
            return
    write(": ".join(part for part in ("audit", where.removeprefix("audit").strip(), error) if part), err=True)


def _report_exception(error: Exception, as_json: bool) -> int:
    """Report it; the exit code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        write(error.format_message(), err=True)
    elif isinstance(error, click.Abort):
        _report("", "interrupted", as_json)
        return INTERRUPTED
    elif isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        parameter = getattr(error, "param", None)
        where = _name(parameter) if parameter else context.command_path if context else ""
        _report(where, error.format_message(), as_json)
    elif isinstance(error, InputError):
        as_json = as_json and not isinstance(error, OutputError)
        _report(error.where, str(error).removeprefix(f"{error.where}: "), as_json)
    elif isinstance(error, OSError):
        _report(str(error.filename or "system"), error.strerror or "an error", as_json)
    return UNUSABLE


def _name(parameter: click.Parameter) -> str:
    """As the user knows it: --epsilon, SPEC."""
    return parameter.human_readable_name if isinstance(parameter, click.Argument) else max(parameter.opts, key=len)


def show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Callback of --version."""
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            write(f"audit, of sigmacert {version('sigmacert')}")
        except PackageNotFoundError:
            write("audit, of sigmacert (not installed)")
        context.exit()


def _occupy_descriptors() -> None:
    """A standard stream that was closed becomes the null device, so that no file is opened in its place and gets what
    C libraries print."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


class Program(click.Group):
    """The group of commands, with one way to report every error of theirs."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse; an interrupt becomes click's (which would print an empty line of its own)."""
        try:
            return super().make_context(*args, **extra)
        except KeyboardInterrupt:
            raise click.Abort from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an interrupt becomes click's."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort from None

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Parse, run, exit."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, **extra)
        _occupy_descriptors()
        try:
            code = super().main(args, prog_name or "audit", complete_var, False, **extra)
        except SystemExit as end:
            # 1 is click's answer to a reader that went away. It prints nothing but help; all else is by write().
            if end.code != 1 or not {"-h", "--help"}.intersection(sys.argv[1:] if args is None else args):
                raise
            code = 0
        except (click.ClickException, click.Abort, InputError, OSError) as error:
            code = _report_exception(error, "--json" in (sys.argv[1:] if args is None else args))
        sys.exit(code)
