"""What the rules of brokers, groups and features say, tried on a broker with real clients."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, ResourceType

from kafkaform.core.resource import Identity, Observed
from kafkaform.core.value import EMPTY
from kafkaform.sandbox import Sandbox
from kafkaform.sandbox.certificates import create_certificates
from kafkaform_kafka.session import KafkaSession

from ...kit.commands.process_folder import Folder
from ...kit.kafka.clusters import own_sandbox
from ...kit.kafka.sessions import connect
from ...kit.kafka.topic_clients import Clients, wait_for
from .broker_configs import ALL, BROKER, GROUP, METRICS, TOPIC, alter, read_rows

QUICK = (
    ("log.cleaner.backoff.ms", "200"),
    ("log.initial.task.delay.ms", "200"),
    ("log.retention.check.interval.ms", "300"),
)
"""A broker that cleans at once what Kafka's own settings clean after minutes."""
OWN_SOURCE = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
SESSION_TIMEOUT = "consumer.session.timeout.ms"
SEGMENT = {"segment_ms": 100}
"""A segment that is not written to for so long ends with the next record."""


@pytest.fixture(scope="module")
def box(own_brokers: None) -> Iterator[Sandbox]:
    """One broker that cleans quickly, with a listener for TLS, for this file alone."""
    with own_sandbox(f"tests-brokers-{os.getpid()}", 1, QUICK, tls=True) as box:
        yield box


@pytest.fixture(scope="module")
def clients(box: Sandbox) -> Clients:
    """Clients of `admin`."""
    return Clients(box.bootstrap, box.admin_password)


@pytest.fixture(scope="module")
def session(box: Sandbox) -> Iterator[KafkaSession]:
    """A session of `admin`, which can set every type of config."""
    session = connect(box)
    yield session
    session.close()


@pytest.fixture
def folder(box: Sandbox, tmp_path: Path) -> Folder:
    """A folder whose commands go to the broker."""
    folder = Folder(tmp_path, box.bootstrap, box.admin_password)
    folder.write()
    return folder


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name of this test's own."""
    return f"{request.node.name.removeprefix('test_')[:200]}"


@pytest.mark.parametrize(
    ("resource", "kind", "name", "key", "value"),
    [
        (TOPIC, "kafka_topic_config", "emptied", "retention.ms", "1000"),
        (BROKER, "kafka_broker_config", "1", "log.cleaner.threads", "2"),
        pytest.param(
            METRICS, "kafka_client_metrics", "emptied", "interval.ms", "1000", id="client_metrics"
        ),
        pytest.param(GROUP, "kafka_group_config", "emptied", SESSION_TIMEOUT, "50000", id="group"),
    ],
)
def test_configs_end_with_the_last_one(
    session: KafkaSession,
    clients: Clients,
    resource: str,
    kind: str,
    name: str,
    key: str,
    value: str,
) -> None:
    """`config-block-empty`, `topic-config-empty`: without a config, nothing is left to read."""
    if resource == TOPIC:
        assert clients.create(name) == ""
    identity = Identity("kafka", kind, name)

    def read() -> Mapping[str, Any] | None:
        observed = session.read([identity])[identity]
        return observed.attributes.get("config") if isinstance(observed, Observed) else None

    assert alter(session, resource, name, {key: value}) == ""
    wait_for(lambda: read() == {key: value})
    assert alter(session, resource, name, {key: None}) == ""
    wait_for(lambda: not read())


@pytest.fixture
def set_for_all(session: KafkaSession) -> Iterator[Any]:
    """Sets configs of all brokers, which are removed afterwards."""
    keys: list[str] = []

    def put(**config: str) -> None:
        values = {key.replace("_", "."): value for key, value in config.items()}
        keys.extend(values)
        assert alter(session, BROKER, ALL, values) == ""

    yield put
    assert alter(session, BROKER, ALL, dict.fromkeys(keys)) == ""


# ── defaults of topics ──────────────────────────────────────────────────────────────────


