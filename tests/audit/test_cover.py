"""Float proposals for a cover: whatever they are, they tile [0, 1]."""

from __future__ import annotations

from fractions import Fraction

import pytest

from audit.cover import propose_cover
from audit.shape import Roughness
from audit.shifts import is_cover
from mechanisms.divergence import local_maxima
from tests.audit.support import ZOO, multi_gaussian


@pytest.mark.parametrize("gap", ["0.1", "1e-4", "1e-9", "1e-15"])
@pytest.mark.parametrize("name", ["multi-gaussian", "irregular", "quasi-gaussian", "eighths", "interior"])
def test_boxes_tile_the_shifts_and_are_few(name: str, gap: str) -> None:
    mechanism = multi_gaussian("0.33", 4, "1")[0] if name == "interior" else ZOO[name][0]
    form, epsilon = mechanism.unit_form, Fraction(1)
    shift, top = local_maxima(form, epsilon)[0]
    boxes = propose_cover(form, epsilon, top * (1 + float(gap)), Roughness.of(form).c, 4096, shift)
    assert is_cover(boxes)
    assert len(boxes) < 400


def test_where_nothing_fits_the_cover_still_ends() -> None:
    form = ZOO["irregular"][0].unit_form
    boxes = propose_cover(form, Fraction(1), 1e-9, Roughness.of(form).c, 500, None)
    assert is_cover(boxes) and len(boxes) <= 2000
