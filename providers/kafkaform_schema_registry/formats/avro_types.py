"""Named types of an Avro schema: what a name inside of it means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from .avro import NAMED, PRIMITIVES, join_name
from .json_text import write_json

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
