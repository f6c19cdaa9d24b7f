"""Float proposals for a cover of the shifts by boxes. Proves nothing: each box is decided in balls afterwards."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mechanisms.divergence import Curve, float_divergence
from mechanisms.form import Form

MARGIN = 1e-10
"""What D in floats is good to, roughly."""
LEAST_LIFT = 1e-8
"""Boxes are not halved further where log κ is below this: balls tell better than floats there."""


def propose_cover(form: Form, epsilon: Fraction, goal: float, c: Fraction, most: int) -> list[tuple[int, int]]:
    """(i, level) of boxes [i, i+1]/2^level that cover [0, 1], each with κ max(D_{α/κ}) ≤ goal at its ends by floats.

    Boxes too narrow for floats to tell, or left over when there are about ``most`` boxes, are among them as they are.
    """
    curve = Curve(form, epsilon)
    accepted: list[tuple[int, int]] = []
    waiting = np.array([0])
    for level in range(64):
        width = 2.0**-level
        lift = float(c) * width * width / 4
        ends = np.unique(np.concatenate([waiting, waiting + 1]))
        value = _divergences(curve, form, epsilon, ends * width, lift)
        good = math.exp(min(lift, 700.0)) * value <= goal * (1 - MARGIN)
        fits = good[np.searchsorted(ends, waiting)] & good[np.searchsorted(ends, waiting + 1)]
        if lift < LEAST_LIFT or len(accepted) + len(waiting) > most:
            fits[:] = True
        accepted += [(int(i), level) for i in waiting[fits]]
        waiting = np.concatenate([2 * waiting[~fits], 2 * waiting[~fits] + 1])
        if not len(waiting):
            break
    return accepted


def _divergences(curve: Curve, form: Form, epsilon: Fraction, shifts: np.ndarray, lift: float) -> np.ndarray:
    inner = shifts < 1
    value = np.empty_like(shifts)
    value[inner] = curve.at(shifts[inner], np.full(int(inner.sum()), -lift), precise=True)[0]
    if not inner.all():
        value[~inner] = float_divergence(form, Fraction(1), epsilon - Fraction(lift))
    return np.where(np.isfinite(value), value, np.inf)
