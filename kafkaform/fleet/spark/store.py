"""Read and write the tables of a root with Delta Lake.

    tables/<layer>/<table>/   one folder per table

Spark writes the tables; they are read as the Parquet files that Delta's log names, because asking
Spark's Delta reader costs more than reading a small table. Only SQL and DataFrames are used, so
that it works through Spark Connect, too: no RDDs, no `sparkContext`, no `DeltaTable` API. What a
dead build has left is taken back before the next one writes (`recover`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pyspark.sql.functions as F
from msgspec import Struct
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # has no stubs
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from ...core.errors import StorageError
from ..landed.log_lines import FILE
from ..landed.snapshots import escape_pattern
from ..tables import reader
from ..tables.checks import build_schema
from ..tables.definitions import TABLES
from ..tables.manifest import Manifest
from ..tables.reader import Among, count_rows, find_latest_version, list_files, restore_table
from .session import LandedBytes

TABLES_KEPT_AFTER_FAILURE = frozenset({"audit_raw"})
"""Tables that keep rows of dead builds. A topic is not read twice, because Spark's checkpoint has
moved on; readers of the table see a repeated line once."""
_SCHEMES: Mapping[str, str] = {"s3": "s3a", "gcs": "gs"}
"""Scheme -> what Hadoop calls it."""
_SECONDS_AN_HOUR = 3600
_PARTITION_COLUMNS: Mapping[str, Sequence[str]] = {"snapshot_raw": ("kind",)}
"""Columns by which a table is partitioned: a reader of one kind skips all others."""
_STATISTICS_COLUMNS = ("cluster", "lineage", "scope_id", "_build")
"""Columns with statistics, by which files are skipped. Collecting statistics for all columns took a
tenth of a small build."""
ROWS_A_FILE = 50_000
"""Rows per file of tables that are recomputed in part. `replaceWhere` rewrites every file that has
one of the replaced rows, so files must not be large."""

SPARK_ERRORS = (PySparkException, Py4JError)
"""Constraint violations and lost JVMs arrive as plain Py4JError."""
Start = Callable[[LandedBytes], SparkSession]
"""Returns the session, starting it if necessary."""


class TableStore(Struct, frozen=True):
    """The tables of one root."""

    spark: SparkSession
    root: str
    """A folder or a URL, as on the command line."""

    @property
    def landing(self) -> str:
        """The landing folder, as Spark names it."""
        return f"{hadoop_address(self.root)}/landing"

    def path(self, table: str) -> str:
        """Return a table's folder, as Spark names it."""
        return f"{hadoop_address(self.root)}/tables/{TABLES[table].layer}/{table}"

    def read(self, table: str, version: int | None, among: Among | None = None) -> DataFrame:
        """Read a table at a version. None: no rows, since there is no such table yet.

        among: skip files that can have no row with these values. The files that are read may have
        other rows, too, so filter afterwards.
        """
        path = self.path(table)
        names = () if version is None else list_files(self._folder(table), version, among)
        if not names:
            return self._make_empty(table)
        reader = self.spark.read.schema(build_schema(table)).option("basePath", path)
        # `basePath` keeps the partition columns, which are in the paths only. Files by name, not
        # the folder: it also has files of other versions.
        rows = reader.parquet(*(escape_pattern(f"{path}/{name}") for name in names))
        return rows.select(*TABLES[table].names)

    def count(self, table: str, version: int) -> int:
        """Return the number of rows of a table at a version."""
        return count_rows(self._folder(table), version)

    def append(self, table: str, rows: DataFrame, build: str) -> int:
        """Add rows; return the table's new version."""
        # mergeSchema: a later version may add nullable columns to a table that exists.
        writer = _configure_new(table, rows.write.format("delta").mode("append"))
        return self._save(table, writer.option("mergeSchema", "true"), build)

    def overwrite(self, table: str, rows: DataFrame, build: str) -> int:
        """Replace all rows; return the table's new version."""
        writer = _configure_new(
            table, _lay_out(table, rows).write.format("delta").mode("overwrite")
        )
        return self._save(table, _limit_file_rows(writer).option("overwriteSchema", "true"), build)

    def replace(self, table: str, rows: DataFrame, build: str, condition: str) -> int:
        """Replace the rows for which `where` (SQL) is true; return the table's new version."""
        writer = _lay_out(table, rows).write.format("delta").mode("overwrite")
        # replaceWhere is one atomic commit, unlike DELETE and INSERT. Delta rejects rows that do
        # not meet `where`, so a dataset cannot write into clusters that it was not asked for.
        return self._save(table, _limit_file_rows(writer).option("replaceWhere", condition), build)

    def latest(self, table: str) -> int | None:
        """Return the newest version of a table, whoever wrote it; None: there is no such table."""
        return find_latest_version(self._folder(table))

    def has_same_rows(self, table: str, version: int, other_version: int | None) -> bool:
        """True if two versions consist of the same files: OPTIMIZE and VACUUM make versions without
        new rows."""
        if other_version is None or version == other_version:
            return version == other_version
        folder = self._folder(table)
        return list_files(folder, version) == list_files(folder, other_version)

    def recover(self, manifest: Manifest | None, dead_builds: Sequence[str]) -> Mapping[str, int]:
        """Take back what was written after this build; return the new versions of the tables
        concerned.

        dead_builds: names of the builds that wrote it. Of TABLES_KEPT_AFTER_FAILURE only rows from
        landing files are removed, because those files will be read again.
        """
        taken_back: dict[str, int] = {}
        for table, written in (manifest.tables if manifest else {}).items():
            if table in TABLES_KEPT_AFTER_FAILURE or self.latest(table) == written.version:
                continue
            taken_back[table] = restore_table(self._folder(table), written.version)
        for table in TABLES_KEPT_AFTER_FAILURE if dead_builds else ():
            if self.latest(table) is not None:
                # By build, not by version: a topic's rows may lie between two commits of files.
                builds = ", ".join(map(quote_text, dead_builds))
                of_files = f"origin = {quote_text(FILE)} AND _build IN ({builds})"
                self.spark.sql(f"DELETE FROM {self._name(table)} WHERE {of_files}")
        return taken_back

    def _make_empty(self, table: str) -> DataFrame:
        """Return a frame without rows. Written in SQL: Spark then knows that it is empty and
        removes joins with it."""
        columns = (f"CAST(NULL AS {c.type}) AS `{c.name}`" for c in TABLES[table].columns)
        return self.spark.sql(f"SELECT {', '.join(columns)} WHERE false")

    def _name(self, table: str) -> str:
        return f"delta.`{self.path(table).replace('`', '``')}`"

    def _folder(self, table: str) -> str:
        """Return a table's folder, as delta-rs names it."""
        return table_folder(self.root, table)

    def _save(self, table: str, writer: DataFrameWriter, build: str) -> int:
        """Commit; return the version. Without new rows Delta may make none: then it stays the
        same."""
        # For people: `DESCRIBE HISTORY` shows which build made a version.
        writer.option("userMetadata", build).save(self.path(table))
        # The lock of the root makes this safe: no other build commits in between.
        return self._require_version(table)

    def _require_version(self, table: str) -> int:
        latest = self.latest(table)
        if latest is None:
            raise StorageError(
                f"table {table}: nothing is there after it was written",
                "Check that nothing else removes files of the root.",
            )
        return latest


