"""Conservative scales: verified as they stand, with the next smaller one refuted."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

import audit.scales
from audit.decide import decide, decide_from
from audit.exact import double_at, double_rank
from audit.losses import enclose_losses
from audit.scales import (
    Calibration,
    Loss,
    _cannot_do_better,
    _note,
    _polish,
    calibrate,
    make_lattice,
    searched_claim,
    template,
)
from audit.verdict import Decision, Expired, Limits, Verdict
from mechanisms.calibration import float_sigma
from mechanisms.claims import Claim, Direct, Statement, Theorem32, Theorem42
from mechanisms.families import Gaussian, MultiGaussian, QuasiGaussian, ScaledFamily
from mechanisms.numbers import InputError, read_real
from tests.audit.support import gaussian, multi_gaussian
from tests.soundness.referee import MPF, number


def sigma(found: Calibration) -> Fraction:
    assert isinstance(found.statement.mechanism, ScaledFamily)
    return found.statement.mechanism.sigma


def at(found: Calibration, scale: Fraction) -> Verdict:
    mechanism = found.statement.mechanism
    assert isinstance(mechanism, ScaledFamily)
    return decide(Statement(mechanism.with_sigma(scale), found.statement.claim)).verdict


SEEN: list[tuple[str, Claim, int | None, str]] = [
    ("multi-gaussian", Direct(epsilon="1", delta="0.01"), 4, "0x1.567428b65f04ep-2"),
    ("multi-gaussian", Direct(epsilon="3", delta="0.01"), 2, "0x1.0bccaf8e06b72p-2"),
    ("multi-gaussian", Direct(epsilon="10", delta="5e-6"), 4, "0x1.7a483aa27ea8bp-3"),
    ("quasi-gaussian", Theorem42(epsilon="2", delta="1e-5"), None, "0x1.ee8d97078e168p+0"),
    ("quasi-gaussian", Theorem42(epsilon="10", delta="0.25"), None, "0x1.7a5e3a52e877fp-3"),
    ("gaussian", Direct(epsilon="1", delta="1e-6"), None, "0x1.0e61239070a9dp+2"),
    ("gaussian", Direct(epsilon="0.1", delta="1e-5"), None, "0x1.ebfe390e7084ap+4"),
    ("gaussian", Direct(epsilon="1", delta="1e-300"), None, "0x1.26ec8a28efb66p+5"),
    ("gaussian", Direct(epsilon="710", delta="1e-6"), None, "0x1.ecb6504c77271p-6"),
    ("gaussian", Direct(epsilon="0", delta="1e-6"), None, "0x1.859791f21869bp+18"),
]


@pytest.mark.parametrize(("family", "claim", "K", "expected"), SEEN)
def test_scales_that_must_be_seen(family: str, claim: Claim, K: int | None, expected: str) -> None:
    found = calibrate(family, claim, K=K)
    value = float.fromhex(expected)
    assert sigma(found) == Fraction(value)
    assert found.decision.verdict is Verdict.VERIFIED and found.decision.verdict is at(found, sigma(found))
    assert found.adjacent and found.refuted_below == Fraction(math.nextafter(value, 0))
    assert found.refutation is not None and found.refutation.verdict is Verdict.REFUTED
    assert at(found, found.refuted_below) is Verdict.REFUTED
    assert found.float_sigma == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("sensitivity", ["2.5", "1/3"])
def test_a_scale_of_another_sensitivity_is_the_smallest_double_again(sensitivity: str) -> None:
    unit = Fraction(sensitivity)
    for family, claim, K, expected in (SEEN[1], SEEN[5]):
        found = calibrate(family, claim, K=K, sensitivity=unit)
        assert found.adjacent and found.decision.verdict is Verdict.VERIFIED
        assert float(sigma(found)) == pytest.approx(float.fromhex(expected) * float(unit), rel=3e-16)
        assert found.refuted_below is not None and at(found, found.refuted_below) is Verdict.REFUTED


def test_the_direct_scale_of_the_quasi_gaussian_is_smaller() -> None:
    found = calibrate("quasi-gaussian", Direct(epsilon="10", delta="0.25"))
    assert f"{float(sigma(found)):.8f}" == "0.14895731" and found.adjacent and "local" in found.note


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("0.0109677798", "1.54981832e-11"), ("1e-9", "1e-30"), ("0.0012", "1e-200")]
)
def test_a_gaussian_scale_is_the_smallest_double_for_a_small_epsilon(epsilon: str, delta: str) -> None:
    """Float calibration once ran off into the tail, to a scale a hundred million times too large."""
    found = calibrate("gaussian", Direct(epsilon=epsilon, delta=delta))
    assert found.adjacent and found.decision.verdict is Verdict.VERIFIED
    assert abs(found.float_sigma / float(sigma(found)) - 1) < 1e-9


@pytest.mark.parametrize("factor", [1e-3, 1e8])
def test_a_proposal_far_off_is_made_good(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = Direct(epsilon="1", delta="1e-6")
    right, seeds = sigma(calibrate("gaussian", claim)), list[int]()

    def recorded(statement: Statement, limits: Limits, **options: Any) -> Decision:
        seeds.append(len(options["seeds"]))
        return decide_from(statement, limits, **options)

    monkeypatch.setattr(audit.scales, "decide_from", recorded)
    monkeypatch.setattr(audit.scales, "float_sigma", lambda member, claim, check=None: float(right) * factor)
    found = calibrate("gaussian", claim)
    assert found.adjacent and sigma(found) == right and max(seeds) == 4, "the last ones"


@pytest.mark.parametrize(("limit", "value"), [("COSTLY_LINES", 0), ("COSTLY_THRESHOLD", 1), ("COSTLY_LINES", 1)])
def test_a_costly_pair_is_decided_far_apart_first(limit: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than so many lines, or a threshold below that."""
    tried: list[float] = []

    def recorded(statement: Statement, limits: Limits, **options: Any) -> Decision:
        tried.append(float(statement.mechanism.sigma))  # type: ignore[attr-defined]
        return decide_from(statement, limits, **options)

    monkeypatch.setattr(audit.scales, "decide_from", recorded)
    monkeypatch.setattr(audit.scales, limit, value)
    tight = float(sigma(calibrate("gaussian", Direct(epsilon="1", delta="0.1"))))
    expected = [1, 1] if (limit, value) == ("COSTLY_LINES", 1) else [1.01, 0.99]
    assert tried[:2] == pytest.approx([tight * factor for factor in expected], rel=1e-9)


