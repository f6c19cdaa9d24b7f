"""The campaign, short and long; and auditors that are made wrong on purpose, which it must catch."""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

import audit.shifts
from audit.steps import Excess, StaircaseDivergence
from audit.verdict import Decision, Verdict
from mechanisms.claims import Theorem32
from mechanisms.families import Mechanism
from tests.soundness import campaign
from tests.soundness.campaign import Result, collect, main, run, run_seed, table
from tests.soundness.drawing import DRAWS
from tests.soundness.faults import Patch, set_attribute

ROUND = range(len(DRAWS))
ROUNDS = 24
"""Of about 420 claims each."""
PLACES = {kind: [place for place, (name, _) in enumerate(DRAWS) if name == kind] for kind, _ in DRAWS}
SLOW_TO_DRAW = {"tie-with-end", "tie-inside"}
QUICK = {
    "at-cliff": 1,
    "multi-gaussian": 1,
    "narrow": 2,
    "pieces": 1,
    "quasi-gaussian": 1,
    "spliced": 1,
    "tiny": 2,
    "zcdp": 1,
}
"""Which draw of a kind is the quickest to decide, where it is not the first."""


@pytest.mark.parametrize("kind", sorted(set(PLACES) - SLOW_TO_DRAW))
def test_a_claim_of_each_kind_on_both_sides(kind: str) -> None:
    assert not [result.remark for result in run_seed(PLACES[kind][QUICK.get(kind, 0)], 2) if result.remark]


DONE: dict[int, list[Result]] = {}


@pytest.mark.slow
@pytest.mark.parametrize("number", range(ROUNDS))
def test_ten_thousand_claims(number: int) -> None:
    """In rounds of every kind of draw."""
    DONE[number] = [result for place in ROUND for result in run_seed(number * len(DRAWS) + place)]
    assert not [result.remark for result in DONE[number] if result.contradiction]


@pytest.mark.slow
def test_of_the_ten_thousand_fewer_than_one_in_a_thousand_is_left_open() -> None:
    """By the auditor; and by the referee, where it cannot tell the sides apart or sees less than the auditor."""
    if len(DONE) < ROUNDS:
        pytest.skip("not all rounds were run before")
    results = [result for found in DONE.values() for result in found]
    assert len(results) >= 10_000
    for left in (
        [result.remark for result in results if result.verdict == Verdict.INCONCLUSIVE.value],
        [result.remark for result in results if result.undecided or result.short],
    ):
        assert 1000 * len(left) < len(results), left


FAULTS: dict[str, tuple[Callable[[Patch], None], str]] = {
    # name: (the fault, a kind of draw that meets it)
    "eta forgotten": (set_attribute(Theorem32, "threshold", property(lambda self: self.delta)), "theorem-3.2"),
    "every density log-concave": (set_attribute(audit.shifts, "is_log_concave", lambda form: True), "narrow"),
    "sensitivity not scaled": (set_attribute(Mechanism, "unit_form", property(lambda self: self.form)), "cut-steps"),
    "a staircase pure at every epsilon": (
        set_attribute(StaircaseDivergence, "at", lambda *_: Excess((), ())),
        "staircase",
    ),
    "everything verified": (
        set_attribute(campaign, "decide", lambda *_: Decision(verdict=Verdict.VERIFIED, reason="", bits=0, boxes=0)),
        "gaussian",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_auditor_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault, kind = FAULTS[name]
    fault(monkeypatch)
    assert any(result.contradiction for seed in PLACES[kind] for result in run_seed(seed, 2))


def test_a_seed_makes_the_same_claims_again() -> None:
    first, second = ([result.statement for result in run_seed(PLACES["steps"][0])] for _ in range(2))
    assert first == second and len(set(first)) == len(first)


def test_in_parallel_the_results_come_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a later seed is done before an earlier one."""
    monkeypatch.setattr(campaign, "run_seed", lambda seed: [_result(seed)] * 3)

    class Backwards(ThreadPoolExecutor):
        """Does nothing until a result is asked for."""

        def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.result = lambda timeout=None: function(*arguments)  # type: ignore[method-assign]
            return future

    alone, together = (collect(run(5, executor), 8, io.StringIO()) for executor in (None, Backwards(1)))
    assert alone == together and [result.seed for result in alone] == [5, 5, 5, 6, 6, 6, 7, 7]


def _result(seed: int, **changes: Any) -> Result:
    values = {"kind": "steps", "verdict": "verified", "seconds": 0.25, "judging": 0.5, "contradiction": ""}
    return Result(seed=seed, statement="{}", **{**values, "undecided": False, "short": False, **changes})


def test_the_command_exits_with_1_where_a_verdict_is_contradicted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    record = tmp_path / "record.jsonl"
    monkeypatch.setattr(campaign, "run_seed", lambda seed: [_result(seed)])
    assert main(["--claims", "3", "--record", str(record)]) == 0
    assert len(record.read_text(encoding="utf-8").splitlines()) == 3
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(campaign, "run_seed", lambda seed: [_result(seed, contradiction="it does not hold")])
    assert main(["--claims", "3"]) == 1
    printed = capsys.readouterr()
    assert "seed 2, steps: it does not hold" in printed.err
    assert printed.out.splitlines()[-1].split()[:6] == ["all", "3", "3", "0", "0", "3"]
    for wrong in (["--claims", "0"], ["--jobs", "0"], ["--seed", "-1"], ["--claims", "many"]):
        with pytest.raises(SystemExit) as stopped:
            main(wrong)
        assert stopped.value.code == 2


def test_the_table_counts_each_kind() -> None:
    results = [
        _result(1, seconds=1.0, judging=0.5),
        _result(2, verdict="refuted", short=True),
        _result(3, kind="zcdp", verdict="inconclusive", undecided=True, seconds=3.0),
    ]
    lines = [line.split() for line in table(results).splitlines()]
    assert lines[1:] == [
        ["steps", "2", "1", "1", "0", "0", "0", "1", "2", "1.0"],
        ["zcdp", "1", "0", "0", "1", "0", "1", "0", "4", "3.0"],
        ["all", "3", "1", "1", "1", "0", "1", "1", "6", "3.0"],
    ]
