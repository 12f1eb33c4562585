"""Convert values to types, and between the language's values and those of `core.value`; what a
conversion costs, and how large a value can be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from ...core.schema import ANY, STRING, Type
from ...core.value import FrozenMap, SecretRef, Value
from .faults import LIMITS, ConvertFault, Deferred, LimitError, Location, Poisoned
from .types import COMPARED, describe_type, describe_value, drop_optional, has_any, unify_types
from .value import (
    SEQUENCES,
    Composite,
    Computed,
    FieldValues,
    ListVal,
    MapVal,
    Marked,
    Null,
    ObjectVal,
    Sequence,
    SetVal,
    TupleVal,
    Val,
    add_marks,
    depth_of,
    make_set,
    parse_number,
    render_number,
    type_of,
    unmark,
    work_of,
)

CONVERSION = 5
"""Steps for converting one element, at any level."""

_KINDS: Mapping[type[Composite], str] = {
    TupleVal: "tuple",
    ListVal: "list",
    SetVal: "set",
    ObjectVal: "object",
    MapVal: "map",
}
_SCALARS = ("string", "text")
_BOOLS = {"true": True, "1": True, "false": False, "0": False}
"""The strings that go-cty converts to a bool."""


def convert_value(value: Val, want: Type) -> Val:
    """The value as this type. Raises ConvertFault, which never shows the value itself."""
    kind = want.kind
    # The common cases come first: most arguments are strings that stay strings.
    if kind == "any" or (kind in _SCALARS and value.__class__ is str):
        return value
    if isinstance(value, Marked):
        inner = convert_value(value.value, want)
        return value if inner is value.value else add_marks(inner, value.marks)
    if isinstance(value, Null):
        return Null(_make_concrete(value.type, drop_optional(want)))
    if isinstance(value, Computed):
        raise value.defer()
    if isinstance(value, Composite) and has_type(value, want):
        return value
    return _CONVERSIONS[kind](value, want)


def has_type(value: Sequence | FieldValues, want: Type) -> bool:
    """Whether a value is already what `convert_value` would make of it."""
    if _KINDS[type(value)] != want.kind:
        return False
    try:
        return value.type == want == drop_optional(want) and not isinstance(
            value.sealed_part, Computed
        )
    except (Poisoned, Deferred):  # a part cannot be read, and conversion may not need it
        return False


def _make_refusal(value: Val, want: Type) -> ConvertFault:
    return ConvertFault(f"expected {describe_type(want)}, got {describe_value(value)}")


def _convert_string(value: Val, want: Type) -> Val:
    if isinstance(value, str | SecretRef):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return render_number(value)
    raise _make_refusal(value, want)


def _convert_text(value: Val, want: Type) -> Val:
    """A string. The elements of a list are joined with commas."""
    if not isinstance(value, ListVal | TupleVal):
        return _convert_string(value, want)
    texts = [_convert_part(index, item, STRING) for index, item in enumerate(value.items)]
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise _make_refusal(text, STRING).nest_in(f"[{index}]")
        if "," in text:
            fault = ConvertFault("an element with a comma would become two elements")
            raise fault.nest_in(f"[{index}]")
    return ",".join(map(str, texts))


def _convert_number(value: Val, want: Type) -> Val:
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and (number := parse_number(value)) is not None:
        return number
    if isinstance(value, str):
        raise ConvertFault("expected a number, got a string that is not a number")
    raise _make_refusal(value, want)


def _convert_bool(value: Val, want: Type) -> Val:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _BOOLS:
        return _BOOLS[value]
    if isinstance(value, str):
        raise ConvertFault('expected true or false, got a string other than "true" and "false"')
    raise _make_refusal(value, want)


def _convert_sequence(value: Val, want: Type) -> Val:
    element = want.element or ANY
    if not isinstance(value, SEQUENCES):
        raise _make_refusal(value, want)
    if not value.items and element == ANY:  # an empty list keeps the type of its elements
        element = value.element if isinstance(value, ListVal | SetVal) else ANY
    kind, items = _convert_items(enumerate(value.items), element, "elements")
    if want.kind == "set":
        return make_set(kind, items)
    return ListVal(kind, tuple(items))


def _convert_map(value: Val, want: Type) -> Val:
    element = want.element or ANY
    if not isinstance(value, MapVal | ObjectVal):
        raise _make_refusal(value, want)
    if not value.fields and element == ANY and isinstance(value, MapVal):
        element = value.element
    kind, items = _convert_items(value.fields.items(), element, "values")
    return MapVal(kind, dict(zip(value.fields, items, strict=True)))


def _convert_items(
    items: Iterable[tuple[str | int, Val]], element: Type, noun: str
) -> tuple[Type, list[Val]]:
    """The items with one element type. `any` in the wanted type is replaced by the common type."""
    pairs = list(items)
    if not pairs:
        return drop_optional(element), []
    if element.kind in _SCALARS and all(item.__class__ is str for _, item in pairs):
        return drop_optional(element), [item for _, item in pairs]
    if element == ANY:
        element = _find_common_type((type_of(item) for _, item in pairs), noun)
    # `list(any)` of lists: each inner list finds its own type first, and then all of them get the
    # one that they share.
    converted = [_convert_part(key, item, element) for key, item in pairs]
    if not has_any(element):
        return drop_optional(element), converted
    final = _find_common_type((type_of(item) for item in converted), noun)
    if has_any(final):
        return final, converted
    return final, [convert_value(item, final) for item in converted]


def _find_common_type(types: Iterable[Type], noun: str) -> Type:
    kinds = [kind for kind in types if kind != ANY]  # null takes the type of the other elements
    common = unify_types(kinds) if kinds else ANY
    if common is None:
        raise ConvertFault(f"all {noun} must have the same type")
    return common


def _convert_part(key: str | int, item: Val, want: Type) -> Val:
    try:
        return convert_value(item, want)
    except ConvertFault as fault:
        if isinstance(key, str):
            step = f".{key}" if key.isidentifier() else f'["{key}"]'
        else:
            step = f"[{key}]"
        raise fault.nest_in(step) from None


def _convert_object(value: Val, want: Type) -> Val:
    if not isinstance(value, ObjectVal | MapVal):
        raise _make_refusal(value, want)
    fields: dict[str, Val] = {}
    for name, kind in want.fields.items():
        default = want.optional.get(name)  # a default also replaces null, as in Terraform
        item = value.fields.get(name)
        if item is None and name not in want.optional:
            raise ConvertFault(f'the attribute "{name}" is missing')
        if default is not None and (item is None or _is_null(item)):
            fields[name] = _convert_part(name, lift_value(default, kind), kind)
        else:
            fields[name] = (
                Null(drop_optional(kind)) if item is None else _convert_part(name, item, kind)
            )
    return ObjectVal(fields)


def _is_null(value: Val) -> bool:
    return isinstance(value, Null) or (isinstance(value, Marked) and _is_null(value.value))


def _convert_tuple(value: Val, want: Type) -> Val:
    if not isinstance(value, TupleVal):
        raise _make_refusal(value, want)
    if len(value.items) != len(want.items):
        raise ConvertFault(f"expected {len(want.items)} elements, got {len(value.items)}")
    pairs = enumerate(zip(value.items, want.items, strict=True))
    return TupleVal(tuple(_convert_part(index, item, kind) for index, (item, kind) in pairs))


_CONVERSIONS: Mapping[str, Callable[[Val, Type], Val]] = {
    "string": _convert_string,
    "text": _convert_text,
    "number": _convert_number,
    "bool": _convert_bool,
    "list": _convert_sequence,
    "set": _convert_sequence,
    "map": _convert_map,
    "object": _convert_object,
    "tuple": _convert_tuple,
}


def _make_concrete(source: Type, want: Type) -> Type:
    """`want` with each `any` replaced by the type in the same place of `source`."""
    if want == ANY:
        return source
    if not has_any(want):
        return want
    if want.element is not None:
        if source.element is not None:
            return Type(want.kind, _make_concrete(source.element, want.element))
        common = unify_types(source.items or source.fields.values())
        return Type(want.kind, _make_concrete(common or ANY, want.element))
    if want.kind == "object":
        fields = {
            name: _make_concrete(source.fields.get(name, source.element or ANY), kind)
            for name, kind in want.fields.items()
        }
        return Type("object", fields=FrozenMap(fields))
    if want.kind == "tuple" and len(source.items) == len(want.items):
        return Type("tuple", items=tuple(map(_make_concrete, source.items, want.items)))
    return want


# ── core values ─────────────────────────────────────────────────────────────────────────


def lift_value(value: Any, kind: Type = ANY) -> Val:
    """The language's form of a core value that has the type `kind`."""
    if value is None:
        return Null(drop_optional(kind))
    if isinstance(value, tuple):
        if kind.element is None:
            kinds = kind.items or (ANY,) * len(value)
            return TupleVal(tuple(map(lift_value, value, kinds)))
        items = tuple(lift_value(item, kind.element) for item in value)
        element = drop_optional(kind.element)
        return make_set(element, items) if kind.kind == "set" else ListVal(element, items)
    if isinstance(value, Mapping):
        inner = {
            n: lift_value(v, kind.element or kind.fields.get(n, ANY)) for n, v in value.items()
        }
        return MapVal(drop_optional(kind.element), inner) if kind.element else ObjectVal(inner)
    result: Val = value
    return result