def begin_segment(clients: Clients, *topics: str) -> None:
    """Write a record, and one more that begins a segment."""
    for topic in topics:
        assert clients.write(topic, "old", "a") == ""
    time.sleep(0.2)
    for topic in topics:
        assert clients.write(topic, "last", "last") == ""


@pytest.mark.parametrize("entity", [("--entity-default",), ("1",)])
def test_a_lower_default_deletes_records_of_topics_without_an_override(
    folder: Folder, session: KafkaSession, clients: Clients, entity: tuple[str, ...], topic: str
) -> None:
    """`topic-retention-cut` of all brokers and of one: the plan names the topic that follows, and
    not the one with an override; only the first loses its records."""
    topic = topic.replace("[", ".").replace("]", "")
    kept = f"{topic}.kept"
    assert clients.create(topic, **SEGMENT) == ""
    assert clients.create(kept, **SEGMENT, retention_ms=-1) == ""
    begin_segment(clients, topic, kept)
    words = ("alter", "broker", *entity, "--add-config", "log.retention.ms=1000", "--auto-approve")
    said = folder.run(*words, "--no-color")
    try:
        text = " ".join(said.out.split())
        assert said.code == 0 and "topic-retention-cut" in text, text
        assert "records older than that are deleted, in" in text and "Deletes about" in text
        assert f"{topic}," in text or f"{topic} " in text
        assert kept not in text
        wait_for(lambda: "old" not in clients.values(topic))
        assert clients.values(kept) == ["old", "last"]
    finally:
        name = ALL if entity[0].startswith("-") else entity[0]
        assert alter(session, BROKER, name, {"log.retention.ms": None}) == ""


def test_topics_that_begin_to_expire_do_so_by_their_own_limits(
    set_for_all: Any, folder: Folder, clients: Clients, topic: str
) -> None:
    """`topic-expiry-started` of all brokers: the plan measures what is older than the override of
    the topic allows, and that is what goes."""
    set_for_all(log_cleanup_policy="compact")
    assert clients.create(topic, **SEGMENT, retention_ms=1000) == ""
    begin_segment(clients, topic)
    time.sleep(1.5)
    words = ("alter", "broker", "--entity-default", "--auto-approve", "--no-color")
    said = folder.run(*words, "--add-config", "log.cleanup.policy=[compact,delete]")
    text = " ".join(said.out.split())
    assert said.code == 0 and "topic-expiry-started" in text, text
    assert topic in text and "once they are older than 1 s" in text and "Deletes about" in text
    wait_for(lambda: "old" not in clients.values(topic))


def test_a_value_of_one_broker_wins_over_that_of_all(
    set_for_all: Any, session: KafkaSession, clients: Clients, topic: str
) -> None:
    """The broker keeps what all brokers delete."""
    assert clients.create(topic, **SEGMENT) == ""
    other = f"{topic}.shorter"
    assert clients.create(other, **SEGMENT, retention_ms=1000) == ""
    assert alter(session, BROKER, "1", {"log.retention.ms": "-1"}) == ""
    try:
        begin_segment(clients, topic, other)
        set_for_all(log_retention_ms="1000")
        wait_for(lambda: "old" not in clients.values(other))
        assert clients.values(topic) == ["old", "last"]
    finally:
        assert alter(session, BROKER, "1", {"log.retention.ms": None}) == ""


def test_cluster_wide_compaction_refuses_and_deletes_records_without_a_key(
    set_for_all: Any, clients: Clients, topic: str
) -> None:
    """`topic-keyless-refused`, `topic-compaction-started`: on every topic that follows, and not on
    one with an override."""
    kept = f"{topic}.kept"
    for name, more in ((topic, {}), (kept, {"cleanup_policy": "delete"})):
        assert clients.create(name, **SEGMENT, min_cleanable_dirty_ratio="0.001", **more) == ""
        assert clients.write(name, "keyless") == ""
        assert clients.write(name, "a1", "a") == ""
    set_for_all(log_cleanup_policy="compact")
    wait_for(lambda: clients.write(topic, "refused") == "INVALID_RECORD")
    begin_segment(clients, topic, kept)
    wait_for(lambda: clients.values(topic) == ["old", "last"])
    assert clients.values(kept) == ["keyless", "a1", "old", "last"]
    assert clients.write(kept, "keyless") == ""


