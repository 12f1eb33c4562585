"""Evaluate `dynamic` blocks, which make a nested block for each element of a collection."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from ...core.diagnostics import Diagnostic
from ...syntax.nodes import Block, Body, Expression, Root
from ..declare.blocks import (
    Header,
    Shape,
    find_shape_faults,
    find_single,
    render_title,
)
from ..expressions.code import Code, Context, Env
from ..expressions.dependencies import find_iterator
from ..expressions.references import Fixed
from ..values.faults import EvalError, make_error
from ..values.types import describe_value
from ..values.value import (
    FIELDS,
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
                {**env.roots, collection.iterator: _make_element(key, item)},
                dict(env.names),
                env.budget,
            ),
        )
        for key, item in list_elements(value)
    )


def _make_element(key: Val, value: Val) -> Fixed:
    return Fixed(ObjectVal({"key": key, "value": value}))


def describe_key(key: Val) -> str:
    """A key in a message. Elements of a set are their own keys; only strings are shown."""
    if isinstance(key, str):
        return f'"{key}"'
    return str(key) if isinstance(key, int) else describe_value(key)
