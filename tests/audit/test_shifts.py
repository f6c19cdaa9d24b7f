"""sup of D over the shifts: covers, boxes, and how a search ends."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.shifts import Box, Search, is_cover
from audit.verdict import Limits
from tests.audit.support import FEW, ZOO, multi_gaussian
from tests.soundness.referee import CONTEXT, number


def search(name: str, epsilon: str, threshold: Fraction, **options: object) -> Search:
    parameters = {"grid": None, "tightness": None, "limits": Limits(), "progress": None, **options}
    return Search(ZOO[name][0].unit_form, Fraction(epsilon), threshold, **parameters)  # type: ignore[arg-type]


BOXES = st.recursive(
    st.just(((0, 0),)),
    lambda inner: st.tuples(inner, inner).map(
        lambda pair: tuple((i, k + 1) for i, k in pair[0]) + tuple((i + (1 << k), k + 1) for i, k in pair[1])
    ),
    max_leaves=20,
)


@FEW
@given(BOXES, st.randoms(use_true_random=False))
def test_a_cover_is_one_and_no_cover_is_none(boxes: tuple[tuple[int, int], ...], rng: random.Random) -> None:
    shuffled = list(boxes)
    rng.shuffle(shuffled)
    assert is_cover(shuffled)
    without = shuffled[1:]
    assert not is_cover(without)
    assert not is_cover([*shuffled, shuffled[0]])
    i, level = shuffled[0]
    assert not is_cover([*without, (i + 1, level)])
    assert not is_cover([*without, (2 * i, level + 1)])


def test_a_box_and_its_grid_points() -> None:
    box = Box(5, 3)
    assert box.ends == (Fraction(5, 8), Fraction(3, 4))
    assert [half.ends for half in box.halves()] == [
        (Fraction(5, 8), Fraction(11, 16)),
        (Fraction(11, 16), Fraction(3, 4)),
    ]
    for size in range(1, 60):
        first, last = box.grid_points(size)
        inside = [i for i in range(size + 1) if Fraction(5, 8) <= Fraction(i, size) <= Fraction(3, 4)]
        assert inside == list(range(first, last + 1))


@pytest.mark.parametrize("factor", ["0.9999", "1.0001"])
@pytest.mark.parametrize("name", ["multi-gaussian", "camel", "two-rates", "steps", "laplace"])
def test_a_search_decides(name: str, factor: str) -> None:
    shift, true = ZOO[name][1].supremum("0.7")
    found = search(name, "0.7", Fraction(str(true)) * Fraction(factor)).run(lambda: [])
    assert found.exceeds == (factor < "1") and (found.upper is not None) == (factor > "1")
    if found.exceeds:
        assert found.peak is not None and abs(number(found.peak.shift) - shift) < 0.1


def test_a_search_says_what_ended_it() -> None:
    _, true = multi_gaussian("0.35", 3, "1")[1].supremum("0.7")
    near = Fraction(str(true)) * (1 + Fraction(1, 10**9))
    boxes = search("multi-gaussian", "0.7", near, limits=Limits(boxes=3)).run(lambda: [])
    cells = search("multi-gaussian", "0.7", near, limits=Limits(cells=3)).run(lambda: [])
    nearer = Fraction(str(true)) * (1 + Fraction(1, 10**44))
    bits_ = search("multi-gaussian", "0.7", nearer, limits=Limits(bits=128)).run(lambda: [])
    time = search("multi-gaussian", "0.7", near, limits=Limits(expired=lambda: True)).run(lambda: [])
    assert "[0, 1]/2^0" in time.stopped  # the box that it was working on
    for found, word in ((boxes, "boxes"), (cells, "cells"), (bits_, "bits"), (time, "time")):
        assert found.upper is None and not found.exceeds and word in found.stopped


def test_an_enclosure_is_tight_where_it_is_asked_to_be() -> None:
    _, true = ZOO["irregular"][1].supremum("0.7")
    tight = search("irregular", "0.7", Fraction(1, 2), tightness=Fraction(1, 2**14), floor=Fraction(1, 1000))
    found = tight.run(lambda: [Fraction(1)])
    assert found.peak is not None and found.upper is not None
    assert number(found.peak.lower) <= true <= number(found.upper)
    assert found.upper <= found.peak.lower * (1 + Fraction(1, 2**12))


@pytest.mark.parametrize("size", [1, 3, 64, 65])
def test_a_grid_of_few_points_and_one_of_more_are_decided_alike(size: int) -> None:
    """A hair above the largest D on the grid verifies, a hair below refutes, whatever D is between the points."""
    twin = multi_gaussian("0.35", 3, "1")[1]
    largest = max(twin.divergence(f"{i}/{size}", "0.7") for i in range(size + 1))
    for factor, exceeds in ((1 + Fraction(1, 10**6), False), (1 - Fraction(1, 10**6), True)):
        threshold = Fraction(CONTEXT.nstr(largest, 40)) * factor
        found = search("multi-gaussian", "0.7", threshold, grid=size).run(lambda: [])
        assert found.exceeds is exceeds
        assert exceeds or found.upper is not None
