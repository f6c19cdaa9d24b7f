"""The parts of a search over shifts: what is looked at where nothing is proposed, ranges of summits, first boxes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import pytest
from flint import arb, fmpq

import audit.shifts
from audit.divergence import PointBound
from audit.exact import ball
from audit.shape import Roughness
from audit.shifts import MEASURED, Box, Peak, Search
from audit.single import NeedBoxes, Points
from audit.summit import Range, Summit
from audit.sweep import Sweep
from audit.verdict import Expired, Limits
from mechanisms.lines import ZERO
from tests.audit.support import bits, declared
from tests.audit.test_shifts import CASES, search
from tests.soundness.referee import CONTEXT, number

Boxes = list[tuple[int, int]]


@pytest.mark.parametrize("factor", [1 + Fraction(1, 10**6), 1 - Fraction(1, 10**6)])
@pytest.mark.parametrize(("name", "epsilon", "worst"), [("interior", "1", "49/65"), ("camel", "0.7", "1")])
def test_points_of_a_grid_that_nothing_proposes_are_looked_at_and_none_beyond_it(
    monkeypatch: pytest.MonkeyPatch, name: str, epsilon: str, worst: str, factor: Fraction
) -> None:
    monkeypatch.setattr(Sweep, "of", lambda *arguments: None)
    true = CASES[name][1].divergence(worst, epsilon)
    limits = Limits(boxes=400)
    found = search(name, epsilon, Fraction(CONTEXT.nstr(true, 40)) * factor, grid=65, limits=limits)
    sup = found.run(lambda: [Fraction(0)])
    assert sup.exceeds == (factor < 1) and (sup.upper is None) == (factor < 1)
    assert len(found._tops) <= 4
    assert all(0 <= shift <= 1 and (shift * 65).denominator == 1 for shift in found._tops)


@pytest.mark.parametrize(("name", "epsilon"), [("interior", "1"), ("camel", "0.7")])
def test_a_shift_that_exceeds_is_found_where_nothing_proposes_it(
    monkeypatch: pytest.MonkeyPatch, name: str, epsilon: str
) -> None:
    monkeypatch.setattr(Sweep, "of", lambda *arguments: None)
    shift, true = CASES[name][1].supremum(epsilon)
    threshold = Fraction(CONTEXT.nstr(true, 40)) * Fraction(99, 100)
    found = search(name, epsilon, threshold, limits=Limits(boxes=5000)).run(lambda: [Fraction(0)])
    assert found.exceeds and found.upper is None and found.stopped == ""
    assert found.peak is not None and found.peak.lower > threshold and abs(number(found.peak.shift) - shift) < 0.1


def test_a_table_does_not_decide_a_density_with_jumps() -> None:
    """A comb of period Δ: D is small at 0 and at Δ, and large between, which no bound by the ends alone allows for."""
    ends = ["0", *(f"{k}/4" for k in range(1, 18, 2)), "inf"]
    teeth = [(a, b, "1/50", [("-4" if k % 2 else "0", "0")]) for k, (a, b) in enumerate(itertools.pairwise(ends))]
    mechanism, density = declared(*teeth, scale=1)
    form, threshold = mechanism.unit_form, Fraction(1, 3)
    assert density.divergence("1/2", "1") > 0.9 and density.divergence(1, "1") < 0.1
    with bits(128):  # it would be wrong
        table = Sweep.of(form, Fraction(1), Fraction(1, 50), threshold, Limits())
        assert table is not None and table.run(threshold)
    found = Search(form, Fraction(1), threshold, grid=None, tightness=None, limits=Limits(boxes=400), progress=None)
    assert found.run(lambda: []).exceeds and found._sweep is None


def test_a_bound_below_the_threshold_is_not_taken_from_the_peaks_of_a_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tables prove 1/50; sup D is 0.0130… at 0.7486…, and D(Δ) = 0.0085…, where a table is made to see the peak."""
    asked: list[bool] = []
    peaks = [Fraction(1, 4), Fraction(1, 3), Fraction(1)]
    monkeypatch.setattr(Sweep, "peaks", lambda self, polish: asked.append(polish) or peaks)
    true = CASES["interior"][1].supremum("1")[1]
    tight = search("interior", "1", Fraction(1, 50), tightness=Fraction(1, 64), limits=Limits(boxes=20))
    sup = tight.run(lambda: [])
    assert sup.upper == Fraction(1, 50) and number(tight.goal) < true and not sup.exceeds
    quick = search("interior", "1", Fraction(1, 50))
    assert quick.run(lambda: []).upper == Fraction(1, 50) and quick._tops.keys() == {Fraction(1)}
    assert asked == [False, False]


