"""``audit compare``: ranks, marks, digits, pictures, refusals."""

from __future__ import annotations

import builtins
import importlib.util
from fractions import Fraction
from pathlib import Path

import pytest

from audit.verdict import Enclosure, Expired
from certificates import comparison
from certificates.digits import certain
from tests.cli.support import Refused, Run

POINT = ("compare", "--epsilon", "3", "--delta", "0.01")
FEW = ("--families", "gaussian,laplace,truncated-laplace,classic-gaussian")
needs_matplotlib = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not here")


def test_the_point_of_the_documentation(run: Run) -> None:
    """Every family, in the order and with the losses that are known from elsewhere."""
    ran = run(*POINT, "--max-K", "3", "--json")
    assert ran.exit_code == 0
    rows = {row["family"]: row for row in ran.json["mechanisms"]}
    losses = {family: float(row["l2"]["lower"]) for family, row in rows.items()}
    assert len(rows) >= 8
    assert list(losses.values()) == sorted(losses.values())
    for family, loss in {
        "truncated-staircase": 0.14636978,
        "multi-gaussian": 0.176498159,
        "tulap": 0.186872899,
        "truncated-laplace": 0.215141693,
        "gaussian": 0.682263012,
    }.items():
        assert losses[family] == pytest.approx(loss, rel=1e-7)
    marked = {name: [f for f, row in rows.items() if row[name]] for name in ("best", "best_gaussian_tails")}
    assert marked == {"best": ["truncated-staircase"], "best_gaussian_tails": ["multi-gaussian"]}
    (unbounded,) = (row for row in rows.values() if row["best_unbounded"])
    assert unbounded["l2"] == min(
        (row["l2"] for row in rows.values() if row["support"] == "unbounded"), key=lambda l2: float(l2["lower"])
    )
    assert {row["verdict"] for row in rows.values()} == {"verified"}
    assert rows["truncated-staircase"]["gives_up"] == ["unbounded support", "zCDP"]
    assert rows["multi-gaussian"]["gives_up"] == [] and rows["multi-gaussian"]["K"] == 2


def test_under_json_every_real_is_text(run: Run) -> None:
    document = run(*POINT, *FEW, "--json").json
    row = document["mechanisms"][0]
    assert document["epsilon"] == "3" and document["loss"] == "l2"
    assert all(isinstance(row[name][end], str) for name in ("l1", "l2", "ratio") for end in ("lower", "upper"))
    assert row["ratio"] == {"lower": "1", "upper": "1"}
    assert [isinstance(value, float) for row in document["mechanisms"] for value in row.values()].count(True) == 0


def test_sorted_by_the_loss_that_is_asked_for(run: Run) -> None:
    for loss in ("l1", "l2"):
        rows = run(*POINT, *FEW, "--loss", loss, "--json").json["mechanisms"]
        uppers = [Fraction(row[loss]["upper"]) for row in rows]
        assert uppers == sorted(uppers)
        for row in rows:
            low, high = (float(row[loss][end]) / float(rows[0][loss][end]) for end in ("lower", "upper"))
            assert float(row["ratio"]["lower"]) == pytest.approx(low) and float(row["ratio"]["upper"]) == pytest.approx(
                high
            )


def test_sensitivity_scales_the_losses(run: Run) -> None:
    one, three = (
        run(*POINT, "--families", "truncated-laplace", "--sensitivity", unit, "--json").json["mechanisms"][0]
        for unit in ("1", "3")
    )
    assert float(three["l2"]["upper"]) == pytest.approx(9 * float(one["l2"]["upper"]))


def test_the_table_for_people(run: Run) -> None:
    text = run(*POINT, *FEW).stdout.splitlines()
    assert text[0] == "(3, 0.01)-differential privacy at sensitivity 1, by E X²"
    assert text[2].split()[:3] == ["*", "truncated-laplace", "0.21514169…"]
    assert text[3].split()[:3] == ["+", "laplace", "0.22222222…"]
    assert text[4].split()[:2] == ["~", "gaussian"]
    assert any(line.startswith("gives up unbounded support: ") for line in text)


def test_a_formula_that_does_not_hold_is_listed_without_a_rank(run: Run) -> None:
    ran = run("compare", "--epsilon", "10", "--delta", "1e-3", *FEW, "--json")
    row = ran.json["mechanisms"][-1]
    assert (ran.exit_code, row["family"], row["verdict"], row["ratio"]) == (0, "classic-gaussian", "refuted", None)
    assert "refuted" in run("compare", "--epsilon", "10", "--delta", "1e-3", *FEW).stdout


def test_pure_privacy_leaves_out_what_cannot_give_it(run: Run) -> None:
    document = run("compare", "--epsilon", "1", "--delta", "0", *FEW, "--json").json
    assert [row["family"] for row in document["mechanisms"]] == ["laplace"]
    assert set(document["not_served"]) == {"gaussian", "truncated-laplace", "classic-gaussian"}


