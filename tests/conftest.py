"""No test reads or writes the keys of whoever runs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import Phase, settings

# Mutants are many: the same examples for each of them, and the first that fails is enough.
settings.register_profile(
    "mutation", derandomize=True, database=None, deadline=None, phases=[Phase.explicit, Phase.generate]
)


@pytest.fixture(autouse=True)
def audit_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty AUDIT_HOME of the test's own; it need not exist."""
    home = tmp_path_factory.mktemp("audit") / "home"
    monkeypatch.setenv("AUDIT_HOME", str(home))
    monkeypatch.delenv("AUDIT_PASSPHRASE", raising=False)
    return home
