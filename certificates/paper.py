"""The paper's grid: the 150 pairs (ε, δ) of its tables, as text."""

from __future__ import annotations

from typing import Final

EPSILONS: Final = ("0.1", "0.25", "0.5", "0.75", "1", "2", "3", "4", "5", "10")
DELTAS: Final = (
    *("5e-7", "1e-6", "5e-6", "1e-5", "5e-5", "1e-4", "5e-4", "1e-3", "5e-3"),
    *("0.01", "0.02", "0.05", "0.1", "0.15", "0.25"),
)
CELLS: Final = tuple((epsilon, delta) for epsilon in EPSILONS for delta in DELTAS)
"""In the order of the tables' columns."""
