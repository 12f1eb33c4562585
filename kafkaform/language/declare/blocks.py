"""The blocks of the language: their shapes (labels, arguments and nested blocks), what one folder
declares by them, with expressions that are not evaluated yet, and the conditions in them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct, field

from ...core.address import Address
from ...core.diagnostics import Diagnostic, Diagnostics, Range
from ...syntax.nodes import Attribute, Block, Expression, Lit
from ..expressions.code import Code, Context, Env
from ..expressions.compilation import render_piece
from ..expressions.operators import require_truth
from ..values.faults import (
    Deferred,
    EvalError,
    Location,
    Poisoned,
    make_diagnostic,
    make_error,
    quote_names,
    suggest_near,
)
from ..values.value import unmark

NAME = re.compile(r"[^\W\d][\w-]*")
COMMANDS = ("provisioner", "connection")
"""Nested blocks of Terraform that run programs when an object is made or deleted."""
_WORDS = {"assert": "check"}
"""Type of a block -> its name in messages, where that differs."""


class Shape(Struct, frozen=True):
    """What a block can contain."""

    labels: tuple[str, ...] = ()
    """What each label is, for messages."""
    required: tuple[str, ...] = ()
    """Names of arguments that it must have."""
    optional: tuple[str, ...] = ()
    """Names of arguments that it can have."""
    blocks: tuple[str, ...] = ()
    """Types of nested blocks that it can have."""
    open: bool = False
    """Further arguments and blocks are checked elsewhere, such as by a provider's schema."""


SHAPES: Mapping[str, Shape] = {
    "kafkaform": Shape(optional=("required_version",), blocks=("backend",)),
    "provider": Shape(("the provider",), open=True),
    "resource": Shape(("the type", "the name"), open=True),
    "data": Shape(("the type", "the name"), open=True),
    "module": Shape(("the name",), required=("source",), open=True),
    "variable": Shape(
        ("the name",),
        optional=(
            "type",
            "default",
            "description",
            "sensitive",
            "nullable",
            "deprecated",
            # Terraform's newer arguments, so that a folder which moves over needs no change.
            "ephemeral",
            "const",
        ),
        blocks=("validation",),
    ),
    "locals": Shape(open=True),
    "output": Shape(
        ("the name",),
        required=("value",),
        optional=("description", "sensitive", "depends_on", "deprecated", "ephemeral"),
        blocks=("precondition",),
    ),
    "check": Shape(("the name",), blocks=("data", "assert")),
    "removed": Shape(required=("from",), blocks=("lifecycle", *COMMANDS)),
    "import": Shape(required=("to", "id"), optional=("for_each", "provider")),
    "moved": Shape(required=("from", "to")),
    "policy": Shape(
        ("the name",),
        required=("condition", "message"),
        optional=("severity", "when", "description", "settings"),
        blocks=("waiver",),
    ),
    "policy_set": Shape(
        ("the provider",), optional=("enable", "severity", "settings"), blocks=("waiver",)
    ),
}
"""Type of a top-level block -> its shape."""
RULE = Shape(required=("condition", "error_message"))
"""A `validation`, `precondition`, `postcondition` or `assert` block."""
WAIVER = Shape(required=("addresses", "reason", "until"), optional=("rule",))
REMOVED_LIFECYCLE = Shape(optional=("destroy",))
LIFECYCLE = Shape(
    optional=(
        "enabled",
        "prevent_destroy",
        "adopt",
        "shared",
        "park",
        "ignore_changes",
        "ignore_changes_except",
        "create_before_destroy",
        "replace_triggered_by",
    ),
    blocks=("precondition", "postcondition"),
)
DATA_LIFECYCLE = Shape(optional=("enabled",), blocks=("precondition", "postcondition"))
MODULE_LIFECYCLE = Shape(optional=("enabled",))
BACKEND = Shape(("the kind",), open=True)


class Spot(Struct, frozen=True):
    """A place that is not one node, such as the name of an argument."""

    range: Range
    excerpt: str | None


class Header(Struct, frozen=True):
    """The type and labels of a block, as a place."""

    # Lines and columns are computed on demand: every block has a header, and few have faults.
    block: Block

    @property
    def range(self) -> Range:
        return self.block.header_range

    @property
    def excerpt(self) -> str | None:
        return self.block.excerpt


