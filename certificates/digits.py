"""Numbers for people, from enclosures: the digits that are certain, and no other."""

from __future__ import annotations

from audit.exact import decimal_lower, decimal_upper
from audit.verdict import Enclosure

DIGITS = 8
"""Most digits that a table shows."""


def certain(value: Enclosure, digits: int = DIGITS) -> str:
    """The leading digits that both ends share, at most ``digits`` of them, then ``…`` where more follow.

    The true number begins with these digits. Where a decimal of that many digits lies between the ends, it is shown
    after ``≈``; ends that are further apart are both shown, rounded outward.
    """
    if value.upper < 0:
        return f"-{certain(Enclosure(-value.upper, -value.lower), digits)}"
    for places in range(digits, 0, -1):
        text = decimal_lower(value.lower, places)
        if text == decimal_lower(value.upper, places):
            return text if text == decimal_upper(value.upper, places) else f"{text}…"
    between = decimal_upper(value.lower, digits)
    if between == decimal_lower(value.upper, digits):
        return f"≈ {between}"
    return f"{decimal_lower(value.lower, digits)} … {decimal_upper(value.upper, digits)}"


def quotient(value: Enclosure, by: Enclosure) -> Enclosure:
    """Encloses value/by, of positive numbers."""
    return Enclosure(value.lower / by.upper, value.upper / by.lower)
