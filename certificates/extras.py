"""Libraries that only some commands need: imported where they are used, and missed in one line."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from mechanisms.numbers import InputError


def optional(module: str, extra: str, where: str) -> Any:
    """The module. Raises InputError about ``where`` where its library is not installed."""
    library = module.partition(".")[0]
    if importlib.util.find_spec(library) is None:
        raise InputError(where, f"no {library} here", f"it installed: pip install 'sigmacert[{extra}]'")
    return importlib.import_module(module)
