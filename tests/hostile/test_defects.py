"""Defects that hostile certificates have shown, each under its name."""

from __future__ import annotations

import json
import time
import tracemalloc
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import audit.decide
from audit.decide import decide
from audit.density import Density
from audit.verdict import Limits, Verdict
from certificates.second import ask
from certificates.verify import Outcome
from mechanisms.claims import Direct, Statement, read_statement
from mechanisms.families import Declared, DeclaredMixture, MultiGaussian
from mechanisms.form import Form
from mechanisms.numbers import MAX_EXACT_BITS, InputError, require_common
from tests.cli.support import Run
from tests.hostile.judge import processor_limits
from tests.hostile.zoo import document, written


def _pieces(count: int) -> list[dict[str, Any]]:
    """Pieces of unit length, the last without an end."""
    return [
        {"from": str(i), "to": str(i + 1) if i < count - 1 else "inf", "c": "1", "lines": [[str(-i), "0.1"]]}
        for i in range(count)
    ]


def _seconds(mechanism: Any, allowed: float, epsilon: str = "1") -> tuple[float, Verdict]:
    start = time.process_time()
    found = decide(Statement(mechanism, Direct(epsilon=epsilon, delta="1e-6")), processor_limits(allowed))
    return time.process_time() - start, found.verdict


def test_a_thousand_pieces_went_on_for_20_seconds_after_the_time_limit() -> None:
    """Each stretch looked for its piece from the first on, each piece was compared with every other, and neither that
    nor the floats that propose asked the time."""
    seconds, verdict = _seconds(Declared(sensitivity=1, declared_pieces=_pieces(1000)), 0.5)
    assert verdict is Verdict.INCONCLUSIVE
    assert seconds < 3


def test_a_long_table_went_on_for_6_seconds_after_the_time_limit() -> None:
    """A bound from a table is one call, but a slow one where the table is long, and hundreds were taken at once."""
    mechanism = MultiGaussian(sensitivity=709, sigma=1, K=5, epsilon=1)
    seconds, verdict = _seconds(mechanism, 0.5, "0.1")
    assert verdict is Verdict.INCONCLUSIVE
    assert seconds < 2


def test_the_time_is_asked_while_floats_propose() -> None:
    asked = 0

    def expired() -> bool:
        nonlocal asked
        asked += 1
        return asked > 5

    mechanism = Declared(sensitivity=1, declared_pieces=_pieces(100))
    found = decide(Statement(mechanism, Direct(epsilon="1", delta="1e-6")), Limits(expired=expired))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert asked == 6


def test_equal_slopes_are_found_across_pieces() -> None:
    """They are compared among all pieces of one c at once, no longer pair by pair."""
    rows = [
        {"from": "0", "to": "1", "c": "1/2", "lines": [["0", "1/3"]]},
        {"from": "1", "to": "2", "c": "1/3", "lines": [["0", "1/7"]]},
        {"from": "2", "to": "inf", "c": "1/2", "lines": [["0", "-1/7"]]},
    ]
    form: Form = Declared(sensitivity=1, declared_pieces=rows).form
    sums = [piece.sum for piece in form.whole_line]
    density = Density(form)
    for shift in (Fraction(n, 42) for n in range(1, 60)):
        expected = any(
            there.c == here.c and line.slope - 2 * there.c * shift == other.slope
            for there in sums
            for here in sums
            for line in there.lines
            for other in here.lines
        )
        assert density.cancels(shift) is expected, shift
        assert [density._piece_at(Fraction(x)) for x in (-3, -2, -1, 0, 1, 2, 3)] == [0, 1, 2, 3, 4, 5, 5]


def _coprime(count: int) -> list[str]:
    return [f"1/{10**300 + 2 * i + 1}" for i in range(count)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: DeclaredMixture(sensitivity=1, sigma=1, components=[["1", mean] for mean in _coprime(900)]),
        lambda: DeclaredMixture(sensitivity=1, sigma=1, components=[[weight, "1"] for weight in _coprime(900)]),
        lambda: Declared(
            sensitivity=1,
            declared_pieces=[{"from": "0", "to": "inf", "c": "1", "lines": [[a, "0"] for a in _coprime(900)]}],
        ),
        lambda: MultiGaussian(sensitivity=1, sigma=f"{3**1000}/{7**560}", K=1000, epsilon=f"{5**600}/{11**450}"),
    ],
    ids=["means", "weights", "lines", "K"],
)
def test_numbers_of_a_thousand_denominators_took_minutes(make: Any) -> None:
    """What is exact about all lines together had as many digits as all their denominators together."""
    start = time.process_time()
    with pytest.raises(InputError, match="fewer numbers, or ones with fewer digits or like denominators"):
        make()
    assert time.process_time() - start < 2


