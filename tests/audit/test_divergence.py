"""D at one shift: the enclosure holds whatever is proposed and however early the search stops."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as st

from audit.cells import End, StretchBalls
from audit.density import Density
from audit.divergence import Cells, DivergenceAt, PointBound, around, cut_points, joined
from audit.exact import fraction, lower, upper
from audit.masses import Interval, MovedMasses
from audit.verdict import Expired, Limits
from mechanisms.difference import Stretch
from mechanisms.divergence import float_divergence
from mechanisms.families import Mechanism
from mechanisms.lines import Line, LineSum
from tests.audit.support import FEW, PRECISIONS, ZOO, bits, contains, multi_gaussian, point
from tests.soundness.referee import CONTEXT, MPF, number

SHIFTS = (Fraction(0), Fraction(1, 8), Fraction(1, 3), Fraction(7, 8), Fraction(999, 1000), Fraction(1))


def bound(
    mechanism: Mechanism,
    shift: Fraction,
    epsilon: Fraction,
    budget: float,
    roots: Any = (),
    limits: Limits | None = None,
) -> tuple[PointBound, Any, Any]:
    """(the bound, lower, upper), the latter divided by the mass of f."""
    density = Density(mechanism.unit_form)
    size = float(density.mass) * budget
    search = DivergenceAt(density.stretches(shift, epsilon), roots, size, density.anchor(shift, epsilon))
    found = search.bound(size, limits or Limits())
    return found, found.lower / density.mass, found.upper / density.mass


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("name", ZOO)
def test_the_enclosure_contains_the_truth(name: str, shift: Fraction) -> None:
    mechanism, density = ZOO[name]
    for epsilon in (Fraction(0), Fraction(1, 2), Fraction(2)):
        true = density.divergence(shift, epsilon)
        with bits(128):
            for budget in (1e-1, 1e-9):
                _, low, high = bound(mechanism, shift, epsilon, budget)
                assert number(lower(low)) <= true * (1 + MPF(10) ** -30) + MPF(10) ** -40
                assert true * (1 - MPF(10) ** -30) <= number(upper(high))
                assert float(high) - float(low) <= 1.01 * budget + 1e-18


@pytest.mark.parametrize("name", ZOO)
def test_two_precisions_overlap_and_floats_and_60_digits_agree(name: str) -> None:
    mechanism, density = ZOO[name]
    shift, epsilon = Fraction(5, 7), Fraction(3, 4)
    true = density.divergence(shift, epsilon)
    found = []
    for precision in PRECISIONS:
        with bits(precision):
            _, low, high = bound(mechanism, shift, epsilon, 1e-13)
            found.append((lower(low), upper(high)))
    (rough_low, rough_high), (fine_low, fine_high) = found
    assert rough_low <= fine_high and fine_low <= rough_high
    assert float_divergence(mechanism.unit_form, shift, epsilon) == pytest.approx(float(true), rel=1e-9, abs=1e-14)
    assert float(fine_low) == pytest.approx(float(true), abs=2e-13)


@FEW
@given(
    st.sampled_from(sorted(ZOO)),
    st.fractions(0, 1, max_denominator=500),
    st.fractions(0, 3, max_denominator=50),
    st.lists(st.floats(-50, 50) | st.sampled_from([float("nan"), float("inf"), 5e-324]), max_size=6),
    st.floats(-7, -1),
)
def test_no_proposal_makes_it_wrong(
    name: str, shift: Fraction, epsilon: Fraction, roots: list[float], log: float
) -> None:
    mechanism, density = ZOO[name]
    true = density.divergence(shift, epsilon)
    with bits(128):
        _, low, high = bound(mechanism, shift, epsilon, 10**log, roots, Limits(cells=3000))
    assert number(lower(low)) <= true * (1 + MPF(10) ** -30) + MPF(10) ** -40
    assert true * (1 - MPF(10) ** -30) <= number(upper(high))


@pytest.mark.parametrize("name", ["multi-gaussian", "irregular", "camel", "gap", "two-rates"])
def test_it_holds_where_the_cells_run_out(name: str) -> None:
    mechanism, density = ZOO[name]
    shift, epsilon = Fraction(3, 5), Fraction(1, 2)
    true = density.divergence(shift, epsilon)
    with bits(128):
        wide = []
        for cells in (1, 8, 20, 60):
            _, low, high = bound(mechanism, shift, epsilon, 1e-20, limits=Limits(cells=cells))
            assert number(lower(low)) <= true <= number(upper(high))
            wide.append(upper(high) - lower(low))
    assert wide == sorted(wide, reverse=True)


@pytest.mark.parametrize("name", ZOO)
def test_the_event_attains_the_lower_end_and_the_weight_is_no_more_than_its_own(name: str) -> None:
    mechanism, density = ZOO[name]
    shift, epsilon = Fraction(1, 3), Fraction(1, 2)
    with bits(128):
        found, low, _ = bound(mechanism, shift, epsilon, 1e-9)
        mass = Density(mechanism.unit_form).mass
        weight = found.weight / mass
    there, here = MPF(0), MPF(0)
    for a, b in found.event:
        ends = [None if end is None else fraction(end) for end in (a, b)]
        here += CONTEXT.exp(number(epsilon)) * density.probability(*ends)
        there += density.probability(*(None if end is None else end + shift for end in ends))
    assert contains(low, there - here, slack=1e-13)
    assert number(lower(weight)) <= here + MPF(10) ** -30
    with bits(128):
        cancels = Density(mechanism.unit_form).cancels(shift)
    assert cancels or contains(weight, here, slack=1e-13)


def test_of_masses_only_what_the_budget_feels_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    floors: list[float] = []
    over = MovedMasses.over

    def noted(self: MovedMasses, interval: Interval, floor: float = -math.inf) -> arb:
        floors.append(floor)
        return over(self, interval, floor)

    with bits(128):
        density = Density(ZOO["multi-gaussian"][0].unit_form)  # 7 lines, and 4 intervals at this shift
        search = DivergenceAt(density.stretches(Fraction(1, 3), Fraction(1, 2)), [], 1e-3)
        search.bound(1e-3, Limits())
        monkeypatch.setattr(MovedMasses, "over", noted)
        found = search.bound(1e-3, Limits())
        assert len(found.event) == 4 and floors == [pytest.approx(math.log(1e-3 / (4 * 14)) - 6)] * 8
        floors.clear()
        DivergenceAt([], [], 1e-3).bound(1e-3, Limits())
        search.bound(0.0, Limits(cells=1))
        assert set(floors) == {-math.inf}


def test_intervals_that_touch_are_joined() -> None:
    cells = [(fmpq(2), fmpq(3)), (fmpq(0), fmpq(1)), (None, fmpq(0)), (fmpq(1), fmpq(3, 2)), (fmpq(3), None)]
    assert joined(cells) == [(None, fmpq(3, 2)), (fmpq(2), None)]
    assert joined([]) == []


def test_a_narrow_peak_between_two_sign_changes_is_not_missed() -> None:
    """Near the worst shift of ε = 10 the integrand is positive on a sliver; nothing proposes it here."""
    mechanism, density = multi_gaussian("0.184745", 9, "10")
    shift = Fraction("0.9291751721475145")
    true = density.divergence(shift, "10")
    with bits(128):
        _, low, high = bound(mechanism, shift, Fraction(10), 1e-12)
    assert number(lower(low)) <= true <= number(upper(high))
    assert float(low) == pytest.approx(2.3293248e-7, rel=1e-4)


def test_the_watch_is_asked() -> None:
    with bits(128), pytest.raises(Expired):
        bound(ZOO["camel"][0], Fraction(1, 3), Fraction(1, 2), 0.0, limits=Limits(expired=lambda: True))


def pair_of(width: Fraction | None, *centres: int) -> StretchBalls:
    """Positive lines e^(−(x−m)²) at these centres; the negative one at 0. On [0, width], or the whole line."""
    above = LineSum(Fraction(1), tuple(Line.of(Fraction(1), -Fraction(m * m), Fraction(2 * m)) for m in centres))
    below = LineSum(Fraction(1), (Line.of(Fraction(2), Fraction(0), Fraction(0)),))
    return StretchBalls.cancelled(Stretch(None if width is None else Fraction(0), width, above, below))


def test_a_finite_stretch_is_cut_at_its_ends_round_roots_and_where_a_neighbour_was() -> None:
    with bits(128):
        balls = pair_of(Fraction(4), 1, 2)
    extra = [fmpq(-1), fmpq(0), fmpq(1, 2), fmpq(3), fmpq(4), fmpq(5)]
    around_one = around(1.0)
    assert around_one == [1 - fmpq(1, 2**42), 1 + fmpq(1, 2**42)]
    assert around(0.0) == [-fmpq(1, 2**62), fmpq(1, 2**62)]
    assert around(-8.0) == [-8 - fmpq(8, 2**42), -8 + fmpq(8, 2**42)]
    expected = [fmpq(0), fmpq(1, 2), *around_one, fmpq(3), fmpq(4)]
    assert cut_points(balls, [1.0, 7.0, -7.0], extra) == expected
    assert cut_points(balls, [1.0], extra, 1e-9) == expected
    assert cut_points(balls, [1.0, 1.0], [*extra, *extra, *around_one]) == expected


def test_an_infinite_stretch_is_cut_a_little_beyond_all_of_interest() -> None:
    zero, one = LineSum(Fraction(0), (Line.of(Fraction(1), Fraction(0), Fraction(1)),)), fmpq(1)
    with bits(128):
        near, far = pair_of(None, 0, 1), pair_of(None, 0, 4)
        left = StretchBalls.cancelled(Stretch(None, Fraction(3), zero, zero.reflected()))
        right = StretchBalls.cancelled(Stretch(Fraction(-3), None, zero, zero.reflected()))
        bare = StretchBalls.cancelled(Stretch(None, None, zero, zero.reflected()))
    assert cut_points(near, [], []) == [-fmpq(9, 64), one + fmpq(9, 64)]
    assert cut_points(far, [], []) == [-fmpq(33, 64), 4 + fmpq(33, 64)]
    assert cut_points(bare, [], []) == [-fmpq(9, 64), fmpq(9, 64)]
    assert cut_points(left, [], []) == [3 - fmpq(9, 64), fmpq(3)]
    assert cut_points(right, [], []) == [fmpq(-3), -3 + fmpq(9, 64)]
    beyond = cut_points(near, [5.0], [fmpq(-9), fmpq(2), fmpq(9)])
    assert beyond[1] == 2 and beyond[2:4] == around(5.0) and len(beyond) == 5
    assert [-beyond[0] * 2**16, (beyond[4] - 5) * 2**16] == [41985, 41985]  # 5/8 + 1/64, rounded outwards


@pytest.mark.parametrize(("far", "dropped"), [("60", True), ("25/2", True), ("12", False)])
def test_lines_that_do_not_matter_are_left_to_the_tails(far: str, dropped: bool) -> None:
    """Masses fall as e^(−m²): at a budget of 0.1 the centres ±4 matter, and those further out do not."""
    rows = [(Fraction(1), -2 * m * m, 2 * m) for m in (-Fraction(far), Fraction(-4), Fraction(4), Fraction(far))]
    above = LineSum(Fraction(1), tuple(Line.of(*row) for row in rows))
    below = LineSum(Fraction(1), (Line.of(Fraction(2), Fraction(0), Fraction(0)),))
    with bits(128):
        balls = StretchBalls.cancelled(Stretch(None, None, above, below))
    everything = cut_points(balls, [], [])
    assert everything[0] < -point(Fraction(far)) and everything[-1] > point(Fraction(far))
    found = cut_points(balls, [4.5, -4.75, 5.5, -5.5], [], 0.1)
    if dropped:
        assert found[1:-1] == [*around(-4.75), *around(4.5)] and -6 < found[0] < -5 and 5 < found[-1] < 6
    else:
        assert found[1:-1] == [*around(-5.5), *around(-4.75), *around(4.5), *around(5.5)]
        assert found[0] < -12 and found[-1] > 12


@pytest.mark.parametrize(
    ("name", "epsilon", "shift", "most"),
    [
        ("multi-gaussian", "1/2", "1/3", {1e-3: 85, 1e-9: 223, 1e-20: 477}),
        ("multi-gaussian", "1/2", "99/100", {1e-3: 41, 1e-9: 59, 1e-20: 95}),
        ("multi-gaussian", "1", "9999/10000", {1e-3: 25, 1e-6: 155, 1e-9: 373}),  # 107, 587, 881 without the anchor
        ("irregular", "1/2", "1/3", {1e-3: 33, 1e-9: 53, 1e-20: 91}),
        ("camel", "1/2", "1/3", {1e-3: 35, 1e-9: 93, 1e-20: 199}),
        ("camel", "1/2", "99/100", {1e-3: 55, 1e-9: 155, 1e-20: 337}),
        ("two-rates", "1/2", "1/3", {1e-3: 20, 1e-9: 58, 1e-20: 132}),
        ("two-rates", "1/2", "99/100", {1e-3: 11, 1e-9: 31, 1e-20: 67}),
        ("quasi-gaussian", "1/2", "1/3", {1e-3: 15, 1e-9: 35, 1e-20: 71}),
        ("flipped-huber", "1/2", "1/3", {1e-3: 2, 1e-9: 2, 1e-20: 2}),
        ("gap", "1/2", "99/100", {1e-3: 2, 1e-9: 2, 1e-20: 2}),
    ],
)
def test_no_more_cells_are_cut_than_it_took_once(name: str, epsilon: str, shift: str, most: dict[float, int]) -> None:
    """Nothing is proposed; a weaker bound, or a worse choice of what to split, would take more cells."""
    with bits(128):
        for budget, cells in most.items():
            limits = Limits(cells=cells + 1)
            _, low, high = bound(ZOO[name][0], Fraction(shift), Fraction(epsilon), budget, limits=limits)
            assert upper(high) - lower(low) <= Fraction(1.01 * budget) + Fraction(1, 10**30)


def open_tail() -> StretchBalls:
    """e^(−x) above e^(−x) + e^(−2x): beyond 0 the log-ratio rises to 0, and no slope tells that it stays below."""
    one, zero = Fraction(1), Fraction(0)
    above = LineSum(zero, (Line.of(one, zero, -one),))
    below = LineSum(zero, (Line.of(one, zero, -one), Line.of(one, zero, Fraction(-2))))
    return StretchBalls.cancelled(Stretch(zero, None, above, below))


@pytest.mark.parametrize("reflected", [False, True])
@pytest.mark.parametrize(("budget", "most"), [(1e-3, 6), (1e-40, 9), (0.0, 12)])
def test_tails_that_stay_open_are_followed_only_as_far_as_they_matter(
    budget: float, most: int, reflected: bool
) -> None:
    with bits(128):
        balls = open_tail()
        if reflected:
            above, below = (
                LineSum(Fraction(0), tuple(Line.of(Fraction(1), Fraction(0), Fraction(b)) for b in slopes))
                for slopes in ((1,), (1, 2))
            )
            balls = StretchBalls.cancelled(Stretch(None, Fraction(0), above, below))
        cells = Cells()
        cells.proved[balls] = []
        cells.add_tail(balls, balls.at(fmpq(0)), not reflected, budget)
        assert 0 < cells.tail_charge < (budget / 64 or 5e-324) and not cells.proved[balls]
        assert cells.count == most
        again = cells.charges()
        cells.add_tail(balls, balls.at(fmpq(0)), not reflected, 1e9)  # all of it is charged at once, and added
        assert contains(cells.charges() - again, MPF(1))


def test_a_tail_whose_mass_is_not_known_is_left_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with bits(128):
        balls, cells = open_tail(), Cells()
        cells.proved[balls] = []
        monkeypatch.setattr(balls.positive_mass, "over", lambda interval: arb("nan"))
        cells.add_tail(balls, balls.at(fmpq(0)), True, 1e-3)
        assert cells.count == 83 and not cells.charges().is_finite()


def test_a_charge_that_is_not_known_ends_the_search() -> None:
    nothing = arb("nan")
    with bits(128):
        balls = pair_of(None, 0, 1)
        left, right = (End(x, *[nothing] * 5) for x in (fmpq(0), fmpq(1)))
        cells = Cells()
        cells.proved[balls] = []
        assert cells.unresolved is False
        cells.add(balls, left, right)
        assert cells.unresolved is True and cells.count == 1 and cells.outstanding == float("inf")
        cells.refine(0.0, Limits())
        assert cells.count == 1 and not cells.charges().is_finite()


def test_cuts_are_handed_on_in_order_and_not_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism, shift, epsilon = ZOO["camel"][0], Fraction(1, 3), Fraction(1, 2)
    with bits(128):
        density = Density(mechanism.unit_form)
        inherited = [fmpq(-1, 3), fmpq(1, 3), fmpq(5, 3)]
        search = DivergenceAt(density.stretches(shift, epsilon), [], 1e-9, None, inherited)
        assert search.cuts() == inherited
        search.bound(1e-9, Limits())
        cuts = search.cuts()
        new = [cut for cut in cuts if cut not in inherited]
        assert cuts == sorted(cuts) and set(inherited) < set(cuts) and len(new) > 10
        assert not search.has_coarse_tails(1e-9)
        monkeypatch.setattr("audit.divergence.MOST_CUTS", 3)
        assert search.cuts() == cuts
        monkeypatch.setattr("audit.divergence.MOST_CUTS", 2)
        assert search.cuts() == new
        ends = density.stretches(shift, epsilon)
        narrow = [cut for i, cut in enumerate(cuts[:-1]) if cuts[i + 1] - cut < fmpq(1, 8192)]
        assert not narrow and ends


def test_tails_are_coarse_where_they_take_more_than_a_quarter_of_the_budget() -> None:
    with bits(128):
        search = DivergenceAt([open_tail()], [], 1e-3)
        charge = float(search._cells.tail_charge.upper())
        assert 0 < charge <= 1e-3 / 64
        assert search.has_coarse_tails(3.99 * charge) and not search.has_coarse_tails(4.01 * charge)
        assert not search.has_coarse_tails(4 * charge)
