"""Choose the arguments of the block that declares a live object, and write their amounts."""

from __future__ import annotations

from ...core.resource import Facts, Identity, Observed
from ...core.schema import AttributeSchema, ObjectSchema
from ...core.value import FrozenMap, SecretRef, Value
from ...language.functions.number import render_call
from ...provider.contract import ResourceType
from ...syntax.write import Code, Writable

PLACEHOLDER = SecretRef("env", "")
"""Stands for a secret, which nobody can read from the system."""


def choose_arguments(item: Observed, kind: ResourceType, facts: Facts) -> FrozenMap:
    """The fewest arguments that declare the object: no defaults, nothing that the system sets, and
    of two arguments that exclude each other the one that leaves more to the system."""
    live = kind.written(item.attributes) if kind.written else item.attributes
    schema = kind.schema
    arguments = {
        name: live[name]
        for name, attribute in schema.attributes.items()
        if _is_needed(live.get(name), attribute)
    }
    for first, second in schema.conflicts:
        if first in arguments and second in arguments:
            del arguments[first]
    secret = (a.name for a in schema.attributes.values() if a.secret and a.required)
    complete = FrozenMap({**dict.fromkeys(secret, PLACEHOLDER), **arguments})
    return complete.with_items(_select_own_entries(complete, item, kind, facts))


def _is_needed(value: Value, attribute: AttributeSchema) -> bool:
    nothing = value is None or value == attribute.default or attribute.computed
    return not nothing and (attribute.required or value not in (FrozenMap(), ()))


def _select_own_entries(
    arguments: FrozenMap, item: Observed, kind: ResourceType, facts: Facts
) -> dict[str, FrozenMap]:
    """The maps without the entries that belong to others, because they stay if undeclared."""
    maps = {
        name: value for name, value in arguments.items() if isinstance(value, FrozenMap) and value
    }
    if not maps:
        return {}
    bare = fill_defaults(arguments.with_items(dict.fromkeys(maps, FrozenMap())), kind.schema)
    remaining = kind.target(bare, item, facts, False)
    return {name: value.without(remaining.get(name) or ()) for name, value in maps.items()}


def fill_defaults(arguments: FrozenMap, schema: ObjectSchema) -> FrozenMap:
    """All attributes of a block as the language evaluates it, with defaults filled in."""
    return FrozenMap(
        {
            name: arguments.get(name, attribute.default)
            for name, attribute in schema.attributes.items()
            if not attribute.computed
        }
    )


def write_amounts(kind: ResourceType, name: str, value: Writable) -> Writable:
    """An argument in which `retention("30d")` or `bytes("10MiB")` stands for each exact amount."""
    if kind.unit is None or not isinstance(value, FrozenMap):
        return value
    calls = {key: render_call(entry, kind.unit((name, key))) for key, entry in value.items()}
    return {key: Code(calls[key]) if calls[key] else entry for key, entry in value.items()}


def find_import_id(identity: Identity, kind: ResourceType) -> str | None:
    """The id that an import block has for the object, None if it cannot name the object."""
    try:
        return identity.key if kind.import_key(identity.key) == identity.key else None
    except ValueError:
        return None
