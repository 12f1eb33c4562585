"""The description of a function: its parameters, its cost, and a pure Python callable."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from ...core.schema import ANY, NUMBER, STRING, Type, list_of, set_of
from ..values.value import Val


class Param(Struct, frozen=True):
    """A parameter. Arguments are converted to its type before the call."""

    name: str
    type: Type = ANY
    null: bool = False
    """Whether the argument can be null."""
    marked: bool = False
    """Whether the function handles marks itself. Otherwise they are taken off the argument and put
    on the result; marks of elements, too, unless the function `passes` its arguments on."""
    deep: bool = False
    """Whether the function looks through this argument, though it only passes others on."""


class Function(Struct, frozen=True):
    """A function of the language. The costs are measured in steps (see `values.faults`)."""

    name: str
    doc: str
    """One sentence for the documentation."""
    call: Callable[..., Val]
    """Takes converted arguments. Raises FunctionFault, ConvertFault or ValueError."""
    params: tuple[Param, ...] = ()
    variadic: Param | None = None
    """Any number of further arguments."""
    passes: bool = False
    """Whether it only moves its arguments around, so that they can contain secrets and computed
    attributes."""
    steps: int = 3
    """Steps of every call."""
    cost: int = 1
    """Steps for each element of its arguments: at all levels, or only at the first one if the
    function passes elements on."""
    unifies: bool = False
    """Whether it finds a common type of its arguments."""
    characters: float = 8
    """How many characters it handles in one step."""

    @property
    def deep(self) -> bool:
        """Whether it also looks at what is inside the elements of its arguments."""
        return self.cost > 1 or (self.cost == 1 and not self.passes)

    def usage(self) -> str:
        """How to call it: `join(separator, lists...)`."""
        names = [param.name for param in self.params]
        return render_usage(self.name, names, self.variadic.name if self.variadic else None)


def render_usage(name: str, params: Iterable[str], variadic: str | None) -> str:
    """How to call a function: `join(separator, lists...)`. variadic: the name of any number of
    further arguments."""
    return f"{name}({', '.join((*params, *((f'{variadic}...',) if variadic else ())))})"


def make_string_param(name: str = "text") -> Param:
    return Param(name, STRING)


def make_number_param(name: str = "number") -> Param:
    return Param(name, NUMBER)


def make_value_param(name: str = "value", null: bool = False) -> Param:
    return Param(name, ANY, null)


def make_strings_param(name: str = "list") -> Param:
    return Param(name, list_of(STRING))


def make_list_param(name: str = "list") -> Param:
    return Param(name, list_of(ANY))


def make_set_param(name: str = "set") -> Param:
    return Param(name, set_of(ANY))
