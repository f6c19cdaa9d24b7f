"""Boxes of shifts decided by tables: what is settled is true, what is seen are bounds, and few boxes are needed."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import audit.sweep
from audit.shape import Roughness
from audit.shifts import is_cover
from audit.sweep import CANDIDATES, MOST_BOXES, Sweep, is_within
from audit.verdict import Expired, Limits
from mechanisms.divergence import Curve, float_divergence
from mechanisms.families import Mechanism
from tests.audit.support import FEW, ZOO, bits, mixture, multi_gaussian
from tests.soundness.referee import CONTEXT, number

F = Fraction
Pair = tuple[Mechanism, object]
TEETH = mixture("0.12", ("1", "0"), ("0.8", "0.5"), ("0.6", "1"))
"""D has maxima at 0.2819… and 0.8154…, the second the higher."""
PAIRS = {
    "multi-gaussian": (ZOO["multi-gaussian"], F("0.7")),
    "interior": (multi_gaussian("0.33", 4, "1"), F(1)),
    "teeth": (TEETH, F(1)),
    "quasi-gaussian": (ZOO["quasi-gaussian"], F("0.7")),
}


def sweep(name: str, goal: Fraction, limits: Limits | None = None) -> Sweep:
    (mechanism, _), epsilon = PAIRS[name]
    form = mechanism.unit_form
    with bits(128):
        found = Sweep.of(form, epsilon, Roughness.of(form).c, goal, limits or Limits())
    assert found is not None
    return found


def top(name: str) -> Fraction:
    """sup D, by the referee."""
    (_, density), epsilon = PAIRS[name]
    return F(CONTEXT.nstr(density.supremum(epsilon)[1], 40))


def run(found: Sweep, goal: Fraction) -> bool:
    with bits(128):
        return found.run(goal)


def holds_in(name: str, boxes: list[tuple[int, int]], goal: Fraction) -> bool:
    """Whether floats see D ≤ goal at 65 shifts of every box."""
    (mechanism, _), epsilon = PAIRS[name]
    if not boxes:
        return True
    shifts = np.unique(np.concatenate([np.linspace(i, i + 1, 65) / 2**level for i, level in boxes]))
    values = Curve(mechanism.unit_form, epsilon).at(shifts[(shifts > 0)])[0]
    return bool((values <= float(goal) * (1 + 1e-9)).all())


@FEW
@given(st.sampled_from(sorted(PAIRS)), st.integers(0, 10**6), st.sampled_from([1, 4, 32, 20_000]))
def test_what_is_settled_is_true_and_the_rest_waits(name: str, seed: int, boxes: int) -> None:
    rng = random.Random(seed)
    goal = top(name) * F(rng.choice([rng.uniform(0.01, 1), 1 - 10 ** -rng.uniform(1, 9), 1 + 10 ** -rng.uniform(0, 9)]))
    found = sweep(name, goal, Limits(boxes=boxes))
    everything = run(found, goal)
    assert everything == (not found.waiting) and (not everything or goal >= top(name) * (1 - F(1, 10**12)))
    assert is_cover([*found.settled, *found.waiting]) and len({level for _, level in found.waiting}) <= 1
    assert len(found.settled) + len(found.waiting) <= max(boxes, 1) and len(found.waiting) <= MOST_BOXES
    assert holds_in(name, found.settled, goal)
    with bits(128):
        found.refine(goal, [])
    assert is_cover([*found.settled, *found.waiting]) and holds_in(name, found.settled, goal)


@pytest.mark.parametrize("boxes", [1, 2, 4, 8])
@pytest.mark.parametrize("name", PAIRS)
def test_the_bounds_at_the_ends_are_those_of_the_lemma(name: str, boxes: int) -> None:
    """κ D_(α/κ) at each end of the boxes of the last level, from above and near it."""
    (mechanism, density), epsilon = PAIRS[name]
    goal = top(name) * (1 + F(1, 10**9))
    found = sweep(name, goal, Limits(boxes=boxes))
    assert not run(found, goal)
    level = found.waiting[0][1]
    lift = Roughness.of(mechanism.unit_form).c / 4 / 4**level
    if lift > 1:
        assert not found._seen and level == boxes.bit_length() - 1
        return
    for i, _ in found.waiting:
        for end in (F(i, 2**level), F(i + 1, 2**level)):
            true = CONTEXT.exp(number(lift)) * density.divergence(end, epsilon - lift)
            assert true <= found._seen[end] <= true * (1 + number(F(1, 100))) + 1e-3 * number(goal)


@pytest.mark.parametrize(
    ("name", "gap", "everything", "finer", "most"),
    [
        ("interior", "0.3", True, 1, 8),
        ("interior", "0.001", True, 1, 20),
        ("interior", "1e-4", True, 4, 24),
        ("interior", "1e-5", True, 16, 30),
        ("interior", "1e-7", False, 1, 20),
        ("teeth", "0.001", True, 1, 24),
        ("teeth", "1e-6", True, 8, 40),
        ("quasi-gaussian", "1e-4", True, 2, 9),
        ("quasi-gaussian", "3e-6", False, 1, 1),
    ],
)
def test_few_boxes_and_no_finer_table_than_needed(name: str, gap: str, everything: bool, finer: int, most: int) -> None:
    """What no table would settle is not tried with a finer one."""
    goal = top(name) * (1 + F(gap))
    found = sweep(name, goal)
    coarse = found._table.steps
    assert run(found, goal) is everything and found._table.steps == coarse * finer
    assert len(found.settled) <= most


def test_a_goal_that_floats_see_exceeded_ends_it_at_once() -> None:
    goal = top("interior") * F(9, 10)
    found = sweep("interior", goal)
    coarse = found._table.steps
    assert not run(found, goal) and found._table.steps == coarse
    assert max(found._seen.values()) > float(goal) and len(found._seen) < 40


def test_another_goal_begins_anew() -> None:
    high, low = top("interior") * F(3, 2), top("interior") * F(9, 10)
    found = sweep("interior", high)
    assert found.settled == found.waiting == []
    assert run(found, high) and holds_in("interior", found.settled, high)
    assert not run(found, low) and holds_in("interior", found.settled, low)
    assert is_cover([*found.settled, *found.waiting])
    assert run(found, high) and is_cover(found.settled) and not found.waiting


def test_what_is_done_elsewhere_is_settled_without_a_look() -> None:
    goal = top("interior") * F(9, 10)
    for start, stop in ((F(0), F(1)), (F(1, 2), F(1)), (F(3, 4) - F(1, 64), F(3, 4) + F(1, 64))):
        found = sweep("interior", goal)
        run(found, goal)
        before = set(found.settled)
        with bits(128):
            found.refine(goal, [(start, stop)])
        assert is_cover([*found.settled, *found.waiting])
        new = [box for box in found.settled if box not in before and not is_within(*box, [(start, stop)])]
        assert holds_in("interior", new, goal)
        assert not any(is_within(*box, [(start, stop)]) for box in found.waiting)
        assert (start, stop) != (F(0), F(1)) or not found.waiting
    found = sweep("interior", goal)
    run(found, goal)
    waiting = len(found.waiting) / 2 ** found.waiting[0][1]
    with bits(128):
        found.refine(goal, [])
    assert found.waiting and len(found.waiting) / 2 ** found.waiting[0][1] < waiting / 2


def test_the_watch_is_asked_at_every_level() -> None:
    goal, asked = top("interior") * F(1001, 1000), [0]

    def expired() -> bool:
        asked[0] += 1
        return asked[0] > 3

    found = sweep("interior", goal, Limits(expired=expired))
    with pytest.raises(Expired):
        run(found, goal)
    assert asked[0] == 4 and is_cover([*found.settled, *found.waiting])


@pytest.mark.parametrize("polish", [False, True])
def test_peaks_are_the_high_local_maxima_the_highest_last(polish: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    near = 1e-9 if polish else 0.02
    for name, nearly, expected in (
        ("teeth", 0.9, [0.8154238370659903]),
        ("teeth", 0.1, [0.2819541323793779, 0.8154238370659903]),
        ("interior", 0.9, [0.7486171667403057]),
    ):
        monkeypatch.setattr(audit.sweep, "NEARLY", nearly)
        goal = top(name) * F(1001, 1000)
        found = sweep(name, goal)
        run(found, goal)
        with bits(128):
            peaks = found.peaks(polish)
        inner = [float(peak) for peak in peaks if peak < 1]
        assert inner == pytest.approx(expected, abs=near)
        (mechanism, _), epsilon = PAIRS[name]
        heights = [float_divergence(mechanism.unit_form, peak, epsilon) for peak in peaks]
        assert heights == sorted(heights) and len(peaks) <= 4


def test_the_largest_shift_is_a_peak_where_it_is_the_worst() -> None:
    goal = top("quasi-gaussian") * F(101, 100)
    found = sweep("quasi-gaussian", goal)
    for polish in (False, True):  # and before any run
        with bits(128):
            assert found.peaks(polish)[-1] == 1
    run(found, goal)
    with bits(128):
        assert found.peaks(True)[-1] == 1 and len(found._seen) < 40 * CANDIDATES


def test_a_climb_ends_at_a_local_maximum_of_the_lattice(monkeypatch: pytest.MonkeyPatch) -> None:
    found = sweep("teeth", top("teeth"))
    table = found._table
    with bits(128):
        alpha = audit.sweep.Alpha.of(F(1))
    values = [table.estimate(i, alpha) for i in range(table.steps + 1)]
    for start in range(0, table.steps + 1, 37):
        for step in (0, 1, 2, 16):
            at, height = found._climb(start, step, alpha)
            assert height == values[at] >= values[start] and (step or at == start)
            if step:
                assert all(values[near] <= height for near in (at - 1, at + 1) if 0 <= near <= table.steps)
    few = itertools.repeat(1.0, 99)
    monkeypatch.setattr(found, "_estimate", lambda at, alpha: next(few))
    assert found._climb(40, 16, alpha) == (40, 1.0), "a plateau is no way up"


def test_peaks_are_climbed_to_from_the_local_maxima_among_the_largest_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The place where the climb begins, and its first step: to the neighbour farther off."""
    found = sweep("teeth", top("teeth"))
    unit = found._table.steps // 8
    heights = {1: 2.0, 3: 3.0, 4: 1.0, 5: 4.0, 6: 5.0, 7: 4.5, 8: 6.0}
    climbs: list[tuple[int, int]] = []

    def climb(at: int, step: int, alpha: object) -> tuple[int, float]:
        climbs.append((at // unit, step // unit))
        return at, heights[at // unit]

    monkeypatch.setattr(found, "_estimate", lambda at, alpha: heights[at // unit])
    monkeypatch.setattr(found, "_climb", climb)
    monkeypatch.setattr(audit.sweep, "NEARLY", 0.1)
    found._seen = {F(place, 8): height for place, height in heights.items()}
    with bits(128):
        assert found.peaks(False) == [F(3, 8), F(6, 8), F(1)]
    assert climbs == [(3, 2), (6, 1), (8, 1)]
    climbs.clear()
    found._seen[F(7, 8)] = 0.5  # the least
    monkeypatch.setattr(audit.sweep, "CANDIDATES", 6)
    with bits(128):
        assert found.peaks(False) == [F(3, 8), F(1)]
    assert climbs == [(3, 2), (8, 2)]


def test_the_watch_is_asked_while_a_peak_is_polished() -> None:
    asked: list[int] = []
    found = sweep("teeth", top("teeth"), Limits(expired=lambda: bool(asked.append(1))))
    found._seen = {F(13, 16): 1.0}
    with bits(128):
        found.peaks(False)
        rough = len(asked)
        found.peaks(True)
    assert len(asked) > 2 * rough


def test_a_peak_is_polished_between_its_neighbours_or_left_where_it_is() -> None:
    (mechanism, density), epsilon = PAIRS["teeth"]
    found = sweep("teeth", top("teeth"))
    steps, curve = found._table.steps, Curve(mechanism.unit_form, epsilon)
    for peak in (0.2819541323793779, 0.8154238370659903):
        for at in (int(peak * steps), int(peak * steps) + 1):
            polished = found._polished(curve, at)
            assert abs(float(polished) - peak) < 1e-9 and abs(density.slope(polished, epsilon)) < 1e-6
    for at in (0, 1, int(0.41 * steps), int(0.6 * steps), steps):  # the ends, a valley, a slope
        assert found._polished(curve, at) == F(at, steps)


def test_a_density_without_a_table_has_no_sweep() -> None:
    form = ZOO["camel"][0].unit_form
    with bits(128):
        assert Sweep.of(form, F(1), Roughness.of(form).c, F(1, 100), Limits()) is None


@pytest.mark.parametrize(
    ("box", "ranges", "inside"),
    [
        ((1, 1), [(F(1, 2), F(1))], True),
        ((1, 1), [(F(1, 2) + F(1, 10**9), F(1))], False),
        ((1, 1), [(F(1, 2), F(1) - F(1, 10**9))], False),
        ((0, 2), [(F(1, 2), F(1)), (F(0), F(1, 4))], True),
        ((0, 2), [], False),
        ((0, 2), [(F(0), F(1, 8)), (F(1, 8), F(1, 4))], False),
        ((2**60, 61), [(F(1, 2), F(2**60 + 1, 2**61))], True),
    ],
)
def test_which_boxes_lie_in_a_range(
    box: tuple[int, int], ranges: list[tuple[Fraction, Fraction]], inside: bool
) -> None:
    assert is_within(*box, ranges) is inside