def test_a_smaller_batch_size_of_all_brokers_refuses_larger_batches(
    set_for_all: Any, clients: Clients, topic: str
) -> None:
    """`topic-batches-refused`: only where no override allows more."""
    kept = f"{topic}.kept"
    assert clients.create(topic) == ""
    assert clients.create(kept, max_message_bytes=100_000) == ""
    set_for_all(message_max_bytes="1000")

    def write(name: str) -> str:
        return clients.write(name, os.urandom(5_000), "a", compression_type="none")

    wait_for(lambda: write(topic) == "MSG_SIZE_TOO_LARGE")
    assert write(kept) == ""


def test_an_override_that_is_not_set_can_be_removed(
    session: KafkaSession, clients: Clients, topic: str
) -> None:
    """`config-not-set`: also one that no topic has."""
    assert clients.create(topic, retention_ms=5000) == ""
    for key in ("segment.ms", "retention.mss"):
        assert alter(session, TOPIC, topic, {key: None}) == ""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = clients.admin.describe_configs([resource])[resource].result(15)
    own = {key: entry.value for key, entry in entries.items() if entry.source == OWN_SOURCE}
    assert own == {"retention.ms": "5000"}


# ── connections and logins ──────────────────────────────────────────────────────────────


def open_connections(box: Sandbox, number: int) -> list[socket.socket]:
    """Connections that say nothing."""
    host, port = box.bootstrap.split(":")
    return [socket.create_connection((host, int(port)), 5) for _ in range(number)]


def ask(connection: socket.socket, seconds: float = 1.0) -> str:
    """`answered`, `closed`, or `waits` for an ApiVersions request."""
    request = struct.pack(">hhih", 18, 0, 7, -1)
    connection.settimeout(seconds)
    try:
        connection.sendall(struct.pack(">i", len(request)) + request)
        return "answered" if connection.recv(4) else "closed"
    except TimeoutError:
        return "waits"
    except OSError:
        return "closed"


def test_connections_of_an_address_beyond_the_limit_are_closed(
    set_for_all: Any, box: Sandbox
) -> None:
    """`broker-connections-refused`."""
    open_before = open_connections(box, 12)
    assert {ask(connection) for connection in open_before} == {"answered"}
    set_for_all(max_connections_per_ip="12")
    time.sleep(1)
    more = open_connections(box, 5)
    assert {ask(connection) for connection in more} == {"closed"}
    assert {ask(connection) for connection in open_before} == {"answered"}
    for connection in (*open_before, *more):
        connection.close()


def test_connections_beyond_the_limit_of_a_broker_wait(set_for_all: Any, box: Sandbox) -> None:
    """`broker-connections-wait`: nothing is refused; another one has to end."""
    set_for_all(max_connections="12")
    time.sleep(1)
    connections = open_connections(box, 24)
    answers = [ask(connection, 0.3) for connection in connections]
    assert "closed" not in answers and answers[-1] == "waits" and answers[0] == "answered"
    last = connections.pop()
    for connection in connections:
        connection.close()
    last.settimeout(20)
    assert last.recv(4)
    last.close()


def test_connections_beyond_the_rate_wait(set_for_all: Any, box: Sandbox) -> None:
    """`broker-connection-rate-cut`: six connections, one a second."""
    set_for_all(max_connection_creation_rate="1")
    time.sleep(1)
    began = time.monotonic()
    connections = open_connections(box, 6)
    assert {ask(connection, 30) for connection in connections} == {"answered"}
    assert time.monotonic() - began > 2
    for connection in connections:
        connection.close()


def over_tls(box: Sandbox, authority: Path | None) -> tuple[str, Mapping[str, str]]:
    """The address of the listener for TLS, and what a client needs that trusts this authority."""
    assert box.bootstrap_tls is not None
    return box.bootstrap_tls, {"security.protocol": "SASL_SSL", "ssl.ca.location": str(authority)}


