"""Many copies of one simulated cluster, or of what is around it."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from datetime import date
from enum import Enum
from types import BuiltinFunctionType, FunctionType, NoneType
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import astuple

from kafkaform.core.value import FrozenMap
from kafkaform_kafka.memory.cluster import Tables
from kafkaform_kafka.provider import KafkaProvider

Thing = TypeVar("Thing")
_DEFINITIONS = (type, FunctionType, BuiltinFunctionType, Tables, KafkaProvider)
"""What nobody changes, though it may hold dictionaries."""
_ATOMS = (*_DEFINITIONS, str, bytes, int, float, date, Enum, NoneType)


class Mould(Generic[Thing]):
    """A thing as it is now, of which copies are made that can be changed. Like `copy.deepcopy`,
    but what cannot change is shared by all copies, and a copy costs a tenth."""

    def __init__(self, thing: Thing) -> None:
        self._kept: list[Any] = []
        file = io.BytesIO()
        _Writer(file, self._kept).dump(thing)
        self._data = file.getvalue()

    def copy(self) -> Thing:
        return _Reader(io.BytesIO(self._data), self._kept).load()  # type: ignore[no-any-return]


def is_constant(item: Any) -> bool:
    """True if neither this nor anything in it can change: a frozen `MemoryProvider` holds a cluster
    that does."""
    if isinstance(item, _ATOMS):
        return True
    if isinstance(item, FrozenMap):
        return all(map(is_constant, item.values()))
    if isinstance(item, Struct):
        return bool(item.__struct_config__.frozen) and all(map(is_constant, astuple(item)))
    return isinstance(item, tuple | frozenset) and all(map(is_constant, item))


class _Writer(pickle.Pickler):
    """Leaves out what is shared, and writes its number instead."""

    def __init__(self, file: io.BytesIO, kept: list[Any]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._kept = kept
        self._numbers: dict[int, int] = {}

    def persistent_id(self, item: Any) -> int | None:
        constant = isinstance(item, Struct) and is_constant(item)
        if not constant and not isinstance(item, _DEFINITIONS):
            return None
        if id(item) not in self._numbers:
            self._numbers[id(item)] = len(self._kept)
            self._kept.append(item)
        return self._numbers[id(item)]


class _Reader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, kept: list[Any]) -> None:
        super().__init__(file)
        self._kept = kept

    def persistent_load(self, number: Any) -> Any:
        return self._kept[number]


def copy_later(thing: Thing) -> Callable[[], Thing]:
    """One copy of the thing as it is now, made when it is asked for first."""
    mould, made = Mould(thing), list[Thing]()

    def get() -> Thing:
        if not made:
            made.append(mould.copy())
        return made[0]

    return get
