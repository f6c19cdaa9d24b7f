"""Float scales against 40-digit roots, the 150-cell grid, and the conditions themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mechanisms.calibration import (
    direct_sigma,
    float_sigma,
    gaussian_sigma,
    multi_gaussian_sigma,
    quasi_gaussian_sigma_direct,
    quasi_gaussian_sigma_theorem,
)
from mechanisms.claims import Claim, Direct, Theorem32, Theorem42
from mechanisms.divergence import local_maxima
from mechanisms.families import DeclaredMixture, Gaussian, MultiGaussian, QuasiGaussian, ScaledFamily
from mechanisms.form import Form, Piece
from mechanisms.lines import ZERO, Line, LineSum
from mechanisms.numbers import InputError, read_real
from tests.mechanisms.support import MP, mechanism, mpf, read_json, relative

CELLS = read_json("scale-grid.json")["cells"]
SCALES = read_json("gaussian-scales.json")["cases"]


def claim(kind: type[Claim], **parameters: Any) -> Any:
    """A claim; parameters as text or numbers."""
    return kind(**parameters)


@pytest.mark.parametrize(("epsilon", "delta", "sigma"), SCALES, ids=lambda text: text[:22])
def test_gaussian_scale_to_the_last_digits(epsilon: str, delta: str, sigma: str) -> None:
    found = gaussian_sigma(read_real(epsilon, "epsilon"), read_real(delta, "delta"))
    assert relative(found, MP.mpf(sigma)) < 2e-15


@pytest.mark.parametrize(
    ("epsilon", "delta", "least"),
    [
        ("1", "1e-6", "0x1.0e61239070a9dp+2"),
        ("0.1", "1e-5", "0x1.ebfe390e7084ap+4"),
        ("1", "1e-300", "0x1.26ec8a28efb66p+5"),
        ("710", "1e-6", "0x1.ecb6504c77271p-6"),
        ("0", "1e-6", "0x1.859791f21869bp+18"),
    ],
)
def test_gaussian_scale_is_within_two_doubles_of_the_least(epsilon: str, delta: str, least: str) -> None:
    value = float.fromhex(least)
    assert abs(gaussian_sigma(Fraction(epsilon), Fraction(delta)) - value) <= 2 * math.ulp(value)


@given(st.floats(0, 1e4), st.floats(5e-324, 0.99), st.floats(1.01, 10))
@settings(max_examples=60, deadline=None)
def test_gaussian_scale_falls_as_the_budget_grows(epsilon: float, delta: float, factor: float) -> None:
    sigma = gaussian_sigma(Fraction(epsilon), Fraction(delta))
    assert sigma > 0
    assume(sigma < 1e300)
    assert gaussian_sigma(Fraction(epsilon) * Fraction(factor), Fraction(delta)) <= sigma * (1 + 4e-15)
    more = min(Fraction(delta) * Fraction(factor), Fraction(0.99))
    assert gaussian_sigma(Fraction(epsilon), more) <= sigma * (1 + 4e-15)


def test_a_scale_beyond_the_floats_is_infinite() -> None:
    assert gaussian_sigma(Fraction(0), Fraction(1, 10**320)) == math.inf
    with pytest.raises(InputError, match="within the range of floats"):
        float_sigma(mechanism(Gaussian, sensitivity="1e308", sigma=1), claim(Direct, epsilon=0, delta="1e-6"))


def cell_id(cell: dict[str, Any]) -> str:
    return f"{cell['epsilon']}-{cell['delta']}"


def check_cell(cell: dict[str, Any]) -> None:
    epsilon, delta = Fraction(cell["epsilon"]), Fraction(cell["delta"])
    assert gaussian_sigma(epsilon, delta) == pytest.approx(cell["gaussian"], rel=1e-10)
    first, second = quasi_gaussian_sigma_theorem(epsilon, delta)
    assert first == pytest.approx(cell["sigma_1"], rel=1e-10, abs=0)
    assert second == pytest.approx(cell["sigma_2"], rel=1e-10)
    direct = quasi_gaussian_sigma_direct(epsilon, delta)
    assert direct == pytest.approx(cell["quasi_gaussian_direct"], rel=1e-10)
    assert direct <= max(first, second) * (1 + 1e-12)
    for K, sigma, _ in cell["multi_gaussian"]:
        assert multi_gaussian_sigma(epsilon, delta, K) == pytest.approx(sigma, rel=1e-10)


@pytest.mark.parametrize("cell", CELLS[4::17], ids=cell_id)
def test_a_spread_of_the_grid(cell: dict[str, Any]) -> None:
    check_cell(cell)


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS, ids=cell_id)
def test_the_whole_grid(cell: dict[str, Any]) -> None:
    check_cell(cell)


@pytest.mark.parametrize(
    ("epsilon", "delta", "K", "least"),
    [
        ("1", "0.01", 4, "0x1.567428b65f04ep-2"),
        ("3", "0.01", 2, "0x1.0bccaf8e06b72p-2"),
        ("10", "5e-6", 4, "0x1.7a483aa27ea8bp-3"),
    ],
)
def test_multi_gaussian_scales(epsilon: str, delta: str, K: int, least: str) -> None:
    found = multi_gaussian_sigma(Fraction(epsilon), Fraction(delta), K)
    assert found == pytest.approx(float.fromhex(least), rel=1e-12)


def test_quasi_gaussian_scales() -> None:
    first, second = quasi_gaussian_sigma_theorem(Fraction(2), Fraction(1, 10**5))
    assert first == pytest.approx(float.fromhex("0x1.ee8d97078e168p+0"), rel=4e-16) and first > second
    first, second = quasi_gaussian_sigma_theorem(Fraction(10), Fraction(1, 4))
    assert first == 0 and second == pytest.approx(float.fromhex("0x1.7a5e3a52e877fp-3"), rel=1e-14)
    assert quasi_gaussian_sigma_direct(Fraction(10), Fraction(1, 4)) == pytest.approx(0.14895731, abs=5e-9)


@pytest.mark.parametrize("epsilon", ["1e-3", "0.3", "5", "50", "300"])
@pytest.mark.parametrize("delta", ["1e-300", "1e-10", "0.01"])
def test_theorem_4_2_by_the_referee(epsilon: str, delta: str) -> None:
    """σ₁ is a root of h₁ + h₂, and at σ₂ the ratio max f / min f over [0, Δ] is e^ε (on a fine grid of x)."""
    first, second = quasi_gaussian_sigma_theorem(Fraction(epsilon), Fraction(delta))
    with MP.workdps(400):
        eps = mpf(epsilon)

        def excess(sigma: Any) -> Any:
            outer = MP.exp(2 * eps) * MP.ncdf(-eps * sigma - 1 / sigma) - MP.ncdf(-eps * sigma + 1 / sigma)
            return outer + (MP.exp(eps) + 2 * MP.ncdf(1 / sigma)) * mpf(delta)

        if first:
            assert excess(mpf(first) * (1 + mpf(1e-13))) > 0 > excess(mpf(first) * (1 - mpf(1e-13)))
        else:
            assert MP.exp(eps) + 2 >= 1 / mpf(delta)

    def ratio(sigma: float) -> float:
        c = 1 / (2 * sigma**2)
        logs = [
            max(a, b) + math.log1p(math.exp(-abs(a - b)))
            for a, b in ((float(epsilon) - c * x * x, -c * (1 - x) ** 2) for x in (k / 20000 for k in range(20001)))
        ]
        return max(logs) - min(logs)

    assert ratio(second * (1 + 1e-4)) < float(epsilon) < ratio(second * (1 - 1e-4))
    assert second <= 1 / math.sqrt(2 * float(epsilon))


def holds_and_is_tight(form: Callable[[float], Form], epsilon: Fraction, delta: float, sigma: float) -> None:
    """sup D ≤ δ at σ, to rounding, and sup D > δ a little below."""
    assert local_maxima(form(sigma), epsilon)[0][1] <= delta * (1 + 1e-8)
    assert local_maxima(form(sigma * (1 - 1e-7)), epsilon)[0][1] > delta


@pytest.mark.parametrize(
    ("epsilon", "delta", "K"),
    [
        ("1", "1e-300", 3),
        ("1", "0.9", 3),
        ("1e-9", "1e-10", 2),
        ("0", "1e-6", 3),
        ("0.01", "1e-6", 20),
        ("30", "1e-12", 4),
        ("710", "1e-6", 1),
        ("2", "0.999999", 4),
    ],
)
def test_multi_gaussian_far_from_the_grid(epsilon: str, delta: str, K: int) -> None:
    eps = Fraction(epsilon)
    sigma = multi_gaussian_sigma(eps, Fraction(delta), K)
    assert sigma <= gaussian_sigma(eps, Fraction(delta)) * (1 + 1e-9)

    def form(at: float) -> Form:
        found: Form = mechanism(MultiGaussian, sensitivity=1, sigma=at, K=K, epsilon=eps).unit_form
        return found

    holds_and_is_tight(form, eps, float(delta), sigma)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "delta", "K"),
    [("10", "1e-30", 9), ("100", "1e-300", 10), ("50", "1e-100", 7), ("1e4", "1e-6", 5), ("1", "1e-5", 60)],
)
def test_multi_gaussian_at_the_edge_of_a_cliff(epsilon: str, delta: str, K: int) -> None:
    """The least σ is within 10⁻¹² of where the density loses its dips, and D is 0 but for rounding."""
    eps = Fraction(epsilon)
    sigma = multi_gaussian_sigma(eps, Fraction(delta), K)
    below, above = (
        local_maxima(mechanism(MultiGaussian, sensitivity=1, sigma=s, K=K, epsilon=eps).unit_form, eps)[0][1]
        for s in (sigma * (1 - 1e-8), sigma * (1 + 1e-8))
    )
    assert below > float(delta) > above


def test_K_0_is_the_gaussian() -> None:
    assert multi_gaussian_sigma(Fraction(1), Fraction(1, 10**6), 0) == gaussian_sigma(Fraction(1), Fraction(1, 10**6))
    template = mechanism(MultiGaussian, sensitivity=1, sigma=1, K=0, epsilon=1)
    found = float_sigma(template, claim(Direct, epsilon=1, delta="1e-6"))
    assert found == pytest.approx(gaussian_sigma(Fraction(1), Fraction(1, 10**6)), rel=1e-12)


@dataclass(frozen=True, kw_only=True)
class Laplace(ScaledFamily):
    """A family that calibration has never heard of: σ is the scale of the exponential."""

    family: ClassVar[str] = "laplace"

    def pieces(self) -> tuple[Piece, ...]:
        return (Piece(ZERO, None, LineSum(ZERO, (Line.of(Fraction(1), ZERO, -1 / self.sigma),))),)


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "0.01"), ("0.1", "1e-9"), ("5", "0.3")])
@pytest.mark.parametrize("sensitivity", ["1", "2.5"])
def test_a_new_family_needs_nothing(epsilon: str, delta: str, sensitivity: str) -> None:
    """δ = 1 − e^((ε − Δ/b)/2), so b = Δ/(ε − 2 log(1 − δ))."""
    template = mechanism(Laplace, sensitivity=sensitivity, sigma=1)
    found = float_sigma(template, claim(Direct, epsilon=epsilon, delta=delta))
    right = mpf(sensitivity) / (mpf(epsilon) - 2 * MP.log(1 - mpf(delta)))
    assert relative(found, right) < 1e-9


def test_direct_search_from_either_side() -> None:
    template = mechanism(MultiGaussian, sensitivity=1, sigma=1, K=4, epsilon=1)
    for start in (None, 1e-3, 0.2, 7.0):
        found = direct_sigma(template.with_sigma, Fraction(1), Fraction(1, 100), start)
        assert found == pytest.approx(float.fromhex("0x1.567428b65f04ep-2"), rel=1e-11)


def test_scales_are_in_the_unit_of_the_query() -> None:
    families: list[tuple[Any, dict[str, int]]] = [
        (Gaussian, {}),
        (MultiGaussian, {"K": 2, "epsilon": 3}),
        (QuasiGaussian, {"epsilon": 3}),
    ]
    for family, parameters in families:
        one, scaled = (
            float_sigma(mechanism(family, sensitivity=s, sigma=9, **parameters), claim(Direct, epsilon=3, delta="0.01"))
            for s in ("1", "2.5e-30")
        )
        assert scaled == pytest.approx(one * 2.5e-30, rel=1e-12)


def test_theorem_3_2_asks_for_the_smaller_divergence_everywhere() -> None:
    template = mechanism(MultiGaussian, sensitivity=1, sigma=1, K=4, epsilon=1)
    found = float_sigma(template, claim(Theorem32, epsilon=1, delta="0.01", eta="0.01"))
    assert found == float_sigma(template, claim(Direct, epsilon=1, delta="0.0099"))
    assert found > float_sigma(template, claim(Direct, epsilon=1, delta="0.01"))


def test_theorem_4_2_takes_the_larger_scale() -> None:
    template = mechanism(QuasiGaussian, sensitivity=4, sigma=1, epsilon=10)
    theorem, direct = (float_sigma(template, claim(kind, epsilon=10, delta="0.25")) for kind in (Theorem42, Direct))
    assert theorem == pytest.approx(4 * float.fromhex("0x1.7a5e3a52e877fp-3"), rel=1e-13)
    assert direct == pytest.approx(4 * 0.148957313487, rel=1e-10)


@pytest.mark.parametrize(
    "template",
    [
        mechanism(MultiGaussian, sensitivity=3, sigma=1, K=4, epsilon=2),
        mechanism(QuasiGaussian, sensitivity=3, sigma=1, epsilon=2),
        mechanism(DeclaredMixture, sensitivity=2, sigma=1, components=[[1, 0], ["0.2", "1.9"], ["0.01", 4]]),
    ],
)
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-5"), ("0", "0.01"), ("3", "0.05")])
def test_weights_that_are_not_those_of_the_claim(template: ScaledFamily, epsilon: str, delta: str) -> None:
    sigma = float_sigma(template, claim(Direct, epsilon=epsilon, delta=delta))
    holds_and_is_tight(lambda at: template.with_sigma(Fraction(at)).unit_form, Fraction(epsilon), float(delta), sigma)


ONE = mechanism(Gaussian, sensitivity=1, sigma=1)
"""The same member at every scale: no scale is the least."""


@pytest.mark.parametrize(
    ("call", "where"),
    [
        (lambda: gaussian_sigma(Fraction(1), Fraction(0)), "delta"),
        (lambda: gaussian_sigma(Fraction(1), Fraction(1)), "delta"),
        (lambda: gaussian_sigma(Fraction(1), Fraction(-1, 2)), "delta"),
        (lambda: gaussian_sigma(Fraction(-1), Fraction(1, 2)), "epsilon"),
        (lambda: quasi_gaussian_sigma_theorem(Fraction(0), Fraction(1, 2)), "epsilon"),
        (lambda: multi_gaussian_sigma(Fraction(1), Fraction(0), 3), "delta"),
        (lambda: multi_gaussian_sigma(Fraction(1), Fraction(1, 2), -1), "K"),
        (lambda: quasi_gaussian_sigma_direct(Fraction(0), Fraction(0)), "delta"),
        (lambda: direct_sigma(lambda sigma: ONE, Fraction(1), Fraction(1, 2)), "sigma"),
    ],
)
def test_questions_without_an_answer(call: Callable[[], object], where: str) -> None:
    with pytest.raises(InputError) as refusal:
        call()
    assert refusal.value.where == where and "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "template",
    [
        mechanism(Gaussian, sensitivity=1, sigma=1),
        mechanism(MultiGaussian, sensitivity=1, sigma=1, K=4, epsilon=1),
        mechanism(QuasiGaussian, sensitivity=1, sigma=1, epsilon=1),
        mechanism(DeclaredMixture, sensitivity=1, sigma=1, components=[[1, 0]]),
    ],
)
def test_no_gaussian_is_pure(template: ScaledFamily) -> None:
    with pytest.raises(InputError, match=r"^delta: got 0, expected a number greater than 0: no noise with Gaussian"):
        float_sigma(template, claim(Direct, epsilon=1, delta=0))
