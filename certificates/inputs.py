"""What the command line is given to read: claims in TOML or JSON files, and certificates by file or directory."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from certificates.canonical import strict_json
from certificates.compositions import is_composition
from certificates.errors import CertificateError, FileError
from certificates.files import MAX_BYTES as MAX_CERTIFICATE_BYTES
from certificates.files import read_bounded
from certificates.schema import CertificateRecord, convert
from mechanisms.claims import Statement, read_statement
from mechanisms.numbers import InputError

MAX_BYTES: Final = 1 << 18
"""Largest claim file: 256 KiB."""
_DEEP_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){33}""", re.ASCII)
"""More parts than a key of any claim has; tomllib takes quadratic time over them."""


def read_claim_file(path: str | os.PathLike[str]) -> Statement:
    """The statement in a file whose name ends in .toml or .json.

    Raises InputError that names the file and, where it can, the field.
    """
    where = os.fspath(path)
    return _statement(_document(path, where, MAX_BYTES), where)


def read_claim_or_certificate(path: str | os.PathLike[str]) -> Statement:
    """The statement in a claim file, or the one that a certificate is about; nothing else in that is looked at.

    Raises InputError that names the file and, where it can, the field.
    """
    where = os.fspath(path)
    document = _document(path, where, MAX_CERTIFICATE_BYTES)
    if is_composition(document):
        raise CertificateError(where, "a certificate of a composition", "one of a single mechanism, or a claim")
    if not (isinstance(document, dict) and "signed" in document):
        return _statement(document, where)
    convert(document, CertificateRecord, where)
    return _statement(document["signed"]["statement"], where, "signed.statement")


def _document(path: str | os.PathLike[str], where: str, limit: int) -> Any:
    readers = {".toml": _toml, ".json": strict_json}
    suffix = Path(path).suffix.lower()
    if suffix not in readers:
        raise FileError(where, f"a name that ends in {suffix!r}", "one that ends in .toml or .json")
    return readers[suffix](read_bounded(path, MAX_BYTES if suffix == ".toml" else limit), where)


def _statement(document: Any, where: str, field: str = "") -> Statement:
    try:
        return read_statement(document, field)
    except InputError as error:
        raise InputError(f"{where}: {error.where}", error.got, error.expected) from None


def _toml(data: bytes, where: str) -> dict[str, Any]:
    expected = "a TOML document in UTF-8"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(where, f"byte 0x{data[error.start]:02x} at {error.start}", expected) from None
    if _DEEP_KEY.search(text):
        raise FileError(where, "a key of more than 32 parts", expected)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem, _, place = str(error).removesuffix(")").partition(" (at ")
        raise FileError(f"{where}: {place}", problem.lower(), expected) from None
    except RecursionError:
        raise FileError(where, "nesting too deep", expected) from None
    except ValueError:
        # The only other one: int() refuses more than 4300 digits.
        raise FileError(where, "a whole number of thousands of digits", expected) from None


def certificate_paths(given: Iterable[str]) -> Iterator[tuple[str, InputError | None]]:
    """The files to verify, each with what is known to be wrong with it; a directory stands for its *.json, sorted."""
    for path in given:
        if not os.path.isdir(path):
            yield path, None
            continue
        try:
            names = sorted(name for name in os.listdir(path) if name.endswith(".json"))
        except OSError as error:
            yield path, FileError(path, (error.strerror or "an error").lower(), "a directory that can be read")
            continue
        if not names:
            yield path, FileError(path, "a directory without *.json files", "certificates in it")
        yield from ((os.path.join(path, name), None) for name in names)
