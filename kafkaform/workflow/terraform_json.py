"""Terraform's JSON for types, values' types and schemas, so that its users' tools read ours."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ..core.schema import Attribute, ObjectSchema, Type
from ..core.value import FrozenMap, Value
from ..provider.contract import Provider

DYNAMIC = "dynamic"
_COLLECTIONS = ("list", "set", "map")


def type_json(kind: Type) -> Any:
    """A type as Terraform's type system (cty) writes it in JSON: "string", ["list", "number"],
    ["object", {…}, [optional…]], ["tuple", […]]."""
    if kind.kind == "any":
        return DYNAMIC
    if kind.kind in _COLLECTIONS:
        return [kind.kind, type_json(kind.element) if kind.element else DYNAMIC]
    if kind.kind == "object":
        fields = {name: type_json(inner) for name, inner in kind.fields.items()}
        return ["object", fields, sorted(kind.optional)] if kind.optional else ["object", fields]
    if kind.kind == "tuple":
        return ["tuple", [type_json(item) for item in kind.items]]
    return str(kind)


def type_of(value: Value) -> Any:
    """The type of a value, in the same form; of nothing it is unknown."""
    match value:
        case bool():
            return "bool"
        case int() | Decimal():
            return "number"
        case str():
            return "string"
        case tuple():
            return ["tuple", [type_of(item) for item in value]]
        case FrozenMap():
            return ["object", {name: type_of(item) for name, item in value.items()}]
    return DYNAMIC


def provider_json(provider: Provider) -> dict[str, Any]:
    """All schemas of a provider, as one entry of `provider_schemas`."""
    types = {name: kind.schema for name, kind in provider.types.items()}
    return {
        "provider": _schema(provider.config),
        "resource_schemas": {name: _schema(item) for name, item in types.items()},
        "data_source_schemas": {name: _schema(item) for name, item in provider.data.items()},
    }


def _schema(item: ObjectSchema) -> dict[str, Any]:
    return {"version": 0, "block": _block(item)}


def _block(item: ObjectSchema) -> dict[str, Any]:
    """A schema's attributes, other spellings of their names too, and its nested blocks."""
    data: dict[str, Any] = {"description": item.doc, "description_kind": "plain"}
    attributes = _attributes(item.attributes)
    if attributes:
        data["attributes"] = attributes
    if item.blocks:
        data["block_types"] = {
            name: {"nesting_mode": "list", "block": _block(inner), "max_items": 1}
            for name, inner in item.blocks.items()
        }
    return data


def _attributes(attributes: Mapping[str, Attribute]) -> dict[str, Any]:
    found = {name: _attribute(item, item.doc) for name, item in attributes.items()}
    for item in attributes.values():
        for alias in item.aliases:
            found[alias] = _attribute(item, f"The same as {item.name}.")
    return found


def _attribute(item: Attribute, doc: str) -> dict[str, Any]:
    """Flags that are false are left out, as Terraform does. What has two names may be given by
    either, so that none of them is required."""
    required = item.required and not item.aliases
    flags = {
        "required": required,
        "optional": not required and not item.computed,
        "computed": item.computed,
        "sensitive": item.sensitive or item.secret,
    }
    return {
        "type": type_json(item.type),
        "description": doc,
        "description_kind": "plain",
        **{name: True for name, on in flags.items() if on},
    }
