"""What differs between two Avro schemas, field by field, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .avro import NAMED
from .avro_types import AvroType
from .json_text import write_json

MAX_SHOWN = 60
"""Characters of a value."""


def describe_changes(before: AvroType, after: AvroType) -> tuple[str, ...]:
    """A text for each difference, in the order of the new fields; nothing for equal schemas."""
    return tuple(dict.fromkeys(_compare(before, after, "", frozenset())))


def _compare(before: AvroType, after: AvroType, path: str, seen: frozenset[str]) -> Iterator[str]:
    what = f"field {path}" if path else "the schema"
    if before.kind != after.kind or not (before.is_known and after.is_known):
        if before.describe() != after.describe():
            yield f"{what}: the type changes from {before.describe()} to {after.describe()}"
        return
    kind = after.kind
    if kind in NAMED:
        if after.name not in seen:
            yield from _compare_named(before.resolve(), after.resolve(), path, seen | {after.name})
    elif kind == "union":
        yield from _compare_unions(before, after, path, seen)
    elif kind in ("array", "map"):
        yield from _compare(before.get_content(), after.get_content(), path, seen)
    elif str(before) != str(after):
        yield f"{what}: the type changes from {before} to {after}"


def _compare_unions(
    before: AvroType, after: AvroType, path: str, seen: frozenset[str]
) -> Iterator[str]:
    old = {branch.name: branch for branch in before.list_branches()}
    new = {branch.name: branch for branch in after.list_branches()}
    if old.keys() != new.keys():
        what = f"field {path}" if path else "the schema"
        yield f"{what}: the type changes from {before.describe()} to {after.describe()}"
    elif [*old] != [*new]:
        yield f"{f'field {path}' if path else 'the schema'}: the branches of the union change order"
    for name in old.keys() & new.keys():
        yield from _compare(old[name], new[name], path, seen)


def _compare_named(
    before: AvroType, after: AvroType, path: str, seen: frozenset[str]
) -> Iterator[str]:
    what = f"field {path}" if path else after.describe()
    if before.name != after.name:
        yield f"{what}: the name changes from {before.name} to {after.name}"
    if after.kind in ("record", "error"):
        yield from _compare_fields(before, after, path, seen)
    if after.kind == "enum":
        old, new = before.node["symbols"], after.node["symbols"]
        yield from (f"{what}: symbol {one} is added" for one in new if one not in old)
        yield from (f"{what}: symbol {one} is removed" for one in old if one not in new)
    known = {"type", "name", "namespace", "fields", "symbols"}
    yield from _compare_attributes(before.node, after.node, what, known)


def _compare_fields(
    before: AvroType, after: AvroType, path: str, seen: frozenset[str]
) -> Iterator[str]:
    old = {field["name"]: field for field in before.list_fields()}
    new = {field["name"]: field for field in after.list_fields()}
    for name, field in new.items():
        place = f"{path}.{name}" if path else name
        if name in old:
            inner = before.go_into(old[name]["type"]), after.go_into(field["type"])
            yield from _compare(*inner, place, seen)
            yield from _compare_attributes(old[name], field, f"field {place}", {"name", "type"})
            continue
        kind = after.go_into(field["type"]).describe()
        has = f"default {_show(field['default'])}" if "default" in field else "no default"
        yield f"field {place} is added: {kind}, {has}"
    for name, field in old.items():
        if name not in new:
            kind = before.go_into(field["type"]).describe()
            had = "it had a default" if "default" in field else "it had no default"
            yield f"field {f'{path}.{name}' if path else name} is removed: {kind}, {had}"
    common = [name for name in old if name in new]
    if common != [name for name in new if name in old]:
        yield f"{f'field {path}' if path else after.describe()}: fields change their order"


def _compare_attributes(
    before: Mapping[str, Any], after: Mapping[str, Any], what: str, known: set[str]
) -> Iterator[str]:
    for key in sorted({*before, *after} - known):
        old, new = before.get(key), after.get(key)
        if key not in before:
            yield f"{what}: {key} {_show(new)} is added"
        elif key not in after:
            yield f"{what}: {key} {_show(old)} is removed"
        elif old != new:
            yield f"{what}: {key} changes from {_show(old)} to {_show(new)}"


def _show(value: Any) -> str:
    text = write_json(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
