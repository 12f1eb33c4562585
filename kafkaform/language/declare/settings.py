"""The `kafkaform` block: which version may read the folder, and where its state lives; and what
Terraform's own block says in a folder of Terraform's files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from ...core.diagnostics import Diagnostic, Diagnostics, Range
from ...core.value import EMPTY, FrozenMap, Value
from ...syntax.nodes import Block, Expression, Object
from ..expressions.code import Context, literal
from ..expressions.compilation import context as make_context
from ..functions import function_table
from ..values.conversion import lower
from ..values.faults import EvalError, as_diagnostic, error, warning
from ..values.value import sealed
from .blocks import BACKEND, Shape, attribute, header, shape_faults, single
from .folder import Tree
from .top_level import declare
from .variables import constant


class Settings(Struct, frozen=True):
    """required_version: as written; backend: its kind, None for the default; options: its
    arguments; range: of the backend block."""

    required_version: str | None = None
    backend: str | None = None
    options: FrozenMap = EMPTY
    range: Range | None = None


def settings(tree: Tree) -> tuple[Settings, Diagnostics]:
    """What must be known before variables are: only constants may stand there. Faults of the
    structure are those of `build` and are not repeated here."""
    blocks = declare(tree)[0].settings
    faults: list[Diagnostic] = [*terraform_settings(tree).diagnostics]
    if not blocks:
        return Settings(), tuple(faults)
    context = make_context(function_table())
    block = blocks[0]
    version = _constant(attribute(block, "required_version"), context, faults)
    if version is not None and not isinstance(version, str):
        faults.append(error(header(block), "required_version must be a string"))
    backend, problems = single(block, "backend")
    faults.extend(problems)
    if backend is None:
        return Settings(version if isinstance(version, str) else None), tuple(faults)
    faults.extend(shape_faults(backend, BACKEND))
    return (
        Settings(
            version if isinstance(version, str) else None,
            backend.labels[0].text if backend.labels else None,
            _options(backend, context, faults),
            header(backend).range,
        ),
        tuple(faults),
    )


def _options(block: Block, context: Context, faults: list[Diagnostic]) -> FrozenMap:
    for inner in block.body.blocks:
        faults.append(error(header(inner), "A backend block holds arguments only"))
    return FrozenMap(
        {
            name: _constant(item.value, context, faults)
            for name, item in block.body.attributes.items()
        }
    )


def _constant(node: Expression | None, context: Context, faults: list[Diagnostic]) -> Value:
    if node is None:
        return None
    try:
        value = constant(node, context)
        if sealed(value) is not None:
            raise EvalError(node, "A secret cannot stand here")
        return lower(value)
    except EvalError as fault:
        faults.append(as_diagnostic(fault, context=["while reading the kafkaform block"]))
        return None


# ── Terraform's block ───────────────────────────────────────────────────────────────────


class TerraformSettings(Struct, frozen=True):
    """providers: local name -> source, where `required_providers` gives one."""

    providers: Mapping[str, str] = field(default_factory=dict)
    diagnostics: Diagnostics = ()

    def provider(self, local: str) -> str:
        """The provider that a local name stands for: `kafka` for whatever comes from `…/kafka`."""
        return self.providers.get(local, local).rpartition("/")[2]


_TERRAFORM = Shape(
    optional=("required_version", "experiments", "language"),
    blocks=("required_providers", "backend", "cloud", "encryption", "provider_meta"),
)
"""The version and the experiments are Terraform's, so nothing is said of them."""
_STORES = ("backend", "cloud", "encryption")


def terraform_settings(tree: Tree) -> TerraformSettings:
    """What the `terraform` blocks of Terraform's files say; of two entries the later one counts,
    since override files come last."""
    if not tree.terraform:
        return TerraformSettings()
    blocks = [b for file in tree.configuration for b in file.body.blocks if b.type == "terraform"]
    faults = [fault for block in blocks for fault in shape_faults(block, _TERRAFORM)]
    inside = [inner for block in blocks for inner in block.body.blocks]
    providers: dict[str, str] = {}
    for inner in inside:
        if inner.type == "required_providers":
            providers.update(_sources(inner, faults))
    stores = [inner for inner in inside if inner.type in _STORES]
    if stores:
        faults.append(_not_used(stores[0]))
    return TerraformSettings(providers, tuple(faults))


def _sources(block: Block, faults: list[Diagnostic]) -> Iterator[tuple[str, str]]:
    """The source of each entry that has one; an old entry is a version and nothing else."""
    for name, item in block.body.attributes.items():
        if isinstance(item.value, Object):
            for entry in item.value.items:
                source = literal(entry.value)
                if literal(entry.key) != "source":
                    continue
                if source is not None:
                    yield name, source
                else:
                    faults.append(error(entry.value, "A source must be a plain string"))
        elif literal(item.value) is None:
            form = f'Write {name} = {{ source = "…", version = "…" }}.'
            faults.append(error(item.value, "This is no requirement of a provider", advice=form))


def _not_used(block: Block) -> Diagnostic:
    return warning(
        header(block),
        f"The {block.type} block is not used",
        "The state is a file of its own, kafkaform.state.json beside the configuration, and "
        "Terraform's is never read.",
        "Live objects come in by import blocks, lifecycle { adopt = true } or plan --adopt=GLOB.",
    )
