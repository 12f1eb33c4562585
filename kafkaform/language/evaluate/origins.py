"""Where the values behind a fault inside a module were given."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Range
from ...syntax.nodes import Expression
from ..declare.modules import Module
from ..expressions.dependencies import AllUses
from ..expressions.traversal import expressions
from .graph import Ref, refs_of
from .scope import Scope

SHOWN = 3
"""Variables that are traced per fault; with more, the first ones tell the story."""


def located(fault: Diagnostic, scope: Scope) -> Diagnostic:
    """The fault with the calls that lead to its module and the places of the values it used."""
    if scope.caller is None or fault.range is None:
        return fault
    call = scope.module.call
    assert call is not None
    called = f"in {'.'.join(scope.path)}, called at {call.block.header_range}"
    given = [*_given(fault.range, scope)][:SHOWN]
    return replace(fault, context=(called, *fault.context, *given))


def _given(place: Range, scope: Scope) -> Iterator[str]:
    for name in _variables(place, scope.module):
        argument = None if scope.module.call is None else scope.module.call.argument(name)
        if argument is not None:
            yield f"var.{name} is given at {argument.range}"


def _variables(place: Range, module: Module) -> list[str]:
    """The variables that the expression at a place uses, directly or through local values."""
    found: dict[str, None] = {}
    uses = AllUses()
    waiting = list(refs_of(_at(place, module), uses))
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
            waiting += refs_of([module.found.locals[name].value], uses)
    return list(found)


def _at(place: Range, module: Module) -> Iterator[Expression]:
    return (node for node in _all(module) if _covers(node.range, place))


def _covers(one: Range, other: Range) -> bool:
    return (
        one.file == other.file
        and (one.line, one.column) <= (other.line, other.column)
        and (other.end_line, other.end_column) <= (one.end_line, one.end_column)
    )


def _all(module: Module) -> Iterator[Expression]:
    found = module.found
    yield from (item.value for item in found.locals.values())
    blocks = [one.block for one in (*found.resources.values(), *found.data.values())]
    blocks += [one.block for one in found.outputs.values()]
    blocks += [one.block for one in found.modules.values()]
    for block in blocks:
        yield from expressions(block.body)
