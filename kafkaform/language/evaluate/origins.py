"""Where the values behind a fault inside a module were given."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Range
from ...syntax.nodes import Expression
from ..declare.modules import Module
from ..expressions.dependencies import AllUses
from ..expressions.traversal import walk_expressions
from .graph import Ref, collect_refs
from .scope import Scope

SHOWN = 3
"""Variables that are traced per fault; with more, the first ones tell the story."""


def add_origins(fault: Diagnostic, scope: Scope) -> Diagnostic:
    """The fault with the calls that lead to its module and the places of the values it used."""
    if scope.caller is None or fault.range is None:
        return fault
    call = scope.module.call
    assert call is not None
    called = f"in {'.'.join(scope.path)}, called at {call.block.header_range}"
    given = [*_describe_given(fault.range, scope)][:SHOWN]
    return replace(fault, context=(called, *fault.context, *given))


def _describe_given(place: Range, scope: Scope) -> Iterator[str]:
    for name in _find_variables(place, scope.module):
        call = scope.module.call
        argument = None if call is None else call.block.get_argument(name)
        if argument is not None:
            yield f"var.{name} is given at {argument.range}"


def _find_variables(place: Range, module: Module) -> list[str]:
    """The variables that the expression at a place uses, directly or through local values."""
    found: dict[str, None] = {}
    uses = AllUses()
    waiting = list(collect_refs(_find_expressions(place, module), uses))
    seen: set[Ref] = set()
    while waiting:
        ref = waiting.pop(0)
        if ref in seen:
            continue
        seen.add(ref)
        word, _, name = ref.name.partition(".")
        if word == "var":
            found[name] = None
        elif word == "local" and name in module.found.locals:
            waiting += collect_refs([module.found.locals[name].value], uses)
    return list(found)


def _find_expressions(place: Range, module: Module) -> Iterator[Expression]:
    return (node for node in _list_expressions(module) if _is_inside(node.range, place))


def _is_inside(one: Range, other: Range) -> bool:
    return (
        one.file == other.file
        and (one.line, one.column) <= (other.line, other.column)
        and (other.end_line, other.end_column) <= (one.end_line, one.end_column)
    )


def _list_expressions(module: Module) -> Iterator[Expression]:
    found = module.found
    yield from (item.value for item in found.locals.values())
    blocks = [one.block for one in (*found.resources.values(), *found.data.values())]
    blocks += [one.block for one in found.outputs.values()]
    blocks += [one.block for one in found.modules.values()]
    for block in blocks:
        yield from walk_expressions(block.body)
