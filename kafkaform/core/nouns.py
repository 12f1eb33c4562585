"""Build structs from data, field by field according to their type hints.

A file that somebody edited is refused with the name of the wrong member, and never becomes a struct
that its type does not allow. A field with its default value may be left out.
"""

from __future__ import annotations

import functools
import json
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any

import msgspec
import msgspec.structs

from .value import FrozenMap, Value

NOTHING = msgspec.NODEFAULT


class Misfit(ValueError):
    """A member of the data is not what its struct requires."""

    def __init__(self, problem: str, path: str = "") -> None:
        """problem: the rest of a sentence that begins with the member; path: where it is."""
        super().__init__(problem, path)
        self.problem, self.path = problem, path

    def nest_in(self, step: str) -> Misfit:
        """The same error, seen from one level above."""
        dot = "." if self.path and not self.path.startswith("[") else ""
        return Misfit(self.problem, f"{step}{dot}{self.path}")

    def __str__(self) -> str:
        return f"`{self.path}` {self.problem}" if self.path else f"it {self.problem}"


T = typing.TypeVar("T")


def from_data(cls: type[T], data: Value) -> T:
    """The struct whose canonical JSON has this data. Raises Misfit for data of another shape."""
    return typing.cast(T, _make_reader(typing.cast(Any, cls))(data))


def parse_json(text: str | bytes) -> Value:
    """The frozen values of any JSON that another program may have written. Raises Misfit."""
    try:
        value: Value = _freeze_json(
            json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant)
        )
    except RecursionError:
        raise Misfit("is nested too deeply") from None
    except ValueError as error:
        raise Misfit(f"is not JSON: {error}") from None
    return value


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")


def _freeze_json(value: Any) -> Any:
    if isinstance(value, dict):
        return FrozenMap({name: _freeze_json(item) for name, item in value.items()})
    return tuple(map(_freeze_json, value)) if isinstance(value, list) else value


Reader = Callable[[Any], Any]


@functools.cache
def list_defaults(cls: Hashable) -> tuple[tuple[str, Any], ...]:
    """Name and default of each field of a struct; NOTHING for a field that must be given."""
    return tuple(
        (field.name, field.default if field.default_factory is NOTHING else field.default_factory())
        for field in msgspec.structs.fields(typing.cast(Any, cls))
    )


_PLAIN: Mapping[Any, tuple[tuple[type[Any], ...], str]] = {
    str: ((str,), "text"),
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, Decimal), "a number"),
    FrozenMap: ((FrozenMap,), "an object"),
}
# Compared with `type(data)`, because a bool is an instance of int in Python.
"""Type of a field -> the types that its data may have, and what a message calls them."""


@functools.cache
def _make_reader(hint: Hashable) -> Reader:
    origin = typing.get_origin(hint)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _make_noun_reader(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _make_word_reader(hint)
    if origin is tuple:
        return _make_tuple_reader(typing.get_args(hint))
    if origin is frozenset:
        items = _make_tuple_reader((*typing.get_args(hint), ...))
        return lambda data: frozenset(items(data))
    if hint is date:
        return _read_date
    if origin is typing.Union or origin is types.UnionType:
        return _make_optional_reader(hint)
    if origin is not None and issubclass(origin, Mapping):
        return _make_map_reader(typing.get_args(hint)[1])
    if hint in _PLAIN:
        return _make_plain_reader(hint)
    return lambda data: data


def _make_plain_reader(hint: Any) -> Reader:
    expected, name = _PLAIN[hint]

    def read(data: Any) -> Any:
        if type(data) not in expected:
            raise Misfit(f"is not {name}")
        try:
            return float(data) if hint is float else data
        except OverflowError:
            raise Misfit("is too large") from None

    return read


def _read_date(data: Any) -> date:
    try:
        return date.fromisoformat(data)
    except (TypeError, ValueError):
        raise Misfit("is not a date (YYYY-MM-DD)") from None


def _make_word_reader(cls: type[Enum]) -> Reader:
    words = {member.value: member for member in cls}

    def read(data: Any) -> Any:
        if type(data) is not str or data not in words:
            raise Misfit(f"is not one of {', '.join(words)}")
        return words[data]

    return read


def _make_noun_reader(cls: type[Any]) -> Reader:
    hints = typing.get_type_hints(cls)
    readers: dict[str, Reader] = {}
    needed: set[str] = set()

    def read(data: Any) -> Any:
        if type(data) is not FrozenMap:
            raise Misfit("is not an object")
        # Made at the first read and not before: the type hints of two structs may name each other.
        if not readers:
            fields = list_defaults(typing.cast(Hashable, cls))
            needed.update(name for name, default in fields if default is NOTHING)
            readers.update({name: _make_reader(hints[name]) for name, _ in fields})
        if missing := needed - data.keys():
            raise Misfit(f"lacks {', '.join(sorted(missing))}")
        members = {}
        for name, value in data.items():
            if name not in readers:
                raise Misfit("is not known to this version").nest_in(name)
            try:
                members[name] = readers[name](value)
            except Misfit as misfit:
                raise misfit.nest_in(name) from None
        return cls(**members)

    return read


def _make_map_reader(hint: Any) -> Reader:
    item = _make_reader(hint)

    def read(data: Any) -> Any:
        if type(data) is not FrozenMap:
            raise Misfit("is not an object")
        entries = {}
        for key, value in data.items():
            try:
                entries[key] = item(value)
            except Misfit as misfit:
                raise misfit.nest_in(key) from None
        return entries

    return read


def _make_tuple_reader(arguments: tuple[Any, ...]) -> Reader:
    """Reads a list of any length (`tuple[X, ...]`), or of as many items as there are types, all of
    which are alike."""
    item = _make_reader(arguments[0])
    length = None if arguments[-1] is ... else len(arguments)

    def read(data: Any) -> Any:
        if type(data) is not tuple:
            raise Misfit("is not a list")
        if length is not None and len(data) != length:
            raise Misfit(f"is not a list of {length}")
        items = []
        for value in data:
            try:
                items.append(item(value))
            except Misfit as misfit:
                raise misfit.nest_in(f"[{len(items)}]") from None
        return tuple(items)

    return read


def _make_optional_reader(hint: Any) -> Reader:
    """Reads X for `X | None`; any other union is a Value, which is taken as it stands."""
    hints = [a for a in typing.get_args(hint) if a is not type(None)]
    if len(hints) != 1:
        return lambda data: data
    inner = _make_reader(hints[0])
    return lambda data: None if data is None else inner(data)
