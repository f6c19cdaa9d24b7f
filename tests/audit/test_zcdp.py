"""zCDP of Gaussian mixtures: exact at equality, and refuted below it at an order that can be checked."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import integrate

from audit.decide import decide
from audit.verdict import Verdict
from audit.zcdp import _above_log_inverse_weight, mixture_rho
from mechanisms.claims import Direct, Statement, Theorem32, ZeroConcentrated, read_claim, read_statement
from mechanisms.families import Declared, DeclaredMixture, Gaussian, Mechanism, MultiGaussian, QuasiGaussian
from mechanisms.numbers import InputError

SIGMA = Fraction(float.fromhex("0x1.567428b65f04ep-2"))
NOISE: dict[str, Mechanism] = {
    "gaussian": Gaussian(sensitivity="1.5", sigma=SIGMA),
    "multi-gaussian": MultiGaussian(sensitivity="1.5", sigma=SIGMA, K=4, epsilon=1),
    "multi-gaussian, K = 0": MultiGaussian(sensitivity="1.5", sigma=SIGMA, K=0, epsilon=1),
    "declared": DeclaredMixture(sensitivity="1.5", sigma=SIGMA, components=(("1", "0"), ("0.3", "1"), ("0.2", "2.5"))),
}
LAPLACE = Declared(
    sensitivity=1,
    declared_pieces=({"from": "0", "to": "inf", "c": "0", "lines": [["0", "-1"]]},),  # type: ignore[arg-type]
)


@pytest.mark.parametrize("name", NOISE)
def test_exact_at_equality(name: str) -> None:
    noise = NOISE[name]
    least = Fraction(9, 4) / (2 * SIGMA**2)
    assert mixture_rho(noise) == least
    unit = Fraction(1, 10**60)
    for rho, verdict in ((least, Verdict.VERIFIED), (least + unit, Verdict.VERIFIED), (least - unit, Verdict.REFUTED)):
        decision = decide(Statement(noise, ZeroConcentrated(rho=rho)))
        (condition,) = decision.conditions
        assert decision.verdict is verdict and (decision.bits, decision.boxes) == (0, 0)
        held = decision.reason == "ρ is at least Δ²/(2σ²), which Corollary 3.7 gives"
        assert held == (verdict is Verdict.VERIFIED)
        assert (condition.name, condition.demand) == ("ρ", "ρ − Δ²/(2σ²) is at least 0")
        assert condition.verdict is verdict
        assert condition.value.lower == condition.value.upper == rho - least


def stated_order(mechanism: Mechanism, rho: Fraction) -> float:
    decision = decide(Statement(mechanism, ZeroConcentrated(rho=rho)))
    assert decision.verdict is Verdict.REFUTED
    found = re.search(r"at every order α above ([0-9.e]+)", decision.reason)
    assert found is not None
    return float(found[1])


def mixture(mechanism: MultiGaussian | DeclaredMixture) -> list[tuple[float, float]]:
    """(mean, weight) of every component; the weights sum to 1."""
    if isinstance(mechanism, MultiGaussian):
        rows = [
            (k * float(mechanism.sensitivity), math.exp(-abs(k) * float(mechanism.epsilon)))
            for k in range(-mechanism.K, mechanism.K + 1)
        ]
    else:
        rows = [(s * float(m), float(w)) for w, m in mechanism.components for s in ((1, -1) if m else (1,))]
    total = sum(weight for _, weight in rows)
    return [(mean, weight / total) for mean, weight in rows]


def log_integrand(mechanism: Any, shift: float, order: float) -> Callable[[float], float]:
    """log of f(x − shift)^α f(x)^(1 − α)."""
    rows, sigma = mixture(mechanism), float(mechanism.sigma)
    normal = math.log(sigma * math.sqrt(2 * math.pi))

    def log_density(x: float) -> float:
        return float(np.logaddexp.reduce([math.log(w) - ((x - m) / sigma) ** 2 / 2 for m, w in rows])) - normal

    return lambda x: order * log_density(x - shift) + (1 - order) * log_density(x)


REFUTED = [
    MultiGaussian(sensitivity=1, sigma="1", K=1, epsilon=1),
    MultiGaussian(sensitivity=1, sigma="0.5", K=3, epsilon="0.5"),
    DeclaredMixture(sensitivity=2, sigma="1.5", components=(("1", "0"), ("0.1", "3"), ("0.2", "3"))),
]


@pytest.mark.parametrize("mechanism", REFUTED, ids=lambda mechanism: str(mechanism.family))
def test_stated_order_does_refute(mechanism: Any) -> None:
    """The integral over the bulk alone: less than the whole, and already too much."""
    least = mixture_rho(mechanism)
    assert least is not None
    rho = least * Fraction(4, 5)
    order, sigma, delta = stated_order(mechanism, rho) * 1.001, float(mechanism.sigma), float(mechanism.sensitivity)
    centre = max(mean for mean, _ in mixture(mechanism)) + order * delta
    log_part = log_integrand(mechanism, delta, order)
    top = log_part(centre)
    scaled, error = integrate.quad(lambda x: math.exp(log_part(x) - top), centre - 4 * sigma, centre + 4 * sigma)
    assert (math.log(scaled - error) + top) / (order - 1) > float(rho) * order * (1 + 1e-9)


@pytest.mark.parametrize("mechanism", REFUTED, ids=lambda mechanism: str(mechanism.family))
@pytest.mark.parametrize("share", [0.3, 1.0, -1.0])
@pytest.mark.parametrize("order", [1.1, 2.0, 8.0])
def test_no_order_exceeds_the_least_rho(mechanism: Any, share: float, order: float) -> None:
    delta, sigma = float(mechanism.sensitivity), float(mechanism.sigma)
    log_part = log_integrand(mechanism, share * delta, order)
    reach = 12 * delta + 12 * sigma
    integral, error = integrate.quad(lambda x: math.exp(log_part(x)), -reach, reach, limit=500)
    least = mixture_rho(mechanism)
    assert least is not None
    assert math.log(integral - error) / (order - 1) <= order * float(least) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("mechanism", "bound"),
    [
        (MultiGaussian(sensitivity=1, sigma=1, K=3, epsilon="0.5"), Fraction(15, 2)),
        (MultiGaussian(sensitivity=1, sigma=1, K=0, epsilon=7), Fraction(0)),
        (DeclaredMixture(sensitivity=1, sigma=1, components=(("2", "0"), ("3", "1"), ("1/2", "2"))), Fraction(17)),
        (DeclaredMixture(sensitivity=1, sigma=1, components=(("1", "3"), ("1/5", "0"), ("1", "3"))), Fraction(11, 10)),
        (DeclaredMixture(sensitivity=1, sigma=1, components=(("1", "0"),)), Fraction(0)),
        (Gaussian(sensitivity=1, sigma=1), Fraction(0)),
    ],
)
def test_the_weight_of_the_largest_mean(mechanism: Any, bound: Fraction) -> None:
    """K (ε + 2), and total/w − 1 where a mean other than 0 stands for two components."""
    assert _above_log_inverse_weight(mechanism) == bound
    rows = mixture(mechanism) if not isinstance(mechanism, Gaussian) else [(0.0, 1.0)]
    top = max(mean for mean, _ in rows)
    assert -math.log(sum(weight for mean, weight in rows if mean == top)) <= float(bound) + 1e-12


def test_the_stated_order_is_that_of_the_inequality() -> None:
    """(2 log(1/w) + log 2)/gap, and 2 at the least; digits are rounded up."""
    mechanism = MultiGaussian(sensitivity=1, sigma=1, K=1, epsilon=1)  # log(1/w) ≤ 3
    for gap, order in (("1/100", "670"), ("1/7", "46.9"), ("0.3", "22.3334"), ("0.499", "13.4269")):
        assert stated_order(mechanism, Fraction(1, 2) - Fraction(gap)) == float(order)
    narrow = MultiGaussian(sensitivity=1, sigma="0.1", K=1, epsilon=1)
    assert stated_order(narrow, Fraction(1)) == 2  # a gap of 49


def test_gaussian_is_refuted_at_every_order() -> None:
    for name in ("gaussian", "multi-gaussian, K = 0"):
        decision = decide(Statement(NOISE[name], ZeroConcentrated(rho=1)))
        assert decision.reason == "ρ is below Δ²/(2σ²): the Rényi divergence at shift Δ exceeds ρ α at every order α"


def test_only_mixtures_of_one_sigma() -> None:
    quasi = QuasiGaussian(sensitivity=1, sigma=2, epsilon=1)
    for noise in (quasi, LAPLACE):
        assert mixture_rho(noise) is None
        with pytest.raises(InputError, match="zcdp of"):
            Statement(noise, ZeroConcentrated(rho=100))


def test_statement_is_read_and_written() -> None:
    mechanism = {"family": "multi-gaussian", "sensitivity": "1", "sigma": "2", "K": 3, "epsilon": "0.1"}
    document = {"mechanism": mechanism, "claim": {"kind": "zcdp", "rho": "1/8"}}
    statement = read_statement(document)
    assert isinstance(statement.claim, ZeroConcentrated)
    assert statement.claim.rho == Fraction(1, 8)
    assert read_statement(statement.document()) == statement


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"kind": "zcdp"}, "claim.rho: got nothing"),
        ({"kind": "zcdp", "rho": "-0.1"}, "claim.rho: got -0.1, expected a number of at least 0"),
        ({"kind": "zcdp", "rho": 0.1}, "claim.rho: got 0.1, expected a number in quotes"),
        ({"kind": "zcdp", "rho": "1e999999999"}, "claim.rho: got 1e999999999"),
        ({"kind": "zcdp", "rho": "1", "epsilon": "1"}, "claim.epsilon: got an unknown field"),
        ({"kind": "ZCDP", "rho": "1"}, "claim.kind: got ZCDP"),
    ],
)
def test_refusals(claim: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_statement({"mechanism": {"family": "gaussian", "sensitivity": "1", "sigma": "1"}, "claim": claim})
    assert str(caught.value).startswith(message)


def test_weights_need_an_epsilon_of_their_own() -> None:
    mechanism = {"family": "multi-gaussian", "sensitivity": "1", "sigma": "2", "K": 3}
    with pytest.raises(InputError, match=r"mechanism\.epsilon: got nothing"):
        read_statement({"mechanism": mechanism, "claim": {"kind": "zcdp", "rho": "1/8"}})


def test_zcdp_is_no_claim_at_epsilon_and_delta() -> None:
    with pytest.raises(InputError, match=r"claim\.kind: got zcdp, expected one of direct"):
        read_claim({"kind": "zcdp", "rho": "1"})
    assert not isinstance(ZeroConcentrated(rho=1), (Direct, Theorem32))
