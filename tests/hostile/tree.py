"""JSON as an attacker writes it: a name may stand twice, any text may stand where a value should."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass
class Object:
    """The fields of an object in their order; a name may be there several times."""

    fields: list[list[Any]]
    """[name, value] each."""


@dataclass(frozen=True)
class Raw:
    """Text that is written as it stands."""

    text: str


def tree_of(document: Any) -> Any:
    """The tree of a parsed document; its parts are new."""
    if isinstance(document, dict):
        return Object([[name, tree_of(value)] for name, value in document.items()])
    return [tree_of(value) for value in document] if isinstance(document, list) else document


def text_of(node: Any) -> str:
    """The document as text. ``Raw`` parts need not be JSON."""
    if isinstance(node, Raw):
        return node.text
    if isinstance(node, Object):
        fields = (f"{text_of(name)}: {text_of(value)}" for name, value in node.fields)
        return "{" + ", ".join(fields) + "}"
    if isinstance(node, list):
        return "[" + ", ".join(map(text_of, node)) + "]"
    return json.dumps(node, ensure_ascii=False)


def parsed(node: Any) -> Any:
    """What a lenient reader makes of the tree; None where it is no JSON at all."""
    try:
        return json.loads(text_of(node))
    except (ValueError, RecursionError):
        return None


@dataclass
class Place:
    """Where a value stands in the tree: it can be read, replaced and taken away."""

    holder: Any
    index: int

    @property
    def items(self) -> list[Any]:
        """The list of what stands beside it, itself included."""
        return self.holder.fields if isinstance(self.holder, Object) else self.holder  # type: ignore[no-any-return]

    @property
    def value(self) -> Any:
        """What stands there."""
        item = self.items[self.index]
        return item[1] if isinstance(self.holder, Object) else item

    @value.setter
    def value(self, new: Any) -> None:
        if isinstance(self.holder, Object):
            self.items[self.index][1] = new
        else:
            self.items[self.index] = new


def places(node: Any, accept: Callable[[Any], bool] = lambda _: True) -> list[Place]:
    """Every place below the root whose value is accepted, in the order of the text."""
    return [place for place in _walk(node) if accept(place.value)]


def _walk(node: Any) -> Iterator[Place]:
    items = node.fields if isinstance(node, Object) else node if isinstance(node, list) else []
    for index in range(len(items)):
        place = Place(node, index)
        yield place
        yield from _walk(place.value)
