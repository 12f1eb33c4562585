"""`for_each` and `count`: how many instances a block has, and what each may refer to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from ...core.schema import NUMBER
from ...syntax.nodes import Block, Expression
from ..expressions.code import Context, Env
from ..expressions.namespaces import Fixed
from ..values.conversion import convert_value
from ..values.faults import ConvertFault, EvalError, make_sentence
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
    """key: None without for_each and count; roots: `each` or `count`."""

    key: str | int | None
    roots: Mapping[str, Fixed]


SINGLE = (Instance(None, {}),)


def expand_instances(block: Block, context: Context, env: Env) -> Iterator[Instance]:
    """The instances of a block. Raises EvalError, Poisoned or Deferred before the first one."""
    for_each, count = block.get_argument("for_each"), block.get_argument("count")
    if for_each is not None and count is not None:
        raise EvalError(count, "for_each and count exclude each other", "Keep one of them.")
    if for_each is not None:
        return _expand_for_each(for_each, context, env)
    if count is not None:
        return _expand_count(count, context, env)
    return iter(SINGLE)


def _expand_for_each(node: Expression, context: Context, env: Env) -> Iterator[Instance]:
    value, marks = unmark(context.compile_node(node)(env))
    if marks or (isinstance(value, SetVal) and marks_of(value)):
        raise EvalError(
            node,
            "for_each cannot depend on a sensitive value",
            "Its keys become addresses, which are shown everywhere.",
        )
    if isinstance(value, SetVal):
        if any(not isinstance(item, str) for item in value.items):
            raise EvalError(node, "A set for for_each must hold strings and no null")
    elif not isinstance(value, FIELDS):
        raise EvalError(
            node,
            "for_each takes a map, an object or a set of strings",
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
