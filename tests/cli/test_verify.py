"""``audit verify``: many certificates, one line each, one exit code."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import certificates.verify
from certificates.verify import Outcome
from mechanisms.claims import read_statement
from tests.cli.support import ClaimFile, Refused, Run

STATEMENT = read_statement(
    {
        "mechanism": {"family": "gaussian", "sensitivity": "1", "sigma": "4.5"},
        "claim": {"kind": "direct", "epsilon": "1", "delta": "1e-6"},
    }
)
OUTCOMES = {
    "good": Outcome("verified", "trusted", 0, "proved", STATEMENT),
    "refuted": Outcome("refuted", "trusted", 1, "refuted: an event", STATEMENT),
    "contradicted": Outcome("verified", "trusted", 1, "verdict: the certificate records refuted", STATEMENT),
    "unsigned": Outcome("verified", "missing", 4, "not signed", STATEMENT),
    "stranger": Outcome("verified", "untrusted", 4, "signed by no key that you trust", STATEMENT),
    "malformed": Outcome(None, None, 2, "certificate: got nothing", None),
    "open": Outcome("inconclusive", "trusted", 3, "inconclusive: raise the limit on time", STATEMENT),
}


@pytest.fixture
def fakes(run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Files named by their outcome, which stands in for the re-proof."""

    def verify_certificate(data: bytes, *_: object, **__: object) -> Outcome:
        return OUTCOMES[data.decode()]

    monkeypatch.setattr(certificates.verify, "verify_certificate", verify_certificate)

    def fakes(*names: str, folder: str = "") -> list[str]:
        paths = [os.path.join(folder, f"{name}.json") for name in names]
        for path, name in zip(paths, names, strict=True):
            Path(path).write_text(name)
        return paths

    return fakes


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["good"], 0),
        (["good", "open"], 3),
        (["open", "malformed", "good"], 2),
        (["open", "malformed", "stranger"], 4),
        (["unsigned", "malformed"], 4),
        (["stranger", "refuted", "malformed", "open"], 1),
        (["contradicted", "unsigned"], 1),
    ],
)
def test_precedence(run: Run, fakes: Callable[..., list[str]], names: list[str], code: int) -> None:
    ran = run("verify", *fakes(*names), "--json")
    assert (ran.exit_code, ran.json["exit_code"]) == (code, code)
    assert [item["exit_code"] for item in ran.json["certificates"]] == [OUTCOMES[name].exit_code for name in names]


def test_json_says_what_was_found_of_each(run: Run, fakes: Callable[..., list[str]]) -> None:
    first, second = run("verify", *fakes("stranger", "malformed"), "--json").json["certificates"]
    assert first == {
        "path": "stranger.json",
        "verdict": "verified",
        "signature": "untrusted",
        "exit_code": 4,
        "reason": "signed by no key that you trust",
        "warning": None,
        "statement": STATEMENT.document(),
    }
    assert (second["verdict"], second["signature"], second["statement"]) == (None, None, None)


def test_one_line_each_and_a_summary(run: Run, fakes: Callable[..., list[str]]) -> None:
    ran = run("verify", *fakes(*OUTCOMES))
    *lines, summary = ran.stdout.splitlines()
    words = [line[:19].strip() for line in lines]
    assert words == [
        "verified",
        "refuted",
        "contradicted",
        "missing signature",
        "untrusted signature",
        "unusable",
        "inconclusive",
    ]
    assert all(f"{name}.json: " in line for name, line in zip(OUTCOMES, lines, strict=True))
    assert "(1, 1e-6)-differential privacy" in lines[0]
    assert summary.startswith("7 certificates: 1 verified, ")
    assert ran.stderr == ""


def test_the_word_of_a_certificate_that_failed_is_never_verified(run: Run, fakes: Callable[..., list[str]]) -> None:
    failed = [name for name, outcome in OUTCOMES.items() if outcome.exit_code]
    assert "verified" not in [line.split()[0] for line in run("verify", *fakes(*failed)).stdout.splitlines()]


def test_quiet(run: Run, fakes: Callable[..., list[str]]) -> None:
    ran = run("verify", *fakes("good", "stranger"), "--quiet")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (4, "", "")


