"""The cluster and its brokers: DescribeCluster, DescribeQuorum, DescribeLogDirs, ApiVersions with
the features (KIP-584), UpdateFeatures, which changes their levels, and the certificates of TLS."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from typing import Any

from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    UpdateFeaturesRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest
from msgspec import Struct

from ..connection.certificates import Certificate, parse_certificate
from ..connection.settings import KafkaSettings, ssl_context
from .answers import ItemAnswer
from .client import Wire
from .topics import ANSWER_MARGIN

_REFUSED = 31
"""CLUSTER_AUTHORIZATION_FAILED."""


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
    future: bool = False
    """A copy in another log directory of the same broker, which takes the place of the replica
    (KIP-113)."""


class LogDirectory(Struct, frozen=True):
    """One log directory of a broker."""

    path: str
    code: int
    """0, or why it cannot be used: 56 (KAFKA_STORAGE_ERROR) if its disk failed."""
    total: int | None
    """Bytes of the volume that it is on (KIP-827); None if the broker does not say, as before Kafka
    3.3."""
    usable: int | None
    """Bytes of them that the broker can still use."""
    cordoned: bool
    """It gets no new replicas (KIP-1066)."""
    logs: tuple[LogSize, ...]


class LogDirectories(Struct, frozen=True):
    """The log directories of one broker."""

    code: int
    """0, or why they are unknown."""
    rows: tuple[LogDirectory, ...]


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


def read_log_directories(
    wire: Wire, topics: Mapping[str, int] | None, node: str, timeout: float
) -> LogDirectories:
    """The log directories of one broker, with the logs of these topics. topics: name -> number of
    partitions, None for all topics; timeout: seconds."""
    row = DescribeLogDirsRequest.DescribableLogDirTopic
    request = DescribeLogDirsRequest(
        topics=None
        if topics is None
        else [row(topic=name, partitions=list(range(count))) for name, count in topics.items()]
    )
    response = wire.send(request, timeout, node)
    # Without Describe on Cluster, Kafka before 3.2 answers with an empty list and no error; every
    # broker has a log directory.
    code = response.error_code or (0 if response.results else _REFUSED)
    return LogDirectories(code, tuple(_parse_directory(row, node) for row in response.results))


def _parse_directory(row: Any, node: str) -> LogDirectory:
    return LogDirectory(
        row.log_dir,
        row.error_code,
        row.total_bytes if row.total_bytes >= 0 else None,
        row.usable_bytes if row.usable_bytes >= 0 else None,
        bool(row.is_cordoned),
        tuple(
            LogSize(
                topic.name,
                partition.partition_index,
                node,
                partition.partition_size,
                bool(partition.is_future_key),
            )
            for topic in row.topics
            for partition in topic.partitions
        ),
    )


def read_log_sizes(
    wire: Wire, topics: Mapping[str, int], node: str, timeout: float
) -> Sequence[LogSize] | None:
    """Sizes of the logs of these topics on one broker, None if it does not say. topics: name ->
    number of partitions."""
    directories = read_log_directories(wire, topics, node, timeout)
    # A failed disk has an error of its own (KIP-113), and a sum without it would be too small.
    if directories.code or any(row.code for row in directories.rows):
        return None
    return [log for row in directories.rows for log in row.logs]


def read_certificate(settings: KafkaSettings, host: str, port: int) -> Certificate | None:
    """The certificate of the broker at this address; None if it does not answer or shows one that
    is not trusted. Raises ConfigurationError as `ssl_context`."""
    context = ssl_context(settings)
    try:
        with (
            socket.create_connection((host, port), timeout=settings.timeout) as connection,
            context.wrap_socket(connection, server_hostname=host) as secure,
        ):
            data = secure.getpeercert(binary_form=True)
    except OSError:
        return None
    return parse_certificate(data) if data else None


class FeatureRow(Struct, frozen=True):
    """The features as one broker knows them."""

    epoch: int
    """Of the finalized levels; each change makes it greater. -1: the broker does not know them."""
    finalized: Mapping[str, int]
    """Feature -> the level of the whole cluster. Level 0 is left out."""
    supported: Mapping[str, tuple[int, int]]
    """Feature -> lowest and highest level that this broker's software supports."""


class Update(Struct, frozen=True):
    """A wanted level of one feature."""

    name: str
    level: int
    upgrade_type: int
    """See `UpgradeType`."""


class UpdateAnswer(Struct, frozen=True):
    """The answer to UpdateFeatures."""

    code: int
    """Of the request as a whole."""
    message: str | None
    items: Mapping[str, ItemAnswer]
    """By feature. Since Kafka 4.0, all features of a request succeed or fail together, and this is
    empty (KIP-1022)."""


def read_features(wire: Wire, timeout: float, node: str | None = None) -> FeatureRow:
    """The features. node: the broker to ask, None for any."""
    # Version 4 alone reports features whose lowest level is 0 (KAFKA-17011).
    request = ApiVersionsRequest(
        client_software_name="kafkaform", client_software_version="1", min_version=3
    )
    response = wire.send(request, timeout, node)
    return FeatureRow(
        response.finalized_features_epoch,
        {row.name: row.max_version_level for row in response.finalized_features or ()},
        {row.name: (row.min_version, row.max_version) for row in response.supported_features or ()},
    )


def update_features(
    wire: Wire, updates: Sequence[Update], timeout: float, *, validate: bool
) -> UpdateAnswer:
    """Change levels, or only check whether the controller would. timeout: seconds."""
    # Version 0 cannot check without changing, and knows no unsafe downgrade (KIP-778).
    row = UpdateFeaturesRequest.FeatureUpdateKey
    request = UpdateFeaturesRequest(
        timeout_ms=int(timeout * 1000),
        feature_updates=[
            row(
                feature=update.name,
                max_version_level=update.level,
                upgrade_type=update.upgrade_type,
            )
            for update in updates
        ],
        validate_only=validate,
        min_version=1,
    )
    response = wire.send(request, timeout + ANSWER_MARGIN)
    return UpdateAnswer(
        response.error_code,
        response.error_message,
        {
            item.feature: ItemAnswer(item.error_code, item.error_message)
            for item in getattr(response, "results", None) or ()
        },
    )
