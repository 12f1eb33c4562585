"""One build: the order in which it makes its tables, several at the same time, its progress, and
how it reads and writes a table.

Most of the time of a small table goes into planning it in the driver, which keeps one core busy.
"""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from difflib import get_close_matches
from graphlib import TopologicalSorter
from typing import TypeVar

import pyspark.sql.functions as F
from deltalake.exceptions import DeltaError
from msgspec import Struct, field
from pyspark.sql import DataFrame

from ...core.errors import StorageError, UsageError
from ...core.landing import LIVE
from ..spark.store import (
    SPARK_ERRORS,
    TABLES_KEPT_AFTER_FAILURE,
    TableStore,
    check_rows,
    conform_rows,
)
from ..tables.definitions import TABLES, BuildContext, Dataset, RebuildScope, quote_text
from ..tables.manifest import ALL_CLUSTERS, Clusters, Manifest, Written
from ..tables.reader import Among

_MESSAGE_CHARACTERS = 500
"""How many characters of Spark's message an error shows."""
_BAD_PATTERN = re.compile(r"regex parse error:\n +(.+)\n.*\nerror: (.+)")
"""Sail's error. Its regular expressions are those of Rust, Spark's those of Java."""
_TOO_DEEP = "MaxDepth"
"""In the error of protobuf."""
_ERRORS: tuple[type[Exception], ...] = (*SPARK_ERRORS, DeltaError)
_ROWS = "snapshot_raw"
_COLUMN_SCOPES = (RebuildScope.CLUSTER, RebuildScope.LINEAGE)
"""Scopes that are also the name of the column by which rows are replaced."""
SCOPE_TABLES = ("cluster", "lineage")
"""Tables that tell which clusters have new input."""
T = TypeVar("T")
WIDTH = min(3, os.cpu_count() or 1)
"""How many tables are made at the same time. More only compete for the driver's memory."""


class BuildWorkspace(Struct):
    """What a build has done so far."""

    store: TableStore
    build: str
    """Its name."""
    previous: Manifest | None
    """The current build; None: this is the first."""
    versions: dict[str, int] = field(default_factory=dict)
    """Table -> its version now."""
    written: dict[str, Written] = field(default_factory=dict)
    """The tables that this build has written."""

    def read(self, table: str, among: Among | None = None) -> DataFrame:
        """Read a table at its version now. among: as in `TableStore.read`."""
        return self.store.read(table, self.versions.get(table), among)

    def read_previous(self, table: str) -> DataFrame:
        """Read a table as the previous build left it."""
        old = self.previous.tables.get(table) if self.previous else None
        return self.store.read(table, old.version if old else None)


def take_rows(work: BuildWorkspace, table: str, rows: DataFrame) -> None:
    """Append rows to a bronze table. Raises StorageError."""
    start = time.monotonic()
    with explain_errors(f"table {table} cannot be written"):
        # Rows that belong to no build were left by a first build that died: overwrite them.
        is_new = table not in work.versions and table not in TABLES_KEPT_AFTER_FAILURE
        add = work.store.overwrite if is_new else work.store.append
        work.versions[table] = add(table, conform_rows(table, rows), work.build)
        # Appended rows are checked against the whole table: a key may repeat across builds.
        if TABLES[table].key:
            check_rows(table, work.read(table))
        count = work.store.count(table, work.versions[table])
    _note_table(work, table, count, start)


def make_table(
    work: BuildWorkspace, dataset: Dataset, scope_names: Clusters, context: BuildContext
) -> None:
    """Recompute a table for these clusters or lineages, or all of it. Raises StorageError."""
    start, table = time.monotonic(), dataset.table
    with explain_errors(f"table {table} cannot be made"):
        condition = _make_part(dataset, scope_names) if table in work.versions else None
        frames = {
            n: _read_input(work, n, dataset, scope_names) for n in dataset.inputs if n != _ROWS
        }
        if _ROWS in dataset.inputs:
            among: Among = {}
            if dataset.builds and work.previous:
                # The driver collects a few names of builds, so that whole folders of old rows are
                # not even listed.
                among = {"_build": [row["_build"] for row in dataset.builds(frames).collect()]}
            frames[_ROWS] = _read_input(work, _ROWS, dataset, scope_names, among)
        rows = conform_rows(table, dataset.build(frames, context))
        if condition is None:
            work.versions[table] = work.store.overwrite(table, rows, work.build)
        else:
            # The dataset may compute rows of other clusters on the way; `replaceWhere` would reject
            # those.
            replaced = rows.where(condition)
            work.versions[table] = work.store.replace(table, replaced, work.build, condition)
        count = _count_rows(work, table, condition, scope_names)
    _note_table(work, table, count, start)


