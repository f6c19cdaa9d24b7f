"""One statement in, one decision out: verdicts, witnesses, limits, units."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import pytest

import audit.decide
from audit.decide import LOOSE, TIGHTNESS, decide, decide_from, event_probabilities, make_witness, propose_shifts
from audit.exact import lower
from audit.shifts import Peak, Search
from audit.theorems import decide_theorem_4_2
from audit.verdict import Decision, Limits, Verdict
from audit.zcdp import decide_zcdp
from mechanisms.claims import Direct, Statement, Theorem32, Theorem42, ZeroConcentrated
from mechanisms.families import Declared, Gaussian, Mechanism, MultiGaussian, QuasiGaussian, TruncatedStaircase
from mechanisms.form import Form
from tests.audit.support import ZOO, bits, contains, multi_gaussian, point, statement
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
    assert (found.sup_delta is not None) is (word == "boxes")
    assert found.sup_delta is None or found.sup_delta.upper == 1


@pytest.mark.parametrize("name", ["multi-gaussian", "quasi-gaussian", "irregular", "camel", "laplace", "steps"])
def test_the_evidence_is_as_tight_as_it_says(name: str) -> None:
    """A 64th where the claim holds with room, a thousandth where it is refuted, in the shift where D is largest."""
    mechanism, density = ZOO[name]
    _, top = density.supremum("0.7")
    for factor, width in (("2", TIGHTNESS), ("0.5", LOOSE)):
        found = decide(statement(mechanism, "0.7", near(density, "0.7", "0") * Fraction(factor)))
        assert found.sup_delta is not None and found.worst_shift is not None
        assert number(found.sup_delta.lower) <= top * (1 + MPF(10) ** -40)
        assert top <= number(found.sup_delta.upper) * (1 + MPF(10) ** -40)
        assert found.sup_delta.upper <= found.sup_delta.lower * (1 + width * Fraction(9, 8))
        assert density.divergence(found.worst_shift, "0.7") >= number(found.sup_delta.lower) * (1 - MPF(10) ** -40)
        assert density.divergence(found.worst_shift, "0.7") >= top * (1 - MPF(10) ** -5)
        assert found.bits == 128 and found.boxes <= (64 if factor == "0.5" else 300)


def test_claims_of_other_kinds_have_decisions_of_their_own() -> None:
    limits = Limits(cells=100)
    quasi, claim = QuasiGaussian(sensitivity=1, sigma=2, epsilon=2), Theorem42(epsilon=2, delta="0.1")
    assert decide(Statement(quasi, claim), limits) == decide_theorem_4_2(quasi, claim, limits)
    noise, rho = Gaussian(sensitivity=1, sigma=2), ZeroConcentrated(rho="1/9")
    assert decide(Statement(noise, rho)) == decide_zcdp(noise, rho)


def test_floats_propose_shifts_the_highest_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are asked where no table serves."""
    mechanism, density = ZOO["irregular"]
    found = propose_shifts(mechanism.unit_form, Fraction("0.7"))
    assert found[0] == 1 and all(0 < shift <= 1 for shift in found) and len(found) <= 5
    assert abs(float(found[-1]) - float(density.supremum("0.7")[0])) < 1e-6
    asked: list[Fraction] = []

    def propose(form: Form, epsilon: Fraction, *check: Any) -> list[Fraction]:
        asked.append(epsilon)
        return propose_shifts(form, epsilon, *check)

    monkeypatch.setattr(audit.decide, "propose_shifts", propose)
    for name, times in (("camel", 1), ("irregular", 0), ("steps", 0)):
        asked.clear()
        decide(statement(ZOO[name][0], "0.7", "0.4"))
        assert asked == [Fraction("0.7")] * times


def test_what_a_decision_says() -> None:
    mechanism, density = ZOO["multi-gaussian"]
    held, failed = (decide(statement(mechanism, "0.7", near(density, "0.7", gap))) for gap in ("0.1", "-0.1"))
    assert held.reason == "D is at most the threshold over all shifts" and held.conditions == failed.conditions == ()
    assert failed.reason == "an event at the worst shift found breaks the inequality"
    assert failed.witness is not None and failed.witness.grid_index is failed.witness.grid_size is None
    claim = Theorem32(epsilon="0.7", delta=near(density, "0.7", "0.5"), eta="0.01")
    grid = decide(Statement(mechanism, claim))
    assert grid.reason == "D is at most the threshold over all points of the grid of Theorem 3.2"
    few = decide(Statement(mechanism, claim), Limits(bits=64))
    assert few.verdict is Verdict.INCONCLUSIVE and (few.bits, few.boxes) == (64, 0)
    assert few.reason == "64 bits do not tell the size of the grid; raise the limit on bits"


