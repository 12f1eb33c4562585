"""What keeps a JSON document from being a JSON schema, each with its place.

One table says what the value of each keyword is, in draft-04 to 2020-12: registries read all of
them. A keyword with another name is no fault: schemas may have their own.

Source: https://json-schema.org/draft/2020-12/json-schema-validation and the metaschemas before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from kafkaform.core.diagnostics import suggest

from .faults import Place, PlacedFault
from .json_text import write_json

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


_COUNT = (_is_count, "a whole number from 0 on")
_NUMBER = (_is_number, "a number")
_TEXT = (_is_text, "a text")
_LIMIT = (lambda value: isinstance(value, bool) or _is_number(value), "a number or a bool")
_BOOL = (lambda value: isinstance(value, bool), "a bool")
_VALUES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "$id": _TEXT,
    "$ref": _TEXT,
    "$schema": _TEXT,
    "description": _TEXT,
    "enum": (lambda value: isinstance(value, list), "a list"),
    "exclusiveMaximum": _LIMIT,
    "exclusiveMinimum": _LIMIT,
    "format": _TEXT,
    "maxItems": _COUNT,
    "maxLength": _COUNT,
    "maxProperties": _COUNT,
    "maximum": _NUMBER,
    "minItems": _COUNT,
    "minLength": _COUNT,
    "minProperties": _COUNT,
    "minimum": _NUMBER,
    "multipleOf": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    "pattern": _TEXT,
    "required": (_is_name_list, "a list of different names"),
    "title": _TEXT,
    "uniqueItems": _BOOL,
}
"""Keyword -> whether its value is right, and what it has to be."""


def find_json_faults(document: Any, *, elsewhere: bool) -> Iterator[PlacedFault]:
    """Each fault as a part of a sentence, and where it is. elsewhere: the schema refers to others,
    which define what it does not."""
    yield from _check_schema(document, document, (), elsewhere=elsewhere)


def _check_schema(node: Any, root: Any, steps: Place, *, elsewhere: bool) -> Iterator[PlacedFault]:
    if isinstance(node, bool):
        return
    if not isinstance(node, dict):
        yield PlacedFault(
            f"a schema is an object or a bool, and not {write_json(node)[:40]}", steps
        )
        return
    for key, value in node.items():
        inner_steps = (*steps, key)
        if key in _VALUES and not _VALUES[key][0](value):
            yield PlacedFault(
                f"{key} is not {_VALUES[key][1]}: {write_json(value)[:40]}", inner_steps
            )
        elif key == "type":
            yield from _check_kind(value, inner_steps)
        elif key == "$ref":
            if not elsewhere and value.startswith("#/") and not _has_target(root, value):
                yield PlacedFault(f"$ref leads to {value}, which is not in the schema", inner_steps)
        elif key in MAP_KEYWORDS:
            if not isinstance(value, dict):
                yield PlacedFault(
                    f"{key} is not an object with a schema for each name", inner_steps
                )
                continue
            for name, inner in value.items():
                yield from _check_schema(inner, root, (*inner_steps, name), elsewhere=elsewhere)
        elif key in LIST_KEYWORDS or (key == "items" and isinstance(value, list)):
            if not isinstance(value, list) or (not value and key != "items"):
                yield PlacedFault(f"{key} is not a list of schemas", inner_steps)
                continue
            for index, inner in enumerate(value):
                yield from _check_schema(inner, root, (*inner_steps, index), elsewhere=elsewhere)
        elif key in SCHEMA_KEYWORDS:
            yield from _check_schema(value, root, inner_steps, elsewhere=elsewhere)


def _check_kind(value: Any, steps: Place) -> Iterator[PlacedFault]:
    names = value if isinstance(value, list) else [value]
    if not names:
        yield PlacedFault("type is an empty list", steps)
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
