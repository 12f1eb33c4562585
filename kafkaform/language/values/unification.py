"""Which types convert to which, and the common type of several types, by go-cty's rules.

Conditionals, `tolist` and others need the common type: `true ? 1 : "a"` is "1", and `[1, "a"]` as a
list is `["1", "a"]`. The cases of tests/conformance compare the results with go-cty's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...core.schema import ANY, STRING, Type
from ...core.value import FrozenMap

COMPARED = 100
"""How many types are compared in pairs to find the best of them; the time grows with the square."""

_PRIMITIVES = frozenset({"string", "number", "bool"})
_SAFE = {("number", "string"), ("bool", "string")}
_UNSAFE = _SAFE | {("string", "number"), ("string", "bool")}
_SEQUENCES = frozenset({"list", "set"})


def is_convertible(source: Type, target: Type, unsafe: bool = True) -> bool:
    """Whether values of `source` convert to `target`. unsafe: also if only some values do, as
    strings to numbers."""
    if source == target or target == ANY:
        return True
    if source == ANY:
        return unsafe
    if source.kind in _PRIMITIVES or target.kind in _PRIMITIVES:
        return (source.kind, target.kind) in (_UNSAFE if unsafe else _SAFE)
    if target.element is not None and source.element is not None:
        return _is_collection_convertible(source, target, unsafe)
    if target.element is not None:
        return _is_structure_convertible(source, target, unsafe)
    if target.kind == "object":
        return _is_object_convertible(source, target, unsafe)
    return (
        source.kind == "tuple"
        and len(source.items) == len(target.items)
        and all(
            is_convertible(s, t, unsafe) for s, t in zip(source.items, target.items, strict=True)
        )
    )


def _is_collection_convertible(source: Type, target: Type, unsafe: bool) -> bool:
    if source.kind == "list" and target.kind == "set" and not unsafe:
        return False
    alike = source.kind == target.kind or {source.kind, target.kind} <= _SEQUENCES
    return alike and is_convertible(source.element or ANY, target.element or ANY, unsafe)


def _is_structure_convertible(source: Type, target: Type, unsafe: bool) -> bool:
    if (source.kind == "object") != (target.kind == "map"):
        return False
    parts = list_parts(source)
    if not parts:
        return True
    element = target.element
    if element is None or element == ANY:
        element = unify_types(parts, unsafe)
        if element is None or (element == ANY and any(part != ANY for part in parts)):
            return False
    return all(is_convertible(part, element, unsafe) for part in parts)


def _is_object_convertible(source: Type, target: Type, unsafe: bool) -> bool:
    if source.kind == "map":
        element = source.element or ANY
        return unsafe and all(
            name in target.optional or is_convertible(element, kind, unsafe)
            for name, kind in target.fields.items()
        )
    return source.kind == "object" and all(
        is_convertible(source.fields[name], kind, unsafe)
        if name in source.fields
        else name in target.optional
        for name, kind in target.fields.items()
    )


def list_parts(kind: Type) -> tuple[Type, ...]:
    """The element types of a tuple or object."""
    return kind.items if kind.kind == "tuple" else tuple(kind.fields.values())


def unify_types(types: Iterable[Type], unsafe: bool = True) -> Type | None:
    """The type that all of these convert to; None if there is none. unsafe: as above."""
    unique = tuple(dict.fromkeys(types))
    if len(unique) == 1:
        return unique[0]
    kinds = {kind.kind for kind in unique}
    known = kinds - {"any"}
    for family, how in _FAMILIES:
        if known and known <= family:
            if "any" in kinds:
                return ANY
            found = how(unique, unsafe)
            if found is not None or len(family) == 1:
                return found
    if {"object", "tuple"} <= kinds:
        return None
    return _choose_preferred(unique, unsafe)


def _unify_collections(types: Sequence[Type], unsafe: bool) -> Type | None:
    element = unify_types((kind.element or ANY for kind in types), unsafe)
    return None if element is None else Type(types[0].kind, element)


def _unify_objects(types: Sequence[Type], unsafe: bool) -> Type | None:
    first = types[0].fields
    if any(kind.fields.keys() != first.keys() for kind in types):
        return _gather_parts("map", types, unsafe)
    fields = {name: unify_types((kind.fields[name] for kind in types), unsafe) for name in first}
    whole = {name: kind for name, kind in fields.items() if kind is not None}
    if len(whole) < len(fields):
        return None
    found = Type("object", fields=FrozenMap(whole))
    return found if _is_reached(found, types, unsafe) else _gather_parts("map", types, unsafe)


def _unify_tuples(types: Sequence[Type], unsafe: bool) -> Type | None:
    if len({len(kind.items) for kind in types}) > 1:
        return _gather_parts("list", types, unsafe)
    columns = zip(*(kind.items for kind in types), strict=True)
    items = [unify_types(column, unsafe) for column in columns]
    whole = tuple(item for item in items if item is not None)
    if len(whole) < len(items):
        return None
    found = Type("tuple", items=whole)
    return found if _is_reached(found, types, unsafe) else _gather_parts("list", types, unsafe)


def _is_reached(target: Type, types: Sequence[Type], unsafe: bool) -> bool:
    return all(is_convertible(kind, target, unsafe) for kind in types)


def _gather_parts(collection: str, types: Sequence[Type], unsafe: bool) -> Type | None:
    """The collection that holds the parts of all these objects or tuples."""
    parts = [part for kind in types for part in list_parts(kind)]
    element = unify_types(parts, unsafe) if parts else None
    if element is None:
        return None
    found = Type(collection, element)
    return found if _is_reached(found, types, unsafe) else None


def _unify_mixed(
    collection: str, structure: str, types: Sequence[Type], unsafe: bool
) -> Type | None:
    """Objects beside maps, tuples beside lists: first the structures alone become one."""
    gathered = _gather_parts(collection, [kind for kind in types if kind.kind == structure], unsafe)
    if gathered is None:
        return None
    return unify_types([gathered, *(kind for kind in types if kind.kind == collection)], unsafe)


def _unify_maps_and_objects(types: Sequence[Type], unsafe: bool) -> Type | None:
    return _unify_mixed("map", "object", types, unsafe)


def _unify_lists_and_tuples(types: Sequence[Type], unsafe: bool) -> Type | None:
    return _unify_mixed("list", "tuple", types, unsafe)


_FAMILIES = (
    ({"map"}, _unify_collections),
    ({"list"}, _unify_collections),
    ({"set"}, _unify_collections),
    ({"object"}, _unify_objects),
    ({"tuple"}, _unify_tuples),
    ({"map", "object"}, _unify_maps_and_objects),
    ({"list", "tuple"}, _unify_lists_and_tuples),
)


def _choose_preferred(types: Sequence[Type], unsafe: bool) -> Type | None:
    """The first of the types, most general ones first, that all others convert to."""
    some = types[:COMPARED]
    order = sorted(some, key=lambda kind: sum(_compare(other, kind) < 0 for other in some))
    for wanted in order:
        if _is_reached(wanted, types, unsafe):
            return wanted
    return None


_RANKS = {"list": 1, "tuple": 2, "set": 0, "map": 1, "object": 2}


def _compare(one: Type, other: Type) -> int:
    """Below zero if `one` is the better common type."""
    if ANY in (one, other):
        return (one == ANY) - (other == ANY)
    if one.kind in _PRIMITIVES and other.kind in _PRIMITIVES:
        return (other == STRING) - (one == STRING)
    if one.element is not None and one.kind == other.kind:
        return _compare(one.element, other.element or ANY)
    if one.kind != other.kind:
        mapping = {"map", "object"}
        if one.kind in _RANKS and other.kind in _RANKS:
            same = (one.kind in mapping) == (other.kind in mapping)
            return _RANKS[one.kind] - _RANKS[other.kind] if same else 0
        return 0
    return _compare_parts(one, other)


def _compare_parts(one: Type, other: Type) -> int:
    if one.kind == "object" and one.fields.keys() != other.fields.keys():
        return 0
    if len(one.items) != len(other.items):
        return 0
    pairs = (
        [(one.fields[name], other.fields[name]) for name in one.fields]
        if one.kind == "object"
        else list(zip(one.items, other.items, strict=True))
    )
    signs = {(order > 0) - (order < 0) for a, b in pairs if (order := _compare(a, b))}
    return signs.pop() if len(signs) == 1 else 0
