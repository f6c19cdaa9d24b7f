"""Enclosures for pictures: of D over the shifts, and of δ(ε) round a claim."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import audit.profile
from audit.profile import FLOOR, TIGHT, Divergence, Sample, band_between, enclose_divergence, enclose_profile
from audit.shifts import Supremum
from audit.steps import exact_divergence
from audit.verdict import Enclosure, Limits
from mechanisms.divergence import float_divergence
from mechanisms.families import Declared, Gaussian, Mechanism, MultiGaussian, QuasiGaussian
from tests.audit.support import ZOO, declared, gaussian, multi_gaussian, quasi_gaussian
from tests.soundness.referee import CONTEXT, MPF, number

ROUNDING = MPF(10) ** -40

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


def test_the_band_of_samples_whose_epsilon_floats_do_not_tell_apart() -> None:
    """Once divided by zero, for a claim at ε = 1e-400."""
    tiny = [Fraction(k, 10**400) for k in (1, 2, 3)]
    same = [Sample(at, Enclosure(Fraction(19, 100), Fraction(1, 5))) for at in tiny]
    assert band_between(same, [0.0]) == [(0.19, 0.2)]
    falls = [same[0], Sample(tiny[1], Enclosure(Fraction(15, 100), Fraction(16, 100)))]
    assert band_between(falls, [0.0]) == [(0.15, 0.2)]
    apart = [*same, Sample(Fraction(1), Enclosure(Fraction(1, 10), Fraction(1, 9)))]
    (low, high), (end, _) = band_between(apart, [0.5, 1.0])
    assert 0.1 <= low <= high < 0.2 and 0.1 <= end < 0.112


def _samples(convex: list[tuple[Fraction, float]], width: float) -> list[Sample]:
    """Enclosures of that relative width round values of a function."""
    return [
        Sample(at, Enclosure(Fraction(value) * Fraction(1 - width), Fraction(value) * Fraction(1 + width)))
        for at, value in convex
    ]


@settings(deadline=None)
@given(st.integers(0, 10**9), st.sampled_from([0.0, 1e-3, 0.1]))
def test_the_band_holds_every_convex_function_that_falls(seed: int, width: float) -> None:
    """The largest of a few lines in α = e^ε that do not rise: convex, and with corners."""
    rng = random.Random(seed)
    lines = [(0.01, 0.0), *((rng.uniform(0.1, 1), rng.uniform(0, 0.3)) for _ in range(4))]

    def function(epsilon: float) -> float:
        return max(level - slope * math.exp(epsilon) for level, slope in lines)

    places = sorted({Fraction(rng.randint(0, 4000), 1000) for _ in range(rng.randint(2, 6))})
    if len(places) < 2:
        return
    samples = _samples([(at, function(float(at))) for at in places], width)
    asked = [rng.uniform(float(places[0]), float(places[-1])) for _ in range(20)] + [float(at) for at in places]
    for epsilon, (low, high) in zip(asked, band_between(samples, asked), strict=True):
        value, room = function(epsilon), 1e-12 * (1 + 1 / min(float(b - a) for a, b in itertools.pairwise(places)))
        assert low <= value + room + abs(value) * 1e-12 and value <= high + room
        assert width or low <= high + room


def test_the_band_is_that_of_the_chords() -> None:
    """Four samples of a function with corners at α = 2 and 4, exactly: which chord bounds it where."""
    alphas, values = [1.0, 2.0, 4.0, 8.0], [0.9, 0.5, 0.3, 0.2]
    samples = _samples([(Fraction(math.log(a)), v) for a, v in zip(alphas, values, strict=True)], 0.0)
    found = band_between(samples, [math.log(a) for a in (1.5, 3.0, 2.5, 6.0)])
    for (low, high), expected in zip(
        found,
        [
            (0.55, 0.7),  # the chord of 2 and 4, carried on to the left; that of 1 and 2
            (0.325, 0.4),  # of the two chords beside, that of 4 and 8 is the higher
            (0.3375, 0.45),
            (0.2, 0.25),  # the last sample; nothing lies to the right
        ],
        strict=True,
    ):
        assert (low, high) == pytest.approx(expected, abs=1e-12)
    ((low, high),) = band_between(_samples([(Fraction(0), 0.9), (Fraction(1), 0.2)], 0.0), [0.5])
    assert (low, high) == pytest.approx((0.2, 0.9 - 0.7 * math.expm1(0.5) / math.expm1(1)), abs=1e-12)
    wide = _samples([(Fraction(math.log(a)), v) for a, v in zip(alphas, values, strict=True)], 0.01)
    ((low, high),) = band_between(wide, [math.log(3.0)])
    assert (low, high) == pytest.approx((1.25 * 0.3 * 0.99 - 0.25 * 0.2 * 1.01, 0.4 * 1.01), abs=1e-12)


REFEREED = {
    "gaussian": (*gaussian("1.3"), "0.7"),
    "multi-gaussian": (*multi_gaussian("0.27", 2, "3"), "3"),
    "quasi-gaussian": (*quasi_gaussian("1", "2"), "2"),
    "irregular": (*ZOO["irregular"], "0.7"),
    "camel": (*ZOO["camel"], "0.5"),
    "steps": (*ZOO["steps"], "0.5"),
    "below 0": (*multi_gaussian("0.27", 2, "3"), "-1/2"),
}


@pytest.mark.parametrize("name", REFEREED)
def test_every_enclosure_and_every_bound_between_against_60_digits(name: str) -> None:
    mechanism, density, epsilon = REFEREED[name]
    rng = random.Random(name)
    shifts = sorted({Fraction(0), Fraction(1), *(Fraction(rng.randint(1, 999), 1000) for _ in range(4))})
    found = enclose_divergence(mechanism, Fraction(epsilon), shifts, Fraction(1, 1000), Limits())
    assert found.complete and [sample.at for sample in found.samples] == shifts
    for sample in found.samples:
        true = density.divergence(sample.at, epsilon)
        assert number(sample.value.lower) - ROUNDING <= true <= number(sample.value.upper) + ROUNDING
        width = sample.value.upper - sample.value.lower
        assert 0 <= width <= max(sample.value.upper * TIGHT, Fraction(1, 1000) * FLOOR) and sample.value.upper <= 1
    for bound, (start, stop) in zip(found.between, itertools.pairwise(shifts), strict=True):
        for share in (Fraction(0), Fraction(1, 2), Fraction(rng.randint(0, 100), 100), Fraction(1)):
            assert density.divergence(start + share * (stop - start), epsilon) <= number(bound) + ROUNDING
        assert bound <= 1


@pytest.mark.parametrize("unit", ["3", "2/7"])
@pytest.mark.parametrize("name", ["irregular", "steps"])
def test_shifts_are_in_the_unit_of_the_query(name: str, unit: str) -> None:
    size = Fraction(unit)
    one: Mechanism = MultiGaussian(sensitivity=1, sigma="0.5", K=2, epsilon="1")
    wide: Mechanism = MultiGaussian(sensitivity=size, sigma=size / 2, K=2, epsilon="1")
    if name == "steps":
        one = Declared(sensitivity=1, declared_pieces=[UNIFORM])
        wide = Declared(sensitivity=size, declared_pieces=[UNIFORM | {"to": str(2 * size)}])
    plain = enclose_divergence(one, Fraction(1), SHIFTS, Fraction(1, 10), Limits())
    scaled = enclose_divergence(wide, Fraction(1), [size * shift for shift in SHIFTS], Fraction(1, 10), Limits())
    assert [sample.at for sample in scaled.samples] == [size * sample.at for sample in plain.samples]
    for one_sample, other in zip(plain.samples, scaled.samples, strict=True):
        assert one_sample.value == other.value
    assert plain.between == scaled.between and plain.complete and scaled.complete


def test_the_bounds_between_shifts_are_near_the_ends_where_these_are_close() -> None:
    mechanism, _, epsilon = REFEREED["irregular"]
    shifts = [Fraction(400 + k, 1000) for k in range(6)]
    found = enclose_divergence(mechanism, Fraction(epsilon), shifts, Fraction(1, 1000), Limits())
    for bound, (a, b) in zip(found.between, itertools.pairwise(found.samples), strict=True):
        assert bound <= max(a.value.upper, b.value.upper) * Fraction(102, 100)
    rises = _divergence("gaussian")
    assert rises.between == tuple(sample.value.upper for sample in rises.samples[1:])


def test_steps_turn_between_the_shifts_that_are_asked() -> None:
    """A comb with teeth one Δ apart: D is largest where they part, between the two shifts."""
    mechanism, density = declared(
        ("0", "0.1", "0", [("0", "0")]),
        ("0.1", "0.9", "0", [("-5", "0")]),
        ("0.9", "1.1", "0", [("-0.2", "0")]),
        scale=0.1,
    )
    found = enclose_divergence(mechanism, Fraction(0), [Fraction(0), Fraction(1)], Fraction(1), Limits())
    exact = exact_divergence(mechanism, Fraction(0))
    assert exact is not None
    top = max(density.divergence(shift, 0) for shift in exact.shifts)
    (bound,) = found.between
    assert top <= number(bound) + ROUNDING and number(bound) <= top * (1 + MPF(10) ** -15)
    assert number(found.samples[1].value.upper) < top / 2


def test_too_many_turns_between_two_shifts_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism, _ = ZOO["steps"]
    exact = exact_divergence(mechanism, Fraction(1, 2))
    assert exact is not None
    inside = len([shift for shift in exact.shifts if 0 < shift < 1])
    for most, capped in ((inside, False), (inside - 1, True)):
        monkeypatch.setattr(audit.profile, "MOST_TURNS", most)
        found = enclose_divergence(mechanism, Fraction(1, 2), [Fraction(0), Fraction(1)], Fraction(1), Limits())
        assert (found.between == (1,)) is capped


@pytest.mark.parametrize("name", ["multi-gaussian", "steps"])
def test_the_shifts_before_the_limit_are_kept(name: str) -> None:
    mechanism, _, epsilon = REFEREED[name]
    whole = enclose_divergence(mechanism, Fraction(epsilon), SHIFTS, Fraction(1, 100), Limits())
    for most in (1, 4, 9):
        asked = [0]

        def expired(asked: list[int] = asked, most: int = most) -> bool:
            asked[0] += 1
            return asked[0] > most

        found = enclose_divergence(mechanism, Fraction(epsilon), SHIFTS, Fraction(1, 100), Limits(expired=expired))
        assert not found.complete and found.samples == whole.samples[: len(found.samples)]
        assert found.between == whole.between[: max(len(found.samples) - 1, 0)]


def test_steps_that_the_bits_do_not_tell_apart_are_left_out() -> None:
    rows = [UNIFORM | {"to": "1", "lines": [["1e-60", "0"]]}, UNIFORM | {"from": "1"}]
    mechanism = Declared(sensitivity=1, declared_pieces=rows)  # type: ignore[arg-type]
    for limit, kept in ((128, 0), (4096, 3)):
        shifts = [Fraction(0), Fraction(1, 2), Fraction(1)]
        found = enclose_divergence(mechanism, Fraction(0), shifts, Fraction(1), Limits(bits=limit))
        assert found.complete is bool(kept) and len(found.samples) <= max(kept, 1)


def test_a_profile_that_runs_out_of_time_on_the_way_leaves_that_epsilon_out() -> None:
    mechanism, _, _ = REFEREED["irregular"]
    asked = [0]

    def expired() -> bool:
        asked[0] += 1
        return asked[0] == 3

    found = list(enclose_profile(mechanism, [Fraction(1), Fraction(2)], Limits(expired=expired)))
    assert [sample.at for sample in found] == [2]


def test_more_bits_are_taken_where_the_mass_of_steps_nearly_cancels() -> None:
    """Of D = (e^(10^−60) − 1 + e^−200)/mass 256 bits leave fewer than 64."""
    logs = ("1e-60", "-100", "-200")
    rows = [{"from": str(i), "to": str(i + 1), "c": "0", "lines": [[log, "0"]]} for i, log in enumerate(logs)]
    mechanism, one = Declared(sensitivity="1", declared_pieces=rows), [Fraction(1)]
    few, found = (enclose_divergence(mechanism, Fraction(100), one, one[0], Limits(bits=most)) for most in (511, 512))
    assert not few.complete and few.samples == () and found.complete
    ends, heights = found.samples[0].value, [CONTEXT.exp(number(log)) for log in logs]
    true = (CONTEXT.expm1(number("1e-60")) + heights[2]) / (2 * CONTEXT.fsum(heights))
    assert number(ends.lower) <= true <= number(ends.upper)


def test_more_bits_are_taken_where_some_do_not_do() -> None:
    mechanism = MultiGaussian(sensitivity=1, sigma="0.35", K=40, epsilon="4")
    shifts = [Fraction(1, 2), Fraction(1)]
    few = enclose_divergence(mechanism, Fraction(4), shifts, Fraction(1, 10**60), Limits(bits=128))
    many = enclose_divergence(mechanism, Fraction(4), shifts, Fraction(1, 10**60), Limits(bits=1024))
    assert not few.complete and many.complete and len(many.samples) == 2 and len(many.between) == 1


@pytest.mark.parametrize("name", ["multi-gaussian", "quasi-gaussian", "steps", "irregular"])
def test_the_profile_against_60_digits(name: str) -> None:
    mechanism, density, _ = REFEREED[name]
    epsilons = [Fraction(1, 2), Fraction(1), Fraction(5, 2)]
    found = list(enclose_profile(mechanism, epsilons, Limits()))
    assert [sample.at for sample in found] == epsilons
    for sample in found:
        true = density.supremum(sample.at)[1]
        assert number(sample.value.lower) <= true * (1 + ROUNDING)
        assert true <= number(sample.value.upper) * (1 + ROUNDING)
        assert sample.value.upper <= sample.value.lower * Fraction(103, 100) and sample.value.upper <= 1


def test_the_profile_has_few_boxes_for_each_epsilon_and_stops_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism, _, _ = REFEREED["irregular"]
    asked: list[Limits] = []
    original = audit.profile._supremum

    def supremum(mechanism: Mechanism, epsilon: Fraction, limits: Limits) -> Supremum:
        asked.append(limits)
        return original(mechanism, epsilon, limits)

    monkeypatch.setattr(audit.profile, "_supremum", supremum)
    over = [False]
    walk = enclose_profile(mechanism, [Fraction(k) for k in (1, 2, 3)], Limits(boxes=10**6, expired=lambda: over[0]))
    first = next(walk)
    over[0] = True
    assert first.at == 1 and list(walk) == [] and [limits.boxes for limits in asked] == [256]
    assert [limits.bits for limits in asked] == [4096]
    list(enclose_profile(mechanism, [Fraction(1)], Limits(boxes=7)))
    assert asked[-1].boxes == 7


def test_the_watch_is_handed_to_the_floats_that_propose_shifts(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are asked where no table serves."""
    asked: list[tuple[object, ...]] = []

    def propose(*arguments: object) -> list[Fraction]:
        asked.append(arguments[1:])
        return [Fraction(1)]

    monkeypatch.setattr(audit.profile, "propose_shifts", propose)
    limits = Limits()
    audit.profile._supremum(REFEREED["camel"][0], Fraction(1, 2), limits)
    assert asked == [(Fraction(1, 2), limits.check)]
