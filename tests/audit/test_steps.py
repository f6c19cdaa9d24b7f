"""Densities made of steps are decided exactly: against the referee, at ties, and a hair to either side of them."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

import audit.steps
from audit.decide import decide
from audit.exact import fraction
from audit.recheck import is_event, reaches, witness_figures
from audit.steps import StaircaseMasses, StepDivergence, exact_divergence, meetings, supremum
from audit.sums import quotient
from audit.verdict import Decision, Limits, Verdict
from mechanisms.claims import Direct, Statement
from mechanisms.families import Declared, Mechanism, Staircase, TruncatedStaircase, Tulap
from tests.audit.support import FEW, ZOO, bits, contains, declared, point, statement
from tests.soundness import referee
from tests.soundness.referee import CONTEXT, MPF, Density, number

F = Fraction
NEVER = F(2)
"""No divergence is that large."""
UNIFORM: Any = [{"from": "0", "to": "5", "c": "0", "lines": [["0", "0"]]}]


def divergence(mechanism: Mechanism, epsilon: Any, shift: Any) -> Any:
    """D at one shift, enclosed."""
    exact = exact_divergence(mechanism, F(epsilon))
    assert exact is not None
    return quotient(exact.at(F(shift), Limits()).terms, exact.mass, NEVER, Limits())


def agrees(found: Any, true: Any) -> bool:
    room = MPF(10) ** -44
    return bool(number(found.lower) - room <= true <= number(found.upper) + room)


def check_witness(found: Decision, density: Density, epsilon: str, delta: Fraction) -> None:
    witness = found.witness
    assert witness is not None and is_event(witness.event)
    there = sum(
        (density.probability(*(None if e is None else e + witness.shift for e in part)) for part in witness.event),
        MPF(0),
    )
    here = sum((density.probability(*part) for part in witness.event), MPF(0))
    assert there > CONTEXT.exp(number(epsilon)) * here + number(delta)


@st.composite
def steps(draw: st.DrawFn) -> tuple[Mechanism, Density, str]:
    """Up to six steps with edges on a lattice or off it, heights that are often e^(kε) apart; ε as text."""
    epsilon = draw(st.sampled_from(["0", "1/2", "1", "3"]))
    widths = draw(st.lists(st.fractions(F(1, 20), F(3, 2), max_denominator=20), min_size=1, max_size=6))
    heights = [draw(st.one_of(st.integers(-3, 3).map(lambda k: k * F(epsilon)), st.fractions(-3, 3))) for _ in widths]
    edges = [F(0), *itertools.accumulate(widths)]
    pieces = [
        (str(a), str(b), "0", [(str(height), "0")] if i == 0 or draw(st.integers(0, 5)) else [])
        for i, ((a, b), height) in enumerate(zip(itertools.pairwise(edges), heights, strict=True))
    ]
    return *declared(*pieces, scale=0.2), epsilon


@FEW
@given(steps(), st.fractions(0, 1, max_denominator=40))
def test_the_divergence_of_random_steps(pair: tuple[Mechanism, Density, str], shift: Fraction) -> None:
    mechanism, density, epsilon = pair
    assert agrees(divergence(mechanism, epsilon, shift), density.divergence(shift, epsilon))


@FEW
@given(steps())
def test_random_steps_a_hair_from_their_supremum(pair: tuple[Mechanism, Density, str]) -> None:
    mechanism, density, epsilon = pair
    top = F(str(density.supremum(epsilon)[1]))
    if top < F(1, 10**9) or top * (1 + F(1, 10**12)) >= 1:
        return
    above = decide(statement(mechanism, epsilon, top * (1 + F(1, 10**12))))
    below = decide(statement(mechanism, epsilon, top * (1 - F(1, 10**12))))
    assert above.verdict is Verdict.VERIFIED and below.verdict is Verdict.REFUTED
    check_witness(below, density, epsilon, top * (1 - F(1, 10**12)))
    for found in (above, below):
        assert found.sup_delta is not None and agrees(found.sup_delta, number(top))


def test_shifts_that_decide() -> None:
    found = exact_divergence(ZOO["uniform"][0], F(1))
    assert found is not None and list(found.shifts) == [0, 1]
    found = exact_divergence(ZOO["steps"][0], F(1, 2))
    assert found is not None and F(6, 10) in found.shifts
    assert exact_divergence(ZOO["laplace"][0], F(1)) is None and exact_divergence(ZOO["gaussian"][0], F(1)) is None
    density = ZOO["steps"][1]  # D is linear between neighbours
    for a, b in itertools.pairwise(found.shifts):
        ends = density.divergence(a, "0.5"), density.divergence(b, "0.5")
        inside = density.divergence((2 * a + b) / 3, "0.5")
        assert abs(inside - (2 * ends[0] + ends[1]) / 3) < MPF(10) ** -40


@given(st.lists(st.fractions(-3, 3, max_denominator=30), unique=True, max_size=12).map(sorted))
def test_meetings_are_all_differences_below_the_sensitivity(edges: list[Fraction]) -> None:
    assert meetings(edges, 10**6) == sorted({F(0), F(1)} | {b - a for a in edges for b in edges if 0 < b - a < 1})


def test_too_many_meetings_are_left_to_the_general_search() -> None:
    edges = [F(k * k, 10**7) for k in range(3000)]
    assert meetings(edges, 1000) is None


def test_a_claim_that_holds_with_equality_is_verified() -> None:
    """Uniform noise on [−5, 5]: D(Δ) = 1/10."""
    mechanism = Declared(sensitivity=1, declared_pieces=UNIFORM)
    for epsilon in ("0", "0.7", "100"):
        found = decide(statement(mechanism, epsilon, "0.1"))
        assert found.verdict is Verdict.VERIFIED and found.sup_delta is not None
        assert found.sup_delta.lower == found.sup_delta.upper == F(1, 10) and found.worst_shift == 1
    tiny = F(1, 10**80)
    assert decide(statement(mechanism, "0.7", F(1, 10) + tiny)).verdict is Verdict.VERIFIED
    assert decide(statement(mechanism, "0.7", F(1, 10) - tiny)).verdict is Verdict.REFUTED


def test_equality_of_irrational_heights() -> None:
    """Heights 1 and e^(−ε): at ε nothing of the inside counts, and half of the support's mass is beyond it."""
    mechanism = TruncatedStaircase(sensitivity=1, epsilon="0.3", gamma="1/2", T="3/2")
    mass = 1 + 2 * F(1)  # 1 + 2 e^(−ε), the last step has e^(−ε)
    assert mass == 3
    top = divergence(mechanism, "0.3", 1)
    true = CONTEXT.exp(number("-0.3")) / (1 + 2 * CONTEXT.exp(number("-0.3")))
    assert agrees(top, true)
    for gap, verdict in ((F(1, 10**12), Verdict.VERIFIED), (-F(1, 10**12), Verdict.REFUTED)):
        assert decide(statement(mechanism, "0.3", F(str(true)) * (1 + gap))).verdict is verdict


