"""Faults for the kernel, one at a time, and the checks that must notice them; test_mutants.py pairs them."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

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
from audit.anchor import Anchor
from audit.decide import decide
from audit.density import Density
from audit.divergence import Cells, DivergenceAt
from audit.exact import ball, enclosure, lower, upper
from audit.frame import Span
from audit.masses import Masses
from audit.shape import Roughness
from audit.shifts import Box, Search
from audit.single import Points
from audit.steps import StepDivergence
from audit.summit import Range, Summit, _Gap
from audit.sweep import Sweep
from audit.table import Alpha, Table, propose_table
from audit.theorems import grid_size, ratio_5a
from audit.verdict import Limits, Verdict
from mechanisms.claims import Direct, Statement, Theorem32, Theorem42
from mechanisms.families import Declared, Gaussian, Mechanism, QuasiGaussian, Staircase
from mechanisms.lines import LineSum
from tests.audit.support import ZOO, bits, contains, declared, mixture, multi_gaussian, point, statement
from tests.soundness.referee import CONTEXT, MPF, number
from tests.soundness.referee import Density as Referee

Patch = pytest.MonkeyPatch
ORIGINAL_OVER, ORIGINAL_TAIL, ORIGINAL_LOOK = Masses.over, Cells.add_tail, Search._look
ORIGINAL_TABLE, ORIGINAL_ALPHA = Table.__init__, Alpha.of
ORIGINAL_SUMMIT, ORIGINAL_AT_ROOT = audit.summit.find_summit, audit.summit._density_at_root
ORIGINAL_SPAN = Span.__init__

INTERIOR = multi_gaussian("0.33", 4, "1")
COMB = declared(
    ("0", "0.1", "0.1", [("0", "0")]),
    ("0.1", "0.9", "0.1", [("-5", "0")]),
    ("0.9", "1.1", "0.1", [("-0.2", "0")]),
    ("1.1", "1.9", "0.1", [("-5", "0")]),
    ("1.9", "2.1", "0.1", [("-0.2", "0")]),
    scale=0.1,
)
"""Teeth one sensitivity apart: D is large between 0 and Δ and small at both."""
FLAT_COMB = declared(
    ("0", "0.1", "0", [("0", "0")]),
    ("0.1", "0.9", "0", [("-5", "0")]),
    ("0.9", "1.1", "0", [("-0.2", "0")]),
    ("1.1", "1.9", "0", [("-5", "0")]),
    ("1.9", "2.1", "0", [("-0.2", "0")]),
    scale=0.1,
)
"""The same, made of steps."""
WIDE = mixture("3", ("1", "0"), ("0.5", "1"))
COARSE = multi_gaussian("0.25", 3, "2")
BUMP = mixture("0.33", ("1", "0"), ("0.367879", "1"), ("0.135335", "2"), ("0.049787", "3"), ("1e-4", "4.6"))
"""At φ = 0.7827, close to a local maximum of D, R dips below 0 between −5.10 and −4.92."""


def encloses(name_or_pair: Any, shift: str, epsilon: str, budget: float, cells: int = 200_000) -> bool:
    """Whether the enclosure of D at one shift contains the referee's."""
    mechanism, density = ZOO[name_or_pair] if isinstance(name_or_pair, str) else name_or_pair
    true = density.divergence(shift, epsilon)
    phi, level = Fraction(shift), Fraction(epsilon)
    with bits(128):
        ours = Density(mechanism.unit_form)
        search = DivergenceAt(ours.stretches(phi, level), [], budget, ours.anchor(phi, level))
        found = search.bound(budget, Limits(cells=cells))
        low, high = found.lower / ours.mass, found.upper / ours.mass
    return bool(
        number(lower(low)) <= true * (1 + MPF(10) ** -30) and true * (1 - MPF(10) ** -30) <= number(upper(high))
    )


def not_verified(pair: tuple[Mechanism, Referee], epsilon: str, gap: str, boxes: bool = False) -> bool:
    """Whether a threshold a little below the true sup D is not verified, by decide or a search without proposals."""
    mechanism, density = pair
    delta = Fraction(str(density.supremum(epsilon)[1])) * (1 - Fraction(gap))
    if not boxes:
        return decide(statement(mechanism, epsilon, delta)).verdict is not Verdict.VERIFIED
    return search(mechanism, epsilon, delta, None).upper is None


def search(mechanism: Mechanism, epsilon: str, delta: Fraction, grid: int | None) -> Any:
    limits = Limits(boxes=500 if grid is None else 20_000)
    form = mechanism.unit_form
    found = Search(form, Fraction(epsilon), delta, grid=grid, tightness=None, limits=limits, progress=None)
    return found.run(lambda: [])


