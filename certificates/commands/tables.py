"""``audit compare``, ``audit grid`` and ``audit published``: mechanisms side by side."""

from __future__ import annotations

import os
from collections import Counter

import click

from audit.verdict import Limits
from certificates.commands.options import EXIT_CODES, Clock, option, with_console, with_limits
from certificates.console import Console
from mechanisms.numbers import InputError, nearest_float, read_count, read_delta, read_epsilon, read_positive

with_loss = option("--loss", type=click.Choice(["l1", "l2"]), default="l2", help="What is made small: E|X| or E X².")
with_max_K = option("--max-K", "largest", default="20", metavar="N", help="Largest K of a multi-Gaussian.")
with_sensitivity = option("--sensitivity", default="1", metavar="S", help="Of the query, in its unit.")
with_families = click.option("--families", metavar="A,B", help="Only these families.  [default: all]")


@click.command()
@click.option("--epsilon", required=True, metavar="E", help="Privacy loss, exact as typed: 0.1 is 1/10.")
@click.option("--delta", required=True, metavar="D", help="Failure probability, exact as typed.")
@with_sensitivity
@with_loss
@with_max_K
@with_families
@click.option("--plot", metavar="FILE", help="Draw the losses, into a .svg or .png (needs the extra plot).")
@with_limits
@with_console
def compare(
    console: Console,
    limits: Clock,
    epsilon: str,
    delta: str,
    sensitivity: str,
    loss: str,
    largest: str,
    families: str | None,
    plot: str | None,
) -> int:
    """Put every mechanism that can serve one promise side by side, with certified losses.

    Sorted by the loss, the best marked, over all and among those whose noise is not bounded. --seconds is for each
    family.

    \b
    Example:
      audit compare --epsilon 3 --delta 0.01
    """
    point = read_epsilon(epsilon, "--epsilon"), read_delta(delta, "--delta")
    unit, max_K = read_positive(sensitivity, "--sensitivity"), _read_max_K(largest)
    from audit.verdict import Verdict
    from certificates import bars
    from certificates import comparison as work

    if plot is not None:
        bars.check_path(plot)
    request = work.Request(*point, unit, max_K, work.read_families(families))
    with console.progress("comparing") as progress:
        found = work.compare(request, "l1" if loss == "l1" else "l2", limits, progress)
    if plot is not None and found.ranked:
        bars.draw(found, plot)
    console.result(work.comparison_document(found, plot), work.comparison_block(found, plot))
    done = Verdict.INCONCLUSIVE not in [row.verdict for row in found.rows]
    return EXIT_CODES[Verdict.VERIFIED if done and found.ranked else Verdict.INCONCLUSIVE]


def _read_max_K(text: str) -> int:
    from mechanisms.families import MAX_K

    largest = read_count(text, "--max-K", MAX_K)
    if largest == 0:
        raise InputError("--max-K", text, f"a whole number from 1 to {MAX_K}")
    return largest


@click.command()
@click.argument("file", required=False)
@click.option(
    "-o", "--output", required=True, metavar="OUT.jsonl", help="One JSON line a cell; taken up where it ends."
)
@click.option("--table", metavar="FILE", help="Tables 3 to 7 of the paper, into a .md or .csv.")
@click.option("--jobs", type=click.IntRange(1, 1024), metavar="N", help="Processes.  [default: one a processor]")
@click.option("--executor", metavar="dask://HOST:PORT", help="Compute on a dask cluster (needs the extra dask).")
@with_sensitivity
@with_max_K
@with_families
@option("--seconds", default="60", metavar="T", help="Time for a family's proof; after it the answer is inconclusive.")
@option("--bits", type=click.IntRange(64, 1 << 20), default=Limits.bits, metavar="B", help="Largest precision.")
@with_console
def grid(
    console: Console,
    file: str | None,
    output: str,
    table: str | None,
    jobs: int | None,
    executor: str | None,
    sensitivity: str,
    largest: str,
    families: str | None,
    seconds: str,
    bits: int,
) -> int:
    """Compare the mechanisms over many promises, in parallel.

    FILE lists pairs epsilon, delta (.csv or .json); without it, the paper's 150. Finished cells are kept in OUT: a run
    that was stopped is taken up by the same command, and ends with the same file.

    \b
    Example:
      audit grid -o grid.jsonl --table tables.md
    """
    unit, max_K = read_positive(sensitivity, "--sensitivity"), _read_max_K(largest)
    allowed = nearest_float(read_positive(seconds, "--seconds"))
    if executor is not None and jobs is not None:
        raise InputError("--jobs", str(jobs), "none with --executor (the cluster has its own)")
    from audit.verdict import Verdict
    from certificates import grid as work
    from certificates import paper_tables
    from certificates.comparison import read_families

    if table is not None:
        paper_tables.check_path(table)
    cells = work.read_cells(file)
    settings = work.Settings(unit, max_K, read_families(families), allowed, bits)
    with console.progress(f"{len(cells)} cells") as progress:
        done = work.run(cells, settings, output, jobs=jobs or os.cpu_count() or 1, address=executor, progress=progress)
    if table is not None:
        paper_tables.write_tables(done.lines, table)
    verdicts = Counter(row["verdict"] for line in done.lines for row in line["mechanisms"])
    document = {"output": output, "table": table, "cells": len(cells), "kept": done.kept, "verdicts": dict(verdicts)}
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items(), reverse=True))
    text = f"{len(cells)} cells in {output}, {done.kept} of them from before: {counts} offers"
    console.result(document, text if table is None else f"{text}\ntables: {table}")
    return EXIT_CODES[Verdict.INCONCLUSIVE if verdicts[Verdict.INCONCLUSIVE.value] else Verdict.VERIFIED]


@click.command()
@click.argument("file")
@with_max_K
@click.option("--jobs", type=click.IntRange(1, 1024), metavar="N", help="Processes.  [default: one a processor]")
@option("--seconds", default="60", metavar="T", help="Time for a figure; after it the answer is inconclusive.")
@option("--bits", type=click.IntRange(64, 1 << 20), default=Limits.bits, metavar="B", help="Largest precision.")
@with_console
def published(console: Console, file: str, largest: str, jobs: int | None, seconds: str, bits: int) -> int:
    """Judge printed improvements in E X²: attainable, refuted for every K, or inconclusive.

    FILE is a .csv with the columns epsilon, delta and percent (or a .json list alike); against names the benchmark,
    gaussian if left out.

    \b
    Example:
      audit published examples/published-figures.csv
    """
    max_K, allowed = _read_max_K(largest), nearest_float(read_positive(seconds, "--seconds"))
    from audit.verdict import Verdict
    from certificates import published as work

    figures = work.read_figures(file)
    with console.progress(f"{len(figures)} figures") as progress:
        found = work.judge_all(
            figures, max_K, seconds=allowed, bits=bits, jobs=jobs or os.cpu_count() or 1, progress=progress
        )
    console.result({"figures": found, "max_K": max_K}, work.published_block(found, max_K))
    words = {item["verdict"] for item in found}
    verdicts = (Verdict.REFUTED, Verdict.INCONCLUSIVE)
    return next((EXIT_CODES[verdict] for verdict in verdicts if work.WORDS[verdict] in words), 0)
