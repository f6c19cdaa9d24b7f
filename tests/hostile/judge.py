"""What must hold of one spoiled certificate, decided without any of the code that reads certificates.

A spoiled certificate *means the same* as a sound one where

* it is one JSON text in UTF-8, without NaN and its likes, without a name that stands twice in one object, with the
  fields ``signed`` and ``signatures`` and no other;
* its ``signed`` is the same JSON value: the same strings, character by character, the same numbers in the same
  spelling, the same lists; the order of the fields, white space and escapes say nothing;
* the sound certificate's signature, name of the key and all, is in its list of signatures.

The sound ones are all that the trusted key has signed, not only the one that was spoiled: an attacker has them all.
Where the trusted key itself has signed what was spoiled, no meaning is forged, and it can be sound: what is then asked
is that its noise is that of a sound certificate, in numbers, to a millionth, and its claim no stronger; or else that
the second opinion, which shares no code with the search, agrees. (A record that the trusted key signs may well say less
than the old one, or other digits of an enclosure.)
"""

from __future__ import annotations

import functools
import json
import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from audit.verdict import Limits
from certificates.second import Answer, ask
from certificates.verify import Outcome, verify_certificate
from tests.certificates.support import TIME
from tests.hostile.seeds import Seed, seeds, trust

MOST_SECONDS: Final = 5.0
"""Of processor time, for one certificate."""
ASKED_SECONDS: Final = 3.0
"""The limit that verification is given: that of a certificate that no trusted key has signed."""
DRIFT: Final = Fraction(1, 10**6)
CODES: Final = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class Case:
    """A spoiled certificate."""

    seed: Seed
    data: bytes
    resigned: bool = False
    """The trusted key has signed what is there now."""


@dataclass(frozen=True)
class Judged:
    """What came of it."""

    exit_code: int
    seconds: float
    fault: str
    """Empty where all is well."""


def processor_limits(seconds: float) -> Limits:
    """Limits by processor time, which other work on the machine does not use up; it is slow to ask for, so only now
    and then."""
    end, again, over = time.process_time() + seconds, 0.0, False

    def expired() -> bool:
        nonlocal again, over
        now = time.monotonic()
        if not over and now > again:
            over, again = time.process_time() > end, now + 0.02
        return over

    return Limits(expired=expired)


def judge(case: Case) -> Judged:
    """Verify a case; never raises what verification raises."""
    start = time.process_time()
    try:
        outcome = verify_certificate(case.data, trust(), processor_limits(ASKED_SECONDS), now=TIME)
    except Exception as error:  # Any at all is what this looks for.
        return Judged(-1, time.process_time() - start, f"raised {type(error).__name__}: {error}")
    seconds = time.process_time() - start
    return Judged(outcome.exit_code, seconds, _fault(case, outcome, seconds))


def _fault(case: Case, outcome: Outcome, seconds: float) -> str:
    if outcome.exit_code not in CODES:
        return f"exit code {outcome.exit_code}"
    if not outcome.reason or not outcome.reason.isprintable() or len(outcome.reason) > 4000:
        return f"a reason that is not one line: {outcome.reason[:200]!r}"
    if seconds > MOST_SECONDS:
        return f"{seconds:.1f} seconds"
    if outcome.exit_code == 0 and not (means_the_same(case) or (case.resigned and _is_true(case, outcome))):
        return "passed, and does not mean the same"
    return ""


def means_the_same(case: Case) -> bool:
    """Whether the spoiled certificate means the same as a sound one; most mean nothing."""
    spoiled = _document(case.data)
    if not isinstance(spoiled, dict) or spoiled.keys() != {"signed", "signatures"}:
        return False
    signatures = spoiled["signatures"]
    signature = _sound().get(json.dumps(spoiled["signed"], sort_keys=True))
    return signature is not None and isinstance(signatures, list) and signature in signatures


@functools.cache
def _sound() -> dict[str, Any]:
    """What the sound certificates say, and the signature of each."""
    documents = [_document(seed.data) for seed in seeds() if seed.exit_code == 0]
    return {json.dumps(document["signed"], sort_keys=True): document["signatures"][0] for document in documents}


def _document(data: bytes) -> Any:
    """The JSON value; None where it is none or not only one."""
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_without_twins,
            parse_constant=_refuse,
            parse_int=lambda digits: f"number {digits}",
            parse_float=lambda digits: f"number {digits}",
        )
    except (ValueError, RecursionError):
        return None


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name that stands twice")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _is_true(case: Case, outcome: Outcome) -> bool:
    """Whether what the trusted key signed is known to be true, or another route to it says so."""
    if _claims_no_more(case):
        return True
    opinion = ask(case.data, outcome, processor_limits(MOST_SECONDS))
    return opinion is not None and opinion.answer is Answer.AGREES


def _claims_no_more(case: Case) -> bool:
    """Whether the noise is that of a sound certificate and the claim about it the same or a weaker one."""
    spoiled = _document(case.data)
    signed = spoiled.get("signed") if isinstance(spoiled, dict) else None
    if not isinstance(signed, dict):
        return False
    if "parts" in signed:
        return all(map(_is_sound_part, signed["parts"]))
    statements = [json.loads(text).get("statement") for text in _sound()]
    return any(_implies(statement, signed["statement"]) for statement in statements if statement)


def _implies(sound: Any, spoiled: Any) -> bool:
    weaker = dict(spoiled["claim"])
    for name in ("epsilon", "delta", "rho"):
        numbers = _number(sound["claim"].get(name)), _number(weaker.get(name))
        if None not in numbers and numbers[0] <= numbers[1]:  # type: ignore[operator]
            weaker[name] = sound["claim"][name]
    return _near(sound["mechanism"], spoiled["mechanism"]) and _near(sound["claim"], weaker)


def _is_sound_part(part: Any) -> bool:
    """ρ = Δ²/(2σ²) of Gaussian noise; ε²/2 of Laplace noise, where Δ is at most ε times its scale."""
    number = {name: _number(text) for name, text in part["mechanism"].items()}
    sensitivity, rho = number["sensitivity"], _number(part["rho"]["upper"])
    assert sensitivity is not None and rho is not None
    if part["epsilon"] is None:
        sigma = number["sigma"]
        assert sigma is not None
        return rho >= sensitivity**2 / (2 * sigma**2)
    epsilon, scale = _number(part["epsilon"]), number["scale"]
    assert epsilon is not None and scale is not None
    return sensitivity <= epsilon * scale and rho >= epsilon**2 / 2


def _near(one: Any, other: Any) -> bool:
    """Equal, but for the spelling of numbers and a millionth of them."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_near(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_near, one, other))
    first, second = _number(one), _number(other)
    if first is None or second is None:
        return bool(one == other)
    return abs(first - second) <= DRIFT * abs(first)


def _number(text: Any) -> Fraction | None:
    if not isinstance(text, str):
        return None
    text = text.removeprefix("number ")
    try:
        return Fraction(float.fromhex(text)) if "x" in text.lower() else Fraction(text)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
