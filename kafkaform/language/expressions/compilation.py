"""The table of what compiles which node. It is not in `code`, because all builders import that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...syntax import nodes
from ..functions.spec import Function
from ..values.faults import Budget
from .calls import compile_call
from .code import Code, Context
from .loops import (
    compile_for,
    compile_for_object,
    compile_for_tuple,
    compile_if,
    compile_splat,
    compile_template,
)
from .operators import (
    compile_binary,
    compile_cond,
    compile_constants,
    compile_lit,
    compile_object,
    compile_paren,
    compile_slot,
    compile_tuple,
    compile_unary,
)
from .references import compile_attr, compile_index, compile_item, compile_legacy, compile_root

BUILDERS: Mapping[type, Callable[[Any, Context], Code]] = {
    nodes.Lit: compile_lit,
    nodes.Slot: compile_slot,
    nodes.Template: compile_template,
    nodes.TemplateIf: compile_if,
    nodes.TemplateFor: compile_for,
    nodes.Tuple: compile_tuple,
    nodes.Object: compile_object,
    nodes.ConstantObject: compile_constants,
    nodes.ForTuple: compile_for_tuple,
    nodes.ForObject: compile_for_object,
    nodes.FunctionCall: compile_call,
    nodes.Root: compile_root,
    nodes.SplatItem: compile_item,
    nodes.Attr: compile_attr,
    nodes.Index: compile_index,
    nodes.LegacyIndex: compile_legacy,
    nodes.AttrSplat: compile_splat,
    nodes.FullSplat: compile_splat,
    nodes.Unary: compile_unary,
    nodes.Binary: compile_binary,
    nodes.Cond: compile_cond,
    nodes.Paren: compile_paren,
}


def make_context(functions: Mapping[str, Function]) -> Context:
    """The context for top-level expressions: `context.compile_node(node)(env)` evaluates one."""
    return Context(functions, BUILDERS, Budget())
