"""Answer `fleet report|query|who-can|permissions|history|status` from a build's tables.

Only permissions by resource need Spark; everything else works without a JVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ...core.errors import KafkaformError, UsageError
from ...core.progress import Progress, Reporter
from ...fleet import access, answers, tables
from ...fleet import report as reports
from ...fleet import spark as engine
from ...fleet.access.permission_rows import (
    COLUMNS,
    FILE_COLUMNS,
    KEY,
    PermissionFilter,
    add_words,
    make_where,
    parse_principal,
    parse_resource,
    render_row,
    select_wanted,
    write_parquet,
)
from ...fleet.answers.who_can import list_needed_rows, parse_query, who_can
from ...fleet.report.rows import (
    FORMATS,
    Sheet,
    find_column_unit,
    render_table,
    to_jsonable,
    write_rows,
    write_whole,
)
from ...fleet.spark.session import build_session
from ...fleet.tables.definitions import Row, quote_text
from ...provider.registry import Registry
from ...state.backends.obstores import is_remote
from .runs import SparkOptions, add_jars, need_packages, need_reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ...fleet.answers.history import FleetStatus
    from ...fleet.tables.reader import Gold

JSON, CSV, PARQUET = "json", "csv", "parquet"
PARQUET_FILE = "permissions.parquet"
"""Name of the only file of a Parquet folder that was written without Spark."""
SCREEN_ROWS = 200
"""An expansion with more rows than this needs --out."""
_PERMISSIONS = "effective_permissions"
_MESSAGE_CHARACTERS = 500
"""How many characters of Spark's message an error shows."""
_OPERATORS = {"=": "=", "in": "IN"}
_VALUE_COLUMNS = frozenset(("desired", "state", "live", "before", "after"))
"""Columns with the values of the attribute that `path` names."""


def format_sheet(sheet: Sheet, form: str, kind: str = "") -> str:
    """Render the table. kind: the resource type that all rows are about, if no column says it.
    Raises UsageError: there is no such format."""
    if form not in FORMATS:
        *names, last = FORMATS
        advice = f"Use {', '.join(names)} or {last}."
        raise UsageError(f"--format {form}: there is no such format", advice)
    find_unit = partial(_find_unit, kind=kind)
    return render_table(sheet, find_unit) if form == "table" else FORMATS[form](sheet)


def _find_unit(row: Mapping[str, Any], column: str, kind: str) -> str:
    """The unit of a value, from the name of its column or from the attribute that the row is
    about."""
    kind = row.get("kind") or kind
    if column in _VALUE_COLUMNS and kind and row.get("path"):
        return _find_kind_unit(kind, (*row["path"].split(".", 1),))
    if column == "value" and row.get("quota_key"):
        return _find_kind_unit("kafka_quota", ("config", row["quota_key"]))
    return find_column_unit(column)


@cache
def _find_kind_unit(kind: str, path: tuple[str, ...]) -> str:
    """The unit of an attribute of Kafka's objects."""
    words = Registry().load("kafka").words.kinds.get(kind)
    return words.unit(path) if words is not None and words.unit is not None else ""


def write_report(root: str, out: Path, *, csv: bool, redact: bool) -> tuple[Path, ...]:
    """Write the report; return the files. Raises UsageError, StorageError."""
    need_reader()
    return reports.documents.write_report(root, out, redact=redact, csv=csv).paths


def query_build(root: str, sql: str) -> Sheet:
    """Run a query over the current build. Raises UsageError: it is not a query, or names what does
    not exist."""
    gold = _open_gold(root)  # first, because it says what to install
    return answers.query.run_query(gold, sql)


def list_old_rows(root: str, sql: str) -> tuple[str, ...]:
    """Say whose rows a query may return although nobody knows how the cluster is now."""
    return tuple(answers.query.list_old_rows(_open_gold(root), sql))


def find_who_can(
    root: str,
    operation: str,
    resource: str,
    *,
    cluster: str | None,
    principal: str | None,
    host: str | None,
) -> Sheet:
    """Return who can do it: a row per cluster and principal. Raises UsageError."""
    query = parse_query(operation, resource, principal, host)
    gold = _open_gold(root)
    gold.require(_PERMISSIONS)
    condition = f"cluster = {quote_text(cluster)}" if cluster else "true"
    clusters = gold.read_rows(f"SELECT * FROM cluster WHERE {condition}")
    if cluster and not clusters:
        raise _no_cluster_error(gold, cluster)
    needed = (
        f'"{column}" {_OPERATORS[operator]} {_render_sql(value)}'
        for column, operator, value in list_needed_rows(query)
    )
    conditions = " AND ".join((condition, *needed))
    rows = gold.read_rows(f"SELECT * FROM {_PERMISSIONS} WHERE {conditions}")
    names = ("cluster", "principal", "exceptions", "verdict", "rule", "via", "needs", "as_of")
    verdicts = who_can(rows, clusters, query)
    return Sheet(names, tuple(tuple(getattr(v, name) for name in names) for v in verdicts))


