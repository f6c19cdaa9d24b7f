"""``audit published`` and audit.attain: printed figures, each with its verdict."""

from __future__ import annotations

import csv
import json
import math
from fractions import Fraction
from pathlib import Path

import pytest

from audit.attain import attempt_multi, attempt_quasi
from audit.losses import enclose_losses
from audit.scales import calibrate
from audit.verdict import Enclosure, Limits, Verdict
from certificates.published import Figure, judge, read_figures
from mechanisms.claims import Direct
from mechanisms.families import MultiGaussian, QuasiGaussian
from tests.cli.support import Refused, Run

EXAMPLE = Path(__file__).parents[2] / "examples" / "published-figures.csv"
CLAIM = Direct(epsilon=Fraction(3), delta=Fraction("0.01"))


def exactly(loss: Fraction) -> Enclosure:
    return Enclosure(loss, loss)


@pytest.mark.parametrize("K", [1, 2, 9])
def test_a_loss_just_above_the_least_is_attained_and_just_below_refuted(K: int) -> None:
    best = calibrate("multi-gaussian", CLAIM, K=K).losses.l2
    above = attempt_multi(CLAIM, Fraction(1), K, exactly(best.upper * (1 + Fraction(1, 10**6))), Limits())
    below = attempt_multi(CLAIM, Fraction(1), K, exactly(best.lower * (1 - Fraction(1, 10**6))), Limits())
    assert (above.verdict, below.verdict) == (Verdict.VERIFIED, Verdict.REFUTED)
    assert above.sigma is not None and below.sigma is not None
    held, failed = (
        enclose_losses(MultiGaussian(sensitivity=1, sigma=sigma, K=K, epsilon=3)).l2
        for sigma in (above.sigma, below.sigma)
    )
    assert held.upper <= best.upper * (1 + Fraction(1, 10**6))
    assert failed.upper >= best.lower * (1 - Fraction(1, 10**6))


def test_the_quasi_gaussian_likewise() -> None:
    best = calibrate("quasi-gaussian", CLAIM).losses.l2
    above = attempt_quasi(CLAIM, Fraction(1), exactly(best.upper * (1 + Fraction(1, 10**6))), Limits())
    below = attempt_quasi(CLAIM, Fraction(1), exactly(best.lower * (1 - Fraction(1, 10**6))), Limits())
    assert (above.verdict, below.verdict) == (Verdict.VERIFIED, Verdict.REFUTED)
    assert above.sigma is not None
    assert enclose_losses(QuasiGaussian(sensitivity=1, sigma=above.sigma, epsilon=3)).l2.upper <= best.upper * Fraction(
        1000001, 1000000
    )


def test_a_loss_below_that_of_no_noise_needs_no_scale() -> None:
    """The components alone have E X² = 2 e^(-3)/(1 + 2 e^(-3)) = 0.0905…"""
    least = 2 * math.exp(-3) / (1 + 2 * math.exp(-3))
    for attempt in (attempt_multi(CLAIM, Fraction(1), 1, exactly(Fraction(least * 0.999)), Limits()),
                    attempt_quasi(CLAIM, Fraction(1), exactly(Fraction(least * 0.9)), Limits())):  # fmt: skip
        assert (attempt.verdict, attempt.sigma) == (Verdict.REFUTED, None)


def test_sensitivity_scales() -> None:
    loss = calibrate("multi-gaussian", CLAIM, K=2).losses.l2.upper * Fraction(101, 100)
    assert attempt_multi(CLAIM, Fraction(7), 2, exactly(49 * loss), Limits()).verdict is Verdict.VERIFIED


def test_a_limit_leaves_it_open() -> None:
    attempt = attempt_multi(CLAIM, Fraction(1), 2, exactly(Fraction("0.17")), Limits(expired=lambda: True))
    assert attempt.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("percent", "least", "factor"),
    [
        ("87.22", "87.215", 1 - Fraction("0.87215")),
        ("0.00", "-0.005", 1 / (1 - Fraction("0.00005"))),
        ("-86.1", "-86.15", 1 / (1 - Fraction("0.8615"))),
        ("50", "49.5", Fraction("0.505")),
    ],
)
def test_a_figure_is_read_in_its_own_favour(percent: str, least: str, factor: Fraction) -> None:
    figure = Figure(Fraction(1), Fraction("0.1"), percent)
    assert figure.least_percent == Fraction(least)
    assert figure.implied(exactly(Fraction(3))) == exactly(3 * factor)