def _make_part(dataset: Dataset, scope_names: Clusters) -> str | None:
    """Return SQL for the rows that are replaced; None: all."""
    about = TABLES[dataset.table]
    if about.scope in _COLUMN_SCOPES and scope_names is not ALL_CLUSTERS:
        return f"`{about.scope}` IN ({', '.join(map(quote_text, sorted(scope_names)))})"
    return None


def _read_input(
    work: BuildWorkspace,
    name: str,
    dataset: Dataset,
    scope_names: Clusters,
    among: Among | None = None,
) -> DataFrame:
    """Read the rows of one input that concern these clusters or lineages."""
    scope = TABLES[dataset.table].scope
    if scope not in _COLUMN_SCOPES or scope_names is ALL_CLUSTERS:
        return _read_among(work, name, among or {})
    names = sorted(scope_names)
    if scope is RebuildScope.LINEAGE and name in (_ROWS, "snapshot"):
        return _read_among(work, name, {**(among or {}), "subject": names})
    if TABLES[name].scope is scope or scope is RebuildScope.LINEAGE:
        return _read_among(work, name, {scope.value: names})
    if name in ("audit_raw", "declared_history"):
        return _read_among(work, name, {"scope_id": _list_ids(work, names)})
    rows = _read_among(work, name, among or {})
    if name in (_ROWS, "snapshot"):
        # A row without a scope id may still belong to one of these clusters: only the scopes of its
        # snapshot tell.
        is_of_scope = F.lit(True)
        if name == _ROWS:
            is_of_scope = F.col("scope_id").isNull() | F.col("scope_id").isin(
                *_list_ids(work, names)
            )
        is_live = F.col("source") == LIVE
        return rows.where((is_live & F.col("subject").isin(*names)) | (~is_live & is_of_scope))
    return rows


def _read_among(work: BuildWorkspace, name: str, among: Among) -> DataFrame:
    rows = work.read(name, among)
    # The store skips whole files only, so rows of other clusters in the same file remain to be
    # filtered.
    for column, values in among.items():
        rows = rows.where(F.col(column).isin(*values))
    return rows


def _list_ids(work: BuildWorkspace, names: Sequence[str]) -> list[str]:
    """Return these clusters' scope ids. A cluster that no register names is called by its scope
    id."""
    clusters = work.read("cluster").where(F.col("cluster").isin(*names)).select("cluster_id")
    # A semi join would do the same, but literals let Delta skip files by their statistics.
    return [*names, *(row[0] for row in clusters.collect() if row[0] is not None)]


def _count_rows(
    work: BuildWorkspace, table: str, condition: str | None, scope_names: Clusters
) -> int:
    """Check the rows that were written; return the number of rows of the whole table."""
    if condition is None:
        return check_rows(table, work.read(table))
    among = (
        {TABLES[table].scope.value: sorted(scope_names)} if scope_names is not ALL_CLUSTERS else {}
    )
    check_rows(table, work.read(table, among).where(condition))
    return work.store.count(table, work.versions[table])


def _note_table(work: BuildWorkspace, table: str, rows: int, start: float) -> None:
    seconds = round(time.monotonic() - start, 3)
    work.written[table] = Written(work.versions[table], rows, seconds)


@contextmanager
def explain_errors(task: str) -> Iterator[None]:
    """Turn what Spark and delta-rs raise into a StorageError."""
    try:
        yield
    except _ERRORS as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        # The first line of a Py4J error only says that Java was called.
        cause = next((line[2:] for line in lines if line.startswith(": ")), lines[0])
        if match := _BAD_PATTERN.search(str(error)):
            raise StorageError(
                f"{task}: Sail does not understand the pattern {match[1]}: {match[2]}",
                "Change the pattern in fleet.hcl, or use Spark: `--master local[*]`.",
            ) from error
        if _TOO_DEEP in cause:
            raise StorageError(
                f"{task}: a condition is nested too deeply for Spark Connect and Sail",
                "Write it as several rules of fleet.hcl, or use Spark: `--master local[*]`.",
            ) from error
        raise StorageError(
            f"{task}: {cause[:_MESSAGE_CHARACTERS]}",
            "The build before this one stays the current one. `kafkaform fleet doctor` checks "
            "disk, memory and Java.",
        ) from error


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