@pytest.mark.parametrize(("decimals", "expected"), [(2, "0.34"), (5, "0.33443"), (12, None)])
def test_decimals_are_rounded_up(decimals: int, expected: str | None) -> None:
    found = calibrate("multi-gaussian", SEEN[0][1], K=4, decimals=decimals)
    smallest = float.fromhex(SEEN[0][3])
    assert found.adjacent and found.decision.verdict is Verdict.VERIFIED
    assert smallest <= sigma(found) < smallest + 10.0**-decimals
    assert expected is None or sigma(found) == Fraction(float(expected))
    assert found.refuted_below is not None
    assert float(sigma(found) - found.refuted_below) == pytest.approx(10.0**-decimals, rel=1e-3)


@pytest.mark.parametrize(("delta", "K"), [("0.01", 4), pytest.param("5e-7", 15, marks=pytest.mark.slow)])
def test_the_scale_of_a_grid_claim_holds_on_the_grid_and_fails_a_millionth_below(delta: str, K: int) -> None:
    claim = Theorem32(epsilon="1", delta=delta, eta="0.01")
    found = calibrate("multi-gaussian", claim, K=K)
    assert found.decision.verdict is Verdict.VERIFIED and found.statement.claim == claim
    mechanism = found.statement.mechanism
    assert isinstance(mechanism, ScaledFamily)
    smaller = decide(Statement(mechanism.with_sigma(mechanism.sigma * (1 - Fraction(1, 10**6))), claim))
    assert smaller.verdict is Verdict.REFUTED and smaller.witness is not None
    assert smaller.witness.grid_index is not None and smaller.witness.grid_size is not None
    assert smaller.witness.shift * smaller.witness.grid_size == smaller.witness.grid_index
    assert searched_claim(claim) == Direct(epsilon="1", delta=claim.threshold)
    assert searched_claim(SEEN[0][1]) is SEEN[0][1]