class FlatPoints:
    """In place of Points: the same D everywhere, and a summit that adds ``excess`` to it."""

    mass = arb(2)

    def __init__(self, value: Fraction, excess: Fraction, step: float = 0.0) -> None:
        self.value, self.excess, self.step = value, excess, step
        self.ranges: list[Range] = []
        self.evaluated: list[Fraction] = []

    def summit(self, shifts: Range, epsilon: Fraction) -> Summit:
        self.ranges.append(shifts)
        return Summit(self.mass * ball(self.excess), self.step * 2, -2.0)

    def evaluate(self, shift: Fraction, epsilon: Fraction, goal: arb) -> tuple[PointBound, arb, arb]:
        self.evaluated.append(shift)
        event = PointBound(arb(0), arb(0), arb(0), ())
        return event, ball(self.value), ball(self.value)

    def summit_of(
        self, shift: str, level: int = 4, grid: int | None = None
    ) -> tuple[tuple[tuple[Fraction, Fraction] | None, Fraction], Peak | None]:
        """At the goal 1/10; and the peak noted."""
        found = search("interior", "1", Fraction(1, 10), grid=grid)
        with bits(128):
            return found._summit_of(cast(Points, self), Fraction(shift), level), found.peak


def test_what_a_summit_adds_is_taken_from_the_goal() -> None:
    """D(φ₀) + excess ≤ goal proves it in the whole range; D(φ₀) ≤ goal does not."""
    excess, hair = Fraction(1, 3000), Fraction(1, 10**12)
    for extra, proved in ((-hair, True), (hair, False), (excess, False)):
        points = FlatPoints(Fraction(1, 10) - excess + extra, excess)
        (ranges, shift), peak = points.summit_of("5/16")
        assert ranges == ((Fraction(4, 16), Fraction(7, 16)) if proved else None) and shift == Fraction(5, 16)
        assert peak is not None and (peak.shift, peak.index) == (shift, None)
    assert FlatPoints(Fraction(1, 20), excess).summit_of("3/10", grid=10)[1] is None  # 3/10 may not be of the grid


def test_a_summit_that_adds_too_much_is_not_tried_where_it_is() -> None:
    for excess, evaluations in ((Fraction(1, 2561), 1), (Fraction(1, 2559), 0)):  # a 256th of the goal is 1/2560
        points = FlatPoints(Fraction(1, 20), excess)
        (ranges, _), _ = points.summit_of("3/10")
        assert len(points.evaluated) == evaluations and (ranges is not None) == bool(evaluations)


def test_summits_are_ranges_of_shifts_of_the_claim() -> None:
    for shift, start, stop in (("1/32", "0", "2/16"), ("31/32", "14/16", "1"), ("3/16", "2/16", "5/16")):
        (ranges, _), _ = FlatPoints(Fraction(1, 20), Fraction(0)).summit_of(shift)
        assert ranges == (Fraction(start), Fraction(stop))


def test_a_summit_is_tried_at_most_twice_the_second_time_nearer_to_the_top() -> None:
    points = FlatPoints(Fraction(1, 20), Fraction(1), step=2.0**-6)
    (ranges, shift), _ = points.summit_of("1/4")
    assert ranges is None and shift == Fraction(1, 4) + Fraction(2, 2**6)  # φ − D′/D″, twice
    places = Fraction(1, 4), Fraction(1, 4) + Fraction(1, 2**6)
    assert points.ranges == [Range(Fraction(3, 16), at, Fraction(6, 16)) for at in places]
    for step in (0.125, 0.25, -0.0625, -0.5):  # onto an end of the range, or beyond
        points = FlatPoints(Fraction(1, 20), Fraction(1), step=step)
        (ranges, shift), _ = points.summit_of("1/4")
        assert (ranges, shift, len(points.ranges)) == (None, Fraction(1, 4), 1)


def summits(
    monkeypatch: pytest.MonkeyPatch,
    shifts: Iterable[str],
    proved_at: int,
    rough: bool = False,
    waiting: int | None = None,
) -> tuple[list[tuple[Fraction, int]], list[tuple[Fraction, Fraction]]]:
    """Where summits are sought, as (shift, level), when D is at the goal at these shifts; and the ranges found."""
    asked: list[tuple[Fraction, int]] = []

    def sought(
        self: Search, points: Points, shift: Fraction, level: int
    ) -> tuple[tuple[Fraction, Fraction] | None, Fraction]:
        asked.append((shift, level))
        width = Fraction(1, 8)
        return (shift - width, shift + width) if level >= proved_at else None, shift + Fraction(1, 2**level)

    found = search("interior", "1", Fraction(1, 10))
    found._tops = {Fraction(shift): Fraction(1, 10) for shift in shifts}
    found._sweep = None if waiting is None else cast(Sweep, SimpleNamespace(waiting=[(0, waiting)]))
    monkeypatch.setattr(Search, "_summit_of", sought)
    found._find_summits(cast(Points, None), Roughness(Fraction(1), (ZERO,) if rough else ()))
    return asked, found._summits


