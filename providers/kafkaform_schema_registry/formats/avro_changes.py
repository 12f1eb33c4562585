"""What differs between two Avro schemas, in words, and which of them can read what: Avro's schema
resolution, as its Java library decides it.

Source: https://avro.apache.org/docs/1.12.0/specification/#schema-resolution, and
`SchemaCompatibility` of Avro's Java library for names: it compares them without namespaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from .avro import NAMED, AvroType
from .faults import MAX_SHOWN, EditKind, SchemaEdit, cut_sides
from .json_schema import write_json


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
        old = {branch.name: branch for branch in before.list_branches()}
        new = {branch.name: branch for branch in after.list_branches()}
        if old.keys() != new.keys():
            yield _make_type_edit(before.describe(), after.describe(), path)
        elif [*old] != [*new]:
            text = f"{_name_place(path)}: the branches of the union change order"
            yield SchemaEdit(EditKind.REMARK, path, text, before.describe(), after.describe())
        for name in (name for name in old if name in new):
            yield from _compare(old[name], new[name], path, met)
    elif kind in ("array", "map"):
        yield from _compare(before.get_content(), after.get_content(), path, met)
    elif str(before) != str(after):
        yield _make_type_edit(_cut(str(before)), _cut(str(after)), path)


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
        sides = (write_json(node[key]) if key in node else "" for node in (before, after))
        first, second = sides
        if first == second:
            continue
        shown = cut_sides(first, second)
        old, new = (f"{key} {side}" if side else "" for side in shown)
        if not old:
            text = f"{subject}: {new} is added"
        elif not new:
            text = f"{subject}: {old} is removed"
        else:
            text = f"{subject}: {key} changes from {shown[0]} to {shown[1]}"
        yield SchemaEdit(EditKind.REMARK, path, text, old, new)


def _show(value: Any) -> str:
    return _cut(write_json(value))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


PROMOTIONS = frozenset(
    {
        ("int", "long"),
        ("int", "float"),
        ("int", "double"),
        ("long", "float"),
        ("long", "double"),
        ("float", "double"),
        ("string", "bytes"),
        ("bytes", "string"),
    }
)
"""(written type, read type): readers convert these."""


class Unreadable(Struct, frozen=True):
    """Why a reader cannot read what a writer wrote."""

    path: str
    """The field, with dots: `address.zip`; empty for the schema as a whole."""
    text: str
    """A part of a sentence: `has no default, and the writer does not write it`."""


Pair = tuple[str, str]


def find_unreadable(reader: AvroType, writer: AvroType) -> tuple[Unreadable, ...]:
    """Everything that keeps this reader from reading; nothing if it can read."""
    return tuple(dict.fromkeys(_check(reader, writer, "", frozenset())))


def _check(
    reader: AvroType, writer: AvroType, path: str, visited: frozenset[Pair]
) -> Iterator[Unreadable]:
    """visited: pairs of named types that are being checked already, which ends recursive types."""
    if writer.kind == "union":
        for branch in writer.list_branches():
            yield from _check(reader, branch, path, visited)
        return
    if reader.kind == "union":
        branches = reader.list_branches()
        if not any(_reads(branch, writer, path, visited) for branch in branches):
            yield Unreadable(
                path, f"is written as {writer.describe()}, read as {reader.describe()}"
            )
        return
    # What another subject defines is not here to be compared.
    if not (reader.is_known and writer.is_known):
        return
    kind = reader.kind
    if kind != writer.kind:
        if (writer.kind, kind) not in PROMOTIONS:
            yield Unreadable(
                path, f"is written as {writer.describe()}, read as {reader.describe()}"
            )
    elif kind in NAMED:
        names = reader.name, writer.name
        if names not in visited:
            yield from _check_named(reader, writer, path, visited | {names})
    elif kind in ("array", "map"):
        yield from _check(reader.get_content(), writer.get_content(), path, visited)


def _reads(reader: AvroType, writer: AvroType, path: str, visited: frozenset[Pair]) -> bool:
    return next(_check(reader, writer, path, visited), None) is None


def _check_named(
    reader: AvroType, writer: AvroType, path: str, visited: frozenset[Pair]
) -> Iterator[Unreadable]:
    reader_type, writer_type = reader.resolve(), writer.resolve()
    if not _has_name(reader_type, writer_type):
        yield _make_mismatch(reader, writer, path)
    elif reader.kind == "enum":
        missing = [s for s in writer_type.node["symbols"] if s not in reader_type.node["symbols"]]
        if missing and "default" not in reader_type.node:
            symbols = ", ".join(missing[:5])
            yield Unreadable(path, f"can be {symbols}, which the reader does not know")
    elif reader.kind == "fixed":
        if reader_type.node.get("size") != writer_type.node.get("size"):
            yield Unreadable(path, "has another size")
    else:
        written = {field["name"]: field for field in writer_type.list_fields()}
        for field in reader_type.list_fields():
            names = (field["name"], *field.get("aliases", ()))
            source = next((written[name] for name in names if name in written), None)
            field_path = f"{path}.{field['name']}" if path else field["name"]
            if source is not None:
                inner = reader_type.go_into(field["type"]), writer_type.go_into(source["type"])
                yield from _check(*inner, field_path, visited)
            elif "default" not in field:
                yield Unreadable(field_path, "is not written, and the reader has no default for it")


def _has_name(reader: AvroType, writer: AvroType) -> bool:
    aliases = reader.node.get("aliases", ())
    full = {alias if "." in alias else f"{reader.inner_space}.{alias}" for alias in aliases}
    return reader.node["name"] == writer.node["name"] or bool({*full, *aliases} & {writer.name})


def _make_mismatch(reader: AvroType, writer: AvroType, path: str) -> Unreadable:
    text = f"is written as {writer.describe()} and read as {reader.describe()}"
    return Unreadable(path, text)
