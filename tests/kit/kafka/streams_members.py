"""Members of streams groups (KIP-1071): neither client of the tests can be one, so these send each
heartbeat themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from kafka.protocol.consumer import OffsetCommitRequest

from kafkaform.sandbox import Sandbox
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.groups import find_coordinator

from .scripted_wire import fill
from .sessions import connect
from .topic_clients import wait_for

SECONDS = 30.0
LEAVES = -1
"""The epoch of a member that leaves."""


class StreamsMember:
    """A process of a Streams application, which takes the tasks that it gets. kind: the request
    StreamsGroupHeartbeat; changelog: the topic of its only store, which it has none of without."""

    def __init__(
        self, session: KafkaSession, kind: Any, group: str, topic: str, changelog: str = ""
    ) -> None:
        self._session, self._kind, self.group = session, kind, group
        self.id = str(uuid4())
        store = {
            "name": changelog,
            "partitions": 0,
            "replication_factor": 1,
            "topic_configs": [],
        }
        subtopology = {
            "subtopology_id": "0",
            "source_topics": [topic],
            "source_topic_regex": [],
            "state_changelog_topics": [store] if changelog else [],
            "repartition_sink_topics": [],
            "repartition_source_topics": [],
            "copartition_groups": [],
        }
        self.tasks: dict[str, list[Any]] = {
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
        }
        self._joining = {
            "group_id": group,
            "member_id": self.id,
            "member_epoch": 0,
            "endpoint_information_epoch": 0,
            "rebalance_timeout_ms": 60_000,
            "topology": {"epoch": 0, "subtopologies": [subtopology]},
            "process_id": str(uuid4()),
            "client_tags": [],
            "shutdown_application": False,
        }
        self._body = {**self._joining, **self.tasks}
        wire = session.context.wire
        # The first group of a cluster waits until Kafka has made its topic of groups.
        wait_for(lambda: find_coordinator(wire, group, SECONDS).code == 0)

    def beat(self) -> None:
        """Send a heartbeat, and take what the answer assigns."""
        answer = self._send(fill(self._kind, self._body))
        if answer.error_code:
            # Such as while the coordinator loads its groups.
            self._body = {**self._joining, **self.tasks}
            return
        if answer.active_tasks is not None:
            self.tasks = {
                name: [
                    {"subtopology_id": row.subtopology_id, "partitions": list(row.partitions)}
                    for row in getattr(answer, name) or ()
                ]
                for name in self.tasks
            }
        epoch = {"member_epoch": answer.member_epoch, "topology": None}
        self._body = {**self._joining, **epoch, **self.tasks}

    def work(self) -> bool:
        """Send a heartbeat; whether the member has tasks."""
        self.beat()
        return bool(self.tasks["active_tasks"])

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit these offsets as a member."""
        topic_kind = OffsetCommitRequest.OffsetCommitRequestTopic
        rows = []
        for (topic, number), offset in offsets.items():
            partition = {
                "partition_index": number,
                "committed_offset": offset,
                "committed_leader_epoch": -1,
                "committed_metadata": "",
            }
            rows.append(fill(topic_kind, {"name": topic, "partitions": [partition]}))
        answer = self._send(
            OffsetCommitRequest(
                group_id=self.group,
                generation_id_or_member_epoch=self._body["member_epoch"],
                member_id=self.id,
                topics=rows,
                max_version=9,  # the next one has topic ids instead of names
            )
        )
        codes = [row.error_code for topic in answer.topics for row in topic.partitions]
        assert not any(codes), codes

    def leave(self) -> None:
        """Send the last heartbeat."""
        self._send(fill(self._kind, {**self._body, "member_epoch": LEAVES}))

    def _send(self, request: Any) -> Any:
        return self._session.context.wire.send(request, SECONDS, "1")


@contextmanager
def open_streams_member(box: Sandbox, kind: Any, group: str, topic: str) -> Iterator[StreamsMember]:
    """A member that has all tasks of its group, and leaves in the end. Without a heartbeat, it
    stays a member for 45 s, which is Kafka's default."""
    session = connect(box)
    try:
        member = StreamsMember(session, kind, group, topic)
        wait_for(member.work)
        yield member
        member.leave()
    finally:
        session.close()