def truncated(epsilon: str, gamma: str, T: str) -> Density:
    """The referee's own truncated staircase."""
    pieces: list[Any] = []
    start, i = F(0), 0
    while start < F(T):
        stop = min(F(gamma) + i, F(T))
        pieces.append((start, stop, 0, [(-i * F(epsilon), 0)]))
        start, i = stop, i + 1
    return referee.even(pieces, 0.3)


@pytest.mark.parametrize(
    ("epsilon", "gamma", "T"), [("1", "0.37", "2.9"), ("3", "0.26", "2.18"), ("10", "0.03", "1.5")]
)
def test_the_truncated_staircase(epsilon: str, gamma: str, T: str) -> None:
    """D(φ) is the mass of (T − φ, T], for every φ."""
    density = truncated(epsilon, gamma, T)
    mechanism = TruncatedStaircase(sensitivity=1, epsilon=epsilon, gamma=gamma, T=T)
    for shift in ("0.13", "0.5", "0.77", "1"):
        found = divergence(mechanism, epsilon, shift)
        assert agrees(found, density.probability(F(T) - F(shift), T))
        assert agrees(found, density.divergence(shift, epsilon))


@pytest.mark.parametrize("unit", ["1", "2.5", "1/7"])
def test_cut_a_hair_too_early_is_never_verified(unit: str) -> None:
    from mechanisms.calibration_steps import cut

    for epsilon, delta, gamma in (("3", "0.01", "0.26"), ("0.5", "1e-5", "0.5"), ("10", "1e-3", "0.0283")):
        T = cut(F(gamma), F(epsilon), F(delta))
        assert T is not None
        for gap in (F(1, 10**12), F(1, 10**30)):
            for end, verdict in ((T * (1 - gap), Verdict.REFUTED), (T * (1 + gap), Verdict.VERIFIED)):
                size = F(unit)
                mechanism = TruncatedStaircase(sensitivity=unit, epsilon=epsilon, gamma=gamma, T=end * size)
                found = decide(statement(mechanism, epsilon, delta))
                assert found.verdict is verdict and found.worst_shift == size
                if gamma == "0.5":
                    other = decide(statement(Tulap(sensitivity=unit, epsilon=epsilon, T=end * size), epsilon, delta))
                    assert other.verdict is verdict


