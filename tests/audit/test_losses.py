"""Certified losses against 60-digit quadrature."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import flint
import pytest
from flint import arb

from audit.losses import enclose_losses
from mechanisms.families import MultiGaussian, QuasiGaussian, Staircase
from tests.audit.support import ZOO
from tests.soundness.referee import CONTEXT, MPF, Density, number


def moment(density: Density, order: int) -> object:
    """E|X|^order, by quadrature over each piece on x ≥ 0."""
    total = MPF(0)
    for piece in density.pieces:
        start = MPF(0) if piece.start is None or piece.start < 0 else piece.start
        if not piece.terms or (piece.stop is not None and piece.stop <= 0):
            continue
        stop = MPF(60) if piece.stop is None else piece.stop
        points = [start + (stop - start) * (MPF(i) / 24) ** 2 for i in range(25)]
        with CONTEXT.workdps(25):
            total += CONTEXT.quad(lambda x, p=piece: x**order * p.value(x), points)
    return 2 * total / density.mass


@pytest.mark.parametrize("name", ["multi-gaussian", "quasi-gaussian", "flipped-huber", "camel", "flat-sum", "steps"])
def test_losses_contain_the_moments(name: str) -> None:
    mechanism, density = ZOO[name]
    found = enclose_losses(mechanism)
    for ends, order in ((found.l1, 1), (found.l2, 2)):
        true = moment(density, order)
        assert number(ends.lower) * (1 - MPF(10) ** -15) <= true <= number(ends.upper) * (1 + MPF(10) ** -15)
        assert ends.upper - ends.lower < ends.upper * Fraction(1, 10**40)


@pytest.mark.parametrize(("bits", "other"), [(96, 256), (192, 512)])
def test_two_precisions_overlap(bits: int, other: int) -> None:
    for mechanism, _ in ZOO.values():
        rough, fine = enclose_losses(mechanism, bits), enclose_losses(mechanism, other)
        assert enclose_losses(mechanism) == enclose_losses(mechanism, 192)
        for a, b in ((rough.l1, fine.l1), (rough.l2, fine.l2)):
            assert a.lower <= b.upper and b.lower <= a.upper


def test_losses_are_in_the_unit_of_the_query() -> None:
    one = enclose_losses(QuasiGaussian(sensitivity=1, sigma="0.5", epsilon="2"))
    four = enclose_losses(QuasiGaussian(sensitivity=4, sigma="2", epsilon="2"))
    assert float(four.l1.upper) == pytest.approx(4 * float(one.l1.upper), rel=1e-14)
    assert float(four.l2.upper) == pytest.approx(16 * float(one.l2.upper), rel=1e-14)


def test_the_formulas_of_the_multi_gaussian() -> None:
    """E X² = σ² + Δ² Σ w_k k²."""
    found = enclose_losses(MultiGaussian(sensitivity=1, sigma="0.35", K=3, epsilon="1"))
    weights = [CONTEXT.exp(-abs(k)) for k in range(-3, 4)]
    square = number("0.35") ** 2 + sum(w * k * k for w, k in zip(weights, range(-3, 4), strict=True)) / sum(weights)
    assert number(found.l2.lower) <= square <= number(found.l2.upper)


@pytest.mark.parametrize(("epsilon", "gamma"), [("1", "0.3"), ("0.2", "1"), ("7", "1/50")])
def test_the_tail_of_a_staircase_is_closed(epsilon: str, gamma: str) -> None:
    """Sums over 1500 steps, at 60 digits."""
    e, g = number(epsilon), number(gamma)
    found = enclose_losses(Staircase(sensitivity="2.5", epsilon=epsilon, gamma=gamma))
    steps = [(MPF(0), g, MPF(1)), *((g + i, g + i + 1, CONTEXT.exp(-(i + 1) * e)) for i in range(1500))]
    sums = [CONTEXT.fsum(h * (b ** (k + 1) - a ** (k + 1)) / (k + 1) for a, b, h in steps) for k in range(3)]
    for ends, true in ((found.l1, sums[1] / sums[0] * MPF("2.5")), (found.l2, sums[2] / sums[0] * MPF("6.25"))):
        assert number(ends.lower) * (1 - MPF(10) ** -45) <= true <= number(ends.upper) * (1 + MPF(10) ** -45)
        assert ends.upper - ends.lower < ends.upper * Fraction(1, 10**40)


@dataclass(frozen=True)
class Stubborn:
    """A form whose losses are finite from so many bits on, 1 and 2."""

    bits: int
    asked: list[int] = field(default_factory=list)

    @property
    def form(self) -> Stubborn:
        return self

    def mean_absolute(self, _: object) -> arb:
        self.asked.append(flint.ctx.prec)
        return arb(1)

    def mean_square(self, _: object) -> arb:
        return arb(2) if flint.ctx.prec >= self.bits else arb("nan")


def test_bits_rise_until_both_losses_are_finite() -> None:
    for needed, bits, asked in ((1, 192, [192]), (700, 192, [192, 384, 768]), (8192, 4096, [4096, 8192])):
        form = Stubborn(needed)
        found = enclose_losses(form, bits)  # type: ignore[arg-type]
        assert (found.l1.lower, found.l2.upper) == (1, 2) and form.asked == asked
    form = Stubborn(8193)
    with pytest.raises(ValueError, match="not finite"):
        enclose_losses(form, 2048)  # type: ignore[arg-type]
    assert form.asked == [2048, 4096, 8192]
