"""A cluster in use, at the level of requests: logs whose records have times, groups with offsets
and members, producers. Cheap enough for thousands of topics and groups."""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from msgspec import Struct, field

from kafkaform.core.resource import Depth, Facts, Sweep
from kafkaform_kafka.kinds.context import ClusterContext
from kafkaform_kafka.protocol.cluster_facts import KafkaFacts
from kafkaform_kafka.wire.client import RequestUnanswered

Row = SimpleNamespace


class BusyLog(Struct):
    """One partition. Its records are `step` ms apart, the last one is `age` ms old."""

    start: int
    end: int
    step: int = 1000
    age: int = 0
    leader: int = 1
    bytes: int = 0
    producers: Sequence[int] = ()
    """For each producer how many ms ago it wrote."""

    def find(self, wanted: int, now: int) -> tuple[int, int]:
        """Offset and time that ListOffsets answers."""
        special = {-1: self.end, -2: self.start}
        if wanted in special:
            return special[wanted], -1
        if self.start == self.end:
            return -1, -1
        if wanted == -3:
            return self.end - 1, now - self.age
        # The record at offset o is age + (end - 1 - o) * step ms old.
        older = max(0, (now - wanted - self.age) // self.step)
        if now - wanted < self.age:
            return -1, -1
        offset = max(self.start, self.end - 1 - older)
        return offset, now - self.age - (self.end - 1 - offset) * self.step


class BusyGroup(Struct):
    """One group. offsets: topic and partition -> committed offset."""

    name: str
    offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)
    members: Sequence[str] = ()
    """Client ids."""
    reads: Sequence[str] = ()
    """Topics of which its members are assigned partition 0."""
    type: str = "Classic"
    node: int = 1
    code: int = 0
    """Why its offsets and members are not shown."""
    lag: int = -1
    """Of a share group, for each partition."""

    @property
    def state(self) -> str:
        return "Stable" if self.members else "Empty"


