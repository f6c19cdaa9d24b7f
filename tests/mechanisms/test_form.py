"""The declared form in three arithmetics: float64, balls and the 50-digit referee."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest

from mechanisms.arithmetic import BALL, FLOAT, Arithmetic
from mechanisms.families import DeclaredMixture, Gaussian, Mechanism, MultiGaussian, QuasiGaussian
from mechanisms.form import Form, Piece
from mechanisms.lines import Line, LineSum
from mechanisms.numbers import InputError
from tests.mechanisms.support import MECHANISMS, MP, REFEREE, declared, mechanism, mpf, piece, relative

TOLERANCE = 1e-12
QUANTITIES = ["density", "log_density", "score", "cdf", "tail"]


def points(form: Form) -> list[Fraction]:
    """In the core, and in both tails down to the underflow limit of the density; no ends of pieces."""
    unit = Fraction(float(form.mean_absolute()))
    found = [unit * Fraction(k, 7) for k in (-30, -9, -3, -1, 0, 2, 5, 11, 40)]
    edge = unit
    while edge < 10**6 * unit and float(form.log_density(2.0 * float(edge))) > -690:
        edge *= 2
    step = edge
    for _ in range(12):
        step /= 2
        if float(form.log_density(float(edge + step))) > -690:
            edge += step
    ends = {end for p in form.pieces for end in (p.start, p.stop)}
    return [x for x in [*found, edge, -edge, edge * Fraction(9, 10)] if abs(x) not in ends]


def evaluate(form: Form, name: str, x: list[Fraction], arithmetic: Arithmetic) -> Any:
    return getattr(form, name)(arithmetic.numbers(x), arithmetic)


def inside(form: Form, x: list[Fraction]) -> list[Fraction]:
    """Those where the density is not 0."""
    return [t for t in x if form.density(float(t)) > 0]


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("name", MECHANISMS)
def test_floats_agree_with_the_referee(name: str, quantity: str) -> None:
    form = MECHANISMS[name].form
    x = inside(form, points(form))
    assert len(x) > 5
    right = evaluate(form, quantity, x, REFEREE)
    for value, exact, at in zip(evaluate(form, quantity, x, FLOAT), right, x, strict=True):
        # a score or a log-density may pass through 0: there the error is measured against its terms
        scale = 0.0
        if quantity == "score":
            scale = float(max(abs(2 * float(p.sum.c) * at) for p in form.pieces)) + 1e-300
        elif quantity == "log_density":
            scale = 1.0
        assert abs(mpf(float(value)) - exact) <= TOLERANCE * max(abs(exact), scale), (name, quantity, float(at))


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("name", MECHANISMS)
def test_balls_contain_the_referee_at_two_precisions(name: str, quantity: str) -> None:
    form = MECHANISMS[name].form
    x = inside(form, points(form))
    right = evaluate(form, quantity, x, REFEREE)
    found = []
    for bits in (96, 256):
        with flint.ctx.workprec(bits):
            balls = evaluate(form, quantity, x, BALL)
            for ball, exact in zip(balls, right, strict=True):
                near = flint.arb(MP.nstr(exact, 50)) * flint.arb(1, 1e-45) + flint.arb(0, 1e-45)
                assert ball.overlaps(near)
                assert ball.rad() <= abs(ball) * 2.0 ** (24 - bits) + 2.0 ** (24 - bits)
            found.append(balls)
    for coarse, fine in zip(*found, strict=True):
        assert coarse.contains(fine.mid()) and coarse.overlaps(fine)


@pytest.mark.parametrize("name", MECHANISMS)
def test_balls_contain_the_values_at_all_their_points(name: str) -> None:
    """A wide ball, across ends of pieces too."""
    form = MECHANISMS[name].form
    unit = float(form.mean_absolute())
    for quantity in ("density", "cdf", "tail"):
        for centre in (-1.3, 0.0, 0.4, 2.9):
            ball = flint.arb(centre * unit, 0.35 * unit)
            (wide,) = getattr(form, quantity)(BALL.array([ball]), BALL)
            for share in (-0.99, -0.5, 0.0, 0.7, 0.99):
                value = float(getattr(form, quantity)((centre + 0.35 * share) * unit))
                assert wide.overlaps(flint.arb(value, abs(value) * 1e-12 + 1e-300)), (quantity, centre, share)


@pytest.mark.parametrize("name", MECHANISMS)
def test_moments_in_three_arithmetics(name: str) -> None:
    form = MECHANISMS[name].form
    for quantity in ("mass", "mean_absolute", "mean_square"):
        right = getattr(form, quantity)(REFEREE)
        assert relative(float(getattr(form, quantity)()), right) < TOLERANCE
        with flint.ctx.workprec(160):
            ball = getattr(form, quantity)(BALL)
            assert ball.overlaps(flint.arb(MP.nstr(right, 50)) * flint.arb(1, 1e-45))
            assert ball.rad() < 2.0**-130 * abs(ball)


@pytest.mark.parametrize("name", MECHANISMS)
def test_identities(name: str) -> None:
    """Even; cdf + tail = 1; the score is the slope of the log-density; the density integrates to the cdf."""
    form = MECHANISMS[name].form
    x = inside(form, points(form)[:9])
    for quantity in ("density", "log_density"):
        there, here = (evaluate(form, quantity, points_, FLOAT) for points_ in ([-t for t in x], x))
        np.testing.assert_allclose(there, here, rtol=1e-13)
    np.testing.assert_allclose(evaluate(form, "cdf", x, FLOAT) + evaluate(form, "tail", x, FLOAT), 1, rtol=1e-14)
    with MP.workdps(30):
        for t in x:
            if t == 0:
                continue
            slope = MP.diff(lambda u: form.log_density(u, REFEREE), mpf(t))
            assert abs(slope - form.score(mpf(t), REFEREE)) < 1e-15 * (1 + abs(slope))
            fall = MP.diff(lambda u: form.tail(u, REFEREE), mpf(abs(t)))
            assert abs(fall / form.density(mpf(t), REFEREE) + 1) < 1e-12


def test_numbers_arrays_and_shapes() -> None:
    form = MECHANISMS["multi-gaussian"].form
    grid = np.array([[0.0, 0.5, 1.0], [-0.5, 2.0, -1.0]])
    for quantity in QUANTITIES:
        values = getattr(form, quantity)(grid)
        assert values.shape == grid.shape
        assert abs(values[1, 0] - getattr(form, quantity)(-0.5)) <= 1e-14 * abs(values[1, 0])


def closed_moments(member: Mechanism) -> tuple[Any, Any]:
    """(E|X|, E X²) by the closed formulas of the families."""
    assert isinstance(member, (Gaussian, MultiGaussian, QuasiGaussian))
    delta, sigma = mpf(member.sensitivity), mpf(member.sigma)
    lam = delta / sigma
    if isinstance(member, QuasiGaussian):
        lift, inner = MP.exp(mpf(member.epsilon)), MP.ncdf(lam)
        z = lift + 2 * inner
        first = sigma * MP.sqrt(2 / MP.pi) * (lift + MP.exp(-(lam**2) / 2)) + 2 * delta * inner
        edge = sigma * delta / MP.sqrt(2 * MP.pi) * MP.exp(-(lam**2) / 2)
        return first / z, (lift * sigma**2 + 2 * (inner * (sigma**2 + delta**2) + edge)) / z
    K = member.K if isinstance(member, MultiGaussian) else 0
    epsilon = mpf(member.epsilon) if isinstance(member, MultiGaussian) else MP.mpf(0)
    weights = [MP.exp(-abs(k) * epsilon) for k in range(-K, K + 1)]
    total = sum(weights)
    first = second = MP.mpf(0)
    for k, weight in zip(range(-K, K + 1), weights, strict=True):
        near = sigma * MP.sqrt(2 / MP.pi) * MP.exp(-((k * lam) ** 2) / 2)
        first += weight / total * (near + k * delta * (1 - 2 * MP.ncdf(-k * lam)))
        second += weight / total * k**2
    return first, sigma**2 + delta**2 * second


@pytest.mark.parametrize("name", [name for name in MECHANISMS if "gaussian" in name])
def test_moments_by_the_closed_formulas(name: str) -> None:
    member = MECHANISMS[name]
    first, second = closed_moments(member)
    assert abs(member.form.mean_absolute(REFEREE) / first - 1) < MP.mpf(10) ** -44
    assert abs(member.form.mean_square(REFEREE) / second - 1) < MP.mpf(10) ** -44
    assert relative(float(member.form.mean_absolute()), first) < TOLERANCE
    assert relative(float(member.form.mean_square()), second) < TOLERANCE


def test_laplace_and_truncated_laplace_by_their_formulas() -> None:
    laplace, truncated = MECHANISMS["laplace"].form, MECHANISMS["truncated-laplace"].form
    assert relative(float(laplace.tail(700.0)), MP.exp(-700) / 2) < TOLERANCE
    assert relative(float(laplace.mean_absolute()), MP.mpf(1)) < TOLERANCE
    assert relative(float(laplace.mean_square()), MP.mpf(2)) < TOLERANCE
    kept = 1 - MP.exp(-3)
    assert relative(float(truncated.density(0.5)), MP.exp(-0.5) / (2 * kept)) < TOLERANCE
    assert relative(float(truncated.mean_absolute()), (1 - 4 * MP.exp(-3)) / kept) < TOLERANCE
    assert truncated.tail(3.0) == truncated.density(3.0) == truncated.tail(5.0) == 0.0
    assert truncated.log_density(4.0) == -np.inf and truncated.cdf(7.0) == 1.0


def test_steps_take_the_value_to_their_right() -> None:
    form = MECHANISMS["steps"].form
    mass = 2 * (MP.mpf("0.3") + MP.exp(-1) + MP.exp(-2))
    for x, height in ((0.0, 0), (0.29, 0), (0.3, -1), (1.29, -1), (1.3, -2), (2.2, -2)):
        assert relative(float(form.density(x)), MP.exp(height) / mass) < TOLERANCE
    assert form.density(2.3) == 0.0 and form.density(-0.1) == form.density(0.1)


@pytest.mark.parametrize("scale", ["1e-300", "1e300", "2.2e-308"])
def test_extreme_scales_stay_finite(scale: str) -> None:
    """The unit form does not depend on the unit of the query."""
    small = mechanism(MultiGaussian, sensitivity=scale, sigma=Fraction(scale) / 3, K=2, epsilon=1)
    usual = mechanism(MultiGaussian, sensitivity=1, sigma=Fraction(1, 3), K=2, epsilon=1)
    assert small.unit_form.pieces == usual.unit_form.pieces
    assert small.unit_form.density(0.3) == usual.unit_form.density(0.3)


def test_large_heights_do_not_overflow() -> None:
    member = declared(piece("0", "inf", "1/2", ("100000", "2000")))
    assert np.isfinite(member.form.density(2000.0)) and member.form.density(2000.0) > 0


def test_a_number_beyond_the_floats_is_infinite() -> None:
    assert FLOAT.number(Fraction(10) ** 400) == np.inf
    assert FLOAT.number(-(Fraction(10) ** 400)) == -np.inf


RISING = Line.of(Fraction(1), Fraction(0), Fraction(4))


def test_masses_to_infinite_ends() -> None:
    """[−∞, v] by floats, as the calibration asks for it."""
    for lines in (
        LineSum(Fraction(2), (RISING, Line.of(Fraction(3), Fraction(0), Fraction(-4)))),
        LineSum(Fraction(0), (RISING,)),
    ):
        low, high = np.array([-np.inf]), np.array([-1.5])
        with np.errstate(all="ignore"):
            left = lines.moments(low, high, 0, FLOAT)[0]
        right = lines.reflected().moments(REFEREE.array([MP.mpf(1.5)]), None, 0, REFEREE)[0]
        assert relative(float(left[0]), right[0]) < TOLERANCE


def refused(build: Callable[[], object], where: str) -> None:
    with pytest.raises(InputError) as refusal:
        build()
    assert refusal.value.where == where


ONE = Line.of(Fraction(1), Fraction(0), Fraction(0))


@pytest.mark.parametrize(
    ("pieces", "where"),
    [
        ((), "pieces"),
        ((Piece(Fraction(0), None, LineSum(Fraction(1), ())),), "pieces"),
        ((Piece(Fraction(1), None, LineSum(Fraction(1), (ONE,))),), "pieces[0].from"),
        ((Piece(Fraction(0), Fraction(0), LineSum(Fraction(1), (ONE,))),), "pieces[0].to"),
        ((Piece(Fraction(0), None, LineSum(Fraction(0), (ONE,))),), "pieces[0].lines"),
        (
            (
                Piece(Fraction(0), Fraction(1), LineSum(Fraction(1), (ONE,))),
                Piece(Fraction(2), None, LineSum(Fraction(1), (ONE,))),
            ),
            "pieces[1].from",
        ),
    ],
)
def test_pieces_that_are_no_density(pieces: tuple[Piece, ...], where: str) -> None:
    refused(lambda: Form(pieces), where)


def test_whole_line_joins_what_is_one_formula() -> None:
    assert len(MECHANISMS["multi-gaussian"].form.whole_line) == 1
    assert len(MECHANISMS["mixture"].form.whole_line) == 1
    assert len(MECHANISMS["quasi-gaussian"].form.whole_line) == 2
    assert len(MECHANISMS["truncated-laplace"].form.whole_line) == 4
    joined = mechanism(DeclaredMixture, sensitivity=1, sigma=1, components=[[1, 0]]).form
    assert joined.whole_line == mechanism(Gaussian, sensitivity=1, sigma=1).form.whole_line
