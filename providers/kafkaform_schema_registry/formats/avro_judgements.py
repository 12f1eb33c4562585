"""What differs between two Avro schemas, in words; which of them can read what; and what keeps a
JSON document from being an Avro schema, each with its place.

Who can read what is Avro's schema resolution, as its Java library decides it. Source:
https://avro.apache.org/docs/1.12.0/specification/#schema-resolution, and `SchemaCompatibility` of
Avro's Java library for names: it compares them without namespaces.

Of faults, only what every registry refuses counts, so the rules are those of Avro's Java library,
whose name check has grown wider (`Schema.validateName`, `NameValidator` of 1.12), and whose check
of defaults takes any branch of a union and any text for an enum (`Schema.isValidDefault`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from msgspec import Struct

from kafkaform.core.diagnostics import suggest

from .avro import NAMED, PRIMITIVES, AvroType, NotAvro, join_name, split_name
from .faults import MAX_SHOWN, EditKind, Place, PlacedFault, SchemaEdit, cut_sides
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
    has = "no default"
    if "default" in field:
        has = f"default {_cut(write_json(field['default']))}"
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
        faults = (next(_check(branch, writer, path, visited), None) for branch in branches)
        if all(fault is not None for fault in faults):
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


Definitions = Mapping[str, tuple[Mapping[str, Any], str]]
"""Full name -> the definition, and the namespace inside of it."""

_CONTENT = {"array": "items", "map": "values"}
_ORDERS = ("ascending", "descending", "ignore")
_INT, _LONG = 2**31, 2**63
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
MAX_DEPTH = 60
"""Of a default inside of a recursive type."""


def find_avro_faults(document: Any, *, elsewhere: bool) -> Iterator[PlacedFault]:
    """Each fault as a part of a sentence, and where it is. elsewhere: the schema refers to others,
    which define the names that it does not."""
    definitions: dict[str, tuple[Mapping[str, Any], str]] = {}
    yield from _collect_definitions(document, "", (), definitions)
    yield from _Walk(definitions, elsewhere=elsewhere).check_type(document, "", ())


def _collect_definitions(
    node: Any, space: str, steps: Place, definitions: dict[str, tuple[Mapping[str, Any], str]]
) -> Iterator[PlacedFault]:
    """Fill the definitions; a fault for each name that is defined twice."""
    if isinstance(node, list):
        for index, branch in enumerate(node):
            yield from _collect_definitions(branch, space, (*steps, index), definitions)
    if not isinstance(node, dict):
        return
    kind = node.get("type")
    if isinstance(kind, dict | list):
        yield from _collect_definitions(kind, space, (*steps, "type"), definitions)
    elif kind in _CONTENT:
        key = _CONTENT[kind]
        yield from _collect_definitions(node.get(key), space, (*steps, key), definitions)
    elif kind in NAMED:
        try:
            name, inner = split_name(node, space)
        except NotAvro:
            return
        full = join_name(name, inner)
        # The library takes the very same definition once more since 1.12.
        if definitions.get(full, (node, inner)) != (node, inner):
            yield PlacedFault(f"the name {full} is defined twice", (*steps, "name"))
        definitions.setdefault(full, (node, inner))
        fields = node.get("fields")
        for index, field in enumerate(fields if isinstance(fields, list) else ()):
            if isinstance(field, dict) and not _is_plain(field.get("type")):
                inner_steps = (*steps, "fields", index, "type")
                yield from _collect_definitions(field.get("type"), inner, inner_steps, definitions)


class _Walk:
    """One check of a document whose definitions are known."""

    def __init__(self, definitions: Definitions, *, elsewhere: bool) -> None:
        self._definitions = definitions
        self._elsewhere = elsewhere

    def check_type(self, node: Any, space: str, steps: Place) -> Iterator[PlacedFault]:
        if isinstance(node, str):
            yield from self._check_name(node, space, steps)
        elif isinstance(node, list):
            yield from self._check_union(node, space, steps)
        elif not isinstance(node, dict):
            yield PlacedFault(
                f"a type is a name, a list or an object, and not {write_json(node)[:40]}", steps
            )
        elif "type" not in node:
            yield PlacedFault("a type has no `type`", steps)
        elif node["type"] in ("record", "error"):
            yield from self._check_record(node, space, steps)
        elif node["type"] == "enum":
            yield from _check_enum(node, space, steps)
        elif node["type"] == "fixed":
            yield from _check_fixed(node, space, steps)
        elif node["type"] in ("array", "map"):
            key = _CONTENT[node["type"]]
            if key not in node:
                yield PlacedFault(f"the {node['type']} has no {key}", steps)
            else:
                yield from self.check_type(node[key], space, (*steps, key))
        else:
            yield from self.check_type(node["type"], space, (*steps, "type"))

    def _check_name(self, name: str, space: str, steps: Place) -> Iterator[PlacedFault]:
        if name in PRIMITIVES or self._elsewhere or self._find_definition(name, space):
            return
        near = suggest(name, [*PRIMITIVES, *_CONTENT, *NAMED, *self._definitions])
        yield PlacedFault(f'there is no type "{name}"', steps, near)

    def _find_definition(self, name: str, space: str) -> tuple[Mapping[str, Any], str] | None:
        return self._definitions.get(join_name(name, space)) or self._definitions.get(name)

    def _check_union(self, node: list[Any], space: str, steps: Place) -> Iterator[PlacedFault]:
        names: list[str] = []
        for index, branch in enumerate(node):
            inner_steps = (*steps, index)
            if isinstance(branch, list):
                yield PlacedFault("a union contains a union", inner_steps)
                continue
            yield from self.check_type(branch, space, inner_steps)
            name = _name_branch(branch, space)
            if name in names:
                yield PlacedFault(f"a union contains {name} twice", inner_steps)
            names.append(name)

    def _check_record(
        self, node: Mapping[str, Any], space: str, steps: Place
    ) -> Iterator[PlacedFault]:
        yield from _check_own_name(node, space, steps)
        fields = node.get("fields")
        if not isinstance(fields, list):
            yield PlacedFault(f"the record {node.get('name', '')} has no list of fields", steps)
            return
        inner = _find_inner_space(node, space)
        names: list[str] = []
        for index, field in enumerate(fields):
            inner_steps = (*steps, "fields", index)
            if not isinstance(field, dict) or not isinstance(field.get("name"), str):
                yield PlacedFault(
                    f"a field of the record {node.get('name', '')} has no name", inner_steps
                )
                continue
            if field["name"] in names:
                yield PlacedFault(
                    f"the field {field['name']} is there twice", (*inner_steps, "name")
                )
            names.append(field["name"])
            yield from self._check_field(field, inner, inner_steps)

    def _check_field(
        self, field: Mapping[str, Any], space: str, steps: Place
    ) -> Iterator[PlacedFault]:
        name = field["name"]
        if not _is_name(name):
            yield PlacedFault(_describe_name(name), (*steps, "name"))
        if "order" in field and str(field["order"]).lower() not in _ORDERS:
            yield PlacedFault(
                f"the order of the field {name} is not {', '.join(_ORDERS)}", (*steps, "order")
            )
        if "type" not in field:
            yield PlacedFault(f"the field {name} has no type", steps)
            return
        if not _is_plain(field["type"]):
            faults = list(self.check_type(field["type"], space, (*steps, "type")))
            yield from faults
            # What is no type can have no default.
            if faults:
                return
        if "default" not in field:
            return
        if not self._fits(field["default"], field["type"], space, 0):
            kind = _name_branch(field["type"], space)
            value_text = write_json(field["default"])[:40]
            text = f"the default {value_text} of the field {name} is no {kind}"
            yield PlacedFault(text, (*steps, "default"))

    def _fits(self, value: Any, node: Any, space: str, depth: int) -> bool:
        """Whether a default is of a type. Types of other schemas are not known."""
        if depth > MAX_DEPTH:
            return True
        if isinstance(node, str) and node not in PRIMITIVES:
            definition = self._find_definition(node, space)
            return definition is None or self._fits(value, definition[0], definition[1], depth + 1)
        if isinstance(node, list):
            return any(self._fits(value, branch, space, depth + 1) for branch in node)
        kind = node["type"] if isinstance(node, dict) else node
        if kind in _CONTENT:
            container: type = list if kind == "array" else dict
            items = value.values() if isinstance(value, dict) else value
            return isinstance(value, container) and all(
                self._fits(item, node[_CONTENT[kind]], space, depth + 1) for item in items
            )
        if kind in ("record", "error"):
            inner = _find_inner_space(node, space)
            return isinstance(value, dict) and all(
                self._fits(value[field["name"]], field["type"], inner, depth + 1)
                if field["name"] in value
                else "default" in field
                for field in node["fields"]
            )
        if kind in ("enum", "fixed"):
            return isinstance(value, str)
        if isinstance(kind, str) and kind in PRIMITIVES:
            return _fits_primitive(value, kind)
        return self._fits(value, kind, space, depth + 1)


def _is_plain(kind: Any) -> bool:
    """Whether this is a primitive, or a sound union of primitives: nearly every type is."""
    if kind.__class__ is str:
        return kind in PRIMITIVES
    try:
        return isinstance(kind, list) and PRIMITIVES.issuperset(kind) and len({*kind}) == len(kind)
    except TypeError:  # a list or an object is in it
        return False


def _fits_primitive(value: Any, kind: str) -> bool:
    if kind == "null":
        return value is None
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in ("string", "bytes"):
        return isinstance(value, str)
    if kind in ("float", "double") and value in _NOT_FINITE:
        return True
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return False
    limit = {"int": _INT, "long": _LONG}.get(kind)
    return limit is None or (isinstance(value, int) and -limit <= value < limit)


def _check_enum(node: Mapping[str, Any], space: str, steps: Place) -> Iterator[PlacedFault]:
    yield from _check_own_name(node, space, steps)
    symbols = node.get("symbols")
    if not isinstance(symbols, list) or not all(isinstance(item, str) for item in symbols):
        yield PlacedFault(f"the enum {node.get('name', '')} has no list of symbols", steps)
        return
    for index, symbol in enumerate(symbols):
        inner_steps = (*steps, "symbols", index)
        if symbol in symbols[:index]:
            yield PlacedFault(f"the symbol {symbol} is there twice", inner_steps)
        if not _is_name(symbol):
            yield PlacedFault(_describe_name(symbol), inner_steps)
    if "default" in node and node["default"] not in symbols:
        value_text = write_json(node["default"])[:40]
        yield PlacedFault(
            f"the default {value_text} of the enum is none of its symbols", (*steps, "default")
        )


def _check_fixed(node: Mapping[str, Any], space: str, steps: Place) -> Iterator[PlacedFault]:
    yield from _check_own_name(node, space, steps)
    size = node.get("size")
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        yield PlacedFault(f"the fixed {node.get('name', '')} has no size in bytes", steps)


def _check_own_name(node: Mapping[str, Any], space: str, steps: Place) -> Iterator[PlacedFault]:
    try:
        name, _ = split_name(node, space)
    except NotAvro as error:
        yield PlacedFault(str(error), steps)
        return
    if not _is_name(name):
        yield PlacedFault(_describe_name(name), (*steps, "name"))
    # Schema.NamedSchema of Avro's Java library.
    elif join_name(node["name"], str(node.get("namespace", space))) in PRIMITIVES:
        yield PlacedFault(f"a type has the name of the primitive {name}", (*steps, "name"))


def _is_name(name: str) -> bool:
    return name.isidentifier()


def _describe_name(name: str) -> str:
    return f'"{name[:60]}" is no name: letters, digits and _ make one, and no digit begins it'


def _find_inner_space(node: Mapping[str, Any], space: str) -> str:
    try:
        return split_name(node, space)[1]
    except NotAvro:
        return space


def _name_branch(node: Any, space: str) -> str:
    """What makes two branches of a union the same."""
    if isinstance(node, list):
        return " or ".join(_name_branch(branch, space) for branch in node)
    if not isinstance(node, dict):
        name = str(node)
        return name if name in PRIMITIVES else join_name(name, space)
    kind = node.get("type")
    if kind in NAMED and isinstance(node.get("name"), str):
        return join_name(node["name"], str(node.get("namespace", space)))
    return _name_branch(kind, space)
