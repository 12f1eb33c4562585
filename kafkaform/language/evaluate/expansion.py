"""Expand `for_each`, `count` and `enabled` to the instances of a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from ...core.schema import BOOL, NUMBER
from ...core.text.display import make_sentence
from ...syntax.nodes import Block, Expression
from ..declare.declarations import get_enabled
from ..expressions.code import Context, Env
from ..expressions.namespaces import Fixed
from ..values.conversion import convert_value
from ..values.faults import ConvertFault, EvalError
from ..values.types import describe_value
from ..values.value import (
    FIELDS,
    SENSITIVE,
    Computed,
    Null,
    ObjectVal,
    SetVal,
    Val,
    list_elements,
    marks_of,
    unmark,
)


class Instance(Struct, frozen=True):
    """One instance of a block."""

    key: str | int | None
    """The key of for_each, the index of count, or None."""
    roots: Mapping[str, Fixed]
    """`each` or `count`."""


SINGLE = (Instance(None, {}),)
"""The one instance of a block without for_each and count, unless it is not enabled."""


def expand_instances(block: Block, context: Context, env: Env) -> Iterator[Instance]:
    """The instances of a block. Raises EvalError, Poisoned or Deferred before the first one."""
    enabled = get_enabled(block)
    nodes = {
        "for_each": block.get_argument("for_each"),
        "count": block.get_argument("count"),
        "enabled": enabled,
    }
    given = {name: node for name, node in nodes.items() if node is not None}
    if not given:
        return iter(SINGLE)
    (name, node), *others = given.items()
    if others:
        second, place = others[-1]
        raise EvalError(place, f"{name} and {second} exclude each other", "Keep one of them.")
    return _EXPANSIONS[name](node, context, env)


def _expand_enabled(node: Expression, context: Context, env: Env) -> Iterator[Instance]:
    value, marks = unmark(context.compile_node(node)(env))
    if marks:
        raise EvalError(
            node, "enabled cannot depend on a sensitive value", "Every plan shows what exists."
        )
    if isinstance(value, Computed):
        raise value.defer()
    try:
        answer = convert_value(value, BOOL)
    except ConvertFault as fault:
        raise EvalError(node, "enabled must be true or false", make_sentence(fault)) from None
    if not isinstance(answer, bool):
        raise EvalError(node, "enabled must be true or false", "It is null.")
    return iter(SINGLE if answer else ())


def _expand_for_each(node: Expression, context: Context, env: Env) -> Iterator[Instance]:
    value, marks = unmark(context.compile_node(node)(env))
    if marks or (isinstance(value, SetVal) and marks_of(value)):
        raise EvalError(
            node,
            "for_each cannot depend on a sensitive value",
            "Its keys become parts of addresses, which are shown everywhere.",
        )
    # A list is refused: its positions as keys would give all following objects new addresses when
    # an element is inserted, and their old ones would be deleted.
    if isinstance(value, SetVal):
        if any(not isinstance(item, str) for item in value.items):
            raise EvalError(node, "A set for for_each can only contain strings, and no null")
    elif not isinstance(value, FIELDS):
        raise EvalError(
            node,
            "for_each must be a map, an object or a set of strings",
            f"This is {describe_value(value)}.",
            "Write toset([…]) around a list of strings."
            if not isinstance(value, Null)
            else "Write {} for no instances.",
        )
    size = len(value.items) if isinstance(value, SetVal) else len(value.fields)
    env.budget.admit(size, node)
    return (_make_instance(key, item) for key, item in list_elements(value))


def _make_instance(key: Val, value: Val) -> Instance:
    name = str(key)
    return Instance(name, {"each": Fixed(ObjectVal({"key": name, "value": value}))})


def _expand_count(node: Expression, context: Context, env: Env) -> Iterator[Instance]:
    value, marks = unmark(context.compile_node(node)(env))
    if SENSITIVE in marks:
        raise EvalError(node, "count cannot depend on a sensitive value")
    if isinstance(value, Computed):
        raise value.defer()
    try:
        number = convert_value(value, NUMBER)
    except ConvertFault as fault:
        raise EvalError(node, "count must be a whole number", make_sentence(fault)) from None
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise EvalError(node, "count must be a whole number, 0 or more")
    env.budget.admit(number, node)
    return (
        Instance(index, {"count": Fixed(ObjectVal({"index": index}))}) for index in range(number)
    )


_EXPANSIONS: Mapping[str, Callable[[Expression, Context, Env], Iterator[Instance]]] = {
    "for_each": _expand_for_each,
    "count": _expand_count,
    "enabled": _expand_enabled,
}
