"""An independent second opinion on a certificate. It shares no code with the search that made or verified it.

This module and the package audit.second import the standard library, numpy, flint and one another, and nothing else of
this project: not its numbers, families, forms, balls or searches. They read the certificate's text anew.

What it **proves**, for exactly the real numbers that the certificate names, by enclosures of FLINT's arb:

- ``direct``, ``theorem-3.2``: at each shift visited, a lower and an upper bound of D(φ). A lower bound above the
  threshold, or above the recorded upper end of sup D, contradicts the certificate; so does an upper bound below the
  recorded lower end at the recorded worst shift, or one at the threshold at the shift of a recorded witness. At the
  recorded smaller scale that is said to fail, D is enclosed at the shift of its witness.
- For log-concave noise of one exponential (Gaussian, Laplace, truncated Laplace, flipped Huber) f(x + φ)/f(x) falls in
  x, so that D(φ) = max over t of F(t + φ) − e^ε F(t), which rises with φ: the shift Δ decides for all. For noise made
  of steps D is linear in φ between the shifts at which two breaks meet: if all of these are visited, they decide.
- ``theorem-4.2``: both conditions. ``zcdp``: ρ ≥ Δ²/(2σ²), in exact rationals; and no Rényi divergence of order 2 or 3
  is proved to exceed ρ α. Compositions: Σ ρ, exactly; and the recorded ε against the least ε over all Rényi orders.

What it only **samples**, for all other noise: the choice of the shifts. These are the recorded worst shift, that of the
witness, Δ itself, polished local maxima of an own scan of D, shifts from a valley of f to a peak, shifts at which two
breaks meet, and random ones, which the caller draws so that nobody can foresee them. Under theorem-3.2 the points of
the grid next to them. Between the shifts visited nothing is proved by this.

The answer is AGREES only where every question was decided; a limit, or a ball that does not decide, leaves it OPEN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import flint
from flint import arb

from audit.second.answer import Answer, Notes, Opinion, Visit, short
from audit.second.bounds import START_BITS, Divergences
from audit.second.density import exact, read_density
from audit.second.divergence import lower, upper
from audit.second.signs import ball
from audit.second.theorems import (
    condition_4a,
    corollary_epsilon,
    epsilon_at,
    least_epsilon,
    least_rho,
    log_ratio_5a,
    part_rho,
    renyi_divergence,
    total_rho,
)

__all__ = ["Answer", "Opinion", "Visit", "second_opinion"]

RENYI_ORDERS, RENYI_BITS, MOST_RENYI_TERMS = (2, 3), 64, 64


class _Ended(Exception):
    """The caller's watch says that the time is over."""


def second_opinion(
    signed: Mapping[str, Any],
    random: Sequence[Fraction] = (),
    expired: Callable[[], bool] = lambda: False,
    bits: int = 4096,
) -> Opinion:
    """The opinion on the ``signed`` part of a certificate of either kind, as JSON gave it.

    Precondition: its schema and its statement have been read without error. ``random`` are shifts in units of Δ, in
    [0, 1]; ``expired`` is asked often, and True leaves the answer OPEN; ``bits`` is the largest precision.
    """

    def check() -> None:
        if expired():
            raise _Ended

    notes = Notes()
    try:
        with flint.ctx.workprec(START_BITS):
            if "parts" in signed:
                _composition(signed, notes, random, check, bits)
            else:
                _statement(signed, notes, random, check, bits)
    except _Ended:
        notes.undecided.append("the time limit ended it; raise it")
    except (ArithmeticError, ValueError, MemoryError) as error:
        # Numbers can be beyond what the libraries hold. That proves nothing.
        notes.undecided.append(f"it met {type(error).__name__} ({error})")
    return notes.opinion()


def _statement(
    signed: Mapping[str, Any], notes: Notes, random: Sequence[Fraction], check: Callable[[], None], bits: int
) -> None:
    mechanism, claim = signed["statement"]["mechanism"], signed["statement"]["claim"]
    if claim["kind"] == "zcdp":
        _zcdp(mechanism, claim, signed["verdict"], notes, check)
    elif claim["kind"] == "theorem-4.2":
        _theorem_4_2(signed, notes, check, bits)
    else:
        Divergences(mechanism, claim, notes, check, bits).judge(signed["verdict"], signed["evidence"], random)


def _theorem_4_2(signed: Mapping[str, Any], notes: Notes, check: Callable[[], None], bits: int) -> None:
    """Both conditions, and the recorded enclosures of their quantities."""
    mechanism, claim = signed["statement"]["mechanism"], signed["statement"]["claim"]
    holds = _conditions(mechanism, claim, check, bits)
    for name, (held, low, high) in holds.items():
        if held is None:
            notes.undecided.append(f"condition {name} is not decided")
        elif held:
            notes.proved.append(f"condition {name} of Theorem 4.2 holds")
        elif signed["verdict"] != "refuted":
            notes.against.append(f"condition {name} of Theorem 4.2 does not hold")
        else:
            notes.proved.append(f"condition {name} of Theorem 4.2 does not hold")
        for record in signed["evidence"]["conditions"]:
            if record["name"] == name:
                ends = exact(record["value"]["lower"]), exact(record["value"]["upper"])
                if ends[0] > high or ends[1] < low:
                    notes.against.append(f"the recorded value of condition {name} is not the true one")
    if signed["verdict"] == "refuted" and all(held for held, _, _ in holds.values()):
        notes.against.append("both conditions of Theorem 4.2 hold")
    below = signed["evidence"].get("refuted_below")
    if below is not None:
        smaller = [held for held, _, _ in _conditions({**mechanism, "sigma": below}, claim, check, bits).values()]
        if False in smaller:
            notes.proved.append("at the recorded smaller scale they do not both hold")
        elif None in smaller:
            notes.undecided.append("whether the conditions hold at the recorded smaller scale")
        else:
            notes.against.append("at the recorded smaller scale both conditions hold")


