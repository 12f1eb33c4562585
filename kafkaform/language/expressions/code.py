"""Compiled expressions: closures over an environment, built once and run per instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ...syntax.nodes import Expression, ForObject, ForTuple, Lit, Object, Tuple, walk
from ..functions.spec import Function
from ..values.faults import EvalError, Place
from ..values.limits import Budget
from ..values.value import Val


class Namespace(Protocol):
    """A first word such as `var` or `kafka_topic`, whose attributes are found on demand."""

    def find(self, name: str, place: Place) -> Val:
        """The value of `root.name`. Raises EvalError, Poisoned or Deferred."""

    def whole(self, place: Place) -> Val:
        """The value of the word alone. Raises EvalError."""


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
        """An environment whose names can be set without touching this one's."""
        return Env(self.roots, dict(self.names), self.budget, self.words)


Code = Callable[[Env], Val]
ITEM = "*"
"""The name of the current element inside a splat; no identifier can be spelled so."""


class Context(Struct, frozen=True):
    """What compiling a node needs. builders: by node class; bound: names of enclosing
    `for`s; templates: how many templates that evaluate each other lie around it; budget: of
    constants."""

    functions: Mapping[str, Function]
    builders: Mapping[type, Callable[[Any, Context], Code]]
    budget: Budget
    bound: frozenset[str] = frozenset()
    templates: int = 0

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
"""Steps for making a collection, however small: five million would fill the memory."""
_MAKERS = (Tuple, Object, ForTuple, ForObject)


def compute_weight(node: Expression) -> int:
    """How many steps one evaluation of the expression takes, inner loops aside."""
    return sum(COLLECTION if isinstance(inner, _MAKERS) else 1 for inner in walk(node))


def get_literal(node: Expression) -> str | None:
    """The text of a string without interpolation, or None."""
    return node.value if isinstance(node, Lit) and isinstance(node.value, str) else None
