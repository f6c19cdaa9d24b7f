"""Spoiled certificates: no traceback, no pass of what does not mean the same, little time, little memory.

What «means the same» is, is said and decided in judge.py. A thousand cases here, 10⁵ in the slow tests, as many as one
likes by ``python -m tests.hostile.fuzz``.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile import judge as judging
from tests.hostile.fuzz import MOST_MEGABYTES, Tally, make_case, megabytes, run, spoil
from tests.hostile.judge import Case, judge, means_the_same
from tests.hostile.seeds import seeds
from tests.hostile.tree import text_of, tree_of


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(source=st.randoms(use_true_random=False))
def test_no_spoiled_certificate_passes_that_does_not_mean_the_same(source: random.Random) -> None:
    judged = judge(spoil(source))
    assert not judged.fault


def test_eight_hundred_spoiled_certificates() -> None:
    tally, before = Tally(), megabytes()
    for number in range(800):
        judged = judge(make_case(1, number))
        tally.add(number, judged.exit_code, judged.seconds, megabytes() - before, judged.fault)
    assert not tally.faults
    # It is worth something only where cases get past the reader, and some are left as they were.
    assert min(tally.codes[code] for code in (0, 1, 4)) > 20


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(20))
def test_five_thousand_spoiled_certificates(chunk: int) -> None:
    tally = run(5_000, seed=1000 + chunk)
    assert not tally.faults
    assert tally.codes.total() == 5_000
    assert tally.megabytes < MOST_MEGABYTES


def _edited(change: Callable[[Any], Any]) -> Case:
    """The first seed with ``change`` made to its document, which may also return another one, or text."""
    document = json.loads(seeds()[0].data)
    changed = change(document) or document
    text = changed if isinstance(changed, str) else json.dumps(changed)
    return Case(seeds()[0], text.encode())


SAME: dict[str, Callable[[Any], Any]] = {
    "itself": lambda document: None,
    "white space": lambda document: json.dumps(document, indent=7),
    "escapes": lambda document: text_of(tree_of(document)).replace('"signed"', '"\\u0073igned"', 1),
    "order": lambda document: dict(reversed(document.items())),
    "a second signature": lambda document: document["signatures"].append({"keyid": "", "sig": ""}),
}
OTHER: dict[str, Callable[[Any], Any]] = {
    "a field more": lambda document: document.update(more=1),
    "a field twice": lambda document: json.dumps(document).replace('"signed":', '"signed": {}, "signed":', 1),
    "a number more": lambda document: document["signed"]["evidence"].update(bits=129),
    "a number as a float": lambda document: json.dumps(document).replace('"boxes": ', '"boxes": 0.', 1),
    "the same number, other text": lambda document: document["signed"]["statement"]["claim"].update(epsilon="1.0"),
    "no signature": lambda document: document.update(signatures=[]),
    "another signature": lambda document: document["signatures"][0].update(sig="0" * 128),
    "an end": lambda document: json.dumps(document) + "{}",
    "NaN": lambda document: json.dumps(document).replace('"boxes": ', '"boxes": NaN', 1),
}


@pytest.mark.parametrize("name", SAME)
def test_the_judge_sees_that_it_means_the_same(name: str) -> None:
    case = _edited(SAME[name])
    assert means_the_same(case)
    assert judge(case).exit_code == 0


@pytest.mark.parametrize("name", OTHER)
def test_the_judge_sees_that_it_does_not_mean_the_same(name: str) -> None:
    assert not means_the_same(_edited(OTHER[name]))


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (lambda *_, **__: (_ for _ in ()).throw(KeyError("signed")), "raised KeyError"),
        (lambda *_, **__: judging.Outcome("verified", "trusted", 0, "proved", None), "does not mean the same"),
        (lambda *_, **__: judging.Outcome(None, None, 5, "strange", None), "exit code 5"),
        (lambda *_, **__: judging.Outcome(None, None, 2, "two\nlines", None), "not one line"),
    ],
    ids=["traceback", "pass", "code", "lines"],
)
def test_the_judge_sees_faults(monkeypatch: pytest.MonkeyPatch, broken: Any, fault: str) -> None:
    monkeypatch.setattr(judging, "verify_certificate", broken)
    assert fault in judge(_edited(OTHER["a field more"])).fault


def test_the_tally_names_what_died_and_what_took_too_much() -> None:
    tally = Tally()
    tally.add(3, -1, 30.0, 0.0, "the process died")
    tally.add(4, 0, 0.1, 501.0, "")
    assert [text.split(":")[0] for text in tally.faults] == ["case 3", "case 4"]
    assert tally.longest == (30.0, 3)
