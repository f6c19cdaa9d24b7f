"""The command line: parse, call, print. One function a command.

Exit codes, also the order of precedence among several certificates: 1 refuted or contradicted, 4 a signature that does
not count, 2 unusable input, 3 inconclusive, 0 verified; 130 interrupted. Modules that are slow to import are imported
where they are used, so that ``audit --help`` is quick.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from audit.verdict import Limits, Verdict
from certificates.console import UNUSABLE, Console, Program, ask_passphrase, show_version, write
from mechanisms.numbers import InputError, nearest_float, read_count, read_positive

if TYPE_CHECKING:
    from certificates.destination import Destination
    from mechanisms.claims import Claim

EXIT_CODES = {Verdict.VERIFIED: 0, Verdict.REFUTED: 1, Verdict.INCONCLUSIVE: 3}
PRECEDENCE = (1, 4, UNUSABLE, 3, 0)
OPTION_OF = {"kind": "--claim", "family": "FAMILY", "K": "-K"}
"""The options that are not named as the parameter that they set."""

Command = Callable[..., int]
Clock = Callable[[], Limits]
"""Starts the time of one proof."""
Goal = Callable[[], "Destination | None"]
"""Looks at where the certificate goes; None where none is wanted."""
option = functools.partial(click.option, show_default=True)


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


def _with_console(command: Command) -> Command:
    """--json and --quiet; the command gets a ``console``."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
    @click.option("--quiet", is_flag=True, help="Print errors only; the exit code speaks.")
    @functools.wraps(command)
    def with_console(*, as_json: bool, quiet: bool, **parameters: Any) -> int:
        return command(console=Console(as_json, quiet), **parameters)

    return with_console


def _with_limits(command: Command) -> Command:
    """--seconds and --bits; the command gets ``limits``, a Clock."""

    @option("--seconds", default="60", metavar="T", help="Time for a proof; after it the answer is inconclusive.")
    @option("--bits", type=click.IntRange(64, 1 << 20), default=Limits.bits, metavar="B", help="Largest precision.")
    @functools.wraps(command)
    def with_limits(*, seconds: str, bits: int, **parameters: Any) -> int:
        allowed = nearest_float(read_positive(seconds, "--seconds"))

        def limits() -> Limits:
            end = time.monotonic() + allowed
            return Limits(bits=bits, expired=lambda: time.monotonic() > end)

        return command(limits=limits, **parameters)

    return with_limits


