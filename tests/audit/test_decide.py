"""One statement in, one decision out: verdicts, witnesses, limits, units."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from audit.decide import decide, decide_from
from audit.verdict import Decision, Limits, Verdict
from mechanisms.claims import Direct, Statement, Theorem32
from mechanisms.families import Declared, Gaussian, Mechanism, MultiGaussian
from tests.audit.support import ZOO, multi_gaussian, statement
from tests.soundness.referee import CONTEXT, MPF, Density, number


def near(density: Density, epsilon: str, gap: str) -> Fraction:
    """The true sup D, times 1 + gap."""
    return Fraction(str(density.supremum(epsilon)[1])) * (1 + Fraction(gap))


def check_witness(found: Decision, density: Density, epsilon: str, threshold: Fraction) -> None:
    """The event breaks the inequality, by the referee's own cdf."""
    witness = found.witness
    assert witness is not None and 0 <= witness.shift <= 1 and found.worst_shift == witness.shift
    there = MPF(0)
    for part in witness.event:
        there += density.probability(*(None if end is None else end + witness.shift for end in part))
    here = sum((density.probability(*part) for part in witness.event), MPF(0))
    bound = CONTEXT.exp(number(epsilon)) * here + number(threshold)
    assert there > bound
    for ends, true in ((witness.probability_shifted, there), (witness.bound, bound)):
        assert number(ends.lower) - MPF(10) ** -50 <= true <= number(ends.upper) + MPF(10) ** -50


@pytest.mark.parametrize("name", ZOO)
def test_a_hair_below_the_true_divergence_is_refuted_a_hair_above_it_verified(name: str) -> None:
    mechanism, density = ZOO[name]
    gap = "1e-4" if name in ("camel", "gap", "flat-sum", "two-rates") else "1e-9"
    below, above = near(density, "0.7", "-" + gap), near(density, "0.7", gap)
    refuted, verified = decide(statement(mechanism, "0.7", below)), decide(statement(mechanism, "0.7", above))
    assert refuted.verdict is Verdict.REFUTED and verified.verdict is Verdict.VERIFIED
    check_witness(refuted, density, "0.7", below)
    assert verified.witness is None
    for found in (refuted, verified):
        assert found.sup_delta is not None
        assert number(found.sup_delta.lower) <= number(above) and number(found.sup_delta.upper) >= number(below)
    assert verified.sup_delta is not None and verified.sup_delta.upper <= above


def test_the_scale_that_a_published_table_implies_is_refuted() -> None:
    mechanism, density = multi_gaussian("0.0526", 9, "3")
    found = decide(statement(mechanism, "3", "0.01"))
    assert found.verdict is Verdict.REFUTED and found.sup_delta is not None and found.witness is not None
    assert found.sup_delta.lower >= Fraction(99, 100) and abs(found.witness.shift - Fraction(1, 2)) < Fraction(1, 10)
    check_witness(found, density, "3", Fraction(1, 100))


@pytest.mark.parametrize("unit", ["2.5", "1e-3", "7/3", "1e9"])
def test_only_the_ratio_of_scale_and_sensitivity_matters(unit: str) -> None:
    sigma = Fraction("0.35") * Fraction(unit)
    wide = MultiGaussian(sensitivity=unit, sigma=sigma, K=3, epsilon="1")
    one = MultiGaussian(sensitivity=1, sigma="0.35", K=3, epsilon="1")
    for delta in ("0.01", "0.02", "0.5"):
        scaled, plain = decide(statement(wide, "1", delta)), decide(statement(one, "1", delta))
        assert scaled.verdict is plain.verdict
        assert scaled.sup_delta == plain.sup_delta
        assert scaled.worst_shift == (plain.worst_shift or 0) * Fraction(unit)


def test_the_unit_of_a_declared_density_is_that_of_the_query() -> None:
    rows: Any = [{"from": "0", "to": "inf", "c": "0", "lines": [["0", "-1/2"]]}]
    for sensitivity, epsilon, holds in (("2", "1", True), ("2", "0.999999", False), ("1", "0.5", True)):
        mechanism = Declared(sensitivity=sensitivity, declared_pieces=rows)
        found = decide(statement(mechanism, epsilon, "0"))
        assert found.verdict is (Verdict.VERIFIED if holds else Verdict.REFUTED)


def test_the_text_is_exact_and_a_float_is_the_double() -> None:
    """D is 1/10: the double 0.1 is above it, and decimals next to it are told from it."""
    uniform: Any = [{"from": "0", "to": "5", "c": "0", "lines": [["0", "0"]]}]
    mechanism = Declared(sensitivity=1, declared_pieces=uniform)  # D(1) = 1/10 exactly
    assert decide(statement(mechanism, "0.7", 0.1)).verdict is Verdict.VERIFIED  # the double is larger
    for digits in (17, 60):
        below, above = "0.0" + "9" * digits, "0.1" + "0" * digits + "1"
        assert decide(statement(mechanism, "0.7", below)).verdict is Verdict.REFUTED
        assert decide(statement(mechanism, "0.7", above)).verdict is Verdict.VERIFIED