def exceeds_on_the_grid() -> bool:
    """Of the tenths only φ = 7/10 exceeds the threshold."""
    return bool(search(COARSE[0], "2", Fraction(1, 10), 10).exceeds)


def anchored_bounds_hold() -> bool:
    mechanism, density = INTERIOR
    f, rng = density.pieces[0].value, random.Random(1)
    with bits(128):
        ours = Density(mechanism.unit_form)
        anchor = ours.anchor(Fraction(9, 10), Fraction(1))
        (balls,) = ours.stretches(Fraction(9, 10), Fraction(1))
        assert anchor is not None
        for _ in range(40):
            a = Fraction(rng.randint(-4000, 4000), 1000)
            left, right = balls.at(point(a)), balls.at(point(a + Fraction(1, 100)))
            x = number(a + Fraction(1, 200))
            ratio = CONTEXT.log(f(x + number("0.9")) / f(x)) - 1
            below = anchor.lower_ratio(left, right)
            if ratio > number(upper(anchor.upper_ratio(left, right))) or (below and ratio < number(lower(below))):
                return False
    return True


def negligible_masses_are_inside() -> bool:
    mechanism, density = WIDE
    with bits(128):
        form = mechanism.unit_form
        found = Masses(form.whole_line[0].sum).over((point(Fraction(20)), None), -5.0)
        mass = Density(form).mass
        return contains(found / mass, density.probability(20, None))


def narrow_frame_stays_narrow() -> bool:
    """A frame of a few shifts is asked about another."""
    mechanism, density = INTERIOR
    with bits(128):
        points = Points(mechanism.unit_form, Limits(), Fraction(1, 100))
        points.measure(Fraction(1, 2), Fraction(1), Fraction(1, 10**6), ball(Fraction(1, 10**9)))
        points.focus((Fraction(1, 2), Fraction(51, 100)), Fraction(1), Fraction(1, 1000))
        _, low, high = points.measure(Fraction(9, 10), Fraction(1), Fraction(1, 10**6), ball(Fraction(1, 10**9)))
    true = density.divergence("0.9", "1")
    return bool(number(lower(low)) <= true <= number(upper(high)))


def five_a_is_enclosed() -> bool:
    mechanism = QuasiGaussian(sensitivity=1, sigma="0.15", epsilon="10")
    with bits(128):
        found = ratio_5a(mechanism, Theorem42(epsilon="10", delta="0.1"), Limits(cells=4))
    c = 1 / (2 * number("0.15") ** 2)
    logs = [
        CONTEXT.log(CONTEXT.exp(10 - c * x * x) + CONTEXT.exp(-c * (x - 1) ** 2))
        for x in (MPF(i) / 2000 for i in range(2001))
    ]
    return found is not None and bool(number(found.value.upper) >= max(logs) - min(logs))


def grid_is_fine_enough() -> bool:
    size = grid_size(Gaussian(sensitivity=1, sigma=1), Theorem32(epsilon="1", delta="0.1", eta="0.7"), Limits())
    return size == 6  # 1/(√(2π) · 0.07) = 5.7


def eta_counts() -> bool:
    mechanism, density = INTERIOR
    delta = Fraction(str(density.supremum("1")[1])) * Fraction(1005, 1000)
    return decide(Statement(mechanism, Theorem32(epsilon="1", delta=delta, eta="0.01"))).verdict is not Verdict.VERIFIED


def a_tenth_is_not_the_double() -> bool:
    rows: Any = [{"from": "0", "to": "5", "c": "0", "lines": [["0", "0"]]}]
    mechanism = Declared(sensitivity=1, declared_pieces=rows)  # D(1) = 1/10
    return decide(statement(mechanism, "1", "0.0" + "9" * 30)).verdict is not Verdict.VERIFIED


def sensitivity_counts() -> bool:
    return decide(statement(Gaussian(sensitivity=2, sigma=5), "1", "1e-6")).verdict is not Verdict.VERIFIED


def a_cover_with_a_hole_is_seen_through() -> bool:
    """Floats propose the shifts above 7/8 only; the peak is at 0.75."""
    return search(INTERIOR[0], "1", Fraction("0.013"), None).upper is None


def ends_are_outside() -> bool:
    with bits(64):
        ends = enclosure(ball(Fraction(1, 3)))
    return ends.lower <= Fraction(1, 3) <= ends.upper


def answers_are_true() -> bool:
    """What is_at_most concludes from D at a larger ε."""
    mechanism, density = INTERIOR
    with bits(128):
        points = Points(mechanism.unit_form, Limits(), Fraction(1, 100))
        points.measure(Fraction(1, 2), Fraction(2), Fraction(1, 10**6), ball(Fraction(1, 10**9)))
        goal = Fraction(str(density.divergence("0.5", "1"))) * Fraction(9, 10)
        return not points.is_at_most(Fraction(1, 2), Fraction(1), ball(goal))


