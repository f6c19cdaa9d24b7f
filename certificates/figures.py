"""The figures that a certificate shows beside its proof, computed from the statement: written once, checked against.

Nothing is decided here. Float64 figures are marked as such in a certificate; a scale is shown as a hex float and as the
shortest decimal where it is a double.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from audit.verdict import Enclosure
from mechanisms.families import Mechanism, ScaledFamily
from mechanisms.numbers import nearest_float


def scale_of(mechanism: Mechanism) -> Fraction | None:
    """σ, or None for a mechanism that has none."""
    return mechanism.sigma if isinstance(mechanism, ScaledFamily) else None


def as_double(value: Fraction | None) -> float | None:
    """The double that ``value`` is, or None where it is none."""
    if value is None:
        return None
    double = nearest_float(value)
    return double if math.isfinite(double) and Fraction(double) == value else None


def float_losses(mechanism: Mechanism) -> tuple[float | None, float | None]:
    """(E|X|, E X²) in float64; None for one that float64 cannot give."""
    with np.errstate(all="ignore"):
        form = mechanism.form
        pair = float(form.mean_absolute()), float(form.mean_square())
    l1, l2 = (figure if math.isfinite(figure) and figure > 0 else None for figure in pair)
    return l1, l2


def slack(threshold: Fraction, sup_delta: Enclosure) -> Enclosure:
    """threshold − sup D: what is left of the promise (below 0 where it is broken)."""
    return Enclosure(threshold - sup_delta.upper, threshold - sup_delta.lower)
