"""Landing files: the names and shapes of what `inventory` writes and `fleet` reads.

    landing/register/<taken>.json                         fleet.hcl, as data
    landing/live/<cluster>/<snapshot>.jsonl + .meta.json  what a cluster showed
    landing/state/<lineage>/<snapshot>.jsonl + .meta.json what a state recorded
    landing/desired/<lineage>/<snapshot>.jsonl + .meta.json  what its configuration declares
    landing/audit/<lineage>/<from>-<to>.jsonl             closed pieces of its log, line by line

A file is written once and never changed. The `.meta.json` is written last, so that rows without it
do not count. A cluster that could not be read has only a `.meta.json`, which says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from .canonical import dumps
from .value import EMPTY, FrozenMap, SecretRef

FORMAT = 1
"""The format of all landing files; a reader refuses later ones."""
ROOT = "landing"
REGISTER, AUDIT = "register", "audit"
LIVE, STATE, DESIRED = "live", "state", "desired"
SOURCES = (LIVE, STATE, DESIRED)
ROWS, META = ".jsonl", ".meta.json"
CLUSTER, TOPIC_USAGE, GROUP_USAGE = "cluster", "topic_usage", "group_usage"
DISK_USAGE = "disk_usage"
MEASURED = (CLUSTER, TOPIC_USAGE, GROUP_USAGE, DISK_USAGE)
"""Kinds of live rows that nobody can declare, and that differ in every snapshot: the cluster
itself, the offsets and sizes of a topic (key: the topic), what a consumer group has read of a topic
(key: `group topic`), and the room on a disk (key: `broker directory`)."""
LOGIN = "login"
"""Beside the ids of brokers: the key of the certificate with which we log in."""


class LandedRow(Struct, frozen=True):
    """One object, as one line."""

    kind: str
    """The resource type, or one of the kinds above."""
    key: str
    """The key of its identity."""
    attrs: Mapping[str, str]
    """Dotted path -> text (`flatten_attributes`)."""
    instance: str | None = None
    """The provider instance that it was read through or declared for."""
    scope_id: str | None = None
    """The id of its system, None if nobody knows it yet."""
    address: str | None = None
    """The address that declares or owns it."""
    owner: str | None = None
    """The team that its block names."""
    incarnation: str | None = None
    """The system's id of the live object."""
    park: int | None = None
    """For how many milliseconds the object is parked before it is deleted, if its block says so."""


class Meta(Struct, frozen=True):
    """What a `.meta.json` says about the rows beside it."""

    source: str
    """One of SOURCES."""
    subject: str
    """The name of a cluster in fleet.hcl, or a lineage."""
    snapshot: str
    """The id of the snapshot, which both file names contain."""
    started: str
    """When the snapshot began, RFC 3339."""
    ended: str
    """When the snapshot ended, RFC 3339."""
    complete: bool
    """Everything was read, and nothing was hidden."""
    rows: int = 0
    """How many rows there are."""
    sha256: str | None = None
    """Digest of the rows' bytes, in lower-case hexadecimal digits."""
    scope_id: str | None = None
    """The id of the cluster that was read."""
    coverage: Mapping[str, str] = EMPTY
    """Kind -> complete, visible_only or failed."""
    error: str | None = None
    """Why there are no rows, or not all of them."""
    scopes: Mapping[str, str] = EMPTY
    """Provider instance -> scope id, of states and configurations."""
    format: int = FORMAT
    """The format of both files."""


def flatten_attributes(attributes: FrozenMap) -> dict[str, str]:
    """Attributes as flat text: `config.retention.ms` -> `1000`.

    Texts stay as they are, other values become canonical JSON; nulls and secrets are left out.
    """
    return dict(_walk_attributes(attributes, ""))


def _walk_attributes(attributes: FrozenMap, prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in attributes.items():
        if isinstance(value, FrozenMap):
            yield from _walk_attributes(value, f"{prefix}{name}.")
        elif value is not None and not isinstance(value, SecretRef):
            yield prefix + name, value if isinstance(value, str) else dumps(value)
