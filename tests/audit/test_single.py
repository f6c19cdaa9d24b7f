"""D at single shifts: told from a goal, measured, and concluded from what is known at other ε."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

from audit.divergence import DivergenceAt
from audit.exact import ball, lower, upper
from audit.single import NeedBits, NeedBoxes, Points, _Known, _smaller
from audit.summit import Range
from audit.verdict import Expired, Limits
from mechanisms.arithmetic import BALL
from tests.audit.support import PRECISIONS, ZOO, bits, mixture, multi_gaussian, point
from tests.soundness.referee import CONTEXT, MPF, number

SHIFTS = (Fraction(1, 3), Fraction(7, 8), Fraction(1))


@pytest.mark.parametrize("name", ZOO)
def test_an_evaluation_tells_a_goal_from_the_truth(name: str) -> None:
    mechanism, density = ZOO[name]
    epsilon = Fraction(1, 2)
    for shift in SHIFTS:
        true = density.divergence(shift, epsilon)
        for factor in (Fraction(1, 10), 1 - Fraction(1, 10**12), 1 + Fraction(1, 10**12), Fraction(2)) if true else ():
            goal = Fraction(str(true)) * factor
            for precision in PRECISIONS:
                with bits(precision):
                    points = Points(mechanism.unit_form, Limits(), goal)
                    try:
                        _, low, high = points.evaluate(shift, epsilon, ball(goal))
                    except NeedBits:
                        assert precision < 128
                        continue
                    assert (high <= ball(goal)) == (factor > 1) and (low > ball(goal)) == (factor < 1)
                    assert number(lower(low)) <= true * (1 + MPF(10) ** -28)
                    assert true * (1 - MPF(10) ** -28) <= number(upper(high))


@pytest.mark.parametrize("name", ZOO)
def test_a_measure_is_as_tight_as_asked(name: str) -> None:
    mechanism, density = ZOO[name]
    true = density.divergence(Fraction(5, 7), Fraction(1, 4))
    with bits(192):
        points = Points(mechanism.unit_form, Limits(), Fraction(1, 100))
        _, low, high = points.measure(Fraction(5, 7), Fraction(1, 4), Fraction(1, 10**20), ball(Fraction(1, 10**40)))
    assert number(lower(low)) <= true * (1 + MPF(10) ** -45) and true * (1 - MPF(10) ** -45) <= number(upper(high))
    assert number(upper(high) - lower(low)) <= true * MPF(10) ** -20 * (1 + MPF(10) ** -6) or true < MPF(10) ** -40


@pytest.mark.parametrize("name", ["multi-gaussian", "quasi-gaussian", "irregular", "camel", "laplace", "repeated"])
def test_what_is_concluded_from_other_values_of_epsilon_is_true(name: str) -> None:
    """Many questions at one shift, in random order: chords, neighbours and events answer most of them."""
    mechanism, density = ZOO[name]
    rng = random.Random(name)
    for shift in (Fraction(2, 5), Fraction(1)):
        with bits(128):
            points = Points(mechanism.unit_form, Limits(), Fraction(1, 10))
            for _ in range(12):
                epsilon = Fraction(rng.randint(0, 400), 200)
                true = density.divergence(shift, epsilon)
                # Close to the truth, where a bound that is a little too good would show.
                goal = Fraction(str(true)) * (1 + rng.choice([-1, 1]) * Fraction(1, 10 ** rng.randint(1, 9)))
                if goal <= 0:
                    continue
                assert points.is_at_most(shift, epsilon, ball(goal)) == (number(goal) > true)


@pytest.mark.parametrize("name", ["multi-gaussian", "irregular"])
def test_an_answer_from_what_is_known_is_the_answer(name: str) -> None:
    """Chords are tried on purpose: two values of α known, then all between them."""
    mechanism, density = ZOO[name]
    with bits(128):
        points = Points(mechanism.unit_form, Limits(), Fraction(1, 10))
        for epsilon in (Fraction(1, 2), Fraction(3, 2)):
            points.measure(Fraction(1, 2), epsilon, Fraction(1, 10**9), ball(Fraction(1, 10**12)))
        for i in range(1, 16):
            epsilon = Fraction(1, 2) + Fraction(i, 16)
            true = density.divergence(Fraction(1, 2), epsilon)
            for factor in (Fraction(999, 1000), Fraction(1001, 1000), Fraction(11, 10)):
                goal = Fraction(str(true)) * factor
                assert points.is_at_most(Fraction(1, 2), epsilon, ball(goal)) == (factor > 1)


def known_points(*known: tuple[str, str, str, str]) -> Points:
    """Points at whose shift 1/2 (ε, lower, upper, weight) are known, and nothing may be evaluated."""
    points = Points(ZOO["irregular"][0].unit_form, Limits(), Fraction(1, 10))
    points._bounds[Fraction(1, 2)] = {
        Fraction(e): _Known(*(arb(point(Fraction(number))) for number in numbers)) for e, *numbers in known
    }
    return points


@pytest.mark.parametrize("epsilon", ["1/2", "1/4", "9/10"])
def test_a_chord_in_e_to_the_epsilon_answers_down_to_itself_and_no_further(
    epsilon: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known at ε = 0 and 1, and further out, where D is no help."""
    monkeypatch.setattr(Points, "evaluate", lambda *_: pytest.fail("nothing is known of it"))
    alpha, e = CONTEXT.exp(number(epsilon)), CONTEXT.e
    chord = number("1/10") + (number("1/2") - number("1/10")) * (e - alpha) / (e - 1)
    rows = ("-1", "0", "9/10", "0"), ("0", "0", "1/2", "0"), ("1", "0", "1/10", "0"), ("2", "0", "9/100", "0")
    with bits(128):
        points = known_points(*rows)
        above, below = (Fraction(str(chord)) * (1 + sign * Fraction(1, 10**20)) for sign in (1, -1))
        assert points.is_at_most(Fraction(1, 2), Fraction(epsilon), ball(above))
        with pytest.raises(BaseException, match="nothing is known"):
            points.is_at_most(Fraction(1, 2), Fraction(epsilon), ball(below))
        for row in rows[1:3]:  # one end is no chord
            with pytest.raises(BaseException, match="nothing is known"):
                known_points(row).is_at_most(Fraction(1, 2), Fraction(epsilon), ball(Fraction(2, 5)))


