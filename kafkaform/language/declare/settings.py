"""What a configuration says about itself: the `kafkaform` block (required version, backend of the
state), the `terraform` blocks of Terraform's files, and the providers and types that its text
names.

The names decide whether installed provider packages have to be looked for, which takes long. A
Terraform folder that moves over can still contain objects of other tools. Their blocks are set
aside before anything is checked, so that nothing in them, and nothing that Terraform adds to them,
is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Diagnostics, Range, Severity
from ...core.value import EMPTY, FrozenMap, Value
from ...syntax.nodes import Block, Expression
from ...syntax.terms import list_items
from ..expressions.code import Context, get_literal
from ..expressions.compilation import make_context as make_context
from ..functions import FunctionTable
from ..values.conversion import lower_value
from ..values.faults import EvalError, make_diagnostic, make_error, make_warning
from ..values.value import find_sealed
from .addresses import spell_name
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


_TYPE = re.compile(r'"?(?:module\.[\w-]+(?:\[[^]]*\])?\.)*(?P<type>[\w-]+)\.')
"""The resource type in an address, which is in quotes in JSON."""


def list_used_names(tree: Tree) -> frozenset[str]:
    """The providers, resource types and data sources that the files of the tree name."""
    block_names = (
        list_block_names(block) for file in tree.configuration for block in file.body.blocks
    )
    return frozenset[str]().union(*block_names, *map(list_used_names, tree.modules.values()))


def list_block_names(block: Block) -> Iterator[str]:
    """The providers, resource types and data sources that one block names."""
    if block.type in ("provider", "resource", "data", "ephemeral"):
        yield from (label.text for label in block.labels[:1])
    elif block.type == "check":
        for inner in block.list_blocks("data"):
            yield from list_block_names(inner)
    # Objects of a type can be left in the state when its last block is gone, so addresses count.
    # They are read from the text, because the address may have faults that are reported later.
    elif block.type in ("removed", "moved", "import"):
        for name in ("from", "to"):
            address = block.get_argument(name)
            match = _TYPE.match(address.source.text, address.start) if address else None
            if match is not None and match["type"] != "module":
                yield match["type"]


_REGISTRY = re.compile(
    r"(?:[\w.-]+\.[\w.-]+(?::[0-9]+)?/)?[\w-]+/[\w-]+/(?P<provider>[a-z0-9]+)(?://.*)?", re.ASCII
)
"""The source of a module in a registry: `HOST/NAMESPACE/NAME/PROVIDER//FOLDER`."""
_NAMED = ("resource", "data", "ephemeral", "module")
"""Blocks that expressions can refer to."""
_TAKEN_OVER = ("confluent",)
"""Providers whose objects can be taken over from their state."""
_SHOWN = 5
"""How many places of a provider are shown."""


class SkippedBlock(Struct, frozen=True):
    """A block of a provider that is not installed."""

    provider: str
    block: Block

    @property
    def name(self) -> str | None:
        """What expressions call it: `TYPE.NAME`, `data.TYPE.NAME`, `module.NAME`."""
        words = tuple(label.text for label in self.block.labels)
        if self.block.type not in _NAMED:
            return None
        return ".".join(words if self.block.type == "resource" else (self.block.type, *words))

    @property
    def range(self) -> Range:
        """Where it begins."""
        labels = self.block.labels
        return labels[0].range if labels else Header(self.block).range


class Skipping(Struct, frozen=True):
    """What was set aside, by the folder of the module."""

    blocks: Mapping[str, tuple[SkippedBlock, ...]] = field(default_factory=dict)

    def list_names(self, folder: str) -> frozenset[str]:
        """What expressions in a folder call the blocks."""
        names = (item.name for item in self.blocks.get(folder, ()))
        return frozenset(name for name in names if name is not None)

    def warn(self) -> Iterator[Diagnostic]:
        """One warning for each provider."""
        ranges: dict[str, list[Range]] = {}
        for item in (item for blocks in self.blocks.values() for item in blocks):
            ranges.setdefault(item.provider, []).append(item.range)
        for provider in sorted(ranges):
            yield _make_warning(provider, sorted(ranges[provider]))


def set_aside(tree: Tree, providers: Collection[str]) -> tuple[Tree, Skipping]:
    """The tree without the blocks that are skipped, and these blocks.

    providers: the names of those that are installed. In kafkaform's own files, a block of another
    provider is a fault, so nothing is set aside there.
    """
    blocks: dict[str, tuple[SkippedBlock, ...]] = {}
    kept_trees: dict[str, Tree] = {}
    for folder, folder_tree in (("", tree), *tree.modules.items()):
        skipped = tuple(_list_skipped(folder_tree, providers)) if folder_tree.terraform else ()
        if skipped:
            blocks[folder] = skipped
            folder_tree = _drop_blocks(folder_tree, {id(item.block) for item in skipped})
        kept_trees[folder] = folder_tree
    root = kept_trees.pop("")
    return (replace(root, modules=kept_trees), Skipping(blocks)) if blocks else (tree, Skipping())


def _list_skipped(tree: Tree, providers: Collection[str]) -> Iterator[SkippedBlock]:
    settings = read_terraform_settings(tree)
    for block in (block for file in tree.configuration for block in file.body.blocks):
        if block.type == "module":
            names: Collection[str] = _find_registry_provider(block, providers)
        else:
            names = [name.partition("_")[0] for name in list_block_names(block)]
            if block.type == "provider":
                names = [settings.resolve_provider(name) for name in names]
        provider = next((name for name in names if name not in providers), None)
        if provider is not None:
            yield SkippedBlock(provider, block)


def _find_registry_provider(block: Block, providers: Collection[str]) -> tuple[str, ...]:
    """The provider in the source of a registry module; empty for any other module, and for one that
    gets a provider which is installed: it may declare objects of it."""
    source = block.get_argument("source")
    match = None if source is None else _REGISTRY.fullmatch(get_literal(source) or "")
    providers_argument = block.get_argument("providers")
    if match is None:
        return ()
    for item in list_items(providers_argument) or ():
        name = get_literal(item.key) or spell_name(item.key) or ""
        if name.partition(".")[0] in providers:
            return ()
    return (match["provider"],)


def _drop_blocks(tree: Tree, dropped: Collection[int]) -> Tree:
    files = []
    for file in tree.configuration:
        blocks = tuple(block for block in file.body.blocks if id(block) not in dropped)
        files.append(replace(file, body=replace(file.body, blocks=blocks)))
    return replace(tree, configuration=tuple(files))


def _make_warning(provider: str, ranges: list[Range]) -> Diagnostic:
    count, hidden_count = len(ranges), len(ranges) - _SHOWN
    range_list = ", ".join(map(str, ranges[:_SHOWN])) + (
        f" and {hidden_count} more" if hidden_count > 0 else ""
    )
    return Diagnostic(
        Severity.WARNING,
        f'{count} block{"" if count == 1 else "s"} of the provider "{provider}" '
        f"{'is' if count == 1 else 'are'} skipped",
        f"kafkaform does not have this provider. Skipped: {range_list}.",
        advice="To let kafkaform manage their objects, write blocks for them with "
        "`terraform state pull > terraform.tfstate` and `kafkaform import --from tfstate "
        "terraform.tfstate`: docs/take-over.md says how."
        if provider in _TAKEN_OVER
        else "The tool that manages them stays responsible; kafkaform does not touch them.",
    )