VERIFIED, REFUTED, INCONCLUSIVE = Verdict.VERIFIED, Verdict.REFUTED, Verdict.INCONCLUSIVE
MULTI = MultiGaussian(sensitivity=1, sigma=1, K=2, epsilon=1)
QUASI = QuasiGaussian(sensitivity=1, sigma=1, epsilon=1)
DIRECT, GRID = Direct(epsilon=1, delta="0.1"), Theorem32(epsilon=1, delta="0.1", eta="0.1")
SMALLEST = "the smallest double that holds: "
LARGER = "a larger scale keeps the guarantee (Lemma 3.4)"
IMPLIED = "sup D ≤ (1−η)δ is verified over all shifts, which implies the grid condition"
LOCAL = "that no smaller scale holds is seen but not proved for this family (the statement is local)"
NOTHING = "no smaller scale was refuted: nothing is proved of how small the scale could be"
PLACES = "decimal of 3 places"


@pytest.mark.parametrize(
    ("member", "claim", "decimals", "adjacent", "refuted", "note"),
    [
        (MULTI, DIRECT, None, False, None, NOTHING),
        (MULTI, DIRECT, None, True, "1/2", f"{SMALLEST}the double below is refuted, and {LARGER}"),
        (
            MULTI,
            DIRECT,
            3,
            True,
            "1/2",
            f"the smallest {PLACES} that holds: the {PLACES} below is refuted, and {LARGER}",
        ),
        (MULTI, DIRECT, None, False, "1/3", f"optimal to that gap: 0.33333333333333331 below is refuted, and {LARGER}"),
        (MULTI, GRID, None, True, "1/2", f"the double below is refuted; {IMPLIED}"),
        (QUASI, DIRECT, None, True, "1/2", f"the double below is refuted; {LOCAL}"),
        (
            QUASI,
            Theorem42(epsilon=1, delta="0.1"),
            None,
            True,
            "1/2",
            f"{SMALLEST}the double below is refuted, and Lemmas 4.3 and 4.5",
        ),
    ],
)
def test_what_is_said_of_a_scale(
    member: ScaledFamily, claim: Claim, decimals: int | None, adjacent: bool, refuted: str | None, note: str
) -> None:
    below = None if refuted is None else Fraction(refuted)
    assert _note(member, claim, make_lattice(decimals), adjacent, below) == note


def test_the_note_of_a_calibration_is_that_of_its_pair() -> None:
    found = calibrate("gaussian", Direct(epsilon=1, delta="0.1"))
    assert found.adjacent and found.note.startswith(SMALLEST)


