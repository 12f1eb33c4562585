"""Read a build without Spark: its manifest, and each table at the version that belongs to it.

    <root>/builds/current               name of the newest build
    <root>/builds/<build>.json          its manifest, written after all of its tables
    <root>/tables/<layer>/<table>/      Delta tables

delta-rs does all reading, from a folder or a store's URL, with credentials from the environment.
pyarrow's own dataset reader is not used: its threads can abort the process when Python exits
(apache/arrow#34314).

Delta's log lists the files of each version with the least and the greatest value of some columns.
Asking Spark for them runs extra jobs for every table that a query names: on small tables they take
longer than the query.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from msgspec import Struct
from pyarrow.fs import FileSelector

from ...core.errors import StorageError, UsageError
from .definitions import SCHEMA_VERSION, TABLES, TableDefinition

Among = Mapping[str, Collection[str]]
"""Column -> the values that are wanted."""
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
FOLDER, CURRENT = "builds", "current"
_NAME = re.compile(r"[\w.-]{1,200}")
_WORD = re.compile(r"\w+")
# In the generic dialect and some others, `select kind, cluster` begins a CLUSTER BY clause.
_SETTINGS = {"datafusion.sql_parser.dialect": "postgres"}


def delta_address(root: str) -> str:
    """Return the address as delta-rs writes it. obstore also accepts `gcs://`; delta-rs only
    `gs://`."""
    if "://" not in root:
        return str(Path(root).expanduser().absolute())
    return re.sub("^gcs:", "gs:", root.rstrip("/"))


def make_storage_options() -> dict[str, str]:
    """Allow plain HTTP for a store on this computer, which delta-rs does not take from the
    environment."""
    endpoint = next(filter(None, map(os.environ.get, _ENDPOINTS)), "")
    is_local = urlsplit(endpoint).hostname in ("localhost", "127.0.0.1", "::1")
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"} if is_local else {}


def find_latest_version(folder: str) -> int | None:
    """Return the newest version of a table, whoever wrote it; None: there is no such table."""
    try:
        return int(
            DeltaTable(delta_address(folder), storage_options=make_storage_options()).version()
        )
    except TableNotFoundError:
        return None


def create_table(
    folder: str, definition: TableDefinition, schema: str, options: Mapping[str, Any]
) -> None:
    """Create an empty table with names, descriptions and required columns, unless it exists like
    this. Rows of a table with another schema are removed.

    schema: JSON, as in Delta's log; options: `partition_by` and `configuration`. Spark would take a
    second, and writes a schema without required columns.
    """
    address, storage = delta_address(folder), make_storage_options()
    table_schema = Schema.from_json(schema)
    with contextlib.suppress(TableNotFoundError):
        table = DeltaTable(address, storage_options=storage)
        if table.schema() == table_schema and table.metadata().description == definition.about:
            return
    DeltaTable.create(
        address,
        table_schema,
        mode="overwrite",
        name=definition.name,
        description=definition.about,
        storage_options=storage,
        **options,
    )


def restore_table(folder: str, version: int) -> int:
    """Make an old version the current one; return the version that it then has. With Spark this
    takes seconds per table."""
    table = DeltaTable(delta_address(folder), storage_options=make_storage_options())
    table.restore(version)
    return int(table.version())


def vacuum(folder: str, hours: int) -> None:
    """Remove files that no version of the last `hours` hours has, including those of dead
    builds."""
    table = DeltaTable(delta_address(folder), storage_options=make_storage_options())
    # Spark's VACUUM keeps every file for a week, whatever RETAIN says (docs/decisions/021). `full`:
    # files that a dead build left are in no log, so only listing the folder finds them.
    table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)


def list_files(folder: str, version: int, among: Among | None = None) -> tuple[str, ...]:
    """Return the paths below the table's folder, sorted: all files, or those that may have rows
    with the values in `among`. A file without statistics may have any."""
    conditions = (among or {}).items()
    file_rows = (
        row
        for row in _read_log(folder, version)
        if all(_may_have(row, name, values) for name, values in conditions)
    )
    # The log percent-encodes paths; Spark and the store want them plain. Sorted, so that two
    # versions with the same files compare equal.
    return tuple(sorted(unquote(row["path"]) for row in file_rows))


def count_rows(folder: str, version: int) -> int:
    """Return the number of rows, by the counts that writers of our tables always record."""
    return sum(row["num_records"] for row in _read_log(folder, version))


def _read_log(folder: str, version: int) -> list[dict[str, Any]]:
    """Return what the log says of each file."""
    table = DeltaTable(
        delta_address(folder), version=version, storage_options=make_storage_options()
    )
    rows: list[dict[str, Any]] = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return rows


def _may_have(row: Mapping[str, Any], column: str, values: Collection[str]) -> bool:
    least, most = row.get(f"min.{column}"), row.get(f"max.{column}")
    # Strings in statistics are cut to a prefix, but by rounding the maximum up, so the range still
    # covers every value.
    return least is None or most is None or any(least <= value <= most for value in values)


class BuiltTable(Struct, frozen=True):
    """One table of a build."""

    version: int
    """Delta's version."""
    rows: int
    seconds: float


