"""Strict reading of JSON, and the RFC 8785 bytes that are signed. (trusted)

Python's reader takes the last of two equal field names, NaN, 1e999 and any depth that the stack allows; this one
refuses each of them, and says where it stands. No number with a fraction or an exponent is read at all: a real number
stands in quotes in this project's files, so no two programs can read it, or write it back, differently.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

import rfc8785

from certificates.errors import (
    CertificateError,
    FieldNameError,
    NestingError,
    NotJsonError,
    NumberError,
    TextEncodingError,
    TooLargeError,
)
from certificates.files import MAX_BYTES

MAX_DEPTH: Final = 32
MAX_NAME: Final = 64
"""Longest field name, in characters."""
MAX_INTEGER: Final = 2**53 - 1
"""Largest whole number that every JSON reader takes as it stands (RFC 8785, section 3.2.2.3)."""

_WHOLE = "a whole number of at most 2^53 − 1; every other number stands in quotes"
# A string that does not end runs to the end of the text, so that the scan stays linear.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKET = re.compile(rb"[^\[\]{}]+")


@dataclass(frozen=True)
class _Refused:
    """Stands in the parsed document for what is refused, until the walk that knows the path meets it."""

    error: type[CertificateError]
    got: str
    expected: str
    field: str | None = None


def strict_json(data: bytes, where: str = "") -> Any:
    """The document in ``data``: dicts, lists, strings, whole numbers, true, false, null.

    Refuses, as a CertificateError that names the field: more than MAX_BYTES, text that is not UTF-8 or begins with a
    byte order mark, nesting over MAX_DEPTH, a field name that stands twice or is not printable, numbers with a
    fraction or an exponent, NaN, Infinity, whole numbers over MAX_INTEGER, and lone surrogates. Time and memory are
    linear in the size. ``where`` stands before the path in the message: the name of the file.
    """
    prefix, where = where, where or "document"
    if len(data) > MAX_BYTES:
        raise TooLargeError(where, f"{len(data)} bytes", f"at most {MAX_BYTES} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TextEncodingError(where, f"byte 0x{data[error.start]:02x} at {error.start}", "UTF-8 text") from None
    if text.startswith("\ufeff"):
        raise TextEncodingError(where, "a byte order mark", "UTF-8 text without one")
    _check_depth(data, where)
    try:
        document = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=lambda token: _Refused(NumberError, token, _WHOLE),
            parse_constant=lambda token: _Refused(NumberError, token, _WHOLE),
        )
    except json.JSONDecodeError as error:
        raise NotJsonError(
            where, f"{error.msg.lower()} at line {error.lineno}, column {error.colno}", "one JSON document"
        ) from None
    _check(document, "", prefix)
    return document


def canonical_bytes(document: object) -> bytes:
    """The RFC 8785 bytes of a document without floats. Raises a CertificateError where strict_json would refuse it."""
    _check(document, "", "")
    return rfc8785.dumps(document)  # type: ignore[arg-type]


def _check_depth(data: bytes, where: str) -> None:
    """Before the parser runs: it calls itself for each level."""
    depth = 0
    for bracket in _NOT_BRACKET.sub(b"", _STRING.sub(b"", data)):
        if bracket in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise NestingError(where, f"nesting deeper than {MAX_DEPTH}", f"at most {MAX_DEPTH} levels")
        else:
            depth -= 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Refused:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if len(name) > MAX_NAME or not name.isprintable():
            return _Refused(FieldNameError, name, f"field names of at most {MAX_NAME} printable characters")
        if name in found:
            return _Refused(FieldNameError, "this field twice", "each field once", field=name)
        found[name] = value
    return found


def _integer(token: str) -> int | _Refused:
    # The length first: int() of a megabyte of digits takes long, and refuses only at its own limit.
    if len(token) > 17 or abs(number := int(token)) > MAX_INTEGER:
        return _Refused(NumberError, token, _WHOLE)
    return number


def _check(value: object, path: str, where: str) -> None:
    """Raise at the first refused value; the depth is bounded by now."""
    if isinstance(value, _Refused) and value.field is not None:
        path = _join(path, value.field)
    here = ": ".join(filter(None, (where, path))) or "document"
    if isinstance(value, _Refused):
        raise value.error(here, value.got, value.expected)
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise TextEncodingError(here, "half of a surrogate pair", "text that UTF-8 can hold") from None
    elif isinstance(value, dict):
        for name, item in value.items():
            _check(item, _join(path, name), where)
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            _check(item, f"{path}[{number}]", where)
    elif isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise NumberError(here, f"a number of {value.bit_length()} bits", _WHOLE)
    elif value is not None:
        raise NumberError(here, value, _WHOLE)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