def test_a_wider_pair_is_not_said_to_be_of_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scale that is verified, and one far below that is refuted; what is between costs too much."""

    def decide_from(statement: Statement, limits: Limits, **options: Any) -> Decision:
        scale = statement.mechanism.sigma  # type: ignore[attr-defined]
        verdict = INCONCLUSIVE
        if not refuted <= scale <= verified:
            verdict = REFUTED if scale < refuted else VERIFIED
        return Decision(verdict=verdict, reason="", bits=128, boxes=0)

    monkeypatch.setattr(audit.scales, "decide_from", decide_from)
    tight = float_sigma(Gaussian(sensitivity=1, sigma=1), Direct(epsilon=1, delta="0.1"))
    refuted, verified = Fraction(tight) * (1 - Fraction(1, 10**10)), Fraction(tight) * (1 + Fraction(1, 10**10))
    found = calibrate("gaussian", Direct(epsilon=1, delta="0.1"))
    assert found.decision.verdict is VERIFIED and found.refuted_below is not None and not found.adjacent
    assert found.refuted_below < refuted and verified < sigma(found) < verified * (1 + Fraction(1, 10**8))
    assert found.note == f"optimal to that gap: {float(found.refuted_below):.17g} below is refuted, and {LARGER}"
    verified *= 2
    found = calibrate("gaussian", Direct(epsilon=1, delta="0.1"))
    assert found.decision.verdict is INCONCLUSIVE and not found.adjacent
    assert found.refuted_below is not None and found.refuted_below < refuted


def test_every_other_k_is_excluded_or_calibrated_too(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = Direct(epsilon=3, delta="0.01")
    found = calibrate("multi-gaussian", claim, candidates=[1, 2])
    assert [(trial.K, trial.excluded) for trial in found.tried] == [(1, True), (2, True)]
    assert all(trial.float_sigma > 0 and trial.float_loss > 0 for trial in found.tried)
    chosen = getattr(found.statement.mechanism, "K", None)
    member = MultiGaussian(sensitivity=1, sigma=1, K=3 - (chosen or 0), epsilon=3)
    scale, bound = float_sigma(member, claim), found.losses.l2.upper
    assert _cannot_do_better(member, claim, scale, bound, "l2", Limits())
    assert not _cannot_do_better(member, claim, scale, bound * 9, "l2", Limits()), "its loss is smaller"
    assert not _cannot_do_better(member, claim, scale * 1.01, bound, "l2", Limits()), "the claim holds there"
    monkeypatch.setattr(audit.scales, "_cannot_do_better", lambda *arguments: False)
    monkeypatch.setattr(audit.scales, "NEARLY", 9.0)
    again = calibrate("multi-gaussian", claim, candidates=[1, 2])
    assert again.statement == found.statement
    assert [trial.K for trial in again.tried if trial.excluded] == [chosen]


@pytest.mark.parametrize("loss", ["l1", "l2"])
def test_losses_are_compared_in_the_norm_that_was_asked(loss: Loss) -> None:
    claim, shares = Direct(epsilon=3, delta="0.01"), list[float]()
    found = calibrate("multi-gaussian", claim, candidates=[1, 2], loss=loss, progress=shares.append)
    assert shares == [0, 1 / 6, 2 / 3, 5 / 6]
    for trial in found.tried:
        noise = MultiGaussian(sensitivity=1, sigma=trial.float_sigma, K=trial.K, epsilon=3)
        own = enclose_losses(noise)
        assert trial.float_loss == pytest.approx(float((own.l1 if loss == "l1" else own.l2).upper), rel=1e-9)
        bound = (own.l1 if loss == "l1" else own.l2).upper
        for share, better in (("0.999999", True), ("1.000001", False)):
            none_better = _cannot_do_better(noise, claim, trial.float_sigma, bound * Fraction(share), loss, Limits())
            assert none_better is better
    assert found.losses == enclose_losses(found.statement.mechanism)


@pytest.mark.parametrize(("family", "K", "places"), [("gaussian", None, 20), ("multi-gaussian", 4, 15)])
def test_a_proposal_is_polished_below_the_spacing_of_doubles(family: str, K: int | None, places: int) -> None:
    """So that D at the worst shift is δ; floats see that shift to some digits, and D the square of their error."""
    claim = Direct(epsilon=1, delta="0.01")
    member = template(family, claim, Fraction(1), K)
    proposal = Fraction(float_sigma(member, claim))
    found = _polish(member, claim, proposal, Limits())
    density = gaussian(str(found))[1] if K is None else multi_gaussian(str(found), K, "1")[1]
    top = density.divergence(1, "1") if K is None else density.supremum("1")[1]
    assert abs(top / number("0.01") - 1) < MPF(10) ** -places
    if K is None:
        again = _polish(member, claim, proposal * (1 + Fraction(1, 10**8)), Limits())
        assert abs(again / found - 1) < Fraction(1, 10**18)
    assert _polish(member, claim, proposal * Fraction(101, 100), Limits()) != found
    far = proposal * 3
    assert _polish(member, claim, far, Limits()) == far, "what is too far off is left as it is"
    assert _polish(member, claim, proposal, Limits(expired=lambda: True)) == proposal
    theorem = Theorem42(epsilon=1, delta="0.1")
    assert _polish(template("quasi-gaussian", theorem, Fraction(1), None), theorem, proposal, Limits()) == proposal


def test_a_scale_of_which_no_smaller_one_was_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit.scales, "float_sigma", lambda member, claim, check=None: 1e9)
    monkeypatch.setattr(audit.scales, "_polish", lambda member, claim, proposal, limits: proposal)
    monkeypatch.setattr(audit.scales, "MAX_STEPS", 5)
    found = calibrate("gaussian", Direct(epsilon=1, delta="1e-6"))
    assert found.decision.verdict is VERIFIED and found.refuted_below is None and found.refutation is None
    assert found.note == NOTHING and not found.adjacent


@pytest.mark.parametrize("refuted_from", [1, 2**8, 2**24, 2**32, 2**40])
def test_the_pair_of_a_grid_claim_is_that_of_the_grid(refuted_from: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All over [0, Δ] the next smaller scale is refuted, on the grid one so many doubles below."""
    claim, limits = Theorem32(epsilon=1, delta="0.1", eta="0.1"), Limits(boxes=19_999)
    tight = float_sigma(template("gaussian", claim, Fraction(1), None), searched_claim(claim))
    start = double_rank(tight)
    seen: list[tuple[Any, ...]] = []

    def decide_from(statement: Statement, given: Limits, **options: Any) -> Decision:
        below = start - double_rank(float(statement.mechanism.sigma))  # type: ignore[attr-defined]
        fails = below >= (refuted_from if statement.claim is claim else 1)
        assert given is limits and options["enclose_refuted"] is False and options["seeds"] is not None
        return Decision(verdict=REFUTED if fails else VERIFIED, reason="", bits=128, boxes=below)

    def decide(*arguments: Any) -> Decision:
        seen.append(arguments)
        return Decision(verdict=VERIFIED, reason="grid", bits=128, boxes=0)

    def progress(share: float) -> None:
        raise AssertionError("the decision is not made here")

    monkeypatch.setattr(audit.scales, "decide_from", decide_from)
    monkeypatch.setattr(audit.scales, "decide", decide)
    monkeypatch.setattr(audit.scales, "_polish", lambda member, claim, proposal, limits: proposal)
    monkeypatch.setattr(audit.scales, "float_sigma", lambda member, claim, check=None: tight)
    found = calibrate("gaussian", claim, limits=limits, progress=progress)
    assert seen == [(found.statement, limits, progress)] and found.decision.reason == "grid"
    assert sigma(found) == Fraction(tight) and found.adjacent is (refuted_from == 1)
    if refuted_from > 2**32:
        assert found.refuted_below is None and found.refutation is None
    else:
        assert found.refuted_below == Fraction(double_at(start - refuted_from))
        assert found.refutation is not None and found.refutation.boxes == refuted_from


