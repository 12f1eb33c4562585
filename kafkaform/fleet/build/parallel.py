"""Makes tables side by side, each after those that it is made from.

Most of making a small table is planning it, which keeps one core busy and the others idle.
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
"""How many tables are made at the same time."""


def make_together(
    datasets: Sequence[Dataset],
    make: Callable[[Dataset], None],
    begins: Callable[[Sequence[str], int], None],
    stop: Callable[[], object],
) -> None:
    """make: makes one table, in any thread; begins: told in this thread which tables are being
    made and how many are done; stop: ends whatever is being made, after the first error.

    Raises the first error, when nothing is being made any more.
    """
    by_name = {dataset.table: dataset for dataset in datasets}
    graph = TopologicalSorter({d.table: _list_before(d, by_name) for d in datasets})
    graph.prepare()
    ready: deque[str] = deque()
    running: dict[Future[None], str] = {}
    done = 0
    with ThreadPoolExecutor(WIDTH, "table") as pool:
        try:
            while graph.is_active():
                ready.extend(graph.get_ready())
                while ready and len(running) < WIDTH:
                    name = ready.popleft()
                    running[pool.submit(make, by_name[name])] = name
                    begins(tuple(running.values()), done)
                for each in wait(running, return_when=FIRST_COMPLETED).done:
                    each.result()
                    graph.done(running.pop(each))
                    done += 1
        except BaseException:
            stop()
            raise


def run_at_once(tasks: Sequence[Callable[[], T]], stop: Callable[[], object]) -> list[T]:
    """What each of few tasks gives, which do not need one another. Raises as `make_together`."""
    with ThreadPoolExecutor(WIDTH, "task") as pool:
        try:
            return [each.result() for each in [pool.submit(task) for task in tasks]]
        except BaseException:
            stop()
            raise


def _list_before(dataset: Dataset, names: dict[str, Dataset]) -> list[str]:
    return [name for name in dataset.inputs if name in names and name != dataset.table]
