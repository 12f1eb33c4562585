"""What a function of the language is: its parameters and a pure Python callable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...core.schema import ANY, BOOL, NUMBER, STRING, Type, list_of, set_of
from ..values import Val


@dataclass(frozen=True, slots=True)
class Param:
    """null: null is a legal argument; marked: the function treats marks itself, otherwise they
    are taken off the argument (with the inner ones, unless the function `passes` its arguments
    on) and put on the result."""

    name: str
    type: Type = ANY
    null: bool = False
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """call: takes converted arguments, raises FunctionFault, ConvertFault or ValueError.
    rest: any number of further arguments; passes: only moves its arguments around, so that they
    may hold secrets and computed attributes; cost: steps for each element of its arguments."""

    name: str
    call: Callable[..., Val]
    params: tuple[Param, ...] = ()
    rest: Param | None = None
    passes: bool = False
    cost: int = 1

    def usage(self) -> str:
        """How to call it: `join(separator, lists...)`."""
        names = [param.name for param in self.params]
        if self.rest is not None:
            names.append(f"{self.rest.name}...")
        return f"{self.name}({', '.join(names)})"


def string(name: str = "text") -> Param:
    return Param(name, STRING)


def number(name: str = "number") -> Param:
    return Param(name, NUMBER)


def boolean(name: str) -> Param:
    return Param(name, BOOL)


def value(name: str = "value", null: bool = False) -> Param:
    return Param(name, ANY, null)


def strings(name: str = "list") -> Param:
    return Param(name, list_of(STRING))


def any_list(name: str = "list") -> Param:
    return Param(name, list_of(ANY))


def any_set(name: str = "set") -> Param:
    return Param(name, set_of(ANY))
