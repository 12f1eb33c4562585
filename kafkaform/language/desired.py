"""From parsed files, variables and schemas to everything that a configuration declares.

A newcomer starts here: `evaluate_tree` tells the story, and each of its lines is a module of
`declare` or `evaluate`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from ..core.canonical import digest
from ..core.diagnostics import Diagnostic, Severity
from ..core.resource import Declared, Desired, Identity, Output, Unread
from ..core.value import EMPTY, FrozenMap, Value
from ..syntax.parse import pause_collector
from .declare.blocks import Declarations, Header, ResourceBlock
from .declare.folder import ParseFile, Tree, parse_configuration
from .declare.folder import load_folder as load_folder
from .declare.modules import Folders, Module, add_modules, link_modules
from .declare.settings import set_aside
from .declare.variables import VarFile, VariableInputs, resolve_variables
from .evaluate.address_blocks import Instructions, check_instructions, evaluate_instructions
from .evaluate.evaluation import check_variables, evaluate_checks, evaluate_run
from .evaluate.evaluation_state import Collector, Run, Schemas, Scope
from .evaluate.fault_context import find_unused_ranges
from .evaluate.graph import GraphNode, build_graph
from .evaluate.name_check import check_names
from .evaluate.outputs import make_root_output
from .evaluate.providers import OWN_PREFIX, DataInfo, ProviderInfo, Query
from .evaluate.resources import Settled, TypeInfo, expand_composites
from .expressions.compilation import make_context as make_context
from .expressions.dependencies import AllUses
from .expressions.references import Unset
from .functions import FunctionTable
from .functions.files import Read, record_reads
from .policy.compilation import Policy
from .values.faults import Poisoned, make_error, make_warning, suggest_near

__all__ = [
    "DataInfo",
    "Folders",
    "VariableInputs",
    "ProviderInfo",
    "Query",
    "Schemas",
    "Settled",
    "Tree",
    "TypeInfo",
    "VarFile",
    "build_desired",
    "load_tree",
]

_SHORT_DIGEST = 12
"""Digits of a digest that only tells two contents apart for people."""


def load_tree(
    files: Mapping[str, bytes],
    folders: Folders | None = None,
    canonicalize: Callable[[str], str] = str,
    parse_file: ParseFile = parse_configuration,
) -> Tree:
    """Parse a folder, and the folders of the modules that it calls.

    files: name without folder -> content. folders: reads another folder; without it modules are not
    read. canonicalize: folder -> the one name of it, for folders that are reached by several paths.
    """
    tree = load_folder(files, parse_file=parse_file)
    if folders is None:
        return tree
    return add_modules(tree, folders, canonicalize, sum(map(len, files.values())), parse_file)


class Built(Struct, frozen=True):
    """An evaluated configuration."""

    run: Run
    """The values of everything."""
    desired: Desired
    """What the configuration declares."""
    policies: tuple[Policy, ...] = ()
    """Its policies, which the caller compiles: the rules of providers are part of them."""


def build_desired(
    tree: Tree,
    inputs: VariableInputs,
    schemas: Schemas,
    read: Read | None = None,
    computed: Settled | None = None,
    query: Query | None = None,
) -> Desired:
    """Everything that the configuration declares, with all its faults.

    read: reads files for functions such as `file`; None turns these functions off. computed:
    str(address) -> the attributes that the server has set, for outputs and postconditions.
    query: answers data sources; without it, what needs an answer is checked for names only.
    """
    return evaluate_tree(tree, inputs, schemas, read, computed, query).desired


@pause_collector()
def evaluate_tree(
    tree: Tree,
    inputs: VariableInputs,
    schemas: Schemas,
    read: Read | None = None,
    computed: Settled | None = None,
    query: Query | None = None,
    *,
    leaves_out: bool = False,
    waits: bool = True,
) -> Built:
    """The same as `build_desired`, with the values of everything.

    leaves_out: blocks are left out (`Desired.unread`) that need a data source whose system cannot
    be reached. waits: see `Run.waits`.
    """
    reads = dict[str, str]()
    functions = FunctionTable(None if read is None else record_reads(read, reads))
    context = make_context(functions)
    faults, uses = Collector(context.budget), AllUses()

    # Faults that the text alone shows. They are added first, so that evaluation does not report
    # the same places again.
    kept_tree, skipping = set_aside(tree, (*schemas.providers, OWN_PREFIX))
    linked = link_modules(kept_tree, tuple(schemas.providers), skipping)
    root = linked.root
    faults.add_static((*tree.diagnostics, *linked.faults, *skipping.warn()))
    faults.add_static(_find_unknown_types(root, schemas))
    graph = build_graph(root, schemas.types, schemas.data, uses)
    faults.unused = find_unused_ranges(graph, skipping, uses)
    faults.add_static(check_names(root, schemas, functions, uses))

    # Values: the root's variables, then everything else, each after what it needs.
    variables = resolve_variables(tree, root.declarations.variables, inputs, context)
    for fault in variables.diagnostics:
        faults.add(fault)
    run = Run(graph, schemas, context, context.budget, faults, variables, query, computed or {})
    run.leaves_out, run.waits = leaves_out, waits
    evaluate_run(run)
    if root.children:
        check_variables(run)
    return Built(run, _make_desired(run, tree, inputs, reads))


def _make_desired(
    run: Run, tree: Tree, inputs: VariableInputs, reads: Mapping[str, str]
) -> Desired:
    """What the configuration declares, when all values are known. Stages without blocks are left
    out."""
    all_declarations = [module.declarations for module in run.graph.modules.values()]
    declared, outputs, instructions = _collect_declared(run), tuple[Output, ...](), Instructions()
    if run.graph.modules[()].declarations.outputs:
        outputs = tuple(_list_outputs(run.root))
    if any(
        declarations.removed or declarations.moved or declarations.imports
        for declarations in all_declarations
    ):
        instructions = evaluate_instructions(run)
        check_instructions(instructions, run)
    if any(declarations.checks for declarations in all_declarations):
        evaluate_checks(run)
    whole_digest, sources = "", EMPTY
    if inputs.partial:
        # What variables without a value would say is not known, so nothing is digested.
        _warn_unset(run)
    else:
        whole_digest, sources = _digest_sources(tree, reads, run.variables.plain)
    causes = _find_unread(run) if run.unread else {}
    return Desired(
        declared,
        {name: config for name, config in run.providers.items() if config is not None},
        tuple(instruction for instruction, _ in instructions.removed),
        tuple(instruction for instruction, _ in instructions.moved),
        tuple(instruction for instruction, _ in instructions.imports),
        (*outputs, *_list_unread_outputs(run, causes)),
        run.faults.diagnostics,
        whole_digest,
        tuple(
            Unread(node.as_address, cause.summary)
            for node, cause in causes.items()
            if isinstance(run.graph.declared[node], ResourceBlock) and not node.is_data
        ),
        any(output.deferred for output in outputs) or any(map(_has_rules, all_declarations)),
        sources,
    )


def _find_unread(run: Run) -> Mapping[GraphNode, Diagnostic]:
    """Everything that needs a data source which could not be read, with the warning about that."""
    causes = dict(run.unread)
    # Each node comes after what it needs.
    for node in run.graph.order:
        cause = next((causes[need] for need in run.graph.needs[node] if need in causes), None)
        if cause is not None:
            causes.setdefault(node, cause)
    return causes


def _list_unread_outputs(run: Run, causes: Mapping[GraphNode, Diagnostic]) -> Iterator[Output]:
    """The outputs of the root that have no value because a data source could not be read."""
    for name, block in run.root.module.declarations.outputs.items():
        poisoned = isinstance(run.root.outputs.get(name, Poisoned()), Poisoned)
        if poisoned and GraphNode((), f"output.{name}") in causes:
            yield Output(name, None, block.sensitive, deferred=True)


def _digest_sources(
    tree: Tree, reads: Mapping[str, str], variables: Mapping[str, Value]
) -> tuple[str, FrozenMap]:
    """The digest of everything that the configuration was made of, and `Desired.sources`. Two plans
    with one digest are plans of the same text, files and variables."""
    contents = tree.contents.items()
    files = {name: hashlib.sha256(content).hexdigest() for name, content in contents}
    made_of = {
        "files": FrozenMap(files),
        "read": FrozenMap(reads),
        "variables": FrozenMap(variables),
    }
    values = {f"var.{name}": digest(value) for name, value in variables.items()}
    digests = {**reads, **files, **values}
    short_digests = FrozenMap({name: text[:_SHORT_DIGEST] for name, text in digests.items()})
    return digest(FrozenMap(made_of)), short_digests


def _has_rules(declarations: Declarations) -> bool:
    """Whether a rule may have to wait for an attribute that the server sets."""
    return bool(
        declarations.checks
        or any(
            resource.preconditions or resource.postconditions
            for resource in declarations.resources.values()
        )
        or any(output.preconditions for output in declarations.outputs.values())
    )


# ── what is not installed ───────────────────────────────────────────────────────────────


def _find_unknown_types(root: Module, schemas: Schemas) -> Iterator[Diagnostic]:
    """Resource types, data sources and providers that are not installed. In Terraform's files, only
    those of installed providers are left here."""
    # A folder that is called several times is looked at once.
    for module in {module.folder: module for module in root.walk_modules()}.values():
        declarations = module.declarations
        checked = [check.data for check in declarations.checks.values() if check.data is not None]
        sources = (*declarations.data.values(), *checked)
        named = (
            (
                "resource type",
                [(a.type, declaration) for a, declaration in declarations.resources.items()],
                schemas.types,
            ),
            (
                "data source",
                [(declaration.address.type, declaration) for declaration in sources],
                schemas.data,
            ),
            (
                "provider",
                [
                    (declaration.name, declaration)
                    for declaration in declarations.providers.values()
                ],
                schemas.providers,
            ),
        )
        for kind, blocks, installed in named:
            for name, declaration in blocks:
                if name not in installed:
                    advice = suggest_near(name, installed)
                    location = declaration.block.labels[0]
                    yield make_error(location, f'There is no {kind} "{name}"', advice=advice)


# ── what is declared ────────────────────────────────────────────────────────────────────


def _collect_declared(run: Run) -> tuple[Declared, ...]:
    """All objects, in the order of the files; two blocks for one object are reported."""
    declared: list[Declared] = []
    owners: dict[Identity, Declared] = {}
    for steps, scopes in run.scopes.items():
        for scope in scopes:
            for address in scope.module.declarations.resources:
                instances = scope.instances.get(address, Poisoned())
                if isinstance(instances, Poisoned):
                    continue
                plan = run.resources[steps][address]
                instance = plan.provider.instance
                if instance not in run.providers:  # no provider block configures it
                    run.get_provider(instance, plan.block)
                if plan.info.expand is None:
                    items: Iterable[Declared] = (instance.declared for instance in instances)
                else:
                    items = expand_composites(plan, instances, scope.report)
                for item in items:
                    declared.append(item)
                    first = owners.setdefault(item.identity, item)
                    # Other blocks can declare the parts of a composite, too.
                    if first is not item and None is item.address.child is first.address.child:
                        scope.report(_make_same_object_fault(plan.block, first, item))
    return tuple(declared)


def _make_same_object_fault(block: ResourceBlock, first: Declared, second: Declared) -> Diagnostic:
    return make_error(
        Header(block.block),
        f"{second.address} and {first.address} are the same object: {second.identity}",
        f"{first.address} is declared at {first.range}, {second.address} at {second.range}.",
        "Keep one of the two, or give them different names.",
        address=str(second.address),
    )


def _list_outputs(root: Scope) -> Iterator[Output]:
    for name, block in root.module.declarations.outputs.items():
        output = make_root_output(block, root.outputs.get(name, Poisoned()), root.report)
        if output is not None:
            yield output


def _warn_unset(run: Run) -> None:
    """One warning for all variables without a value, and one for all data sources that were not
    read. Each knows the places of their blocks."""
    declared, values = run.graph.modules[()].declarations.variables, run.variables.values
    unset_blocks = {n: declared[n].block for n in sorted(values) if isinstance(values[n], Unset)}
    unread_blocks = {
        module.render_label(f"data.{address}"): resource.block
        for module in run.graph.modules.values()
        for address, resource in module.declarations.data.items()
    }
    lists = (
        ("variable", "no value", unset_blocks),
        ("data source", "not been read", unread_blocks),
    )
    for noun, predicate, blocks in lists:
        warnings = tuple(
            make_warning(
                Header(block),
                f"1 {noun} has {predicate}: {name}",
                "What depends on it was checked for names only.",
            )
            for name, block in blocks.items()
        )
        if len(warnings) == 1:
            run.faults.add(warnings[0])
        elif warnings:
            run.faults.add(
                Diagnostic(
                    Severity.WARNING,
                    f"{len(warnings)} {noun}s have {predicate}: {', '.join(sorted(blocks))}",
                    "What depends on them was checked for names only.",
                    places=warnings,
                )
            )
