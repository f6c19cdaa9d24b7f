"""Components in two floats, and the exact cancellation that they stand in for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.arithmetic import FLOAT
from mechanisms.components import Components, Reals, masses, without_equals
from mechanisms.difference import cancel
from mechanisms.families import MultiGaussian
from mechanisms.lines import LineSum
from tests.mechanisms.support import MECHANISMS, mechanism

ONE = Fraction(1)
FRACTIONS = st.fractions(-(10**6), 10**6, max_denominator=10**9)


def exact(value: Reals) -> list[Fraction]:
    return [Fraction(near) + Fraction(rest) for near, rest in zip(value.near, value.rest, strict=True)]


@given(FRACTIONS, FRACTIONS)
def test_reals_keep_32_digits(a: Fraction, b: Fraction) -> None:
    size = abs(a) + abs(b)
    first, second = Reals.of([a]), Reals.of([b])
    assert abs(exact(first)[0] - a) <= abs(a) * Fraction(1, 2**104)
    assert abs(exact(first + second)[0] - (a + b)) <= size * Fraction(1, 2**100)
    difference = float(first.less(second)[0])
    assert math.isclose(difference, a - b, rel_tol=4e-16, abs_tol=float(size) * 2.0**-100)


def test_a_real_beyond_the_floats_is_infinite() -> None:
    found = Reals.of([Fraction(10) ** 400, ONE])
    assert found.near[0] == math.inf and found.rest[0] == 0 and (found + found).near[1] == 2


def shifted(lines: LineSum, epsilon: Fraction) -> tuple[LineSum, LineSum]:
    return cancel(lines.shifted(ONE), lines.lifted(epsilon))


@pytest.mark.parametrize("name", ["multi-gaussian", "multi-gaussian-narrow", "multi-gaussian-wide", "mixture"])
@pytest.mark.parametrize("epsilon", ["0", "1", "10", "1/3"])
def test_what_cancels_is_what_cancels_exactly(name: str, epsilon: str) -> None:
    lines, eps = MECHANISMS[name].unit_form.pieces[0].sum, Fraction(epsilon)
    there = Components.of(lines)
    positive, negative = without_equals(there, there.lifted(eps))
    for found, right, move in zip((positive, negative), shifted(lines, eps), (-1, 0), strict=True):
        kept = right if right.lines else None
        assert len(found) == (0 if kept is None else len(kept.slopes))
        if kept is not None:
            heights, middles, _ = kept.parameters(FLOAT)
            order = np.argsort(middles)
            np.testing.assert_allclose(found.middles.near + move, middles[order], atol=1e-14)
            np.testing.assert_allclose(found.heights.near, heights[order], rtol=1e-13, atol=1e-13)


def test_nearly_all_of_a_multi_gaussian_cancels() -> None:
    lines = mechanism(MultiGaussian, sensitivity=1, sigma="0.3", K=20, epsilon="0.7").unit_form.pieces[0].sum
    there = Components.of(lines)
    positive, negative = without_equals(there, there.lifted(Fraction(7, 10)))
    assert len(positive) == 1 and len(negative) == 21


def test_masses_of_exponentials() -> None:
    lines = MECHANISMS["two-rates"].unit_form.pieces[0].sum
    a, b = np.array([0.0, 0.5, 1.0]), np.array([0.25, 2.0, math.inf])
    np.testing.assert_allclose(masses(Components.of(lines), a, b), lines.moments(a, b, 0, FLOAT)[0], rtol=1e-14)
    steps = MECHANISMS["steps"].unit_form.pieces[1].sum
    np.testing.assert_allclose(masses(Components.of(steps), a[:1], b[:1]), 0.25 * math.exp(-1), rtol=1e-14)