def test_the_event_of_a_larger_epsilon_and_the_value_of_a_smaller_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Points, "evaluate", lambda *_: pytest.fail("nothing is known of it"))
    shift, epsilon = Fraction(1, 2), Fraction(1, 2)
    event = number("1/10") + number("3/10") * (1 - CONTEXT.exp(number("-1/2")))
    with bits(128):
        points = known_points(("0", "0", "1/2", "3/10"), ("1", "1/10", "2", "3/10"))
        assert points.is_at_most(shift, epsilon, ball(Fraction(1, 2)))
        assert points.is_at_most(shift, Fraction(0), ball(Fraction(1, 2)))
        assert not points.is_at_most(shift, epsilon, ball(Fraction(str(event)) * (1 - Fraction(1, 10**20))))
        assert not points.is_at_most(shift, Fraction(1), ball(Fraction(99, 1000)))
        for at, goal in (
            (epsilon, Fraction(str(event)) * (1 + Fraction(1, 10**20))),
            (Fraction(1), Fraction(1, 10)),
            (Fraction(-1, 2), Fraction(1, 2)),  # of a larger ε nothing is known from above
            (Fraction(3, 2), Fraction(1, 20)),  # nor of a smaller one from below
            (Fraction(0), Fraction(49, 100)),
        ):
            with pytest.raises(BaseException, match="nothing is known"):
                points.is_at_most(shift, at, ball(goal))
        with pytest.raises(BaseException, match="nothing is known"):
            points.is_at_most(Fraction(1, 3), epsilon, ball(Fraction(1, 2)))


@pytest.mark.parametrize(("factor", "at_most"), [(Fraction(99, 100), False), (Fraction(101, 100), True)])
def test_what_is_not_known_is_evaluated_and_kept(factor: Fraction, at_most: bool) -> None:
    mechanism, density = ZOO["irregular"]
    true = density.divergence(Fraction(1, 2), Fraction(1, 2))
    with bits(128):
        points = Points(mechanism.unit_form, Limits(), Fraction(1, 10))
        assert points.is_at_most(Fraction(1, 2), Fraction(1, 2), ball(Fraction(str(true)) * factor)) == at_most
        known = points._bounds[Fraction(1, 2)][Fraction(1, 2)]
        assert number(lower(known.lower)) <= true <= number(upper(known.upper)) and known.weight > 0
        assert points._cuts == sorted(points._cuts) and len(points._cuts) > 3


def test_the_next_budget_is_neither_too_near_nor_too_far() -> None:
    assert _smaller(1.0, 0.125) == 0.125 and _smaller(1.0, 0.9) == 0.25
    assert _smaller(1.0, 0.0) == _smaller(1.0, 1e-9) == 2.0**-12 and _smaller(8.0, 1.0) == 1.0