def test_verdicts(run: Run, tmp_path: Path) -> None:
    """At (3, 0.01) 74.13 per cent is what K = 2 attains; a unit more is not, nor is what was printed."""
    rows = ["epsilon,delta,percent,table,against,reachable_by_any"]
    rows += [
        f"3,0.01,{percent},{percent},gaussian,{'no' if percent == '83.43' else ''}"
        for percent in ("74.13", "74.14", "83.43")
    ]
    (tmp_path / "figures.csv").write_text("\n".join(rows))
    ran = run("published", "figures.csv", "--jobs", "1", "--json")
    assert ran.exit_code == 1
    figures = ran.json["figures"]
    assert [figure["verdict"] for figure in figures] == ["attainable", "refuted", "refuted"]
    assert figures[0]["attempts"][-1]["K"] == 2 and figures[0]["attempts"][-1]["verdict"] == "verified"
    assert [attempt["K"] for attempt in figures[1]["attempts"]] == [*range(1, 21), None]
    assert {attempt["verdict"] for attempt in figures[1]["attempts"]} == {"refuted"}
    assert [figure["reachable_by_any"] for figure in figures] == [None, None, "no"]


def test_the_table_for_people(run: Run, tmp_path: Path) -> None:
    (tmp_path / "figures.json").write_text('[{"epsilon": "3", "delta": "0.01", "percent": "74.13", "table": "4"}]')
    ran = run("published", "figures.json", "--jobs", "1")
    assert ran.exit_code == 0
    assert "| ε | figures | attainable | refuted | inconclusive |" in ran.stdout
    assert "| 3 | 1 | 1 | 0 | 0 |\n| all | 1 | 1 | 0 | 0 |" in ran.stdout


def test_the_benchmark_may_be_another() -> None:
    figure = Figure(Fraction(3), Fraction("0.01"), "17.96", against="truncated-laplace")
    found = json.loads(judge(20, 60.0, Limits.bits, (0, figure)))
    assert found["verdict"] == "attainable"
    assert float(found["implied_l2"]["lower"]) == pytest.approx(0.215141693 * (1 - 0.17955))


def test_a_benchmark_that_does_not_exist_leaves_it_open() -> None:
    figure = Figure(Fraction(3), Fraction(0), "10")
    assert json.loads(judge(2, 60.0, Limits.bits, (0, figure)))["verdict"] == "inconclusive"


def test_the_file_of_printed_figures() -> None:
    figures = read_figures(str(EXAMPLE))
    counts = [sum(figure.table == table for figure in figures) for table in ("4", "7")]
    assert counts == [143, 150]
    assert sum(figure.reachable_by_any == "no" for figure in figures) == 58
    assert {(figure.table, figure.against) for figure in figures} == {("4", "gaussian"), ("7", "truncated-laplace")}


FILES = {
    "missing": ("f.csv", "epsilon,delta\n1,0.1\n", "f.csv: line 2: got "),
    "unknown": ("f.csv", "epsilon,delta,percent,x\n1,0.1,5,6\n", "f.csv: line 2: got "),
    "short": ("f.csv", "epsilon,delta,percent\n1,0.1\n", "f.csv: line 2: got "),
    "long": ("f.csv", "epsilon,delta,percent\n1,0.1,5,6\n", "f.csv: line 2: got "),
    "percent": ("f.csv", "epsilon,delta,percent\n1,0.1,five\n", "f.csv: line 2: percent: got five"),
    "percent-sign": ("f.csv", "epsilon,delta,percent\n1,0.1,5%\n", "f.csv: line 2: percent: got 5%"),
    "percent-large": ("f.csv", "epsilon,delta,percent\n1,0.1,101\n", "expected a decimal above -100 and up to 100"),
    "percent-exponent": ("f.csv", "epsilon,delta,percent\n1,0.1,5e0\n", "expected a decimal above -100 and up to 100"),
    "against": ("f.csv", "epsilon,delta,percent,against\n1,0.1,5,cauchy\n", "f.csv: line 2: against: got cauchy"),
    "reachable": ("f.csv", "epsilon,delta,percent,reachable_by_any\n1,0.1,5,maybe\n", "reachable_by_any: got maybe"),
    "empty": ("f.csv", "epsilon,delta,percent\n", "f.csv: got no figures"),
    "not-a-list": ("f.json", "{}", "f.json: got no figures"),
    "number": ("f.json", '[{"epsilon": 1, "delta": "0.1", "percent": "5"}]', "f.json: item 1: got "),
    "suffix": ("f.txt", "", "f.txt: got a name that ends in '.txt'"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text", "message"), FILES.values(), ids=FILES)
def test_files_that_are_not_figures(refused: Refused, tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    assert message in refused("published", name)


@pytest.mark.slow
@pytest.mark.parametrize("row", list(csv.DictReader(EXAMPLE.read_text().splitlines())), ids=lambda row: row["epsilon"])
def test_every_printed_figure_gets_a_verdict(row: dict[str, str]) -> None:
    """None stays open, and none that no mechanism reaches is found attainable."""
    figure = Figure(Fraction(row["epsilon"]), Fraction(row["delta"]), row["percent"], against=row["against"])
    verdict = json.loads(judge(20, 600.0, Limits.bits, (0, figure)))["verdict"]
    assert verdict in ("attainable", "refuted")
    assert (verdict, row["reachable_by_any"]) != ("attainable", "no")
