"""What differs between two JSON schemas, property by property, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .edits import EditKind, SchemaEdit
from .json_text import write_json, write_sorted

MAX_SHOWN = 60
"""Characters of a value."""
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
    if _are_schemas(before.get("items"), after.get("items")):
        yield from _compare(before["items"], after["items"], f"{path}[]")
    elif before.get("items") != after.get("items") and old == new:
        yield _make_type_edit(before, after, path)
    for key in _DEFINITIONS:
        yield from _compare_definitions(before.get(key) or {}, after.get(key) or {}, path, key)
    yield from _compare_keywords(before, after, path, subject)


def _make_type_edit(before: Any, after: Any, path: str) -> SchemaEdit:
    old, new = describe_json_type(before), describe_json_type(after)
    if old == new:
        old, new = _show(before), _show(after)
    subject = f"property {path}" if path else "the schema"
    text = f"{subject}: the type changes from {old} to {new}"
    return SchemaEdit(EditKind.TYPE_CHANGED, path, text, old, new)


def _are_schemas(*nodes: Any) -> bool:
    return all(isinstance(node, dict) for node in nodes)


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
        sides = _show(old) if key in before else "", _show(new) if key in after else ""
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
