"""The APIs of the Kafka protocol that this provider uses, one row each.

A row has everything that the provider must know about an API by its name or number: the right and
the Kafka version that it needs, the errors after which the object may already be as asked, and the
limits of one request. The order of requests is in `kinds/kind.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

# The controller commits one request as one atomic batch of at most 10,000 metadata records. Over
# that, CreateTopics, DeleteTopics, configs and quotas fail with 44, DeleteAcls with 42. Half of it
# leaves room for the records that a broker adds by itself, such as those of ELR (KIP-966).
MAX_RECORDS = 5_000
"""Metadata records in one request."""
MAX_PARTITIONS_MOVED = 500
"""Partitions in one AlterPartitionReassignments."""
MAX_PARTITIONS_ELECTED = 500
"""Partitions in one ElectLeaders."""
# The controller does not bound the records of AlterUserScramCredentials (KIP-554): over 10,000 it
# throws, answers UNKNOWN_SERVER_ERROR (-1) and fails over.
MAX_USERS = 200
"""Users in one AlterUserScramCredentials."""


class RightTarget(StrEnum):
    """The resource on which ACLs must allow a request."""

    CLUSTER = "Cluster"
    TOPIC = "Topic"
    """The topic that the request names."""
    GROUP = "Group"
    """The group that the request names."""
    TRANSACTIONAL_ID = "TransactionalId"
    """The transactional id that the request names."""
    # DescribeConfigs and IncrementalAlterConfigs check the resource itself and nothing wider: the
    # right on Cluster covers brokers and client metrics, but no topic (unlike KIP-133's text).
    CONFIGS = "configs"
    """The owner of the configs: a topic, a group, or otherwise the cluster."""
    USER = "User"
    """The principal that the request names (KIP-373)."""
    TOKEN = "DelegationToken"
    """The delegation token that the request names (KIP-48)."""


class RequestLimits(Struct, frozen=True):
    """The size limits of one request that changes something."""

    items: int
    """Steps: topics, entities, filters, …"""
    weight: int
    """The sum of the steps' weights: metadata records, or partitions."""


class Api(Struct, frozen=True):
    """What the provider knows about one API."""

    name: str
    key: int
    """The protocol's number."""
    operation: str = ""
    """The operation that ACLs must allow; empty if no error of the API names the missing right."""
    on: RightTarget = RightTarget.CLUSTER
    or_cluster: bool = False
    """True if the same operation on the cluster is enough, too."""
    reports_right: bool = True
    """True if the cluster reports beforehand whether we have the right."""
    since: str = ""
    """The first Kafka version with the form that we send; empty if every supported one has it."""
    with_zookeeper: str = ""
    """The same for a cluster with ZooKeeper, if that had it earlier."""
    without: str = ""
    """What happens on a cluster that does not have it."""
    # Without KRaft a broker does not forward (KIP-590), and answers with NOT_CONTROLLER (41).
    for_controller: bool = False
    """True if a cluster with ZooKeeper takes it only at its controller."""
    converged: frozenset[int] = frozenset()
    """Error codes after which the object may already be as asked: it is read before the step
    counts as failed."""
    at_once: bool = False
    """True if any broker answers from memory: a silent one is given up early for another one."""
    limits: RequestLimits | None = None
    """None for an API that only reads. Around a request that changes something, the session asks
    which cluster answers."""

    @property
    def needs(self) -> str:
        """The version that it needs: `Kafka 3.5 (2.7 with ZooKeeper)`; empty if all have it."""
        earlier = f" ({self.with_zookeeper} with ZooKeeper)" if self.with_zookeeper else ""
        return f"Kafka {self.since}{earlier}" if self.since else ""

    @property
    def right(self) -> str:
        """The right as advice calls it, with `{name}` for the name of the topic, group, …"""
        if not self.operation:
            return "a right on Cluster"
        kind = RightTarget.TOPIC if self.on is RightTarget.CONFIGS else self.on
        resource = "Cluster" if kind is RightTarget.CLUSTER else f"{kind} {{name}}"
        alternative = f", or {self.operation} on Cluster" if self.or_cluster else ""
        return f"{self.operation} on {resource}{alternative}"


