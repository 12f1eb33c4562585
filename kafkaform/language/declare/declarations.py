"""What one folder declares: blocks by name, their expressions not yet evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct, field

from ...core.address import Address
from ...syntax.nodes import Attribute, Block, Expression
from ..values.faults import Place
from .blocks import Header


def _is_repeated(block: Block) -> bool:
    return any(block.get_argument(name) is not None for name in ("for_each", "count"))


class VariableBlock(Struct, frozen=True):
    name: str
    block: Block
    type: Expression | None
    default: Expression | None
    sensitive: bool
    nullable: bool
    validations: tuple[Block, ...]
    deprecated: Expression | None = None
    ephemeral: bool = False


class ProviderBlock(Struct, frozen=True):
    """instance: `kafka` or `kafka.ALIAS`."""

    name: str
    instance: str
    block: Block


class ResourceBlock(Struct, frozen=True):
    """A `resource` or `data` block. preconditions, postconditions: its rules."""

    address: Address
    block: Block
    lifecycle: Block | None
    preconditions: tuple[Block, ...] = ()
    postconditions: tuple[Block, ...] = ()

    @property
    def several(self) -> bool:
        """Whether it has instances with keys."""
        return _is_repeated(self.block)


class ModuleBlock(Struct, frozen=True):
    """A call of a module. source: as written, None if it is no plain string; providers: local
    name in the module -> the name here, None where the default one is handed down."""

    name: str
    block: Block
    source: str | None
    providers: Mapping[str, Expression] | None = None

    @property
    def several(self) -> bool:
        """Whether it has instances with keys."""
        return _is_repeated(self.block)


class OutputBlock(Struct, frozen=True):
    name: str
    block: Block
    value: Expression
    sensitive: bool
    preconditions: tuple[Block, ...] = ()


class CheckBlock(Struct, frozen=True):
    """data: the data source of its own that only its assertions see."""

    name: str
    block: Block
    data: ResourceBlock | None
    assertions: tuple[Block, ...]


class RemovedBlock(Struct, frozen=True):
    block: Block
    source: Expression
    destroy: bool


class MovedBlock(Struct, frozen=True):
    block: Block
    source: Expression
    target: Expression


class ImportBlock(Struct, frozen=True):
    block: Block
    target: Expression
    id: Expression


Declaration: TypeAlias = (
    Attribute | VariableBlock | ProviderBlock | ResourceBlock | ModuleBlock | OutputBlock
)
"""What is evaluated in each instance of its module: a local value, or a block."""


def get_place(declaration: Declaration) -> Place:
    """Where something is declared: the local value, or the header of the block."""
    return declaration if isinstance(declaration, Attribute) else Header(declaration.block)


class Declarations(Struct):
    """Everything that the files of a folder declare, by name or in the order of the files."""

    variables: dict[str, VariableBlock] = field(default_factory=dict)
    locals: dict[str, Attribute] = field(default_factory=dict)
    providers: dict[str, ProviderBlock] = field(default_factory=dict)
    resources: dict[Address, ResourceBlock] = field(default_factory=dict)
    data: dict[Address, ResourceBlock] = field(default_factory=dict)
    modules: dict[str, ModuleBlock] = field(default_factory=dict)
    outputs: dict[str, OutputBlock] = field(default_factory=dict)
    checks: dict[str, CheckBlock] = field(default_factory=dict)
    removed: list[RemovedBlock] = field(default_factory=list)
    moved: list[MovedBlock] = field(default_factory=list)
    imports: list[ImportBlock] = field(default_factory=list)
    settings: list[Block] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many things are declared, blocks without names aside."""
        values = len(self.variables) + len(self.locals) + len(self.outputs)
        return values + len(self.resources) + len(self.data) + len(self.modules)