def lower_value(value: Val) -> Value:
    """The core form of a value, without marks. Raises Deferred for a computed attribute in it."""
    if isinstance(value, str | bool | int | Decimal | SecretRef):
        return value
    if isinstance(value, SEQUENCES):
        return tuple(map(lower_value, value.items))
    if isinstance(value, ObjectVal | MapVal):
        return FrozenMap({name: lower_value(value.fields[name]) for name in sorted(value.fields)})
    if isinstance(value, Computed):
        raise value.defer()
    if isinstance(value, Marked):
        return lower_value(value.value)
    return None


def require_bounded(value: Val, location: Location, title: str) -> Val:
    """The value. Raises LimitError if it is too large or too deep to be kept under a name."""
    # A value can be shared: `[x, x]` costs a step, but doubles the size. Thirty such lines would
    # make a value that no memory could print, so each named value is checked.
    inner = unmark(value)[0]
    if isinstance(inner, Composite) and (
        inner.work > LIMITS.total_elements or inner.size > LIMITS.size or inner.depth > LIMITS.depth
    ):
        raise LimitError(
            location,
            f"{title} is too large",
            f"A value can have {LIMITS.total_elements:,} elements, {LIMITS.depth} levels and "
            f"{LIMITS.size:,} characters.",
        )
    return value


def require_shallow(value: Val, location: Location) -> Val:
    """The value. Raises LimitError if it has too many levels for functions that recurse."""
    if depth_of(value) > LIMITS.depth:
        detail = f"Collections can be nested in each other {LIMITS.depth} times."
        raise LimitError(location, "A value has too many levels", detail)
    return value


def compute_look_cost(value: Val, location: Location) -> int:
    """Steps for fitting a value to the known type of an argument. Raises LimitError if it has too
    many levels."""
    # Each level compares the types of everything below it.
    return 2 * depth_of(require_shallow(value, location)) * work_of(value) + 1


def compute_conversion_cost(value: Val, want: Type) -> int:
    """Steps for converting a value; 0 if it stays as it is."""
    inner = unmark(value)[0]
    if not isinstance(inner, Composite) or want.kind == "any" or has_type(inner, want):
        return 0
    return compute_type_cost(inner)


def compute_type_cost(value: Composite) -> int:
    """Steps for finding a common type for the elements of each collection in a value."""
    # Types are compared in pairs, but not more than COMPARED of them.
    different = min(value.variety, COMPARED) * value.depth // 3
    return value.work * max(CONVERSION, different)
