"""The clusters and states of a fleet, for the two files that can list them: fleet.hcl, whose schema
is here, and kafkaform.hcl with its clusters, and a state and an owner for each of its folders."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kafkaform_kafka.protocol.rates import RATES, refuse_negative

from ...core.diagnostics import Diagnostic
from ...core.errors import KafkaformError, UsageError
from ...core.resource import ProviderConfig
from ...core.schema import (
    ANY,
    BOOL,
    NUMBER,
    STRING,
    AttributeSchema,
    ObjectSchema,
    list_of,
    make_schema,
)
from ...core.secret import PartialRepr
from ...fleet.datasets.policy_conditions import ConditionFault, find_pattern_fault, parse_condition
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
from ..stores import parse_duration


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
    repository_folder: RepositoryFolder | None = None
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
    candidates = (folder / value / name for name in FILES)
    file = next((candidate for candidate in candidates if candidate.exists()), None)
    if file is None:
        advice = f'Write the folder with {FILES[0]}, seen from this file, such as "..".'
        report(make_error(node, f"there is no {FILES[0]} in {value}", "", advice))
        return None
    display_name = os.path.relpath(file, folder).replace(os.sep, "/")
    try:
        repository = read_repository(file, display_name)
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
    return tuple(
        StateEntry(f.path, None, top / f.path, repository_folder=f) for f in listed.folders
    )


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


_DAYS = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)d", re.ASCII)
_DAY_SECONDS = 86_400.0
# An escaped backslash comes first, so that the p after it is not taken for a category.
_CATEGORY = re.compile(r"(\\\\)|\\[pP]\{[CLMNPSZ][a-z]?\}")


def parse_seconds(text: str) -> float:
    """Parse `36h`, `2m` or `3d`; return seconds. Raises UsageError."""
    match = _DAYS.fullmatch(text.strip())
    return float(match[1]) * _DAY_SECONDS if match else parse_duration(text, "The value")


def _check_duration(value: Any) -> Iterator[tuple[str, str]]:
    try:
        parse_seconds(value)
    except UsageError:
        yield f"{value!r} is not a duration", "Write it as 90s, 2m, 36h or 3d."


def _check_date(value: Any) -> Iterator[tuple[str, str]]:
    try:
        date.fromisoformat(value)
    except ValueError:
        yield (
            f"{value!r} is not a date",
            "Write the last day on which it counts, such as 2026-12-31.",
        )


def _check_condition(value: Any) -> Iterator[tuple[str, str]]:
    try:
        parse_condition(value)
    except ConditionFault as fault:
        advice = fault.advice or "docs/fleet/register.md explains conditions."
        yield f'"where" cannot be read: {fault.message}', advice


def _check_pattern(value: Any) -> Iterator[tuple[str, str]]:
    r"""Spark runs the pattern in Java. `re` understands everything that Java does here except
    categories such as `\p{L}`."""
    import regex  # type: ignore[import-untyped]  # noqa: PLC0415  # few registers have such a rule

    fault = find_pattern_fault(_CATEGORY.sub(lambda match: match[1] or ".", value))
    try:
        regex.compile(value)
    except regex.error as error:
        fault = f"cannot be read ({error})"
    if fault:
        yield (
            f"{value!r} is not a regular expression: it {fault.rstrip(',')}",
            r"Use only what Python and Java read alike, and \p{L} or \p{Lu} for character classes.",
        )


def _check_share(value: Any) -> Iterator[tuple[str, str]]:
    if not 0 <= value <= 1:
        yield (
            f"{value} is not a share",
            "Write a number from 0 to 1: 0.001 is one line in a thousand.",
        )


def _make_duration(name: str, doc: str) -> AttributeSchema:
    return AttributeSchema(name, STRING, doc, refuses=_check_duration)


def _make_count(name: str, doc: str) -> AttributeSchema:
    return AttributeSchema(name, NUMBER, doc, whole=True, refuses=refuse_negative)


NOTICE_DAYS = 14
FLEET = make_schema(
    "Where the landing files and tables are, and the limits by which everything is judged.",
    AttributeSchema("root", STRING, "A folder, or a URL such as s3://bucket/fleet."),
    AttributeSchema(
        "repository",
        STRING,
        "The folder with kafkaform.hcl, seen from this file. Its clusters, and the states and "
        "owners of its folders, are those of the fleet.",
    ),
    _make_duration("stale_after", "A snapshot older than this counts as stale."),
    _make_duration("skew", "How far the clocks of a runner and of a snapshot may differ."),
    _make_count("grace_days", "How many days a topic can be idle before it counts as unused."),
    AttributeSchema(
        "notice_days",
        NUMBER,
        "How many days the owner of an unused topic has to object.",
        whole=True,
        default=NOTICE_DAYS,
        refuses=refuse_negative,
    ),
    AttributeSchema(
        "max_corrupt",
        NUMBER,
        "A build fails if more than this share of the lines is bad.",
        refuses=_check_share,
    ),
    _make_count(
        "short_prefix", "An ACL prefix of at most this many characters is reported as short."
    ),
    AttributeSchema("principals", list_of(STRING), "Known principals that belong to no owner."),
)
CLUSTER = make_schema(
    "A cluster of the fleet, or another system that a provider can list.",
    AttributeSchema(
        "provider",
        STRING,
        "The provider that lists it, such as kafka_connect. `connection` takes what its `provider` "
        "block takes.",
        default="kafka",
    ),
    AttributeSchema("env", STRING, "Its environment, such as prod."),
    AttributeSchema("region", STRING, "Where it is."),
    AttributeSchema("owner", STRING, "Who runs it."),
    AttributeSchema(
        "super_users",
        list_of(STRING),
        "The brokers' super.users, which they do not reveal. Default: unknown, which is not none.",
    ),
    AttributeSchema(
        "allow_if_no_acl",
        BOOL,
        "The brokers' allow.everyone.if.no.acl.found. Default: unknown.",
    ),
    _make_count("limit_replicas", "How many replicas the cluster should hold at most."),
    AttributeSchema(
        "kafka_cluster",
        STRING,
        "Of a schema registry: the Kafka cluster whose topics its subjects are about. Default: "
        "unknown, so topics and subjects are not compared.",
    ),
)
STATE = make_schema(
    "A state of kafkaform, and the folder of its configuration.",
    AttributeSchema(
        "location",
        STRING,
        "Where it is, as for --state. Default: as the configuration in `folder` says.",
    ),
    AttributeSchema("folder", STRING, "The folder of its configuration. Default: unknown."),
    AttributeSchema("var_files", list_of(STRING), "Variable files, relative to the folder."),
    AttributeSchema("vars", ANY, "Variables by name. They override those of the files."),
    AttributeSchema("owner", STRING, "Who answers for it."),
)
OWNER = make_schema(
    "The topics and principals of a team.",
    AttributeSchema("topics", list_of(STRING), "Names of topics; * is any text."),
    AttributeSchema("principals", list_of(STRING), "As ACLs write them, such as User:orders."),
)
RULE = make_schema(
    "A rule that objects must not break.",
    AttributeSchema(
        "severity", STRING, "How bad it is.", required=True, choices=("high", "medium", "low")
    ),
    AttributeSchema("kind", STRING, "The kinds that it is about; * is any text.", required=True),
    AttributeSchema(
        "where",
        STRING,
        "An SQL condition that is true for an object that breaks the rule.",
        required=True,
        refuses=_check_condition,
    ),
    AttributeSchema("message", STRING, "The message of its findings.", required=True),
    AttributeSchema(
        "source", STRING, "The rows to judge.", default="live", choices=("live", "desired")
    ),
    AttributeSchema("owner", STRING, "Who is responsible. Default: the object's owner."),
)
WAIVER = make_schema(
    "An exception from a rule.",
    AttributeSchema("cluster", STRING, "Which clusters; * stands for any text.", default="*"),
    AttributeSchema("key", STRING, "The objects; * is any text.", default="*"),
    AttributeSchema(
        "until", STRING, "The last day, such as 2026-12-31.", required=True, refuses=_check_date
    ),
    AttributeSchema("reason", STRING, "The reason.", required=True),
)
KEEP = make_schema(
    "Topics that stay although they seem to be unused.",
    AttributeSchema("topic", STRING, "Names of topics; * is any text.", required=True),
    AttributeSchema("cluster", STRING, "Which clusters; * stands for any text.", default="*"),
    AttributeSchema(
        "until", STRING, "The last day, such as 2026-12-31.", required=True, refuses=_check_date
    ),
    AttributeSchema("reason", STRING, "The reason.", required=True),
)
NAMING = make_schema(
    "A pattern for the names of a kind.",
    AttributeSchema("kind", STRING, "Such as kafka_topic.", required=True),
    AttributeSchema(
        "pattern",
        STRING,
        "A regular expression that must match the whole key.",
        required=True,
        refuses=_check_pattern,
    ),
    AttributeSchema("cluster", STRING, "Which clusters; * stands for any text.", default="*"),
)
BLOCKS: Mapping[str, ObjectSchema] = {
    "fleet": FLEET,
    "cluster": CLUSTER,
    "state": STATE,
    "owner": OWNER,
    "rates": RATES,
    "rule": RULE,
    "naming": NAMING,
    "keep": KEEP,
}
LABELLED_BLOCKS = ("cluster", "state", "owner", "rule")
"""Blocks with one label, which must be unique for the type."""
SINGLE_BLOCKS = ("fleet", "rates")
"""Blocks that may occur once."""
INNER_BLOCKS: Mapping[str, tuple[str, ...]] = {"cluster": ("connection",), "rule": ("waiver",)}
"""Blocks inside of these blocks, which are read separately."""
