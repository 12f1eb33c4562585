"""Expand `for_each`, `count` and `enabled` to the instances of a block, and `dynamic` blocks to a
nested block for each element of a collection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from ...core.diagnostics import Diagnostic
from ...core.schema import BOOL, NUMBER
from ...core.text import make_sentence
from ...syntax.nodes import Block, Body, Expression, Root
from ..declare.blocks import (
    Header,
    Shape,
    find_shape_faults,
    find_single,
    get_enabled,
    render_title,
)
from ..expressions.code import Code, Context, Env
from ..expressions.dependencies import find_iterator
from ..expressions.references import Fixed
from ..values.conversion import convert_value
from ..values.faults import ConvertFault, EvalError, make_error
from ..values.types import describe_value
from ..values.value import (
    FIELDS,
    SENSITIVE,
    SEQUENCES,
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


SINGLE_INSTANCE = (Instance(None, {}),)
"""The one instance of a block without for_each and count, unless it is not enabled."""


def expand_instances(block: Block, context: Context, env: Env) -> Iterator[Instance]:
    """The instances of a block. Raises EvalError, Poisoned or Deferred before the first one."""
    enabled = get_enabled(block)
    nodes = {
        "for_each": block.get_argument("for_each"),
        "count": block.get_argument("count"),
        "enabled": enabled,
    }
    arguments = {name: node for name, node in nodes.items() if node is not None}
    if not arguments:
        return iter(SINGLE_INSTANCE)
    (name, node), *conflicts = arguments.items()
    if conflicts:
        second_name, second_node = conflicts[-1]
        raise EvalError(
            second_node, f"{name} and {second_name} exclude each other", "Keep one of them."
        )
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
    return iter(SINGLE_INSTANCE if answer else ())


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


_SHAPE = Shape(("the type of block",), ("for_each",), ("iterator",), ("content",))


class DynamicCollection(Struct, frozen=True):
    """The compiled collection of a dynamic block."""

    node: Expression
    code: Code
    iterator: str
    """The word for one element in the content; it has `key` and `value`."""


class Dynamic(Struct, frozen=True):
    """A dynamic block."""

    kind: str
    """The type of the blocks that it makes."""
    collection: DynamicCollection
    content: Body
    """The body of the blocks that it makes."""


def compile_dynamic(
    block: Block, context: Context, report: Callable[[Diagnostic], None]
) -> Dynamic | None:
    """Compile a dynamic block; None after faults, which are reported."""
    content, extra = find_single(block, "content")
    faults = [*find_shape_faults(block, _SHAPE), *extra]
    if content is None:
        faults.append(make_error(Header(block), f'{render_title(block)} needs a "content" block'))
    elif content.labels:
        faults.append(make_error(Header(content), 'A "content" block has no labels'))
    word = block.get_argument("iterator")
    if word is not None and not isinstance(word, Root):
        faults.append(
            make_error(word, "iterator must be one word", advice="Write iterator = item.")
        )
    for fault in faults:
        report(fault)
    collection, iterator = block.get_argument("for_each"), find_iterator(block)
    if faults or content is None or collection is None or iterator is None:
        return None
    return Dynamic(
        block.labels[0].text,
        DynamicCollection(collection, context.compile_node(collection), iterator),
        content.body,
    )


def list_iterations(collection: DynamicCollection, env: Env) -> Iterator[tuple[Val, Env]]:
    """The key of each element, and the environment for its content. Raises EvalError, Poisoned or
    Deferred before the first one."""
    # Unlike for resources, any collection is allowed: the blocks get no addresses.
    value, marks = unmark(collection.code(env))
    if isinstance(value, Computed):
        raise value.defer()
    if marks or (isinstance(value, SetVal) and marks_of(value)):
        raise EvalError(
            collection.node,
            "for_each cannot depend on a sensitive value",
            "The number of blocks is visible in every output.",
        )
    if not isinstance(value, (*SEQUENCES, *FIELDS)):
        advice = "Write [] for no blocks." if isinstance(value, Null) else ""
        raise EvalError(
            collection.node,
            "for_each must be a list, a set, a map or an object",
            f"This is {describe_value(value)}.",
            advice,
        )
    return (
        (
            key,
            Env(
                {**env.roots, collection.iterator: Fixed(ObjectVal({"key": key, "value": item}))},
                dict(env.names),
                env.budget,
            ),
        )
        for key, item in list_elements(value)
    )


def describe_key(key: Val) -> str:
    """A key in a message. Elements of a set are their own keys; only strings are shown."""
    if isinstance(key, str):
        return f'"{key}"'
    return str(key) if isinstance(key, int) else describe_value(key)
