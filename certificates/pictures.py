"""What the pictures of a statement show, as numbers: the density, D over the shifts, and δ(ε) round the claim.

The enclosures are proved (audit.profile); the curves between them are floats, and are drawn as such.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from audit.profile import Divergence, Sample, band_between, enclose_divergence, enclose_profile
from audit.verdict import Decision, Expired, Limits
from mechanisms.arithmetic import FLOAT
from mechanisms.claims import Claim, Direct, Statement
from mechanisms.divergence import MAX_PIECES, Curve, local_maxima
from mechanisms.endless import EndlessSteps
from mechanisms.form import Form
from mechanisms.numbers import InputError, nearest_float

Floats = NDArray[np.float64]
Line = tuple[Floats, Floats]
"""The points of a curve: x and y."""

ALONG, ACROSS = 28, 12
"""Shifts at which D is enclosed: in equal steps along its curve, and across [0, Δ]."""
SIDE = [Fraction(step, 100) for step in (2, 5, *range(10, 101, 10))]
STEPS = (*(-step for step in reversed(SIDE)), Fraction(0), *SIDE)
"""Where δ(ε) is enclosed, as shares of the half-width of the picture."""
BETWEEN = 2
"""Float values of δ(ε) for each step."""
WIDEST = 8
"""Most by which ε differs from the claim's."""
OFF_PANEL = 1e-3
"""What is below this share of the lowest density shown is left out."""
MOST_COMPONENTS = 60
"""Of more components those of the largest heights are drawn."""
MOST_STEPS = 20_000
"""Of infinitely many steps so many at most are looked at."""
PAST = 1.08
"""A bounded support is shown with a little of what is beyond it."""
GRID = 601
NARROW = 41
"""Points across one component, for those too narrow for the common grid."""
LEAST_UNIT = 1e-200
"""Sensitivities below this, or above its inverse, have no axis in floats."""
TAIL, LEAST_TAIL = 1e-3, 1e-9
"""What lies beyond the picture's ends has a probability between these, smaller than that of any component drawn."""
DEEPEST = 1e-10
"""The lowest density that is drawn, as a share of the highest."""
SHALLOWEST = 1 / 50
"""The scale of the density goes down to this share at least, so that it has marks."""


@dataclass(frozen=True)
class DensityCurves:
    """f on a grid of x, and each weighted component of a mixture; x in the unit of the query, f in its inverse."""

    density: Line
    components: tuple[Line, ...]
    count: int
    """How many components there are; more than are drawn where there are very many."""
    least: float
    """The lowest density to show."""


@dataclass(frozen=True)
class Picture:
    """All that the three panels show of one statement."""

    statement: Statement
    claim: Claim
    decision: Decision
    density: DensityCurves
    divergence: Divergence
    divergence_curve: Line | None
    """Floats; None where these would take long: for a density of very many pieces, or after the time limit."""
    profile: tuple[Sample, ...]
    band: tuple[Floats, Floats, Floats]
    """ε, and proved bounds of δ(ε) between the samples, below and above."""
    profile_curve: Line | None
    """Floats, as divergence_curve."""


