"""D at single shifts: tight enough to tell it from a goal, each evaluation kept and used for others. (trusted)"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, fmpq

from audit.density import Density
from audit.divergence import DivergenceAt, PointBound
from audit.exact import ball
from audit.frame import Frame, Validity
from audit.summit import Range, Summit, find_summit
from audit.verdict import Limits
from mechanisms.arithmetic import BALL
from mechanisms.difference import difference
from mechanisms.divergence import Curve, positive_intervals
from mechanisms.form import Form
from mechanisms.numbers import natural_log

LEAST_BUDGET = 1e-280
"""Below this, floats no longer tell budgets apart."""


SAME_ROOT = 1e-9
"""Two sign changes as close are none, as far as floats tell."""


class NeedBits(Exception):
    """The working precision does not resolve the decision."""


class NeedBoxes(Exception):
    """The limit on boxes ended the search; says which box it was working on."""


class Points:
    """D at single shifts, for one form at one precision; each evaluation is kept.

    ``scale`` is the size of the divergences of interest. f is declared up to a factor, which is chosen to bring their
    masses near 1: the floats that guide the search would underflow at δ = 10⁻³²⁰.
    """

    def __init__(self, form: Form, limits: Limits, scale: Fraction) -> None:
        size = float(form.mass(BALL).log()) + (natural_log(scale) if scale else 0.0)
        if not math.isfinite(size):
            raise NeedBits
        self.form = form.lifted(Fraction(-round(size)))
        self.limits = limits
        self._density = Density(self.form)
        self.mass = self._density.mass
        self._bounds: dict[Fraction, dict[Fraction, _Known]] = {}
        self._curve: tuple[Fraction, Curve] | None = None
        self._frame: Frame | None = None
        self._cuts: list[fmpq] = []
        """Where the last evaluation split its cells: the next shift is often a neighbour."""

    def _search(
        self, shift: Fraction, epsilon: Fraction, budget: float, goal: float | None = None
    ) -> tuple[DivergenceAt, float]:
        """The search at one shift, and the budget to begin with: below ``budget`` where floats see D near a goal."""
        stretches = self._density.stretches(shift, epsilon)
        anchor = self._density.anchor(shift, epsilon)
        frame = self._frame
        if frame is not None and (self._density.cancels(shift) or not frame.covers(shift, epsilon)):
            frame = None
        intervals, estimate = self._propose(shift, epsilon)
        if goal is not None and estimate is not None:
            slack = abs(goal / estimate - 1) if estimate > 0 else 1.0
            budget = min(budget, budget * 16 * max(slack, 2.0**-36))
        search = DivergenceAt(stretches, intervals.ravel(), budget, anchor, self._cuts, frame, self.limits)
        return search, budget

    def focus(self, shifts: tuple[Fraction, Fraction], epsilon: Fraction, lift: Fraction) -> None:
        """Decide what can be decided for all these shifts, and all ε′ in [ε − lift, ε], at once."""
        span = self._density.span(shifts, epsilon, lift)
        if span is not None and len(self._cuts) > 1:
            self._frame = Frame(Validity(shifts, epsilon, lift), span, self._cuts)

    def summit(self, shifts: Range, epsilon: Fraction) -> Summit | None:
        """What bounds D over a range of shifts by D at one of them; see audit.summit."""
        span = self._density.span((shifts.start, shifts.stop), epsilon, Fraction(0))
        if span is None or self._density.cancels(shifts.at):
            return None
        (balls,) = self._density.stretches(shifts.at, epsilon)
        intervals, _ = self._propose(shifts.at, epsilon)
        roots: list[float] = []
        for root in sorted(root for root in intervals.ravel().tolist() if math.isfinite(root)):
            if roots and root - roots[-1] < SAME_ROOT:
                roots.pop()  # intervals that touch
            else:
                roots.append(root)
        return find_summit(span, balls, shifts, epsilon, roots, self._cuts)

    @np.errstate(all="ignore")
    def _propose(self, shift: Fraction, epsilon: Fraction) -> tuple[Any, float | None]:
        """Floats: where the integrand is positive, as intervals of shape (n, 2), and D where that costs little."""
        if self._density.cancels(shift):
            return positive_intervals(difference(self.form, shift, epsilon), self.limits.check), None
        if self._curve is None:
            self._curve = (epsilon, Curve(self.form, epsilon, check=self.limits.check))
        base, curve = self._curve
        intervals, value = curve.evaluate(float(shift), float(epsilon - base))
        return intervals, value if math.isfinite(value) else None

    def _keep(self, shift: Fraction, epsilon: Fraction, search: DivergenceAt, bound: PointBound) -> None:
        known = _Known(bound.lower / self.mass, bound.upper / self.mass, bound.weight / self.mass)
        self._bounds.setdefault(shift, {})[epsilon] = known
        if cuts := search.cuts():
            self._cuts = cuts

    def _bound(self, search: DivergenceAt, budget: float) -> tuple[PointBound, arb, arb]:
        """The bound within the budget, and D from below and above, divided by the mass.

        Where the balls' own radius is not far below the budget, more cells do not help but more bits do.
        """
        self.limits.check()
        bound = search.bound(budget, self.limits)
        if not bound.upper.is_finite() or 2 * float(bound.lower.rad()) > budget or budget < LEAST_BUDGET:
            raise NeedBits
        if search.is_exhausted(self.limits):
            raise NeedBoxes(f"{self.limits.cells} cells were not enough at one shift")
        return bound, bound.lower / self.mass, bound.upper / self.mass

    def evaluate(self, shift: Fraction, epsilon: Fraction, goal: arb) -> tuple[PointBound, arb, arb]:
        """(the last bound, lower, upper) of D_ε(φ), tight enough to tell D ≤ goal from D > goal.

        Guarantee: lower ≤ D ≤ upper, and upper ≤ goal or lower > goal; else NeedBits or NeedBoxes is raised.
        """
        goal_mass = goal * self.mass
        budget = float(goal_mass.mid()) / 64 or float(self.mass.mid()) * 2.0**-20
        search, budget = self._search(shift, epsilon, budget, float(goal.mid()))
        while True:
            bound, low, high = self._bound(search, budget)
            if high <= goal or low > goal:
                self._keep(shift, epsilon, search, bound)
                return bound, low, high
            slack = abs(float((goal_mass - bound.lower).mid()))
            budget = _smaller(budget, slack / 4)
            if search.has_coarse_tails(budget):
                search, _ = self._search(shift, epsilon, budget)

    def measure(
        self, shift: Fraction, epsilon: Fraction, tightness: Fraction, floor: arb
    ) -> tuple[PointBound, arb, arb]:
        """(the last bound, lower, upper) of D_ε(φ) with upper − lower ≤ tightness · upper, or upper ≤ floor."""
        budget = float((floor * self.mass).mid()) / 64 or float(self.mass.mid()) * 2.0**-20
        search, budget = self._search(shift, epsilon, budget)
        while True:
            bound, low, high = self._bound(search, budget)
            if high - low <= ball(tightness) * high or high <= floor:
                self._keep(shift, epsilon, search, bound)
                return bound, low, high
            budget = _smaller(budget, float((ball(tightness) * bound.upper).mid()) / 4)
            if search.has_coarse_tails(budget):
                search, _ = self._search(shift, epsilon, budget)

    def is_at_most(self, shift: Fraction, epsilon: Fraction, goal: arb) -> bool:
        """Whether D_ε(φ) ≤ goal; False means D_ε(φ) > goal is proved.

        Tries what is known first: D_α is convex and nonincreasing in α = e^ε. A chord between two kept values of α
        bounds it from above, so does the value at a smaller α; the event found at a larger α bounds it from below.
        """
        known = self._bounds.get(shift, {})
        for at, found in known.items():
            if at <= epsilon and found.upper <= goal:
                return True
            if at >= epsilon and found.lower + found.weight * -ball(epsilon - at).expm1() > goal:
                return False
        below = [e for e in known if e < epsilon]
        above = [e for e in known if e > epsilon]
        if below and above:
            left, right = max(below), min(above)
            d_left, d_right = known[left].upper, known[right].upper
            # (α_right − α)/(α_right − α_left), divided through by α_right
            share = (ball(epsilon - right).expm1()) / (ball(left - right).expm1())
            if d_right + (d_left - d_right) * share <= goal:
                return True
        _, _, high = self.evaluate(shift, epsilon, goal)
        return bool(high <= goal)


def _smaller(budget: float, wanted: float) -> float:
    """The next budget: what is wanted, in steps that are neither too small to matter nor too large to trust."""
    return min(max(wanted, budget * 2.0**-12), budget / 4)


@dataclass(frozen=True, slots=True)
class _Known:
    """Bounds of D_ε(φ), and the weight of PointBound; all divided by the mass of f."""

    lower: arb
    upper: arb
    weight: arb
