"""``audit grid``: the same file however the run went; the paper's tables; a dask cluster."""

from __future__ import annotations

import csv
import importlib.util
import json
import time
from concurrent.futures import BrokenExecutor, Executor, Future
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from audit.verdict import Enclosure, Limits
from certificates import comparison, grid, pool
from certificates.comparison import Request, loss_of, make_row
from certificates.paper import CELLS, DELTAS, EPSILONS
from certificates.paper_tables import TABLES, improvement, write_tables
from mechanisms.numbers import InputError
from tests.cli.support import Program, Refused, Run

FAST = ("--families", "gaussian,truncated-laplace,laplace", "--jobs", "1")
PAIRS = [("1", "1e-6"), ("0.5", "0.01"), ("3", "0.1"), ("2", "1e-5"), ("5", "0.25"), ("10", "5e-7")]
TABLE_4 = json.loads((Path(__file__).parents[1] / "data" / "table-4.json").read_text(encoding="utf-8"))["cells"]
SPREAD = [3, 32, 70, 99, 119, 134]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text("epsilon,delta\n" + "".join(f"{e}, {d}\n" for e, d in PAIRS))
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What a run ends with that was not disturbed."""
    output = tmp_path_factory.mktemp("grid") / "whole.jsonl"
    cells = [(Fraction(e), Fraction(d)) for e, d in PAIRS]
    settings = grid.Settings(Fraction(1), 20, comparison.read_families(FAST[1]), 60.0, Limits.bits)
    grid.run(cells, settings, str(output), jobs=1, address=None)
    return output.read_bytes()


def test_one_line_a_cell_in_the_order_given(run: Run, pairs: Path) -> None:
    ran = run("grid", pairs, "-o", "out.jsonl", *FAST, "--json")
    assert (ran.exit_code, ran.json["cells"], ran.json["kept"]) == (0, 6, 0)
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [(line["epsilon"], Fraction(line["delta"])) for line in lines] == [(e, Fraction(d)) for e, d in PAIRS]
    first = lines[0]["mechanisms"]
    assert {row["family"] for row in first} == {"gaussian", "truncated-laplace", "laplace"}
    assert all(row["verdict"] == "verified" and row["least"] == ["l1", "l2"] for row in first)
    assert run("grid", pairs, "-o", "out.jsonl", *FAST, "--json").json["kept"] == 6


@pytest.mark.parametrize(("keep", "torn"), [(0, 1), (3, 0), (5, 300)])
def test_a_run_that_was_cut_off_ends_with_the_same_bytes(
    run: Run, pairs: Path, whole: bytes, keep: int, torn: int
) -> None:
    lines = whole.splitlines(keepends=True)
    Path("out.jsonl").write_bytes(b"".join(reversed(lines[:keep])) + lines[keep][:torn])
    ran = run("grid", pairs, "-o", "out.jsonl", *FAST, "--json")
    assert ran.json["kept"] == keep
    assert Path("out.jsonl").read_bytes() == whole


def test_a_run_that_is_killed_keeps_what_it_had_finished(run: Run, program: Program, pairs: Path, whole: bytes) -> None:
    out = pairs.parent / "killed.jsonl"
    with program("grid", pairs, "-o", out, *FAST) as process:
        end = time.monotonic() + 60
        while not (out.exists() and b"\n" in out.read_bytes()) and time.monotonic() < end:
            time.sleep(0.01)
        process.kill()
        process.communicate(timeout=20)
    assert process.returncode != 0
    finished = out.read_bytes().count(b"\n")
    ran = run("grid", pairs, "-o", out, *FAST, "--json")
    assert finished >= 1 and ran.json["kept"] == finished
    assert out.read_bytes() == whole


def test_a_worker_ends_with_the_process_that_started_it(program: Program, tmp_path: Path) -> None:
    code = (
        "import os, time\nfrom certificates.pool import open_executor\n"
        "with open_executor(1, None) as e:\n"
        "    print(e.submit(os.getpid).result(), flush=True)\n    os.kill(os.getpid(), 9)"
    )
    with program(before=code) as process:
        output, _ = process.communicate(timeout=30)
    end = time.monotonic() + 20
    while _runs(int(output)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _runs(int(output))


def _runs(process: int) -> bool:
    """Whether it is there and not a corpse that nobody has buried yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_json_list_of_pairs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pairs.json").write_text('[["1", "1e-6"], ["3", "1/10"]]')
    assert run("grid", "pairs.json", "-o", "out.jsonl", *FAST, "--json").json["verdicts"] == {"verified": 6}


