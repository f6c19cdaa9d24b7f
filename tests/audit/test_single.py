"""D at single shifts: told from a goal, measured, and concluded from what is known at other ε."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from audit.exact import ball, lower, upper
from audit.single import NeedBits, Points
from audit.verdict import Limits
from tests.audit.support import PRECISIONS, ZOO, bits
from tests.soundness.referee import MPF, number

SHIFTS = (Fraction(1, 3), Fraction(7, 8), Fraction(1))


@pytest.mark.parametrize("name", ZOO)
def test_an_evaluation_tells_a_goal_from_the_truth(name: str) -> None:
    mechanism, density = ZOO[name]
    epsilon = Fraction(1, 2)
    for shift in SHIFTS:
        true = density.divergence(shift, epsilon)
        for factor in (Fraction(1, 10), 1 - Fraction(1, 10**12), 1 + Fraction(1, 10**12), Fraction(2)) if true else ():
            goal = Fraction(str(true)) * factor
            for precision in PRECISIONS:
                with bits(precision):
                    points = Points(mechanism.unit_form, Limits(), goal)
                    try:
                        _, low, high = points.evaluate(shift, epsilon, ball(goal))
                    except NeedBits:
                        assert precision < 128
                        continue
                    assert (high <= ball(goal)) == (factor > 1) and (low > ball(goal)) == (factor < 1)
                    assert number(lower(low)) <= true * (1 + MPF(10) ** -28)
                    assert true * (1 - MPF(10) ** -28) <= number(upper(high))


@pytest.mark.parametrize("name", ZOO)
def test_a_measure_is_as_tight_as_asked(name: str) -> None:
    mechanism, density = ZOO[name]
    true = density.divergence(Fraction(5, 7), Fraction(1, 4))
    with bits(192):
        points = Points(mechanism.unit_form, Limits(), Fraction(1, 100))
        _, low, high = points.measure(Fraction(5, 7), Fraction(1, 4), Fraction(1, 10**20), ball(Fraction(1, 10**40)))
    assert number(lower(low)) <= true * (1 + MPF(10) ** -45) and true * (1 - MPF(10) ** -45) <= number(upper(high))
    assert number(upper(high) - lower(low)) <= true * MPF(10) ** -20 * (1 + MPF(10) ** -6) or true < MPF(10) ** -40


@pytest.mark.parametrize("name", ["multi-gaussian", "quasi-gaussian", "irregular", "camel", "laplace", "repeated"])
def test_what_is_concluded_from_other_values_of_epsilon_is_true(name: str) -> None:
    """Many questions at one shift, in random order: chords, neighbours and events answer most of them."""
    mechanism, density = ZOO[name]
    rng = random.Random(name)
    for shift in (Fraction(2, 5), Fraction(1)):
        with bits(128):
            points = Points(mechanism.unit_form, Limits(), Fraction(1, 10))
            for _ in range(12):
                epsilon = Fraction(rng.randint(0, 400), 200)
                true = density.divergence(shift, epsilon)
                # Close to the truth, where a bound that is a little too good would show.
                goal = Fraction(str(true)) * (1 + rng.choice([-1, 1]) * Fraction(1, 10 ** rng.randint(1, 9)))
                if goal <= 0:
                    continue
                assert points.is_at_most(shift, epsilon, ball(goal)) == (number(goal) > true)


@pytest.mark.parametrize("name", ["multi-gaussian", "irregular"])
def test_an_answer_from_what_is_known_is_the_answer(name: str) -> None:
    """Chords are tried on purpose: two values of α known, then all between them."""
    mechanism, density = ZOO[name]
    with bits(128):
        points = Points(mechanism.unit_form, Limits(), Fraction(1, 10))
        for epsilon in (Fraction(1, 2), Fraction(3, 2)):
            points.measure(Fraction(1, 2), epsilon, Fraction(1, 10**9), ball(Fraction(1, 10**12)))
        for i in range(1, 16):
            epsilon = Fraction(1, 2) + Fraction(i, 16)
            true = density.divergence(Fraction(1, 2), epsilon)
            for factor in (Fraction(999, 1000), Fraction(1001, 1000), Fraction(11, 10)):
                goal = Fraction(str(true)) * factor
                assert points.is_at_most(Fraction(1, 2), epsilon, ball(goal)) == (factor > 1)