def test_a_witness_that_the_limits_do_not_allow_leaves_it_open() -> None:
    """The search ends in time, the witness does not."""
    mechanism, density = ZOO["steps"]
    claim = statement(mechanism, "0.7", near(density, "0.7", "-0.1"))
    asked: list[bool] = []

    def limits(most: float) -> Limits:
        asked.clear()
        return Limits(expired=lambda: bool(asked.append(True)) or len(asked) > most)

    full = decide(claim, limits(math.inf))
    assert full.verdict is Verdict.REFUTED
    found = decide(claim, limits(len(asked) - 1))  # the last question is the witness's
    assert found.verdict is Verdict.INCONCLUSIVE and found.witness is None and found.sup_delta is None
    assert (found.bits, found.boxes) == (Limits().bits, full.boxes)
    assert found.reason == (
        "a shift exceeds the threshold, but the limits ended the search for a witness; raise bits or time"
    )


@pytest.mark.parametrize("unit", ["2.5", "1/7"])
@pytest.mark.parametrize("name", ["multi-gaussian", "steps"])
def test_a_witness_is_in_the_unit_of_the_query(name: str, unit: str) -> None:
    size = Fraction(unit)
    one: Mechanism = MultiGaussian(sensitivity=1, sigma="0.35", K=3, epsilon="1")
    wide: Mechanism = MultiGaussian(sensitivity=size, sigma=size * Fraction("0.35"), K=3, epsilon="1")
    if name == "steps":
        one = TruncatedStaircase(sensitivity=1, epsilon="1", gamma="0.3", T="2.7")
        wide = TruncatedStaircase(sensitivity=size, epsilon="1", gamma="0.3", T=size * Fraction("2.7"))
    plain, scaled = decide(statement(one, "1", "0.001")), decide(statement(wide, "1", "0.001"))
    assert plain.witness is not None and scaled.witness is not None
    assert scaled.witness.shift == scaled.worst_shift == plain.witness.shift * size
    stretched = tuple(tuple(None if end is None else end * size for end in part) for part in plain.witness.event)
    assert scaled.witness.event == stretched
    assert scaled.witness.probability_shifted == plain.witness.probability_shifted
    assert scaled.witness.bound == plain.witness.bound


@pytest.mark.parametrize("threshold", ["0", "0.01", "1e-40"])
@pytest.mark.parametrize("name", ["multi-gaussian", "quasi-gaussian", "irregular", "camel", "laplace", "gap", "steps"])
def test_both_sides_of_the_inequality_are_enclosed(name: str, threshold: str) -> None:
    """For any union of intervals, and more tightly than the threshold."""
    mechanism, density = ZOO[name]
    rng = random.Random(name + threshold)
    for precision in (96, 192):
        ends = sorted(Fraction(rng.randint(-6000, 6000), 1000) for _ in range(6))
        event = [(ends[0], ends[1]), (ends[2], ends[3]), (ends[4], None if rng.random() < 0.5 else ends[5])]
        event = [(None, ends[0])] if rng.random() < 0.2 else event
        shift = Fraction(rng.randint(0, 1000), 1000)
        with bits(precision):
            balls = [tuple(None if end is None else point(end) for end in part) for part in event]
            claim = Direct(epsilon="0.7", delta=threshold)
            sides = event_probabilities(mechanism, balls, shift, claim)  # type: ignore[arg-type]
            moved = [tuple(None if end is None else end + shift for end in part) for part in event]
            there = sum((density.probability(*part) for part in moved), MPF(0))
            here = sum((density.probability(*part) for part in event), MPF(0))
            bound = CONTEXT.exp(number("0.7")) * here + number(threshold)
            for side, true in zip(sides, (there, bound), strict=True):
                assert contains(side, true)
                assert float(side.rad()) <= 2.0 ** (16 - precision) * max(float(true), 1e-99)


def test_the_watch_is_asked_at_every_interval_of_an_event() -> None:
    asked = []
    event = [(point(Fraction(i)), point(Fraction(2 * i + 1, 2))) for i in range(-6, -1)]
    claim = Direct(epsilon="0.7", delta="0.001")
    event_probabilities(ZOO["laplace"][0], event, Fraction(1), claim, lambda: asked.append(1))
    assert len(asked) == 5
    asked.clear()
    limits = Limits(expired=lambda: bool(asked.append(1)))
    assert make_witness(ZOO["laplace"][0], claim, Peak(Fraction(1), None, Fraction(0), tuple(event)), None, limits)
    assert len(asked) == 6, "once before the first"


