"""``audit release``: the noised value itself, under a certificate that passes."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import click

from certificates.commands.options import STRANGER_SECONDS, Clock, option, with_console, with_limits
from certificates.console import Console, write
from mechanisms.numbers import MAX_CHARACTERS, InputError, read_count


class _Discreet(click.Command):
    """A command whose errors do not repeat what it has no place for: that can be a part of a secret value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if type(error) not in (click.UsageError, click.NoSuchOption):  # others name an option, and its value
                raise
            text = "more arguments, or an option that there is not; they are not repeated here: one may be secret"
            raise click.UsageError(text, ctx) from None


@click.command(cls=_Discreet)
@click.argument("path", metavar="CERT.json")
@click.option("--value", required=True, metavar="V|-", help="The exact answer of the query; - reads standard input.")
@option("--count", default="1", metavar="N", help="So many independent values, each of them a release.")
@click.option("--grid", metavar="G", help="Power of two to round to.  [default: 2^-20 sensitivities, or just below]")
@with_limits
@with_console
def release(console: Console, limits: Clock, path: str, value: str, count: str, grid: str | None) -> int:
    """Release a value with noise of exactly the certified distribution.

    The certificate is verified first, as by `audit verify`; where it does not pass, nothing is drawn, and the exit code
    says why. The noise is drawn exactly, from the operating system's random bits; value and noise are added exactly,
    and only the sum is rounded, to a multiple of the grid. The grid must not depend on the data.

    \b
    Example:
      audit release cert.json --value 41
    """
    from certificates.files import read_bounded
    from certificates.release import MAX_COUNT, certified, draw, read_value, release_block, release_document
    from certificates.trust import TrustStore
    from certificates.verify import verify_certificate
    from mechanisms.sampling.sampler import read_grid

    wanted = read_count(count, "--count", MAX_COUNT)
    if console.quiet and not console.as_json:
        raise InputError("--quiet", "nothing to print the value to", "--json with it, or neither")
    step = None if grid is None else read_grid(grid, "--grid")
    if value == "-":
        value = sys.stdin.read(MAX_CHARACTERS + 2).strip() if sys.stdin is not None else ""
    query = read_value(value)
    trusted, strangers, now = TrustStore(), limits(STRANGER_SECONDS), datetime.now(UTC)
    with console.progress(path) as progress:
        data = read_bounded(path)
        outcome = verify_certificate(data, trusted, limits(), progress, strangers=strangers, now=now)
    console.warn(path, outcome.warning)
    if outcome.exit_code != 0:
        console.result(release_document(path, outcome, None), release_block(path, outcome, None))
        return outcome.exit_code
    statement = certified(outcome, path)
    with console.progress("drawing") as progress:
        drawn = draw(statement, query, wanted, step, progress)
    if wanted > 1:
        write(f"audit: these are {wanted} releases; the certificate covers one, `audit compose` adds them up", err=True)
    console.result(release_document(path, outcome, drawn), release_block(path, outcome, drawn))
    return 0
