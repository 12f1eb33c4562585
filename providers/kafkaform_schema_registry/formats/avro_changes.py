"""What differs between two Avro schemas, field by field, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .avro import NAMED, AvroType
from .edits import EditKind, SchemaEdit
from .json_text import write_json

MAX_SHOWN = 60
"""Characters of a value."""


def list_avro_edits(before: AvroType, after: AvroType) -> tuple[SchemaEdit, ...]:
    """The differences in the order of the new fields; nothing for equal schemas."""
    return tuple(dict.fromkeys(_compare(before, after, "", frozenset())))


def _name_place(path: str) -> str:
    return f"field {path}" if path else "the schema"


def _make_type_edit(before: str, after: str, path: str) -> SchemaEdit:
    text = f"{_name_place(path)}: the type changes from {before} to {after}"
    return SchemaEdit(EditKind.TYPE_CHANGED, path, text, before, after)


def _compare(
    before: AvroType, after: AvroType, path: str, met: frozenset[str]
) -> Iterator[SchemaEdit]:
    """met: the named types that are compared already, which ends recursive types."""
    if before.kind != after.kind or not (before.is_known and after.is_known):
        if before.describe() != after.describe():
            yield _make_type_edit(before.describe(), after.describe(), path)
        return
    kind = after.kind
    if kind in NAMED:
        if after.name not in met:
            yield from _compare_named(before.resolve(), after.resolve(), path, met | {after.name})
    elif kind == "union":
        yield from _compare_unions(before, after, path, met)
    elif kind in ("array", "map"):
        yield from _compare(before.get_content(), after.get_content(), path, met)
    elif str(before) != str(after):
        yield _make_type_edit(_cut(str(before)), _cut(str(after)), path)


def _compare_unions(
    before: AvroType, after: AvroType, path: str, met: frozenset[str]
) -> Iterator[SchemaEdit]:
    old = {branch.name: branch for branch in before.list_branches()}
    new = {branch.name: branch for branch in after.list_branches()}
    if old.keys() != new.keys():
        yield _make_type_edit(before.describe(), after.describe(), path)
    elif [*old] != [*new]:
        text = f"{_name_place(path)}: the branches of the union change order"
        yield SchemaEdit(EditKind.REMARK, path, text, before.describe(), after.describe())
    for name in (name for name in old if name in new):
        yield from _compare(old[name], new[name], path, met)


def _compare_named(
    before: AvroType, after: AvroType, path: str, met: frozenset[str]
) -> Iterator[SchemaEdit]:
    subject = f"field {path}" if path else after.describe()
    if before.name != after.name:
        text = f"{subject}: the name changes from {before.name} to {after.name}"
        yield SchemaEdit(EditKind.NAME_CHANGED, path, text, before.name, after.name)
    if after.kind in ("record", "error"):
        yield from _compare_fields(before, after, path, met)
    if after.kind == "enum":
        old, new = before.node["symbols"], after.node["symbols"]
        for symbol in (symbol for symbol in new if symbol not in old):
            text = f"{subject}: symbol {symbol} is added"
            yield SchemaEdit(EditKind.SYMBOL_ADDED, path, text, after=f"symbol {symbol}")
        for symbol in (symbol for symbol in old if symbol not in new):
            text = f"{subject}: symbol {symbol} is removed"
            yield SchemaEdit(EditKind.SYMBOL_REMOVED, path, text, f"symbol {symbol}")
    own_keys = {"type", "name", "namespace", "fields", "symbols"}
    yield from _compare_attributes(before.node, after.node, path, subject, own_keys)


def _compare_fields(
    before: AvroType, after: AvroType, path: str, met: frozenset[str]
) -> Iterator[SchemaEdit]:
    old = {field["name"]: field for field in before.list_fields()}
    new = {field["name"]: field for field in after.list_fields()}
    for name, field in new.items():
        field_path = f"{path}.{name}" if path else name
        if name in old:
            inner = before.go_into(old[name]["type"]), after.go_into(field["type"])
            yield from _compare(*inner, field_path, met)
            subject, own_keys = f"field {field_path}", {"name", "type"}
            yield from _compare_attributes(old[name], field, field_path, subject, own_keys)
            continue
        description = _show_field(after, field)
        kind = EditKind.FIELD_ADDED if "default" in field else EditKind.FIELD_DEMANDED
        yield SchemaEdit(
            kind, field_path, f"field {field_path} is added: {description}", after=description
        )
    for name, field in old.items():
        if name not in new:
            field_path = f"{path}.{name}" if path else name
            description = _show_field(before, field)
            text = f"field {field_path} is removed: {description}"
            yield SchemaEdit(EditKind.FIELD_REMOVED, field_path, text, description)
    orders = [name for name in old if name in new], [name for name in new if name in old]
    if orders[0] != orders[1]:
        subject = f"field {path}" if path else after.describe()
        sides = (_cut(", ".join(names)) for names in orders)
        yield SchemaEdit(EditKind.REMARK, path, f"{subject}: fields change their order", *sides)


def _show_field(outer: AvroType, field: Mapping[str, Any]) -> str:
    kind = outer.go_into(field["type"]).describe()
    has = f"default {_show(field['default'])}" if "default" in field else "no default"
    return f"{kind}, {has}"


def _compare_attributes(
    before: Mapping[str, Any], after: Mapping[str, Any], path: str, subject: str, own_keys: set[str]
) -> Iterator[SchemaEdit]:
    for key in sorted({*before, *after} - own_keys):
        old, new = (f"{key} {_show(node[key])}" if key in node else "" for node in (before, after))
        if old == new:
            continue
        if not old:
            text = f"{subject}: {new} is added"
        elif not new:
            text = f"{subject}: {old} is removed"
        else:
            text = f"{subject}: {key} changes from {_show(before[key])} to {_show(after[key])}"
        yield SchemaEdit(EditKind.REMARK, path, text, old, new)


def _show(value: Any) -> str:
    return _cut(write_json(value))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
