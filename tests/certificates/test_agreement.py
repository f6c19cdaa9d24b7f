"""Agreement: what a certificate records, edited in one place and signed again, against the re-proof."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import certificates.agreement
import certificates.verify
from audit.decide import decide
from audit.verdict import Verdict
from mechanisms.numbers import read_real

SIGMA = "0x1.0e61239070a9dp+2"
RAISED = "0x1.0e61239070a9ep+2"
LOWERED = "0x1.0e61239070a9cp+2"


# The statement edited, with or without a new signature.


def _sigma(workshop: Any, sigma: str, everywhere: bool) -> Any:
    text = workshop.sound().decode()
    return workshop.verify(text.replace(f'"sigma": "{SIGMA}"', f'"sigma": "{sigma}"', -1 if everywhere else 1).encode())


@pytest.mark.parametrize("everywhere", [False, True])
def test_last_digit_of_sigma_raised(workshop: Any, everywhere: bool) -> None:
    outcome = _sigma(workshop, RAISED, everywhere)
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("verified", "invalid", 4)


@pytest.mark.parametrize("everywhere", [False, True])
def test_last_digit_of_sigma_lowered(workshop: Any, everywhere: bool) -> None:
    outcome = _sigma(workshop, LOWERED, everywhere)
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("refuted", "invalid", 1)
    assert outcome.reason.startswith("refuted: ")


def test_last_digit_of_sigma_raised_and_signed_again(workshop: Any) -> None:
    """The other figures nearly fit; but the signature counts, and says that they are of this statement."""
    outcome = workshop.verify(workshop.with_field("statement.mechanism.sigma", RAISED))
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("verified", "trusted", 1)
    assert "scales.sigma" in outcome.reason


@pytest.mark.parametrize(("epsilon", "code"), [("1.0000001", 4), ("0.9999999", 1), ("2", 1)])
def test_epsilon_edited(workshop: Any, epsilon: str, code: int) -> None:
    document = workshop.document()
    document["signed"]["statement"]["claim"]["epsilon"] = epsilon
    outcome = workshop.verify(json.dumps(document).encode())
    assert outcome.exit_code in (code, 1)
    assert outcome.signature == "invalid"


def test_statement_of_another_certificate(workshop: Any) -> None:
    other = workshop.document("laplace")["signed"]["statement"]
    outcome = workshop.verify(workshop.with_field("statement", other))
    assert (outcome.verdict, outcome.exit_code) == ("verified", 1)


def test_false_claim_with_the_verdict_verified(workshop: Any) -> None:
    outcome = workshop.verify(workshop.with_field("verdict", "verified", "refuted"))
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("refuted", "trusted", 1)


@pytest.mark.parametrize("verdict", ["refuted", "inconclusive"])
def test_verdict_edited(workshop: Any, verdict: str) -> None:
    outcome = workshop.verify(workshop.with_field("verdict", verdict))
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("verified", "trusted", 1)
    assert f"the certificate records {verdict}, the re-proof says verified" in outcome.reason


# Evidence edited and signed again by a trusted key: exit code 1.

EDITED: dict[str, tuple[str, str, Any]] = {
    "sup_delta_looser": ("gaussian", "evidence.sup_delta.upper", "1.1e-6"),
    "sup_delta_tighter": ("gaussian", "evidence.sup_delta.upper", "9.99e-7"),
    "sup_delta_over_the_threshold": ("gaussian", "evidence.sup_delta.upper", "1.0000000001e-6"),
    "sup_delta_lower_end_looser": ("gaussian", "evidence.sup_delta.lower", "0"),
    "sup_delta_lower_end_tighter": ("gaussian", "evidence.sup_delta.lower", "1.00001e-6"),
    "sup_delta_missing": ("gaussian", "evidence.sup_delta", None),
    "sup_delta_where_none_is_proved": ("theorem-4.2", "evidence.sup_delta", {"lower": "0", "upper": "1e-5"}),
    "worst_shift_outside": ("gaussian", "evidence.worst_shift", "1.5"),
    "worst_shift_negative": ("gaussian", "evidence.worst_shift", "-1"),
    "worst_shift_where_d_is_small": ("gaussian", "evidence.worst_shift", "0.5"),
    "worst_shift_beside_the_peak": ("peaked", "evidence.worst_shift", "1.9"),
    "worst_shift_missing": ("gaussian", "evidence.worst_shift", None),
    "worst_shift_where_none_is_proved": ("theorem-4.2", "evidence.worst_shift", "1"),
    "worst_shift_outside_where_none_is_proved": ("theorem-4.2", "evidence.worst_shift", "2"),
    "worst_shift_off_the_grid": ("theorem-3.2", "evidence.worst_shift", "0x1.fffffffffffffp-1"),
    "slack": ("gaussian", "evidence.slack.upper", "1e-7"),
    "slack_missing": ("gaussian", "evidence.slack", None),
    "slack_where_there_is_none": ("theorem-4.2", "evidence.slack", {"lower": "0", "upper": "1e-5"}),
    "witness_of_a_true_claim": (
        "gaussian", "evidence.witness",
        {"shift": "1", "event": [[None, "-18"]], "probability_shifted": {"lower": "0.5", "upper": "0.5"},
         "bound": {"lower": "0.4", "upper": "0.4"}, "grid_index": None, "grid_size": None},
    ),
    "witness_missing": ("refuted", "evidence.witness", None),
    "conditions_missing": ("theorem-4.2", "evidence.conditions", []),
    "condition_where_there_is_none": (
        "gaussian", "evidence.conditions",
        [{"name": "(4a)", "demand": "any", "value": {"lower": "0", "upper": "1"}, "verdict": "verified"}],
    ),
    "condition_renamed": ("theorem-4.2", "evidence.conditions.0.name", "(4b)"),
    "condition_demands_less": ("theorem-4.2", "evidence.conditions.1.demand", "any"),
    "condition_verdict": ("theorem-4.2", "evidence.conditions.0.verdict", "refuted"),
    "condition_value_looser": ("theorem-4.2", "evidence.conditions.1.value.upper", "0.2"),
    "condition_value_tighter": ("theorem-4.2", "evidence.conditions.1.value.lower", "0.1035126"),
    "condition_value_of_another_sign": ("theorem-4.2", "evidence.conditions.0.value.lower", "-1e-17"),
    "refuted_below_is_sigma": ("gaussian", "evidence.refuted_below", SIGMA),
    "refuted_below_is_larger": ("gaussian", "evidence.refuted_below", "5"),
    "refuted_below_is_negative": ("gaussian", "evidence.refuted_below", "-1"),
    "refuted_below_where_there_is_no_scale": ("laplace", "evidence.refuted_below", "0.5"),
    "refuted_below_where_the_claim_holds": ("peaked", "evidence.refuted_below", "0.69"),
    "refuted_below_missing": ("gaussian", "evidence.refuted_below", None),
    "refutation_with_other_figures": ("gaussian", "evidence.refutation.probability_shifted.upper", "0.5"),
    "refutation_with_another_bound": ("gaussian", "evidence.refutation.bound.lower", "1e-9"),
    "refutation_that_proves_nothing": (
        "gaussian", "evidence.refutation.bound", {"lower": "0.0001", "upper": "0.0001"}
    ),
    "refutation_with_an_empty_event": ("gaussian", "evidence.refutation.event", []),
    "refutation_with_an_interval_twice": (
        "gaussian", "evidence.refutation.event", [[None, "-18.348291"], [None, "-18.348291"]]
    ),
    "refutation_with_intervals_that_overlap": (
        "gaussian", "evidence.refutation.event", [[None, "-18.3"], ["-18.4", "-18.2"]]
    ),
    "refutation_with_an_interval_turned_round": (
        "gaussian", "evidence.refutation.event", [["-18", "-19"]]
    ),
    "refutation_with_another_event": ("gaussian", "evidence.refutation.event", [[None, "-10"]]),
    "refutation_at_another_shift": ("gaussian", "evidence.refutation.shift", "0.5"),
    "refutation_outside": ("gaussian", "evidence.refutation.shift", "2"),
    "refutation_on_a_grid_that_is_none": ("gaussian", "evidence.refutation.grid_size", "10"),
    "refutation_on_another_grid": ("theorem-3.2", "evidence.refutation.grid_size", "10"),
    "refutation_on_no_grid": ("theorem-3.2", "evidence.refutation.grid_index", None),
    "refutation_beside_its_grid_point": ("theorem-3.2", "evidence.refutation.shift", "0.99"),
    "loss_l1_looser": ("gaussian", "losses.l1.upper", "3.4"),
    "loss_l1_smaller": ("gaussian", "losses.l1", {"lower": "3", "upper": "3.1"}),
    "loss_l2_tighter": ("gaussian", "losses.l2", {"lower": "17.84", "upper": "17.84"}),
    "float_l1": ("gaussian", "float_figures.l1", "3.37"),
    "float_l2_missing": ("gaussian", "float_figures.l2", None),
    "scale_of_another": ("gaussian", "scales.sigma", "0x1p+2"),
    "scale_missing": ("gaussian", "scales.sigma", None),
    "scale_where_there_is_none": ("laplace", "scales.sigma", "1"),
    "decimal_of_another": ("gaussian", "scales.sigma_decimal", "4.22"),
    "float_scale_too_large": ("gaussian", "scales.float_sigma", "4.3"),
    "float_scale_too_small": ("gaussian", "scales.float_sigma", "4.2"),
    "float_scale_of_zero": ("theorem-3.2", "scales.float_sigma", "0"),
    "condition_value_a_little_looser": ("theorem-4.2", "evidence.conditions.0.value.upper", "1e-17"),
    "float_scale_where_there_is_none": ("laplace", "scales.float_sigma", "1"),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITED)
def test_edited_and_signed_again(workshop: Any, name: str) -> None:
    of, path, value = EDITED[name]
    outcome = workshop.verify(workshop.with_field(path, value, of))
    assert (outcome.signature, outcome.exit_code) == ("trusted", 1), outcome.reason
    assert outcome.reason.isprintable()
    if of != "refuted":
        assert outcome.verdict == "verified"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("scales.sigma", RAISED),
        ("scales.sigma_decimal", "4.2246788893268365"),
        ("evidence.sup_delta.upper", "9.999999999e-7"),
        ("losses.l1.lower", "3.3708060601436799"),
    ],
)
def test_slip(workshop: Any, path: str, value: str) -> None:
    """False by less than a tolerance: a contradiction where the signature counts, else the signature says it all."""
    data = workshop.with_field(path, value)
    assert (workshop.verify(data).signature, workshop.verify(data).exit_code) == ("trusted", 1)
    if path != "evidence.sup_delta.upper":  # the slack tells that one
        document = json.loads(data)
        document["signatures"] = []
        assert workshop.verify(json.dumps(document).encode()).exit_code == 4


def test_every_recorded_figure_is_checked(workshop: Any) -> None:
    """Each number of the signed part, changed by a thousandth, is noticed; the cost of the proof is not checked."""
    free = {"evidence.bits", "evidence.boxes"}
    words = ("name", "demand", "verdict", "reason", "note", "kind", "family", "schema_version")
    for name in ("gaussian", "theorem-4.2", "theorem-3.2"):
        for path, value in _leaves(workshop.document(name)["signed"]):
            if path in free or not isinstance(value, str) or path.split(".")[0] in ("tool", "issued", "_type"):
                continue
            if path.split(".")[-1] in words:
                continue
            number = read_real(value, path)
            wrong = str(number * Fraction(1001, 1000) or Fraction(1, 3))
            outcome = workshop.verify(workshop.with_field(path, wrong, name))
            assert outcome.exit_code != 0, (name, path, value, wrong)


def _leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [leaf for name, item in value.items() for leaf in _leaves(item, f"{path}.{name}".lstrip("."))]
    if isinstance(value, list):
        return [leaf for number, item in enumerate(value) for leaf in _leaves(item, f"{path}.{number}")]
    return [(path, value)]


def test_other_evidence_that_is_as_good(workshop: Any) -> None:
    """Another machine's search may meet another event first, or another shift near the peak."""
    other = [[None, "-18.348290"]]
    refuted = workshop.document("refuted")["signed"]["evidence"]["witness"]
    assert refuted["event"] != other
    outcome = workshop.verify(workshop.with_field("evidence.worst_shift", "0.9999999999999", "gaussian"))
    assert outcome.exit_code == 0
    assert workshop.verify(workshop.with_field("evidence.refutation", None)).exit_code == 0