def test_the_default_is_the_grid_of_the_paper() -> None:
    cells = grid.read_cells(None)
    assert (len(cells), len(EPSILONS), len(DELTAS)) == (150, 10, 15)
    assert cells[:2] == [(Fraction(1, 10), Fraction(5, 10**7)), (Fraction(1, 10), Fraction(1, 10**6))]


FILES = {
    "pair": ("pairs.csv", "1,2,3\n", "pairs.csv: line 1: got "),
    "twice": ("pairs.csv", "1,0.1\n1,1/10\n", "pairs.csv: line 2: got 1, 1/10, expected every pair once"),
    "epsilon": ("pairs.csv", "epsilon,delta\n-1,0.1\n", "pairs.csv: line 2: epsilon: got -1"),
    "delta": ("pairs.csv", "1,1\n", "pairs.csv: line 1: delta: got 1"),
    "empty": ("pairs.csv", "", "pairs.csv: got 0 pairs"),
    "bare-number": ("pairs.json", "[[1, 0.1]]", "quotes"),
    "not-a-list": ("pairs.json", "{}", "pairs.json: got dict, expected a list of pairs"),
    "not-pairs": ("pairs.json", '["1"]', "pairs.json: item 1: got 1, expected a pair"),
    "suffix": ("pairs.txt", "1,0.1", "pairs.txt: got a name that ends in '.txt'"),
}


