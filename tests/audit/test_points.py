"""log Σ C e^(bx) and its slope at a point, against 60 digits and against float64."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from audit.points import ConvexLog, _common_step, coefficient, peak_height
from mechanisms.arithmetic import FLOAT
from mechanisms.lines import Line, LineSum
from tests.audit.support import FEW, PRECISIONS, bits, contains, point
from tests.soundness.referee import CONTEXT, number

SMALL = st.fractions(min_value=-8, max_value=8, max_denominator=60)
WEIGHTS = st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=1000)
EVEN = st.builds(
    lambda start, step, rows: [(w, a, start + step * i) for i, (w, a) in enumerate(rows)],
    SMALL,
    st.fractions(min_value=Fraction(1, 9), max_value=3, max_denominator=9),
    st.lists(st.tuples(WEIGHTS, SMALL), min_size=3, max_size=9),
)
ANY = st.lists(st.tuples(WEIGHTS, SMALL, SMALL), min_size=1, max_size=7)
REPEATED = st.builds(
    lambda rows, again: rows + [(w, a, rows[i % len(rows)][2]) for w, a, i in again],
    EVEN,
    st.lists(st.tuples(WEIGHTS, SMALL, st.integers(0, 8)), min_size=1, max_size=4),
)
"""Some slopes more than once."""


def line_sum(rows: list[tuple[Fraction, Fraction, Fraction]]) -> LineSum:
    return LineSum(Fraction(0), tuple(Line.of(*row) for row in rows))


@FEW
@given(EVEN | ANY | REPEATED, SMALL, st.sampled_from(PRECISIONS))
def test_value_and_slope_contain_the_truth(
    rows: list[tuple[Fraction, Fraction, Fraction]], x: Fraction, precision: int
) -> None:
    with bits(precision):
        value, slope = ConvexLog(line_sum(rows)).at(point(x))
    parts = [(number(w) * CONTEXT.exp(number(a + b * x)), number(b)) for w, a, b in rows]
    total = CONTEXT.fsum(part for part, _ in parts)
    assert contains(value, CONTEXT.log(total), slack=1e-50)
    assert contains(slope, CONTEXT.fsum(part * b for part, b in parts) / total, slack=1e-50)
    assert float(value.rad()) < 2.0 ** (20 - precision) and float(slope.rad()) < 2.0 ** (20 - precision)


@FEW
@given(EVEN | ANY | REPEATED, SMALL)
def test_two_precisions_and_floats_agree(rows: list[tuple[Fraction, Fraction, Fraction]], x: Fraction) -> None:
    sums = line_sum(rows)
    found = []
    for precision in PRECISIONS:
        with bits(precision):
            found.append(ConvexLog(sums).at(point(x)))
    (rough, rough_slope), (fine, fine_slope) = found
    assert rough.overlaps(fine) and rough_slope.overlaps(fine_slope)
    log_value, score = sums.log_value_and_score(FLOAT.array([float(x)]), FLOAT)
    assert float(fine) == pytest.approx(log_value[0], rel=1e-12, abs=1e-12)
    assert float(fine_slope) == pytest.approx(score[0], rel=1e-11, abs=1e-11)


def test_a_slope_that_occurs_twice_counts_twice() -> None:
    rows = [(Fraction(1), Fraction(0), Fraction(b)) for b in (-1, -1, 0, 1, 1)]
    with bits(128):
        value, slope = ConvexLog(line_sum(rows)).at(point(Fraction(0)))
    assert contains(value, CONTEXT.log(5), slack=1e-30) and contains(slope, CONTEXT.mpf(0))


@pytest.mark.parametrize("gap", ["1", "1e-9", "1e-40"])
def test_nearly_cancelling_terms_keep_their_digits(gap: str) -> None:
    terms = ((Fraction(3), Fraction(gap)), (Fraction(-3), Fraction(0)))
    with bits(128):
        found = coefficient(terms)
    assert contains(found, 3 * CONTEXT.expm1(number(gap)))
    assert float(found.rad() / found.mid()) < 1e-30


def test_slopes_at_infinity_bound_the_slope() -> None:
    rows = [(Fraction(1), Fraction(0), Fraction(b)) for b in (-2, 1, 5)]
    with bits(128):
        convex = ConvexLog(line_sum(rows))
        for x in (-30, -1, 0, 2, 40):
            slope = convex.at(point(Fraction(x)))[1]
            assert slope >= convex.least_slope or slope.overlaps(convex.least_slope)
            assert slope <= convex.largest_slope or slope.overlaps(convex.largest_slope)


def many_lines(seed: int) -> list[tuple[Fraction, Fraction, Fraction]]:
    """Four hundred lines, some left out, whose coefficients fall off unevenly."""
    rng = random.Random(seed)
    return [
        (Fraction(rng.randint(1, 999), 100), -Fraction(rng.randint(0, 40), 7) - Fraction(i * i, 40), Fraction(i, 3))
        for i in range(-200, 201)
        if i % 17 or not i
    ]


@pytest.mark.parametrize("spare_bits", [16, -116])
@pytest.mark.parametrize("x", ["0", "1/3", "-17/4", "0.76", "200", "-1000"])
def test_of_many_lines_those_that_are_left_out_are_bounded(
    x: str, spare_bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With few bits kept, what is left out matters: the enclosure is wide, and holds."""
    monkeypatch.setattr("audit.points.SPARE_BITS", spare_bits)
    rows = many_lines(1)
    with bits(128):
        convex = ConvexLog(line_sum(rows))
        assert convex._window is not None
        value, slope = convex.at(point(Fraction(x)))
    parts = [(number(w) * CONTEXT.exp(number(a + b * Fraction(x))), number(b)) for w, a, b in rows]
    total = CONTEXT.fsum(part for part, _ in parts)
    assert contains(value, CONTEXT.log(total), slack=1e-50)
    assert contains(slope, CONTEXT.fsum(part * b for part, b in parts) / total, slack=1e-50)
    assert float(value.rad()) < (1e-33 if spare_bits > 0 else 0.1) * max(1, abs(float(value)))


