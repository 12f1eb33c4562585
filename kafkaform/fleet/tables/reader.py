"""What a build has made, read without Spark: a manifest, and each table as it was at that build.

    <root>/builds/current               name of the newest build
    <root>/builds/<build>.json          its manifest, written after all of its tables
    <root>/tables/<layer>/<table>/      Delta tables

All reading goes through delta-rs, from a folder or a store's URL. Credentials come from the
environment. pyarrow's own reader of datasets is left alone: its threads can abort the process
when Python ends (apache/arrow#34314).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ...core.errors import StorageError, UsageError
from .definitions import SCHEMA_VERSION, TABLES
from .delta_files import delta_address, make_storage_options

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import QueryBuilder

FOLDER, CURRENT = "builds", "current"
_NAME = re.compile(r"[\w.-]{1,200}")
_WORD = re.compile(r"\w+")
# In the generic one, and some others, `select kind, cluster` begins a CLUSTER BY.
_SETTINGS = {"datafusion.sql_parser.dialect": "postgres"}

Row = Mapping[str, Any]


class BuiltTable(Struct, frozen=True):
    """One table of a build. version: Delta's."""

    version: int
    rows: int
    seconds: float


class Build(Struct, frozen=True):
    """A manifest. as_of: the newest capture that it has seen."""

    root: str
    name: str
    fingerprint: str
    parts: Mapping[str, BuiltTable]
    started: datetime
    ended: datetime
    as_of: datetime


def read_current(root: str) -> Build:
    """The newest build below this folder or URL.

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
    """The build of this name. Raises UsageError: there is none; StorageError: a later version
    made it, or its manifest cannot be read."""
    text = _read_file(root, f"{name}.json") if _NAME.fullmatch(name) else None
    if text is None:
        raise UsageError(
            f"{root} has no build {name!r}", "`kafkaform fleet status` lists the builds."
        )
    try:
        return _make_build(root, json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(
            f"the manifest of build {name} in {root} cannot be read: "
            f"{type(error).__name__}: {error}",
            "Make a new build with `kafkaform fleet run`.",
        ) from None


def list_builds(root: str) -> tuple[str, ...]:
    """The names of all builds whose manifests are still there, sorted."""
    from pyarrow.fs import FileSelector  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

    with _refusing(root):
        handler = _open_handler(root)
        selector = FileSelector(FOLDER, allow_not_found=True)
        found = handler.get_file_info_selector(selector) if handler else ()
    names = (Path(info.path).name for info in found)
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


def find_before(build: Build) -> Build | None:
    """The newest build that ended before this one, None if there is none."""
    others = (
        read_build(build.root, name) for name in list_builds(build.root) if name != build.name
    )
    older = (other for other in others if other.ended <= build.ended)
    return max(older, key=lambda other: (other.ended, other.name), default=None)


def _make_build(root: str, data: Mapping[str, Any]) -> Build:
    if data["schema_version"] > SCHEMA_VERSION:
        raise StorageError(
            f"build {data['build']} in {root} has tables of version {data['schema_version']}; "
            f"this kafkaform reads up to {SCHEMA_VERSION}",
            "Use the version of kafkaform that made the build, or a later one.",
        )
    parts = {
        name: BuiltTable(int(part["version"]), int(part["rows"]), float(part["seconds"] or 0))
        for name, part in sorted(data["tables"].items())
    }
    times = {name: datetime.fromisoformat(data[name]) for name in ("started", "ended", "as_of")}
    return Build(root, data["build"], fingerprint=data["fingerprint"], parts=parts, **times)


class Gold:
    """The tables of one build. Each is opened when a query first names it."""

    def __init__(self, build: Build) -> None:
        self.build = build
        self._open: set[str] = set()
        self._engine: QueryBuilder | None = None

    def has(self, *tables: str) -> bool:
        """Whether the build has made all of these tables."""
        return self.build.parts.keys() >= set(tables)

    def read_table(self, name: str) -> pa.Table:
        """All rows of one table."""
        self.require(name)
        return self.read_arrow(f"select * from {name}")

    def require(self, name: str) -> None:
        """Raises UsageError if the build has not made this table."""
        if not self.has(name):
            raise UsageError(
                f"build {self.build.name} has no table {name}",
                f"Make it with `kafkaform fleet run --root … --only {name}`; "
                "`kafkaform fleet status` lists the tables of a build.",
            )

    def read_rows(self, sql: str) -> list[dict[str, Any]]:
        """The result of a query of ours; maps are dicts, times are UTC.

        Raises StorageError: the files are gone or damaged.
        """
        return [row for batch in self.read_batches(sql) for row in to_rows(batch)]

    def read_arrow(self, sql: str) -> pa.Table:
        """The same as one Arrow table."""
        import pyarrow as pa  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

        with _refusing(self.build.root):
            return pa.table(self.execute(sql).read_all())

    def read_batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        """The same, piece by piece."""
        import pyarrow as pa  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

        with _refusing(self.build.root):
            yield from pa.RecordBatchReader.from_stream(self.execute(sql))

    def execute(self, sql: str) -> Any:
        """A stream of Arrow batches for one statement, whose tables are registered at this
        build's versions. Raises what delta-rs raises."""
        from deltalake import DeltaTable, QueryBuilder  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

        if self._engine is None:
            self._engine = QueryBuilder(_SETTINGS)
        wanted = {word.lower() for word in _WORD.findall(sql)} & self.build.parts.keys()
        for name in sorted(wanted - self._open):
            folder = f"{delta_address(self.build.root)}/tables/{TABLES[name].layer}/{name}"
            version = self.build.parts[name].version
            table = DeltaTable(folder, version=version, storage_options=make_storage_options())
            self._engine.register(name, table)
            self._open.add(name)
        return self._engine.execute(sql)


def to_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows of a batch as Python values."""
    rows: list[dict[str, Any]] = batch.to_pylist(maps_as_pydicts="lossy")
    return rows


def quote_text(text: str) -> str:
    """Text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


# ── files ───────────────────────────────────────────────────────────────────────────────


class _refusing:
    """What delta-rs raises becomes a StorageError that names the root."""

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
    """delta-rs and Arrow raise these, and Exception itself."""
    from deltalake.exceptions import DeltaError  # noqa: PLC0415  # the fleet extra has it, and it is slow to load
    from pyarrow import ArrowException  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

    return isinstance(error, OSError | DeltaError | ArrowException) or type(error) is Exception


def describe_error(error: BaseException) -> str:
    """The first line of a message, without the colours that delta-rs puts into some."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
    return " ".join(text.split())[:400]


def _read_file(root: str, name: str) -> bytes | None:
    """A file of the folder of manifests, None if it is not there."""
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
    """delta-rs's view of a folder or a store; None: the folder is not there."""
    from deltalake.exceptions import TableNotFoundError  # noqa: PLC0415  # the fleet extra has it, and it is slow to load
    from deltalake.fs import DeltaStorageHandler  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

    try:
        return DeltaStorageHandler(delta_address(root), make_storage_options())
    except TableNotFoundError:
        return None