_READING = (
    Api("Fetch", 1, "Read", RightTarget.TOPIC),
    Api("ListOffsets", 2),
    Api("FindCoordinator", 10, "Describe", RightTarget.GROUP),
    # Topic ids came with KIP-516; without them nobody can tell a recreated topic from the old one.
    Api("Metadata", 3, "Describe", RightTarget.TOPIC, since="2.8", at_once=True),
    Api("OffsetFetch", 9, "Describe", RightTarget.GROUP, since="3.0"),  # KIP-709
    Api("DescribeGroups", 15, "Describe", RightTarget.GROUP),
    Api("ListGroups", 16),
    Api("ApiVersions", 18, at_once=True),
    Api("DescribeAcls", 29, "Describe", at_once=True),
    Api("DescribeConfigs", 32, "DescribeConfigs", RightTarget.CONFIGS, at_once=True),
    # Not `at_once`: each broker reads its own disks, and only it knows them.
    Api("DescribeLogDirs", 35, "Describe"),
    # Tokens that we may not see are left out without an error. KRaft has tokens since 3.6.
    Api(
        "DescribeDelegationToken",
        41,
        "Describe",
        RightTarget.TOKEN,
        reports_right=False,
        since="3.6",
        at_once=True,
    ),
    Api(
        "ListPartitionReassignments",
        46,
        "Describe",
        since="2.4",  # KIP-455
        for_controller=True,
        at_once=True,
    ),
    Api("DescribeClientQuotas", 48, "DescribeConfigs", since="2.6", at_once=True),  # KIP-546
    Api(
        "DescribeUserScramCredentials",
        50,
        "Describe",
        since="3.5",  # KIP-900
        with_zookeeper="2.7",  # KIP-554
        without="users are not managed: `kafka_user_scram_credential` is refused",
        at_once=True,
    ),
    # A broker of a cluster with ZooKeeper does not have it.
    Api("DescribeQuorum", 55, at_once=True),
    Api("DescribeCluster", 60, since="2.8", at_once=True),  # KIP-700
    Api("DescribeProducers", 61, "Read", RightTarget.TOPIC, since="2.8"),  # KIP-664
    Api("DescribeTransactions", 65, "Describe", RightTarget.TRANSACTIONAL_ID, since="3.0"),
    Api("ListTransactions", 66, "Describe", RightTarget.TRANSACTIONAL_ID, since="3.0"),
    Api("ConsumerGroupDescribe", 69, "Describe", RightTarget.GROUP, since="4.0"),  # KIP-848
    # Kafka 3.7 lists client metrics only (KIP-714), 4.1 groups and topics too (KIP-1142).
    Api(
        "ListConfigResources",
        74,
        "DescribeConfigs",
        since="3.7",
        without="`import --all` and snapshots leave subscriptions out",
        at_once=True,
    ),
    Api("ShareGroupDescribe", 77, "Describe", RightTarget.GROUP, since="4.1"),  # KIP-932
    Api("StreamsGroupDescribe", 89, "Describe", RightTarget.GROUP, since="4.1"),  # KIP-1071
    Api("DescribeShareGroupOffsets", 90, "Describe", RightTarget.GROUP, since="4.1"),
)

