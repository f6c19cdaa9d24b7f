"""Every mechanism that can serve one (ε, δ), side by side: what each costs, proved, and what it gives up.

Ranks what audit.offers proved; decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from audit.offers import OFFERED, Offer, offer
from audit.scales import Loss
from audit.verdict import Enclosure, Expired, Limits, Verdict
from certificates.digits import certain, quotient
from certificates.present import enclosure_document
from mechanisms.numbers import InputError, exact_text

LOSS_NAMES = {"l1": "E|X|", "l2": "E X²"}
EXPIRED = "the time limit ended the search for a scale, before any proof; raise it"
_MARKS = {"*": "all", "+": "those of unbounded support", "~": "those with Gaussian tails"}
_BEST_FIELDS = {"*": "best", "+": "best_unbounded", "~": "best_gaussian_tails"}
_LEGEND = {
    "unbounded support": "the noise is bounded, so a released value can rule a dataset out",
    "Gaussian tails": "errors far above the usual one are likelier",
    "zCDP": "no zero-concentrated guarantee holds; many releases add up worse",
}


@dataclass(frozen=True)
class Request:
    """What is compared: (ε, δ), the query's sensitivity, the K that a multi-Gaussian may have, the families."""

    epsilon: Fraction
    delta: Fraction
    sensitivity: Fraction
    max_K: int
    families: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One family's offer, or why there is none in the end."""

    family: str
    offer: Offer | None
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Comparison:
    """The rows, best first; those without a proof come last and have no rank."""

    request: Request
    loss: Loss
    rows: tuple[Row, ...]
    not_served: tuple[str, ...]
    """The families that no parameters make serve this (ε, δ)."""

    @property
    def ranked(self) -> list[Offer]:
        """The verified offers, best first."""
        return [row.offer for row in self.rows if row.offer is not None and row.verdict is Verdict.VERIFIED]

    @property
    def marks(self) -> dict[str, str]:
        """The best of all, of unbounded support and with Gaussian tails: mark → family."""
        wanted = {
            "*": self.ranked,
            "+": [found for found in self.ranked if found.support == "unbounded"],
            "~": [found for found in self.ranked if found.tails == "gaussian"],
        }
        return {mark: among[0].family for mark, among in wanted.items() if among}

    def ratio(self, found: Offer) -> Enclosure:
        """Its loss over the least one."""
        if found is self.ranked[0]:
            return Enclosure(Fraction(1), Fraction(1))
        return quotient(loss_of(found, self.loss), loss_of(self.ranked[0], self.loss))


def read_families(text: str | None) -> tuple[str, ...]:
    """The families in a list with commas; all that there are where none is given."""
    if text is None:
        return OFFERED
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in OFFERED:
            raise InputError("--families", name or "nothing", f"some of {', '.join(OFFERED)}")
    return tuple(name for name in OFFERED if name in names)


def make_row(family: str, request: Request, loss: Loss, limits: Limits) -> Row | None:
    """One family's offer; None where it cannot serve the request."""
    candidates = range(1, request.max_K + 1)
    try:
        found = offer(
            family,
            request.epsilon,
            request.delta,
            sensitivity=request.sensitivity,
            loss=loss,
            candidates=candidates,
            limits=limits,
        )
    except Expired:
        return Row(family, None, Verdict.INCONCLUSIVE, EXPIRED)
    return None if found is None else Row(family, found, found.decision.verdict, found.decision.reason)


def compare(
    request: Request,
    loss: Loss,
    limits: Callable[[], Limits],
    progress: Callable[[float], None] | None = None,
) -> Comparison:
    """Every family's offer, by certified loss; ``limits`` starts the time of one family.

    Raises InputError where no family can serve the request.
    """
    found: list[Row] = []
    for number, family in enumerate(request.families):
        row = make_row(family, request, loss, limits())
        if row is not None:
            found.append(row)
        if progress is not None:
            progress((number + 1) / len(request.families))
    if not found:
        point = f"({exact_text(request.epsilon)}, {exact_text(request.delta)})"
        raise InputError("--families", ", ".join(request.families), f"a family that can serve {point}")

    def rank(row: Row) -> tuple[bool, Fraction]:
        proved = row.offer is not None and row.verdict is Verdict.VERIFIED
        return (not proved, loss_of(row.offer, loss).upper if row.offer is not None else Fraction(0))

    served = {row.family for row in found}
    missing = tuple(family for family in request.families if family not in served)
    return Comparison(request, loss, tuple(sorted(found, key=rank)), missing)


