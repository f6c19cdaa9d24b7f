"""Where cells are computed: processes of this machine, or a dask cluster, behind one kind of executor."""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from certificates.extras import optional
from mechanisms.numbers import InputError

Executor = concurrent.futures.Executor
DASK = "dask://"


@contextlib.contextmanager
def open_executor(jobs: int, address: str | None) -> Iterator[Executor]:
    """``jobs`` processes of this machine, or the workers of the dask scheduler at ``dask://HOST:PORT``.

    Left by an exception, it starts no more work. Raises InputError for another kind of address, and where dask is not
    installed or does not answer.
    """
    if address is None:
        # FLINT's precision belongs to a process, and a forked one inherits locks: every worker starts afresh.
        context = multiprocessing.get_context("spawn")
        with _closing(concurrent.futures.ProcessPoolExecutor(jobs, context, _start_worker)) as executor:
            yield executor
        return
    place = address.removeprefix(DASK)
    if place == address or not place:
        raise InputError("--executor", address, "dask://HOST:PORT")
    distributed = optional("distributed", "dask", "--executor")
    try:
        client = distributed.Client(f"tcp://{place}", timeout=10)
    except (OSError, ValueError) as error:
        raise InputError("--executor", address, f"a dask scheduler that answers ({error})") from None
    with client, _closing(client.get_executor()) as executor:
        yield executor


@contextlib.contextmanager
def _closing(executor: Any) -> Iterator[Executor]:
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        raise
    executor.shutdown()


def _start_worker() -> None:
    """An interrupt ends a worker without a traceback, and so does the end of the process that started it, however that
    comes about."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def compute(
    work: Callable[[Any], str],
    tasks: Sequence[Any],
    executor: Executor,
    done: Callable[[str], None],
) -> None:
    """``done(work(task))`` of every task, in the order in which they finish. Raises InputError where a worker dies."""
    futures = [executor.submit(work, task) for task in tasks]
    try:
        for future in concurrent.futures.as_completed(futures):
            done(future.result())
    except concurrent.futures.BrokenExecutor:
        raise InputError("workers", "one that died", "all to live; run it again") from None
    except BaseException:
        for future in futures:
            future.cancel()
        raise
