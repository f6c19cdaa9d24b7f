"""Signs of exact sums of exponentials: what cancels is 0, what nearly cancels is told from it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.single import NeedBits
from audit.sums import plus, quotient, scaled, sign_of, times
from audit.verdict import Enclosure, Limits
from mechanisms.lines import Terms
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


@pytest.mark.parametrize(
    ("terms", "sign"),
    [
        ((), 0),
        (((F(0), F(3)),), 0),
        (((F(1), F(3)), (F(-1), F(3))), 0),
        (((F(1, 10**9), F(-5)),), 1),
        (((F(-1, 10**9), F(5)), (F(-1), F(0))), -1),
        (((F(1, 2), F(-900)), (F(1, 2), F(-1000))), 1),
        (((F(-1), F(0)), (F(3), F(-1))), 1),
        (((F(-1), F(0)), (F(5, 2), F(-1))), -1),
        (((F(1), F(10**5)), (F(-1), F(10**5 - 1)), (F(-1), F(-(10**5)))), 1),
    ],
)
def test_signs_of_sums_that_are_known(terms: Terms, sign: int) -> None:
    assert sign_of(terms, ANY) == sign and sign_of(terms[::-1], ANY) == sign
    assert sign_of(scaled(terms, F(-1, 7), F(400)), ANY) == -sign


def test_products_and_sums_of_sums_are_exact_and_merged() -> None:
    one, other = ((F(2), F(1)), (F(-3), F(0))), ((F(1, 2), F(1)), (F(3), F(0)))
    assert dict((a, w) for w, a in plus(one, other)) == {1: F(5, 2)}
    assert dict((a, w) for w, a in times(one, other)) == {2: F(1), 1: F(9, 2), 0: F(-9)}
    assert scaled(one, F(0)) == () and scaled(one, F(5), F(1, 3)) == ((F(10), F(4, 3)), (F(-15), F(1, 3)))


@pytest.mark.parametrize("exponent", ["0", "-700", "500"])
def test_a_quotient_is_enclosed_to_64_bits(exponent: str) -> None:
    """(e^a + 1)/(2 e^a + 2) is one half, and (e^a + 2)/(e^a + 1) between 1 and 2."""
    a = F(exponent)
    one = plus(((F(1), a), (F(1), F(0))))
    half = quotient(one, plus(((F(2), a), (F(2), F(0)))), F(2), ANY)
    assert half.lower <= F(1, 2) <= half.upper and half.upper - half.lower <= half.upper / 2**64
    true = 1 + 1 / (CONTEXT.exp(number(a)) + 1)
    more = quotient(plus(one, ((F(1), F(0)),)), one, F(1), ANY)
    assert number(more.lower) <= true * (1 + CONTEXT.mpf(10) ** -55) and more.lower > 1
    assert number(more.upper) >= true * (1 - CONTEXT.mpf(10) ** -55)
    assert more.upper - more.lower <= more.upper / 2**64


def test_a_quotient_of_what_nearly_cancels_has_64_bits_all_the_same() -> None:
    """e^x − 1, of which 128 bits leave 48."""
    x = F(1, 10**24)
    found = quotient(plus(((F(1), x), (F(-1), F(0)))), ((F(1), F(0)),), F(2), ANY)
    assert number(found.lower) <= CONTEXT.expm1(number(x)) * (1 + CONTEXT.mpf(10) ** -50)
    assert CONTEXT.expm1(number(x)) <= number(found.upper) * (1 + CONTEXT.mpf(10) ** -50)
    assert found.upper - found.lower <= found.upper / 2**63


def test_a_quotient_leaves_out_what_it_is_told_apart_from() -> None:
    """1 + 10^−90 is told from 1, and from 1 + 10^−90 ∓ 10^−150: more bits, until it is."""
    x = F(1, 10**90)
    terms, divisor = plus(((1 + x, F(1)),), ((x, F(0)),)), plus(((F(1), F(1)), (x, F(0))))
    for apart in (F(1), 1 + 2 * x):
        found = quotient(terms, divisor, apart, ANY)
        assert not found.lower <= apart <= found.upper and abs(found.lower - 1) <= 2 * x
    with pytest.raises(NeedBits):
        quotient(terms, divisor, F(1), Limits(bits=128))
    assert quotient(terms, divisor, F(1), Limits(bits=512)) == quotient(terms, divisor, F(1), ANY)


def test_what_a_quotient_is_told_apart_from_is_no_end_of_its_enclosure() -> None:
    terms, divisor = plus(((F(1), F(1)), (F(1), F(0)))), plus(((F(1), F(2)), (F(1), F(0))))
    first = quotient(terms, divisor, F(9), ANY)
    assert quotient(terms, divisor, first.upper, ANY).upper < first.upper
    assert quotient(terms, divisor, first.lower, ANY).lower > first.lower


def test_the_bits_that_are_allowed_are_used() -> None:
    x = F(1, 10**30)  # needs more than 128 bits, and not more than 256
    near = ((F(1), x), (-1 - x, F(0)))
    assert sign_of(near, Limits(bits=256)) == 1
    assert quotient(plus(((1 + x, F(0)),)), plus(((F(1), x),)), F(1), Limits(bits=256)).upper < 1
    y = F(1, 10**45)  # needs more than 256 bits, and not more than 384, which are not tried
    with pytest.raises(NeedBits):
        quotient(plus(((1 + y, F(0)),)), plus(((F(1), y),)), F(1), Limits(bits=511))
    for limits in (Limits(bits=255), Limits(bits=64)):
        with pytest.raises(NeedBits):
            sign_of(near, limits)
        with pytest.raises(NeedBits):
            quotient(plus(((1 + x, F(0)),)), plus(((F(1), x),)), F(1), limits)


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
    assert quotient((), divisor, apart, ANY) == Enclosure(F(0), F(0))
