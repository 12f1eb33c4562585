"""Top-level blocks to declarations; expressions stay unevaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from ..core.address import Address
from ..core.diagnostics import Diagnostic, Diagnostics
from ..syntax.nodes import Attribute, Block, Expression, Lit
from .blocks import (
    LATER,
    LIFECYCLE,
    REMOVED_LIFECYCLE,
    SHAPES,
    VALIDATION,
    attribute,
    header,
    shape_faults,
    single,
    title,
)
from .faults import error, near, warning
from .tree import Tree


@dataclass(frozen=True, slots=True)
class VariableBlock:
    name: str
    block: Block
    type: Expression | None
    default: Expression | None
    sensitive: bool
    nullable: bool
    validations: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class ProviderBlock:
    """instance: `kafka` or `kafka.ALIAS`."""

    name: str
    instance: str
    block: Block


@dataclass(frozen=True, slots=True)
class ResourceBlock:
    address: Address
    block: Block
    lifecycle: Block | None

    def argument(self, name: str) -> Expression | None:
        return attribute(self.block, name)


@dataclass(frozen=True, slots=True)
class OutputBlock:
    name: str
    block: Block
    value: Expression
    sensitive: bool


@dataclass(frozen=True, slots=True)
class RemovedBlock:
    block: Block
    source: Expression
    destroy: bool


@dataclass(frozen=True, slots=True)
class MovedBlock:
    block: Block
    source: Expression
    target: Expression


@dataclass(frozen=True, slots=True)
class ImportBlock:
    block: Block
    target: Expression
    id: Expression
    for_each: Expression | None


@dataclass
class Declarations:
    """Everything that the files declare, by name or in the order of the files."""

    variables: dict[str, VariableBlock] = field(default_factory=dict)
    locals: dict[str, Attribute] = field(default_factory=dict)
    providers: dict[str, ProviderBlock] = field(default_factory=dict)
    resources: dict[Address, ResourceBlock] = field(default_factory=dict)
    outputs: dict[str, OutputBlock] = field(default_factory=dict)
    removed: list[RemovedBlock] = field(default_factory=list)
    moved: list[MovedBlock] = field(default_factory=list)
    imports: list[ImportBlock] = field(default_factory=list)
    settings: list[Block] = field(default_factory=list)


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
    if block.type in LATER:
        return error(header(block), f"{block.type} blocks are not supported yet")
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


def _variable(block: Block, found: Declarations) -> Iterator[Diagnostic]:
    name = block.labels[0].text
    sensitive, faults = _flag(block, "sensitive", False)
    yield from faults
    nullable, faults = _flag(block, "nullable", True)
    yield from faults
    if name in found.variables:
        yield _twice(block, found.variables[name].block, f'The variable "{name}"')
        return
    validations = []
    for inner in (b for b in block.body.blocks if b.type == "validation"):
        problems = list(shape_faults(inner, VALIDATION))
        yield from problems
        validations += [] if problems else [inner]
    kind, default = attribute(block, "type"), attribute(block, "default")
    found.variables[name] = VariableBlock(
        name, block, kind, default, sensitive, nullable, tuple(validations)
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
    address = Address(block.labels[0].text, block.labels[1].text)
    lifecycle, faults = single(block, "lifecycle")
    yield from faults
    if lifecycle is not None:
        problems = list(shape_faults(lifecycle, LIFECYCLE))
        yield from problems
        lifecycle = None if problems else lifecycle
    if address in found.resources:
        yield _twice(block, found.resources[address].block, str(address))
        return
    found.resources[address] = ResourceBlock(address, block, lifecycle)


def _output(block: Block, found: Declarations) -> Iterator[Diagnostic]:
    name = block.labels[0].text
    sensitive, faults = _flag(block, "sensitive", False)
    yield from faults
    if name in found.outputs:
        yield _twice(block, found.outputs[name].block, f'The output "{name}"')
        return
    value = block.body.attributes["value"].value
    found.outputs[name] = OutputBlock(name, block, value, sensitive)


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
    "variable": _variable,
    "locals": _locals,
    "output": _output,
    "removed": _removed,
    "import": _import,
    "moved": _moved,
}
