"""The integrand at any shift, and probabilities, of every kind of density."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest

from audit.density import Density
from audit.exact import fraction
from tests.audit.support import PRECISIONS, ZOO, bits, contains, point
from tests.soundness import referee
from tests.soundness.referee import CONTEXT, number

SHIFTS = (Fraction(0), Fraction(1, 8), Fraction(3, 10), Fraction(7, 8), Fraction(1))


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("name", ZOO)
def test_stretches_cover_the_line_in_order_and_their_signs_are_right(name: str, shift: Fraction) -> None:
    epsilon = Fraction(7, 10)
    density, factor = ZOO[name][1], CONTEXT.exp(number(epsilon))
    with bits(128):
        stretches = Density(ZOO[name][0].unit_form).stretches(shift, epsilon)
    assert stretches[0].whole[0] is None and stretches[-1].whole[1] is None
    for left, right in pairwise(stretches):
        assert left.whole[1] is not None and left.whole[1] == right.whole[0]
    for balls in stretches:
        start, stop = (None if end is None else fraction(end) for end in balls.whole)
        low = stop - 9 if start is None and stop is not None else Fraction(-9) if start is None else start
        high = low + 9 if stop is None else stop
        for i in range(1, 8):
            x = number(low + (high - low) * i / 8)
            there, here = density.piece_at(x + number(shift)), density.piece_at(x)
            assert bool(there.terms) or balls.sign < 0
            p, n = there.value(x + number(shift)), factor * here.value(x)
            if abs(p - n) > referee.NOISE * (p + n):
                assert balls.sign == 0 or (balls.sign > 0) == (p > n)


@pytest.mark.parametrize("name", ZOO)
def test_probabilities_contain_the_truth(name: str) -> None:
    mechanism, density = ZOO[name]
    intervals = [
        (None, None),
        (None, "-0.7"),
        ("-0.3", "0.2"),
        ("0.9", "1.6"),
        ("2.2", None),
        ("7", "9"),
        (None, "1.25"),
    ]
    for precision in PRECISIONS:
        with bits(precision):
            ours = Density(mechanism.unit_form)
            for ends in intervals:
                found = ours.probability(tuple(None if end is None else point(Fraction(end)) for end in ends))  # type: ignore[arg-type]
                assert contains(found, density.probability(*ends), slack=1e-55)


def test_which_shifts_make_exponentials_cancel() -> None:
    def where(name: str) -> list[str]:
        ours = Density(ZOO[name][0].unit_form)
        return [str(shift) for shift in map(Fraction, ("0", "1/8", "1/2", "7/8", "1")) if ours.cancels(shift)]

    with bits(128):
        assert where("multi-gaussian") == ["0", "1"]
        assert where("eighths") == ["0", "1/8", "7/8", "1"]
        assert where("irregular") == ["0"]
        assert where("laplace") == where("two-rates") == ["0", "1/8", "1/2", "7/8", "1"]
