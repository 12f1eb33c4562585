"""Check a value by the rules of its schema, beyond the type; read arguments that need a secret, and
refuse secrets in all others."""

from __future__ import annotations

from decimal import Decimal
from math import ceil, floor

from ...core.schema import AttributeSchema, Refuses
from ...core.value import FrozenMap, SecretRef, Value
from ...syntax.nodes import Expression, Lit
from ...syntax.terms import list_items
from ..values.faults import EvalError, Location, suggest_near
from ..values.value import FIELDS, SEQUENCES, Marked, Null, Val


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
        advice = ""
        if isinstance(value, Decimal) and not hidden:
            advice = f"Write {floor(value)} or {ceil(value)}."
        raise EvalError(node, f'"{attribute.name}" must be a whole number', detail, advice)


SECRET_ADVICE = (
    'Write secret_env("NAME"), secret_file("PATH") or secret_command([…]), or use a variable with '
    "sensitive = true."
)


def make_leak_fault(attribute: AttributeSchema, location: Location) -> EvalError:
    return EvalError(
        location,
        f'"{attribute.name}" cannot contain a sensitive value',
        "Plan, state and audit log show and store this argument.",
        "Use a value that is not sensitive, or nonsensitive(…) if everyone is allowed to see it.",
    )


def make_secret_fault(attribute: AttributeSchema, location: Location) -> EvalError:
    return EvalError(
        location,
        f'"{attribute.name}" cannot contain a secret',
        "Plan, state and audit log show and store this argument.",
        "Secrets are allowed only in arguments that are made for them, such as password.",
    )


def read_secret(value: Val, attribute: AttributeSchema, location: Location) -> Value:
    """A reference to a secret, or a collection of references. Raises EvalError for any other
    value, without looking at it."""
    # The whole value of a sensitive variable has a reference. A collection of such values has a
    # reference for each element; a value that was computed from them has none and is refused.
    if isinstance(value, Marked):
        if isinstance(value.value, Null):
            return None
        if value.ref is not None and not isinstance(value.value, (*SEQUENCES, *FIELDS)):
            return value.ref
        value = value.value
    if isinstance(value, SecretRef):
        return value
    if isinstance(value, Null):
        return None
    if isinstance(value, SEQUENCES) and attribute.type.element is not None:
        return tuple(read_secret(item, attribute, location) for item in value.items)
    if isinstance(value, FIELDS) and attribute.type.element is not None:
        fields = sorted(value.fields.items())
        return FrozenMap({name: read_secret(item, attribute, location) for name, item in fields})
    raise EvalError(
        location,
        f'"{attribute.name}" needs a reference to a secret, not a value',
        "A value that is written here, or computed, would end up in files that others can read.",
        SECRET_ADVICE,
        hide=True,
    )
