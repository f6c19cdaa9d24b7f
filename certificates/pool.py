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

    Left by an exception, it starts no more work, and the processes end at once. Raises InputError for another kind of
    address, and where dask is not installed or does not answer.
    """
    if address is None:
        # FLINT's precision belongs to a process, and a forked one inherits locks: every worker starts afresh.
        context = multiprocessing.get_context("spawn")
        others = multiprocessing.active_children()
        with _unwinding_at_sigterm():
            executor = concurrent.futures.ProcessPoolExecutor(jobs, context, _start_worker)
            try:
                yield executor
            except BaseException:
                # Nobody waits for what they are working on, and Python would when it ends. What is not begun is not
                # cancelled: the thread that finds the workers gone would stumble over that, aloud.
                for worker in set(multiprocessing.active_children()).difference(others):
                    worker.terminate()
                executor.shutdown(wait=False)
                raise
            executor.shutdown()
        return
    place = address.removeprefix(DASK)
    if place == address or not place:
        raise InputError("--executor", address, "dask://HOST:PORT")
    distributed = optional("distributed", "dask", "--executor")
    try:
        client = distributed.Client(f"tcp://{place}", timeout=10)
    except (OSError, ValueError) as error:
        raise InputError("--executor", address, f"a dask scheduler that answers ({error})") from None
    with client:
        cluster = client.get_executor()
        try:
            yield cluster
        except BaseException:
            cluster.shutdown(wait=False)  # cancels what is not finished
            raise
        cluster.shutdown()


@contextlib.contextmanager
def _unwinding_at_sigterm() -> Iterator[None]:
    """SIGTERM leaves the block by SystemExit: ended at once, multiprocessing would complain on standard error."""
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

    def end(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    if ours:
        signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


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
    """``done(work(task))`` of every task, in the order in which they finish.

    Raises InputError where a worker dies, when all that was finished before is done.
    """
    futures = [executor.submit(work, task) for task in tasks]
    died = False
    for future in concurrent.futures.as_completed(futures):
        if isinstance(future.exception(), concurrent.futures.BrokenExecutor):
            died = True
        else:
            done(future.result())
    if died:
        raise InputError("workers", "one that died", "all to live; run it again")
