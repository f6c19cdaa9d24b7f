"""Composition: exact sums, and an ε that is never below what 50 digits say."""

from __future__ import annotations

import re
from contextlib import nullcontext
from fractions import Fraction
from typing import Any

import flint
import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import audit.composition
from audit.composition import (
    MAX_RHO_BITS,
    Composition,
    Part,
    compose,
    enclose_corollary,
    enclose_epsilon,
    log_inverse,
    part_of,
    propose_order,
    total_rho,
)
from audit.exact import decimal_upper, lower, rational, upper
from audit.verdict import Limits, Verdict
from mechanisms.claims import Direct, Theorem42, ZeroConcentrated
from mechanisms.families import Declared, Gaussian, MultiGaussian, QuasiGaussian
from mechanisms.numbers import MAX_PARTS, InputError, read_real

DIGITS = 50
GRID = [
    (rho, delta)
    for rho in ("1e-300", "1e-12", "0.0004", "0.1", "1", "37/3", "5000", "1e12", "1e300")
    for delta in ("1e-300", "1e-18", "1e-5", "0.25", "0.999", "0.9999999999999999999999")
]


def gaussian(rho: str, count: int = 1) -> Part:
    """A Gaussian of sensitivity 1 whose ρ is that of the text, which must be half a square."""
    return Part(Gaussian(sensitivity=1, sigma=rho), count, None)


def laplace(epsilon: str, count: int = 1) -> Part:
    pieces = ({"from": "0", "to": "inf", "c": "0", "lines": [["0", "-1"]]},)
    return Part(Declared(sensitivity=1, declared_pieces=pieces), count, read_real(epsilon, "epsilon"))  # type: ignore[arg-type]


def referee(rho: Fraction, delta: Fraction) -> Any:
    """inf over α of ε(α), by mpmath: the minimum is where ρ t² + log(1 + t) = log(1/δ), t = α − 1."""
    with mpmath.workdps(DIGITS + 70):  # terms cancel: ε can be far below them
        r, d = (mpmath.mpf(value.numerator) / value.denominator for value in (rho, delta))
        level = -mpmath.log(d)
        low, high = 2 * level / (1 + mpmath.sqrt(1 + 4 * r * level)), mpmath.sqrt(level / r)
        for _ in range(220):
            middle = mpmath.sqrt(low * high)
            low, high = (middle, high) if r * middle**2 + mpmath.log1p(middle) < level else (low, middle)
        t = low
        return max(mpmath.mpf(0), (1 + t) * r - mpmath.log1p(1 / t) + (level - mpmath.log1p(t)) / t)


def best(rho: Fraction, delta: Fraction) -> Fraction:
    found = enclose_epsilon(rho, delta, propose_order(rho, delta), Limits())
    assert found is not None
    return found.upper


@pytest.mark.parametrize(("rho_text", "delta_text"), GRID)
def test_epsilon_against_a_referee(rho_text: str, delta_text: str) -> None:
    rho, delta = read_real(rho_text, "rho"), read_real(delta_text, "delta")
    printed = read_real(decimal_upper(best(rho, delta)), "epsilon")
    exact = referee(rho, delta)
    with mpmath.workdps(DIGITS):
        found = mpmath.mpf(printed.numerator) / printed.denominator
        assert found >= exact
        assert found <= exact * (1 + mpmath.mpf("1e-12"))


@pytest.mark.parametrize(("rho_text", "delta_text"), GRID)
def test_corollary_against_a_referee(rho_text: str, delta_text: str) -> None:
    rho, delta = read_real(rho_text, "rho"), read_real(delta_text, "delta")
    found = enclose_corollary(rho, delta, Limits())
    assert found is not None
    printed = read_real(decimal_upper(found.upper), "epsilon")
    with mpmath.workdps(DIGITS):
        r = mpmath.mpf(rho.numerator) / rho.denominator
        exact = r + 2 * mpmath.sqrt(r * -mpmath.log(mpmath.mpf(delta.numerator) / delta.denominator))
        value = mpmath.mpf(printed.numerator) / printed.denominator
        assert exact * (1 - mpmath.mpf("1e-20")) <= value <= exact * (1 + mpmath.mpf("1e-12"))
    assert best(rho, delta) <= found.upper * (1 + Fraction(1, 10**15)), "the better conversion is better"


@pytest.mark.parametrize("order", ["1e-9", "0.1", "1", "3.7", "100", "1e9"])
def test_any_order_gives_a_larger_epsilon(order: str) -> None:
    for rho_text, delta_text in GRID:
        rho, delta = read_real(rho_text, "rho"), read_real(delta_text, "delta")
        other = enclose_epsilon(rho, delta, read_real(order, "order"), Limits())
        assert other is not None
        assert best(rho, delta) <= other.upper * (1 + Fraction(1, 10**15))


