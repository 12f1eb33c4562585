"""The real registry of the run, behind a door with logins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkaform.core.clock import SystemClock
from kafkaform.provider.http.client import HttpClient
from kafkaform.provider.http.exchange import Call, HttpAnswer
from kafkaform.provider.http.settings import HttpSettings

from ...kit.schema_registry.server import APICURIO, guard_registry, open_as
from ...kit.schema_registry.systems import Door
from ...kit.servers import Registry


@pytest.fixture(scope="module")
def client(registry: Registry) -> Iterator[HttpClient]:
    """Reaches the registry as it is."""
    made = HttpClient(HttpSettings((registry.url,), timeout=120))
    yield made
    made.close()


@pytest.fixture(scope="module")
def door(client: HttpClient) -> Iterator[Door]:
    """The registry with an administrator and with a user who may do nothing."""

    def ask(call: Call) -> HttpAnswer:
        return client.ask(call.method, call.path, call.body, query=call.query)

    with guard_registry(client, APICURIO) as served:
        url = f"{served.url}{APICURIO}"
        yield Door(
            lambda privileged: open_as("admin" if privileged else "nobody", url),
            ask,
            SystemClock(),
            apicurio=True,
        )
