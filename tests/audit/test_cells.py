"""What two ends tell of the cell between them: bounds of the log-ratio, charges, signs of tails."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from audit.cells import Side, StretchBalls, upper_gap
from audit.density import Density
from audit.exact import fraction, lower, upper
from audit.masses import MovedMasses
from audit.points import ConvexLog
from mechanisms.difference import Stretch
from mechanisms.lines import Line, LineSum
from tests.audit.support import FEW, ZOO, bits, contains, point
from tests.soundness import referee
from tests.soundness.referee import CONTEXT, MPF, number
from tests.soundness.referee_pieces import noise

SHIFTS = (Fraction(1, 8), Fraction(1, 3), Fraction(7, 8), Fraction(1))
SMALL = st.fractions(min_value=-5, max_value=5, max_denominator=40)
LINES = st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=4)
"""The largest of them is convex, and steeper cases there are not."""


@FEW
@given(LINES, LINES, SMALL, st.fractions(min_value=Fraction(1, 100), max_value=6))
def test_chord_and_tangents_bound_a_difference_of_convex_functions(
    a: list[tuple[Fraction, Fraction]], b: list[tuple[Fraction, Fraction]], start: Fraction, width: Fraction
) -> None:
    def value(lines: list[tuple[Fraction, Fraction]], x: Fraction) -> Fraction:
        return max(i + k * x for i, k in lines) + x * x

    def slope(lines: list[tuple[Fraction, Fraction]], x: Fraction) -> Fraction:
        return max((i + k * x, k) for i, k in lines)[1] + 2 * x

    stop = start + width
    with bits(128):
        numbers = [
            value(a, start),
            value(a, stop),
            value(b, start),
            slope(b, start),
            value(b, stop),
            slope(b, stop),
            width,
        ]
        bound = upper(upper_gap(*[arb(point(number)) for number in numbers]))
    gaps = [value(a, x) - value(b, x) for x in (start + width * i / 24 for i in range(25))]
    assert max(gaps) <= bound
    # No looser than what the ends and the two tangents allow.
    assert bound <= max(value(a, start), value(a, stop)) - min(
        value(b, start) + min(slope(b, start), 0) * width, value(b, stop) - max(slope(b, stop), 0) * width
    )


def test_a_gap_is_the_largest_value_below_both_linear_bounds() -> None:
    """Values and slopes at random, in eighths: B convex, its tangents perhaps its chord. No larger, and no smaller."""
    rng = random.Random(3)
    for _ in range(300):
        a, a_next, b, b_next = (Fraction(rng.randint(-40, 40), 8) for _ in range(4))
        width = Fraction(rng.choice([1, 2, 4, 16]), 4)
        chord = (b_next - b) / width
        db, db_next = (chord + sign * Fraction(rng.choice([0, 0, 1, 5, 60]), 8) for sign in (-1, 1))
        from_left = a - b, a_next - (b + db * width)
        from_right = a - (b_next - db_next * width), a_next - b_next
        places = [Fraction(0), Fraction(1)]
        fall = [y - x for x, y in zip(from_left, from_right, strict=True)]
        if fall[0] != fall[1]:
            places.append(fall[0] / (fall[0] - fall[1]))
        tops = [min(x + (y - x) * place for x, y in (from_left, from_right)) for place in places if 0 <= place <= 1]
        with bits(128):
            found = upper_gap(*[arb(point(value)) for value in (a, a_next, b, db, b_next, db_next, width)])
        assert contains(found, number(max(tops))) and float(found.rad()) < 1e-30


def test_a_gap_of_nothing_known_is_nothing_known() -> None:
    bound = upper_gap(*[arb("nan")] * 7)
    assert not bound <= 0 and not bound >= 0


def _cells(name: str, shift: Fraction, epsilon: Fraction) -> list[tuple[StretchBalls, Fraction, Fraction]]:
    """Random cells of every open stretch, wide and narrow."""
    rng = random.Random(f"{name} {shift}")
    found = []
    for balls in Density(ZOO[name][0].unit_form).stretches(shift, epsilon):
        if balls.sign:
            continue
        low, high = (Fraction(int(end.p), int(end.q)) if end is not None else None for end in balls.whole)
        low = Fraction(-4) if low is None else low
        high = max(low + 1, Fraction(4)) if high is None else high
        for _ in range(12):
            a = low + (high - low) * rng.randint(0, 999) / 1000
            width = min(high - a, Fraction(1, rng.choice([1, 4, 50, 1000])))
            found.append((balls, a, a + width))
    return found


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("name", ZOO)
def test_bounds_of_the_ratio_and_charges_hold_inside_the_cell(name: str, shift: Fraction) -> None:
    epsilon = Fraction(7, 10)
    density = ZOO[name][1]
    phi, factor = number(shift), CONTEXT.exp(number(epsilon))
    with bits(128):
        for balls, a, b in _cells(name, shift, epsilon):
            left, right = balls.at(point(a)), balls.at(point(b))
            above, below = balls.upper_ratio(left, right), balls.lower_ratio(left, right)
            charge = balls.upper_charge(left, right, above)
            ratios, excess = [], []
            for x in (number(a + (b - a) * Fraction(2 * i + 1, 16)) for i in range(8)):
                p = density.piece_at(x + phi).value(x + phi)
                n = factor * density.piece_at(x).value(x)
                ratios.append(p - n if abs(p - n) > noise() * (p + n) else MPF(0))
                excess.append(max(p - n, 0))
                if name in ("gaussian", "irregular", "camel") and shift == Fraction(1, 3):  # nothing cancels: R itself
                    assert number(lower(below)) <= CONTEXT.log(p / n) <= number(upper(above))
            if above <= 0:
                assert max(ratios) <= 0
            if below >= 0:
                assert min(ratios) >= 0
            scale = number(upper(Density(ZOO[name][0].unit_form).mass)) / density.mass
            # The mean of 8 midpoints is within the larger of the steps of the integral for these widths.
            slack = 1 + 0.1 * float(b - a)
            integral = np.mean([float(v) for v in excess]) * float(b - a) * float(scale)
            assert integral <= float(charge.upper()) * slack + 1e-30


@pytest.mark.parametrize("name", ZOO)
def test_signs_of_tails(name: str) -> None:
    epsilon = Fraction(7, 10)
    density, factor = ZOO[name][1], CONTEXT.exp(number(epsilon))
    seen = set()
    with bits(128):
        for shift in SHIFTS:
            phi = number(shift)
            for balls in Density(ZOO[name][0].unit_form).stretches(shift, epsilon):
                for to_right in (False, True):
                    if balls.sign or balls.whole[to_right] is not None:
                        continue
                    for far in (0, 1, 2, 5, 20):
                        start = Fraction(far if to_right else -far)
                        other = balls.whole[not to_right]
                        if other is not None and (point(start) <= other if to_right else point(start) >= other):
                            continue
                        sign = balls.tail_sign(balls.at(point(start)), to_right)
                        seen.add(sign)
                        for step in (0.001, 0.1, 1, 3, 10, 40):
                            x = number(start) + (step if to_right else -step)
                            p, n = density.piece_at(x + phi).value(x + phi), factor * density.piece_at(x).value(x)
                            if abs(p - n) > noise() * (p + n):
                                assert sign == 0 or (p > n) == (sign > 0)
    if name in ("multi-gaussian", "irregular", "eighths"):
        assert {-1, 1} <= seen


def line_sum(c: str, *lines: tuple[str, str]) -> LineSum:
    """Lines (weight, slope), all of intercept 0."""
    zero = Fraction(0)
    return LineSum(Fraction(c), tuple(Line.of(Fraction(w), zero, Fraction(slope)) for w, slope in lines))


@pytest.mark.parametrize(
    ("u", "v", "q", "at", "left", "right"),
    [
        # U and V as lines (weight, slope), coefficients of squares, the end, the signs of what lies beyond
        ([("1", "1")], [("1", "0")], "0 0", "0", -1, 1),
        ([("1", "-1")], [("1", "0")], "0 0", "0", 1, -1),
        ([("2", "1/4")], [("1", "1/4")], "0 0", "0", 1, 1),
        ([("1/2", "1/4")], [("1", "1/4")], "0 0", "0", -1, -1),
        ([("3/2", "-1")], [("1", "0")], "0 0", "0", 1, 0),  # above 0 here, below 0 further out
        ([("2/3", "1")], [("1", "0")], "0 0", "0", -1, 0),
        ([("2/3", "-1")], [("1", "0")], "0 0", "0", 0, -1),
        ([("1", "1"), ("1", "-1")], [("1", "1/2")], "0 0", "0", 1, 0),
        ([("1", "1/2")], [("1", "1"), ("1", "-1")], "0 0", "0", -1, 0),
        ([("1", "0")], [("1", "0")], "1 0", "1", 0, 1),
        ([("1", "0")], [("1", "0")], "1 0", "-1", 1, 0),
        ([("1", "0")], [("1", "0")], "0 1", "1", 0, -1),
        ([("1", "0")], [("1", "0")], "0 1", "-1", -1, 0),
    ],
)
def test_signs_of_tails_are_told_where_slopes_tell_them(
    u: list[tuple[str, str]], v: list[tuple[str, str]], q: str, at: str, left: int, right: int
) -> None:
    q_u, q_v = (Fraction(square) for square in q.split())
    sums = line_sum("0", *u), line_sum("0", *v)
    with bits(128):
        sides = Side(ConvexLog(sums[0]), q=q_u), Side(ConvexLog(sums[1]), q=q_v)
        masses = MovedMasses.of(sums[0]), MovedMasses.of(sums[1])
        balls = StretchBalls((None, None), *sides, masses, (q_v, q_u))
        end = balls.at(point(Fraction(at)))
        assert (balls.tail_sign(end, False), balls.tail_sign(end, True)) == (left, right)


@pytest.mark.parametrize(("c", "c_next"), [("1/2", "1/2"), ("1/2", "1/3"), ("1/4", "3"), ("0", "2"), ("1", "0")])
def test_a_stretch_of_an_exact_difference_is_that_difference(c: str, c_next: str) -> None:
    positive, negative = line_sum(c, ("3", "1"), ("1/7", "-2")), line_sum(c_next, ("2", "1/2"))
    stretch = Stretch(Fraction(-1), Fraction(5, 2), positive, negative)
    centres = [b / (2 * Fraction(c)) for b in (Fraction(1), Fraction(-2))] if Fraction(c) else []
    centres += [Fraction(1, 2) / (2 * Fraction(c_next))] if Fraction(c_next) else []
    with bits(128):
        balls = StretchBalls.cancelled(stretch)
        assert balls.sign == 0 and balls.whole == (point(Fraction(-1)), point(Fraction(5, 2)))
        assert [fraction(middle) for middle in balls.middles] == centres
        ends = [balls.at(point(Fraction(x))) for x in ("-1", "1/3", "5/2")]
        whole = balls.positive_mass.over(balls.whole), balls.negative_mass.over(balls.whole)
        assert balls.positive_mass.lines == 2 and balls.negative_mass.lines == 1
    there = referee.Piece(None, None, number(c), [(number("3"), 0, number("1")), (number("1/7"), 0, number("-2"))])
    here = referee.Piece(None, None, number(c_next), [(number("2"), 0, number("1/2"))])
    for end in ends:
        x = number(fraction(end.x))
        log_there, log_here = CONTEXT.log(there.value(x)), CONTEXT.log(here.value(x))
        assert contains(end.u - end.v, log_there - log_here) and contains(end.log_positive, log_there)
        step = MPF(10) ** -20
        slope = (CONTEXT.log(there.value(x + step)) - CONTEXT.log(there.value(x - step))) / (2 * step)
        slope -= (CONTEXT.log(here.value(x + step)) - CONTEXT.log(here.value(x - step))) / (2 * step)
        assert contains(end.du - end.dv, slope, slack=1e-30)
    assert contains(whole[0], there.mass(number(-1), number("5/2")))
    assert contains(whole[1], here.mass(number(-1), number("5/2")))


@pytest.mark.parametrize(("start", "stop"), [(None, None), (None, "1"), ("-1", None)])
def test_stretches_where_one_side_is_nothing_have_a_sign(start: str | None, stop: str | None) -> None:
    some, nothing = line_sum("1", ("3", "1")), line_sum("1")
    ends = None if start is None else Fraction(start), None if stop is None else Fraction(stop)
    with bits(128):
        assert StretchBalls.cancelled(Stretch(*ends, some, nothing)).sign == 1
        balls = StretchBalls.cancelled(Stretch(*ends, nothing, some))
    assert balls.sign == -1 and balls.lower is not None and balls.upper is None
    assert balls.whole == tuple(None if end is None else point(end) for end in ends)


@pytest.mark.parametrize("c_next", ["1", "1/2", "3"])
@pytest.mark.parametrize("ratio", ["1/100", "1/2", "40"])
def test_a_charge_over_a_peak_is_its_height_times_the_width(ratio: str, c_next: str) -> None:
    """e^(−x²) over [−5/2, 5/2]: the ends know nothing of the peak between them."""
    positive, negative = line_sum("1", ("1", "0")), line_sum(c_next, ("1/1000", "0"))
    with bits(128):
        balls = StretchBalls.cancelled(Stretch(None, None, positive, negative))
        left, right = balls.at(point(Fraction(-5, 2))), balls.at(point(Fraction(5, 2)))
        charge = balls.upper_charge(left, right, arb(point(Fraction(ratio))))
        assert contains(charge, -5 * CONTEXT.expm1(-number(ratio)))
        assert balls.upper_charge(left, right, arb(-1)) == 0
    mass = CONTEXT.sqrt(CONTEXT.pi) * CONTEXT.erf(MPF(5) / 2)
    assert number(upper(charge)) >= -CONTEXT.expm1(-number(ratio)) * mass