@pytest.mark.parametrize(("sigma", "count"), [("10", 100), ("3", 1), ("0.4", 7), ("50", 1)])
@pytest.mark.parametrize("delta", ["1e-12", "1e-5", "0.05"])
def test_composed_gaussians_keep_the_promise(sigma: str, count: int, delta: str) -> None:
    """The releases together are one Gaussian of μ² = 2ρ, whose δ(ε) is known exactly (Balle and Wang 2018)."""
    found = compose([gaussian(sigma, count)], read_real(delta, "delta"))
    assert found.epsilon is not None
    with mpmath.workdps(DIGITS):
        mu = mpmath.sqrt(2 * mpmath.mpf(found.rho.numerator) / found.rho.denominator)
        epsilon = mpmath.mpf(found.epsilon.numerator) / found.epsilon.denominator
        spent = mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
        assert spent <= mpmath.mpf(delta)


def test_rho_adds_up_exactly() -> None:
    multi = MultiGaussian(sensitivity="0.3", sigma="0x1.8p-1", K=3, epsilon=1)
    parts = [gaussian("10", 100), Part(multi, 3, None), laplace("1", 2), gaussian("7")]
    expected = 100 * Fraction(1, 200) + 3 * Fraction(9, 100) / (2 * Fraction(9, 16)) + 2 * Fraction(1, 2)
    assert total_rho(parts) == expected + Fraction(1, 98)
    found = compose(parts, Fraction(1, 10**6))
    assert found.rho == total_rho(parts)
    assert found.releases == 106


def test_count_is_so_many_of_the_same() -> None:
    delta = Fraction(1, 10**6)
    once, many = compose([gaussian("3")] * 12, delta), compose([gaussian("3", 12)], delta)
    mixed = compose([gaussian("3", 5), gaussian("3", 7)], delta)
    assert once.rho == many.rho == mixed.rho == Fraction(12, 18)
    assert once.epsilon == many.epsilon == mixed.epsilon


@pytest.mark.parametrize(("rho_text", "delta_text"), GRID[::4])
def test_enclosures_of_epsilon_are_tight_and_on_both_sides(rho_text: str, delta_text: str) -> None:
    rho, delta = read_real(rho_text, "rho"), read_real(delta_text, "delta")
    for order in (propose_order(rho, delta), Fraction(1), Fraction(1, 10**9)):
        found, corollary = enclose_epsilon(rho, delta, order, Limits()), enclose_corollary(rho, delta, Limits())
        with mpmath.workdps(DIGITS + 300):
            r, d, t = (mpmath.mpf(value.numerator) / value.denominator for value in (rho, delta, order))
            level = -mpmath.log(d)
            exact = max(mpmath.mpf(0), (1 + t) * r - mpmath.log1p(1 / t) + (level - mpmath.log1p(t)) / t)
            for ends, true in ((found, exact), (corollary, r + 2 * mpmath.sqrt(r * level))):
                assert ends is not None
                lower, upper = (mpmath.mpf(end.numerator) / end.denominator for end in (ends.lower, ends.upper))
                assert lower <= true * (1 + mpmath.mpf(10) ** -280) and true * (1 - mpmath.mpf(10) ** -280) <= upper
                assert upper - lower <= upper / 2**60


@pytest.mark.parametrize(
    ("middle", "radius", "asked"),
    [
        ("1", -62, [128]),
        ("1", -58, [128, 256, 512]),
        ("1024", -55, [128]),
        ("1e-6", -70, [128, 256, 512]),
        ("-9", 0, [128]),
    ],
)
def test_bits_rise_until_60_of_a_number_are_known_or_it_is_below_0(middle: str, radius: int, asked: list[int]) -> None:
    centre, room, seen = Fraction(middle), Fraction(2) ** radius, list[int]()

    def value() -> flint.arb:
        seen.append(flint.ctx.prec)
        return flint.arb(rational(centre), rational(room))

    found = audit.composition._enclose(value, Limits(bits=512))
    assert seen == asked and found is not None and found.lower <= centre - room and centre + room <= found.upper


def test_an_epsilon_that_is_no_number_at_any_precision_is_none() -> None:
    assert enclose_epsilon(Fraction(1), Fraction(1, 2), Fraction(0), Limits(bits=256)) is None