def a_summit_holds(at: str, *others: str, leave_out: int = 0, add: tuple[float, ...] = ()) -> bool:
    """Whether the bound over Φ, from D at one of its shifts, is above D at others; or there is none.

    Φ reaches 2⁻¹² to both sides. Of the roots the first few may be left out, and others proposed.
    """
    mechanism, density = INTERIOR if not (leave_out or add) else BUMP
    phi, width = Fraction(at), Fraction(1, 2**12)
    shifts = Range(phi - width, phi, phi + width)
    roots = [float(x) for event in density.events(phi, "1") for x in event if x is not None]
    with bits(128):
        ours = Density(mechanism.unit_form)
        span = ours.span((shifts.start, shifts.stop), Fraction(1), Fraction(0))
        (balls,) = ours.stretches(phi, Fraction(1))
        assert span is not None
        found = audit.summit.find_summit(span, balls, shifts, Fraction(1), [*add, *roots[leave_out:]], [])
        excess = arb(0) if found is None else found.excess / ours.mass
    bound = density.divergence(phi, "1") + number(upper(excess))
    return found is None or all(density.divergence(other, "1") <= bound for other in others)


def signs_hold_for_all_shifts() -> bool:
    """Cells decided for [1/2, 3/4], asked about R at both ends."""
    mechanism, density = INTERIOR
    f = density.pieces[0].value
    shifts = Fraction(1, 2), Fraction(3, 4)
    with bits(128):
        span = Density(mechanism.unit_form).span(shifts, Fraction(1), Fraction(0))
        assert span is not None
        for i in range(-300, 300, 2):
            sign = span.sign(*(span.balls.at(point(Fraction(i + k, 100))) for k in (0, 1)))
            x = number(Fraction(2 * i + 1, 200))
            if any(sign * CONTEXT.log(f(x + number(shift)) / f(x)) < sign for shift in shifts):
                return False
    return True


def set_attribute(target: Any, name: str, value: Any) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(target, name, value)


def drop_tail_charge(patch: Patch) -> None:
    def add_tail(self: Cells, *arguments: Any) -> None:
        ORIGINAL_TAIL(self, *arguments)
        self.tail_charge = arb(0)

    patch.setattr(Cells, "add_tail", add_tail)


def drop_negligible(patch: Patch) -> None:
    def over(self: Masses, interval: Any, floor: float = float("-inf")) -> arb:
        exact, found = ORIGINAL_OVER(self, interval), ORIGINAL_OVER(self, interval, floor)
        return found if found.rad() <= 2 * exact.rad() else arb(lower_arb(found))

    patch.setattr(Masses, "over", over)


def lower_arb(value: arb) -> arb:
    return value.mid() - value.rad()


def drop_u_charges(patch: Patch) -> None:
    patch.setattr(Cells, "charges", lambda self: self.tail_charge)


def flip_rounding(patch: Patch) -> None:
    found = audit.exact._ends
    patch.setattr(audit.exact, "_ends", lambda value: tuple(reversed(found(value))))


def kappa_is_one(patch: Patch) -> None:
    patch.setattr(Roughness, "lift", lambda self, width: Fraction(0))


def whole_line_in_balls(patch: Patch) -> None:
    """Without tables, from one box."""
    without_tables(patch)
    patch.setattr(audit.shifts, "propose_cover", lambda *arguments: [(0, 0)])


def without_tables(patch: Patch) -> None:
    patch.setattr(audit.shifts.Sweep, "of", lambda *arguments: None)


def kappa_is_one_for_tables(patch: Patch) -> None:
    patch.setattr(audit.sweep, "ball", lambda value: ball(Fraction(0)))
    patch.setattr(Alpha, "of", lambda epsilon: ORIGINAL_ALPHA(Fraction(1)))


def the_peak_is_not_settled() -> bool:
    """By tables alone; the search looks at the peak itself as well."""
    mechanism, density = INTERIOR
    form, delta = mechanism.unit_form, Fraction(str(density.supremum("1")[1])) * Fraction(99, 100)
    with bits(128):
        sweep = Sweep.of(form, Fraction(1), Roughness.of(form).c, delta, Limits())
        assert sweep is not None
        return not sweep.run(delta)