def test_numbers_that_share_their_denominator_are_many() -> None:
    doubles = [Fraction(i, 2**1000) for i in range(4000)]
    require_common(doubles, "here")
    require_common([Fraction(i, 10**17) for i in range(8192)], "here")
    require_common([Fraction(1, i) for i in range(1, 1000)], "here")
    with pytest.raises(InputError, match=r"here: got 1 numbers over a denominator of 8388609 bits or more"):
        require_common([Fraction(1, 2**MAX_EXACT_BITS)], "here")
    require_common([Fraction(1, 2 ** (MAX_EXACT_BITS // 2 - 1))], "here", 2)
    with pytest.raises(InputError):
        require_common([Fraction(1, 2 ** (MAX_EXACT_BITS // 2))], "here", 2)


def _wide(c: str) -> dict[str, Any]:
    pieces = [{"from": "0", "to": "inf", "c": c, "lines": [["0", "1"]]}]
    return {"family": "declared", "sensitivity": "1", "pieces": pieces}


def _light(weight: str) -> dict[str, Any]:
    components = [["1", "0.1"], [weight, "1"], ["0.05", "2.5"]]
    return {"family": "declared", "sensitivity": "1", "sigma": "1", "components": components}


@pytest.mark.parametrize("mechanism", [_wide("1e-300"), _wide("1e300"), _light(f"1/{'3' * 900}"), _light("1e-330")])
def test_floats_that_propose_warned_of_an_overflow(mechanism: dict[str, Any]) -> None:
    """A second line on standard error, with the path of a module; where warnings are errors, a traceback."""
    document = {"mechanism": mechanism, "claim": {"kind": "direct", "epsilon": "0.9", "delta": "0.05"}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decide(read_statement(document), processor_limits(2))


def test_a_claim_about_numbers_beyond_floats_was_a_traceback(run: Run, tmp_path: Path) -> None:
    """Verification caught what the libraries raise; certify, which reads the same claims, did not."""
    components = [["1e30", "0"], ["0.3", "1"], ["0.05", "2.5"]]
    noise = {"family": "declared", "sensitivity": "1", "sigma": "1e-300", "components": components}
    claim = {"kind": "direct", "epsilon": "1", "delta": "1e-6"}
    (tmp_path / "claim.json").write_text(json.dumps({"mechanism": noise, "claim": claim}))
    ran = run("certify", "claim.json", "--json")
    assert (ran.exit_code, ran.stderr, ran.json["verdict"]) == (3, "", "inconclusive")
    assert "beyond what the libraries hold" in ran.json["reason"]


@pytest.mark.parametrize("error", [OverflowError("too large"), ValueError("not finite"), MemoryError()])
def test_what_the_libraries_raise_proves_nothing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    statement = read_statement(
        {"mechanism": _light("0.3"), "claim": {"kind": "direct", "epsilon": "1", "delta": "0.1"}}
    )
    monkeypatch.setattr(audit.decide, "decide_from", fail)
    found = decide(statement)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert type(error).__name__ in found.reason
    assert found.sup_delta is found.witness is None
    error = InputError("claim", "this", "that")
    monkeypatch.setattr(audit.decide, "decide_from", lambda *_, **__: (_ for _ in ()).throw(error))
    with pytest.raises(InputError, match="claim: got this"):
        decide(statement)


@pytest.mark.parametrize(("stop", "slope"), [("9007199254740991", "-1"), ("10000000", "-1"), ("10000000", "-1e-6")])
def test_the_second_opinion_asked_for_an_exbibyte(stop: str, slope: str) -> None:
    """Its lattice had at least 8 points for each Δ up to where the density ends, however far off that is; and a number
    such as e^(−10^15) was written out as a fraction, which no memory holds."""
    pieces = [{"from": "0", "to": stop, "c": "0", "lines": [["0", slope]]}]
    noise = {"family": "declared", "sensitivity": "1", "pieces": pieces}
    changed = document("declared")
    changed["signed"]["statement"]["mechanism"] = noise
    outcome = Outcome("verified", "trusted", 0, "proved", None)
    tracemalloc.start()
    try:
        opinion = ask(written(changed), outcome, processor_limits(5))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert opinion is not None
    assert "MemoryError" not in opinion.reason
    assert peak < 400 << 20
