"""How people are shown a result: a title, rows under it, numbers of a few digits. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from audit.exact import decimal_lower, decimal_upper
from audit.verdict import Enclosure
from certificates.schema import SignatureRecord
from certificates.trust import TrustStore
from mechanisms.families import Mechanism
from mechanisms.numbers import one_line

Rows = list[tuple[str, str]]
"""Labels and what stands beside them."""


def block(title: str, rows: Rows) -> str:
    """A title and indented rows with their labels in one column; rows without text are left out."""
    shown = [(label, text) for label, text in rows if text]
    width = max((len(label) for label, _ in shown), default=0)
    return "\n".join(map(one_line, [title, *(f"  {label:<{width}}  {text}" for label, text in shown)]))


def between(value: Enclosure, digits: int = 10) -> str:
    """The ends to so many digits, rounded outward; one where they agree."""
    low, high = decimal_lower(value.lower, digits), decimal_upper(value.upper, digits)
    return low if low == high else f"{low} … {high}"


PARAMETERS = ("scale", "A", "alpha", "gamma", "T", "sigma", "K")
"""Those that are named beside a family, in this order."""


def noise_in_words(mechanism: Mechanism, claim: Mapping[str, Any] | None = None) -> str:
    """The family and its parameters; an epsilon of its own where the claim has not that one."""
    noise = mechanism.document()
    details = [f"{name} = {_plain(noise[name])}" for name in PARAMETERS if name in noise]
    parts = [(len(noise[name]), name) for name in ("components", "pieces") if name in noise]
    details += [f"{count} {name if count != 1 else name.removesuffix('s')}" for count, name in parts]
    if noise.get("epsilon") not in (None, (claim or {}).get("epsilon")):
        details.append(f"its own epsilon = {noise['epsilon']}")
    return f"{noise['family']} noise ({', '.join(details)})"


def _plain(value: object) -> str:
    """A double for people: its shortest decimal."""
    return repr(float.fromhex(value)) if isinstance(value, str) and value.startswith("0x") else str(value)


def signature_rows(signatures: Sequence[SignatureRecord]) -> Rows:
    """Who has signed, by the names of the trust store. No signature is checked here."""
    trust = TrustStore()
    known = [(signature.keyid, trust.lookup(signature.keyid)) for signature in signatures]
    return [("signature", f"{keyid}   {key.name if key else 'a key that you do not trust'}") for keyid, key in known]