def test_where_summits_are_sought(monkeypatch: pytest.MonkeyPatch) -> None:
    """At shifts within, each a range narrower by 8 until one is proved, from where the last attempt has come nearer."""
    half, eighth = Fraction(1, 2), Fraction(1, 8)
    nearer, there = half + Fraction(1, 2**8), half + Fraction(1, 2**8) + Fraction(1, 2**11)
    asks = [(half, 8), (nearer, 11), (there, 14)]
    assert summits(monkeypatch, ["0", "1/2", "1"], 14) == (asks, [(there - eighth, there + eighth)])
    assert [level for _, level in summits(monkeypatch, ["1/2"], 99)[0]] == [8, 11, 14, 17, 20, 23, 26, 29]
    assert summits(monkeypatch, ["1/2"], 0, waiting=5) == ([(half, 5)], [(half - eighth, half + eighth)])
    assert summits(monkeypatch, ["1/2"], 0, rough=True) == ([], [])
    within, at_its_ends = ["1/2", "7/16", "9/16"], ["1/2", "3/8", "5/8"]
    assert summits(monkeypatch, within, 0)[0] == [(half, 8)]
    assert [shift for shift, _ in summits(monkeypatch, at_its_ends, 0)[0]] == [Fraction(text) for text in at_its_ends]


@pytest.mark.parametrize(("top", "sought"), [("0.0996", False), ("0.0997", True)])
def test_summits_are_sought_within_a_256th_of_the_goal(monkeypatch: pytest.MonkeyPatch, top: str, sought: bool) -> None:
    found = search("interior", "1", Fraction(1, 10))
    found._tops = {Fraction(1, 2): Fraction(top)}
    monkeypatch.setattr(Search, "_summit_of", lambda *given: ((ZERO, Fraction(1)), Fraction(1, 2)))
    found._find_summits(cast(Points, None), Roughness(Fraction(1), ()))
    assert bool(found._summits) == sought


QUARTERS, EIGHTHS = [(0, 2), (1, 2), (2, 2)], [(6, 3), (7, 3)]
COVER = [*QUARTERS, *EIGHTHS]


def first_boxes(
    monkeypatch: pytest.MonkeyPatch,
    proposed: Iterable[tuple[int, int]],
    worst: str | None = None,
    sweep: tuple[Boxes, Boxes] | None = None,
    **limits: Any,
) -> tuple[Boxes, list[Any]]:
    """As (i, level), where floats propose these and a table has left (settled, waiting); and what they were asked."""
    asked: list[Any] = []
    found = search("interior", "1", Fraction(1, 100), limits=Limits(**limits))
    found.peak = None if worst is None else Peak(Fraction(worst), None, ZERO, ())
    found._sweep = None if sweep is None else cast(Sweep, SimpleNamespace(settled=sweep[0], waiting=sweep[1]))
    found._summits = [(ZERO, Fraction(1, 8))]
    monkeypatch.setattr(audit.shifts, "propose_cover", lambda *given: asked.extend(given) or list(proposed))
    return [(box.i, box.level) for box in found._first_boxes(Roughness.of(found.form))], asked


