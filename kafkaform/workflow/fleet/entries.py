"""The clusters and states of a fleet, for the two files that can list them: fleet.hcl, and
kafkaform.hcl with its clusters, and a state and an owner for each of its folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic
from ...core.errors import KafkaformError
from ...core.resource import ProviderConfig
from ...core.secret import PartialRepr
from ...fleet.landed import register as model
from ...language.declare.blocks import Header, render_title
from ...language.values.faults import make_error
from ...provider.contract import Provider
from ...provider.registry import Registry
from ...syntax.nodes import Block, Node
from ..configuration.repository import FILES, Repository, RepositoryFolder
from ..configuration.repository_file import read_repository
from ..configuration.repository_folders import list_folders
from ..connection import configure_cluster


class ClusterEntry(Struct, frozen=True):
    """A cluster."""

    name: str
    settings: ProviderConfig
    """How to connect."""
    provider: Provider


class StateEntry(PartialRepr, frozen=True):
    """A state."""

    _unshown = frozenset({"variables"})

    name: str
    location: str | None
    """A path or URL. None: as the configuration in `folder`, or the repository, says."""
    folder: Path | None
    var_files: tuple[str, ...] = ()
    """Paths relative to the folder."""
    variables: tuple[str, ...] = ()
    """`NAME=TEXT`."""
    place: RepositoryFolder | None = None
    """What the repository says about the folder, if the repository lists the state."""


Report = Callable[[Diagnostic], None]


class Listed(Struct, frozen=True):
    """What a repository has."""

    repository: Repository
    folders: tuple[RepositoryFolder, ...]


def read_listed(node: Node, value: str, folder: Path, report: Report) -> Listed | None:
    """Read the file of a repository; None after faults, which are reported.

    node: what the argument `repository` says; value: that folder; folder: that of fleet.hcl, from
    which it is seen.
    """
    places = (folder / value / name for name in FILES)
    file = next((place for place in places if place.exists()), None)
    if file is None:
        advice = f'Write the folder with {FILES[0]}, seen from this file, such as "..".'
        report(make_error(node, f"there is no {FILES[0]} in {value}", "", advice))
        return None
    shown = os.path.relpath(file, folder).replace(os.sep, "/")
    try:
        repository = read_repository(file, shown)
    except KafkaformError as error:
        for fault in error.diagnostics:
            report(fault)
        return None
    return Listed(repository, list_folders(repository))


def find_block_faults(
    listed: Listed, blocks: Mapping[str, Iterable[Block]]
) -> Iterator[Diagnostic]:
    """The faults of `cluster` and `state` blocks that say something else than the repository.
    blocks: type -> those of fleet.hcl."""
    clusters, folders = listed.repository.clusters, {f.path: f for f in listed.folders}
    for block in blocks["cluster"]:
        cluster, node = clusters.get(block.labels[0].text), block.get_argument("provider")
        provider = getattr(node, "value", None)
        if cluster is not None and provider not in (None, cluster.provider):
            yield make_error(
                node or Header(block),
                f"{render_title(block)} has the provider {cluster.provider} at {cluster.location}",
                advice="Leave provider out.",
            )
    for block in blocks["state"]:
        folder = folders.get(block.labels[0].text)
        if folder is not None:
            yield make_error(
                Header(block),
                f"{render_title(block)} is also the folder {folder.path} of the repository "
                f"{listed.repository.name} ({folder.group.location})",
                advice="Remove the block, or rename it if it is another state.",
            )


def list_clusters(
    listed: Listed,
    own: Collection[str],
    registry: Registry,
    environment: Mapping[str, str],
    report: Report,
) -> Iterator[ClusterEntry]:
    """The clusters with a sound connection, without those for which fleet.hcl has one itself
    (`own`)."""
    clusters = (c for c in listed.repository.clusters.values() if c.name not in own)
    for cluster in clusters:
        settings = configure_cluster(listed.repository, cluster, registry, environment, report)
        if settings is not None:
            named = replace(settings, instance=cluster.name)
            yield ClusterEntry(cluster.name, named, registry.load(cluster.provider))


def list_states(listed: Listed) -> tuple[StateEntry, ...]:
    """One state for each folder, by its path."""
    top = listed.repository.path
    return tuple(StateEntry(f.path, None, top / f.path, place=f) for f in listed.folders)


def add_listed(register: model.Register, listed: Listed, folder: Path) -> model.Register:
    """The register with what the repository has; blocks of fleet.hcl win over it.

    folder: that of fleet.hcl, from which the folders of states are seen.
    """
    repository = listed.repository
    clusters = {cluster.name for cluster in register.clusters}
    owners = {owner.name for owner in register.owners}
    states = (
        model.RegisteredState(
            item.path,
            folder=os.path.relpath(repository.path / item.path, folder).replace(os.sep, "/"),
            owner=item.owner,
        )
        for item in listed.folders
    )
    return replace(
        register,
        clusters=(
            *register.clusters,
            *(model.RegisteredCluster(n) for n in repository.clusters if n not in clusters),
        ),
        states=(*register.states, *states),
        # The first owner whose globs match counts, so those of fleet.hcl come first.
        owners=(
            *register.owners,
            *(owner for owner in _list_owners(listed.folders) if owner.name not in owners),
        ),
    )


def _list_owners(folders: Iterable[RepositoryFolder]) -> Iterator[model.Owner]:
    """Who owns which names, by the boundaries of their folders."""
    boundaries: dict[str, list[RepositoryFolder]] = {}
    for folder in folders:
        if folder.owner is not None and folder.boundary is not None:
            boundaries.setdefault(folder.owner, []).append(folder)
    for owner, owned in boundaries.items():
        topics = (name for f in owned if f.boundary for name in f.boundary.topics)
        principals = (name for f in owned if f.boundary for name in f.boundary.principals)
        # A register knows principals by their whole names only.
        whole = (name for name in principals if "*" not in name)
        yield model.Owner(owner, tuple(dict.fromkeys(topics)), tuple(dict.fromkeys(whole)))