def test_a_choice_of_k_has_a_time_limit() -> None:
    with pytest.raises(Expired):
        calibrate("multi-gaussian", DIRECT, candidates=[1, 2], limits=Limits(expired=lambda: True))


def test_the_k_is_chosen_in_the_unit_of_the_query() -> None:
    claim = Direct(epsilon=1, delta="0.01")
    wide = calibrate("multi-gaussian", claim, candidates=[2, 1], sensitivity=Fraction(5, 2))
    plain = calibrate("multi-gaussian", claim, candidates=[1, 2])
    assert wide.statement.mechanism.sensitivity == Fraction(5, 2) and wide.decision.verdict is Verdict.VERIFIED
    assert float(sigma(wide)) == pytest.approx(2.5 * float(sigma(plain)), rel=1e-14)
    assert [trial.K for trial in wide.tried] == [1, 2]


def test_the_k_of_least_loss_is_chosen() -> None:
    claim = Direct(epsilon="1", delta="0.01")
    found = calibrate("multi-gaussian", claim, candidates=range(1, 4))
    losses = {k: calibrate("multi-gaussian", claim, K=k).losses.l2.upper for k in range(1, 4)}
    best = min(losses, key=losses.__getitem__)
    assert getattr(found.statement.mechanism, "K", None) == best
    assert [(trial.K, trial.excluded) for trial in found.tried] == [(k, True) for k in range(1, 4)]
    assert found.losses.l2.upper == losses[best]


