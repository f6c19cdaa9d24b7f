"""The second opinion: it contradicts what is false, agrees with what is true, and depends on nothing that it judges."""

from __future__ import annotations

import ast
import copy
import random
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import audit.second.bounds
from audit.decide import decide
from audit.second.density import exact
from audit.second_opinion import Answer, second_opinion
from audit.theorems import grid_size
from audit.verdict import Limits, Verdict
from mechanisms.claims import Direct, Statement, Theorem32, read_statement
from mechanisms.families import (
    Gaussian,
    Laplace,
    Mechanism,
    MultiGaussian,
    Staircase,
    TruncatedStaircase,
    Tulap,
)
from mechanisms.numbers import read_real
from tests.audit import support
from tests.audit.second_support import certificate, direct, opinion, signed
from tests.audit.support import ZOO
from tests.soundness import hard, referee
from tests.soundness.referee import Density

ROOT = Path(__file__).parents[2]
NARROW = {"family": "multi-gaussian", "sensitivity": "1", "sigma": "0.18474", "K": 9, "epsilon": "10"}
"""D is positive on a window of shifts 10⁻³ wide; its maximum, 6.075e-7, is at 0.92914."""
TABLE_4 = {"family": "multi-gaussian", "sensitivity": "1", "sigma": "0.0526", "K": 9, "epsilon": "3"}
PEAKED = MultiGaussian(sensitivity=1, sigma=Fraction(float.fromhex("0x1.567428b65f04ep-2")), K=4, epsilon=1)
"""The smallest double at which it keeps (1, 0.01); the worst shift is 0.7678…"""
SMALL = MultiGaussian(sensitivity=1, sigma="0.25", K=1, epsilon=1)
"""Its worst shift, 0.6998…, is an interior one; D is 0.28003… there."""


def stairs(family: type[Mechanism], **parameters: Any) -> tuple[Mechanism, Density]:
    """A family of steps, and the same written out for the referee."""
    mechanism = family(sensitivity=1, **parameters)
    gamma = Fraction(parameters.get("gamma", "1/2"))
    epsilon, end = Fraction(parameters["epsilon"]), Fraction(parameters.get("T", 20))
    rows, start, step = [], Fraction(0), 0
    while start < end:
        stop = min(gamma + step, end)
        rows.append((start, stop, 0, [(-step * epsilon, 0)]))
        start, step = stop, step + 1
    return mechanism, referee.even(rows, 1.0)


CASES = {
    **ZOO,
    "interior": support.multi_gaussian("0.3", 2, "1"),
    "staircase": stairs(Staircase, epsilon="2", gamma="0.3"),
    "truncated-staircase": stairs(TruncatedStaircase, epsilon="1", gamma="0.4", T="3.7"),
    "tulap": stairs(Tulap, epsilon="1", T="3.3"),
    **{f"{case.name} {seed}": (case.mechanism, case.density) for seed in (4, 7, 8, 9) for case in [hard.case(seed)]},
}
EPSILON = {"two-rates": "1", "huber": "0.5", "staircase": "1.5", "quasi-gaussian": "2"}


def supremum(name: str) -> tuple[str, Fraction]:
    epsilon = EPSILON.get(name, "1")
    return epsilon, Fraction(str(CASES[name][1].supremum(epsilon)[1]))


def test_it_imports_nothing_of_what_it_judges() -> None:
    paths = [ROOT / "audit/second_opinion.py", *(ROOT / "audit/second").glob("*.py")]
    assert len(paths) > 6
    allowed = sys.stdlib_module_names | {"flint", "numpy"}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names = [str(node.module)]
            for name in names:
                assert name.split(".")[0] in allowed - {"importlib"} or name.startswith("audit.second."), (path, name)
        assert not {"__import__", "eval", "exec"} & {
            node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)
        }


@pytest.mark.parametrize(
    "text", ["0.1", "1e-5", "-2.50e3", "1/3", "-7/4", "0x1.567428b65f04ep-2", "-0x.8p+3", "0X10", "+4", ".5", "5."]
)
def test_numbers_are_read_as_they_are_written(text: str) -> None:
    assert exact(text) == read_real(text, "here")


def test_an_answer_has_no_truth_value() -> None:
    with pytest.raises(TypeError):
        bool(Answer.AGREES)


@pytest.mark.parametrize("name", CASES)
def test_claims_a_hair_too_small_are_contradicted_and_those_above_are_not(name: str) -> None:
    epsilon, sup = supremum(name)
    mechanism = CASES[name][0]
    assert sup > 0
    for gap, answer in ((Fraction(-1, 10**12), Answer.AGREES), (Fraction(1, 10**9), Answer.CONTRADICTED)):
        found = opinion(mechanism, direct(epsilon, sup * (1 - gap)))
        assert found.answer is answer, found.reason
        assert found.reason.startswith("D(" if answer is Answer.CONTRADICTED else "D is at most")
    assert opinion(mechanism, direct(epsilon, sup * (1 - Fraction(1, 10**6)))).answer is Answer.CONTRADICTED


