"""The scan for the local maxima of D(φ) over 0 ≤ φ ≤ 1, in float64: no narrow peak that matters is stepped over.

For f = e^(−c x²) E(x) with log E convex, and κ = e^(c w²/4), D_α between two shifts a distance w apart is at most κ
times the larger D_{α/κ} of the two (α = e^ε; the inequality of arithmetic and geometric means). The scan splits every
box that this does not bound by the best value found, or nearly by its own ends. Peaks crowd near φ = 1, where boxes
shrink geometrically.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mechanisms.components import Floats
from mechanisms.form import Form

RESOLVED = 1e-2
"""A box is left alone where D in it is at most this share above D at its ends."""
FIRST = 0.015
"""log κ of the boxes to begin with."""
MAX_ROUNDS = 60
MAX_NODES = 2000
MAX_POINTS = 20_000_000
"""Most points at which the integrands of a scan are looked at: one of very many lines, far apart, may end coarse."""
LEAST_DISTANCE = 2.0**-50
"""Nearest that a node other than 1 comes to φ = 1."""


class CurveLike(Protocol):
    """What the scan needs of mechanisms.divergence.Curve."""

    points: int
    """Points at which the integrand is looked at, for one shift."""

    @property
    def breaks(self) -> Floats:
        """Where the formula of f changes."""

    @property
    def roughness(self) -> float | None:
        """The c of e^(−c x²) E(x), log E convex on the line; None where f does not show one."""

    def at(self, shift: Floats, level: Floats | None = None, precise: bool = True) -> tuple[Floats, Floats, Floats]:
        """(D, D′, D″) at each shift, of ε + level in place of ε."""


def rises_with_shift(form: Form) -> bool:
    """Whether f is log-concave for a plain reason (one line a piece, joined with falling slopes): then sup D = D(1)."""
    pieces = form.pieces
    if any(len(piece.sum.lines) != 1 for piece in pieces):
        return False
    lines = [(piece.sum.lines[0], piece.sum.c, piece.stop) for piece in pieces]
    if lines[0][0].slope > 0 or any(len(line.terms) > 1 for line, _, _ in lines):
        return False
    for (left, c, x), (right, c_right, _) in pairwise(lines):
        assert x is not None
        (weight, a), (weight_right, a_right) = left.terms[0], right.terms[0]
        step = (a_right - a) + (right.slope - left.slope) * x - (c_right - c) * x * x
        if weight != weight_right or step or left.slope - 2 * c * x < right.slope - 2 * c_right * x:
            return False
    return True


class Scan:
    """D and D′ at nodes in [0, 1], refined where a maximum may be; ``last`` and ``slope`` are D(1) and D′(1)."""

    def __init__(self, curve: CurveLike, last: float, slope: float) -> None:
        self.curve = curve
        self.c = curve.roughness
        self.phi = np.array([0.0, 1.0])
        self.value = np.array([0.0, last])
        self.slope = np.array([0.0, slope])
        self.bound = np.array([np.inf])
        """Of D in each box between neighbouring nodes."""
        self._points = 0

    def add(self, shifts: Floats) -> None:
        """Evaluates D at more shifts and bounds the new boxes; shifts out of (0, 1) or there already are left out."""
        shifts = np.setdiff1d(shifts[(shifts > 0) & (shifts < 1)], self.phi)
        if not len(shifts):
            return
        phi = np.union1d(self.phi, shifts)
        old, new = np.isin(phi, self.phi), np.isin(phi, shifts)
        value, slope, bound = np.empty_like(phi), np.empty_like(phi), np.full(len(phi) - 1, np.inf)
        value[old], slope[old] = self.value, self.slope
        kept = old[:-1] & old[1:]
        bound[kept] = self.bound[(np.cumsum(old) - 1)[:-1][kept]]
        fresh = np.flatnonzero(~kept) if self.c is not None else np.array([], dtype=np.intp)
        log_kappa = (self.c or 0.0) * np.diff(phi)[fresh] ** 2 / 4
        asked = np.concatenate(
            [
                np.stack([shifts, np.zeros_like(shifts)], axis=1),
                np.stack([phi[fresh], -log_kappa], axis=1),
                np.stack([phi[fresh + 1], -log_kappa], axis=1),
            ]
        )
        rows, back = np.unique(asked, axis=0, return_inverse=True)
        self._points += len(rows) * self.curve.points
        values, slopes, _ = self.curve.at(rows[:, 0], rows[:, 1], precise=False)
        answers, back = values[back.ravel()], back.ravel()
        count = len(shifts)
        value[new], slope[new] = answers[:count], slopes[back[:count]]
        with np.errstate(over="ignore"):
            kappa = np.exp(np.minimum(log_kappa, 700.0))
        if len(fresh):
            bound[fresh] = np.minimum(kappa * answers[count:].reshape(2, -1).max(axis=0), 1.0)
        self.phi, self.value, self.slope, self.bound = phi, value, slope, bound

    def run(self, goal: float = 0.0, floor: float = 0.0) -> None:
        """Adds nodes until every box is resolved, or the limits are reached.

        With a ``goal``: until one node is above it, or it is clear of all boxes that they are not. Boxes where D is
        below ``floor`` are left as they are.
        """
        if self.c is None:
            self.add(np.concatenate([np.arange(1, 16) / 16, 1 - 2.0 ** -np.arange(5, 40)]))
            self._coincidences()
            return
        count = int(min(max(np.sqrt(self.c / 4 / FIRST), 1), 64))
        self.add(np.concatenate([np.arange(1, count + 1) / (count + 1), 1 - 2.0 ** -np.arange(1, 5) / (count + 1)]))
        for _ in range(MAX_ROUNDS):
            ends = np.maximum(self.value[:-1], self.value[1:])
            best = float(self.value.max())
            if 0 < goal < best:
                return
            doubtful = (self.bound > max(best, goal, floor)) & (self.bound > ends * (1 + RESOLVED))
            wanted = np.maximum(max(best, goal, floor, 1e-320), ends * (1 + RESOLVED))
            boxes = np.flatnonzero(doubtful)
            with np.errstate(over="ignore"):
                excess = (self.bound[boxes] - ends[boxes]) / (wanted[boxes] - ends[boxes])
            inner = self._inner(boxes, excess)
            if not len(inner) or len(self.phi) > MAX_NODES or self._points > MAX_POINTS:
                return
            self.add(inner)

    def best(self) -> tuple[float, float]:
        """(φ, D) of the node with the largest D."""
        at = int(self.value.argmax())
        return float(self.phi[at]), float(self.value[at])

    def _inner(self, boxes: NDArray[np.intp], excess: Floats) -> Floats:
        """Where to split: evenly, nearer to 1 geometrically; in as many as a bound that goes with width² asks for."""
        most = 4 if len(boxes) <= 4 else 2
        parts = np.clip(np.ceil(np.sqrt(excess)), 2, most).astype(np.intp)
        shares = np.concatenate([np.empty(0), *(np.arange(1, n) / n for n in parts)])
        boxes = np.repeat(boxes, parts - 1)
        near, far = 1 - self.phi[boxes + 1], 1 - self.phi[boxes]
        inside = np.where(far > 2 * near, near ** (1 - shares) * far**shares, near + shares * (far - near))
        distance = np.where(near == 0, far * np.minimum(0.125, far) ** shares, inside)
        keep = (distance >= LEAST_DISTANCE) & (distance > near) & (distance < far)
        found: Floats = 1 - distance[keep]
        return found

    def _coincidences(self) -> None:
        """For forms of several pieces: the shifts at which two ends of pieces meet, and points between them."""
        breaks = self.curve.breaks
        meets = np.unique(np.abs(breaks[:, None] - breaks[None, :]).ravel())
        meets = np.concatenate([[0.0], meets[(meets > 0) & (meets < 1)][:200], [1.0]])
        between = meets[:-1, None] + np.diff(meets)[:, None] * (np.arange(1, 8) / 8)
        self.add(np.concatenate([meets, between.ravel(), np.arange(1, 64) / 64]))

    def maxima(self, above: float = 0.0, known: float | None = None) -> list[tuple[float, float]]:
        """(φ, D) of the maxima inside (0, 1), where D′ changes from above to below 0; of a plateau, one node.

        Only those that may be above a value, and not the one next to the node ``known``.
        """
        at = np.flatnonzero((self.slope[:-1] > 0) & (self.slope[1:] < 0) & (self.bound > above))
        if known is not None:
            at = at[(self.phi[at] != known) & (self.phi[at + 1] != known)]
        low, high = self.phi[at], self.phi[at + 1]
        start = low + (high - low) * self.slope[at] / (self.slope[at] - self.slope[at + 1])
        phi, value = refine(self.curve, low, high, start)
        found = list(zip(phi.tolist(), value.tolist(), strict=True))
        top, rough = self.best()
        if top not in (1.0, known) and rough > max([above, self.value[-1], *value.tolist()]) * (1 + 1e-9):
            found.append((top, float(self.curve.at(np.array([top]))[0][0])))
        return found


def refine(curve: CurveLike, low: Floats, high: Floats, start: Floats) -> tuple[Floats, Floats]:
    """(φ, D) of one maximum in each bracket with D′(low) > 0 > D′(high), by safeguarded Newton on D′."""
    low, high, phi, value = low.copy(), high.copy(), start.copy(), np.zeros_like(start)
    todo = np.arange(len(phi))
    for _ in range(40):
        if not len(todo):
            break
        x = phi[todo]
        value[todo], slope, curvature = curve.at(x)
        low[todo] = np.where(slope > 0, x, low[todo])
        high[todo] = np.where(slope > 0, high[todo], x)
        with np.errstate(all="ignore"):
            newton = x - slope / curvature
        tolerance = np.minimum(1e-10, 1e-6 * (1 - x)) + 2 * np.spacing(x)
        settled = (np.abs(newton - x) <= tolerance) | (high[todo] - low[todo] <= tolerance) | (slope == 0)
        inside = (newton > low[todo]) & (newton < high[todo])
        phi[todo] = np.where(settled, x, np.where(inside, newton, (low[todo] + high[todo]) / 2))
        todo = todo[~settled]
    return phi, value
