"""Recognise the topics that applications and services make for themselves, which nobody should
declare: their owners create them with the settings that they need, and delete them.

Source: Kafka 4.1 `StreamsConfig`, `InternalTopicManager` (APPLICATION-NAME-changelog and
-repartition), `DefaultReplicationPolicy`, `MirrorConnectorConfig`; the usual names in the
documentation and images of Kafka Connect, Confluent, Strimzi, Cruise Control, Amazon MSK, Redpanda,
Aiven and Apicurio.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct

from kafkaform.core.resource import Fault, Identity, Observed
from kafkaform.provider.contract import Session

from ..kinds.context import attempt, live_nodes
from ..session import KafkaSession
from ..wire.usage import list_groups

TOPIC = "kafka_topic"
_COMPACTED = "compact"
_CONNECT_PROTOCOL = "connect"


class OwnedNames(Struct, frozen=True):
    """Names of topics of one owner."""

    owner: str
    """Who makes them, in a sentence: `Kafka Connect`."""
    names: re.Pattern[str]
    compacted: bool = False
    """Only topics that are compacted, since the names alone could be those of other topics."""


_OWNERS: Sequence[OwnedNames] = (
    OwnedNames("a schema registry", re.compile(r"_schemas|_schema_encoders|kafkasql-journal")),
    OwnedNames("Amazon MSK", re.compile(r"__amazon_msk_.*")),
    OwnedNames(
        "Confluent's platform",
        re.compile(r"_{1,2}confluent[-_.].*|confluent-audit-log-events.*|.*ksql_processing_log"),
    ),
    OwnedNames("Strimzi", re.compile(r"__strimzi[-_].*")),
    OwnedNames(
        "Cruise Control",
        re.compile(r"__CruiseControlMetrics|__KafkaCruiseControl.*|strimzi\.cruisecontrol\..*"),
    ),
    OwnedNames("Redpanda", re.compile(r"_redpanda[._].*|__redpanda[._].*")),
    OwnedNames("Aiven", re.compile(r"__aiven.*|__karapace.*")),
    OwnedNames(
        "MirrorMaker",
        re.compile(
            r"(?:.+\.)?heartbeats|.+\.checkpoints\.internal|mm2-offset-syncs\..+\.internal"
            r"|mm2-(?:configs|offsets|status)\..+\.internal"
            r"|mirrormaker2-cluster-(?:configs|offsets|status)"
        ),
    ),
    OwnedNames(
        "Kafka Connect",
        re.compile(
            r"_{0,2}(?:.+[-_.])?connect(?:-cluster)?[-_.](?:.+[-_.])?"
            r"(?:configs?|offsets?|status(?:es)?)"
        ),
        compacted=True,
    ),
)
_STREAMS = re.compile(r"(.+)-(?:changelog|repartition)")
_GENERATED = re.compile(r".+-K(?:STREAM|TABLE)-.+-[0-9]{10}(?:-.+)?-(?:changelog|repartition)")
"""A name in which Kafka Streams has numbered its own operators."""
_WORKERS = ("configs", "config", "offsets", "offset", "status", "statuses")


def find_owned(session: Session, kind: str, items: Iterable[Observed]) -> Mapping[Identity, str]:
    """The objects that somebody else makes -> whose they are, as the end of a sentence."""
    if kind != TOPIC:
        return {}
    groups = _list_groups(session) if isinstance(session, KafkaSession) else {}
    owners = ((item.identity, find_owner(item, groups)) for item in items)
    return {identity: owner for identity, owner in owners if owner is not None}


def find_owner(topic: Observed, groups: Mapping[str, str]) -> str | None:
    """Who makes this topic. groups: the group ids -> the protocol of each."""
    name, config = topic.identity.key, topic.attributes.get("config") or {}
    compacted = _COMPACTED in str(config.get("cleanup.policy", ""))
    # Streams creates both with these settings, unlike topics that only have such a name.
    permanent = compacted or str(config.get("retention.ms", "")) == "-1"
    if permanent and (match := _STREAMS.fullmatch(name)) is not None:
        for group in _list_prefixes(match[1]):
            if group in groups:
                return f"Kafka Streams for the group {group}"
        if _GENERATED.fullmatch(name):
            return "Kafka Streams, as the name says"
    for owned in _OWNERS:
        if owned.names.fullmatch(name) and (compacted or not owned.compacted):
            return f"{owned.owner}, as the name says"
    for group, protocol in groups.items():
        if protocol == _CONNECT_PROTOCOL and compacted and _is_of_workers(name, group):
            return f"Kafka Connect for the group {group}"
    return None


def _list_prefixes(text: str) -> Iterator[str]:
    """The text up to each of its hyphens, the longest first: an application id can have some."""
    words = text.split("-")
    yield from ("-".join(words[:count]) for count in range(len(words) - 1, 0, -1))


def _is_of_workers(name: str, group: str) -> bool:
    return any(name == f"{group}{mark}{role}" for mark in "-_." for role in _WORKERS)


def _list_groups(session: KafkaSession) -> Mapping[str, str]:
    """The groups that can be seen; a broker that does not answer only makes fewer of them."""
    context, groups = session.context, dict[str, str]()
    for node in live_nodes(context):
        call = partial(list_groups, context.wire, node, context.timeout)
        rows = attempt("ListGroups", call, node)
        if not isinstance(rows, Fault) and not rows.code:
            groups |= {row.name: row.protocol for row in rows.groups}
    return groups
