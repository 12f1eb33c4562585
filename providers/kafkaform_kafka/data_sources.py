"""The data sources: their schemas, and their answers from a session.

The answers come from the session's own reads, so that a real cluster and the simulated one answer
alike, and a hidden topic is never taken for a missing one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import NoReturn

from msgspec import Struct

from kafkaform.core.diagnostics import suggest
from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import (
    Absent,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    Hidden,
    Identity,
    Observed,
    Reading,
)
from kafkaform.core.schema import (
    BOOL,
    NUMBER,
    STRING,
    AttributeSchema,
    ObjectSchema,
    list_of,
    make_schema,
    map_of,
    object_of,
)
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import Session

from .kinds.acl import resource_type as acls
from .kinds.acl.resource_type import FILTERS, fits_arguments
from .kinds.quota import resource_type as quota_filter
from .kinds.quota import resource_type as quotas
from .kinds.topic import resource_type as topics
from .protocol.acl import NAMES, parse_acl
from .protocol.cluster_facts import KafkaFacts

_TOPIC = {
    "topic_name": STRING,
    "name": STRING,
    "partitions": NUMBER,
    "replication_factor": NUMBER,
    "config": map_of(STRING),
    "topic_id": STRING,
    "internal": BOOL,
}
_BROKER = {"id": NUMBER, "host": STRING, "port": NUMBER, "rack": STRING}

DATA: Mapping[str, ObjectSchema] = {
    "kafka_topic": make_schema(
        "An existing topic. A missing one is an error.",
        AttributeSchema("name", STRING, "Name of the topic.", required=True),
        AttributeSchema("id", STRING, "The name of the topic.", computed=True),
        AttributeSchema("partitions", NUMBER, "Number of partitions.", computed=True),
        AttributeSchema("replication_factor", NUMBER, "Replicas of each partition.", computed=True),
        AttributeSchema(
            "replica_assignment",
            list_of(list_of(NUMBER)),
            "Broker ids of each partition, the preferred leader first.",
            computed=True,
        ),
        AttributeSchema(
            "config", map_of(STRING), "The config overrides of the topic.", computed=True
        ),
        AttributeSchema(
            "topic_id", STRING, "The id that the cluster gave the topic.", computed=True
        ),
        AttributeSchema("internal", BOOL, "Whether it belongs to Kafka itself.", computed=True),
    ),
    "kafka_topics": make_schema(
        "The topics that the principal can see, sorted by name. Kafka leaves out topics without "
        "the right to describe them, without an error.",
        AttributeSchema("name", STRING, "Only topics whose names fit this pattern; * is any text."),
        AttributeSchema(
            "list",
            list_of(object_of(_TOPIC)),
            "The topics. config is null without the right to read it. topic_name is the name.",
            computed=True,
        ),
        AttributeSchema(
            "complete",
            BOOL,
            "Whether these are all topics that fit. Always false with Kafka, because other topics "
            "can be hidden.",
            computed=True,
        ),
    ),
    "kafka_acls": make_schema(
        "The ACLs that fit all arguments.",
        *acls.FIELDS,
        AttributeSchema(
            "resource_pattern_type_filter",
            STRING,
            "Any (the default): both pattern types; Match: every pattern that covers "
            "resource_name.",
            choices=FILTERS,
        ),
        AttributeSchema(
            "list",
            list_of(object_of(dict.fromkeys(NAMES, STRING))),
            "The ACLs, sorted by principal. A type or operation that is newer than this version "
            "is shown as its number.",
            computed=True,
        ),
        AttributeSchema("complete", BOOL, "Whether these are all ACLs that fit.", computed=True),
    ),
    "kafka_quotas": make_schema(
        "The quotas that fit all arguments: of a user, a client id or an IP address by name, or of "
        "the default entity with the name default. entity_type alone: all quotas with such a part.",
        *quotas.ENTITY,
        AttributeSchema(
            "list",
            list_of(object_of(quota_filter.FIELDS)),
            "The quotas, sorted by id. The id is the import id; it distinguishes the default user "
            "from a user with the name default.",
            computed=True,
        ),
        AttributeSchema("complete", BOOL, "Whether these are all quotas that fit.", computed=True),
        conflicts=quotas.CONFLICTS,
    ),
    "kafka_cluster": make_schema(
        "The cluster of the provider block.",
        AttributeSchema("cluster_id", STRING, "Id of the cluster.", computed=True),
        AttributeSchema("brokers", list_of(object_of(_BROKER)), "The live brokers.", computed=True),
        AttributeSchema(
            "controller_id",
            NUMBER,
            "The active controller. null without Describe on Cluster.",
            computed=True,
        ),
        AttributeSchema(
            "metadata_version",
            NUMBER,
            "The finalized level of the feature metadata.version. null with ZooKeeper.",
            computed=True,
        ),
        AttributeSchema(
            "kafka_version",
            STRING,
            "The version of Kafka, such as 4.1: the newest one whose requests a broker has, since "
            "brokers do not report their version. null if they fit no version from 3.0 on, or are "
            "newer than all versions that kafkaform knows.",
            computed=True,
        ),
    ),
}


class AnswerSource(Struct, frozen=True):
    """The session that answers, and what it cannot read by itself."""

    session: Session
    instance: str
    # DescribeCluster names a random broker as the controller; the cluster's reader asks the quorum.
    cluster: Callable[[], FrozenMap | Fault]
    """Reads the attributes of `kafka_cluster`, without the versions."""


def answer_query(source: AnswerSource, name: str, arguments: FrozenMap) -> FrozenMap:
    """The computed attributes of this data source. Raises KafkaformError (see
    `Session.query`)."""
    if name not in _ANSWERS:
        offered = ", ".join(DATA)
        advice = suggest(name, DATA) or f"use one of {offered}"
        raise KafkaformError(f"the kafka provider has no data source {name}", advice)
    return _ANSWERS[name](source, arguments)


def _answer_topic(source: AnswerSource, arguments: FrozenMap) -> FrozenMap:
    name = arguments["name"]
    identity = Identity(source.instance, topics.KIND, name)
    reading = source.session.read([identity])[identity]
    if not isinstance(reading, Observed):
        _refuse_topic(name, reading)
    attributes = reading.attributes
    return FrozenMap(
        {
            "id": name,
            "partitions": attributes["partitions"],
            "replication_factor": attributes["replication_factor"],
            "replica_assignment": attributes["replica_assignment"],
            "config": attributes["config"],
            "topic_id": reading.incarnation,
            "internal": reading.details["internal"],
        }
    )


def _refuse_topic(name: str, reading: Absent | Hidden | Failed) -> NoReturn:
    if isinstance(reading, Hidden):
        raise KafkaformError(
            f'topic "{name}" does not exist or is hidden: {reading.right} is missing',
            f"grant {reading.right}, or run as a principal that has it",
        )
    if isinstance(reading, Failed):
        raise _make_read_error(f'topic "{name}"', reading.fault)
    raise KafkaformError(
        f'there is no topic "{name}"', "correct the name, or create the topic first"
    )


def _make_read_error(subject: str, fault: Fault) -> KafkaformError:
    return KafkaformError(f"{subject} cannot be read: {fault.message}", fault.advice)


def _answer_topics(source: AnswerSource, arguments: FrozenMap) -> FrozenMap:
    sweep = source.session.sweep(topics.KIND, Depth.NAMES)
    if sweep.coverage.fault is not None:
        raise _make_read_error("the list of topics", sweep.coverage.fault)
    pattern = arguments.get("name") or "*"
    candidates = sorted(
        (item for item in sweep.items if fnmatchcase(item.identity.key, pattern)),
        key=lambda item: item.identity.key,
    )
    readings = source.session.read([item.identity for item in candidates])
    # A topic can be deleted between the listing and the read.
    present = (item for item in candidates if not isinstance(readings[item.identity], Absent))
    return FrozenMap(
        {
            "list": tuple(_describe_listed(item, readings[item.identity]) for item in present),
            "complete": sweep.coverage.kind is CoverageKind.COMPLETE,
        }
    )


def _describe_listed(item: Observed, reading: Reading) -> FrozenMap:
    """One topic of the list. reading: the same topic, read by name for its configs."""
    if isinstance(reading, Failed):
        _refuse_topic(item.identity.key, reading)
    whole = reading if isinstance(reading, Observed) else None
    attributes = (whole or item).attributes
    return FrozenMap(
        {
            "topic_name": item.identity.key,
            "name": item.identity.key,
            "partitions": attributes["partitions"],
            "replication_factor": attributes["replication_factor"],
            "config": attributes["config"] if whole else None,
            "topic_id": (whole or item).incarnation,
            "internal": item.details["internal"],
        }
    )


def _answer_acls(source: AnswerSource, arguments: FrozenMap) -> FrozenMap:
    sweep = source.session.sweep(acls.KIND, Depth.FULL)
    if sweep.coverage.fault is not None:
        raise _make_read_error("the list of ACLs", sweep.coverage.fault)
    rows = sorted(parse_acl(item.attributes) for item in sweep.items)
    return FrozenMap(
        {
            "list": tuple(acl.attributes for acl in rows if fits_arguments(acl, arguments)),
            "complete": sweep.coverage.kind is CoverageKind.COMPLETE,
        }
    )


def _answer_quotas(source: AnswerSource, arguments: FrozenMap) -> FrozenMap:
    sweep = source.session.sweep(quotas.KIND, Depth.FULL)
    if sweep.coverage.fault is not None:
        raise _make_read_error("the list of quotas", sweep.coverage.fault)
    items = sorted(sweep.items, key=lambda item: item.identity.key)
    return FrozenMap(
        {
            "list": tuple(
                quota_filter.describe_quota(item)
                for item in items
                if quota_filter.fits_arguments(item.attributes["entity"], arguments)
            ),
            "complete": sweep.coverage.kind is CoverageKind.COMPLETE,
        }
    )


def _answer_cluster(source: AnswerSource, _: FrozenMap) -> FrozenMap:
    cluster = source.cluster()
    if isinstance(cluster, Fault):
        raise _make_read_error("the cluster", cluster)
    facts = KafkaFacts.of(source.session.facts)
    return cluster.with_items(
        {
            "metadata_version": facts.metadata_version,
            "kafka_version": facts.known_release,
        }
    )


_ANSWERS: Mapping[str, Callable[[AnswerSource, FrozenMap], FrozenMap]] = {
    "kafka_topic": _answer_topic,
    "kafka_topics": _answer_topics,
    "kafka_acls": _answer_acls,
    "kafka_quotas": _answer_quotas,
    "kafka_cluster": _answer_cluster,
}
