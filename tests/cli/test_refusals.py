"""Bad input: exit code 2 and one line that says what was got, what was expected, and where."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.support import ClaimFile, Refused, Run

GAUSSIAN = ("calibrate", "gaussian", "--epsilon", "1", "--delta", "1e-6")
MULTI = ("calibrate", "multi-gaussian", "--epsilon", "1", "--delta", "0.01")

ARGUMENTS = {
    "unknown-option": (("calibrate", "--foo"), "calibrate: No such option"),
    "unknown-option-of-the-program": (("--foo",), "No such option"),
    "unknown-command": (("prove",), "No such command"),
    "no-epsilon": (("calibrate", "gaussian", "--delta", "1e-6"), "--epsilon: Missing option"),
    "no-delta": (("calibrate", "gaussian", "--epsilon", "1"), "--delta: Missing option"),
    "no-spec": (("certify",), "SPEC: Missing argument"),
    "no-path": (("verify",), "PATH"),
    "numbers-by-position": (("calibrate", "gaussian", "1", "1e-6"), "--epsilon: Missing option"),
    "family": (("calibrate", "cauchy", *GAUSSIAN[2:]), "FAMILY: got cauchy, expected one of gaussian,"),
    "epsilon-text": ((*GAUSSIAN, "--epsilon", "one"), "--epsilon: got one, expected a number"),
    "epsilon-negative": ((*GAUSSIAN, "--epsilon", "-1"), "--epsilon: got -1, expected a number"),
    "epsilon-huge": ((*GAUSSIAN, "--epsilon", "1e999999999"), "--epsilon: got 1e999999999, expected an exponent"),
    "epsilon-nan": ((*GAUSSIAN, "--epsilon", "nan"), "--epsilon: got nan"),
    "epsilon-long": ((*GAUSSIAN, "--epsilon", "1" * 100_000), "--epsilon: got 1111"),
    "epsilon-escape": ((*GAUSSIAN, "--epsilon", "\x1b[31m\n1"), "--epsilon: got �[31m�1"),
    "delta-zero": (("calibrate", "gaussian", "--epsilon", "1", "--delta", "0"), "--delta: got 0, expected"),
    "delta-one": ((*GAUSSIAN, "--delta", "1"), "--delta: got 1, expected a number in [0, 1)"),
    "sensitivity-zero": ((*GAUSSIAN, "--sensitivity", "0"), "--sensitivity: got 0, expected a number greater than 0"),
    "claim": ((*GAUSSIAN, "--claim", "renyi"), "--claim: got renyi, expected one of direct,"),
    "claim-of-another-family": ((*GAUSSIAN, "--claim", "theorem-4.2"), "--claim: got theorem-4.2 of gaussian"),
    "eta-missing": ((*GAUSSIAN, "--claim", "theorem-3.2"), "--eta: got nothing, expected a number between 0 and 1"),
    "eta-not-asked-for": ((*GAUSSIAN, "--eta", "0.1"), "--eta: got 0.1, expected none with --claim direct"),
    "eta-one": ((*GAUSSIAN, "--claim", "theorem-3.2", "--eta", "1"), "--eta: got 1, expected a number between"),
    "K-of-a-gaussian": ((*GAUSSIAN, "-K", "3"), "-K: got 3, expected none: gaussian"),
    "K-text": ((*MULTI, "-K", "four"), "-K: got four, expected a whole number"),
    "K-huge": ((*MULTI, "-K", "1000000000"), "-K: got 1000000000, expected a whole number from 0 to"),
    "max-K-with-a-K": ((*MULTI, "-K", "4", "--max-K", "9"), "--max-K: got 9, expected -K auto with it"),
    "max-K-of-a-gaussian": ((*GAUSSIAN, "--max-K", "9"), "--max-K: got 9, expected -K auto with it"),
    "max-K-zero": ((*MULTI, "--max-K", "0"), "-K: got no candidates"),
    "loss": ((*MULTI, "--loss", "l3"), "--loss: Invalid value"),
    "decimals": ((*GAUSSIAN, "--decimals", "99"), "--decimals: got 99, expected a whole number from 0 to"),
    "decimals-text": ((*GAUSSIAN, "--decimals", "two"), "--decimals: Invalid value"),
    "seconds-zero": ((*GAUSSIAN, "--seconds", "0"), "--seconds: got 0, expected a number greater than 0"),
    "seconds-nan": ((*GAUSSIAN, "--seconds", "nan"), "--seconds: got nan"),
    "bits": ((*GAUSSIAN, "--bits", "3"), "--bits: Invalid value"),
    "key-without-output": ((*GAUSSIAN, "--key", "key.pem"), "--key: got key.pem, expected --output with it"),
    "public-key-without-key": ((*GAUSSIAN, "--public-key", "ab", "-o", "c.json"), "--public-key: got ab, expected"),
    "key-missing": ((*GAUSSIAN, "--key", "key.pem", "-o", "c.json"), "key.pem: got no such file or directory"),
    "output-folder-missing": ((*GAUSSIAN, "-o", "no/cert.json"), "no/cert.json: got a path where no file can be"),
    "output-is-a-folder": ((*GAUSSIAN, "-o", "."), ".: got a path where no file can be written"),
    "output-is-a-device": ((*GAUSSIAN, "-o", os.devnull), f"{os.devnull}: got a path where no file can be written"),
    "claim-file-missing": (("certify", "no.toml"), "no.toml: got no such file or directory"),
    "claim-file-suffix": (("certify", "claim.yaml"), "claim.yaml: got a name that ends in '.yaml', expected one"),
    "show-missing": (("show", "no.json"), "no.json: got no such file or directory"),
    "trust-nonsense": (("trust", "add", "--name", "me", "abc"), "abc: got no such file or directory"),
    "trust-small-order": (("trust", "add", "--name", "me", "01" + "00" * 31), "a key that is not of small order"),
    "trust-unknown": (("trust", "remove", "nobody"), "trust store: got nobody, expected the name or the identifier"),
    "trust-no-name": (("trust", "add", "00" * 32), "--name: Missing option"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments(refused: Refused, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(*arguments)


@pytest.mark.parametrize("name", ["delta-zero", "family", "no-epsilon", "bits", "unknown-option", "claim-file-missing"])
def test_arguments_under_json_are_one_object(run: Run, name: str) -> None:
    arguments, message = ARGUMENTS[name]
    ran = run(*arguments, "--json")
    assert (ran.exit_code, ran.stderr) == (2, "")
    assert ran.json.keys() == {"error", "where"}
    where, _, error = message.partition(": ")
    assert ran.json["where"].removeprefix("audit ") == where
    assert error in ran.json["error"]


def test_errors_are_printed_under_quiet_too(refused: Refused) -> None:
    assert refused("certify", "no.toml", "--quiet")


def test_a_refused_calibration_makes_no_key(refused: Refused, audit_home: Path) -> None:
    refused("calibrate", "gaussian", "--epsilon", "1", "--delta", "0", "-o", "cert.json")
    assert not audit_home.exists()


MECHANISM = '[mechanism]\nfamily = "gaussian"\nsensitivity = "1"\nsigma = "1"\n'
CLAIM = '[claim]\nkind = "direct"\nepsilon = "1"\ndelta = "0.1"\n'
TOML = {
    "empty": ("", "claim.toml: document.mechanism: got nothing, expected this field"),
    "not-toml": ("a b", "claim.toml: line 1, column 3: got expected '=' after a key"),
    "key-twice": (MECHANISM + CLAIM + 'delta = "0.2"\n', "claim.toml: line 9, column 14: got cannot overwrite a value"),
    "unknown-field": (MECHANISM + "scale = 1\n" + CLAIM, "claim.toml: mechanism.scale: got an unknown field"),
    "bare-real": (MECHANISM + CLAIM.replace('"0.1"', "0.1"), "a number in quotes"),
    "bare-huge-real": (MECHANISM + CLAIM.replace('"0.1"', "1e999999999"), "a number in quotes"),
    "huge-exponent": (MECHANISM + CLAIM.replace("0.1", "1e-999999999"), "claim.toml: claim.delta: got 1e-999999999"),
    "date": (MECHANISM + CLAIM.replace('"0.1"', "2020-01-01"), "claim.toml: claim.delta: got"),
    "megabyte": ("#" * 1_000_000, "claim.toml: got 1000000 bytes, expected at most"),
    "digits": (MECHANISM + CLAIM.replace('"0.1"', "9" * 100_000), "a whole number of thousands of digits"),
    "deep-list": ("x = " + "[" * 100_000, "claim.toml: got nesting too deep"),
    "deep-table": ("x = " + "{a=" * 50_000, "claim.toml: got nesting too deep"),
    "deep-key": (".".join("a" * 100_000) + " = 1", "claim.toml: got a key of more than 32 parts"),
    "deep-quoted-key": (".".join(['"a"'] * 50_000) + " = 1", "claim.toml: got a key of more than 32 parts"),
    "nul": ("\0", "claim.toml: line 1, column 1: got"),
    "long-field": (f"[{'a' * 100_000}]\n", "claim.toml: document."),
    "escape-in-field": ('"\\u001b[31m\\n" = 1\n', "claim.toml: document."),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), TOML.values(), ids=TOML)
def test_claim_files(refused: Refused, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "claim.toml").write_text(text)
    assert message in refused("certify", "claim.toml")


def test_a_claim_file_that_is_not_utf8(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "claim.toml").write_bytes(b"# \xff")
    assert "claim.toml: got byte 0xff at 2, expected a TOML document in UTF-8" in refused("certify", "claim.toml")


def test_a_json_claim_file_is_read_strictly(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "claim.json").write_text('{"mechanism": {}, "mechanism": {}, "claim": {}}')
    assert "this field twice" in refused("certify", "claim.json")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_nobody_writes_to_does_not_wait(refused: Refused, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "claim.toml")
    assert "something that is not a regular file" in refused("certify", "claim.toml")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root can read and write everything")
def test_files_that_permissions_close(refused: Refused, tmp_path: Path, claim: ClaimFile) -> None:
    path = claim()
    path.chmod(0)
    assert "permission denied" in refused("certify", path)
    path.chmod(0o600)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert "no file can be written" in refused("certify", path, "-o", closed / "cert.json")