def test_an_event_with_equal_sides_is_no_witness() -> None:
    """Both sides are exactly 0 here, which breaks nothing."""
    peak, claim = Peak(Fraction(1), None, Fraction(0), ()), Direct(epsilon="0.7", delta="0")
    assert make_witness(ZOO["laplace"][0], claim, peak, None, Limits()) is None


def test_bits_rise_until_an_event_is_seen_to_be_a_witness() -> None:
    """δ such that its two sides differ in about the 50th digit: 128 bits do not tell, 256 do."""
    mechanism, event = ZOO["laplace"][0], ((point(Fraction(-2)), point(Fraction(-1))),)
    with bits(512):
        there, bound = event_probabilities(mechanism, event, Fraction(1), Direct(epsilon="0.7", delta="0"))
        claim = Direct(epsilon="0.7", delta=lower(there - bound) * (1 - Fraction(1, 10**50)))
    peak = Peak(Fraction(1), None, Fraction(0), event)
    assert make_witness(mechanism, claim, peak, None, Limits(bits=255)) is None
    found = make_witness(mechanism, claim, peak, None, Limits(bits=256))
    assert found is not None and found.probability_shifted.lower > found.bound.upper


@pytest.mark.parametrize("error", [ValueError("too large"), ZeroDivisionError("by 0"), MemoryError("malloc")])
def test_numbers_beyond_the_libraries_leave_it_open(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any, **options: Any) -> Decision:
        raise error

    monkeypatch.setattr(audit.decide, "decide_from", fails)
    reason = f"the proof met numbers beyond what the libraries hold ({type(error).__name__}: {error})"
    expected = Decision(verdict=Verdict.INCONCLUSIVE, reason=reason, bits=999, boxes=0)
    assert decide(statement(ZOO["gaussian"][0], "1", "0.1"), Limits(bits=999)) == expected


def test_a_refutation_that_the_limits_cut_short_has_no_upper_end_but_1() -> None:
    mechanism, density = ZOO["irregular"]
    found = decide(statement(mechanism, "0.7", near(density, "0.7", "-0.01")), Limits(boxes=1))
    assert found.verdict is Verdict.REFUTED and found.sup_delta is not None and found.sup_delta.upper == 1


def test_the_upper_end_of_a_refuted_grid_claim_is_that_of_the_grid() -> None:
    """At 2/3, a point of the grid of thirds, D is 0.68; between them, at 1/2, it is 0.74."""
    mechanism, density = multi_gaussian("0.15", 1, "1")
    found = decide(Statement(mechanism, Theorem32(epsilon="1", delta="0.95", eta="0.95")))
    assert found.witness is not None and found.witness.grid_size == 3 and found.sup_delta is not None
    top, between = density.divergence(Fraction(2, 3), "1"), density.divergence("0.5", "1")
    assert top <= number(found.sup_delta.upper) < between * MPF(0.95)


def test_progress_and_determinism() -> None:
    mechanism, density = ZOO["irregular"]
    claim = statement(mechanism, "0.7", near(density, "0.7", "1e-6"))
    seen: list[float] = []
    first = decide(claim, progress=seen.append)
    assert first == decide(claim) and first.verdict is Verdict.VERIFIED
    assert seen and all(0 <= share <= 1 for share in seen) and seen == sorted(seen)


def test_the_four_highest_peaks_are_looked_at_the_highest_last(monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = [(shift, 1 - shift) for shift in (0.125, 0.25, 0.375, 0.5, 0.625)]
    asked: list[Any] = []
    monkeypatch.setattr(audit.decide, "local_maxima", lambda form, epsilon, check: asked.append(check) or peaks)
    found = propose_shifts(ZOO["irregular"][0].unit_form, Fraction(1), asked.clear)
    assert found == [Fraction(shift) for shift in (1, 0.5, 0.375, 0.25, 0.125)] and asked == [asked.clear]


@pytest.mark.parametrize(("most", "few"), [(20_000, 64), (7, 7)])
def test_the_upper_end_of_a_refutation_costs_few_boxes(most: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism, density = ZOO["irregular"]
    asked: list[tuple[int, Fraction]] = []

    def recorded(*arguments: Any, limits: Limits, floor: Fraction, **options: Any) -> Search:
        asked.append((limits.boxes, floor))
        return Search(*arguments, limits=limits, floor=floor, **options)

    monkeypatch.setattr(audit.decide, "Search", recorded)
    delta = near(density, "0.7", "-0.1")
    found = decide(statement(mechanism, "0.7", delta), Limits(boxes=most))
    assert found.verdict is Verdict.REFUTED and found.sup_delta is not None
    assert asked == [(most, delta / 16), (few, found.sup_delta.lower * LOOSE)]


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
