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
    """brokers: id -> rack or None, live ones only; operations: codes of what we may do with the
    cluster; hosts: id -> host and port of the listener that was asked. The answer's controller
    is left out: a KRaft broker names any live broker there (see `find_quorum_leader`)."""

    code: int
    message: str | None
    cluster_id: str
    brokers: Mapping[str, str | None]
    operations: frozenset[int]
    hosts: Mapping[str, tuple[str, int]]


class LogSize(Struct, frozen=True):
    """One replica's log on one broker: size in bytes."""

    topic: str
    partition: int
    broker: str
    size: int


class Leadership(Struct, frozen=True):
    """Of the metadata quorum. leader: id of its node, the active controller; epoch: greater with
    each new one."""

    leader: int
    epoch: int


def describe_cluster(wire: Wire, timeout: float, node: str | None = None) -> ClusterRow:
    """The cluster id, its live brokers and our rights on the cluster. node: the broker whose view
    is wanted, None for any."""
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
    )


def read_cluster_operations(wire: Wire, timeout: float) -> frozenset[int] | None:
    """Codes of what we may do with the cluster; None if it does not say."""
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=True, include_fenced_brokers=False
    )
    operations = wire.send(request, timeout).authorized_operations
    return None if operations is None else frozenset(operations)


def find_quorum_leader(wire: Wire, timeout: float) -> int | None:
    """Id of the node that leads the metadata quorum, or None if we are not told."""
    found = read_leadership(wire, timeout)
    return None if found is None else found.leader


def read_leadership(wire: Wire, timeout: float) -> Leadership | None:
    """Who leads the metadata quorum, or None if we are not told."""
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
    return None if response.error_code else next(leaders, None)


def read_finalized_features(wire: Wire, timeout: float) -> Mapping[str, int]:
    """Feature name -> level that the whole cluster runs at, such as metadata.version."""
    request = ApiVersionsRequest(
        client_software_name="kafkaform", client_software_version="1", min_version=3
    )
    response = wire.send(request, timeout)
    rows = response.finalized_features or ()
    return {row.name: row.max_version_level for row in rows}


def read_log_sizes(
    wire: Wire, topics: Mapping[str, int], node: str, timeout: float
) -> Sequence[LogSize] | None:
    """Sizes of these topics' logs on one broker, or None if it does not tell. topics: name ->
    number of partitions."""
    row = DescribeLogDirsRequest.DescribableLogDirTopic
    request = DescribeLogDirsRequest(
        topics=[row(topic=name, partitions=list(range(count))) for name, count in topics.items()]
    )
    response = wire.send(request, timeout, node)
    if response.error_code or any(directory.error_code for directory in response.results):
        return None
    return [
        LogSize(topic.name, partition.partition_index, node, partition.partition_size)
        for directory in response.results
        for topic in directory.topics
        for partition in topic.partitions
    ]
