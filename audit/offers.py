"""What each family of noise offers at (ε, δ): its parameters chosen for a loss, the claim proved, the losses enclosed.

Floats choose the parameters; those that the proof is tight in are then rounded up until the claim is verified, so that
what is offered was decided as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from audit.decide import decide
from audit.exact import decimal_upper
from audit.lattice import Doubles
from audit.losses import Losses, enclose_losses
from audit.scales import Loss, calibrate
from audit.verdict import Decision, Limits, Verdict
from mechanisms.calibration_steps import cut, endless_first_step, first_step
from mechanisms.calibration_tails import classic_sigma, flipped_huber, flipped_huber_sigma, laplace_cut
from mechanisms.claims import Direct, Statement
from mechanisms.families import (
    FlippedHuber,
    Gaussian,
    Laplace,
    Mechanism,
    MultiGaussian,
    QuasiGaussian,
    Staircase,
    TruncatedLaplace,
    TruncatedStaircase,
    Tulap,
)
from mechanisms.numbers import InputError, exact_text, nearest_float

CLASSIC = "classic-gaussian"
"""A rule for the scale of Gaussian noise, not a family of its own."""
BOUNDED, UNBOUNDED = "bounded", "unbounded"
LARGEST_FLOAT_EPSILON = 600
"""Beyond it e^ε is near the end of the floats, which choose the parameters."""
LEAST_FLOAT_DELTA = Fraction(1, 10**300)
"""Below this, floats do not tell where to cut."""
NUDGES = (Fraction(0), Fraction(1, 2**48), Fraction(1, 2**40), Fraction(1, 2**30), Fraction(1, 2**20))
"""By how much, relatively, a parameter is raised until the claim is verified."""
DIGITS = 9
"""Of parameters that any value of is proved with."""


@dataclass(frozen=True)
class Offer:
    """A mechanism of one family for (ε, δ), with its proof."""

    family: str
    """The name on the command line."""
    statement: Statement
    """The mechanism with all its parameters, and the direct claim about it."""
    decision: Decision
    """Of that statement: VERIFIED; INCONCLUSIVE where the limits ended the search; REFUTED of classic-gaussian only."""
    losses: Losses
    scale: str
    """The parameters that were chosen, for people."""
    support: str
    """``bounded``: a released value can rule a dataset out; or ``unbounded``."""
    tails: str
    """``none``, ``exponential`` or ``gaussian``."""
    zcdp: bool | None
    """Whether the noise satisfies ρ-zCDP for some finite ρ."""


@dataclass(frozen=True)
class _Request:
    epsilon: Fraction
    delta: Fraction
    sensitivity: Fraction
    loss: Loss
    candidates: Sequence[int]
    limits: Limits

    @property
    def order(self) -> int:
        return 1 if self.loss == "l1" else 2

    @property
    def claim(self) -> Direct:
        return Direct(epsilon=self.epsilon, delta=self.delta)

    @property
    def may_cut(self) -> bool:
        """Whether cut noise can serve, and floats can tell where to cut."""
        return 0 < self.epsilon <= LARGEST_FLOAT_EPSILON and LEAST_FLOAT_DELTA <= self.delta < Fraction(1, 2)


def offer(
    family: str,
    epsilon: Fraction,
    delta: Fraction,
    *,
    sensitivity: Fraction = Fraction(1),
    loss: Loss = "l2",
    candidates: Sequence[int] = range(1, 21),
    limits: Limits | None = None,
) -> Offer | None:
    """What the family offers at (ε, δ); None where it cannot serve these. ``candidates``: the K of multi-gaussian.

    Cut noise is offered for ε in (0, 600] and δ in (0, 1/2), where its support is at most MAX_LINES steps wide; noise
    with pure differential privacy is calibrated for (ε, 0), whatever δ is. Raises InputError for a family not in
    OFFERED and for parameters out of range; Expired where the time is over before floats have proposed.
    """
    make = _MAKERS.get(family)
    if make is None:
        raise InputError("family", family, f"one of {', '.join(OFFERED)}")
    Direct(epsilon=epsilon, delta=delta)
    return make(_Request(epsilon, delta, sensitivity, loss, candidates, limits or Limits()))


def _rounded(value: float) -> Fraction:
    """The decimal of DIGITS digits nearest to a float."""
    return Fraction(f"{value:.{DIGITS - 1}e}")


def _double_above(value: Fraction) -> Fraction:
    lattice = Doubles()
    return lattice.value(lattice.rank_at_least(value))


def _first_verified(members: Iterable[Mechanism], request: _Request) -> tuple[Statement, Decision] | None:
    """The first member for which the claim is verified; the last one tried where none is. None of none."""
    last: tuple[Statement, Decision] | None = None
    for member in members:
        statement = Statement(member, request.claim)
        last = statement, decide(statement, request.limits)
        if last[1].verdict is Verdict.VERIFIED:
            return last
    return last


def _made(
    family: str, found: tuple[Statement, Decision] | None, scale: str, support: str, tails: str, zcdp: bool | None
) -> Offer | None:
    """The offer, unless the claim is refuted."""
    if found is None or found[1].verdict is Verdict.REFUTED:
        return None
    statement, decision = found
    return Offer(family, statement, decision, enclose_losses(statement.mechanism), scale, support, tails, zcdp)


def _text(value: Fraction) -> str:
    """For people: exact where that is short, else 12 digits, rounded up: longer noise keeps the promise."""
    text = exact_text(value)
    return text if len(text) <= 12 else decimal_upper(value, 12)


def _laplace(request: _Request) -> Offer | None:
    if request.epsilon == 0:
        return None
    member = Laplace(sensitivity=request.sensitivity, scale=request.sensitivity / request.epsilon)
    scale = f"b = {_text(member.scale)} (delta = 0)"
    return _made(Laplace.family, _first_verified([member], request), scale, UNBOUNDED, "exponential", True)


def _staircase(request: _Request) -> Offer | None:
    if not 0 < request.epsilon <= LARGEST_FLOAT_EPSILON:
        return None
    gamma = _rounded(endless_first_step(request.epsilon, request.order))
    member = Staircase(sensitivity=request.sensitivity, epsilon=request.epsilon, gamma=gamma)
    scale = f"gamma = {_text(gamma)} (delta = 0)"
    return _made(Staircase.family, _first_verified([member], request), scale, UNBOUNDED, "exponential", True)


def _cuts(proposal: Fraction, request: _Request) -> list[Fraction]:
    """Doubles just above a proposed end of the support, in the unit of the query."""
    return [_double_above(proposal * request.sensitivity * (1 + nudge)) for nudge in NUDGES]


def _truncated_laplace(request: _Request) -> Offer | None:
    if not request.may_cut:
        return None
    unit, scale = request.sensitivity, request.sensitivity / request.epsilon
    cuts = _cuts(laplace_cut(request.epsilon, request.delta), request)
    found = _first_verified((TruncatedLaplace(sensitivity=unit, scale=scale, A=A) for A in cuts), request)
    if found is None or not isinstance(made := found[0].mechanism, TruncatedLaplace):
        return None
    words = f"b = {_text(scale)}, A = {_text(made.A)}"
    return _made(TruncatedLaplace.family, found, words, BOUNDED, "none", False)


def _cut_staircase(
    family: str, gamma: Fraction, request: _Request, member: Callable[[Fraction], Mechanism], scale: str
) -> Offer | None:
    proposal = cut(gamma, request.epsilon, request.delta)
    if proposal is None:
        return None
    cuts = _cuts(proposal, request)
    found = _first_verified((member(T) for T in cuts), request)
    if found is None or not isinstance(made := found[0].mechanism, (Tulap, TruncatedStaircase)):
        return None
    return _made(family, found, f"{scale}T = {_text(made.T)}", BOUNDED, "none", False)


def _tulap(request: _Request) -> Offer | None:
    if not request.may_cut:
        return None

    def member(T: Fraction) -> Mechanism:
        return Tulap(sensitivity=request.sensitivity, epsilon=request.epsilon, T=T)

    return _cut_staircase(Tulap.family, Tulap.gamma, request, member, "")


def _truncated_staircase(request: _Request) -> Offer | None:
    if not request.may_cut or cut(Fraction(1), request.epsilon, request.delta) is None:
        return None
    gamma = min(_rounded(first_step(request.epsilon, request.delta, request.order)), Fraction(1))

    def member(T: Fraction) -> Mechanism:
        return TruncatedStaircase(sensitivity=request.sensitivity, epsilon=request.epsilon, gamma=gamma, T=T)

    return _cut_staircase(TruncatedStaircase.family, gamma, request, member, f"gamma = {_text(gamma)}, ")


def _flipped_huber(request: _Request) -> Offer | None:
    """Some finite ρ exists: f is a Gaussian density times a function that is bounded, and bounded away from 0, so that
    the Rényi divergence of order α is at most α Δ²/2σ² + C α/(α − 1): linear in α from 2 on, and below 2 at most what
    it is at 2, as it does not fall where α rises."""
    if not 0 < request.epsilon <= LARGEST_FLOAT_EPSILON or request.delta == 0:
        return None
    epsilon, delta = nearest_float(request.epsilon), nearest_float(request.delta)
    if delta == 0 or delta == 1:
        return None
    ratio, sigma = flipped_huber(epsilon, delta, request.order)
    ratio = float(_rounded(ratio))
    sigma = flipped_huber_sigma(ratio, epsilon, delta)
    alpha = Fraction(ratio) * Fraction(sigma)

    def member(nudge: Fraction) -> Mechanism:
        unit = request.sensitivity * (1 + nudge)  # both lengths grow: a larger scale of the same shape
        return FlippedHuber(
            sensitivity=request.sensitivity,
            alpha=_double_above(alpha * unit),
            sigma=_double_above(Fraction(sigma) * unit),
        )

    found = _first_verified((member(nudge) for nudge in NUDGES[1:]), request)
    if found is None or not isinstance(made := found[0].mechanism, FlippedHuber):
        return None
    words = f"alpha = {_text(made.alpha)}, sigma = {_text(made.sigma)}"
    return _made(FlippedHuber.family, found, words, UNBOUNDED, "gaussian", True)


def _scaled(family: str, zcdp: bool | None) -> Callable[[_Request], Offer | None]:
    """The families that audit.scales calibrates.

    Quasi-Gaussian noise is e^(−(|x|−Δ)²/2σ²) times a function that is bounded and bounded away from 0: some finite ρ
    exists as in _flipped_huber.
    """

    def make(request: _Request) -> Offer | None:
        if request.delta == 0:
            return None
        found = calibrate(
            family,
            request.claim,
            sensitivity=request.sensitivity,
            candidates=list(request.candidates) if family == MultiGaussian.family else None,
            loss=request.loss,
            limits=request.limits,
        )
        member = found.statement.mechanism
        assert isinstance(member, (Gaussian, MultiGaussian, QuasiGaussian))
        words = f"sigma = {_text(member.sigma)}"
        if isinstance(member, MultiGaussian):
            words += f", K = {member.K}"
        return Offer(family, found.statement, found.decision, found.losses, words, UNBOUNDED, "gaussian", zcdp)

    return make


def _classic_gaussian(request: _Request) -> Offer | None:
    """The formula is a theorem for ε < 1; beyond, the claim is decided like any other, and can be refuted."""
    if request.epsilon == 0 or request.delta == 0:
        return None
    sigma = _double_above(classic_sigma(request.epsilon, request.delta) * request.sensitivity)
    statement = Statement(Gaussian(sensitivity=request.sensitivity, sigma=sigma), request.claim)
    decision = decide(statement, request.limits)
    losses = enclose_losses(statement.mechanism)
    return Offer(CLASSIC, statement, decision, losses, f"sigma = {_text(sigma)}", UNBOUNDED, "gaussian", True)


_MAKERS: dict[str, Callable[[_Request], Offer | None]] = {
    TruncatedStaircase.family: _truncated_staircase,
    Tulap.family: _tulap,
    TruncatedLaplace.family: _truncated_laplace,
    MultiGaussian.family: _scaled(MultiGaussian.family, True),
    QuasiGaussian.family: _scaled(QuasiGaussian.family, True),
    FlippedHuber.family: _flipped_huber,
    Gaussian.family: _scaled(Gaussian.family, True),
    CLASSIC: _classic_gaussian,
    Staircase.family: _staircase,
    Laplace.family: _laplace,
}
OFFERED: tuple[str, ...] = tuple(_MAKERS)
"""Every family that offer() knows."""
