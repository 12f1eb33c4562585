"""DescribeCluster, DescribeQuorum, finalized features (ApiVersions) and DescribeLogDirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest
from msgspec import Struct

from .client import Wire


class ClusterRow(Struct, frozen=True):
    """The cluster as one broker describes it."""

    code: int
    message: str | None
    cluster_id: str
    brokers: Mapping[str, str | None]
    """Id -> rack or None. Only live brokers are listed."""
    operations: frozenset[int]
    """Codes of our rights on the cluster (KIP-430)."""
    hosts: Mapping[str, tuple[str, int]]
    """Id -> host and port of the listener that was asked."""
    # Under KRaft it is any live broker, because clients need not find the controller any more:
    # brokers forward to it (KIP-590). `read_leadership` asks the quorum instead.
    controller: int = -1
    """The broker that is the controller of a cluster with ZooKeeper, -1 if there is none."""


class LogSize(Struct, frozen=True):
    """The log of one replica on one broker."""

    topic: str
    partition: int
    broker: str
    size: int
    """Bytes."""


class BrokerVersions(Struct, frozen=True):
    """What one broker says about its version (ApiVersions)."""

    apis: Mapping[int, int]
    """Number of each API -> the highest version that it understands."""
    features: Mapping[str, int]
    """Feature -> the level that the whole cluster has finalized (KIP-584), such as
    metadata.version. Empty with ZooKeeper."""
    level: int | None
    """The highest level of metadata.version that the software of the broker supports."""


class Leadership(Struct, frozen=True):
    """Who leads the metadata quorum."""

    leader: int
    """Id of the active controller."""
    epoch: int
    """Each new leader has a greater one."""


def describe_cluster(wire: Wire, timeout: float, node: str | None = None) -> ClusterRow:
    """The cluster id, its live brokers and our rights on the cluster. node: the broker whose view
    to return, None for any."""
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=True, include_fenced_brokers=False
    )
    response = wire.send(request, timeout, node)
    return ClusterRow(
        code=response.error_code,
        message=response.error_message,
        cluster_id=response.cluster_id,
        brokers={
            str(row.broker_id): row.rack
            for row in sorted(response.brokers, key=lambda row: row.broker_id)
        },
        operations=frozenset(response.authorized_operations or ()),
        hosts={str(row.broker_id): (row.host, row.port) for row in response.brokers},
        controller=response.controller_id,
    )


def read_cluster_operations(wire: Wire, timeout: float) -> frozenset[int] | None:
    """Codes of our rights on the cluster; None if the broker does not say."""
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=True, include_fenced_brokers=False
    )
    operations = wire.send(request, timeout).authorized_operations
    return None if operations is None else frozenset(operations)


def find_quorum_leader(wire: Wire, timeout: float) -> int | None:
    """Id of the node that leads the metadata quorum, None if the broker does not say."""
    leadership = read_leadership(wire, timeout)
    return None if leadership is None else leadership.leader


def read_leadership(wire: Wire, timeout: float) -> Leadership | None:
    """Who leads the metadata quorum (KIP-595), None if the broker does not say."""
    topic = DescribeQuorumRequest.TopicData
    request = DescribeQuorumRequest(
        topics=[
            topic(
                topic_name="__cluster_metadata",
                partitions=[topic.PartitionData(partition_index=0)],
            )
        ]
    )
    response = wire.send(request, timeout)
    leaders = (
        Leadership(partition.leader_id, partition.leader_epoch)
        for topic in response.topics
        for partition in topic.partitions
        if not partition.error_code and partition.leader_id >= 0
    )
    # DescribeQuorum needs Describe on Cluster; and during an election there is no leader.
    return None if response.error_code else next(leaders, None)


def read_versions(wire: Wire, timeout: float, node: str | None = None) -> BrokerVersions:
    """The versions of one broker. node: which one, None for any."""
    request = ApiVersionsRequest(
        client_software_name="kafkaform", client_software_version="1", min_version=3
    )
    response = wire.send(request, timeout, node)
    supported = response.supported_features or ()
    return BrokerVersions(
        {row.api_key: row.max_version for row in response.api_keys or ()},
        {row.name: row.max_version_level for row in response.finalized_features or ()},
        next((row.max_version for row in supported if row.name == "metadata.version"), None),
    )


def read_log_sizes(
    wire: Wire, topics: Mapping[str, int], node: str, timeout: float
) -> Sequence[LogSize] | None:
    """Sizes of the logs of these topics on one broker, None if it does not say. topics: name ->
    number of partitions."""
    row = DescribeLogDirsRequest.DescribableLogDirTopic
    request = DescribeLogDirsRequest(
        topics=[row(topic=name, partitions=list(range(count))) for name, count in topics.items()]
    )
    response = wire.send(request, timeout, node)
    # Without Describe on Cluster, Kafka before 3.2 answers with an empty list and no error; every
    # broker has a log directory. A failed disk has an error of its own (KIP-113), and a sum without
    # it would be too small.
    failed = any(directory.error_code for directory in response.results)
    if response.error_code or failed or not response.results:
        return None
    return [
        LogSize(topic.name, partition.partition_index, node, partition.partition_size)
        for directory in response.results
        for topic in directory.topics
        for partition in topic.partitions
    ]
