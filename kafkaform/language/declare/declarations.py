"""What one folder declares: blocks by name, with expressions that are not yet evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct, field

from ...core.address import Address
from ...syntax.nodes import Attribute, Block, Expression
from ..values.faults import Location
from .blocks import Header


def _is_repeated(block: Block) -> bool:
    return any(block.get_argument(name) is not None for name in ("for_each", "count"))


def get_enabled(block: Block) -> Expression | None:
    """The argument `enabled` in the `lifecycle` of a block, which decides whether it counts."""
    arguments = (inner.get_argument("enabled") for inner in block.list_blocks("lifecycle"))
    return next((node for node in arguments if node is not None), None)


class VariableBlock(Struct, frozen=True):
    """A `variable` block."""

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
    """A `provider` block."""

    name: str
    """The name of the provider."""
    instance: str
    """NAME or NAME.ALIAS."""
    block: Block


class ResourceBlock(Struct, frozen=True):
    """A `resource` or `data` block."""

    address: Address
    """TYPE.NAME, without the module and the key of an instance."""
    block: Block
    lifecycle: Block | None
    """None if there is none, or if it has faults."""
    preconditions: tuple[Block, ...] = ()
    postconditions: tuple[Block, ...] = ()

    @property
    def several(self) -> bool:
        """Whether it has instances with keys."""
        return _is_repeated(self.block)


class ModuleBlock(Struct, frozen=True):
    """A `module` block: a call of a module."""

    name: str
    block: Block
    source: str | None
    """As written; None if it is not a plain string."""
    providers: Mapping[str, Expression] | None = None
    """Name in the module -> name here. None if the module gets the default ones of its caller."""

    @property
    def several(self) -> bool:
        """Whether it has instances with keys."""
        return _is_repeated(self.block)


class OutputBlock(Struct, frozen=True):
    """An `output` block."""

    name: str
    block: Block
    value: Expression
    sensitive: bool
    preconditions: tuple[Block, ...] = ()
    deprecated: Expression | None = None
    ephemeral: bool = False
    """Whether its value is a secret that is never stored; only in modules."""


class CheckBlock(Struct, frozen=True):
    """A `check` block."""

    name: str
    block: Block
    data: ResourceBlock | None
    """A data source that only its assertions see."""
    assertions: tuple[Block, ...]


class RemovedBlock(Struct, frozen=True):
    """A `removed` block."""

    block: Block
    source: Expression
    """The argument `from`."""
    destroy: bool
    """Whether the object is deleted; otherwise it is only forgotten."""


class MovedBlock(Struct, frozen=True):
    """A `moved` block."""

    block: Block
    source: Expression
    """The argument `from`."""
    target: Expression
    """The argument `to`."""


class ImportBlock(Struct, frozen=True):
    """An `import` block."""

    block: Block
    target: Expression
    """The argument `to`."""
    id: Expression


Declaration: TypeAlias = (
    Attribute | VariableBlock | ProviderBlock | ResourceBlock | ModuleBlock | OutputBlock
)
"""What is evaluated in each instance of its module: a local value, or a block."""


def get_place(declaration: Declaration) -> Location:
    """Where something is declared: the local value, or the header of the block."""
    return declaration if isinstance(declaration, Attribute) else Header(declaration.block)


class Declarations(Struct):
    """Everything that the files of a folder declare, by name or in the order of the files."""

    # Mutable, because `top_level` fills it block by block.

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
    policies: list[Block] = field(default_factory=list)

    @property
    def count(self) -> int:
        """The number of blocks and local values with a name."""
        values = len(self.variables) + len(self.locals) + len(self.outputs)
        return values + len(self.resources) + len(self.data) + len(self.modules)
