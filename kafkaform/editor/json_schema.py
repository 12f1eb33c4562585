"""The JSON Schemas of `*.kf.json` and `kafkaform.json`, from those of the installed providers.

Strings of such a file are templates (`"${var.x}"`), and values are converted, so a number can be
written as a text. The schema allows that and refuses what no value could become.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..core.schema import META_ARGUMENTS, AttributeSchema, ObjectSchema, Type
from ..language.declare.blocks import (
    BACKEND,
    DATA_LIFECYCLE,
    LIFECYCLE,
    MODULE_LIFECYCLE,
    REMOVED_LIFECYCLE,
    RULE,
    SHAPES,
    WAIVER,
    Shape,
)
from ..language.evaluate.evaluation_state import Schemas
from ..language.evaluate.name_check import CALL_META
from ..workflow.configuration.repository import CLUSTER, FOLDERS, PAGES, REPOSITORY
from .members import ARGUMENTS, BLOCKS, list_keys

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
NAME = r"^[^\W\d][\w-]*$"
_TEMPLATE: Schema = {"type": "string", "pattern": r"[$%]\{"}
_STRING: Schema = {"type": ["string", "number", "boolean"]}
_TYPES: Mapping[str, Schema] = {
    "string": _STRING,
    "text": {"anyOf": [_STRING, {"type": "array", "items": _STRING}]},
    "number": {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^\s*-?\d|[$%]\{"}]},
    "bool": {
        "anyOf": [{"type": "boolean"}, {"type": "string", "pattern": r"^(true|false)$|[$%]\{"}]
    },
    "any": {},
}
"""Kind of a simple type -> what a value of it can be."""
_ANYTHING: Schema = {}
_COMMENT = {"//": {"description": "A comment.", **_ANYTHING}}
_NESTED: Mapping[str, Mapping[str, Shape]] = {
    "kafkaform": {"backend": BACKEND},
    "module": {"lifecycle": MODULE_LIFECYCLE},
    "variable": {"validation": RULE},
    "output": {"precondition": RULE},
    "check": {"assert": RULE},
    "removed": {"lifecycle": REMOVED_LIFECYCLE},
    "policy": {"waiver": WAIVER},
    "policy_set": {"waiver": WAIVER},
}
_RULES = {"precondition": RULE, "postcondition": RULE}


def make_json_schema(schemas: Schemas) -> Schema:
    """The schema of a configuration file in JSON. schemas: what the providers offer."""
    blocks: Schema = {kind: _make_language_block(kind) for kind in SHAPES}
    bodies: Schema = {}
    resources = {name: info.schema for name, info in schemas.types.items()}
    data = {name: info.schema for name, info in schemas.data.items()}
    providers = {name: info.schema for name, info in schemas.providers.items()}
    blocks["resource"] = _make_typed("resource", resources, META_ARGUMENTS, LIFECYCLE, bodies)
    blocks["data"] = _make_typed("data", data, tuple(ARGUMENTS["data"]), DATA_LIFECYCLE, bodies)
    for name, schema in providers.items():
        bodies[f"provider.{name}"] = _make_body(schema, "provider", ("alias", "for_each"))
    refs = {name: _allow_several(_refer(f"provider.{name}")) for name in providers}
    blocks["provider"] = _allow_several(_make_object(refs))
    for kind, block in blocks.items():
        block["description"] = BLOCKS[kind]
    file = _make_object(blocks)
    return _make_document("A configuration of kafkaform", file, bodies)


def make_repository_schema(schemas: Schemas) -> Schema:
    """The schema of a repository file in JSON. schemas: what the providers offer."""
    bodies = {
        f"cluster.{name}": _make_body(info.schema, "provider", ("provider",))
        for name, info in schemas.providers.items()
    }
    cluster = {
        "type": "object",
        "properties": {"provider": {"enum": list(schemas.providers)}},
        "required": ["provider"],
        "allOf": [
            {
                "if": {"properties": {"provider": {"const": name}}},
                "then": _refer(f"cluster.{name}"),
            }
            for name in schemas.providers
        ],
    }
    folders = _allow_several(_make_body(PAGES["folders"][0], ""))
    pattern: Schema = {"type": "object", "properties": _COMMENT, "additionalProperties": folders}
    blocks = {
        "repository": {"description": REPOSITORY.doc, **_allow_several(_make_body(REPOSITORY, ""))},
        "cluster": {"description": CLUSTER.doc, **_label(_allow_several(cluster))},
        "folders": {"description": FOLDERS.doc, **_allow_several(pattern)},
    }
    file = _make_object(blocks, ("repository",))
    return _make_document("A repository file of kafkaform", file, bodies)


def _make_document(title: str, file: Schema, bodies: Schema) -> Schema:
    """A whole schema. bodies: the definitions that the schema of the file refers to."""
    simple = {name: _make_any_of(kind) for name, kind in _TYPES.items() if name != "any"}
    return {
        "$schema": DIALECT,
        "title": title,
        **_allow_several(_refer("file")),
        "$defs": {"file": file, **bodies, **simple},
    }


def _refer(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _make_object(
    properties: Mapping[str, Schema], required: Iterable[str] = (), *, closed: bool = True
) -> Schema:
    document: Schema = {"type": "object", "properties": {**_COMMENT, **properties}}
    required_names = sorted(required)
    return {
        **document,
        **({"required": required_names} if required_names else {}),
        **({"additionalProperties": False} if closed else {}),
    }


def _allow_several(schema: Schema) -> Schema:
    """A block, or a list of blocks of that type and these labels."""
    return {"anyOf": [schema, {"type": "array", "items": schema}]}


def _label(schema: Schema) -> Schema:
    """The level of a label: NAME -> what it is the name of."""
    labels = _make_object({})
    labels["patternProperties"] = {NAME: schema}
    return _allow_several(labels)


# ── blocks of the language ──────────────────────────────────────────────────────────────


def _make_language_block(kind: str) -> Schema:
    shape = SHAPES[kind]
    nested = {
        name: _nest(_make_shape(name, inner), len(inner.labels))
        for name, inner in _NESTED.get(kind, {}).items()
    }
    if "data" in shape.blocks:
        nested["data"] = _ANYTHING
    named = CALL_META if kind == "module" else ()
    body = _make_shape(kind, shape, {**{name: _describe(kind, name) for name in named}, **nested})
    return _nest(body, len(shape.labels))


def _nest(body: Schema, labels: int) -> Schema:
    nested = _allow_several(body)
    for _ in range(labels):
        nested = _label(nested)
    return nested


def _make_shape(kind: str, shape: Shape, blocks: Mapping[str, Schema] | None = None) -> Schema:
    names = (*shape.required, *shape.optional)
    properties = {name: _describe(kind, name) for name in names}
    return _make_object({**properties, **(blocks or {})}, shape.required, closed=not shape.open)


def _describe(kind: str, name: str) -> Schema:
    doc = ARGUMENTS.get(kind, {}).get(name, "")
    return {"description": doc} if doc else {}


# ── blocks of providers ─────────────────────────────────────────────────────────────────


def _make_typed(
    kind: str,
    schemas: Mapping[str, ObjectSchema],
    meta: Iterable[str],
    lifecycle: Shape,
    bodies: Schema,
) -> Schema:
    """The blocks of a kind by type and name. Their bodies are added to `bodies`, so that each is
    in the schema once."""
    inner = {name: _allow_several(_make_shape(name, rule)) for name, rule in _RULES.items()}
    life = _allow_several(_make_shape("lifecycle", lifecycle, inner))
    types = {}
    for name, schema in schemas.items():
        body_name = f"{kind}.{name}"
        bodies[body_name] = _make_body(schema, kind, meta, {"lifecycle": life})
        types[name] = _label(_allow_several(_refer(body_name)))
        types[name]["description"] = schema.doc
    return _allow_several(_make_object(types))


def _make_body(
    schema: ObjectSchema,
    kind: str,
    meta: Iterable[str] = (),
    blocks: Mapping[str, Schema] | None = None,
) -> Schema:
    properties = {name: _describe(kind, name) for name in meta}
    for attribute in schema.attributes.values():
        if not attribute.computed:
            value_schema = _make_attribute(attribute)
            properties |= dict.fromkeys((attribute.name, *attribute.aliases), value_schema)
    for name, block in schema.blocks.items():
        properties[name] = _allow_several(_make_body(block, ""))
    if schema.blocks:
        properties["dynamic"] = _ANYTHING
    # Required arguments can come from elsewhere: those of providers from the environment, and
    # those with an alias under the other name.
    required_names = [
        attribute_schema.name
        for attribute_schema in schema.attributes.values()
        if attribute_schema.required and not attribute_schema.aliases and kind != "provider"
    ]
    return _make_object({**properties, **(blocks or {})}, required_names)


def _make_attribute(attribute: AttributeSchema) -> Schema:
    value_schema = _make_type(attribute.type)
    if attribute.choices:
        value_schema = {"anyOf": [{"enum": list(attribute.choices)}, _TEMPLATE, {"type": "null"}]}
    elif attribute.keys is not None:
        keys = {
            key.name: {"description": " ".join(filter(None, (key.doc, key.values, key.unit)))}
            for key in list_keys(attribute)
        }
        value_schema = {"properties": keys, **value_schema}
    doc: Schema = {"description": attribute.doc}
    if isinstance(attribute.default, str | int | bool):
        doc["default"] = attribute.default
    return {**doc, **value_schema}


def _make_type(kind: Type) -> Schema:
    """What a value of a type can be; null leaves it out."""
    if kind.kind == "any":
        return {}
    if kind.kind in _TYPES:
        return _refer(kind.kind)
    return _make_any_of(_make_structure(kind))


def _make_structure(kind: Type) -> Schema:
    element = _make_type(kind.element) if kind.element is not None else {}
    if kind.kind in ("list", "set"):
        return {"type": "array", "items": element}
    if kind.kind == "map":
        return {"type": "object", "additionalProperties": element}
    if kind.kind == "object":
        fields = {name: _make_type(field) for name, field in kind.fields.items()}
        return {"type": "object", "properties": fields}
    return {"type": "array"}


def _make_any_of(schema: Schema) -> Schema:
    return {"anyOf": [schema, _TEMPLATE, {"type": "null"}]}
