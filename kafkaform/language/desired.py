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
from ..core.value import FrozenMap
from ..syntax.nodes import Label
from ..syntax.parse import collector_paused
from .declare.blocks import header
from .declare.declarations import Declarations, ResourceBlock
from .declare.folder import Tree
from .declare.folder import load as load_folder
from .declare.modules import Folders, Module, link, with_modules
from .declare.variables import Inputs, VarFile, resolve
from .evaluate.data_blocks import DataInfo, Query
from .evaluate.diagnostics import Collector
from .evaluate.evaluation import check_variables, evaluate, evaluate_checks
from .evaluate.graph import graph
from .evaluate.instructions import Instructions, check_instructions, instructions
from .evaluate.name_check import Names, check_names
from .evaluate.outputs import root_output
from .evaluate.provider_blocks import ProviderInfo
from .evaluate.resources import Settled, TypeInfo, expanded
from .evaluate.run import Run, Schemas
from .expressions.compilation import context as make_context
from .expressions.dependencies import AllUses
from .expressions.namespaces import Unset
from .functions import function_table
from .functions.files import Read, recording
from .functions.spec import Function
from .values.faults import Poisoned, error, near

__all__ = [
    "DataInfo",
    "Folders",
    "Inputs",
    "ProviderInfo",
    "Query",
    "Schemas",
    "Settled",
    "Tree",
    "TypeInfo",
    "VarFile",
    "build",
    "load",
]


def load(
    files: Mapping[str, bytes], folders: Folders | None = None, own: Callable[[str], str] = str
) -> Tree:
    """Parse a folder, and those of the modules that it calls. files: name without folder ->
    content; folders: reads another folder; own: the one name of a folder that has several."""
    tree = load_folder(files)
    if folders is None:
        return tree
    return with_modules(tree, folders, own, sum(map(len, files.values())))


class Built(Struct, frozen=True):
    """run: everything that was evaluated; desired: what it says."""

    run: Run
    desired: Desired


def build(
    tree: Tree,
    inputs: Inputs,
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


@collector_paused()
def evaluate_tree(
    tree: Tree,
    inputs: Inputs,
    schemas: Schemas,
    read: Read | None = None,
    computed: Settled | None = None,
    query: Query | None = None,
) -> Built:
    """The same, with the values of everything (see `build`)."""
    reads = dict[str, str]()
    table = function_table(None if read is None else recording(read, reads))
    context = make_context(table)
    faults, uses = Collector(context.budget), AllUses()
    linked = link(tree, tuple(schemas.providers))
    faults.add_static((*tree.diagnostics, *linked.faults))
    faults.add_static(_unknown(linked.root, schemas))
    faults.add_static(_misnamed(linked.root, schemas, table, uses))
    variables = resolve(tree, linked.root.found.variables, inputs, context)
    for fault in variables.diagnostics:
        faults.add(fault)
    order = graph(linked.root, schemas.types, schemas.data, uses)
    run = Run(order, schemas, context, context.budget, faults, variables, query, computed or {})
    evaluate(run)
    check_variables(run)
    declared = _declared(run)
    outputs = tuple(_outputs(run))
    told = instructions(run)
    if told != Instructions():
        check_instructions(told, run)
    evaluate_checks(run)
    if inputs.partial:
        _count_unset(run)
    made_of = {
        "files": FrozenMap(tree.digests),
        "read": FrozenMap(reads),
        "variables": FrozenMap(variables.plain),
    }
    desired = Desired(
        declared,
        {name: config for name, config in run.providers.items() if config is not None},
        tuple(one for one, _ in told.removed),
        tuple(one for one, _ in told.moved),
        tuple(one for one, _ in told.imports),
        outputs,
        faults.diagnostics,
        digest(FrozenMap(made_of)),
        any(output.deferred for output in outputs) or _has_rules(linked.root),
    )
    return Built(run, desired)


def _has_rules(root: Module) -> bool:
    """Whether any rule could wait for what a server sets."""
    return any(
        module.found.checks
        or any(one.preconditions or one.postconditions for one in module.found.resources.values())
        or any(output.preconditions for output in module.found.outputs.values())
        for module in root.walk()
    )


# ── what is not installed ───────────────────────────────────────────────────────────────


def _misnamed(
    root: Module, schemas: Schemas, functions: Mapping[str, Function], uses: AllUses
) -> Iterator[Diagnostic]:
    """Unknown names in expressions; modules of one folder say the same, so it is told once."""
    types = {name: info.schema for name, info in schemas.types.items()}
    data = {name: info.schema for name, info in schemas.data.items()}
    for module in root.walk():
        yield from check_names(Names(module, types, data, functions, uses))


def _unknown(root: Module, schemas: Schemas) -> Iterator[Diagnostic]:
    """Types and providers that are not installed: skipped in Terraform's files, else errors."""
    skipped: dict[str, list[str]] = {}
    for folder in {module.folder: module for module in root.walk()}.values():
        for kind, name, place, known in _named(folder.found, schemas):
            provider = name.partition("_")[0]
            if name in known:
                continue
            if folder.terraform and provider not in schemas.providers:
                skipped.setdefault(provider, []).append(str(place.range))
            else:
                advice = near(name, known)
                yield error(place, f'There is no {kind} "{name}"', advice=advice)
    for provider, places in sorted(skipped.items()):
        yield _skipped(provider, places)


def _named(
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


def _skipped(provider: str, places: list[str]) -> Diagnostic:
    shown = ", ".join(places[:5]) + (f" and {len(places) - 5} more" if len(places) > 5 else "")
    blocks = "1 block" if len(places) == 1 else f"{len(places)} blocks"
    return Diagnostic(
        Severity.WARNING,
        f'{blocks} of the provider "{provider}" {"is" if len(places) == 1 else "are"} skipped',
        f"kafkaform has no such provider. Skipped: {shown}.",
        advice="They stay with the tool that manages them; nothing here reads or changes them.",
    )


# ── the rest ────────────────────────────────────────────────────────────────────────────


def _declared(run: Run) -> tuple[Declared, ...]:
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
                run.provider(plan.instance, plan.block)
                for item in expanded(plan, made, scope.report):
                    declared.append(item)
                    first = owners.setdefault(item.identity, item)
                    if first is not item and None is item.address.child is first.address.child:
                        scope.report(_same_object(plan.block, first, item))
    return tuple(declared)


def _same_object(block: ResourceBlock, first: Declared, second: Declared) -> Diagnostic:
    return error(
        header(block.block),
        f"{second.address} and {first.address} are the same object: {second.identity}",
        f"{first.address} is declared at {first.range}, {second.address} at {second.range}.",
        "Keep one of the two, or give them different names.",
        address=str(second.address),
    )


def _outputs(run: Run) -> Iterator[Output]:
    root = run.root
    for name, block in root.module.found.outputs.items():
        output = root_output(block, root.outputs.get(name, Poisoned()), root.report)
        if output is not None:
            yield output


def _count_unset(run: Run) -> None:
    unset = [name for name, value in run.variables.values.items() if isinstance(value, Unset)]
    modules = run.graph.modules.values()
    unread = [module.label(f"data.{one}") for module in modules for one in module.found.data]
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
