"""The tables of a root, as Delta Lake has them.

    tables/<layer>/<table>/   one folder a table

They are written by Delta Lake, and read as the files that its log names: to ask for those through
Spark costs more than to read a small table. Only SQL and DataFrames are used, so that it works
behind Spark Connect too. What a build that died
has left is taken back before the next one writes (`recover`): no build adds rows to those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pyspark.sql.functions as F
from msgspec import Struct
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from ...core.errors import StorageError
from ..landed.cluster_names import escape_pattern
from ..landed.log_lines import FILE
from ..tables import delta_files
from ..tables.definitions import TABLES
from ..tables.delta_files import Among, count_rows, find_latest_version, list_files, restore_table
from ..tables.manifest import Manifest
from ..tables.schemas import build_schema
from .session import LandedBytes

KEPT_WHEN_A_BUILD_DIES = frozenset({"audit_raw"})
"""A topic's lines are not read twice, and who reads the table sees a repeated line once."""
_SCHEMES: Mapping[str, str] = {"s3": "s3a", "gcs": "gs"}
"""What Hadoop calls stores that others call otherwise."""
_SECONDS_AN_HOUR = 3600
_FOLDERS: Mapping[str, Sequence[str]] = {"snapshot_raw": ("kind",)}
"""Columns that have a folder for each value: who wants one kind reads no other."""
_SOUGHT = ("cluster", "lineage", "scope_id", "_build")
"""Columns by which files are passed over. To note the least and the greatest value of the others
too, which nobody asks for, took a tenth of a small build."""
ROWS_A_FILE = 50_000
"""Of tables of which a part is made anew: files that hold such rows are written again."""

Start = Callable[[LandedBytes], SparkSession]
"""Makes the session, or gives the one that there is."""


class TableStore(Struct, frozen=True):
    """root: a folder or a URL, as on the command line."""

    spark: SparkSession
    root: str

    @property
    def landing(self) -> str:
        """The landing folder as Spark names it."""
        return f"{hadoop_address(self.root)}/landing"

    def path(self, table: str) -> str:
        return f"{hadoop_address(self.root)}/tables/{TABLES[table].layer}/{table}"

    def read(self, table: str, version: int | None, among: Among | None = None) -> DataFrame:
        """A table as it was at this version. None: no rows, there is no such table yet.

        among: files are passed over in which no row can have these values; those that are read
        may have other rows, too.
        """
        path = self.path(table)
        found = () if version is None else list_files(self._folder(table), version, among)
        if not found:
            return self._make_empty(table)
        reader = self.spark.read.schema(build_schema(table)).option("basePath", path)
        rows = reader.parquet(*(escape_pattern(f"{path}/{name}") for name in found))
        return rows.select(*TABLES[table].names)

    def count(self, table: str, version: int) -> int:
        """Rows of a table at this version."""
        return count_rows(self._folder(table), version)

    def append(self, table: str, rows: DataFrame, build: str) -> int:
        """Add rows; the table's new version."""
        writer = _configure_new(table, rows.write.format("delta").mode("append"))
        return self._save(table, writer.option("mergeSchema", "true"), build)

    def overwrite(self, table: str, rows: DataFrame, build: str) -> int:
        """Make these the only rows; the table's new version."""
        writer = _configure_new(
            table, _lay_out(table, rows).write.format("delta").mode("overwrite")
        )
        return self._save(table, _limit_file_rows(writer).option("overwriteSchema", "true"), build)

    def replace(self, table: str, rows: DataFrame, build: str, where: str) -> int:
        """Make these the only rows for which `where` (SQL) is true; the table's new version."""
        writer = _lay_out(table, rows).write.format("delta").mode("overwrite")
        return self._save(table, _limit_file_rows(writer).option("replaceWhere", where), build)

    def latest(self, table: str) -> int | None:
        """The newest version of a table, whoever wrote it; None: there is no such table."""
        return find_latest_version(self._folder(table))

    def has_same_rows(self, table: str, version: int, other: int | None) -> bool:
        """Whether two versions have the same rows: to remove what nobody needs makes one too."""
        if other is None or version == other:
            return version == other
        folder = self._folder(table)
        return list_files(folder, version) == list_files(folder, other)

    def recover(self, manifest: Manifest | None, died: Sequence[str]) -> Mapping[str, int]:
        """Take back what was written after this build; versions of tables that it concerned.
        died: names of the builds that wrote it. Of KEPT_WHEN_A_BUILD_DIES only what they took in
        from files goes, which is read again."""
        taken_back: dict[str, int] = {}
        for table, written in (manifest.tables if manifest else {}).items():
            if table in KEPT_WHEN_A_BUILD_DIES or self.latest(table) == written.version:
                continue
            taken_back[table] = restore_table(self._folder(table), written.version)
        for table in KEPT_WHEN_A_BUILD_DIES if died else ():
            if self.latest(table) is not None:
                builds = ", ".join(map(quote_text, died))
                of_files = f"origin = {quote_text(FILE)} AND _build IN ({builds})"
                self.spark.sql(f"DELETE FROM {self._name(table)} WHERE {of_files}")
        return taken_back

    def _make_empty(self, table: str) -> DataFrame:
        """In SQL, since Spark then knows that there is nothing, and joins with it cost nothing."""
        columns = (f"CAST(NULL AS {c.type}) AS `{c.name}`" for c in TABLES[table].columns)
        return self.spark.sql(f"SELECT {', '.join(columns)} WHERE false")

    def _name(self, table: str) -> str:
        return f"delta.`{self.path(table).replace('`', '``')}`"

    def _folder(self, table: str) -> str:
        """As others than Spark name it."""
        return table_folder(self.root, table)

    def _save(self, table: str, writer: DataFrameWriter, build: str) -> int:
        """The new version. Without new rows there may be none; then it is what it was."""
        writer.option("userMetadata", build).save(self.path(table))
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
    """A table's folder, as others than Spark name it."""
    return f"{root.rstrip('/')}/tables/{TABLES[table].layer}/{table}"


