"""Top-level blocks to declarations; expressions stay unevaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ...core.address import Address
from ...core.diagnostics import Diagnostic, Diagnostics
from ...syntax.nodes import Block, Expression, Lit, Object
from ..values.faults import error, near, warning
from .addresses import spelled
from .blocks import (
    DATA_LIFECYCLE,
    LIFECYCLE,
    REMOVED_LIFECYCLE,
    RULE,
    SHAPES,
    Shape,
    attribute,
    header,
    shape_faults,
    single,
    title,
)
from .declarations import (
    CheckBlock,
    Declarations,
    ImportBlock,
    ModuleBlock,
    MovedBlock,
    OutputBlock,
    ProviderBlock,
    RemovedBlock,
    ResourceBlock,
    VariableBlock,
)
from .folder import Tree


def declare(tree: Tree) -> tuple[Declarations, Diagnostics]:
    """What the configuration files declare, and the faults of their structure."""
    found = Declarations()
    faults: list[Diagnostic] = []
    for file in tree.configuration:
        for name, item in file.body.attributes.items():
            faults.append(
                error(item, f'"{name}" stands outside of any block', advice=_belongs(name))
            )
        for block in file.body.blocks:
            if block.type == "terraform" and tree.terraform:
                continue
            faults.extend(_declare(block, found))
    return found, tuple(faults)


def _belongs(name: str) -> str:
    return f"Write locals {{ {name} = … }}, or put values of variables into *.auto.kfvars.hcl."


def _declare(block: Block, found: Declarations) -> Iterator[Diagnostic]:
    if block.type not in SHAPES:
        yield _unknown_block(block)
        return
    faults = list(shape_faults(block, SHAPES[block.type]))
    yield from faults
    if not faults or block.type == "variable" and len(block.labels) == 1:
        yield from _DECLARERS[block.type](block, found)


def _unknown_block(block: Block) -> Diagnostic:
    if block.type == "terraform":
        return warning(header(block), "The terraform block is not used", advice="Remove it.")
    return error(
        header(block),
        f'There are no "{block.type}" blocks',
        f"The blocks are {', '.join(SHAPES)}.",
        near(block.type, SHAPES),
    )


def _twice(block: Block, first: Block, what: str) -> Diagnostic:
    return error(
        header(block),
        f"{what} is declared twice",
        f"The first one is at {first.header_range}.",
        "Rename or remove one of the two.",
    )


def _flag(block: Block, name: str, default: bool) -> tuple[bool, Diagnostics]:
    """An argument that must be written as true or false."""
    given = attribute(block, name)
    if given is None:
        return default, ()
    if isinstance(given, Lit) and isinstance(given.value, bool):
        return given.value, ()
    return default, (error(given, f'"{name}" must be true or false, written out'),)


def _rules(block: Block | None, kind: str) -> tuple[tuple[Block, ...], Diagnostics]:
    """The nested rules of a kind that have their shape, and the faults of the others."""
    inside = () if block is None else block.body.blocks
    rules = [inner for inner in inside if inner.type == kind]
    faults = {id(rule): tuple(shape_faults(rule, RULE)) for rule in rules}
    sound = tuple(rule for rule in rules if not faults[id(rule)])
    return sound, tuple(fault for found in faults.values() for fault in found)


def _variable(block: Block, found: Declarations) -> Iterator[Diagnostic]:
    name = block.labels[0].text
    flags = {}
    for flag, usual in (("sensitive", False), ("nullable", True), ("ephemeral", False)):
        flags[flag], faults = _flag(block, flag, usual)
        yield from faults
    if name in found.variables:
        yield _twice(block, found.variables[name].block, f'The variable "{name}"')
        return
    validations, faults = _rules(block, "validation")
    yield from faults
    found.variables[name] = VariableBlock(
        name,
        block,
        attribute(block, "type"),
        attribute(block, "default"),
        flags["sensitive"],
        flags["nullable"],
        validations,
        attribute(block, "deprecated"),
        flags["ephemeral"],
    )


def _locals(block: Block, found: Declarations) -> Iterator[Diagnostic]:
    for inner in block.body.blocks:
        yield error(header(inner), "A locals block holds values only")
    for name, item in block.body.attributes.items():
        if name in found.locals:
            yield error(
                item,
                f'The local value "{name}" is declared twice',
                f"The first one is at {found.locals[name].range}.",
            )
        else:
            found.locals[name] = item


def _provider(block: Block, found: Declarations) -> Iterator[Diagnostic]:
    name = block.labels[0].text
    alias = attribute(block, "alias")
    instance = name
    if alias is not None:
        if not isinstance(alias, Lit) or not isinstance(alias.value, str):
            yield error(alias, "An alias must be a plain string")
            return
        instance = f"{name}.{alias.value}"
    if instance in found.providers:
        yield _twice(block, found.providers[instance].block, f"The provider instance {instance}")
        return
    found.providers[instance] = ProviderBlock(name, instance, block)


def _resource(block: Block, found: Declarations) -> Iterator[Diagnostic]:
    made, faults = _with_lifecycle(block, LIFECYCLE)
    yield from faults
    for name in ("create_before_destroy", "replace_triggered_by"):
        if made.lifecycle is not None and attribute(made.lifecycle, name) is not None:
            yield warning(
                made.lifecycle.body.attributes[name],
                f'"{name}" has no effect',
                "Nothing is ever replaced: an object is changed in place or not at all.",
                "Remove it.",
            )
    if made.address in found.resources:
        yield _twice(block, found.resources[made.address].block, str(made.address))
    else:
        found.resources[made.address] = made


def _data(block: Block, found: Declarations) -> Iterator[Diagnostic]:
    made, faults = _with_lifecycle(block, DATA_LIFECYCLE)
    yield from faults
    if made.address in found.data:
        yield _twice(block, found.data[made.address].block, f"data.{made.address}")
    else:
        found.data[made.address] = made


def _with_lifecycle(block: Block, shape: Shape) -> tuple[ResourceBlock, Diagnostics]:
    """The block as a resource or data source; a lifecycle block with faults is left out."""
    lifecycle, faults = single(block, "lifecycle")
    if lifecycle is not None:
        problems = tuple(shape_faults(lifecycle, shape))
        faults += problems
        lifecycle = None if problems else lifecycle
    before, faults_before = _rules(lifecycle, "precondition")
    after, faults_after = _rules(lifecycle, "postcondition")
    address = Address(block.labels[0].text, block.labels[1].text)
    made = ResourceBlock(address, block, lifecycle, before, after)
    return made, (*faults, *faults_before, *faults_after)


def _module(block: Block, found: Declarations) -> Iterator[Diagnostic]:
    name = block.labels[0].text
    source = attribute(block, "source")
    text = source.value if isinstance(source, Lit) and isinstance(source.value, str) else None
    if source is not None and text is None:
        yield error(source, "The source of a module must be a plain string")
    for inner in block.body.blocks:
        yield error(header(inner), f"{title(block)} takes arguments only")
    providers, faults = _handed_down(attribute(block, "providers"))
    yield from faults
    if name in found.modules:
        yield _twice(block, found.modules[name].block, f"module.{name}")
    else:
        found.modules[name] = ModuleBlock(name, block, text, providers)


def _handed_down(
    node: Expression | None,
) -> tuple[Mapping[str, Expression] | None, Diagnostics]:
    """The entries of a module's `providers`: NAME or NAME.ALIAS on both sides."""
    if node is None:
        return None, ()
    if not isinstance(node, Object):
        fault = error(node, "providers takes a map of providers", advice="{ kafka = kafka.eu }")
        return {}, (fault,)
    entries, faults = {}, []
    for item in node.items:
        name = _provider_name(item.key)
        if name is None:
            faults.append(error(item.key, "This does not name a provider", advice="kafka = …"))
        else:
            entries[name] = item.value
    return entries, tuple(faults)


