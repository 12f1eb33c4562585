"""What one folder declares: blocks by name, their expressions not yet evaluated."""

from __future__ import annotations

from collections.abc import Mapping

from ...core.address import Address
from ...core.dataclass import dataclass, field
from ...syntax.nodes import Attribute, Block, Expression
from .blocks import attribute


@dataclass(frozen=True, slots=True)
class VariableBlock:
    name: str
    block: Block
    type: Expression | None
    default: Expression | None
    sensitive: bool
    nullable: bool
    validations: tuple[Block, ...]
    deprecated: Expression | None = None
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class ProviderBlock:
    """instance: `kafka` or `kafka.ALIAS`."""

    name: str
    instance: str
    block: Block


@dataclass(frozen=True, slots=True)
class ResourceBlock:
    """A `resource` or `data` block. preconditions, postconditions: its rules."""

    address: Address
    block: Block
    lifecycle: Block | None
    preconditions: tuple[Block, ...] = ()
    postconditions: tuple[Block, ...] = ()

    def argument(self, name: str) -> Expression | None:
        return attribute(self.block, name)

    @property
    def several(self) -> bool:
        """Whether it has instances with keys."""
        return self.argument("for_each") is not None or self.argument("count") is not None


@dataclass(frozen=True, slots=True)
class ModuleBlock:
    """A call of a module. source: as written, None if it is no plain string; providers: local
    name in the module -> the name here, None where the default one is handed down."""

    name: str
    block: Block
    source: str | None
    providers: Mapping[str, Expression] | None = None

    def argument(self, name: str) -> Expression | None:
        return attribute(self.block, name)

    @property
    def several(self) -> bool:
        """Whether it has instances with keys."""
        return self.argument("for_each") is not None or self.argument("count") is not None


@dataclass(frozen=True, slots=True)
class OutputBlock:
    name: str
    block: Block
    value: Expression
    sensitive: bool
    preconditions: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckBlock:
    """data: the data source of its own that only its assertions see."""

    name: str
    block: Block
    data: ResourceBlock | None
    assertions: tuple[Block, ...]


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
