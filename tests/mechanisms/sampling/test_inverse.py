"""The inverse of the distribution function: every decision against the referee's tail, on the same bits."""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np
import pytest

from mechanisms.arithmetic import BALL
from mechanisms.sampling.inverse import InverseKernel, largest
from mechanisms.sampling.sampler import sampler
from tests.mechanisms.sampling.support import FAMILIES, INVERSE, ONES, Scripted, Seeded, p_values
from tests.mechanisms.support import MP, REFEREE, declared, mpf, piece

PLAIN = [*INVERSE, "steps", "rising", "quasi-gaussian"]
Q = Fraction(1, 3)


def upper(form: object, y: Fraction) -> object:
    """P(|X| > y), by the referee."""
    return 2 * form.tail(mpf(y), REFEREE) if y > 0 else MP.mpf(1)  # type: ignore[attr-defined]


@pytest.mark.parametrize("grid", [Fraction(1, 2**20), Fraction(1, 2**70), Fraction(1, 2)])
@pytest.mark.parametrize("name", PLAIN)
def test_the_cell_is_that_of_the_uniform_number(name: str, grid: Fraction) -> None:
    """T at the two ends of the cell has the whole interval of V between them, V as far as its bits were drawn."""
    form = FAMILIES[name].form
    kernel = InverseKernel(form, grid, 64)
    shift = Q / grid + Fraction(1, 2)
    rest = [7 << 60, 11 << 59, 3, ONES // 7, 1 << 40]
    for v in (1, 1 << 20, 1 << 62, (1 << 63) - 1, 1 << 63, ONES // 3, ONES, *Seeded(61).words(1)):
        for sign in (0, 1):
            script = Scripted([sign, int(v), *rest])
            m = kernel(script.word, shift.numerator, shift.denominator)
            used = script.used - 1
            bits = sum(word << 64 * (used - 1 - i) for i, word in enumerate([int(v), *rest][:used]))
            low, high = (mpf(Fraction(bits + end, 1 << 64 * used)) for end in (0, 1))
            # |X| lies between these: (m − shift) g and (m + 1 − shift) g, or their mirror images
            ends = sorted(abs(grid) * (1 - 2 * sign) * (e - shift) for e in (m, m + 1))
            slack = MP.mpf(10) ** -45
            assert upper(form, ends[1]) <= low + slack and high <= upper(form, ends[0]) + slack


@pytest.mark.parametrize(
    "name", ["multi-gaussian", "quasi-gaussian", "exact-laplace", "cut-laplace", "tulap", "rising"]
)
def test_any_density_can_be_drawn_so(name: str) -> None:
    """A second way to the distributions that have one of their own."""
    form = FAMILIES[name].form
    kernel, bits, grid = InverseKernel(form, Fraction(1, 2**16), 64), Seeded(62), 2.0**-16
    values = np.array([kernel(bits.word, 1, 2) for _ in range(300)]) * grid
    assert min(p_values(values, form, 20)) > 1e-3


def test_zeros_lead_far_out_until_a_one_comes() -> None:
    """V is 20 words of zeros, then 1, then a half: the value is where the tail is 1.5 · 2^−1344."""
    script = Scripted([0, *[0] * 20, 1, 1 << 63, *range(20)])
    m = sampler(FAMILIES["irrational-sigma"], Fraction(1, 2**10), script).multiple(0)
    assert m == round(float(MP.findroot(lambda y: MP.log(MP.erfc(y)) + 1344 * MP.log(2) - MP.log(1.5), 30)) * 2**10)


def test_largest_finds_the_last_that_holds_from_anywhere() -> None:
    for last in (-5, 0, 3, 1000, 10**30):
        for guess in (-(10**31), -7, 0, last - 1, last, last + 1, 2 * 10**30):
            assert largest(lambda e, last=last: e <= last, guess) == last


@pytest.mark.parametrize("slope", ["1e6", "1e7", "1e10", "1e100"])
def test_a_steep_line_under_a_wide_gaussian_can_be_drawn(slope: str) -> None:
    """Its centre is far out on the other side: erfc there was enclosed by what no precision could use."""
    noise = declared(piece("0", "inf", "1/2", ("0", f"-{slope}")))
    draw = sampler(noise, Fraction(2) ** -round(float(MP.log(MP.mpf(slope), 2)) + 8), Seeded(63))
    sizes = [abs(draw.release(0)) * Fraction(slope) for _ in range(12)]
    assert 0.2 < sum(sizes) / 12 < 4  # |X| is exponential of mean 1/slope, but for a share 1/slope² of it


def test_a_short_piece_far_out_under_a_gaussian_can_be_drawn() -> None:
    start, stop = Fraction(10**50), 10**50 + Fraction(1, 10**60)
    noise = declared(piece("0", "1e50", "0"), piece("1e50", f"{stop.numerator}/{stop.denominator}", "1", ("0", "0")))
    for _ in range(3):
        assert start <= abs(sampler(noise, Fraction(1, 2**300), Seeded(64)).release(0)) <= stop


def test_scaled_complementary_error_functions_of_wide_balls_hold_both_ends() -> None:
    """On both sides of where the way to compute it changes; and tight, however large the argument."""
    for z, radius in ((0, 30), (3, 40), (4095, 60), (4096, 5), (4097, 60), (10**7, 90), (10**30, 90), (10**30, -90)):
        with flint.ctx.workprec(500):
            ball = flint.arb(z, flint.arb(2) ** -radius)
            found = BALL.erfcx(BALL.array([ball]))[0]
            for end in (ball.lower(), ball.upper()):
                assert found.contains(((end * end).exp() * end.erfc()).mid())
            assert z <= 4096 or found.rad() < flint.arb(2) ** (1 - radius)
