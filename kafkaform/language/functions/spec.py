"""What a function of the language is: its parameters and a pure Python callable."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from ...core.schema import ANY, BOOL, NUMBER, STRING, Type, list_of, set_of
from ..values.value import Val


class Param(Struct, frozen=True):
    """null: null is a legal argument; marked: the function treats marks itself, otherwise they
    are taken off the argument (with the inner ones, unless the function `passes` its arguments
    on) and put on the result; deep: the function looks through it, though it only passes other
    arguments on."""

    name: str
    type: Type = ANY
    null: bool = False
    marked: bool = False
    deep: bool = False


class Function(Struct, frozen=True):
    """doc: one sentence for the documentation; call: takes converted arguments, raises
    FunctionFault, ConvertFault or ValueError; rest: any number of further arguments; passes: only
    moves its arguments around, so that they may hold secrets and computed attributes; unifies:
    brings its arguments to one type. What it takes: steps of any call; cost for each element of
    its arguments, of all levels unless it passes them on in one step each; characters: how many
    of them it handles in a step."""

    name: str
    doc: str
    call: Callable[..., Val]
    params: tuple[Param, ...] = ()
    rest: Param | None = None
    passes: bool = False
    steps: int = 3
    cost: int = 1
    unifies: bool = False
    characters: float = 8

    @property
    def deep(self) -> bool:
        """Whether it looks at what is inside the elements of its arguments, too."""
        return self.cost > 1 or (self.cost == 1 and not self.passes)

    def usage(self) -> str:
        """How to call it: `join(separator, lists...)`."""
        names = [param.name for param in self.params]
        return render_usage(self.name, names, self.rest.name if self.rest else None)


def render_usage(name: str, params: Iterable[str], rest: str | None) -> str:
    """A call in words; rest: the name of any number of further arguments."""
    return f"{name}({', '.join((*params, *((f'{rest}...',) if rest else ())))})"


def make_string_param(name: str = "text") -> Param:
    return Param(name, STRING)


def make_number_param(name: str = "number") -> Param:
    return Param(name, NUMBER)


def make_bool_param(name: str) -> Param:
    return Param(name, BOOL)


def make_value_param(name: str = "value", null: bool = False) -> Param:
    return Param(name, ANY, null)


def make_strings_param(name: str = "list") -> Param:
    return Param(name, list_of(STRING))


def make_list_param(name: str = "list") -> Param:
    return Param(name, list_of(ANY))


def make_set_param(name: str = "set") -> Param:
    return Param(name, set_of(ANY))