def test_a_limit_leaves_the_answer_open(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: object, **__: object) -> None:
        raise Expired

    monkeypatch.setattr(comparison, "offer", late)
    ran = run(*POINT, *FEW, "--json")
    assert ran.exit_code == 3
    assert {row["verdict"] for row in ran.json["mechanisms"]} == {"inconclusive"}
    assert run(*POINT, *FEW).exit_code == 3


REFUSED = {
    "family": ((*POINT, "--families", "gaussian,cauchy"), "--families: got cauchy, expected some of "),
    "no-family": ((*POINT, "--families", ""), "--families: got nothing"),
    "nobody": (
        ("compare", "--epsilon", "1", "--delta", "0", "--families", "gaussian"),
        "a family that can serve (1, 0)",
    ),
    "epsilon": (("compare", "--epsilon", "-1", "--delta", "0.1"), "--epsilon: got -1"),
    "delta": (("compare", "--epsilon", "1", "--delta", "1"), "--delta: got 1, expected a number in [0, 1)"),
    "max-K": ((*POINT, "--max-K", "1e9"), "--max-K: got 1e9, expected a whole number"),
    "max-K-zero": ((*POINT, "--max-K", "0"), "--max-K: got 0, expected"),
    "sensitivity": ((*POINT, "--sensitivity", "0"), "--sensitivity: got 0"),
    "loss": ((*POINT, "--loss", "l3"), "--loss: Invalid value"),
    "plot": ((*POINT, "--plot", "c.pdf"), "--plot: got c.pdf, expected a name that ends in .svg or .png"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals(refused: Refused, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(*arguments)


@needs_matplotlib
def test_pictures(run: Run) -> None:
    for name, beginning in (("c.svg", b"<?xml"), ("c.png", b"\x89PNG")):
        assert run(*POINT, *FEW, "--plot", name, "--json").json["plot"] == name
        first = Path(name).read_bytes()
        assert first.startswith(beginning) and len(first) > 5000
        run(*POINT, *FEW, "--plot", name)
        assert Path(name).read_bytes() == first


def test_without_matplotlib_a_picture_is_refused_in_one_line(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "matplotlib" else find(name))
    assert "--plot: got no matplotlib here, expected it installed: pip install" in refused(*POINT, "--plot", "c.svg")


def test_nothing_is_drawn_that_is_not_asked_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def no_matplotlib(name: str, *rest: object) -> object:
        assert not name.startswith("matplotlib")
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    assert run(*POINT, *FEW).exit_code == 0


@pytest.mark.parametrize(
    ("lower", "upper", "shown"),
    [
        ("0.12345678901", "0.12345678902", "0.12345678…"),
        ("0.123456", "0.123461", "0.1234…"),
        ("0.25", "0.25", "0.25"),
        ("0.0199999999999", "0.0200000000001", "≈ 0.02"),
        ("0.88", "1.21", "0.88 … 1.21"),
        ("-86.062", "-86.061", "-86.06…"),
    ],
)  # fmt: skip
def test_certain_digits(lower: str, upper: str, shown: str) -> None:
    value = Enclosure(Fraction(lower), Fraction(upper))
    assert certain(value) == shown


@pytest.mark.parametrize("family", ["truncated-staircase", "laplace"])
def test_what_is_compared_can_be_calibrated_and_verified(run: Run, family: str) -> None:
    ran = run("calibrate", family, "--epsilon", "3", "--delta", "0.01", "-o", "cert.json", "--json")
    (row,) = run(*POINT, "--families", family, "--json").json["mechanisms"]
    assert (ran.exit_code, ran.json["verdict"], ran.json["sigma"]) == (0, "verified", None)
    assert (ran.json["l2"], ran.json["mechanism"]) == (row["l2"], row["mechanism"])
    assert run("verify", "cert.json").exit_code == 0
    assert "  parameters " in run("calibrate", family, "--epsilon", "3", "--delta", "0.01").stdout


CALIBRATE = ("calibrate", "tulap", "--epsilon", "3")
UNSUITABLE = {
    "claim": ((*CALIBRATE, "--delta", "0.01", "--claim", "theorem-4.2"), "--claim: got theorem-4.2, expected direct"),
    "decimals": ((*CALIBRATE, "--delta", "0.01", "--decimals", "3"), "--decimals: got 3, expected none"),
    "point": ((*CALIBRATE, "--delta", "0"), "FAMILY: got tulap, expected a family that can serve (3, 0)"),
}


@pytest.mark.parametrize(("arguments", "message"), UNSUITABLE.values(), ids=UNSUITABLE)
def test_calibrations_without_a_scale(refused: Refused, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(*arguments)
