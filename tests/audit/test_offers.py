"""What each family offers: known losses, proofs, what cannot be served, units, speed of the default."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import audit.offers
from audit.decide import decide
from audit.exact import double_at, double_rank
from audit.offers import CLASSIC, OFFERED, Offer, _made, _rounded, _text, offer
from audit.scales import Calibration, Loss, calibrate
from audit.verdict import Limits, Verdict
from mechanisms.calibration_tails import flipped_huber, flipped_huber_sigma
from mechanisms.claims import Direct, Statement, read_statement
from mechanisms.families import FlippedHuber, Gaussian, TruncatedLaplace, TruncatedStaircase, Tulap
from mechanisms.numbers import InputError

F = Fraction
DATA = Path(__file__).parents[1] / "data"
CELLS: list[dict[str, Any]] = json.loads((DATA / "cut-noise.json").read_text(encoding="utf-8"))["cells"]
CUT = ("truncated-laplace", "tulap", "truncated-staircase")
PURE = ("laplace", "staircase")
QUICK = tuple(name for name in OFFERED if name not in ("multi-gaussian", "quasi-gaussian"))


def served(family: str, epsilon: Any, delta: Any, **options: Any) -> Offer:
    found = offer(family, F(epsilon), F(delta), **options)
    assert found is not None and found.family == family
    return found


def loss(found: Offer, which: Loss = "l2") -> float:
    ends = found.losses.l1 if which == "l1" else found.losses.l2
    assert ends.lower <= ends.upper <= ends.lower * (1 + F(1, 10**20))
    return float(ends.upper)


AT_3 = {
    "truncated-staircase": 0.14637,
    "staircase": 0.15267,
    "multi-gaussian": 0.17650,
    "tulap": 0.18687,
    "truncated-laplace": 0.21514,
    "flipped-huber": 0.21605,
    "laplace": 0.22222,
    "quasi-gaussian": 0.53325,
    "gaussian": 0.68226,
    "classic-gaussian": 1.07296,
}


@pytest.mark.parametrize("family", OFFERED)
def test_each_family_at_one_point(family: str) -> None:
    found = served(family, 3, "0.01", candidates=range(1, 4))
    assert loss(found) == pytest.approx(AT_3[family], abs=5e-6)
    assert found.decision.verdict is Verdict.VERIFIED
    assert found.statement.claim.document() == {"kind": "direct", "epsilon": "3", "delta": "0.01"}
    assert decide(found.statement).verdict is Verdict.VERIFIED, "the statement alone is what is proved"
    assert read_statement(found.statement.document()) == found.statement
    assert found.zcdp is (found.support == "unbounded") and (found.tails == "none") is (found.support == "bounded")
    assert all(word in found.scale for word in ("=",))


def test_the_order_of_the_best() -> None:
    """Truncated staircase, endless staircase, then the rest."""
    assert sorted(AT_3, key=AT_3.__getitem__)[:3] == ["truncated-staircase", "staircase", "multi-gaussian"]
    assert set(AT_3) == set(OFFERED)


def test_at_ten_the_staircases_are_far_below_the_mixture() -> None:
    assert loss(served("truncated-staircase", 10, "0.001")) == pytest.approx(8.470e-4, rel=1e-3)
    assert loss(served("multi-gaussian", 10, "0.001", candidates=(1,))) == pytest.approx(0.0337, rel=2e-3)


def check_cell(cell: dict[str, Any]) -> None:
    for family, name, which in (
        ("truncated-laplace", "truncated_laplace_l2", "l2"),
        ("tulap", "tulap_l2", "l2"),
        ("truncated-staircase", "truncated_staircase_l2", "l2"),
        ("truncated-staircase", "truncated_staircase_l1", "l1"),
    ):
        found = served(family, cell["epsilon"], cell["delta"], loss=which)
        assert found.decision.verdict is Verdict.VERIFIED
        assert loss(found, which) == pytest.approx(cell[name], rel=1e-6), (family, cell)


@pytest.mark.parametrize("cell", CELLS[3::19], ids=lambda cell: f"{cell['epsilon']}-{cell['delta']}")
def test_cut_noise_at_some_cells(cell: dict[str, Any]) -> None:
    check_cell(cell)


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell['epsilon']}-{cell['delta']}")
def test_cut_noise_at_every_cell(cell: dict[str, Any]) -> None:
    check_cell(cell)


@pytest.mark.parametrize(("epsilon", "delta"), [("3", "0.01"), ("0.5", "1e-5"), ("10", "0.25"), ("1", "1e-12")])
@pytest.mark.parametrize("family", CUT)
def test_the_support_ends_at_the_first_double_that_holds(family: str, epsilon: str, delta: str) -> None:
    found = served(family, epsilon, delta)
    member = found.statement.mechanism
    assert isinstance(member, (TruncatedLaplace, Tulap, TruncatedStaircase))
    name = "A" if isinstance(member, TruncatedLaplace) else "T"
    end = getattr(member, name)
    shorter = double_at(double_rank(float(end)) - 1)
    smaller = type(member)(**{**_parameters(member), name: F(shorter)})
    assert decide(Statement(smaller, found.statement.claim)).verdict is Verdict.REFUTED


def _parameters(member: Any) -> dict[str, Any]:
    names = [name for name in member.document() if name != "family"]
    return {name: getattr(member, name) for name in names}


@pytest.mark.parametrize("family", QUICK)
def test_only_the_ratio_to_the_sensitivity_matters(family: str) -> None:
    one, other = served(family, 1, "0.01"), served(family, 1, "0.01", sensitivity=F(5, 2))
    assert other.statement.mechanism.sensitivity == F(5, 2) and other.decision.verdict is Verdict.VERIFIED
    assert loss(other, "l1") == pytest.approx(2.5 * loss(one, "l1"), rel=1e-6)
    assert loss(other) == pytest.approx(6.25 * loss(one), rel=1e-6)


@pytest.mark.parametrize("family", ["truncated-staircase", "staircase", "flipped-huber"])
def test_parameters_are_chosen_for_the_loss(family: str) -> None:
    absolute, square = served(family, 3, "0.01", loss="l1"), served(family, 3, "0.01", loss="l2")
    assert loss(absolute, "l1") < loss(square, "l1") and loss(square) < loss(absolute)


def test_the_classic_formula_is_decided_like_any_claim() -> None:
    assert served(CLASSIC, "0.5", "1e-5").decision.verdict is Verdict.VERIFIED
    found = served(CLASSIC, 10, "0.001")
    assert found.decision.verdict is Verdict.REFUTED and found.decision.witness is not None
    assert isinstance(found.statement.mechanism, Gaussian)
    sigma = float(found.statement.mechanism.sigma)
    assert sigma == pytest.approx((2 * 7.130898830) ** 0.5 / 10, rel=1e-9)  # ln 1250


def test_what_cannot_be_served() -> None:
    for family in OFFERED:
        found = offer(family, F(1), F(0))
        assert (found is None) is (family not in PURE), family
        if found is not None:
            assert found.decision.verdict is Verdict.VERIFIED and found.statement.claim.document()["delta"] == "0"
    assert all(offer(family, F(0), F(1, 100)) is None for family in (*CUT, *PURE, "flipped-huber", CLASSIC))
    assert all(offer(family, F(1), F(1, 2)) is None for family in CUT)
    for family in ("tulap", "truncated-staircase"):
        assert offer(family, F(1, 10**4), F(1, 10**9)) is None, "too many steps"


@pytest.mark.parametrize("family", QUICK)
@pytest.mark.parametrize(
    ("epsilon", "delta"), [("600", "1e-300"), ("1e-3", "0.3"), ("50", "0.49"), ("0.02", "1e-9"), ("2", "1e-30")]
)
def test_the_corners(family: str, epsilon: str, delta: str) -> None:
    found = offer(family, F(epsilon), F(delta))
    assert found is not None
    if family != CLASSIC:
        assert found.decision.verdict is Verdict.VERIFIED


@pytest.mark.parametrize("family", OFFERED)
def test_what_is_said_of_the_noise(family: str) -> None:
    found = served(family, 3, "0.01", candidates=[1])
    kinds = {"laplace": "exponential", "staircase": "exponential"} | dict.fromkeys(CUT, "none")
    bounded = family in CUT
    assert (found.support, found.tails) == ("bounded" if bounded else "unbounded", kinds.get(family, "gaussian"))
    assert found.zcdp is not bounded
    names = {"laplace": "b", "staircase": "gamma", "tulap": "T", "truncated-laplace": "b, A"}
    names |= {"flipped-huber": "alpha, sigma", "truncated-staircase": "gamma, T", "multi-gaussian": "sigma, K"}
    text = found.scale.removesuffix(" (delta = 0)")
    assert (text != found.scale) == (family in PURE)
    assert ", ".join(part.split(" = ")[0] for part in text.split(", ")) == names.get(family, "sigma")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (F(1, 4), "0.25"),
        (F(7), "7"),
        (F("0.0123456789"), "0.0123456789"),  # 12 characters
        (F("0.01234567891"), "0.01234567891"),
        (F("0.012345678901234"), "0.0123456789013"),
        (F(1, 3), "1/3"),
        (F(1, 1234567891), "1/1234567891"),  # 12 characters
        (F(10**7 + 1, 3 * 10**7), "0.333333366667"),
        (F(1234567890123), "1234567890130"),
        (F(2) ** -60, "8.67361737989e-19"),
    ],
)
def test_scales_for_people_are_rounded_up(value: Fraction, text: str) -> None:
    assert _text(value) == text and F(text) >= value


@pytest.mark.parametrize("family", ["multi-gaussian", "gaussian", "quasi-gaussian"])
def test_a_scale_is_calibrated_for_what_was_asked(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def recorded(name: str, claim: Direct, **options: Any) -> Calibration:
        asked.append({"family": name, "claim": claim, **options})
        return calibrate(name, claim, **options)

    monkeypatch.setattr(audit.offers, "calibrate", recorded)
    limits = Limits(boxes=19_999)
    found = served(family, 3, "0.1", loss="l1", candidates=range(1, 2), sensitivity=F(2), limits=limits)
    candidates = [1] if family == "multi-gaussian" else None
    claim = Direct(epsilon=3, delta="0.1")
    options = {"sensitivity": 2, "candidates": candidates, "loss": "l1", "limits": limits}
    assert asked == [{"family": family, "claim": claim, **options}]
    served(family, 3, "0.1", candidates=[1])
    assert asked[1]["loss"] == "l2", "unless another is asked for"
    assert found.statement.claim == claim and found.statement.mechanism.sensitivity == 2


def test_an_offer_whose_claim_is_refuted_is_none() -> None:
    claim = Direct(epsilon=1, delta="0.1")
    for sigma, there in (("2", True), ("0.1", False)):
        statement = Statement(Gaussian(sensitivity=1, sigma=sigma), claim)
        made = _made("gaussian", (statement, decide(statement)), "words", "unbounded", "gaussian", True)
        assert (made is not None) is there
        assert made is None or (made.statement, made.scale, made.family) == (statement, "words", "gaussian")
    assert _made("gaussian", None, "", "", "", None) is None


def test_refusals() -> None:
    expected = f"family: got cauchy, expected one of {', '.join(OFFERED)}"
    with pytest.raises(InputError, match=f"^{expected}$"):
        offer("cauchy", F(1), F(1, 100))
    with pytest.raises(InputError, match="delta"):
        offer("laplace", F(1), F(1))


@pytest.mark.parametrize("family", ["tulap", "truncated-staircase", "laplace", "flipped-huber", CLASSIC])
def test_no_time_is_inconclusive(family: str) -> None:
    found = served(family, 1, "0.01", limits=Limits(expired=lambda: True))
    assert found.decision.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("family", ["flipped-huber", "truncated-laplace", "tulap", "truncated-staircase"])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-60"), ("3", "0.01")])
def test_the_scale_that_is_shown_is_no_shorter_than_the_one_that_was_proved(
    family: str, epsilon: str, delta: str
) -> None:
    """Whoever copies it gets noise that keeps the promise."""
    found = offer(family, Fraction(epsilon), Fraction(delta))
    assert found is not None and found.decision.verdict is Verdict.VERIFIED
    shown = dict(part.split(" = ") for part in found.scale.split(", "))
    for name in {"T", "A", "alpha", "sigma"} & set(shown):
        exact = getattr(found.statement.mechanism, name)
        assert exact <= Fraction(shown[name]) <= exact * (1 + Fraction(1, 10**10))


def test_the_flipped_huber_is_hardly_longer_than_it_was_proposed() -> None:
    member = served("flipped-huber", 3, "0.01").statement.mechanism
    ratio, _ = flipped_huber(3.0, 0.01, 2)
    proposed = F(flipped_huber_sigma(float(_rounded(ratio)), 3.0, 0.01))
    assert isinstance(member, FlippedHuber) and proposed < member.sigma < proposed * (1 + F(1, 2**46))


def test_below_the_range_of_floats_cut_noise_is_not_offered() -> None:
    for family in ("tulap", "truncated-staircase", "truncated-laplace"):
        assert offer(family, Fraction(3), Fraction(1, 10**310)) is None
