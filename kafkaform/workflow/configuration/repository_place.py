"""What a repository file changes in the configuration of one folder below it: provider blocks,
owners and labels, and its boundary."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...core.canonical import digest
from ...core.errors import UsageError
from ...core.resource import Declared, Desired
from ...core.value import FrozenMap
from ...language.declare.top_level import declare_blocks
from ...language.desired import Tree
from ...syntax.nodes import Attribute, Block, Body, File, Label, Lit
from .repository import FILES, LISTS, Cluster, RepositoryFolder

if TYPE_CHECKING:
    from ...provider.registry import Registry

_SHORT_DIGEST = 12
"""As many digits as the other entries of `Desired.sources` have."""


def find_place(
    folder: Path,
    registry: Registry | None = None,
    environment: Mapping[str, str] | None = None,
    buffers: Mapping[Path, bytes] | None = None,
) -> RepositoryFolder | None:
    """What the repository file above a folder says about it; None if there is none. Raises as
    `read_repository` and `find_folder` do.

    environment: for untrusted files, whose repository file is that of the branch that it names;
    buffers: files that are open in an editor.
    """
    from . import repository_file as reader  # noqa: PLC0415  # most folders have no such file above them
    from . import repository_folders  # noqa: PLC0415  # as above

    if environment is not None:
        text = reader.find_base_repository(folder, environment)
    else:
        file = reader.find_repository(folder) or reader.find_repository(folder.resolve())
        typed = None if file is None or not buffers else buffers.get(file)
        text = None if file is None else reader.RepositoryText(file, typed)
    if text is None or text.path.parent == folder:
        return None
    shown = os.path.relpath(text.path, folder).replace(os.sep, "/")
    repository = reader.read_repository(
        text.path, shown, registry=registry, content=text.content, base=text.base
    )
    return repository_folders.find_folder(repository, folder)


def refuse_top(folder: Path) -> None:
    """Raises UsageError for the top of a repository, with the number of its folders, and
    ConfigurationError for faults in its file."""
    from . import repository_file, repository_folders  # noqa: PLC0415  # as above

    file = repository_file.find_repository(folder)
    if file is None or file.parent != folder:
        return
    repository = repository_file.read_repository(file)
    folders = repository_folders.list_folders(repository)
    example = f", such as {folders[0].path}" if folders else ""
    raise UsageError(
        f"this is the top of the repository {repository.name}, which has {len(folders):,} "
        f"folder{'' if len(folders) == 1 else 's'} with a configuration",
        f"Run the command in one of them{example}. `validate`, `plan`, `apply`, `test` and `fmt` "
        "take all of them with --all, some with --folder GLOB, or those that changed with "
        "--changed-since REF.",
    )


def add_providers(place: RepositoryFolder, tree: Tree) -> Tree:
    """The files, with a provider block for each cluster that the folder uses and has no block for.

    The blocks keep their place in the repository file, so that a fault is shown there.
    """
    if not place.uses or not tree.configuration:
        return tree
    own_blocks = declare_blocks(tree, ("provider",))[0].providers.values()
    own = {block.instance for block in own_blocks}
    blocks = tuple(
        _make_provider_block(instance, cluster)
        for instance, cluster in place.uses.items()
        if instance not in own
    )
    if not blocks:
        return tree
    source = blocks[0].source
    file = File(source, 0, 0, Body(source, 0, 0, {}, blocks))
    return replace(tree, configuration=(*tree.configuration, file))


def list_shared_instances(place: RepositoryFolder, tree: Tree) -> frozenset[str]:
    """The provider instances of the folder whose blocks are those of the repository file."""
    blocks = declare_blocks(tree, ("provider",))[0].providers.values()
    return frozenset(
        own.instance
        for own in blocks
        if own.instance in place.uses and own.block.source is place.uses[own.instance].block.source
    )


def _make_provider_block(instance: str, cluster: Cluster) -> Block:
    block, (name, _, alias) = cluster.block, instance.partition(".")
    attributes = {n: item for n, item in block.body.attributes.items() if n != "provider"}
    label = block.labels[0]
    if alias:
        node = Lit(label.source, label.start, label.end, alias)
        attributes["alias"] = Attribute(label.source, label.start, label.end, "alias", node)
    return replace(
        block,
        type="provider",
        labels=(Label(label.source, label.start, label.end, name),),
        body=replace(block.body, attributes=attributes),
    )


def add_defaults(place: RepositoryFolder, desired: Desired) -> Desired:
    """What a configuration says, with the boundary of the folder, and with its owner and labels
    where blocks do not say them."""
    declared = desired.declared
    if place.owner is not None or place.labels:
        declared = tuple(_add_defaults(place, declared))
    # A plan that was made with another boundary or cluster is a plan of another configuration.
    source = digest(outline_folder(place))
    sources = FrozenMap({**desired.sources, FILES[0]: source[:_SHORT_DIGEST]})
    whole = digest((desired.digest, source))
    return replace(desired, declared=declared, fence=place.fence, digest=whole, sources=sources)


def outline_folder(place: RepositoryFolder) -> FrozenMap:
    """What the file says that shapes the plans of a folder, without lines and paths: a plan is the
    same wherever it is made."""
    boundary, uses = place.boundary, place.uses.items()
    lists = {name: getattr(boundary, name) for name in (*LISTS, "deny")} if boundary else None
    blocks = {instance: cluster.block for instance, cluster in uses}
    return FrozenMap(
        owner=place.owner,
        labels=place.labels,
        boundary=None if lists is None else FrozenMap(lists),
        uses=FrozenMap({n: b.source.text[b.start : b.end] for n, b in blocks.items()}),
    )


def _add_defaults(place: RepositoryFolder, declared: Iterable[Declared]) -> Iterator[Declared]:
    for item in declared:
        owner = place.owner if item.owner is None else item.owner
        yield replace(item, owner=owner, labels=place.labels.with_items(item.labels))
