"""`kafkaform graph`: print the dependencies of a configuration in the DOT language."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from ...core.address import Address
from ...core.diagnostics import has_errors
from ...core.errors import ConfigurationError
from ...language.desired import Built
from ...render.dot import render_dot
from ...workflow.configuration.evaluation import Inputs, read_configuration
from ..options.flags import Var, VarFile
from ..terminal.console import Console


def graph(var: Var = [], var_file: VarFile = []) -> None:
    """Print the configuration's dependency graph for Graphviz.

    Arrows point to dependencies. To draw the graph: kafkaform graph | dot -Tsvg > graph.svg
    """
    configuration = read_configuration(Path(), Inputs.read(var, var_file))
    built = configuration.evaluate(offline=True)
    if has_errors(built.desired.diagnostics):
        faults = built.desired.diagnostics
        raise ConfigurationError("the configuration has faults", diagnostics=faults)
    nodes = set(_list_nodes(built))
    # `each`, `path` and the like have no node of their own.
    drawn = (edge for edge in _list_edges(built) if nodes.issuperset(edge))
    Console.make_standard().write(render_dot(nodes, drawn))


def _list_nodes(built: Built) -> Iterator[str]:
    graph = built.run.graph
    yield from map(str, graph.needs)
    yield from (f"var.{name}" for name in graph.modules[()].declarations.variables)


def _list_edges(built: Built) -> Iterator[tuple[str, str]]:
    """References, `depends_on`, and the provider of each object."""
    graph = built.run.graph
    for node, needs in graph.needs.items():
        yield from ((str(node), str(needed)) for needed in needs)
        # The order of evaluation leaves the root's variables out: they have their values before.
        if not node.steps:
            names = {ref.name for ref in graph.refs[node]}
            yield from ((str(node), name) for name in names if name.startswith("var."))
    for item in built.desired.declared:
        block = str(_drop_keys(item.address))
        yield block, f"provider.{item.identity.instance}"
        yield from ((block, str(_drop_keys(needed))) for needed in item.depends_on)


def _drop_keys(address: Address) -> Address:
    """The address of the block, without instance keys."""
    steps = tuple(step.partition("[")[0] for step in address.module)
    return replace(address.resource, module=steps)
