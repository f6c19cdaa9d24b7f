"""``audit compose``: what several releases come to together."""

from __future__ import annotations

import re

import click

from audit.verdict import Verdict
from certificates.commands.options import EXIT_CODES, Clock, Goal, option, with_console, with_destination, with_limits
from certificates.console import Console
from mechanisms.numbers import MAX_COUNT, MAX_PARTS, InputError, read_count, read_real

_COUNTED = re.compile(r"(.+):([0-9]+)", re.DOTALL)


@click.command()
@click.argument("specs", nargs=-1, required=True, metavar="SPEC[:COUNT]...")
@click.option("--delta", required=True, metavar="D", help="Failure probability of all together, exact as typed.")
@option("--count", default="1", metavar="N", help="Releases by each SPEC that states no COUNT of its own.")
@with_destination
@with_limits
@with_console
def compose(console: Console, limits: Clock, destination: Goal, specs: tuple[str, ...], delta: str, count: str) -> int:
    """Add up what several releases on the same data give away.

    SPEC is a claim file or a certificate; its mechanism makes COUNT releases. Gaussian mixtures of one sigma count by
    their sigma, whatever is claimed of them (Corollaries 3.7 and 3.8). Other noise counts where its claim is pure DP,
    that is direct with delta = 0, which is proved first. The queries may be chosen one after the other; the list of
    mechanisms is fixed beforehand.

    \b
    Example:
      audit compose gaussian.toml:10 cert.json --delta 1e-6 -o together.json
    """
    total = read_real(delta, "--delta")
    if not 0 < total < 1:
        raise InputError("--delta", delta, "a number between 0 and 1")
    each = _count(count, "--count")
    if len(specs) > MAX_PARTS:
        raise InputError("SPEC", f"{len(specs)} of them", f"at most {MAX_PARTS} (SPEC:COUNT repeats one)")
    counted = [_split(spec, each) for spec in specs]
    from audit.composition import compose as add_up
    from audit.composition import part_of
    from certificates.composition_view import composition_block, composition_document
    from certificates.inputs import read_claim_or_certificate

    parts = []
    for path, number in counted:
        statement = read_claim_or_certificate(path)
        parts.append(part_of(statement.mechanism, statement.claim, number, path))
    goal = destination()
    with console.progress("proving") as progress:
        found = add_up(parts, total, limits(), progress)
    written = None
    if goal is not None and found.verdict is Verdict.VERIFIED:
        goal.write_composition(found)
        written = goal.path
    document = composition_document(found, [spec for spec, _ in counted], written)
    console.result(document, composition_block(found, written))
    return EXIT_CODES[found.verdict]


def _split(spec: str, each: int) -> tuple[str, int]:
    """The file, and how many releases: SPEC:COUNT, else ``each``."""
    match = _COUNTED.fullmatch(spec)
    return (spec, each) if match is None else (match[1], _count(match[2], f"COUNT of {match[1]}"))


def _count(text: str, where: str) -> int:
    number = read_count(text, where, MAX_COUNT)
    if number == 0:
        raise InputError(where, text, f"a whole number from 1 to {MAX_COUNT}")
    return number
