"""What a build has done so far, and how it reads and writes one table."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date

import pyspark.sql.functions as F
from deltalake.exceptions import DeltaError
from msgspec import Struct, field
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # has no stubs
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from ...core.errors import StorageError
from ...core.landing import LIVE
from ..spark.store import KEPT_WHEN_A_BUILD_DIES, TableStore, quote_text
from ..tables.checks import check_rows, conform_rows
from ..tables.dataset import BuildContext, Dataset, Frames
from ..tables.definitions import TABLES, RebuildScope
from ..tables.delta_files import Among
from ..tables.manifest import ALL, Clusters, Manifest, Written

_SHOWN = 500
"""Characters of what Spark says."""


class BuildWorkspace(Struct):
    """versions: of all tables as they are now; written: by this build; before: None if this is
    the first one."""

    store: TableStore
    build: str
    before: Manifest | None
    versions: dict[str, int] = field(default_factory=dict)
    written: dict[str, Written] = field(default_factory=dict)

    def read(self, table: str, among: Among | None = None) -> DataFrame:
        """among: as `Store.read` has it."""
        return self.store.read(table, self.versions.get(table), among)

    def read_before(self, table: str) -> DataFrame:
        """As the build before left it."""
        old = self.before.tables.get(table) if self.before else None
        return self.store.read(table, old.version if old else None)


def take_rows(work: BuildWorkspace, table: str, rows: DataFrame) -> None:
    """Add rows to a bronze table."""
    began = time.monotonic()
    with explain_errors(f"table {table} cannot be written"):
        # What is there without being in a build is of a first build that died.
        fresh = table not in work.versions and table not in KEPT_WHEN_A_BUILD_DIES
        add = work.store.overwrite if fresh else work.store.append
        work.versions[table] = add(table, conform_rows(table, rows), work.build)
        if TABLES[table].key:
            check_rows(table, work.read(table))
        count = work.store.count(table, work.versions[table])
    _note_table(work, table, count, began)


def make_table(
    work: BuildWorkspace, dataset: Dataset, wanted: Clusters, context: BuildContext
) -> None:
    """Make a table anew: of these clusters or lineages, or all of it. Raises StorageError."""
    began, table = time.monotonic(), dataset.table
    with explain_errors(f"table {table} cannot be made"):
        part = _make_part(dataset, wanted, context) if table in work.versions else None
        inputs = _read_inputs(work, dataset, wanted)
        rows = conform_rows(table, dataset.build(inputs, context))
        if part is None:
            work.versions[table] = work.store.overwrite(table, rows, work.build)
        else:
            kept = rows.where(part)
            work.versions[table] = work.store.replace(table, kept, work.build, part)
        count = _count_rows(work, table, part, wanted)
    _note_table(work, table, count, began)


def _make_part(dataset: Dataset, wanted: Clusters, context: BuildContext) -> str | None:
    """SQL for the rows that are made anew, None: all."""
    about = TABLES[dataset.table]
    if about.scope in _NAMED and wanted is not ALL:
        return f"`{about.scope}` IN ({', '.join(map(quote_text, sorted(wanted)))})"
    if about.scope is RebuildScope.APPENDED and "day" in about.key:
        return _render_day(context.as_of.date())
    return None


def _render_day(day: date) -> str:
    return f"`day` = DATE'{day.isoformat()}'"


def _read_inputs(work: BuildWorkspace, dataset: Dataset, wanted: Clusters) -> Frames:
    frames = {n: _read_input(work, n, dataset, wanted) for n in dataset.inputs if n != _ROWS}
    if _ROWS in dataset.inputs:
        among: Among = {}
        if dataset.builds and work.before:
            among = {"_build": [row["_build"] for row in dataset.builds(frames).collect()]}
        frames[_ROWS] = _read_input(work, _ROWS, dataset, wanted, among)
    return frames


def _read_input(
    work: BuildWorkspace, name: str, dataset: Dataset, wanted: Clusters, among: Among | None = None
) -> DataFrame:
    """All rows, or those that have to do with these clusters or lineages."""
    scope = TABLES[dataset.table].scope
    if scope not in _NAMED or wanted is ALL:
        return _read_among(work, name, among or {})
    names = sorted(wanted)
    if TABLES[name].scope is scope or scope is RebuildScope.LINEAGE:
        return _read_among(work, name, {scope.value: names})
    if name == "audit_raw":
        return _read_among(work, name, {"scope_id": _list_ids(work, names)})
    rows = _read_among(work, name, among or {})
    if name in (_ROWS, "snapshot"):
        # Of an instance that was not reached yet only its snapshot may tell which cluster it is.
        theirs = F.lit(True)
        if name == _ROWS:
            theirs = F.col("scope_id").isNull() | F.col("scope_id").isin(*_list_ids(work, names))
        is_live = F.col("source") == LIVE
        return rows.where((is_live & F.col("subject").isin(*names)) | (~is_live & theirs))
    return rows


def _read_among(work: BuildWorkspace, name: str, among: Among) -> DataFrame:
    rows = work.read(name, among)
    for column, values in among.items():
        rows = rows.where(F.col(column).isin(*values))
    return rows


def _list_ids(work: BuildWorkspace, names: Sequence[str]) -> list[str]:
    """Scope ids of these clusters; one that is in no register is named after its own."""
    known = work.read("cluster").where(F.col("cluster").isin(*names)).select("cluster_id")
    return [*names, *(row[0] for row in known.collect() if row[0] is not None)]


_ROWS = "snapshot_raw"
_NAMED = (RebuildScope.CLUSTER, RebuildScope.LINEAGE)
"""Scopes that are also the name of the column which tells what a row is about."""


def _count_rows(work: BuildWorkspace, table: str, part: str | None, wanted: Clusters) -> int:
    """Rows of the whole table. Checked are those that are new."""
    if part is None:
        return check_rows(table, work.read(table))
    among = {TABLES[table].scope.value: sorted(wanted)} if wanted is not ALL else {}
    check_rows(table, work.read(table, among).where(part))
    return work.store.count(table, work.versions[table])


def _note_table(work: BuildWorkspace, table: str, rows: int, began: float) -> None:
    seconds = round(time.monotonic() - began, 3)
    work.written[table] = Written(work.versions[table], rows, seconds)


def _describe_error(error: Exception) -> str:
    """One line. Of what Java raised, the first only says that Java was called."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return next((line[2:] for line in lines if line.startswith(": ")), lines[0])[:_SHOWN]


@contextmanager
def explain_errors(task: str) -> Iterator[None]:
    """What Spark and Delta's readers raise becomes a StorageError."""
    try:
        yield
    except (PySparkException, Py4JError, DeltaError) as error:
        raise StorageError(
            f"{task}: {_describe_error(error)}",
            "The build before this one stays the current one. `kafkaform fleet doctor` checks "
            "disk, memory and Java.",
        ) from error
