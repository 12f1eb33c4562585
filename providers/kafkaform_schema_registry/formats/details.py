"""Schemas in lines for people: what a new one is, and both sides of each difference of a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafkaform.core.text.quantity import render_amount, render_count
from kafkaform.core.value import FrozenMap
from kafkaform.provider.http.exchange import parse_json

from .avro import open_schema, parse_avro
from .faults import write_edit
from .json_schema import describe_json_type
from .normal_form import FORMATS
from .protobuf import open_protobuf

MAX_LINES = 40
"""Differences of one schema that are shown; findings name the important ones in any case."""


def describe_texts(before: FrozenMap | None, after: FrozenMap | None) -> tuple[str, ...]:
    """The lines about the schema of an object: what it is if it is new or goes, else what differs.
    See `KindWords.details`."""
    if before is None or after is None:
        attributes = after if before is None else before
        return () if attributes is None else (describe_schema(attributes),)
    if before["schema"] == after["schema"] and before["format"] == after["format"]:
        return ()
    sides = f"{describe_schema(before)} → {describe_schema(after)}"
    if before["format"] != after["format"]:
        return (sides,)
    try:
        edits = FORMATS[after["format"]].list_edits(before["schema"], after["schema"])
    except ValueError:
        return (sides,)
    lines = [write_edit(edit) for edit in edits]
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = [f"and {len(lines) - MAX_LINES} more differences"]
    return (sides, *lines)


def describe_schema(attributes: FrozenMap) -> str:
    """What a schema is, and its size: `record shop.Order: 12 fields, 3.4 KiB`. attributes: those of
    a schema."""
    kind, text = str(attributes["format"]), str(attributes["schema"])
    try:
        title = _TITLES[kind](text)
    except ValueError:
        title = f"no {FORMATS[kind].title}" if kind in FORMATS else kind
    return f"{title}, {render_amount(len(text.encode('utf-8', 'surrogatepass')), 'bytes')}"


def _describe_avro(text: str) -> str:
    schema = open_schema(parse_avro(text))
    if schema.kind in ("record", "error"):
        return f"{schema.describe()}: {render_count(len(schema.list_fields()), 'field')}"
    if schema.kind == "enum":
        return f"{schema.describe()}: {render_count(len(schema.node['symbols']), 'symbol')}"
    return schema.describe()


def _describe_json(text: str) -> str:
    document: Any = parse_json(text)
    title = document.get("title") if isinstance(document, dict) else None
    properties = document.get("properties") if isinstance(document, dict) else None
    name = f"{describe_json_type(document)}{f' {title}' if isinstance(title, str) else ''}"
    if not isinstance(properties, dict):
        return name
    return f"{name}: {render_count(len(properties), 'property', 'properties')}"


def _describe_protobuf(text: str) -> str:
    file = open_protobuf(text)
    prefix = f"{file.package}." if file.package else ""
    messages = [
        f"message {prefix}{path}: {render_count(len(message.fields), 'field')}"
        for path, message in file.messages.items()
        if "." not in path
    ]
    omitted = len(messages) - 3
    summary = "; ".join(messages[:3]) or "no message"
    return f"{summary}; and {render_count(omitted, 'more message')}" if omitted > 0 else summary


_TITLES: Mapping[str, Callable[[str], str]] = {
    "avro": _describe_avro,
    "json": _describe_json,
    "protobuf": _describe_protobuf,
}
