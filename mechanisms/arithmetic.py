"""Float64, balls and mpmath behind one small set of names, so that a formula is written once. (trusted)

Values are numpy arrays: of dtype float64 for FLOAT, of dtype object (``arb`` or ``mpf``) for the other two. The
formulas use ``+ - * /`` and the names below, and never ask which arithmetic they run in.

BALL works at the precision in force (``flint.ctx.prec``); set it with ``with flint.ctx.workprec(bits)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import special

from mechanisms.numbers import nearest_float

Array = Any
"""A numpy array of this arithmetic's numbers (numpy's typing has no name for an array of balls)."""


def _each(function: Callable[[Any], Any]) -> Callable[[Array], Array]:
    """``function`` applied to each element of an object array."""
    each: Callable[[Array], Array] = np.frompyfunc(function, 1, 1)
    return each


class Arithmetic:
    """The names that the formulas use. One instance for each kind of number."""

    key: object
    exp: Callable[[Array], Array]
    expm1: Callable[[Array], Array]
    log: Callable[[Array], Array]
    erfcx: Callable[[Array], Array]
    """e^(z²) erfc(z), for z ≥ 0."""
    sqrt: Callable[[Array], Array]
    negative: Callable[[Array], Any]
    """True where the number's midpoint is below 0. Only ever chooses between two forms of the same value."""

    def number(self, value: Fraction) -> Any:
        """The nearest (FLOAT, mpmath) or an enclosing (BALL) number."""
        raise NotImplementedError

    def pi(self) -> Any:
        """π."""
        raise NotImplementedError

    def array(self, values: Iterable[Any]) -> Array:
        """A one-dimensional array of numbers of this arithmetic."""
        raise NotImplementedError

    def numbers(self, values: Iterable[Fraction]) -> Array:
        """A one-dimensional array of exact reals."""
        return self.array([self.number(value) for value in values])

    def pivot(self, exponents: Array) -> Array:
        """A number near the largest along the first axis: what a log-sum-exp subtracts. Any value is correct."""
        raise NotImplementedError

    def clip(self, x: Array, lower: Any | None, upper: Any | None) -> Array:
        """max(x, lower), then min(·, upper); None is no bound."""
        raise NotImplementedError

    def where(self, condition: Any, yes: Array, no: Array) -> Array:
        """Elementwise choice."""
        return np.where(condition, yes, no)


class _Float(Arithmetic):
    key = "float"
    exp = staticmethod(np.exp)
    expm1 = staticmethod(np.expm1)
    log = staticmethod(np.log)
    erfcx = staticmethod(special.erfcx)
    sqrt = staticmethod(np.sqrt)
    negative = staticmethod(np.signbit)

    def number(self, value: Fraction) -> float:
        return nearest_float(value)

    def pi(self) -> float:
        return float(np.pi)

    def array(self, values: Iterable[Any]) -> Array:
        return np.array(list(values), dtype=np.float64)

    def pivot(self, exponents: Array) -> Array:
        top = exponents.max(axis=0)
        return np.where(np.isfinite(top), top, 0.0)

    def clip(self, x: Array, lower: Any | None, upper: Any | None) -> Array:
        x = x if lower is None else np.maximum(x, lower)
        return x if upper is None else np.minimum(x, upper)


def _objects(values: Iterable[Any]) -> Array:
    items = list(values)
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _erfcx_of_ball(z: Any) -> Any:
    """e^(z²) erfc(z) of a ball."""
    if not z > 4096 or z.is_exact():
        return (z * z).exp() * z.erfc()
    # FLINT bounds the error that erfc inherits from z by an e^(−z²) of which z² has 30 bits: of no use where z² is far
    # beyond 2^30. For z > 0 the slope of e^(z²) erfc(z) lies between −2/√π > −1.13 and 0.
    middle = z.mid()
    return (middle * middle).exp() * middle.erfc() + 113 * z.rad() / 100 * type(z)(0, 1)


class _Ball(Arithmetic):
    """arb, at the precision in force."""

    exp = staticmethod(_each(lambda z: z.exp()))
    expm1 = staticmethod(_each(lambda z: z.expm1()))
    log = staticmethod(_each(lambda z: z.log()))
    erfcx = staticmethod(_each(_erfcx_of_ball))
    sqrt = staticmethod(_each(lambda z: z.sqrt()))
    negative = staticmethod(lambda z: np.frompyfunc(lambda v: float(v) < 0, 1, 1)(z).astype(bool))

    def __init__(self) -> None:
        import flint

        self._flint = flint

    @property
    def key(self) -> object:  # type: ignore[override]
        return ("ball", self._flint.ctx.prec)

    def number(self, value: Fraction) -> Any:
        return self._flint.arb(self._flint.fmpq(value.numerator, value.denominator))

    def pi(self) -> Any:
        return self._flint.arb.pi()

    def array(self, values: Iterable[Any]) -> Array:
        return _objects(values)

    def pivot(self, exponents: Array) -> Array:
        def top(column: Any) -> Any:
            return max((value.mid() for value in column), key=float)

        flat = exponents.reshape(exponents.shape[0], -1)
        return _objects(top(flat[:, i]) for i in range(flat.shape[1])).reshape(exponents.shape[1:])

    def clip(self, x: Array, lower: Any | None, upper: Any | None) -> Array:
        x = x if lower is None else np.frompyfunc(lambda v: v.max(lower), 1, 1)(x)
        return x if upper is None else np.frompyfunc(lambda v: v.min(upper), 1, 1)(x)


class Multiprecision(Arithmetic):
    """mpmath with ``digits`` decimal digits, in a context of its own: the referee of the tests."""

    def __init__(self, digits: int = 50) -> None:
        import mpmath

        context = mpmath.MPContext()
        context.dps = digits
        self.context = context
        self.key = ("mpmath", digits)
        self.exp = _each(context.exp)
        self.expm1 = _each(context.expm1)
        self.log = _each(context.log)
        self.erfcx = _each(lambda z: context.exp(z * z) * context.erfc(z))
        self.sqrt = _each(context.sqrt)
        self.negative = lambda z: np.frompyfunc(lambda v: v < 0, 1, 1)(z).astype(bool)

    def number(self, value: Fraction) -> Any:
        return self.context.mpf(value.numerator) / value.denominator

    def pi(self) -> Any:
        return +self.context.pi

    def array(self, values: Iterable[Any]) -> Array:
        return _objects(values)

    def pivot(self, exponents: Array) -> Array:
        return exponents.max(axis=0)

    def clip(self, x: Array, lower: Any | None, upper: Any | None) -> Array:
        x = x if lower is None else np.frompyfunc(lambda v: max(v, lower), 1, 1)(x)
        return x if upper is None else np.frompyfunc(lambda v: min(v, upper), 1, 1)(x)


FLOAT = _Float()
BALL: Arithmetic = _Ball()
