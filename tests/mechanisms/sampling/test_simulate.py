"""The float simulator: of the declared distribution, seeded, and said to be no release."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms.numbers import InputError
from mechanisms.sampling import simulate
from mechanisms.sampling.simulate import simulate_noise
from tests.mechanisms.sampling.support import FAMILIES, p_values


@pytest.mark.parametrize("name", FAMILIES)
def test_distribution(name: str) -> None:
    form = FAMILIES[name].form
    values = simulate_noise(FAMILIES[name], 10_000, 71)
    assert values.shape == (10_000,) and values.dtype == np.float64 and np.isfinite(values).all()
    assert min(p_values(values, form)) > 2e-4


def test_the_seed_decides() -> None:
    noise = FAMILIES["ten"]
    assert (simulate_noise(noise, 50, 1) == simulate_noise(noise, 50, 1)).all()
    assert (simulate_noise(noise, 50, 1) != simulate_noise(noise, 50, 2)).all()
    rng = np.random.default_rng(1)
    assert (simulate_noise(noise, 50, rng) == simulate_noise(noise, 50, 1)).all()
    assert (simulate_noise(noise, 50, rng) != simulate_noise(noise, 50, 1)).all()
    assert simulate_noise(noise, 0, 1).shape == (0,)


def test_far_tails_do_not_overflow() -> None:
    form = FAMILIES["flipped-huber"].form
    far = simulate._on_piece(form.pieces[1], form.pieces[1].sum, np.array([1e-300, 0.5, 1 - 1e-16]))
    assert np.isfinite(far).all() and (np.diff(far) > 0).all()


@pytest.mark.parametrize(("count", "seed"), [(-1, 0), (1.5, 0), (3, None), (3, -1), (True, 0), (3, "a")])
def test_refusals(count: object, seed: object) -> None:
    with pytest.raises(InputError, match="got"):
        simulate_noise(FAMILIES["ten"], count, seed)  # type: ignore[arg-type]


def test_it_says_that_it_is_not_for_release() -> None:
    assert "NOT FOR RELEASE" in (simulate_noise.__doc__ or "") and "simulation ONLY" in (simulate.__doc__ or "")
