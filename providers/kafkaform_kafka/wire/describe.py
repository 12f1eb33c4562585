"""Requests that only `describe` sends: partitions, whole configs, brokers, names of groups and
config resources; and ListTransactions, DescribeTransactions and DescribeProducers (KIP-664), each
sent to one broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListGroupsRequest,
    ListTransactionsRequest,
)
from kafka.protocol.metadata import MetadataRequest
from msgspec import Struct

from ..protocol.broker_rules import INTERNAL_TOPICS
from .answers import id_text
from .client import Wire
from .configs import TYPES

_FENCED = 2
"""The version of DescribeCluster that says which brokers are fenced."""


class PartitionRow(Struct, frozen=True):
    """One partition of a topic."""

    number: int
    leader: int | None
    """Broker id, None without a leader."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    """Replicas in sync."""
    offline: tuple[int, ...]
    """Replicas whose broker or disk has failed (KIP-112)."""


class DescribedTopic(Struct, frozen=True):
    """One topic with its partitions."""

    name: str
    code: int
    topic_id: str | None
    internal: bool
    partitions: tuple[PartitionRow, ...]


class ConfigRow(Struct, frozen=True):
    """One config of a resource."""

    name: str
    value: str | None
    """None if it is sensitive or not set."""
    sensitive: bool
    read_only: bool
    source: int
    """The config source's number in the protocol."""


class ResourceRow(Struct, frozen=True):
    """The configs of one resource, or why they are not there."""

    code: int
    message: str | None
    configs: tuple[ConfigRow, ...] = ()


class BrokerRow(Struct, frozen=True):
    """One registered broker."""

    id: int
    host: str
    port: int
    rack: str | None
    fenced: bool | None
    """Registered but not serving; None if the cluster does not say."""


class NameListing(Struct, frozen=True):
    """A listing of names, or its error code."""

    code: int
    names: tuple[str, ...] = ()


def describe_topics(
    wire: Wire, names: Sequence[str] | None, timeout: float
) -> tuple[DescribedTopic, ...]:
    """Partitions of these topics, or of all that we can see (None). timeout: seconds."""
    topic = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(
        topics=None if names is None else [topic(name=name) for name in names],
        # Brokers create what a Metadata request names by default (auto.create.topics.enable): a
        # look must not make what it looks for.
        allow_auto_topic_creation=False,
        min_version=10,
    )
    return tuple(
        DescribedTopic(
            row.name,
            row.error_code,
            id_text(row.topic_id),
            bool(row.is_internal) or row.name in INTERNAL_TOPICS,
            tuple(
                PartitionRow(
                    partition.partition_index,
                    partition.leader_id if partition.leader_id >= 0 else None,
                    tuple(partition.replica_nodes),
                    tuple(partition.isr_nodes),
                    tuple(partition.offline_replicas or ()),
                )
                for partition in sorted(
                    row.partitions, key=lambda partition: partition.partition_index
                )
            ),
        )
        for row in wire.send(request, timeout).topics
    )


def describe_all_configs(
    wire: Wire,
    resource: str,
    names: Sequence[str],
    timeout: float,
    node: str | None = None,
    keys: Sequence[str] | None = None,
) -> Mapping[str, ResourceRow]:
    """Configs of these resources, including defaults. node: needed for a broker's own configs;
    keys: only these configs, None for all (KIP-133); timeout: seconds."""
    row = DescribeConfigsRequest.DescribeConfigsResource
    config_names = None if keys is None else list(keys)
    request = DescribeConfigsRequest(
        resources=[
            row(resource_type=TYPES[resource], resource_name=name, configuration_keys=config_names)
            for name in names
        ],
        include_synonyms=False,
        include_documentation=False,
        min_version=1,
    )
    return {
        row.resource_name: ResourceRow(
            row.error_code,
            row.error_message,
            tuple(
                ConfigRow(
                    entry.name,
                    entry.value,
                    bool(entry.is_sensitive),
                    bool(entry.read_only),
                    entry.config_source,
                )
                for entry in row.configs or ()
            ),
        )
        for row in wire.send(request, timeout, node).results
    }


