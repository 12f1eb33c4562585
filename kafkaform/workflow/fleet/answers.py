"""`fleet report|query|who-can|history|status`: answers from a build's tables, without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.errors import UsageError
from ...fleet.answers import history
from ...fleet.answers.table_sql import select
from ...fleet.answers.who_can import needed_rows, wanted, who_can
from ...fleet.exports.rows import FORMATS, Sheet, jsonable
from ...fleet.report import make
from ...fleet.tables.reader import Gold, current
from ...fleet.tables.reader import literal as sql_text
from .runs import need_packages

_OPERATORS = {"=": "=", "in": "IN"}


def formatted(sheet: Sheet, form: str) -> str:
    """Raises UsageError: there is no such format."""
    if form not in FORMATS:
        raise UsageError(f"--format {form}: there is no such format", f"Use {_or(FORMATS)}.")
    return FORMATS[form](sheet)


def write_report(root: str, out: Path, *, csv: bool, redact: bool) -> tuple[Path, ...]:
    """The files that were written. Raises UsageError, StorageError."""
    need_packages()
    return make.write(root, out, redact=redact, csv=csv).paths


def queried(root: str, sql: str) -> Sheet:
    """Raises UsageError: it is no query, or names what is not there."""
    return select(_gold(root), sql)


def who(
    root: str,
    operation: str,
    resource: str,
    *,
    cluster: str | None,
    principal: str | None,
    host: str | None,
) -> Sheet:
    """Who may do it, a row for each cluster and principal. Raises UsageError."""
    asked = wanted(operation, resource, principal, host)
    gold = _gold(root)
    gold.require("effective_permissions")
    which = f"cluster = {sql_text(cluster)}" if cluster else "true"
    clusters = gold.rows(f"SELECT * FROM cluster WHERE {which}")
    if cluster and not clusters:
        raise UsageError(
            f"build {gold.build.name} knows no cluster {cluster}",
            "`kafkaform fleet query 'SELECT cluster FROM cluster'` lists them.",
        )
    conditions = " AND ".join((which, *map(_condition, needed_rows(asked))))
    rows = gold.rows(f"SELECT * FROM effective_permissions WHERE {conditions}")
    names = ("cluster", "principal", "verdict", "rule", "via", "needs", "as_of")
    found = who_can(rows, clusters, asked)
    return Sheet(names, tuple(tuple(getattr(a, name) for name in names) for a in found))


def _condition(part: tuple[str, str, Any]) -> str:
    column, operator, value = part
    return f'"{column}" {_OPERATORS[operator]} {_sql(value)}'


def _sql(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return sql_text(value)
    return f"({', '.join(map(_sql, value))})"


def timeline(root: str, key: str, cluster: str, since: str) -> Sheet:
    """Raises UsageError: there is no such object."""
    return history.history(_gold(root), cluster, key, history.span(since))


def standing(root: str) -> history.Status:
    """Raises UsageError: there is no build."""
    need_packages()
    return history.status(root)


def standing_document(state: history.Status) -> dict[str, Any]:
    """For programs."""
    parts = {
        title.lower().replace(" ", "_"): [
            dict(zip(sheet.names, jsonable(row), strict=True)) for row in sheet.rows
        ]
        for title, sheet in state.parts.items()
    }
    return {
        "format_version": "1.0",
        "build": state.build.name,
        "complete": state.complete,
        **parts,
    }


def _gold(root: str) -> Gold:
    need_packages()
    return Gold(current(root))


def _or(names: Mapping[str, Any]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}"