@pytest.mark.parametrize(("name", "text", "message"), FILES.values(), ids=FILES)
def test_files_that_are_not_pairs(refused: Refused, tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    assert message in refused("grid", name, "-o", "out.jsonl", *FAST)
    assert not Path("out.jsonl").exists()


OUTPUTS = {
    "another-kind": (b"dear diary", "out.jsonl: got a file of another kind"),
    "another-kind-of-line": (b'{"a": 1}\n', "out.jsonl: line 1: got something else"),
    "not-json": (b"a\nb\n", "out.jsonl: line 1: got"),
}


@pytest.mark.parametrize(("data", "message"), OUTPUTS.values(), ids=OUTPUTS)
def test_an_output_that_holds_something_else_is_left_alone(
    refused: Refused, pairs: Path, data: bytes, message: str
) -> None:
    Path("out.jsonl").write_bytes(data)
    assert message in refused("grid", pairs, "-o", "out.jsonl", *FAST)
    assert Path("out.jsonl").read_bytes() == data


def test_cells_of_other_options_are_not_mixed(refused: Refused, pairs: Path, whole: bytes) -> None:
    Path("whole.jsonl").write_bytes(whole)
    message = refused("grid", pairs, "-o", "whole.jsonl", *FAST, "--sensitivity", "2")
    assert message.startswith("whole.jsonl: line 1: got a cell of other pairs or options, expected ")
    assert Path("whole.jsonl").read_bytes() == whole


ARGUMENTS = {
    "no-output": (("grid",), "--output: Missing option"),
    "folder": (("grid", "-o", "no/out.jsonl", *FAST), "no/out.jsonl: got no such file or directory, expected"),
    "table": (("grid", "-o", "out.jsonl", "--table", "t.pdf"), "--table: got t.pdf, expected a name that ends in"),
    "executor": (("grid", "-o", "o", "--executor", "ray://host:1"), "--executor: got ray://host:1, expected dask://"),
    "jobs": (("grid", "-o", "o", "--executor", "dask://host:1", "--jobs", "2"), "--jobs: got 2, expected none with"),
    "jobs-zero": (("grid", "-o", "o", "--jobs", "0"), "--jobs: Invalid value"),
}


@pytest.mark.parametrize(("arguments", "message"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments(refused: Refused, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(*arguments)


class _Dying(Executor):
    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(BrokenExecutor("gone"))
        return future


def test_a_worker_that_dies_is_said_in_one_line() -> None:
    with pytest.raises(InputError, match="workers: got one that died, expected all to live; run it again"):
        pool.compute(str, [1], _Dying(), lambda _: None)


@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="distributed (dask) is not installed")
@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_gives_the_same_bytes(run: Run, pairs: Path, whole: bytes) -> None:
    from distributed import LocalCluster

    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=1, threads_per_worker=2, processes=False, host="127.0.0.1", dashboard_address=None, protocol="tcp"
    ) as cluster:
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        ran = run("grid", pairs, "-o", "dask.jsonl", *FAST[:2], "--executor", address, "--json")
    assert (ran.exit_code, ran.json["kept"]) == (0, 0)
    assert Path("dask.jsonl").read_bytes() == whole


def test_without_dask_the_executor_is_refused(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "distributed" else find(name))
    message = refused("grid", "-o", "out.jsonl", "--executor", "dask://127.0.0.1:1")
    assert "--executor: got no distributed here, expected it installed: pip install" in message


def test_the_tables(tmp_path: Path) -> None:
    def row(family: str, l1: str, l2: str, least: tuple[str, ...] = ("l1", "l2"), K: int | None = None) -> Any:
        figures = {name: {"lower": value, "upper": value} for name, value in (("l1", l1), ("l2", l2))}
        return {"family": family, "verdict": "verified", "least": list(least), "K": K, **figures}

    line = {
        "epsilon": "3",
        "delta": "0.01",
        "mechanisms": [
            row("multi-gaussian", "0.28", "0.19", ("l1",), 7),
            row("multi-gaussian", "0.29", "0.18", ("l2",), 2),
            row("quasi-gaussian", "0.5", "0.9"),
            row("gaussian", "1", "0.72"),
            row("truncated-laplace", "0.3", "0.2"),
        ],
    }
    write_tables([line], str(tmp_path / "t.csv"))
    with (tmp_path / "t.csv").open() as file:
        rows = {found["table"]: found["3"] for found in csv.DictReader(file)}
    assert rows == {"3": "7", "4": "75.000000", "5": "50.000000", "6": "-20.000000", "7": "10.000000"}
    write_tables([line], str(tmp_path / "t.md"))
    text = (tmp_path / "t.md").read_text()
    assert "**Table 4.**" in text and "| δ \\ ε | 3 |\n| --- | --- |\n| 0.01 | 75.00% |" in text


def test_an_improvement_is_enclosed() -> None:
    old, new = Enclosure(Fraction(2), Fraction(4)), Enclosure(Fraction(1), Fraction(3))
    assert improvement(old, new) == Enclosure(Fraction(-100, 3), Fraction(75))
    assert [table.number for table in TABLES][:5] == ["3", "4", "5", "6", "7"]


def check_table_4(number: int) -> None:
    epsilon, delta, expected = TABLE_4[number]
    request = Request(Fraction(epsilon), Fraction(delta), Fraction(1), 20, ())
    found = {}
    for family in ("gaussian", "multi-gaussian", "quasi-gaussian"):
        row = make_row(family, request, "l2", Limits())
        assert row is not None and row.offer is not None and row.verdict.value == "verified"
        found[family] = loss_of(row.offer, "l2")
    best = min(found["multi-gaussian"], found["quasi-gaussian"], key=lambda loss: loss.upper)
    value = improvement(found["gaussian"], best)
    assert value.upper - value.lower < Fraction(1, 10**9)
    assert float(value.lower) == pytest.approx(float(expected), abs=1e-6)


def test_table_4_has_the_cells_of_the_paper() -> None:
    assert [tuple(row[:2]) for row in TABLE_4] == list(CELLS)


@pytest.mark.parametrize("number", SPREAD)
def test_table_4_in_a_spread_of_cells(number: int) -> None:
    check_table_4(number)


@pytest.mark.slow
@pytest.mark.parametrize("number", sorted(set(range(150)) - set(SPREAD)))
def test_table_4_in_all_other_cells(number: int) -> None:
    check_table_4(number)
