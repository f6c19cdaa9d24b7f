"""Release: how the sum is rounded, what adversarial bits do, what is refused, and bits that are used once."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from array import array
from decimal import Decimal
from fractions import Fraction

import flint
import numpy as np
import pytest

from mechanisms.families import FlippedHuber, Gaussian, Mechanism
from mechanisms.numbers import InputError
from mechanisms.sampling import bits as bits_module
from mechanisms.sampling.balls import precision
from mechanisms.sampling.bits import StuckBits, SystemBits
from mechanisms.sampling.sampler import Sampler, default_grid, read_grid, sampler
from tests.mechanisms.sampling.support import ADVERSARIAL, FAMILIES, INVERSE, Scripted, Seeded
from tests.mechanisms.support import mechanism

NARROW = mechanism(Gaussian, sensitivity=1, sigma=Fraction(1, 2**40))
WAYS = ("ten", "mixture", "quasi-gaussian", "exact-laplace", "staircase", "tulap", "cut-laplace", "flipped-huber")


def drawn(noise: Mechanism, q: object, grid: object, seed: int, count: int, bulk: bool = False) -> list[int]:
    draw = sampler(noise, grid, Seeded(seed))
    return [int(m) for m in draw.multiples(q, count)] if bulk else [draw.multiple(q) for _ in range(count)]


@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize("name", WAYS)
def test_a_shift_of_the_query_by_multiples_of_the_grid_shifts_the_release_by_as_many(name: str, bulk: bool) -> None:
    noise, grid = FAMILIES[name], Fraction(1, 64)
    for q in (Fraction(1, 3), 0.5, 7, Fraction(-5, 2)):
        for steps in (1, 64, -1000, 10**30):
            here = drawn(noise, q, grid, 41, 6, bulk)
            assert drawn(noise, Fraction(q) + steps * grid, grid, 41, 6, bulk) == [m + steps for m in here]


@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize("name", WAYS)
def test_rounding_keeps_the_sensitivity(name: str, bulk: bool) -> None:
    """On the same noise, answers at most Δ apart are released at most ⌈Δ/g⌉ steps apart, and exactly Δ/g where that is
    whole. Rounding q first, half to even, would take 0.5 and 1.5 to 0 and 2."""
    noise = FAMILIES[name]
    for grid, q, other in (
        (1, Fraction(1, 2), Fraction(3, 2)),
        (1, Fraction(3, 2), Fraction(5, 2)),
        (Fraction(1, 4), Fraction(1, 8), Fraction(9, 8)),
        (2, 1, 3),
        (1, 0.3, 0.9),
        (Fraction(1, 8), 0.1, 0.72),
    ):
        apart = (Fraction(other) - Fraction(q)) / grid
        count = 12 if name == "flipped-huber" else 200 if bulk else 20
        pairs = zip(drawn(noise, q, grid, 42, count, bulk), drawn(noise, other, grid, 42, count, bulk), strict=True)
        assert {b - a for a, b in pairs} <= {math.floor(apart), math.ceil(apart)}


@pytest.mark.parametrize("bulk", [False, True])
def test_halves_are_rounded_up_and_not_to_even(bulk: bool) -> None:
    """With noise of 2^−40, on a grid of 1: q + X rounds as q does, up where X > 0 and down where X < 0 at a half."""
    for q in (Fraction(1, 2), 0.5, Fraction(3, 2), 2.5, Fraction(-1, 2)):
        found = set(drawn(NARROW, q, 1, 43, 40, bulk))
        assert found == {math.floor(q), math.floor(q) + 1}
    for q, right in ((0.4999, 0), (0.5001, 1), (1.4999, 1), (Fraction(15001, 10000), 2), (-0.5001, -1), (-1.4999, -1)):
        assert set(drawn(NARROW, q, 1, 43, 40, bulk)) == {right}


def test_the_query_enters_exactly() -> None:
    """2^60 + 1/4 is no double; its quarter decides here."""
    for quarter in (1, 3):
        q = 2**60 + Fraction(quarter, 4)
        assert set(drawn(NARROW, q, 1, 44, 10)) == {2**60 + (quarter > 2)}
    assert drawn(NARROW, 0.1, Fraction(1, 2**55), 45, 3) == drawn(NARROW, Fraction(0.1), Fraction(1, 2**55), 45, 3)
    assert drawn(NARROW, 0.1, Fraction(1, 2**70), 45, 3) != drawn(NARROW, Fraction(1, 10), Fraction(1, 2**70), 45, 3)


def test_a_release_is_its_multiple_of_the_grid() -> None:
    noise = FAMILIES["ten"]
    grid = Fraction(1, 256)
    values = [sampler(noise, grid, Seeded(s)).release(1) for s in range(5)]
    assert values == [sampler(noise, grid, Seeded(s)).multiple(1) * grid for s in range(5)]


@pytest.mark.parametrize("bits", ADVERSARIAL)
@pytest.mark.parametrize("name", [*WAYS, "gaussian", "uniform", "equal-weights", "short-laplace"])
def test_adversarial_bits_end_in_a_value_or_in_one_clear_error(name: str, bits: str) -> None:
    draw = sampler(FAMILIES[name], 1, Scripted(ADVERSARIAL[bits]()))
    try:
        value = draw.multiple(Fraction(1, 2))
    except StuckBits as error:
        assert "no value was drawn" in str(error)
        assert "for long" not in bits
    else:
        assert isinstance(value, int)


@pytest.mark.parametrize("bits", ADVERSARIAL)
@pytest.mark.parametrize("name", ["ten", "gaussian"])
def test_adversarial_bits_in_bulk(name: str, bits: str) -> None:
    draw = sampler(FAMILIES[name], 1, Scripted(ADVERSARIAL[bits]()))
    try:
        assert len(draw.multiples(Fraction(1, 2), 4)) == 4
    except StuckBits as error:
        assert "no value was drawn" in str(error)


def test_bits_that_leave_the_rounding_open_for_long() -> None:
    """X = −4x on a grid of 1, x = 1/8 and then 6400 zeros: q + X is 0 to 6400 bits, and below it by the next."""
    noise = mechanism(Gaussian, sensitivity=1, sigma=4)
    eighth, top = 1 << 61, (1 << 64) - 1
    start = [0, 5, eighth, top, 0]  # k = 0; x; its trial succeeds; minus
    assert sampler(noise, 1, Scripted([*start, *[0] * 100, 1])).multiple(0) == -1
    assert sampler(noise, 1, Scripted([0, 5, eighth, top, 1])).multiple(0) == 1  # plus: exactly 1/2 rounds up
    assert sampler(noise, 1, Scripted([0, 5, eighth - 1, top, 1])).multiple(0) == 0
    with pytest.raises(StuckBits):
        sampler(noise, 1, Scripted([*start, *[0] * 1000])).multiple(0)


@pytest.mark.parametrize("q", [math.nan, math.inf, -math.inf, "0.5", True, None, Decimal(1), np.int64(3), 1j, [1]])
def test_queries_that_are_no_exact_number_are_refused(q: object) -> None:
    draw = sampler(NARROW)
    for call in (draw.multiple, draw.release, lambda value: draw.multiples(value, 3)):
        with pytest.raises(InputError, match=r"^value: got .*, expected"):
            call(q)


@pytest.mark.parametrize("width", [0, 33, 63, 65])
def test_words_of_other_lengths_are_refused(width: int) -> None:
    with pytest.raises(InputError, match="width"):
        sampler(NARROW, None, Seeded(1, width))


@pytest.mark.parametrize("q", ["31415", Decimal(31415), np.int64(31415), np.float32(31415), [31415]])
def test_a_refused_query_is_not_repeated_in_the_error(q: object) -> None:
    with pytest.raises(InputError) as caught:
        sampler(NARROW).multiple(q)
    assert type(q).__name__ in str(caught.value) and "31415" not in f"{caught.value} {caught.value.got}"


def test_a_grid_of_more_digits_than_python_writes_is_refused_in_one_line() -> None:
    for grid in (Fraction(1, 2**20_000), 2**20_000):
        with pytest.raises(InputError, match=r"^grid: got .* of too many digits to show, expected a power of two"):
            sampler(NARROW, grid)


def test_a_numpy_float_is_the_double_that_it_is() -> None:
    assert sampler(NARROW, 1, Seeded(1)).multiple(np.float64(2.25)) == 2


@pytest.mark.parametrize(
    "grid", [0, -1, 3, 0.3, "0.1", math.nan, math.inf, Fraction(2, 3), Fraction(1, 2**1500), True, "x", [1]]
)
def test_grids_that_are_no_power_of_two_are_refused(grid: object) -> None:
    with pytest.raises(InputError, match=r"^grid: got .*, expected"):
        sampler(NARROW, grid)


def test_grids() -> None:
    assert read_grid("0x1p-30") == Fraction(1, 2**30) and read_grid(0.125) == Fraction(1, 8) and read_grid(4) == 4
    for sensitivity, right in (("1", -20), ("0.9", -21), ("1.9", -20), ("2", -19), ("1/3", -22), ("1e-30", -120)):
        noise = mechanism(Gaussian, sensitivity=sensitivity, sigma=1)
        assert default_grid(noise) == Fraction(2) ** right
        assert sampler(noise).grid == default_grid(noise)


@pytest.mark.parametrize("count", [-1, 1.5, True, None, "3"])
def test_counts_that_are_none(count: object) -> None:
    with pytest.raises(InputError, match="count: got"):
        sampler(NARROW).multiples(0, count)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["ten", "exact-laplace"])
def test_releases_beyond_int64_are_whole_numbers_of_python(name: str) -> None:
    draw = sampler(FAMILIES[name], None, Seeded(3))
    assert draw.multiples(0, 5).dtype == np.int64 and draw.multiples(0, 0).shape == (0,)
    large = draw.multiples(2**60, 5)
    assert large.dtype == object and all(abs(m - 2**60 / draw.grid) < 2**25 for m in large)
    fine = sampler(FAMILIES[name], Fraction(1, 2**100), Seeded(3)).multiples(0, 20)
    assert fine.dtype == object and max(abs(m) for m in fine) > 2**90
    near = sampler(FAMILIES[name], 1, Seeded(3)).multiples(2**63 - 1, 200)
    assert max(near) > 2**63 - 1


@pytest.mark.parametrize("scale", ["1e-300", "1e300"])
@pytest.mark.parametrize("name", [*INVERSE, "quasi-gaussian"])
def test_scales_at_the_ends_of_the_floats(name: str, scale: str) -> None:
    by = Fraction(scale)
    form = FAMILIES[name].form.scaled(1 / by)
    grid = Fraction(2) ** (math.floor(math.log2(by)) - 4)
    draw = Sampler(_Of(form, by), grid, Seeded(4))
    values = [abs(draw.release(0)) / by for _ in range(8)]
    assert 0 < max(values) < 40


class _Of(Mechanism):
    """A mechanism of a given form."""

    def __init__(self, form: object, sensitivity: Fraction) -> None:
        self.__dict__.update(form=form, sensitivity=sensitivity)


@pytest.mark.parametrize(
    ("alpha", "sigma"), [("1e-250", "1e-260"), ("1e200", "1"), ("1", "1e-200"), ("1e-200", "1"), ("1e300", "1e300")]
)
def test_parameters_far_apart(alpha: str, sigma: str) -> None:
    """No ball is as wide, and no float as small, that this ends in anything but a value."""
    noise = mechanism(FlippedHuber, sensitivity=1, alpha=alpha, sigma=sigma)
    for grid in (None, Fraction(1, 2**700)):
        assert abs(sampler(noise, grid, Seeded(8)).release(0)) < 40 * Fraction(sigma)


def test_flint_keeps_its_precision() -> None:
    with flint.ctx.workprec(91):
        for name in WAYS:
            sampler(FAMILIES[name], None, Seeded(7)).multiple(0)
            assert flint.ctx.prec == 91


def test_the_system_gives_other_values_each_time() -> None:
    draw = sampler(FAMILIES["ten"], Fraction(1, 2**80))
    found = [draw.multiple(0) for _ in range(200)] + draw.multiples(0, 200).tolist()
    assert len(set(found)) == 400


def test_words_come_from_the_system_and_are_given_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In four threads at once: every word is one of the system's, and none is given twice."""
    given = array("Q")
    guard = threading.Lock()
    counter = iter(range(1, 10**9))

    def urandom(size: int) -> bytes:
        with guard:
            fresh = array("Q", [next(counter) for _ in range(size // 8)])
            given.extend(fresh)
        return fresh.tobytes()

    bits_module._forget()
    monkeypatch.setattr(bits_module.os, "urandom", urandom)
    taken: list[list[int]] = []

    def work() -> None:
        mine = []
        for _ in range(300):
            word = SystemBits().reader()
            mine.extend(word() for _ in range(20))
            mine.extend(SystemBits().words(3).tolist())
        taken.append(mine)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bits_module._forget()
    words = [word for mine in taken for word in mine]
    assert len(words) == 4 * 300 * 23 == len(set(words))
    assert set(words) <= set(given)


def _in_a_fork(work: object) -> list[int]:
    """What ``work()`` returns in a child process, as words."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, array("Q", work()).tobytes())  # type: ignore[operator]
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        found = array("Q", pipe.read())
    os.waitpid(child, 0)
    return found.tolist()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("told", [True, False], ids=["fork that Python sees", "fork that it does not"])
def test_a_forked_process_uses_none_of_the_bits_in_the_pool(told: bool) -> None:
    word = SystemBits().reader()
    word()
    ahead = list(bits_module._pool)
    owner = bits_module._owner
    assert len(ahead) > 100

    def work() -> list[int]:
        if not told:  # as if the hook had not run: the parent's pool is still there
            bits_module._pool.extend(ahead)
            bits_module._owner = owner
        word = SystemBits().reader()
        return [word() for _ in range(100)]

    child = _in_a_fork(work)
    assert len(child) == 100 and not set(child) & set(ahead)
    assert bits_module._pool == ahead, "the parent keeps its own"
    parent = [word() for _ in range(100)]
    assert not set(parent) & set(child)
    assert len(set(map(tuple, (_in_a_fork(work), _in_a_fork(work), child)))) == 3


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_the_pool_is_empty_right_after_a_fork() -> None:
    """Whatever the process numbers are: one may come again."""
    SystemBits().reader()()
    assert bits_module._pool and _in_a_fork(lambda: [len(bits_module._pool)]) == [0]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forked_samplers_release_different_values() -> None:
    draw = sampler(FAMILIES["ten"], Fraction(1, 2**40))
    draw.multiple(0)

    def work() -> list[int]:
        return [draw.multiple(2**20) for _ in range(5)]

    values = [tuple(_in_a_fork(work)) for _ in range(3)] + [tuple(work())]
    assert len({v for found in values for v in found}) == 20


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_while_another_thread_computes_in_balls_neither_hangs_nor_keeps_its_precision() -> None:
    draw = sampler(FAMILIES["flipped-huber"])
    before, inside = flint.ctx.prec, threading.Event()

    def compute() -> None:
        with precision(before + 300):
            inside.set()
            time.sleep(0.1)

    def work() -> list[int]:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        found = flint.ctx.prec
        draw.multiple(0)
        return [found]

    thread = threading.Thread(target=compute)
    thread.start()
    inside.wait()
    child = _in_a_fork(work)
    thread.join()
    assert child == [before] and flint.ctx.prec == before
