"""Render CSV cells that no spreadsheet executes, one by one or a batch of Arrow at a time.

Both ways give the same text. A batch is rendered by column: Arrow finds the few texts that may need
a change, and only those are handled in Python.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from ...core.canonical import dumps
from ...core.text.display import escape_formula, inline
from ..access.operation_bits import MASKS, list_operations

if TYPE_CHECKING:
    import pyarrow as pa

_SUSPECT = r"""^[ "']*[=+\-@|%]|[^\x20-\x7e]|##"""
"""A text without a match stays as it is in a cell (RE2 syntax)."""
_QUOTED = r"""[^\x20-\x7e]|["\\]|##"""
"""A text without a match stays as it is inside of JSON in a cell."""
_SECOND = "%Y-%m-%dT%H:%M:%SZ"


def to_text(value: object) -> str:
    """Render a value on one line: times in UTC, collections as canonical JSON, null as nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return render_utc(value)
    if isinstance(value, list | tuple | dict):
        return dumps(to_jsonable(value))
    return inline(str(value))


def render_utc(time: datetime) -> str:
    """RFC 3339 with Z, to the second. A time without a zone is UTC."""
    aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return aware.strftime(_SECOND)


def to_jsonable(value: Any) -> Any:
    """Return the value in JSON's types. NaN and infinity become null."""
    if isinstance(value, Mapping):
        return {str(name): to_jsonable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_jsonable(item) for item in value]
    if isinstance(value, datetime):
        return render_utc(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def render_cell(value: object) -> str:
    """Render a value. Text that a spreadsheet would execute gets an apostrophe in front; numbers
    stay."""
    return to_text(value) if isinstance(value, int | float) else escape_formula(to_text(value))


def expand_mask(column: str, value: Any) -> Any:
    """Return a mask as the operations that it stands for, by the name of its column; else the
    value."""
    return (
        ", ".join(list_operations(value)) if column in MASKS and isinstance(value, int) else value
    )


def render_rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Return the batch as rows for a CSV writer: text, numbers that it writes as `render_cell`
    would, or None."""
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return zip(*(_render_column(name, column) for name, column in columns), strict=True)


def _render_column(name: str, column: pa.Array) -> list[Any]:
    import pyarrow as pa  # noqa: PLC0415  # the fleet extra has it, and it is slow to load
    import pyarrow.compute as pc  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

    kind, types = column.type, pa.types
    if name in MASKS:
        # Few distinct masks stand for millions of rows.
        known = {value: expand_mask(name, value) for value in pc.unique(column).to_pylist()}
        return [known[value] for value in column.to_pylist()]
    if types.is_string(kind) or types.is_string_view(kind):
        return _render_texts(column.cast(pa.string()))
    if types.is_list(kind) and types.is_string_view(kind.value_type):
        return _render_lists(column.cast(pa.list_(pa.string())))
    if types.is_timestamp(kind):
        # In whole seconds: Arrow's %S prints the decimals of finer units.
        column = pc.strftime(column.cast(pa.timestamp("s", "UTC"), safe=False), _SECOND)
    elif types.is_boolean(kind) or types.is_date32(kind):
        column = column.cast(pa.string())
    elif not (types.is_integer(kind) or types.is_floating(kind)):
        return [render_cell(value) for value in column.to_pylist(maps_as_pydicts="lossy")]
    values: list[Any] = column.to_pylist()
    return values


def _render_texts(column: pa.StringArray) -> list[str | None]:
    import pyarrow.compute as pc  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

    values: list[str | None] = column.to_pylist()
    suspect = pc.fill_null(pc.match_substring_regex(column, _SUSPECT), False)
    for place in pc.indices_nonzero(suspect).to_pylist():
        values[place] = render_cell(values[place])
    return values


def _render_lists(column: pa.ListArray) -> list[str | None]:
    """Render lists of texts as JSON."""
    import pyarrow as pa  # noqa: PLC0415  # the fleet extra has it, and it is slow to load
    import pyarrow.compute as pc  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

    texts = column.flatten()
    bad = pc.or_kleene(pc.match_substring_regex(texts, _QUOTED), pc.is_null(texts))
    if pc.any(bad).as_py():
        return [render_cell(value) for value in column.to_pylist()]
    inside = pc.binary_join(column, pa.scalar('","'))
    joined = pc.binary_join_element_wise('["', inside, '"]', "")
    empty = pc.equal(pc.list_value_length(column), 0)
    values: list[str | None] = pc.if_else(empty, "[]", joined).to_pylist()
    return values