class BusySession:
    """A session whose brokers answer. delay: seconds that each answer takes."""

    def __init__(
        self,
        logs: Mapping[tuple[str, int], BusyLog],
        groups: Sequence[BusyGroup] = (),
        *,
        nodes: Sequence[str] = ("1",),
        rights: Sequence[str] = ("Describe",),
        delay: float = 0.0,
        silent: Mapping[str, Callable[[str | None], bool]] = {},
        producers_code: int = 0,
        replicas: Sequence[int] = (1,),
        fenced: Sequence[str] = (),
    ) -> None:
        self.logs, self.groups, self.nodes = logs, {g.name: g for g in groups}, nodes
        self.delay, self.silent, self.producers_code = delay, silent, producers_code
        self.replicas, self.fenced = list(replicas), fenced
        self.partitions = Counter(topic for topic, _ in logs)
        self.requests: Counter[str] = Counter()
        self.now = int(time.time() * 1000)
        self.proofs = 0
        facts = Facts("c", tuple(nodes), values=KafkaFacts(rights=tuple(rights)))
        settings: Any = SimpleNamespace(instance="kafka", timeout=30.0)
        wire: Any = self
        self.facts = facts
        self.context = ClusterContext(settings, wire, facts)

    def sweep(self, kind: str, depth: Depth) -> Sweep:
        raise AssertionError("nobody lists objects")

    def prove(self) -> None:
        self.proofs += 1

    def send(self, request: Any, timeout: float, node: str | None = None) -> Any:
        assert timeout > 0
        api = type(request).__name__.removesuffix("Request")
        self.requests[api] += 1
        if self.silent.get(api, lambda _: False)(node):
            time.sleep(min(timeout, 0.01))
            raise RequestUnanswered(f"waited {timeout:g} s", timed_out=True)
        time.sleep(min(self.delay, timeout))
        if self.delay > timeout:
            raise RequestUnanswered(f"waited {timeout:g} s", timed_out=True)
        return getattr(self, f"_{api}")(request, node)

    def _DescribeCluster(self, request: Any, node: str | None) -> Any:
        brokers = [
            Row(broker_id=int(n), host="h", port=1, rack=None, is_fenced=n in self.fenced)
            for n in (*self.nodes, *self.fenced)
        ]
        return Row(
            error_code=0,
            error_message=None,
            API_VERSION=2,
            cluster_id="c",
            controller_id=1,
            brokers=brokers,
            cluster_authorized_operations=-(2**31),
        )

    def _Metadata(self, request: Any, node: str | None) -> Any:
        names = [topic.name for topic in request.topics or ()] or self.partitions
        return Row(topics=[self._describe_topic(name) for name in names])

    def _NamedTopics(self, request: Any, node: str | None) -> Any:
        # A count, then for each topic 16 bytes of id, the length of its name plus 1, the name, and
        # a byte for tags. Short numbers take one byte each.
        data, names, start = request.data, [], 1
        for _ in range(data[0] - 1):
            end = start + 17 + data[start + 16] - 1
            names.append(data[start + 17 : end].decode())
            start = end + 1
        return Row(topics=[self._describe_topic(name) for name in names])

    def _DescribeConfigs(self, request: Any, node: str | None) -> Any:
        rows = [
            Row(
                error_code=0,
                error_message=None,
                resource_type=item.resource_type,
                resource_name=item.resource_name,
                configs=[],
            )
            for item in request.resources
        ]
        return Row(throttle_time_ms=0, results=rows)

    def _describe_topic(self, name: str) -> Any:
        parts = [
            Row(
                partition_index=n,
                leader_id=self.logs[name, n].leader,
                replica_nodes=self.replicas,
                isr_nodes=self.replicas,
                offline_replicas=[],
            )
            for n in range(self.partitions[name])
        ]
        code = 0 if parts else 3
        return Row(name=name, error_code=code, topic_id=None, is_internal=False, partitions=parts)

    def _ListOffsets(self, request: Any, node: str | None) -> Any:
        return Row(
            topics=[
                Row(name=t.name, partitions=[self._find(t.name, part) for part in t.partitions])
                for t in request.topics
            ]
        )

    def _find(self, topic: str, part: Any) -> Any:
        offset, ms = self.logs[topic, part.partition_index].find(part.timestamp, self.now)
        return Row(partition_index=part.partition_index, error_code=0, offset=offset, timestamp=ms)

    def _ListGroups(self, request: Any, node: str | None) -> Any:
        rows = [
            Row(
                group_id=group.name,
                protocol_type="consumer" if group.type in ("Classic", "Consumer") else "share",
                group_state=group.state,
                group_type=group.type,
            )
            for group in self.groups.values()
            if str(group.node) == node
        ]
        return Row(error_code=0, groups=rows)

    def _OffsetFetch(self, request: Any, node: str | None) -> Any:
        return Row(groups=[self._fetch(self.groups[row.group_id]) for row in request.groups])

    def _fetch(self, group: BusyGroup) -> Any:
        topics: dict[str, list[Any]] = {}
        for (topic, number), offset in () if group.code else group.offsets.items():
            row = Row(
                partition_index=number,
                committed_offset=offset,
                committed_leader_epoch=-1,
                error_code=0,
            )
            topics.setdefault(topic, []).append(row)
        rows = [Row(name=topic, partitions=parts) for topic, parts in topics.items()]
        return Row(group_id=group.name, error_code=group.code, topics=rows)

    def _DescribeGroups(self, request: Any, node: str | None) -> Any:
        return Row(groups=[self._describe(self.groups[name]) for name in request.groups])

    def _describe(self, group: BusyGroup) -> Any:
        members = [
            Row(
                member_id=client,
                client_id=client,
                client_host="/192.0.2.7",
                group_instance_id=None,
                member_assignment=make_assignment(group.reads),
            )
            for client in group.members
        ]
        return Row(
            group_id=group.name,
            error_code=group.code,
            error_message=None,
            group_state=group.state,
            protocol_type="consumer",
            protocol_data="range",
            members=[] if group.code else members,
        )

    def _ConsumerGroupDescribe(self, request: Any, node: str | None) -> Any:
        return Row(groups=[self._describe_new(self.groups[name]) for name in request.group_ids])

    _ShareGroupDescribe = _ConsumerGroupDescribe

    def _describe_new(self, group: BusyGroup) -> Any:
        assigned = [Row(topic_name=topic, partitions=[0]) for topic in group.reads]
        members = [
            Row(
                member_id=client,
                client_id=client,
                client_host="/192.0.2.7",
                rack_id=None,
                assignment=Row(topic_partitions=assigned),
                subscribed_topic_names=list(group.reads),
            )
            for client in group.members
        ]
        return Row(
            group_id=group.name,
            error_code=group.code,
            error_message=None,
            group_state=group.state,
            assignor_name="uniform",
            group_epoch=1,
            members=members,
        )

    def _DescribeShareGroupOffsets(self, request: Any, node: str | None) -> Any:
        return Row(groups=[self._fetch_share(self.groups[row.group_id]) for row in request.groups])

    def _fetch_share(self, group: BusyGroup) -> Any:
        topics = [
            Row(
                topic_name=topic,
                partitions=[
                    Row(
                        partition_index=number,
                        start_offset=offset,
                        leader_epoch=-1,
                        lag=group.lag,
                        error_code=0,
                    )
                ],
            )
            for (topic, number), offset in group.offsets.items()
        ]
        return Row(group_id=group.name, error_code=0, error_message=None, topics=topics)

    def _DescribeProducers(self, request: Any, node: str | None) -> Any:
        return Row(
            topics=[
                Row(
                    name=topic.name,
                    partitions=[self._list_writers(topic.name, n) for n in topic.partition_indexes],
                )
                for topic in request.topics
            ]
        )

    def _list_writers(self, topic: str, number: int) -> Any:
        rows = [
            Row(
                producer_id=100 * number + n,
                producer_epoch=0,
                coordinator_epoch=-1,
                last_timestamp=self.now - age,
                current_txn_start_offset=-1,
            )
            for n, age in enumerate(self.logs[topic, number].producers)
        ]
        return Row(
            partition_index=number,
            error_code=self.producers_code,
            error_message=None,
            active_producers=[] if self.producers_code else rows,
        )

    def _DescribeLogDirs(self, request: Any, node: str | None) -> Any:
        wanted = {topic.topic: topic.partitions for topic in request.topics or ()}
        wanted = wanted or {name: range(count) for name, count in self.partitions.items()}
        topics = [
            Row(
                name=name,
                partitions=[
                    Row(
                        partition_index=n,
                        partition_size=self.logs[name, n].bytes,
                        is_future_key=False,
                    )
                    for n in numbers
                ],
            )
            for name, numbers in wanted.items()
        ]
        room = {"total_bytes": -1, "usable_bytes": -1, "is_cordoned": False}
        directory = Row(error_code=0, log_dir="/data", topics=topics, **room)
        return Row(error_code=0, results=[directory])


def make_assignment(topics: Sequence[str]) -> bytes:
    """A ConsumerProtocolAssignment of partition 0 of these topics."""
    data = struct.pack(">hi", 0, len(topics))
    for topic in topics:
        name = topic.encode()
        data += struct.pack(f">h{len(name)}sii", len(name), name, 1, 0)
    return data + struct.pack(">i", -1)