STAIRS = Staircase(sensitivity=1, epsilon="1", gamma="0.3")


def stairs(gamma: str, epsilon: str, steps: int = 50) -> Density:
    """The referee's own staircase, cut where e^(−50) is left."""
    pieces: list[Any] = [(0, F(gamma), 0, [(0, 0)])]
    pieces += [(F(gamma) + i, F(gamma) + i + 1, 0, [(-(i + 1) * F(epsilon), 0)]) for i in range(steps)]
    return referee.even(pieces, 0.3)


@pytest.mark.parametrize("gamma", ["0.3", "1/2", "0.8", "1"])
def test_the_endless_staircase(gamma: str) -> None:
    density = stairs(gamma, "1")
    mechanism = Staircase(sensitivity=1, epsilon="1", gamma=gamma)
    for shift in ("0.2", "0.65", "1"):
        found, true = divergence(mechanism, "0.6", shift), density.divergence(shift, "0.6")
        assert abs(number(found.lower) - true) < MPF(10) ** -19
    assert divergence(mechanism, "1", 1).upper == 0


def test_the_staircase_is_exactly_pure() -> None:
    assert decide(statement(STAIRS, "1", "0")).verdict is Verdict.VERIFIED
    found = decide(statement(STAIRS, 1 - F(1, 10**40), "0"))
    assert found.verdict is Verdict.REFUTED and found.witness is not None
    assert found.witness.event == ((None, F(-7, 10)),)
    assert decide(statement(STAIRS, "0.6", "0.2210")).verdict is Verdict.VERIFIED
    refuted = decide(statement(STAIRS, "0.6", "0.2208"))
    assert refuted.verdict is Verdict.REFUTED
    check_witness(refuted, stairs("0.3", "1"), "0.6", F("0.2208"))


def test_the_staircase_in_another_unit() -> None:
    wide = Staircase(sensitivity="2.5", epsilon="1", gamma="0.3")
    one, other = decide(statement(STAIRS, "0.6", "0.1")), decide(statement(wide, "0.6", "0.1"))
    assert one.sup_delta == other.sup_delta and other.worst_shift == F(5, 2)
    assert one.witness is not None and other.witness is not None
    assert [end and end * F(5, 2) for end in one.witness.event[0]] == list(other.witness.event[0])


def test_probabilities_of_the_staircase() -> None:
    density = stairs("0.3", "1")
    with bits(256):
        masses = StaircaseMasses(STAIRS)
        for a, b in ((None, None), (None, "-2.3"), ("-0.2", "0.25"), ("1.3", "7"), ("-5.5", None), ("0.3", "0.31")):
            ends = tuple(None if end is None else point(F(end)) for end in (a, b))
            found = masses.probability((ends[0], ends[1]))
            true = density.probability(*(None if end is None else F(end) for end in (a, b)))
            assert contains(found, true, 1e-20)
        assert masses.probability((point(F(10**300)), None)) < arb(1)


@pytest.mark.parametrize("mechanism", [STAIRS, TruncatedStaircase(sensitivity=1, epsilon="1", gamma="0.3", T="2.7")])
def test_evidence_of_others_is_checked_exactly(mechanism: Mechanism) -> None:
    claim = Statement(mechanism, Direct(epsilon="0.6", delta="0.001"))
    found = decide(claim)
    assert found.verdict is Verdict.REFUTED and found.sup_delta is not None and found.witness is not None
    assert reaches(claim, F(1), found.sup_delta.lower, Limits()) is True
    assert reaches(claim, F(1), found.sup_delta.upper + F(1, 10**30), Limits()) is False
    figures = witness_figures(claim, found.witness, Limits())
    assert figures is not None and figures[0].lower > figures[1].upper