@pytest.mark.parametrize(
    ("limits", "word"),
    [
        (Limits(expired=lambda: True), "time"),
        (Limits(boxes=2), "boxes"),
        (Limits(cells=4), "cells"),
        (Limits(bits=64), "bits"),
    ],
)
def test_a_limit_makes_it_inconclusive_and_says_what_to_raise(limits: Limits, word: str) -> None:
    mechanism, density = ZOO["irregular"]
    delta = near(density, "0.7", "1e-44")  # more than 128 bits tell
    found = decide(statement(mechanism, "0.7", delta), limits)
    assert found.verdict is Verdict.INCONCLUSIVE and found.witness is None and word in found.reason


def test_progress_and_determinism() -> None:
    mechanism, density = ZOO["irregular"]
    claim = statement(mechanism, "0.7", near(density, "0.7", "1e-6"))
    seen: list[float] = []
    first = decide(claim, progress=seen.append)
    assert first == decide(claim) and first.verdict is Verdict.VERIFIED
    assert seen and all(0 <= share <= 1 for share in seen) and seen == sorted(seen)


def test_a_cheap_refutation_leaves_the_upper_end_open() -> None:
    mechanism, density = ZOO["irregular"]
    found = decide_from(statement(mechanism, "0.7", near(density, "0.7", "-0.01")), Limits(), enclose_refuted=False)
    assert found.verdict is Verdict.REFUTED and found.sup_delta is not None and found.sup_delta.upper == 1


@pytest.mark.parametrize("delta", ["1e-300", "1e-320", "1e-400"])
def test_tiny_thresholds(delta: str) -> None:
    wide, narrow = Gaussian(sensitivity=1, sigma="60"), Gaussian(sensitivity=1, sigma="30")
    assert decide(statement(wide, "1", delta)).verdict is Verdict.VERIFIED
    assert decide(statement(narrow, "1", delta)).verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "delta", "verdict"),
    [
        (Gaussian(sensitivity=1, sigma="1e-300"), "1", "0.1", Verdict.REFUTED),
        (Gaussian(sensitivity=1, sigma="1e300"), "0", "1e-299", Verdict.VERIFIED),
        (MultiGaussian(sensitivity=1, sigma="1e-20", K=3, epsilon="1"), "1", "0.1", Verdict.REFUTED),
        (MultiGaussian(sensitivity=1, sigma="1e200", K=3, epsilon="1"), "1", "0.1", Verdict.VERIFIED),
        (MultiGaussian(sensitivity=1, sigma="0.003", K=3, epsilon="100000"), "100000", "1e-10", Verdict.VERIFIED),
        (MultiGaussian(sensitivity=1, sigma="0.002", K=3, epsilon="100000"), "100000", "1e-10", Verdict.REFUTED),
        (MultiGaussian(sensitivity=1, sigma="0.3", K=3, epsilon="1"), "1", "0", Verdict.REFUTED),
    ],
)
def test_extreme_parameters(mechanism: Mechanism, epsilon: str, delta: str, verdict: Verdict) -> None:
    assert decide(statement(mechanism, epsilon, delta)).verdict is verdict


def test_a_gap_declared_with_a_curvature_is_a_gap() -> None:
    rows: Any = [
        {"from": "0", "to": "1", "c": "0", "lines": [["0", "0"]]},
        {"from": "1", "to": "2", "c": "0.5", "lines": []},
        {"from": "2", "to": "3", "c": "0.5", "lines": [["0", "0"]]},
    ]
    found = decide(statement(Declared(sensitivity=1, declared_pieces=rows), "1", "0.1"))
    assert found.verdict is Verdict.REFUTED


def test_components_of_one_mean_count_together() -> None:
    """Once verified in error: of two lines with one slope, only the last was seen."""
    for split in ([["1", "0"]], [["0.999", "0"], ["0.001", "0"]], [["0.001", "0"], ["0.999", "0"]]):
        mechanism, density = _mixture([*split, ["0.5", "0.45"], ["0.25", "0.9"], ["0.5", "1.35"]])
        top = near(density, "2", "0")
        assert decide(statement(mechanism, "2", top * Fraction(98, 100))).verdict is Verdict.REFUTED
        assert decide(statement(mechanism, "2", top * Fraction(102, 100))).verdict is Verdict.VERIFIED


def _mixture(components: list[list[str]]) -> tuple[Mechanism, Density]:
    from tests.audit.support import mixture

    return mixture("0.3", *[(w, m) for w, m in components])


def test_a_fine_grid_is_covered() -> None:
    mechanism = MultiGaussian(sensitivity=1, sigma="12", K=3, epsilon="1")
    claim = Theorem32(epsilon="1", delta="1e-30", eta="1e-6")
    assert decide(Statement(mechanism, claim)).verdict is Verdict.VERIFIED
    smaller = Statement(MultiGaussian(sensitivity=1, sigma="5", K=3, epsilon="1"), claim)
    found = decide(smaller)
    assert found.verdict is Verdict.REFUTED and found.witness is not None and found.witness.grid_size is not None
    assert found.witness.grid_size > 10**34
    assert found.witness.shift * found.witness.grid_size == found.witness.grid_index


def test_direct_and_grid_thresholds_differ_by_eta() -> None:
    mechanism, density = multi_gaussian("0.35", 3, "1")
    delta = near(density, "1", "0.005")
    assert decide(statement(mechanism, "1", delta)).verdict is Verdict.VERIFIED
    grid = Theorem32(epsilon="1", delta=delta, eta="0.01")
    assert decide(Statement(mechanism, grid)).verdict is Verdict.REFUTED
    assert decide(Statement(mechanism, Direct(epsilon="1", delta=grid.threshold))).verdict is Verdict.REFUTED
