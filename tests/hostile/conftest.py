"""The command line, as in tests/cli, with sound certificates that it trusts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import certificates.pictures
from certificates.signing import PublicKey
from certificates.trust import TrustStore
from tests.cli.conftest import program, run
from tests.hostile.seeds import TRUSTED
from tests.hostile.zoo import edit, sound

__all__ = ["lay", "program", "run", "trusting", "without_pictures"]

Lay = Callable[..., str]


@pytest.fixture
def trusting(audit_home: Path) -> Path:
    """A directory of keys that trusts the one which signs the certificates here."""
    TrustStore(audit_home).add("the house", PublicKey.of_signer(TRUSTED))
    return audit_home


@pytest.fixture
def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without their pictures, which take a second each."""

    def none(*_: object) -> None:
        raise ValueError("none")

    monkeypatch.setattr(certificates.pictures, "make_picture", none)


@pytest.fixture
def lay(tmp_path: Path) -> Lay:
    """Puts a certificate into a file: a sound one, or one that is changed and signed again by the trusted key."""

    def lay(name: str = "cert.json", change: Callable[[Any], Any] | None = None, of: str = "plain") -> str:
        (tmp_path / name).write_bytes(sound(of) if change is None else edit(change, of, TRUSTED)())
        return name

    return lay