def test_what_is_no_cover_is_not_begun_with(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(first_boxes(monkeypatch, COVER)[0]) == sorted(COVER)
    for without in COVER:
        assert first_boxes(monkeypatch, set(COVER) - {without})[0] == [(0, 0)]
    settled, waiting = [(0, 1)], [(2, 2), (3, 2)]
    rest = [(2, 2), *EIGHTHS]
    assert sorted(first_boxes(monkeypatch, rest, sweep=(settled, waiting))[0]) == rest
    for no_cover in (COVER, EIGHTHS, []):
        assert first_boxes(monkeypatch, no_cover, sweep=(settled, waiting))[0] == waiting
    assert first_boxes(monkeypatch, rest, sweep=([(0, 0)], [])) == ([], [])


@pytest.mark.parametrize(
    ("worst", "order"),
    [
        (None, [*EIGHTHS, *QUARTERS]),
        ("1", [*EIGHTHS, *QUARTERS]),
        ("3/4", [(6, 3), *QUARTERS, (7, 3)]),
        ("1/2", [*QUARTERS, *EIGHTHS]),
        ("0", [(0, 2), (1, 2), *EIGHTHS, (2, 2)]),
    ],
)
def test_the_order_of_work(monkeypatch: pytest.MonkeyPatch, worst: str | None, order: Boxes) -> None:
    """From the last: what begins beyond the middle between the worst shift and 1, the wider before the narrower."""
    assert first_boxes(monkeypatch, COVER, worst)[0] == order


def test_what_floats_are_asked_for_a_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    form = CASES["interior"][0].unit_form
    _, (*asked, check) = first_boxes(monkeypatch, COVER, "3/4", boxes=5, expired=lambda: True)
    assert asked == [form, 1, 0.01, Roughness.of(form).c, 5, 0.75, [(0, 0)], [(ZERO, Fraction(1, 8))]]
    with pytest.raises(Expired):
        check()
    assert first_boxes(monkeypatch, COVER, boxes=5000)[1][4:6] == [4096, None]
    with pytest.raises(NeedBoxes, match=r"^more than 4 boxes of shifts would be needed$"):
        first_boxes(monkeypatch, COVER, boxes=4)


def focus(boxes: Boxes, focused: float) -> tuple[float, list[Any]]:
    """The width last focused on, and what was decided at once."""
    asked: list[Any] = []
    found = search("interior", "1", Fraction(1, 100))
    points = cast(Points, SimpleNamespace(focus=lambda *given: asked.extend(given)))
    rough = Roughness.of(found.form)
    return found._focus(points, rough, [Box(i, level) for i, level in boxes], focused), asked


def test_cells_are_decided_at_once_for_all_boxes_left_where_these_have_drawn_together() -> None:
    """Eight boxes or more, of an eighth of what they spanned the last time."""
    c = Roughness.of(CASES["interior"][0].unit_form).c
    eight = [(i, 7) for i in range(20, 28)]
    shifts = Fraction(20, 128), Fraction(28, 128)
    for order in (eight, eight[::-1]):
        assert focus(order, 0.5) == (1 / 16, [shifts, Fraction(1), c / (4 << 14)])
    for focused in (1.0, 0.75, 0.51):
        assert focus(eight, focused) == (1 / 16, [shifts, Fraction(1), c / (4 << 14)])
    assert focus(eight, 0.49) == (0.49, [])
    assert focus(eight[:7], 1.0) == (1.0, [])
    mixed = [(40, 8), *eight[1:], (55, 8)]
    assert focus(mixed, 1.0) == (1 / 16, [shifts, Fraction(1), c / (4 << 16)])  # for the last, whose turn it is


def test_neither_very_many_boxes_nor_those_beyond_floats_are_decided_at_once() -> None:
    many = [(i, 20) for i in range(513)]
    assert focus(many[:512], 1.0)[0] == 512 / 2**20 and focus(many, 1.0) == (1.0, [])
    assert focus([(i, 1000) for i in range(8)], 1.0)[0] == 2.0**-997
    assert focus([(i, 1001) for i in range(8)], 1.0) == (1.0, [])
    assert focus([*((i, 9) for i in range(8)), (9, 1100)], 1.0) == (1.0, [])


class ScriptedPoints:
    """In place of Points: gives (lower, upper) in 64ths in turn, each with an event of its own, and keeps the asks."""

    def __init__(self, *answers: tuple[int, int]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[Any, ...]] = []

    def _next(self, *asked: Any) -> tuple[PointBound, arb, arb]:
        self.asked.append((*asked[:-1], Fraction(float(asked[-1]))))
        low, high = self.answers.pop(0)
        bound = PointBound(arb(0), arb(0), arb(0), ((None, fmpq(len(self.asked))),))
        return bound, arb(low) / 64, arb(high) / 64

    def evaluate(self, shift: Fraction, epsilon: Fraction, goal: arb) -> tuple[PointBound, arb, arb]:
        return self._next("evaluate", goal)

    def measure(
        self, shift: Fraction, epsilon: Fraction, tightness: Fraction, floor: arb
    ) -> tuple[PointBound, arb, arb]:
        return self._next("measure", tightness, floor)


def event_number(found: Search) -> Any:
    """Of the answer whose event the peak has."""
    assert found.peak is not None
    return found.peak.event[0][1]


def look(found: Search, *answers: tuple[int, int], shift: str = "1/2") -> tuple[bool, list[tuple[Any, ...]]]:
    points = ScriptedPoints(*answers)
    with bits(128):
        exceeds = found._look(cast(Points, points), Fraction(shift))
    assert not points.answers
    return exceeds, points.asked


def test_a_look_where_only_the_threshold_counts() -> None:
    for answer, exceeds in (((0, 32), False), ((32, 32), False), ((33, 60), True)):
        found = search("interior", "1", Fraction(1, 2))
        assert look(found, answer) == (exceeds, [("evaluate", Fraction(1, 2))])
        assert found.goal == Fraction(1, 2) and found.peak is not None and found.peak.lower == Fraction(answer[0], 64)


def test_a_look_aims_a_little_above_what_is_measured() -> None:
    """The highest so far are measured, and the goal rises with them, to the threshold at most."""
    half, tightness, floor = Fraction(1, 2), Fraction(1, 8), Fraction(1, 64)
    found = search("interior", "1", half, tightness=tightness, floor=floor)
    measured = ("measure", MEASURED, floor)
    assert look(found, (1, 20), (8, 16)) == (False, [("evaluate", half), measured])
    assert found.goal == Fraction(18, 64) and event_number(found) == 2
    assert found.peak == Peak(half, None, Fraction(8, 64), ((None, fmpq(2)),))
    assert look(found, (0, 18)) == (False, [("evaluate", Fraction(18, 64))])
    assert found.goal == Fraction(18, 64) and event_number(found) == 2
    assert look(found, (19, 40), (20, 24), shift="1/4") == (False, [("evaluate", Fraction(18, 64)), measured])
    assert found.goal == Fraction(27, 64) and found.peak.shift == Fraction(1, 4)
    assert look(found, (28, 40), (29, 32), shift="1/8")[0] is False
    assert found.goal == half and found.peak.shift == Fraction(1, 8)
    low = search("interior", "1", half, tightness=tightness, floor=floor)
    assert look(low, (0, 1), (0, 0))[0] is False and low.goal == floor * (1 + tightness)


@pytest.mark.parametrize(("last", "exceeds"), [((31, 32), False), ((33, 34), True)])
def test_what_is_measured_across_the_threshold_is_told_from_it(last: tuple[int, int], exceeds: bool) -> None:
    half, floor = Fraction(1, 2), Fraction(1, 64)
    found = search("interior", "1", half, tightness=Fraction(1, 8), floor=floor)
    asks = [("evaluate", half), ("measure", MEASURED, floor), ("evaluate", half)]
    assert look(found, (20, 32), (30, 33), last) == (exceeds, asks)
    assert found.goal == half and event_number(found) == 3
    assert found.peak is not None and found.peak.lower == Fraction(last[0], 64)


def test_what_exceeds_is_measured_once_where_it_is_to_be_enclosed() -> None:
    half = Fraction(1, 2)
    found = search("interior", "1", half, tightness=Fraction(1, 8))
    assert look(found, (33, 60), (40, 41)) == (True, [("evaluate", half), ("measure", MEASURED, half)])
    assert event_number(found) == 2 and found.peak is not None and found.peak.lower == Fraction(40, 64)


def test_boxes_are_worked_off_from_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time what is left may be decided at once; and progress is the share of the shifts that is done."""
    focused: list[tuple[int, float]] = []
    shares: list[float] = []

    def noted(self: Search, points: Points, rough: Roughness, pending: list[Box], width: float) -> float:
        focused.append((len(pending), width))
        return width / 2

    monkeypatch.setattr(Search, "_focus", noted)
    monkeypatch.setattr(Search, "_is_bounded", lambda *given: True)
    found = search("interior", "1", Fraction(1, 10), progress=shares.append)
    pending = [Box(0, 1), Box(2, 2), Box(3, 2)]
    assert found._cover(cast(Points, None), Roughness(Fraction(1), ()), pending)
    assert (pending, found.boxes, shares) == ([], 3, [0.25, 0.5, 1.0])
    assert focused == [(3, 1.0), (2, 0.5), (1, 0.25)]


@pytest.mark.parametrize(("threshold", "points"), [(ZERO, ()), (Fraction(1, 10), (ZERO,))])
def test_floats_are_not_asked_for_a_cover_where_they_do_not_serve(
    monkeypatch: pytest.MonkeyPatch, threshold: Fraction, points: tuple[Fraction, ...]
) -> None:
    monkeypatch.delattr(audit.shifts, "propose_cover")
    assert search("interior", "1", threshold)._first_boxes(Roughness(Fraction(1), points)) == [Box(0, 0)]
