"""Find what refers to what in all modules, by the text alone, and the order of evaluation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct

from ...core.address import Address
from ...syntax.nodes import Block, Expression
from ...syntax.stamps import Stamped, StencilShape
from ..declare.addresses import list_provider_keys
from ..declare.blocks import Declaration, ModuleBlock, ResourceBlock, get_enabled
from ..declare.modules import Module
from ..expressions.dependencies import AllUses, Reference, order_names, walk_expressions

NAMING_ARGUMENTS = ("provider", "depends_on", "source", "version", "providers")
"""Arguments whose expressions name something and are not evaluated."""


class GraphNode(Struct, frozen=True, order=True):
    """Something that is evaluated once in each instance of its module."""

    steps: tuple[str, ...]
    """The steps of the module."""
    name: str
    """`var.x`, `local.x`, `TYPE.NAME`, `data.TYPE.NAME`, `module.x` (its instances), `output.x` or
    `provider.INSTANCE`."""

    def __str__(self) -> str:
        return ".".join((*(f"module.{step}" for step in self.steps), self.name))

    @property
    def is_data(self) -> bool:
        """True for a data source."""
        return self.name.startswith("data.")

    @property
    def as_address(self) -> Address:
        """The address of a resource block, in all instances of its module."""
        type_name, _, name = self.name.partition(".")
        return Address(type_name, name, module=tuple(f"module.{step}" for step in self.steps))


class Ref(Struct, frozen=True):
    """One reference of an expression."""

    name: str
    """The name of a node in the same module."""
    key: str | int | None = None
    """The key of an instance, if it is a constant."""
    output: str | None = None
    """The output of a module; None for all of them."""


class Graph(Struct, frozen=True):
    """Everything that is evaluated, and in which order."""

    declared: Mapping[GraphNode, Declaration]
    """What is evaluated under the name of each node."""
    refs: Mapping[GraphNode, tuple[Ref, ...]]
    """What the expressions of each node refer to."""
    needs: Mapping[GraphNode, tuple[GraphNode, ...]]
    """Node -> the nodes that it needs directly."""
    order: tuple[GraphNode, ...]
    """All nodes, each after what it needs."""
    cycles: tuple[tuple[GraphNode, ...], ...]
    """Closed chains of nodes."""
    looping: frozenset[GraphNode]
    """The nodes that are part of a cycle."""
    modules: Mapping[tuple[str, ...], Module]
    """Modules by their steps."""


def build_graph(
    root: Module, types: Collection[str], data: Collection[str], uses: AllUses
) -> Graph:
    """The graph of a configuration. types, data: the known resource types and data sources; blocks
    of other types are not in the graph."""
    modules = {module.steps: module for module in root.walk_modules()}
    declared: dict[GraphNode, Declaration] = {}
    refs: dict[GraphNode, tuple[Ref, ...]] = {}
    needs: dict[GraphNode, tuple[GraphNode, ...]] = {}
    for module in modules.values():
        # Blocks of one shape refer to the same things, so only the first one is looked at.
        shapes: dict[StencilShape, tuple[tuple[Ref, ...], tuple[GraphNode, ...]]] = {}
        for name, declaration, source in _list_sources(module, types, data):
            node = GraphNode(module.steps, name)
            declared[node] = declaration
            if isinstance(source, Stamped):
                shape_refs = shapes.get(source.shape)
                if shape_refs is None:
                    block_refs = collect_refs(_walk_block(source.shape.block), uses)
                    shape_refs = shapes[source.shape] = (
                        block_refs,
                        tuple(find_targets(module, block_refs)),
                    )
                refs[node], needs[node] = shape_refs
                continue
            nodes = _walk_block(source) if isinstance(source, Block) else source
            block_refs = refs[node] = collect_refs(nodes, uses)
            if name.startswith("provider."):
                # Providers come before all objects, so other references have been reported.
                block_refs = tuple(ref for ref in block_refs if ref.name.startswith("local."))
            needs[node] = tuple(find_targets(module, block_refs))
        if module.call is not None:
            # The values of a module's variables are written in its caller.
            caller = modules[module.steps[:-1]]
            for name, variable in module.declarations.variables.items():
                node = GraphNode(module.steps, f"var.{name}")
                argument = module.call.block.get_argument(name)
                declared[node] = variable
                refs[node] = () if argument is None else collect_refs([argument], uses)
                needs[node] = tuple(find_targets(caller, refs[node]))
    # What a node needs without naming it: the instances of its module, and for a data source all
    # providers, because a provider's name says nothing about which one answers. Objects and modules
    # need the keys of providers with for_each.
    keyed = tuple(
        GraphNode((), f"provider.{instance}")
        for instance, provider in root.declarations.providers.items()
        if provider.several
    )
    for node in needs:
        if keyed and isinstance(declared[node], ResourceBlock | ModuleBlock):
            needs[node] += keyed
        if node.steps:
            needs[node] += (GraphNode(node.steps[:-1], f"module.{node.steps[-1]}"),)
        if node.name.startswith("data."):
            needs[node] += tuple(
                GraphNode((), f"provider.{instance}") for instance in root.declarations.providers
            )
    order, cycles, looping = order_names(needs)
    return Graph(declared, refs, needs, tuple(order), tuple(map(tuple, cycles)), looping, modules)


def _list_sources(
    module: Module, types: Collection[str], data: Collection[str]
) -> Iterator[tuple[str, Declaration, Block | list[Expression]]]:
    """For each node of a module: its name, its declaration, and what is evaluated: some
    expressions, or all of a block."""
    declarations = module.declarations
    for name, item in declarations.locals.items():
        yield f"local.{name}", item, [item.value]
    for address, resource in declarations.resources.items():
        if address.type in types:
            yield str(address), resource, resource.block
    for address, answer in declarations.data.items():
        if address.type in data:
            yield f"data.{address}", answer, answer.block
    for name, call in declarations.modules.items():
        if name in module.children:
            repeated = call.block.get_argument("for_each"), call.block.get_argument("count")
            keys = list_provider_keys((call.providers or {}).values())
            nodes = (*repeated, get_enabled(call.block), *keys)
            yield f"module.{name}", call, [node for node in nodes if node is not None]
    for name, output in declarations.outputs.items():
        rules = [node for rule in output.preconditions for node in walk_expressions(rule.body)]
        yield f"output.{name}", output, [output.value, *rules]
    if not module.steps:
        for instance, provider in declarations.providers.items():
            settings = list(walk_expressions(provider.block.body, ("alias",)))
            yield f"provider.{instance}", provider, settings


def _walk_block(block: Block) -> Iterator[Expression]:
    """The expressions of a resource or data block that are evaluated."""
    yield from walk_expressions(block.body, NAMING_ARGUMENTS)
    yield from list_provider_keys([block.get_argument("provider")])


# ── references ──────────────────────────────────────────────────────────────────────────


def collect_refs(nodes: Iterable[Expression], uses: AllUses) -> tuple[Ref, ...]:
    """The references of some expressions, in order, each of them once."""
    refs: dict[Ref, None] = {}
    for node in nodes:
        for reference in uses[node].references:
            ref = _make_ref(reference)
            if ref is not None:
                refs[ref] = None
    return tuple(refs)


def _make_ref(reference: Reference) -> Ref | None:
    """The first words of a reference: two (`var.x`) or three (`data.TYPE.NAME`), and a key."""
    word, steps = reference.root.name, reference.steps
    names = [word]
    word_count = 3 if word in ("data", "ephemeral") else 2
    for step in steps[: word_count - 1]:
        if step.attribute is None:
            return None
        names.append(step.attribute)
    if len(names) < word_count:
        return None
    further_steps = steps[word_count - 1 :]
    key = further_steps[0].key if further_steps else None
    output = None
    if word == "module":
        further_steps = further_steps[1:] if further_steps and key is not None else further_steps
        output = further_steps[0].attribute if further_steps else None
    return Ref(".".join(names), key, output)


def find_targets(module: Module, refs: Iterable[Ref]) -> Iterator[GraphNode]:
    """The nodes that references in a module name. Unknown names are checked elsewhere."""
    for ref in refs:
        word, _, name = ref.name.partition(".")
        if word == "module":
            yield GraphNode(module.steps, ref.name)
            child = module.children.get(name)
            if child is not None:
                outputs = child.declarations.outputs
                for output in (ref.output,) if ref.output in outputs else outputs:
                    yield GraphNode(child.steps, f"output.{output}")
        elif word != "var" or module.steps:
            yield GraphNode(module.steps, ref.name)
