"""JSON schemas: how JSON is read and written, what differs between two schemas, property by
property, and what keeps a JSON document from being one, each with its place.

One table says what the value of each keyword is, in draft-04 to 2020-12: registries read all of
them. A keyword with another name is no fault: schemas may have their own.

Source: https://json-schema.org/draft/2020-12/json-schema-validation and the metaschemas before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import Struct

from kafkaform.core.canonical import render_number
from kafkaform.core.diagnostics import suggest

from .faults import MAX_SHOWN, EditKind, Place, PlacedFault, SchemaEdit, cut_sides

_AS_TEXT = msgspec.json.Encoder(decimal_format="string")
_AS_NUMBER = msgspec.json.Encoder(decimal_format="number")
_IN_ORDER = msgspec.json.Encoder(decimal_format="number", order="deterministic")


def write_json(value: Any) -> str:
    """The document on one line. Objects keep the order of their keys, and what is printable is not
    escaped: clients look a schema up by its text, and their libraries do so."""
    written = _AS_NUMBER.encode(value)
    # A Decimal would keep its exponent and its zeros. Only what has one is written in two ways.
    return written.decode() if written == _AS_TEXT.encode(value) else _write_exactly(value)


def _write_exactly(value: Any) -> str:
    if isinstance(value, dict):
        items = (f"{write_json(key)}:{write_json(item)}" for key, item in value.items())
        return "{" + ",".join(items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(write_json, value)) + "]"
    assert isinstance(value, Decimal)
    return render_number(value)


def sort_keys(value: Any) -> Any:
    """The document with the keys of all objects sorted: their order means nothing (RFC 8259 §4)."""
    if isinstance(value, dict):
        return {key: sort_keys(value[key]) for key in sorted(value)}
    return [sort_keys(item) for item in value] if isinstance(value, list) else value


def write_sorted(value: Any) -> str:
    """The document with the keys of all objects sorted, on one line; numbers as they were read."""
    return _IN_ORDER.encode(value).decode()


_DEFINITIONS = ("$defs", "definitions")
_COMBINED = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "prefixItems")
_REMARKS = frozenset(
    {"title", "description", "default", "examples", "$comment", "$id", "$schema", "deprecated"}
)
_WALKED = frozenset({"properties", "required", "enum", "type", "items", *_DEFINITIONS})


def list_json_edits(before: Any, after: Any) -> tuple[SchemaEdit, ...]:
    """The differences of two documents in the order of the new properties; nothing for equal
    schemas."""
    return tuple(dict.fromkeys(_compare(before, after, "")))


def describe_json_type(node: Any) -> str:
    """A short text for people: `string`, `null or integer`, `array of Money`, `one of 3 values`."""
    if isinstance(node, bool):
        return "anything" if node else "nothing"
    if not isinstance(node, dict):
        return write_json(node)[:MAX_SHOWN]
    if isinstance(node.get("$ref"), str):
        return str(node["$ref"]).rpartition("/")[2] or str(node["$ref"])
    kind = node.get("type")
    if kind is None:
        combined = next((key for key in _COMBINED if key in node), None)
        return combined or ("one of its values" if "enum" in node else "anything")
    names = " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
    if kind == "array" and isinstance(node.get("items"), dict):
        return f"array of {describe_json_type(node['items'])}"
    return f"{names} ({node['format']})" if isinstance(node.get("format"), str) else names


def _compare(before: Any, after: Any, path: str) -> Iterator[SchemaEdit]:
    # Python has 1 == True == 1.0, which a schema tells apart.
    if before == after and write_sorted(before) == write_sorted(after):
        return
    subject = f"property {path}" if path else "the schema"
    if not (isinstance(before, dict) and isinstance(after, dict)):
        yield _make_type_edit(before, after, path)
        return
    old, new = before.get("type"), after.get("type")
    if old != new or before.get("$ref") != after.get("$ref"):
        yield _make_type_edit(before, after, path)
    yield from _compare_properties(before, after, path)
    yield from _compare_symbols(before, after, path, subject)
    old_items, new_items = before.get("items"), after.get("items")
    if isinstance(old_items, dict) and isinstance(new_items, dict):
        yield from _compare(old_items, new_items, f"{path}[]")
    elif old_items != new_items and old == new:
        yield _make_type_edit(before, after, path)
    for key in _DEFINITIONS:
        yield from _compare_definitions(before.get(key) or {}, after.get(key) or {}, path, key)
    yield from _compare_keywords(before, after, path, subject)


def _make_type_edit(before: Any, after: Any, path: str) -> SchemaEdit:
    old, new = describe_json_type(before), describe_json_type(after)
    if old == new:
        # Two types can have one short text, such as two objects.
        old, new = _show(before), _show(after)
    subject = f"property {path}" if path else "the schema"
    text = f"{subject}: the type changes from {old} to {new}"
    return SchemaEdit(EditKind.TYPE_CHANGED, path, text, old, new)


def _compare_properties(
    before: Mapping[str, Any], after: Mapping[str, Any], path: str
) -> Iterator[SchemaEdit]:
    old, new = (_get_object(node, "properties") for node in (before, after))
    required, required_before = (_get_required(node) for node in (after, before))
    for name, node in new.items():
        property_path = f"{path}.{name}" if path else name
        if name not in old:
            kind = describe_json_type(node)
            must = name in required
            has = "required" if must else "optional"
            yield SchemaEdit(
                EditKind.FIELD_DEMANDED if must else EditKind.FIELD_ADDED,
                property_path,
                f"property {property_path} is added: {kind}, {has}",
                after=f"{kind}, {has}",
            )
            continue
        if (name in required) != (name in required_before):
            yield _make_demand_edit(property_path, name in required)
        yield from _compare(old[name], node, property_path)
    for name, node in old.items():
        if name not in new:
            property_path = f"{path}.{name}" if path else name
            kind = describe_json_type(node)
            text = f"property {property_path} is removed: {kind}"
            yield SchemaEdit(EditKind.FIELD_REMOVED, property_path, text, kind)
    for name in sorted(required ^ required_before):
        if name not in old and name not in new:
            yield _make_demand_edit(f"{path}.{name}" if path else name, name in required)


def _make_demand_edit(property_path: str, must: bool) -> SchemaEdit:
    sides = ("optional", "required") if must else ("required", "optional")
    kind = EditKind.FIELD_DEMANDED if must else EditKind.REMARK
    return SchemaEdit(kind, property_path, f"property {property_path} becomes {sides[1]}", *sides)


def _compare_symbols(
    before: Mapping[str, Any], after: Mapping[str, Any], path: str, subject: str
) -> Iterator[SchemaEdit]:
    old, new = before.get("enum"), after.get("enum")
    if not (isinstance(old, list) and isinstance(new, list)):
        if old is None and new is not None:
            yield SchemaEdit(
                EditKind.VALUES_LIMITED,
                path,
                f"{subject}: only {_show(new)} are allowed from now on",
                "any",
                _show(new),
            )
        elif old is not None and new is None:
            text = f"{subject}: every value is allowed, and not only {_show(old)}"
            yield SchemaEdit(EditKind.SYMBOL_ADDED, path, text, _show(old), "any")
        return
    for item in (item for item in new if item not in old):
        text = f"{subject}: the value {_show(item)} is added"
        yield SchemaEdit(EditKind.SYMBOL_ADDED, path, text, after=f"value {_show(item)}")
    for item in (item for item in old if item not in new):
        text = f"{subject}: the value {_show(item)} is removed"
        yield SchemaEdit(EditKind.SYMBOL_REMOVED, path, text, f"value {_show(item)}")


def _compare_definitions(
    before: Mapping[str, Any], after: Mapping[str, Any], path: str, key: str
) -> Iterator[SchemaEdit]:
    """Those that only one side has say nothing: what refers to them differs, too."""
    for name in after:
        if name in before:
            inner = f"{path}.{key}.{name}" if path else f"{key}.{name}"
            yield from _compare(before[name], after[name], inner)


def _compare_keywords(
    before: Mapping[str, Any], after: Mapping[str, Any], path: str, subject: str
) -> Iterator[SchemaEdit]:
    for key in sorted({*before, *after} - _WALKED):
        old, new = before.get(key), after.get(key)
        if key == "$ref" or (key in before and key in after and old == new):
            continue
        sides = cut_sides(
            write_json(old) if key in before else "", write_json(new) if key in after else ""
        )
        if not sides[0]:
            text = f"{subject}: {key} {sides[1]} is added"
        elif not sides[1]:
            text = f"{subject}: {key} {sides[0]} is removed"
        else:
            text = f"{subject}: {key} changes from {sides[0]} to {sides[1]}"
        # Without it, everything is allowed.
        limits = key not in _REMARKS and key in after and new is not True
        kind = EditKind.VALUES_LIMITED if limits else EditKind.REMARK
        named = (f"{key} {side}" if side else "" for side in sides)
        yield SchemaEdit(kind, path, text, *named)


def _get_object(node: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = node.get(key)
    return value if isinstance(value, dict) else {}


def _get_required(node: Mapping[str, Any]) -> set[str]:
    value = node.get("required")
    return {item for item in value if isinstance(item, str)} if isinstance(value, list) else set()


def _show(value: Any) -> str:
    text = write_json(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


TYPES = ("string", "number", "integer", "object", "array", "boolean", "null")
SCHEMA_KEYWORDS = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Keywords whose value is a schema."""
LIST_KEYWORDS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords whose value is a list of schemas."""
MAP_KEYWORDS = frozenset(
    {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)
"""Keywords whose value has a schema for each name."""


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_name_list(value: Any) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(item, str) for item in value)
        and len(set(value)) == len(value)
    )


_ANCHOR = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*")
_COUNT = (_is_count, "a whole number from 0 on")
_NUMBER = (_is_number, "a number")
_TEXT = (_is_text, "a text")
_LIMIT = (lambda value: isinstance(value, bool) or _is_number(value), "a number or a bool")
_BOOL = (lambda value: isinstance(value, bool), "a bool")


def _is_dependencies(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(item, dict | bool) or _is_name_list(item) for item in value.values()
    )


def _is_name_lists(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_name_list, value.values()))


_VALUES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "$anchor": (
        lambda value: isinstance(value, str) and _ANCHOR.fullmatch(value) is not None,
        "a name of letters, digits and -._",
    ),
    "$comment": _TEXT,
    "$id": _TEXT,
    "$ref": _TEXT,
    "$schema": _TEXT,
    "contentEncoding": _TEXT,
    "contentMediaType": _TEXT,
    "dependencies": (_is_dependencies, "an object with a schema or a list of names for each name"),
    "dependentRequired": (_is_name_lists, "an object with a list of names for each name"),
    "deprecated": _BOOL,
    "description": _TEXT,
    "enum": (lambda value: isinstance(value, list), "a list"),
    "format": _TEXT,
    "maxContains": _COUNT,
    "maxItems": _COUNT,
    "maxLength": _COUNT,
    "maxProperties": _COUNT,
    "maximum": _NUMBER,
    "minContains": _COUNT,
    "minItems": _COUNT,
    "minLength": _COUNT,
    "minProperties": _COUNT,
    "minimum": _NUMBER,
    "multipleOf": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    "pattern": (
        lambda value: isinstance(value, str) and is_balanced(value),
        "a regular expression whose brackets are closed",
    ),
    "readOnly": _BOOL,
    "required": (_is_name_list, "a list of different names"),
    "title": _TEXT,
    "uniqueItems": _BOOL,
    "writeOnly": _BOOL,
}
"""Keyword -> whether its value is right, and what it has to be."""


_DRAFT_04 = re.compile(r"https?://json-schema\.org/draft-04/schema#?")
_LATER_DRAFT = re.compile(
    r"https?://json-schema\.org/(?:draft-0[67]|draft/2019-09|draft/2020-12)/schema#?"
)
_LIMIT_KEYWORDS = frozenset({"exclusiveMaximum", "exclusiveMinimum"})


class _Whole(Struct, frozen=True):
    """The document around a schema. elsewhere: it refers to other documents."""

    root: Any
    elsewhere: bool
    limit: tuple[Callable[[Any], bool], str]
    """What the draft that the document names has for exclusive limits."""
    anchors: frozenset[str]
    """What a reference `#NAME` can lead to."""


def find_json_faults(document: Any, *, elsewhere: bool) -> Iterator[PlacedFault]:
    """Each fault as a part of a sentence, and where it is. elsewhere: the schema refers to others,
    which define what it does not."""
    draft = document.get("$schema") if isinstance(document, dict) else None
    limit = _LIMIT
    if isinstance(draft, str) and _DRAFT_04.fullmatch(draft):
        limit = _BOOL
    elif isinstance(draft, str) and _LATER_DRAFT.fullmatch(draft):
        limit = _NUMBER
    whole = _Whole(document, elsewhere, limit, frozenset(_list_anchors(document)))
    yield from _check_schema(document, whole, ())


def _list_anchors(node: Any) -> Iterator[str]:
    """All names of places, wherever they are: `$anchor`, and before 2019-09 an `$id` or `id` that
    begins with #."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("$anchor", "$dynamicAnchor") and isinstance(value, str):
                yield f"#{value}"
            elif key in ("$id", "id") and isinstance(value, str):
                yield f"#{value.partition('#')[2]}"
            yield from _list_anchors(value)
    elif isinstance(node, list):
        for item in node:
            yield from _list_anchors(item)


