"""Avro schemas in one spelling, and their named types: what a name inside of a schema means.

The spelling is the one in which Avro's Java library prints a parsed schema. Clients and Confluent's
registry use it, too. Unlike the "parsing canonical form" of the specification, it keeps doc,
default, aliases and other properties: they make another schema.

Source: https://avro.apache.org/docs/1.12.0/specification/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from kafkaform.provider.http.exchange import parse_json

from .json_schema import sort_keys, write_json, write_sorted

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAMED = frozenset({"record", "error", "enum", "fixed"})
_BODY: Mapping[str, tuple[str, ...]] = {
    "record": ("doc", "fields"),
    "error": ("doc", "fields"),
    "enum": ("doc", "symbols", "default"),
    "fixed": ("doc", "size"),
    "array": ("items",),
    "map": ("values",),
}
"""Type -> its own attributes in the order in which they are printed."""
NORMAL_FORMS: dict[str, str] = {}
"""Documents with sorted keys -> their normal forms, of the schemas that were met."""
_MAX_KNOWN = 4096
_FIELD = ("name", "type", "doc", "default", "order", "aliases")


class NotAvro(ValueError):
    """The text is no Avro schema. The message says why."""


def parse_avro(text: str) -> Any:
    """The schema as JSON values: names with namespaces where they are needed, attributes in the
    usual order. Raises NotAvro."""
    return _shape(_read_document(text), "")


def normalize_avro(text: str) -> str:
    """The same schema on one line in the usual spelling. Raises NotAvro."""
    # What is declared and what is live seldom have the same text, but nearly always the same
    # document, and most of the time is spent on the spelling.
    document = _read_document(text)
    key = write_sorted(document)
    normal_form = NORMAL_FORMS.get(key)
    if normal_form is None:
        if len(NORMAL_FORMS) >= _MAX_KNOWN:
            NORMAL_FORMS.clear()
        NORMAL_FORMS[key] = normal_form = write_json(_shape(document, ""))
    return normal_form


def _read_document(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise NotAvro(str(error)) from None


def find_record_name(text: str) -> str:
    """The full name of the record, enum or fixed that the schema is. Raises NotAvro for another
    schema, which has no name."""
    schema = parse_avro(text)
    if not isinstance(schema, dict) or schema.get("type") not in NAMED:
        raise NotAvro("it is no record, enum or fixed, so it has no name")
    return join_name(schema["name"], schema.get("namespace", ""))


def join_name(name: str, space: str) -> str:
    """The full name of what is called `name` in a namespace; a name with dots is full already."""
    return name if "." in name or not space else f"{space}.{name}"


def split_name(node: Mapping[str, Any], space: str) -> tuple[str, str]:
    """The last part of the name of a named type, and its namespace. space: what it is inside of."""
    name = node.get("name")
    if not isinstance(name, str) or not name:
        raise NotAvro(f"a {node.get('type')} has no name")
    if "." in name:
        head, _, tail = name.rpartition(".")
        return tail, head
    namespace = node.get("namespace", space)
    if not isinstance(namespace, str):
        raise NotAvro(f"the namespace of {name} is no text")
    return name, namespace


def _shape(node: Any, space: str) -> Any:
    if isinstance(node, str):
        return node if node in PRIMITIVES else _shorten(node, space)
    if isinstance(node, list):
        return node if _are_primitives(node) else [_shape(item, space) for item in node]
    if not isinstance(node, dict) or "type" not in node:
        raise NotAvro("a schema is a name, a list or an object with a type")
    kind = node["type"]
    if not isinstance(kind, str):
        # Some generators wrap a schema once more. Properties of the wrapper would be lost.
        if len(node) > 1:
            raise NotAvro("a type inside of a type cannot have properties beside it")
        return _shape(kind, space)
    if kind in NAMED:
        return _shape_named(node, kind, space)
    if kind in _BODY:
        return _shape_container(node, kind, space)
    attributes = _collect_rest(node, ("type",))
    return {"type": _shorten(kind, space), **attributes} if attributes else _shorten(kind, space)


def _are_primitives(node: Any) -> bool:
    """Whether this is a union of primitives, as nearly every union is."""
    try:
        return isinstance(node, list) and PRIMITIVES.issuperset(node)
    except TypeError:  # a list or an object is in it
        return False


def _shape_named(node: Mapping[str, Any], kind: str, space: str) -> dict[str, Any]:
    name, inner = split_name(node, space)
    shaped: dict[str, Any] = {"type": kind, "name": name}
    if inner != space:
        shaped["namespace"] = inner
    for key in _BODY[kind]:
        if key in node:
            shaped[key] = node[key]
    if "fields" in _BODY[kind]:
        fields = node.get("fields")
        if not isinstance(fields, list):
            raise NotAvro(f"the record {name} has no fields")
        shaped["fields"] = [_shape_field(field, name, inner) for field in fields]
    elif kind == "enum" and not _is_text_list(node.get("symbols")):
        raise NotAvro(f"the enum {name} has no symbols")
    shaped |= _collect_rest(node, ("type", "name", "namespace", "aliases", *_BODY[kind]))
    if aliases := _read_aliases(node, inner):
        shaped["aliases"] = aliases
    return shaped


def _shape_container(node: Mapping[str, Any], kind: str, space: str) -> dict[str, Any]:
    (content,) = _BODY[kind]
    if content not in node:
        raise NotAvro(f"the {kind} has no {content}")
    attributes = _collect_rest(node, ("type", content))
    return {"type": kind, content: _shape(node[content], space), **attributes}


def _shape_field(field: Any, record: str, space: str) -> dict[str, Any]:
    if not isinstance(field, dict) or not isinstance(field.get("name"), str):
        raise NotAvro(f"a field of the record {record} has no name")
    if "type" not in field:
        raise NotAvro(f"the field {field['name']} of the record {record} has no type")
    kind = field["type"]
    plain = kind in PRIMITIVES if kind.__class__ is str else _are_primitives(kind)
    shaped: dict[str, Any] = {"name": field["name"], "type": kind if plain else _shape(kind, space)}
    if "doc" in field:
        shaped["doc"] = sort_keys(field["doc"])
    if "default" in field:
        shaped["default"] = sort_keys(field["default"])
    if len(field) == len(shaped):
        return shaped
    if field.get("order", "ascending") != "ascending":
        shaped["order"] = field["order"]
    if aliases := _read_aliases(field, ""):
        shaped["aliases"] = aliases
    return shaped | _collect_rest(field, _FIELD)


def _shorten(name: str, space: str) -> str:
    """A name as it is printed inside of a namespace."""
    if name in PRIMITIVES or not space:
        return name
    head, _, tail = name.rpartition(".")
    return tail if head == space and tail not in PRIMITIVES else name


def _read_aliases(node: Mapping[str, Any], space: str) -> list[str]:
    aliases = node.get("aliases") or []
    if not _is_text_list(aliases):
        raise NotAvro(f"the aliases of {node.get('name')} are no list of texts")
    return sorted({_shorten(alias, space) for alias in aliases})


def _collect_rest(node: Mapping[str, Any], reserved: Iterable[str]) -> dict[str, Any]:
    """Other properties, such as logicalType."""
    reserved_keys = set(reserved)
    return {key: sort_keys(node[key]) for key in sorted(node) if key not in reserved_keys}


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_INSIDE = {"array": "items", "map": "values"}


class AvroType(Struct, frozen=True):
    """A type where it is used. node: as from `parse_avro`; space: the namespace around it."""

    node: Any
    space: str
    named: Mapping[str, AvroType]
    """Full name -> the definition, of all named types of the schema."""

    @property
    def kind(self) -> str:
        """`record`, `union`, `string` …; the name of a type that the schema does not define."""
        node = self.resolve().node
        if isinstance(node, list):
            return "union"
        return str(node["type"] if isinstance(node, dict) else node)

    def resolve(self) -> AvroType:
        """The definition that a name stands for; the type itself if it is none or is unknown."""
        if not isinstance(self.node, str) or self.node in PRIMITIVES:
            return self
        full = join_name(self.node, self.space)
        return self.named.get(full) or self.named.get(self.node) or self

    @property
    def is_known(self) -> bool:
        """False for a name that the schema does not define: another subject does."""
        node = self.resolve().node
        kind = node["type"] if isinstance(node, dict) else node
        return isinstance(node, list) or kind in PRIMITIVES or kind in NAMED or kind in _INSIDE

    @property
    def name(self) -> str:
        """The full name of a named type, its kind for any other."""
        resolved = self.resolve()
        if isinstance(resolved.node, dict) and "name" in resolved.node:
            return join_name(resolved.node["name"], resolved.inner_space)
        return resolved.kind

    @property
    def inner_space(self) -> str:
        """The namespace of what is inside."""
        node = self.node
        if isinstance(node, dict) and "namespace" in node:
            return str(node["namespace"])
        return self.space

    def go_into(self, node: Any) -> AvroType:
        """A type that this one contains."""
        return AvroType(node, self.inner_space, self.named)

    def list_branches(self) -> list[AvroType]:
        """The branches of a union; the type itself if it is none."""
        node = self.resolve().node
        return [self.go_into(item) for item in node] if isinstance(node, list) else [self]

    def list_fields(self) -> list[Mapping[str, Any]]:
        """The fields of a record."""
        return list(self.resolve().node["fields"])

    def get_content(self) -> AvroType:
        """The type of the elements of an array or a map."""
        resolved = self.resolve()
        return resolved.go_into(resolved.node[_INSIDE[resolved.kind]])

    def describe(self) -> str:
        """A short text for people: `long`, `null or string`, `array of long`, `record Order`."""
        if self.kind == "union":
            return " or ".join(branch.describe() for branch in self.list_branches())
        if self.kind in _INSIDE:
            return f"{self.kind} of {self.get_content().describe()}"
        if self.kind in NAMED:
            return f"{self.kind} {self.name}"
        node = self.resolve().node
        logical = node.get("logicalType") if isinstance(node, dict) else None
        return f"{self.kind} ({logical})" if isinstance(logical, str) else self.kind

    def __str__(self) -> str:
        return write_json(self.node)


def open_schema(schema: Any) -> AvroType:
    """The outermost type. schema: as from `parse_avro`."""
    named: dict[str, AvroType] = {}
    outer = AvroType(schema, "", named)
    for resolved in _walk(outer):
        named.setdefault(join_name(resolved.node["name"], resolved.inner_space), resolved)
    return outer


def _walk(type_: AvroType) -> Iterator[AvroType]:
    """Every definition of a named type, outside in."""
    node = type_.node
    if isinstance(node, list):
        inner = node
    elif not isinstance(node, dict):
        return
    elif node["type"] in NAMED:
        yield type_
        inner = [field["type"] for field in node.get("fields", ())]
    else:
        inner = [node[key] for kind, key in _INSIDE.items() if node["type"] == kind]
    for item in inner:
        yield from _walk(type_.go_into(item))
