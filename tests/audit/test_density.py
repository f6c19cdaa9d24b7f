"""The integrand at any shift, and probabilities, of every kind of density."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from audit.density import Density, _affine_ratio, _signed_parts
from audit.exact import fraction, upper
from mechanisms.lines import Line, LineSum
from tests.audit.support import PRECISIONS, ZOO, bits, contains, declared, mixture, multi_gaussian, point
from tests.soundness.referee import CONTEXT, MPF, number
from tests.soundness.referee_pieces import noise

SHIFTS = (Fraction(0), Fraction(1, 8), Fraction(3, 10), Fraction(7, 8), Fraction(1))


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("name", ZOO)
def test_stretches_cover_the_line_in_order_and_their_signs_are_right(name: str, shift: Fraction) -> None:
    epsilon = Fraction(7, 10)
    density, factor = ZOO[name][1], CONTEXT.exp(number(epsilon))
    with bits(128):
        stretches = Density(ZOO[name][0].unit_form).stretches(shift, epsilon)
    assert stretches[0].whole[0] is None and stretches[-1].whole[1] is None
    for left, right in pairwise(stretches):
        assert left.whole[1] is not None and left.whole[1] == right.whole[0]
    for balls in stretches:
        start, stop = (None if end is None else fraction(end) for end in balls.whole)
        low = stop - 9 if start is None and stop is not None else Fraction(-9) if start is None else start
        high = low + 9 if stop is None else stop
        for i in range(1, 8):
            x = number(low + (high - low) * i / 8)
            there, here = density.piece_at(x + number(shift)), density.piece_at(x)
            assert bool(there.terms) or balls.sign < 0
            p, n = there.value(x + number(shift)), factor * here.value(x)
            if abs(p - n) > noise() * (p + n):
                assert balls.sign == 0 or (balls.sign > 0) == (p > n)


@pytest.mark.parametrize("name", ZOO)
def test_probabilities_contain_the_truth(name: str) -> None:
    mechanism, density = ZOO[name]
    intervals = [
        (None, None),
        (None, "-0.7"),
        ("-0.3", "0.2"),
        ("0.9", "1.6"),
        ("2.2", None),
        ("7", "9"),
        (None, "1.25"),
    ]
    for precision in PRECISIONS:
        with bits(precision):
            ours = Density(mechanism.unit_form)
            for ends in intervals:
                found = ours.probability(tuple(None if end is None else point(Fraction(end)) for end in ends))  # type: ignore[arg-type]
                assert contains(found, density.probability(*ends), slack=1e-55)


def test_which_shifts_make_exponentials_cancel() -> None:
    def where(name: str) -> list[str]:
        ours = Density(ZOO[name][0].unit_form)
        return [str(shift) for shift in map(Fraction, ("0", "1/8", "1/2", "7/8", "1")) if ours.cancels(shift)]

    with bits(128):
        assert where("multi-gaussian") == ["0", "1"]
        assert where("eighths") == ["0", "1/8", "7/8", "1"]
        assert where("irregular") == ["0"]
        assert where("laplace") == where("two-rates") == ["0", "1/8", "1/2", "7/8", "1"]


KINKED = declared(("0", "1", "0", [("0", "-2")]), ("1", "inf", "0", [("-1", "-1")]), scale=0.5)
"""log f has kinks up at ±1: there f(x+φ)/f(x) rises, where elsewhere it falls."""
TWO_SCALES = declared(("0", "1", "3", [("0", "1"), ("-1", "0")]), ("1", "inf", "1/2", [("0", "1")]), scale=0.3)
"""Another c on each piece, two lines on the first."""


@pytest.mark.parametrize("shift", ["1/8", "3/10", "1"])
@pytest.mark.parametrize("name", [*ZOO, "kinked", "two scales"])
def test_sides_and_masses_of_every_stretch_are_those_of_the_density(name: str, shift: str) -> None:
    mechanism, density = {"kinked": KINKED, "two scales": TWO_SCALES}.get(name) or ZOO[name]
    epsilon, phi = Fraction(7, 10), number(shift)
    factor = CONTEXT.exp(number(epsilon))
    with bits(128):
        ours = Density(mechanism.unit_form)
        scale = number(upper(ours.mass)) / density.mass
        stretches = ours.stretches(Fraction(shift), epsilon)
        cancels = ours.cancels(Fraction(shift))
    assert len(stretches) >= len(ours.pieces)
    for balls in stretches:
        start, stop = (None if end is None else fraction(end) for end in balls.whole)
        low = stop - 1 if start is None and stop is not None else Fraction(-1) if start is None else start
        high = low + 1 if stop is None else stop
        a, b = (low + (high - low) * i / 4 for i in (1, 3))
        there, here = density.piece_at(number((a + b) / 2) + phi), density.piece_at(number((a + b) / 2))
        with bits(128):
            masses = [side.over((point(a), point(b))) for side in (balls.positive_mass, balls.negative_mass)]
            end = balls.at(point(a)) if balls.upper is not None and balls.lower is not None else None
        moved, still = there.mass(number(a) + phi, number(b) + phi), factor * here.mass(number(a), number(b))
        difference = (moved - still) * scale
        slack = 1e-30 * float((moved + still) * scale)  # where equal exponentials cancel, 60 digits lose some
        assert contains(masses[0] - masses[1], difference, slack=slack)
        if not cancels:
            assert contains(masses[0], moved * scale, slack=slack) and contains(masses[1], still * scale, slack=slack)
        if end is None:
            continue
        p, n = there.value(number(a) + phi), factor * here.value(number(a))
        if not cancels and not balls.sign:
            assert contains(end.u - end.v, CONTEXT.log(p / n), slack=1e-30)
            assert contains(end.log_positive, CONTEXT.log(p * scale), slack=1e-30)
            assert balls.positive_mass.lines + balls.negative_mass.lines == len(there.terms) + len(here.terms)
        step = MPF(10) ** -20
        slope = CONTEXT.log(there.value(number(a) + phi + step) / here.value(number(a) + step)) - CONTEXT.log(p / n)
        if not cancels and not balls.sign:
            assert contains(end.du - end.dv, (slope - number(epsilon)) / step, slack=1e-15)


def test_the_middles_of_a_stretch_are_those_of_its_outermost_lines() -> None:
    with bits(128):
        (balls,) = Density(multi_gaussian("1/3", 2, "1")[0].unit_form).stretches(Fraction(1, 4), Fraction(1))
        stretches = Density(TWO_SCALES[0].unit_form).stretches(Fraction(1, 4), Fraction(1))
    assert [fraction(middle) for middle in balls.middles] == [-2 - Fraction(1, 4), 2 - Fraction(1, 4), -2, 2]
    (between,) = (stretch for stretch in stretches if stretch.whole == (point(Fraction(3, 4)), point(Fraction(1))))
    assert [fraction(middle) for middle in between.middles] == [Fraction(3, 4), Fraction(3, 4), 0, Fraction(1, 6)]


def test_where_an_affine_ratio_changes_its_sign() -> None:
    def parts(constant: str, slope: str, start: str | None, stop: str | None) -> list[Any]:
        ends = [None if end is None else Fraction(end) for end in (start, stop)]
        found = _signed_parts((Fraction(constant), Fraction(slope)), *ends)
        return [(*(None if end is None else str(end) for end in whole), sign) for whole, sign in found]

    assert parts("1", "0", None, "2") == [(None, "2", 1)] and parts("-1", "0", "2", None) == [("2", None, -1)]
    assert parts("0", "0", None, None) == [(None, None, -1)]
    assert parts("1", "2", None, None) == [(None, "-1/2", -1), ("-1/2", None, 1)]
    assert parts("1", "-2", None, None) == [(None, "1/2", 1), ("1/2", None, -1)]
    assert parts("1", "2", "0", "1") == [("0", "1", 1)] and parts("1", "-2", "1", None) == [("1", None, -1)]
    assert parts("1", "2", None, "-1") == [(None, "-1", -1)] and parts("1", "-2", None, "0") == [(None, "0", 1)]
    assert parts("1", "2", "-1/2", "1") == [("-1/2", "1", 1)]
    assert parts("1", "2", "-1", "-1/2") == [("-1", "-1/2", -1)]


def test_which_ratios_are_affine() -> None:
    def summed(c: str, *lines: Line) -> LineSum:
        return LineSum(Fraction(c), lines)

    one, half, zero = Fraction(1), Fraction(1, 2), Fraction(0)
    line, other = Line.of(one, half, Fraction(3)), Line.of(one, Fraction(2), Fraction(-1))
    heavy = Line.of(Fraction(2), half, Fraction(3))
    double = Line(((one, half), (one, zero)), Fraction(3))
    # R = (a + b (x+φ) − c (x+φ)²) − (a′ + b′ x − c x²) − ε
    assert _affine_ratio(summed("5", line), summed("5", other), half, Fraction(1, 7)) == (
        half - 2 - Fraction(1, 7) + Fraction(3, 2) - Fraction(5, 4),
        3 - 5 + 1,
    )
    assert _affine_ratio(summed("0", heavy), summed("0", heavy), half, zero) == (Fraction(3, 2), zero)
    for above, below in (
        (summed("1", line), summed("2", line)),
        (summed("1", line), summed("1", heavy)),
        (summed("1", line), summed("1", double)),
        (summed("1", double), summed("1", line)),
        (summed("1", double), summed("1", double)),
        (summed("1", line, other), summed("1", line)),
        (summed("1", line), summed("1", line, other)),
        (summed("1"), summed("1", line)),
        (summed("1", line), summed("1")),
    ):
        assert _affine_ratio(above, below, half, zero) is None


def test_a_probability_with_a_floor_is_bounded_where_it_is_small() -> None:
    mechanism, density = ZOO["irregular"]
    with bits(128):
        ours = Density(mechanism.unit_form)
        rough, fine = ours.probability((point(Fraction(4)), None), -5.0), ours.probability((point(Fraction(4)), None))
    assert contains(rough, density.probability(4, None)) and contains(fine, density.probability(4, None))
    assert 1e-3 < float(rough.rad()) < 5 * 7 * 2.7 * 0.0068 and float(fine.rad()) < 1e-30


def test_cancelling_is_told_of_unequal_denominators_and_both_ways() -> None:
    """Components at 0 and ±1/3 with c = 1/2: slopes meet where the shift is a distance of two of them."""
    ours = Density(mixture("1", ("1", "0"), ("1", "1/3"))[0].unit_form)
    meet = [i for i in range(25) if ours.cancels(Fraction(i, 24))]
    assert meet == [0, 8, 16]
    uneven = Density(mixture("1", ("1", "1/5"), ("1", "1/3"))[0].unit_form)
    assert [i for i in range(31) if uneven.cancels(Fraction(i, 30))] == [0, 4, 12, 16, 20]
