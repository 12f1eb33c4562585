"""Write types and schemas as Terraform's JSON, so that tools made for Terraform can read them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ..core.schema import AttributeSchema, ObjectSchema, Type
from ..core.value import FrozenMap, Value

DYNAMIC = "dynamic"
_COLLECTIONS = ("list", "set", "map")


def render_type(kind: Type) -> Any:
    """Write a type in the JSON of Terraform's type system (cty): "string", ["list", "number"],
    ["object", {…}, [optional…]], ["tuple", […]]."""
    if kind.kind == "any":
        return DYNAMIC
    if kind.kind in _COLLECTIONS:
        return [kind.kind, render_type(kind.element) if kind.element else DYNAMIC]
    if kind.kind == "object":
        fields = {name: render_type(inner) for name, inner in kind.fields.items()}
        return ["object", fields, sorted(kind.optional)] if kind.optional else ["object", fields]
    if kind.kind == "tuple":
        return ["tuple", [render_type(item) for item in kind.items]]
    return str(kind)


def infer_type(value: Value) -> Any:
    """The type of a value, in the same form; the type of null is "dynamic"."""
    match value:
        case bool():  # before int: True is an int in Python
            return "bool"
        case int() | Decimal():
            return "number"
        case str():
            return "string"
        case tuple():
            return ["tuple", [infer_type(item) for item in value]]
        case FrozenMap():
            return ["object", {name: infer_type(item) for name, item in value.items()}]
    return DYNAMIC


def make_provider_json(
    config: ObjectSchema, types: Mapping[str, ObjectSchema], data: Mapping[str, ObjectSchema]
) -> dict[str, Any]:
    """All schemas of a provider, as one entry of `provider_schemas`.

    config: of its block. types, data: of its resource types and data sources, by name.
    """
    return {
        "provider": _make_schema(config),
        "resource_schemas": {name: _make_schema(schema) for name, schema in types.items()},
        "data_source_schemas": {name: _make_schema(schema) for name, schema in data.items()},
    }


def _make_schema(item: ObjectSchema) -> dict[str, Any]:
    return {"version": 0, "block": _make_block(item)}


def _make_block(item: ObjectSchema) -> dict[str, Any]:
    """The attributes of a schema, with their aliases, and its nested blocks."""
    data: dict[str, Any] = {"description": item.doc, "description_kind": "plain"}
    attributes = _make_attributes(item.attributes)
    if attributes:
        data["attributes"] = attributes
    if item.blocks:
        data["block_types"] = {
            name: {"nesting_mode": "list", "block": _make_block(inner), "max_items": 1}
            for name, inner in item.blocks.items()
        }
    return data


def _make_attributes(attributes: Mapping[str, AttributeSchema]) -> dict[str, Any]:
    described = {name: _make_attribute(item, item.doc) for name, item in attributes.items()}
    for item in attributes.values():
        for alias in item.aliases:
            described[alias] = _make_attribute(item, f"The same as {item.name}.")
    return described


def _make_attribute(item: AttributeSchema, doc: str) -> dict[str, Any]:
    """One attribute; flags that are false are left out, as Terraform does."""
    # An attribute with an alias can be given by either name, so neither of them is required.
    required = item.required and not item.aliases
    flags = {
        "required": required,
        "optional": not required and not item.computed,
        "computed": item.computed,
        "sensitive": item.sensitive or item.secret,
    }
    return {
        "type": render_type(item.type),
        "description": doc,
        "description_kind": "plain",
        **{name: True for name, on in flags.items() if on},
    }
