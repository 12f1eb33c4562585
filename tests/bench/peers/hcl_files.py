"""The world in HCL: the same text for kafkaform and for OpenTofu, in three forms, with import
blocks on request. Only their provider blocks differ (`tools`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from .world import Acl, Quota, Topic, World

PER_FILE = 5_000
"""Flat blocks in one file: kafkaform reads no file of more than 8 MB."""
PER_MAP = 10_000
"""Objects in one map, and import blocks in one file: kafkaform reads no file of more than 800,000
tokens."""
PER_MODULE = 100
"""Objects of each kind in one module."""
MODULE = "modules/team"


class Form(StrEnum):
    """How people write many objects."""

    FLAT = "flat"
    """A block for each."""
    FOR_EACH = "for_each"
    """A map of each kind, and a block over it."""
    MODULES = "modules"
    """A module for a hundred objects of each kind, which gets them as maps."""


class Kind(Struct, frozen=True):
    """One resource type. row: an object's values in the maps; body: a block's arguments, made from
    the expressions for these values; import_id: None where the provider cannot import."""

    plural: str
    type: str
    row: Callable[[Any], Mapping[str, Any]]
    body: Callable[[Callable[[str], str]], str]
    import_id: Callable[[Any], str]
    shape: str
    """Type of a row, for the module's variable."""


def _topic_row(topic: Topic) -> Mapping[str, Any]:
    return {"name": topic.name, "partitions": topic.partitions, "config": dict(topic.config)}


def _topic_body(value: Callable[[str], str]) -> str:
    return f"""  name               = {value("name")}
  partitions         = {value("partitions")}
  replication_factor = 1
  config             = {value("config")}
"""


def _acl_row(acl: Acl) -> Mapping[str, Any]:
    return {"topic": acl.topic, "user": acl.user, "operation": acl.operation}


def _acl_body(value: Callable[[str], str]) -> str:
    user = value("user")
    # A literal is written as people do; an expression goes into a template.
    principal = f'"User:{user[1:]}' if user.startswith('"') else f'"User:${{{user}}}"'
    return f"""  resource_name                = {value("topic")}
  resource_type                = "Topic"
  resource_pattern_type_filter = "Literal"
  acl_principal                = {principal}
  acl_host                     = "*"
  acl_operation                = {value("operation")}
  acl_permission_type          = "Allow"
"""


def _quota_row(quota: Quota) -> Mapping[str, Any]:
    return {"user": quota.user, "rate": quota.producer_byte_rate}


def _quota_body(value: Callable[[str], str]) -> str:
    return f"""  entity_name = {value("user")}
  entity_type = "user"
  config      = {{ producer_byte_rate = {value("rate")} }}
"""


KINDS = (
    Kind(
        "topics",
        "kafka_topic",
        _topic_row,
        _topic_body,
        lambda topic: topic.name,
        "object({ name = string, partitions = number, config = map(string) })",
    ),
    Kind(
        "acls",
        "kafka_acl",
        _acl_row,
        _acl_body,
        lambda acl: f"User:{acl.user}|*|{acl.operation}|Allow|Topic|{acl.topic}|Literal",
        "object({ topic = string, user = string, operation = string })",
    ),
    Kind(
        "quotas",
        "kafka_quota",
        _quota_row,
        _quota_body,
        lambda quota: f"{quota.user}|user",
        "object({ user = string, rate = number })",
    ),
)


def write_world(world: World, form: Form, imports: Sequence[str] = ()) -> dict[str, str]:
    """The text of each file, by its path without `.tf`. imports: the resource types that get
    import blocks."""
    files: dict[str, str] = {}
    for kind in KINDS:
        if objects := getattr(world, kind.plural):
            files |= _WRITERS[form](kind, objects)
            if kind.type in imports:
                blocks = list(_write_imports(kind, objects, form))
                for name, some in _split(f"import_{kind.plural}", blocks).items():
                    files[name] = "\n".join(some)
    if form is Form.MODULES:
        files["teams"] = _write_module_calls(world)
        files[f"{MODULE}/main"] = _write_module()
    return files