@pytest.mark.parametrize("scale", ["1", "1/10", "1e-320", "0"])
def test_masses_are_brought_near_what_is_looked_for(scale: str) -> None:
    """f is declared up to a factor: one that makes divergences of this size about 1."""
    for name in ("irregular", "laplace", "camel"):
        form = ZOO[name][0].unit_form
        with bits(128):
            points = Points(form, Limits(), Fraction(scale))
            size = points.mass.log() + (arb(point(Fraction(scale))).log() if Fraction(scale) else 0)
            assert -0.6 < float(size) < 0.6
            lift = points.form.pieces[0].sum.lines[0].terms[0][1] - form.pieces[0].sum.lines[0].terms[0][1]
            assert (points.mass / form.mass(BALL)).log().overlaps(arb(point(lift)))


def test_a_search_ends_where_its_budget_is_below_what_bits_resolve_or_cells_run_out() -> None:
    shift, epsilon = Fraction(1, 2), Fraction(1, 2)
    form, density = ZOO["irregular"][0].unit_form, ZOO["irregular"][1]
    goal = Fraction(str(density.divergence(shift, epsilon)))
    with bits(128):
        for gap in (Fraction(1, 10**36), Fraction(1, 10**300)):
            with pytest.raises(NeedBits):
                Points(form, Limits(), goal).evaluate(shift, epsilon, ball(goal * (1 + gap)))
        with pytest.raises(NeedBoxes, match=r"^20 cells were not enough at one shift$"):
            Points(form, Limits(cells=20), goal).evaluate(shift, epsilon, ball(goal * (1 + Fraction(1, 10**20))))
        with pytest.raises(Expired):
            Points(form, Limits(expired=lambda: True), goal).evaluate(shift, epsilon, ball(goal * 2))
        _, low, high = Points(form, Limits(), goal).measure(shift, epsilon, Fraction(1, 10**9), ball(goal * 2))
        assert high <= ball(goal * 2) and upper(high) - lower(low) > goal / 10**9  # below the floor that is enough


class Noted:
    """What was handed to the searches at single shifts, in order: (budget, anchored, by a frame)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[float, bool, bool]] = []

        def noted(
            stretches: Any, proposals: Any, budget: float, anchor: Any, cuts: Any, frame: Any, limits: Any
        ) -> Any:
            self.seen.append((budget, anchor is not None, frame is not None))
            return DivergenceAt(stretches, proposals, budget, anchor, cuts, frame, limits)

        monkeypatch.setattr("audit.single.DivergenceAt", noted)


@pytest.mark.parametrize(
    ("sigma", "K", "first", "last", "asked"),
    [
        # (shift, ε, whether the bounds anchored at Δ are used, whether the frame is)
        (
            "0.33",
            4,
            "0.7",
            "0.71",
            [
                ("0.7", "1", False, True),
                ("0.705", "0.9995", False, True),
                ("0.71", "0.999", False, True),
                ("0.69", "1", False, False),
                ("0.72", "1", False, False),
                ("0.705", "1.001", False, False),
                ("0.7", "0.99", False, False),
            ],
        ),
        ("0.35", 3, "0.99", "1", [("0.99", "1", True, True), ("0.98", "1", True, False), ("1", "1", False, False)]),
    ],
)
def test_a_frame_is_used_where_it_speaks_and_nowhere_else(
    sigma: str,
    K: int,
    first: str,
    last: str,
    asked: list[tuple[str, str, bool, bool]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mechanism, density = multi_gaussian(sigma, K, "1")
    noted = Noted(monkeypatch)
    with bits(128):
        points = Points(mechanism.unit_form, Limits(), Fraction(1, 100))
        points.focus((Fraction(first), Fraction(last)), Fraction(1), Fraction(1, 1000))
        assert points._frame is None  # without cuts there is nothing to decide
        points.measure(Fraction(first), Fraction(1), Fraction(1, 10**6), ball(Fraction(1, 10**20)))
        points.focus((Fraction(first), Fraction(last)), Fraction(1), Fraction(1, 1000))
        for shift, epsilon, anchored, framed in asked:
            noted.seen.clear()
            true = density.divergence(shift, epsilon)
            for factor in (Fraction(10**6 + 1, 10**6), Fraction(10**6 - 1, 10**6)):
                goal = ball(Fraction(CONTEXT.nstr(true, 40)) * factor)
                _, low, high = points.evaluate(Fraction(shift), Fraction(epsilon), goal)
                assert number(lower(low)) <= true * (1 + MPF(10) ** -28)
                assert true * (1 - MPF(10) ** -28) <= number(upper(high))
            assert {seen[1:] for seen in noted.seen} == {(anchored, framed)}, (shift, epsilon)


def test_budgets_begin_where_floats_see_that_they_must(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism, density = ZOO["irregular"]
    shift, epsilon = Fraction(1, 2), Fraction(1, 2)
    true = Fraction(CONTEXT.nstr(density.divergence(shift, epsilon), 40))
    noted = Noted(monkeypatch)
    with bits(128):
        points = Points(mechanism.unit_form, Limits(), true)
        size = float(points.mass) * float(true)
        for gap, share in ((Fraction(1, 10**6), 16e-6), (Fraction(1, 10**30), 16 * 2.0**-36), (Fraction(2), 1.0)):
            noted.seen.clear()
            points.evaluate(shift, epsilon, ball(true * (1 + gap)))
            assert noted.seen[0][0] == pytest.approx(size * float(1 + gap) / 64 * share, rel=1e-3)
        noted.seen.clear()
        _, low, _ = points.evaluate(shift, epsilon, arb(0))
        assert low > 0 and noted.seen[0][0] == pytest.approx(float(points.mass) * 2.0**-20)
        noted.seen.clear()
        points.measure(shift, epsilon, Fraction(1, 10**6), ball(true / 2))
        assert [seen[0] for seen in noted.seen] == [pytest.approx(size / 128)]


@pytest.mark.parametrize("measured", [False, True])
def test_tails_that_were_charged_for_a_larger_budget_are_looked_at_again(
    measured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Components that do not matter at first are left to the tails."""
    mechanism, density = mixture("1", ("1", "0"), ("1e-25", "30"))
    shift, epsilon = Fraction(3, 10), Fraction(1, 20)
    true = density.divergence(shift, epsilon)
    noted = Noted(monkeypatch)
    with bits(192):
        points = Points(mechanism.unit_form, Limits(), Fraction(1))
        if measured:
            _, low, high = points.measure(shift, epsilon, Fraction(1, 10**32), arb(0))
        else:
            goal = ball(Fraction(CONTEXT.nstr(true, 50)) * (1 + Fraction(1, 10**32)))
            monkeypatch.setattr(points, "_propose", lambda *_: (np.empty((0, 2)), None))
            _, low, high = points.evaluate(shift, epsilon, goal)
    assert len(noted.seen) > 1 and noted.seen[-1][0] < noted.seen[0][0] * 2.0**-12
    assert number(lower(low)) <= true * (1 + MPF(10) ** -45) and true * (1 - MPF(10) ** -45) <= number(upper(high))
    assert number(upper(high) - lower(low)) < true * MPF(10) ** -31


