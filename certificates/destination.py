"""Where a new certificate goes, and who signs it: looked at before the work begins, written after it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from securesystemslib.signer import Signer  # type: ignore[attr-defined]

from audit.composition import Composition
from audit.losses import Losses
from audit.verdict import Decision
from certificates.compositions import issue_composition
from certificates.files import require_writable, write_atomically
from certificates.issue import issue
from certificates.signing import Passphrase, load_signer, read_public_key
from certificates.trust import KEY_NAME, ensure_signing_key, home, require_place
from mechanisms.claims import Statement


@dataclass(frozen=True)
class Destination:
    """The path of a certificate and what opens its signer."""

    path: str
    signer: Callable[[], Signer]

    @classmethod
    def prepare(
        cls,
        path: str,
        *,
        key: str | None = None,
        public_key: str | None = None,
        passphrase: Passphrase,
        notice: Callable[[str], None],
    ) -> Destination:
        """Check that ``path`` can be written, and open the signer: ``key`` (a file or URI), else the user's own.

        A passphrase is asked for here. A first key of the user's is made only when it is to sign, and ``notice`` gets
        a line that says so. Raises CertificateError.
        """
        require_writable(path)

        def own() -> Signer:
            found = ensure_signing_key(passphrase=passphrase)
            if found.made:
                notice(f"made your signing key, {found.path}, and trusted it")
            return found.signer

        if key is None and not os.path.lexists(home() / KEY_NAME):
            require_place()
            return cls(path, own)
        known = None if public_key is None else read_public_key(public_key)
        signer = own() if key is None else load_signer(key, known, passphrase)
        return cls(path, lambda: signer)

    def write(self, statement: Statement, decision: Decision, losses: Losses, **evidence: Any) -> None:
        """Sign and write; afterwards the file is whole, or as it was. ``evidence`` is that of certificates.issue."""
        time = datetime.now(UTC)
        write_atomically(
            self.path, issue(statement, decision, losses=losses, time=time, signer=self.signer(), **evidence)
        )

    def write_composition(self, composition: Composition) -> None:
        """As write, for a composition that is verified."""
        write_atomically(self.path, issue_composition(composition, time=datetime.now(UTC), signer=self.signer()))