def _check_schema(node: Any, whole: _Whole, steps: Place) -> Iterator[PlacedFault]:
    if isinstance(node, bool):
        return
    if not isinstance(node, dict):
        yield PlacedFault(
            f"a schema is an object or a bool, and not {write_json(node)[:40]}", steps
        )
        return
    for key, value in node.items():
        inner_steps = (*steps, key)
        check = whole.limit if key in _LIMIT_KEYWORDS else _VALUES.get(key)
        if check is not None and not check[0](value):
            yield PlacedFault(f"{key} is not {check[1]}: {write_json(value)[:40]}", inner_steps)
        elif key == "type":
            yield from _check_kind(value, inner_steps)
        elif key == "$ref":
            yield from _check_target(value, whole, inner_steps)
        elif key in MAP_KEYWORDS:
            if not isinstance(value, dict):
                yield PlacedFault(
                    f"{key} is not an object with a schema for each name", inner_steps
                )
                continue
            for name, inner in value.items():
                if key == "patternProperties" and not is_balanced(name):
                    text = f"{write_json(name)[:40]} is no regular expression: {_UNBALANCED}"
                    yield PlacedFault(text, (*inner_steps, name))
                yield from _check_schema(inner, whole, (*inner_steps, name))
        elif key in LIST_KEYWORDS or (key == "items" and isinstance(value, list)):
            if not isinstance(value, list) or (not value and key != "items"):
                yield PlacedFault(f"{key} is not a list of schemas", inner_steps)
                continue
            for index, inner in enumerate(value):
                yield from _check_schema(inner, whole, (*inner_steps, index))
        elif key in SCHEMA_KEYWORDS:
            yield from _check_schema(value, whole, inner_steps)


