"""Check a value by the rules of its schema, beyond the type."""

from __future__ import annotations

from decimal import Decimal
from math import ceil, floor

from ...core.schema import AttributeSchema, Refuses
from ...core.value import FrozenMap, Value
from ...syntax.nodes import Expression, Lit
from ...syntax.terms import list_items
from ..values.faults import EvalError, Location, suggest_near


def check_value(
    value: Value, attribute: AttributeSchema, name: str, node: Expression, hidden: bool
) -> Value:
    """The value. Raises EvalError if it breaks a rule of its schema.

    name: of the argument, as it is written; hidden: whether messages must not show the value.
    """
    if attribute.whole:
        _check_whole(value, attribute, node, hidden)
    if attribute.choices and value is not None and value not in attribute.choices:
        raise EvalError(
            node,
            f'"{name}" must be one of {", ".join(attribute.choices)}',
            "" if hidden else f'It is "{value}".',
            "" if hidden else suggest_near(str(value), attribute.choices),
        )
    # What no system would accept is refused here, with the place in the file, instead of by the
    # provider, which does not know files.
    if attribute.refuses is not None and value is not None:
        faults = [*attribute.refuses(value)]
        if faults and hidden:
            raise EvalError(node, f'"{name}" cannot have this value')
        if faults:
            (summary, advice), *further_faults = faults
            detail = " ".join(
                f"Also: {text}. {_end_sentence(todo)}" for text, todo in further_faults
            )
            entry = _find_entry(node, value, attribute.refuses, faults[0])
            raise EvalError(entry, summary, detail, advice)
    return value


def _find_entry(
    node: Expression, value: Value, refuses: Refuses, fault: tuple[str, str]
) -> Location:
    """The entry of a written map that alone has this fault; the whole expression if none has."""
    if not isinstance(value, FrozenMap):
        return node
    for item in list_items(node) or ():
        key = item.key.value if isinstance(item.key, Lit) else None
        if isinstance(key, str) and key in value:
            alone = FrozenMap({key: value[key]})
            if fault in refuses(alone):
                return item
    return node


def _end_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"


def _check_whole(value: Value, attribute: AttributeSchema, node: Expression, hidden: bool) -> None:
    if isinstance(value, tuple):
        for item in value:
            _check_whole(item, attribute, node, hidden)
    elif isinstance(value, FrozenMap):
        _check_whole(tuple(value.values()), attribute, node, hidden)
    elif value is not None and not isinstance(value, int):
        detail = "" if hidden else f"It is {value}."
        advice = "" if hidden or not isinstance(value, Decimal) else _advise_nearest(value)
        raise EvalError(node, f'"{attribute.name}" must be a whole number', detail, advice)


def _advise_nearest(value: Decimal) -> str:
    return f"Write {floor(value)} or {ceil(value)}."
