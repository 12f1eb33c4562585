"""What keeps a JSON document from being an Avro schema, each with its place.

Only what every registry refuses counts, so the rules are those of Avro's Java library, whose name
check has grown wider (`Schema.validateName`, `NameValidator` of 1.12), and whose check of defaults
takes any branch of a union and any text for an enum (`Schema.isValidDefault`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from kafkaform.core.diagnostics import suggest

from .avro import NAMED, PRIMITIVES, NotAvro, join_name, split_name
from .faults import Place, PlacedFault
from .json_schema import write_json

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
