"""Where the value of a config comes from, for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from ..core.value import FrozenMap
from .documents import fitted
from .text import inline, table

WIDTH = 96
SENSITIVE = "(sensitive)"
_HEADER = ["", "SOURCE", "CONFIG", "VALUE"]


def lines(document: FrozenMap, width: int | None = None) -> Iterator[str]:
    """The explanation of one config, line by line; what comes from the cluster is neutralised.
    width: of the terminal, None for a pipe."""
    name = f" {document['name']}" if document["name"] else ""
    yield f"{inline(document['key'])} of {inline(document['entity'] + name)}"
    yield ""
    yield from table(fitted([_HEADER, *(_row(each) for each in _levels(document))], width))
    yield ""
    if not any(level["wins"] for level in document["levels"]):
        yield "Nothing sets it, and it has no default."
    if document["type"]:
        yield f"Type: {document['type'].lower()}"
    yield f"Can be changed: {inline(document['changed'])}"
    if document["sensitive"]:
        yield "Its value is never told."
    if document["documentation"]:
        yield ""
        yield from textwrap.wrap(inline(document["documentation"]), min(WIDTH, width or WIDTH))


def _levels(document: FrozenMap) -> Iterator[FrozenMap]:
    for level in document["levels"]:
        hidden = document["sensitive"] and level["set"]
        yield level.with_items({"value": SENSITIVE}) if hidden else level


def _row(level: FrozenMap) -> list[str]:
    if not level["set"]:
        return ["", level["title"], "", "-"]
    value = level["value"]
    shown = '""' if value == "" else "null" if value is None else inline(value)
    return ["→" if level["wins"] else "", level["title"], inline(level["key"]), shown]
