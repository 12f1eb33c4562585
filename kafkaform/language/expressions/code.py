"""Compiled expressions: functions of an environment, built once and run for each instance.

Closures are almost twice as fast as walking the nodes again for every instance of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ...syntax.nodes import (
    ConstantObject,
    Expression,
    ForObject,
    ForTuple,
    Lit,
    Object,
    Tuple,
    walk,
)
from ..functions.spec import Function
from ..values.faults import Budget, EvalError, Location
from ..values.value import Val


class Namespace(Protocol):
    """The meaning of a first word, such as `var` or `kafka_topic`; finds attributes on demand."""

    def find(self, name: str, location: Location) -> Val:
        """The value of `root.name`. Raises EvalError, Poisoned or Deferred."""

    def read_word(self, location: Location) -> Val:
        """The value of the word alone. Raises EvalError if it has none."""


class Env(Struct, eq=False):
    """What an expression sees while it is evaluated."""

    roots: Mapping[str, Namespace]
    """Values and namespaces by the first word of a reference."""
    names: dict[str, Val]
    """Variables of the enclosing `for` expressions."""
    budget: Budget
    words: tuple[Val, ...] = ()
    """The constants of a block that repeats a shape (see `syntax.stamps`)."""

    def make_inner(self) -> Env:
        """An environment with a copy of the names, for a loop to change."""
        # A loop sets its names in one environment for all passes instead of making one for each.
        return Env(self.roots, dict(self.names), self.budget, self.words)


Code = Callable[[Env], Val]
"""Evaluates one expression. Raises EvalError, Poisoned or Deferred."""
ITEM = "*"
"""The name of the current element inside a splat; it is not an identifier."""


class Context(Struct, frozen=True):
    """What is known when a node is compiled."""

    functions: Mapping[str, Function]
    builders: Mapping[type, Callable[[Any, Context], Code]]
    """Class of a node -> what compiles it. A field, because builders call each other."""
    budget: Budget
    """Pays for the evaluation of constants."""
    bound: frozenset[str] = frozenset()
    """Variables of the enclosing `for` expressions, which hide other first words."""
    templates: int = 0
    """How many templates that evaluate each other are around the node."""

    def compile_node(self, node: Expression) -> Code:
        return self.builders[type(node)](node, self)

    def bind_names(self, *names: str | None) -> Context:
        """The context inside a `for` that sets these names."""
        return replace(self, bound=self.bound.union(name for name in names if name is not None))


def make_failing(fault: EvalError) -> Code:
    """Code that raises this fault whenever it is run."""

    def run(_: Env) -> NoReturn:
        raise fault

    return run


COLLECTION = 5
"""Steps for making a collection, however small, because five million would fill the memory."""
_MAKERS = (Tuple, Object, ConstantObject, ForTuple, ForObject)


def compute_weight(node: Expression) -> int:
    """Steps for one evaluation of the expression, without the passes of inner loops."""
    # Loops charge this for each pass, so that evaluation itself does not have to count.
    return sum(COLLECTION if isinstance(inner, _MAKERS) else 1 for inner in walk(node))


def get_literal(node: Expression) -> str | None:
    """The text of a string without interpolation; None for any other expression."""
    return node.value if isinstance(node, Lit) and isinstance(node.value, str) else None
