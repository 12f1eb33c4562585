"""What a build has done so far, and how it reads and writes one table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date

import pyspark.sql.functions as F
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame

from ..core.errors import StorageError
from ..core.landing import LIVE
from .checks import conforming, sound
from .dataset import Context, Dataset, Frames
from .manifest import ALL, Clusters, Manifest, Written
from .store import KEPT_WHEN_A_BUILD_DIES, Store, literal
from .tables import TABLES, Scope

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


def make(work: Work, dataset: Dataset, wanted: Clusters, context: Context) -> None:
    """Make a table anew: of these clusters or lineages, or all of it. Raises StorageError."""
    began, table = time.monotonic(), dataset.table
    with explained(f"table {table} cannot be made"):
        part = _part(dataset, wanted, context) if table in work.versions else None
        inputs = _inputs(work, dataset, wanted)
        rows = conforming(table, dataset.build(inputs, context))
        if part is None:
            work.versions[table] = work.store.overwrite(table, rows, work.build)
        else:
            kept = rows.where(part)
            work.versions[table] = work.store.replace(table, kept, work.build, part)
        count = _counted(work, table, part)
    _note(work, table, count, began)


def _part(dataset: Dataset, wanted: Clusters, context: Context) -> str | None:
    """SQL for the rows that are made anew, None: all."""
    about = TABLES[dataset.table]
    if about.scope in _NAMED and wanted is not ALL:
        return f"`{about.scope}` IN ({', '.join(map(literal, sorted(wanted)))})"
    if about.scope is Scope.APPENDED and "day" in about.key:
        return _day(context.as_of.date())
    return None


def _day(day: date) -> str:
    return f"`day` = DATE'{day.isoformat()}'"


def _inputs(work: Work, dataset: Dataset, wanted: Clusters) -> Frames:
    frames = {name: _input(work, name, dataset, wanted) for name in dataset.inputs}
    if dataset.builds and work.before:
        builds = [row["_build"] for row in dataset.builds(frames).collect()]
        frames[_ROWS] = frames[_ROWS].where(F.col("_build").isin(*builds))
    return frames


def _input(work: Work, name: str, dataset: Dataset, wanted: Clusters) -> DataFrame:
    """All rows, or those that have to do with these clusters or lineages."""
    frame, scope = work.read(name), TABLES[dataset.table].scope
    if scope not in _NAMED or wanted is ALL:
        return frame
    names = sorted(wanted)
    if TABLES[name].scope is scope or scope is Scope.LINEAGE:
        return frame.where(F.col(scope.value).isin(*names))
    if name in _BY_SCOPE_ID:
        ids = F.col("scope_id").isin(*_ids(work, names))
        return frame.where(_BY_SCOPE_ID[name](names, ids))
    return frame


def _ids(work: Work, names: Sequence[str]) -> list[str]:
    """Scope ids of these clusters; one that is in no register is named after its own."""
    known = work.read("cluster").where(F.col("cluster").isin(*names)).select("cluster_id")
    return [*names, *(row[0] for row in known.collect() if row[0] is not None)]


def _of_live(names: Sequence[str], others: Column) -> Column:
    """Rows of these clusters' snapshots, and whatever `others` says of states' and
    configurations'."""
    is_live = F.col("source") == LIVE
    return (is_live & F.col("subject").isin(*names)) | (~is_live & others)


_ROWS = "snapshot_raw"
_BY_SCOPE_ID: Mapping[str, Callable[[Sequence[str], Column], Column]] = {
    "audit_raw": lambda _, ids: ids,
    "snapshot": lambda names, _: _of_live(names, F.lit(True)),
    # Of an instance that was not reached yet only the snapshot may tell which cluster it is.
    _ROWS: lambda names, ids: _of_live(names, ids | F.col("scope_id").isNull()),
}
"""Which rows of a table that has no clusters' names have to do with these clusters."""
_NAMED = (Scope.CLUSTER, Scope.LINEAGE)
"""Scopes that are also the name of the column which tells what a row is about."""


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
