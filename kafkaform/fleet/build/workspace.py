"""The progress of one build, and how it reads and writes a table."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyspark.sql.functions as F
from deltalake.exceptions import DeltaError
from msgspec import Struct, field
from pyspark.sql import DataFrame

from ...core.errors import StorageError
from ...core.landing import LIVE
from ..spark.store import SPARK_ERRORS, TABLES_KEPT_AFTER_FAILURE, TableStore, quote_text
from ..tables.checks import check_rows, conform_rows
from ..tables.definitions import TABLES, BuildContext, Dataset, RebuildScope
from ..tables.manifest import ALL_CLUSTERS, Clusters, Manifest, Written
from ..tables.reader import Among

_MESSAGE_CHARACTERS = 500
"""How many characters of Spark's message an error shows."""
_ROWS = "snapshot_raw"
_COLUMN_SCOPES = (RebuildScope.CLUSTER, RebuildScope.LINEAGE)
"""Scopes that are also the name of the column by which rows are replaced."""


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
        condition = _make_part(dataset, scope_names, context) if table in work.versions else None
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


def _make_part(dataset: Dataset, scope_names: Clusters, context: BuildContext) -> str | None:
    """Return SQL for the rows that are replaced; None: all."""
    about = TABLES[dataset.table]
    if about.scope in _COLUMN_SCOPES and scope_names is not ALL_CLUSTERS:
        return f"`{about.scope}` IN ({', '.join(map(quote_text, sorted(scope_names)))})"
    if about.scope is RebuildScope.APPENDED and "day" in about.key:
        return f"`day` = DATE'{context.as_of.date().isoformat()}'"
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
    if TABLES[name].scope is scope or scope is RebuildScope.LINEAGE:
        return _read_among(work, name, {scope.value: names})
    if name == "audit_raw":
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
    except (*SPARK_ERRORS, DeltaError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        # The first line of a Py4J error only says that Java was called.
        cause = next((line[2:] for line in lines if line.startswith(": ")), lines[0])
        raise StorageError(
            f"{task}: {cause[:_MESSAGE_CHARACTERS]}",
            "The build before this one stays the current one. `kafkaform fleet doctor` checks "
            "disk, memory and Java.",
        ) from error
