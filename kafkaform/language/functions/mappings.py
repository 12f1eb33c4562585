"""Functions for maps and objects."""

from __future__ import annotations

from ...core.schema import STRING, Type, list_of
from ..values.conversion import convert_value
from ..values.faults import FunctionFault
from ..values.types import describe_value
from ..values.value import (
    FIELDS,
    UNMARKED,
    Fields,
    ListVal,
    MapVal,
    Null,
    ObjectVal,
    SetVal,
    TupleVal,
    Val,
    add_marks,
    unmark,
)
from .collection import require_sequence
from .spec import Function, Param, make_string_param, make_strings_param, make_value_param


def require_mapping(value: Val, argument: int = 0) -> Fields:
    """The argument as a map or object. Raises FunctionFault."""
    if isinstance(value, FIELDS):
        return value
    raise FunctionFault(f"expected a map or an object, got {describe_value(value)}", argument)


def _lookup(value: Val, key: str, *default: Val) -> Val:
    source = require_mapping(value)
    if len(default) > 1:
        raise FunctionFault("expected a map, a key and at most one default", 2)
    fallback = [
        convert_value(item, source.element) if isinstance(source, MapVal) else item
        for item in default
    ]
    if key in source.fields:
        return source.fields[key]
    if not fallback:
        raise FunctionFault("the map does not have this key, and no default is given", 1)
    return fallback[0]


def _merge(*maps: Val) -> Val:
    # Null counts as an empty map. The result is a map only if all arguments are maps of one type.
    fields: dict[str, Val] = {}
    elements: list[Type | None] = []
    for index, mapping in enumerate(maps):
        if isinstance(mapping, Null) and mapping.type.kind in ("map", "object", "any"):
            elements.append(mapping.type.element)
        else:
            source = require_mapping(mapping, index)
            fields.update(source.fields)
            elements.append(source.element if isinstance(source, MapVal) else None)
    first_element = elements[0] if elements else None
    is_uniform = first_element is not None and all(element == first_element for element in elements)
    return (
        MapVal(first_element, fields)
        if first_element is not None and is_uniform
        else ObjectVal(fields)
    )


def _keys(value: Val) -> Val:
    source = require_mapping(value)
    names = tuple(sorted(source.fields))
    return TupleVal(names) if isinstance(source, ObjectVal) else ListVal(STRING, names)


def _values(value: Val) -> Val:
    source = require_mapping(value)
    items = tuple(source.fields[name] for name in sorted(source.fields))
    return TupleVal(items) if isinstance(source, ObjectVal) else ListVal(source.element, items)


def _zipmap(keys: ListVal, values: Val) -> Val:
    source = require_sequence(values, 1)
    if isinstance(source, SetVal):
        raise FunctionFault("a set has no order; use tolist(…) first", 1)
    if len(keys.items) != len(source.items):
        raise FunctionFault(f"there are {len(keys.items)} keys and {len(source.items)} values")
    # Keys cannot have marks in an object, so the object gets them.
    fields, marks = {}, UNMARKED
    for key, item in zip(keys.items, source.items, strict=True):
        name, key_marks = unmark(key)
        if not isinstance(name, str):
            raise FunctionFault("a key is null", 0)
        fields[name], marks = item, marks | key_marks
    result = ObjectVal(fields) if isinstance(source, TupleVal) else MapVal(source.element, fields)
    return add_marks(result, marks)


def _transpose(value: Val) -> Val:
    keys_by_item: dict[str, list[Val]] = {}
    for name, items in sorted(require_mapping(value).fields.items()):
        listed = convert_value(items, list_of(STRING))
        for item in require_sequence(listed).items:
            if not isinstance(item, str):
                raise FunctionFault("a list contains null", 0)
            keys_by_item.setdefault(item, []).append(name)
    element = list_of(STRING)
    return MapVal(
        element, {name: ListVal(STRING, tuple(keys)) for name, keys in keys_by_item.items()}
    )


FUNCTIONS = (
    Function(
        "keys",
        "The keys of a map or object, sorted.",
        _keys,
        (make_value_param("map"),),
        passes=True,
    ),
    Function(
        "lookup",
        "The value under the key, or the default if there is none.",
        _lookup,
        (make_value_param("map"), make_string_param("key")),
        Param("default", null=True, marked=True, deep=True),
        passes=True,
        cost=0,
    ),
    Function(
        "merge",
        "All maps or objects as one; if a key occurs in several, the last one wins.",
        _merge,
        (),
        make_value_param("maps", null=True),
        passes=True,
    ),
    Function(
        "transpose",
        "A map from each string in the lists to the keys of the lists that contain it.",
        _transpose,
        (Param("map"),),
    ),
    Function(
        "values",
        "The values of a map or object, in the order of its keys.",
        _values,
        (make_value_param("map"),),
        passes=True,
    ),
    Function(
        "zipmap",
        "A map or object of these keys with the values at the same positions.",
        _zipmap,
        (make_strings_param("keys"), make_value_param("values")),
        passes=True,
    ),
)
