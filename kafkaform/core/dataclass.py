"""`dataclasses.dataclass` for programs that start often: methods are compiled when first called.

The standard decorator compiles up to nine methods a class at import, 0.6 ms each time. A command
has some two hundred classes and uses a part of them, so that this was half of the time that
`validate` took. Everything else is as in the standard library, whose functions (`replace`,
`fields`, `asdict`) know these classes as their own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        frozen: bool = False,
        slots: bool = False,
        eq: bool = True,
        order: bool = False,
        repr: bool = True,
    ) -> Any:
        """The settings that kafkaform uses, with the meaning of the standard ones."""
        wanted = {"__init__": True, "__repr__": repr, "__eq__": eq, "__hash__": eq and frozen}
        wanted |= dict.fromkeys(("__lt__", "__le__", "__gt__", "__ge__"), order)
        names = [name for name, on in wanted.items() if on]

        def decorate(cls: type) -> type:
            return _made(cls, names, frozen, slots)

        return decorate if cls is None else decorate(cls)


def _made(cls: Any, wanted: list[str], frozen: bool, slots: bool) -> type:
    """The class with its fields known and a first version of each wanted method."""
    own = {name for name, member in vars(cls).items() if member is not None}
    if "__doc__" not in own:  # or the standard library spends its time on a signature
        cls.__doc__ = cls.__name__
    made = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    if slots:
        made = _with_slots(made)
    if "__eq__" in wanted and "__hash__" not in own:
        made.__hash__ = None
    for name in wanted:
        if name not in own:
            setattr(made, name, _first(made, name, frozen))
    if frozen:
        made.__setattr__ = made.__delattr__ = _refuse
    return made


def _with_slots(cls: Any) -> Any:
    """The same class without a dict for each object. Slots can only be had by a new class."""
    names = [field.name for field in dataclasses.fields(cls)]
    inherited = {name for base in cls.__mro__[1:] for name in getattr(base, "__slots__", ())}
    slots = [name for name in names if name not in inherited]
    left_out = {*names, "__dict__", "__weakref__"}
    members = {name: member for name, member in vars(cls).items() if name not in left_out}
    members |= {"__slots__": tuple(slots), "__getstate__": _getstate, "__setstate__": _setstate}
    made = type(cls)(cls.__name__, cls.__bases__, members)
    made.__qualname__ = cls.__qualname__
    return made


def _first(cls: Any, name: str, frozen: bool) -> Callable[..., Any]:
    """A method that puts the real one in its place and passes its first call on."""

    def first(self: object, *arguments: Any, **named: Any) -> Any:
        method = _compiled(cls, name, frozen)
        setattr(cls, name, method)
        return method(self, *arguments, **named)

    return first


def _compiled(cls: Any, name: str, frozen: bool) -> Callable[..., Any]:
    fields = tuple(cls.__dataclass_fields__.values())
    scope: dict[str, Any] = {"MISSING": MISSING, "put": object.__setattr__}
    lines = _init(cls, fields, scope, frozen) if name == "__init__" else _simple(name, fields)
    exec("\n".join(lines), scope)  # as the standard library does
    method: Callable[..., Any] = scope[name]
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    return method


_OPERATORS = {"__eq__": "==", "__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


def _simple(name: str, fields: tuple[Field[Any], ...]) -> list[str]:
    if name == "__repr__":
        shown = ", ".join(f"{f.name}={{self.{f.name}!r}}" for f in fields if f.repr)
        return ["def __repr__(self):", f" return f'{{self.__class__.__qualname__}}({shown})'"]
    mine, other = (
        "(" + "".join(f"{who}.{f.name}, " for f in fields if f.compare) + ")"
        for who in ("self", "other")
    )
    if name == "__hash__":
        return ["def __hash__(self):", f" return hash({mine})"]
    return [
        f"def {name}(self, other):",
        " if other.__class__ is self.__class__:",
        f"  return {mine} {_OPERATORS[name]} {other}",
        " return NotImplemented",
    ]


def _init(
    cls: type, fields: tuple[Field[Any], ...], scope: dict[str, Any], frozen: bool
) -> list[str]:
    """Defaults stand in the scope under the names of their fields with a line before."""
    parameters, body = ["self"], []
    for field in fields:
        name, value, default = field.name, field.name, f"_{field.name}"
        if field.default_factory is not MISSING:
            scope[default] = field.default_factory
            parameters.append(f"{name}=MISSING")
            value = f"{default}() if {name} is MISSING else {name}"
        elif field.default is not MISSING:
            scope[default] = field.default
            parameters.append(f"{name}={default}")
        else:
            parameters.append(name)
        if not field.init:
            parameters.pop()
            value = default if field.default_factory is MISSING else f"{default}()"
        body.append(f" put(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
    return [f"def __init__({', '.join(parameters)}):", *(body or [" pass"])]


def _refuse(self: object, name: str, *value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot change field {name!r}")


def _getstate(self: Any) -> Mapping[str, Any]:
    return {name: getattr(self, name) for name in self.__dataclass_fields__}


def _setstate(self: object, state: Mapping[str, Any]) -> None:
    for name, value in state.items():
        object.__setattr__(self, name, value)
