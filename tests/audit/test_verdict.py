"""Three verdicts, none of which is true or false."""

from __future__ import annotations

import pytest

from audit.verdict import Expired, Limits, Verdict


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_verdict_is_not_a_truth_value(verdict: Verdict) -> None:
    with pytest.raises(TypeError, match=r"^a verdict has three values; compare it with Verdict\.VERIFIED$"):
        bool(verdict)


def test_there_are_three() -> None:
    assert [verdict.value for verdict in Verdict] == ["verified", "refuted", "inconclusive"]


def test_limits_ask_their_watch() -> None:
    Limits().check()
    with pytest.raises(Expired):
        Limits(expired=lambda: True).check()
