"""``audit keygen`` and ``audit trust``: signing keys, and whose signatures count."""

from __future__ import annotations

from pathlib import Path

import click

from certificates.commands.options import with_console
from certificates.console import Console, ask_passphrase


@click.command()
@click.option("-o", "--output", metavar="FILE", help="A key in a file of its own, which is not yet trusted.")
@click.option("--passphrase", is_flag=True, help="Encrypt the key; asks for a passphrase, or takes AUDIT_PASSPHRASE.")
@with_console
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


@click.group()
def trust() -> None:
    """Whose signatures count: the public keys that you trust.

    \b
    Example:
      audit trust list
    """


@trust.command("add")
@click.argument("key")
@click.option("--name", required=True, help="What you call it.")
@with_console
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
@with_console
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
@with_console
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