def _with_destination(command: Command) -> Command:
    """--output, --key and --public-key; the command gets ``destination``, to call when its arguments are good."""

    @click.option("-o", "--output", metavar="FILE", help="Write a signed certificate.")
    @click.option("--key", metavar="FILE|URI", help="Sign with this key, not with your own.")
    @click.option("--public-key", metavar="FILE|HEX", help="Public half of a --key that stays in its device.")
    @functools.wraps(command)
    def with_destination(*, output: str | None, key: str | None, public_key: str | None, **parameters: Any) -> int:
        if public_key is not None and key is None:
            raise InputError("--public-key", public_key, "--key with it")
        if key is not None and output is None:
            raise InputError("--key", key, "--output with it (a certificate is what is signed)")

        def destination() -> Destination | None:
            if output is None:
                return None
            from certificates.destination import Destination

            return Destination.prepare(
                output,
                key=key,
                public_key=public_key,
                passphrase=ask_passphrase,
                notice=lambda line: write(f"audit: {line}", err=True),
            )

        return command(destination=destination, **parameters)

    return with_destination


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
@_with_destination
@_with_limits
@_with_console
def calibrate(console: Console, limits: Clock, destination: Goal, family: str, **given: Any) -> int:
    """Find the smallest noise scale that keeps a promise, with a proof.

    FAMILY is gaussian, multi-gaussian or quasi-gaussian. The claim is proved at the scale that is printed, and refuted
    at the next double below it.

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
@_with_destination
@_with_limits
@_with_console
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
@_with_limits
@_with_console
def verify(console: Console, limits: Clock, paths: tuple[str, ...]) -> int:
    """Prove certificates again and check their signatures, before a release.

    PATH is a certificate, or a directory of them (its *.json files). Nothing in a certificate is believed but what it
    claims; a signature counts where `audit trust list` names its key.

    \b
    Example:
      audit verify cert.json certificates/
    """
    from certificates import present
    from certificates.files import read_bounded
    from certificates.inputs import certificate_paths
    from certificates.trust import TrustStore
    from certificates.verify import Outcome, verify_certificate

    trusted = TrustStore()
    outcomes = []
    for path, problem in certificate_paths(paths):
        try:
            if problem is not None:
                raise problem
            with console.progress(path) as progress:
                outcome = verify_certificate(read_bounded(path), trusted, limits(), progress)
        except InputError as error:
            outcome = Outcome(None, None, UNUSABLE, str(error).removeprefix(f"{path}: "), None)
        outcomes.append((path, outcome))
        console.say(present.outcome_line(path, outcome))
    code = min((outcome.exit_code for _, outcome in outcomes), key=PRECEDENCE.index)
    documents = [present.outcome_document(path, outcome) for path, outcome in outcomes]
    summary = present.outcomes_summary([outcome for _, outcome in outcomes])
    console.result({"certificates": documents, "exit_code": code}, summary)
    return code


@main.command()
@click.argument("path")
@_with_console
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


@main.command()
@click.option("-o", "--output", metavar="FILE", help="A key in a file of its own, which is not yet trusted.")
@click.option("--passphrase", is_flag=True, help="Encrypt the key; asks for a passphrase, or takes AUDIT_PASSPHRASE.")
@_with_console
def keygen(console: Console, output: str | None, passphrase: bool) -> int:
    """Make a signing key: yours, which you trust from now on, or another in a file.

    \b
    Example:
      audit keygen --passphrase
    """
    from certificates.signing import PublicKey, create_key_file
    from certificates.trust import create_signing_key

    secret = ask_passphrase(new=True) if passphrase else None
    if output is None:
        own = create_signing_key(passphrase=secret)
        signer, path = own.signer, str(own.path)
    else:
        signer, path = create_key_file(Path(output), secret), output
    public = PublicKey.of_signer(signer)
    document = {"path": path, "keyid": public.keyid, "public": public.text, "trusted": output is None}
    trusted = "trusted" if output is None else "not trusted: audit trust add"
    console.result(document, f"{path}\n  public key  {public.text}\n  keyid       {public.keyid}   {trusted}")
    return 0


@main.group()
def trust() -> None:
    """Whose signatures count: the public keys that you trust.

    \b
    Example:
      audit trust list
    """


@trust.command("add")
@click.argument("key")
@click.option("--name", required=True, help="What you call it.")
@_with_console
def trust_add(console: Console, key: str, name: str) -> int:
    """Trust a public key: KEY is its 64 hex digits, or a PEM file.

    \b
    Example:
      audit trust add --name "release team" release-team.pem
    """
    from certificates.signing import read_public_key
    from certificates.trust import TrustStore

    added = TrustStore().add(name, read_public_key(key))
    document = {"name": added.name, "keyid": added.key.keyid, "public": added.key.text}
    console.result(document, f"trusted: {added.name}   {added.key.keyid}")
    return 0


@trust.command("list")
@_with_console
def trust_list(console: Console) -> int:
    """List the trusted keys.

    \b
    Example:
      audit trust list --json
    """
    from certificates.trust import TrustStore

    keys = [{"name": item.name, "keyid": item.key.keyid, "public": item.key.text} for item in TrustStore().keys]
    lines = [f"{item['name']}\n  public key  {item['public']}\n  keyid       {item['keyid']}" for item in keys]
    console.result({"keys": keys}, "\n".join(lines) or "no key is trusted")
    return 0


@trust.command("remove")
@click.argument("name_or_keyid")
@_with_console
def trust_remove(console: Console, name_or_keyid: str) -> int:
    """Trust a key no longer, by its name or its identifier.

    \b
    Example:
      audit trust remove "release team"
    """
    from certificates.trust import TrustStore

    removed = TrustStore().remove(name_or_keyid)
    document = {"name": removed.name, "keyid": removed.key.keyid}
    console.result(document, f"no longer trusted: {removed.name}   {removed.key.keyid}")
    return 0


if __name__ == "__main__":
    main()
