"""The exponential distribution exactly, from fair bits and whole numbers: von Neumann's algorithm.

J. von Neumann, Various techniques used in connection with random digits (1951); C. F. F. Karney (2016), section 2. The
run x > u₁ > u₂ > … of uniforms below a uniform x has even length with probability e^(−x) (see
mechanisms.sampling.normal). x is kept in that case; the number j of tries before is geometric with P(j) ∝ e^(−j), since
1 − ∫₀¹ e^(−x) dx = e^(−1), and independent of x: j + x has density e^(−j) e^(−x).
"""

from __future__ import annotations

from mechanisms.sampling.bits import PATIENCE, StuckBits, Uniform, Word, at_least_zero
from mechanisms.sampling.normal import finish_run


def exponential(word: Word, width: int) -> tuple[int, Uniform]:
    """(j, x): j + x is exponential with mean 1. Raises StuckBits where the bits end no loop."""
    for j in PATIENCE:
        x = word()
        u, even, lazy = x, True, None
        for _ in PATIENCE:
            v = word()
            if v < u:
                u, even = v, not even
                continue
            if v == u:
                lazy = Uniform(word, width, x)
                from_x = lazy if u == x else Uniform(word, width, u)  # later ones are below x
                even = finish_run(from_x, Uniform(word, width, v), even)
            break
        else:
            raise StuckBits
        if even:
            return j, lazy or Uniform(word, width, x)
    raise StuckBits


def falls(numerator: int, denominator: int, x: Uniform) -> bool:
    """True with probability e^(−p x), p = numerator/denominator in (0, 1]: the run starts at p x."""
    z = Uniform(x.word, x.width)
    if at_least_zero(0, (denominator, z), (-numerator, x)):  # z ≥ p x: a run of length 0
        return True
    return finish_run(z, Uniform(x.word, x.width), False)
