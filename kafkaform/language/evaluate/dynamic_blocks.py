"""`dynamic` blocks: nested blocks that are made once for each element of a collection."""

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
from ..expressions.namespaces import Fixed
from ..expressions.traversal import find_iterator
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

_SHAPE = Shape(("the kind of block",), ("for_each",), ("iterator",), ("content",))


class Each(Struct, frozen=True):
    """The collection of a dynamic block, compiled. iterator: the word that stands for one
    element in its content, with `key` and `value`."""

    node: Expression
    code: Code
    iterator: str


class Dynamic(Struct, frozen=True):
    """kind: of the blocks that it makes; content: their body."""

    kind: str
    each: Each
    content: Body


def compile_dynamic(
    block: Block, context: Context, report: Callable[[Diagnostic], None]
) -> Dynamic | None:
    """A dynamic block; None if it is not one, which is reported."""
    content, extra = find_single(block, "content")
    faults = [*find_shape_faults(block, _SHAPE), *extra]
    if content is None:
        faults.append(make_error(Header(block), f'{render_title(block)} needs a "content" block'))
    elif content.labels:
        faults.append(make_error(Header(content), 'A "content" block takes no labels'))
    word = block.get_argument("iterator")
    if word is not None and not isinstance(word, Root):
        faults.append(make_error(word, "iterator takes one word", advice="Write iterator = item."))
    for fault in faults:
        report(fault)
    each, iterator = block.get_argument("for_each"), find_iterator(block)
    if faults or content is None or each is None or iterator is None:
        return None
    return Dynamic(
        block.labels[0].text, Each(each, context.compile_node(each), iterator), content.body
    )


def list_iterations(each: Each, env: Env) -> Iterator[tuple[Val, Env]]:
    """The key of each element, with the environment for its content. Raises EvalError, Poisoned
    or Deferred before the first one."""
    value, marks = unmark(each.code(env))
    if isinstance(value, Computed):
        raise value.defer()
    if marks or (isinstance(value, SetVal) and marks_of(value)):
        raise EvalError(
            each.node,
            "for_each cannot depend on a sensitive value",
            "How many blocks there are is shown everywhere.",
        )
    if not isinstance(value, (*SEQUENCES, *FIELDS)):
        advice = "Write [] for no blocks." if isinstance(value, Null) else ""
        raise EvalError(
            each.node,
            "for_each takes a list, a set, a map or an object",
            f"This is {describe_value(value)}.",
            advice,
        )
    return (
        (
            key,
            Env(
                {**env.roots, each.iterator: _make_element(key, item)}, dict(env.names), env.budget
            ),
        )
        for key, item in list_elements(value)
    )


def _make_element(key: Val, value: Val) -> Fixed:
    return Fixed(ObjectVal({"key": key, "value": value}))


def describe_key(key: Val) -> str:
    """A key in a message; elements of a set that are no text are not shown."""
    if isinstance(key, str):
        return f'"{key}"'
    return str(key) if isinstance(key, int) else describe_value(key)
