"""``audit release``: nothing is drawn unless the certificate passes, and what is printed is a multiple of the grid."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import certificates.release
from tests.cli.support import ClaimFile, Refused, Run

GRID = Fraction(1, 2**20)


@pytest.fixture
def certificate(run: Run, claim: ClaimFile) -> Path:
    assert run("certify", claim(), "-o", "cert.json").exit_code == 0
    return claim().parent / "cert.json"


@pytest.fixture
def nothing_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(*_: Any, **__: Any) -> None:
        pytest.fail("a value was drawn")

    monkeypatch.setattr(certificates.release, "sampler", draw)


def test_calibrate_verify_release(run: Run) -> None:
    calibrated = run("calibrate", "multi-gaussian", "--epsilon", "1", "--delta", "0.01", "-K", "4", "-o", "cert.json")
    assert (calibrated.exit_code, run("verify", "cert.json").exit_code) == (0, 0)
    released = run("release", "cert.json", "--value", "41")
    assert (released.exit_code, released.stderr) == (0, "")
    first, *rows = released.stdout.splitlines()
    value = Fraction(first.removeprefix("released: "))
    assert (value / GRID).denominator == 1
    assert 0 < abs(value - 41) < 10  # 41 itself has probability 2^-20 or so
    assert [row.split()[0] for row in rows] == ["guarantee", "noise", "certificate"]


def test_json(run: Run, certificate: Path) -> None:
    ran = run("release", certificate, "--value", "-0.1", "--count", "50", "--grid", "1/4", "--json")
    assert ran.json["grid"] == "0.25"
    assert ran.json["certificate"] == str(certificate)
    assert (ran.json["verdict"], ran.json["signature"], ran.json["exit_code"]) == ("verified", "trusted", 0)
    assert ran.json["statement"]["mechanism"]["sigma"] == "4.5"
    values = [Fraction(value) for value in ran.json["values"]]
    assert len(values) == 50
    assert len(set(values)) > 10
    assert all((4 * value).denominator == 1 for value in values)


def test_each_of_several_values_is_a_release_and_it_says_so(run: Run, certificate: Path) -> None:
    assert (
        "3 releases; the certificate covers one" in run("release", certificate, "--value", "1", "--count", "3").stderr
    )
    assert run("release", certificate, "--value", "1", "--count", "1").stderr == ""


def test_a_value_from_standard_input_is_not_on_the_command_line(run: Run, certificate: Path) -> None:
    ran = run("release", certificate, "--value", "-", "--grid", "64", "--json", stdin="6400000\n")
    assert abs(Fraction(ran.json["values"][0]) - 6400000) <= 64


def test_standard_input_holds_one_value(refused: Refused, certificate: Path) -> None:
    error = refused("release", certificate, "--value", "-", stdin="31415\n92653\n")
    assert error.startswith("--value: ") and "31415" not in error
    assert refused("release", certificate, "--value", "-", stdin="").startswith("--value: ")


def test_digits_are_bounded(refused: Refused, certificate: Path) -> None:
    fine = ("--value", "1", "--count", "1000000", "--grid", "0x1p-1400")
    assert refused("release", certificate, *fine).startswith("--count: ")


@pytest.mark.usefixtures("nothing_drawn")
def test_a_certificate_that_does_not_pass_releases_nothing(run: Run, claim: ClaimFile, certificate: Path) -> None:
    document = json.loads(certificate.read_text())
    unsigned = certificate.with_name("unsigned.json")
    unsigned.write_text(json.dumps(document | {"signatures": []}))
    malformed = certificate.with_name("malformed.json")
    malformed.write_text("{}")
    assert run("certify", claim("4"), "-o", "refuted.json").exit_code == 1
    for name, code in (("unsigned.json", 4), ("malformed.json", 2), ("refuted.json", 1)):
        ran = run("release", name, "--value", "1")
        assert ran.exit_code == run("verify", name).exit_code == code
        assert "released" not in ran.stdout + ran.stderr
        shown = run("release", name, "--value", "1", "--json")
        assert (shown.exit_code, shown.json["values"], shown.json["grid"]) == (code, [], None)
    late = run("release", certificate, "--value", "1", "--seconds", "1e-9")
    assert late.exit_code == 3


@pytest.mark.usefixtures("nothing_drawn")
@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (("--value", "one"), "--value"),
        (("--value", "nan"), "--value"),
        (("--value", "1e17"), "--value"),
        (("--value", "-1e17"), "--value"),
        (("--value", ""), "--value"),
        (("--value", "1", "--grid", "0.1"), "--grid"),
        (("--value", "1", "--grid", "0"), "--grid"),
        (("--value", "1", "--grid", "-1"), "--grid"),
        (("--value", "1", "--count", "0"), "--count"),
        (("--value", "1", "--count", "1000001"), "--count"),
        (("--value", "1", "--count", "1.5"), "--count"),
        (("--value", "1", "--quiet"), "--quiet"),
        ((), "--value"),
    ],
)
def test_arguments_that_make_no_sense(
    refused: Refused, certificate: Path, arguments: tuple[str, ...], where: str
) -> None:
    assert refused("release", certificate, *arguments).startswith(f"{where}: ")


@pytest.mark.parametrize("value", ["31415926535897932384", "3141592653589793,5"])
def test_a_refused_value_is_not_repeated_in_the_error(refused: Refused, certificate: Path, value: str) -> None:
    assert "31415" not in refused("release", certificate, "--value", value)


@pytest.mark.usefixtures("nothing_drawn")
@pytest.mark.parametrize("arguments", [("--value", "3", "31415"), ("--value", "3", "-31415"), ("--value31415",)])
def test_parts_of_a_value_that_are_taken_for_other_arguments_are_not_repeated(
    run: Run, certificate: Path, arguments: tuple[str, ...]
) -> None:
    for also in ((), ("--json",)):
        ran = run("release", certificate, *arguments, *also)
        assert ran.exit_code == 2 and "may be secret" in ran.stdout + ran.stderr
        assert "31415" not in ran.stdout + ran.stderr


@pytest.mark.usefixtures("nothing_drawn")
def test_a_composition_is_not_one_mechanism(run: Run, refused: Refused, claim: ClaimFile) -> None:
    assert run("compose", claim(), "--delta", "1e-6", "-o", "together.json").exit_code == 0
    assert "composition" in refused("release", "together.json", "--value", "1")


def test_bits_that_repeat_themselves_are_refused(
    refused: Refused, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.urandom", bytes)
    assert refused("release", certificate, "--value", "1").startswith("random bits: ")
