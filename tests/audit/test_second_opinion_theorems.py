"""The second opinion on Theorem 4.2, zCDP and compositions."""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any

import pytest

import audit.second_opinion
from audit.composition import compose, part_of
from audit.second_opinion import Answer, second_opinion
from mechanisms.claims import Statement, Theorem42, ZeroConcentrated
from mechanisms.families import Gaussian, Laplace, QuasiGaussian
from mechanisms.numbers import exact_text
from tests.audit import support
from tests.audit.second_support import certificate, direct, opinion

QUASI = "1.9318479913182163"
"""The smallest double for Theorem 4.2 at (2, 1e-5): (4a) decides."""


@pytest.mark.parametrize(
    ("sigma", "epsilon", "delta", "answer"),
    [
        (QUASI, "2", "1e-5", Answer.AGREES),
        ("1.9318479913182", "2", "1e-5", Answer.CONTRADICTED),
        ("0.1", "10", "0.2", Answer.CONTRADICTED),
        ("0.3", "10", "0.2", Answer.AGREES),
    ],
)
def test_theorem_4_2(sigma: str, epsilon: str, delta: str, answer: Answer) -> None:
    mechanism = QuasiGaussian(sensitivity=1, sigma=sigma, epsilon=epsilon)
    claim = Theorem42(epsilon=epsilon, delta=delta)
    assert opinion(mechanism, claim).answer is answer
    document = certificate(Statement(mechanism, claim))
    assert second_opinion(document).answer is Answer.AGREES
    document["verdict"] = {"verified": "refuted", "refuted": "verified"}[document["verdict"]]
    assert second_opinion(document).answer is Answer.CONTRADICTED


def test_recorded_conditions_that_cannot_be_true() -> None:
    document = certificate(Statement(QuasiGaussian(sensitivity=1, sigma="2", epsilon="2"),
                                     Theorem42(epsilon="2", delta="1e-5")))  # fmt: skip
    for number in (0, 1):
        false = copy.deepcopy(document)
        value = false["evidence"]["conditions"][number]["value"]
        value["lower"] = value["upper"] = str(Fraction(value["upper"]) * Fraction(1001, 1000))
        assert second_opinion(false).answer is Answer.CONTRADICTED


@pytest.mark.parametrize(("rho", "answer"), [("3.125", Answer.AGREES), ("3.1249999999999", Answer.CONTRADICTED)])
def test_zcdp(rho: str, answer: Answer) -> None:
    for mechanism in (Gaussian(sensitivity=2, sigma="0.8"), support.mixture("0.4", ("1", "0"), ("0.2", "1"))[0]):
        assert opinion(mechanism, ZeroConcentrated(rho=rho)).answer is answer
    false = opinion(Gaussian(sensitivity=2, sigma="0.8"), ZeroConcentrated(rho="3.125"), "refuted")
    assert false.answer is Answer.CONTRADICTED


def test_renyi_divergences_alone_contradict_too_small_a_rho(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit.second_opinion, "least_rho", lambda _: Fraction(0))
    found = opinion(Gaussian(sensitivity=1, sigma="0.4"), ZeroConcentrated(rho="3.12"))
    assert found.answer is Answer.CONTRADICTED
    assert "Rényi" in found.reason


def composition() -> Any:
    parts = [
        part_of(Gaussian(sensitivity=1, sigma=20), ZeroConcentrated(rho=1), 100, "here"),
        part_of(Laplace(sensitivity=1, scale=30), direct("1/30", "0"), 7, "here"),
    ]
    found = compose(parts, Fraction(1, 10**6))
    assert found.epsilon is not None and found.order_above_1 is not None and found.corollary_epsilon is not None
    around = lambda rho: {"lower": str(rho), "upper": str(rho)}  # noqa: E731
    return {
        "parts": [
            {
                "mechanism": part.mechanism.document(),
                "epsilon": None if part.pure_epsilon is None else exact_text(part.pure_epsilon),
                "count": part.count,
                "rho": around(part.rho),
            }
            for part in parts
        ],
        "delta": "1e-6",
        "rho_total": around(found.rho),
        "epsilon_total": str(found.epsilon),
        "order_above_1": str(found.order_above_1),
        "epsilon_corollary": str(found.corollary_epsilon),
    }


def test_compositions() -> None:
    true = composition()
    assert second_opinion(true).answer is Answer.AGREES

    def changed(path: str, value: str) -> Answer:
        document = copy.deepcopy(true)
        *folders, name = path.split(".")
        inner = document
        for folder in folders:
            inner = inner[int(folder) if folder.isdigit() else folder]
        inner[name] = value
        return second_opinion(document).answer

    slightly_less = Fraction(true["epsilon_total"]) * (1 - Fraction(1, 10**12))
    assert changed("epsilon_total", str(slightly_less)) is Answer.CONTRADICTED
    assert changed("epsilon_total", str(Fraction(true["epsilon_total"]) + 1)) is Answer.AGREES
    assert changed("epsilon_corollary", str(slightly_less)) is Answer.CONTRADICTED
    assert changed("rho_total.upper", "0.1") is Answer.CONTRADICTED
    assert changed("parts.0.rho.lower", "0.2") is Answer.CONTRADICTED
    assert changed("parts.0.count", "101") is Answer.CONTRADICTED
    assert changed("parts.1.mechanism.scale", "29.9") is Answer.CONTRADICTED  # it is not (1/30, 0)-DP
