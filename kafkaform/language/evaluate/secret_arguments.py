"""Read arguments that need a secret, and refuse secrets in all others."""

from __future__ import annotations

from ...core.schema import AttributeSchema
from ...core.value import FrozenMap, SecretRef, Value
from ..values.faults import EvalError, Location
from ..values.value import FIELDS, SEQUENCES, Marked, Null, Val

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
