"""Conversion of values to types, and the way between the language's values and core's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from ...core.schema import ANY, STRING, Type
from ...core.value import FrozenMap, SecretRef, Value
from .faults import ConvertFault, Deferred, Poisoned
from .numbers import number_text, parse_number
from .types import describe, describe_value, has_any, plain
from .unification import unify
from .value import (
    SEQUENCES,
    Composite,
    Computed,
    Fields,
    ListVal,
    MapVal,
    Marked,
    Null,
    ObjectVal,
    Sequence,
    SetVal,
    TupleVal,
    Val,
    set_value,
    type_of,
    with_marks,
)

CONVERSION = 5
"""Steps that converting one element takes, of those at any level."""

_KINDS: Mapping[type[Composite], str] = {
    TupleVal: "tuple",
    ListVal: "list",
    SetVal: "set",
    ObjectVal: "object",
    MapVal: "map",
}
_SCALARS = ("string", "text")
_BOOLS = {"true": True, "1": True, "false": False, "0": False}


def convert(value: Val, want: Type) -> Val:
    """The value as this type. Raises ConvertFault, which never shows the value itself."""
    kind = want.kind
    if kind == "any" or (kind in _SCALARS and value.__class__ is str):
        return value
    if isinstance(value, Marked):
        inner = convert(value.value, want)
        return value if inner is value.value else with_marks(inner, value.marks)
    if isinstance(value, Null):
        return Null(_concrete(value.type, plain(want)))
    if isinstance(value, Computed):
        raise value.defer()
    if isinstance(value, Composite) and fits(value, want):
        return value
    return _CONVERSIONS[kind](value, want)


def fits(value: Sequence | Fields, want: Type) -> bool:
    """Whether a value is already what `convert` would make of it."""
    if _KINDS[type(value)] != want.kind:
        return False
    try:
        return value.type == want == plain(want) and not isinstance(value.sealed, Computed)
    except (Poisoned, Deferred):  # a part cannot be had, which may not matter
        return False


def _refuse(value: Val, want: Type) -> ConvertFault:
    return ConvertFault(f"{describe(want)} is needed, this is {describe_value(value)}")


def _string(value: Val, want: Type) -> Val:
    if isinstance(value, str | SecretRef):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return number_text(value)
    raise _refuse(value, want)


def _text(value: Val, want: Type) -> Val:
    """A string; the elements of a list are joined by commas."""
    if not isinstance(value, ListVal | TupleVal):
        return _string(value, want)
    parts = [_at(index, item, STRING) for index, item in enumerate(value.items)]
    for index, part in enumerate(parts):
        if not isinstance(part, str):
            raise _refuse(part, STRING).below(f"[{index}]")
        if "," in part:
            raise ConvertFault("an element with a comma would count as two").below(f"[{index}]")
    return ",".join(map(str, parts))


def _number(value: Val, want: Type) -> Val:
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and (number := parse_number(value)) is not None:
        return number
    if isinstance(value, str):
        raise ConvertFault("a number is needed, this string is none")
    raise _refuse(value, want)


def _bool(value: Val, want: Type) -> Val:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _BOOLS:
        return _BOOLS[value]
    if isinstance(value, str):
        raise ConvertFault('true or false is needed, this string is neither "true" nor "false"')
    raise _refuse(value, want)


def _sequence(value: Val, want: Type) -> Val:
    element = want.element or ANY
    if not isinstance(value, SEQUENCES):
        raise _refuse(value, want)
    if not value.items and element == ANY:
        element = value.element if isinstance(value, ListVal | SetVal) else ANY
    kind, items = _uniform(enumerate(value.items), element, "elements")
    if want.kind == "set":
        return set_value(kind, items)
    return ListVal(kind, tuple(items))


def _map(value: Val, want: Type) -> Val:
    element = want.element or ANY
    if not isinstance(value, MapVal | ObjectVal):
        raise _refuse(value, want)
    if not value.fields and element == ANY and isinstance(value, MapVal):
        element = value.element
    kind, items = _uniform(value.fields.items(), element, "values")
    return MapVal(kind, dict(zip(value.fields, items, strict=True)))


def _uniform(
    items: Iterable[tuple[str | int, Val]], element: Type, what: str
) -> tuple[Type, list[Val]]:
    """The items as one element type, which is found out where the wanted one says `any`."""
    pairs = list(items)
    if not pairs:
        return plain(element), []
    if element.kind in _SCALARS and all(item.__class__ is str for _, item in pairs):
        return plain(element), [item for _, item in pairs]
    if element == ANY:
        element = _common((type_of(item) for _, item in pairs), what)
    converted = [_at(key, item, element) for key, item in pairs]
    if not has_any(element):
        return plain(element), converted
    final = _common((type_of(item) for item in converted), what)
    if has_any(final):
        return final, converted
    return final, [convert(item, final) for item in converted]


def _common(types: Iterable[Type], what: str) -> Type:
    known = [kind for kind in types if kind != ANY]  # a bare null takes the others' type
    found = unify(known) if known else ANY
    if found is None:
        raise ConvertFault(f"all {what} must be of one type")
    return found


def _at(key: str | int, item: Val, want: Type) -> Val:
    try:
        return convert(item, want)
    except ConvertFault as fault:
        step = f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{_quoted(key)}]"
        raise fault.below(step) from None


def _quoted(key: str | int) -> str:
    return str(key) if isinstance(key, int) else f'"{key}"'


def _object(value: Val, want: Type) -> Val:
    if not isinstance(value, ObjectVal | MapVal):
        raise _refuse(value, want)
    fields: dict[str, Val] = {}
    for name, kind in want.fields.items():
        default = want.optional.get(name)
        given = value.fields.get(name)
        if given is None and name not in want.optional:
            raise ConvertFault(f'the attribute "{name}" is missing')
        if default is not None and (given is None or _is_null(given)):
            fields[name] = _at(name, lift(default, kind), kind)
        else:
            fields[name] = Null(plain(kind)) if given is None else _at(name, given, kind)
    return ObjectVal(fields)


def _is_null(value: Val) -> bool:
    return isinstance(value, Null) or (isinstance(value, Marked) and _is_null(value.value))


def _tuple(value: Val, want: Type) -> Val:
    if not isinstance(value, TupleVal):
        raise _refuse(value, want)
    if len(value.items) != len(want.items):
        raise ConvertFault(f"{len(want.items)} elements are needed, here are {len(value.items)}")
    pairs = enumerate(zip(value.items, want.items, strict=True))
    return TupleVal(tuple(_at(index, item, kind) for index, (item, kind) in pairs))


_CONVERSIONS: Mapping[str, Callable[[Val, Type], Val]] = {
    "string": _string,
    "text": _text,
    "number": _number,
    "bool": _bool,
    "list": _sequence,
    "set": _sequence,
    "map": _map,
    "object": _object,
    "tuple": _tuple,
}


def _concrete(source: Type, want: Type) -> Type:
    """`want` with each `any` replaced by what `source` has there."""
    if want == ANY:
        return source
    if not has_any(want):
        return want
    if want.element is not None:
        if source.element is not None:
            return Type(want.kind, _concrete(source.element, want.element))
        found = unify(source.items or source.fields.values())
        return Type(want.kind, _concrete(found or ANY, want.element))
    if want.kind == "object":
        fields = {
            name: _concrete(source.fields.get(name, source.element or ANY), kind)
            for name, kind in want.fields.items()
        }
        return Type("object", fields=FrozenMap(fields))
    if want.kind == "tuple" and len(source.items) == len(want.items):
        return Type("tuple", items=tuple(map(_concrete, source.items, want.items)))
    return want


# ── core values ─────────────────────────────────────────────────────────────────────────


def lift(value: Any, kind: Type = ANY) -> Val:
    """The language's form of a core value that fits `kind`."""
    if value is None:
        return Null(plain(kind))
    if isinstance(value, tuple):
        return _lift_sequence(value, kind)
    if isinstance(value, Mapping):
        inner = {n: lift(v, kind.element or kind.fields.get(n, ANY)) for n, v in value.items()}
        return MapVal(plain(kind.element), inner) if kind.element else ObjectVal(inner)
    result: Val = value
    return result


def _lift_sequence(value: tuple[Any, ...], kind: Type) -> Val:
    if kind.element is None:
        kinds = kind.items or (ANY,) * len(value)
        return TupleVal(tuple(map(lift, value, kinds)))
    items = tuple(lift(item, kind.element) for item in value)
    element = plain(kind.element)
    return set_value(element, items) if kind.kind == "set" else ListVal(element, items)


def lower(value: Val) -> Value:
    """The core form of an unmarked value. Raises Deferred for a computed attribute inside."""
    if isinstance(value, str | bool | int | Decimal | SecretRef):
        return value
    if isinstance(value, SEQUENCES):
        return tuple(map(lower, value.items))
    if isinstance(value, ObjectVal | MapVal):
        return FrozenMap({name: lower(value.fields[name]) for name in sorted(value.fields)})
    if isinstance(value, Computed):
        raise value.defer()
    if isinstance(value, Marked):
        return lower(value.value)
    return None