def test_a_directory_is_its_json_files_in_order(run: Run, fakes: Callable[..., list[str]]) -> None:
    Path("folder/deeper.json").mkdir(parents=True)
    fakes("good", "open", "refuted", folder="folder")
    Path("folder/notes.txt").write_text("good")
    ran = run("verify", "folder", "--json")
    paths = [item["path"] for item in ran.json["certificates"]]
    assert paths == [f"folder/{name}.json" for name in ("deeper", "good", "open", "refuted")]
    assert "is a directory" in ran.json["certificates"][0]["reason"]
    assert ran.exit_code == 1


def test_an_empty_directory_is_an_error(run: Run, fakes: Callable[..., list[str]]) -> None:
    Path("empty").mkdir()
    ran = run("verify", *fakes("good"), "empty", "--json")
    assert ran.exit_code == 2
    assert ran.json["certificates"][1]["path"] == "empty"
    assert "without *.json files" in ran.json["certificates"][1]["reason"]


def test_a_directory_that_cannot_be_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def listdir(_: str) -> list[str]:
        raise PermissionError(13, "Permission denied")

    Path("closed").mkdir()
    with monkeypatch.context() as closed:
        closed.setattr("certificates.inputs.os.listdir", listdir)
        ran = run("verify", "closed", "--json")
    assert (ran.exit_code, ran.json["certificates"][0]["reason"].split(",")[0]) == (2, "got permission denied")


def test_what_cannot_be_read_does_not_stop_the_others(run: Run, fakes: Callable[..., list[str]]) -> None:
    os.mkfifo("pipe.json")
    Path("link.json").symlink_to("nowhere")
    with open("huge.json", "wb") as file:
        file.truncate(100_000_000)
    ran = run("verify", "missing.json", "pipe.json", "link.json", "huge.json", *fakes("good"))
    *lines, summary = ran.stdout.splitlines()
    reasons = ("no such file", "not a regular file", "no such file", "100000000 bytes")
    assert all(reason in line for reason, line in zip(reasons, lines, strict=False))
    assert summary == "5 certificates: 4 unusable, 1 verified"
    assert ran.exit_code == 2


def test_each_certificate_has_the_whole_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("time.monotonic", lambda: clock.now)
    expired = []

    def verify_certificate(
        data: bytes, trust: object, limits: certificates.verify.Limits, *_: object, **__: object
    ) -> Outcome:
        clock.now += 9
        expired.append(limits.expired())
        clock.now += 2
        expired.append(limits.expired())
        return OUTCOMES["good"]

    monkeypatch.setattr(certificates.verify, "verify_certificate", verify_certificate)
    Path("a.json").touch()
    run("verify", "a.json", "a.json", "--seconds", "10")
    assert expired == [False, True, False, True]


def test_a_spoiled_trust_store_stops_everything(refused: Refused, claim: ClaimFile, run: Run, audit_home: Path) -> None:
    run("certify", claim(), "-o", "cert.json")
    (audit_home / "trusted-keys.json").write_text("{")
    assert str(audit_home) in refused("verify", "cert.json")


def test_the_digits_of_sigma(run: Run, claim: ClaimFile) -> None:
    """Raised by hand: the claim still holds, but nobody signed it. Lowered: it is refuted, and that comes first."""
    run("certify", claim("4.2246788893268365"), "-o", "cert.json")
    text = Path("cert.json").read_text()
    statement: Callable[[str], str] = lambda sigma: text.replace('"4.2246788893268365"', f'"{sigma}"', 1)  # noqa: E731
    assert text != statement("5")
    Path("raised.json").write_text(statement("4.2246788893268366"))
    Path("lowered.json").write_text(statement("4.22"))
    assert run("verify", "cert.json").exit_code == 0
    assert run("verify", "lowered.json", "--json").json["certificates"][0]["verdict"] == "refuted"
    assert run("verify", "lowered.json").exit_code == 1
    raised = run("verify", "raised.json", "--json").json["certificates"][0]
    assert raised["signature"] == "invalid"