@pytest.mark.parametrize(
    ("where", "arguments"),
    [
        ("delta", {"family": "gaussian", "claim": Direct(epsilon="1", delta="0")}),
        ("family", {"family": "declared", "claim": Direct(epsilon="1", delta="0.1")}),
        ("family", {"family": "no-such", "claim": Direct(epsilon="1", delta="0.1")}),
        ("K", {"family": "multi-gaussian", "claim": Direct(epsilon="1", delta="0.1")}),
        ("K", {"family": "gaussian", "claim": Direct(epsilon="1", delta="0.1"), "K": 2}),
        ("K", {"family": "gaussian", "claim": Direct(epsilon="1", delta="0.1"), "candidates": [1]}),
        ("K", {"family": "multi-gaussian", "claim": Direct(epsilon="1", delta="0.1"), "candidates": []}),
        ("decimals", {"family": "gaussian", "claim": Direct(epsilon="1", delta="0.1"), "decimals": 16}),
        ("claim.kind", {"family": "gaussian", "claim": Theorem42(epsilon="1", delta="0.1")}),
    ],
)
def test_what_cannot_be_calibrated_is_refused(where: str, arguments: dict[str, object]) -> None:
    with pytest.raises(InputError) as caught:
        calibrate(**arguments)  # type: ignore[arg-type]
    assert caught.value.where == where


def test_a_refusal_names_the_families_with_a_scale() -> None:
    with pytest.raises(InputError, match="K: got nothing, expected a whole number, or auto"):
        calibrate("multi-gaussian", DIRECT)
    with pytest.raises(InputError, match=r"family: got laplace, expected one of .*multi-gaussian, quasi-gaussian"):
        calibrate("laplace", DIRECT)


def test_limits_leave_it_inconclusive() -> None:
    found = calibrate("multi-gaussian", Direct(epsilon="1", delta="0.01"), K=4, limits=Limits(boxes=1))
    assert found.decision.verdict is Verdict.INCONCLUSIVE and not found.adjacent
    assert found.refuted_below is None or at(found, found.refuted_below) is Verdict.REFUTED


def test_a_calibration_has_a_time_limit() -> None:
    with pytest.raises(Expired):
        calibrate("multi-gaussian", Direct(epsilon="1", delta="0.01"), K=4, limits=Limits(expired=lambda: True))


def test_lattices_by_their_names() -> None:
    assert make_lattice(3).value(make_lattice(3).rank_at_least(read_real("0.1234", ""))) == Fraction(0.124)
    assert make_lattice(None).name == "double"


def test_a_scale_that_is_never_verified_is_inconclusive_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proposal far too small: the search goes up by doublings of one step and ends long before it gets there."""
    monkeypatch.setattr(audit.scales, "float_sigma", lambda member, claim, check=None: 1.0)
    monkeypatch.setattr(audit.scales, "_polish", lambda member, claim, proposal, limits: proposal)
    monkeypatch.setattr(audit.scales, "MAX_STEPS", 5)
    found = calibrate("gaussian", Direct(epsilon="1", delta="1e-6"))
    assert found.decision.verdict is Verdict.INCONCLUSIVE and not found.adjacent
    assert "no scale near the float proposal" in found.decision.reason
