"""What a folder declares: `kafkaform graph` prints its dependencies in the DOT language, `kafkaform
providers` lists its provider instances, and `providers schema` and `providers json-schema` show
their schemas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from ... import editor
from ...core.address import Address
from ...core.diagnostics import has_errors
from ...core.errors import ConfigurationError
from ...core.resource import ProviderConfig
from ...core.schema import AttributeSchema, ObjectSchema, make_schema
from ...language.declare.top_level import declare_blocks
from ...language.desired import Built
from ...language.evaluate.providers import OUTPUTS, OUTPUTS_SCHEMA, OWN_PREFIX
from ...provider.registry import Registry
from ...render.terraform import make_provider_json, render_dot
from ...render.text import inline, render_json, render_table
from ...workflow.configuration.evaluation import Inputs, collect_schemas, read_configuration
from ..options.flags import Var, VarFile
from ..terminal.console import Console

app = typer.Typer(help="List the folder's providers, and show their schemas.")
ADDRESS = "bootstrap_servers"
"""The setting with the address of an instance."""


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


@app.callback(invoke_without_command=True)
def providers(context: typer.Context, var: Var = [], var_file: VarFile = []) -> None:
    """List the configuration's provider instances, with package and address.

    Works offline. `providers schema` shows what their blocks and objects can contain.
    """
    if context.invoked_subcommand is not None:
        return
    console = Console.make_standard()
    configuration = read_configuration(Path(), Inputs.read(var, var_file))
    desired = configuration.evaluate(offline=True).desired
    if has_errors(desired.diagnostics):
        raise ConfigurationError("the configuration has faults", diagnostics=desired.diagnostics)
    declared = declare_blocks(configuration.tree)[0].providers
    blocks = {
        name: block.name
        for name, block in declared.items()
        # The instances of a block with for_each are listed, if their keys are known offline.
        if not any(instance.startswith(f"{name}[") for instance in desired.providers)
    }
    # A block whose variables have no value offline is listed, although it cannot be evaluated.
    used = blocks | {instance: config.name for instance, config in desired.providers.items()}
    if not used:
        console.write("The configuration uses no provider.")
    rows = [
        [
            inline(instance),
            f"{name} ({configuration.registry.describe_package(name)})",
            _render_address(desired.providers, instance),
        ]
        for instance, name in sorted(used.items())
    ]
    console.write_lines(
        render_table([["instance", "provider", "connects to"], *rows] if rows else [])
    )


def _render_address(configs: Mapping[str, ProviderConfig], instance: str) -> str:
    if instance not in configs:
        return "(needs variables that have no value)"
    addresses = configs[instance].config.get(ADDRESS) or ()
    return inline(", ".join(map(str, addresses)))


@app.command()
def schema(
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Show the schemas of providers, resources and data sources.

    Includes all installed providers, whether or not the configuration uses them.
    """
    # Not only those of the configuration: a user looks here before writing the first block.
    registry, console = Registry(), Console.make_standard()
    loaded = {name: registry.load(name) for name in registry.names}
    if json:
        schemas = {
            name: make_provider_json(
                provider.config,
                {kind: item.schema for kind, item in provider.types.items()},
                provider.data,
            )
            for name, provider in loaded.items()
        }
        own = {OUTPUTS: OUTPUTS_SCHEMA}
        schemas[OWN_PREFIX] = make_provider_json(make_schema(""), {}, own)
        console.write(render_json({"format_version": "1.0", "provider_schemas": schemas}))
        return
    for name, provider in loaded.items():
        kinds = {kind: item.schema for kind, item in provider.types.items()}
        for title, item in (
            (f'provider "{name}"', provider.config),
            *((f'resource "{kind}"', item) for kind, item in kinds.items()),
            *((f'data "{kind}"', item) for kind, item in provider.data.items()),
        ):
            _show_schema(console, title, item)
    # No provider answers it.
    _show_schema(console, f'data "{OUTPUTS}"', OUTPUTS_SCHEMA)


def _show_schema(console: Console, title: str, item: ObjectSchema) -> None:
    console.write_lines([title, *render_table(list(_list_rows(item))), ""])


@app.command("json-schema")
def json_schema(
    repository: Annotated[
        bool, typer.Option("--repository", help="Print that of kafkaform.json instead.")
    ] = False,
) -> None:
    """Print the JSON Schema of *.kf.json files.

    Editors and other tools use it. Includes all installed providers.
    """
    schema = editor.json_schema
    make = schema.make_repository_schema if repository else schema.make_json_schema
    registry, console = Registry(), Console.make_standard()
    loaded = {name: registry.load(name) for name in registry.names}
    console.write(render_json(make(collect_schemas(loaded))))


def _list_rows(item: ObjectSchema, outer: str = "") -> Iterator[list[str]]:
    for name, attribute in sorted(item.attributes.items()):
        yield [f"  {outer}{name}", str(attribute.type), _describe_origin(attribute)]
    for name, inner in item.blocks.items():
        yield from _list_rows(inner, f"{outer}{name}.")


def _describe_origin(attribute: AttributeSchema) -> str:
    if attribute.required:
        return "required"
    return "computed" if attribute.computed else ""
