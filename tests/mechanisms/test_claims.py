"""Reading statements and writing them: exact, strict, and every refusal names its field."""

from __future__ import annotations

import copy
import json
import tomllib
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.claims import (
    CLAIMS,
    Direct,
    Statement,
    Theorem32,
    Theorem42,
    read_claim,
    read_mechanism,
    read_statement,
)
from mechanisms.families import MAX_K, MAX_LINES, Declared, DeclaredMixture, Gaussian, MultiGaussian, QuasiGaussian
from mechanisms.numbers import InputError

EXAMPLE = """
[mechanism]
family = "multi-gaussian"
sensitivity = "1"
sigma = "0x1.567428b65f04ep-2"
K = 4
[claim]
kind = "direct"
epsilon = "1"
delta = "0.01"
"""

MECHANISMS: dict[str, dict[str, Any]] = {
    "gaussian": {"family": "gaussian", "sensitivity": "1", "sigma": "4.2"},
    "multi": {"family": "multi-gaussian", "sensitivity": "1", "sigma": "0x1.5p-2", "K": 4, "epsilon": "1"},
    "quasi": {"family": "quasi-gaussian", "sensitivity": "2.5", "sigma": "1/3", "epsilon": "1"},
    "mixture": {"family": "declared", "sensitivity": "1", "sigma": "0.3", "components": [["1", "0"], ["0.2", "1"]]},
    "laplace": {
        "family": "declared",
        "sensitivity": "1",
        "pieces": [{"from": "0", "to": "inf", "c": "0", "lines": [["0", "-1"]]}],
    },
}
CLAIM: dict[str, dict[str, Any]] = {
    "direct": {"kind": "direct", "epsilon": "1", "delta": "0.01"},
    "theorem-3.2": {"kind": "theorem-3.2", "epsilon": "1", "delta": "5e-7", "eta": "0.01"},
    "theorem-4.2": {"kind": "theorem-4.2", "epsilon": "1", "delta": "1e-5"},
}
APPLIES = {
    "direct": set(MECHANISMS),
    "theorem-3.2": {"gaussian", "multi", "mixture"},
    "theorem-4.2": {"quasi"},
}


def document(mechanism: str, claim: str) -> dict[str, Any]:
    return {"mechanism": copy.deepcopy(MECHANISMS[mechanism]), "claim": copy.deepcopy(CLAIM[claim])}


def refusal(value: object) -> InputError:
    with pytest.raises(InputError) as found:
        read_statement(value)
    assert "\n" not in str(found.value) and str(found.value).startswith(f"{found.value.where}: got ")
    return found.value


def test_the_example_of_the_manual() -> None:
    statement = read_statement(tomllib.loads(EXAMPLE))
    mechanism, claim = statement.mechanism, statement.claim
    assert isinstance(mechanism, MultiGaussian) and isinstance(claim, Direct)
    assert mechanism.sigma == Fraction(float.fromhex("0x1.567428b65f04ep-2")) and mechanism.K == 4
    assert mechanism.epsilon == claim.epsilon == 1, "the weights take the claim's epsilon where they state none"
    assert claim.delta == claim.threshold == Fraction(1, 100)


@pytest.mark.parametrize("claim", CLAIM)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_each_claim_of_each_mechanism(mechanism: str, claim: str) -> None:
    if mechanism not in APPLIES[claim]:
        assert refusal(document(mechanism, claim)).where == "claim.kind"
        return
    statement = read_statement(document(mechanism, claim))
    assert type(statement.claim) is CLAIMS[claim]
    written = json.loads(json.dumps(statement.document()))
    assert read_statement(written) == statement
    assert read_statement(written).document() == written


def test_every_claim_is_tried_here() -> None:
    assert set(CLAIM) == set(CLAIMS)


def test_thresholds() -> None:
    assert read_claim(CLAIM["theorem-3.2"]).threshold == Fraction(99, 100) * Fraction(5, 10**7)
    assert read_claim(CLAIM["theorem-4.2"]).threshold == Fraction(1, 10**5)