# Where one of the two searches ended early.


def _unfinished(workshop: Any, upper: str) -> bytes:
    """A certificate whose search ended with sup D ≤ upper."""

    def change(signed: Any) -> None:
        signed["verdict"] = "inconclusive"
        signed["evidence"]["sup_delta"]["upper"] = upper
        signed["evidence"]["slack"]["lower"] = str(read_real("1e-6", "") - read_real(upper, ""))

    data: bytes = workshop.resigned(change)
    return data


def test_certificate_of_a_search_that_ended_early(workshop: Any) -> None:
    """What it records is true, and it is no proof."""
    outcome = workshop.verify(_unfinished(workshop, "1"))
    assert (outcome.verdict, outcome.signature, outcome.exit_code) == ("verified", "trusted", 3)
    assert "records no proof" in outcome.reason


def test_proof_that_is_called_inconclusive(workshop: Any) -> None:
    assert workshop.verify(_unfinished(workshop, "1e-6")).exit_code == 1
    outcome = workshop.verify(workshop.with_field("verdict", "inconclusive", "theorem-4.2"))
    assert (outcome.verdict, outcome.exit_code) == ("verified", 1)


def test_false_enclosure_of_a_search_that_ended_early(workshop: Any) -> None:
    outcome = workshop.verify(_unfinished(workshop, "0"))
    assert (outcome.verdict, outcome.exit_code) == ("verified", 1)


