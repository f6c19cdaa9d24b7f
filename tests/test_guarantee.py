"""docs/guarantee.md is kept true: its files are those marked as trusted, its tests exist, its letters are explained."""

from __future__ import annotations

import ast
import re
import string
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "guarantee.md").read_text(encoding="utf-8")
FOLDERS = ("mechanisms", "audit", "certificates")
FILE_ROW = re.compile(r"^\| `(\w+/\w+\.py)` \| (\d+) \|", re.MULTILINE)
TEST_ROW = re.compile(r"^\| ([a-z]) \| .* \|$", re.MULTILINE)
TEST_NAME = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def _is_trusted(path: Path) -> bool:
    return "(trusted)" in path.read_text(encoding="utf-8").split("\n", 1)[0]


def test_the_trusted_files_are_listed_with_their_lengths() -> None:
    trusted = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")) if _is_trusted(path)]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in trusted}
    assert {name: int(length) for name, length in FILE_ROW.findall(PAGE)} == lengths
    total = re.search(r"(\d+) files, (\d+) lines", PAGE)
    assert total is not None
    assert [int(number) for number in total.groups()] == [len(lengths), sum(lengths.values())]


def test_the_tests_that_are_named_exist() -> None:
    named = TEST_NAME.findall(PAGE)
    assert len(named) > 30
    for file, function in named:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{file}::{function}"


def test_every_letter_in_the_text_has_its_tests_and_every_test_its_letter() -> None:
    text, _, table = PAGE.partition("## Attacked by")
    used = set(re.findall(r"\*\*([a-z])\*\*", text))
    assert used == set(TEST_ROW.findall(table)) == set(string.ascii_lowercase)
    assert all(TEST_NAME.search(line) for line in table.splitlines() if TEST_ROW.match(line))