def table_folder(root: str, table: str) -> str:
    """Return a table's folder, as delta-rs names it."""
    return f"{root.rstrip('/')}/tables/{TABLES[table].layer}/{table}"


def vacuum(root: str, manifest: Manifest) -> None:
    """Remove files that neither this build nor later ones need. No reader may be using an earlier
    one."""
    # Retention is a time, but manifests name versions: an hour of margin covers clocks and long
    # commits.
    age = datetime.now(UTC) - datetime.fromisoformat(manifest.started)
    hours = math.ceil(age.total_seconds() / _SECONDS_AN_HOUR) + 1
    for table in manifest.tables:
        reader.vacuum(table_folder(root, table), hours)


def hadoop_address(root: str) -> str:
    """`s3://bucket/fleet/` -> `s3a://bucket/fleet`; a folder stays as it is."""
    scheme = urlsplit(root).scheme
    hadoop = _SCHEMES.get(scheme)
    return (hadoop + root.removeprefix(scheme) if hadoop else root).rstrip("/")


def quote_text(text: str) -> str:
    """Return the text as a Spark SQL literal."""
    # Spark's literals have backslash escapes, unlike standard SQL (`reader.quote_text`).
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _lay_out(table: str, rows: DataFrame) -> DataFrame:
    """Sort the rows so that each file has rows of few clusters: a reader of one cluster skips the
    other files, and a build that replaces few clusters rewrites few files."""
    definition = TABLES[table]
    first = [name for name in ("cluster", "lineage") if name in definition.names][:1]
    order = [*first, *(name for name in definition.key if name not in first)]
    if not order:
        return rows
    # All rows of a cluster go to one task. A huge cluster is one long task, but never many small
    # files: the small-file problem costs every later read.
    spread = rows.repartition(F.col(first[0])) if first else rows
    return spread.sortWithinPartitions(*order)


def _configure_new(table: str, writer: DataFrameWriter) -> DataFrameWriter:
    """Add what a new table is created with."""
    statistics = ",".join(name for name in _STATISTICS_COLUMNS if name in TABLES[table].names)
    # Statistics cannot be switched off; indexing zero columns comes closest.
    settings = (
        {"dataSkippingStatsColumns": statistics}
        if statistics
        else {"dataSkippingNumIndexedCols": "0"}
    )
    options = {f"delta.{name}": value for name, value in settings.items()}
    return writer.partitionBy(*_PARTITION_COLUMNS.get(table, ())).options(**options)


def _limit_file_rows(writer: DataFrameWriter) -> DataFrameWriter:
    return writer.option("maxRecordsPerFile", ROWS_A_FILE)
