"""Float proposals for a cover of the shifts by boxes. Proves nothing: each box is decided in balls afterwards.

Down to boxes that floats tell apart, D is evaluated at their ends. Below that, round the worst shift φ*, D is taken for
D(φ*) − ½|D″|(φ − φ*)²: what matters there is by how much a box lies below the peak, and the difference of two floats
no longer tells that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechanisms.divergence import Curve, float_divergence
from mechanisms.form import Form
from mechanisms.numbers import nearest_float

MARGIN = 1e-10
"""What D in floats is good to, roughly."""
LEAST_LIFT = 1e-8
"""Where log κ is below this, the model of the peak takes over."""
LEAST_GAIN = 1e-17
"""Boxes are not halved further where κ costs less than this share of the goal."""


@dataclass(frozen=True)
class Peak:
    """D near an interior worst shift: its place, its value, ½|D″|, and the cost of κ there per unit of log κ."""

    shift: float
    value: float
    half_curvature: float
    cost: float


@np.errstate(all="ignore")
def propose_cover(
    form: Form,
    epsilon: Fraction,
    goal: float,
    c: Fraction,
    most: int,
    worst: float | None,
    start: Sequence[tuple[int, int]] = ((0, 0),),
    done: Sequence[tuple[Fraction, Fraction]] = (),
    check: Callable[[], None] = lambda: None,
) -> list[tuple[int, int]]:
    """(i, level) of boxes [i, i+1]/2^level, each with κ max(D_{α/κ}) ≤ goal at its ends by floats.

    They cover the boxes ``start``, which are of one level; without these, [0, 1]. In the ranges ``done`` nothing is
    left to prove.

    Boxes too narrow for floats to tell, or left over when there are about ``most`` boxes, are among them as they are.
    ``worst`` is the shift of the highest peak, where that is known. ``check`` is called now and then, and may raise.
    """
    curve = Curve(form, epsilon, check=check)
    peak = None if worst is None or not 0 < worst < 1 else _peak(curve, worst)
    accepted: list[tuple[int, int]] = []
    waiting = np.array([i for i, _ in start])
    for level in range(start[0][1], 200):
        check()
        width = 2.0**-level
        for low, high in done:
            inside = (waiting * width >= float(low)) & ((waiting + 1) * width <= float(high))
            accepted += [(int(i), level) for i in waiting[inside]]
            waiting = waiting[~inside]
        lift = nearest_float(c) * width * width / 4
        last = lift < LEAST_LIFT if peak is None else lift * peak.cost < LEAST_GAIN * goal
        if last or len(accepted) + len(waiting) > most:
            fits = np.ones(len(waiting), dtype=bool)
        elif peak is not None and lift < LEAST_LIFT:
            distance = np.minimum(np.abs(waiting * width - peak.shift), np.abs((waiting + 1) * width - peak.shift))
            inside = (waiting * width <= peak.shift) & (peak.shift <= (waiting + 1) * width)
            slack = max(0.0, goal * (1 - MARGIN) - peak.value)
            below = np.where(inside, 0.0, peak.half_curvature * distance**2)
            fits = slack + below >= 1.2 * lift * peak.cost
        else:
            ends = np.unique(np.concatenate([waiting, waiting + 1]))
            value = _divergences(curve, form, epsilon, ends * width, lift, check)
            good = math.exp(min(lift, 700.0)) * value <= goal * (1 - MARGIN)
            fits = good[np.searchsorted(ends, waiting)] & good[np.searchsorted(ends, waiting + 1)]
        accepted += [(int(i), level) for i in waiting[fits]]
        waiting = np.concatenate([2 * waiting[~fits], 2 * waiting[~fits] + 1])
        if not len(waiting):
            break
    return accepted


def _peak(curve: Curve, shift: float) -> Peak | None:
    lift = 1e-6
    at, level = np.array([shift, shift]), np.array([0.0, -lift])
    value, _, curvature = curve.at(at, level)
    cost = float(value[1] - value[0]) / lift + float(value[0])
    found = Peak(shift, float(value[0]), -float(curvature[0]) / 2, cost)
    return found if found.half_curvature > 0 and found.cost > 0 and math.isfinite(cost) else None


def _divergences(
    curve: Curve, form: Form, epsilon: Fraction, shifts: np.ndarray, lift: float, check: Callable[[], None]
) -> np.ndarray:
    inner = shifts < 1
    value = np.empty_like(shifts)
    value[inner] = curve.at(shifts[inner], np.full(int(inner.sum()), -lift))[0]
    if not inner.all():
        value[~inner] = float_divergence(form, Fraction(1), epsilon - Fraction(lift), check)
    return np.where(np.isfinite(value), value, np.inf)
