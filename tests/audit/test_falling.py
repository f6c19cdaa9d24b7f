"""Densities that fall from 0 on, and those of pure DP: which are shown to be, and that the largest shift decides."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from audit.decide import decide
from audit.shape import falls_from_centre, is_pure
from audit.verdict import Limits, Verdict
from tests.audit.support import ZOO, bits, declared, multi_gaussian, statement
from tests.soundness.referee import MPF

FALLING = {"gaussian", "laplace", "truncated-laplace", "uniform", "steps", "two-rates", "huber", "flipped-huber"}
Rows = list[tuple[str, str, str, list[tuple[str, str]]]]


@pytest.mark.parametrize("name", ZOO)
def test_which_densities_are_shown_to_fall(name: str) -> None:
    assert falls_from_centre(ZOO[name][0].unit_form) == (name in FALLING)


@pytest.mark.parametrize(
    ("what", "pieces"),
    [
        ("a slope up", [("0", "1", "0", [("0", "0.01"), ("0", "-5")]), ("1", "2", "0", [("-9", "0")])]),
        ("a slope up later", [("0", "1", "0", [("0", "0")]), ("1", "2", "1", [("-9", "0.01")])]),
        ("a jump up", [("0", "1", "0", [("0", "-1")]), ("1", "inf", "0", [("0.1", "-1")])]),
        ("a jump of 10^-30", [("0", "1", "0", [("0", "-1")]), ("1", "inf", "0", [("1e-30", "-1")])]),
        ("a jump up of sums", [("0", "1", "0", [("0", "-1"), ("0", "0")]), ("1", "inf", "0", [("0.4", "-0.01")])]),
        ("a gap", [("0", "1", "0", [("0", "0")]), ("1", "2", "0", []), ("2", "3", "0", [("-1", "0")])]),
        ("nothing at 0", [("0", "1", "0", []), ("1", "2", "0", [("0", "0")])]),
    ],
)
def test_what_rises_is_not_called_falling(what: str, pieces: Rows) -> None:
    with bits(128):
        assert not falls_from_centre(declared(*pieces, scale=1)[0].unit_form), what


@pytest.mark.parametrize(
    ("what", "pieces"),
    [
        ("a jump down of 10^-30", [("0", "1", "0", [("0", "-1")]), ("1", "inf", "0", [("-1e-30", "-1")])]),
        ("the same value", [("0", "1", "0", [("0", "-1")]), ("1", "inf", "1/2", [("-1/2", "0")])]),
        ("a jump down of sums", [("0", "1", "0", [("0", "-1"), ("0", "0")]), ("1", "inf", "0", [("0.3", "-0.01")])]),
        ("an end", [("0", "1", "1", [("0", "-1"), ("0", "-2")]), ("1", "2", "0", []), ("2", "3", "0", [])]),
    ],
)
def test_what_falls(what: str, pieces: Rows) -> None:
    with bits(128):
        assert falls_from_centre(declared(*pieces, scale=1)[0].unit_form), what


def falling(rng: random.Random) -> Rows:
    """Two or three pieces with slopes down and jumps down between them."""
    ends = [str(Fraction(rng.randint(2, 9), 10) + i) for i in range(rng.randint(1, 2))] + ["inf"]
    rows: Any = []
    height = Fraction(0)
    for start, stop in itertools.pairwise(["0", *ends]):
        c = rng.choice(["0", "0.5"])
        slopes = [f"-{rng.uniform(0.3, 4):.2f}" for _ in range(rng.randint(1, 2))]
        # Lines through a common value at the start of the piece, which is below the end of the piece before.
        lines = [(str(height - Fraction(b) * Fraction(start) + Fraction(c) * Fraction(start) ** 2), b) for b in slopes]
        rows.append((start, stop, c, lines))
        if stop != "inf":
            width, at = Fraction(stop) - Fraction(start), Fraction(stop)
            height += min(map(Fraction, slopes)) * width - Fraction(c) * (at**2 - Fraction(start) ** 2) - 1
    return rows


@pytest.mark.parametrize("seed", range(8))
def test_the_largest_shift_is_the_worst(seed: int) -> None:
    """By the referee, at ε = 0 and more; and decided there, to the last digits."""
    rng = random.Random(seed)
    mechanism, density = declared(*falling(rng), scale=0.3)
    epsilon = rng.choice(["0", "0.3", "1"])
    with bits(128):
        assert falls_from_centre(mechanism.unit_form)
    values = [density.divergence(Fraction(i, 9), epsilon) for i in range(10)]
    assert all(a <= b * (1 + MPF(10) ** -40) + MPF(10) ** -40 for a, b in itertools.pairwise(values))
    top = Fraction(str(values[-1]))
    for side, verdict in ((1, Verdict.VERIFIED), (-1, Verdict.REFUTED)):
        claim = statement(mechanism, epsilon, top * (1 + side * Fraction(1, 10**12)) if top else Fraction(0))
        assert decide(claim, Limits(boxes=0)).verdict is (verdict if top else Verdict.VERIFIED)


def test_pure_privacy_of_a_sum_of_laplace_densities_is_not_left_open() -> None:
    """The slope at 0 is above ε, the log-ratio over a whole sensitivity below it: D is 0 at every shift."""
    lines = [("-1.4682", "-4.0879"), ("-1.3883", "-3.9217"), ("-1.8629", "-1.995"), ("-0.9536", "-1.2236")]
    mechanism, _ = declared(("0", "inf", "0", lines), scale=0.2)
    assert decide(statement(mechanism, "1.99", "0"), Limits(boxes=0)).verdict is Verdict.VERIFIED
    assert decide(statement(mechanism, "1.9", "0")).verdict is Verdict.REFUTED


def test_two_peaks_are_not_taken_for_one() -> None:
    mechanism, density = multi_gaussian("0.33", 4, "1")
    shift, top = density.supremum("1")
    assert 0 < shift < 1 and not falls_from_centre(mechanism.unit_form)
    assert decide(statement(mechanism, "1", Fraction(str(top)) * Fraction(99, 100))).verdict is Verdict.REFUTED


def rising(rng: random.Random) -> Rows:
    """A bump or two, then falling exponentials; jumps."""
    ends = ["0", *(str(Fraction(rng.randint(3, 12), 10) + i) for i in range(rng.randint(1, 2))), "inf"]
    rows: Any = []
    for start, stop in itertools.pairwise(ends):
        slopes = [rng.uniform(-1, 1) if stop != "inf" else -rng.uniform(0.2, 1) for _ in range(rng.randint(1, 2))]
        rows.append((start, stop, "0", [(f"{rng.uniform(-1, 0):.3f}", f"{slope:.3f}") for slope in slopes]))
    return rows


def largest_log_ratio(density: Any) -> float:
    """sup of log f(u) − log f(x) over |u − x| ≤ 1, on a grid of 1/200."""
    logs = density._logs((np.arange(-2400, 2400) + 0.5) / 200)
    return max(float(np.max(logs[k:] - logs[: len(logs) - k])) for k in range(200))


@pytest.mark.parametrize("seed", range(30))
def test_what_is_called_pure_is_pure(seed: int) -> None:
    """A hair above the largest log-ratio at the finest: shown; a hair below: not."""
    mechanism, density = declared(*rising(random.Random(seed)), scale=0.3)
    ratio = Fraction(largest_log_ratio(density))
    with bits(128):
        assert is_pure(mechanism.unit_form, ratio + Fraction(1, 10))
        assert not is_pure(mechanism.unit_form, ratio * Fraction(99, 100))
    assert decide(statement(mechanism, ratio + Fraction(1, 10), "0")).verdict is Verdict.VERIFIED
    assert decide(statement(mechanism, ratio * Fraction(9, 10), "0")).verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    "pieces",
    [
        [("0", "1", "0", [("0", "0.1")]), ("1", "inf", "1/1000", [("0", "0")])],
        [("0", "1", "0", [("0", "0.1")]), ("1", "2", "0", [("0", "0")])],
        [("0", "1", "0", []), ("1", "inf", "0", [("0", "-1")])],
        [("0", "40", "0", [("0", "0.01")]), ("40", "inf", "0", [("0", "-1")])],
    ],
)
def test_gaussian_tails_ends_gaps_and_long_ways_are_not_called_pure(pieces: Rows) -> None:
    form = declared(*pieces, scale=1)[0].unit_form
    with bits(128):
        assert not is_pure(form, Fraction(100))


@pytest.mark.parametrize(
    "pieces",
    [
        [("0", "inf", "0", [("0", "-1")])],
        [("0", "2", "0", [("0", "1")]), ("2", "inf", "0", [("3", "-1/2")])],
        [("0", "2", "0", [("0", "-1")]), ("2", "inf", "0", [("-1", "-1/2")])],
    ],
)
def test_what_is_pure_by_more_than_the_width_of_a_cell_is_shown(pieces: Rows) -> None:
    """The log-ratio is 1 at most, and 1 + 1/64 over the finest cells; downwards, upwards, and before the tail."""
    form = declared(*pieces, scale=1)[0].unit_form
    with bits(128):
        assert is_pure(form, 1 + Fraction(1, 63))
        assert not is_pure(form, 1 - Fraction(1, 10**20))


def test_thirty_sensitivities_before_the_tail_are_looked_at_and_no_more() -> None:
    def plateau(end: str) -> Rows:
        return [("0", end, "0", [("0", "0")]), (end, "inf", "0", [(end, "-1")])]

    with bits(128):
        assert is_pure(declared(*plateau("30"), scale=1)[0].unit_form, Fraction("1.2"))
        assert not is_pure(declared(*plateau("30.1"), scale=1)[0].unit_form, Fraction("1.2"))


def test_nothing_is_pure_below_0() -> None:
    with bits(128):
        assert not is_pure(ZOO["two-rates"][0].unit_form, Fraction(-1))


def test_the_exponentials_are_compared_as_far_as_a_shift_reaches() -> None:
    """From E to E + 1 the ratio is at its largest: e^2, of the steeper of two tails after a plateau."""
    rows = [("0", "2", "0", [("-2", "0")]), ("2", "inf", "0", [("2", "-2"), ("-60", "-0.1")])]
    with bits(128):
        form = declared(*rows, scale=0.3)[0].unit_form
        assert is_pure(form, Fraction("2.1")) and not is_pure(form, Fraction("1.99"))


def test_pure_privacy_of_a_density_with_bumps_is_not_left_open() -> None:
    rows = [
        ("0", "1.1", "0", [("-2.0426", "0.3491"), ("-2.989", "-1.5697"), ("-2.5205", "1.6458")]),
        ("1.1", "2.2", "0", [("-1.3091", "-1.9297"), ("-2.618", "-1.9591"), ("-1.46", "0.1783")]),
        ("2.2", "inf", "0", [("-0.0434", "-0.5539"), ("-1.0749", "-1.9363")]),
    ]
    mechanism, _ = declared(*rows, scale=0.3)
    found = decide(statement(mechanism, "1.28", "0"), Limits(boxes=0))
    assert found.verdict is Verdict.VERIFIED and found.sup_delta is not None and found.sup_delta.upper == 0
