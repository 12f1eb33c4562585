"""Parse YAML into nodes that know their line, within limits.

Only scalars, lists and maps with text keys exist here, whatever tags a file has: nothing in a file
can name a class. An alias counts as much as what it stands for, so a file cannot unfold into more
than MAX_NODES (a "billion laughs").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from kafkaform.core.errors import UsageError

MAX_NODES = 2_000_000
MAX_DEPTH = 64
_TAGS: Mapping[str, str] = {
    f"tag:yaml.org,2002:{name}": name for name in ("null", "bool", "int", "float")
}
_MERGE = "<<"


class YamlNode(Struct, frozen=True):
    """A value of a file."""

    place: str
    """`file:line`."""
    kind: str
    """null, bool, int, float, text, list or map."""
    value: Any
    """The text of a scalar as it is written, a tuple of nodes, or a map of nodes by key."""
    size: int = 1
    """How many nodes it has when all aliases are unfolded."""

    def get(self, name: str) -> YamlNode | None:
        """A field; None if it is missing, or if this is no map."""
        return self.value.get(name) if self.kind == "map" else None


class _NodeBuilder:
    """Builds nodes from the events of one file."""

    def __init__(self, file: str, events: Iterator[Any], resolve: Callable[..., str]) -> None:
        self.file, self.events, self.resolve = file, events, resolve
        self.anchors: dict[str, YamlNode] = {}
        self.left = MAX_NODES

    def read_documents(self) -> Iterator[YamlNode]:
        for event in self.events:
            match type(event).__name__:
                case "DocumentStartEvent":
                    self.anchors = {}
                    yield self.read_node(next(self.events), 0)

    def read_node(self, event: Any, depth: int) -> YamlNode:
        place = f"{self.file}:{event.start_mark.line + 1}"
        if depth > MAX_DEPTH:
            raise UsageError(f"{place}: more than {MAX_DEPTH} levels inside each other")
        node = self._build(event, place, depth)
        self.left -= 1 if event.anchor is None or node.size == 1 else node.size
        if self.left < 0:
            raise UsageError(f"{place}: more than {MAX_NODES} values, with all aliases")
        if event.anchor and type(event).__name__ != "AliasEvent":
            self.anchors[event.anchor] = node
        return node

    def _build(self, event: Any, place: str, depth: int) -> YamlNode:
        match type(event).__name__:
            case "AliasEvent":
                if event.anchor not in self.anchors:
                    raise UsageError(f"{place}: an alias without an anchor before it")
                return self.anchors[event.anchor]
            case "ScalarEvent":
                kind = _TAGS.get(self.resolve(event.value, event.implicit, event.tag), "text")
                return YamlNode(place, kind, event.value)
            case "SequenceStartEvent":
                items = tuple(self._read_items(depth))
                return YamlNode(place, "list", items, 1 + sum(item.size for item in items))
            case _:
                return self._read_map(place, depth)

    def _read_items(self, depth: int) -> Iterator[YamlNode]:
        while type(event := next(self.events)).__name__ != "SequenceEndEvent":
            yield self.read_node(event, depth + 1)

    def _read_map(self, place: str, depth: int) -> YamlNode:
        fields: dict[str, YamlNode] = {}
        merged: list[YamlNode] = []
        size = 1
        while type(event := next(self.events)).__name__ != "MappingEndEvent":
            key = self.read_node(event, depth + 1)
            value = self.read_node(next(self.events), depth + 1)
            size += value.size
            if not isinstance(key.value, str):
                raise UsageError(f"{key.place}: a list or map is the name of a field")
            if key.value == _MERGE:
                merged += value.value if value.kind == "list" else [value]
                continue
            if key.value in fields:
                raise UsageError(f"{key.place}: the field {key.value!r} stands here twice")
            fields[key.value] = value
        for other in merged:
            if other.kind != "map":
                raise UsageError(f"{other.place}: << needs a map")
            fields = {**other.value, **fields}
        return YamlNode(place, "map", fields, size)


def parse_documents(name: str, content: bytes) -> tuple[YamlNode, ...]:
    """Every document of a YAML or JSON file that is not empty.

    Raises UsageError with `name` and the line for text that is not YAML or exceeds a limit; the
    message repeats nothing of the text.
    """
    import yaml  # type: ignore[import-untyped]  # noqa: PLC0415  # it is slow to load, and only this command needs it

    resolver = yaml.resolver.Resolver()

    def resolve(value: str, implicit: tuple[bool, bool], tag: str | None) -> str:
        if tag is not None and tag != "!":
            return tag
        found: str = resolver.resolve(yaml.ScalarNode, value, implicit)
        return found

    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        reader = _NodeBuilder(name, yaml.parse(content, Loader=loader), resolve)
        return tuple(node for node in reader.read_documents() if node.kind != "null")
    except (yaml.YAMLError, UnicodeDecodeError) as fault:
        # Its own text can quote the file, and so a password.
        mark = getattr(fault, "problem_mark", None)
        where = f"{name}:{mark.line + 1}" if mark else name
        raise UsageError(f"{where}: this is not YAML", "Correct the file.") from None
    except RecursionError:
        raise UsageError(f"{name}: too many levels inside each other") from None


# Bounded: Kafka has no longer numbers, and int() refuses texts of more than 4,300 digits.
WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,18})")
"""A whole number as every parser of YAML reads it; 0123 and 1_000 mean different things to them."""
