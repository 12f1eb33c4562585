"""What a schema says of one value, beyond its type."""

from __future__ import annotations

from decimal import Decimal
from math import ceil, floor

from ...core.schema import AttributeSchema
from ...core.value import FrozenMap, Value
from ...syntax.nodes import Expression
from ..values.faults import EvalError, suggest_near


def check_value(
    value: Value, attribute: AttributeSchema, name: str, place: Expression, hidden: bool
) -> Value:
    """The value. name: as it is written; hidden: nobody may see the value. Raises EvalError if
    it is no whole number where that is asked, none of the choices, or refused."""
    if attribute.whole:
        _check_whole(value, attribute, place, hidden)
    if attribute.choices and value is not None and value not in attribute.choices:
        raise EvalError(
            place,
            f'"{name}" is one of {", ".join(attribute.choices)}',
            "" if hidden else f'It cannot be "{value}".',
            "" if hidden else suggest_near(str(value), attribute.choices),
        )
    if attribute.refuses is not None and value is not None:
        faults = [*attribute.refuses(value)]
        if faults and hidden:
            raise EvalError(place, f'"{name}" cannot have this value')
        if faults:
            (summary, advice), *others = faults
            more = " ".join(f"Also: {text}." for text, _ in others)
            raise EvalError(place, summary, more, advice)
    return value


def _check_whole(value: Value, attribute: AttributeSchema, place: Expression, hidden: bool) -> None:
    if isinstance(value, tuple):
        for item in value:
            _check_whole(item, attribute, place, hidden)
    elif isinstance(value, FrozenMap):
        _check_whole(tuple(value.values()), attribute, place, hidden)
    elif value is not None and not isinstance(value, int):
        shown = "" if hidden else f"It is {value}."
        advice = "" if hidden or not isinstance(value, Decimal) else _advise_nearest(value)
        raise EvalError(place, f'"{attribute.name}" must be a whole number', shown, advice)


def _advise_nearest(value: Decimal) -> str:
    return f"Write {floor(value)} or {ceil(value)}."