class Build(Struct, frozen=True):
    """A manifest, as readers need it."""

    root: str
    name: str
    fingerprint: str
    tables: Mapping[str, BuiltTable]
    started: datetime
    ended: datetime
    as_of: datetime
    """The newest capture that the build has seen."""


def read_current(root: str) -> Build:
    """Return the newest build below this folder or URL.

    Raises UsageError: there is none; StorageError: it cannot be read.
    """
    pointer = _read_file(root, CURRENT)
    if pointer is None:
        raise UsageError(
            f"there is no build yet in {root}",
            "Make one with `kafkaform fleet run --root …`, or check the root.",
        )
    return read_build(root, pointer.decode("utf-8", "replace").strip())


def read_build(root: str, name: str) -> Build:
    """Return the build of this name.

    Raises UsageError: there is none; StorageError: a later version made it, or its manifest cannot
    be read.
    """
    # The name becomes part of a path, so anything else than a plain name is refused.
    text = _read_file(root, f"{name}.json") if _NAME.fullmatch(name) else None
    if text is None:
        raise UsageError(
            f"{root} has no build {name!r}", "`kafkaform fleet status` lists the builds."
        )
    try:
        data = json.loads(text)
        if data["schema_version"] > SCHEMA_VERSION:
            raise StorageError(
                f"build {data['build']} in {root} has tables of version {data['schema_version']}; "
                f"this kafkaform reads up to {SCHEMA_VERSION}",
                "Use the version of kafkaform that made the build, or a later one.",
            )
        tables = {
            name: BuiltTable(
                int(table["version"]), int(table["rows"]), float(table["seconds"] or 0)
            )
            for name, table in sorted(data["tables"].items())
        }
        times = {name: datetime.fromisoformat(data[name]) for name in ("started", "ended", "as_of")}
        return Build(root, data["build"], fingerprint=data["fingerprint"], tables=tables, **times)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(
            f"the manifest of build {name} in {root} cannot be read: "
            f"{type(error).__name__}: {error}",
            "Make a new build with `kafkaform fleet run`.",
        ) from None


def list_builds(root: str) -> tuple[str, ...]:
    """Return the names of all builds whose manifests still exist, sorted."""
    with _refusing(root):
        handler = _open_handler(root)
        selector = FileSelector(FOLDER, allow_not_found=True)
        infos = handler.get_file_info_selector(selector) if handler else ()
    names = (Path(info.path).name for info in infos)
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


def find_before(build: Build) -> Build | None:
    """Return the newest build that ended before this one; None: there is none."""
    other_builds = (
        read_build(build.root, name) for name in list_builds(build.root) if name != build.name
    )
    older = (candidate for candidate in other_builds if candidate.ended <= build.ended)
    return max(older, key=lambda candidate: (candidate.ended, candidate.name), default=None)


