"""The one door out: a parsed folder, inputs and schemas become what is desired.

The story: declarations → names checked → order of references → variables → locals and resources
in that order → provider blocks → outputs, removed, moved, import → the whole checked together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core.canonical import digest
from ..core.diagnostics import Diagnostic, Severity
from ..core.resource import Declared, Desired, Identity, Output, ProviderConfig
from ..core.schema import ObjectSchema
from ..core.value import FrozenMap, Value
from .arguments import compile_arguments, deferred_fault, evaluate_arguments
from .blocks import header, title
from .check import Names, check_names
from .collect import Collector
from .declare import Declarations, ProviderBlock, declare
from .evaluate import context as make_context
from .faults import Deferred, Poisoned, error, near
from .functions import function_table
from .functions.files import Read
from .lifecycle import Instructions, check_instructions, instructions
from .limits import Budget
from .outputs import evaluate_output
from .resources import ResourcePlan, Settled, TypeInfo, expanded, published
from .run import Run, evaluate, evaluate_local
from .scope import Unset
from .tree import Tree, load
from .variables import Inputs, VarFile, resolve

__all__ = ["Inputs", "Settled", "Tree", "TypeInfo", "VarFile", "build", "load"]


def build(
    tree: Tree,
    inputs: Inputs,
    schemas: Mapping[str, TypeInfo],
    provider_schemas: Mapping[str, ObjectSchema],
    read: Read | None = None,
    computed: Settled | None = None,
) -> Desired:
    """Everything that the configuration says, with all its faults.

    schemas: by resource type; provider_schemas: by provider name; read: reads the files that
    functions name, None turns them off; computed: str(address) -> attributes that the server
    has set, for outputs.
    """
    found, structure = declare(tree)
    reads: dict[str, str] = {}
    table = function_table(None if read is None else _recording(read, reads))
    context = make_context(table)
    faults = Collector()
    faults.add_static((*tree.diagnostics, *structure))
    faults.add_static(_type_faults(found, schemas, provider_schemas))
    names = Names(found, {name: info.schema for name, info in schemas.items()}, table)
    faults.add_static(check_names(names))
    variables = resolve(tree, found.variables, inputs, context)
    for fault in variables.diagnostics:
        faults.add(fault)
    run = Run(found, schemas, context, Budget(), faults, variables)
    run.resources = {name: {} for name in schemas}
    evaluate(run)
    providers = _providers(run, provider_schemas)
    declared = _declared(run)
    outputs = _outputs(run, computed)
    told = instructions(found, schemas, context, run.env(), faults.add)
    addresses = {a: [one.declared.address for one in made] for a, made in run.made.items()}
    check_instructions(told, found, addresses, faults.add)
    if inputs.partial:
        _count_unset(run)
    return _desired(run, tree, declared, providers, outputs, told, reads)


def _desired(
    run: Run,
    tree: Tree,
    declared: tuple[Declared, ...],
    providers: Mapping[str, ProviderConfig],
    outputs: tuple[Output, ...],
    told: Instructions,
    reads: Mapping[str, str],
) -> Desired:
    made_of = {
        "files": FrozenMap(tree.digests),
        "read": FrozenMap(reads),
        "variables": FrozenMap(run.variables.plain),
    }
    return Desired(
        declared,
        providers,
        told.removed,
        told.moved,
        told.imports,
        outputs,
        run.faults.diagnostics,
        digest(FrozenMap(made_of)),
    )


def _recording(read: Read, reads: dict[str, str]) -> Read:
    """Notes the digest of each file that is read, as part of the configuration's own."""

    def recorded(path: str) -> bytes:
        content = read(path)
        reads[path] = digest(content.hex())
        return content

    return recorded


def _type_faults(
    found: Declarations,
    schemas: Mapping[str, TypeInfo],
    provider_schemas: Mapping[str, ObjectSchema],
) -> Iterator[Diagnostic]:
    for address, resource in found.resources.items():
        if address.type not in schemas:
            yield error(
                resource.block.labels[0],
                f'There is no resource type "{address.type}"',
                advice=near(address.type, schemas),
            )
    for provider in found.providers.values():
        if provider.name not in provider_schemas:
            yield error(
                provider.block.labels[0],
                f'There is no provider "{provider.name}"',
                advice=near(provider.name, provider_schemas),
            )


