"""Plans as canonical JSON: for the saved file and for the audit log's `plan` record.

Nouns are encoded field by field from their type hints, so a new field needs no code here.
A field that has its default value is left out, which keeps large plans small.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any

from ..core import canonical
from ..core.errors import PlanRefused
from ..core.value import FrozenMap, SecretRef, Value
from .model import FORMAT, Plan

NOTHING = dataclasses.MISSING


def encode(plan: Plan) -> bytes:
    """The saved plan file: format, plan and a checksum that guards against accidents."""
    body: dict[str, Any] = {"format": FORMAT, "plan": to_data(plan)}
    body["checksum"] = canonical.digest(body)
    return (canonical.dumps(body) + "\n").encode("ascii")


def decode(data: bytes, where: str) -> Plan:
    """The plan in these bytes. Raises PlanRefused for anything that is not a whole plan file."""
    advice = "Make a new plan with `kafkaform plan -out=FILE`."
    try:
        body = canonical.loads(data)
    except canonical.CanonicalError as error:
        raise PlanRefused(f"{where} is not a kafkaform plan: {error}", advice) from None
    if not isinstance(body, FrozenMap) or body.keys() != {"format", "plan", "checksum"}:
        raise PlanRefused(f"{where} is not a kafkaform plan", advice)
    if body["format"] != FORMAT:
        raise PlanRefused(
            f"{where} has plan format {body['format']}, this version reads {FORMAT}", advice
        )
    whole = (canonical.dumps(body) + "\n").encode("ascii")
    if data != whole or body["checksum"] != canonical.digest(body.without(["checksum"])):
        raise PlanRefused(f"{where} was altered after it was saved: its checksum differs", advice)
    try:
        return from_data(Plan, body["plan"])
    except (AttributeError, TypeError, ValueError, KeyError) as error:
        raise PlanRefused(f"{where} is not a plan of this version: {error}", advice) from None


def to_data(value: Any) -> Value:
    """Frozen, JSON-able data of a noun: dataclasses become maps without default fields."""
    if isinstance(value, FrozenMap | SecretRef) or value is None:
        return value
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, str | bool | int | Decimal):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return FrozenMap(
            {
                name: to_data(getattr(value, name))
                for name, default in _defaults(type(value))
                if getattr(value, name) != default
            }
        )
    if isinstance(value, tuple | list):
        return tuple(to_data(item) for item in value)
    if isinstance(value, Mapping):
        return FrozenMap({str(key): to_data(item) for key, item in value.items()})
    if isinstance(value, float):
        return Decimal(repr(value))
    raise TypeError(f"a plan cannot hold {type(value).__name__}")


T = typing.TypeVar("T")


def from_data(cls: type[T], data: Value) -> T:
    """The noun that `to_data` made this data of. Raises TypeError, ValueError, KeyError or
    AttributeError for data of another shape."""
    return typing.cast(T, _reader(typing.cast(Any, cls))(data))


Reader = Callable[[Any], Any]


@functools.cache
def _defaults(cls: type[Any]) -> tuple[tuple[str, Any], ...]:
    """What a noun is made of; what it keeps for speed alone is not part of it."""
    return tuple((field.name, _default(field)) for field in dataclasses.fields(cls) if field.init)


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not NOTHING:
        return field.default_factory()
    return field.default


@functools.cache
def _reader(hint: Hashable) -> Reader:
    origin = typing.get_origin(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _noun_reader(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    if origin is tuple:
        return _tuple_reader(typing.get_args(hint))
    if origin is typing.Union or origin is types.UnionType:
        return _optional_reader(hint)
    if origin is not None and issubclass(origin, Mapping):
        item = _reader(typing.get_args(hint)[1])
        return lambda data: {key: item(value) for key, value in data.items()}
    if hint is float:
        return float
    return lambda data: data


def _noun_reader(cls: type[Any]) -> Reader:
    hints = typing.get_type_hints(cls)
    readers: dict[str, Reader] = {}

    def read(data: Any) -> Any:
        if not isinstance(data, FrozenMap):
            raise TypeError(f"expected {cls.__name__}")
        if not readers:
            readers.update({f.name: _reader(hints[f.name]) for f in dataclasses.fields(cls)})
        return cls(**{name: readers[name](value) for name, value in data.items()})

    return read


def _tuple_reader(arguments: tuple[Any, ...]) -> Reader:
    item = _reader(arguments[0])
    return lambda data: tuple(item(value) for value in data)


def _optional_reader(hint: Any) -> Reader:
    """`X | None` reads X; any other union is a Value, which is stored as it stands."""
    others = [a for a in typing.get_args(hint) if a is not type(None)]
    if len(others) != 1:
        return lambda data: data
    inner = _reader(others[0])
    return lambda data: None if data is None else inner(data)
