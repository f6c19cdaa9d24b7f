"""``audit plot`` and ``audit report``: a certificate as pictures, and as a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from certificates.commands.options import Clock, with_console, with_limits
from certificates.console import Console
from certificates.extras import optional
from mechanisms.numbers import InputError

if TYPE_CHECKING:
    from certificates.schema import CertificateRecord, Recorded
    from mechanisms.claims import Statement

T = TypeVar("T")

BEYOND = (ValueError, ArithmeticError, MemoryError)
"""What libraries raise where a certificate's numbers are beyond what they hold."""


@click.command()
@click.argument("path", metavar="CERT.json")
@click.option("-o", "--output", required=True, metavar="FILE", help="The picture: a name that ends in .svg or .png.")
@with_limits
@with_console
def plot(console: Console, limits: Clock, path: str, output: str) -> int:
    """Draw the density, D over the shifts and the privacy profile of a certificate's statement.

    Nothing but the statement is taken from the certificate: its verdict and all enclosures are proved anew. Signatures
    are not looked at. Exit code 0 says that the picture was written. Needs the extra plot (matplotlib).

    \b
    Example:
      audit plot cert.json -o cert.svg
    """
    kind = _check(output, (".svg", ".png"))
    from audit.decide import decide
    from certificates.drawing import draw
    from certificates.files import write_atomically
    from certificates.pictures import make_picture
    from certificates.present import statement_in_words

    statement = _read(path).statement
    with console.progress("proving") as progress:
        decision = _within_range(path, lambda: decide(statement, limits(), progress))
        picture = _within_range(path, lambda: make_picture(statement, decision, limits()))
    write_atomically(output, _within_range(path, lambda: draw(picture, "svg" if kind == ".svg" else "png")))
    verdict = decision.verdict.value
    document = {"verdict": verdict, **statement.document(), "reason": decision.reason, "picture": output}
    console.result(document, f"{verdict}: {statement_in_words(statement)}\n  picture  {output}")
    return 0


@click.command()
@click.argument("path", metavar="CERT.json")
@click.option("-o", "--output", required=True, metavar="FILE", help="The page: a name that ends in .html.")
@with_limits
@with_console
def report(console: Console, limits: Clock, path: str, output: str) -> int:
    """Write a page about a certificate, verified now: verdict, statement, numbers, signature and pictures.

    One HTML file that loads nothing. The exit code is that of `audit verify`; the page is written whichever way it
    went, unless the certificate is malformed. Needs the extra plot (matplotlib).

    \b
    Example:
      audit report cert.json -o report.html
    """
    _check(output, (".html", ".htm"))
    from datetime import UTC, datetime

    from audit.decide import decide
    from audit.losses import enclose_losses
    from certificates.drawing import draw
    from certificates.files import write_atomically
    from certificates.pictures import make_picture
    from certificates.present import outcome_document, outcome_line
    from certificates.report import Report, page
    from certificates.trust import TrustStore
    from certificates.verify import verify_certificate

    read, trust, now = _read(path), TrustStore(), datetime.now(UTC)
    decision, losses = None, None
    picture: bytes | str
    with console.progress("proving") as progress:
        outcome = verify_certificate(read.data, trust, limits(), progress, now=now)
        try:
            decision = decide(read.statement, limits())
            losses = enclose_losses(read.statement.mechanism)
            picture = draw(make_picture(read.statement, decision, limits()), "svg")
        except BEYOND as error:
            picture = str(error)
    found = Report(
        path=path,
        data=read.data,
        record=read.record,
        recorded=read.recorded,
        statement=read.statement,
        outcome=outcome,
        decision=decision,
        losses=losses,
        picture=picture,
        time=now,
    )
    write_atomically(output, page(found, trust))
    console.warn(path, outcome.warning)
    console.result(
        {**outcome_document(path, outcome), "report": output}, f"{outcome_line(path, outcome)}\n  report  {output}"
    )
    return outcome.exit_code


@dataclass(frozen=True)
class _Read:
    """A certificate that is well formed; nothing in it is checked."""

    data: bytes
    record: CertificateRecord
    recorded: Recorded
    statement: Statement


def _read(path: str) -> _Read:
    """Raises InputError where the certificate is malformed, or of a composition."""
    from certificates.canonical import strict_json
    from certificates.compositions import is_composition
    from certificates.files import read_bounded
    from certificates.schema import CertificateRecord, convert, read_recorded
    from mechanisms.claims import read_statement

    data = read_bounded(path)
    document: Any = strict_json(data, path)
    if is_composition(document):
        raise InputError(path, "a certificate of a composition", "one of a single mechanism")
    record = convert(document, CertificateRecord, path)
    try:
        recorded = read_recorded(record.signed)
        statement = read_statement(document["signed"]["statement"], "signed.statement")
    except InputError as error:
        raise InputError(f"{path}: {error.where}", error.got, error.expected) from None
    return _Read(data, record, recorded, statement)


def _within_range(path: str, work: Callable[[], T]) -> T:
    """The result; numbers beyond what libraries hold are an InputError about the certificate."""
    try:
        return work()
    except InputError:
        raise
    except BEYOND as error:
        got = f"numbers beyond what the libraries hold ({type(error).__name__})"
        raise InputError(f"{path}: signed.statement", got, "ones that can be drawn") from None


def _check(output: str, suffixes: tuple[str, ...]) -> str:
    """The suffix of the output. Refuses another one, a place that cannot be written to, and a missing matplotlib."""
    suffix = Path(output).suffix.lower()
    if suffix not in suffixes:
        raise InputError("--output", output, f"a name that ends in {' or '.join(suffixes)}")
    from certificates.files import require_writable

    require_writable(output)
    optional("matplotlib", "plot", "matplotlib")
    return suffix
