"""Signs of exact sums of exponentials: what cancels is 0, what nearly cancels is told from it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.single import NeedBits
from audit.sums import plus, quotient, scaled, sign_of, times
from audit.verdict import Limits
from tests.soundness.referee import CONTEXT, number

F = Fraction
ANY = Limits()
small = st.fractions(-3, 3, max_denominator=12)
sums = st.lists(st.tuples(small, small), max_size=5).map(tuple)


def value(terms: object) -> object:
    return CONTEXT.fsum(number(w) * CONTEXT.exp(number(a)) for w, a in terms)  # type: ignore[attr-defined]


@given(sums)
def test_signs(terms: tuple[tuple[Fraction, Fraction], ...]) -> None:
    true, found = value(terms), sign_of(terms, ANY)
    assert found == (0 if abs(true) < 1e-45 else 1 if true > 0 else -1)  # type: ignore[arg-type, operator]


@given(sums, sums)
def test_what_is_taken_away_is_gone(one: tuple[tuple[Fraction, Fraction], ...], other: object) -> None:
    assert sign_of([*one, *scaled(one, F(-1))], ANY) == 0
    product = times(plus(one), plus(((F(1), F(2)),)))
    assert sign_of([*product, *scaled(one, F(-1), F(2))], ANY) == 0


@pytest.mark.parametrize("places", [20, 100, 600])
def test_what_nearly_cancels(places: int) -> None:
    """1 − e^x + x + x²/2 and the like, x = 10^−places: more and more bits."""
    x = F(1, 10**places)
    assert sign_of([(F(1), x), (-1 - x, F(0))], ANY) == 1
    assert sign_of([(F(1), x), (-1 - x - x * x, F(0))], ANY) == -1


def test_the_limit_on_bits_ends_it() -> None:
    x = F(1, 10**600)
    with pytest.raises(NeedBits):
        sign_of([(F(1), x), (-1 - x, F(0))], Limits(bits=512))


@given(sums, sums, st.integers(0, 10**6))
def test_quotients(one: tuple[tuple[Fraction, Fraction], ...], other: object, place: int) -> None:
    divisor = plus(one, ((F(200), F(3)),))
    dividend = plus(((F(1), F(1, 3)),), one)
    apart = F(place, 10**5)
    true = value(dividend) / value(divisor)  # type: ignore[operator]
    found = quotient(dividend, divisor, apart, ANY)
    assert number(found.lower) * (1 - CONTEXT.mpf(10) ** -50 * CONTEXT.sign(true)) <= true
    assert true <= number(found.upper) * (1 + CONTEXT.mpf(10) ** -50 * CONTEXT.sign(true))
    assert not found.lower <= apart <= found.upper or not dividend
    assert quotient((), divisor, apart, ANY).upper == 0
