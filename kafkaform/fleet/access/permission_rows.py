"""Select and word permission rows for people and programs.

Without Spark: rows about patterns come from `effective_permissions` as a build made it. What
`permissions.expand_permissions` computes is worded alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from kafkaform_kafka.authority.authorizer import EVERYBODY
from kafkaform_kafka.protocol.acl import EVERYTHING, PREFIXED

from ..landed.globs import to_regex
from ..tables.definitions import TABLES
from ..tables.reader import Row, quote_text
from .operation_bits import MASKS, list_operations, parse_resource

KEY = TABLES["effective_permissions"].key
COLUMNS = (*KEY, *MASKS.values(), "via")
"""What is shown of a row."""
KEPT = (*COLUMNS, *MASKS)
"""What a file for programs contains."""
_PIECE = 50_000
"""Rows per batch of a Parquet file."""


class PermissionFilter(Struct, frozen=True):
    """Which rows are wanted. None: all."""

    cluster: str | None = None
    principal: str | None = None
    resource: str | None = None
    """Such as `topic/orders`, or a glob such as `topic/orders.*`. A name need not exist yet; a glob
    matches names that do."""


def get_stem(glob: str) -> str:
    """Return the text before the first wildcard of a glob."""
    return re.split(r"[*?]", glob, maxsplit=1)[0]


def make_where(only: PermissionFilter) -> str:
    """Return SQL for the rows about patterns that are wanted, and maybe some more. Rows of `User:*`
    apply to any principal. Raises UsageError: `only` is no resource."""
    conditions = ["pattern_level"]
    if only.cluster is not None:
        conditions.append(f"cluster = {quote_text(only.cluster)}")
    if only.principal is not None:
        conditions.append(f"principal IN ({quote_text(only.principal)}, {quote_text(EVERYBODY)})")
    if only.resource is not None:
        kind, glob = parse_resource(only.resource)
        begin = get_stem(glob)
        # Every shorter prefix may cover the resource: they are listed, so that the engine can skip
        # files.
        wider = (f"{begin[:length]}{EVERYTHING}" for length in range(len(begin) + 1))
        listed = ", ".join(map(quote_text, sorted({EVERYTHING, *wider})))
        conditions.append(f"resource_type = {quote_text(kind)}")
        conditions.append(f"(resource IN ({listed}) OR starts_with(resource, {quote_text(begin)}))")
    return " AND ".join(conditions)


def select_wanted(rows: Iterable[Row], only: PermissionFilter) -> Iterator[Row]:
    """Keep the rows whose pattern can cover what is asked for."""
    if only.resource is None:
        yield from rows
        return
    _, glob = parse_resource(only.resource)
    whole = re.compile(to_regex(glob))
    for row in rows:
        name = row["resource"]
        if row["pattern_type"] == PREFIXED:
            fits = can_begin(glob, name.removesuffix(EVERYTHING))
        else:
            fits = name == EVERYTHING or whole.match(name) is not None
        if fits:
            yield row


def can_begin(glob: str, prefix: str) -> bool:
    """True if the glob matches some name with this prefix."""
    for sign, char in zip(glob, prefix, strict=False):
        if sign == "*":
            return True
        if sign not in ("?", char):
            return False
    return len(prefix) <= len(glob)


def add_words(row: Row) -> dict[str, Any]:
    """Return the row with operations in words as well: KEPT."""
    named = {name: list(list_operations(row[mask])) for mask, name in MASKS.items()}
    return {name: named[name] if name in named else row[name] for name in KEPT}


def render_row(row: Row) -> tuple[Any, ...]:
    """Return COLUMNS of a row for people, with operations on one line."""
    lines = set(MASKS.values())
    return tuple(", ".join(row[name]) if name in lines else row[name] for name in COLUMNS)


def write_parquet(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows to one file."""
    import pyarrow as pa  # noqa: PLC0415  # the fleet extra has it, and it is slow to load
    import pyarrow.parquet as pq  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

    # The schema is given: a first batch of empty lists would fix the wrong type for all others.
    types = {**dict.fromkeys(KEY, pa.string()), **dict.fromkeys(MASKS, pa.int32())}
    schema = pa.schema([(name, types.get(name, pa.list_(pa.string()))) for name in KEPT])
    left = iter(rows)
    with pq.ParquetWriter(path, schema) as writer:
        while piece := list(islice(left, _PIECE)):
            writer.write_table(pa.Table.from_pylist(piece, schema))