def find_shape_faults(block: Block, shape: Shape) -> Iterator[Diagnostic]:
    """The errors of a block that does not fit a shape."""
    if len(block.labels) != len(shape.labels):
        yield _make_labels_fault(block, shape)
    for label in block.labels:
        if not NAME.fullmatch(label.text):
            summary = f'"{label.text}" is not a name'
            yield make_error(
                label,
                summary,
                "A name is a letter followed by letters, digits, _ and -.",
            )
    missing = [name for name in shape.required if name not in block.body.attributes]
    if missing:
        yield make_error(Header(block), f"{render_title(block)} needs {quote_names(missing)}")
    # Unknown arguments of an open block are reported where its schema is known.
    if shape.open:
        return
    argument_names = (*shape.required, *shape.optional)
    for name, attribute in block.body.attributes.items():
        if name not in argument_names:
            location = Spot(attribute.name_range, attribute.excerpt)
            yield _make_unknown_fault(
                "argument", name, block, location, (*argument_names, *shape.blocks)
            )
    for inner in block.body.blocks:
        if inner.type not in shape.blocks:
            yield _make_unknown_fault(
                "block", inner.type, block, Header(inner), (*shape.blocks, *argument_names)
            )


def _make_unknown_fault(
    noun: str, name: str, block: Block, location: Location, candidates: Collection[str]
) -> Diagnostic:
    names = ", ".join(candidates)
    detail = f"It can contain {names}." if names else "It must be empty."
    return make_error(
        location,
        f'{render_title(block)} has no {noun} "{name}"',
        detail,
        suggest_near(name, candidates),
    )


def _make_labels_fault(block: Block, shape: Shape) -> Diagnostic:
    requirement = f"needs {' and '.join(shape.labels)}" if shape.labels else "has no labels"
    form = " ".join((block.type, *('"…"' for _ in shape.labels), "{ … }"))
    return make_error(
        Header(block),
        f"A {block.type} block {requirement}",
        f"The number of its labels is {len(block.labels)}.",
        f"Write {form}.",
    )


def render_title(block: Block) -> str:
    """A block's name in messages: `variable "zone"`."""
    return " ".join((block.type, *(f'"{label.text}"' for label in block.labels)))


def check_deprecation(block: Block) -> Iterator[Diagnostic]:
    """An error for a `deprecated` that is not a text."""
    node = block.get_argument("deprecated")
    text = node.value if isinstance(node, Lit) else None
    if node is not None and not (isinstance(text, str) and text.strip()):
        yield make_error(node, '"deprecated" must be a string that says what to use instead')


def find_single(block: Block, kind: str) -> tuple[Block | None, Diagnostics]:
    """The nested block of this type, and an error for each further one."""
    blocks = block.list_blocks(kind)
    extra = tuple(
        make_error(Header(inner), f'{render_title(block)} has a second "{kind}" block')
        for inner in blocks[1:]
    )
    return (blocks[0] if blocks else None), extra


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

    @property
    def several(self) -> bool:
        """True for a block with for_each: its instances are called `NAME.ALIAS["KEY"]`."""
        return self.block.get_argument("for_each") is not None


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


def get_location(declaration: Declaration) -> Location:
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


class ConditionRule(Struct, frozen=True):
    """A compiled condition with its message."""

    word: str
    """Its name in messages."""
    condition: Expression
    message: Expression
    holds: Code
    """The code of the condition."""
    says: Code
    """The code of the message."""


def compile_rules(blocks: Iterable[Block], context: Context) -> tuple[ConditionRule, ...]:
    """Compile rules whose shape was checked."""
    rules = []
    for block in blocks:
        condition, message = block.get_argument("condition"), block.get_argument("error_message")
        assert condition is not None and message is not None  # the shape was checked
        holds, says = context.compile_node(condition), context.compile_node(message)
        word = _WORDS.get(block.type, block.type)
        rules.append(ConditionRule(word, condition, message, holds, says))
    return tuple(rules)


def check_rules(rules: Iterable[ConditionRule], title: str, env: Env) -> Iterator[Diagnostic]:
    """One error for each rule that is not met or cannot be evaluated. title: whose rules
    they are, for messages.

    A rule is left out if it needs a value that is faulty, that is known only after the apply, or
    that its block leaves to the system; it is checked again then.
    """
    for rule in rules:
        reads_before = env.budget.open_reads
        try:
            message = check_rule(rule, env)
        except (Poisoned, Deferred):
            # A fault has its own report, and what only the server knows is looked at after the
            # apply.
            continue
        except EvalError as fault:
            if env.budget.open_reads > reads_before:
                continue
            yield make_diagnostic(fault, context=[f"while checking {title}"])
            continue
        if message is not None and env.budget.open_reads == reads_before:
            summary = f"The {rule.word} of {title} is not met"
            if rule.word == "check":
                summary = f"{title} has failed"
            yield make_error(rule.condition, summary, message)


def check_rule(rule: ConditionRule, env: Env) -> str | None:
    """The message of a rule that is not met, else None. Raises EvalError, Poisoned or Deferred."""
    env.budget.charge(1, rule.condition)
    # A condition can depend on sensitive values: whether it holds may be known, but the message
    # may contain the values themselves.
    if require_truth(unmark(rule.holds(env))[0], rule.condition):
        return None
    text, marks = render_piece(rule.says(env), rule.message)
    return "The message is hidden because it contains a sensitive value." if marks else text
