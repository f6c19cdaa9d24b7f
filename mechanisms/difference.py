"""The integrand of the hockey-stick divergence, exactly: f(x + φ) − e^ε f(x), positive minus negative lines. (trusted)

Equal exponentials are added first, as exact terms: with geometric weights and φ = Δ nearly all of them cancel, and no
arithmetic that evaluates them apart could tell that.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from mechanisms.form import Form
from mechanisms.lines import ZERO, Line, LineSum, Terms, merge_terms


@dataclass(frozen=True)
class Stretch:
    """On (start, stop), None for an infinite end: f(x + φ) − e^ε f(x) = positive(x) − negative(x), both ≥ 0."""

    start: Fraction | None
    stop: Fraction | None
    positive: LineSum
    negative: LineSum


def difference(form: Form, shift: Fraction, epsilon: Fraction) -> tuple[Stretch, ...]:
    """f(x + φ) − e^ε f(x) on the whole line, f not normalised; the stretches are in order and leave out only points.

    Exact for every rational φ and ε (ε may be negative).
    """
    pieces = form.whole_line
    breaks = sorted({b for p in pieces if p.stop is not None for b in (p.stop, p.stop - shift)})
    ends: list[Fraction | None] = [None, *breaks, None]
    moved = {id(p): p.sum.shifted(shift) for p in pieces}
    lifted = {id(p): p.sum.lifted(epsilon) for p in pieces}
    stops = [p.stop for p in pieces if p.stop is not None]
    stretches = []
    for start, stop in pairwise(ends):
        inside = _inside(start, stop)
        there, here = (pieces[bisect_right(stops, x)] for x in (inside + shift, inside))
        stretches.append(Stretch(start, stop, *cancel(moved[id(there)], lifted[id(here)])))
    return tuple(stretches)


def _inside(start: Fraction | None, stop: Fraction | None) -> Fraction:
    if start is None:
        return ZERO if stop is None else stop - 1
    return start + 1 if stop is None else (start + stop) / 2


def cancel(positive: LineSum, negative: LineSum) -> tuple[LineSum, LineSum]:
    """The same difference with equal exponentials added, where that leaves a coefficient of known sign."""
    if positive.c != negative.c or positive.slopes.isdisjoint(negative.slopes):
        return positive, negative
    plus, minus = positive.by_slope, negative.by_slope
    kept: tuple[list[Line], list[Line]] = ([], [])
    for slope in sorted(plus.keys() | minus.keys()):
        opposed = tuple((-w, a) for w, a in minus.get(slope, ()))
        terms = merge_terms((*plus.get(slope, ()), *opposed))
        if not terms:
            continue
        if is_positive(terms):
            kept[0].append(Line(terms, slope))
        elif is_positive(tuple((-w, a) for w, a in terms)):
            kept[1].append(Line(tuple((-w, a) for w, a in terms), slope))
        else:
            for side, source in zip(kept, (plus, minus), strict=True):
                side.append(Line(source[slope], slope))
    return LineSum(positive.c, tuple(kept[0])), LineSum(negative.c, tuple(kept[1]))


def is_positive(terms: Terms) -> bool:
    """Whether Σ w_i e^(a_i) > 0 follows from rational arithmetic alone: all partial sums of the weights are ≥ 0.

    With a_1 > a_2 > …, summation by parts writes the sum as Σ (w_1 + … + w_i)(e^(a_i) − e^(a_{i+1})) + (all) e^(a_n).
    False means «not shown», not «not positive».
    """
    partial = ZERO
    some = False
    for weight, _ in terms:
        partial += weight
        if partial < 0:
            return False
        some = some or partial > 0
    return some