def _render_sql(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quote_text(value)
    return f"({', '.join(map(_render_sql, value))})"


def find_history(root: str, key: str, cluster: str, since: str) -> Sheet:
    """Return the history of an object. Raises UsageError: there is no such object."""
    gold = _open_gold(root)
    return answers.history.read_history(gold, cluster, key, answers.history.parse_span(since))


def format_history(sheet: Sheet, form: str, key: str) -> str:
    """Render the history of an object, in the units of its kind. key: as for `find_history`.
    Raises UsageError: there is no such format."""
    kind = key.partition("/")[0]
    return format_sheet(sheet, form, f"kafka_{kind.removeprefix('kafka_')}")


def read_status(root: str) -> FleetStatus:
    """Return the status of the builds. Raises UsageError: there is no build."""
    need_reader()
    return answers.history.read_status(root)


def make_status_document(status: FleetStatus) -> dict[str, Any]:
    """Return the status for programs."""
    sheets = {
        title.lower().replace(" ", "_"): [
            dict(zip(sheet.names, to_jsonable(row), strict=True)) for row in sheet.rows
        ]
        for title, sheet in status.sheets.items()
    }
    return {
        "format_version": "1.0",
        "build": status.build.name,
        "complete": status.complete,
        **sheets,
    }


def _open_gold(root: str) -> Gold:
    need_reader()
    return tables.reader.Gold(tables.reader.read_current(root))


def _no_cluster_error(gold: Gold, cluster: str) -> UsageError:
    return UsageError(
        f"build {gold.build.name} has no cluster {cluster}",
        "`kafkaform fleet query 'SELECT cluster FROM cluster'` lists them.",
    )


# ── permissions ─────────────────────────────────────────────────────────────────────────


class PermissionsRequest(Struct, frozen=True):
    """What `fleet permissions` was asked for."""

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
    gold = _open_permissions(request, _PERMISSIONS)
    order = ", ".join(f'"{name}"' for name in KEY)
    sql = f"select * from {_PERMISSIONS} where {make_where(request.only)} order by {order}"
    rows = (row for batch in gold.read_batches(sql) for row in tables.reader.to_rows(batch))
    return _write_rows(request, map(add_words, select_wanted(rows, request.only)))


def export_by_resource(request: PermissionsRequest, spark: SparkOptions, report: Reporter) -> str:
    """Compute and write rows about resources. Raises like `export_by_pattern`, and KafkaformError:
    Spark fails."""
    need_packages()
    gold = _open_permissions(request, "live")
    report(Progress("fleet", "starting the engine", 0, None))
    with _start_session(spark, request.root) as session, _explain_errors():
        root = gold.build.root
        store = engine.store.TableStore(
            session, root if is_remote(root) else str(Path(root).absolute())
        )
        # No lock: the build's versions do not change while it is read, and nothing is written to
        # the root.
        frames = {
            name: store.read(name, gold.build.tables[name].version) for name in ("live", "cluster")
        }
        rows = access.permissions.expand_permissions(frames, request.only)
        report(Progress("fleet", "expanding permissions", 0, None))
        text = _write_frame(request, rows)
    report(Progress("fleet", "permissions expanded", 1, 1, finished=True))
    return text


def _open_permissions(request: PermissionsRequest, table: str) -> Gold:
    gold = _open_gold(request.root)
    gold.require(table)
    name = request.only.cluster
    if name and not gold.read_rows(f"SELECT 1 FROM cluster WHERE cluster = {quote_text(name)}"):
        raise _no_cluster_error(gold, name)
    return gold


@contextmanager
def _start_session(spark: SparkOptions, root: str) -> Iterator[SparkSession]:
    setup = spark.make_setup(spark.choose_engine(root, wish="--expand").master)
    session = build_session(add_jars(setup))
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def _explain_errors() -> Iterator[None]:
    """Turn what Spark raises into a KafkaformError."""
    try:
        yield
    except engine.store.SPARK_ERRORS as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise KafkaformError(
            f"the permissions cannot be expanded: {lines[0][:_MESSAGE_CHARACTERS]}",
            "`kafkaform fleet doctor` checks disk and Java. SPARK_DRIVER_MEMORY=8g gives Spark "
            "more memory.",
        ) from error


def _write_frame(request: PermissionsRequest, rows: DataFrame) -> str:
    if request.out is not None and request.form == PARQUET:
        # Spark's workers write in parallel; the driver never sees the rows.
        rows.select(*FILE_COLUMNS).write.parquet(str(request.out.absolute()))
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
