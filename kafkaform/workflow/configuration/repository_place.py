"""What a repository file changes in the configuration of one folder below it: provider blocks,
owners and labels, and its boundary."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...core.resource import Declared
from ...language.declare.top_level import declare_blocks
from ...language.desired import Tree
from ...syntax.nodes import Attribute, Block, Body, File, Label, Lit
from .repository import FILES, Cluster, Repository, RepositoryFolder
from .repository_schema import LISTS

if TYPE_CHECKING:
    from ...plan.boundaries import Fence
    from ...provider.registry import Registry


def find_place(
    folder: Path, registry: Registry | None = None
) -> tuple[RepositoryFolder | None, Fence | None]:
    """What the repository file above a folder says about it, and its boundary; None if there is
    none. Raises as `read_repository` and `find_folder` do."""
    from .repository_file import find_repository, read_repository  # noqa: PLC0415  # most folders have no such file above them
    from .repository_folders import find_folder  # noqa: PLC0415  # as above

    file = find_repository(folder) or find_repository(folder.resolve())
    if file is None or file.parent == folder:
        return None, None
    shown = os.path.relpath(file, folder).replace(os.sep, "/")
    repository = read_repository(file, shown, registry=registry)
    place = find_folder(repository, folder)
    return place, None if place is None else make_fence(repository, place)


def make_fence(repository: Repository, place: RepositoryFolder) -> Fence | None:
    """The boundary of a folder as rules need it."""
    from ...plan.boundaries import Fence  # noqa: PLC0415  # most folders have no boundary

    boundary = place.boundary
    if boundary is None:
        return None
    return Fence(
        place.path,
        {name: getattr(boundary, name) for name in LISTS},
        frozenset(boundary.deny),
        # Without the path to it, so that a plan is the same wherever it is made.
        f"{FILES[boundary.location.file.endswith('.json')]}:{boundary.location.line}",
        repository.owner or f"whoever can change {FILES[0]}",
    )


def add_clusters(place: RepositoryFolder, tree: Tree) -> Tree:
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


def add_defaults(place: RepositoryFolder, declared: Iterable[Declared]) -> tuple[Declared, ...]:
    """The objects, with the owner and the labels of the folder. What a block says itself wins."""
    if place.owner is None and not place.labels:
        return tuple(declared)
    return tuple(_add_defaults(place, declared))


def _add_defaults(place: RepositoryFolder, declared: Iterable[Declared]) -> Iterator[Declared]:
    for item in declared:
        owner = place.owner if item.owner is None else item.owner
        yield replace(item, owner=owner, labels=place.labels.with_items(item.labels))
