"""D at one shift: the enclosure holds whatever is proposed and however early the search stops."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from audit.density import Density
from audit.divergence import DivergenceAt, PointBound, joined
from audit.exact import fraction, lower, upper
from audit.verdict import Expired, Limits
from mechanisms.divergence import float_divergence
from mechanisms.families import Mechanism
from tests.audit.support import FEW, PRECISIONS, ZOO, bits, contains, multi_gaussian
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
