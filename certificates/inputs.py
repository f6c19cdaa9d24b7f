"""What the command line is given to read: claims in TOML or JSON files, and certificates by file or directory."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from certificates.canonical import strict_json
from certificates.errors import FileError
from certificates.files import read_bounded
from mechanisms.claims import Statement, read_statement
from mechanisms.numbers import InputError


def read_claim_file(path: str | os.PathLike[str]) -> Statement:
    """The statement in a file whose name ends in .toml or .json.

    Raises InputError that names the file and, where it can, the field.
    """
    where = os.fspath(path)
    readers = {".toml": _toml, ".json": strict_json}
    suffix = Path(path).suffix.lower()
    if suffix not in readers:
        raise FileError(where, f"a name that ends in {suffix!r}", "one that ends in .toml or .json")
    document = readers[suffix](read_bounded(path), where)
    try:
        return read_statement(document)
    except InputError as error:
        raise InputError(f"{where}: {error.where}", error.got, error.expected) from None


def _toml(data: bytes, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(data.decode("utf-8"))
    except ValueError as error:
        raise InputError(where, str(error), "a TOML document in UTF-8") from None
    except RecursionError:
        raise InputError(where, "nesting too deep", "a TOML document of a few levels") from None


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
