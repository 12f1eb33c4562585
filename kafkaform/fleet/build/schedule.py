"""Choose the datasets to make, sort them by their inputs, and make several at the same time.

Most of the time of a small table goes into planning it in the driver, which keeps one core busy.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from difflib import get_close_matches
from graphlib import TopologicalSorter
from typing import TypeVar

from ...core.errors import UsageError
from ..tables.definitions import Dataset

SCOPE_TABLES = ("cluster", "lineage")
"""Tables that tell which clusters have new input."""
T = TypeVar("T")
WIDTH = min(3, os.cpu_count() or 1)
"""How many tables are made at the same time. More only compete for the driver's memory."""


def order_datasets(datasets: Iterable[Dataset]) -> tuple[Dataset, ...]:
    """Sort each dataset after its inputs, and SCOPE_TABLES with its inputs before all others."""
    by_name = {dataset.table: dataset for dataset in datasets}
    early = _find_needed(by_name, [name for name in SCOPE_TABLES if name in by_name])
    graph = {
        # A table that reads its own previous rows is not a cycle: it reads the previous build's
        # version.
        name: [i for i in dataset.inputs if i in by_name and i != name]
        for name, dataset in by_name.items()
    }
    names = tuple(TopologicalSorter(graph).static_order())
    return tuple(by_name[name] for name in sorted(names, key=lambda name: name not in early))


def select_datasets(datasets: Sequence[Dataset], only: Iterable[str]) -> tuple[Dataset, ...]:
    """Return the datasets of these tables and of all their inputs, in order; all if no name is
    given.

    Raises UsageError: a name is not that of a computed table.
    """
    by_name = {dataset.table: dataset for dataset in datasets}
    names = tuple(only)
    for name in names:
        if name not in by_name:
            suggestions = get_close_matches(name, by_name, 1)
            raise UsageError(
                f"--only {name}: there is no such table",
                f"Did you mean {suggestions[0]}?"
                if suggestions
                else f"There are {', '.join(sorted(by_name))}.",
            )
    # SCOPE_TABLES is always made: without it, nothing tells which clusters to recompute.
    chosen = _find_needed(by_name, [*names, *SCOPE_TABLES]) if names else by_name.keys()
    return order_datasets(by_name[name] for name in chosen)


def _find_needed(by_name: dict[str, Dataset], names: Iterable[str]) -> frozenset[str]:
    """Return these tables and everything that they are computed from."""
    needed: set[str] = set()
    ahead = [name for name in names if name in by_name]
    while ahead:
        name = ahead.pop()
        if name not in needed:
            needed.add(name)
            ahead += [i for i in by_name[name].inputs if i in by_name]
    return frozenset(needed)


def make_together(
    datasets: Sequence[Dataset],
    make: Callable[[Dataset], None],
    report_start: Callable[[Sequence[str], int], None],
    stop: Callable[[], object],
) -> None:
    """Make all tables.

    make: makes one table, in any thread; report_start: called in this thread with the tables that
    are being made and the number of finished ones; stop: aborts whatever is being made, after the
    first error.

    Raises the first error, once nothing is being made any more.
    """
    by_name = {dataset.table: dataset for dataset in datasets}
    graph = TopologicalSorter(
        {
            d.table: [name for name in d.inputs if name in by_name and name != d.table]
            for d in datasets
        }
    )
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
