"""Evaluate `simulate` blocks of test files: the settings of simulated systems."""

from __future__ import annotations

from ..core.diagnostics import Diagnostic, Diagnostics
from ..core.schema import ObjectSchema
from ..core.value import FrozenMap
from ..syntax.nodes import Block
from .declare.blocks import Header, render_title
from .evaluate.arguments import compile_arguments, evaluate_arguments
from .expressions.code import Env
from .expressions.compilation import make_context
from .functions import FunctionTable
from .values.faults import Deferred, Poisoned
from .values.limits import Budget


def evaluate_settings(
    block: Block | None, schema: ObjectSchema
) -> tuple[FrozenMap | None, Diagnostics]:
    """The settings of a block, or the defaults of the schema without one; None after faults."""
    if block is None:
        return FrozenMap(
            {name: attribute.default for name, attribute in schema.attributes.items()}
        ), ()
    faults: list[Diagnostic] = []
    context, title = make_context(FunctionTable()), render_title(block)
    arguments = compile_arguments(
        block.body, schema, context, Header(block), title, faults.append, ("alias",)
    )
    try:
        settings = evaluate_arguments(arguments, Env({}, {}, Budget()), faults.append, title)
    except (Poisoned, Deferred):
        settings = None
    return (None if faults else settings), tuple(faults)
