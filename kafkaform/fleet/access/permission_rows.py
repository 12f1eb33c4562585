"""Permissions as people and programs read them: which rows are wanted, and operations as words.

Without Spark: rows about patterns come from `effective_permissions` as a build has made it; what
`permissions.expand_permissions` makes of them is worded alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from kafkaform_kafka.authority.authorizer import EVERYBODY, PREFIXED
from kafkaform_kafka.kinds.acl.resource_type import EVERYTHING

from ..landed.globs import to_regex
from ..tables.definitions import TABLES
from ..tables.reader import Row, quote_text
from .operation_bits import MASKS, list_operations, parse_resource

KEY = TABLES["effective_permissions"].key
COLUMNS = (*KEY, *MASKS.values(), "via")
"""What is shown of a row."""
KEPT = (*COLUMNS, *MASKS)
"""What a file for programs has of it."""
_PIECE = 50_000
"""Rows of one batch of a file."""


class PermissionFilter(Struct, frozen=True):
    """What is wanted, None: everything. resource: like `topic/orders`, or a glob: `topic/orders.*`.
    A name need not be there yet; a glob is of names that are."""

    cluster: str | None = None
    principal: str | None = None
    resource: str | None = None


def get_stem(glob: str) -> str:
    """What a glob begins with: all of it, if it stands for itself alone."""
    return re.split(r"[*?]", glob, maxsplit=1)[0]


def make_where(only: PermissionFilter) -> str:
    """SQL for the rows about patterns that are wanted, and maybe some more. Those of `User:*` hold
    for any principal. Raises UsageError: `only` names no resource."""
    conditions = ["pattern_level"]
    if only.cluster is not None:
        conditions.append(f"cluster = {quote_text(only.cluster)}")
    if only.principal is not None:
        conditions.append(f"principal IN ({quote_text(only.principal)}, {quote_text(EVERYBODY)})")
    if only.resource is not None:
        kind, glob = parse_resource(only.resource)
        begin = get_stem(glob)
        wider = (f"{begin[:length]}{EVERYTHING}" for length in range(len(begin) + 1))
        listed = ", ".join(map(quote_text, sorted({EVERYTHING, *wider})))
        conditions.append(f"resource_type = {quote_text(kind)}")
        conditions.append(f"(resource IN ({listed}) OR starts_with(resource, {quote_text(begin)}))")
    return " AND ".join(conditions)


def select_wanted(rows: Iterable[Row], only: PermissionFilter) -> Iterator[Row]:
    """Of `where`'s rows those whose pattern can cover what is asked about."""
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
    """Whether the glob stands for any name with this prefix."""
    for sign, char in zip(glob, prefix, strict=False):
        if sign == "*":
            return True
        if sign not in ("?", char):
            return False
    return len(prefix) <= len(glob)


def add_words(row: Row) -> dict[str, Any]:
    """A row of effective_permissions with operations in words, too: KEPT."""
    named = {name: list(list_operations(row[mask])) for mask, name in MASKS.items()}
    return {name: named[name] if name in named else row[name] for name in KEPT}


def render_row(row: Row) -> tuple[Any, ...]:
    """COLUMNS of a worded row for people, operations on one line."""
    lines = set(MASKS.values())
    return tuple(", ".join(row[name]) if name in lines else row[name] for name in COLUMNS)


def write_parquet(path: Path, rows: Iterable[Row]) -> None:
    """Worded rows as one file."""
    import pyarrow as pa  # noqa: PLC0415  # the fleet extra has it, and it is slow to load
    import pyarrow.parquet as pq  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

    types = {**dict.fromkeys(KEY, pa.string()), **dict.fromkeys(MASKS, pa.int32())}
    schema = pa.schema([(name, types.get(name, pa.list_(pa.string()))) for name in KEPT])
    left = iter(rows)
    with pq.ParquetWriter(path, schema) as writer:
        while piece := list(islice(left, _PIECE)):
            writer.write_table(pa.Table.from_pylist(piece, schema))
