"""The APIs of the Kafka protocol that this provider speaks: one row each.

Whatever has to be known of an API by its name or number is in its row: the right that it needs, the
Kafka version that it needs, which of its errors only say that the work is done already, and the
limits of one request. The order in which requests leave is in `kinds/request_order.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

MAX_RECORDS = 5_000
"""Metadata records in one request; the controller refuses 10,000 as one atomic batch."""
MAX_PARTITIONS_MOVED = 500
MAX_PARTITIONS_ELECTED = 500
MAX_USERS = 200
"""Users in one request: its records are no bounded list, and too many of them make the controller
fail over."""


class RightTarget(StrEnum):
    """The resource on which ACLs must allow a request."""

    CLUSTER = "Cluster"
    TOPIC = "Topic"
    """The topic that the request names."""
    CONFIGS = "configs"
    """The owner of the configs: a topic, a group, or for all others the cluster."""


class RequestLimits(Struct, frozen=True):
    """How much one request that changes something holds."""

    items: int
    """Steps: topics, entities, filters, …"""
    weight: int
    """The sum of the steps' weights: metadata records, or partitions."""


class Api(Struct, frozen=True):
    """All that is known of one API."""

    name: str
    key: int
    """The protocol's number."""
    operation: str = ""
    """What ACLs must allow; empty where no error of the API says which right is missing."""
    on: RightTarget = RightTarget.CLUSTER
    or_cluster: bool = False
    """The same operation on the cluster does as well."""
    foretold: bool = True
    """The cluster tells beforehand whether we have the right."""
    since: str = ""
    """The Kafka version with the oldest form that we send; empty where every supported one has
    it."""
    converged: frozenset[int] = frozenset()
    """Error codes after which the object may be as asked, so it is read before it counts as
    failed."""
    at_once: bool = False
    """Any broker answers from memory, so a silent one is given up early and another is asked."""
    limits: RequestLimits | None = None
    """None for an API that only reads. Around a request that changes something, the session asks
    which cluster answers."""

    @property
    def right(self) -> str:
        """The right as advice names it, with `{name}` for the topic's name."""
        if not self.operation:
            return "a right on Cluster"
        place = "Cluster" if self.on is RightTarget.CLUSTER else "Topic {name}"
        whole = f", or {self.operation} on Cluster" if self.or_cluster else ""
        return f"{self.operation} on {place}{whole}"


_READING = (
    Api("ListOffsets", 2),
    Api("Metadata", 3, "Describe", RightTarget.TOPIC, since="2.8", at_once=True),
    Api("OffsetFetch", 9),
    Api("DescribeGroups", 15),
    Api("ListGroups", 16),
    Api("ApiVersions", 18, at_once=True),
    Api("DescribeAcls", 29, "Describe", at_once=True),
    Api("DescribeConfigs", 32, "DescribeConfigs", RightTarget.CONFIGS, at_once=True),
    Api("DescribeLogDirs", 35, "Describe"),
    Api("ListPartitionReassignments", 46, "Describe", since="2.4", at_once=True),
    Api("DescribeClientQuotas", 48, "DescribeConfigs", since="2.6", at_once=True),
    Api("DescribeUserScramCredentials", 50, "Describe", since="2.7", at_once=True),
    Api("DescribeQuorum", 55, at_once=True),
    Api("DescribeCluster", 60, since="2.8", at_once=True),
    Api("ListConfigResources", 74, "DescribeConfigs", since="3.7", at_once=True),
)

CREATE_TOPICS = Api(
    "CreateTopics",
    19,
    "Create",
    RightTarget.TOPIC,
    or_cluster=True,
    foretold=False,  # no broker tells who may create a topic of one name
    converged=frozenset({36}),
    limits=RequestLimits(200, MAX_RECORDS),
)
DELETE_TOPICS = Api(
    "DeleteTopics",
    20,
    "Delete",
    RightTarget.TOPIC,
    or_cluster=True,
    since="2.8",  # by id (KIP-516)
    converged=frozenset({3, 100}),
    limits=RequestLimits(200, MAX_RECORDS),
)
CREATE_ACLS = Api("CreateAcls", 30, "Alter", limits=RequestLimits(1_000, MAX_RECORDS))
DELETE_ACLS = Api(
    "DeleteAcls", 31, "Alter", converged=frozenset({91}), limits=RequestLimits(200, MAX_RECORDS)
)
CREATE_PARTITIONS = Api(
    "CreatePartitions",
    37,
    "Alter",
    RightTarget.TOPIC,
    converged=frozenset({37}),
    limits=RequestLimits(200, MAX_RECORDS),
)
ELECT_LEADERS = Api(
    "ElectLeaders",
    43,
    "Alter",
    since="2.4",  # KIP-460
    limits=RequestLimits(200, MAX_PARTITIONS_ELECTED),
)
INCREMENTAL_ALTER_CONFIGS = Api(
    "IncrementalAlterConfigs",
    44,
    "AlterConfigs",
    RightTarget.CONFIGS,
    since="2.3",  # KIP-339
    limits=RequestLimits(500, MAX_RECORDS),
)
ALTER_PARTITION_REASSIGNMENTS = Api(
    "AlterPartitionReassignments",
    45,
    "Alter",
    since="2.4",  # KIP-455
    limits=RequestLimits(200, MAX_PARTITIONS_MOVED),
)
ALTER_CLIENT_QUOTAS = Api(
    "AlterClientQuotas",
    49,
    "AlterConfigs",
    since="2.6",  # KIP-546
    limits=RequestLimits(500, MAX_RECORDS),
)
ALTER_USER_SCRAM_CREDENTIALS = Api(
    "AlterUserScramCredentials",
    51,
    "Alter",
    since="2.7",  # KIP-554
    converged=frozenset({91}),
    limits=RequestLimits(MAX_USERS, MAX_USERS),
)

APIS: Mapping[str, Api] = {
    api.name: api
    for api in (
        *_READING,
        CREATE_TOPICS,
        DELETE_TOPICS,
        CREATE_ACLS,
        DELETE_ACLS,
        CREATE_PARTITIONS,
        ELECT_LEADERS,
        INCREMENTAL_ALTER_CONFIGS,
        ALTER_PARTITION_REASSIGNMENTS,
        ALTER_CLIENT_QUOTAS,
        ALTER_USER_SCRAM_CREDENTIALS,
    )
}
"""Name -> row."""
