"""What is concluded from the shape of a density, against the referee's D at many shifts."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import pytest

from audit.density import Density
from audit.exact import lower, upper
from audit.shape import LogCurve, Roughness, is_log_concave, range_on
from mechanisms.form import Form, Piece
from mechanisms.lines import ZERO, Line, LineSum
from tests.audit.support import ZOO, bits, contains, declared, point
from tests.soundness.referee import CONTEXT, MPF, number

LOG_CONCAVE = {"gaussian", "laplace", "truncated-laplace", "uniform", "huber", "flipped-huber"}


@pytest.mark.parametrize("name", ZOO)
def test_which_densities_are_shown_to_be_log_concave(name: str) -> None:
    assert is_log_concave(ZOO[name][0].unit_form) == (name in LOG_CONCAVE)


@pytest.mark.parametrize("name", sorted(LOG_CONCAVE))
def test_their_divergence_rises_with_the_shift(name: str) -> None:
    values = [ZOO[name][1].divergence(Fraction(i, 12), "0.3") for i in range(13)]
    assert all(a <= b * (1 + MPF(10) ** -40) + MPF(10) ** -40 for a, b in itertools.pairwise(values))


@pytest.mark.parametrize(
    ("what", "pieces"),
    [
        ("a kink up at 0", [("0", "inf", "1", [("0", "0.1")])]),
        ("a kink up later", [("0", "1", "0", [("0", "-2")]), ("1", "inf", "0", [("-1", "-1")])]),
        ("a jump down", [("0", "1", "0", [("0", "-1")]), ("1", "inf", "0", [("-0.1", "-1")])]),
        ("a jump up", [("0", "1", "0", [("0", "-1")]), ("1", "inf", "0", [("0.1", "-1")])]),
        ("a jump of 10^-30", [("0", "1", "0", [("0", "-1")]), ("1", "inf", "0", [("1e-30", "-1")])]),
        ("a gap in the middle", [("0", "1", "0", []), ("1", "2", "0", [("0", "0")])]),
        ("two lines", [("0", "inf", "0", [("0", "-1"), ("0", "-2")])]),
        ("c falls", [("0", "1", "1", [("0", "0")]), ("1", "inf", "0.4", [("-0.6", "0")])]),
    ],
)
def test_what_is_not_log_concave_is_not_called_so(
    what: str, pieces: list[tuple[str, str, str, list[tuple[str, str]]]]
) -> None:
    assert not is_log_concave(declared(*pieces, scale=1)[0].unit_form), what


@pytest.mark.parametrize("name", ZOO)
def test_a_box_is_bounded_by_its_two_ends(name: str) -> None:
    """D_α(φ) ≤ κ max(D_{α/κ}(φ₁), D_{α/κ}(φ₂)) + charge, at random boxes and shifts within."""
    mechanism, density = ZOO[name]
    rng = random.Random(name)
    form = mechanism.unit_form
    rough = Roughness.of(form)
    for _ in range(4):
        width = Fraction(1, 2 ** rng.randint(0, 7))
        start = width * rng.randint(0, int(1 / width) - 1)
        shift, epsilon = start + width * Fraction(rng.randint(1, 15), 16), Fraction(rng.randint(0, 20), 10)
        lift = rough.lift(width)
        with bits(128):
            charge = number(upper(rough.upper_charge(form, width) / Density(form).mass)) if rough.points else MPF(0)
        ends = [density.divergence(phi, epsilon - lift) for phi in (start, start + width)]
        assert density.divergence(shift, epsilon) <= CONTEXT.exp(number(lift)) * max(ends) + charge + MPF(10) ** -40


@pytest.mark.parametrize(
    ("name", "c", "points"),
    [
        ("gaussian", Fraction(50, 169), []),
        ("quasi-gaussian", Fraction(2), []),
        ("irregular", None, []),
        ("laplace", 0, [0]),
        ("two-rates", 0, [0]),
        ("uniform", 0, [-5, 5]),
        ("huber", Fraction(1, 2), []),
        ("flipped-huber", Fraction(1, 2), [0]),
        ("gap", 2, [Fraction(-3, 2), -1, 0, 1, Fraction(3, 2)]),
        ("camel", 3, [Fraction(-7, 2), -2, 2, Fraction(7, 2)]),
    ],
)
def test_rough_points(name: str, c: Fraction | None, points: list[Fraction]) -> None:
    found = Roughness.of(ZOO[name][0].unit_form)
    assert c is None or found.c == c
    expected = {Fraction(p) for p in points}
    # A point too many is only slow, but where nothing is rough there must be none.
    assert expected <= set(found.points)
    assert found.points == () or name not in ("quasi-gaussian", "gaussian", "irregular")


def test_a_kink_up_is_smooth_and_a_kink_down_is_rough() -> None:
    up = declared(("0", "1", "0", [("0", "-2")]), ("1", "inf", "0", [("-1", "-1")]), scale=1)[0].unit_form
    down = declared(("0", "1", "0", [("0", "-1")]), ("1", "inf", "0", [("1", "-2")]), scale=1)[0].unit_form
    assert set(Roughness.of(up).points) == {0} and set(Roughness.of(down).points) == {-1, 0, 1}


@pytest.mark.parametrize("name", ZOO)
def test_ranges_contain_all_values(name: str) -> None:
    rng = random.Random(name)
    mechanism, density = ZOO[name]
    with bits(128):
        for piece in mechanism.unit_form.whole_line:
            stop = max(piece.start or Fraction(0), Fraction(0)) + 2 if piece.stop is None else piece.stop
            start = min(stop, Fraction(0)) - 2 if piece.start is None else piece.start
            for _ in range(4):
                a = start + (stop - start) * Fraction(rng.randint(0, 9), 10)
                b = min(stop, a + Fraction(1, rng.choice([1, 5, 100])))
                low, high = range_on(piece.sum, a, b)
                scale = number(upper(Density(mechanism.unit_form).mass)) / density.mass
                for i in range(9):
                    x = number(a + (b - a) * i / 8)
                    middle = number((start + stop) / 2)
                    value = density.piece_at(middle).value(x) * scale
                    assert number(lower(low)) <= value * (1 + MPF(10) ** -30)
                    assert value * (1 - MPF(10) ** -30) <= number(upper(high))


def test_a_curve_is_log_f_with_bounds_that_tighten() -> None:
    mechanism, density = ZOO["quasi-gaussian"]
    with bits(128):
        curve = LogCurve(mechanism.unit_form.pieces[0].sum)
        scale = CONTEXT.log(number(upper(Density(mechanism.unit_form).mass)) / density.mass)
        gaps = []
        for width in (Fraction(1, 2), Fraction(1, 8), Fraction(1, 32)):
            left, right = curve.at(point(Fraction(1, 3))), curve.at(point(Fraction(1, 3) + width))
            assert contains(left.log, CONTEXT.log(density.pieces[1].value(number("1/3"))) + scale, slack=1e-35)
            gaps.append(float(curve.upper_log(left, right) - curve.lower_log(left, right)))
    assert gaps[0] > gaps[1] > gaps[2] > 0


def test_a_jump_between_lines_of_several_terms_is_a_rough_point() -> None:
    """Their first terms agree, the others do not: f jumps."""
    double = Line(((Fraction(1), ZERO), (Fraction(20), Fraction(-1))), ZERO)
    single = Line(((Fraction(1), ZERO),), ZERO)
    c = Fraction(1, 32)
    for first, second in ((double, single), (single, double), (double, double)):
        pieces = Piece(ZERO, Fraction(1, 2), LineSum(c, (first,))), Piece(Fraction(1, 2), None, LineSum(c, (second,)))
        assert Fraction(1, 2) in Roughness.of(Form(pieces)).points
        assert not is_log_concave(Form(pieces))


@pytest.mark.parametrize("width", [Fraction(1, 10), Fraction(1, 2)])
def test_jumps_are_charged_with_their_height_times_the_width(width: Fraction) -> None:
    steps, uniform, falling = (ZOO[name][0].unit_form for name in ("steps", "uniform", "truncated-laplace"))
    with bits(128):
        for form in (steps, uniform):  # from 1 down to 0 on either side, whatever lies between
            charge = Roughness.of(form).upper_charge(form, width)
            assert contains(charge, 2 * number(width)) and float(charge.rad()) < 1e-30
        charge = Roughness.of(falling).upper_charge(falling, width)
    at_ends = 2 * CONTEXT.exp(number(width) - number("5/2"))
    assert contains(charge, number(width) * (at_ends + 1 - CONTEXT.exp(-number(width))))
    assert float(charge.rad()) < 1e-30


def test_a_charge_looks_as_far_as_the_width_and_no_further() -> None:
    """Two steps that only a wide box sees at once: at ±3/10, ±13/10 and ±24/10, by factors of e, e and ∞."""
    form = ZOO["steps"][0].unit_form
    low, lower_ = CONTEXT.exp(-1), CONTEXT.exp(-2)
    with bits(128):
        for width, heights in (
            (Fraction(99, 100), (1 - low) + (low - lower_) + lower_),
            (Fraction(1), (1 - lower_) + (1 - lower_) + lower_),  # closed boxes touch the next step
            (Fraction(21, 20), (1 - lower_) + (1 - lower_) + lower_),
            (Fraction(11, 10), (1 - lower_) + (1 - 0) + low),
        ):
            charge = Roughness.of(form).upper_charge(form, width)
            assert contains(charge, 2 * number(width) * heights), width


def test_kappa_is_what_the_chord_of_a_square_may_hide() -> None:
    """log κ = c w²/4, the height of c x² at the ends of a box of width w above its middle."""
    for name in ZOO:
        rough = Roughness.of(ZOO[name][0].unit_form)
        assert rough.lift(Fraction(1, 3)) == rough.c / 36 and rough.lift(Fraction(2)) == rough.c


@pytest.mark.parametrize("c", ["0", "1/2", "3"])
def test_bounds_between_two_points_are_as_near_as_the_shape_allows(c: str) -> None:
    one, two = Line.of(Fraction(1), ZERO, Fraction(1)), Line.of(Fraction(1), ZERO, Fraction(-1))
    cells = (Fraction(-1, 2), Fraction(3, 2)), (Fraction(-2), Fraction(1)), (Fraction(1), Fraction(1, 8))
    with bits(128):
        for start, width in cells:
            ends = point(start), point(start + width)
            single, double = LogCurve(LineSum(Fraction(c), (one,))), LogCurve(LineSum(Fraction(c), (one, two)))
            for curve in (single, double):
                left, right = (curve.at(end) for end in ends)
                above = number(Fraction(c) * width**2 / 4)
                top, bottom = curve.upper_log(left, right), curve.lower_log(left, right)
                assert contains(top, above + max(number(lower(end.log)) for end in (left, right)), slack=1e-30)
                least = min(number(upper(end.log)) for end in (left, right))
                if curve is single:  # concave: least at an end
                    assert contains(bottom, least, slack=1e-30)
                else:  # U″ ≤ 1, and the better of two tangents
                    assert number(lower(bottom)) >= least - number(width**2) / 2
                    assert number(lower(bottom)) <= least


@pytest.mark.parametrize(
    ("first", "second", "concave", "smooth"),
    [
        # c, intercept and slope of log f on either side of x = 2
        (("1/2", "0", "0"), ("0", "2", "-2"), True, True),
        (("0", "0", "-1"), ("1/2", "0", "0"), True, False),
        (("0", "0", "-1"), ("1/4", "-1", "0"), True, True),
        (("1/2", "0", "0"), ("0", "1", "-3/2"), False, True),  # a kink up
        (("1/2", "0", "0"), ("0", "4", "-3"), True, False),  # a kink down
        *[(("1/2", "0", "0"), ("0", a, "-2"), False, False) for a in ("-1", "7/2", "9/4", "1")],  # jumps
        *[(("0", "0", "-1"), ("1/2", a, "0"), False, False) for a in ("3/2", "-3/2", "-1", "1/2")],
        *[(("0", "0", "-1"), ("1/2", a, "-1"), False, False) for a in ("1/2", "1", "-1/2")],
    ],
)
def test_what_happens_at_a_break_that_is_not_at_1(
    first: tuple[str, str, str], second: tuple[str, str, str], concave: bool, smooth: bool
) -> None:
    def summed(c: str, intercept: str, slope: str) -> LineSum:
        return LineSum(Fraction(c), (Line.of(Fraction(1), Fraction(intercept), Fraction(slope)),))

    form = Form((Piece(ZERO, Fraction(2), summed(*first)), Piece(Fraction(2), None, summed(*second))))
    assert is_log_concave(form) == concave
    assert (Fraction(2) in Roughness.of(form).points) == (not smooth)
