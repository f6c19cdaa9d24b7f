"""Releases under a certificate, from bits that are known."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certificates.release import LARGEST_RATIO, draw, exact_decimal, read_value, require_size
from mechanisms.claims import Direct, Statement
from mechanisms.families import Laplace, MultiGaussian
from mechanisms.numbers import InputError
from tests.mechanisms.sampling.support import Seeded

STATEMENT = Statement(MultiGaussian(sensitivity=1, sigma="0.3355", K=4, epsilon=1), Direct(epsilon="1", delta="0.01"))


@given(st.integers(), st.integers(-1400, 1400))
def test_decimals_are_exact(multiple: int, exponent: int) -> None:
    text = exact_decimal(multiple, Fraction(2) ** exponent)
    assert Fraction(text) == multiple * Fraction(2) ** exponent
    assert "e" not in text.lower()
    assert text == text.strip() and not (("." in text) and text.endswith("0"))


def test_the_same_bits_give_the_same_noise_whatever_the_value() -> None:
    """The sum alone is rounded: moving the value by multiples of the grid moves the release by as much."""
    grid = Fraction(1, 4)
    here = draw(STATEMENT, Fraction(0), 500, grid, bits=Seeded(1)).multiples
    assert draw(STATEMENT, 7 * grid, 500, grid, bits=Seeded(1)).multiples == tuple(m + 7 for m in here)
    half = draw(STATEMENT, grid / 2, 500, grid, bits=Seeded(1)).multiples
    assert {b - a for a, b in zip(here, half, strict=True)} == {0, 1}


def test_large_counts_come_in_parts() -> None:
    shares = []
    drawn = draw(STATEMENT, Fraction(3), 70_000, Fraction(1), progress=shares.append, bits=Seeded(2))
    assert len(drawn.multiples) == len(drawn.values()) == 70_000
    assert shares == sorted(shares) and shares[-1] == 1.0 and len(shares) > 1
    assert sum(drawn.multiples) / 70_000 == pytest.approx(3, abs=0.03)


def test_the_noise_is_in_the_unit_of_the_query() -> None:
    wide = Statement(Laplace(sensitivity=1000, scale=2000), Direct(epsilon="0.5", delta=0))
    drawn = draw(wide, Fraction(0), 2000, bits=Seeded(3))
    assert drawn.grid == Fraction(1, 2048)
    size = sum(abs(m) for m in drawn.multiples) * drawn.grid / 2000
    assert float(size) == pytest.approx(2000, rel=0.1)


def test_how_large_an_answer_may_be() -> None:
    most = LARGEST_RATIO * STATEMENT.mechanism.sensitivity
    require_size(most - 1, STATEMENT.mechanism)
    require_size(1 - most, STATEMENT.mechanism)
    for value in (most, -most):
        with pytest.raises(InputError, match="doubles are too far apart"):
            require_size(value, STATEMENT.mechanism)


def test_values_are_exact() -> None:
    assert read_value("0.1") == Fraction(1, 10)
    assert read_value("-0x1.8p-1") == Fraction(-3, 4)


@pytest.mark.parametrize("count", [0, -1, 10**6 + 1])
def test_counts(count: int) -> None:
    with pytest.raises(InputError, match="--count"):
        draw(STATEMENT, Fraction(0), count, bits=Seeded(4))
