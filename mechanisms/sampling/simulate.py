"""Noise in floats, fast, for simulation ONLY: never release a value that was made with it.

Floating-point noise has another distribution than the certified one: its low bits can give the data away (Mironov
2012), and its generator is predictable. To release a value take mechanisms.sampling.sampler.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mechanisms.arithmetic import FLOAT
from mechanisms.endless import EndlessSteps
from mechanisms.form import Piece
from mechanisms.lines import LineSum
from mechanisms.mechanism import Mechanism
from mechanisms.numbers import InputError, nearest_float

Floats = NDArray[np.float64]


def simulate_noise(mechanism: Mechanism, count: int, seed: int | np.random.Generator) -> Floats:
    """``count`` values of the noise as float64, of shape (count,), in the unit of the query. NOT FOR RELEASE.

    For studies of accuracy: the distribution is the declared one up to rounding, the values depend on the seed (and on
    the versions of numpy and scipy) alone. Any family. Raises InputError for a count or a seed that is none.
    """
    for name, value in (("count", count), ("seed", seed)):
        if isinstance(value, np.random.Generator):
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InputError(name, value, "a whole number from 0")
    rng = np.random.default_rng(seed)
    form = mechanism.form
    parts = [(piece, LineSum(piece.sum.c, (line,))) for piece in form.pieces for line in piece.sum.lines]
    masses = np.array([_mass(piece, line) for piece, line in parts])
    if isinstance(form, EndlessSteps):
        repeating = np.array([piece.start == form.start for piece, _ in parts])
        masses[repeating] /= -np.expm1(-nearest_float(form.drop))
    chosen = rng.choice(len(parts), size=count, p=masses / masses.sum())
    found = np.empty(count)
    for number in np.flatnonzero(np.bincount(chosen, minlength=len(parts))).tolist():
        at = np.flatnonzero(chosen == number)
        piece, line = parts[number]
        found[at] = _on_piece(piece, line, rng.random(len(at)))
        if isinstance(form, EndlessSteps) and piece.start == form.start:
            steps = rng.geometric(-np.expm1(-nearest_float(form.drop)), len(at)) - 1
            found[at] += nearest_float(form.period) * steps
    return np.where(rng.random(count) < 0.5, -found, found)


def _ends(piece: Piece) -> tuple[float, float]:
    assert piece.start is not None
    return nearest_float(piece.start), np.inf if piece.stop is None else nearest_float(piece.stop)


def _mass(piece: Piece, line: LineSum) -> float:
    start, stop = _ends(piece)
    end = None if piece.stop is None else FLOAT.array([stop])
    return float(line.moments(FLOAT.array([start]), end, 0, FLOAT)[0][0])


def _on_piece(piece: Piece, line: LineSum, u: Floats) -> Any:
    """The values at which the line's distribution function on the piece is u."""
    start, stop = _ends(piece)
    _, middles, c = line.parameters(FLOAT)
    middle = float(middles[0])
    if not line.c:
        if not middle:
            return start + (stop - start) * u
        if middle > 0:
            return stop + np.log1p(u * np.expm1(-middle * (stop - start))) / middle
        return start + np.log1p(u * np.expm1(middle * (stop - start))) / middle
    scale = 1 / np.sqrt(2 * float(c))
    low, high = (start - middle) / scale, (stop - middle) / scale
    side = 1.0
    if low + high > 0:  # on the side where the probabilities are small, and exact relative to their size
        low, high, side = -high, -low, -1.0
    below, above = special.log_ndtr(low), special.log_ndtr(high)
    level = above + np.log1p(u * np.expm1(min(below - above, 0.0)))
    return np.clip(middle + side * scale * special.ndtri_exp(level), start, stop)