def describe_brokers(wire: Wire, timeout: float) -> tuple[BrokerRow, ...]:
    """All registered brokers, by id."""
    # Only DescribeCluster v2 (KIP-1073, Kafka 4.0) lists fenced brokers. With an older one
    # kafka-python leaves the flag out of the request, and fills the answer up with False.
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=False, include_fenced_brokers=True
    )
    response = wire.send(request, timeout)
    tells_fenced = response.API_VERSION >= _FENCED
    return tuple(
        BrokerRow(
            row.broker_id, row.host, row.port, row.rack, row.is_fenced if tells_fenced else None
        )
        for row in sorted(response.brokers, key=lambda row: row.broker_id)
    )


def list_groups(wire: Wire, node: str, timeout: float) -> NameListing:
    """Names of the groups that this broker coordinates."""
    response = wire.send(ListGroupsRequest(states_filter=[], types_filter=[]), timeout, node)
    return NameListing(response.error_code, tuple(sorted(row.group_id for row in response.groups)))


class TransactionRow(Struct, frozen=True):
    """One transactional id of a listing."""

    transactional_id: str
    producer_id: int
    state: str


class TransactionRows(Struct, frozen=True):
    """The transactional ids that one broker coordinates."""

    code: int
    """0, or why they are unknown."""
    rows: tuple[TransactionRow, ...] = ()


class DescribedTransaction(Struct, frozen=True):
    """The last transaction of a transactional id, or why it cannot be described."""

    code: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int | None
    """Milliseconds since 1970; None if there was no transaction yet."""
    partitions: Mapping[str, tuple[int, ...]]
    """Topic -> partitions that wait for the marker of its end."""


class ProducerRow(Struct, frozen=True):
    """One producer that has written into a partition."""

    producer_id: int
    epoch: int
    coordinator_epoch: int | None
    last_ms: int
    """When it wrote last: milliseconds since 1970."""
    open_offset: int | None
    """Where its open transaction begins, None without one."""


class ProducerRows(Struct, frozen=True):
    """The producers of one partition, or why they are unknown."""

    code: int
    message: str | None
    rows: tuple[ProducerRow, ...] = ()


def list_transactions(
    wire: Wire, states: Sequence[str], producers: Sequence[int], node: str, timeout: float
) -> TransactionRows:
    """The transactional ids that this broker coordinates and that we can see. states, producers:
    only these, all if it is empty; timeout: seconds."""
    request = ListTransactionsRequest(
        state_filters=list(states), producer_id_filters=list(producers)
    )
    response = wire.send(request, timeout, node)
    return TransactionRows(
        response.error_code,
        tuple(
            TransactionRow(row.transactional_id, row.producer_id, row.transaction_state)
            for row in response.transaction_states
        ),
    )


def describe_transactions(
    wire: Wire, ids: Sequence[str], node: str, timeout: float
) -> Mapping[str, DescribedTransaction]:
    """The last transactions of these transactional ids, which this broker coordinates. Topics that
    we may not describe are left out. timeout: seconds."""
    request = DescribeTransactionsRequest(transactional_ids=list(ids))
    return {
        row.transactional_id: DescribedTransaction(
            row.error_code,
            row.transaction_state,
            row.producer_id,
            row.producer_epoch,
            row.transaction_timeout_ms,
            row.transaction_start_time_ms if row.transaction_start_time_ms > 0 else None,
            {topic.topic: tuple(sorted(topic.partitions)) for topic in row.topics or ()},
        )
        for row in wire.send(request, timeout, node).transaction_states
    }


def describe_producers(
    wire: Wire, partitions: Mapping[str, Sequence[int]], node: str, timeout: float
) -> Mapping[tuple[str, int], ProducerRows]:
    """The producers of partitions that this broker leads. partitions: topic -> partitions; timeout:
    seconds."""
    topic = DescribeProducersRequest.TopicRequest
    request = DescribeProducersRequest(
        topics=[topic(name=name, partition_indexes=list(ns)) for name, ns in partitions.items()]
    )
    return {
        (topic_row.name, partition.partition_index): ProducerRows(
            partition.error_code,
            partition.error_message,
            tuple(
                ProducerRow(
                    row.producer_id,
                    row.producer_epoch,
                    # -1 for a producer without transactions, whose offset of a transaction is -1 as
                    # well.
                    row.coordinator_epoch if row.coordinator_epoch >= 0 else None,
                    row.last_timestamp,
                    row.current_txn_start_offset if row.current_txn_start_offset >= 0 else None,
                )
                for row in partition.active_producers
            ),
        )
        for topic_row in wire.send(request, timeout, node).topics
        for partition in topic_row.partitions
    }