@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [(TABLE_4, direct("3", "0.01")), (NARROW, direct("10", "6e-7")), (PEAKED, direct("1", "0.009999999999999"))],
)
def test_interior_and_narrow_peaks_are_found_without_evidence(mechanism: Any, claim: Direct) -> None:
    found = opinion(mechanism, claim)
    assert found.answer is Answer.CONTRADICTED
    assert found.visits[-1].why == audit.second.bounds.MAXIMUM


@pytest.mark.slow
def test_a_window_that_no_lattice_shows_is_found() -> None:
    """Two turns of f, 10⁻⁴ apart, open a window of shifts in which D is 3e-16; elsewhere it is below 1e-50."""
    noise = {"family": "multi-gaussian", "sensitivity": "1", "K": 12, "epsilon": "10"}
    for sigma, answer in (("0.186868748", Answer.AGREES), ("0.186868561", Answer.CONTRADICTED)):
        assert opinion({**noise, "sigma": sigma}, direct("10", "1e-30")).answer is answer


def test_the_next_smaller_double_is_contradicted() -> None:
    below = MultiGaussian(sensitivity=1, sigma=Fraction(float.fromhex("0x1.567428b65f04dp-2")), K=4, epsilon=1)
    assert opinion(PEAKED, direct("1", "0.01")).answer is Answer.AGREES
    assert opinion(below, direct("1", "0.01")).answer is Answer.CONTRADICTED


def test_a_recorded_worst_shift_that_points_away_hides_nothing() -> None:
    for worst in ("0.1", "0.999999999"):
        found = opinion(TABLE_4, direct("3", "0.01"), worst_shift=worst, sup_delta={"lower": "0", "upper": "0.01"})
        assert found.answer is Answer.CONTRADICTED


def test_it_depends_on_the_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit.second.bounds, "propose", lambda *_: [])
    assert opinion(TABLE_4, direct("3", "0.01")).answer is Answer.AGREES


def test_ties_are_seen() -> None:
    """Equality, of rational multiples of exponentials and of exponentials, is no open question."""
    uniform = ZOO["uniform"][0]
    assert opinion(uniform, direct("1", "0.1")).answer is Answer.AGREES
    assert opinion(uniform, direct("1", "0.0" + "9" * 30)).answer is Answer.CONTRADICTED
    for mechanism in (Laplace(sensitivity=2, scale="4/3"), Staircase(sensitivity=3, epsilon="3/2", gamma="0.4")):
        assert opinion(mechanism, direct("3/2", "0")).answer is Answer.AGREES
        assert opinion(mechanism, direct("1.4999999999", "0")).answer is Answer.CONTRADICTED


def test_pure_dp_of_gaussian_noise_is_contradicted() -> None:
    assert opinion(Gaussian(sensitivity=1, sigma=3), direct("20", "0")).answer is Answer.CONTRADICTED


def test_what_decides_for_every_shift_is_said() -> None:
    assert "log-concave" in opinion(Gaussian(sensitivity=1, sigma=9), direct("1", "0.1")).reason
    assert "linear" in opinion(Tulap(sensitivity=1, epsilon=1, T=9), direct("1", "0.1")).reason
    random_shifts = [Fraction(1, 3), Fraction(2, 3)]
    found = second_opinion(signed(SMALL, direct("1", "0.3")), random_shifts)
    assert "between the shifts visited nothing is proved by this" in found.sampled
    assert "2 × random" in found.sampled
    assert {Fraction(1, 3), Fraction(2, 3)} <= {visit.shift for visit in found.visits}


def test_the_unit_of_the_query_counts() -> None:
    """(1, 1e-6) of a Gaussian needs σ/Δ = 4.22467…"""
    for unit in ("1e-30", "3", "1e30"):
        for share, answer in (("4.2247", Answer.AGREES), ("4.2246", Answer.CONTRADICTED)):
            mechanism = Gaussian(sensitivity=unit, sigma=Fraction(unit) * Fraction(share))
            assert opinion(mechanism, direct("1", "1e-6")).answer is answer


@pytest.mark.parametrize(
    "name", ["gaussian", "interior", "quasi-gaussian", "gap", "irregular", "staircase", "pieces 8"]
)
def test_it_agrees_with_what_the_audit_records(name: str) -> None:
    epsilon, sup = supremum(name)
    for share in (Fraction(101, 100), Fraction(9, 10)):
        document = certificate(Statement(CASES[name][0], direct(epsilon, sup * share)))
        assert document["verdict"] == ("verified" if share > 1 else "refuted")
        found = second_opinion(document, [Fraction(1, 7)])
        assert found.answer is Answer.AGREES, found.reason