@pytest.mark.parametrize(
    ("limits", "word"), [(Limits(expired=lambda: True), "time"), (Limits(bits=128), "do not resolve it")]
)
def test_limits_make_it_inconclusive(limits: Limits, word: str) -> None:
    mechanism = TruncatedStaircase(sensitivity=1, epsilon="1", gamma="0.3", T="2.7")
    with CONTEXT.workdps(150):
        e1, e2, e3 = (CONTEXT.exp(-k) for k in (1, 2, 3))
        true = (3 * e2 + 2 * e3) / (3 + 10 * e1 + 10 * e2 + 4 * e3)  # the mass of (1.7, 2.7]
        delta = F(CONTEXT.nstr(true, 140)) * (1 + F(1, 10**60))
    found = decide(statement(mechanism, "1", delta), limits)
    assert found.verdict is Verdict.INCONCLUSIVE and word in found.reason


@settings(max_examples=40, deadline=None)
@given(st.lists(st.fractions(F(-3), F(3), max_denominator=9), min_size=1, max_size=6), st.integers(0, 10**6))
def test_the_event_is_where_the_integrand_is_positive(gaps: list[Fraction], seed: int) -> None:
    """Random heights on steps of a ninth: at each shift that decides, D is what the event has, and no more."""
    edges = [F(i + 1, 9) for i in range(len(gaps))]
    rows = [
        {"from": str(a), "to": str(b), "c": "0", "lines": [[str(gap), "0"]]}
        for (a, b), gap in zip(itertools.pairwise([F(0), *edges]), gaps, strict=True)
    ]
    mechanism = Declared(sensitivity=1, declared_pieces=rows)  # type: ignore[arg-type]
    exact = exact_divergence(mechanism, F(1, 2))
    assert isinstance(exact, StepDivergence)
    shift = exact.shifts[seed % len(exact.shifts)]
    found = exact.at(shift, Limits())
    height = dict(zip(range(len(gaps)), gaps, strict=True))

    def f(x: Fraction) -> Any:
        at = abs(x) * 9 // 1
        return CONTEXT.exp(number(height[int(at)])) if at in height else MPF(0)

    true, positive = MPF(0), []
    for i in range(-4 * len(gaps) - 40, 2 * len(gaps) + 40):  # cells of which no edge is inside
        middle = F(2 * i + 1, 36)
        gain = f(middle + shift) - CONTEXT.exp(MPF(1) / 2) * f(middle)
        if gain > MPF(10) ** -40:
            true += gain / 18
            positive.append((F(i, 18), F(i + 1, 18)))
    total = CONTEXT.fsum(number(w) * CONTEXT.exp(number(a)) for w, a in found.terms)
    assert abs(total - true) <= MPF(10) ** -40
    assert all(any(fraction(a) <= u and v <= fraction(b) for a, b in found.event) for u, v in positive)  # type: ignore[arg-type]
    assert sum((fraction(b) - fraction(a) for a, b in found.event), F(0)) == F(len(positive), 18)  # type: ignore[arg-type]


def test_a_search_over_the_shifts_that_decide() -> None:
    """Its evidence is the first largest value; progress is the share of the shifts; the limit on time is kept."""
    mechanism, density = ZOO["steps"]
    exact = exact_divergence(mechanism, F(1, 2))
    assert exact is not None
    values = [density.divergence(shift, "0.5") for shift in exact.shifts]
    top = max(values)
    shares: list[float] = []
    found = supremum(exact, F(0), Limits(), shares.append)
    assert found.exceeds and found.peak is not None and found.upper is not None and found.stopped == ""
    assert found.peak.shift == exact.shifts[values.index(top)] and found.peak.index is None
    assert found.peak.event == exact.at(found.peak.shift, Limits()).event
    assert number(found.peak.lower) <= top <= number(found.upper)
    assert found.upper - found.peak.lower <= found.upper / 2**60
    assert (found.bits, found.boxes) == (128, len(exact.shifts))
    assert shares == [(i + 1) / len(exact.shifts) for i in range(len(exact.shifts))]
    asked = 0

    def expired() -> bool:
        nonlocal asked
        asked += 1
        return asked > 2

    part = supremum(exact, F(0), Limits(expired=expired))
    assert part.boxes == 2 and part.upper is None and part.stopped == "the time limit ended the search; raise it"
    few = supremum(exact, number_of(top), Limits(bits=128))
    assert few.upper is None and few.stopped == "128 bits do not resolve it; raise the limit on bits"


