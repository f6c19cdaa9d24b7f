"""Signing keys, and whom to trust."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.cli.support import ClaimFile, Refused, Run


def test_a_first_key_is_made_and_said_so(run: Run, claim: ClaimFile, audit_home: Path) -> None:
    first = run("certify", claim(), "-o", "cert.json", "--json")
    assert (first.exit_code, first.json["certificate"]) == (0, "cert.json")
    key = audit_home / "signing-key.pem"
    assert first.stderr == f"audit: made your signing key, {key}, and trusted it\n"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = key.read_bytes()
    assert run("certify", claim(), "-o", "cert.json").stderr == ""
    assert key.read_bytes() == before
    verified = run("verify", "cert.json", "--json").json["certificates"][0]
    assert (verified["signature"], verified["exit_code"]) == ("trusted", 0)


def test_the_first_key_is_said_under_quiet_too(run: Run, claim: ClaimFile) -> None:
    assert "made your signing key" in run("certify", claim(), "-o", "cert.json", "--quiet").stderr


def test_no_key_is_made_where_nothing_is_signed(run: Run, claim: ClaimFile, audit_home: Path) -> None:
    run("certify", claim())
    assert not audit_home.exists()


def test_keygen_once(run: Run, refused: Refused, audit_home: Path) -> None:
    made = run("keygen", "--json")
    assert made.json["trusted"] is True
    assert made.json["path"] == str(audit_home / "signing-key.pem")
    key = Path(made.json["path"]).read_bytes()
    assert "a file that exists" in refused("keygen")
    assert Path(made.json["path"]).read_bytes() == key
    listed = run("trust", "list", "--json").json["keys"]
    assert [(item["keyid"], item["public"]) for item in listed] == [(made.json["keyid"], made.json["public"])]


def test_another_key_counts_once_it_is_trusted(run: Run, claim: ClaimFile) -> None:
    made = run("keygen", "-o", "team.pem", "--json").json
    assert made["trusted"] is False
    assert run("certify", claim(), "-o", "cert.json", "--key", "team.pem").exit_code == 0
    assert run("verify", "cert.json").exit_code == 4
    assert run("trust", "add", "--name", "team", made["public"]).exit_code == 0
    assert run("verify", "cert.json").exit_code == 0
    assert "team" in run("trust", "list").stdout
    assert run("trust", "remove", "team", "--json").json == {"name": "team", "keyid": made["keyid"]}
    assert run("verify", "cert.json").exit_code == 4
    assert run("trust", "list").stdout == "no key is trusted\n"


def test_trust_takes_a_public_key_in_a_file(run: Run, refused: Refused) -> None:
    from certificates.signing import PublicKey

    public = run("keygen", "-o", "team.pem", "--json").json["public"]
    Path("public.pem").write_bytes(PublicKey.from_text(public).pem())
    assert run("trust", "add", "public.pem", "--name", "team", "--json").json["public"] == public
    assert "a private key" in refused("trust", "add", "team.pem", "--name", "private")


def test_a_passphrase_from_the_environment(
    run: Run, refused: Refused, claim: ClaimFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDIT_PASSPHRASE", "correct horse")
    assert run("keygen", "--passphrase").exit_code == 0
    assert run("certify", claim(), "-o", "cert.json").exit_code == 0
    assert run("verify", "cert.json").exit_code == 0
    monkeypatch.setenv("AUDIT_PASSPHRASE", "wrong")
    assert "a passphrase that does not open it" in refused("certify", claim(), "-o", "again.json")
    monkeypatch.delenv("AUDIT_PASSPHRASE")
    assert "a terminal to ask for it" in refused("certify", claim(), "-o", "again.json")
    assert not Path("again.json").exists()


def test_an_empty_passphrase_is_refused(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDIT_PASSPHRASE", "")
    assert "an empty one" in refused("keygen", "--passphrase")
    assert "a terminal to ask for it" not in refused("keygen", "--passphrase")


def test_the_passphrase_is_asked_for_before_the_work(
    refused: Refused, claim: ClaimFile, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setenv("AUDIT_PASSPHRASE", "correct horse")
    run("keygen", "--passphrase")
    monkeypatch.setenv("AUDIT_PASSPHRASE", "wrong")
    monkeypatch.setattr("audit.decide.decide", lambda *_: pytest.fail("the work began"))
    refused("certify", claim(), "-o", "cert.json")


def test_a_key_in_a_device_needs_its_public_half(refused: Refused, claim: ClaimFile) -> None:
    message = refused("certify", claim(), "-o", "cert.json", "--key", "gcpkms:projects/none")
    assert "no public key" in message
