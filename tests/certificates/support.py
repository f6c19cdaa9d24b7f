"""What the tests of this package share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest
from securesystemslib.signer import Signer  # type: ignore[attr-defined]

from audit.decide import decide
from audit.losses import enclose_losses
from certificates.issue import issue
from mechanisms.claims import read_statement
from mechanisms.numbers import InputError, read_real

TIME = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
Document = dict[str, Any]

Error = TypeVar("Error", bound=InputError)

# RFC 8032, section 7.1, test 2.
PUBLIC = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
MESSAGE = b"\x72"
SIGNATURE = (
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)


def certificate(
    mechanism: Document, claim: Document, below: str | None, float_sigma: float | None, signer: Signer
) -> bytes:
    """A sound certificate, with the refutation at the scale ``below`` where there is one."""
    statement = read_statement({"mechanism": mechanism, "claim": claim})
    refutation = None
    if below is not None:
        refutation = decide(read_statement({"mechanism": {**mechanism, "sigma": below}, "claim": claim}))
    return issue(
        statement,
        decide(statement),
        losses=enclose_losses(statement.mechanism),
        refuted_below=None if below is None else read_real(below, "scale"),
        refutation=refutation,
        float_sigma=float_sigma,
        note="for tests",
        time=TIME,
        signer=signer,
    )


def message(caught: pytest.ExceptionInfo[Error]) -> tuple[str, object, str]:
    """Where it stood, what was got, what was expected."""
    return caught.value.where, caught.value.got, caught.value.expected