def _conditions(
    mechanism: Mapping[str, Any], claim: Mapping[str, Any], check: Callable[[], None], most_bits: int
) -> dict[str, tuple[bool | None, Fraction, Fraction]]:
    """Of each condition: whether it holds (None: not decided), and the ends of its quantity."""
    epsilon, delta = exact(claim["epsilon"]), exact(claim["delta"])
    scale = exact(mechanism["sigma"]) / exact(mechanism["sensitivity"])
    density, bits = read_density(mechanism, epsilon), START_BITS
    found: dict[str, tuple[bool | None, Fraction, Fraction]] = {}
    while bits <= max(most_bits, START_BITS):
        with flint.ctx.workprec(bits):
            value = condition_4a(scale, epsilon, delta, check)
            low, high = log_ratio_5a(density, epsilon, check)
            level = ball(epsilon)
            if value.is_finite() and low.is_finite() and high.is_finite():
                first = True if value >= 0 else False if value < 0 else None
                second = True if high <= level else False if low > level else None
                found = {"(4a)": (first, lower(value), upper(value)), "(5a)": (second, lower(low), upper(high))}
                if first is not None and second is not None:
                    break
        bits *= 2
    if not found:
        raise ArithmeticError("no finite enclosure of the conditions")
    return found


def _zcdp(
    mechanism: Mapping[str, Any], claim: Mapping[str, Any], verdict: str, notes: Notes, check: Callable[[], None]
) -> None:
    """The exact rule, and Rényi divergences at the shift Δ."""
    rho, least = exact(claim["rho"]), least_rho(mechanism)
    if least is None:
        raise ValueError(f"no ρ of {mechanism['family']} noise is known")
    if (verdict == "verified") != (rho >= least):
        relation = "at least" if rho >= least else "below"
        notes.against.append(f"ρ = {short(rho)} is {relation} Δ²/(2σ²)")
        return
    notes.proved.append(f"ρ is {'at least' if rho >= least else 'below'} Δ²/(2σ²), exactly")
    density = read_density(mechanism)
    if verdict != "verified" or len(density.line[0].terms) > MOST_RENYI_TERMS:
        return
    with flint.ctx.workprec(RENYI_BITS):
        for order in RENYI_ORDERS:
            if renyi_divergence(density, order, check) > ball(rho * order):
                notes.against.append(f"the Rényi divergence of order {order} at the shift Δ exceeds ρ α")
    orders = " and ".join(map(str, RENYI_ORDERS))
    notes.sampled = f"of the Rényi divergences only those at the shift Δ, of the orders {orders}, were held against ρ α"


def _composition(
    signed: Mapping[str, Any], notes: Notes, random: Sequence[Fraction], check: Callable[[], None], bits: int
) -> None:
    """Σ ρ, the recorded ε, Corollary 3.8, and that noise which counts as (ε, 0)-DP is so."""
    parts, delta = signed["parts"], exact(signed["delta"])
    for number, part in enumerate(parts):
        _require_inside(part["rho"], part_rho(part), f"parts[{number}].rho", notes)
    rho = total_rho(parts)
    _require_inside(signed["rho_total"], rho, "rho_total", notes)
    recorded, order = exact(signed["epsilon_total"]), exact(signed["order_above_1"])
    with flint.ctx.workprec(2 * START_BITS):
        least, reached = least_epsilon(rho, delta)
        at_order = epsilon_at(rho, -ball(delta).log(), ball(order))
        goal = ball(recorded)
        if recorded < 0 or least.max(arb(0)) > goal:
            notes.against.append(f"no Rényi order gives epsilon_total = {short(recorded)}")
        elif reached <= goal or at_order <= goal:
            notes.proved.append("the Rényi divergence of an order gives epsilon_total")
        else:
            notes.undecided.append("whether a Rényi order gives epsilon_total")
        corollary = corollary_epsilon(rho, delta)
        if ball(exact(signed["epsilon_corollary"])) < corollary:
            notes.against.append("epsilon_corollary is below ρ + 2√(ρ log(1/δ))")
    notes.proved.append("ρ adds up, exactly")
    for part in parts:
        if part.get("epsilon") is not None and not notes.against:
            claim = {"kind": "direct", "epsilon": part["epsilon"], "delta": "0"}
            Divergences(part["mechanism"], claim, notes, check, bits).judge("verified", {}, random)


def _require_inside(record: Mapping[str, Any], value: Fraction, where: str, notes: Notes) -> None:
    if not exact(record["lower"]) <= value <= exact(record["upper"]):
        notes.against.append(f"{where} does not enclose {short(value)}")
