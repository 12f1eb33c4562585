"""The data's typed values to values of the language, and values to something comparable."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from kafkaform.core.schema import ANY, BOOL, NUMBER, STRING, Type, object_of
from kafkaform.language.values.value import (
    FIELDS,
    SENSITIVE,
    ListVal,
    MapVal,
    Marked,
    Null,
    ObjectVal,
    SetVal,
    TupleVal,
    Val,
    add_marks,
    key_of,
    make_set,
    normalise_number,
    normalise_text,
    type_of,
)

_PRIMITIVES = {"string": STRING, "number": NUMBER, "bool": BOOL, "any": ANY}


class Inexpressible(Exception):
    """The language has no such value: infinity, or a byte buffer."""


def read_type(given: Any) -> Type:
    """The type that the data spell as `"string"`, `["list", T]`, `["object", {…}, [optional]]`."""
    if isinstance(given, str):
        return _PRIMITIVES[given]
    kind, inner, *optional = given
    if kind == "tuple":
        return Type("tuple", items=tuple(map(read_type, inner)))
    if kind == "object":
        names = optional[0] if optional else []
        return object_of({n: read_type(t) for n, t in inner.items()}, dict.fromkeys(names))
    return Type(kind, read_type(inner))


def read_value(given: Any) -> Val:
    """The value that the data encode. Raises Inexpressible."""
    if isinstance(given, str):
        return normalise_text(given)
    if isinstance(given, bool | int):
        return given
    if isinstance(given, list):
        return TupleVal(tuple(map(read_value, given)))
    form = next((name for name in given if name.startswith("$")), None)
    if form is None:
        return ObjectVal({normalise_text(name): read_value(item) for name, item in given.items()})
    return _FORMS[form](given)


def _number(given: Any) -> Val:
    value = Decimal(given["$num"])
    if not value.is_finite():
        raise Inexpressible("an infinite number")
    return normalise_number(value)


def _marked(given: Any) -> Val:
    names = (str(json.loads(mark)) for mark in given["$marks"])
    marks = frozenset(SENSITIVE if name == "Sensitive" else name for name in names)
    return add_marks(read_value(given["v"]), marks)


def _list(given: Any) -> Val:
    return ListVal(read_type(given["of"]), tuple(map(read_value, given["$list"])))


def _set(given: Any) -> Val:
    return make_set(read_type(given["of"]), map(read_value, given["$set"]))


def _map(given: Any) -> Val:
    fields = {normalise_text(name): read_value(item) for name, item in given["$map"].items()}
    return MapVal(read_type(given["of"]), fields)


def _capsule(given: Any) -> Val:
    raise Inexpressible(f"a value of Go's, {given['$capsule']}")


_FORMS = {
    "$num": _number,
    "$null": lambda given: Null(read_type(given["$null"])),
    "$marks": _marked,
    "$list": _list,
    "$set": _set,
    "$map": _map,
    "$capsule": _capsule,
    "$nil": lambda given: Null(),
}


def shown(value: Val) -> Any:
    """Plain data that differ if value, type, marks or the place of a mark differ."""
    if isinstance(value, Marked):
        return ("marked", sorted(value.marks), shown(value.value))
    if isinstance(value, Null):
        return ("null", value.type)
    if isinstance(value, TupleVal):
        return ("tuple", [shown(item) for item in value.items])
    if isinstance(value, ListVal):
        return (value.type, [shown(item) for item in value.items])
    if isinstance(value, SetVal):
        return (value.type, [shown(item) for item in sorted(value.items, key=key_of)])
    if isinstance(value, FIELDS):
        kind = "object" if isinstance(value, ObjectVal) else value.type
        return (kind, {name: shown(value.fields[name]) for name in sorted(value.fields)})
    return (type_of(value), value)
