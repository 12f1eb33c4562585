"""What `inventory` leaves in a folder and `fleet` finds there: names and shapes of landing files.

    landing/register/<taken>.json                         fleet.hcl, as data
    landing/live/<cluster>/<snapshot>.jsonl + .meta.json  what a cluster showed
    landing/state/<lineage>/<snapshot>.jsonl + .meta.json what a state recorded
    landing/desired/<lineage>/<snapshot>.jsonl + .meta.json  what its configuration declares
    landing/audit/<lineage>/<from>-<to>.jsonl             closed pieces of its log, line by line

A file is written once and never changed. The `.meta.json` is written last: rows without it are
not there. A cluster that could not be read has a `.meta.json` alone, which says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from .canonical import dumps
from .value import EMPTY, FrozenMap, SecretRef, Value

FORMAT = 1
"""Of all landing files; a reader refuses later ones."""
ROOT = "landing"
REGISTER, AUDIT = "register", "audit"
LIVE, STATE, DESIRED = "live", "state", "desired"
SOURCES = (LIVE, STATE, DESIRED)
ROWS, META = ".jsonl", ".meta.json"
CLUSTER, TOPIC_USAGE, GROUP_USAGE = "cluster", "topic_usage", "group_usage"
"""Kinds of live rows that nobody can declare: the cluster itself, how far a topic's log goes
(key: the topic), and what a consumer group has read of a topic (key: `group topic`)."""


class LandedRow(Struct, frozen=True):
    """One object, as a line. key: the identity's key; attrs: dotted path -> text
    (`flatten_attributes`); scope_id: of the system that it is in, None if nobody knows yet;
    address, owner: of what declares it; incarnation: the live object's."""

    kind: str
    key: str
    attrs: Mapping[str, str]
    instance: str | None = None
    scope_id: str | None = None
    address: str | None = None
    owner: str | None = None
    incarnation: str | None = None


class Meta(Struct, frozen=True):
    """What stands beside the rows. subject: name of a cluster in fleet.hcl, or a lineage;
    started, ended: RFC 3339; sha256: of the rows' bytes, lower-case hex; complete: everything was
    read and seen; coverage: kind -> complete, visible_only or failed; error: why there are no
    rows, or not all; scopes: instance -> scope id, of states and configurations."""

    source: str
    subject: str
    snapshot: str
    started: str
    ended: str
    complete: bool
    rows: int = 0
    sha256: str | None = None
    scope_id: str | None = None
    coverage: Mapping[str, str] = EMPTY
    error: str | None = None
    scopes: Mapping[str, str] = EMPTY
    format: int = FORMAT


def flatten_attributes(attributes: FrozenMap) -> dict[str, str]:
    """Attributes as flat text: `config.retention.ms` -> `1000`; texts as they are, all else as
    canonical JSON; what is null or secret is left out."""
    return dict(_walk_attributes(attributes, ""))


def _walk_attributes(attributes: FrozenMap, prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in attributes.items():
        if isinstance(value, FrozenMap):
            yield from _walk_attributes(value, f"{prefix}{name}.")
        elif value is not None and not isinstance(value, SecretRef):
            yield prefix + name, _render_value(value)


def _render_value(value: Value) -> str:
    return value if isinstance(value, str) else dumps(value)