def test_of_many_lines_few_are_taken_and_the_answer_is_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    with bits(128):
        convex = ConvexLog(line_sum(many_lines(2)))
        window = convex._window
        found = [convex.at(point(Fraction(i, 7))) for i in range(-60, 60)]
        assert window is not None and 1 < len(window._parts) < 60
        assert max(last - first for first, last in window._parts) < 200
        monkeypatch.setattr(window, "_serves", False)
        convex._kept.clear()
        for i, (value, slope) in zip(range(-60, 60), found, strict=True):
            full_value, full_slope = convex.at(point(Fraction(i, 7)))
            assert value.overlaps(full_value) and slope.overlaps(full_slope)
            assert float(value.rad()) < 1e-33 and float(slope.rad()) < 1e-30


def test_exponents_beyond_floats_are_left_to_all_lines() -> None:
    rows = [(w, a * 10**12, b) for w, a, b in many_lines(3)]
    with bits(128):
        convex = ConvexLog(line_sum(rows))
        assert convex._window is not None and not convex._window._serves
        value, _ = convex.at(point(Fraction(0)))
    top = max(number(a) for _, a, _ in rows)
    assert abs(float(value) - float(top)) < 10


@pytest.mark.parametrize("left", [0, -20])
@pytest.mark.parametrize("top", [-8, 7])
@pytest.mark.parametrize("x", ["0", "1/3", "-1/3"])
def test_lines_left_out_are_bounded_where_each_is_as_large_as_it_may_be(
    x: str, top: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At x one line stands out, and the others lie a hair below what is kept, those to its left perhaps far below."""
    monkeypatch.setattr("audit.points.SPARE_BITS", -116)  # 12 bits are kept: what is below 2^-12 of the largest is not
    at, below = Fraction(x), Fraction("-8.3178")
    heights = {i: Fraction(0) if i == top else below + (left if i < top else 0) for i in range(-200, 201)}
    with bits(128):
        convex = ConvexLog(line_sum([(Fraction(1), height - i * at, Fraction(i)) for i, height in heights.items()]))
        value, slope = convex.at(point(at))
        assert convex._window is not None and list(convex._window._parts) == [(192, 208)]
        ((kept, kept_slopes),) = convex._window._parts.values()
    assert len(kept.coeffs()) == len(kept_slopes.coeffs()) == 16
    parts = {i: CONTEXT.exp(number(height)) for i, height in heights.items()}
    total = CONTEXT.fsum(parts.values())
    assert contains(value, CONTEXT.log(total))
    assert contains(slope, CONTEXT.fsum(i * part for i, part in parts.items()) / total)
    assert float(value.rad()) < 0.2


@pytest.mark.parametrize(("x", "serves"), [("7e6", True), ("-7e6", True), ("8e6", False), ("-8e6", False)])
def test_floats_pick_lines_only_where_their_exponents_are_right(x: str, serves: bool) -> None:
    with bits(128):
        convex = ConvexLog(line_sum(many_lines(4)))
        z = (arb(point(Fraction(x) / 3))).exp()
        assert convex._window is not None
        assert (convex._window.at(arb(point(Fraction(x))), z) is not None) == serves


def test_coefficients_that_are_known_too_roughly_are_left_to_all_lines() -> None:
    """(e^g − 1)², of which 64 bits keep few."""
    few = Fraction(1, 10**14)
    rough = Line(((Fraction(1), 2 * few), (Fraction(-2), few), (Fraction(1), Fraction(0))), Fraction(200))
    lines = tuple(Line.of(Fraction(1), Fraction(0), Fraction(b)) for b in range(200))
    with bits(64):
        assert ConvexLog(LineSum(Fraction(0), lines))._window._serves  # type: ignore[union-attr]
        assert not ConvexLog(LineSum(Fraction(0), (*lines, rough)))._window._serves  # type: ignore[union-attr]


def test_polynomials_are_taken_where_they_are_not_wasteful() -> None:
    def step(*offsets: str) -> Fraction | None:
        return _common_step([Fraction(offset) for offset in offsets])

    assert step("0", "1/2", "4/3") == Fraction(1, 6) and step("0", "3/2", "9/2") == Fraction(3, 2)
    assert step("0", "1", "9") == 1 and step("0", "1", "10") is None
    assert step("0", "1") is None and step("0") is None
    with bits(64):
        for degree, many in ((150, False), (151, True)):
            convex = ConvexLog(line_sum([(Fraction(1), Fraction(0), Fraction(i)) for i in range(degree + 1)]))
            assert (convex._window is not None) == many


def test_kept_values_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("audit.points.MOST_KEPT", 2)
    with bits(128):
        convex = ConvexLog(line_sum([(Fraction(1), Fraction(0), Fraction(b)) for b in (-1, 2)]))
        first = convex.at(point(Fraction(1)))
        assert convex.at(point(Fraction(1))) is first
        sizes = []
        for x in range(2, 7):
            convex.at(point(Fraction(x)))
            sizes.append(len(convex._kept))
        assert sizes == [2, 1, 2, 1, 2]
        assert convex.at(point(Fraction(1)))[0].overlaps(first[0])


@FEW
@given(ANY, st.fractions(min_value=Fraction(1, 50), max_value=50, max_denominator=50))
def test_a_peak_height_is_the_value_at_the_peak(rows: list[tuple[Fraction, Fraction, Fraction]], c: Fraction) -> None:
    weight, exponent, slope = rows[0]
    line = Line(((weight, exponent), (weight / 2, exponent - 1)), slope)
    with bits(128):
        found = peak_height(line, c)
    x = number(slope / (2 * c))
    factor = number(weight) * (1 + CONTEXT.exp(-1) / 2)
    assert contains(found, factor * CONTEXT.exp(number(exponent) + number(slope) * x - number(c) * x * x))
