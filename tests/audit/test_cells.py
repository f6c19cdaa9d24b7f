"""What two ends tell of the cell between them: bounds of the log-ratio, charges, signs of tails."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from audit.cells import StretchBalls, upper_gap
from audit.density import Density
from audit.exact import lower, upper
from tests.audit.support import FEW, ZOO, bits, point
from tests.soundness import referee
from tests.soundness.referee import CONTEXT, MPF, number

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
                ratios.append(p - n if abs(p - n) > referee.NOISE * (p + n) else MPF(0))
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
                            if abs(p - n) > referee.NOISE * (p + n):
                                assert sign == 0 or (p > n) == (sign > 0)
    if name in ("multi-gaussian", "irregular", "eighths"):
        assert {-1, 1} <= seen