def test_the_kinds_of_mechanism() -> None:
    kinds = [type(read_mechanism(value)) for value in MECHANISMS.values()]
    assert kinds == [Gaussian, MultiGaussian, QuasiGaussian, DeclaredMixture, Declared]
    assert read_mechanism(MECHANISMS["quasi"]).sensitivity == Fraction(5, 2)


positive = st.fractions(min_value=Fraction(1, 10**9), max_value=10**9)


@given(positive, positive, st.integers(0, 12), st.fractions(0, 100), st.fractions(0, Fraction(99, 100)))
def test_round_trip(delta: Fraction, sigma: Fraction, K: int, epsilon: Fraction, budget: Fraction) -> None:
    statement = Statement(
        MultiGaussian(sensitivity=delta, sigma=sigma, K=K, epsilon=epsilon), Direct(epsilon=epsilon, delta=budget)
    )
    text = json.dumps(statement.document())
    assert read_statement(json.loads(text, parse_float=pytest.fail)) == statement


def changed(mechanism: str, claim: str, path: str, value: object) -> dict[str, Any]:
    """The document with one field set, or taken out where the value is ...."""
    found = document(mechanism, claim)
    *parents, last = path.split(".")
    at: Any = found
    for name in parents:
        at = at[int(name)] if isinstance(at, list) else at[name]
    if value is ...:
        del at[last]
    else:
        at[int(last) if isinstance(at, list) else last] = value
    return found