def test_recorded_enclosures_that_cannot_be_true() -> None:
    true = certificate(Statement(SMALL, direct("1", "0.3")))
    for field, end, value, text in (
        ("sup_delta", "upper", "0.28003", "above the recorded upper end"),
        ("sup_delta", "lower", "0.280032", "below the recorded lower end"),
    ):
        document = copy.deepcopy(true)
        document["evidence"][field][end] = value
        found = second_opinion(document)
        assert found.answer is Answer.CONTRADICTED
        assert text in found.reason
    document = copy.deepcopy(true)
    document["evidence"]["worst_shift"] = "2"
    assert second_opinion(document).answer is Answer.CONTRADICTED


def test_a_refutation_that_is_none() -> None:
    document = certificate(Statement(SMALL, direct("1", "0.25")))
    assert second_opinion(document).answer is Answer.AGREES
    document["statement"]["claim"]["delta"] = "0.5"
    found = second_opinion(document)
    assert found.answer is Answer.CONTRADICTED
    assert "witness" in found.reason


@pytest.mark.parametrize(("below", "answer"), [("4.2246", Answer.AGREES), ("4.3", Answer.CONTRADICTED)])
def test_the_smaller_scale(below: str, answer: Answer) -> None:
    mechanism, claim = Gaussian(sensitivity=1, sigma="4.5"), direct("1", "1e-6")
    found = opinion(mechanism, claim, refuted_below=below, refutation={"shift": "1"})
    assert found.answer is answer
    assert opinion(mechanism, claim, refuted_below=below).answer is Answer.OPEN


def test_an_inconclusive_claim_that_is_false_is_contradicted() -> None:
    assert opinion(TABLE_4, direct("3", "0.01"), "inconclusive").answer is Answer.CONTRADICTED


def test_the_grid_of_theorem_3_2() -> None:
    """D is held against (1 − η) δ at points of the grid alone."""
    true = Fraction(1) / 100
    for eta, delta, answer in (
        ("0.01", true / (1 - Fraction(1, 100)), Answer.AGREES),
        ("0.01", true, Answer.CONTRADICTED),
        ("0.5", true * 3 / 2, Answer.CONTRADICTED),
    ):
        claim = Theorem32(epsilon="1", delta=delta, eta=eta)
        found = opinion(PEAKED, claim)
        assert found.answer is answer
        size = grid_size(PEAKED, claim, Limits())
        assert size is not None
        assert all((visit.shift * size).denominator == 1 for visit in found.visits)
    off = opinion(PEAKED, Theorem32(epsilon="1", delta="0.5", eta="0.1"), worst_shift="0.123456")
    assert off.answer is Answer.CONTRADICTED


def test_limits_leave_it_open() -> None:
    found = second_opinion(signed(SMALL, direct("1", "0.3")), expired=lambda: True)
    assert found.answer is Answer.OPEN
    assert "time" in found.reason
    fifty_digits = Fraction("0.38292492254802620727540922121667547976720435110916")  # of D(1) = 2 Φ(1/2) − 1
    claim = direct("0", fifty_digits)
    few = second_opinion(signed(Gaussian(sensitivity=1, sigma=1), claim), [Fraction(1, 2)], bits=128)
    assert few.answer is Answer.OPEN
    assert few.proved == ("D is at most ≈ 0.382924922548 at 1 shifts, enclosed anew",)  # at 1/2, and no more
    assert opinion(Gaussian(sensitivity=1, sigma=1), claim).answer is not Answer.OPEN


def test_time_is_asked_for_often() -> None:
    calls = iter(range(200))
    assert (
        second_opinion(signed(SMALL, direct("1", "0.3")), expired=lambda: next(calls, 999) > 150).answer is Answer.OPEN
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(120))
def test_hard_cases_near_the_largest_divergence_that_it_finds(seed: int) -> None:
    """The main audit and the second opinion, a hair on both sides of the largest D that the latter encloses."""
    case, rng = hard.case(seed), random.Random(seed)
    shifts = [Fraction(rng.random()) for _ in range(4)]
    first = second_opinion(signed(case.mechanism, direct(case.epsilon, "0.9999999")), shifts)
    largest = max(visit.lower for visit in first.visits)
    if not largest:
        return
    below = direct(case.epsilon, largest * (1 - Fraction(1, 10**9)))
    assert decide(Statement(case.mechanism, below)).verdict is Verdict.REFUTED
    assert opinion(case.mechanism, below).answer is Answer.CONTRADICTED
    above = direct(case.epsilon, largest * (1 + Fraction(1, 10**9)))
    if decide(Statement(case.mechanism, above)).verdict is Verdict.VERIFIED:
        assert opinion(case.mechanism, above).answer is Answer.AGREES


def test_a_family_s_epsilon_is_the_claim_s_where_it_is_left_out() -> None:
    document = {name: value for name, value in PEAKED.document().items() if name != "epsilon"}
    assert read_statement({"mechanism": document, "claim": direct("1", "0.01").document()}).mechanism == PEAKED
    assert opinion(document, direct("1", "0.01")).answer is Answer.AGREES
