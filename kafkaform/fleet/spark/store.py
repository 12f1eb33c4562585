"""Read and write the tables of a root with Delta Lake, and check each before readers see it: its
columns and types, required values, and its key.

    tables/<layer>/<table>/   one folder per table

Spark writes the tables; they are read as the Parquet files that Delta's log names, because asking
Spark's Delta reader costs more than reading a small table. Sail's Delta reader is quick, while its
Parquet reader takes no schema that has maps. Only SQL and DataFrames are used, so
that it works through Spark Connect, too: no RDDs, no `sparkContext`, no `DeltaTable` API. What a
dead build has left is taken back before the next one writes (`recover`).

Delta Lake has NOT NULL and CHECK constraints but no unique keys, and a violation surfaces as a bare
Py4J error. So all checks are made here, after the write and before the manifest names the version.
The columns that are checked, as Spark's types, are also the schema with which tables are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from itertools import count as count_from
from typing import Any
from urllib.parse import urlsplit

import pyspark.sql.functions as F
from msgspec import Struct
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import types as t

from ...core.errors import StorageError
from ...core.lazy import load
from ..landed.snapshots import FILE, escape_pattern
from ..tables import reader
from ..tables.definitions import TABLES, TableDefinition
from ..tables.manifest import Manifest
from ..tables.reader import (
    Among,
    count_rows,
    create_table,
    find_latest_version,
    list_files,
    restore_table,
)
from .session import DELTA_READER, LandedBytes

_SIMPLE: dict[str, type[t.DataType]] = {
    "string": t.StringType,
    "boolean": t.BooleanType,
    "int": t.IntegerType,
    "bigint": t.LongType,
    "double": t.DoubleType,
    "date": t.DateType,
    "timestamp": t.TimestampType,
}
TABLES_KEPT_AFTER_FAILURE = frozenset({"audit_raw"})
"""Tables that keep rows of dead builds. A topic is not read twice, because Spark's checkpoint has
moved on; readers of the table see a repeated line once."""
_SCHEMES: Mapping[str, str] = {"s3": "s3a", "gcs": "gs"}
"""Scheme -> what Hadoop calls it."""
_SECONDS_AN_HOUR = 3600
_PARTITION_COLUMNS: Mapping[str, Sequence[str]] = {"snapshot_raw": ("kind",)}
"""Columns by which a table is partitioned: a reader of one kind skips all others."""
_STATISTICS_COLUMNS = ("cluster", "lineage", "scope_id", "_build")
"""Columns with statistics beside those of the key and times: files are skipped by them, here and by
other tools. Collecting statistics for all columns took a tenth of a small build."""
_STATISTICS_TYPES = ("string", "int", "bigint", "double", "date", "timestamp")
"""Types for which Delta Lake has statistics that skip files."""
ROWS_A_FILE = 50_000
"""Rows per file of tables that are recomputed in part. `replaceWhere` rewrites every file that has
one of the replaced rows, so files must not be large."""


def _list_errors() -> Iterator[type[Exception]]:
    yield PySparkException
    # A client without Spark itself has no Java to call.
    if find_spec("py4j") is not None:
        yield load("py4j.protocol:Py4JError")
    # Spark Connect's messages, also those to Sail, may be nested a hundred deep at most.
    if find_spec("grpc") is not None:
        yield load("google.protobuf.message:DecodeError")


SPARK_ERRORS: tuple[type[Exception], ...] = tuple(_list_errors())
"""Constraint violations and lost JVMs arrive as plain Py4JError."""
Start = Callable[[LandedBytes], SparkSession]
"""Returns the session, starting it if necessary."""
_VIEW_NUMBERS = count_from()
"""One session may have views of several roots."""


@cache
def build_schema(table: str) -> t.StructType:
    """Return the schema of a table in TABLES, with what columns mean; required columns are not
    nullable."""
    return t.StructType(
        [
            t.StructField(
                column.name,
                parse_data_type(column.type),
                not column.required,
                {"comment": column.about} if column.about else None,
            )
            for column in TABLES[table].columns
        ]
    )


def parse_data_type(text: str) -> t.DataType:
    """Parse `array<struct<a:string,b:bigint>>` to Spark's type. Raises KeyError: there is no such
    type.

    Spark's own parser runs in the JVM, and schemas must be available without a session.
    """
    head, _, inner_text = text.partition("<")
    inner_types = tuple(_split_parts(inner_text.removesuffix(">")))
    if head == "array":
        return t.ArrayType(parse_data_type(inner_types[0]))
    if head == "map":
        return t.MapType(parse_data_type(inner_types[0]), parse_data_type(inner_types[1]))
    if head == "struct":
        members = (member.split(":", 1) for member in inner_types)
        return t.StructType([t.StructField(name, parse_data_type(kind)) for name, kind in members])
    return _SIMPLE[head]()


def _split_parts(text: str) -> Iterator[str]:
    """Split at the commas that are outside of brackets."""
    depth = start = 0
    for at, sign in enumerate(text):
        depth += (sign == "<") - (sign == ">")
        if sign == "," and not depth:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def conform_rows(table: str, rows: DataFrame) -> DataFrame:
    """Return the rows with the table's columns and types. Raises StorageError: they have others."""
    declared = [(f.name, f.dataType.simpleString()) for f in build_schema(table).fields]
    # Nullability is left out: Spark infers it per plan, so it differs between equal results.
    actual = [(f.name, f.dataType.simpleString()) for f in rows.schema.fields]
    if actual == declared:
        # A cast to the declared type is free where types are equal.
        # Text that a Connect client has typed has a collation by name, which only Spark can read.
        return rows.select(
            *(F.col(c.name).cast(c.type).alias(c.name) for c in TABLES[table].columns)
        )
    mismatch = next(
        (fields for fields in zip(actual, declared, strict=False) if fields[0] != fields[1]),
        (actual, declared),
    )
    raise StorageError(
        f"table {table}: what was made has {mismatch[0]} where the table has {mismatch[1]}",
        "Report it to the project: the table is not as it is declared.",
    )


