"""The one door out: a parsed folder, inputs and schemas become what is desired.

The story: declarations of all modules → names checked → order of references → variables →
everything in that order → removed, moved, import → checks → the whole checked together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from msgspec import Struct

from ..core.canonical import digest
from ..core.diagnostics import Diagnostic, Severity
from ..core.resource import Declared, Desired, Identity, Output
from ..core.value import FrozenMap, Value
from ..syntax.nodes import Label
from ..syntax.parse import pause_collector
from .declare.blocks import make_header
from .declare.declarations import Declarations, ResourceBlock
from .declare.folder import Tree
from .declare.folder import load_folder as load_folder
from .declare.modules import Folders, Module, add_modules, link_modules
from .declare.variables import VarFile, VariableInputs, resolve_variables
from .evaluate.data_blocks import DataInfo, Query
from .evaluate.diagnostics import Collector
from .evaluate.evaluation import check_variables, evaluate_checks, evaluate_run
from .evaluate.graph import build_graph
from .evaluate.instructions import Instructions, check_instructions, evaluate_instructions
from .evaluate.name_check import Names, check_names
from .evaluate.outputs import make_root_output
from .evaluate.provider_blocks import ProviderInfo
from .evaluate.resources import Settled, TypeInfo, expand_composites
from .evaluate.run import Run, Schemas
from .expressions.compilation import make_context as make_context
from .expressions.dependencies import AllUses
from .expressions.namespaces import Unset
from .functions import make_function_table
from .functions.files import Read, record_reads
from .functions.spec import Function
from .values.faults import Poisoned, make_error, suggest_near

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


def load_tree(
    files: Mapping[str, bytes], folders: Folders | None = None, own: Callable[[str], str] = str
) -> Tree:
    """Parse a folder, and those of the modules that it calls. files: name without folder ->
    content; folders: reads another folder; own: the one name of a folder that has several."""
    tree = load_folder(files)
    if folders is None:
        return tree
    return add_modules(tree, folders, own, sum(map(len, files.values())))


class Built(Struct, frozen=True):
    """run: everything that was evaluated; desired: what it says."""

    run: Run
    desired: Desired


def build_desired(
    tree: Tree,
    inputs: VariableInputs,
    schemas: Schemas,
    read: Read | None = None,
    computed: Settled | None = None,
    query: Query | None = None,
) -> Desired:
    """Everything that the configuration says, with all its faults.

    read: reads the files that functions name, None turns them off; computed: str(address) ->
    attributes that the server has set, for outputs and postconditions; query: answers data
    sources, without it what needs them is checked for names only.
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
) -> Built:
    """The same, with the values of everything (see `build_desired`)."""
    reads = dict[str, str]()
    table = make_function_table(None if read is None else record_reads(read, reads))
    context = make_context(table)
    faults, uses = Collector(context.budget), AllUses()
    linked = link_modules(tree, tuple(schemas.providers))
    faults.add_static((*tree.diagnostics, *linked.faults))
    faults.add_static(_find_unknown_types(linked.root, schemas))
    faults.add_static(_find_unknown_names(linked.root, schemas, table, uses))
    variables = resolve_variables(tree, linked.root.found.variables, inputs, context)
    for fault in variables.diagnostics:
        faults.add(fault)
    order = build_graph(linked.root, schemas.types, schemas.data, uses)
    run = Run(order, schemas, context, context.budget, faults, variables, query, computed or {})
    evaluate_run(run)
    check_variables(run)
    declared = _collect_declared(run)
    outputs = tuple(_list_outputs(run))
    told = evaluate_instructions(run)
    if told != Instructions():
        check_instructions(told, run)
    evaluate_checks(run)
    if inputs.partial:
        _warn_unset(run)
    desired = Desired(
        declared,
        {name: config for name, config in run.providers.items() if config is not None},
        tuple(one for one, _ in told.removed),
        tuple(one for one, _ in told.moved),
        tuple(one for one, _ in told.imports),
        outputs,
        faults.diagnostics,
        # What variables without a value would say is not known, so nothing is digested.
        "" if inputs.partial else _digest_sources(tree, reads, variables.plain),
        any(output.deferred for output in outputs) or _has_rules(linked.root),
    )
    return Built(run, desired)


def _digest_sources(tree: Tree, reads: Mapping[str, str], variables: Mapping[str, Value]) -> str:
    """The digest of everything that the configuration was made of."""
    import hashlib  # noqa: PLC0415  # it loads OpenSSL, and `validate` needs no digest

    contents = tree.contents.items()
    files = {name: hashlib.sha256(content).hexdigest() for name, content in contents}
    made_of = {
        "files": FrozenMap(files),
        "read": FrozenMap(reads),
        "variables": FrozenMap(variables),
    }
    return digest(FrozenMap(made_of))


