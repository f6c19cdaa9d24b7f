"""Balls for the sampler: a precision of its own while it computes, and enclosures as whole numbers."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import flint

EXTRA_BITS = 33
_lock = threading.RLock()

if hasattr(os, "register_at_fork"):
    # A process forked while another thread computes here would have its precision, and wait for it for ever.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Balls of ``bits`` bits within; the precision before is restored, whatever happens.

    FLINT's precision is one for the process: samplers in several threads take turns here. Other code that changes it at
    the same time can make an enclosure wider, so that more bits are drawn, but no enclosure wrong.
    """
    with _lock, flint.ctx.workprec(bits):
        yield


def scaled_ends(ball: Any, bits: int) -> tuple[int, int] | None:
    """(⌊2^bits · lower end⌋, ⌊2^bits · upper end⌋) of an enclosure, moved outward by 2^−32 at most; both are whole.

    None where the ball is not finite, beyond 2^64, or of radius above 2^−bits: too wide to be of use.
    """
    if not ball.is_finite():
        return None
    middle, exponent = (int(part) for part in ball.mid().man_exp())
    radius, other = (int(part) for part in ball.rad().man_exp())
    if (middle and middle.bit_length() + exponent > 64) or (radius and radius.bit_length() + other > 1 - bits):
        return None
    fine = bits + EXTRA_BITS
    low = high = _shifted(middle, exponent + fine)
    low += _shifted(-radius, other + fine)
    high += 1 - _shifted(-radius, other + fine)
    return low >> EXTRA_BITS, high >> EXTRA_BITS


def _shifted(number: int, places: int) -> int:
    """⌊number · 2^places⌋."""
    return number << places if places >= 0 else number >> min(-places, number.bit_length() + 1)
