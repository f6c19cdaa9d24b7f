"""What can be claimed of a mechanism, and how a claim is read from a file and written to one. (trusted)

A statement is a mechanism and a claim about it. ``read_statement`` takes what a TOML or JSON parser gives; every number
is a string or a whole number, and unknown or missing fields are errors. ``Statement.document`` is its inverse.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

from mechanisms.families import FAMILIES, Declared, DeclaredMixture, Gaussian, Mechanism, MultiGaussian, QuasiGaussian
from mechanisms.numbers import InputError, exact_text, read_delta, read_epsilon, read_real

T = TypeVar("T")
C = TypeVar("C", bound="AnyClaim")


def _read_eta(value: object, where: str) -> Fraction:
    eta = read_real(value, where)
    if not 0 < eta < 1:
        raise InputError(where, value, "a number between 0 and 1")
    return eta


def _read_rho(value: object, where: str) -> Fraction:
    rho = read_real(value, where)
    if rho < 0:
        raise InputError(where, value, "a number of at least 0")
    return rho


_READERS = {"epsilon": read_epsilon, "delta": read_delta, "eta": _read_eta, "rho": _read_rho}


@dataclass(frozen=True, kw_only=True)
class Assertion:
    """What every claim has: a kind, the mechanisms that it can be about, and exact parameters."""

    kind: ClassVar[str]
    applies_to: ClassVar[tuple[type[Mechanism], ...]]

    def __post_init__(self) -> None:
        for parameter in dataclasses.fields(self):
            value = _READERS[parameter.name](getattr(self, parameter.name), parameter.name)
            object.__setattr__(self, parameter.name, value)

    def document(self) -> dict[str, str]:
        """The claim as it stands in a file."""
        values = {p.name: exact_text(getattr(self, p.name)) for p in dataclasses.fields(self)}
        return {"kind": self.kind, **values}


@dataclass(frozen=True, kw_only=True)
class Claim(Assertion):
    """A statement about a mechanism at (ε, δ); the subclass says which."""

    epsilon: Fraction
    delta: Fraction

    @property
    def threshold(self) -> Fraction:
        """What D(φ) must not exceed."""
        return self.delta


@dataclass(frozen=True, kw_only=True)
class Direct(Claim):
    """(ε, δ)-differential privacy itself: D(φ) ≤ δ for every φ in [0, Δ]."""

    kind: ClassVar[str] = "direct"
    applies_to: ClassVar[tuple[type[Mechanism], ...]] = (Mechanism,)


@dataclass(frozen=True, kw_only=True)
class Theorem32(Claim):
    """Condition (2) of Theorem 3.2: D(φ) ≤ (1 − η) δ for φ in {0, β, 2β, …, Δ}, β = Δ/⌈Δ/(√(2π) η σ δ)⌉.

    The theorem's Lipschitz bound 1/(σ√(2π)) holds for every mixture of Gaussians of one σ.
    """

    kind: ClassVar[str] = "theorem-3.2"
    applies_to: ClassVar[tuple[type[Mechanism], ...]] = (Gaussian, MultiGaussian, DeclaredMixture)
    eta: Fraction

    @property
    def threshold(self) -> Fraction:
        return (1 - self.eta) * self.delta


@dataclass(frozen=True, kw_only=True)
class Theorem42(Claim):
    """The conditions of Theorem 4.2, (4a) h₁(σ) + h₂(σ) ≥ 0 and (5a) max f / min f ≤ e^ε over [0, Δ]."""

    kind: ClassVar[str] = "theorem-4.2"
    applies_to: ClassVar[tuple[type[Mechanism], ...]] = (QuasiGaussian,)


@dataclass(frozen=True, kw_only=True)
class ZeroConcentrated(Assertion):
    """ρ-zero-concentrated differential privacy (Definition B.7): the Rényi divergence of order α between the outputs on
    neighbouring data is at most ρ α, for every α > 1. It speaks of no (ε, δ).

    It can be claimed of every mixture of Gaussians of one σ: all that the proof of Corollary 3.7 uses of the
    multi-Gaussian. Quasi-Gaussian noise is none, its components are cut at 0.
    """

    kind: ClassVar[str] = "zcdp"
    applies_to: ClassVar[tuple[type[Mechanism], ...]] = (Gaussian, MultiGaussian, DeclaredMixture)
    rho: Fraction


AnyClaim = Claim | ZeroConcentrated

CLAIMS: dict[str, type[Claim]] = {cls.kind: cls for cls in (Direct, Theorem32, Theorem42)}
"""The claims at (ε, δ)."""
ALL_CLAIMS: dict[str, type[AnyClaim]] = {**CLAIMS, ZeroConcentrated.kind: ZeroConcentrated}


@dataclass(frozen=True)
class Statement:
    """A mechanism and what is claimed of it. Raises InputError where the claim is not one about such a mechanism."""

    mechanism: Mechanism
    claim: AnyClaim

    def __post_init__(self) -> None:
        mechanism, claim = self.mechanism, self.claim
        if not isinstance(mechanism, claim.applies_to):
            families = sorted({cls.family for cls in claim.applies_to})
            got = f"{claim.kind} of {mechanism.family}"
            raise InputError("claim.kind", got, f"a mechanism of {', '.join(families)}")
        if isinstance(claim, Theorem42) and isinstance(mechanism, QuasiGaussian) and mechanism.epsilon != claim.epsilon:
            expected = "the mechanism's own epsilon (Theorem 4.2 has one)"
            raise InputError("claim.epsilon", exact_text(claim.epsilon), expected)
        if isinstance(claim, Theorem32) and claim.delta == 0:
            raise InputError("claim.delta", "0", "a number greater than 0 (the grid of Theorem 3.2 has width ηδ)")

    def document(self) -> dict[str, Any]:
        """{"mechanism": …, "claim": …}, text and whole numbers only; read_statement inverts it."""
        return {"mechanism": self.mechanism.document(), "claim": self.claim.document()}


def read_claim(document: object, where: str = "claim") -> Claim:
    """A claim at (ε, δ) from its mapping."""
    return _read_claim(document, where, CLAIMS)


def _read_claim(document: object, where: str, known: Mapping[str, type[C]]) -> C:
    fields = _mapping(document, where)
    kind = fields.get("kind")
    claim_class = known.get(kind) if isinstance(kind, str) else None
    if claim_class is None:
        raise InputError(f"{where}.kind", "nothing" if kind is None else kind, f"one of {', '.join(known)}")
    values = _take(fields, where, ["kind"], [p.name for p in dataclasses.fields(claim_class)])
    return _construct(claim_class, values, where)


def read_mechanism(document: object, where: str = "mechanism", epsilon: Fraction | None = None) -> Mechanism:
    """A mechanism from its mapping; ``epsilon`` stands in where the family has one and the mapping leaves it out."""
    fields = _mapping(document, where)
    family = fields.get("family")
    names = [*FAMILIES, "declared"]
    if not isinstance(family, str) or family not in names:
        raise InputError(f"{where}.family", "nothing" if family is None else family, f"one of {', '.join(names)}")
    if family == "declared" and "pieces" in fields:
        values = _take(fields, where, ["family"], ["sensitivity", "pieces"])
        return _construct(Declared, {"sensitivity": values["sensitivity"], "declared_pieces": values["pieces"]}, where)
    mechanism_class = DeclaredMixture if family == "declared" else FAMILIES[family]
    parameters = [p.name for p in dataclasses.fields(mechanism_class)]
    if "epsilon" in parameters and "epsilon" not in fields and epsilon is not None:
        fields = {**fields, "epsilon": exact_text(epsilon)}
    return _construct(mechanism_class, _take(fields, where, ["family"], parameters), where)


def read_statement(document: object, where: str = "") -> Statement:
    """A statement from {"mechanism": …, "claim": …}. Raises InputError that names the field."""
    prefix = f"{where}." if where else ""
    fields = _take(_mapping(document, where or "document"), where or "document", [], ["mechanism", "claim"])
    claim = _read_claim(fields["claim"], f"{prefix}claim", ALL_CLAIMS)
    epsilon = claim.epsilon if isinstance(claim, Claim) else None
    return Statement(read_mechanism(fields["mechanism"], f"{prefix}mechanism", epsilon), claim)


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(where, type(value).__name__, "a table of fields")
    return value


def _take(fields: Mapping[str, Any], where: str, also: list[str], required: list[str]) -> dict[str, Any]:
    """The required fields; numbers among them must be text or whole numbers, and no other field may be there."""
    for name in fields:
        if name not in required and name not in also:
            raise InputError(f"{where}.{name}", "an unknown field", f"only {', '.join([*also, *required])}")
    for name in required:
        if name not in fields:
            raise InputError(f"{where}.{name}", "nothing", "this field")
        if not isinstance(fields[name], Mapping):  # a table within is read, and its fields named, by its own reader
            _refuse_floats(fields[name], f"{where}.{name}")
    return {name: fields[name] for name in required}


def _refuse_floats(value: object, where: str) -> None:
    if isinstance(value, float):
        raise InputError(where, value, 'a number in quotes: "0.1" is exactly 1/10, a bare 0.1 is not')
    if isinstance(value, list):
        for number, item in enumerate(value):
            _refuse_floats(item, f"{where}[{number}]")
    if isinstance(value, Mapping):
        for name, item in value.items():
            _refuse_floats(item, f"{where}.{name}")


def _construct(cls: type[T], values: dict[str, Any], where: str) -> T:
    try:
        return cls(**values)
    except InputError as error:
        raise InputError(f"{where}.{error.where}", error.got, error.expected) from None