def _has_rules(root: Module) -> bool:
    """Whether any rule could wait for what a server sets."""
    return any(
        module.found.checks
        or any(one.preconditions or one.postconditions for one in module.found.resources.values())
        or any(output.preconditions for output in module.found.outputs.values())
        for module in root.walk_modules()
    )


# ── what is not installed ───────────────────────────────────────────────────────────────


def _find_unknown_names(
    root: Module, schemas: Schemas, functions: Mapping[str, Function], uses: AllUses
) -> Iterator[Diagnostic]:
    """Unknown names in expressions; modules of one folder say the same, so it is told once."""
    types = {name: info.schema for name, info in schemas.types.items()}
    data = {name: info.schema for name, info in schemas.data.items()}
    for module in root.walk_modules():
        yield from check_names(Names(module, types, data, functions, uses))


def _find_unknown_types(root: Module, schemas: Schemas) -> Iterator[Diagnostic]:
    """Types and providers that are not installed: skipped in Terraform's files, else errors."""
    skipped: dict[str, list[str]] = {}
    for folder in {module.folder: module for module in root.walk_modules()}.values():
        for kind, name, place, known in _list_block_types(folder.found, schemas):
            provider = name.partition("_")[0]
            if name in known:
                continue
            if folder.terraform and provider not in schemas.providers:
                skipped.setdefault(provider, []).append(str(place.range))
            else:
                advice = suggest_near(name, known)
                yield make_error(place, f'There is no {kind} "{name}"', advice=advice)
    for provider, places in sorted(skipped.items()):
        yield _make_skipped_warning(provider, places)


def _list_block_types(
    found: Declarations, schemas: Schemas
) -> Iterator[tuple[str, str, Label, Collection[str]]]:
    """What kind of thing each block's first label names, the name, its place, the known ones."""
    for address, resource in found.resources.items():
        yield "resource type", address.type, resource.block.labels[0], schemas.types
    for address, source in found.data.items():
        yield "data source", address.type, source.block.labels[0], schemas.data
    for check in found.checks.values():
        if check.data is not None:
            label = check.data.block.labels[0]
            yield "data source", check.data.address.type, label, schemas.data
    for provider in found.providers.values():
        yield "provider", provider.name, provider.block.labels[0], schemas.providers


def _make_skipped_warning(provider: str, places: list[str]) -> Diagnostic:
    shown = ", ".join(places[:5]) + (f" and {len(places) - 5} more" if len(places) > 5 else "")
    blocks = "1 block" if len(places) == 1 else f"{len(places)} blocks"
    return Diagnostic(
        Severity.WARNING,
        f'{blocks} of the provider "{provider}" {"is" if len(places) == 1 else "are"} skipped',
        f"kafkaform has no such provider. Skipped: {shown}.",
        advice="They stay with the tool that manages them; nothing here reads or changes them.",
    )


# ── the rest ────────────────────────────────────────────────────────────────────────────


def _collect_declared(run: Run) -> tuple[Declared, ...]:
    """All objects, in the order of the files; two blocks for one object are reported."""
    declared: list[Declared] = []
    owners: dict[Identity, Declared] = {}
    for steps, scopes in run.scopes.items():
        for scope in scopes:
            for address in scope.module.found.resources:
                made = scope.made.get(address, Poisoned())
                if isinstance(made, Poisoned):
                    continue
                plan = run.resources[steps][address]
                run.get_provider(plan.instance, plan.block)
                for item in expand_composites(plan, made, scope.report):
                    declared.append(item)
                    first = owners.setdefault(item.identity, item)
                    if first is not item and None is item.address.child is first.address.child:
                        scope.report(_make_same_object_fault(plan.block, first, item))
    return tuple(declared)


def _make_same_object_fault(block: ResourceBlock, first: Declared, second: Declared) -> Diagnostic:
    return make_error(
        make_header(block.block),
        f"{second.address} and {first.address} are the same object: {second.identity}",
        f"{first.address} is declared at {first.range}, {second.address} at {second.range}.",
        "Keep one of the two, or give them different names.",
        address=str(second.address),
    )


def _list_outputs(run: Run) -> Iterator[Output]:
    root = run.root
    for name, block in root.module.found.outputs.items():
        output = make_root_output(block, root.outputs.get(name, Poisoned()), root.report)
        if output is not None:
            yield output


def _warn_unset(run: Run) -> None:
    unset = [name for name, value in run.variables.values.items() if isinstance(value, Unset)]
    modules = run.graph.modules.values()
    unread = [module.render_label(f"data.{one}") for module in modules for one in module.found.data]
    told = (("variable", "no value", unset), ("data source", "not been read", unread))
    for what, lack, names in told:
        if names:
            many = f"1 {what} has" if len(names) == 1 else f"{len(names)} {what}s have"
            run.faults.add(
                Diagnostic(
                    Severity.WARNING,
                    f"{many} {lack}: {', '.join(sorted(names))}",
                    "What depends on them was checked for names only.",
                )
            )
