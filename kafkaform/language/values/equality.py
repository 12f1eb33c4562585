"""When two values are equal: of one type, and with equal parts."""

from __future__ import annotations

from decimal import Decimal

from .value import FIELDS, SEQUENCES, Computed, Fields, Null, Sequence, Val, type_of, unmark


def is_equal(one: Val, other: Val) -> bool:
    """Whether two values are equal in the language, marks aside: `"1" == 1` is false, `1 == 1.0`
    true, a tuple never equals a list, and all nulls are equal."""
    if one.__class__ is other.__class__ and isinstance(one, str | int | Decimal):
        return one == other
    one, other = unmark(one)[0], unmark(other)[0]
    if isinstance(one, Null) or isinstance(other, Null):
        return isinstance(one, Null) and isinstance(other, Null)
    for value in (one, other):
        if isinstance(value, Computed):
            raise value.defer()
    if isinstance(one, SEQUENCES):
        return isinstance(other, SEQUENCES) and _equal_items(one, other)
    if isinstance(one, FIELDS):
        return isinstance(other, FIELDS) and _equal_fields(one, other)
    return type_of(one) == type_of(other) and one == other


def _equal_items(one: Sequence, other: Sequence) -> bool:
    return (
        one.__class__ is other.__class__
        and getattr(one, "element", None) == getattr(other, "element", None)
        and len(one.items) == len(other.items)
        and all(map(is_equal, one.items, other.items))
    )


def _equal_fields(one: Fields, other: Fields) -> bool:
    return (
        one.__class__ is other.__class__
        and getattr(one, "element", None) == getattr(other, "element", None)
        and one.fields.keys() == other.fields.keys()
        and all(is_equal(item, other.fields[name]) for name, item in one.fields.items())
    )
