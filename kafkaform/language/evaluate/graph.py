"""What refers to what, through all modules, as the text alone tells; the order of evaluation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct

from ...core.address import Address
from ...syntax.nodes import Block, Expression
from ...syntax.stamps import Stamped, StencilShape
from ..declare.blocks import make_header
from ..declare.declarations import ResourceBlock
from ..declare.modules import Module
from ..expressions.dependencies import AllUses, Reference, order_names
from ..expressions.traversal import walk_expressions
from ..values.faults import Place

STATIC = ("provider", "depends_on", "source", "version", "providers")
"""Arguments that name things instead of using values."""


class GraphNode(Struct, frozen=True, order=True):
    """Something that is evaluated once in each instance of its module. steps: of the module;
    name: `var.x`, `local.x`, `TYPE.NAME`, `data.TYPE.NAME`, `module.x` (how many instances it
    has), `output.x`, or `provider.INSTANCE`."""

    steps: tuple[str, ...]
    name: str

    def __str__(self) -> str:
        return ".".join((*(f"module.{step}" for step in self.steps), self.name))


class Ref(Struct, frozen=True):
    """One reference of an expression: the name of a node in the same module; key: of the
    instance, if it is written out; output: of a module, None for all."""

    name: str
    key: str | int | None = None
    output: str | None = None


class Graph(Struct, frozen=True):
    """refs: what the expressions of each node refer to; order: all nodes, each after what it
    needs; cycles: closed chains; looping: what is in one; needs: node -> the nodes that it needs
    directly."""

    refs: Mapping[GraphNode, tuple[Ref, ...]]
    needs: Mapping[GraphNode, tuple[GraphNode, ...]]
    order: tuple[GraphNode, ...]
    cycles: tuple[tuple[GraphNode, ...], ...]
    looping: frozenset[GraphNode]
    modules: Mapping[tuple[str, ...], Module]


def build_graph(
    root: Module, types: Collection[str], data: Collection[str], uses: AllUses
) -> Graph:
    """The graph of a configuration. types, data: the resource types and data sources that are
    known; blocks of others are not in it."""
    modules = {module.steps: module for module in root.walk_modules()}
    refs: dict[GraphNode, tuple[Ref, ...]] = {}
    needs: dict[GraphNode, tuple[GraphNode, ...]] = {}
    for module in modules.values():
        caller = modules[module.steps[:-1]] if module.steps else None
        shapes: dict[StencilShape, tuple[tuple[Ref, ...], tuple[GraphNode, ...]]] = {}
        for name, found in _list_sources(module, types, data):
            node = GraphNode(module.steps, name)
            if isinstance(found, Stamped):
                known = shapes.get(found.shape)
                if known is None:
                    own = collect_refs(walk_expressions(found.shape.block.body, STATIC), uses)
                    known = shapes[found.shape] = own, tuple(_find_targets(module, own))
                refs[node], needs[node] = known
                continue
            nodes = walk_expressions(found.body, STATIC) if isinstance(found, Block) else found
            own = refs[node] = collect_refs(nodes, uses)
            # What else a provider block names was refused: it is evaluated before anything.
            usable = own if not name.startswith("provider.") else _select_locals(own)
            needs[node] = tuple(_find_targets(module, usable))
        if caller is not None:
            _add_inputs(module, caller, refs, needs, uses)
    for node in needs:
        if extra := _list_implicit_needs(node, root):
            needs[node] = (*needs[node], *extra)
    order, cycles, looping = order_names(needs)
    return Graph(refs, needs, tuple(order), tuple(map(tuple, cycles)), looping, modules)


def _list_sources(
    module: Module, types: Collection[str], data: Collection[str]
) -> Iterator[tuple[str, Block | list[Expression]]]:
    """The nodes of a module with what each of them evaluates: expressions, or all of a block."""
    found = module.found
    for name, item in found.locals.items():
        yield f"local.{name}", [item.value]
    for address, resource in found.resources.items():
        if address.type in types:
            yield str(address), resource.block
    for address, source in found.data.items():
        if address.type in data:
            yield f"data.{address}", source.block
    for name, call in found.modules.items():
        if name in module.children:
            some = (call.get_argument("for_each"), call.get_argument("count"))
            yield f"module.{name}", [node for node in some if node is not None]
    for name, output in found.outputs.items():
        rules = [node for rule in output.preconditions for node in walk_expressions(rule.body)]
        yield f"output.{name}", [output.value, *rules]
    if not module.steps:
        for instance, provider in found.providers.items():
            yield f"provider.{instance}", list(walk_expressions(provider.block.body, ("alias",)))


def _select_locals(refs: Iterable[Ref]) -> tuple[Ref, ...]:
    return tuple(ref for ref in refs if ref.name.startswith("local."))


def _add_inputs(
    module: Module,
    caller: Module,
    refs: dict[GraphNode, tuple[Ref, ...]],
    needs: dict[GraphNode, tuple[GraphNode, ...]],
    uses: AllUses,
) -> None:
    """The variables of a module: their values are written in its caller."""
    assert module.call is not None
    for name in module.found.variables:
        node = GraphNode(module.steps, f"var.{name}")
        given = module.call.get_argument(name)
        refs[node] = () if given is None else collect_refs([given], uses)
        needs[node] = tuple(_find_targets(caller, refs[node]))


def _list_implicit_needs(node: GraphNode, root: Module) -> tuple[GraphNode, ...]:
    """What a node needs without saying so: its module's instances, and a data source its
    providers."""
    extra = []
    if node.steps:
        extra.append(GraphNode(node.steps[:-1], f"module.{node.steps[-1]}"))
    if node.name.startswith("data."):
        extra += [GraphNode((), f"provider.{instance}") for instance in root.found.providers]
    return tuple(extra)


def list_edges(graph: Graph) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """The names of everything, and pairs of (name, what it refers to)."""
    given = {str(GraphNode((), f"var.{name}")) for name in graph.modules[()].found.variables}
    pairs = [(str(node), str(other)) for node, needed in graph.needs.items() for other in needed]
    for node, refs in graph.refs.items():
        if not node.steps:
            pairs += [(str(node), ref.name) for ref in refs if ref.name in given]
    names = given.union(map(str, graph.needs))
    return tuple(sorted(names)), tuple(sorted({pair for pair in pairs if pair[1] in names}))


# ── references ──────────────────────────────────────────────────────────────────────────


def collect_refs(nodes: Iterable[Expression], uses: AllUses) -> tuple[Ref, ...]:
    """The references of some expressions, each once, in order."""
    found: dict[Ref, None] = {}
    for node in nodes:
        for reference in uses[node].references:
            ref = _make_ref(reference)
            if ref is not None:
                found[ref] = None
    return tuple(found)


def _make_ref(reference: Reference) -> Ref | None:
    word, steps = reference.root.name, reference.steps
    names = [word]
    wanted = 3 if word == "data" else 2
    for step in steps[: wanted - 1]:
        if step.attribute is None:
            return None
        names.append(step.attribute)
    if len(names) < wanted:
        return None
    rest = steps[wanted - 1 :]
    key = rest[0].key if rest else None
    output = None
    if word == "module":
        rest = rest[1:] if rest and key is not None else rest
        output = rest[0].attribute if rest else None
    return Ref(".".join(names), key, output)


def _find_targets(module: Module, refs: Iterable[Ref]) -> Iterator[GraphNode]:
    """The nodes that references of a module mean; names that nothing has are passed over."""
    for ref in refs:
        word, _, name = ref.name.partition(".")
        if word == "module":
            yield GraphNode(module.steps, ref.name)
            child = module.children.get(name)
            if child is not None:
                yield from _list_outputs(child, ref.output)
        elif word != "var" or module.steps:
            yield GraphNode(module.steps, ref.name)


def _list_outputs(child: Module, wanted: str | None) -> Iterator[GraphNode]:
    known = child.found.outputs
    for output in (wanted,) if wanted in known else known:
        yield GraphNode(child.steps, f"output.{output}")


# ── places ──────────────────────────────────────────────────────────────────────────────


def find_place(node: GraphNode, modules: Mapping[tuple[str, ...], Module]) -> Place:
    """Where a node is declared."""
    found = modules[node.steps].found
    word, _, name = node.name.partition(".")
    if word == "local":
        return found.locals[name]
    return make_header(_find_block(node, modules))


def _find_block(node: GraphNode, modules: Mapping[tuple[str, ...], Module]) -> Block:
    module = modules[node.steps]
    word, _, name = node.name.partition(".")
    match word:
        case "var":
            return module.found.variables[name].block
        case "module":
            return module.found.modules[name].block
        case "output":
            return module.found.outputs[name].block
        case "provider":
            return module.found.providers[name].block
    return find_resource_block(node.name, module).block


def find_resource_block(name: str, module: Module) -> ResourceBlock:
    """The resource or data source of this name, `TYPE.NAME` or `data.TYPE.NAME`."""
    if name.startswith("data."):
        return module.found.data[parse_node_address(name[5:])]
    return module.found.resources[parse_node_address(name)]


def parse_node_address(name: str) -> Address:
    kind, _, rest = name.partition(".")
    return Address(kind, rest)