def write_value(value: Any) -> str:
    """An expression: JSON's texts, numbers and lists are HCL's, and maps with = in place of :."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_quote(k)} = {write_value(v)}" for k, v in value.items()) + " }"
    return _quote(value)


def _quote(value: Any) -> str:
    return json.dumps(value).replace("${", "$${").replace("%{", "%%{")


def _write_flat(kind: Kind, objects: Sequence[Any]) -> dict[str, str]:
    files = {}
    for start in range(0, len(objects), PER_FILE):
        blocks = []
        for number, each in enumerate(objects[start : start + PER_FILE], start):
            row = kind.row(each)
            body = kind.body(lambda name, row=row: write_value(row[name]))  # type: ignore[misc]
            blocks.append(f'resource "{kind.type}" "n{number}" {{\n{body}}}\n')
        files[f"{kind.plural}_{start // PER_FILE}"] = "\n".join(blocks)
    return files


def _write_for_each(kind: Kind, objects: Sequence[Any]) -> dict[str, str]:
    rows = [f"    n{n} = {write_value(kind.row(each))}\n" for n, each in enumerate(objects)]
    maps = _split(kind.plural, rows)
    whole = [f"local.{name}" for name in maps]
    return {
        **{
            f"{name}_map": f"locals {{\n  {name} = {{\n{''.join(some)}  }}\n}}\n"
            for name, some in maps.items()
        },
        kind.plural: _write_block_over(
            kind, whole[0] if len(whole) == 1 else f"merge({', '.join(whole)})"
        ),
    }


def _split(name: str, texts: Sequence[str]) -> dict[str, Sequence[str]]:
    """Name of each part -> its texts. One part has the plain name."""
    if len(texts) <= PER_MAP:
        return {name: texts}
    return {
        f"{name}_{start // PER_MAP}": texts[start : start + PER_MAP]
        for start in range(0, len(texts), PER_MAP)
    }


def _write_block_over(kind: Kind, rows: str) -> str:
    body = kind.body(lambda name: f"each.value.{name}")
    return f'resource "{kind.type}" "all" {{\n  for_each = {rows}\n\n{body}}}\n'


def _write_module() -> str:
    parts = []
    for kind in KINDS:
        parts.append(
            f'variable "{kind.plural}" {{\n  type    = map({kind.shape})\n  default = {{}}\n}}\n'
        )
        parts.append(_write_block_over(kind, f"var.{kind.plural}"))
    return "\n".join(parts)


def _write_module_calls(world: World) -> str:
    most = max(len(getattr(world, kind.plural)) for kind in KINDS)
    blocks = []
    for team, start in enumerate(range(0, most, PER_MODULE)):
        lines = [f'module "team{team}" {{', f'  source = "./{MODULE}"']
        for kind in KINDS:
            objects = getattr(world, kind.plural)[start : start + PER_MODULE]
            if objects:
                rows = "\n".join(
                    f"    n{n} = {write_value(kind.row(each))}"
                    for n, each in enumerate(objects, start)
                )
                lines.append(f"  {kind.plural} = {{\n{rows}\n  }}")
        blocks.append("\n".join((*lines, "}\n")))
    return "\n".join(blocks)


def _write_imports(kind: Kind, objects: Sequence[Any], form: Form) -> Iterator[str]:
    for number, each in enumerate(objects):
        address = ADDRESSES[form].format(type=kind.type, n=number, team=number // PER_MODULE)
        yield f"import {{\n  to = {address}\n  id = {_quote(kind.import_id(each))}\n}}\n"


ADDRESSES = {
    Form.FLAT: "{type}.n{n}",
    Form.FOR_EACH: '{type}.all["n{n}"]',
    Form.MODULES: 'module.team{team}.{type}.all["n{n}"]',
}
_WRITERS: Mapping[Form, Callable[[Kind, Sequence[Any]], dict[str, str]]] = {
    Form.FLAT: _write_flat,
    Form.FOR_EACH: _write_for_each,
    Form.MODULES: lambda _kind, _objects: {},
}