_UNBALANCED = "a bracket is not closed, or closes nothing"


def _check_target(target: str, whole: _Whole, steps: Place) -> Iterator[PlacedFault]:
    """A reference that leads to a place of this document which is not there."""
    if whole.elsewhere or not target.startswith("#"):
        return
    is_pointer = target.startswith("#/")
    leads = _has_target(whole.root, target) if is_pointer else target in whole.anchors
    if target != "#" and not leads:
        yield PlacedFault(f"$ref leads to {target}, which is not in the schema", steps)


def is_balanced(pattern: str) -> bool:
    """False for a regular expression whose brackets are wrong in every dialect. More cannot be
    said: validators have dialects of their own."""
    # Quoted texts and comments of some dialects hide brackets.
    if "\\Q" in pattern or "(?x" in pattern or "(?#" in pattern:
        return True
    depth, position = 0, 0
    while position < len(pattern):
        sign = pattern[position]
        if sign == "\\":
            position += 1
        elif sign == "[":
            # `[]` and `[^]` are empty in one dialect, and begin a class in others.
            if pattern.startswith(("[]", "[^]"), position):
                return True
            end = re.compile(r"(?:\\.|[^\\\]])*\]", re.DOTALL).match(pattern, position + 1)
            if end is None:
                return False
            position = end.end() - 1
        elif sign in "()":
            depth += 1 if sign == "(" else -1
            if depth < 0:
                return False
        position += 1
    return depth == 0


def _check_kind(value: Any, steps: Place) -> Iterator[PlacedFault]:
    names = value if isinstance(value, list) else [value]
    if not names:
        yield PlacedFault("type is an empty list", steps)
    elif len({*map(write_json, names)}) < len(names):
        yield PlacedFault("type names a type twice", steps)
    for name in names:
        if name not in TYPES:
            near = suggest(name, TYPES) if isinstance(name, str) else ""
            yield PlacedFault(f"there is no type {write_json(name)[:40]}", steps, near)


def _has_target(root: Any, pointer: str) -> bool:
    """Whether a JSON pointer of this document leads somewhere (RFC 6901)."""
    node = root
    for segment in pointer[2:].split("/"):
        name = segment.replace("~1", "/").replace("~0", "~").replace("%25", "%")
        if isinstance(node, dict) and name in node:
            node = node[name]
        elif isinstance(node, list) and name.isdigit() and int(name) < len(node):
            node = node[int(name)]
        else:
            # Some generators escape what a URL may not contain.
            return "%" in name
    return True
