"""Figures that a plan shows about deletions: offsets, and the groups that read a topic.

Each request goes on a connection whose cluster is proven. Figures illustrate a plan, so what cannot
be read is unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from functools import partial

from msgspec import Struct

from kafkaform.core.resource import Fault, FaultClass

from .. import wire
from ..wire.topics import TopicRow, list_topics
from ..wire.usage import (
    CLASSIC,
    CONSUMER,
    EARLIEST,
    LATEST,
    GroupRow,
    list_groups,
    list_offsets,
)
from .context import ClusterContext, attempt, live_nodes

PATIENCE = 5.0
"""Seconds to wait for one broker. A dead one would delay the plan by the operation timeout."""
_LIVE = frozenset(
    {
        *("Stable", "PreparingRebalance", "CompletingRebalance"),
        *("Assigning", "Reconciling", "NotReady"),  # KIP-848, KIP-1071
    }
)
"""States of groups with members."""
_LATER = {14: "COORDINATOR_LOAD_IN_PROGRESS", 15: "COORDINATOR_NOT_AVAILABLE"}
"""Codes of a broker that will know its groups in a moment."""
_DEAD = "Dead"
"""What a broker says about a group that it does not know."""

Offsets = Mapping[tuple[str, int], int]
"""Topic and partition -> offset."""


class Spans(Struct, frozen=True):
    """The offsets of one topic, partition by partition."""

    counts: tuple[int, ...]
    """Between its first and its last record."""
    olds: tuple[int, ...]
    """Of these, how many are older than the time that was asked about."""

    @property
    def partitions(self) -> int:
        return len(self.counts)

    @property
    def all(self) -> int:
        return sum(self.counts)

    @property
    def old(self) -> int:
        return sum(self.olds)

    def share(self, number: int) -> float:
        """The old part of a partition's offsets, from 0 to 1."""
        return self.olds[number] / self.counts[number] if self.counts[number] else 0.0


def read_offset_spans(context: ClusterContext, topics: Mapping[str, int]) -> Mapping[str, int]:
    """Topic -> number of offsets between its first and its last record, over all partitions.
    topics: name -> number of partitions. A topic with a partition that does not answer is left
    out."""
    spans = read_old_spans(context, topics, dict.fromkeys(topics))
    return {name: span.all for name, span in spans.items()}


def read_old_spans(
    context: ClusterContext, counts: Mapping[str, int], cuts: Mapping[str, int | None]
) -> Mapping[str, Spans]:
    """Topic -> how many of its offsets are older than a time. counts: topic -> number of
    partitions; cuts: topic -> milliseconds since the epoch, None for no time. A topic with a
    partition that does not answer is left out."""
    call = partial(list_topics, context.wire, sorted(counts), _limit_time(context))
    rows = attempt("Metadata", call)
    if isinstance(rows, Fault):
        return {}
    topic_rows = {row.name: row for row in rows if not row.code}
    ends, starts = (_read_offsets(context, topic_rows, time) for time in (LATEST, EARLIEST))
    dated: dict[tuple[str, int], int] = {}
    # All topics with the same time in one request for each broker.
    for cut in {cuts[name] for name in counts}:
        if cut:
            dated_rows = {
                name: topic_rows[name]
                for name in counts
                if cuts[name] == cut and name in topic_rows
            }
            dated |= _read_offsets(context, dated_rows, cut)
    spans = {}
    for name, count in counts.items():
        cut = cuts[name]
        keys = [(name, number) for number in range(count)]
        if all(key in ends and key in starts and (not cut or key in dated) for key in keys):
            spans[name] = Spans(
                tuple(ends[key] - starts[key] for key in keys),
                tuple(_count_old(starts[key], ends[key], dated.get(key)) for key in keys),
            )
    return spans


def list_live_groups(
    context: ClusterContext, topics: Set[str], limit: int
) -> Mapping[str, tuple[str, ...]] | Fault | None:
    """Topic -> groups with a member that reads it now. None if a right to see groups is missing, or
    if there are more than `limit`; a fault if a broker could not be asked."""
    live: list[tuple[str, GroupRow]] = []
    for node in live_nodes(context):
        call = partial(list_groups, context.wire, node, _limit_time(context))
        rows = attempt("ListGroups", call, node)
        if isinstance(rows, Fault):
            return _choose_fault(rows)
        if rows.code in _LATER:
            return Fault(
                _LATER[rows.code],
                f"broker {node} cannot list its groups yet",
                FaultClass.NOT_APPLIED,
            )
        if rows.code:
            return None
        # Groups of the classic protocol also divide other work, such as that of Kafka Connect.
        live += [
            (node, row)
            for row in rows.groups
            if row.state in _LIVE and (row.protocol == CONSUMER or _find_type(row) != CLASSIC)
        ]
    return _find_readers(context, live, topics) if len(live) <= limit else None


def _choose_fault(fault: Fault) -> Fault | None:
    """The fault, None if it says that a right is missing, which no waiting would mend."""
    return None if fault.kind is FaultClass.PERMISSION else fault


def _find_type(row: GroupRow) -> str:
    return (row.type or CLASSIC).lower()


def _find_readers(
    context: ClusterContext, live: Sequence[tuple[str, GroupRow]], topics: Set[str]
) -> Mapping[str, tuple[str, ...]] | Fault | None:
    """Topic -> its groups. live: groups, each with the broker that coordinates it."""
    if not live:
        return {}
    groups_by_node: dict[tuple[str, str], list[str]] = defaultdict(list)
    for node, row in live:
        groups_by_node[node, _find_type(row)].append(row.name)
    readers: dict[str, set[str]] = defaultdict(set)
    for (node, kind), names in groups_by_node.items():
        if kind not in wire.groups.DESCRIBERS:
            return None
        api, describe = wire.groups.DESCRIBERS[kind]
        call = partial(describe, context.wire, names, node, _limit_time(context))
        described = attempt(api, call, node)
        if isinstance(described, Fault):
            return _choose_fault(described)
        for name in names:
            group = described.get(name)
            if group is None or group.code or group.state == _DEAD:
                return None
            for topic in wire.groups.list_read_topics(group, kind) & topics:
                readers[topic].add(name)
    return {topic: tuple(sorted(groups)) for topic, groups in readers.items()}


def _read_offsets(context: ClusterContext, rows: Mapping[str, TopicRow], time: int) -> Offsets:
    """The offsets at a time, from the leaders of these topics."""
    led: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for name, row in rows.items():
        for number, leader in enumerate(row.leaders):
            if leader >= 0:
                led[str(leader)][name].append(number)
    offsets: dict[tuple[str, int], int] = {}
    for node, partitions in led.items():
        call = partial(list_offsets, context.wire, partitions, time, node, _limit_time(context))
        answer = attempt("ListOffsets", call, node)
        offsets |= {} if isinstance(answer, Fault) else answer
    return offsets


def _limit_time(context: ClusterContext) -> float:
    return min(context.timeout, PATIENCE)


def _count_old(start: int, end: int, first: int | None) -> int:
    """Offsets before the first record that is not older; -1 says that all are older."""
    if first is None:
        return 0
    return end - start if first < 0 else max(0, first - start)
