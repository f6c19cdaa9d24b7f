"""sup of D over the shifts: covers, boxes, and how a search ends."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as st

from audit.density import Density
from audit.divergence import PointBound
from audit.exact import upper
from audit.shape import Roughness
from audit.shifts import Box, Peak, Search, is_cover
from audit.single import Points
from audit.verdict import Expired, Limits
from tests.audit.support import FEW, ZOO, bits, multi_gaussian
from tests.soundness.referee import CONTEXT, MPF, number

CASES = {**ZOO, "interior": multi_gaussian("0.33", 4, "1")}
"""The worst shift of the last is 0.7486…, at ε = 1."""


def search(name: str, epsilon: str, threshold: Fraction, **options: object) -> Search:
    parameters = {"grid": None, "tightness": None, "limits": Limits(), "progress": None, **options}
    return Search(CASES[name][0].unit_form, Fraction(epsilon), threshold, **parameters)  # type: ignore[arg-type]


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
        looking = search("multi-gaussian", "0.7", threshold, grid=size)
        found = looking.run(lambda: [])
        assert found.exceeds is exceeds
        assert exceeds or found.upper is not None
        if size <= 64 and not exceeds:  # one by one
            assert looking._tops.keys() == {Fraction(i, size) for i in range(size + 1)} and found.boxes == 0


@pytest.mark.parametrize("name", ["multi-gaussian", "camel", "two-rates", "steps", "quasi-gaussian"])
def test_a_box_is_bounded_by_kappa_times_its_ends_and_the_jumps_and_by_no_less(name: str) -> None:
    """κ max D_{α/κ} at the ends + the charge for jumps: a hair above it the box is settled, a hair below it is not."""
    mechanism, density = ZOO[name]
    form, epsilon = mechanism.unit_form, Fraction(7, 10)
    rough = Roughness.of(form)
    for i, level in ((0, 0), (1, 2), (5, 3), (700, 10)):
        box = Box(i, level)
        lift = rough.lift(box.width)
        with bits(128):
            charge = number(upper(rough.upper_charge(form, box.width) / Density(form).mass)) if rough.points else MPF(0)
        top = max(density.divergence(shift, epsilon - lift) for shift in box.ends)
        bound = Fraction(CONTEXT.nstr(CONTEXT.exp(number(lift)) * top + charge, 40))
        for factor, settled in ((1 + Fraction(1, 10**9), True), (1 - Fraction(1, 10**9), False)):
            with bits(128):
                found = search(name, "0.7", bound * factor)
                assert found._is_bounded(Points(form, Limits(), bound), rough, box) == settled, (i, level)


def test_a_box_beyond_all_measure_is_halved_without_a_look() -> None:
    found = search("multi-gaussian", "0.7", Fraction(1, 10))
    form = ZOO["multi-gaussian"][0].unit_form
    with bits(128):
        points = Points(form, Limits(expired=lambda: True), Fraction(1, 10))
        for c, looked_at in ((1600, True), (1601, False)):  # log κ = c/4 for the box of all shifts
            rough = Roughness(Fraction(c), ())
            if looked_at:
                with pytest.raises(Expired):
                    found._is_bounded(points, rough, Box(0, 0))
            else:
                assert not found._is_bounded(points, rough, Box(0, 0))


def test_the_highest_peak_is_kept_with_its_place_on_the_grid() -> None:
    found = search("multi-gaussian", "0.7", Fraction(1, 10), grid=8)
    bounds = [PointBound(arb(0), arb(0), arb(0), ((None, fmpq(i)),)) for i in range(4)]
    with bits(128):
        for shift, low, bound in zip(("1/4", "1/2", "3/4", "1"), (-1, 3, 2, 3), bounds, strict=True):
            found._note_peak(Fraction(shift), arb(low), bound)
        found._note_peak(Fraction(3, 4), arb(1), bounds[0])
    assert found.peak == Peak(Fraction(1, 2), 4, Fraction(3), ((None, fmpq(1)),))
    assert found._tops == {Fraction(1, 4): 0, Fraction(1, 2): 3, Fraction(3, 4): 2, Fraction(1): 3}
    off_the_grid = search("multi-gaussian", "0.7", Fraction(1, 10))
    with bits(128):
        off_the_grid._note_peak(Fraction(1, 3), arb(-1), bounds[0])
    assert off_the_grid.peak == Peak(Fraction(1, 3), None, Fraction(0), ((None, fmpq(0)),))


def test_what_ends_a_search_is_said_in_one_sentence() -> None:
    _, true = multi_gaussian("0.35", 3, "1")[1].supremum("0.7")
    near = Fraction(str(true)) * (1 + Fraction(1, 10**9))
    nearer = Fraction(str(true)) * (1 + Fraction(1, 10**44))

    def stopped(threshold: Fraction, name: str = "multi-gaussian", **limits: object) -> str:
        found = search(name, "0.7", threshold, limits=Limits(**limits)).run(lambda: [])  # type: ignore[arg-type]
        assert found.upper is None and not found.exceeds
        return found.stopped

    assert stopped(nearer, bits=128) == "128 bits do not resolve it; raise the limit on bits"
    assert stopped(nearer, bits=255) == "128 bits do not resolve it; raise the limit on bits"
    assert stopped(near, cells=3) == "3 cells were not enough at one shift; raise the limit on boxes"
    assert stopped(near, boxes=3) == "more than 3 boxes of shifts would be needed; raise the limit on boxes"
    just = Fraction(CONTEXT.nstr(ZOO["camel"][1].supremum("0.7")[1], 40)) * (1 + Fraction(1, 10**9))
    for boxes, box in ((1, "[0, 1]/2^1"), (3, "[3, 4]/2^2"), (7, "[63, 64]/2^6")):
        assert stopped(just, "camel", boxes=boxes) == (
            f"{boxes - (boxes == 1)} boxes of shifts were not enough (working on {box}·Δ); raise the limit on boxes"
        )
    assert stopped(near, expired=lambda: True) == (
        "the time limit ended the search in the box of shifts [0, 1]/2^0·Δ; raise it"
    )
    finer = search("multi-gaussian", "0.7", nearer, limits=Limits(bits=256)).run(lambda: [])
    assert finer.bits == 256 and finer.stopped == "" and finer.upper == nearer


@pytest.mark.parametrize(
    ("name", "gap", "boxes", "summits"),
    [
        ("multi-gaussian", "1e-25", 40, 0),
        ("irregular", "1e-15", 20, 0),
        ("quasi-gaussian", "1e-9", 5, 0),
        ("eighths", "1e-15", 15, 0),
        ("flat-sum", "1e-9", 32, 0),
        ("camel", "1e-9", 30, 0),
        ("interior", "1e-4", 0, 0),  # by a table alone
        ("interior", "1e-15", 14, 1),
        ("interior", "1e-25", 104, 0),
    ],
)
def test_close_calls_are_decided_with_no_more_boxes_than_it_took_once(
    name: str, gap: str, boxes: int, summits: int
) -> None:
    epsilon = "1" if name == "interior" else "0.7"
    worst, true = CASES[name][1].supremum(epsilon)
    shares: list[float] = []
    threshold = Fraction(CONTEXT.nstr(true, 45)) * (1 + Fraction(gap))
    found = search(name, epsilon, threshold, progress=shares.append)
    sup = found.run(lambda: [])
    assert sup.upper == threshold and not sup.exceeds and sup.bits == 128 and sup.stopped == ""
    assert sup.peak is not None and number(sup.peak.lower) <= true
    assert boxes // 2 <= sup.boxes <= boxes and len(found._summits) == summits
    assert shares == sorted(shares) and shares[-1:] == ([] if summits else [1.0])
    below = Fraction(CONTEXT.nstr(true, 45)) * (1 - Fraction(gap))
    sup = search(name, epsilon, below).run(lambda: [Fraction(str(worst))])
    assert sup.exceeds and sup.upper is None and sup.peak is not None and sup.peak.lower > below


def test_a_refutation_is_measured_where_an_enclosure_is_wanted() -> None:
    shift, true = CASES["interior"][1].supremum("1")
    lowers = []
    for tightness in (Fraction(1, 2**14), None):
        found = search("interior", "1", Fraction(CONTEXT.nstr(true / 2, 45)), tightness=tightness)
        peak = found.run(lambda: [Fraction(round(shift * 2**40), 2**40)]).peak
        assert peak is not None and number(peak.lower) <= true
        lowers.append(number(peak.lower) / true)
    assert lowers[0] > 1 - MPF(2) ** -25 and lowers[1] < 1 - MPF(2) ** -20


def test_shifts_that_are_looked_at_are_those_of_the_claim() -> None:
    def looked_at(name: str, grid: int | None, peaks: list[str], seeds: list[str]) -> set[Fraction]:
        _, true = ZOO[name][1].supremum("0.7")
        found = search(name, "0.7", Fraction(CONTEXT.nstr(true, 40)) * 2, grid=grid)
        assert found.run(lambda: [Fraction(peak) for peak in peaks], [Fraction(s) for s in seeds]).upper is not None
        return set(found._tops)

    assert Fraction(1) in looked_at("camel", None, [], [])
    assert Fraction(round(2**40 / Fraction(3)), 2**40) in looked_at("camel", None, ["1/3"], [])
    assert Fraction(round(2**40 / Fraction(7)), 2**40) in looked_at("camel", None, [], ["1/7"])
    on_grid = looked_at("camel", 100, ["1/3", "2"], ["1/7", "-1"])
    assert {Fraction(33, 100), Fraction(1), Fraction(14, 100), Fraction(0)} <= on_grid
    assert all((shift * 100).denominator == 1 for shift in on_grid)


def test_a_search_that_the_time_ends_names_the_box_that_it_was_at(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes: list[Box] = []
    is_bounded = Search._is_bounded

    def noted(self: Search, points: Points, rough: Roughness, box: Box) -> bool:
        boxes.append(box)
        return is_bounded(self, points, rough, box)

    monkeypatch.setattr(Search, "_is_bounded", noted)
    _, true = ZOO["camel"][1].supremum("0.7")
    threshold = Fraction(CONTEXT.nstr(true, 40)) * (1 + Fraction(1, 10**9))
    found = search("camel", "0.7", threshold, limits=Limits(expired=lambda: len(boxes) > 6)).run(lambda: [])
    last = boxes[-1]
    assert last.level > 0 and f"box of shifts [{last.i}, {last.i + 1}]/2^{last.level}·Δ;" in found.stopped


def test_where_a_table_has_proved_it_the_time_only_makes_the_evidence_looser() -> None:
    _, true = CASES["interior"][1].supremum("1")
    threshold = Fraction(CONTEXT.nstr(true, 40)) * (1 + Fraction(1, 10**3))
    limits = Limits(expired=lambda: found._holds)
    found = search("interior", "1", threshold, tightness=Fraction(1, 2**14), limits=limits)
    sup = found.run(lambda: [])
    assert sup.upper == threshold and not sup.exceeds and sup.stopped == "" and sup.bits == 128 and sup.boxes == 0
    limits = Limits(expired=lambda: found._holds and found.peak is not None)
    found = search("interior", "1", threshold, tightness=Fraction(1, 2**14), limits=limits)
    sup = found.run(lambda: [])
    assert sup.upper == threshold and sup.peak is found.peak and sup.peak is not None and sup.exceeds is False