def make_picture(statement: Statement, decision: Decision, limits: Limits) -> Picture:
    """The picture of a statement with an ε and a δ; what the limits do not allow to enclose is left out.

    ``decision`` is the one about the statement. Raises InputError where the statement has no ε, and where its numbers
    are beyond what floats can draw.
    """
    mechanism, claim = statement.mechanism, statement.claim
    if not isinstance(claim, Claim):
        raise InputError("signed.statement.claim", "a claim without epsilon and delta", "one with them, to be drawn")
    form, unit = mechanism.unit_form, nearest_float(mechanism.sensitivity)
    if not LEAST_UNIT <= unit <= 1 / LEAST_UNIT:
        raise _beyond_floats()
    with np.errstate(all="ignore"):
        density = _density(form, unit)
        scanned = not isinstance(form, EndlessSteps) and len(form.whole_line) <= MAX_PIECES
        epsilons = _epsilons(claim.epsilon)
        curve = heights = None
        with contextlib.suppress(Expired):
            curve = _divergence_curve(form, claim.epsilon, limits.check) if scanned else None
            heights = _profile_curve(form, epsilons, limits.check) if scanned else None
    worst = None if decision.worst_shift is None else decision.worst_shift / mechanism.sensitivity
    shifts = [shift * mechanism.sensitivity for shift in _shifts(curve, worst)]
    top = claim.delta if curve is None else Fraction(float(curve[1].max()))
    divergence = enclose_divergence(mechanism, claim.epsilon, shifts, top, limits)
    profile = tuple(enclose_profile(mechanism, epsilons, limits))
    most = min((sample.value.upper for sample in profile if sample.at == claim.epsilon), default=Fraction(1))
    if isinstance(claim, Direct) and decision.sup_delta is not None:
        most = min(most, decision.sup_delta.upper)
    divergence = divergence.capped(most)
    picture = Picture(
        statement=statement,
        claim=claim,
        decision=decision,
        density=density,
        divergence=divergence,
        divergence_curve=None if curve is None else (curve[0] * unit, curve[1]),
        profile=profile,
        band=_band(profile),
        profile_curve=heights,
    )
    _require_finite(picture)
    return picture


def _beyond_floats() -> InputError:
    return InputError("signed.statement", "numbers beyond the range of floats", "a density that floats can draw")


def _require_finite(picture: Picture) -> None:
    lines = [picture.density.density, picture.divergence_curve, picture.profile_curve]
    numbers = [values for line in lines if line is not None for values in line]
    if not all(np.isfinite(values).all() for values in numbers) or not picture.density.density[1].max() > 0:
        raise _beyond_floats()


def _density(form: Form, unit: float) -> DensityCurves:
    """The curves of the density, from the form in units of Δ."""
    if isinstance(form, EndlessSteps):
        steps = min(math.ceil(-math.log(LEAST_TAIL) / float(form.drop)), MOST_STEPS)
        form = form.unrolled(form.start + steps * form.period)
    parts = [(piece, j) for piece in form.whole_line for j in range(len(piece.sum.lines))]
    many = len(parts) > sum(bool(piece.sum.lines) for piece in form.whole_line)
    heights = [float(piece.sum.parameters(FLOAT)[0][j]) for piece, j in parts]
    least = math.exp(min(heights) - max(heights)) if many else 1.0
    end = _end(form, min(max(least / 20, LEAST_TAIL), TAIL))
    x = _grid(form, end)
    f = form.density(x)
    top = float(f.max())
    bottom = min(max(float(f[f > 0].min(initial=top)) * 0.7, top * DEEPEST), top * SHALLOWEST)
    components = []
    chosen = sorted(range(len(parts)), key=lambda i: -heights[i])[:MOST_COMPONENTS] if many else []
    log_mass = math.log(form.mass(FLOAT))
    for i in sorted(chosen):
        piece, j = parts[i]
        low = -end if piece.start is None else max(float(piece.start), -end)
        high = end if piece.stop is None else min(float(piece.stop), end)
        inside = x[(low <= x) & (x <= high)]
        y = np.exp(piece.sum.exponents(inside, FLOAT)[j] - log_mass)
        seen = y > bottom * OFF_PANEL
        if (y > bottom).any():
            components.append((inside[seen] * unit, y[seen] / unit))
    return DensityCurves((x * unit, f / unit), tuple(components), len(parts) if many else 0, bottom / unit)


def _end(form: Form, share: float) -> float:
    """About the x beyond which the probability on that side is ``share``, or the end of the support."""
    low, high = -1000.0, 1000.0  # exponents of 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if float(form.tail(2.0**middle)) > share else (low, middle)
    stop = form.pieces[-1].stop
    return math.exp2(high) if stop is None else min(math.exp2(high), float(stop) * PAST)


