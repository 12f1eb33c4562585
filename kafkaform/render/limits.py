"""Which limits a client has, as tables for people: every level, and what applies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..core.value import FrozenMap
from .documents import cell, entity_text, fitted
from .text import inline, table

WINS = "*"


def lines(document: FrozenMap, width: int | None = None) -> Iterator[str]:
    """The explanation line by line. width: of the terminal, None for a pipe."""
    if document["callback"]:
        yield (
            f"The brokers have client.quota.callback.class = {inline(document['callback'])}: it "
            "alone decides, and what follows is what Kafka's own rules would make of these quotas."
        )
        yield ""
    if document["user"] is not None:
        yield f"{_who('user', document['user'])}, {_who('client-id', document['client_id'])}"
        numbered = [row for row in document["levels"] if row["level"] is not None]
        yield from _grid(numbered, _of(document, "client"), width)
        yield ""
    if document["ip"] is not None:
        yield _who("ip", document["ip"])
        addresses = [row for row in document["levels"] if row["level"] is None]
        yield from _grid(addresses, _of(document, "ip"), width)
        yield ""
    yield "What applies (* above):"
    yield from table(fitted([_applies(limit) for limit in document["limits"]], width))


def _who(part: str, name: str) -> str:
    return inline(entity_text({part: name}))


def _of(document: FrozenMap, whom: str) -> list[FrozenMap]:
    return [limit for limit in document["limits"] if limit["of"] == whom]


def _grid(levels: list[FrozenMap], limits: list[FrozenMap], width: int | None) -> Iterator[str]:
    keys = [limit["key"] for limit in limits]
    rows = [["Level", "Entity", *keys]]
    for level in levels:
        number = cell(level["level"]) if level["level"] is not None else ""
        values = [_value(level, limit) for limit in limits]
        rows.append([number, inline(entity_text(level["entity"])), *values])
    yield from table(fitted(rows, width), frozenset({0}))


def _value(level: Mapping[str, Any], limit: FrozenMap) -> str:
    shown = cell(level["config"].get(limit["key"]))
    return f"{shown} {WINS}" if limit["entity"] == level["entity"] else shown


def _applies(limit: FrozenMap) -> list[str]:
    if limit["value"] is None:
        return [limit["key"], "no limit", ""]
    counted = f"{cell(limit['value'])} {limit['unit']} at {limit['scope']}"
    return [limit["key"], counted, f"shared by {inline(limit['shared_by'])}"]
