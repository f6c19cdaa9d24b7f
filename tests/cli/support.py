"""The types of the fixtures, and how a command ended."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GAUSSIAN = """
[mechanism]
family = "gaussian"
sensitivity = "1"
sigma = "{sigma}"
[claim]
kind = "direct"
epsilon = "1"
delta = "1e-6"
"""
"""A claim that holds from a sigma of 4.2246… on."""


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on standard output."""
        found = json.loads(self.stdout)
        assert isinstance(found, dict)
        assert self.stdout.count("\n") == 1
        return found


Run = Callable[..., Ran]
Refused = Callable[..., str]
Program = Callable[..., subprocess.Popen[bytes]]
ClaimFile = Callable[..., Path]