def _grid(form: Form, end: float) -> Floats:
    """Points over [−end, end], closer where a component is narrow, and on both sides of every break."""
    parts = [np.linspace(0.0, end, GRID)]
    for piece in form.pieces:
        if piece.start is not None and piece.start:
            parts.append(float(piece.start) + np.array([-1e-9, 1e-9]) * end)
        if piece.stop is not None:
            parts.append(float(piece.stop) + np.array([-1e-9, 1e-9]) * end)
        if piece.sum.c and len(piece.sum.lines) <= MOST_COMPONENTS:
            _, middles, c = piece.sum.parameters(FLOAT)
            across = np.linspace(-6.0, 6.0, NARROW) / math.sqrt(2 * float(c))
            parts += [float(middle) + across for middle in middles]
    half = np.concatenate(parts)
    half = np.unique(half[(half >= 0) & (half <= end)])
    return np.concatenate([-half[:0:-1], half])


def _divergence_curve(form: Form, epsilon: Fraction, check: Callable[[], None]) -> Line:
    """D over [0, 1], closer where it peaks."""
    curve = Curve(form, epsilon, check=check)
    peaks = [shift for shift, _ in local_maxima(form, epsilon, curve=curve)[:4]]
    near = 2.0 ** -np.arange(3.0, 24.0, 0.5)
    parts = [np.linspace(0.0, 1.0, GRID), *(peak + sign * near for peak in peaks for sign in (-1, 0, 1))]
    shifts = np.unique(np.clip(np.concatenate(parts), 0.0, 1.0))
    value = np.maximum(curve.at(shifts)[0], 0.0)
    value[shifts == 0.0] = 0.0
    return shifts, value


def _shifts(curve: Line | None, worst: Fraction | None) -> list[Fraction]:
    """Where to enclose D, in units of Δ: along the curve as it is drawn, so that a narrow peak gets its share."""
    places = even = np.linspace(0.0, 1.0, ACROSS + 1)
    if curve is not None and curve[1].max() > 0:
        steps = np.hypot(np.diff(curve[0]), np.diff(curve[1] / curve[1].max()))
        length = np.concatenate([[0.0], np.cumsum(steps)])
        along = np.interp(np.linspace(0.0, length[-1], ALONG + 1), length, curve[0])
        far = [place for place in even if np.abs(along - place).min() > 0.4 / ACROSS]
        places = np.concatenate([far, along])
    exact = {Fraction(round(float(place) * 2**40), 2**40) for place in places}
    exact |= {Fraction(0), Fraction(1)} | (set() if worst is None else {worst})
    return sorted(exact)


def _epsilons(epsilon: Fraction) -> list[Fraction]:
    """Where to enclose δ(ε): from half the claim's ε to half as much again; from 0 where that is 0."""
    width = min(epsilon / 2, Fraction(WIDEST)) or Fraction(1)
    return [epsilon + step * width for step in STEPS if epsilon or step >= 0]


def _profile_curve(form: Form, epsilons: Sequence[Fraction], check: Callable[[], None]) -> Line:
    """δ(ε) at the places of the samples and between them."""
    places = [a + (b - a) * k / BETWEEN for a, b in pairwise(epsilons) for k in range(BETWEEN)] + [epsilons[-1]]
    values = [max(local_maxima(form, place, check=check)[0][1], 0.0) for place in places]
    return np.array([float(place) for place in places]), np.array(values)


def _band(samples: Sequence[Sample]) -> tuple[Floats, Floats, Floats]:
    places = [float(sample.at) for sample in samples]
    between = [float(x) for a, b in pairwise(places) for x in np.linspace(a, b, 25)[:-1]]
    epsilons = [*between, *places[-1:]] if len(places) > 1 else []
    bounds = np.array(band_between(samples, epsilons), dtype=np.float64).reshape(-1, 2)
    return np.array(epsilons), bounds[:, 0], bounds[:, 1]
