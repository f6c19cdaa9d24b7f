"""Would the tests notice? The kernel is broken on purpose, one fault at a time, and a check must then fail.

Each check holds for the kernel as it is, and each is of the kind that the other tests make: a claim that is false must
not be verified, an enclosure must contain the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from flint import arb

import audit.exact
import audit.frame
import audit.shifts
import audit.single
import audit.steps
import audit.summit
import audit.sweep
import audit.theorems
from audit.cells import StretchBalls
from audit.decide import decide
from audit.divergence import Cells
from audit.shape import Roughness
from audit.steps import Excess, StaircaseDivergence
from audit.summit import _Gap
from audit.table import Table
from audit.theorems import _Extremum
from audit.verdict import Verdict
from mechanisms.claims import Theorem32
from mechanisms.families import Mechanism, MultiGaussian
from tests.audit.support import ZOO, statement
from tests.soundness.faults import (
    COMB,
    FLAT_COMB,
    INTERIOR,
    WIDE,
    Patch,
    a_cover_with_a_hole_is_seen_through,
    a_staircase_is_not_verified,
    a_summit_holds,
    a_tenth_is_not_the_double,
    anchored_bounds_hold,
    answers_are_true,
    believe_the_cover,
    bounds_of_tables_hold,
    boxes_of_balls_for_every_grid,
    conclude_from_a_larger_epsilon,
    double_delta,
    drop_negligible,
    drop_tail_charge,
    drop_u_charges,
    encloses,
    ends_are_outside,
    eta_counts,
    exceeds_on_the_grid,
    excess_is_zero,
    five_a_is_enclosed,
    flip_rounding,
    flip_score,
    grid_is_fine_enough,
    hole_in_the_cover,
    kappa_is_one,
    kappa_is_one_for_tables,
    last_of_equal_slopes,
    narrow_frame_stays_narrow,
    negligible_masses_are_inside,
    no_height,
    not_verified,
    nothing,
    nothing_gained_over_nothing,
    roots_not_moved,
    roots_stand_still,
    sensitivity_counts,
    set_attribute,
    set_table,
    signs_hold_for_all_shifts,
    skip_last_grid_point,
    skip_odd_grid_points,
    tails_not_asked,
    the_peak_is_not_settled,
    whole_line_in_balls,
)

MUTANTS: dict[str, tuple[Callable[[Patch], None], Callable[[Patch], None], Callable[[], bool]]] = {
    # name: (set the stage, the fault, the check)
    "tail charge dropped": (nothing, drop_tail_charge, lambda: encloses(WIDE, "0.3", "0.5", 1e3)),
    "tails not looked at": (
        nothing,
        set_attribute(Cells, "add_tail", lambda *_: None),
        lambda: encloses(WIDE, "0.3", "0.05", 1e-9),
    ),
    "tails taken as negative": (
        nothing,
        set_attribute(StretchBalls, "tail_sign", lambda *_: -1),
        lambda: not_verified(ZOO["irregular"], "0.7", "1e-4"),
    ),
    "an undecided cell not charged": (nothing, drop_u_charges, lambda: encloses("irregular", "0.6", "0.5", 1e-9, 20)),
    "undecided cells taken as negative": (
        nothing,
        set_attribute(StretchBalls, "upper_ratio", staticmethod(StretchBalls.lower_ratio)),
        lambda: encloses("irregular", "0.6", "0.5", 1e-9),
    ),
    "rounding inwards": (nothing, flip_rounding, ends_are_outside),
    "kappa taken as 1": (
        whole_line_in_balls,
        kappa_is_one,
        lambda: not_verified(INTERIOR, "1", "1e-6", boxes=True),
    ),
    "kappa taken as 1 by the sweep": (
        nothing,
        kappa_is_one_for_tables,
        the_peak_is_not_settled,
    ),
    "ends of a box not bounded by the table": (
        nothing,
        set_attribute(Table, "upper_divergence", lambda self, shift, alpha: self.estimate(shift, alpha) / 2),
        the_peak_is_not_settled,
    ),
    "f(x + phi) too low in the table": (
        nothing,
        set_table("above", lambda v: v * (1 - 1e-3)),
        lambda: bounds_of_tables_hold(128),
    ),
    "f(x) too high in the table": (
        nothing,
        set_table("below", lambda v: v * (1 + 1e-3)),
        lambda: bounds_of_tables_hold(128),
    ),
    "curvature left out of the table": (
        set_table("bend", lambda v: 0 * v),
        set_table("dent", lambda v: 0 * v),
        lambda: bounds_of_tables_hold(2),
    ),
    "half of the grid points skipped": (nothing, skip_odd_grid_points, exceeds_on_the_grid),
    "last grid point of a box skipped": (boxes_of_balls_for_every_grid, skip_last_grid_point, exceeds_on_the_grid),
    "grid rounded down": (
        nothing,
        set_attribute(audit.theorems, "ceiling", lambda value: int(float(value))),
        grid_is_fine_enough,
    ),
    "eta forgotten": (nothing, set_attribute(Theorem32, "threshold", property(lambda self: self.delta)), eta_counts),
    "delta read as a double": (nothing, double_delta, a_tenth_is_not_the_double),
    "sensitivity not scaled": (
        nothing,
        set_attribute(Mechanism, "unit_form", property(lambda self: self.form)),
        sensitivity_counts,
    ),
    "score with the wrong sign": (nothing, flip_score, anchored_bounds_hold),
    "negligible masses dropped": (nothing, drop_negligible, negligible_masses_are_inside),
    "of equal slopes only the last": (
        nothing,
        last_of_equal_slopes,
        lambda: encloses("repeated", "0.4", "2", 1e-9),
    ),
    "a frame used outside its shifts": (
        nothing,
        set_attribute(audit.frame.Frame, "covers", lambda *_: True),
        narrow_frame_stays_narrow,
    ),
    "a frame takes the first shift for all": (nothing, no_height, signs_hold_for_all_shifts),
    "a summit where it was looked for": (nothing, excess_is_zero, lambda: a_summit_holds("0.7484", "0.7486171667")),
    "roots that do not move with the shift": (
        nothing,
        roots_stand_still,
        lambda: a_summit_holds("0.7484", "0.7486171667"),
    ),
    "slope of D without the shift": (nothing, roots_not_moved, lambda: a_summit_holds("0.7484", "0.7486171667")),
    "two roots taken for one": (
        nothing,
        set_attribute(_Gap, "is_monotone", True),
        lambda: a_summit_holds("0.7827", "0.78262", leave_out=2, add=(-5.0081,)),
    ),
    "tails of a summit not looked at": (
        nothing,
        tails_not_asked,
        lambda: a_summit_holds("0.7827", "0.78262", leave_out=2),
    ),
    "jumps not charged": (
        nothing,
        set_attribute(Roughness, "upper_charge", lambda *_: arb(0)),
        lambda: not_verified(COMB, "1", "0.01", boxes=True),
    ),
    "every density log-concave": (
        nothing,
        set_attribute(audit.shifts, "is_log_concave", lambda form: True),
        lambda: not_verified(INTERIOR, "1", "0.1", boxes=True),
    ),
    "extremum taken where it was met": (
        nothing,
        set_attribute(_Extremum, "bound", lambda self: self.attained),
        five_a_is_enclosed,
    ),
    "of the shifts of steps only the ends": (
        nothing,
        set_attribute(audit.steps, "meetings", lambda edges, most: [Fraction(0), Fraction(1)]),
        lambda: not_verified(FLAT_COMB, "1", "1e-6"),
    ),
    "the end of the support not looked at": (
        nothing,
        nothing_gained_over_nothing,
        lambda: not_verified(ZOO["steps"], "1", "1e-6"),
    ),
    "a staircase pure at every epsilon": (
        nothing,
        set_attribute(StaircaseDivergence, "at", lambda *_: Excess((), ())),
        a_staircase_is_not_verified,
    ),
    "a cover believed": (hole_in_the_cover, believe_the_cover, a_cover_with_a_hole_is_seen_through),
    "D at a larger epsilon taken for D": (nothing, conclude_from_a_larger_epsilon, answers_are_true),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_fault_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stage, fault, check = MUTANTS[name]
    stage(monkeypatch)
    assert check(), "the check does not hold for the kernel as it is"
    fault(monkeypatch)
    assert not check(), "the check does not notice the fault"


def test_a_weaker_multi_gaussian_is_refuted_at_all() -> None:
    """The plainest false claim of all."""
    assert (
        decide(statement(MultiGaussian(sensitivity=1, sigma="0.1", K=2, epsilon="1"), "1", "0.01")).verdict
        is Verdict.REFUTED
    )
