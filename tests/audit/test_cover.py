"""Float proposals for a cover: whatever they are, they tile [0, 1]."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from audit.cover import Peak, _divergences, _peak, propose_cover
from audit.shape import Roughness
from audit.shifts import Box, is_cover
from mechanisms.divergence import Curve, float_divergence, local_maxima
from tests.audit.support import ZOO, multi_gaussian

GAPS = ("0.1", "1e-4", "1e-9", "1e-15")
BOXES = {
    "multi-gaussian": (6, 11, 16, 16),
    "irregular": (4, 9, 15, 15),
    "quasi-gaussian": (3, 8, 14, 14),
    "eighths": (5, 10, 16, 16),
    "interior": (9, 20, 47, 81),
}
"""How many it took once, for each gap: more are slow, and where there are much fewer some are too wide."""


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("name", BOXES)
def test_boxes_tile_the_shifts_and_are_few(name: str, gap: str) -> None:
    mechanism = multi_gaussian("0.33", 4, "1")[0] if name == "interior" else ZOO[name][0]
    form, epsilon = mechanism.unit_form, Fraction(1)
    shift, top = local_maxima(form, epsilon)[0]
    boxes = propose_cover(form, epsilon, top * (1 + float(gap)), Roughness.of(form).c, 4096, shift)
    assert is_cover(boxes)
    once = BOXES[name][GAPS.index(gap)]
    assert 0.9 * once - 1 <= len(boxes) <= once
    for i, level in boxes if gap in GAPS[:2] else ():
        box = Box(i, level)
        lift = Roughness.of(form).lift(box.width)
        highest = max(float_divergence(form, end, epsilon - lift) for end in box.ends)
        assert math.exp(lift) * highest <= top * (1 + float(gap)) * (1 + 1e-12)


def test_where_nothing_fits_the_cover_still_ends() -> None:
    form = ZOO["irregular"][0].unit_form
    boxes = propose_cover(form, Fraction(1), 1e-9, Roughness.of(form).c, 500, None)
    assert is_cover(boxes) and len(boxes) <= 1000
    assert len(propose_cover(form, Fraction(1), 1e-9, Roughness.of(form).c, 3, None)) == 4


def test_boxes_to_start_from_are_covered_and_what_is_done_is_left() -> None:
    mechanism = multi_gaussian("0.33", 4, "1")[0]
    form, epsilon = mechanism.unit_form, Fraction(1)
    shift, top = local_maxima(form, epsilon)[0]
    c, goal = Roughness.of(form).c, top * (1 + 1e-6)
    whole = propose_cover(form, epsilon, goal, c, 4096, shift)
    half = propose_cover(form, epsilon, goal, c, 4096, shift, [(1, 1)])
    assert is_cover([(0, 1), *half]) and sorted(half) == sorted(box for box in whole if Box(*box).ends[0] >= 0.5)
    near = Fraction(math.floor(shift * 64) - 1, 64), Fraction(math.floor(shift * 64) + 2, 64)
    fewer = propose_cover(form, epsilon, goal, c, 4096, shift, done=[near])
    assert is_cover(fewer) and len(fewer) < len(whole) - 10
    inside = [level for i, level in fewer if near[0] <= Box(i, level).ends[0] and Box(i, level).ends[1] <= near[1]]
    assert inside and max(inside) == 6


class Given:
    """A curve that returns what it is told, and notes what it is asked."""

    def __init__(self, *answer: list[float]) -> None:
        self._answer = [np.array(values) for values in answer]
        self.asked: list[list[float]] = []

    def at(self, shifts: Any, levels: Any) -> Any:
        self.asked.append(shifts.tolist())
        return self._answer


@pytest.mark.parametrize(
    ("values", "curvature", "found"),
    [
        ([0.5, 0.5 + 2e-7], -3.0, Peak(0.25, 0.5, 1.5, 0.7)),
        ([0.5, 0.5 + 2e-7], 0.0, None),
        ([0.5, 0.5 + 2e-7], 3.0, None),
        ([0.0, 0.0], -3.0, None),
        ([0.5, 0.4], -3.0, None),
        ([0.5, math.inf], -3.0, None),
        ([0.5, math.nan], -3.0, None),
        ([0.5, 0.5 + 2e-7], math.nan, None),
    ],
)
def test_a_peak_is_believed_where_it_is_one(values: list[float], curvature: float, found: Peak | None) -> None:
    peak = _peak(Given(values, [0.0, 0.0], [curvature, 9.0]), 0.25)  # type: ignore[arg-type]
    if found is None:
        assert peak is None
    else:
        assert peak is not None and (peak.shift, peak.value, peak.half_curvature) == (0.25, 0.5, 1.5)
        assert peak.cost == pytest.approx(found.cost, rel=1e-9)


def test_at_the_largest_shift_the_difference_is_exact_and_what_is_not_finite_is_too_much() -> None:
    form, calls = ZOO["irregular"][0].unit_form, []
    given = Given([0.25, math.nan])
    found = _divergences(
        given,  # type: ignore[arg-type]
        form,
        Fraction(1),
        np.array([0.0, 0.5, 1.0]),
        0.125,
        lambda: calls.append(1),
    )
    at_one = float_divergence(form, Fraction(1), Fraction(7, 8))
    assert given.asked == [[0.0, 0.5]] and found.tolist() == [0.25, math.inf, at_one] and calls
    curve = Curve(form, Fraction(1))
    assert _divergences(curve, form, Fraction(1), np.array([0.5]), 0.0, lambda: None) == pytest.approx(
        float_divergence(form, Fraction(1, 2), Fraction(1)), rel=1e-9
    )
