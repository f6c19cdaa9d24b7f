"""The second opinion on what is not a bound of D: Theorem 4.2, zCDP, and compositions, each from its own formula.

Φ and the Rényi integrals come from arb's quadrature; log f over [0, Δ] is bounded by chords and tangents of its two
convex parts; ρ is summed in exact rationals, and the least ε over all Rényi orders is bounded from both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import flint
from flint import acb, arb, fmpq

from audit.second.density import ONE, ZERO, Density, exact
from audit.second.quadrature import integral
from audit.second.signs import At, Check, Convex, ball, rational

MIXTURES = ("gaussian", "multi-gaussian")
MOST_CELLS = 4000
CLOSE = 32
"""Bits to which log(max f/min f) is enclosed, also where less decides."""


def normal_cdf(z: Fraction, check: Check) -> arb:
    """Φ(z) by quadrature of the normal density, with relative accuracy in the lower tail."""
    if z > 0:
        return 1 - normal_cdf(-z, check)
    t, bits = -z, flint.ctx.prec
    # The density falls by e^(−bits) from t to `end`; beyond that is at most its value there over `end`.
    length = Fraction(math.isqrt(2 * bits) + 1)
    end = t + (min(length, bits / t) if t else length)

    check()
    smallest = arb(2) ** -(bits + 10)
    found = integral(lambda x: (-x * x / 2).exp(), rational(t), rational(end), smallest, _bell(t) * smallest)
    return (found + _bell(end) / ball(end) * arb(0.5, 0.5)) / (2 * arb.pi()).sqrt()


def _bell(x: Fraction) -> arb:
    return (-ball(x * x) / 2).exp()


def condition_4a(scale: Fraction, epsilon: Fraction, delta: Fraction, check: Check) -> arb:
    """(h₁ + h₂)/(e^ε + 2Φ(1/λ)), λ = σ/Δ: h₁ = e^(2ε) Φ(−ελ − 1/λ) − Φ(−ελ + 1/λ), h₂ = (e^ε + 2Φ(1/λ)) δ."""
    drift, inverse = epsilon * scale, 1 / scale
    weight = ball(epsilon).exp() + 2 * normal_cdf(inverse, check)
    h1 = ball(2 * epsilon).exp() * normal_cdf(-drift - inverse, check) - normal_cdf(inverse - drift, check)
    return h1 / weight + ball(delta)


def log_ratio_5a(density: Density, epsilon: Fraction, check: Check) -> tuple[arb, arb]:
    """(a lower, an upper bound) of log(max f/min f) over [0, Δ], close enough to hold it against ε where possible.

    On [0, 1] log f = L − c x², L convex. Cells that cannot hold the maximum or the minimum are dropped.
    """
    part, goal = density.right[0], ball(epsilon)
    curve, c = Convex(part.terms, ZERO), ball(part.terms[0].c)
    ends = [curve.at(fmpq(x)) for x in (0, 1)]
    top = bottom = _log(ends[0], c)
    top, bottom = top.max(_log(ends[1], c)), bottom.min(_log(ends[1], c))
    cells, high, low = [(ends[0], ends[1])], top, bottom
    for _ in range(flint.ctx.prec):
        bounds = [_bounds(a, b, c) for a, b in cells]
        high, low = top, bottom
        for least, most in bounds:
            high, low = high.max(most), low.min(least)
        decided, gap = high - low <= goal or top - bottom > goal, (high - low) - (top - bottom)
        if (decided and gap <= arb(2) ** -CLOSE) or not cells or len(cells) > MOST_CELLS:
            break
        halves = []
        for (a, b), (least, most) in zip(cells, bounds, strict=True):
            if most <= top and least >= bottom:
                continue
            check()
            middle = curve.at((a.x + b.x) / 2)
            top, bottom = top.max(_log(middle, c)), bottom.min(_log(middle, c))
            halves += [(a, middle), (middle, b)]
        cells = halves
    return top - bottom, high - low


def _log(at: At, c: arb) -> arb:
    return at.value - c * arb(at.x) ** 2


def _bounds(a: At, b: At, c: arb) -> tuple[arb, arb]:
    """Bounds of L − c x² on a cell: a tangent of L less the chord of c x²; the chord of L less a tangent of c x²."""
    width, x, y = arb(b.x - a.x), arb(a.x), arb(b.x)
    left, right = _log(a, c), _log(b, c)
    low = left.min(a.value + a.slope * width - c * y * y).max(right.min(b.value - b.slope * width - c * x * x))
    high = left.max(b.value - c * x * (x + 2 * width)).min(right.max(a.value - c * y * (y - 2 * width)))
    return low, high


def least_rho(mechanism: Mapping[str, Any]) -> Fraction | None:
    """Δ²/(2σ²) for a mixture of Gaussians of one σ, None for other noise."""
    mixture = mechanism["family"] in MIXTURES or (mechanism["family"] == "declared" and "components" in mechanism)
    return (exact(mechanism["sensitivity"]) / exact(mechanism["sigma"])) ** 2 / 2 if mixture else None


def renyi_divergence(density: Density, order: int, check: Check) -> arb:
    """A lower bound of D_α(f(· + Δ) ‖ f) = log(∫ f(x + 1)^α f(x)^(1−α) dx)/(α − 1) for a mixture of Gaussians.

    The integral is cut off: the rest is above 0.
    """
    terms = density.line[0].terms
    factors, c = [(ball(t.weight) * ball(t.height).exp(), ball(t.m)) for t in terms], ball(terms[0].c)

    def mixture(z: acb) -> acb:
        return sum((factor * (-c * (z - m) * (z - m)).exp() for factor, m in factors), acb(0))

    def integrand(z: acb) -> acb:  # on a ball with a zero of f it has no finite value
        base = mixture(z)
        ratio, power = mixture(z + 1) / base, base
        for _turn in range(order):
            power = power * ratio
        return power

    unit = Fraction(density.scale)
    reach = max(abs(t.m) for t in terms) + order + 8 * unit
    count = max(1, int(reach / (2 * unit)))
    total = arb(0)
    for i in range(count):
        a, b = (-reach + 2 * reach * Fraction(j, count) for j in (i, i + 1))
        check()
        piece = integral(integrand, rational(a), rational(b), arb(2) ** -16, arb(0))
        total += piece.lower().max(arb(0)) if piece.is_finite() else arb(0)
    mass = sum((factor for factor, _ in factors), arb(0)) * (arb.pi() / c).sqrt()
    return (total / mass).log() / (order - 1)


def epsilon_at(rho: Fraction, log_inverse: arb, t: arb) -> arb:
    """α ρ + log(1 − 1/α) + (log(1/δ) − log α)/(α − 1), α = 1 + t (Canonne, Kamath and Steinke 2020)."""
    return ball(rho) * (1 + t) + (t / (1 + t)).log() + (log_inverse - (1 + t).log()) / t


def least_epsilon(rho: Fraction, delta: Fraction) -> tuple[arb, arb]:
    """(lower, upper) bound of the least ε over all orders α > 1; infinite where the precision does not do.

    The slope in t = α − 1 is ρ − (log(1/δ) − log(1 + t))/t², which changes its sign once, from below 0. In a bracket
    [u, v] of that zero ε is at least ρ(1 + u) + log(u/(1 + u)) + (log(1/δ) − log(1 + v))/v: the terms that rise at u,
    the one that falls at v. It falls where log(1/δ) > log(1 + t) − t/(1 + t), so everywhere if at v.
    """
    level, rate = -ball(delta).log(), ball(rho)

    def slope(t: Fraction) -> arb:
        x = ball(t)
        return rate * x * x + (1 + x).log() - level

    u = v = ONE
    for _ in range(flint.ctx.prec * 8):
        if slope(u) < 0 < slope(v):
            break
        u, v = (u if slope(u) < 0 else u / 2), (v if slope(v) > 0 else v * 2)
    for _ in range(flint.ctx.prec):
        middle = (u + v) / 2
        value = slope(middle)
        if value > 0:
            v = middle
        elif value < 0:
            u = middle
        else:
            break
    low, high = ball(u), ball(v)
    upper = epsilon_at(rho, level, low).min(epsilon_at(rho, level, high))
    if not (slope(u) < 0 < slope(v) and level > (1 + high).log() - high / (1 + high)):
        return arb(0), upper
    return rate * (1 + low) + (low / (1 + low)).log() + (level - (1 + high).log()) / high, upper


def corollary_epsilon(rho: Fraction, delta: Fraction) -> arb:
    """ρ + 2√(ρ log(1/δ)) (Corollary 3.8)."""
    return ball(rho) + 2 * (ball(rho) * -ball(delta).log()).sqrt()


def total_rho(parts: Iterable[Mapping[str, Any]]) -> Fraction:
    """Σ count · ρ in exact rationals."""
    return sum((int(part["count"]) * part_rho(part) for part in parts), ZERO)


def part_rho(part: Mapping[str, Any]) -> Fraction:
    """ρ of one release: Δ²/(2σ²) of a mixture of Gaussians, ε²/2 of other noise, which is to be (ε, 0)-DP."""
    rho = least_rho(part["mechanism"])
    return exact(part["epsilon"]) ** 2 / 2 if rho is None else rho
