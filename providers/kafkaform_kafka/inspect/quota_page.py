"""The page of `explain quota`: every level of limits, and what applies to a client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaform.core.text.foreign import inline
from kafkaform.core.value import FrozenMap
from kafkaform.provider.page import Cells, Grid, Page

from .cells import cell, entity_text, limit_text

WINS = "*"
_OTHERS_SHOWN = 10
"""Names that the page lists of those with limits of their own."""


def quota_page(document: FrozenMap) -> Page:
    """The page of a document of `explain quota`."""
    if document["callback"]:
        yield (
            f"The brokers have client.quota.callback.class = {document['callback']}. Only that "
            "class decides. The following shows what Kafka's own rules would do with these quotas."
        )
        yield ""
    if document["user"] is not None or document["client_id"] is not None:
        entity = {"user": document["user"], "client-id": document["client_id"]}
        yield ", ".join(
            f"any {kind} without a limit of its own" if name is None else _render_client(kind, name)
            for kind, name in entity.items()
        )
        if document["others"]:
            kind = "client-id" if document["client_id"] is None else "user"
            option = "client ID" if kind == "client-id" else "user NAME"
            names = ", ".join(inline(name) for name in document["others"][:_OTHERS_SHOWN])
            hidden_count = len(document["others"]) - _OTHERS_SHOWN
            tail = f" and {hidden_count:,} more" if hidden_count > 0 else ""
            yield f"Other limits can apply with {kind} {names}{tail}: add `{option}`."
        numbered = [row for row in document["levels"] if row["level"] is not None]
        yield _render_grid(numbered, _select_limits(document, "client"))
        yield ""
    if document["ip"] is not None:
        yield _render_client("ip", document["ip"])
        addresses = [row for row in document["levels"] if row["level"] is None]
        yield _render_grid(addresses, _select_limits(document, "ip"))
        yield ""
    yield "What applies (* above):"
    yield Grid(tuple(map(_render_limit, document["limits"])))


def _render_client(kind: str, name: str) -> str:
    return entity_text({kind: name})


def _select_limits(document: FrozenMap, whom: str) -> list[FrozenMap]:
    return [limit for limit in document["limits"] if limit["of"] == whom]


def _render_grid(levels: list[FrozenMap], limits: list[FrozenMap]) -> Grid:
    keys = [limit["key"] for limit in limits]
    rows: list[Cells] = [("Level", "Entity", *keys)]
    for level in levels:
        number = cell(level["level"]) if level["level"] is not None else ""
        values = (_render_value(level, limit) for limit in limits)
        rows.append((number, entity_text(level["entity"]), *values))
    return Grid(tuple(rows), frozenset({0}))


def _render_value(level: Mapping[str, Any], limit: FrozenMap) -> str:
    text = limit_text(limit["key"], level["config"].get(limit["key"]))
    return f"{text} {WINS}" if limit["entity"] == level["entity"] else text


def _render_limit(limit: FrozenMap) -> Cells:
    if limit["value"] is None:
        return limit["key"], "no limit", ""
    text = limit_text(limit["key"], limit["value"])
    counted = text if limit["unit"] == "bytes/s" else f"{text} {limit['unit']}"
    return limit["key"], f"{counted} at {limit['scope']}", f"shared by {limit['shared_by']}"
