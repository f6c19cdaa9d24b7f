"""Verdicts against the referee: thresholds from a thousandth to 10⁻¹⁵ away from the true sup D, on both sides."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from audit.decide import decide
from audit.verdict import Verdict
from tests.audit.support import multi_gaussian, statement
from tests.soundness.hard import KINDS, Case, case
from tests.soundness.referee import CONTEXT, MPF, number


def check(found: Case, gaps: tuple[int, ...]) -> None:
    """Below the true sup D: refuted, and never verified; above it: verified."""
    _, top = found.density.supremum(found.epsilon)
    if not MPF(10) ** -13 < top < MPF("0.9999"):
        return
    true = Fraction(mpmath.nstr(top, 42))
    for gap in gaps:
        step = Fraction(1, 10**gap)
        what = f"{found.name}, epsilon {found.epsilon}, gap 1e-{gap}, {found.mechanism.document()}"
        below = decide(statement(found.mechanism, found.epsilon, true * (1 - step)))
        above = decide(statement(found.mechanism, found.epsilon, true * (1 + step)))
        assert below.verdict is Verdict.REFUTED, what
        assert above.verdict is Verdict.VERIFIED, what
        assert below.witness is not None and above.sup_delta is not None
        at_witness = found.density.divergence(below.witness.shift, found.epsilon)
        assert at_witness > number(true * (1 - step)), what
        assert number(above.sup_delta.lower) <= top * (1 + MPF(10) ** -35), what
        assert number(above.sup_delta.upper) >= top * (1 - MPF(10) ** -35), what


@pytest.mark.parametrize("seed", range(len(KINDS) + 2))
def test_random_claims(seed: int) -> None:
    found = case(seed)
    check(found, {"pieces": (3,), "spliced": (3, 6), "laplace-sum": (3, 6)}.get(found.name, (12,)))


@pytest.mark.parametrize("gap", [9, pytest.param(15, marks=pytest.mark.slow)])
def test_on_both_sides_of_the_cliff_where_the_weight_of_the_last_component_meets_the_peak(gap: int) -> None:
    """K and its neighbour: once the worst shift is Δ, once it is inside; each decided to the last digits."""
    shifts = []
    for K in (2, 4):
        mechanism, density = multi_gaussian("0.33", K, "1")
        shift, top = density.supremum("1")
        shifts.append(float(shift))
        check(Case("cliff", mechanism, density, "1"), (gap,))
        weight = CONTEXT.exp(-K) / (1 + 2 * sum(CONTEXT.exp(-k) for k in range(1, K + 1)))
        assert (shift == 1) == (weight > top / 2 and K == 2)
    assert shifts[0] == 1 > shifts[1]


@pytest.mark.slow
def test_a_narrow_peak_of_a_large_epsilon() -> None:
    """ε = 10: the peak is 10⁻³ wide, and D falls by a factor of ten within 10⁻⁴ of σ."""
    mechanism, density = multi_gaussian("0.184745", 9, "10")
    check(Case("narrow", mechanism, density, "10"), (3, 9))


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "K", "epsilon"), [("3", 2, "1"), ("1.2", 3, "2"), ("4.5", 1, "0.8")])
def test_tiny_divergences(sigma: str, K: int, epsilon: str) -> None:
    mechanism, density = multi_gaussian(sigma, K, epsilon)
    check(Case("tiny", mechanism, density, epsilon), (6, 12))


def test_a_scale_a_hair_off_the_tight_one() -> None:
    """The claim stays, σ moves: to the smallest double for which it holds, and a part in 10¹⁵ below."""
    for text, verdict in (("0x1.567428b65f04ep-2", Verdict.VERIFIED), ("0x1.567428b65f04dp-2", Verdict.REFUTED)):
        sigma = Fraction(float.fromhex(text))
        mechanism, density = multi_gaussian(str(sigma), 4, "1")
        _, top = density.supremum("1")
        assert (top <= number("0.01")) == (verdict is Verdict.VERIFIED)
        assert decide(statement(mechanism, "1", "0.01")).verdict is verdict