# ── the rest ────────────────────────────────────────────────────────────────────────────


def _providers(run: Run, schemas: Mapping[str, ObjectSchema]) -> Mapping[str, ProviderConfig]:
    """Every provider instance, and the default ones that resources use without a block."""
    configs: dict[str, ProviderConfig] = {}
    for instance, block in run.found.providers.items():
        if block.name in schemas:
            config = _provider(run, block, schemas[block.name])
            if config is not None:
                configs[instance] = config
    for plan in run.plans.values():
        if plan.instance not in run.found.providers and plan.instance in schemas:
            configs.setdefault(plan.instance, _default_provider(run, plan, schemas[plan.instance]))
    return configs


def _provider(run: Run, block: ProviderBlock, schema: ObjectSchema) -> ProviderConfig | None:
    place, report = header(block.block), run.faults.add
    arguments = compile_arguments(
        block.block.body, schema, run.context, place, title(block.block), report, ("alias",)
    )
    try:
        config = evaluate_arguments(arguments, run.env(), report, f"provider.{block.instance}")
    except Poisoned:
        return None
    except Deferred as deferred:
        report(deferred_fault(place, deferred, f"provider.{block.instance}"))
        return None
    if config is None:
        return None
    return ProviderConfig(block.name, block.instance, config, place.range)


def _default_provider(run: Run, plan: ResourcePlan, schema: ObjectSchema) -> ProviderConfig:
    place = header(plan.block.block)
    missing = [name for name, a in schema.attributes.items() if a.required and a.default is None]
    if missing:
        run.faults.add(
            error(
                place,
                f"{plan.block.address} needs the provider {plan.instance}, which is not configured",
                f"A provider block with {', '.join(missing)} is missing.",
                f'Write provider "{plan.instance}" {{ {missing[0]} = … }}.',
            )
        )
    defaults: dict[str, Value] = {name: a.default for name, a in schema.attributes.items()}
    defaults.update(dict.fromkeys(schema.blocks))
    return ProviderConfig(plan.instance, plan.instance, FrozenMap(defaults), place.range)


def _declared(run: Run) -> tuple[Declared, ...]:
    """All objects, in the order of the files; two blocks for one object are reported."""
    declared: list[Declared] = []
    owners: dict[Identity, Declared] = {}
    for address in run.found.resources:
        if address not in run.made:
            continue
        for item in expanded(run.plans[address], run.made[address], run.faults.add):
            declared.append(item)
            first = owners.setdefault(item.identity, item)
            if first is not item and item.address.child is None and first.address.child is None:
                run.faults.add(_same_object(run, first, item))
    return tuple(declared)


def _same_object(run: Run, first: Declared, second: Declared) -> Diagnostic:
    block = run.found.resources[second.address.resource].block
    return error(
        header(block),
        f"{second.address} and {first.address} are the same object: {second.identity}",
        f"{first.address} is declared at {first.range}, {second.address} at {second.range}.",
        "Keep one of the two, or give them different names.",
        address=str(second.address),
    )


def _outputs(run: Run, computed: Settled | None) -> tuple[Output, ...]:
    """Every output; with `computed`, local values are evaluated again over what it tells."""
    if computed is not None:
        for address, made in run.made.items():
            found = run.resources[address.type]
            if address.name in found:
                found[address.name] = published(run.plans[address], made, computed)
        env = run.env()
        for name in list(run.locals):
            if not isinstance(run.locals[name], Poisoned):
                run.locals[name] = evaluate_local(run, name, env)
    env = run.env()
    results = (
        evaluate_output(block, run.context, env, run.faults.add)
        for block in run.found.outputs.values()
    )
    return tuple(output for output in results if output is not None)


def _count_unset(run: Run) -> None:
    unset = [name for name, value in run.variables.values.items() if isinstance(value, Unset)]
    if unset:
        names = ", ".join(sorted(unset))
        run.faults.add(
            Diagnostic(
                Severity.WARNING,
                f"{len(unset)} variables have no value: {names}",
                "What depends on them was checked for names only.",
            )
        )
