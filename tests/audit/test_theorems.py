"""The grid of Theorem 3.2 and the conditions of Theorem 4.2, against 60 digits."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from audit.decide import decide
from audit.exact import ball, enclosure
from audit.shape import LogCurve
from audit.theorems import _Extremum, condition_4a, decide_theorem_4_2, grid_size, normal_cdf, ratio_5a
from audit.verdict import Expired, Limits, Verdict
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


@pytest.mark.parametrize(("sigma", "epsilon"), [("0.15", "10"), ("0.5", "1"), ("2", "2"), ("0.04", "3"), ("30", "0.5")])
def test_the_ratio_of_5a_is_enclosed_tightly_in_few_cells(sigma: str, epsilon: str) -> None:
    mechanism, claim = theorem_4_2(sigma, epsilon, "0.1")
    turns = itertools.count(1)
    with bits(192):
        found = ratio_5a(mechanism, claim, Limits(expired=lambda: next(turns) > 120))
        few = ratio_5a(mechanism, claim, Limits(cells=8))
    assert found is not None and few is not None and found.name == "(5a)"
    width = found.value.upper - found.value.lower
    assert 0 <= width <= found.value.upper / 2**29
    assert few.value.lower <= found.value.upper and found.value.lower <= few.value.upper
    density, high, low = quasi_gaussian(sigma, epsilon)[1].pieces[1], MPF(0), MPF(0)
    for sign in (1, -1):  # the extremum, by a grid that closes in on it
        start, stop = MPF(0), MPF(1)
        for _ in range(14):
            grid = [start + (stop - start) * i / 24 for i in range(25)]
            logs = [sign * CONTEXT.log(density.value(x)) for x in grid]
            at = logs.index(max(logs))
            start, stop = grid[max(at - 1, 0)], grid[min(at + 1, 24)]
        high, low = (max(logs), low) if sign > 0 else (high, -max(logs))
    assert number(found.value.lower) - MPF(10) ** -20 <= high - low <= number(found.value.upper) + MPF(10) ** -20


def test_the_ratio_of_5a_is_decided_where_it_is_told_from_epsilon_and_open_where_not() -> None:
    """The largest and the smallest value are found at an end and inside; ε a hair to either side."""
    mechanism, claim = theorem_4_2("0.5", "1", "0.1")
    with bits(192):
        found = ratio_5a(mechanism, claim, Limits())
        assert found is not None
        for gap, verdict in (("1e-9", Verdict.VERIFIED), ("-1e-9", Verdict.REFUTED)):
            near = Theorem42(epsilon=found.value.upper * (1 + Fraction(gap)), delta="0.1")
            again = ratio_5a(mechanism, near, Limits())
            assert again is not None and again.verdict is verdict
            one = ratio_5a(mechanism, near, Limits(cells=1))
            assert one is not None and one.verdict is Verdict.INCONCLUSIVE
        with pytest.raises(Expired):
            ratio_5a(mechanism, claim, Limits(expired=lambda: True))


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
@pytest.mark.parametrize("sign", [1, -1])
def test_the_bound_of_an_extremum_is_beyond_that_of_every_cell(sign: int, order: tuple[int, ...]) -> None:
    """Also of cells that floats, which order the heap, do not tell apart."""
    mechanism, _ = theorem_4_2("0.5", "1", "0.1")
    with bits(192):
        found = _Extremum(LogCurve(mechanism.unit_form.pieces[0].sum), sign, arb(1))
        found.split()
        (_, _, left, right, _), *_ = found._heap
        cells = [ball(sign * (1 + Fraction(k, 2**100))) for k in order]
        found._heap = [(-sign * float(bound), k, left, right, bound) for k, bound in enumerate(cells)]
        assert len({entry[0] for entry in found._heap}) == 1
        extreme = found.bound()
        assert all(bound <= extreme if sign > 0 else bound >= extreme for bound in cells)


def test_the_quotient_of_4a_is_decided_with_as_many_bits_as_it_needs() -> None:
    """δ at D(Δ) to 60 digits: 128 bits are too few, and the figures are those of more."""
    sigma, epsilon = "0x1.ee8d97078e168p+0", "2"
    with CONTEXT.workdps(120):
        s, e = number(Fraction(float.fromhex(sigma))), MPF(2)

        def cdf(z: object) -> object:
            return CONTEXT.erfc(-z / CONTEXT.sqrt(2)) / 2  # type: ignore[operator]

        h1 = CONTEXT.exp(2 * e) * cdf(-e * s - 1 / s) - cdf(-e * s + 1 / s)
        root = Fraction(CONTEXT.nstr(-h1 / (CONTEXT.exp(e) + 2 * cdf(1 / s)), 100))
    for gap, verdict in ((Fraction(1, 10**60), Verdict.VERIFIED), (-Fraction(1, 10**60), Verdict.REFUTED)):
        mechanism = QuasiGaussian(sensitivity=1, sigma=Fraction(float.fromhex(sigma)), epsilon=epsilon)
        claim = Theorem42(epsilon=epsilon, delta=root * (1 + gap))
        found = decide_theorem_4_2(mechanism, claim, Limits())
        assert found.verdict is verdict and found.bits == 256 and found.boxes == 0
        assert [condition.name for condition in found.conditions] == ["(4a)", "(5a)"]
        assert found.conditions[0].verdict is verdict and found.conditions[1].verdict is Verdict.VERIFIED
        open_ = decide_theorem_4_2(mechanism, claim, Limits(bits=255))
        assert (
            open_.boxes == 0
            and open_.verdict is Verdict.INCONCLUSIVE
            and open_.conditions[0].verdict is Verdict.INCONCLUSIVE
        )
        assert open_.reason == "255 bits do not resolve it; raise the limit on bits"


@pytest.mark.parametrize("unit", ["2.5", "1/7"])
def test_the_conditions_of_theorem_4_2_depend_on_the_ratio_of_scale_and_sensitivity(unit: str) -> None:
    size = Fraction(unit)
    for sigma, epsilon in (("0.15", "10"), ("2", "2")):
        one, claim = theorem_4_2(sigma, epsilon, "0.1")
        wide = QuasiGaussian(sensitivity=size, sigma=size * Fraction(sigma), epsilon=epsilon)
        plain, scaled = (decide_theorem_4_2(mechanism, claim, Limits()) for mechanism in (one, wide))
        assert plain == scaled and len(plain.conditions) == 2


def test_a_wide_scale_has_the_coarsest_grid() -> None:
    mechanism = Gaussian(sensitivity=1, sigma="1e9")
    assert grid_size(mechanism, Theorem32(epsilon="1", delta="0.5", eta="0.5"), Limits()) == 1


@pytest.mark.parametrize("limit", [128, 255, 256])
def test_the_bits_that_are_allowed_tell_the_grid(limit: int) -> None:
    mechanism = Gaussian(sensitivity=1, sigma=1)
    claim = Theorem32(epsilon="1", delta="1e-40", eta="1e-6")  # 153 bits
    assert (grid_size(mechanism, claim, Limits(bits=limit)) is None) == (limit < 256)


@pytest.mark.parametrize(
    ("sigma", "epsilon", "delta", "failed"),
    [
        ("0x1.ee8d97078e168p+0", "2", "1e-5", None),
        ("0x1.ee8d97078e167p+0", "2", "1e-5", "(4a)"),
        ("0x1.7a5e3a52e877fp-3", "10", "0.25", None),
        ("0x1.7a5e3a52e877ep-3", "10", "0.25", "(5a)"),
        ("1e-30", "5", "1e-9", "(4a) and (5a)"),
        ("1e-200", "5", "0.1", "(5a)"),
        ("1e200", "5", "0.1", None),
        ("1", "100000", "0.1", None),
    ],
)
def test_decisions(sigma: str, epsilon: str, delta: str, failed: str | None) -> None:
    mechanism, claim = theorem_4_2(sigma, epsilon, delta)
    found = decide(Statement(mechanism, claim))
    assert found.verdict is (Verdict.VERIFIED if failed is None else Verdict.REFUTED)
    assert found.reason == (
        f"condition {failed} of Theorem 4.2 does not hold" if failed else "both conditions of Theorem 4.2 hold"
    )
    assert found.boxes == 0 and found.sup_delta is found.worst_shift is found.witness is None
    assert [(condition.name, condition.demand) for condition in found.conditions] == [
        ("(4a)", "(h₁ + h₂)/(e^ε + 2Φ(Δ/σ)) is at least 0"),
        ("(5a)", "log(max f / min f) over [0, Δ] is at most ε"),
    ]
    for condition in found.conditions:
        assert condition.value.lower <= condition.value.upper
    if failed and "(4a)" in failed:
        assert found.conditions[0].value.upper < 0
    if failed and "(5a)" in failed:
        assert found.conditions[1].value.lower > Fraction(epsilon)


def test_a_decision_ended_by_its_limits_says_so() -> None:
    mechanism, claim = theorem_4_2("0x1.7a5e3a52e877fp-3", "10", "0.25")
    late = decide_theorem_4_2(mechanism, claim, Limits(expired=lambda: True))
    assert (late.verdict, late.boxes, late.bits, late.conditions) == (Verdict.INCONCLUSIVE, 0, 128, ())
    assert late.reason == "the time limit ended the search; raise it"
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
