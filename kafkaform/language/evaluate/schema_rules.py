"""Check a value by the rules of its schema, beyond the type."""

from __future__ import annotations

from decimal import Decimal
from math import ceil, floor

from ...core.schema import AttributeSchema, Refuses
from ...core.text.display import make_sentence
from ...core.value import FrozenMap, Value
from ...syntax.nodes import ConstantObject, Expression, Lit, Object
from ...syntax.terms import list_items
from ..values.faults import EvalError, Place, suggest_near


def check_value(
    value: Value, attribute: AttributeSchema, name: str, place: Expression, hidden: bool
) -> Value:
    """The value. Raises EvalError if it breaks a rule of its schema.

    name: of the argument, as it is written; hidden: whether messages must not show the value.
    """
    if attribute.whole:
        _check_whole(value, attribute, place, hidden)
    if attribute.choices and value is not None and value not in attribute.choices:
        raise EvalError(
            place,
            f'"{name}" must be one of {", ".join(attribute.choices)}',
            "" if hidden else f'It is "{value}".',
            "" if hidden else suggest_near(str(value), attribute.choices),
        )
    # What no system would accept is refused here, with the place in the file, instead of by the
    # provider, which does not know files.
    if attribute.refuses is not None and value is not None:
        faults = [*attribute.refuses(value)]
        if faults and hidden:
            raise EvalError(place, f'"{name}" cannot have this value')
        if faults:
            (summary, advice), *others = faults
            more = " ".join(f"Also: {text}. {make_sentence(todo)}" for text, todo in others)
            entry = _find_entry(place, value, attribute.refuses, faults[0])
            raise EvalError(entry, summary, more, make_sentence(advice))
    return value


def _find_entry(place: Expression, value: Value, refuses: Refuses, fault: tuple[str, str]) -> Place:
    """The entry of a written map that alone has this fault; the whole expression if none has."""
    if not isinstance(place, Object | ConstantObject) or not isinstance(value, FrozenMap):
        return place
    for item in list_items(place):
        key = item.key.value if isinstance(item.key, Lit) else None
        if isinstance(key, str) and key in value:
            alone = FrozenMap({key: value[key]})
            if fault in refuses(alone):
                return item
    return place


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
