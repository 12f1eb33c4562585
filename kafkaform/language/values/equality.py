"""Compare values as the language does."""

from __future__ import annotations

from decimal import Decimal

from .value import FIELDS, SEQUENCES, Computed, Fields, Null, Sequence, Val, type_of, unmark


def is_equal(first: Val, second: Val) -> bool:
    """Whether two values are equal in the language, marks aside: `"1" == 1` is false, `1 == 1.0`
    true, a tuple never equals a list, and all nulls are equal."""
    if first.__class__ is second.__class__ and isinstance(first, str | int | Decimal):
        return first == second
    first, second = unmark(first)[0], unmark(second)[0]
    if isinstance(first, Null) or isinstance(second, Null):
        return isinstance(first, Null) and isinstance(second, Null)
    for value in (first, second):
        if isinstance(value, Computed):
            raise value.defer()
    if isinstance(first, SEQUENCES):
        return isinstance(second, SEQUENCES) and _equal_items(first, second)
    if isinstance(first, FIELDS):
        return isinstance(second, FIELDS) and _equal_fields(first, second)
    return type_of(first) == type_of(second) and first == second


def _equal_items(first: Sequence, second: Sequence) -> bool:
    return (
        first.__class__ is second.__class__
        and getattr(first, "element", None) == getattr(second, "element", None)
        and len(first.items) == len(second.items)
        and all(map(is_equal, first.items, second.items))
    )


def _equal_fields(first: Fields, second: Fields) -> bool:
    return (
        first.__class__ is second.__class__
        and getattr(first, "element", None) == getattr(second, "element", None)
        and first.fields.keys() == second.fields.keys()
        and all(is_equal(item, second.fields[name]) for name, item in first.fields.items())
    )
