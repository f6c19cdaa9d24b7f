"""What every family of noise has in common: exact parameters, pieces, forms, and how it stands in a file. (trusted)

Parameters are keyword-only and exact: text is read as it is written, a float is the double that it is. ``sensitivity``
Δ is in the unit of the query.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from mechanisms.form import Form, Piece
from mechanisms.numbers import exact_text, read_positive

MAX_LINES = 4096
"""Bound on the lines that a mechanism may declare, so that hostile input costs bounded time."""


def parameter(read: Any) -> Any:
    """A dataclass field whose value ``read(value, name)`` makes exact."""
    return field(metadata={"read": read})


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """Additive noise of an even density, for a query of sensitivity Δ."""

    family: ClassVar[str]
    sensitivity: Fraction = parameter(read_positive)

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            read = item.metadata.get("read")
            if read is not None:
                object.__setattr__(self, item.name, read(getattr(self, item.name), item.name))

    def pieces(self) -> tuple[Piece, ...]:
        """The density on [0, ∞), in the unit of the query, up to a constant factor."""
        raise NotImplementedError

    @cached_property
    def form(self) -> Form:
        """The density as a declared form, in the unit of the query."""
        return Form.normalised_height(self.pieces())

    @cached_property
    def unit_form(self) -> Form:
        """The density of X/Δ: the form that the audit works with."""
        return Form.normalised_height(self.form.scaled(self.sensitivity).pieces)

    def document(self) -> dict[str, Any]:
        """The mechanism as it stands in a file: text and whole numbers only, exact."""
        found: dict[str, Any] = {"family": self.family}
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            found[item.name] = exact_text(value) if isinstance(value, Fraction) else value
        return found
