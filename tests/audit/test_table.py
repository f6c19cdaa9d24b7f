"""The table of f in floats: every entry on its side of the truth, every bound above it, and boxes decided rightly."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import audit.table
from audit.decide import decide
from audit.shape import Roughness
from audit.shifts import is_cover
from audit.sweep import Sweep
from audit.table import Alpha, Table, is_on_lattice, propose_table
from audit.verdict import Expired, Limits, Verdict
from mechanisms.numbers import read_real
from tests.audit.support import FEW, ZOO, bits, declared, multi_gaussian, quasi_gaussian, statement
from tests.soundness.referee import CONTEXT, MPF, Density, number

TABLED = ["gaussian", "multi-gaussian", "quasi-gaussian", "irregular", "repeated", "eighths"]
ROUNDING = MPF(10) ** -45


def table(name: str, per_scale: int = 16, threshold: Fraction = Fraction(1, 1000)) -> Table:
    with bits(128):
        found = propose_table(ZOO[name][0].unit_form, Fraction(1), threshold, per_scale)
    assert found is not None
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


@pytest.mark.parametrize("name", TABLED)
def test_entries_are_on_their_side(name: str) -> None:
    found, referee = table(name), ZOO[name][1]
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


@pytest.mark.parametrize("name", TABLED)
def test_what_lies_outside_the_table_is_bounded(name: str) -> None:
    found, referee = table(name), ZOO[name][1]
    end = place(found, len(found.above) - 1)
    outside = 2 * referee.piece_at(end).mass(end, None) / referee.mass
    assert outside <= found.tail < 1e-12
    assert not found.below[: found.steps].any()
    for shift in (MPF(1) / 3, MPF(1)):
        assert density(referee, -end - shift, second=True) <= found.dent[0]


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
    assert found.lower * (1 + 3 * 2.0**-53) <= true <= found.upper <= found.lower * (1 + 2.0**-48)


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
    with bits(16), pytest.raises(ValueError, match="bits"):
        Table(form, 100, 1000)
    wide = multi_gaussian("0.001", 1000, "1")[0].unit_form
    with bits(128):
        assert propose_table(wide, Fraction(1), Fraction(1, 100), 64) is None
        assert propose_table(form, Fraction(400), Fraction(1, 100), 64) is None
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
