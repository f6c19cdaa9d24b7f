"""Enclosures for pictures: of D over the shifts, and of δ(ε) round a claim."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from audit.profile import Divergence, band_between, enclose_divergence, enclose_profile
from audit.verdict import Limits
from mechanisms.divergence import float_divergence
from mechanisms.families import Declared, Gaussian, Mechanism, MultiGaussian, QuasiGaussian

UNIFORM = {"from": "0", "to": "2", "c": "0", "lines": [["0", "0"]]}
MECHANISMS: dict[str, tuple[Mechanism, str]] = {
    "gaussian": (Gaussian(sensitivity="2", sigma="3"), "0.7"),
    "multi-gaussian": (MultiGaussian(sensitivity="1", sigma="0.27", K=2, epsilon="3"), "3"),
    "quasi-gaussian": (QuasiGaussian(sensitivity="1", sigma="1", epsilon="2"), "2"),
    "steps": (Declared(sensitivity="1", declared_pieces=[UNIFORM]), "0.5"),
}
SHIFTS = [Fraction(i, 12) for i in range(13)]


def _divergence(name: str, limits: Limits | None = None) -> Divergence:
    mechanism, epsilon = MECHANISMS[name]
    shifts = [shift * mechanism.sensitivity for shift in SHIFTS]
    return enclose_divergence(mechanism, Fraction(epsilon), shifts, Fraction(1, 100), limits or Limits())


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_enclosures_hold_the_float_values(name: str) -> None:
    mechanism, epsilon = MECHANISMS[name]
    found = _divergence(name)
    assert found.complete
    assert [sample.at / mechanism.sensitivity for sample in found.samples] == SHIFTS
    for sample in found.samples:
        value = float_divergence(mechanism.unit_form, sample.at / mechanism.sensitivity, Fraction(epsilon))
        low, high = float(sample.value.lower), float(sample.value.upper)
        assert low - 1e-12 <= value <= high + 1e-12
        assert high - low <= max(high / 64, 1e-4)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_bounds_between_hold_between(name: str) -> None:
    mechanism, epsilon = MECHANISMS[name]
    found = _divergence(name)
    assert len(found.between) == len(SHIFTS) - 1
    for i, bound in enumerate(found.between):
        for share in (Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), Fraction(1)):
            shift = (i + share) / 12
            assert float_divergence(mechanism.unit_form, shift, Fraction(epsilon)) <= float(bound) + 1e-12


def test_a_cap_lowers_the_bounds_only() -> None:
    found = _divergence("multi-gaussian")
    capped = found.capped(Fraction(1, 1000))
    assert capped.samples == found.samples
    assert capped.between == tuple(min(bound, Fraction(1, 1000)) for bound in found.between)
    assert capped.between != found.between


def test_at_no_shift_there_is_no_divergence() -> None:
    zero = _divergence("gaussian").samples[0]
    assert (zero.value.lower, zero.value.upper) == (0, 0)


@pytest.mark.parametrize("name", ["gaussian", "steps"])
def test_what_the_limits_end_is_left_out(name: str) -> None:
    asked = 0

    def expired() -> bool:
        nonlocal asked
        asked += 1
        return asked > 20

    found = _divergence(name, Limits(expired=expired) if name == "gaussian" else Limits(expired=lambda: True))
    assert not found.complete
    assert len(found.samples) < len(SHIFTS)
    assert len(found.between) == max(len(found.samples) - 1, 0)


def test_the_profile_of_the_gaussian_is_that_of_its_formula() -> None:
    mechanism, _ = MECHANISMS["gaussian"]
    epsilons = [Fraction(k, 10) for k in range(3, 12, 2)]
    found = list(enclose_profile(mechanism, epsilons, Limits()))
    assert [sample.at for sample in found] == epsilons
    for sample in found:
        assert sample.value.lower <= Fraction(_gaussian(float(sample.at), 2 / 3)) * (1 + Fraction(1, 10**9))
        assert sample.value.upper >= Fraction(_gaussian(float(sample.at), 2 / 3)) * (1 - Fraction(1, 10**9))


def _gaussian(epsilon: float, ratio: float) -> float:
    """δ(ε) of N(0, σ²), ratio = Δ/σ (Balle & Wang 2018)."""
    below, above = ratio / 2 - epsilon / ratio, -ratio / 2 - epsilon / ratio
    return math.erfc(-below / math.sqrt(2)) / 2 - math.exp(epsilon) * math.erfc(-above / math.sqrt(2)) / 2


def test_the_band_holds_the_profile_between_its_samples() -> None:
    mechanism, _ = MECHANISMS["gaussian"]
    samples = list(enclose_profile(mechanism, [Fraction(k, 10) for k in range(3, 12, 2)], Limits()))
    places = [0.3 + 0.8 * k / 40 for k in range(41)]
    for epsilon, (low, high) in zip(places, band_between(samples, places), strict=True):
        assert low * (1 - 1e-9) <= _gaussian(epsilon, 2 / 3) <= high * (1 + 1e-9)
        assert high < 1.5 * low


def test_the_profile_without_time_is_empty() -> None:
    mechanism, _ = MECHANISMS["gaussian"]
    assert list(enclose_profile(mechanism, [Fraction(1)], Limits(expired=lambda: True))) == []
