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
from ..core.change import Change
from ..core.errors import PlanRefused, StorageError
from ..core.resource import Identity
from ..core.value import EMPTY, FrozenMap, SecretRef, Value
from ..state.codec import has_secret, row_lacks
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
        return _plan(body["plan"])
    except Misfit as error:
        raise PlanRefused(f"{where} is not a plan of this version: {error}", advice) from None


def recorded(data: Value, run: str) -> Plan:
    """The plan that an audit log has of this run. Raises StorageError for what is no plan."""
    try:
        return _plan(data)
    except Misfit as error:
        raise _unusable(run, error) from None


def instances_in(data: FrozenMap, run: str) -> set[str]:
    """The provider instances of a recorded plan, which is not read for that. Raises as
    `recorded`."""
    instances = data.get("instances", EMPTY)
    if type(instances) is not FrozenMap:
        raise _unusable(run, Misfit("is not an object").within("instances"))
    return set(instances)


def _unusable(run: str, error: Misfit) -> StorageError:
    return StorageError(
        f"the plan of run {run} in the audit log cannot be used: {error}",
        "It was edited, or written by a newer version of kafkaform: use that version, or put "
        "the log back from a backup together with its state. Nothing was sent.",
    )


def _plan(data: Value) -> Plan:
    """A plan that an apply can record: its parts name each other, and the rows that it leaves may
    stand in a state. What is refused later is refused after it was sent. Raises Misfit."""
    plan = from_data(Plan, data)
    for number, change in enumerate(plan.changes):
        where = f"changes[{number}]"
        for identity in (change.identity, *(step.identity for step in change.steps)):
            _refuse_unknown_instance(identity, plan, f"{where}.identity")
        _refuse_impossible_row(change, where)
    for number, removal in enumerate(plan.removals):
        _refuse_unknown_instance(removal.identity, plan, f"removals[{number}].identity")
    for number, output in enumerate(plan.outputs):
        if output.after is not None and has_secret(output.after.value):
            raise Misfit("holds a secret").within(f"outputs[{number}].after.value")
    return plan


def _refuse_unknown_instance(identity: Identity, plan: Plan, where: str) -> None:
    if identity.instance not in plan.instances:
        raise Misfit("is none of `instances`").within(f"{where}.instance")


def _refuse_impossible_row(change: Change, where: str) -> None:
    row = change.row_after
    recorded = {
        "kind": ("identity.kind", change.identity.kind),
        "labels": ("labels", change.labels),
        "depends_on": ("depends_on", change.depends_on),
        # None: they end with the change.
        "owners": ("row_after.owners", row.owners or None),
        "protected": ("row_after.protected", row.protected),
    }
    for name, (member, value) in recorded.items():
        wanted = row_lacks(name, value) if value is not None else ""
        if wanted:
            raise Misfit(f"is not {wanted}").within(f"{where}.{member}")


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


class Misfit(ValueError):
    """Says which member of a noun's data is not what it has to be."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem, path)
        self.problem, self.path = problem, path

    def within(self, step: str) -> Misfit:
        """The same, told from one level above."""
        dot = "." if self.path and not self.path.startswith("[") else ""
        return Misfit(self.problem, f"{step}{dot}{self.path}")

    def __str__(self) -> str:
        return f"`{self.path}` {self.problem}" if self.path else f"it {self.problem}"


T = typing.TypeVar("T")


def from_data(cls: type[T], data: Value) -> T:
    """The noun that `to_data` made this data of. Raises Misfit, naming the member, for data of
    another shape."""
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


_PLAIN: Mapping[Any, tuple[tuple[type[Any], ...], str]] = {
    str: ((str,), "text"),
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, Decimal), "a number"),
    FrozenMap: ((FrozenMap,), "an object"),
}
"""Type of a field -> the types that its data may have, and their name."""


@functools.cache
def _reader(hint: Hashable) -> Reader:
    origin = typing.get_origin(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _noun_reader(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _word_reader(hint)
    if origin is tuple:
        return _tuple_reader(typing.get_args(hint))
    if origin is typing.Union or origin is types.UnionType:
        return _optional_reader(hint)
    if origin is not None and issubclass(origin, Mapping):
        return _map_reader(typing.get_args(hint)[1])
    if hint in _PLAIN:
        return _plain_reader(hint)
    return lambda data: data


def _plain_reader(hint: Any) -> Reader:
    known, name = _PLAIN[hint]

    def read(data: Any) -> Any:
        if type(data) not in known:
            raise Misfit(f"is not {name}")
        return float(data) if hint is float else data

    return read


def _word_reader(cls: type[Enum]) -> Reader:
    words = {member.value: member for member in cls}

    def read(data: Any) -> Any:
        if type(data) is not str or data not in words:
            raise Misfit(f"is not one of {', '.join(words)}")
        return words[data]

    return read


def _noun_reader(cls: type[Any]) -> Reader:
    hints = typing.get_type_hints(cls)
    readers: dict[str, Reader] = {}
    needed: set[str] = set()

    def read(data: Any) -> Any:
        if type(data) is not FrozenMap:
            raise Misfit("is not an object")
        if not readers:
            needed.update(name for name, default in _defaults(cls) if default is NOTHING)
            readers.update({name: _reader(hints[name]) for name, _ in _defaults(cls)})
        if missing := needed - data.keys():
            raise Misfit(f"lacks {', '.join(sorted(missing))}")
        members = {}
        for name, value in data.items():
            if name not in readers:
                raise Misfit("is not known to this version").within(name)
            try:
                members[name] = readers[name](value)
            except Misfit as misfit:
                raise misfit.within(name) from None
        return cls(**members)

    return read


def _map_reader(hint: Any) -> Reader:
    item = _reader(hint)

    def read(data: Any) -> Any:
        if type(data) is not FrozenMap:
            raise Misfit("is not an object")
        found = {}
        for key, value in data.items():
            try:
                found[key] = item(value)
            except Misfit as misfit:
                raise misfit.within(key) from None
        return found

    return read


def _tuple_reader(arguments: tuple[Any, ...]) -> Reader:
    item = _reader(arguments[0])

    def read(data: Any) -> Any:
        if type(data) is not tuple:
            raise Misfit("is not a list")
        found = []
        for value in data:
            try:
                found.append(item(value))
            except Misfit as misfit:
                raise misfit.within(f"[{len(found)}]") from None
        return tuple(found)

    return read


def _optional_reader(hint: Any) -> Reader:
    """`X | None` reads X; any other union is a Value, which is stored as it stands."""
    others = [a for a in typing.get_args(hint) if a is not type(None)]
    if len(others) != 1:
        return lambda data: data
    inner = _reader(others[0])
    return lambda data: None if data is None else inner(data)
