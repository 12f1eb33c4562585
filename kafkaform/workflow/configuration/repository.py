"""What kafkaform.hcl says: the clusters and folders of a repository, and the boundary of each
folder. `repository_file` reads it, `repository_folders` finds the folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ...core.diagnostics import Diagnostics, Range
from ...core.resource import Fence
from ...core.value import EMPTY, FrozenMap
from ...syntax.nodes import Block
from .checkout import Base

FILES = ("kafkaform.hcl", "kafkaform.json")
"""The names of the file, in HCL and in JSON."""
LISTS = ("topics", "groups", "principals", "transactional_ids", "subjects", "connectors")
"""The arguments of a boundary that list patterns of names."""


class Cluster(Struct, frozen=True):
    """A `cluster` block: a provider block that folders use by name."""

    name: str
    provider: str
    """The name of the provider."""
    arguments: FrozenMap
    """How to connect, without what the environment says."""
    location: Range
    block: Block


class FolderGroup(Struct, frozen=True):
    """A `folders` block."""

    pattern: str
    """Which folders, seen from the repository: `teams/*`."""
    location: Range
    block: Block


class Boundary(Struct, frozen=True):
    """A `boundary` block: what the blocks of a folder may name. `*` in a pattern is any text."""

    location: Range
    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Consumer groups."""
    principals: tuple[str, ...] = ()
    """As ACLs write them: `User:shop-*`."""
    transactional_ids: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    """Of a schema registry."""
    connectors: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    """Resource types that the folder must not declare at all."""
    owner: str = ""
    """Who can change it, for messages."""


class RepositoryFolder(Struct, frozen=True):
    """A folder of a repository, with what its `folders` block says about it."""

    path: str
    """Seen from the repository, with slashes: `teams/shop`."""
    name: str
    """The last part of the path."""
    group: FolderGroup
    state: str | None = None
    """The place of its state: a URL or an absolute path. None: not said."""
    owner: str | None = None
    labels: FrozenMap = EMPTY
    uses: Mapping[str, Cluster] = EMPTY
    """Provider instance (`kafka`, `kafka.dr`) -> the cluster that it reaches."""
    policies: tuple[Path, ...] = ()
    """Folders of policies, as absolute paths."""
    boundary: Boundary | None = None
    base: Base | None = None
    """The commit that all this was read from. None: it was read from the disk."""
    faults: Diagnostics = ()
    """Why the folder cannot be used. Other folders can."""

    @property
    def fence(self) -> Fence | None:
        """The boundary as rules need it."""
        boundary = self.boundary
        if boundary is None:
            return None
        lists = {name: getattr(boundary, name) for name in LISTS}
        # Without the path to the file, so that a plan is the same wherever it is made.
        name = boundary.location.file.rpartition("/")[2]
        place = f"{name}:{boundary.location.line}"
        return Fence(self.path, lists, frozenset(boundary.deny), place, boundary.owner)


class Repository(Struct, frozen=True):
    """A file `kafkaform.hcl` without faults."""

    path: Path
    """The folder that has the file, absolute."""
    name: str
    clusters: Mapping[str, Cluster]
    """By name."""
    groups: tuple[FolderGroup, ...]
    file: str
    """The name of the file, as messages show it."""
    owner: str | None = None
    """Who can change the file."""
    base: Base | None = None
    """The commit that the file was read from. None: it was read from the disk."""
