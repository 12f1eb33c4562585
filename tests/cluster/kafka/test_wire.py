"""The wire facts that the provider relies on, asked of a real broker."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, NoReturn

import pytest
from kafka.cluster import ClusterMetadata
from kafka.errors import KafkaConnectionError, NodeNotReadyError, RequestTimedOutError
from kafka.net.connection import KafkaConnection

from kafkaform_kafka.connection.settings import make_client_config
from kafkaform_kafka.wire import client, cluster, configs, topics
from kafkaform_kafka.wire.answers import ItemAnswers, id_text, parse_id
from kafkaform_kafka.wire.client import (
    RequestNotSent,
    RequestUnanswered,
    Wire,
    _exchange,
    _get_connection,
)

from ...kit.kafka.logins import Login
from ...kit.kafka.sessions import eventually, login
from ...kit.proxy.proxy import proxying

TIMEOUT = 20.0
METADATA, CREATE_TOPICS = 3, 19


@pytest.fixture
def wire(broker: Any) -> Iterator[Wire]:
    """A raw connection of the super user."""
    opened = Wire(make_client_config(login(broker, "admin")), 8)
    yield opened
    opened.close()


@pytest.fixture
def hidden(broker: Any, stranger: Login) -> Iterator[Wire]:
    """A raw connection of the user without rights."""
    opened = Wire(make_client_config(login(broker, stranger)), 8)
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


def create(wire: Wire, *payloads: dict[str, Any]) -> ItemAnswers:
    """CreateTopics for real."""
    return topics.create_topics(wire, payloads, TIMEOUT, validate_only=False)


def test_the_pinned_client_has_the_inner_parts_that_are_used(wire: Wire) -> None:
    """A new kafka-python that renames them is noticed here first."""
    assert version("kafka-python").startswith("3.0.")
    pool = wire._pool
    parts = ("run", "get_connection", "least_loaded_node", "wait_for", "least_used_connections")
    assert all(callable(getattr(pool, part)) for part in parts)
    assert callable(pool.net.sleep)
    connection = pool.get_connection(pool.least_loaded_node())
    assert callable(connection.send_request)
    assert callable(KafkaConnection._send_request)  # by which versions and the login are asked, too
    assert callable(connection.transport._sock_recv)
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
    assert "metadata.version" in cluster.read_versions(wire, TIMEOUT).features


def test_a_request_for_an_unknown_broker_is_never_sent(wire: Wire) -> None:
    """Nothing left this computer, and that is known."""
    with pytest.raises(RequestNotSent):
        topics.list_topics(wire, None, 0.2, node="4711")


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of one that takes connections and says nothing, as a broker does whose machine
    hangs."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def test_a_silent_broker_is_not_tried_again_before_others(broker: Any, silent: str) -> None:
    """Of those that are named first, each gets its turn: also if the only one that answers is
    found last."""
    config = make_client_config(login(broker, "admin"))
    for _ in range(4):
        named = [silent, silent.replace("127.0.0.1", "127.0.0.2"), *config["bootstrap_servers"]]
        opened = Wire({**config, "bootstrap_servers": named}, 8)
        try:
            assert cluster.describe_cluster(opened, TIMEOUT).brokers
        finally:
            opened.close()


@pytest.mark.parametrize(
    ("named", "logins"),
    [
        pytest.param("127.0.0.1", 1, id="the address that the broker tells"),
        pytest.param("localhost", 2, id="another name"),
    ],
)
def test_the_first_connection_stays_that_of_its_broker(
    broker: Any, named: str, logins: int
) -> None:
    """A second one to the same address would cost seven round trips and a login. Which broker
    answers under another name, nobody knows."""
    with proxying(int(broker.bootstrap.rpartition(":")[2])) as proxy:
        address = proxy.bootstrap.replace("127.0.0.1", named)
        opened = Wire(make_client_config(login(broker, "admin", servers=(address,))), 8)
        try:
            (node,) = cluster.describe_cluster(opened, TIMEOUT).brokers
            topics.list_topics(opened, None, TIMEOUT, node=node)
            assert proxy.take()["SaslAuthenticate"] == logins
            # Once it is lost it is opened again, as any other, and sometimes at once: kafka-python
            # asks for metadata then.
            first = {*opened._pool.connections.values()}
            proxy.cut()
            eventually(lambda: first & {*opened._pool.connections.values()}, lambda lost: not lost)
            topics.list_topics(opened, None, TIMEOUT, node=node)
            assert proxy.take()["SaslAuthenticate"] == 1
        finally:
            opened.close()
        assert not opened._pool.connections


def test_topic_ids_keep_their_text() -> None:
    """Ids are written as Kafka's own tools write them, and read back."""
    text = "oXNKsaT9SHaugxSUNidHVQ"
    assert id_text(parse_id(text)) == text
    with pytest.raises(ValueError, match="not a topic id"):
        parse_id("orders")


def connect(manager: Any, seconds: float, node: str | None, failures: Any) -> Any:
    """Ask for a connection to this broker, or to number 1 if any will do."""
    return asyncio.run(_get_connection(manager, seconds, node, lambda: 1, failures))