@pytest.mark.parametrize(("rho_text", "delta_text"), GRID)
def test_the_order_that_is_proposed_is_the_best_to_20_digits(rho_text: str, delta_text: str) -> None:
    rho, delta = read_real(rho_text, "rho"), read_real(delta_text, "delta")
    found = propose_order(rho, delta)
    with mpmath.workdps(DIGITS + 30):
        r, d = (mpmath.mpf(value.numerator) / value.denominator for value in (rho, delta))
        ends = [mpmath.mpf(found.numerator) / found.denominator * (1 + mpmath.mpf(gap)) for gap in ("-1e-19", "1e-22")]
        below, above = (r * t * t + mpmath.log1p(t) + mpmath.log(d) for t in ends)
        assert below <= 0 <= above


def test_128_bits_are_always_taken() -> None:
    rho, delta, order = Fraction(1, 10), Fraction(1, 10**5), Fraction(1, 3)
    found = enclose_epsilon(rho, delta, order, Limits(bits=64))
    assert found is not None and found == enclose_epsilon(rho, delta, order, Limits(bits=128))


@pytest.mark.parametrize("delta", ["0.3", "0.5", "0.6", "1e-300", "0.999999999999999999999999999999"])
def test_the_logarithm_of_delta(delta: str) -> None:
    value = read_real(delta, "delta")
    with flint.ctx.workprec(128), mpmath.workdps(DIGITS + 60):
        found = log_inverse(value)
        true = -mpmath.log(mpmath.mpf(value.numerator) / value.denominator)
        ends = [mpmath.mpf(end.numerator) / end.denominator for end in (lower(found), upper(found))]
        assert ends[0] <= true <= ends[1] and ends[1] - ends[0] <= true * mpmath.mpf(2) ** -120


def test_what_is_said_of_a_composition() -> None:
    parts = [gaussian("3"), laplace("1.5"), laplace("2", 3)]
    shares: list[float] = []
    found = compose(parts, Fraction(1, 10**6), progress=shares.append)
    assert found.parts == tuple(parts) and found.delta == Fraction(1, 10**6) and found.releases == 5
    assert shares == [0.5, 1.0] and found.order_above_1 == propose_order(found.rho, found.delta)
    assert found.reason == "ρ adds up, and the Rényi divergence of one order gives ε"
    assert found.corollary_epsilon == enclose_corollary(found.rho, found.delta, Limits()).upper  # type: ignore[union-attr]
    assert found.epsilon == best(found.rho, found.delta)
    refuted = compose([laplace("0.5")], Fraction(1, 10**6))
    assert (refuted.parts, refuted.delta, refuted.rho) == ((laplace("0.5"),), Fraction(1, 10**6), Fraction(1, 8))
    assert refuted.verdict is Verdict.REFUTED and refuted.corollary_epsilon is None and refuted.order_above_1 is None


@pytest.mark.parametrize("name", ["enclose_epsilon", "enclose_corollary"])
def test_what_the_bits_do_not_enclose_is_inconclusive(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit.composition, name, lambda *arguments: None)
    found = compose([gaussian("3")], Fraction(1, 10**6), Limits(bits=300))
    assert found == Composition(
        parts=(gaussian("3"),),
        delta=Fraction(1, 10**6),
        verdict=Verdict.INCONCLUSIVE,
        reason="300 bits do not enclose ε; raise the limit on bits",
        rho=Fraction(1, 18),
    )


def test_a_premise_is_the_claim_of_pure_dp() -> None:
    part = laplace("1.5", 2)
    assert part.premise is not None and part.premise.mechanism == part.mechanism
    assert part.premise.claim == Direct(epsilon="1.5", delta=0) and part.rho == Fraction(9, 8)
    assert gaussian("3").premise is None and gaussian("3").rho == Fraction(1, 18)
    with pytest.raises(InputError, match="part"):
        _ = Part(part.mechanism, 1, None).rho
    pure = part_of(part.mechanism, Direct(epsilon="1.5", delta=0), 2, "a.toml")
    assert pure == part
    with pytest.raises(InputError, match=r"^b\.toml: got direct of declared at delta 0\.1, expected a mixture"):
        part_of(part.mechanism, Direct(epsilon="1.5", delta="0.1"), 2, "b.toml")


@settings(max_examples=30, deadline=None)
@given(st.fractions(Fraction(1, 10**6), 100), st.fractions(Fraction(1, 10**9), Fraction(1, 2)))
def test_monotone(rho: Fraction, delta: Fraction) -> None:
    here = best(rho, delta)
    assert best(rho, delta * Fraction(11, 10)) <= here <= best(rho, delta * Fraction(10, 11))
    assert here <= best(rho * Fraction(11, 10), delta)


