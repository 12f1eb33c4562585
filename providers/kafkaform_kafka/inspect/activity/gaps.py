"""What a document lacks, and why."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kafkaform.core.resource import Fault, FaultClass
from kafkaform.core.value import FrozenMap

from ...wire.describe import describe_topics
from ..source import DescribeSource

READ_THE_ANSWER = "The answer names the reason."
"""Advice of an error that is raised after an answer that lacks something."""


class Gap(Struct, frozen=True):
    """What could not be read, so that the document lacks it."""

    what: str
    """A sentence without a period."""
    fault: Fault
    broker: str | None = None


def explain_gap(gap: Gap) -> Fault:
    """Why something that was named is not listed: it can be in the gap."""
    return Fault(
        "NOT_LISTED",
        "no broker that answered lists it, but the list is incomplete",
        FaultClass.DEFINITE,
        advice=f"{gap.what}: {gap.fault.message}",
    )


def document_gap(gap: Gap) -> FrozenMap:
    return FrozenMap(
        what=gap.what,
        broker=None if gap.broker is None else int(gap.broker),
        code=gap.fault.code,
        message=gap.fault.message,
        advice=gap.fault.advice,
    )


def find_leaderless(source: DescribeSource, topic: str, content: str) -> Iterator[Gap]:
    """A gap if partitions of this topic have no leader, as far as we may know. what: what they
    contain."""
    # The leader of such a partition coordinates what is in it. Without a leader, no broker lists it
    # and none says so.
    rows = source.ask("Metadata", describe_topics, (topic,))
    for row in () if isinstance(rows, Fault) else rows:
        count = sum(partition.leader is None for partition in row.partitions)
        if count:
            message = f"{count} of {len(row.partitions)} partitions of {topic} have no leader"
            fault = Fault(
                "LEADER_NOT_AVAILABLE", message, FaultClass.DEFINITE, advice="start their brokers"
            )
            yield Gap(f"{content} that no broker coordinates now are missing", fault)
