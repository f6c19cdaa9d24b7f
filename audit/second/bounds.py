"""The second opinion on a bound of D, over all shifts or over the grid of Theorem 3.2: D at shifts of its own choice.

What this proves, and what it only samples, is said in audit.second_opinion.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import flint
from flint import arb

from audit.second.answer import Notes, Visit, decimal, short
from audit.second.density import ONE, exact, read_density
from audit.second.divergence import Divergence, Quadrature, lower, upper
from audit.second.shifts import Proposal, is_made_of_steps, meetings, polish, propose
from audit.second.signs import ball

START_BITS = 128
TINY = 700.0
SAME = Fraction(1, 10**9)
LOG_CONCAVE = ("gaussian", "laplace", "truncated-laplace", "flipped-huber")
RECORDED, WITNESS, WHOLE = "the recorded worst shift", "the shift of the recorded witness", "the sensitivity itself"
MAXIMUM, MEETING, RANDOM = "a local maximum of an own scan", "where breaks of the density meet", "random"


class Divergences:
    """A bound of D: over all shifts, or over those of the grid of Theorem 3.2."""

    def __init__(
        self, mechanism: Mapping[str, Any], claim: Mapping[str, Any], notes: Notes, check: Callable[[], None], bits: int
    ) -> None:
        self._mechanism, self._claim, self._notes, self._check, self._most_bits = mechanism, claim, notes, check, bits
        self._unit, self._epsilon = exact(mechanism["sensitivity"]), exact(claim["epsilon"])
        self._threshold = exact(claim["delta"]) * (1 - exact(claim.get("eta", "0")))
        self._density = read_density(mechanism, self._epsilon)
        self._grid = self._grid_size() if "eta" in claim else None
        self._tools: dict[int, Quadrature] = {}

    def judge(self, verdict: str, evidence: Mapping[str, Any], random: Sequence[Fraction]) -> None:
        """All that the certificate records of D."""
        notes = self._notes
        sup = evidence.get("sup_delta")
        ends = None if sup is None else (exact(sup["lower"]), exact(sup["upper"]))
        worst = self._recorded(evidence.get("worst_shift"))
        witness = self._recorded((evidence.get("witness") or {}).get("shift"))
        broken, below, still_open = None, Counter[str](), False
        for shift, why in self._shifts(worst, witness, random):
            found = self._enclose(shift, self._threshold)
            visit = Visit(shift * self._unit, why, found.lower, found.upper)
            notes.visits.append(visit)
            if found.exceeds(self._threshold):
                broken = visit
                if verdict != "refuted":
                    notes.against.append(_breach(visit, self._threshold))
                    break
            elif not found.is_at_most(self._threshold):
                still_open = True
                notes.undecided.append(f"{self._most_bits} bits do not decide D({short(visit.shift)})")
            else:
                below[why] += 1
                if shift == witness:
                    text = f"at the shift of the recorded witness D is at most {decimal(visit.upper, True)}"
                    notes.against.append(text)
            if ends is not None and not notes.against:
                self._against_record(found, visit, ends, shift == worst)
        if notes.against:
            return
        self._conclude(verdict, broken, below, "" if still_open else self._complete())
        if evidence.get("refuted_below") is not None:
            self._smaller_scale(evidence)

    def _conclude(self, verdict: str, broken: Visit | None, below: Counter[str], reason: str) -> None:
        """``below`` counts the shifts at which D is proved to be at most the threshold; ``reason`` as _complete."""
        notes, count = self._notes, sum(below.values())
        if verdict == "refuted":
            if broken is None:
                notes.undecided.append("no shift visited exceeds the threshold")
            else:
                notes.proved.append(f"the claim fails: {_breach(broken, self._threshold)}")
            return
        where = "points of the grid" if self._grid else "shifts"
        notes.proved.append(f"D is at most {short(self._threshold)} at {count} {where}, enclosed anew")
        if reason:
            notes.proved.append(f"so at every shift: {reason}")
        else:
            listed = ", ".join(f"{number} × {why}" if number > 1 else why for why, number in below.items())
            notes.sampled = f"between the {where} visited nothing is proved by this; they are: {listed}"

    def _complete(self) -> str:
        """Why the shifts visited decide for all; empty where they do not."""
        if self._mechanism["family"] in LOG_CONCAVE or len(self._density.line[0].terms) == len(self._density.line) == 1:
            return "D rises with the shift, the noise being log-concave"
        if is_made_of_steps(self._density) and meetings(self._density)[1] and self._grid is None:
            return "between the shifts at which breaks meet, all of them visited, D is linear"
        return ""

    def _against_record(self, found: Divergence, visit: Visit, ends: tuple[Fraction, Fraction], is_worst: bool) -> None:
        if found.exceeds(ends[1]):
            text = f"D({short(visit.shift)}) ≥ {decimal(visit.lower, False)}, above the recorded upper end of sup D"
            self._notes.against.append(text)
        elif is_worst and found.upper < ends[0]:
            found_text = f"D ≤ {decimal(visit.upper, True)} at the recorded worst shift"
            self._notes.against.append(f"{found_text}, below the recorded lower end of sup D")

    def _smaller_scale(self, evidence: Mapping[str, Any]) -> None:
        """The recorded scale for which the claim fails, at the shift of its witness or at the worst one found."""
        below = {**self._mechanism, "sigma": evidence["refuted_below"]}
        other = Divergences(below, self._claim, Notes(), self._check, self._most_bits)
        shift = other._recorded((evidence.get("refutation") or {}).get("shift"))
        if shift is None:
            self._notes.undecided.append("no witness is recorded for the smaller scale")
            return
        found = other._enclose(shift, self._threshold)
        if found.exceeds(self._threshold):
            self._notes.proved.append("at the recorded smaller scale the claim fails")
        elif found.is_at_most(self._threshold):
            text = f"at the recorded smaller scale D ≤ {decimal(found.upper, True)} at the shift of its witness"
            self._notes.against.append(text)
        else:
            self._notes.undecided.append("whether the claim fails at the recorded smaller scale")

    def _recorded(self, text: Any) -> Fraction | None:
        """A recorded shift in units of Δ; None where it is none of the claim's."""
        if text is None:
            return None
        shift = abs(exact(text)) / self._unit
        if shift > 1 or (self._grid is not None and (shift * self._grid).denominator != 1):
            self._notes.against.append(f"the recorded shift {short(exact(text))} is none of the claim's")
            return None
        return shift

    def _shifts(
        self, worst: Fraction | None, witness: Fraction | None, random: Sequence[Fraction]
    ) -> Iterator[tuple[Fraction, str]]:
        """Each shift once, with why; found as they are asked for."""
        seen, tops = set[Fraction](), list[Fraction]()
        for shift, why in self._candidates(worst, witness, random):
            if why == MAXIMUM:
                if any(abs(shift - other) < SAME for other in tops):
                    continue  # two climbs to one maximum
                tops.append(shift)
            for point in self._on_grid(shift):
                if point not in seen:
                    seen.add(point)
                    yield point, why

    def _candidates(
        self, worst: Fraction | None, witness: Fraction | None, random: Sequence[Fraction]
    ) -> Iterator[tuple[Fraction, str]]:
        """The own ones first: what is recorded may have been chosen to take long."""
        yield ONE, WHOLE
        yield from ((shift, MEETING) for shift in meetings(self._density)[0])
        for proposal in propose(self._density, self._epsilon, self._log_threshold()):
            yield self._polish(proposal), MAXIMUM
        for recorded, why in ((witness, WITNESS), (worst, RECORDED)):
            if recorded is not None:
                yield recorded, why
        yield from ((shift, RANDOM) for shift in random)

    def _log_threshold(self) -> float:
        """For the scan; where the threshold is 0, that of something very small."""
        size = self._threshold
        return math.log(size.numerator) - math.log(size.denominator) if size else -TINY

    def _polish(self, proposal: Proposal) -> Fraction:
        with flint.ctx.workprec(proposal.bits):
            tool = Quadrature(self._density, self._check)
            return polish(lambda at: tool.slope(at, self._epsilon, self._threshold), proposal)

    def _on_grid(self, shift: Fraction) -> list[Fraction]:
        """The shift, or the points of the grid next to it."""
        if self._grid is None:
            return [shift]
        below = math.floor(shift * self._grid)
        return [Fraction(i, self._grid) for i in sorted({below, math.ceil(shift * self._grid)})]

    def _grid_size(self) -> int:
        """⌈Δ/(√(2π) η σ δ)⌉, at least 1."""
        claim, sigma = self._claim, exact(self._mechanism["sigma"])
        ratio = self._unit / (exact(claim["eta"]) * sigma * exact(claim["delta"]))
        bits = START_BITS
        while bits <= self._most_bits:
            with flint.ctx.workprec(bits):
                value = (ball(ratio) / (2 * arb.pi()).sqrt()).ceil()
                low, high = lower(value), upper(value)
            if low == high:
                return max(int(low), 1)
            bits *= 2
        raise ArithmeticError("the size of the grid is not decided")

    def _enclose(self, shift: Fraction, threshold: Fraction) -> Divergence:
        """D at a shift, with bits enough to hold it against the threshold, where there are."""
        bits = START_BITS
        while True:
            with flint.ctx.workprec(bits):
                if bits not in self._tools:
                    self._tools[bits] = Quadrature(self._density, self._check)
                found = self._tools[bits].divergence(shift, self._epsilon, threshold)
                if found.exceeds(threshold) or found.is_at_most(threshold) or 2 * bits > self._most_bits:
                    return found
            bits *= 2


def _breach(visit: Visit, threshold: Fraction) -> str:
    at_least = decimal(visit.lower, False, above=threshold)
    return f"D({short(visit.shift)}) ≥ {at_least}, and {short(threshold)} is allowed"