def test_tiny_rho_costs_no_epsilon() -> None:
    found = compose([gaussian("1e9")], Fraction(1, 10**5))
    assert found.epsilon == 0
    assert found.verdict is Verdict.VERIFIED
    assert found.corollary_epsilon is not None
    assert found.corollary_epsilon > 0


@pytest.mark.parametrize(
    ("epsilon", "verdict"), [("1", Verdict.VERIFIED), ("1.5", Verdict.VERIFIED), ("0.9999", Verdict.REFUTED)]
)
def test_pure_dp_counts_where_it_is_proved(epsilon: str, verdict: Verdict) -> None:
    found = compose([gaussian("10"), laplace(epsilon)], Fraction(1, 10**6))
    assert found.verdict is verdict
    assert (found.epsilon is None) == (verdict is not Verdict.VERIFIED)
    assert found.rho == Fraction(1, 200) + read_real(epsilon, "epsilon") ** 2 / 2
    if verdict is Verdict.REFUTED:
        assert found.reason.startswith("pure DP of declared noise at epsilon = 0.9999: ")


def test_time_over_is_inconclusive() -> None:
    found = compose([laplace("1.5")], Fraction(1, 10**6), Limits(expired=lambda: True))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.epsilon is None


def test_equal_premises_are_proved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[float] = []
    found = compose([laplace("1"), laplace("1", 5), gaussian("3")], Fraction(1, 10**6), progress=shares.append)
    assert found.verdict is Verdict.VERIFIED
    assert shares == [1.0]


def test_what_counts() -> None:
    noise = Gaussian(sensitivity=1, sigma=3)
    for claim in (Direct(epsilon=1, delta=0), Direct(epsilon=1, delta="1e-5"), ZeroConcentrated(rho=100)):
        assert part_of(noise, claim, 2, "a.toml") == Part(noise, 2, None), "only the mechanism counts"
    quasi = QuasiGaussian(sensitivity=1, sigma=3, epsilon=1)
    known = "a mixture of Gaussians of one sigma, or a direct claim with delta = 0 (pure DP): else no ρ is known"
    for refused, got in (
        (Direct(epsilon=1, delta="0.1"), "direct of quasi-gaussian at delta 0.1"),
        (Theorem42(epsilon=1, delta="0.1"), "theorem-4.2 of quasi-gaussian"),
    ):
        with pytest.raises(InputError, match=re.escape(f"a.toml: got {got}, expected {known}") + "$"):
            part_of(quasi, refused, 1, "a.toml")


@pytest.mark.parametrize("delta", ["0", "1", "-1", "2"])
def test_delta_is_between_0_and_1(delta: str) -> None:
    with pytest.raises(InputError, match=f"^delta: got {delta}, expected a number between 0 and 1$"):
        compose([gaussian("3")], Fraction(delta))


def test_an_exact_rho_may_have_so_many_bits_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    for most, fails in ((5, False), (4, True)):  # 18 is 10010 in binary
        monkeypatch.setattr(audit.composition, "MAX_RHO_BITS", most)
        with pytest.raises(InputError, match="5 bits, expected at most 4 bits") if fails else nullcontext():
            assert total_rho([gaussian("3")]) == Fraction(1, 18)


def test_bounded_work() -> None:
    delta = Fraction(1, 10**5)
    for number in (0, MAX_PARTS + 1):
        with pytest.raises(InputError, match=f"^parts: got {number}, expected 1 to {MAX_PARTS} mechanisms$"):
            compose([gaussian("3")] * number, delta)
    long = [gaussian(f"1.{'3' * 900}{number}7") for number in range(60)]
    most = f"at most {MAX_RHO_BITS} bits: shorter numbers"
    with pytest.raises(InputError, match=rf"^parts: got an exact ρ of \d+ bits, expected {most}$"):
        compose(long, delta)


def test_a_thousand_doubles_are_summed() -> None:
    parts = [gaussian((1 + number / 997).hex()) for number in range(MAX_PARTS)]
    found: Composition = compose(parts, Fraction(1, 10**5))
    assert found.rho == sum(1 / (2 * Fraction(1 + number / 997) ** 2) for number in range(MAX_PARTS))
    assert found.epsilon is not None


@pytest.mark.parametrize("count", [0, -5, 1.5])
def test_a_count_is_a_whole_number_of_at_least_1(count: Any) -> None:
    with pytest.raises(InputError, match=rf"^count: got {count}, expected a whole number of at least 1$"):
        Part(Gaussian(sensitivity=1, sigma=1), count, None)