def _decide_with(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any, Any], Any]) -> None:
    def decide_and_change(statement: Any, *rest: Any) -> Any:
        return change(statement, decide(statement, *rest))

    monkeypatch.setattr(certificates.verify, "decide", decide_and_change)


def test_smaller_scale_not_confirmed(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sigma = workshop.statement().mechanism.sigma

    def inconclusive_below(statement: Any, decision: Any) -> Any:
        if statement.mechanism.sigma == sigma:
            return decision
        return replace(decision, verdict=Verdict.INCONCLUSIVE, reason="too few bits")

    _decide_with(monkeypatch, inconclusive_below)
    outcome = workshop.verify(workshop.sound())
    assert (outcome.verdict, outcome.exit_code) == ("verified", 3)
    assert "refuted_below" in outcome.reason
    assert "too few bits" in outcome.reason


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("evidence.sup_delta", {"lower": "9e-7", "upper": "2e-6"}, 1),  # the slack does not fit
        ("evidence.sup_delta", {"lower": "2e-6", "upper": "3e-6"}, 1),
        ("evidence.sup_delta", {"lower": "1e-6", "upper": "0"}, 1),
        ("evidence.worst_shift", "2", 1),
        ("evidence.worst_shift", "0.5", 3),
        ("evidence.conditions", [], 3),
        ("verdict", "inconclusive", 3),
    ],
)
def test_inconclusive_contradicts_only_what_it_can(
    workshop: Any, monkeypatch: pytest.MonkeyPatch, path: str, value: Any, code: int
) -> None:
    _decide_with(monkeypatch, lambda statement, decision: replace(decision, verdict=Verdict.INCONCLUSIVE))
    outcome = workshop.verify(workshop.with_field(path, value))
    assert (outcome.verdict, outcome.exit_code) == ("inconclusive", code), outcome.reason


def test_evidence_that_the_limits_do_not_let_evaluate(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, path, value in (
        ("reaches", "evidence.worst_shift", "0.9999999999999"),
        ("witness_figures", "evidence.refutation.event", [[None, "-18.4"]]),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(certificates.agreement, name, lambda *_: None)
            outcome = workshop.verify(workshop.with_field(path, value))
        assert (outcome.verdict, outcome.exit_code) == ("verified", 3)
        assert "the limits do not allow to evaluate" in outcome.reason


def test_event_of_very_many_intervals_is_not_evaluated(workshop: Any) -> None:
    many = [[str(-1000 - i), str(-1000 - i + Fraction(1, 2))] for i in range(500, 0, -1)]
    start = time.process_time()
    outcome = workshop.verify(workshop.with_field("evidence.refutation.event", many))
    assert time.process_time() - start < 1.5
    assert (outcome.verdict, outcome.exit_code) == ("verified", 3)


def test_float_figures_that_overflow(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates.agreement, "float_losses", lambda _: (None, None))
    outcome = workshop.verify(workshop.with_field("float_figures", {"l1": None, "l2": None}))
    assert outcome.exit_code == 0
    assert workshop.verify(workshop.with_field("float_figures.l1", None)).exit_code == 1