def test_a_summit_bounds_its_neighbourhood() -> None:
    mechanism, density = multi_gaussian("0.33", 4, "1")
    at, width = Fraction("0.7678"), Fraction(1, 2**12)
    with bits(128):
        points = Points(mechanism.unit_form, Limits(), Fraction(1, 100))
        points.measure(at, Fraction(1), Fraction(1, 10**6), ball(Fraction(1, 10**20)))
        found = points.summit(Range(at - width, at, at + width), Fraction(1))
        assert found is not None
        excess = found.excess / points.mass
        assert points.summit(Range(1 - width, Fraction(1), Fraction(1)), Fraction(1)) is None  # lines cancel there
    bound = density.divergence(at, "1") + number(upper(excess))
    around = [density.divergence(at + width * i / 4, "1") for i in range(-4, 5)]
    assert max(around) <= bound <= max(around) * (1 + MPF(10) ** -2)
    step = MPF(10) ** -9
    slope = (density.divergence(at + Fraction(1, 10**9), "1") - density.divergence(at, "1")) / step
    assert found.slope / float(points.mass) == pytest.approx(float(slope), rel=1e-3) and found.bend < 0


def test_there_is_no_summit_of_several_pieces_and_no_frame_without_two_cuts() -> None:
    with bits(128):
        camel = Points(ZOO["camel"][0].unit_form, Limits(), Fraction(1, 100))
        assert camel.summit(Range(Fraction(1, 2), Fraction(9, 16), Fraction(5, 8)), Fraction(1)) is None
        points = Points(multi_gaussian("0.33", 4, "1")[0].unit_form, Limits(), Fraction(1, 100))
        for cuts, framed in (([], False), ([-2], False), ([-2, 2], True)):
            points._cuts = [point(Fraction(cut)) for cut in cuts]
            points.focus((Fraction(7, 10), Fraction(71, 100)), Fraction(1), Fraction(1, 1000))
            assert (points._frame is not None) == framed


def test_where_floats_see_nothing_balls_decide() -> None:
    """D is so small that floats take it for 0."""
    with bits(128):
        points = Points(multi_gaussian("0.35", 3, "1")[0].unit_form, Limits(), Fraction(1))
        assert points._propose(Fraction(1, 2), Fraction(60))[1] == 0
        _, low, high = points.evaluate(Fraction(1, 2), Fraction(60), ball(Fraction(1, 10**9)))
        assert high <= ball(Fraction(1, 10**9)) and low.overlaps(arb(0))
