"""Figures that a plan shows about deletions: offsets, and the groups that read a topic.

`connection.native.Native` reads them with librdkafka. `WireFigures` does the same with raw
requests, for logins that librdkafka lacks. Figures illustrate a plan, so what cannot be read is
unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from functools import partial
from typing import Protocol

from msgspec import Struct

from kafkaform.core.resource import Fault

from ..connection.native import Spans, count_old
from ..wire.topics import TopicRow, list_topics
from ..wire.usage import (
    CONSUMER,
    EARLIEST,
    LATEST,
    GroupRows,
    describe_members,
    list_groups,
    list_offsets,
)
from .brokers import live_nodes
from .context import ClusterContext
from .exchange import attempt

PATIENCE = 5.0
"""Seconds to wait for one broker. A dead one would delay the plan by the operation timeout."""
_LIVE = frozenset({"Stable", "PreparingRebalance", "CompletingRebalance", "Assigning"})
"""States of groups with members."""
_DEAD = "Dead"
"""What DescribeGroups says about groups of the new protocol (KIP-848), which it does not know."""

Offsets = Mapping[tuple[str, int], int]
"""Topic and partition -> offset."""


class Figures(Protocol):
    """What reads the figures (see `Native`)."""

    def read_offset_spans(self, topics: Mapping[str, int]) -> Mapping[str, int]: ...

    def read_old_spans(
        self, counts: Mapping[str, int], cuts: Mapping[str, int | None]
    ) -> Mapping[str, Spans]: ...

    def list_live_groups(
        self, topics: Set[str], limit: int
    ) -> Mapping[str, tuple[str, ...]] | None: ...


class WireFigures(Struct, frozen=True, eq=False):
    """Reads the figures with raw requests, each on a connection whose cluster is proven."""

    context: ClusterContext

    def read_offset_spans(self, topics: Mapping[str, int]) -> Mapping[str, int]:
        """See `Native.read_offset_spans`."""
        spans = self.read_old_spans(topics, dict.fromkeys(topics))
        return {name: span.all for name, span in spans.items()}

    def read_old_spans(
        self, counts: Mapping[str, int], cuts: Mapping[str, int | None]
    ) -> Mapping[str, Spans]:
        """See `Native.read_old_spans`."""
        call = partial(list_topics, self.context.wire, sorted(counts), self._timeout)
        rows = attempt("Metadata", call)
        if isinstance(rows, Fault):
            return {}
        known = {row.name: row for row in rows if not row.code}
        ends, starts = (self._read_offsets(known, time) for time in (LATEST, EARLIEST))
        found = {}
        for name, count in counts.items():
            cut = cuts[name]
            keys = [(name, number) for number in range(count)]
            dated = self._read_offsets({name: known[name]}, cut) if cut and name in known else {}
            if all(key in ends and key in starts and (not cut or key in dated) for key in keys):
                found[name] = Spans(
                    tuple(ends[key] - starts[key] for key in keys),
                    tuple(count_old(starts[key], ends[key], dated.get(key)) for key in keys),
                )
        return found

    def list_live_groups(
        self, topics: Set[str], limit: int
    ) -> Mapping[str, tuple[str, ...]] | None:
        """See `Native.list_live_groups`."""
        by_node: dict[str, list[str]] = {}
        for node in live_nodes(self.context):
            rows = attempt(
                "ListGroups", partial(list_groups, self.context.wire, node, self._timeout), node
            )
            if not isinstance(rows, GroupRows) or rows.code:
                return None
            by_node[node] = [
                row.name for row in rows.groups if row.protocol == CONSUMER and row.state in _LIVE
            ]
        if sum(map(len, by_node.values())) > limit:
            return None
        return self._find_readers(by_node, topics)

    def _find_readers(
        self, by_node: Mapping[str, list[str]], topics: Set[str]
    ) -> Mapping[str, tuple[str, ...]] | None:
        """Topic -> its groups. by_node: broker -> groups that it coordinates."""
        readers: dict[str, set[str]] = defaultdict(set)
        for node, names in by_node.items():
            call = partial(describe_members, self.context.wire, names, node, self._timeout)
            found = attempt("DescribeGroups", call, node) if names else {}
            if isinstance(found, Fault):
                return None
            for name in names:
                group = found.get(name)
                if group is None or group.code or group.state == _DEAD:
                    return None
                for topic in group.topics & topics:
                    readers[topic].add(name)
        return {topic: tuple(sorted(groups)) for topic, groups in readers.items()}

    @property
    def _timeout(self) -> float:
        return min(self.context.timeout, PATIENCE)

    def _read_offsets(self, rows: Mapping[str, TopicRow], time: int) -> Offsets:
        """The offsets at a time, from the leaders of these topics."""
        led: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for name, row in rows.items():
            for number, leader in enumerate(row.leaders):
                if leader >= 0:
                    led[str(leader)][name].append(number)
        found: dict[tuple[str, int], int] = {}
        for node, places in led.items():
            wire, timeout = self.context.wire, self._timeout
            call = partial(list_offsets, wire, places, time, node, timeout)
            answer = attempt("ListOffsets", call, node)
            found |= {} if isinstance(answer, Fault) else answer
        return found
