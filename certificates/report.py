"""A certificate as one self-contained page of HTML: no network, no scripts, no fonts but the reader's.

Everything that a certificate, a path or a trust store contributes is escaped, here, by one function; the only markup
that is not made here is the picture's, and that is made of numbers.
"""

from __future__ import annotations

import hashlib
import html
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Final

from audit.losses import Losses
from audit.verdict import Decision, Enclosure, Witness
from certificates.issue import tool
from certificates.layout import between
from certificates.present import outcome_word, statement_in_words
from certificates.schema import CertificateRecord, Recorded
from certificates.trust import TrustStore
from certificates.verify import Outcome
from mechanisms.claims import AnyClaim, Claim, Statement, Theorem32, Theorem42
from mechanisms.families import ScaledFamily
from mechanisms.numbers import exact_text, nearest_float, one_line

DIGITS: Final = 12
LONG: Final = 60
"""Characters of an exact number that are shown."""
SHOWN_INTERVALS: Final = 8
NOTHING: Final = "—"
ALTERNATIVE: Final = "The density of the noise, D over the shifts with its enclosures, and the privacy profile"

STYLE: Final = """
:root { color-scheme: light; }
body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem; background: #fff; color: #1a1a1a;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 1px solid #ccc; }
p.file { margin: 0; color: #555; overflow-wrap: anywhere; }
.verdict { margin: 1rem 0; padding: .75rem 1rem; border: 2px solid; border-left-width: .75rem;
  overflow-wrap: anywhere; }
.verdict strong { font-size: 1.3rem; display: block; }
.passed { border-color: #1b6e3c; border-style: solid; background: #eef7f0; }
.failed { border-color: #a3261b; border-style: double; border-width: 5px; border-left-width: .75rem;
  background: #fbeeec; }
.open { border-color: #8a6100; border-style: dashed; background: #fdf6e3; }
table { border-collapse: collapse; width: 100%; font-size: .95rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid #e2e2e2;
  overflow-wrap: anywhere; }
thead th { border-bottom: 2px solid #888; }
tbody th { font-weight: 600; width: 11rem; }
td { font-variant-numeric: tabular-nums; width: 40%; }
td.key { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .82rem; width: 60%; }
figure { margin: 1rem 0; }
figure svg { width: 100%; height: auto; }
figcaption, .note { color: #444; font-size: .92rem; }
pre { background: #f3f3f3; border: 1px solid #ddd; padding: .75rem; white-space: pre-wrap; overflow-wrap: anywhere; }
@media print { body { margin: 0; max-width: none; } figure, .verdict { break-inside: avoid; } }
"""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a page is made of: a certificate that could be read, and what verification said of it at ``time``."""

    path: str
    data: bytes
    record: CertificateRecord
    recorded: Recorded
    statement: Statement
    outcome: Outcome
    decision: Decision | None
    """The re-proof; None where it met numbers beyond what the libraries hold."""
    losses: Losses | None
    picture: bytes | str
    """The picture as SVG, or the reason why there is none."""
    time: datetime


Row = tuple[str, ...]
"""A label, and what stands beside it."""


def page(report: Report, trust: TrustStore) -> bytes:
    """The page, as UTF-8."""
    name = _text(report.path)
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        # Nothing here needs it; it keeps a browser from loading or running anything whatever.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>{name}: {_text(outcome_word(report.outcome))}</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
        f"<h1>Certificate {name}</h1>",
        f'<p class="file">{len(report.data)} bytes, SHA-256 {hashlib.sha256(report.data).hexdigest()}</p>',
        *_verdict(report),
        "<h2>What it claims</h2>",
        *(f"<p>{_text(line)}</p>" for line in statement_in_full(report.statement)),
        *_table(("the noise", ""), _parameters(report.statement)),
        "<h2>The numbers</h2>",
        *_table(("", "the certificate records", "proved again now"), _numbers(report)),
        "<h2>The signature</h2>",
        *_signatures(report, trust),
        "<h2>In pictures</h2>",
        *_figure(report),
        "<h2>How to verify it again</h2>",
        *_how(report),
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(parts).encode("utf-8", "replace")


def _text(text: str) -> str:
    """Any text as HTML, also inside quotes: escaped, on one line, without control characters."""
    return html.escape(one_line(text))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _verdict(report: Report) -> Iterable[str]:
    outcome = report.outcome
    kind = {0: "passed", 3: "open"}.get(outcome.exit_code, "failed")
    by = f"{tool().name} {tool().version}"
    yield f'<div class="verdict {kind}" id="verdict"><strong>{_text(outcome_word(outcome))}</strong>'
    if outcome.exit_code == 0:
        yield f"{_text(_sentence(statement_in_words(report.statement)))}"
    yield f'<p class="note">{_text(_sentence(outcome.reason))}</p>'
    if outcome.warning:
        yield f'<p class="note">Warning: {_text(outcome.warning)}.</p>'
    at = report.time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    yield f'<p class="note">Proved again on {_text(at)}, by {_text(by)}; nothing in the certificate was believed.</p>'
    yield "</div>"


def statement_in_full(statement: Statement) -> list[str]:
    """The claim in words that need no other document: one paragraph an item."""
    mechanism, claim = statement.mechanism, statement.claim
    unit = _exact(mechanism.sensitivity)
    setting = (
        f"Noise X of the density f is added to the answer of one query whose answers on neighbouring data sets D, D′ "
        f"differ by at most Δ = {unit}."
    )
    return [_sentence(statement_in_words(statement)), setting, *_claim_in_full(claim, unit)]


def _claim_in_full(claim: AnyClaim, unit: str) -> list[str]:
    if not isinstance(claim, Claim):
        bound = f"at most ρ α, ρ = {_exact(claim.rho)}"
        return [f"The Rényi divergence of every order α > 1 between the two answers is {bound}."]
    epsilon, delta = _exact(claim.epsilon), _exact(claim.delta)
    promise = (
        f"(ε, δ)-differential privacy with ε = {epsilon} and δ = {delta}: for all neighbouring D, D′ and every set A "
        "of answers, P(answer on D in A) ≤ e^ε · P(answer on D′ in A) + δ."
    )
    divergence = "D(φ) = ∫ max(f(x + φ) − e^ε f(x), 0) dx"
    if isinstance(claim, Theorem32):
        return [
            f"The claim is condition (2) of Theorem 3.2 with η = {_exact(claim.eta)}: at every shift φ of its grid in "
            f"[0, {unit}], {divergence} is at most (1 − η) δ = {_exact(claim.threshold)}.",
            f"By the theorem it implies {promise}",
        ]
    if isinstance(claim, Theorem42):
        return ["The claim is conditions (4a) and (5a) of Theorem 4.2.", f"By the theorem they imply {promise}"]
    return [f"The claim is {promise}", f"That is: {divergence} is at most δ for every shift φ in [0, {unit}]."]


def _exact(number: Fraction) -> str:
    text = exact_text(number)
    return text if len(text) <= LONG else f"{text[:LONG]}… ({len(text)} characters, ≈ {nearest_float(number):.12g})"


def _between(value: Enclosure | None) -> str:
    return NOTHING if value is None else between(value, DIGITS)


def _place(number: Fraction | None) -> str:
    """A number for people: exact where that is short, else the nearest float and its exact hex form where it is one."""
    if number is None:
        return NOTHING
    nearest = nearest_float(number)
    if nearest == number:
        return f"{nearest!r} = {nearest.hex()}"
    return _exact(number)


def _parameters(statement: Statement) -> Iterable[Row]:
    """The mechanism as the certificate states it: this is what the proof is about."""
    mechanism = statement.mechanism
    labels = {"epsilon": "ε of its weights", "sensitivity": "sensitivity Δ", "sigma": "scale σ"}
    for name, value in mechanism.document().items():
        label = labels.get(name, name)
        if name == "sigma" and isinstance(mechanism, ScaledFamily):
            yield label, _place(mechanism.sigma)
        elif isinstance(value, list):
            yield label, f"{len(value)}, as in the certificate"
        else:
            yield label, _short(str(value))


def _numbers(report: Report) -> Iterable[Row]:
    """What is recorded of the proof, beside what was found now."""
    claim, recorded, decision = report.statement.claim, report.recorded, report.decision
    yield "verdict", recorded.verdict.value, NOTHING if decision is None else decision.verdict.value
    own = None if decision is None else decision.sup_delta
    if isinstance(claim, Claim):
        yield "allowed: D(φ) at most", _exact(claim.threshold), NOTHING
    if recorded.sup_delta is not None or own is not None:
        yield "sup of D(φ)", _between(recorded.sup_delta), _between(own)
    at = None if decision is None else decision.worst_shift
    if recorded.worst_shift is not None or at is not None:
        yield "worst shift φ", _place(recorded.worst_shift), _place(at)
    for number, condition in enumerate(recorded.conditions):
        found = decision.conditions[number : number + 1] if decision else ()
        proved = "; ".join(f"{_between(item.value)}: {item.verdict.value}" for item in found) or NOTHING
        label = f"condition {condition.name}, {condition.demand}"
        yield label, f"{_between(condition.value)}: {condition.verdict.value}", proved
    if recorded.witness or (decision and decision.witness):
        yield from _witnesses(recorded.witness, decision.witness if decision else None)
    if recorded.refuted_below is not None:
        confirmed = "refuted" if report.outcome.exit_code == 0 else "see the verdict above"
        yield "refuted at the smaller scale", _place(recorded.refuted_below), confirmed
    yield "E|X|", _between(recorded.l1), _between(report.losses.l1 if report.losses else None)
    yield "E X²", _between(recorded.l2), _between(report.losses.l2 if report.losses else None)
    evidence, signed = report.record.signed.evidence, report.record.signed
    cost = NOTHING if decision is None else f"{decision.bits} bits, {decision.boxes} boxes of shifts"
    yield "cost of the proof", f"{evidence.bits} bits, {evidence.boxes} boxes of shifts", cost
    yield "reason", evidence.reason or NOTHING, NOTHING if decision is None else decision.reason
    yield "note", evidence.note or NOTHING, NOTHING
    yield "issued", f"{signed.issued}, by {signed.tool.name} {signed.tool.version}", NOTHING


def _short(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:LONG]}… ({len(text)} characters)"


def _witnesses(recorded: Witness | None, own: Witness | None) -> Iterable[Row]:
    """An event A at a shift φ that breaks the inequality."""

    def row(label: str, show: Callable[[Witness], str]) -> Row:
        return label, show(recorded) if recorded else NOTHING, show(own) if own else NOTHING

    yield row("witness: shift φ", lambda witness: _place(witness.shift))
    yield row("witness: event A", _event)
    yield row("witness: P(A − φ)", lambda witness: _between(witness.probability_shifted))
    yield row("witness: e^ε P(A) + the bound allowed", lambda witness: _between(witness.bound))


def _event(witness: Witness) -> str:
    def end(value: Fraction | None, infinity: str) -> str:
        return infinity if value is None else f"{nearest_float(value):.6g}"

    intervals = [f"[{end(start, '-∞')}, {end(stop, '∞')}]" for start, stop in witness.event]
    hidden = len(intervals) - SHOWN_INTERVALS
    return " ∪ ".join(intervals[:SHOWN_INTERVALS]) + (f" ∪ {hidden} more" if hidden > 0 else "")


def _signatures(report: Report, trust: TrustStore) -> Iterable[str]:
    state = _text(report.outcome.signature or NOTHING)
    yield f"<p>Signature: <strong>{state}</strong>.</p>"
    rows = []
    for signature in report.record.signatures:
        known = trust.lookup(signature.keyid)
        name = "a key that you do not trust" if known is None else f"a key that you trust: {known.name}"
        rows.append(f'<tr><td class="key">{_text(signature.keyid)}</td><td>{_text(name)}</td></tr>')
    if rows:
        yield '<table><thead><tr><th scope="col">key identifier</th><th scope="col">whose key</th></tr></thead><tbody>'
        yield from rows
        yield "</tbody></table>"


def _table(head: Sequence[str], rows: Iterable[Row]) -> Iterable[str]:
    heads = "".join(f'<th scope="col">{_text(cell)}</th>' for cell in head)
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
    for label, *texts in rows:
        cells = "".join(f"<td>{_text(cell)}</td>" for cell in texts)
        yield f'<tr><th scope="row">{_text(label)}</th>{cells}</tr>'
    yield "</tbody></table>"


def _figure(report: Report) -> Iterable[str]:
    if isinstance(report.picture, str):
        yield f'<p class="note">No pictures: {_text(report.picture)}.</p>'
        return
    _, _, svg = report.picture.decode().partition("<svg")
    yield f'<figure><svg role="img" aria-label="{ALTERNATIVE}"{svg}'
    yield (
        "<figcaption>Bars and the steps of D are proved, in ball arithmetic; dashed curves are floats and prove "
        "nothing. A bar is the enclosure at its place, often narrower than its line; the shaded band is proved between "
        "the bars, since δ is convex in e^ε and does not rise. The verdict in the title is on the statement alone, "
        "whoever signed it.</figcaption></figure>"
    )


def _how(report: Report) -> Iterable[str]:
    path = shlex.quote(report.path)
    lines = [f"sha256sum {path}    # {hashlib.sha256(report.data).hexdigest()}", f"audit verify {path}"]
    yield "<p>This page is a copy of an answer, not the answer. With sigmacert installed:</p>"
    yield f"<pre>{chr(10).join(map(_text, lines))}</pre>"
    yield (
        "<p>Exit code 0 is a pass, and nothing else is. Whose signatures count is yours to say: "
        "<code>audit trust list</code> shows the keys, <code>audit trust add --name NAME KEY</code> adds one that you "
        "got from its owner by another way than this page.</p>"
    )
    yield (
        '<p class="note">Verified means: for real-valued noise of exactly the declared density, added to one '
        "real-valued query of the declared sensitivity, the claim is a theorem. It does not mean that the sensitivity "
        "is right, or that a sampler of floating-point numbers has that density.</p>"
    )
