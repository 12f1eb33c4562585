"""The simulated registry behind HTTP, and a door with logins before a real one."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap, SecretRef
from kafkaform.provider.contract import Session
from kafkaform.provider.http.client import HttpClient
from kafkaform.provider.http.exchange import Call
from kafkaform.provider.testing.workbench import INSTANCE
from kafkaform_schema_registry.memory import SimulatedRegistry
from kafkaform_schema_registry.provider import PROVIDER

from ..http.server import Request, Served, serving

PASSWORD = "p4ss of the registry"
PASSWORD_REF = SecretRef("env", "REGISTRY_PASSWORD")
APICURIO = "/apis/ccompat/v7"
"""The path of Apicurio's API."""


def make_login(user: str) -> str:
    """The header of a user."""
    return "Basic " + b64encode(f"{user}:{PASSWORD}".encode()).decode()


def read_call(request: Request, prefix: str = "") -> Call:
    """The call that came. prefix: of the path of the url."""
    parts = urlsplit(request.path)
    body = request.body
    query = dict(parse_qsl(parts.query))
    return Call(request.method, parts.path.removeprefix(prefix), body, query)


@contextmanager
def serve_registry(registry: SimulatedRegistry, prefix: str = "") -> Iterator[Served]:
    """A simulated registry at an address. Who does not log in is the administrator."""

    def answer(request: Request) -> tuple[int, Any]:
        users = {make_login(name): name for name in registry.users}
        user = users.get(request.login, "" if request.login else "admin")
        if not user:
            return 401, {"error_code": 40101, "message": "Unauthorized"}
        found = registry.answer(read_call(request, prefix), user)
        return found.status, found.body

    with serving(answer) as served:
        yield served


@contextmanager
def guard_registry(client: HttpClient, prefix: str) -> Iterator[Served]:
    """A real registry behind logins: `admin` may do everything, everybody else nothing.

    client: reaches the registry; prefix: the path under which the door has it.
    """

    def answer(request: Request) -> tuple[int, Any]:
        if request.login != make_login("admin"):
            return 403, {"error_code": 403, "message": "this user may do nothing"}
        call = read_call(request, prefix)
        found = client.ask(call.method, call.path, call.body, query=call.query)
        return found.status, found.body

    with serving(answer) as served:
        yield served


def open_as(user: str, url: str, **config: Any) -> Session:
    """A session of a user."""
    block = FrozenMap(url=url, username=user, password=PASSWORD_REF, **config)
    return PROVIDER.open(INSTANCE, block, {str(PASSWORD_REF): Secret(PASSWORD)})
