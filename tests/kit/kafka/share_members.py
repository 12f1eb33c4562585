"""Members of share groups: librdkafka's consumer, and one that chooses every request itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Message, ShareConsumer
from kafka.protocol.metadata import MetadataRequest

from kafkaform_kafka.session import KafkaSession

from .jar_messages import define_messages
from .scripted_wire import fill
from .topic_clients import Clients, wait_for

RENEW = 4
"""The type of acknowledgement that keeps a record for longer (KIP-1222)."""
SECONDS = 30.0
Range = tuple[int, int]
"""The first and the last offset."""


def open_consumer(clients: Clients, group: str, topic: str, **config: str) -> ShareConsumer:
    """A member that acknowledges records one by one. config: with `_` for `.`."""
    more = {key.replace("_", "."): value for key, value in config.items()}
    explicit = {"share.acknowledgement.mode": "explicit"}
    consumer = ShareConsumer({**clients.config, "group.id": group, **explicit, **more})
    consumer.subscribe([topic])
    return consumer


def poll_records(consumer: ShareConsumer) -> list[Message]:
    """What a poll of a second brings, without errors."""
    return [message for message in consumer.poll(1.0) if message.error() is None]


class ShareMember:
    """A member of a share group that reads the only partition of a topic, led by broker 1."""

    def __init__(
        self, session: KafkaSession, kinds: Mapping[str, Any], group: str, topic: str
    ) -> None:
        self._session, self._kinds = session, kinds
        self._member = {"group_id": group, "member_id": str(uuid4())}
        self._topic, self._epoch = topic, 0
        (row,) = self._ask(MetadataRequest, topics=[{"name": topic}]).topics
        self._topic_id = row.topic_id
        wait_for(self._join)

    def _join(self) -> bool:
        """False as long as the coordinator is not ready."""
        answer = self._ask(
            self._kinds["ShareGroupHeartbeat"],
            **self._member,
            member_epoch=0,
            subscribed_topic_names=[self._topic],
        )
        return answer.error_code == 0

    def fetch(self) -> list[Range]:
        """Acquire what the group gives out now."""
        answer = self._ask(
            self._kinds["ShareFetch"],
            **self._member,
            share_session_epoch=self._epoch,
            max_wait_ms=500,
            min_bytes=1,
            max_records=500,
            batch_size=500,
            topics=self._list_partitions([]) if self._epoch == 0 else [],
        )
        if answer.error_code:
            # The group does not know the member yet, or the session is of an earlier attempt.
            self._epoch = 0
            return []
        self._epoch += 1
        return [
            (acquired.first_offset, acquired.last_offset)
            for topic in answer.responses
            for partition in topic.partitions
            for acquired in partition.acquired_records
        ]

    def fetch_all(self) -> int:
        """The number of records that the group gives to a member that acknowledges none."""
        ranges: list[Range] = []
        wait_for(lambda: bool(ranges.extend(self.fetch()) or ranges))
        while more := self.fetch():
            ranges += more
        return sum(last - first + 1 for first, last in ranges)

    def acknowledge(self, offsets: Range, kind: int) -> int:
        """The code of the answer for the partition."""
        batch = {
            "first_offset": offsets[0],
            "last_offset": offsets[1],
            "acknowledge_types": [kind],
        }
        answer = self._ask(
            self._kinds["ShareAcknowledge"],
            **self._member,
            share_session_epoch=self._epoch,
            is_renew_ack=kind == RENEW,
            topics=self._list_partitions([batch]),
        )
        if answer.error_code:
            return int(answer.error_code)
        self._epoch += 1
        return int(answer.responses[0].partitions[0].error_code)

    def _list_partitions(self, batches: Sequence[Mapping[str, object]]) -> list[dict[str, Any]]:
        row = {"partition_index": 0, "acknowledgement_batches": batches}
        return [{"topic_id": self._topic_id, "partitions": [row]}]

    def _ask(self, kind: Any, **body: Any) -> Any:
        return self._session.context.wire.send(fill(kind, body), SECONDS, "1")


def define_share_messages(folder: Path, patch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """API -> its request."""
    names = ("ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge")
    return {name: define_messages(name, folder, patch) for name in names}
