"""The formats of schemas: one spelling for equal schemas, the name of a record, faults, what
differs between two schemas, and what a schema is in lines for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from msgspec import Struct

from kafkaform.core.text.quantity import render_amount, render_count
from kafkaform.core.value import FrozenMap
from kafkaform.provider.http.exchange import parse_json

from .avro import find_record_name, normalize_avro, open_schema, parse_avro
from .avro_changes import list_avro_edits
from .avro_faults import find_avro_faults
from .faults import MAX_FAULTS, PlacedFault, SchemaEdit, SchemaFault, read_document, write_edit
from .json_schema import (
    describe_json_type,
    find_json_faults,
    list_json_edits,
    sort_keys,
    write_json,
)
from .protobuf import find_message_name, normalize_protobuf, open_protobuf
from .protobuf_judgements import find_protobuf_faults, list_protobuf_edits


class SchemaFormat(Struct, frozen=True):
    """One format of schemas."""

    name: str
    """What blocks call it."""
    registry_name: str
    """What registries call it."""
    title: str
    """What people call a schema of it: `an Avro schema`."""
    normalize: Callable[[str], str]
    """Equal schemas -> equal texts. Raises ValueError with a part of a sentence."""
    find_name: Callable[[str], str]
    """The full name of what the schema describes. Raises ValueError."""
    find_faults: Callable[[str, bool], Iterator[SchemaFault]]
    """Text, whether others define names that it does not -> why it is no schema."""
    list_edits: Callable[[str, str], tuple[SchemaEdit, ...]]
    """The differences of two schemas. Raises ValueError if one of the texts is none."""


def _normalize_json(text: str) -> str:
    return write_json(sort_keys(parse_json(text)))


def _find_title(text: str) -> str:
    document = parse_json(text)
    title = document.get("title") if isinstance(document, dict) else None
    if not isinstance(title, str) or not title:
        raise ValueError("it has no title, so it has no name")
    return title


def _place_faults(
    find: Callable[..., Iterator[PlacedFault]],
) -> Callable[[str, bool], Iterator[SchemaFault]]:
    """Finds faults in texts with a function that finds them in documents."""

    def find_in_text(text: str, elsewhere: bool) -> Iterator[SchemaFault]:
        document: Any = read_document(text)
        if isinstance(document, SchemaFault):
            yield document
        else:
            faults = find(document, elsewhere=elsewhere)
            yield from (fault.locate(text) for fault in faults)

    return find_in_text


def _list_avro_edits(before: str, after: str) -> tuple[SchemaEdit, ...]:
    return list_avro_edits(open_schema(parse_avro(before)), open_schema(parse_avro(after)))


FORMATS: Mapping[str, SchemaFormat] = {
    item.name: item
    for item in (
        SchemaFormat(
            "avro",
            "AVRO",
            "Avro schema",
            normalize_avro,
            find_record_name,
            _place_faults(find_avro_faults),
            _list_avro_edits,
        ),
        SchemaFormat(
            "json",
            "JSON",
            "JSON schema",
            _normalize_json,
            _find_title,
            _place_faults(find_json_faults),
            lambda before, after: list_json_edits(parse_json(before), parse_json(after)),
        ),
        SchemaFormat(
            "protobuf",
            "PROTOBUF",
            "protobuf file",
            normalize_protobuf,
            find_message_name,
            lambda text, elsewhere: find_protobuf_faults(text, elsewhere=elsewhere),
            lambda before, after: list_protobuf_edits(open_protobuf(before), open_protobuf(after)),
        ),
    )
}
BY_REGISTRY_NAME: Mapping[str, SchemaFormat] = {
    item.registry_name: item for item in FORMATS.values()
}


class Inspection(Struct, frozen=True):
    """What a text is, as far as can be told without a registry."""

    normal: str
    """The normal form. What is no schema of its format stays as it is, without blanks at its end,
    so that the places of its faults are those of the file."""
    faults: tuple[SchemaFault, ...] = ()
    """Why the text is no schema, the first `MAX_FAULTS`."""


# A plan asks for the form of each schema several times: of what is live, declared and recorded.
@lru_cache(maxsize=4096)
def inspect_schema(kind: str, text: str, *, elsewhere: bool = False) -> Inspection:
    """The normal form and the faults of a text. kind: the format, as blocks call it; elsewhere:
    other schemas define names that this one does not."""
    if kind not in FORMATS:
        return Inspection(text.rstrip())
    faults = tuple(islice(FORMATS[kind].find_faults(text, elsewhere), MAX_FAULTS))
    if faults:
        return Inspection(text.rstrip(), faults)
    try:
        return Inspection(FORMATS[kind].normalize(text))
    except ValueError as error:
        return Inspection(text.rstrip(), (SchemaFault(str(error)),))


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
    except (KeyError, ValueError):
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
