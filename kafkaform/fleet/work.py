"""What a build has done so far, and how it reads and writes one table."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date

import pyspark.sql.functions as F
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from ..core.errors import StorageError
from ..core.landing import LIVE
from .checks import conforming, sound
from .dataset import Context, Dataset
from .manifest import ALL, Clusters, Manifest, Written
from .store import KEPT_WHEN_A_BUILD_DIES, Store, literal
from .tables import TABLES, Scope

_OF_SUBJECTS = ("snapshot", "snapshot_raw")
"""Bronze tables in which `subject` is a cluster where `source` is live."""
_SHOWN = 500
"""Characters of what Spark says."""


@dataclass
class Work:
    """versions: of all tables as they are now; written: by this build; before: None if this is
    the first one."""

    store: Store
    build: str
    before: Manifest | None
    versions: dict[str, int] = field(default_factory=dict)
    written: dict[str, Written] = field(default_factory=dict)

    def read(self, table: str) -> DataFrame:
        return self.store.read(table, self.versions.get(table))

    def read_before(self, table: str) -> DataFrame:
        """As the build before left it."""
        old = self.before.tables.get(table) if self.before else None
        return self.store.read(table, old.version if old else None)


def take(work: Work, table: str, rows: DataFrame) -> None:
    """Add rows to a bronze table."""
    began = time.monotonic()
    with explained(f"table {table} cannot be written"):
        # What is there without being in a build is of a first build that died.
        fresh = table not in work.versions and table not in KEPT_WHEN_A_BUILD_DIES
        add = work.store.overwrite if fresh else work.store.append
        work.versions[table] = add(table, conforming(table, rows), work.build)
        kept = work.read(table)
        count = sound(table, kept) if TABLES[table].key else kept.count()
    _note(work, table, count, began)


def make(work: Work, dataset: Dataset, clusters: Clusters, context: Context) -> None:
    """Make a table anew, for these clusters or for all. Raises StorageError."""
    began, table = time.monotonic(), dataset.table
    with explained(f"table {table} cannot be made"):
        part = _part(dataset, clusters, context) if table in work.versions else None
        inputs = {name: _input(work, name, dataset, clusters) for name in dataset.inputs}
        rows = conforming(table, dataset.build(inputs, context))
        if TABLES[table].scope is Scope.APPENDED and part is None and table in work.versions:
            work.versions[table] = _add(work, table, rows)
        elif part is None:
            work.versions[table] = work.store.overwrite(table, rows, work.build)
        else:
            kept = rows.where(part)
            work.versions[table] = work.store.replace(table, kept, work.build, part)
        count = _counted(work, table, part)
    _note(work, table, count, began)


def _part(dataset: Dataset, clusters: Clusters, context: Context) -> str | None:
    """SQL for the rows that are made anew, None: all."""
    about = TABLES[dataset.table]
    if about.scope is Scope.CLUSTER and clusters is not ALL:
        return f"`cluster` IN ({', '.join(map(literal, sorted(clusters)))})"
    if about.scope is Scope.APPENDED and "day" in about.key:
        return _day(context.as_of.date())
    return None


def _day(day: date) -> str:
    return f"`day` = DATE'{day.isoformat()}'"


def _input(work: Work, name: str, dataset: Dataset, clusters: Clusters) -> DataFrame:
    """All rows, or those that have to do with these clusters."""
    frame = work.read(name)
    if TABLES[dataset.table].scope is not Scope.CLUSTER or clusters is ALL:
        return frame
    if TABLES[name].scope is Scope.CLUSTER:
        return frame.where(F.col("cluster").isin(*sorted(clusters)))
    if name in _OF_SUBJECTS:
        of_others = (F.col("source") == LIVE) & ~F.col("subject").isin(*sorted(clusters))
        return frame.where(~of_others)
    return frame


def _add(work: Work, table: str, rows: DataFrame) -> int:
    """Append what has a key that is not there yet."""
    there = work.read(table).select(*TABLES[table].key)
    fresh = rows.join(there, on=list(TABLES[table].key), how="left_anti")
    return work.store.append(table, fresh.select(*TABLES[table].names), work.build)


def _counted(work: Work, table: str, part: str | None) -> int:
    """Rows of the whole table. Checked are those that are new."""
    rows = work.read(table)
    if part is None:
        return sound(table, rows)
    sound(table, rows.where(part))
    return rows.count()


def _note(work: Work, table: str, rows: int, began: float) -> None:
    seconds = round(time.monotonic() - began, 3)
    work.written[table] = Written(work.versions[table], rows, seconds)


@contextmanager
def explained(task: str) -> Iterator[None]:
    """What Spark raises becomes a StorageError."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise StorageError(
            f"{task}: {lines[0][:_SHOWN]}",
            "The build before this one stays the current one. `kafkaform fleet doctor` checks "
            "disk, memory and Java.",
        ) from error