def _provider_name(node: Expression) -> str | None:
    if isinstance(node, Lit) and isinstance(node.value, str):
        return node.value
    return spelled(node)


def _output(block: Block, found: Declarations) -> Iterator[Diagnostic]:
    name = block.labels[0].text
    sensitive, faults = _flag(block, "sensitive", False)
    yield from faults
    rules, faults = _rules(block, "precondition")
    yield from faults
    if name in found.outputs:
        yield _twice(block, found.outputs[name].block, f'The output "{name}"')
        return
    value = block.body.attributes["value"].value
    found.outputs[name] = OutputBlock(name, block, value, sensitive, rules)


def _check(block: Block, found: Declarations) -> Iterator[Diagnostic]:
    name = block.labels[0].text
    data, faults = single(block, "data")
    yield from faults
    made = None
    if data is not None:
        problems = list(shape_faults(data, SHAPES["data"]))
        yield from problems
        if not problems:
            made, faults = _with_lifecycle(data, DATA_LIFECYCLE)
            yield from faults
    rules, faults = _rules(block, "assert")
    yield from faults
    if not rules and not faults:
        yield error(header(block), f'{title(block)} needs an "assert" block')
    if name in found.checks:
        yield _twice(block, found.checks[name].block, f"check.{name}")
    else:
        found.checks[name] = CheckBlock(name, block, made, rules)


def _removed(block: Block, found: Declarations) -> Iterator[Diagnostic]:
    lifecycle, faults = single(block, "lifecycle")
    yield from faults
    destroy = False
    if lifecycle is not None:
        yield from shape_faults(lifecycle, REMOVED_LIFECYCLE)
        destroy, faults = _flag(lifecycle, "destroy", False)
        yield from faults
    source = block.body.attributes["from"].value
    found.removed.append(RemovedBlock(block, source, destroy))


def _moved(block: Block, found: Declarations) -> Iterator[Diagnostic]:
    arguments = block.body.attributes
    found.moved.append(MovedBlock(block, arguments["from"].value, arguments["to"].value))
    yield from ()


def _import(block: Block, found: Declarations) -> Iterator[Diagnostic]:
    arguments = block.body.attributes
    found.imports.append(
        ImportBlock(
            block, arguments["to"].value, arguments["id"].value, attribute(block, "for_each")
        )
    )
    yield from ()


def _settings(block: Block, found: Declarations) -> Iterator[Diagnostic]:
    if found.settings:
        yield _twice(block, found.settings[0], f"The {title(block)} block")
        return
    found.settings.append(block)


_DECLARERS: Mapping[str, Callable[[Block, Declarations], Iterator[Diagnostic]]] = {
    "kafkaform": _settings,
    "provider": _provider,
    "resource": _resource,
    "data": _data,
    "module": _module,
    "variable": _variable,
    "locals": _locals,
    "output": _output,
    "check": _check,
    "removed": _removed,
    "import": _import,
    "moved": _moved,
}
