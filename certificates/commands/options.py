"""Options that several commands share, and what their verdicts come to as exit codes."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from audit.verdict import Limits, Verdict
from certificates.console import UNUSABLE, Console, ask_passphrase, write
from mechanisms.numbers import InputError, nearest_float, read_positive

if TYPE_CHECKING:
    from certificates.destination import Destination

EXIT_CODES = {Verdict.VERIFIED: 0, Verdict.REFUTED: 1, Verdict.INCONCLUSIVE: 3}
PRECEDENCE = (1, 4, UNUSABLE, 3, 0)

Command = Callable[..., int]
Clock = Callable[..., Limits]
"""Starts the time of one proof; see clock."""
STRANGER_SECONDS = 3.0
"""Most time for the re-proof of a certificate that no trusted key has signed: anybody can make one that takes long."""
Goal = Callable[[], "Destination | None"]
"""Looks at where the certificate goes; None where none is wanted."""
option = functools.partial(click.option, show_default=True)


def with_console(command: Command) -> Command:
    """--json and --quiet; the command gets a ``console``."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
    @click.option("--quiet", is_flag=True, help="Print errors only; the exit code speaks.")
    @functools.wraps(command)
    def wrapped(*, as_json: bool, quiet: bool, **parameters: Any) -> int:
        try:
            return command(console=Console(as_json, quiet), **parameters)
        except BrokenPipeError:  # Not that of standard output, for which click would take it.
            raise InputError("connection", "one that broke", "one that lasts") from None

    return wrapped


def with_limits(command: Command) -> Command:
    """--seconds and --bits; the command gets ``limits``, a Clock."""

    @option("--seconds", default="60", metavar="T", help="Time for a proof; after it the answer is inconclusive.")
    @option("--bits", type=click.IntRange(64, 1 << 20), default=Limits.bits, metavar="B", help="Largest precision.")
    @functools.wraps(command)
    def wrapped(*, seconds: str, bits: int, **parameters: Any) -> int:
        return command(limits=clock(seconds, bits), **parameters)

    return wrapped


def clock(seconds: str, bits: int) -> Clock:
    """What starts the time of one proof, less of it where its argument ``most`` says so. Raises InputError."""
    allowed = nearest_float(read_positive(seconds, "--seconds"))

    def limits(most: float = math.inf) -> Limits:
        end = time.monotonic() + min(allowed, most)
        return Limits(bits=bits, expired=lambda: time.monotonic() > end)

    return limits


def with_destination(command: Command) -> Command:
    """--output, --key and --public-key; the command gets ``destination``, to call when its arguments are good."""

    @click.option("-o", "--output", metavar="FILE", help="Write a signed certificate.")
    @click.option("--key", metavar="FILE|URI", help="Sign with this key, not with your own.")
    @click.option("--public-key", metavar="FILE|HEX", help="Public half of a --key that stays in its device.")
    @functools.wraps(command)
    def wrapped(*, output: str | None, key: str | None, public_key: str | None, **parameters: Any) -> int:
        if public_key is not None and key is None:
            raise InputError("--public-key", public_key, "--key with it")
        if key is not None and output is None:
            raise InputError("--key", key, "--output with it (a certificate is what is signed)")

        def destination() -> Destination | None:
            if output is None:
                return None
            from certificates.destination import Destination

            return Destination.prepare(
                output,
                key=key,
                public_key=public_key,
                passphrase=ask_passphrase,
                notice=lambda line: write(f"audit: {line}", err=True),
            )

        return command(destination=destination, **parameters)

    return wrapped