def number_of(value: Any) -> Fraction:
    """So near that 128 bits do not tell it from the value."""
    return F(CONTEXT.nstr(value, 55))


def test_meetings_have_a_limit_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = [F(k, 7) for k in range(-3, 4)]
    every = sorted({F(0), F(1)} | {F(k, 7) for k in range(1, 7)})
    assert meetings(edges, len(every)) == every and meetings(edges, len(every) - 1) is None
    assert meetings([F(-9), F(9)], 2) == [0, 1]
    assert meetings([F(0), F(1), F(2)], 2) == [0, 1], "a distance of Δ is the last shift anyway"
    monkeypatch.setattr(audit.steps, "MOST_WORK", 3)
    assert meetings([F(0), F(1, 4), F(1, 2)], 9) == [0, F(1, 4), F(1, 2), 1], "three pairs are near"
    assert meetings([F(0), F(1, 4), F(1, 2), F(5, 4)], 9) is None, "a fourth"


@pytest.mark.parametrize("gamma", ["0.3", "1/2", "0.8", "1", "1/50"])
def test_the_integrand_of_the_staircase_is_positive_on_its_event(gamma: str) -> None:
    density, own = stairs(gamma, "1", steps=12), F(1)
    exact = exact_divergence(Staircase(sensitivity=1, epsilon=own, gamma=gamma), F("0.6"))
    assert exact is not None and tuple(exact.shifts) == (1,)
    ((start, stop),) = exact.at(F(1), Limits()).event
    assert start is None and stop == -point(max(F(gamma), 1 - F(gamma)))
    edge = -max(F(gamma), 1 - F(gamma))
    for x in (edge - F(1, 1000), edge - F(1, 3), edge - F(7, 2)):
        assert value(density, x + 1) > CONTEXT.exp(number("0.6")) * value(density, x)
    assert value(density, edge + F(1001, 1000)) <= CONTEXT.exp(number("0.6")) * value(density, edge + F(1, 1000))
    assert exact.at(F(1, 2), Limits()).event == ()
    assert exact_divergence(Staircase(sensitivity=1, epsilon=own, gamma=gamma), own).at(F(1), Limits()).event == ()  # type: ignore[union-attr]


def value(density: Density, x: Fraction) -> Any:
    return density.piece_at(number(x)).value(number(x))


@pytest.mark.parametrize("own", ["1", "0.01", "30"])
def test_probabilities_of_the_staircase_against_sums(own: str) -> None:
    """Of intervals within steps, across them, and of tails far out."""
    mechanism = Staircase(sensitivity=1, epsilon=own, gamma="0.3")
    q = CONTEXT.exp(-number(own))
    mass = 2 * (number("0.3") + q / (1 - q))

    def beyond(x: Fraction) -> Any:
        if x < F(3, 10):
            return number(F(3, 10) - x) + q / (1 - q)
        step = int((x - F(3, 10)) // 1)
        return q ** (step + 1) * (number(F(3, 10) + step + 1 - x) + q / (1 - q))

    with bits(192):
        masses = StaircaseMasses(mechanism)
        for x in ("0", "0.2", "0.3", "0.31", "1.3", "1.2999", "2", "57.7"):
            right = beyond(F(x)) / mass
            assert contains(masses.probability((point(F(x)), None)), right)
            assert contains(masses.probability((None, point(-F(x)))), right)
            assert contains(masses.probability((None, point(F(x)))), 1 - right)
            assert contains(masses.probability((point(-F(x)), point(F(x)))), 1 - 2 * right)
        assert contains(masses.probability((None, None)), MPF(1))


def test_thousands_of_steps() -> None:
    mechanism = TruncatedStaircase(sensitivity=1, epsilon="0.01", gamma="0.4", T="1999.7")
    exact = StepDivergence.of(mechanism.unit_form, F(1, 100))
    assert exact is not None and len(exact.shifts) < 12
    assert decide(statement(mechanism, "0.01", "1e-12")).verdict is Verdict.REFUTED