# Each topic has an answer of its own, and those that succeed are committed as one batch: topics of
# one request come to be together, or fail one by one (KIP-4).
CREATE_TOPICS = Api(
    "CreateTopics",
    19,
    "Create",
    RightTarget.TOPIC,
    or_cluster=True,
    reports_right=False,  # no broker reports who may create a topic of one name
    for_controller=True,
    converged=frozenset({36}),  # TOPIC_ALREADY_EXISTS
    limits=RequestLimits(200, MAX_RECORDS),
)
DELETE_TOPICS = Api(
    "DeleteTopics",
    20,
    "Delete",
    RightTarget.TOPIC,
    or_cluster=True,
    since="2.8",  # by id (KIP-516)
    for_controller=True,
    converged=frozenset({3, 100}),  # UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID
    limits=RequestLimits(200, MAX_RECORDS),
)
CREATE_ACLS = Api("CreateAcls", 30, "Alter", limits=RequestLimits(1_000, MAX_RECORDS))
# Far fewer items than for CreateAcls: each filter makes the controller's only thread look at every
# live ACL. `kinds/acl/requests.py` cuts large requests further.
DELETE_ACLS = Api(
    "DeleteAcls",
    31,
    "Alter",
    converged=frozenset({91}),  # our own code for a filter that matched nothing
    limits=RequestLimits(200, MAX_RECORDS),
)
# Over 10,000 records, CreatePartitions fails for single topics with -1, although some of their
# partitions may be committed. The weight limit keeps us far away from that.
CREATE_PARTITIONS = Api(
    "CreatePartitions",
    37,
    "Alter",
    RightTarget.TOPIC,
    for_controller=True,
    converged=frozenset({37}),  # INVALID_PARTITIONS also means: the count is there already
    limits=RequestLimits(200, MAX_RECORDS),
)
ELECT_LEADERS = Api(
    "ElectLeaders",
    43,
    "Alter",
    since="2.4",  # KIP-460
    for_controller=True,
    limits=RequestLimits(200, MAX_PARTITIONS_ELECTED),
)
# Never AlterConfigs (33): it replaces the whole map, and so removes what others have set.
INCREMENTAL_ALTER_CONFIGS = Api(
    "IncrementalAlterConfigs",
    44,
    "AlterConfigs",
    RightTarget.CONFIGS,
    since="2.3",  # KIP-339
    limits=RequestLimits(500, MAX_RECORDS),
)
# A reassignment that runs already is no error: the new one replaces it (KIP-455).
ALTER_PARTITION_REASSIGNMENTS = Api(
    "AlterPartitionReassignments",
    45,
    "Alter",
    since="2.4",  # KIP-455
    for_controller=True,
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
    since="3.5",  # KIP-900
    with_zookeeper="2.7",  # KIP-554
    without="users are not managed: `kafka_user_scram_credential` is refused",
    for_controller=True,
    converged=frozenset({91}),  # RESOURCE_NOT_FOUND: there is nothing to delete
    limits=RequestLimits(MAX_USERS, MAX_USERS),
)
# No broker reports rights on users and tokens beforehand. A request names one token only.
CREATE_DELEGATION_TOKEN = Api(
    "CreateDelegationToken",
    38,
    "CreateTokens",
    RightTarget.USER,
    reports_right=False,
    since="3.6",
    limits=RequestLimits(1, 1),
)
# Owners and renewers need no ACL to renew and to expire; Describe lets them find the token.
RENEW_DELEGATION_TOKEN = Api(
    "RenewDelegationToken",
    39,
    "Describe",
    RightTarget.TOKEN,
    reports_right=False,
    since="3.6",
    limits=RequestLimits(1, 1),
)
EXPIRE_DELEGATION_TOKEN = Api(
    "ExpireDelegationToken",
    40,
    "Describe",
    RightTarget.TOKEN,
    reports_right=False,
    since="3.6",
    converged=frozenset({62}),  # DELEGATION_TOKEN_NOT_FOUND: it is gone
    limits=RequestLimits(1, 1),
)
# Version 0 cannot be tried out (KIP-778). The controller answers for all features of a request at
# once since Kafka 4.0 (KIP-1022).
UPDATE_FEATURES = Api(
    "UpdateFeatures",
    57,
    "Alter",
    since="3.3",
    limits=RequestLimits(100, 100),
)

# Brokers report no rights on groups beforehand. Each request names one group.
MAX_OFFSETS = 1_000
"""Partitions in one request about the offsets of a group: the coordinator writes them as one batch,
which must fit into `message.max.bytes` (1 MiB by default)."""
OFFSET_COMMIT = Api(
    "OffsetCommit",
    8,
    "Read",
    RightTarget.GROUP,
    reports_right=False,
    limits=RequestLimits(1, MAX_OFFSETS),
)
OFFSET_DELETE = Api(
    "OffsetDelete",
    47,
    "Delete",
    RightTarget.GROUP,
    reports_right=False,
    since="2.4",  # KIP-496
    limits=RequestLimits(1, MAX_OFFSETS),
)
DELETE_GROUPS = Api(
    "DeleteGroups",
    42,
    "Delete",
    RightTarget.GROUP,
    reports_right=False,
    converged=frozenset({69}),  # GROUP_ID_NOT_FOUND: it is gone
    limits=RequestLimits(1, MAX_OFFSETS),
)
ALTER_SHARE_GROUP_OFFSETS = Api(
    "AlterShareGroupOffsets",
    91,
    "Read",
    RightTarget.GROUP,
    reports_right=False,
    since="4.1",  # KIP-932
    limits=RequestLimits(1, MAX_OFFSETS),
)
DELETE_SHARE_GROUP_OFFSETS = Api(
    "DeleteShareGroupOffsets",
    92,
    "Delete",
    RightTarget.GROUP,
    reports_right=False,
    since="4.1",  # KIP-932
    limits=RequestLimits(1, MAX_OFFSETS),
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
        CREATE_DELEGATION_TOKEN,
        RENEW_DELEGATION_TOKEN,
        EXPIRE_DELEGATION_TOKEN,
        UPDATE_FEATURES,
        OFFSET_COMMIT,
        OFFSET_DELETE,
        DELETE_GROUPS,
        ALTER_SHARE_GROUP_OFFSETS,
        DELETE_SHARE_GROUP_OFFSETS,
    )
}
"""Name -> row."""
