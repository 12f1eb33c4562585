"""Answer `fleet permissions`: by pattern from a build, or by resource with Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from ...core.errors import KafkaformError, UsageError
from ...core.progress import Progress, Reporter
from ...fleet.access.operation_bits import parse_principal, parse_resource
from ...fleet.access.permission_rows import (
    COLUMNS,
    KEY,
    PermissionFilter,
    add_words,
    make_where,
    render_row,
    select_wanted,
    write_parquet,
)
from ...fleet.exports.rows import FORMATS, Sheet, write_rows, write_whole
from ...fleet.spark.session import build_session
from ...fleet.tables.reader import Gold, Row, quote_text, read_current, to_rows
from ...state.backends.obstores import is_remote
from .jars import add_jars
from .runs import SparkOptions, need_packages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JSON, CSV, PARQUET = "json", "csv", "parquet"
PARQUET_FILE = "permissions.parquet"
"""Name of the only file of a Parquet folder that was written without Spark."""
SCREEN_ROWS = 200
"""An expansion with more rows than this needs --out."""
_TABLE = "effective_permissions"
_MESSAGE_CHARACTERS = 500
"""How many characters of Spark's message an error shows."""


class PermissionsRequest(Struct, frozen=True):
    """What was asked for."""

    root: str
    only: PermissionFilter
    form: str
    out: Path | None = None
    """A new file, or for Parquet a new folder. None: standard output."""


def check_request(request: PermissionsRequest) -> None:
    """Raises UsageError for contradictory flags, before anything is read."""
    if request.form not in (*FORMATS, PARQUET):
        forms = f"{', '.join(FORMATS)} or {PARQUET}"
        raise UsageError(f"--format {request.form}: there is no such format", f"Use {forms}.")
    if request.out is None and request.form == PARQUET:
        raise UsageError(f"--format {PARQUET} needs a folder to write", "Name it with --out.")
    if request.out is not None and request.form not in (CSV, PARQUET):
        raise UsageError(
            f"--out cannot be used with --format {request.form}",
            f"Add --format {CSV} or --format {PARQUET}.",
        )
    if request.out is not None and request.out.exists():
        raise UsageError(
            f"--out {request.out} already exists", "Use another name, or remove it first."
        )
    if request.only.principal is not None:
        parse_principal(request.only.principal)
    if request.only.resource is not None:
        parse_resource(request.only.resource)


def export_by_pattern(request: PermissionsRequest) -> str:
    """Write the rows about patterns that the build has; return the text, empty if it went to a
    file.

    Raises UsageError: there is no build, or no such cluster; StorageError.
    """
    gold = _open_gold(request, _TABLE)
    order = ", ".join(f'"{name}"' for name in KEY)
    sql = f"select * from {_TABLE} where {make_where(request.only)} order by {order}"
    rows = (row for batch in gold.read_batches(sql) for row in to_rows(batch))
    return _write_rows(request, map(add_words, select_wanted(rows, request.only)))


def export_by_resource(request: PermissionsRequest, spark: SparkOptions, report: Reporter) -> str:
    """Compute and write rows about resources. Raises like `export_by_pattern`, and KafkaformError:
    Spark fails."""
    gold = _open_gold(request, "live")
    report(Progress("fleet", "starting Spark", 0, None))
    with _start_session(spark) as session, _explain_errors():
        # No lock: the build's versions do not change while it is read, and nothing is written to
        # the root.
        rows = _expand_rows(gold, session, request.only)
        report(Progress("fleet", "expanding permissions", 0, None))
        text = _write_frame(request, rows)
    report(Progress("fleet", "permissions expanded", 1, 1, finished=True))
    return text


def _open_gold(request: PermissionsRequest, table: str) -> Gold:
    need_packages()
    gold = Gold(read_current(request.root))
    gold.require(table)
    name = request.only.cluster
    if name and not gold.read_rows(f"SELECT 1 FROM cluster WHERE cluster = {quote_text(name)}"):
        raise UsageError(
            f"build {gold.build.name} has no cluster {name}",
            "`kafkaform fleet query 'SELECT cluster FROM cluster'` lists them.",
        )
    return gold


@contextmanager
def _start_session(spark: SparkOptions) -> Iterator[SparkSession]:
    session = build_session(add_jars(spark.setup))
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def _explain_errors() -> Iterator[None]:
    """Turn what Spark raises into a KafkaformError."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415  # Spark is slow to load
    from pyspark.errors import PySparkException  # noqa: PLC0415  # Spark is slow to load

    try:
        yield
    except (PySparkException, Py4JError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise KafkaformError(
            f"the permissions cannot be expanded: {lines[0][:_MESSAGE_CHARACTERS]}",
            "`kafkaform fleet doctor` checks disk and Java. SPARK_DRIVER_MEMORY=8g gives Spark "
            "more memory.",
        ) from error


def _expand_rows(gold: Gold, session: SparkSession, only: PermissionFilter) -> DataFrame:
    from ...fleet.access.permissions import expand_permissions  # noqa: PLC0415  # what needs Spark is slow to load
    from ...fleet.spark.store import TableStore  # noqa: PLC0415  # what needs Spark is slow to load

    root = gold.build.root
    store = TableStore(session, root if is_remote(root) else str(Path(root).absolute()))
    names = ("live", "cluster")
    return expand_permissions(
        {name: store.read(name, gold.build.tables[name].version) for name in names}, only
    )


def _write_frame(request: PermissionsRequest, rows: DataFrame) -> str:
    if request.out is not None and request.form == PARQUET:
        from ...fleet.access.permissions import add_words as in_words  # noqa: PLC0415  # what needs Spark is slow to load

        # Spark's workers write in parallel; the driver never sees the rows.
        in_words(rows).write.parquet(str(request.out.absolute()))
        return ""
    ordered = rows.orderBy(*KEY)
    if request.out is not None:
        # toLocalIterator: one partition at a time in the driver, where `collect` would need them
        # all.
        return _write_rows(request, (add_words(row.asDict()) for row in ordered.toLocalIterator()))
    # One more than is shown, to learn that there are more without counting millions.
    first_rows = ordered.limit(SCREEN_ROWS + 1).collect()
    if len(first_rows) > SCREEN_ROWS:
        raise UsageError(
            f"there are more than {SCREEN_ROWS} rows",
            f"Write them to a file with --out and --format {PARQUET} or {CSV}, or ask for less: "
            "--cluster, --principal or --resource.",
        )
    return _write_rows(request, (add_words(row.asDict()) for row in first_rows))


def _write_rows(request: PermissionsRequest, rows: Iterable[Row]) -> str:
    """Write the rows in the requested format."""
    if request.out is not None:
        with write_whole(request.out, "cannot write the permissions") as half:
            _write_file(half, rows, request.form)
        return ""
    if request.form == JSON:
        values = (tuple(row[name] for name in COLUMNS) for row in rows)
        return FORMATS[JSON](Sheet(COLUMNS, tuple(values)))
    return FORMATS[request.form](Sheet(COLUMNS, tuple(map(render_row, rows))))


def _write_file(path: Path, rows: Iterable[Row], form: str) -> None:
    if form == PARQUET:
        path.mkdir()
        write_parquet(path / PARQUET_FILE, rows)
        return
    with path.open("x", encoding="utf-8", newline="") as file:
        write_rows(file, COLUMNS, map(render_row, rows))
