"""List the providers and types that a configuration names, by its text alone, and set aside what a
Terraform folder declares for providers that are not installed.

The names decide whether installed provider packages have to be looked for, which takes long. A
folder that moves over can still contain objects of other tools. Their blocks are taken out before
anything is checked, so that nothing in them, and nothing that Terraform adds to them, is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Range, Severity
from ...syntax.nodes import Block
from ...syntax.terms import list_items
from ..expressions.code import get_literal
from .addresses import spell_name
from .blocks import Header
from .folder import Tree
from .settings import read_terraform_settings

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