def can_log_in(box: Sandbox, server: str, more: Mapping[str, str] = EMPTY) -> bool:
    """Whether `admin` gets an answer with PLAIN on a new connection. more: of the client."""
    client = AdminClient(
        {
            "bootstrap.servers": server,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": box.admin_password,
            "log_level": 0,
            **more,
        }
    )
    try:
        client.list_topics(timeout=8)
    except KafkaException:
        return False
    return True


PREFIXES = ("", "listener.name.client.", "listener.name.tls.")
SETTINGS = (
    ("sasl.enabled.mechanisms", "SCRAM-SHA-256"),
    (
        "principal.builder.class",
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    ),
    ("ssl.client.auth", "required"),
    ("ssl.enabled.protocols", "TLSv1.2"),
    ("ssl.cipher.suites", "TLS_AES_128_GCM_SHA256"),
)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_listeners_that_run_keep_their_logins(
    box: Sandbox, session: KafkaSession, prefix: str
) -> None:
    """Principals, mechanisms, protocols and required certificates change nothing for them; with the
    prefix of a listener, the broker also refuses limits of connections until that goes."""
    for key, value in SETTINGS:
        name = f"{prefix}{key}"
        assert alter(session, BROKER, "1", {name: value}) == "", name
        time.sleep(1)
        assert can_log_in(box, box.bootstrap), name
        assert can_log_in(box, *over_tls(box, box.ca_file)), name
        limits = alter(session, BROKER, "1", {"max.connections": "1000"}, dry=True)
        assert ("existing listener" in limits) == bool(prefix), (name, limits)
        assert alter(session, BROKER, "1", {name: None}) == "", name


LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_other="x";'


@pytest.mark.parametrize(
    ("key", "value"), [("sasl.jaas.config", LOGIN), ("connections.max.reauth.ms", "60000")]
)
def test_listeners_that_run_keep_their_users_and_the_life_of_a_login(
    box: Sandbox, session: KafkaSession, key: str, value: str
) -> None:
    """`broker-login-changed`, `broker-reauthentication-shortened`: a user that is not in the new
    list logs in, and for ever."""
    name = f"listener.name.client.plain.{key}"
    assert alter(session, BROKER, "1", {name: value}) == ""
    time.sleep(1)
    try:
        assert can_log_in(box, box.bootstrap)
        assert read_login_life(box) == 0
    finally:
        assert alter(session, BROKER, "1", {name: None}) == ""


