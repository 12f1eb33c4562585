"""Find partitions of Kafka's own topics that no broker coordinates."""

from __future__ import annotations

from collections.abc import Iterator

from kafkaform.core.resource import Fault, FaultClass

from ...wire.describe import describe_topics
from ..source import DescribeSource
from .node_requests import Gap


def find_leaderless(source: DescribeSource, topic: str, what: str) -> Iterator[Gap]:
    """A gap if partitions of this topic have no leader, as far as we may know. what: what they
    contain."""
    # The leader of such a partition coordinates what is in it. Without a leader, no broker lists it
    # and none says so.
    rows = source.ask("Metadata", describe_topics, (topic,))
    for row in () if isinstance(rows, Fault) else rows:
        many = sum(part.leader is None for part in row.partitions)
        if many:
            told = f"{many} of {len(row.partitions)} partitions of {topic} have no leader"
            fault = Fault(
                "LEADER_NOT_AVAILABLE", told, FaultClass.DEFINITE, advice="start their brokers"
            )
            yield Gap(f"{what} that no broker coordinates now are missing", fault)
