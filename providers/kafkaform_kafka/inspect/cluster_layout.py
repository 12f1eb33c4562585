"""Read where all replicas are, how large they are, and which brokers are live.

A placement that is computed from a part of this would be wrong, so that what cannot be read is an
error and never left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from msgspec import Struct

from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Fault

from ..cluster.context import ClusterContext, attempt
from ..kinds.topic.placement import Assignment
from ..kinds.topic.read_placement import compute_destination, list_moves
from ..protocol.faults import fault_of
from ..wire.cluster import LogSize, describe_cluster, read_log_sizes
from ..wire.topics import TopicRow, list_topics
from .source import make_read_error

T = TypeVar("T")
_IN_FLIGHT = 4
_GRANT = "Grant Describe on Cluster to the principal of this connection."
SizeRequest = tuple[str, Mapping[str, int]]
"""A broker, and topics with their numbers of partitions."""
_TOPICS_AT_ONCE = 2_000
"""Topics in one DescribeLogDirs request."""


class TopicLayout(Struct, frozen=True):
    """Where one topic is."""

    name: str
    internal: bool
    rows: Assignment
    """The brokers of each partition, after the move that is running."""
    moving: int
    """How many of its partitions are moving."""
    sizes: tuple[int | None, ...]
    """Bytes of the largest replica of each partition; None if no live broker has one."""


class ClusterLayout(Struct, frozen=True):
    """Where everything is."""

    scope_id: str
    racks: Mapping[int, str | None]
    """Live broker -> its rack."""
    topics: tuple[TopicLayout, ...]
    """All topics that the principal can see, by name."""


def read_layout(context: ClusterContext) -> ClusterLayout:
    """Ask the cluster. Raises KafkaformError if anything cannot be read."""
    cluster = _require(
        attempt("DescribeCluster", lambda: describe_cluster(context.wire, context.timeout))
    )
    if cluster.code:
        raise make_read_error(fault_of("DescribeCluster", cluster.code, "", cluster.message))
    racks = {int(node): rack or None for node, rack in cluster.brokers.items()}
    # Moves first: one that ends in between still counts then. The other way round, old and new
    # replicas would be taken together for the replicas of a topic.
    moves = _require(list_moves(context))
    listed = _require(attempt("Metadata", lambda: list_topics(context.wire, None, context.timeout)))
    rows = sorted((row for row in listed if row.code == 0), key=lambda row: row.name)
    sizes = _read_sizes(context, racks, rows)
    topics = []
    for row in rows:
        mine = moves.get(row.name, {})
        counted = tuple(sizes.get((row.name, number)) for number in range(len(row.replicas)))
        there = compute_destination(row, mine)
        topics.append(TopicLayout(row.name, row.internal, there, len(mine), counted))
    return ClusterLayout(cluster.cluster_id, racks, tuple(topics))


def _require(answer: T | Fault) -> T:
    """The answer. Raises KafkaformError for a fault."""
    if isinstance(answer, Fault):
        raise make_read_error(answer)
    return answer


def _read_sizes(
    context: ClusterContext, racks: Mapping[int, str | None], rows: Sequence[TopicRow]
) -> Mapping[tuple[str, int], int]:
    """Topic and partition -> bytes of its largest replica on a live broker."""
    counts = {row.name: len(row.replicas) for row in rows}
    names = list(counts)
    asked = [
        (str(broker), {name: counts[name] for name in names[at : at + _TOPICS_AT_ONCE]})
        for broker in racks
        for at in range(0, len(names), _TOPICS_AT_ONCE)
    ]
    found: dict[tuple[str, int], int] = defaultdict(int)
    with ThreadPoolExecutor(_IN_FLIGHT, "sizes") as pool:
        for logs in pool.map(partial(_ask_sizes, context), asked):
            for log in logs:
                place = (log.topic, log.partition)
                found[place] = max(found[place], log.size)
    return found


def _ask_sizes(context: ClusterContext, asked: SizeRequest) -> Sequence[LogSize]:
    node, counts = asked
    call = partial(read_log_sizes, context.wire, counts, node, context.timeout)
    logs = attempt("DescribeLogDirs", call, node)
    if isinstance(logs, Fault):
        raise KafkaformError(
            f"broker {node} does not report the sizes of its replicas: {logs.message} "
            f"({logs.code}, {logs.where})",
            logs.advice or _GRANT,
        )
    # Without the right, an old broker answers with nothing and no error.
    if logs is None:
        raise KafkaformError(
            f"broker {node} does not report the sizes of its replicas: Describe on Cluster is "
            "missing, or a disk has failed",
            _GRANT,
        )
    return logs