def read_login_life(box: Sandbox) -> int:
    """Milliseconds after which a new login of `admin` has to be repeated; 0 for never."""
    (connection,) = open_connections(box, 1)
    with connection:

        def send(api: int, version: int, body: bytes) -> bytes:
            request = struct.pack(">hhih", api, version, 1, -1) + body
            connection.sendall(struct.pack(">i", len(request)) + request)
            (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
            return connection.recv(size, socket.MSG_WAITALL)[4:]

        # SaslHandshake (17) and SaslAuthenticate (36), whose answer ends with the life (KIP-368).
        handshake = send(17, 1, struct.pack(">h", 5) + b"PLAIN")
        assert handshake[:2] == b"\0\0"
        secret = f"\0admin\0{box.admin_password}".encode()
        answer = send(36, 1, struct.pack(">i", len(secret)) + secret)
        assert answer[:2] == b"\0\0"
        (life,) = struct.unpack(">q", answer[-8:])
        return int(life)


def test_a_new_key_store_is_used_at_once(
    box: Sandbox, session: KafkaSession, tmp_path: Path
) -> None:
    """`broker-store-changed`: who trusts only the old authority cannot connect any more."""
    create_certificates(tmp_path)
    stores = {
        "listener.name.tls.ssl.keystore.location": str(tmp_path / "server.pem"),
        "listener.name.tls.ssl.truststore.location": str(tmp_path / "ca.pem"),
    }
    assert can_log_in(box, *over_tls(box, box.ca_file))
    assert alter(session, BROKER, "1", stores) == ""
    try:
        wait_for(lambda: can_log_in(box, *over_tls(box, tmp_path / "ca.pem")))
        # The threads of a listener take the store one after the other.
        wait_for(lambda: not can_log_in(box, *over_tls(box, box.ca_file)))
    finally:
        assert alter(session, BROKER, "1", dict.fromkeys(stores)) == ""
    wait_for(lambda: can_log_in(box, *over_tls(box, box.ca_file)))


def read_setting(box: Sandbox, key: str) -> str:
    """A setting with which the broker started."""
    lines = (
        line
        for path in box.folder.glob("**/*.properties")
        for line in path.read_text().splitlines()
    )
    return next(line.partition("=")[2] for line in lines if line.startswith(f"{key}="))


def test_a_listener_that_runs_keeps_its_address(box: Sandbox, session: KafkaSession) -> None:
    """`broker-listeners-changed`: the broker takes another address and does not use it. It refuses
    to remove the listener, because it advertises it, and to change its protocol."""
    before = read_setting(box, "listeners").split(",")
    old = next(listener for listener in before if listener.startswith("TLS://"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    moved = [f"TLS://127.0.0.1:{port}" if listener == old else listener for listener in before]
    removed = [listener for listener in before if listener != old]
    refusal = alter(session, BROKER, "1", {"listeners": ",".join(removed)})
    assert "advertised.listeners" in refusal
    protocols = read_setting(box, "listener.security.protocol.map")
    other = protocols.replace("TLS:SASL_SSL", "TLS:SASL_PLAINTEXT")
    refusal = alter(session, BROKER, "1", {"listener.security.protocol.map": other})
    assert other != protocols and "existing listener" in refusal
    address = ("127.0.0.1", int(old.rpartition(":")[2]))
    assert alter(session, BROKER, "1", {"listeners": ",".join(moved)}) == ""
    try:
        time.sleep(3)
        assert can_log_in(box, *over_tls(box, box.ca_file))
        assert is_open(address) and not is_open(("127.0.0.1", port))
    finally:
        assert alter(session, BROKER, "1", {"listeners": None}) == ""


def is_open(address: tuple[str, int]) -> bool:
    """Whether something listens there."""
    try:
        socket.create_connection(address, 5).close()
    except OSError:
        return False
    return True


# ── configs that are refused ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "key", "value", "reason"),
    [
        (ALL, "num.partitions", "3", "Cannot update these configs dynamically"),
        ("1", "num.partitions", "3", "Cannot update these configs dynamically"),
        ("1", "ssl.keystore.type", "PEM", "per-listener"),
        (ALL, "listeners", "A://:1", "default cluster level"),
        (ALL, "log.cleaner.threads", "-1", "must be at least"),
        (ALL, "log.segment.bytes", "1000", "must be at least"),
        (ALL, "log.cleanup.policy", "shred", "String must be one of"),
    ],
)
def test_configs_that_brokers_refuse(
    session: KafkaSession, name: str, key: str, value: str, reason: str
) -> None:
    """`broker-config-read-only`, `-needs-listener`, `-per-broker`, `-value-invalid`."""
    assert reason in alter(session, BROKER, name, {key: value}, dry=True)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        (ALL, "log.cleaner.threads", "2"),
        ("1", "listener.name.tls.ssl.keystore.type", "PEM"),
        (ALL, "log.segment.bytes", "1048576"),
    ],
)
def test_configs_that_brokers_take(session: KafkaSession, name: str, key: str, value: str) -> None:
    """The counterparts of those that are refused."""
    assert alter(session, BROKER, name, {key: value}, dry=True) == ""


def test_a_broker_hides_the_value_of_a_config_that_it_does_not_know(session: KafkaSession) -> None:
    """`broker-config-unknown`, `broker-secret-unknown`."""
    key = "my.plugin.limit"
    assert alter(session, BROKER, "1", {key: "5", "num.io.threads": "9"}) == ""
    try:
        wait_for(lambda: read_rows(session)["num.io.threads"].value == "9")
        row = read_rows(session)[key]
        assert (row.value, row.sensitive) == (None, True)
    finally:
        assert alter(session, BROKER, "1", {key: None, "num.io.threads": None}) == ""