class _Backing:
    """A manager that fails once, and then only says that it is too early for another attempt."""

    def __init__(self, failure: Exception) -> None:
        self.failure: Exception | None = failure
        self.net = self
        self.cluster = ClusterMetadata(bootstrap_servers=["localhost:9092"])

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
        with pytest.raises(RequestNotSent, match="another authority"):
            connect(manager, 0.001, node, failures)
    with pytest.raises(RequestNotSent, match=r"the broker cannot be reached yet \(broker 1\)"):
        connect(manager, 0.001, None, {})


class _Refusing(_Backing):
    """A manager whose broker always refuses the connection."""

    def get_connection(self, node: int) -> NoReturn:
        raise KafkaConnectionError("refused")


def test_a_broker_that_refuses_is_known_after_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A certain one is not waited for as long as a cluster of which anybody will do."""
    monkeypatch.setattr(client, "_REFUSED", 0.2)
    begun = time.monotonic()
    with pytest.raises(RequestNotSent, match="refused"):
        connect(_Refusing(KafkaConnectionError()), 60.0, "1", {})
    assert time.monotonic() - begun < 30
    begun = time.monotonic()
    with pytest.raises(RequestNotSent, match="refused"):
        connect(_Refusing(KafkaConnectionError()), 1.0, None, {})
    assert time.monotonic() - begun > 0.9


class _Throttled:
    """A connection that its broker pauses for a while, and the manager that has it."""

    def __init__(self, looks: int) -> None:
        self.looks, self.net, self.init_future = looks, self, None
        self.connections = {1: self}
        self.cluster = ClusterMetadata(bootstrap_servers=["localhost:9092"])

    def get_connection(self, node: int) -> _Throttled:
        return self

    async def wait_for(self, future: object, milliseconds: float) -> None:
        """It is connected."""

    @property
    def paused(self) -> set[str]:
        self.looks -= 1
        return {"throttle"} if self.looks > 0 else set()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0.01)


def test_a_broker_that_throttles_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It lives, and asks for patience."""
    monkeypatch.setattr(client, "_SILENT", 0.05)
    connection = _Throttled(50)
    assert connect(connection, 60.0, "1", {}) is connection


class _Line:
    """A connection that is lost before or after the request is written."""

    def __init__(self, error: Exception, *, left: bool) -> None:
        self.error, self.left = error, left

    async def send_request(self, request: Any, request_timeout_ms: float) -> NoReturn:
        if self.left:
            request.with_header()
        raise self.error


class _Question:
    """A request. key: of its API; dry: it changes nothing."""

    def __init__(self, key: int = METADATA, *, dry: bool = False) -> None:
        self.API_KEY, self.validate_only = key, dry

        self.header: object = None

    def with_header(self) -> None:
        """kafka-python does this right before it makes the bytes."""
        self.header = object()


@pytest.mark.parametrize("error", [KafkaConnectionError("reset"), RequestTimedOutError()])
def test_what_never_left_is_not_unknown(error: Exception) -> None:
    """Only what was written may have been carried out."""
    with pytest.raises(RequestNotSent):
        asyncio.run(_exchange(_Line(error, left=False), _Question(), 1.0))
    with pytest.raises(RequestUnanswered) as lost:
        asyncio.run(_exchange(_Line(error, left=True), _Question(), 1.0))
    assert lost.value.timed_out is isinstance(error, RequestTimedOutError)


class _Tried(Wire):
    """Answers from a list, in place of a cluster. waited: how long for each answer."""

    def __init__(self, *ends: object) -> None:
        self.ends, self.waited, self._missed = [*ends], list[float](), {}
        self._forwards = True

    def _send_once(self, request: Any, timeout: float, patience: float, node: str | None) -> Any:
        self.waited.append(patience)
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end


RESET, LATE = RequestUnanswered("reset", timed_out=False), RequestUnanswered("late", timed_out=True)


@pytest.mark.parametrize(
    ("question", "node", "ends", "waited"),
    [
        (_Question(), None, (RESET, "told"), [10, 10]),
        (_Question(), None, (RESET, RESET, "told"), [10, 10, 10]),
        (_Question(), None, (LATE, "told"), [10, 30]),
        (_Question(CREATE_TOPICS, dry=True), None, (RESET, "told"), [30, 30]),
        (_Question(), "1", (RESET,), [10]),
        (_Question(), None, (LATE, LATE), [10, 30]),
        (_Question(), None, (RESET, RESET, RESET), [10, 10, 10]),
        (_Question(CREATE_TOPICS), None, (RESET,), [30]),
        (_Question(CREATE_TOPICS), None, (LATE,), [30]),
        (_Question(CREATE_TOPICS, dry=True), None, (LATE,), [30]),
    ],
)
def test_a_read_is_tried_at_others_and_a_write_never(
    question: Any, node: str | None, ends: tuple[object, ...], waited: list[float]
) -> None:
    """What changes nothing may be asked twice: soon where nothing but the answer can take time,
    and once more with all the time that an answer may need."""
    wire = _Tried(*ends)
    if ends[-1] == "told":
        assert wire.send(question, 30, node) == "told"
    else:
        with pytest.raises(RequestUnanswered):
            wire.send(question, 30, node)
    assert wire.waited == waited and not wire.ends
