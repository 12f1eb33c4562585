"""The page of `explain config`: where the value of a config comes from."""

from __future__ import annotations

from collections.abc import Iterator

from kafkaform.core.value import FrozenMap
from kafkaform.provider.page import Cells, Grid, Page, Prose

from .cells import config_text

SENSITIVE = "(sensitive)"
_HEADER = ("", "SOURCE", "CONFIG", "VALUE")


def config_page(document: FrozenMap) -> Page:
    """The page of a document of `explain config`."""
    name = f" {document['name']}" if document["name"] else ""
    yield f"{document['key']} of {document['entity']}{name}"
    yield ""
    yield Grid((_HEADER, *map(_render_row, _mask_levels(document))))
    yield ""
    if not any(level["wins"] for level in document["levels"]):
        yield "Nothing sets it, and it has no default."
    if document["type"]:
        yield f"Type: {document['type'].lower()}"
    yield f"Can be changed: {document['changed']}"
    if document["sensitive"]:
        yield "Brokers never report its value."
    if document["documentation"]:
        yield ""
        yield Prose(document["documentation"])


def _mask_levels(document: FrozenMap) -> Iterator[FrozenMap]:
    for level in document["levels"]:
        hidden = document["sensitive"] and level["set"]
        yield level.with_items({"value": SENSITIVE}) if hidden else level


def _render_row(level: FrozenMap) -> Cells:
    if not level["set"]:
        return "", level["title"], "", "-"
    value = _render_value(level["key"], level["value"])
    return "→" if level["wins"] else "", level["title"], level["key"], value


def _render_value(key: str, value: str | None) -> str:
    if value is None:
        return "null"
    return config_text(key, value) if value else '""'
