"""Faults that users of other tools met, as small inputs with their right values."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from flint import arb

from audit.decide import decide
from audit.density import Density
from audit.exact import ball, enclosure, float_lower, float_upper, lower, upper
from audit.scales import calibrate
from audit.theorems import normal_cdf
from audit.verdict import Decision, Verdict
from mechanisms.claims import Direct
from mechanisms.families import Declared, Gaussian
from tests.audit.support import bits, point, statement

CASES = json.loads((Path(__file__).parents[1] / "data" / "gaussian-cases.json").read_text(encoding="utf-8"))


def doubles(*texts: str) -> list[Fraction]:
    """The doubles nearest to the texts, exactly."""
    return [Fraction(float(text)) for text in texts]


def laplace(scale: Fraction, sensitivity: Any = 1, cut: Fraction | None = None) -> Declared:
    stop = "inf" if cut is None else f"{cut.numerator}/{cut.denominator}"
    slope = -1 / scale
    rows: Any = [{"from": "0", "to": stop, "c": "0", "lines": [["0", f"{slope.numerator}/{slope.denominator}"]]}]
    return Declared(sensitivity=sensitivity, declared_pieces=rows)


def encloses(found: Decision, digits: str) -> bool:
    """Whether sup D is enclosed, to as many digits as an enclosure has."""
    assert found.sup_delta is not None
    return found.sup_delta.lower <= Fraction(digits) * (1 + Fraction(1, 10**49)) and found.sup_delta.upper >= Fraction(
        digits
    ) * (1 - Fraction(1, 10**49))


@pytest.mark.parametrize("row", CASES["calibrate"], ids=lambda row: row[0])
def test_calibration(row: list[str]) -> None:
    _, *texts, expected, exact = row
    epsilon, delta, sensitivity = doubles(*texts)
    found = calibrate("gaussian", Direct(epsilon=epsilon, delta=delta), sensitivity=sensitivity)
    sigma = getattr(found.statement.mechanism, "sigma", None)
    assert sigma == Fraction(float.fromhex(expected)) and found.adjacent
    assert found.decision.verdict is Verdict.VERIFIED
    assert found.refuted_below is not None and found.refuted_below < Fraction(exact) <= sigma


@pytest.mark.parametrize("row", CASES["verify"], ids=lambda row: row[0])
def test_verification(row: list[Any]) -> None:
    _, *texts, holds, true = row
    epsilon, delta, sigma = doubles(*texts)
    found = decide(statement(Gaussian(sensitivity=1, sigma=sigma), epsilon, delta))
    assert found.verdict is (Verdict.VERIFIED if holds else Verdict.REFUTED)
    assert true is None or encloses(found, true)


def test_epsilon_zero_is_enough_for_a_large_delta() -> None:
    found = decide(statement(Gaussian(sensitivity=1, sigma=1), 0, "0.9"))
    assert found.verdict is Verdict.VERIFIED and encloses(found, "0.38292492254802620727540922121667547976720435110916")


def test_a_decimal_and_the_double_nearest_to_it_are_two_claims() -> None:
    """ε = 0.1, δ = 10⁻⁵: the scale for the decimals is one double larger."""
    as_text = calibrate("gaussian", Direct(epsilon="0.1", delta="1e-5"))
    as_double = calibrate("gaussian", Direct(epsilon=0.1, delta=1e-5))
    scales = [getattr(found.statement.mechanism, "sigma", None) for found in (as_text, as_double)]
    assert scales == doubles("30.749566131977453", "30.74956613197745")


@pytest.mark.parametrize(
    ("epsilon", "delta", "smallest"),
    [("1.01", "0", "0.9900990099009902"), ("0.1", "0", "10.0"), ("1.0", "1e-06", "0.9999980000030001")],
)
def test_the_smallest_laplace_scale(epsilon: str, delta: str, smallest: str) -> None:
    """b = Δ/ε for δ = 0, and a little less for δ > 0."""
    level, threshold, scale = doubles(epsilon, delta, smallest)
    below = Fraction(math.nextafter(float(scale), 0))
    assert decide(statement(laplace(scale), level, threshold)).verdict is Verdict.VERIFIED
    assert decide(statement(laplace(below), level, threshold)).verdict is Verdict.REFUTED


def test_a_laplace_scale_turned_upside_down() -> None:
    (scale, epsilon) = doubles("0.1", "0.1")
    assert decide(statement(laplace(scale), epsilon, 0)).verdict is Verdict.REFUTED
    spent = Fraction("9.9999999999999994448884876874217606030632761503618")
    assert decide(statement(laplace(scale), spent + Fraction(1, 10**48), 0)).verdict is Verdict.VERIFIED
    assert decide(statement(laplace(scale), spent - Fraction(1, 10**48), 0)).verdict is Verdict.REFUTED


def test_a_truncated_laplace_that_is_cut_too_early() -> None:
    epsilon, delta, sensitivity, scale, cut = doubles("5.0", "1e-09", "10.0", "2", "42.44653167389282")
    found = decide(statement(laplace(scale, sensitivity, cut), epsilon, delta))
    assert found.verdict is Verdict.REFUTED
    assert encloses(found, "4.4705300347519757154659399010340019113533672265377e-8")
    needed = Fraction("50.046715813901089072899389611835968934475776511417")
    for step, verdict in ((1, Verdict.VERIFIED), (-1, Verdict.REFUTED)):
        near = needed + step * Fraction(1, 10**30)
        assert decide(statement(laplace(scale, sensitivity, near), epsilon, delta)).verdict is verdict


def test_a_laplace_tail_is_rounded_up() -> None:
    with bits(128):
        tail = Density(laplace(Fraction(10)).form).probability((point(Fraction(5121)), None))
    assert float_upper(upper(tail)) == 1.980458843721319e-223
    true = Fraction("1.9804588437213190579955862836750743518088997226534e-223")
    assert lower(tail) <= true * (1 + Fraction(1, 10**49)) and true * (1 - Fraction(1, 10**49)) <= upper(tail)


def test_doubles_are_rounded_the_way_that_is_asked() -> None:
    for value, up, down in (
        (2**53 + 1, 9007199254740994.0, 9007199254740992.0),
        (2**1024 - 2**970, math.inf, 2.0**1023 * (2 - 2.0**-52)),
    ):
        assert (float_upper(Fraction(value)), float_lower(Fraction(value))) == (up, down)
    with bits(53):
        third = enclosure(ball(Fraction(1, 3)))
    assert float_upper(third.upper) >= 0.33333333333333337 and float_lower(third.lower) <= 0.3333333333333333


def test_an_exponential_at_53_bits_contains_the_value() -> None:
    with bits(53):
        found = enclosure(ball(Fraction(3893924827815215, 1125899906842624)).exp())
    assert found.lower <= Fraction("31.769286826103925847314551452083032333640559839473") <= found.upper


def test_the_lower_end_of_a_ball_is_not_above_it() -> None:
    with bits(32):
        value = arb(1, arb(2) ** -100)
        assert lower(value) <= 1 - Fraction(1, 2**100) and upper(value) >= 1 + Fraction(1, 2**100)


def test_the_normal_cdf_of_an_argument_beyond_all_reason() -> None:
    with bits(128):
        found = normal_cdf(ball(Fraction(-(10**155))))
    assert (found.is_finite() and found >= 0) or float(found) == 0
    with pytest.raises(ValueError, match="enclosure"):
        enclosure(normal_cdf(arb("nan")))
