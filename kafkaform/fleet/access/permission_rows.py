"""Permission rows: operations as bits, the selection of rows, and rows in words.

Tables store operations as bits of one number, so no bit is ever reused. The bits are the protocol's
codes of the operations (AclOperation of Kafka 4.3).

Without Spark: rows about patterns come from `effective_permissions` as a build made it. What
`permissions.expand_permissions` computes is worded alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from kafkaform_kafka.authority.authorizer import ALL, EVERYBODY, IMPLIED_BY
from kafkaform_kafka.protocol.acl import (
    ALLOW,
    CLUSTER,
    EVERY_TOPIC,
    EVERYTHING,
    OPERATIONS,
    PREFIXED,
    SUPPORTED,
)

from ...core.errors import UsageError
from ..landed.register import to_regex
from ..tables.definitions import TABLES, Row, quote_text

BITS: Mapping[str, int] = OPERATIONS
"""Operation -> its bit. The bit of `All` is used while masks are computed, and in no table."""
SUPPORTED_OPERATIONS: Mapping[str, tuple[str, ...]] = SUPPORTED
"""Resource type -> the operations that Kafka ever asks of it: what a super user may do."""

ON_CLUSTER = "Cluster:"
"""Prefix of the operation of an ACL of the cluster that decides about every topic. Such rows are
among the ACLs of topics while masks are computed, and in no table."""
CLUSTER_SHIFT = 16
"""How much higher the bits are of what the cluster decides about topics. The broker asks the
cluster first, so a DENY on the topic takes none of these."""

MASKS: Mapping[str, str] = {
    "effective_mask": "effective",
    "unknown_mask": "unknown",
    "allow_mask": "allow",
    "deny_mask": "deny",
}
"""Column of bits -> the column of words."""

SPELLED: Mapping[str, str] = {
    "topic": "Topic",
    "group": "Group",
    "cluster": "Cluster",
    "transactional_id": "TransactionalID",
    "delegation_token": "DelegationToken",
    "user": "User",
}
"""Resource type as people write it -> as ACLs have it."""
KEY = TABLES["effective_permissions"].key
COLUMNS = (*KEY, *MASKS.values(), "via")
"""What is shown of a row."""
FILE_COLUMNS = (*COLUMNS, *MASKS)
"""What a file for programs contains."""
_BATCH_ROWS = 50_000
"""Rows per batch of a Parquet file."""


def make_mask(operations: Iterable[str]) -> int:
    """Return these operations as one number."""
    return sum(1 << BITS[name] for name in set(operations))


def list_operations(mask: int) -> tuple[str, ...]:
    """Return the operations of a mask, in the order of their bits."""
    return tuple(name for name, bit in BITS.items() if mask >> bit & 1)


def make_decided_mask(operation: str, permission: str) -> int:
    """Return what an ACL with this operation decides, including `All` itself. An ALLOW implies
    other operations; a DENY does not."""
    if operation.startswith(ON_CLUSTER):
        word = operation.removeprefix(ON_CLUSTER)
        return make_mask(EVERY_TOPIC if word == ALL else EVERY_TOPIC & {word}) << CLUSTER_SHIFT
    if operation == ALL:
        return make_mask(BITS)
    implied = (name for name, by in IMPLIED_BY.items() if permission == ALLOW and operation in by)
    return make_mask((operation, *implied))


def make_supported_mask(resource_type: str) -> int:
    """Return everything that Kafka ever asks of such a resource."""
    return make_mask(SUPPORTED_OPERATIONS[resource_type])


def parse_resource(text: str) -> tuple[str, str]:
    """`topic/orders` -> ("Topic", "orders"). Raises UsageError for anything else."""
    word, slash, name = text.partition("/")
    kind = SPELLED.get(word.lower())
    if kind == "Cluster" and not slash:
        return kind, CLUSTER
    if kind is None or not name:
        raise UsageError(
            f'"{text}" is not a resource',
            f"Write TYPE/NAME, such as topic/orders. The types are {', '.join(SPELLED)}.",
        )
    return kind, name


def parse_operation(text: str, resource_type: str) -> str:
    """`READ`, `read` or `describe_configs` -> `Read`, `DescribeConfigs`. Raises UsageError for an
    operation that Kafka never asks of such a resource."""
    word = text.replace("_", "").lower()
    for name in SUPPORTED_OPERATIONS[resource_type]:
        if name.lower() == word:
            return name
    raise UsageError(
        f'Kafka never asks for "{text}" on a {resource_type}',
        f"Ask for one of {', '.join(SUPPORTED_OPERATIONS[resource_type])}.",
    )


def parse_principal(text: str) -> str:
    """Check a principal such as `User:ci`. Raises UsageError for a name without its type, which no
    ACL can have."""
    kind, colon, name = text.partition(":")
    if kind and colon and name:
        return text
    raise UsageError(
        f'"{text}" is not a principal', f"Write TYPE:NAME, such as User:{name or kind}."
    )


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
    apply to any principal. Raises UsageError: `only` is not a resource."""
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
    regex = re.compile(to_regex(glob))
    for row in rows:
        name = row["resource"]
        if row["pattern_type"] == PREFIXED:
            fits = can_begin(glob, name.removesuffix(EVERYTHING))
        else:
            fits = name == EVERYTHING or regex.fullmatch(name) is not None
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
    """Return the row with operations in words as well: FILE_COLUMNS."""
    named = {name: list(list_operations(row[mask])) for mask, name in MASKS.items()}
    return {name: named[name] if name in named else row[name] for name in FILE_COLUMNS}


def render_row(row: Row) -> tuple[Any, ...]:
    """Return COLUMNS of a row for people, with operations on one line."""
    lines = set(MASKS.values())
    return tuple(", ".join(row[name]) if name in lines else row[name] for name in COLUMNS)


def write_parquet(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows to one file."""
    import pyarrow.parquet  # noqa: PLC0415  # the fleet extra has it, and only one form of answers needs it

    # The schema is given: a first batch of empty lists would fix the wrong type for all others.
    types = {**dict.fromkeys(KEY, pyarrow.string()), **dict.fromkeys(MASKS, pyarrow.int32())}
    schema = pyarrow.schema(
        [(name, types.get(name, pyarrow.list_(pyarrow.string()))) for name in FILE_COLUMNS]
    )
    remaining = iter(rows)
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        while piece := list(islice(remaining, _BATCH_ROWS)):
            writer.write_table(pyarrow.Table.from_pylist(piece, schema))
