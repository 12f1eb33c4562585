"""Make several tables at the same time, each after its inputs.

Most of the time of a small table goes into planning it in the driver, which keeps one core busy.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import TopologicalSorter
from typing import TypeVar

from ..tables.dataset import Dataset

T = TypeVar("T")
WIDTH = min(3, os.cpu_count() or 1)
"""How many tables are made at the same time. More only compete for the driver's memory."""


def make_together(
    datasets: Sequence[Dataset],
    make: Callable[[Dataset], None],
    report_start: Callable[[Sequence[str], int], None],
    stop: Callable[[], object],
) -> None:
    """Make all tables.

    make: makes one table, in any thread; begins: called in this thread with the tables that are
    being made and the number of finished ones; stop: aborts whatever is being made, after the first
    error.

    Raises the first error, once nothing is being made any more.
    """
    by_name = {dataset.table: dataset for dataset in datasets}
    graph = TopologicalSorter({d.table: _list_before(d, by_name) for d in datasets})
    graph.prepare()
    ready: deque[str] = deque()
    running: dict[Future[None], str] = {}
    finished = 0
    # Threads are enough: they wait for the JVM, so the GIL is free.
    with ThreadPoolExecutor(WIDTH, "table") as pool:
        try:
            while graph.is_active():
                ready.extend(graph.get_ready())
                while ready and len(running) < WIDTH:
                    name = ready.popleft()
                    running[pool.submit(make, by_name[name])] = name
                    report_start(tuple(running.values()), finished)
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    future.result()
                    graph.done(running.pop(future))
                    finished += 1
        except BaseException:
            # Spark does not notice that a Python thread gave up: its jobs must be interrupted, or
            # leaving the pool would wait for them.
            stop()
            raise


def run_at_once(tasks: Sequence[Callable[[], T]], stop: Callable[[], object]) -> list[T]:
    """Run a few independent tasks; return their results. Raises like `make_together`."""
    with ThreadPoolExecutor(WIDTH, "task") as pool:
        try:
            return [future.result() for future in [pool.submit(task) for task in tasks]]
        except BaseException:
            stop()
            raise


def _list_before(dataset: Dataset, names: dict[str, Dataset]) -> list[str]:
    return [name for name in dataset.inputs if name in names and name != dataset.table]