def check_rows(table: str, rows: DataFrame) -> int:
    """Return the number of rows. Raises StorageError, with an example: two rows have the same key,
    or a required column is null."""
    definition = TABLES[table]
    counts = _count_faults(definition, rows)
    suspect = counts.twice or any(counts.nulls.values())
    problem = _find_problem(definition, rows, counts) if suspect else None
    if problem:
        raise StorageError(
            f"table {table}: {problem}",
            "The build before this one stays the current one. Look for what has landed twice or "
            "in part; if it is sound, report it to the project.",
        )
    return counts.rows


class _Found(Struct, frozen=True):
    """What one pass over the rows counted."""

    rows: int
    twice: int
    """Rows whose key another row seems to have (by its hash)."""
    nulls: Mapping[str, int]
    """Required column -> rows in which it is null."""


def _count_faults(definition: TableDefinition, rows: DataFrame) -> _Found:
    """Count rows, keys and nulls in one pass.

    Keys are counted by a 64-bit hash, because grouping by whole keys shuffles all of their text.
    Two keys with one hash raise a false suspicion, which `_find_problem` then checks exactly.
    """
    hashed = F.count_distinct(F.xxhash64(*definition.key)) if definition.key else F.count(F.lit(1))
    nulls = [F.count_if(F.col(c).isNull()).alias(f"null_{c}") for c in _list_required(definition)]
    row = rows.agg(F.count(F.lit(1)).alias("rows"), hashed.alias("keys"), *nulls).collect()[0]
    counts = {c: row[f"null_{c}"] for c in _list_required(definition)}
    return _Found(row["rows"], row["rows"] - row["keys"], counts)


def _list_required(definition: TableDefinition) -> tuple[str, ...]:
    return tuple(column.name for column in definition.columns if column.required)


