"""f(x + φ) − e^ε f(x), exactly: the identity itself, and what cancels at φ = Δ."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from mechanisms.difference import Stretch, difference, is_positive
from mechanisms.families import MultiGaussian
from mechanisms.form import Form
from mechanisms.lines import merge_terms
from tests.mechanisms.support import MECHANISMS, MP, REFEREE, mechanism, mpf

SHIFTS = [Fraction(1), Fraction(1, 3), Fraction(9, 10), Fraction(10**12 - 1, 10**12)]


def density(form: Form, x: Fraction) -> Any:
    """The declared function at a point, not normalised."""
    return form.density(mpf(x), REFEREE) * form.mass(REFEREE)


def stretch_at(stretches: tuple[Stretch, ...], x: Fraction) -> Stretch:
    return next(s for s in stretches if (s.start is None or s.start < x) and (s.stop is None or x < s.stop))


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("shift", SHIFTS)
def test_identity_at_random_points(name: str, shift: Fraction) -> None:
    form, rng = MECHANISMS[name].unit_form, random.Random(f"{name} {shift}")
    for epsilon in (Fraction(1), Fraction(rng.randrange(1, 300), 37), Fraction(0), Fraction(-2)):
        stretches = difference(form, shift, epsilon)
        for _ in range(3):
            x = Fraction(rng.randrange(-(10**6), 10**6), 3 * 10**5 + 1)
            stretch, point = stretch_at(stretches, x), REFEREE.array([mpf(x)])
            value = stretch.positive.value(point, REFEREE)[0] if stretch.positive.lines else 0
            value -= stretch.negative.value(point, REFEREE)[0] if stretch.negative.lines else 0
            there, here = density(form, x + shift), density(form, x) * MP.exp(mpf(epsilon))
            assert abs(value - (there - here)) <= MP.mpf(10) ** -45 * (there + here)


@pytest.mark.parametrize("name", MECHANISMS)
def test_stretches_cover_the_line_in_order(name: str) -> None:
    form = MECHANISMS[name].unit_form
    for shift in SHIFTS:
        stretches = difference(form, shift, Fraction(1))
        assert stretches[0].start is None and stretches[-1].stop is None
        for left, right in pairwise(stretches):
            assert left.stop is not None and left.stop == right.start
            assert left.start is None or left.start < left.stop


@pytest.mark.parametrize("K", [1, 2, 5, 20])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "1e4", "1/3"])
def test_geometric_weights_cancel_at_the_end(K: int, epsilon: str) -> None:
    """e^ε w_{k−1} = w_k for k ≤ 0: of 2K + 2 lines, one positive and K + 1 negative are left."""
    member = mechanism(MultiGaussian, sensitivity="2.5", sigma="0.7", K=K, epsilon=epsilon)
    (stretch,) = difference(member.unit_form, Fraction(1), member.epsilon)
    assert len(stretch.positive.lines) == 1 and len(stretch.negative.lines) == K + 1
    assert stretch.positive.lines[0].slope == -(K + 1) * 2 * stretch.positive.c
    centres = [line.slope / (2 * stretch.negative.c) for line in stretch.negative.lines]
    assert centres == list(range(K + 1))
    # nothing cancels at another shift
    (other,) = difference(member.unit_form, Fraction(999, 1000), member.epsilon)
    assert len(other.positive.lines) == len(other.negative.lines) == 2 * K + 1


def test_everything_cancels_where_nothing_moves() -> None:
    for member in MECHANISMS.values():
        for stretch in difference(member.unit_form, Fraction(0), Fraction(0)):
            assert not stretch.positive.lines and not stretch.negative.lines


def test_far_left_ends_beyond_the_support_are_positive() -> None:
    """Where f = 0 and f(x + φ) > 0 there is nothing to subtract."""
    first, second, *_ = difference(MECHANISMS["truncated-laplace"].unit_form, Fraction(1), Fraction(1))
    assert first.start is None and first.stop == second.start == -4 and not first.positive.lines
    assert second.stop == -3 and second.positive.lines and not second.negative.lines


@pytest.mark.parametrize(
    ("terms", "shown"),
    [
        ([(1, 0)], True),
        ([(1, 2), (-1, 1)], True),
        ([(1, 1), (-1, 2)], False),
        ([(1, 2), (-1, 1), (5, 0)], True),
        ([(-1, 2), (5, 1)], False),
        ([(1, 3), (-1, 2), (1, 1), (-1, 0)], True),
        ([], False),
        ([(1, 5), (-1, 5)], False),
    ],
)
def test_sign_by_partial_sums(terms: list[tuple[int, int]], shown: bool) -> None:
    merged = merge_terms((Fraction(w), Fraction(a)) for w, a in terms)
    assert is_positive(merged) is shown
    if shown:
        assert sum(mpf(w) * MP.exp(mpf(a)) for w, a in merged) > 0
