"""A real schema registry and a real Kafka Connect beside the brokers."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kafkaform import sandbox
from kafkaform.sandbox import SandboxState, ServerKind, process
from kafkaform.sandbox.record import Sandbox

from ...conftest import Broker
from ...kit.kafka.versions import get_choice
from ...kit.servers import (
    PATIENCE,
    READY_SECONDS,
    Client,
    Registry,
    Worker,
    require_connect,
    wait_until,
)
from .test_sandbox import admin, create_topic, invoke

pytestmark = pytest.mark.timeout(600)
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SCHEMA = {"schema": json.dumps({"type": "record", "name": "R", "fields": []})}


def client_of(box: Sandbox, kind: ServerKind) -> Client:
    server = box.find_server(kind)
    assert server is not None
    login = ("admin", box.admin_password) if kind is ServerKind.CONNECT else None
    return Client(server.url, login)


def of_broker(broker: Broker) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": broker.admin_password,
            "log_level": 0,
        }
    )


def allow(client: AdminClient, kind: ResourceType, name: str, operation: AclOperation) -> None:
    pattern, permission = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    acl = AclBinding(kind, name, pattern, "User:connect", "*", operation, permission)
    client.create_acls([acl])[acl].result(PATIENCE)


def test_the_registry_checks_schemas(registry: Registry) -> None:
    """By the API that others have, too."""
    client, subject = Client(registry.url), f"sandbox-{uuid.uuid4()}"
    status, body = client.ask("POST", f"/subjects/{subject}/versions", SCHEMA)
    assert status == 200 and body["id"] > 0
    status, body = client.ask("GET", f"/subjects/{subject}/versions/latest")
    assert (status, body["version"]) == (200, 1)
    assert client.ask("GET", f"/subjects/{subject}-other/versions")[0] == 404


def test_connect_asks_for_a_login(connect: Worker) -> None:
    """Every local user can reach its port, and a connector acts with the rights of its user."""
    login = (connect.username, connect.password)
    assert Client(connect.url).ask("GET", "/connectors")[0] == 401
    assert Client(connect.url, ("admin", "wrong")).ask("GET", "/connectors")[0] == 401
    assert Client(connect.url, ("ci", connect.password)).ask("GET", "/connectors")[0] == 401
    assert Client(connect.url, login).ask("GET", "/connectors")[0] == 200
    assert Client(connect.url, login).ask("GET", "/")[1]["version"] == get_choice().kafka_version


def test_connectors_read_values_from_their_folder_only(connect: Worker, tmp_path: Path) -> None:
    """A password there is taken; one in the run folder is not."""
    client = connect.open_client()
    outside = connect.secrets.parent / "connect-users"
    assert connect.password in outside.read_text()
    for file, is_read in ((connect.secrets / "users.properties", True), (outside, False)):
        config = {
            "connector.class": SINK,
            "name": "unused",
            "topics": f"${{file:{file}:admin}}",
            "file": str(tmp_path / "out"),
        }
        status, body = client.ask("PUT", f"/connector-plugins/{SINK}/config/validate", config)
        assert status == 200
        (told,) = (c["value"] for c in body["configs"] if c["value"]["name"] == "topics")
        assert (connect.password in str(told["value"])) is is_read


def test_a_connector_can_do_what_acls_allow(
    broker: Broker, connect: Worker, tmp_path: Path
) -> None:
    """A sink fails without rights; with them, records arrive in its file."""
    client, name = connect.open_client(), f"s{uuid.uuid4()}"
    config = {"connector.class": SINK, "topics": name, "file": str(tmp_path / "out")}
    rights = of_broker(broker)
    create_topic(rights, name)

    def read_state() -> str:
        status, body = client.ask("GET", f"/connectors/{name}/status")
        return body["tasks"][0]["state"] if status == 200 and body["tasks"] else ""

    assert client.ask("PUT", f"/connectors/{name}/config", config)[0] == 201
    try:
        wait_until(lambda: read_state() == "FAILED")
        body = client.ask("GET", f"/connectors/{name}/status")[1]
        assert "AuthorizationException" in body["tasks"][0]["trace"]
        allow(rights, ResourceType.TOPIC, name, AclOperation.READ)
        allow(rights, ResourceType.GROUP, f"connect-{name}", AclOperation.READ)
        client.ask("POST", f"/connectors/{name}/restart?includeTasks=true")
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "admin",
                "sasl.password": broker.admin_password,
            }
        )
        producer.produce(name, value=b"hello")
        assert producer.flush(PATIENCE) == 0
        wait_until(lambda: (tmp_path / "out").exists() and (tmp_path / "out").read_text())
        assert (tmp_path / "out").read_text() == "hello\n"
    finally:
        client.ask("DELETE", f"/connectors/{name}")


@pytest.fixture
def own(home: Path, own_brokers: None) -> Iterator[str]:
    """The name of a sandbox that this test starts."""
    require_connect()
    yield "own"
    sandbox.down("own", keep_data=False)


def test_servers_join_a_sandbox_that_runs_and_keep_their_data(own: str, tmp_path: Path) -> None:
    """The brokers go on when servers are added; a crash is told; schemas and connectors are there
    again after it, and after `down`; at the end no process is left."""
    version = ("--kafka-version", get_choice().kafka_version)
    options = ("--name", own, "--keep-data", "--timeout", str(READY_SECONDS), *version)
    invoke("up", *options)
    before = sandbox.load_sandbox(own)
    shown = invoke("up", "--schema-registry", "--connect", *options)
    box = sandbox.load_sandbox(own)
    assert before is not None and box is not None and box.brokers == before.brokers
    assert all(server.url in shown for server in box.servers) and len(box.servers) == 2
    assert invoke("status", "--name", own).count("(alive)") == 2
    registry, worker = (client_of(box, kind) for kind in ServerKind)
    registry.ask("POST", "/subjects/kept/versions", SCHEMA)
    (tmp_path / "in").write_text("hello\n")
    config = {"connector.class": SOURCE, "topic": "lines", "file": str(tmp_path / "in")}
    create_topic(admin(box, "admin", box.admin_password, "PLAIN"), "lines")
    assert worker.ask("PUT", "/connectors/kept/config", config)[0] == 201

    crashed = [server.process for server in box.servers if server.process is not None]
    process.end_processes(crashed, grace=0)
    found = sandbox.read_status(own)
    assert found.state is SandboxState.DEGRADED and len(found.alive) == 1
    assert "schema-registry and connect" in found.explanation
    assert invoke("status", "--name", own).count("(ended)") == 2
    invoke("up", *options)
    assert registry.ask("GET", "/subjects")[1] == ["kept"]
    assert worker.ask("GET", "/connectors")[1] == ["kept"]

    stopped = sandbox.down(own)
    assert stopped is not None and len(stopped.ended) == 3 and stopped.data_kept
    invoke("up", *options)
    again = sandbox.load_sandbox(own)
    assert again is not None
    assert [server.url for server in again.servers] == [server.url for server in box.servers]
    assert registry.ask("GET", "/subjects")[1] == ["kept"]
    assert worker.ask("GET", "/connectors")[1] == ["kept"]
    assert sandbox.read_status(own).state is SandboxState.RUNNING
    ended = sandbox.down(own, keep_data=False)
    assert ended is not None and len(ended.ended) == 3
    assert not any(map(process.is_alive, again.list_processes())) and not again.folder.exists()
