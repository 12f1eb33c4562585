"""Read the `kafkaform` block (required version, backend of the state), and the `terraform` blocks
of Terraform's files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from ...core.diagnostics import Diagnostic, Diagnostics, Range
from ...core.value import EMPTY, FrozenMap, Value
from ...syntax.nodes import Block, Expression
from ...syntax.terms import list_items
from ..expressions.code import Context, get_literal
from ..expressions.compilation import make_context as make_context
from ..functions import FunctionTable
from ..values.conversion import lower_value
from ..values.faults import EvalError, make_diagnostic, make_error, make_warning
from ..values.value import find_sealed
from .blocks import BACKEND, Header, Shape, find_shape_faults, find_single
from .folder import Tree
from .top_level import declare_blocks
from .variables import evaluate_constant


class Settings(Struct, frozen=True):
    """The content of the `kafkaform` block."""

    required_version: str | None = None
    """As written."""
    backend: str | None = None
    """The type of the backend; None for the default one."""
    options: FrozenMap = EMPTY
    """The arguments of the backend block."""
    range: Range | None = None
    """The place of the backend block."""


def read_settings(tree: Tree) -> tuple[Settings, Diagnostics]:
    """The settings, and the faults in them.

    They are needed before variables are known, so they can only contain constants. Faults of the
    structure are reported by the evaluation and not repeated here.
    """
    blocks = declare_blocks(tree, ("kafkaform",))[0].settings
    faults = [*read_terraform_settings(tree).diagnostics] if tree.terraform else []
    if not blocks:
        return Settings(), tuple(faults)
    context = make_context(FunctionTable())
    block = blocks[0]
    version = _read_constant(block.get_argument("required_version"), context, faults)
    if version is not None and not isinstance(version, str):
        faults.append(make_error(Header(block), "required_version must be a string"))
    backend, problems = find_single(block, "backend")
    faults.extend(problems)
    if backend is None:
        return Settings(version if isinstance(version, str) else None), tuple(faults)
    faults.extend(find_shape_faults(backend, BACKEND))
    return (
        Settings(
            version if isinstance(version, str) else None,
            backend.labels[0].text if backend.labels else None,
            _read_options(backend, context, faults),
            Header(backend).range,
        ),
        tuple(faults),
    )


def _read_options(block: Block, context: Context, faults: list[Diagnostic]) -> FrozenMap:
    for inner in block.body.blocks:
        faults.append(make_error(Header(inner), "A backend block can only contain arguments"))
    return FrozenMap(
        {
            name: _read_constant(item.value, context, faults)
            for name, item in block.body.attributes.items()
        }
    )


def _read_constant(node: Expression | None, context: Context, faults: list[Diagnostic]) -> Value:
    if node is None:
        return None
    try:
        value = evaluate_constant(node, context)
        # The settings are read before anything else, by commands that resolve no secrets.
        if find_sealed(value) is not None:
            raise EvalError(node, "A secret is not allowed here")
        return lower_value(value)
    except EvalError as fault:
        faults.append(make_diagnostic(fault, context=["while reading the kafkaform block"]))
        return None


# ── Terraform's block ───────────────────────────────────────────────────────────────────


class TerraformSettings(Struct, frozen=True):
    """The content of the `terraform` blocks, as far as it is used."""

    providers: Mapping[str, str] = field(default_factory=dict)
    """Local name -> source, if `required_providers` has one."""
    diagnostics: Diagnostics = ()

    def resolve_provider(self, local: str) -> str:
        """The provider of a local name: the last part of its source, such as `kafka`."""
        return self.providers.get(local, local).rpartition("/")[2]


_TERRAFORM = Shape(
    optional=("required_version", "experiments", "language"),
    blocks=("required_providers", "backend", "cloud", "encryption", "provider_meta"),
)
"""The required version and the experiments concern Terraform alone, so they are ignored."""
_STORES = ("backend", "cloud", "encryption")


def read_terraform_settings(tree: Tree) -> TerraformSettings:
    """The content of the `terraform` blocks of Terraform's files."""
    # The later one of two entries wins, because override files come last.
    blocks = [b for file in tree.configuration for b in file.body.blocks if b.type == "terraform"]
    faults = [fault for block in blocks for fault in find_shape_faults(block, _TERRAFORM)]
    inside = [inner for block in blocks for inner in block.body.blocks]
    providers: dict[str, str] = {}
    for inner in inside:
        if inner.type == "required_providers":
            providers.update(_read_sources(inner, faults))
    stores = [inner for inner in inside if inner.type in _STORES]
    if stores:
        faults.append(
            make_warning(
                Header(stores[0]),
                f"The {stores[0].type} block is not used",
                "kafkaform keeps its state in kafkaform.state.json beside the configuration, and "
                "never reads Terraform's state.",
                "To take over live objects, use import blocks, lifecycle { adopt = true } or plan "
                "--adopt=GLOB.",
            )
        )
    return TerraformSettings(providers, tuple(faults))


def _read_sources(block: Block, faults: list[Diagnostic]) -> Iterator[tuple[str, str]]:
    """The local name and the source of each entry with a source. Terraform 0.12 wrote only a
    version: `NAME = "~> 1.0"`."""
    for name, item in block.body.attributes.items():
        entries = list_items(item.value)
        for entry in entries or ():
            source = get_literal(entry.value)
            if get_literal(entry.key) != "source":
                continue
            if source is not None:
                yield name, source
            else:
                faults.append(make_error(entry.value, "A source must be a plain string"))
        if entries is None and get_literal(item.value) is None:
            form = f'Write {name} = {{ source = "…", version = "…" }}.'
            faults.append(make_error(item.value, "This is not a provider requirement", advice=form))
