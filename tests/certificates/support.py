"""What the tests of this package share."""

from __future__ import annotations

from typing import TypeVar

import pytest

from mechanisms.numbers import InputError

Error = TypeVar("Error", bound=InputError)

# RFC 8032, section 7.1, test 2.
PUBLIC = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
MESSAGE = b"\x72"
SIGNATURE = (
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)


def message(caught: pytest.ExceptionInfo[Error]) -> tuple[str, object, str]:
    """Where it stood, what was got, what was expected."""
    return caught.value.where, caught.value.got, caught.value.expected
