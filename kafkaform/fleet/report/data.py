"""Render the report as JSON, for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.canonical import dumps
from ..exports.rows import to_jsonable
from .grids import Grid
from .model import FleetReport


def render_data(report: FleetReport) -> str:
    """One line of canonical JSON: what the page says, with every row that it shows."""
    return dumps(to_jsonable(_to_plain(report))) + "\n"


def _to_plain(value: Any) -> Any:
    """Turn structs into maps and lists, and tables into one map per row."""
    if isinstance(value, Grid):
        names = [column.name for column in value.columns]
        rows = [dict(zip(names, row, strict=True)) for row in value.rows]
        return {"caption": value.caption, "total": value.total, "rows": rows, "table": value.csv}
    if isinstance(value, Mapping):
        return {name: _to_plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(item) for item in value]
    members = getattr(type(value), "__struct_fields__", ())
    return {name: _to_plain(getattr(value, name)) for name in members} if members else value
