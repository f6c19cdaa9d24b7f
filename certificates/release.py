"""Values released under a certificate: verified first, then drawn exactly, and how they are shown."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from certificates.errors import CertificateError
from certificates.layout import block
from certificates.present import outcome_document, outcome_line, statement_in_words
from certificates.verify import Outcome
from mechanisms.claims import Statement
from mechanisms.mechanism import Mechanism
from mechanisms.numbers import InputError, exact_text, read_real
from mechanisms.sampling.bits import BitSource, StuckBits
from mechanisms.sampling.sampler import CHUNK, sampler

MAX_COUNT: Final = 1_000_000
"""Most values of one call."""
MAX_PLACES: Final = 50_000_000
"""Most digits after the point in all values together; bounds the memory."""
LARGEST_RATIO: Final = 2**53
"""Largest |V| in sensitivities: beyond, two neighbouring doubles are further apart than the sensitivity, and V was
either computed with a larger error than that or is in another unit than the certificate."""
_UNSAID: Final = "a value that is not repeated here: it may be secret"


@dataclass(frozen=True)
class Release:
    """Values drawn from one certified mechanism, each exactly a multiple of the grid, in the unit of the query."""

    statement: Statement
    grid: Fraction
    multiples: tuple[int, ...]

    def values(self) -> list[str]:
        """The values as exact decimals."""
        return [exact_decimal(multiple, self.grid) for multiple in self.multiples]


def read_value(value: object, where: str = "--value") -> Fraction:
    """The exact answer of a query. Raises InputError, which does not repeat it, where it is no number."""
    try:
        return read_real(value, where)
    except InputError as error:
        raise InputError(where, _UNSAID, error.expected) from None


def require_size(value: Fraction, mechanism: Mechanism, where: str = "--value") -> None:
    """Refuse an answer that no query of that sensitivity gives. Raises InputError, which does not repeat it."""
    most = LARGEST_RATIO * mechanism.sensitivity
    if abs(value) >= most:
        expected = f"one below {exact_text(most)} in size, 2^53 sensitivities: beyond, doubles are too far apart"
        raise InputError(where, _UNSAID, expected)


def certified(outcome: Outcome, path: str) -> Statement:
    """The statement of a certificate that passed. Raises CertificateError for one of several mechanisms.

    Precondition: ``outcome.exit_code`` is 0.
    """
    if outcome.statement is None:
        raise CertificateError(path, "a certificate of a composition", "one of a single mechanism")
    return outcome.statement


def draw(
    statement: Statement,
    value: Fraction,
    count: int = 1,
    grid: Fraction | None = None,
    progress: Callable[[float], None] | None = None,
    bits: BitSource | None = None,
) -> Release:
    """``count`` independent releases of ``value``: its sum with noise of exactly the declared distribution, rounded.

    ``grid`` is a power of two (2⁻²⁰ of the sensitivity by default). ``bits`` is for tests; else they come from the
    operating system. Raises InputError, and draws nothing, where an argument makes no sense. Precondition: the
    statement's certificate has passed.
    """
    mechanism = statement.mechanism
    require_size(value, mechanism)
    if not 1 <= count <= MAX_COUNT:
        raise InputError("--count", str(count), f"a whole number from 1 to {MAX_COUNT}")
    source = sampler(mechanism, grid, bits)
    if count * source.grid.denominator.bit_length() > MAX_PLACES:
        raise InputError("--count", str(count), f"a smaller one at so fine a grid: at most {MAX_PLACES} digits in all")
    found: list[int] = []
    try:
        while len(found) < count:
            found += source.multiples(value, min(CHUNK, count - len(found))).tolist()
            if progress is not None:
                progress(len(found) / count)
    except StuckBits as error:
        raise InputError("random bits", str(error), "the operating system's generator") from None
    return Release(statement, source.grid, tuple(found))


def exact_decimal(multiple: int, grid: Fraction) -> str:
    """multiple · grid in plain decimal digits, exactly, for a grid that is a power of two."""
    places = grid.denominator.bit_length() - 1
    digits = multiple * grid.numerator * 5**places  # grid = numerator · 5^places / 10^places
    text = format(decimal.Decimal((digits < 0, decimal.Decimal(abs(digits)).as_tuple().digits, -places)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def release_document(path: str, outcome: Outcome, release: Release | None) -> dict[str, Any]:
    """What ``release --json`` prints: ``values`` (exact decimals; none where the certificate did not pass), ``grid``,
    ``certificate``, and what ``verify`` says of that."""
    shown = outcome_document(path, outcome)
    del shown["path"]
    document: dict[str, Any] = {"values": [], "grid": None, "certificate": path, **shown}
    if release is not None:
        document |= {"values": release.values(), "grid": exact_decimal(1, release.grid)}
    return document


def release_block(path: str, outcome: Outcome, release: Release | None) -> str:
    """The same for people: the values, a line each, and what was used; or why there are none."""
    if release is None:
        return outcome_line(path, outcome)
    *others, last = [f"released: {value}" for value in release.values()]
    rows = [
        ("guarantee", statement_in_words(release.statement)),
        ("noise", f"drawn exactly; value and noise added exactly, the sum rounded to {exact_decimal(1, release.grid)}"),
        ("certificate", path),
    ]
    return "\n".join([*others, block(last, rows)])
