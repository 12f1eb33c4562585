"""A server, a proxy before it that breaks what it is told to, and clients of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafkaform.provider.http.client import HttpClient
from kafkaform.provider.http.settings import HttpSettings

from ....kit.http.proxy import Proxy, proxying
from ....kit.http.server import Served, serving


@pytest.fixture
def server() -> Iterator[Served]:
    """Answers with what it was asked."""
    with serving() as served:
        yield served


@pytest.fixture
def proxy(server: Served) -> Iterator[Proxy]:
    """Stands before the server."""
    with proxying(server.port) as made:
        yield made


@pytest.fixture
def connect() -> Iterator[Callable[..., HttpClient]]:
    """Makes clients of these addresses, and closes them."""
    made: list[HttpClient] = []

    def make(*urls: str, proof: Any = None, **given: Any) -> HttpClient:
        made.append(HttpClient(HttpSettings(urls, **given), proof))
        return made[-1]

    yield make
    for client in made:
        client.close()
