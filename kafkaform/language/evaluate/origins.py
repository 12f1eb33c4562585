"""Find where the values behind a fault in a module were set."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Range
from ...syntax.nodes import Expression
from ..declare.modules import Module
from ..expressions.dependencies import AllUses, walk_expressions
from .graph import Ref, collect_refs
from .scope import Scope

SHOWN = 3
"""How many variables are traced for a fault."""


def add_origins(fault: Diagnostic, scope: Scope) -> Diagnostic:
    """The fault with the call of its module, and with the places where the variables that it uses
    were set."""
    if scope.caller is None or fault.range is None:
        return fault
    call = scope.module.call
    assert call is not None
    called = f"in {'.'.join(scope.path)}, called at {call.block.header_range}"
    variable_notes = [*_describe_given(fault.range, scope)][:SHOWN]
    return replace(fault, context=(called, *fault.context, *variable_notes))


def _describe_given(fault_range: Range, scope: Scope) -> Iterator[str]:
    for name in _find_variables(fault_range, scope.module):
        call = scope.module.call
        argument = None if call is None else call.block.get_argument(name)
        if argument is not None:
            yield f"var.{name} is set at {argument.range}"


def _find_variables(fault_range: Range, module: Module) -> list[str]:
    """The variables that the expression at a place uses, directly or through local values."""
    # Looked for again from the text, because it is needed only for the few faults that are shown.
    variables: dict[str, None] = {}
    uses = AllUses()
    # Breadth first: the variables that the expression names itself come before indirect ones.
    pending = list(collect_refs(_find_expressions(fault_range, module), uses))
    visited: set[Ref] = set()
    while pending:
        ref = pending.pop(0)
        if ref in visited:
            continue
        visited.add(ref)
        word, _, name = ref.name.partition(".")
        if word == "var":
            variables[name] = None
        elif word == "local" and name in module.found.locals:
            pending += collect_refs([module.found.locals[name].value], uses)
    return list(variables)


def _find_expressions(fault_range: Range, module: Module) -> Iterator[Expression]:
    return (node for node in _list_expressions(module) if _is_inside(node.range, fault_range))


def _is_inside(outer: Range, inner: Range) -> bool:
    return (
        outer.file == inner.file
        and (outer.line, outer.column) <= (inner.line, inner.column)
        and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)
    )


def _list_expressions(module: Module) -> Iterator[Expression]:
    declarations = module.found
    yield from (item.value for item in declarations.locals.values())
    blocks = [
        declaration.block
        for declaration in (*declarations.resources.values(), *declarations.data.values())
    ]
    blocks += [declaration.block for declaration in declarations.outputs.values()]
    blocks += [declaration.block for declaration in declarations.modules.values()]
    for block in blocks:
        yield from walk_expressions(block.body)
