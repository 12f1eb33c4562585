"""Find where the values behind a fault in a module were set, and which values only skipped blocks
use. Faults in the latter are warnings: nothing that kafkaform manages depends on them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Range
from ...syntax.nodes import Attribute, Expression
from ..declare.blocks import ModuleBlock, VariableBlock
from ..declare.modules import Module
from ..declare.settings import Skipping
from ..expressions.dependencies import AllUses, walk_expressions
from .evaluation_state import Scope
from .graph import Graph, GraphNode, Ref, collect_refs, find_targets

TRACED_VARIABLES = 3
"""How many variables are traced for a fault."""


def add_origins(fault: Diagnostic, scope: Scope) -> Diagnostic:
    """The fault with the call of its module, and with the places where the variables that it uses
    were set."""
    if scope.caller is None or fault.range is None:
        return fault
    call = scope.module.call
    assert call is not None
    called = f"in {'.'.join(scope.path)}, called at {call.block.header_range}"
    arguments = {
        name: call.block.get_argument(name) for name in _find_variables(fault.range, scope.module)
    }
    variable_notes = [
        f"var.{name} is set at {argument.range}"
        for name, argument in arguments.items()
        if argument is not None
    ]
    return replace(fault, context=(called, *fault.context, *variable_notes[:TRACED_VARIABLES]))


def _find_variables(fault_range: Range, module: Module) -> list[str]:
    """The variables that the expression at a place uses, directly or through local values."""
    # Looked for again from the text, because it is needed only for the few faults that are shown.
    variables: dict[str, None] = {}
    uses = AllUses()
    # Breadth first: the variables that the expression names itself come before indirect ones.
    nodes = (node for node in _list_expressions(module) if _is_inside(node.range, fault_range))
    pending = list(collect_refs(nodes, uses))
    visited: set[Ref] = set()
    while pending:
        ref = pending.pop(0)
        if ref in visited:
            continue
        visited.add(ref)
        word, _, name = ref.name.partition(".")
        if word == "var":
            variables[name] = None
        elif word == "local" and name in module.declarations.locals:
            pending += collect_refs([module.declarations.locals[name].value], uses)
    return list(variables)


def _is_inside(outer: Range, inner: Range) -> bool:
    return (
        outer.file == inner.file
        and (outer.line, outer.column) <= (inner.line, inner.column)
        and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)
    )


def _list_expressions(module: Module) -> Iterator[Expression]:
    declarations = module.declarations
    yield from (item.value for item in declarations.locals.values())
    blocks = [
        declaration.block
        for declaration in (*declarations.resources.values(), *declarations.data.values())
    ]
    blocks += [declaration.block for declaration in declarations.outputs.values()]
    blocks += [declaration.block for declaration in declarations.modules.values()]
    for block in blocks:
        yield from walk_expressions(block.body)


_Position = tuple[int, int]
"""Line and column."""


class UnusedRanges(Struct, frozen=True):
    """Parts of the text in which a fault concerns skipped blocks only."""

    spans: Mapping[str, tuple[tuple[_Position, _Position], ...]]
    """File -> begin and end of each part, in order, without overlaps."""

    def __contains__(self, text_range: object) -> bool:
        if not isinstance(text_range, Range) or text_range.file not in self.spans:
            return False
        spans = self.spans[text_range.file]
        number = bisect_right(spans, (text_range.line, text_range.column), key=lambda span: span[0])
        return number > 0 and (text_range.end_line, text_range.end_column) <= spans[number - 1][1]


def find_unused_ranges(graph: Graph, skipping: Skipping, uses: AllUses) -> UnusedRanges:
    """The places of values that skipped blocks use, and of outputs and checks that refer to skipped
    blocks, unless an object, a data source or a provider needs them as well."""
    if not skipping.blocks:
        return UnusedRanges({})
    tainted_nodes = _find_tainted(graph)
    checks = [
        (module, check.block.range, collect_refs(walk_expressions(check.block.body), uses))
        for module in graph.modules.values()
        for check in module.declarations.checks.values()
    ]
    used_nodes, idle_nodes, ranges = set[GraphNode](), set[GraphNode](), list[Range]()
    for node in graph.declared:
        word = node.name.partition(".")[0]
        if word == "output" and node in tainted_nodes:
            idle_nodes.add(node)
        # The outputs of a module count only if something needs them.
        elif word not in ("local", "var", "module") and not (word == "output" and node.steps):
            used_nodes.add(node)
    for module, text_range, refs in checks:
        targets = _list_targets(module, refs)
        if any(ref.name in module.skipped for ref in refs) or tainted_nodes & targets:
            idle_nodes |= targets
            ranges.append(text_range)
        else:
            used_nodes |= targets
    root = graph.modules[()]
    for imported in root.declarations.imports:
        used_nodes |= _list_targets(root, collect_refs(walk_expressions(imported.block.body), uses))
    for module in graph.modules.values():
        for item in skipping.blocks.get(module.folder, ()):
            idle_nodes |= _list_targets(
                module, collect_refs(walk_expressions(item.block.body), uses)
            )
            idle_nodes |= {
                GraphNode(module.steps[:-1], f"module.{step}") for step in module.steps[-1:]
            }
    unused = _follow(graph, idle_nodes, uses) - _follow(graph, used_nodes, uses)
    ranges += (text_range for node in unused for text_range in _list_ranges(graph, node))
    return UnusedRanges(_merge_spans(ranges))


def _find_tainted(graph: Graph) -> set[GraphNode]:
    """The nodes that refer to a skipped block, directly or through other values."""
    tainted_nodes: set[GraphNode] = set()
    for node in graph.order:  # each after what it needs
        skipped = _find_writer(graph, node).skipped
        is_direct = any(ref.name in skipped for ref in graph.refs[node])
        if is_direct or not tainted_nodes.isdisjoint(graph.needs[node]):
            tainted_nodes.add(node)
    return tainted_nodes


def _find_writer(graph: Graph, node: GraphNode) -> Module:
    """The module whose text has the expressions of a node: for a variable, the caller."""
    steps = node.steps[:-1] if node.name.startswith("var.") else node.steps
    return graph.modules[steps]


def _list_targets(module: Module, refs: Iterable[Ref]) -> set[GraphNode]:
    """The nodes that references in a module name, including the variables of the root."""
    refs = tuple(refs)
    root_variables = {GraphNode((), ref.name) for ref in refs if ref.name.startswith("var.")}
    return {*find_targets(module, refs), *(root_variables if not module.steps else ())}


def _follow(graph: Graph, starts: Iterable[GraphNode], uses: AllUses) -> set[GraphNode]:
    """The nodes, and everything that they need."""
    root, reached, pending = graph.modules[()], set[GraphNode](), list(starts)
    while pending:
        node = pending.pop()
        if node in reached:
            continue
        reached.add(node)
        if node in graph.needs:
            pending += graph.needs[node]
            pending += _list_targets(_find_writer(graph, node), graph.refs[node])
        elif not node.steps and node.name.startswith("var."):
            variable = root.declarations.variables.get(node.name.removeprefix("var."))
            if variable is not None:
                refs = collect_refs(walk_expressions(variable.block.body, ("type",)), uses)
                pending += _list_targets(root, refs)
    return reached


def _list_ranges(graph: Graph, node: GraphNode) -> Iterator[Range]:
    """The text of a node: a local value, a block, the value that a caller gives to a variable."""
    declaration = graph.declared.get(node)
    name = node.name.removeprefix("var.")
    if declaration is None and not node.steps and node.name.startswith("var."):
        declaration = graph.modules[()].declarations.variables.get(name)
    if isinstance(declaration, Attribute):
        yield declaration.range
    elif isinstance(declaration, ModuleBlock):
        yield declaration.block.header_range
        yield from (item.range for item in declaration.block.body.attributes.values())
    elif declaration is not None:
        yield declaration.block.range
    if isinstance(declaration, VariableBlock) and node.steps:
        call = graph.modules[node.steps].call
        if call is not None and name in call.block.body.attributes:
            yield call.block.body.attributes[name].range


def _merge_spans(
    ranges: Iterable[Range],
) -> Mapping[str, tuple[tuple[_Position, _Position], ...]]:
    spans: dict[str, list[tuple[_Position, _Position]]] = {}
    for text_range in sorted(set(ranges)):
        start, end = (
            (text_range.line, text_range.column),
            (text_range.end_line, text_range.end_column),
        )
        file = spans.setdefault(text_range.file, [])
        if file and start <= file[-1][1]:
            file[-1] = file[-1][0], max(file[-1][1], end)
        else:
            file.append((start, end))
    return {name: tuple(file) for name, file in spans.items()}