def test_one_broker_cannot_have_its_own_min_insync_replicas(session: KafkaSession) -> None:
    """`broker-config-min-insync-shared`, with eligible leader replicas."""
    key = "min.insync.replicas"
    assert "INVALID_CONFIG" in alter(session, BROKER, "1", {key: "2"}, dry=True)
    assert alter(session, BROKER, ALL, {key: "1"}, dry=True) == ""


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        (GROUP, "consumer.sesion.timeout.ms", "45000"),
        (GROUP, "share.isolation.level", "committed"),
        (METRICS, "interval.msec", "1000"),
        (METRICS, "interval.ms", "99"),
        (METRICS, "match", "nothing"),
        (METRICS, "match", "client=app-.*"),
    ],
)
def test_configs_that_groups_and_client_metrics_refuse(
    session: KafkaSession, kind: str, key: str, value: str
) -> None:
    """`group-config-misspelt`, `-value-invalid`, `client-metrics-match-invalid`."""
    assert "INVALID_" in alter(session, kind, "some", {key: value}, dry=True)
    good = {GROUP: {"consumer.session.timeout.ms": "50000"}, METRICS: {"match": "client_id=app"}}
    assert alter(session, kind, "some", dict(good[kind]), dry=True) == ""


# ── features: last, because some cannot be taken back ───────────────────────────────────


def join_group(box: Sandbox, topic: str) -> str:
    """How a consumer of the new protocol fails to join; empty if it gets partitions."""
    faults: list[str] = []
    consumer = Consumer(
        {
            "bootstrap.servers": box.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": box.admin_password,
            "group.id": "new-protocol",
            "group.protocol": "consumer",
            "error_cb": lambda error: faults.append(error.name()),
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    deadline = time.monotonic() + 15
    try:
        while time.monotonic() < deadline and not consumer.assignment() and not faults:
            message = consumer.poll(0.2)
            if message is not None and message.error():
                faults.append(message.error().name())
        return faults[0] if faults else "" if consumer.assignment() else "NO_ASSIGNMENT"
    finally:
        consumer.close()


def test_a_downgrade_cuts_off_consumers_of_the_new_protocol(
    box: Sandbox, clients: Clients, folder: Folder, topic: str
) -> None:
    """`feature-downgraded`: they join before it, not after it, and again once it is back."""
    assert clients.create(topic) == ""
    wait_for(lambda: join_group(box, topic) == "")
    words = ("alter", "features", "group.version=0", "--downgrade", "--auto-approve")
    said = folder.run(*words)
    assert said.code == 0 and "feature-downgraded" in said.out, said.out
    assert join_group(box, topic) != ""
    assert folder.run("alter", "features", "group.version=1", "--auto-approve").code == 0
    wait_for(lambda: join_group(box, topic) == "")


def test_downgrades_that_kafka_refuses(folder: Folder) -> None:
    """`feature-one-way`, `feature-unsafe-downgrade`: the error names the flag, and whether Kafka
    has it."""
    words = ("alter", "features", "metadata.version=4.1")
    safe = folder.run(*words, "--downgrade", "--auto-approve")
    assert safe.code != 0 and "INVALID_UPDATE_VERSION" in safe.out
    assert "--unsafe-downgrade" in safe.out
    unsafe = folder.run(*words, "--unsafe-downgrade", "--auto-approve")
    assert unsafe.code != 0 and "INVALID_UPDATE_VERSION" in unsafe.out
    assert "this version of Kafka has no such downgrade" in " ".join(unsafe.out.split())
    raised = folder.run("alter", "features", "kraft.version=1", "--auto-approve")
    assert raised.code == 0 and "feature-one-way" in raised.out, raised.out
    for way in ("--downgrade", "--unsafe-downgrade"):
        lowered = folder.run("alter", "features", "kraft.version=0", way, "--auto-approve")
        assert lowered.code != 0 and "INVALID_UPDATE_VERSION" in lowered.out, lowered.out