def loss_of(found: Offer, loss: Loss) -> Enclosure:
    """E|X| or E X²."""
    return found.losses.l1 if loss == "l1" else found.losses.l2


def gives_up(found: Offer) -> list[str]:
    """What a user does without, of: noise that is never ruled out, Gaussian tails, zCDP."""
    lost = ["unbounded support"] if found.support == "bounded" else []
    lost += ["Gaussian tails"] if found.support != "bounded" and found.tails != "gaussian" else []
    return lost if found.zcdp else [*lost, "zCDP"]


def row_document(row: Row) -> dict[str, Any]:
    """One family as JSON: every real is text."""
    document: dict[str, Any] = {"family": row.family, "verdict": row.verdict.value, "reason": row.reason}
    if row.offer is None:
        return document
    mechanism = row.offer.statement.mechanism.document()
    return {
        **document,
        "scale": row.offer.scale,
        "sigma": mechanism.get("sigma"),
        "K": mechanism.get("K"),
        "mechanism": mechanism,
        "claim": row.offer.statement.claim.document(),
        "l1": enclosure_document(row.offer.losses.l1),
        "l2": enclosure_document(row.offer.losses.l2),
        "support": row.offer.support,
        "tails": row.offer.tails,
        "zcdp": row.offer.zcdp,
        "gives_up": gives_up(row.offer),
    }


def comparison_document(comparison: Comparison, plot: str | None) -> dict[str, Any]:
    """What ``compare --json`` prints; ``plot`` is the path of the picture."""
    request = comparison.request
    mechanisms = []
    for row in comparison.rows:
        ranked = row.offer is not None and row.verdict is Verdict.VERIFIED
        ratio = enclosure_document(comparison.ratio(row.offer)) if ranked and row.offer else None
        best = {name: comparison.marks.get(mark) == row.family for mark, name in _BEST_FIELDS.items()}
        mechanisms.append({**row_document(row), "ratio": ratio, **best})
    return {
        "epsilon": exact_text(request.epsilon),
        "delta": exact_text(request.delta),
        "sensitivity": exact_text(request.sensitivity),
        "loss": comparison.loss,
        "mechanisms": mechanisms,
        "not_served": list(comparison.not_served),
        "plot": plot,
    }


def comparison_block(comparison: Comparison, plot: str | None) -> str:
    """What ``compare`` prints: a table, and what its marks and words mean."""
    request = comparison.request
    losses: tuple[Loss, Loss] = ("l1", "l2") if comparison.loss == "l1" else ("l2", "l1")
    point = f"({exact_text(request.epsilon)}, {exact_text(request.delta)})"
    title = f"{point}-differential privacy at sensitivity {exact_text(request.sensitivity)}"
    table = [("", "family", *(LOSS_NAMES[name] for name in losses), "ratio", "scale", "gives up")]
    lost: list[str] = []
    for row in comparison.rows:
        if row.offer is None or row.verdict is not Verdict.VERIFIED:
            table.append(("", row.family, row.verdict.value, "", "", row.offer.scale if row.offer else "", row.reason))
            continue
        gone = gives_up(row.offer)
        lost += gone
        mark = "".join(mark for mark, family in comparison.marks.items() if family == row.family)
        figures = (certain(loss_of(row.offer, name)) for name in losses)
        ratio = certain(comparison.ratio(row.offer), 5)
        table.append((mark, row.family, *figures, ratio, row.offer.scale, ", ".join(gone) or "nothing of these"))
    lines = [f"{title}, by {LOSS_NAMES[comparison.loss]}", *_columns(table)]
    lines.append("least of: " + ", ".join(f"{mark} {_MARKS[mark]}" for mark in comparison.marks))
    lines += [f"gives up {word}: {meaning}" for word, meaning in _LEGEND.items() if word in lost]
    if comparison.not_served:
        lines.append(f"cannot serve it: {', '.join(comparison.not_served)}")
    if plot is not None:
        lines.append(f"picture: {plot}")
    return "\n".join(lines)


def _columns(table: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
