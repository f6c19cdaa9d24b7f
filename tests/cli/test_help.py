"""What the program says of itself."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from cli import main
from mechanisms.claims import CLAIMS
from mechanisms.families import FAMILIES, ScaledFamily
from tests.cli.support import Program, Run


def _commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name)


COMMANDS = list(_commands(main))


def test_the_commands_are_those_of_the_specification() -> None:
    expected = {"calibrate", "certify", "verify", "show", "compare", "grid", "published"}
    expected |= {"plot", "report", "release", "compose", "keygen", "trust"}
    assert {path[0] for path in COMMANDS if path} == expected
    assert {path[1] for path in COMMANDS if len(path) == 2} == {"add", "list", "remove"}


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_has_an_example_of_the_command_itself(run: Run, path: tuple[str, ...]) -> None:
    ran = run(*path, "--help")
    assert ran.exit_code == 0
    assert f"Example:\n    {' '.join(('audit', *path))}" in ran.stdout
    assert ran.stderr == ""


@pytest.mark.parametrize("path", [path for path in COMMANDS if path not in ((), ("trust",))], ids=" ".join)
def test_every_command_takes_json_and_quiet(run: Run, path: tuple[str, ...]) -> None:
    text = run(*path, "--help").stdout
    assert "--json" in text
    assert "--quiet" in text


def test_help_names_every_family_and_claim(run: Run) -> None:
    text = run("calibrate", "--help").stdout
    scaled = [name for name, known in FAMILIES.items() if issubclass(known, ScaledFamily)]
    assert all(name in text for name in [*scaled, *CLAIMS])


def test_version(run: Run) -> None:
    assert run("--version").stdout.startswith("audit, of sigmacert ")


def test_no_arguments_are_an_error_that_helps(run: Run) -> None:
    ran = run()
    assert ran.exit_code == 2
    assert ran.stdout == ""
    assert "Usage: audit" in ran.stderr


def test_help_does_not_import_what_is_slow(program: Program) -> None:
    code = "import atexit, sys\natexit.register(lambda: print(sorted({'numpy', 'scipy', 'flint'} & set(sys.modules))))"
    with program("--help", before=code) as process:
        output, _ = process.communicate(timeout=20)
    assert output.decode().splitlines()[-1] == "[]"
