"""The wire facts that the provider relies on, asked of a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, NoReturn

import pytest
from kafka.errors import KafkaConnectionError, NodeNotReadyError
from kafka.net.connection import KafkaConnection

from kafkaform_providers.kafka.connect import pure_config
from kafkaform_providers.kafka.wire import cluster, configs, topics
from kafkaform_providers.kafka.wire.answers import Answers
from kafkaform_providers.kafka.wire.client import AnswerLost, NotSent, Wire, _connection
from kafkaform_providers.kafka.wire.ids import id_text, parse_id

from ..logins import Login
from .cluster import eventually, login

TIMEOUT = 20.0


@pytest.fixture
def wire(broker: Any) -> Iterator[Wire]:
    """A raw connection of the super user."""
    opened = Wire(pure_config(login(broker, "admin")), 8)
    yield opened
    opened.close()


@pytest.fixture
def hidden(broker: Any, stranger: Login) -> Iterator[Wire]:
    """A raw connection of the user without rights."""
    opened = Wire(pure_config(login(broker, stranger)), 8)
    yield opened
    opened.close()


def payload(name: str, **more: Any) -> dict[str, Any]:
    """A CreateTopics payload."""
    usual: dict[str, Any] = {
        "partitions": 1,
        "replication_factor": 1,
        "assignment": None,
        "configs": {},
    }
    return {"name": name, **usual, **more}


def create(wire: Wire, *payloads: dict[str, Any]) -> Answers:
    """CreateTopics for real."""
    return topics.create_topics(wire, payloads, TIMEOUT, validate_only=False)


def test_the_pinned_client_has_the_inner_parts_that_are_used(wire: Wire) -> None:
    """A new kafka-python that renames them is noticed here first."""
    assert version("kafka-python").startswith("3.0.")
    manager = wire._admin._manager
    parts = ("run", "get_connection", "least_loaded_node", "wait_for")
    assert all(callable(getattr(manager, part)) for part in parts)
    assert callable(manager._net.sleep)
    connection = manager.get_connection(manager.least_loaded_node())
    assert callable(connection.send_request)
    assert callable(KafkaConnection._send_request)  # by which versions and the login are asked, too
    assert type(connection).__base__ is KafkaConnection
    assert connection.init_future is not None
    assert not connection.paused


def test_create_answers_with_id_counts_and_configs(wire: Wire, prefix: str) -> None:
    """CreateTopics v7 tells at once what the broker made, so no read is needed for it."""
    made = create(wire, payload(prefix, partitions=2, configs={"retention.ms": "9"}))
    answer = made.items[prefix]
    assert (answer.code, answer.partitions, answer.replication_factor) == (0, 2, 1)
    assert answer.topic_id
    assert answer.configs is not None
    assert [(e.name, e.value) for e in answer.configs if e.source == 1] == [("retention.ms", "9")]
    row = eventually(lambda: rows(wire, prefix), lambda row: row.code == 0)
    assert row.topic_id == answer.topic_id
    topics.delete_topics(wire, [answer.topic_id], TIMEOUT)


def rows(wire: Wire, name: str, **more: Any) -> topics.TopicRow:
    """Metadata of one topic."""
    (row,) = topics.list_topics(wire, [name], TIMEOUT, **more)
    return row


def test_delete_goes_by_id_and_spares_a_recreated_topic(wire: Wire, prefix: str) -> None:
    """The id of a topic that is gone is unknown (100), whatever lives under its name now."""
    first = create(wire, payload(prefix)).items[prefix].topic_id or ""
    assert topics.delete_topics(wire, [first], TIMEOUT).items[first].code == 0
    second = create(wire, payload(prefix)).items[prefix].topic_id or ""
    assert second != first
    assert topics.delete_topics(wire, [first], TIMEOUT).items[first].code == 100
    row = eventually(lambda: rows(wire, prefix), lambda row: row.topic_id == second)
    assert row.code == 0
    assert topics.delete_topics(wire, [second], TIMEOUT).items[second].code == 0


def test_hidden_and_missing_topics_look_alike(wire: Wire, hidden: Wire, prefix: str) -> None:
    """Error 29 by name for both, and an empty listing without any error."""
    made = create(wire, payload(prefix)).items[prefix].topic_id or ""
    eventually(lambda: rows(wire, prefix), lambda row: row.code == 0)
    assert rows(hidden, prefix).code == 29
    assert rows(hidden, f"{prefix}-missing").code == 29
    assert topics.list_topics(hidden, None, TIMEOUT) == ()
    assert rows(wire, f"{prefix}-missing").code == 3
    topics.delete_topics(wire, [made], TIMEOUT)


def test_a_dry_run_creates_nothing(wire: Wire, prefix: str) -> None:
    """validate_only leaves no topic behind, and the id in its answer belongs to nobody."""
    answer = topics.create_topics(wire, [payload(prefix)], TIMEOUT, validate_only=True)
    assert answer.items[prefix].code == 0
    phantom = answer.items[prefix].topic_id or ""
    assert topics.delete_topics(wire, [phantom], TIMEOUT).items[phantom].code == 100
    assert rows(wire, prefix).code == 3


def test_items_of_one_request_fail_alone(wire: Wire, prefix: str) -> None:
    """A refused topic does not keep the others from being made."""
    good, bad = payload(prefix), payload(f"{prefix}-bad", configs={"retention.ms": "x"})
    made = create(wire, good, bad)
    assert made.items[f"{prefix}-bad"].code == 40
    assert made.items[f"{prefix}-bad"].message
    assert made.items[prefix].code == 0
    topics.delete_topics(wire, [made.items[prefix].topic_id or ""], TIMEOUT)


def test_partitions_to_the_same_count_are_refused(wire: Wire, prefix: str) -> None:
    """CreatePartitions is not idempotent: 37, which the fault table reads as converged."""
    made = create(wire, payload(prefix)).items[prefix].topic_id or ""
    grow = {"name": prefix, "count": 3, "assignment": None}
    first = topics.create_partitions(wire, [grow], TIMEOUT, validate_only=False)
    again = topics.create_partitions(wire, [grow], TIMEOUT, validate_only=False)
    assert (first.items[prefix].code, again.items[prefix].code) == (0, 37)
    topics.delete_topics(wire, [made], TIMEOUT)


def test_removing_an_absent_config_is_no_error(wire: Wire, prefix: str) -> None:
    """DELETE of a key without override is a no-op, so a repeat is safe."""
    made = create(wire, payload(prefix)).items[prefix].topic_id or ""
    change = {"resource": "topic", "name": prefix, "set": {}, "delete": ("retention.ms",)}
    answers = configs.alter_configs(wire, [change], TIMEOUT, validate_only=False)
    assert answers.items["topic", prefix].code == 0
    topics.delete_topics(wire, [made], TIMEOUT)


def test_the_cluster_describes_itself(wire: Wire) -> None:
    """Cluster id, live brokers, rights and features come from two requests."""
    described = cluster.describe_cluster(wire, TIMEOUT)
    assert described.code == 0
    assert len(described.cluster_id) == 22
    assert described.brokers
    assert described.operations
    assert "metadata.version" in cluster.finalized_features(wire, TIMEOUT)


def test_a_request_for_an_unknown_broker_is_never_sent(wire: Wire) -> None:
    """Nothing left this computer, and that is known."""
    with pytest.raises(NotSent):
        topics.list_topics(wire, None, 0.2, node="4711")


def test_a_late_answer_is_a_lost_one(wire: Wire) -> None:
    """After the client's timeout nobody knows whether the request worked."""
    rows(wire, "warm-up")
    with pytest.raises(AnswerLost) as caught:
        topics.list_topics(wire, None, 0.000_001)
    assert caught.value.timed_out


