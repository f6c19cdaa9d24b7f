"""The grid of Theorem 3.2 and the conditions of Theorem 4.2, against 60 digits."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.decide import decide
from audit.exact import ball, enclosure
from audit.theorems import condition_4a, decide_theorem_4_2, grid_size, normal_cdf, ratio_5a
from audit.verdict import Limits, Verdict
from mechanisms.claims import Statement, Theorem32, Theorem42
from mechanisms.families import Gaussian, QuasiGaussian
from tests.audit.support import FEW, PRECISIONS, bits, contains, multi_gaussian, quasi_gaussian
from tests.soundness.referee import CONTEXT, MPF, number

POSITIVE = st.fractions(min_value=Fraction(1, 1000), max_value=50, max_denominator=1000)


def theorem_4_2(sigma: str, epsilon: str, delta: str) -> tuple[QuasiGaussian, Theorem42]:
    mechanism = QuasiGaussian(sensitivity=1, sigma=sigma, epsilon=epsilon)
    return mechanism, Theorem42(epsilon=epsilon, delta=delta)


@FEW
@given(POSITIVE, POSITIVE, st.sampled_from(["1e-30", "1e-6", "0.3"]), st.sampled_from(["1e-6", "0.01", "0.9"]))
def test_the_grid_is_as_fine_as_the_theorem_says(sigma: Fraction, sensitivity: Fraction, delta: str, eta: str) -> None:
    mechanism = Gaussian(sensitivity=sensitivity, sigma=sigma)
    found = grid_size(mechanism, Theorem32(epsilon="1", delta=delta, eta=eta), Limits())
    quotient = number(sensitivity) / (CONTEXT.sqrt(2 * CONTEXT.pi) * number(eta) * number(sigma) * number(delta))
    assert found == CONTEXT.ceil(quotient)


def test_a_grid_that_the_bits_do_not_tell_is_none() -> None:
    mechanism = Gaussian(sensitivity=1, sigma=1)
    claim = Theorem32(epsilon="1", delta="1e-60", eta="1e-6")
    assert grid_size(mechanism, claim, Limits(bits=128)) is None
    assert grid_size(mechanism, claim, Limits(bits=256)) is not None
    assert decide(Statement(mechanism, claim), Limits(bits=128)).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("z", ["-40", "-8.25", "-1", "0", "1e-20", "3", "9"])
def test_the_normal_cdf_keeps_its_relative_accuracy(z: str) -> None:
    with bits(128):
        found = normal_cdf(ball(Fraction(z)))
    true = CONTEXT.erfc(-number(z) / CONTEXT.sqrt(2)) / 2
    assert contains(found, true) and float(found.rad() / found) < 1e-33


@FEW
@given(
    st.fractions(Fraction(1, 20), 20, max_denominator=20),
    st.fractions(0, 12, max_denominator=20),
    st.sampled_from(["1e-40", "1e-6", "0.1", "0.7"]),
)
def test_condition_4a(sigma: Fraction, epsilon: Fraction, delta: str) -> None:
    """The left side of (4a), divided by the positive e^ε + 2Φ(Δ/σ)."""
    mechanism, claim = theorem_4_2(str(sigma), str(epsilon), delta)
    s, e = number(sigma), number(epsilon)

    def cdf(z: object) -> object:
        return CONTEXT.erfc(-z / CONTEXT.sqrt(2)) / 2  # type: ignore[operator]

    h1 = CONTEXT.exp(2 * e) * cdf(-e * s - 1 / s) - cdf(-e * s + 1 / s)
    scale = CONTEXT.exp(e) + 2 * cdf(1 / s)
    for precision in PRECISIONS:
        with bits(precision):
            found = condition_4a(mechanism, claim)
        assert contains(found, h1 / scale + number(delta), slack=1e-55)


@pytest.mark.parametrize(
    ("sigma", "epsilon"), [("0.15", "10"), ("0.5", "1"), ("2", "2"), ("0.04", "3"), ("30", "0.5"), ("0.2357", "9")]
)
def test_condition_5a_encloses_the_log_of_the_ratio(sigma: str, epsilon: str) -> None:
    mechanism, claim = theorem_4_2(sigma, epsilon, "0.1")
    density = quasi_gaussian(sigma, epsilon)[1]
    piece = density.pieces[1]
    grid = [MPF(i) / 4000 for i in range(4001)]
    logs = [CONTEXT.log(piece.value(x)) for x in grid]
    bend = MPF(1) / (2 * number(sigma) ** 2) / 4000  # the slope of log f is at most about 2c: what the grid misses
    for precision in PRECISIONS:
        with bits(precision):
            found = ratio_5a(mechanism, claim, Limits())
        assert found is not None
        assert number(found.value.lower) <= max(logs) - min(logs) + bend
        assert number(found.value.upper) >= max(logs) - min(logs)
        assert float(found.value.upper) == pytest.approx(float(max(logs) - min(logs)), rel=1e-3)
        assert (found.verdict is Verdict.VERIFIED) == (max(logs) - min(logs) < number(epsilon))


@pytest.mark.parametrize(
    ("sigma", "epsilon", "delta", "failed"),
    [
        ("0x1.ee8d97078e168p+0", "2", "1e-5", None),
        ("0x1.ee8d97078e167p+0", "2", "1e-5", "(4a)"),
        ("0x1.7a5e3a52e877fp-3", "10", "0.25", None),
        ("0x1.7a5e3a52e877ep-3", "10", "0.25", "(5a)"),
        ("1e-30", "5", "1e-9", "(4a)"),
        ("1e-200", "5", "0.1", "(5a)"),
        ("1e200", "5", "0.1", None),
        ("1", "100000", "0.1", None),
    ],
)
def test_decisions(sigma: str, epsilon: str, delta: str, failed: str | None) -> None:
    mechanism, claim = theorem_4_2(sigma, epsilon, delta)
    found = decide(Statement(mechanism, claim))
    assert found.verdict is (Verdict.VERIFIED if failed is None else Verdict.REFUTED)
    assert failed is None or failed in found.reason
    for condition in found.conditions:
        assert condition.value.lower <= condition.value.upper
    if failed == "(4a)":
        assert found.conditions[0].value.upper < 0
    if failed == "(5a)":
        assert found.conditions[1].value.lower > Fraction(epsilon)


def test_a_decision_ended_by_its_limits_says_so() -> None:
    mechanism, claim = theorem_4_2("0x1.7a5e3a52e877fp-3", "10", "0.25")
    assert decide_theorem_4_2(mechanism, claim, Limits(expired=lambda: True)).verdict is Verdict.INCONCLUSIVE
    few = decide_theorem_4_2(mechanism, claim, Limits(cells=2, bits=128))
    assert few.verdict is Verdict.INCONCLUSIVE and "bits" in few.reason


def test_condition_4a_is_the_divergence_at_the_sensitivity() -> None:
    """D(Δ) = δ − (h₁ + h₂)/(e^ε + 2Φ(Δ/σ))."""
    for sigma, epsilon in (("0.8", "2"), ("0.3", "5"), ("1.7", "0.5")):
        mechanism, claim = theorem_4_2(sigma, epsilon, "0.1")
        with bits(192):
            excess = enclosure(condition_4a(mechanism, claim))
        true = number("0.1") - quasi_gaussian(sigma, epsilon)[1].divergence(1, epsilon)
        assert number(excess.lower) - MPF(10) ** -40 <= true <= number(excess.upper) + MPF(10) ** -40


def test_the_grid_statement_is_about_the_grid() -> None:
    """A grid that misses the peak: the claim holds on it while D between its points is larger."""
    mechanism, density = multi_gaussian("0.25", 3, "2")
    shift, top = density.supremum("2")
    assert 0.55 < shift < 0.95
    decided = []
    for eta, gap in (("0.5", "-0.05"), ("0.5", "-0.001"), ("0.5", "0.001"), ("0.9", "-0.05")):
        delta = Fraction(str(top)) * (1 + Fraction(gap)) / (1 - Fraction(eta))
        claim = Theorem32(epsilon="2", delta=delta, eta=eta)
        size = grid_size(mechanism, claim, Limits())  # type: ignore[arg-type]
        assert size is not None and size < 200
        worst = max(density.divergence(Fraction(i, size), "2") for i in range(size + 1))
        found = decide(Statement(mechanism, claim))
        holds = bool(worst <= number(claim.threshold))
        assert found.verdict is (Verdict.VERIFIED if holds else Verdict.REFUTED)
        if found.witness is not None:
            assert found.witness.grid_size == size
            assert found.witness.shift == Fraction(found.witness.grid_index or 0, size)
        decided.append((holds, gap[0] == "-"))
    assert {(True, True), (False, True), (True, False)} <= set(decided)
