"""The servers beside the broker of the run: a schema registry and a worker of Kafka Connect."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kafkaform.core.errors import Locked
from kafkaform.sandbox import Sandbox, ServerKind
from kafkaform.sandbox.servers import list_connect_versions, start_servers

from .kafka.versions import get_choice

READY_SECONDS = 240.0
"""A busy computer is no failure."""
_POLL = 0.2


@dataclass(frozen=True)
class Registry:
    """A schema registry with the API of Confluent's. It asks for no login."""

    url: str
    """Of the API, without a slash at the end."""


@dataclass(frozen=True)
class Worker:
    """A worker of Kafka Connect, the only one of its cluster."""

    url: str
    """Of the REST API, without a slash at the end."""
    username: str
    password: str = field(repr=False)
    principal: str
    """Whose rights on the broker of the run its connectors have: none but those of ACLs."""
    secrets: Path
    """The folder from which connectors can read values: `${file:PATH:KEY}`."""


def start(name: str, kind: ServerKind) -> Sandbox:
    """The sandbox of this name with such a server, which some process of the run may have
    started."""
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            return start_servers(name, (kind,), READY_SECONDS)
        except Locked:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL)


def find_registry(box: Sandbox) -> Registry:
    server = box.find_server(ServerKind.SCHEMA_REGISTRY)
    assert server is not None
    return Registry(server.url)


def find_worker(box: Sandbox) -> Worker:
    server = box.find_server(ServerKind.CONNECT)
    assert server is not None
    secrets = box.connect_secrets
    return Worker(server.url, "admin", box.admin_password, "User:connect", secrets)


def require_connect() -> None:
    """Skip the test if Connect is not pinned for the Kafka of this run."""
    version = get_choice().kafka_version
    if version not in list_connect_versions():
        pytest.skip(f"the sandbox has no Kafka Connect {version}")
