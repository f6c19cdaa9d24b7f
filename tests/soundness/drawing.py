"""From a random mechanism to claims about it: thresholds and scales from 10⁻³ to 10⁻¹⁵ off the tight ones."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from audit.lattice import Doubles
from audit.scales import calibrate_member
from audit.verdict import Decision, Limits
from mechanisms.claims import Claim, Direct, Statement, Theorem32, Theorem42, ZeroConcentrated
from mechanisms.families import MultiGaussian, QuasiGaussian, ScaledFamily
from tests.soundness import extremes, hard, referee_theorems
from tests.soundness.hard import Case, in_unit, log_uniform, text
from tests.soundness.judging import Conditions, GridShifts, Question, RenyiOrders, Shifts
from tests.soundness.referee_pieces import CONTEXT, MPF, digits, number

UNITS = tuple(Fraction(text) for text in ("1", "1", "1", "3", "1e-9", "7/3", "1000"))
GAPS = range(3, 16)
MOST, LEAST = MPF("0.9999"), MPF(10) ** -300


@dataclass(frozen=True)
class Trial:
    """A statement for the auditor, and the referee's side of it."""

    statement: Statement
    question: Question
    decision: Decision | None = None
    """Where a calibration has made it already."""
    seconds: float = 0.0
    """What that took."""


Watch = Callable[[], Limits]
Draw = Callable[[random.Random, Watch], list[Trial]]


def _exact(value: Any) -> Fraction:
    return Fraction(CONTEXT.nstr(value, 45))


def _sides(rng: random.Random, count: int) -> list[Fraction]:
    """1 ± 10⁻ᵏ for that many k."""
    return [1 + sign * Fraction(1, 10**k) for k in rng.sample(GAPS, count) for sign in (1, -1)]


def thresholds(make: Callable[[random.Random], Case], gaps: int = 3) -> Draw:
    """Direct claims at thresholds a little above and below sup D; where D is 0 everywhere, δ = 0 and a little more."""

    def draw(rng: random.Random, _: Watch) -> list[Trial]:
        while True:
            case = make(rng)
            with digits(case.digits):
                _, top = case.density.supremum(case.epsilon)
                if top == 0:
                    deltas = [Fraction(0), Fraction(1, 10**300), Fraction(1, 10**9)]
                elif LEAST < top < MOST:
                    deltas = [_exact(top) * side for side in _sides(rng, gaps)]
                else:
                    continue
            question = Shifts(case.density, case.digits)
            mechanism = in_unit(case.mechanism, rng.choice(UNITS))
            claims = [Direct(epsilon=case.epsilon, delta=delta) for delta in deltas]
            return [Trial(Statement(mechanism, claim), question) for claim in claims]

    return draw


def between_the_tops(make: Callable[[random.Random], Case]) -> Draw:
    """Two maxima that nearly tie: thresholds between them too."""

    def draw(rng: random.Random, watch: Watch) -> list[Trial]:
        while True:
            case = make(rng)
            maxima = case.density.maxima(case.epsilon)  # type: ignore[union-attr]
            shift, top = case.density.supremum(case.epsilon)
            others = [other for at, other in maxima if abs(at - shift) > 0.01]
            if others and top < MOST:
                break
        found = thresholds(lambda _: case, 5)(rng, watch)
        claim = Direct(epsilon=case.epsilon, delta=_exact((top + max(others)) / 2))
        return [*found, Trial(Statement(found[0].statement.mechanism, claim), found[0].question)]

    return draw


def _question(member: ScaledFamily, claim: Claim) -> Question:
    """The referee's side of a claim about a member of a scaled family at sensitivity 1."""
    if isinstance(claim, Theorem42):
        return Conditions(member.sigma)
    count = 64 + max(0, -int(CONTEXT.log10(number(claim.delta)))) if claim.delta < Fraction(1, 10**15) else 60
    with digits(count):
        density = extremes.density_of(member)
    return GridShifts(density, count, member.sigma) if isinstance(claim, Theorem32) else Shifts(density, count)


def _claim_of(rng: random.Random, member: ScaledFamily, epsilon: Fraction) -> Claim:
    delta = Fraction(log_uniform(rng, *rng.choice([(1e-6, 0.3), (1e-12, 1e-6), (1e-60, 1e-12)])))
    if isinstance(member, MultiGaussian) and rng.random() < 0.3:
        delta = extremes.cliff_delta(rng, epsilon, member.K)
    if isinstance(member, QuasiGaussian):
        return rng.choice([Direct, Theorem42])(epsilon=epsilon, delta=delta)
    if rng.random() < 0.25:
        return Theorem32(epsilon=epsilon, delta=delta, eta=rng.choice(["0.01", "0.1", "0.5", "0.9"]))
    return Direct(epsilon=epsilon, delta=delta)


def scales(rng: random.Random, watch: Watch) -> list[Trial]:
    """The claim stays, σ moves: the calibrated σ, the one below it, and 1 ± 10⁻ᵏ times it."""
    member, epsilon = extremes.scaled_member(rng)
    claim, unit = _claim_of(rng, member, epsilon), rng.choice(UNITS)
    placed = in_unit(member, unit)
    assert isinstance(placed, ScaledFamily)
    start = time.process_time()
    found = calibrate_member(placed, claim, Doubles(), watch())
    seconds = time.process_time() - start

    def trial(sigma: Fraction, decision: Decision | None = None) -> Trial:
        cost = seconds / 2 if decision is not None else 0.0
        return Trial(
            Statement(placed.with_sigma(sigma), claim),
            _question(member.with_sigma(sigma / unit), claim),
            decision,
            cost,
        )

    mechanism = found.statement.mechanism
    assert isinstance(mechanism, ScaledFamily)
    trials = [trial(mechanism.sigma, found.decision)]
    if found.refuted_below is not None and found.refutation is not None:
        trials.append(trial(found.refuted_below, found.refutation))
    return trials + [trial(mechanism.sigma * side) for side in _sides(rng, 1)]


