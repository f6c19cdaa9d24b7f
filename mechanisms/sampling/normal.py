"""The normal distribution exactly, from fair bits and whole numbers: algorithm N of Karney (2016).

C. F. F. Karney, Sampling exactly from the normal distribution, ACM Transactions on Mathematical Software 42 (2016),
article 3. No transcendental function is evaluated, and nothing is rounded. Why each step is right:

*Runs.* Let u₁, u₂, … be independent uniforms and n the length of the run p > u₁ > u₂ > … > u_n. The first m of them are
all below p and fall with probability p^m/m!, so P(n ≥ m) = p^m/m!, and P(n even) = Σ_m (−1)^m p^m/m! = e^(−p)
(von Neumann 1951). H is that trial for p = 1/2: it succeeds with probability e^(−1/2).

*N1.* k counts the successes of H before the first failure: P(k) ∝ e^(−k/2).
*N2.* k is kept if k(k − 1) further trials H succeed, that is with probability e^(−k(k−1)/2): now P(k) ∝ e^(−k²/2).
*N3.* x is uniform on [0, 1).
*N4.* (k, x) is kept if k + 1 trials B(k, x) succeed, each with probability e^(−x(2k+x)/(2k+2)), all of them with
      probability e^(−x(2k+x)/2). Now (k, x) has density ∝ e^(−k²/2 − kx − x²/2) = e^(−(k+x)²/2): k + x is |N|.
*B.*  The run x > z₁ > z₂ > … in which each z_i needs, besides, a uniform r_i with r_i < (2k + x)/(2k + 2), a number
      below 1: P(n ≥ m) = x^m/m! · ((2k + x)/(2k + 2))^m, so P(n even) = e^(−x(2k+x)/(2k+2)).
*N5.* A fair sign, drawn by the caller.

What is not kept is thrown away with all its uniforms, and the next try is independent of it, so that the value returned
has the conditional distribution. A try is kept with probability √(π/2)(1 − e^(−1/2)) = 0.493.

Uniforms are compared by their first words; where those leave it open, by more words of the same uniforms.
"""

from __future__ import annotations

from collections.abc import Callable

from mechanisms.sampling.bits import PATIENCE, ROUNDS, StuckBits, Uniform, Word, at_least_zero, less

HalfNormal = Callable[[Word], tuple[int, int, "Uniform | None"]]
"""word ↦ (k, first word of x, x itself where more of it was drawn); k + x is the size of a standard normal number."""


def finish_run(u: Uniform, v: Uniform, even: bool) -> bool:
    """The parity of a run that has come to u, of which v is the next uniform: whether its length is even."""
    for _ in PATIENCE:
        if not less(v, u):
            return even
        u, v, even = v, Uniform(v.word, v.width), not even
    raise StuckBits


def finish_trial(k: int, x: Uniform, y: Uniform, z: Uniform, r: Uniform | None, even: bool) -> bool:
    """The rest of a trial B(k, x) that has come to y; z is the next uniform, r its companion where it is drawn."""
    for _ in PATIENCE:
        if not less(z, y):
            return even
        r = r or Uniform(z.word, z.width)
        if at_least_zero(-2 * k, (2 * k + 2, r), (-1, x)):  # r ≥ (2k + x)/(2k + 2)
            return even
        y, z, r, even = z, Uniform(z.word, z.width), None, not even
    raise StuckBits


def half_trial(word: Word, width: int) -> bool:
    """The trial H: true with probability e^(−1/2)."""
    u = word()
    if u >> (width - 1):
        return True
    even = False
    for _ in PATIENCE:
        v = word()
        if v > u:
            return even
        if v == u:
            return finish_run(Uniform(word, width, u), Uniform(word, width, v), even)
        u, even = v, not even
    raise StuckBits


def half_normal(width: int) -> HalfNormal:
    """Algorithm N on words of ``width`` bits: the size of a standard normal number, exactly, without its sign.

    Raises StuckBits where the bits end no loop. The trials are written out in the loop: a call costs as much as they
    do.
    """
    top = width - 1

    def draw(word: Word) -> tuple[int, int, Uniform | None]:
        for _ in PATIENCE:
            k = 0
            while k < ROUNDS:  # N1; H is written out
                u = word()
                if u >> top:
                    k += 1
                    continue
                even = False
                for _ in PATIENCE:
                    v = word()
                    if v < u:
                        u, even = v, not even
                        continue
                    if v == u:
                        even = finish_run(Uniform(word, width, u), Uniform(word, width, v), even)
                    break
                else:
                    raise StuckBits
                if not even:
                    break
                k += 1
            else:
                raise StuckBits
            for _ in range(k * (k - 1)):  # N2
                if not half_trial(word, width):
                    break
            else:
                x, lazy = word(), None  # N3
                parts = 2 * k + 2
                bound = (2 * k << width) + x
                for _ in range(k + 1):  # N4; B is written out
                    y, even = x, True
                    for _ in PATIENCE:
                        z = word()
                        if z > y:
                            break
                        r = None
                        if z < y:
                            r = word()
                            share = parts * r
                            if share > bound:
                                break
                            if share + parts <= bound:
                                y, even = z, not even
                                continue
                        lazy = lazy or Uniform(word, width, x)
                        even = finish_trial(
                            k,
                            lazy,
                            lazy if y == x else Uniform(word, width, y),  # later ones are below x
                            Uniform(word, width, z),
                            None if r is None else Uniform(word, width, r),
                            even,
                        )
                        break
                    else:
                        raise StuckBits
                    if not even:
                        break
                else:
                    return k, x, lazy
        raise StuckBits

    return draw