class Gold:
    """The tables of one build. A table is opened when a query first names it."""

    def __init__(self, build: Build) -> None:
        self.build = build
        self._open: set[str] = set()
        self._engine: QueryBuilder | None = None

    def has(self, *tables: str) -> bool:
        """True if the build has all of these tables."""
        return self.build.tables.keys() >= set(tables)

    def require(self, name: str) -> None:
        """Raises UsageError if the build does not have this table."""
        if not self.has(name):
            raise UsageError(
                f"build {self.build.name} has no table {name}",
                f"Make it with `kafkaform fleet run --root … --only {name}`; "
                "`kafkaform fleet status` lists the tables of a build.",
            )

    def read_rows(self, sql: str) -> list[dict[str, Any]]:
        """Return the result of a query of ours; maps are dicts, times are UTC.

        Raises StorageError: files are missing or damaged.
        """
        return [row for batch in self.read_batches(sql) for row in to_rows(batch)]

    def read_batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        """Yield the result batch by batch."""
        with _refusing(self.build.root):
            yield from pa.RecordBatchReader.from_stream(self.execute(sql))

    def execute(self, sql: str) -> Any:
        """Return a stream of Arrow batches for one statement. Raises what delta-rs raises."""
        if self._engine is None:
            self._engine = QueryBuilder(_SETTINGS)
        # Every word of the text that is a table's name, even inside a literal: opening one too many
        # only costs time, while parsing SQL here would be a second parser.
        names = {word.lower() for word in _WORD.findall(sql)} & self.build.tables.keys()
        for name in sorted(names - self._open):
            folder = f"{delta_address(self.build.root)}/tables/{TABLES[name].layer}/{name}"
            version = self.build.tables[name].version
            # At the manifest's version: a build that is being written must not show.
            table = DeltaTable(folder, version=version, storage_options=make_storage_options())
            lacking = _list_lacking(name, [field.name for field in table.schema().fields])
            if lacking:
                # An earlier version of kafkaform wrote it. What it did not know is unknown.
                self._engine.register(f"stored_{name}", table)
                columns = ", ".join(("*", *lacking))
                self._engine.execute(f"create view {name} as select {columns} from stored_{name}")
            else:
                self._engine.register(name, table)
            self._open.add(name)
        return self._engine.execute(sql)


_ARROW_TYPES: Mapping[str, str] = {
    "string": "Utf8",
    "int": "Int32",
    "bigint": "Int64",
    "double": "Float64",
    "boolean": "Boolean",
    "date": "Date32",
    "array<string>": "List(Utf8)",
}
"""Type of a column -> as the engine of queries writes it."""


def _list_lacking(table: str, names: Sequence[str]) -> list[str]:
    """The columns of a table that is stored with these names and lacks them, as nulls."""
    return [
        f"arrow_cast(null, '{_ARROW_TYPES[column.type]}') as \"{column.name}\""
        if column.type in _ARROW_TYPES
        else f'null as "{column.name}"'
        for column in TABLES[table].columns
        if column.name not in names
    ]


def to_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows of a batch as Python values; times are UTC."""
    zoned = [
        (index, field)
        for index, field in enumerate(batch.schema)
        if pa.types.is_timestamp(field.type) and field.type.tz
    ]
    # For the first time that has a zone, Arrow imports pandas, which takes longer than most
    # queries. All of our times are UTC.
    for index, field in zoned:
        plain = batch.column(index).cast(pa.timestamp(field.type.unit))
        batch = batch.set_column(index, field.name, plain)
    # `lossy`: a map with a repeated key keeps the last value instead of failing the whole query.
    rows: list[dict[str, Any]] = batch.to_pylist(maps_as_pydicts="lossy")
    for row in rows:
        row.update({f.name: row[f.name].replace(tzinfo=UTC) for _, f in zoned if row[f.name]})
    return rows


# ── files ───────────────────────────────────────────────────────────────────────────────


class _refusing:
    """Turn what delta-rs raises into a StorageError that names the root."""

    def __init__(self, root: str) -> None:
        self._root = root

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and _is_foreign(error):
            raise StorageError(
                f"cannot read {self._root}: {describe_error(error)}",
                "Check the root, the rights and the credentials in the environment; if files of "
                "an old build are gone, make a new one with `kafkaform fleet run`.",
            ) from None


def _is_foreign(error: BaseException) -> bool:
    """True for errors of delta-rs and Arrow. Some are plain `Exception` without a class of their
    own."""
    return isinstance(error, OSError | DeltaError | pa.ArrowException) or type(error) is Exception


def describe_error(error: BaseException) -> str:
    """Return the first line of a message, without the colours that delta-rs puts into some."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
    return " ".join(text.split())[:400]


def _read_file(root: str, name: str) -> bytes | None:
    """Return a file of the folder of manifests; None: there is no such file."""
    with _refusing(root):
        handler = _open_handler(root)
        if handler is None:
            return None
        try:
            data: bytes = handler.open_input_file(f"{FOLDER}/{name}").read()
        except FileNotFoundError:
            return None
        return data


def _open_handler(root: str) -> Any:
    """Return delta-rs's view of a folder or store; None: the folder does not exist."""
    try:
        return DeltaStorageHandler(delta_address(root), make_storage_options())
    except TableNotFoundError:
        return None
