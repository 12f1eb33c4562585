"""The servers beside the broker of the run: a schema registry and a worker of Kafka Connect."""

from __future__ import annotations

import base64
import http
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.errors import Locked
from kafkaform.sandbox import Sandbox, ServerKind
from kafkaform.sandbox.servers.start import list_connect_versions, start_servers

from .kafka.versions import get_choice

READY_SECONDS, PATIENCE = 240.0, 120.0
"""A busy computer is no failure."""
_POLL = 0.2


class Client:
    """Asks an HTTP server for JSON."""

    def __init__(self, url: str, login: tuple[str, str] | None = None) -> None:
        self._url = url
        self._headers = {"Content-Type": "application/json"}
        if login is not None:
            text = base64.b64encode(":".join(login).encode()).decode()
            self._headers["Authorization"] = f"Basic {text}"

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status, and the body if there is one."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._url}{path}", data, self._headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                text, status = answer.read(), answer.status
        except urllib.error.HTTPError as error:
            # Connect says that its plain text about a refused login is JSON.
            if error.code == http.HTTPStatus.UNAUTHORIZED:
                return error.code, None
            text, status = error.read(), error.code
        # The server under the workers answers some wrong paths itself, with a page.
        return status, json.loads(text) if text and not text.startswith(b"<") else None


def wait_until(is_true: Callable[[], object], pause: float = _POLL) -> None:
    """Ask until it is true. pause: seconds between two questions."""
    deadline = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(pause)


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

    def open_client(self) -> Client:
        """Another client than kafkaform's."""
        return Client(self.url, (self.username, self.password))


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
