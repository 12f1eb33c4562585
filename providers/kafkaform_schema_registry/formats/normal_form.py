"""The formats of schemas: one spelling for equal schemas, the name of a record, faults, what
differs between two schemas, and what a schema is in lines for people."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from msgspec import Struct

from kafkaform.core.text import render_amount, render_count
from kafkaform.core.value import FrozenMap
from kafkaform.provider.http.exchange import parse_json

from .avro import PRIMITIVES, find_record_name, normalize_avro, open_schema, parse_avro
from .avro_judgements import PROMOTIONS, find_avro_faults, list_avro_edits
from .faults import (
    MAX_FAULTS,
    EditKind,
    PlacedFault,
    SchemaEdit,
    SchemaFault,
    read_document,
    write_edit,
)
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


# Rules judge the differences that a plan shows, and each form of the plan shows them again.
_cache_edits = lru_cache(maxsize=256)


@_cache_edits
def _list_avro_edits(before: str, after: str) -> tuple[SchemaEdit, ...]:
    return list_avro_edits(open_schema(parse_avro(before)), open_schema(parse_avro(after)))


@_cache_edits
def _list_json_edits(before: str, after: str) -> tuple[SchemaEdit, ...]:
    return list_json_edits(parse_json(before), parse_json(after))


@_cache_edits
def _list_protobuf_edits(before: str, after: str) -> tuple[SchemaEdit, ...]:
    return list_protobuf_edits(open_protobuf(before), open_protobuf(after))


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
            _list_json_edits,
        ),
        SchemaFormat(
            "protobuf",
            "PROTOBUF",
            "protobuf file",
            normalize_protobuf,
            find_message_name,
            lambda text, elsewhere: find_protobuf_faults(text, elsewhere=elsewhere),
            _list_protobuf_edits,
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
    kind = str(after["format"])
    lines = [_write_edit(kind, edit) for edit in edits[:MAX_LINES]]
    if len(edits) > MAX_LINES:
        lines.append(f"and {len(edits) - MAX_LINES:,} more differences")
    return (sides, *lines, "the text:", *_compare_texts(kind, before["schema"], after["schema"]))


_STOP = "new readers stop at old records"
_OLD_STOP = "old readers stop at new records"
_READERS: Mapping[tuple[str, EditKind], str] = {
    ("avro", EditKind.FIELD_ADDED): "new readers see the default in old records",
    ("avro", EditKind.FIELD_DEMANDED): _STOP,
    ("avro", EditKind.SYMBOL_ADDED): "old readers stop at it unless their enum has a default",
    ("avro", EditKind.SYMBOL_REMOVED): "new readers stop at it unless their enum has a default",
    ("json", EditKind.FIELD_DEMANDED): "new readers refuse old records without it",
    ("json", EditKind.TYPE_CHANGED): "readers refuse values that are not of their type",
    ("json", EditKind.VALUES_LIMITED): "new readers refuse old records beyond it",
    ("json", EditKind.SYMBOL_ADDED): "old readers refuse it",
    ("json", EditKind.SYMBOL_REMOVED): "new readers refuse it in old records",
    ("protobuf", EditKind.FIELD_ADDED): "old readers keep it as an unknown field",
    ("protobuf", EditKind.FIELD_DEMANDED): _STOP,
    ("protobuf", EditKind.FIELD_REMOVED): "old readers see it unset in new records",
    ("protobuf", EditKind.FIELD_RENAMED): "binary records stay readable, JSON has another name",
}
"""What clients see that read records of the other version. Sources: Avro 1.12, Schema Resolution;
JSON Schema 2020-12, Validation; protobuf.dev, Updating A Message Type."""


def _write_edit(kind: str, edit: SchemaEdit) -> str:
    effect = _READERS.get((kind, edit.kind), "")
    if (kind, edit.kind) == ("avro", EditKind.TYPE_CHANGED):
        effect = _describe_promotion(edit.before, edit.after)
    elif (kind, edit.kind) == ("avro", EditKind.FIELD_REMOVED):
        demanded = edit.before.endswith("no default")
        effect = _OLD_STOP if demanded else "old readers see their default in new records"
    # Only fields have values that readers see.
    has_values = edit.path and not f"{edit.before}{edit.after}".startswith("message, ")
    return f"{write_edit(edit)} ({effect})" if effect and has_values else write_edit(edit)


def _describe_promotion(before: str, after: str) -> str:
    """What readers make of a changed Avro type; nothing for other types than primitives."""
    if not PRIMITIVES.issuperset((before, after)):
        return ""
    new, old = (before, after) in PROMOTIONS, (after, before) in PROMOTIONS
    if new and old:
        return "readers convert it"
    return f"new readers convert it, {_OLD_STOP}" if new else _STOP


DIFF_LINES = 30
"""Lines of the text of a schema that a plan shows."""
_WINDOW = 400
"""Lines that are compared from the first different one on: a comparison of two long texts takes
time with the square of their lengths, and only the first lines are shown."""
_WIDTH = 88


@_cache_edits
def _compare_texts(kind: str, before: str, after: str) -> tuple[str, ...]:
    """The lines of the text that differ, each with its sign, and one line around them."""
    # A comma behind a field says only that another one follows.
    old, new = _split_lines(kind, before), _split_lines(kind, after)
    pairs = zip(old, new, strict=False)
    start = next(
        (n for n, pair in enumerate(pairs) if len({*map(_drop_comma, pair)}) > 1),
        min(len(old), len(new)),
    )
    first = max(start - 1, 0)
    old, new = old[first : first + _WINDOW + 1], new[first : first + _WINDOW + 1]
    old_keys, new_keys = ([*map(_drop_comma, text[:_WINDOW])] for text in (old, new))
    matcher = difflib.SequenceMatcher(None, old_keys, new_keys, autojunk=False)
    lines: list[str] = []
    for group in matcher.get_grouped_opcodes(1):
        for tag, *(old_start, old_end, new_start, new_end) in group:
            gone = () if tag == "equal" else old[old_start:old_end]
            sign = " " if tag == "equal" else "+"
            lines += (f"- {_cut_line(line)}" for line in gone)
            lines += (f"{sign} {_cut_line(line)}" for line in new[new_start:new_end])
    if len(lines) > DIFF_LINES or max(len(old), len(new)) > _WINDOW:
        lines[DIFF_LINES:] = ["and more lines"]
    return tuple(lines)


def _drop_comma(line: str) -> str:
    return line.removesuffix(",")


def _cut_line(line: str) -> str:
    return line if len(line) <= 2 * _WIDTH else f"{line[: 2 * _WIDTH]}…"


def _split_lines(kind: str, text: str) -> list[str]:
    if kind == "protobuf":
        return text.splitlines()
    return list(_lay_out(parse_json(text), "", "", 0))


def _contains_objects(value: Any) -> bool:
    items = value.values() if isinstance(value, dict) else value
    return any(
        isinstance(item, dict) or (isinstance(item, list) and _contains_objects(item))
        for item in items
    )


def _lay_out(value: Any, label: str, end: str, depth: int) -> Iterator[str]:
    """The lines of a JSON value: one for each field, if it fits. label: what stands before it, end:
    a comma."""
    text = write_json(value)
    indent = "  " * depth
    if not isinstance(value, dict | list) or (
        len(indent + label + text) <= _WIDTH and not _contains_objects(value)
    ):
        yield f"{indent}{label}{text}{end}"
        return
    pairs: list[tuple[str, Any]]
    if isinstance(value, dict):
        pairs = [(f"{write_json(key)}: ", item) for key, item in value.items()]
    else:
        pairs = [("", item) for item in value]
    brackets = "{}" if isinstance(value, dict) else "[]"
    yield f"{indent}{label}{brackets[0]}"
    for number, (key, item) in enumerate(pairs, 1):
        yield from _lay_out(item, key, "," if number < len(pairs) else "", depth + 1)
    yield f"{indent}{brackets[1]}{end}"


def describe_schema(attributes: FrozenMap) -> str:
    """What a schema is, and its size: `record shop.Order: 12 fields, 3.4 KiB`. attributes: those of
    a schema."""
    return _describe_text(str(attributes["format"]), str(attributes["schema"]))


@lru_cache(maxsize=256)
def _describe_text(kind: str, text: str) -> str:
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