def grids(rng: random.Random, _: Watch) -> list[Trial]:
    """theorem-3.2: (1 − η) δ a little above and below the largest D on the grid, which moves with δ."""
    while True:
        case = rng.choice(
            [hard.gaussian, hard.multi_gaussian, hard.cliff, hard.mixture, hard.lattice_mixture, extremes.narrow]
        )(rng)
        member, eta = case.mechanism, Fraction(rng.choice(["0.003", "0.05", "0.5", "0.95"]))
        _, top = case.density.supremum(case.epsilon)
        if LEAST < top < MOST / 20:
            break
    assert isinstance(member, ScaledFamily) and isinstance(case.density, extremes.Density)
    question = GridShifts(case.density, case.digits, member.sigma)
    placed, found = in_unit(member, rng.choice(UNITS)), []
    delta = _exact(top) / (1 - eta)
    for side in _sides(rng, 2):
        for _ in range(3):  # the grid of this δ, its largest D, the δ of that
            size = referee_theorems.grid_size(member.sigma, eta, delta)
            _, highest = referee_theorems.grid_maximum(case.density, case.epsilon, size)
            if highest:
                delta = _exact(highest) / (1 - eta) * side
        found.append(Trial(Statement(placed, Theorem32(epsilon=case.epsilon, delta=delta, eta=eta)), question))
    return found


def quasi_conditions(rng: random.Random, _: Watch) -> list[Trial]:
    """theorem-4.2: δ round the least for (4a), and σ round the least for (5a)."""
    epsilon = Fraction(log_uniform(rng, 0.1, 20, 3))
    sigma = Fraction(log_uniform(rng, 0.05, 3, 4))
    unit, claims = rng.choice(UNITS), []
    least = referee_theorems.least_delta_4a(sigma, epsilon)
    if LEAST < least < MOST:
        claims += [(sigma, _exact(least) * side) for side in _sides(rng, 2)]
    low, high = Fraction(1, 1000), Fraction(1000)
    for _ in range(70):  # log(max f / min f) falls as σ rises
        middle = (low + high) / 2
        low, high = (
            (middle, high) if referee_theorems.log_ratio_5a(middle, epsilon) > number(epsilon) else (low, middle)
        )
    claims += [(_exact(number(high)) * side, Fraction(log_uniform(rng, 1e-9, 0.5))) for side in _sides(rng, 2)]
    return [
        Trial(
            Statement(
                QuasiGaussian(sensitivity=unit, sigma=scale * unit, epsilon=epsilon),
                Theorem42(epsilon=epsilon, delta=delta),
            ),
            Conditions(scale),
        )
        for scale, delta in claims
    ]


def concentrated(rng: random.Random, _: Watch) -> list[Trial]:
    """zcdp: ρ round Δ²/(2σ²)."""
    while True:
        member, _ = extremes.scaled_member(rng)
        if not isinstance(member, QuasiGaussian):
            break
    member = member.with_sigma(Fraction(log_uniform(rng, 0.05, 20, 4)))
    orders = [
        Fraction(text(rng, 1.05, 3, 2)),
        Fraction(rng.randint(3, 30)),
        Fraction(10) ** rng.randint(3, 12),
        Fraction(10) ** 21,
    ]
    question = RenyiOrders(extremes.signed(member), member.sigma, orders)
    placed, tight = in_unit(member, rng.choice(UNITS)), 1 / (2 * member.sigma**2)
    return [Trial(Statement(placed, ZeroConcentrated(rho=tight * side)), question) for side in _sides(rng, 2)]


_THRESHOLDS: Sequence[tuple[int, Callable[[random.Random], Case], int]] = (
    # (cases in a round, mechanism, gaps: two claims each)
    (2, hard.gaussian, 3),
    (4, hard.multi_gaussian, 3),
    (2, hard.cliff, 3),
    (2, hard.foreign_epsilon, 3),
    (3, hard.quasi_gaussian, 3),
    (3, hard.mixture, 3),
    (3, hard.lattice_mixture, 3),
    (2, hard.laplace_sum, 3),
    (2, hard.steps, 3),
    (2, hard.teeth, 3),
    (2, hard.pieces, 1),
    (2, hard.spliced, 2),
    (2, hard.laplace, 2),
    (3, hard.truncated_laplace, 3),
    (3, hard.flipped_huber, 3),
    (2, hard.staircase, 3),
    (4, hard.cut_steps, 3),
    (4, extremes.narrow, 3),
    (5, extremes.tiny, 2),
    (3, extremes.at_cliff, 3),
    (3, extremes.sliver, 3),
)
_OTHERS: Sequence[tuple[int, str, Draw]] = (
    (1, "tie-with-end", between_the_tops(extremes.tie_with_the_end)),
    (1, "tie-inside", between_the_tops(extremes.tie_inside)),
    (8, "scales", scales),
    (4, "theorem-3.2", grids),
    (3, "theorem-4.2", quasi_conditions),
    (2, "zcdp", concentrated),
)


def _round() -> list[tuple[str, Draw]]:
    """One round of draws, the kinds spread over it."""
    kinds = [(count, make.__name__.replace("_", "-"), thresholds(make, gaps)) for count, make, gaps in _THRESHOLDS]
    kinds += list(_OTHERS)
    places = [((i + 0.5) / count, name, draw) for count, name, draw in kinds for i in range(count)]
    return [(name, draw) for _, name, draw in sorted(places, key=lambda place: place[:2])]


DRAWS = _round()
"""What the seeds draw, in turns: a name, and the draw."""
