"""Dataclasses for programs that start often: what a class can do is made when it is first done.

`dataclasses.dataclass` takes 0.6 ms for each class, most of it to compile methods. A command has
some hundred and fifty classes and uses few of their methods, so that this was half of the time
that `validate` took. Apart from that they are as the standard ones, and the functions of
`dataclasses` work on them; but a class of one kind cannot inherit from one of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
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
        wanted |= dict.fromkeys(_ORDER, order)
        names = tuple(name for name, on in wanted.items() if on)

        def decorate(cls: type) -> type:
            return _made(cls, names, frozen, slots)

        return decorate if cls is None else decorate(cls)

    def field(**settings: Any) -> Any:
        """A field with other settings than the usual ones."""
        return _Field(**settings)

    def replace(thing: Any, /, **changes: Any) -> Any:
        """The same with other values for some fields."""
        for name, part in thing.__fields__.items():
            if part.init and name not in changes:
                changes[name] = getattr(thing, name)
        return thing.__class__(**changes)


_NOTHING: Any = object()
_ORDER = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


class _Field(NamedTuple):
    """The settings of one field; see `dataclasses.field`."""

    default: Any = _NOTHING
    default_factory: Any = _NOTHING
    init: bool = True
    repr: bool = True
    compare: bool = True

    @property
    def given(self) -> Mapping[str, Any]:
        """The same for the standard function."""
        return {name: value for name, value in self._asdict().items() if value is not _NOTHING}


def _made(cls: Any, wanted: tuple[str, ...], frozen: bool, slots: bool) -> Any:
    """The class with its fields known and a first version of each wanted method."""
    own = vars(cls)
    fields: dict[str, _Field] = {}
    for base in reversed(cls.__bases__):
        fields |= getattr(base, "__fields__", {})
    slotted = [name for name in own.get("__annotations__", ()) if name not in fields]
    for name in own.get("__annotations__", ()):
        given = own.get(name, _NOTHING)
        if type(given).__module__ == "dataclasses":
            raise TypeError(f"{cls.__name__}.{name}: take `field` from where `dataclass` is from")
        fields[name] = given if isinstance(given, _Field) else _Field(given)
    members: dict[str, Any] = {"__fields__": fields, "__dataclass_fields__": _Standard()}
    members["__match_args__"] = tuple(name for name, part in fields.items() if part.init)
    if "__eq__" in wanted and own.get("__hash__") is None:
        members["__hash__"] = None
    members |= {name: _first(name, frozen) for name in wanted if own.get(name) is None}
    if frozen:
        members["__setattr__"] = members["__delattr__"] = _refuse
    if slots:
        return _with_slots(cls, fields, members, slotted)
    for name, member in members.items():
        setattr(cls, name, member)
    return cls


def _with_slots(
    cls: Any, fields: Mapping[str, _Field], members: Mapping[str, Any], slotted: list[str]
) -> Any:
    """The same class without a dict for each object. Slots can only be had by a new class."""
    kept = {n: m for n, m in vars(cls).items() if n not in fields and n not in _OF_DICT}
    state = {"__getstate__": _getstate, "__setstate__": _setstate}
    about = {"__slots__": tuple(slotted), "__qualname__": cls.__qualname__}
    return type(cls)(cls.__name__, cls.__bases__, {**state, **kept, **members, **about})


_OF_DICT = ("__dict__", "__weakref__")


class _Standard:
    """The fields as `dataclasses` wants to find them, made when it looks."""

    def __get__(self, thing: object, cls: Any) -> Any:
        from dataclasses import field as standard
        from dataclasses import make_dataclass

        owner = next(each for each in cls.__mro__ if vars(each).get("__dataclass_fields__") is self)
        kinds = {n: k for each in reversed(cls.__mro__) for n, k in _kinds(each).items()}
        parts = [(n, kinds[n], standard(**part.given)) for n, part in owner.__fields__.items()]
        made: Any = make_dataclass(owner.__name__, parts, init=False, repr=False, eq=False)
        owner.__dataclass_fields__ = made.__dataclass_fields__
        return made.__dataclass_fields__


def _kinds(cls: type) -> Mapping[str, Any]:
    kinds: Mapping[str, Any] = vars(cls).get("__annotations__", {})
    return kinds


# -- methods


def _first(name: str, frozen: bool) -> Callable[..., Any]:
    """A method that puts the real one in its place and passes its first call on."""

    def first(self: object, *arguments: Any, **named: Any) -> Any:
        owner = next(cls for cls in type(self).__mro__ if vars(cls).get(name) is first)
        method = _compiled(owner, name, frozen)
        setattr(owner, name, method)
        return method(self, *arguments, **named)

    return first


def _compiled(cls: Any, name: str, frozen: bool) -> Callable[..., Any]:
    scope: dict[str, Any] = {"nothing": _NOTHING, "put": object.__setattr__}
    make = _init if name == "__init__" else _repr if name == "__repr__" else _comparison
    exec(make(name, cls.__fields__, frozen, scope), scope)  # as the standard library does
    method: Callable[..., Any] = scope[name]
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    return method


def _init(name: str, fields: Mapping[str, _Field], frozen: bool, scope: dict[str, Any]) -> str:
    """Defaults stand in the scope under the names of their fields with a line before."""
    parameters, body = ["self"], []
    for field, part in fields.items():
        value, default = field, f"_{field}"
        if part.default_factory is not _NOTHING:
            scope[default] = part.default_factory
            value = f"{default}() if {field} is nothing else {field}"
        elif part.default is not _NOTHING:
            scope[default] = part.default
        if not part.init:
            value = default if part.default_factory is _NOTHING else f"{default}()"
        elif default not in scope:
            parameters.append(field)
        else:
            parameters.append(f"{field}={default if value == field else 'nothing'}")
        body.append(f" put(self, {field!r}, {value})" if frozen else f" self.{field} = {value}")
    return "\n".join((f"def {name}({', '.join(parameters)}):", *(body or [" pass"])))


def _repr(name: str, fields: Mapping[str, _Field], *_: Any) -> str:
    shown = ", ".join(f"{f}={{self.{f}!r}}" for f, part in fields.items() if part.repr)
    return f"def {name}(self):\n return f'{{self.__class__.__qualname__}}({shown})'"


def _comparison(name: str, fields: Mapping[str, _Field], *_: Any) -> str:
    names = [field for field, part in fields.items() if part.compare]
    mine, other = (f"({''.join(f'{who}.{n}, ' for n in names)})" for who in ("self", "other"))
    if name == "__hash__":
        return f"def {name}(self):\n return hash({mine})"
    result = f"{mine} {_ORDER.get(name, '==')} {other}"
    same = "other.__class__ is self.__class__"
    return f"def {name}(self, other):\n return {result} if {same} else NotImplemented"


def _refuse(self: object, name: str, *value: object) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot change field {name!r}")


def _getstate(self: Any) -> Mapping[str, Any]:
    return {name: getattr(self, name) for name in self.__fields__}


def _setstate(self: object, state: Mapping[str, Any]) -> None:
    for name, value in state.items():
        object.__setattr__(self, name, value)
