"""Published scales that do not all keep their promise: each claim gets its verdict, and none stays open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from audit.decide import decide
from audit.verdict import Verdict
from mechanisms.families import MultiGaussian
from tests.audit.support import statement

DATA = Path(__file__).parents[1] / "data"
CLAIMS = json.loads((DATA / "published-scales.json").read_text(encoding="utf-8"))["claims"]
SPREAD = range(0, len(CLAIMS), 6)


def check(row: list[str]) -> None:
    epsilon, delta, K, sigma, ratio, verdict = row
    mechanism = MultiGaussian(sensitivity=1, sigma=sigma, K=int(K), epsilon=epsilon)
    found = decide(statement(mechanism, epsilon, delta))
    assert found.verdict is Verdict(verdict)
    assert found.sup_delta is not None
    low, high = (float(end) / float(delta) for end in (found.sup_delta.lower, found.sup_delta.upper))
    assert low <= float(ratio) * (1 + 1e-7) and float(ratio) * (1 - 1e-7) <= high
    assert (found.witness is not None) == (found.verdict is Verdict.REFUTED)


def test_how_many_there_are() -> None:
    verdicts = [row[-1] for row in CLAIMS]
    assert (verdicts.count("refuted"), verdicts.count("verified"), len(verdicts)) == (45, 36, 81)


@pytest.mark.parametrize("number", SPREAD)
def test_a_spread(number: int) -> None:
    check(CLAIMS[number])


@pytest.mark.slow
@pytest.mark.parametrize("number", sorted(set(range(len(CLAIMS))) - set(SPREAD)))
def test_all_others(number: int) -> None:
    check(CLAIMS[number])
