"""Answer `fleet report|query|who-can|history|status` from a build's tables, without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ...core.errors import UsageError
from ...fleet.answers import history
from ...fleet.answers.table_sql import run_query
from ...fleet.answers.who_can import list_needed_rows, parse_query, who_can
from ...fleet.exports.rows import (
    FORMATS,
    Sheet,
    find_column_unit,
    render_table,
    to_jsonable,
)
from ...fleet.report import make
from ...fleet.tables.reader import Gold, read_current
from ...fleet.tables.reader import quote_text as sql_text
from ...provider.registry import Registry
from .runs import need_packages

_OPERATORS = {"=": "=", "in": "IN"}


def format_sheet(sheet: Sheet, form: str) -> str:
    """Render the table. Raises UsageError: there is no such format."""
    if form not in FORMATS:
        raise UsageError(f"--format {form}: there is no such format", f"Use {_join_or(FORMATS)}.")
    return render_table(sheet, _find_unit) if form == "table" else FORMATS[form](sheet)


_VALUE_COLUMNS = frozenset(("desired", "state", "live", "before", "after"))
"""Columns with the values of the attribute that `path` names."""


def _find_unit(row: Mapping[str, Any], column: str) -> str:
    """The unit of a value, from the name of its column or from the attribute that the row is
    about."""
    if column in _VALUE_COLUMNS and row.get("kind") and row.get("path"):
        return _find_kind_unit(row["kind"], (*row["path"].split(".", 1),))
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
    need_packages()
    return make.write_report(root, out, redact=redact, csv=csv).paths


def query_build(root: str, sql: str) -> Sheet:
    """Run a query over the current build. Raises UsageError: it is no query, or names what does not
    exist."""
    return run_query(_open_gold(root), sql)


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
    gold.require("effective_permissions")
    cluster_condition = f"cluster = {sql_text(cluster)}" if cluster else "true"
    clusters = gold.read_rows(f"SELECT * FROM cluster WHERE {cluster_condition}")
    if cluster and not clusters:
        raise UsageError(
            f"build {gold.build.name} has no cluster {cluster}",
            "`kafkaform fleet query 'SELECT cluster FROM cluster'` lists them.",
        )
    conditions = " AND ".join((cluster_condition, *map(_render_condition, list_needed_rows(query))))
    rows = gold.read_rows(f"SELECT * FROM effective_permissions WHERE {conditions}")
    names = ("cluster", "principal", "verdict", "rule", "via", "needs", "as_of")
    answers = who_can(rows, clusters, query)
    return Sheet(names, tuple(tuple(getattr(a, name) for name in names) for a in answers))


def _render_condition(condition: tuple[str, str, Any]) -> str:
    column, operator, value = condition
    return f'"{column}" {_OPERATORS[operator]} {_render_sql(value)}'


def _render_sql(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return sql_text(value)
    return f"({', '.join(map(_render_sql, value))})"


def find_history(root: str, key: str, cluster: str, since: str) -> Sheet:
    """Return the history of an object. Raises UsageError: there is no such object."""
    return history.read_history(_open_gold(root), cluster, key, history.parse_span(since))


def read_status(root: str) -> history.FleetStatus:
    """Return the status of the builds. Raises UsageError: there is no build."""
    need_packages()
    return history.read_status(root)


def make_status_document(status: history.FleetStatus) -> dict[str, Any]:
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
    need_packages()
    return Gold(read_current(root))


def _join_or(names: Mapping[str, Any]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}"