def bounds_of_tables_hold(per_scale: int) -> bool:
    """The bound of D at shifts of the lattice, at several ε."""
    mechanism, density = INTERIOR
    with bits(128):
        table = propose_table(mechanism.unit_form, Fraction(1), Fraction(1, 100), per_scale)
        assert table is not None
        return all(
            number(Fraction(table.upper_divergence(at, Alpha.of(Fraction(epsilon)))))
            >= density.divergence(Fraction(at, table.steps), epsilon)
            for at in range(0, table.steps + 1, max(1, table.steps // 8))
            for epsilon in ("0", "1", "3")
        )


def set_table(name: str, change: Callable[[Any], Any]) -> Callable[[Patch], None]:
    """One part of every table is changed after it was made."""

    def fault(patch: Patch) -> None:
        def make(self: Table, *arguments: Any) -> None:
            ORIGINAL_TABLE(self, *arguments)
            setattr(self, name, change(getattr(self, name)))

        patch.setattr(Table, "__init__", make)

    return fault


def skip_odd_grid_points(patch: Patch) -> None:
    def look(self: Search, points: Points, shift: Fraction) -> bool:
        if self.grid is not None and int(shift * self.grid) % 2:
            return False
        return ORIGINAL_LOOK(self, points, shift)

    patch.setattr(Search, "_look", look)


def boxes_of_balls_for_every_grid(patch: Patch) -> None:
    """Also a small grid is covered by boxes, as a large one is, and none of them is decided by a table."""
    without_tables(patch)
    patch.setattr("audit.shifts.SMALL_GRID", 0)


def skip_last_grid_point(patch: Patch) -> None:
    found = Box.grid_points
    patch.setattr(Box, "grid_points", lambda self, size: (found(self, size)[0], found(self, size)[1] - 1))


def flip_score(patch: Patch) -> None:
    def upper_ratio(self: Any, left: Any, right: Any) -> arb:
        least_score = left.du + self._twice_c * (self._shift - arb(right.x) - 1)
        bound = self._lift + self._distance * least_score
        return bound + self._largest_share(self._positive, left, right).log1p() if self._positive else bound

    patch.setattr(Anchor, "upper_ratio", upper_ratio)


def last_of_equal_slopes(patch: Patch) -> None:
    patch.setattr(LineSum, "by_slope", property(lambda self: {line.slope: line.terms for line in self.lines}))


def conclude_from_a_larger_epsilon(patch: Patch) -> None:
    found = Points.is_at_most

    def is_at_most(self: Points, shift: Fraction, epsilon: Fraction, goal: arb) -> bool:
        known = self._bounds.get(shift, {})
        return any(bound.upper <= goal for bound in known.values()) or found(self, shift, epsilon, goal)

    patch.setattr(Points, "is_at_most", is_at_most)


def double_delta(patch: Patch) -> None:
    patch.setattr(Direct, "threshold", property(lambda self: Fraction(float(self.delta))))


def hole_in_the_cover(patch: Patch) -> None:
    without_tables(patch)
    patch.setattr(audit.shifts, "propose_cover", lambda *arguments: [(7, 3)])


def believe_the_cover(patch: Patch) -> None:
    patch.setattr(audit.shifts, "is_cover", lambda boxes: True)


def excess_is_zero(patch: Patch) -> None:
    def find_summit(*arguments: Any) -> Summit | None:
        found = ORIGINAL_SUMMIT(*arguments)
        return None if found is None else dataclasses.replace(found, excess=arb(0))

    patch.setattr(audit.summit, "find_summit", find_summit)


def roots_stand_still(patch: Patch) -> None:
    patch.setattr(_Gap, "upper_bend", lambda self, sign: sign * self.score * self.density)


def roots_not_moved(patch: Patch) -> None:
    """f(ξ) for f(ξ + φ₀) in the slope of D."""

    def at_root(convex: Any, at: Any, shifts: Range, gap: _Gap, root: float) -> arb:
        return ORIGINAL_AT_ROOT(convex, at, dataclasses.replace(shifts, at=Fraction(0)), gap, root)

    patch.setattr(audit.summit, "_density_at_root", at_root)


def tails_not_asked(patch: Patch) -> None:
    quarter = point(Fraction(1, 4))
    patch.setattr(audit.summit, "_outermost", lambda span, shifts, low, high: (low - quarter, high + quarter))


def no_height(patch: Patch) -> None:
    def make(self: Span, *arguments: Any) -> None:
        ORIGINAL_SPAN(self, *arguments)
        self._height = arb(0)

    patch.setattr(Span, "__init__", make)


def nothing_gained_over_nothing(patch: Patch) -> None:
    """Beyond the end of the support, f(x+φ) > 0 = f(x) is not counted."""
    found = StepDivergence._gain

    def gain(self: StepDivergence, there: int, here: int, limits: Limits) -> Any:
        return found(self, there, here, limits) if self._heights[here] else None

    patch.setattr(StepDivergence, "_gain", gain)


def a_staircase_is_not_verified() -> bool:
    """Of heights e^(−i), at ε = 0.6."""
    stairs = Staircase(sensitivity=1, epsilon="1", gamma="0.3")
    return decide(statement(stairs, "0.6", "0.1")).verdict is not Verdict.VERIFIED


def nothing(patch: Patch) -> None:
    """No preparation."""