REFUSALS = [
    # mechanism, claim, field, value, field that the refusal names
    ("gaussian", "direct", "claim", ..., "document.claim"),
    ("gaussian", "direct", "mechanism", ..., "document.mechanism"),
    ("gaussian", "direct", "note", "hello", "document.note"),
    ("gaussian", "direct", "claim", "direct", "claim"),
    ("gaussian", "direct", "mechanism", ["gaussian"], "mechanism"),
    ("gaussian", "direct", "claim.kind", ..., "claim.kind"),
    ("gaussian", "direct", "claim.kind", "Direct", "claim.kind"),
    ("gaussian", "direct", "claim.kind", 7, "claim.kind"),
    ("gaussian", "direct", "claim.eta", "0.1", "claim.eta"),
    ("gaussian", "direct", "claim.epsilon", ..., "claim.epsilon"),
    ("gaussian", "direct", "claim.epsilon", "-1", "claim.epsilon"),
    ("gaussian", "direct", "claim.epsilon", 1.0, "claim.epsilon"),
    ("gaussian", "direct", "claim.epsilon", True, "claim.epsilon"),
    ("gaussian", "direct", "claim.epsilon", None, "claim.epsilon"),
    ("gaussian", "direct", "claim.delta", "1", "claim.delta"),
    ("gaussian", "direct", "claim.delta", "1e999999999", "claim.delta"),
    ("gaussian", "direct", "claim.delta", "NaN", "claim.delta"),
    ("gaussian", "theorem-3.2", "claim.eta", ..., "claim.eta"),
    ("gaussian", "theorem-3.2", "claim.eta", "0", "claim.eta"),
    ("gaussian", "theorem-3.2", "claim.eta", "1", "claim.eta"),
    ("gaussian", "theorem-3.2", "claim.delta", "0", "claim.delta"),
    ("quasi", "theorem-4.2", "claim.epsilon", "2", "claim.epsilon"),
    ("gaussian", "direct", "mechanism.family", ..., "mechanism.family"),
    ("gaussian", "direct", "mechanism.family", "gauss", "mechanism.family"),
    ("gaussian", "direct", "mechanism.family", ["gaussian"], "mechanism.family"),
    ("gaussian", "direct", "mechanism.K", 4, "mechanism.K"),
    ("gaussian", "direct", "mechanism.sigma", ..., "mechanism.sigma"),
    ("gaussian", "direct", "mechanism.sigma", "0", "mechanism.sigma"),
    ("gaussian", "direct", "mechanism.sigma", 4.2, "mechanism.sigma"),
    ("gaussian", "direct", "mechanism.sensitivity", "-1", "mechanism.sensitivity"),
    ("multi", "direct", "mechanism.K", "-1", "mechanism.K"),
    ("multi", "direct", "mechanism.K", 10**9, "mechanism.K"),
    ("multi", "direct", "mechanism.K", 1.5, "mechanism.K"),
    ("multi", "direct", "mechanism.epsilon", "-0.5", "mechanism.epsilon"),
    ("mixture", "direct", "mechanism.components", [], "mechanism.components"),
    ("mixture", "direct", "mechanism.components", "1", "mechanism.components"),
    ("mixture", "direct", "mechanism.components", [["1", "0"]] * (MAX_LINES + 1), "mechanism.components"),
    ("mixture", "direct", "mechanism.components.1", ["1"], "mechanism.components[1]"),
    ("mixture", "direct", "mechanism.components.1.0", "0", "mechanism.components[1][0]"),
    ("mixture", "direct", "mechanism.components.1.0", 0.2, "mechanism.components[1][0]"),
    ("mixture", "direct", "mechanism.components.1.1", "-1", "mechanism.components[1][1]"),
    ("laplace", "direct", "mechanism.sigma", "1", "mechanism.sigma"),
    ("laplace", "direct", "mechanism.pieces", [], "mechanism.pieces"),
    ("laplace", "direct", "mechanism.pieces", {}, "mechanism.pieces"),
    ("laplace", "direct", "mechanism.pieces.0", {"from": "0"}, "mechanism.pieces[0]"),
    ("laplace", "direct", "mechanism.pieces.0.from", "1", "mechanism.pieces[0].from"),
    ("laplace", "direct", "mechanism.pieces.0.to", "0", "mechanism.pieces[0].to"),
    ("laplace", "direct", "mechanism.pieces.0.to", "Inf", "mechanism.pieces[0].to"),
    ("laplace", "direct", "mechanism.pieces.0.c", "-1", "mechanism.pieces[0].c"),
    ("laplace", "direct", "mechanism.pieces.0.c", 0.5, "mechanism.pieces[0].c"),
    ("laplace", "direct", "mechanism.pieces.0.lines", [["0", "1"]], "mechanism.pieces[0].lines"),
    ("laplace", "direct", "mechanism.pieces.0.lines", [["0"]], "mechanism.pieces[0].lines[0]"),
    ("laplace", "direct", "mechanism.pieces.0.lines.0.1", "x", "mechanism.pieces[0].lines[0][1]"),
    ("laplace", "direct", "mechanism.pieces.0.lines", [["0", "-1"]] * (MAX_LINES + 1), "mechanism.pieces[0].lines"),
]


@pytest.mark.parametrize(("mechanism", "claim", "path", "value", "where"), REFUSALS, ids=lambda part: repr(part)[:40])
def test_every_refusal_names_its_field(mechanism: str, claim: str, path: str, value: object, where: str) -> None:
    error = refusal(changed(mechanism, claim, path, value))
    assert error.where == where, str(error)
    assert len(str(error)) < 300


@pytest.mark.parametrize("value", [None, [], "text", 3, {}, {"claim": {}, "mechanism": {}}])
def test_what_is_no_statement(value: object) -> None:
    refusal(value)


def test_bounds_are_reachable() -> None:
    largest = read_mechanism({**MECHANISMS["multi"], "K": MAX_K})
    assert isinstance(largest, MultiGaussian) and largest.K == MAX_K


def test_python_floats_are_the_doubles_that_they_are() -> None:
    """From Python a float is taken for what it is; only files must quote their numbers."""
    assert Direct(epsilon=0.1, delta=1e-5).epsilon == Fraction(0.1)  # type: ignore[arg-type]
    assert Theorem42(epsilon="0.1", delta="1e-5").epsilon == Fraction(1, 10)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^eta: got 2, expected"):
        Theorem32(epsilon=Fraction(1), delta=Fraction(1, 2), eta=Fraction(2))
