"""Groups of a cluster of which one broker does not answer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from kafkaform.provider.commands import Answer
from kafkaform_kafka.inspect.activity.groups import GroupQuery, read_groups
from kafkaform_kafka.inspect.documents import open_source
from kafkaform_kafka.session import KafkaSession

from ...kit.kafka.sessions import connect, eventually
from ...kit.kafka.three_brokers import Brokers, three_brokers
from ...kit.kafka.truth import observe

GROUPS = 24


@pytest.fixture(scope="module")
def brokers(own_brokers: None) -> Iterator[Brokers]:
    """Three, with a topic and groups that have committed offsets of it."""
    with three_brokers(f"groups-{os.getpid()}") as three:
        admin = observe(three.box)
        admin.make({"orders": (1, {})})

        def commit(name: str) -> bool:
            # The first group waits until Kafka's topic of groups has its leaders.
            offsets = ConsumerGroupTopicPartitions(name, [TopicPartition("orders", 0, 0)])
            (future,) = admin.native.alter_consumer_group_offsets([offsets]).values()
            return future.exception(60) is None

        for number in range(GROUPS):
            eventually(lambda n=number: commit(f"g-{n:02}"), bool)  # type: ignore[misc]
        yield three


def read(session: KafkaSession) -> Answer:
    return read_groups(open_source(session), GroupQuery(name="g-*"))


def by_broker(answer: Answer) -> dict[int, set[str]]:
    """Broker id -> the groups that it coordinates."""
    found: dict[int, set[str]] = {}
    rows: Any = answer.document["groups"]
    for row in rows:
        found.setdefault(row["coordinator"], set()).add(row["name"])
    return found


def test_the_groups_of_a_silent_broker_are_missing_and_not_gone(brokers: Brokers) -> None:
    """The others are shown, the gap has the broker and the reason, and the command fails. When the
    broker answers again, or others have taken over, the list is whole."""
    session = connect(brokers.box, timeout=2.0)
    whole = eventually(lambda: read(session), lambda answer: answer.fault is None)
    before = by_broker(whole)
    assert sum(map(len, before.values())) == GROUPS and len(before) == 3
    silent = brokers.plain()
    brokers.freeze(silent)
    try:
        answer = read(session)
    finally:
        brokers.thaw(silent)
    (gap,) = (gap for gap in answer.document["gaps"] if gap["broker"] is not None)
    assert gap["broker"] == silent and "no answer to ListGroups" in gap["message"]
    assert "incomplete" in str(answer.fault)
    after = by_broker(answer)
    assert silent not in after
    assert {name for mine in after.values() for name in mine} >= {
        name for broker, mine in before.items() if broker != silent for name in mine
    }
    again = eventually(
        lambda: read(session),
        lambda answer: answer.fault is None and len(answer.document["groups"]) == GROUPS,
    )
    assert again.document["gaps"] == ()
    session.close()
