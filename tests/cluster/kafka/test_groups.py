"""Groups of a cluster of which one broker does not answer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from kafkaform.provider.commands import Answer
from kafkaform_kafka.connection.settings import make_librdkafka_config
from kafkaform_kafka.inspect.documents import open_source
from kafkaform_kafka.inspect.groups import GroupQuery, read_groups
from kafkaform_kafka.session import KafkaSession

from ...kit.kafka.clusters import HELD, own_sandbox
from ...kit.kafka.sessions import connect, eventually, login
from ...kit.kafka.three_brokers import COUNT, Brokers
from ...kit.kafka.truth import observe

GROUPS = 24
LONG_LISTED = ("broker.session.timeout.ms", "120000")
"""How long a silent broker counts as live: longer than the slowest read, so that no other broker
takes its groups over meanwhile."""


@pytest.fixture(scope="module")
def brokers(own_brokers: None) -> Iterator[Brokers]:
    """Three, with a topic and groups that have committed offsets of it."""
    with own_sandbox(f"groups-{os.getpid()}", COUNT, (*HELD, LONG_LISTED)) as box:
        three = Brokers(box)
        admin = observe(three.box)
        admin.make({"orders": (1, {})})

        config = make_librdkafka_config(login(box))
        for number in range(GROUPS):
            consumer = Consumer({**config, "group.id": f"g-{number:02}"})
            eventually(lambda one=consumer: commit(one), bool)  # type: ignore[misc]
            consumer.close()
        yield three


def commit(consumer: Consumer) -> bool:
    """Whether an offset is committed. The first one of a cluster waits for its topic of groups."""
    try:
        (done,) = consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
    except KafkaException:
        return False
    return done.error is None


def read(session: KafkaSession) -> Answer:
    return read_groups(open_source(session), GroupQuery(name="g-*"))


def is_whole(answer: Answer) -> bool:
    rows: Any = answer.document["groups"]
    return answer.fault is None and len(rows) == GROUPS


def by_broker(answer: Answer) -> dict[int, set[str]]:
    """Broker id -> the groups that it coordinates."""
    found: dict[int, set[str]] = {}
    rows: Any = answer.document["groups"]
    for row in rows:
        found.setdefault(row["coordinator"], set()).add(row["name"])
    return found


def test_the_groups_of_a_silent_broker_are_missing_and_not_gone(brokers: Brokers) -> None:
    """The others are shown, the gap has the broker and the reason, and the command fails. When the
    broker answers again, the list is whole."""
    session = connect(brokers.box, servers=tuple(brokers.box.bootstrap.split(",")), timeout=5.0)
    whole = eventually(lambda: read(session), is_whole)
    before = by_broker(whole)
    assert len(before) == COUNT
    silent = brokers.plain()
    brokers.freeze(silent)
    try:
        answer = read(session)
    finally:
        brokers.thaw(silent)
    rows: Any = answer.document["gaps"]
    (gap,) = (row for row in rows if row["broker"] == silent)
    assert gap["what"] == f"the groups of broker {silent} are missing" and gap["message"]
    assert "incomplete" in str(answer.fault)
    after = by_broker(answer)
    assert silent not in after
    assert {name for mine in after.values() for name in mine} >= {
        name for broker, mine in before.items() if broker != silent for name in mine
    }
    eventually(lambda: read(session), is_whole)
    session.close()
