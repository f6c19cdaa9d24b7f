"""D over the shifts, and δ(ε) round a claim, enclosed at points and bounded between them: what a picture is drawn from.

Nothing is decided here; the enclosures are those of the search that decides.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import flint

from audit.decide import TIGHTNESS, propose_shifts
from audit.exact import ball, lower, upper
from audit.shape import Roughness, is_log_concave
from audit.shifts import MOST_LIFT, START_BITS, Search, Supremum
from audit.single import NeedBits, NeedBoxes, Points
from audit.steps import ExactDivergence, exact_divergence, supremum
from audit.sums import quotient
from audit.verdict import Enclosure, Expired, Limits
from mechanisms.divergence import local_maxima
from mechanisms.families import Mechanism
from mechanisms.lines import ZERO

TIGHT = Fraction(1, 2**8)
"""Relative width that is asked of an enclosure of D."""
FLOOR = Fraction(1, 2**10)
"""Below this share of the largest D of a picture an enclosure may be wider."""
SPARE = Fraction(5, 4)
"""How far above the float value the threshold of a search for δ(ε) lies: near it the proof is long."""
NOTHING = Fraction(1, 2**40)
"""What stands for 0 where floats see no divergence at all."""
BOXES = 256
"""Boxes of shifts for one point of δ(ε)."""
MOST_TURNS = 200
"""Shifts at which D turns that are looked at between two samples."""


@dataclass(frozen=True)
class Sample:
    """The enclosure of a function at one place."""

    at: Fraction
    value: Enclosure


@dataclass(frozen=True)
class Divergence:
    """D enclosed at shifts in rising order, in the unit of the query; and bounded on the intervals between them.

    ``between[i]`` is at least D(φ) for every φ from ``samples[i].at`` to ``samples[i + 1].at``.
    """

    samples: tuple[Sample, ...]
    between: tuple[Fraction, ...]
    complete: bool
    """False: the limits ended the work before the last shift."""

    def capped(self, most: Fraction) -> Divergence:
        """The same, where D is known to be at most ``most`` at every shift."""
        return replace(self, between=tuple(min(bound, most) for bound in self.between))


def enclose_divergence(
    mechanism: Mechanism, epsilon: Fraction, shifts: Sequence[Fraction], top: Fraction, limits: Limits
) -> Divergence:
    """D_ε at the given shifts (exact, in [0, Δ], rising), and upper bounds between neighbours.

    ``top`` is about the largest D of interest; much smaller values are enclosed to a share of it only. Where the limits
    end the work, the shifts before that are returned.
    """
    form, unit = mechanism.unit_form, mechanism.sensitivity
    wanted = [shift / unit for shift in shifts]
    exact = exact_divergence(mechanism, epsilon)
    if exact is not None:
        return _exactly(exact, wanted, unit, limits)
    scale = top or NOTHING
    bits = START_BITS
    samples: list[Sample] = []
    between: list[Fraction] = []
    complete = False
    while bits <= limits.bits and not complete:
        try:
            with flint.ctx.workprec(bits):
                boxes = _Boxes(Points(form, limits, scale), epsilon, scale)
                for shift in wanted[len(samples) :]:
                    value = boxes.enclose(shift, epsilon)
                    if samples:
                        start = wanted[len(samples) - 1]
                        between.append(boxes.bound(start, shift, value))
                    samples.append(Sample(shift * unit, value))
                complete = True
        except NeedBits:
            bits *= 2
        except (NeedBoxes, Expired):
            break
    return Divergence(tuple(samples), tuple(between), complete)


def _exactly(exact: ExactDivergence, wanted: Sequence[Fraction], unit: Fraction, limits: Limits) -> Divergence:
    """The same for a density of steps, whose D is linear between the shifts that decide."""
    known: dict[Fraction, Enclosure] = {}

    def enclose(shift: Fraction) -> Enclosure:
        if shift not in known:
            limits.check()
            known[shift] = quotient(exact.at(shift, limits).terms, exact.mass, ZERO, limits)
        return known[shift]

    samples: list[Sample] = []
    between: list[Fraction] = []
    complete = False
    with contextlib.suppress(Expired, NeedBits):
        for shift in wanted:
            sample = Sample(shift * unit, enclose(shift))
            if samples:
                inside = [turn for turn in exact.shifts if samples[-1].at / unit < turn < shift]
                ends = [samples[-1].value.upper, sample.value.upper]
                few = len(inside) <= MOST_TURNS
                between.append(max([*ends, *(enclose(turn).upper for turn in inside)]) if few else Fraction(1))
            samples.append(sample)
        complete = True
    return Divergence(tuple(samples), tuple(between), complete)


class _Boxes:
    """Enclosures of D at shifts and bounds over intervals of shifts, at the precision in force; Δ = 1."""

    def __init__(self, points: Points, epsilon: Fraction, scale: Fraction) -> None:
        self._points, self._epsilon = points, epsilon
        self._floor = ball(scale * FLOOR)
        self._rises = is_log_concave(points.form)
        self._rough = Roughness.of(points.form)

    def enclose(self, shift: Fraction, epsilon: Fraction) -> Enclosure:
        """D_ε at one shift."""
        if shift == 0 and epsilon >= 0:
            return Enclosure(ZERO, ZERO)
        _, low, high = self._points.measure(shift, epsilon, TIGHT, self._floor)
        return Enclosure(max(lower(low), ZERO), min(upper(high), Fraction(1)))

    def bound(self, start: Fraction, stop: Fraction, at_stop: Enclosure) -> Fraction:
        """An upper bound of D over [start, stop]; 1 where none better is known.

        Source: audit.shape, is_log_concave (D does not fall) and Roughness (the two ends bound what is between).
        """
        if self._rises:
            return at_stop.upper
        rough, width = self._rough, stop - start
        lift = rough.lift(width)
        if lift > MOST_LIFT:
            return Fraction(1)
        ends = max(self.enclose(shift, self._epsilon - lift).upper for shift in (start, stop))
        bound = ball(lift).exp() * ball(ends)
        if rough.points:
            bound = bound + rough.upper_charge(self._points.form, width) / self._points.mass
        return min(upper(bound), Fraction(1))


def enclose_profile(mechanism: Mechanism, epsilons: Sequence[Fraction], limits: Limits) -> Iterator[Sample]:
    """δ(ε) = sup of D_ε over the shifts in [0, Δ], enclosed at each ε for which the limits allow it."""
    few = replace(limits, boxes=min(limits.boxes, BOXES))
    for epsilon in epsilons:
        if limits.expired():
            return
        with contextlib.suppress(Expired):
            found = _supremum(mechanism, epsilon, few)
            if found.peak is not None and found.upper is not None:
                yield Sample(epsilon, Enclosure(found.peak.lower, min(found.upper, Fraction(1))))


def _supremum(mechanism: Mechanism, epsilon: Fraction, limits: Limits) -> Supremum:
    """sup of D_ε over the shifts, by the search that suits the density."""
    exact = exact_divergence(mechanism, epsilon)
    if exact is not None:
        return supremum(exact, ZERO, limits)
    form = mechanism.unit_form
    threshold = max(Fraction(local_maxima(form, epsilon, check=limits.check)[0][1]), ZERO) * SPARE
    search = Search(
        form,
        epsilon,
        threshold,
        grid=None,
        tightness=TIGHTNESS,
        floor=threshold * FLOOR,
        limits=limits,
        progress=None,
    )
    return search.run(functools.partial(propose_shifts, form, epsilon, limits.check))


def band_between(samples: Sequence[Sample], epsilons: Sequence[float]) -> list[tuple[float, float]]:
    """Bounds of δ at other ε, within the range of the samples, in floats for drawing.

    Source: D_α is convex in α = e^ε and does not rise, and so is the supremum of any number of such functions. A chord
    between two samples bounds it from above; a chord beyond its two ends, and the next sample, bound it from below.
    Samples whose ε floats do not tell apart have no chord; δ between them is at most that of the first.
    """
    found: list[tuple[float, float]] = []
    places = [float(sample.at) for sample in samples]
    lows = [float(sample.value.lower) for sample in samples]
    highs = [float(sample.value.upper) for sample in samples]
    for epsilon in epsilons:
        i = next(i for i, (a, b) in enumerate(itertools.pairwise(places)) if a <= epsilon <= b)

        def share(a: float, b: float, at: float = epsilon) -> float:
            """(α − α_a)/(α_b − α_a), without overflow."""
            return math.expm1(at - a) / math.expm1(b - a)

        t = share(places[i], places[i + 1]) if places[i] < places[i + 1] else 0.0
        low = lows[i + 1]
        if i > 0 and places[i - 1] < places[i]:
            s = share(places[i - 1], places[i])
            low = max(low, s * lows[i] - (s - 1) * highs[i - 1])
        if i + 2 < len(places) and places[i + 1] < places[i + 2]:
            s = 1 - share(places[i + 1], places[i + 2])
            low = max(low, s * lows[i + 1] - (s - 1) * highs[i + 2])
        found.append((low, (1 - t) * highs[i] + t * highs[i + 1]))
    return found
