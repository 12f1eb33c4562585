"""What kafkaform.hcl says: the clusters and folders of a repository, the boundary of each folder,
and the schema: which arguments each block has, and which values are refused. `repository_file`
reads it, `repository_folders` finds the folders."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...core.diagnostics import Diagnostics, Range
from ...core.resource import Fence
from ...core.schema import (
    STRING,
    AttributeSchema,
    ObjectSchema,
    list_of,
    make_schema,
    map_of,
)
from ...core.value import EMPTY, FrozenMap
from ...syntax.nodes import Block
from .files import Base

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
        position = f"{name}:{boundary.location.line}"
        return Fence(self.path, lists, frozenset(boundary.deny), position, boundary.owner)


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


CLUSTER_ACLS = "cluster ACLs"
"""A word of `deny` that is no resource type."""
_SEGMENT = re.compile(r"(?:[A-Za-z0-9_*][A-Za-z0-9._*-]*)")


def find_pattern_fault(pattern: str) -> str:
    """Why a text is no pattern of folders; empty for a pattern."""
    if pattern.startswith(("/", "~")) or re.match(r"[A-Za-z]:", pattern):
        return "it must be a path below the file, without a slash at the beginning"
    for segment in pattern.split("/"):
        if segment in ("", "."):
            return "it has an empty part"
        if segment == "..":
            return "`..` would lead out of the repository"
        if "**" in segment and segment != "**":
            return "`**` stands for whole folders, so it is a part of its own"
        if not _SEGMENT.fullmatch(segment):
            return "a part consists of letters, digits, `_`, `-`, `.` and `*`"
    return ""


def find_name_fault(name: str) -> str:
    """Why a folder of this name is refused; empty for a good name."""
    # `folder.name` stands in patterns of boundaries: a folder that is called `*` would get all.
    if "*" in name or not _SEGMENT.fullmatch(name):
        return (
            "the name of a folder consists of letters, digits, `_`, `-` and `.`, and begins with "
            "a letter, a digit or `_`"
        )
    return ""


def _check_names(value: Any) -> Iterator[tuple[str, str]]:
    for text in value:
        if not text.strip():
            yield "An empty pattern covers nothing", "Remove it, or write a name or a prefix.*."


def _make_names(name: str, doc: str) -> AttributeSchema:
    return AttributeSchema(name, list_of(STRING), doc, refuses=_check_names)


REPOSITORY = make_schema(
    "The repository.",
    AttributeSchema("name", STRING, "What it is called.", required=True),
    AttributeSchema(
        "owner", STRING, "Who can change this file. Faults of boundaries name them, such as a team."
    ),
)
FOLDERS = make_schema(
    "The folders that match the label. Each one with configuration files has a state of its own.",
    AttributeSchema(
        "state",
        STRING,
        "Where the state of a folder without a backend block is, as for --state. A path is seen "
        "from this file. Every folder needs a place of its own, so it contains `${folder.path}`.",
    ),
    AttributeSchema("owner", STRING, "The owner of objects whose block names none."),
    AttributeSchema(
        "labels", map_of(STRING), "Labels of all objects. Those of a block win over these."
    ),
    AttributeSchema(
        "uses",
        map_of(STRING),
        'Provider instance (`kafka`, `"kafka.dr"`) -> the cluster that it reaches, such as '
        "`cluster.prod`, unless the folder has a provider block of this name itself.",
    ),
    AttributeSchema(
        "policies",
        list_of(STRING),
        "Folders of policies that judge the plans, seen from this file.",
    ),
)
BOUNDARY = make_schema(
    "What the blocks of the folders may name. In every list, `*` stands for any text, and a list "
    "that is left out allows nothing.",
    _make_names("topics", "Topics."),
    _make_names("groups", "Consumer groups."),
    _make_names("principals", "Principals as ACLs write them, such as `User:shop-*`."),
    _make_names("transactional_ids", "Transactional ids."),
    _make_names("subjects", "Subjects of a schema registry."),
    _make_names("connectors", "Connectors."),
    _make_names(
        "deny",
        f'Resource types that the folders must not declare at all, and "{CLUSTER_ACLS}". What no '
        "list can cover, such as the configs of all brokers, is always refused.",
    ),
)
CLUSTER = make_schema(
    "A provider block that folders use by name. It has the arguments of its provider.",
    AttributeSchema("provider", STRING, "The name of the provider, such as kafka.", required=True),
)
SCHEMAS: Mapping[str, ObjectSchema] = {"repository": REPOSITORY, "folders": FOLDERS}
"""Type of a block -> its schema. A `cluster` block has that of its provider."""
PAGES: Mapping[str, tuple[ObjectSchema, int]] = {
    "repository": (REPOSITORY, 0),
    "cluster": (CLUSTER, 1),
    "folders": (replace(FOLDERS, blocks=FrozenMap(boundary=BOUNDARY)), 1),
}
"""Type of a block -> all that it can contain, for editors and the reference, and how many labels it
has."""


def find_schema(
    kinds: Sequence[str], provider: str, providers: Mapping[str, ObjectSchema]
) -> ObjectSchema | None:
    """What the innermost of nested blocks can contain; None for a block that the file cannot have.

    kinds: the types of the blocks, the outermost first; provider: the argument `provider` of the
    outermost block; providers: the schemas of provider blocks by name.
    """
    if kinds[0] not in PAGES:
        return None
    schema = PAGES[kinds[0]][0]
    if schema is CLUSTER and provider in providers:
        attributes = {**schema.attributes, **providers[provider].attributes}
        schema = replace(providers[provider], attributes=FrozenMap(attributes))
    for kind in kinds[1:]:
        if kind not in schema.blocks:
            return None
        schema = schema.blocks[kind]
    return schema