def vacuum(root: str, manifest: Manifest) -> None:
    """Remove files that this build and later ones do not need. Nobody may be reading an earlier
    one."""
    age = datetime.now(UTC) - datetime.fromisoformat(manifest.started)
    hours = math.ceil(age.total_seconds() / _SECONDS_AN_HOUR) + 1
    for table in manifest.tables:
        delta_files.vacuum(table_folder(root, table), hours)


def hadoop_address(root: str) -> str:
    """`s3://bucket/fleet/` -> `s3a://bucket/fleet`; a folder stays as it is."""
    scheme = urlsplit(root).scheme
    hadoop = _SCHEMES.get(scheme)
    return (hadoop + root.removeprefix(scheme) if hadoop else root).rstrip("/")


def quote_text(text: str) -> str:
    """The text as SQL writes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _lay_out(table: str, rows: DataFrame) -> DataFrame:
    """In order, so that a file holds the rows of few clusters: a reader of one cluster skips the
    others, and a build that makes few clusters anew leaves them as they are."""
    about = TABLES[table]
    first = [name for name in ("cluster", "lineage") if name in about.names][:1]
    order = [*first, *(name for name in about.key if name not in first)]
    if not order:
        return rows
    spread = rows.repartition(F.col(first[0])) if first else rows
    return spread.sortWithinPartitions(*order)


def _configure_new(table: str, writer: DataFrameWriter) -> DataFrameWriter:
    """What a table is made with where there is none."""
    sought = ",".join(name for name in _SOUGHT if name in TABLES[table].names)
    noted = {"dataSkippingStatsColumns": sought} if sought else {"dataSkippingNumIndexedCols": "0"}
    options = {f"delta.{name}": value for name, value in noted.items()}
    return writer.partitionBy(*_FOLDERS.get(table, ())).options(**options)


def _limit_file_rows(writer: DataFrameWriter) -> DataFrameWriter:
    return writer.option("maxRecordsPerFile", ROWS_A_FILE)