def test_topic_ids_keep_their_text() -> None:
    """Ids are written as Kafka's own tools write them, and read back."""
    text = "oXNKsaT9SHaugxSUNidHVQ"
    assert id_text(parse_id(text)) == text
    with pytest.raises(ValueError, match="not a topic id"):
        parse_id("orders")


class _Backing:
    """A manager that fails once, and then only says that it is too early for another attempt."""

    def __init__(self, failure: Exception) -> None:
        self.failure: Exception | None = failure
        self._net = self

    def least_loaded_node(self) -> int:
        return 1

    def get_connection(self, node: int) -> NoReturn:
        failure, self.failure = self.failure, None
        raise failure or NodeNotReadyError(node)

    async def sleep(self, seconds: float) -> None:
        """No time goes by but the deadline's."""


def test_why_it_failed_is_told_when_it_is_too_early_to_try_again() -> None:
    """A question whose whole time falls between two attempts tells what the last one met."""
    failures: dict[int | None, str] = {}
    manager = _Backing(KafkaConnectionError("Handshake failed: another authority"))
    for node in (None, "1", None):
        with pytest.raises(NotSent, match="another authority"):
            asyncio.run(_connection(manager, 0.001, node, failures))
    with pytest.raises(NotSent, match="NodeNotReady"):
        asyncio.run(_connection(manager, 0.001, None, {}))
