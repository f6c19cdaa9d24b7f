"""Float scales at hard cells, with very many lines, over the whole range of claims, and with a watch."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from mechanisms.calibration import float_sigma, multi_gaussian_sigma
from mechanisms.claims import Claim, Direct, Theorem32
from mechanisms.difference import difference
from mechanisms.divergence import local_maxima, positive_intervals
from mechanisms.families import DeclaredMixture, Gaussian, MultiGaussian, QuasiGaussian
from tests.mechanisms.support import divergence, mechanism, relative


def claim(kind: type[Claim], **parameters: Any) -> Any:
    """A claim; parameters as text or numbers."""
    return kind(**parameters)


HARD = [
    ("0.1", "0.02", 14, "0.01", "0x1.ae23ef00699c0p-2"),
    ("0.5", "1e-3", 20, None, "0x1.8e320bc8b2a5ep-2"),
    ("1", "1e-5", 60, None, "0x1.6e1f259f5d8f3p-2"),
    ("2", "5e-7", 20, "0.01", "0x1.3bed7126c9529p-2"),
    ("3", "5e-7", 7, None, "0x1.1c085399fae40p-2"),
    ("10", "1e-5", 4, None, "0x1.7a3b459a5458fp-3"),
    ("10", "1e-13", 3, None, "0x1.7eb44206b580fp-3"),
    ("30", "1e-12", 4, None, "0x1.e5b7952d86bc7p-4"),
    ("710", "1e-6", 1, None, "0x1.b026d06594c1dp-6"),
    ("0.001", "0.4", 33, None, "0x1.f2399a1785002p-3"),
    ("0.1", "1e-6", 100, None, "0x1.690b52c46773cp+4"),
    ("1", "1e-300", 3, None, "0x1.26c47c0543d0dp+5"),
    ("2", "0.999999", 4, None, "0x1.8c2c4cc9f9d68p-5"),
    ("1e4", "1e-6", 5, None, "0x1.cf1f300d9b5f4p-8"),
]
"""(ε, δ, K, η of theorem-3.2, σ): scales from an independent, slower search."""


@pytest.mark.parametrize(("epsilon", "delta", "K", "eta", "sigma"), HARD)
def test_hard_cells(epsilon: str, delta: str, K: int, eta: str | None, sigma: str) -> None:
    template = mechanism(MultiGaussian, sensitivity=1, sigma=1, K=K, epsilon=epsilon)
    parameters = {"epsilon": epsilon, "delta": delta} | ({} if eta is None else {"eta": eta})
    found = float_sigma(template, claim(Direct if eta is None else Theorem32, **parameters))
    assert found == pytest.approx(float.fromhex(sigma), rel=5e-12)


@pytest.mark.parametrize(("epsilon", "delta", "K"), [("1", "0.02", 10), ("0.5", "1e-3", 20), ("4", "5e-5", 10)])
def test_the_threshold_is_met_by_the_referee(epsilon: str, delta: str, K: int) -> None:
    """D = δ at the worst shift, by 50 digits, and it moves by less than 10⁻⁹ where σ does by 10⁻¹²."""
    eps = Fraction(epsilon)
    sigma = multi_gaussian_sigma(eps, Fraction(delta), K)
    form = mechanism(MultiGaussian, sensitivity=1, sigma=sigma, K=K, epsilon=eps).unit_form
    shift = Fraction(local_maxima(form, eps)[0][0])
    intervals = positive_intervals(difference(form, shift, eps))
    assert relative(float(delta), divergence(form, shift, eps, intervals.tolist())) < 1e-9


class Over(Exception):
    """The time is over."""


@pytest.mark.parametrize("most", [1, 7, 60, 300])
def test_a_check_that_raises_ends_the_search(most: int) -> None:
    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls >= most:
            raise Over

    template = mechanism(MultiGaussian, sensitivity=1, sigma=1, K=10, epsilon=3)
    with pytest.raises(Over):
        float_sigma(template, claim(Direct, epsilon=3, delta="1e-5"), check)
    assert calls == most


def test_many_components_are_checked_on_between() -> None:
    """The longest stretch of work without a call is a small share of the whole."""
    times = [time.process_time()]
    pairs = [[f"{1 + k % 7}/{1 + k * k}", f"{k * 37 % 1000}/250"] for k in range(600)]
    template = mechanism(DeclaredMixture, sensitivity=1, sigma=1, components=pairs)
    float_sigma(template, claim(Direct, epsilon=1, delta="0.1"), lambda: times.append(time.process_time()))
    assert len(times) > 200 and max(b - a for a, b in pairwise(times)) < 0.5


@pytest.mark.parametrize(("epsilon", "few"), [("1", 50), ("0.1", 400)])
def test_a_thousand_is_no_more_than_a_few(epsilon: str, few: int) -> None:
    """Beyond the lines that matter more of them change nothing, and cost little."""
    start = time.process_time()
    one, other = (multi_gaussian_sigma(Fraction(epsilon), Fraction(1, 50), K) for K in (few, 1000))
    assert one == pytest.approx(other, rel=1e-12) and time.process_time() - start < 5


@pytest.mark.parametrize("sensitivity", ["1e-30", "1", "1e30"])
@pytest.mark.parametrize("epsilon", ["1e-9", "0.3", "1000"])
@pytest.mark.parametrize("delta", ["1e-300", "0.9"])
def test_the_whole_range_has_an_answer(sensitivity: str, epsilon: str, delta: str) -> None:
    """No warning (here they are errors), no exception but InputError in one line."""
    families: list[tuple[Any, dict[str, Any]]] = [
        (Gaussian, {}), (QuasiGaussian, {"epsilon": epsilon}), (MultiGaussian, {"K": 2, "epsilon": epsilon}),
    ]
    for family, parameters in families:
        template = mechanism(family, sensitivity=sensitivity, sigma=1, **parameters)
        found = float_sigma(template, claim(Direct, epsilon=epsilon, delta=delta))
        assert 0 < found < math.inf
