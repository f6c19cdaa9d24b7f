"""The 150-cell grid: the float scales and the audit agree, a hundredth on either side and to nine digits."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from audit.decide import decide
from audit.scales import calibrate
from audit.verdict import Verdict
from mechanisms.claims import Direct, Statement, Theorem42
from mechanisms.families import Gaussian, Mechanism, MultiGaussian, QuasiGaussian
from tests.audit.support import statement

DATA = Path(__file__).parents[1] / "data"
CELLS: list[dict[str, Any]] = json.loads((DATA / "scale-grid.json").read_text(encoding="utf-8"))["cells"]
SPREAD = list(range(3, len(CELLS), 29))
REST = sorted(set(range(len(CELLS))) - set(SPREAD))
CALIBRATED = [87]


def scaled(sigma: float, percent: int) -> Fraction:
    return Fraction(sigma) * Fraction(100 + percent, 100)


def on_both_sides(mechanism: Any, sigma: float, epsilon: str, delta: str) -> None:
    """One per cent above the tight scale is verified, one below refuted."""
    made: list[Mechanism] = [mechanism(scaled(sigma, 1)), mechanism(scaled(sigma, -1))]
    above, below = (decide(statement(one, epsilon, delta)) for one in made)
    assert above.verdict is Verdict.VERIFIED and below.verdict is Verdict.REFUTED


def check_cell(cell: dict[str, Any]) -> None:
    epsilon, delta = cell["epsilon"], cell["delta"]
    on_both_sides(lambda s: Gaussian(sensitivity=1, sigma=s), cell["gaussian"], epsilon, delta)
    K, sigma, _ = cell["multi_gaussian"][0]
    on_both_sides(lambda s: MultiGaussian(sensitivity=1, sigma=s, K=K, epsilon=epsilon), sigma, epsilon, delta)
    tight = cell["quasi_gaussian_direct"]
    on_both_sides(lambda s: QuasiGaussian(sensitivity=1, sigma=s, epsilon=epsilon), tight, epsilon, delta)
    theorem = max(cell["sigma_1"], cell["sigma_2"])
    for percent, verdict in ((1, Verdict.VERIFIED), (-1, Verdict.REFUTED)):
        mechanism = QuasiGaussian(sensitivity=1, sigma=scaled(theorem, percent), epsilon=epsilon)
        assert decide(Statement(mechanism, Theorem42(epsilon=epsilon, delta=delta))).verdict is verdict


def check_calibration(cell: dict[str, Any]) -> None:
    """The certified scale is the smallest double, and the grid's to its own ten digits."""
    claim = Direct(epsilon=cell["epsilon"], delta=cell["delta"])
    K, sigma, worst = cell["multi_gaussian"][0]
    found = calibrate("multi-gaussian", claim, K=K)
    assert found.decision.verdict is Verdict.VERIFIED and found.adjacent
    assert float(getattr(found.statement.mechanism, "sigma", 0)) == pytest.approx(sigma, rel=1e-9)
    assert found.decision.worst_shift is not None and float(found.decision.worst_shift) == pytest.approx(
        worst, abs=1e-3
    )


@pytest.mark.parametrize("number", SPREAD)
def test_a_spread_of_cells(number: int) -> None:
    check_cell(CELLS[number])


@pytest.mark.parametrize("number", CALIBRATED)
def test_a_few_calibrations(number: int) -> None:
    check_calibration(CELLS[number])


@pytest.mark.slow
@pytest.mark.parametrize("number", REST)
def test_all_other_cells(number: int) -> None:
    check_cell(CELLS[number])


@pytest.mark.slow
@pytest.mark.parametrize("number", sorted(set(range(len(CELLS))) - set(CALIBRATED)))
def test_all_other_calibrations(number: int) -> None:
    check_calibration(CELLS[number])
