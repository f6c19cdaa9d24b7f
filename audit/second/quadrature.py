"""The one call of arb's rigorous quadrature that the second opinion makes."""

from __future__ import annotations

from collections.abc import Callable

from flint import acb, arb, fmpq

MOST_EVALUATIONS = 50_000
"""Of one integral; where they do not suffice the enclosure is wider."""


def integral(function: Callable[[acb], acb], start: fmpq, stop: fmpq, share: arb, goal: arb) -> arb:
    """∫ of a meromorphic function over a real interval, enclosed: to ``share`` of itself, or to ``goal``.

    Meromorphic: on a ball with a pole the function gives no finite value, as division by a ball with 0 does, so that it
    need not say where it is analytic. What it raises, an interrupt say, is raised here.
    """
    raised: list[BaseException] = []

    def guarded(z: acb, _: bool) -> acb:
        if not raised:
            try:
                return function(z)
            except (Exception, KeyboardInterrupt) as error:  # it cannot pass through the library, which would go on
                raised.append(error)
        return acb("nan")

    ends = acb(arb(start)), acb(arb(stop))
    found = acb.integral(guarded, *ends, rel_tol=share, abs_tol=goal, eval_limit=MOST_EVALUATIONS)
    if raised:
        raise raised[0]
    return found.real
