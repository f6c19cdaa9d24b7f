"""How a composition is shown: as a JSON object for scripts and as a short block of text for people. Decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from audit.composition import Composition, Part
from audit.exact import decimal_upper
from certificates.compositions import DIGITS, composition_in_words, read_composition
from certificates.layout import Rows, between, block, noise_in_words, signature_rows
from certificates.schema import CompositionCertificateRecord, convert
from mechanisms.numbers import exact_text, nearest_float, one_line

SHOWN_PARTS: Final = 20
"""Parts that people are shown; JSON has them all."""
SHOWN_DIGITS: Final = 12
MAX_EXACT_BITS: Final = 12_000


def composition_document(found: Composition, specs: Sequence[str], certificate: str | None) -> dict[str, Any]:
    """What ``compose --json`` prints; ``specs`` are the files of the parts, ``certificate`` the path it was written to.

    Decimals are rounded up.
    """
    return {
        "verdict": found.verdict.value,
        "rho": _exact(found.rho),
        "rho_upper": decimal_upper(found.rho, DIGITS),
        "epsilon_total": _upper(found.epsilon),
        "delta": exact_text(found.delta),
        "epsilon_corollary": _upper(found.corollary_epsilon),
        "order_above_1": _upper(found.order_above_1),
        "releases": found.releases,
        "parts": [
            {
                "spec": spec,
                "mechanism": part.mechanism.document(),
                "epsilon": None if part.pure_epsilon is None else exact_text(part.pure_epsilon),
                "count": part.count,
                "rho": _exact(part.rho),
                "rho_upper": decimal_upper(part.rho, DIGITS),
            }
            for spec, part in zip(specs, found.parts, strict=True)
        ],
        "reason": found.reason,
        "certificate": certificate,
    }


def composition_block(found: Composition, certificate: str | None) -> str:
    """What ``compose`` prints."""
    if found.epsilon is None or found.corollary_epsilon is None or found.order_above_1 is None:
        return one_line(f"{found.verdict.value}: {found.reason}")
    rows = [
        ("rho", f"{decimal_upper(found.rho, SHOWN_DIGITS)}   in all"),
        ("order", f"{nearest_float(1 + found.order_above_1):.6g}   the Rényi order that gives epsilon"),
        ("Corollary 3.8", f"{decimal_upper(found.corollary_epsilon, SHOWN_DIGITS)}   epsilon by its conversion"),
        *_part_rows(found.parts),
        ("certificate", certificate or ""),
    ]
    return block(f"{found.verdict.value}: {composition_in_words(found)}", rows)


def composition_certificate_block(path: str, document: Any) -> str:
    """What ``show`` prints of a parsed certificate of a composition. Raises InputError where it is malformed."""
    record = convert(document, CompositionCertificateRecord, path)
    signed, recorded = record.signed, read_composition(record.signed)
    releases = sum(part.count for part in recorded.parts)
    title = f"({signed.epsilon_total}, {signed.delta})-differential privacy of {releases} releases in all"
    rows = [
        ("rho", between(recorded.rho)),
        ("Corollary 3.8", signed.epsilon_corollary),
        *_part_rows(recorded.parts),
        ("issued", f"{signed.issued} by {signed.tool.name} {signed.tool.version}"),
        *signature_rows(record.signatures),
    ]
    return block(f"{path} records, unchecked: {title}", rows)


def _part_rows(parts: Sequence[Part]) -> Rows:
    rows = [(f"{part.count} ×", _part_in_words(part)) for part in parts[:SHOWN_PARTS]]
    hidden = len(parts) - SHOWN_PARTS
    return [*rows, ("…", f"{hidden} more")] if hidden > 0 else rows


def _part_in_words(part: Part) -> str:
    pure = "" if part.pure_epsilon is None else f", which is ({exact_text(part.pure_epsilon)}, 0)-DP"
    sensitivity = exact_text(part.mechanism.sensitivity)
    noise = f"{noise_in_words(part.mechanism)} at sensitivity {sensitivity}{pure}"
    return f"rho {decimal_upper(part.rho, SHOWN_DIGITS)} each: {noise}"


def _upper(number: Fraction | None) -> str | None:
    return None if number is None else decimal_upper(number, DIGITS)


def _exact(number: Fraction) -> str | None:
    """Exact; None for a rational of thousands of digits."""
    size = max(number.numerator.bit_length(), number.denominator.bit_length())
    return exact_text(number) if size <= MAX_EXACT_BITS else None
