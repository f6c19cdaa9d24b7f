"""The command line: parse, call, print. One function a command; groups of commands are in certificates/commands.

Exit codes, also the order of precedence among several certificates: 1 refuted or contradicted, 4 a signature that does
not count, 2 unusable input, 3 inconclusive, 0 verified; 130 interrupted. Modules that are slow to import are imported
where they are used, so that ``audit --help`` is quick.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from audit.verdict import Limits, Verdict
from certificates.commands.compose import compose
from certificates.commands.keys import keygen, trust
from certificates.commands.options import (
    EXIT_CODES,
    PRECEDENCE,
    STRANGER_SECONDS,
    Clock,
    Goal,
    option,
    with_console,
    with_destination,
    with_limits,
)
from certificates.commands.pictures import plot, report
from certificates.commands.release import release
from certificates.commands.tables import compare, grid, published
from certificates.console import UNUSABLE, Console, Program, show_version
from mechanisms.numbers import InputError, read_count, read_positive

if TYPE_CHECKING:
    from certificates.destination import Destination
    from mechanisms.claims import Claim

OPTION_OF = {"kind": "--claim", "family": "FAMILY", "K": "-K"}
"""The options that are not named as the parameter that they set."""


@click.group("audit", cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=show_version, help="Show it.")
def main() -> None:
    """Certified noise scales for differential privacy.

    Calibrate noise, prove the claim in ball arithmetic, sign a certificate, and verify it before a release. Exit codes:
    0 verified, 1 refuted or contradicted, 2 unusable input, 3 inconclusive, 4 a signature that does not count.

    \b
    Example:
      audit calibrate multi-gaussian --epsilon 1 --delta 0.01 -K 4 -o cert.json
      audit verify cert.json
    """


@contextlib.contextmanager
def _as_options() -> Iterator[None]:
    """Errors inside name the option that they are about."""
    try:
        yield
    except InputError as error:
        name = error.where.removeprefix("claim.").removeprefix("mechanism.")
        known = {parameter.name: parameter.opts[-1] for parameter in calibrate.params}
        raise InputError(OPTION_OF.get(name, known.get(name, error.where)), error.got, error.expected) from None


def _claim(kind: str, epsilon: str, delta: str, eta: str | None) -> Claim:
    from mechanisms.claims import CLAIMS, read_claim

    if kind in CLAIMS:
        needed = "eta" in {parameter.name for parameter in fields(CLAIMS[kind])}
        if needed != (eta is not None):
            expected = "a number between 0 and 1" if needed else "none"
            raise InputError("eta", "nothing" if eta is None else eta, f"{expected} with --claim {kind}")
    document = {"kind": kind, "epsilon": epsilon, "delta": delta}
    return read_claim(document if eta is None else {**document, "eta": eta})


def _counts(family: str, count: str | None, largest: str | None) -> dict[str, Any]:
    """What K to calibrate with: one, or several candidates, or none for a family that has none."""
    from mechanisms.families import FAMILIES, MAX_K

    if family not in FAMILIES:
        raise InputError("FAMILY", family, f"one of {', '.join(FAMILIES)}")
    has_count = "K" in {parameter.name for parameter in fields(FAMILIES[family])}
    if count is not None and not has_count:
        raise InputError("-K", count, f"none: {family} noise has no K")
    if largest is not None and (count not in (None, "auto") or not has_count):
        raise InputError("--max-K", largest, "-K auto with it")
    if not has_count:
        return {}
    if count not in (None, "auto"):
        return {"K": read_count(count, "-K", MAX_K)}
    return {"candidates": range(1, read_count(largest or "20", "--max-K", MAX_K) + 1)}


def _has_scale(family: str) -> bool:
    from mechanisms.families import FAMILIES, ScaledFamily

    return issubclass(FAMILIES[family], ScaledFamily)


def _calibrate_offered(
    console: Console,
    limits: Limits,
    goal: Destination | None,
    family: str,
    claim: Claim,
    sensitivity: Fraction,
    given: dict[str, Any],
) -> int:
    """As calibrate, for a family without a single scale."""
    from audit.verdict import Expired
    from certificates import offered, present

    try:
        with _as_options():
            found = offered.choose(family, claim, sensitivity, given["loss"], given["decimals"], limits)
    except Expired:
        console.result(*present.expired(claim))
        return EXIT_CODES[Verdict.INCONCLUSIVE]
    if goal is not None:
        goal.write(found.statement, found.decision, found.losses)
    path = None if goal is None else goal.path
    console.result(offered.offer_document(found, path), offered.offer_block(found, path))
    return EXIT_CODES[found.decision.verdict]


@main.command()
@click.argument("family")
@click.option("--epsilon", required=True, metavar="E", help="Privacy loss, exact as typed: 0.1 is 1/10.")
@click.option("--delta", required=True, metavar="D", help="Failure probability, exact as typed.")
@option("--sensitivity", default="1", metavar="S", help="Of the query, in its unit.")
@click.option("-K", "count", metavar="N|auto", help="Components on each side (multi-gaussian).  [default: auto]")
@click.option("--max-K", "largest", metavar="N", help="Largest K that auto tries.  [default: 20]")
@option("--claim", "kind", default="direct", metavar="KIND", help="direct, theorem-3.2 or theorem-4.2.")
@click.option("--eta", metavar="H", help="With theorem-3.2: the share of delta kept for what is between grid points.")
@option("--loss", type=click.Choice(["l1", "l2"]), default="l2", help="What auto makes small: E|X| or E X².")
@click.option("--decimals", type=int, metavar="N", help="The smallest decimal of N places instead.")
@with_destination
@with_limits
@with_console
def calibrate(console: Console, limits: Clock, destination: Goal, family: str, **given: Any) -> int:
    """Find the smallest noise scale that keeps a promise, with a proof.

    FAMILY is gaussian, multi-gaussian or quasi-gaussian: the claim is proved at the scale that is printed, and refuted
    at the next double below it. Or laplace, truncated-laplace, flipped-huber, staircase, truncated-staircase or tulap:
    the parameters are chosen for the loss, and the claim is proved for them.

    \b
    Example:
      audit calibrate multi-gaussian --epsilon 1 --delta 0.01 -K 4 -o cert.json
    """
    with _as_options():
        sensitivity = read_positive(given["sensitivity"], "sensitivity")
        counts = _counts(family, given["count"], given["largest"])
        claim = _claim(given["kind"], given["epsilon"], given["delta"], given["eta"])
    goal = destination()
    from audit.scales import calibrate as find_scale
    from audit.verdict import Expired
    from certificates import present

    if not _has_scale(family):
        return _calibrate_offered(console, limits(), goal, family, claim, sensitivity, given)
    try:
        with _as_options(), console.progress("calibrating") as progress:
            found = find_scale(
                family,
                claim,
                sensitivity=sensitivity,
                **counts,
                loss=given["loss"],
                decimals=given["decimals"],
                limits=limits(),
                progress=progress,
            )
    except Expired:
        console.result(*present.expired(claim))
        return EXIT_CODES[Verdict.INCONCLUSIVE]
    if goal is not None:
        evidence = {name: getattr(found, name) for name in ("refuted_below", "refutation", "float_sigma", "note")}
        goal.write(found.statement, found.decision, found.losses, **evidence)
    path = None if goal is None else goal.path
    console.result(present.calibration_document(found, path), present.calibration_block(found, path))
    return EXIT_CODES[found.decision.verdict]


@main.command()
@click.argument("spec")
@with_destination
@with_limits
@with_console
def certify(console: Console, limits: Clock, destination: Goal, spec: str) -> int:
    """Decide a claim that someone else made.

    SPEC is a TOML or JSON file with a mechanism and a claim about it. The certificate records what was found, whichever
    way it went.

    \b
    Example:
      audit certify claim.toml -o cert.json
    """
    from audit.decide import decide
    from audit.losses import enclose_losses
    from certificates import present
    from certificates.inputs import read_claim_file

    statement = read_claim_file(spec)
    goal = destination()
    with console.progress("proving") as progress:
        decision = decide(statement, limits(), progress)
    if goal is not None:
        goal.write(statement, decision, enclose_losses(statement.mechanism))
    path = None if goal is None else goal.path
    document = present.decision_document(statement, decision, path)
    console.result(document, present.decision_block(statement, decision, path))
    return EXIT_CODES[decision.verdict]


@main.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--second-opinion", "second", is_flag=True, help="Ask a checker that shares no code with the search too.")
@with_limits
@with_console
def verify(console: Console, limits: Clock, second: bool, paths: tuple[str, ...]) -> int:
    """Prove certificates again and check their signatures, before a release.

    PATH is a certificate, or a directory of them (its *.json files). Nothing in a certificate is believed but what it
    claims; a signature counts where `audit trust list` names its key. A certificate that no trusted key has signed
    cannot pass, and gets at most three seconds. With --second-opinion, D is enclosed by another route at shifts of its
    own choice, some of them random; it can only take a pass away.

    \b
    Example:
      audit verify cert.json certificates/
    """
    from datetime import UTC, datetime

    from certificates import present
    from certificates.files import read_bounded
    from certificates.inputs import certificate_paths
    from certificates.trust import TrustStore
    from certificates.verify import Outcome, verify_certificate

    if second:
        from certificates.second import ask, combined, opinion_document, opinion_line

    trusted = TrustStore()
    outcomes, documents = [], []
    for path, problem in certificate_paths(paths):
        opinion = None
        try:
            if problem is not None:
                raise problem
            with console.progress(path) as progress:
                data = read_bounded(path)
                strangers, now = limits(STRANGER_SECONDS), datetime.now(UTC)
                outcome = verify_certificate(data, trusted, limits(), progress, strangers=strangers, now=now)
            if second:
                opinion = ask(data, outcome, limits() if outcome.signature == "trusted" else limits(STRANGER_SECONDS))
                outcome = combined(outcome, opinion)
        except InputError as error:
            outcome = Outcome(None, None, UNUSABLE, str(error).removeprefix(f"{path}: "), None)
        outcomes.append(outcome)
        console.say(present.outcome_line(path, outcome))
        console.warn(path, outcome.warning)
        documents.append(present.outcome_document(path, outcome))
        if second:
            console.say(opinion_line(opinion))
            documents[-1] |= {"second_opinion": opinion_document(opinion)}
    code = min((outcome.exit_code for outcome in outcomes), key=PRECEDENCE.index)
    summary = present.outcomes_summary(outcomes)
    console.result({"certificates": documents, "exit_code": code}, summary)
    return code


@main.command()
@click.argument("path")
@with_console
def show(console: Console, path: str) -> int:
    """Print what a certificate records. Nothing is proved or checked: that is `audit verify`.

    \b
    Example:
      audit show cert.json
    """
    from certificates import present
    from certificates.canonical import strict_json
    from certificates.files import read_bounded

    document = strict_json(read_bounded(path), path)
    console.result(document, present.certificate_block(path, document))
    return 0


for command in (compare, grid, published, plot, report, release, compose, keygen, trust):
    main.add_command(command)


if __name__ == "__main__":
    main()
