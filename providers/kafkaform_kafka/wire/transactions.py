"""ListTransactions, DescribeTransactions and DescribeProducers (KIP-664), each sent to one
broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka.protocol.admin import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from msgspec import Struct

from .client import Wire


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
