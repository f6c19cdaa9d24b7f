"""The second opinion's enclosures of D, against the 50-digit referee and the main audit's; faults that must show."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
import pytest
from flint import acb, arb, fmpq

import audit.second.divergence as divergence
import audit.second.signs as signs
from audit.density import Density as MainDensity
from audit.divergence import DivergenceAt
from audit.exact import lower, upper
from audit.second.answer import decimal, short
from audit.second.density import Term, read_density, subtract
from audit.second.divergence import Divergence, Quadrature
from audit.second.quadrature import integral
from audit.second.shifts import Proposal, bracketed_zero, meetings, polish
from audit.second.theorems import least_epsilon, normal_cdf, renyi_divergence
from audit.verdict import Limits
from mechanisms.families import Gaussian, Laplace, MultiGaussian, Staircase
from tests.audit.support import ZOO, bits, multi_gaussian
from tests.soundness import hard
from tests.soundness.referee import CONTEXT, MPF, number

Patch = pytest.MonkeyPatch
ROUNDING = MPF(10) ** -38


def no_watch() -> None:
    """The time is never over."""


def enclose(mechanism: Any, shift: Any, epsilon: str, precision: int = 128, threshold: str = "1e-5") -> Divergence:
    with bits(precision):
        tool = Quadrature(read_density(mechanism.document()), no_watch)
        return tool.divergence(Fraction(shift), Fraction(epsilon), Fraction(threshold))


def holds(found: Divergence, true: Any) -> bool:
    room = true * ROUNDING + MPF(10) ** -300
    return bool(number(found.lower) - room <= true <= number(found.upper) + room)


@pytest.mark.parametrize("name", ZOO)
def test_enclosures_contain_the_referee_s_divergence_and_meet_the_main_audit_s(name: str) -> None:
    mechanism, density = ZOO[name]
    rng = random.Random(name)
    for epsilon in ("0", "1.3"):
        for shift in ("1", f"{rng.random():.6f}"):
            found = enclose(mechanism, shift, epsilon)
            assert holds(found, density.divergence(shift, epsilon))
            assert found.upper - found.lower <= Fraction(1, 10**25)
            phi, level = Fraction(shift), Fraction(epsilon)
            with bits(128):
                ours = MainDensity(mechanism.unit_form)
                search = DivergenceAt(ours.stretches(phi, level), [], 1e-9, ours.anchor(phi, level))
                main = search.bound(1e-9, Limits())
                assert lower(main.lower / ours.mass) <= found.upper
                assert found.lower <= upper(main.upper / ours.mass)


@pytest.mark.parametrize("seed", range(10, 22))
def test_hard_cases(seed: int) -> None:
    case, rng = hard.case(seed), random.Random(seed)
    shift = f"{rng.random():.9f}"
    assert holds(enclose(case.mechanism, shift, case.epsilon), case.density.divergence(shift, case.epsilon))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_more_hard_cases(seed: int) -> None:
    test_hard_cases(1000 + seed)


def test_the_sensitivity_scales() -> None:
    small = enclose(MultiGaussian(sensitivity="1e-9", sigma="4e-10", K=2, epsilon=1), "0.7", "1")
    large = enclose(MultiGaussian(sensitivity=5, sigma=2, K=2, epsilon=1), "0.7", "1")
    assert (small.lower, small.upper) == (large.lower, large.upper)


def test_far_tails() -> None:
    mechanism, density = ZOO["gaussian"]
    found = enclose(mechanism, "1", "9", threshold="1e-40")
    true = density.divergence("1", "9")
    assert 0 < true < MPF(10) ** -28
    assert found.lower > 0
    assert holds(found, true)


def test_more_bits_are_tighter() -> None:
    mechanism, density = ZOO["multi-gaussian"]
    widths = []
    for precision in (64, 128, 256):
        found = enclose(mechanism, "0.37", "0.8", precision)
        assert holds(found, density.divergence("0.37", "0.8"))
        widths.append(found.upper - found.lower)
    assert widths[0] > 2**40 * widths[1] > 2**80 * widths[2] > 0


INTERIOR = multi_gaussian("0.33", 4, "1")
FLIPPED = {"lower": "upper", "upper": "lower"}
ORIGINAL_CHARGE = divergence._charge


def coarse(patch: Patch) -> None:
    """Zeros are closed in to 2⁻⁶ only, so that the charge of what is left is seen."""
    patch.setattr(signs, "ROOT_SHARE", Fraction(6, 128))
    patch.setattr(signs, "CELL_SHARE", Fraction(6, 128))


def flip_rounding(patch: Patch) -> None:
    outer = divergence.upper
    patch.setattr(divergence, "lower", lambda value: outer(value) + Fraction(1, 2**130))


def half_the_mass(patch: Patch) -> None:
    found = Quadrature._mass

    def mass(self: Quadrature) -> Any:
        whole = found(self)
        whole.found = whole.found / 2
        return whole

    patch.setattr(Quadrature, "_mass", mass)


def lowest_for_highest(patch: Patch) -> None:
    patch.setattr(signs, "_highest", signs._lowest)


def highest_for_lowest(patch: Patch) -> None:
    patch.setattr(signs, "_lowest", signs._highest)


FAULTS: dict[str, tuple[Callable[[Patch], None], Callable[[Patch], None]]] = {
    "tail dropped": (lambda _: None, lambda patch: patch.setattr(divergence, "_tail", lambda *_: arb(0))),
    "cell of no known sign not charged": (
        coarse,
        lambda patch: patch.setattr(divergence, "_charge", lambda *_: arb(0)),
    ),
    "rounding flipped": (lambda _: None, flip_rounding),
    "half the mass": (lambda _: None, half_the_mass),
    "a negative bound of R taken for positive": (lambda _: None, highest_for_lowest),
    "a positive bound of R taken for negative": (lambda _: None, lowest_for_highest),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_noticed(name: str, monkeypatch: Patch) -> None:
    prepare, fault = FAULTS[name]
    mechanism, density = INTERIOR
    true = density.divergence("0.7", "1")
    prepare(monkeypatch)
    assert holds(enclose(mechanism, "0.7", "1"), true)
    fault(monkeypatch)
    assert not holds(enclose(mechanism, "0.7", "1"), true)


def test_a_zero_that_is_hit_exactly_is_closed_in() -> None:
    """At ε = 0 the zero −φ/2 is a number of few digits, at which no precision tells the sign."""
    for mechanism in (MultiGaussian(sensitivity=1, sigma="0.4", K=2, epsilon=1), Gaussian(sensitivity=1, sigma=1)):
        found = enclose(mechanism, "0.75", "0")
        assert found.upper - found.lower < Fraction(1, 10**30)


def test_one_exponential_against_one_is_decided_exactly() -> None:
    found = enclose(Laplace(sensitivity=1, scale="2/3"), "1", "1.5", threshold="0")
    assert found.lower == found.upper == 0
    assert found.is_at_most(Fraction(0))


def test_endless_steps_are_summed_to_the_end() -> None:
    """D(Δ) at ε' < ε is what one step loses, Σ over all steps: e^(−ε'k)…, by the geometric series."""
    found = enclose(Staircase(sensitivity=1, epsilon=2, gamma="0.5"), "1", "1")
    q, level = CONTEXT.exp(-2), CONTEXT.exp(1)
    mass = 2 * (MPF(1) / 2 + q / (1 - q))
    # f(x + 1) exceeds e f(x) on (−∞, −1/2), where it is e^2 as high: Σ over the steps of f, one back each.
    gained = (MPF(1) / 2 - level * q / 2) + (MPF(1) / 2 - level * q / 2) + (q - level * q * q) / (1 - q)
    assert holds(found, gained / mass)


def test_equal_exponentials_are_subtracted_exactly() -> None:
    a, b = (
        Term(Fraction(2), Fraction(1), Fraction(1), Fraction(0)),
        Term(Fraction(1), Fraction(0), Fraction(1), Fraction(3)),
    )
    one = Term(Fraction(1), Fraction(1), Fraction(1), Fraction(0))
    assert subtract((a, b), (one, b)) == ((one,), ())
    assert subtract((one,), (a,)) == ((), (one,))


def test_an_interrupt_inside_the_quadrature_is_raised_as_itself() -> None:
    calls = iter(range(100))

    def function(z: acb) -> acb:
        if next(calls) > 5:
            raise KeyboardInterrupt
        return (z * z).exp()

    with pytest.raises(KeyboardInterrupt):
        integral(function, fmpq(0), fmpq(20), arb(2) ** -90, arb(0))
    assert next(calls) == 7


def test_the_normal_distribution_function() -> None:
    with bits(128):
        for z in ("0", "1.3", "-5", "-40", "7", "-1000"):
            true = (-arb(z) / arb(2).sqrt()).erfc() / 2
            found = normal_cdf(Fraction(z), no_watch)
            assert found.overlaps(true)
            assert float(found.rad() / found.mid()) < 1e-30


def test_renyi_divergence_of_the_gaussian() -> None:
    density = read_density({"family": "gaussian", "sensitivity": "2", "sigma": "1"})
    with bits(64):
        for order in (2, 3):
            found = renyi_divergence(density, order, no_watch)
            assert Fraction(2 * order) * Fraction(999, 1000) < upper(found) <= 2 * order + Fraction(1, 10**12)


@pytest.mark.parametrize(("rho", "delta"), [("1/2", "1e-6"), ("1e-9", "0.5"), ("1000", "1e-300"), ("1e-6", "1e-9")])
def test_the_least_epsilon_is_enclosed(rho: str, delta: str) -> None:
    with bits(256):
        least, reached = least_epsilon(Fraction(rho), Fraction(delta))
        assert upper(reached) - lower(least) < Fraction(1, 10**30)
    level, r = CONTEXT.log(1 / number(delta)), number(rho)
    grid = [MPF(10) ** (MPF(i) / 50 - 6) for i in range(1200)]
    values = [r * (1 + t) + CONTEXT.log(t / (1 + t)) + (level - CONTEXT.log(1 + t)) / t for t in grid]
    assert number(lower(least)) <= min(values) <= number(upper(reached)) + abs(min(values)) / 50 + MPF("0.01")


def test_breaks_meet() -> None:
    stairs = read_density(Staircase(sensitivity=2, epsilon=1, gamma="0.3").document())
    assert meetings(stairs) == ([Fraction(3, 10), Fraction(3, 5)], True)  # 0 is a break too


def test_climbing() -> None:
    top = Fraction(1, 3)
    slope: Callable[[Fraction], float] = lambda x: float(top - x)  # noqa: E731
    for start in (Fraction(1, 10), Fraction(9, 10)):
        assert abs(polish(slope, Proposal(start, Fraction(1, 100), 64)) - top) < Fraction(1, 10**8)
    assert polish(lambda _: 1.0, Proposal(Fraction(1, 2), Fraction(1, 100), 64)) == 1
    assert polish(lambda _: 0.0, Proposal(Fraction(1, 2), Fraction(1, 100), 64)) == Fraction(1, 2)
    with bits(200):
        zero = bracketed_zero(lambda x: arb(fmpq(x.numerator, x.denominator)).exp() - 2, Fraction(0), Fraction(1), 100)
        assert abs(number(zero) - CONTEXT.log(2)) < MPF(10) ** -30


def test_decimals_are_rounded_to_their_side() -> None:
    third = Fraction(1, 3)
    assert Fraction(decimal(third, False)) < third < Fraction(decimal(third, True))
    hair = Fraction(1, 100) + Fraction(1, 10**30)
    assert Fraction(decimal(hair, False, above=Fraction(1, 100))) > Fraction(1, 100)
    assert (short(Fraction(1, 4)), short(third)) == ("0.25", "≈ 0.333333333333")
    assert flint.ctx.prec == 53
