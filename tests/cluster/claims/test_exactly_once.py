"""What a source with exactly-once support needs, tried on a worker that has it switched on.

The worker of the run has not, and nobody can switch it on while others use it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from kafkaform.sandbox import Sandbox, ServerKind
from kafkaform.sandbox.record import Server
from kafkaform.sandbox.servers import start
from kafkaform.sandbox.servers.start import start_servers

from ...kit.kafka.clusters import own_sandbox
from ...kit.kafka.logins import PATIENCE, admin_login, open_client
from ...kit.servers import READY_SECONDS, Worker, find_worker, require_connect, wait_until

pytestmark = pytest.mark.timeout(600)
NAME = "reads"


@pytest.fixture
def box(own_brokers: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """A broker and a worker of this test alone."""
    require_connect()
    render = start.render_properties

    def render_enabled(sandbox: Sandbox, server: Server) -> str:
        return f"{render(sandbox, server)}exactly.once.source.support=enabled\n"

    monkeypatch.setattr(start, "render_properties", render_enabled)
    with own_sandbox(f"exactly-once-{os.getpid()}") as sandbox:
        yield start_servers(sandbox.name, (ServerKind.CONNECT,), READY_SECONDS)


def allow(box: Sandbox, kind: ResourceType, name: str, *operations: AclOperation) -> None:
    """Rights of the connectors, as ACLs."""
    client = open_client(box, admin_login(box))
    pattern, permission = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    acls = [AclBinding(kind, name, pattern, "User:connect", "*", o, permission) for o in operations]
    for created in client.create_acls(acls).values():
        created.result(PATIENCE)


def ask_status(worker: Worker) -> tuple[str, str]:
    """The state of the only task, and why it failed."""
    status, body = worker.open_client().ask("GET", f"/connectors/{NAME}/status")
    tasks = body["tasks"] if status == 200 else []
    return (tasks[0]["state"], tasks[0].get("trace", "")) if tasks else ("", "")


def test_a_source_needs_rights_on_the_transactional_id_of_its_task(
    box: Sandbox, tmp_path: Path
) -> None:
    """Rights on its topic and on the offsets are not enough: the id is GROUP-NAME-N (KIP-618)."""
    worker, lines = find_worker(box), tmp_path / "lines.txt"
    lines.write_text("1\n")
    admin = open_client(box, admin_login(box))
    admin.create_topics([NewTopic("lines", 1)])["lines"].result(PATIENCE)
    for topic in ("lines", "connect-offsets"):
        allow(box, ResourceType.TOPIC, topic, AclOperation.ALL)
    config = {
        "connector.class": "FileStreamSource",
        "topic": "lines",
        "file": str(lines),
        "exactly.once.support": "required",
    }
    client = worker.open_client()
    wait_until(
        lambda: client.ask("POST", "/connectors", {"name": NAME, "config": config})[0] in (201, 409)
    )
    wait_until(lambda: ask_status(worker)[0] == "FAILED")
    assert "TransactionalIdAuthorization" in ask_status(worker)[1]
    allow(
        box,
        ResourceType.TRANSACTIONAL_ID,
        f"connect-cluster-{NAME}-0",
        AclOperation.WRITE,
        AclOperation.DESCRIBE,
    )
    restart = f"/connectors/{NAME}/restart?includeTasks=true&onlyFailed=true"
    wait_until(lambda: client.ask("POST", restart)[0] == 202)
    wait_until(lambda: ask_status(worker)[0] == "RUNNING")