def _find_problem(definition: TableDefinition, rows: DataFrame, counts: _Found) -> str | None:
    """Describe the first fault with an example; None: only hashes collided."""
    example = F.to_json(F.struct(*map(F.col, definition.key))) if definition.key else F.lit("")
    for column, nulls in counts.nulls.items():
        if nulls:
            # `max` instead of `first`: the example must not depend on the order of partitions.
            example_key = rows.where(F.col(column).isNull()).select(F.max(example)).collect()[0][0]
            suffix = f", such as where {example_key}" if example_key else ""
            return f"column {column} is null in {nulls} rows{suffix}"
    counted = rows.groupBy(*definition.key).agg(F.count(F.lit(1)).alias("rows"))
    example_key = counted.where(F.col("rows") > 1).select(F.max(example)).collect()[0][0]
    return (
        f"two rows have the same {', '.join(definition.key)}: {example_key}"
        if example_key
        else None
    )


class TableStore(Struct, frozen=True):
    """The tables of one root."""

    spark: SparkSession
    root: str
    """A folder or a URL, as on the command line."""

    @property
    def reads_logs(self) -> bool:
        """True if tables are read by Delta's log."""
        return _has_delta_reader(self.spark)

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
        if version is not None and self.reads_logs:
            return _read_version(self.spark, path, version).select(*TABLES[table].names)
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

    def ensure(self, table: str) -> None:
        """Create the table, empty and with its descriptions, unless it exists."""
        if self.latest(table) is None:
            self._create(table)

    def append(self, table: str, rows: DataFrame, build: str) -> int:
        """Add rows; return the table's new version."""
        self.ensure(table)
        # mergeSchema: a later version may add nullable columns to a table that exists.
        writer = rows.write.format("delta").mode("append")
        return self._save(table, writer.option("mergeSchema", "true"), build)

    def overwrite(self, table: str, rows: DataFrame, build: str) -> int:
        """Replace all rows; return the table's new version."""
        self._create(table)
        writer = _lay_out(table, rows).write.format("delta").mode("overwrite")
        return self._save(table, _limit_file_rows(writer), build)

    def replace(self, table: str, rows: DataFrame, build: str, condition: str) -> int:
        """Replace the rows for which `where` (SQL) is true; return the table's new version."""
        if self.reads_logs:
            # Sail's `replaceWhere` fails for maps in files and for rows of a union.
            remaining = self.read(table, self.latest(table)).where(~F.expr(condition))
            return self.overwrite(table, conform_rows(table, remaining).unionByName(rows), build)
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

    def _create(self, table: str) -> None:
        fields = build_schema(table).fields
        if self.reads_logs:
            # Sail's checks of required columns take a quarter of a small build's time.
            fields = [t.StructField(f.name, f.dataType, True, f.metadata) for f in fields]
        schema = t.StructType(fields).json()
        create_table(self._folder(table), TABLES[table], schema, _make_options(table))

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


@cache
def _read_version(spark: SparkSession, path: str, version: int) -> DataFrame:
    """Read a version of a table by Delta's log, through a view: Sail reads the log when it makes
    the view. Otherwise it would read the log for each use of the table in a query, twice.
    """
    view = f"table_{next(_VIEW_NUMBERS)}"
    log = spark.read.format("delta").option("versionAsOf", version)
    log.load(path).createOrReplaceTempView(view)
    return spark.table(view)


@cache
def _has_delta_reader(spark: SparkSession) -> bool:
    """Asked once per session: each question is a request to the server."""
    return spark.conf.get(DELTA_READER, None) is not None


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


def _make_options(table: str) -> Mapping[str, Any]:
    """Return the options with which a table is created, as `create_table` takes them."""
    definition, partitions = TABLES[table], _PARTITION_COLUMNS.get(table, ())
    chosen = {*_STATISTICS_COLUMNS, *definition.key} - {*partitions}
    names = (
        column.name
        for column in definition.columns
        if column.type in _STATISTICS_TYPES
        and (column.name in chosen or column.type in ("date", "timestamp"))
    )
    return {
        "partition_by": list(partitions),
        "configuration": {"delta.dataSkippingStatsColumns": ",".join(names)},
    }


def _limit_file_rows(writer: DataFrameWriter) -> DataFrameWriter:
    return writer.option("maxRecordsPerFile", ROWS_A_FILE)
