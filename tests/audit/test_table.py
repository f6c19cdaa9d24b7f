"""The table of f in floats: every entry on its side of the truth, every bound above it, and boxes decided rightly."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import audit.table
from audit.decide import decide
from audit.shape import Roughness
from audit.shifts import is_cover
from audit.sweep import Sweep
from audit.table import Alpha, Table, is_on_lattice, propose_table
from audit.verdict import Expired, Limits, Verdict
from mechanisms.families import Gaussian
from mechanisms.numbers import read_real
from tests.audit.support import FEW, ZOO, bits, declared, gaussian, mixture, multi_gaussian, quasi_gaussian, statement
from tests.soundness.referee import CONTEXT, MPF, Density, number

TABLED = ["gaussian", "multi-gaussian", "quasi-gaussian", "irregular", "repeated", "eighths"]
ROUNDING = MPF(10) ** -45
FAR_BREAK = declared(("0", "19", "0.5", [("0", "0")]), ("19", "inf", "0.5", [("-1", "0")]), scale=1)
"""All lines are centred at 0, and the table ends before the break."""
FAINT = declared(("0", "35/4", "0.5", [("0", "0")]), ("35/4", "inf", "0.5", [("-705", "0")]), scale=1)
"""In the last cells of the table f is far below TINY, but not 0."""
APART = mixture("0.1", ("1", "0"), ("1", "9"))
"""As much between the means."""
NARROW = gaussian("0.01")
"""4c² is larger than the square of the number of points for each Δ."""
PAIRS = {name: ZOO[name] for name in TABLED}
PAIRS |= {"far break": FAR_BREAK, "faint": FAINT, "apart": APART, "narrow": NARROW}
H = Fraction(1, 64)


def table(name: str, per_scale: int = 16, threshold: Fraction = Fraction(1, 1000)) -> Table:
    with bits(128):
        found = propose_table(PAIRS[name][0].unit_form, Fraction(1), threshold, per_scale)
    assert found is not None
    return found


def made(above: list[float], bend: list[float], below: list[float], dent: list[float], tail: float = 0.0) -> Table:
    """A table of these entries, of 64 points for each Δ; at φ = Δ all of them count, as they stand."""
    found: Table = object.__new__(Table)
    found.steps, found.level, found.tail = 64, 6, tail
    found.above, found.bend, found.below, found.dent = (np.array(entries) for entries in (above, bend, below, dent))
    return found


def density(referee: Density, x: Any, second: bool = False) -> Any:
    """f(x) or f″(x), normalised."""
    piece = referee.piece_at(x)
    total = MPF(0)
    for w, a, b in piece.terms:
        value = w * CONTEXT.exp(a + (b - piece.c * x) * x)
        total += value * ((b - 2 * piece.c * x) ** 2 - 2 * piece.c) if second else value
    return total / referee.mass


def place(found: Table, index: int) -> Any:
    """x of an entry of ``above``: the middle entry is at 0, the density being even."""
    return MPF(index - (len(found.above) - 1) // 2) / found.steps


@pytest.mark.parametrize("name", PAIRS)
def test_entries_are_on_their_side(name: str) -> None:
    found, referee = table(name), PAIRS[name][1]
    rng = random.Random(name)
    size = len(found.above)
    assert size % 2 and len(found.below) == size + found.steps == len(found.dent) + 1 and len(found.bend) == size - 1
    for index in [0, 1, size // 2, size - 2, *(rng.randrange(size - 1) for _ in range(60))]:
        true = density(referee, place(found, index))
        high, low = found.above[index], found.below[found.steps + index]
        assert low <= true * (1 + ROUNDING) and true * (1 - ROUNDING) <= high
        assert high - low <= 1e-12 * true + 1e-15
        for share in (rng.random(), 1e-9, 1 - 1e-9):
            bend = density(referee, place(found, index) + MPF(share) / found.steps, second=True)
            assert -bend <= found.bend[index] and bend <= found.dent[found.steps + index]


@pytest.mark.parametrize("name", [*TABLED, "narrow"])
def test_what_lies_outside_the_table_is_bounded(name: str) -> None:
    found, referee = table(name), PAIRS[name][1]
    end = place(found, len(found.above) - 1)
    outside = 2 * referee.piece_at(end).mass(end, None) / referee.mass
    assert outside <= found.tail < 1e-12
    assert not found.below[: found.steps].any()
    for shift in (MPF(10) ** -9, MPF(1) / 3, MPF(1)):
        assert density(referee, -end - shift, second=True) <= found.dent[0]


@pytest.mark.parametrize("name", PAIRS)
def test_bounds_of_the_second_derivative_are_those_of_each_line(name: str) -> None:
    """At the end of the cell nearest to the line (farthest, for y²), and no more than that."""
    found, referee = table(name), PAIRS[name][1]
    rng = random.Random(name)
    size = len(found.bend)
    for index in [0, size // 2, size - 1, *(rng.randrange(size) for _ in range(30))]:
        x, y = place(found, index), place(found, index + 1)
        piece = referee.piece_at((x + y) / 2)
        bend, dent, room = MPF(0), MPF(0), MPF(1e-12)
        for w, a, b in piece.terms:
            centre = b / (2 * piece.c)
            near, far = sorted((abs(x - centre), abs(y - centre)))
            height = w * CONTEXT.exp(a + b * b / (4 * piece.c) - piece.c * near**2) / referee.mass
            bend += height * max(2 * piece.c - (2 * piece.c * near) ** 2, 0)
            dent += height * (2 * piece.c * far) ** 2
            room += height * 2 * piece.c * 2.0**-29
        assert bend * (1 - ROUNDING) <= found.bend[index] <= bend + room
        assert dent * (1 - ROUNDING) <= found.dent[found.steps + index] <= dent * (1 + 2.0**-28) + 1e-9


def test_the_mass_outside_is_that_of_the_lines_beyond_the_reach() -> None:
    for name in ("gaussian", "far break"):
        found = table(name)
        piece = PAIRS[name][1].piece_at(place(found, len(found.above) - 1))
        true = 2 * piece.mass(place(found, len(found.above) - 1), None) / PAIRS[name][1].mass
        assert true <= found.tail <= true * (1 + MPF(10) ** -6)


def exactly(found: Table, alpha: Alpha) -> Any:
    """Σ ∫ max(g, 0), g the parabola through two entries at φ = Δ with −g″ = B, by which a cell is bounded."""
    total = MPF(0)
    for i in range(len(found.bend)):
        ends = [Fraction(found.above[k]) - Fraction(alpha.lower) * Fraction(found.below[k]) for k in (i, i + 1)]
        mean, middle = number((ends[0] + ends[1]) / 2), number((ends[1] - ends[0]) / 2)
        b = number(Fraction(found.bend[i]) + Fraction(alpha.upper) * Fraction(found.dent[i]))
        bow = b * number(H) ** 2 / 8  # g = mean + middle t + bow (1 − t²), −1 ≤ t ≤ 1
        root = middle**2 + 4 * bow * (mean + bow)
        if root > 0:
            u, v = (max(min((middle + sign * CONTEXT.sqrt(root)) / (2 * bow), MPF(1)), MPF(-1)) for sign in (-1, 1))
            total += number(H) / 2 * ((mean + bow) * (v - u) + middle * (v**2 - u**2) / 2 - bow * (v**3 - u**3) / 3)
    return total


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**9))
def test_the_bound_from_the_entries_is_that_of_parabolas(seed: int) -> None:
    rng = random.Random(seed)
    size, alpha = rng.choice([2, 3, 40]), Alpha(rng.uniform(0.5, 2), rng.uniform(2, 3))
    bend, dent = [rng.uniform(0, 9) for _ in range(size - 1)], [rng.uniform(0, 9) for _ in range(size - 1)]
    below = [rng.uniform(0, 1) for _ in range(size)]
    above = [alpha.lower * low + rng.choice([1, 1e-3, -1e-3, -1]) * rng.uniform(0, 1) for low in below]
    found = made(above, bend, below, dent, tail := rng.choice([0.0, 0.25]))
    bound, true = found.upper_divergence(64, alpha), exactly(found, alpha) + tail
    assert true <= bound
    values = [number(Fraction(a) - Fraction(alpha.lower) * Fraction(b)) for a, b in zip(above, below, strict=True)]
    if min(values) > 0:  # the first and the last entry count as much as the others
        assert bound <= (true + number(H) * (values[0] + values[-1]) / 2) * (1 + 2.0**-27)


def test_a_sum_of_positive_cells_is_exact_but_for_a_billionth() -> None:
    rng = random.Random(1)
    above, bend = [rng.uniform(0.5, 1) for _ in range(1000)], [rng.uniform(0, 9) for _ in range(999)]
    found = made(above, bend, [0.0] * 1000, [0.0] * 999)
    true = exactly(found, Alpha(1.0, 1.0)) + number(H) * number(Fraction(above[0]) + Fraction(above[-1])) / 2
    assert true <= found.upper_divergence(64, Alpha(1.0, 1.0)) <= true * (1 + 2.0**-27)


@pytest.mark.parametrize("bow", [1.0, 3.7, 1e-9])
def test_a_cell_counts_as_soon_as_its_parabola_may_reach_0(bow: float) -> None:
    """Ends of −B h²/8: a hair above that, some of the parabola is above 0; a hair below, nothing is."""
    edge = -bow / 64**2 / 8
    for gap, counts in ((2.0**-31, True), (-(2.0**-29), False)):
        found = made([edge * (1 - gap)] * 2, [bow / 2], [0.0, 0.0], [bow / 4])
        assert (found.upper_divergence(64, Alpha(1.0, 2.0)) > 0) is counts
        assert (exactly(found, Alpha(1.0, 2.0)) > 0) is counts


def test_which_reaches_serve() -> None:
    """From one to DEEPEST times 1/√c, squared."""
    form = declared(("0", "inf", "140", [("0", "0")]), scale=1)[0].unit_form
    slow = declared(("0", "inf", "1", [("0", "0")]), scale=1)[0].unit_form
    with bits(128):
        assert Table(form, 64, 128).steps == 64 and Table(slow, 64, 64).tail < 0.16
        for shape, reach in ((form, 129), (slow, 63)):
            with pytest.raises(ValueError, match=f"64 points for each Δ, reach {reach}"):
                Table(shape, 64, reach)


def test_the_size_of_a_table() -> None:
    """A whole number of points for each Δ, at least per_scale for each σ; out to where a line is e^−32 of the
    threshold."""
    for sigma, steps in (("1", 64), ("1/4", 256), ("0.99", 128), ("3", 32), ("33", 2), ("65", 1)):
        form, scale = Gaussian(sensitivity=1, sigma=sigma).unit_form, Fraction(sigma)
        with bits(128):
            found = propose_table(form, Fraction(1), Fraction(1, 1000), 64)
        reach = math.ceil(math.sqrt((32 + math.log(1000)) * 2) * float(scale) * steps) + 1
        assert found is not None and found.steps == steps and len(found.above) == 2 * reach + 1


@pytest.mark.parametrize("c", ["1e11", "1e17", "1e36"])
def test_a_narrow_line_alone_does_not_ask_for_a_table_of_gigabytes(c: str) -> None:
    """Few points wide, but with a whole Δ of zeros before it."""
    mechanism = declared(("0", "inf", c, [("0", "0"), ("1", "0")]), scale=1e-6)[0]
    with bits(128):
        assert propose_table(mechanism.unit_form, Fraction(1), Fraction(1, 100), 64) is None
    assert decide(statement(mechanism, "1", "0.01")).verdict is Verdict.REFUTED


def test_extreme_scales_and_no_threshold_have_no_table() -> None:
    with bits(128):
        for sigma in ("1e-200", "1e200", "1e-9", "1e9", "70000", "50000", "0.123456789", "1/8192"):
            form = Gaussian(sensitivity=1, sigma=sigma).unit_form
            expected = sigma in ("50000", "0.123456789", "1/8192")
            assert (propose_table(form, Fraction(1), Fraction(1, 100), 64) is not None) is expected, sigma
        form = Gaussian(sensitivity=1, sigma=1).unit_form
        for threshold in ("0", "-1", "1e-220", "1e-216"):  # e^−500 is 7e-218
            assert (propose_table(form, Fraction(1), Fraction(threshold), 64) is None) is (threshold != "1e-216")


@pytest.mark.parametrize(("steps", "level"), [(3, 0), (64, 6), (96, 5), (10, 1)])
def test_boxes_are_halved_as_long_as_their_ends_are_on_the_lattice(steps: int, level: int) -> None:
    form = ZOO["gaussian"][0].unit_form
    with bits(128):
        assert Table(form, steps, 8 * steps).level == level


@FEW
@given(
    st.sampled_from(TABLED), st.integers(0, 10**6), st.sampled_from(["0", "0.3", "1", "2.5"]), st.sampled_from([8, 64])
)
def test_a_bound_is_above_the_truth_and_near_it(name: str, seed: int, epsilon: str, per_scale: int) -> None:
    found = table(name, per_scale)
    shift = random.Random(seed).randint(0, found.steps)
    true = ZOO[name][1].divergence(Fraction(shift, found.steps), epsilon)
    with bits(128):
        alpha = Alpha.of(Fraction(epsilon))
    bound = found.upper_divergence(shift, alpha)
    assert true * (1 - ROUNDING) <= bound
    assert bound <= true + (0.05 if per_scale == 8 else 1e-3)
    assert abs(found.estimate(shift, alpha) - true) <= (0.05 if per_scale == 8 else 1e-3)


@pytest.mark.parametrize("epsilon", ["0", "1/3", "-2", "299"])
def test_alpha_lies_between_its_bounds(epsilon: str) -> None:
    with bits(128):
        found = Alpha.of(Fraction(epsilon))
    true = CONTEXT.exp(number(Fraction(epsilon)))
    assert found.lower * (1 + 3 * 2.0**-53) <= true <= found.upper <= found.lower * (1 + 1.75 * 2.0**-50)


def test_finer_tables_are_tighter() -> None:
    true = ZOO["multi-gaussian"][1].divergence("3/4", "0.7")
    with bits(128):
        alpha = Alpha.of(read_real("0.7", ""))
    errors = []
    for per_scale in (16, 64, 256):
        found = table("multi-gaussian", per_scale)
        errors.append(float(found.upper_divergence(found.steps * 3 // 4, alpha) / true - 1))
    assert 0 < errors[2] < errors[1] / 8 < errors[0] / 64 and errors[2] < 1e-4


@pytest.mark.parametrize("name", sorted(set(ZOO) - set(TABLED)))
def test_other_densities_have_no_table(name: str) -> None:
    form = ZOO[name][0].unit_form
    with bits(128):
        assert propose_table(form, Fraction(1), Fraction(1, 100), 64) is None
    assert not is_on_lattice(form, 1 << 20)


def test_a_table_that_does_not_serve_is_refused() -> None:
    form = ZOO["irregular"][0].unit_form
    with bits(128), pytest.raises(ValueError, match="does not serve"):
        Table(form, 64, 1000)  # the centres are hundredths
    with bits(128), pytest.raises(ValueError, match="does not serve"):
        Table(form, 100, 10)  # a reach of less than one scale length
    with bits(128), pytest.raises(ValueError, match="does not serve"):
        Table(form, 100, 1500)  # so deep that entries underflow
    with bits(16), pytest.raises(ValueError, match=r"^too few bits for a table$"):
        Table(form, 100, 1000)
    wide = multi_gaussian("0.001", 1000, "1")[0].unit_form
    with bits(128):
        assert propose_table(wide, Fraction(1), Fraction(1, 100), 64) is None
        for epsilon in (300, 301):
            assert (propose_table(form, Fraction(epsilon), Fraction(1, 100), 64) is None) is (epsilon > 300)
        assert propose_table(form, Fraction(1), Fraction(1, 10**300), 64) is None


def swept(name: str, epsilon: str, goal: Fraction, limits: Limits | None = None) -> tuple[Sweep, bool]:
    form = ZOO[name][0].unit_form
    with bits(128):
        found = Sweep.of(form, Fraction(epsilon), Roughness.of(form).c, goal, limits or Limits())
        assert found is not None
        return found, found.run(goal)


@pytest.mark.parametrize("factor", ["1.3", "1.01", "1.0001", "0.99999", "0.9"])
@pytest.mark.parametrize("name", ["multi-gaussian", "quasi-gaussian", "irregular", "eighths"])
def test_boxes_are_decided_rightly(name: str, factor: str) -> None:
    shift, true = ZOO[name][1].supremum("0.7")
    goal = Fraction(CONTEXT.nstr(true, 40)) * Fraction(factor)
    found, everything = swept(name, "0.7", goal)
    assert is_cover([*found.settled, *found.waiting])
    assert everything == (not found.waiting)
    assert everything or float(factor) < 1.001
    rng = random.Random(name + factor)
    for i, level in rng.sample(found.settled, min(6, len(found.settled))):
        inside = (i + Fraction(rng.random())) / 2**level
        assert ZOO[name][1].divergence(inside, "0.7") <= number(goal)
    if float(factor) < 1:
        assert any(number(Fraction(i, 2**k)) <= shift <= number(Fraction(i + 1, 2**k)) for i, k in found.waiting)


def test_peaks_are_where_the_referee_sees_them() -> None:
    shift, true = ZOO["multi-gaussian"][1].supremum("0.7")
    goal = Fraction(CONTEXT.nstr(true, 40))
    found, _ = swept("multi-gaussian", "0.7", goal)
    with bits(128):
        rough, fine = found.peaks(polish=False)[-1], found.peaks(polish=True)[-1]
    assert abs(number(rough) - shift) < 0.01 and abs(number(fine) - shift) < 1e-7


def test_limits_hold_for_boxes_and_time() -> None:
    few, everything = swept("multi-gaussian", "0.7", Fraction(1, 10), Limits(boxes=1))
    assert not everything and len(few.waiting) + len(few.settled) <= 2
    with pytest.raises(Expired):
        swept("multi-gaussian", "0.7", Fraction(1, 10), Limits(expired=lambda: True))


def test_a_bound_keeps_its_side_where_masses_nearly_cancel() -> None:
    """At φ = Δ with geometric weights, f(x+Δ) and e^ε f(x) agree on half of the line to 15 digits and more."""
    mechanism, referee = multi_gaussian("0.4", 20, "1")
    with bits(128):
        found = propose_table(mechanism.unit_form, Fraction(1), Fraction(1, 10**6), 256)
        assert found is not None
        bound = found.upper_divergence(found.steps, Alpha.of(Fraction(1)))
    true = referee.divergence(1, "1")
    assert true <= bound <= true + 1e-6


def test_the_means_of_a_quasi_gaussian_lie_beyond_its_break() -> None:
    """The lines of the right half are centred at 0 and Δ, those of the left half at −Δ and 0: each is cut at 0."""
    mechanism, referee = quasi_gaussian("2", "1")
    with bits(128):
        found = propose_table(mechanism.unit_form, Fraction(1), Fraction(1, 100), 64)
        assert found is not None
        alpha = Alpha.of(Fraction(1))
    for shift in (0, found.steps // 3, found.steps):
        true = referee.divergence(Fraction(shift, found.steps), "1")
        assert true <= found.upper_divergence(shift, alpha) <= true + 1e-4


@pytest.mark.parametrize("epsilon", ["0", "1"])
def test_mass_of_an_inner_piece_outside_the_table_counts(epsilon: str) -> None:
    """A piece far from all centres whose line is so high that most of the mass lies there."""
    mechanism, referee = declared(
        ("0", "9", "0.5", [("0", "0")]), ("9", "29", "0.5", [("42", "0")]), ("29", "inf", "0.5", [("0", "0")]), scale=1
    )
    with bits(128):
        found = propose_table(mechanism.unit_form, Fraction(epsilon), Fraction(1, 100), 64)
        assert found is not None
        alpha = Alpha.of(Fraction(epsilon))
    for shift in (found.steps // 4, found.steps):
        assert referee.divergence(Fraction(shift, found.steps), epsilon) <= found.upper_divergence(shift, alpha)


def test_what_was_proved_stands_when_the_time_ends_later() -> None:
    """After the threshold is proved, a tighter bound is looked for: if the limits end that, the verdict stands."""
    least = Fraction(CONTEXT.nstr(ZOO["multi-gaussian"][1].supremum("1")[1], 40)) * (1 - Fraction(1, 10**30))
    threshold, answers = least * Fraction(13, 10), set()
    for last in range(1, 40, 3):
        calls = itertools.count()
        limits = Limits(expired=lambda calls=calls, last=last: next(calls) >= last)  # type: ignore[misc]
        found = decide(statement(ZOO["multi-gaussian"][0], "1", threshold), limits)
        assert found.sup_delta is None or found.sup_delta.upper >= least
        answers.add((found.verdict, found.sup_delta is not None and found.sup_delta.upper == threshold))
    assert (Verdict.VERIFIED, True) in answers and (Verdict.VERIFIED, False) in answers


@pytest.mark.parametrize("entries", [("above",), ("below",), ("bend", "dent")])
def test_every_table_matters(entries: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """With one of them left out, or moved the wrong way, some bound falls below the truth."""
    found = table("multi-gaussian", 8)
    for entry in entries:
        monkeypatch.setattr(found, entry, getattr(found, entry) * (2 if entry == "below" else 0))
    with bits(128):
        alpha = Alpha.of(Fraction(1, 2))
    shifts = range(0, found.steps + 1, 5)
    true = [ZOO["multi-gaussian"][1].divergence(Fraction(at, found.steps), "0.5") for at in shifts]
    assert any(found.upper_divergence(at, alpha) < value for at, value in zip(shifts, true, strict=True))


def test_the_floats_that_matter_are_those_of_the_balls() -> None:
    """One Gaussian, against 60 digits."""
    c = Fraction(1, 700)
    with bits(128):
        values = audit.table._gauss(c, 300)
    for t in (0, 1, 150, 300):
        true = CONTEXT.exp(-number(c) * t * t)
        assert abs(MPF(values[t]) / true - 1) <= 2.0**-52
