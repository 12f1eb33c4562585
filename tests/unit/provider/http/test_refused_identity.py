"""A system that does not say who it is opens no session: a state would be bound to nobody."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import Absent, Failed, Hidden, Identity
from kafkaform.core.value import FrozenMap
from kafkaform.provider.http import client
from kafkaform_connect import session as workers
from kafkaform_schema_registry import session as registry

Answer = tuple[int, str, bytes, dict[str, str]]
"""Status, type, body, more headers."""
WORKER: Answer = (200, "application/json", b'{"version":"4.3.1","kafka_cluster_id":"c-1"}', {})
PLUGINS: Answer = (200, "application/json", b"[]", {})
BODIES = [
    ("text/html", b"<html>gateway</html>"),
    ("application/json", b'{"error_code":1,"message":"no entry"}'),
    ("text/plain", b""),
]
ADVICE = {
    302: "redirections are not followed",
    401: "check the login",
    403: "the right",
    404: "check url",
    407: "the login of the proxy",
    409: "wait until",
    418: "check url",
    429: "later",
    500: "server's log",
    502: "server's log",
    503: "later",
}


@contextmanager
def serving(answer: Callable[[str, int], Answer]) -> Iterator[str]:
    """The url of a server that keeps connections alive. answer: path, number of the request."""
    count = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            nonlocal count
            count += 1
            status, kind, body, headers = answer(self.path, count)
            self.send_response(status)
            for name, text in headers.items():
                self.send_header(name, text)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


OPEN = {"connect": workers.open_session, "registry": registry.open_session}


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body[0])
@pytest.mark.parametrize(
    ("system", "status"),
    [
        *(("connect", status) for status in ADVICE),
        # Registries without an id answer 403 or 404, and are known by their address.
        *(("registry", status) for status in ADVICE if status not in (403, 404)),
    ],
)
def test_a_refused_question_opens_no_session(
    system: str, status: int, body: tuple[str, bytes]
) -> None:
    """Whatever status and page answer the first requests, over a connection that stays open: an
    error with the status and what to do, and no session of `connect:`."""
    with serving(lambda *_: (status, *body, {})) as url, pytest.raises(ConnectError) as refused:
        OPEN[system](system, FrozenMap(url=url), {})
    assert str(status) in refused.value.message and url in refused.value.message
    if system == "connect":
        assert ADVICE[status] in refused.value.advice


@pytest.mark.parametrize(
    ("status", "number"), [(401, 1), (404, 1), (500, 1), (503, 1), (404, 2), (500, 3)]
)
def test_one_refusal_costs_no_identity(status: int, number: int) -> None:
    """One request is refused and all others are answered: a session that opens has the whole id."""

    def answer(path: str, count: int) -> Answer:
        if count == number:
            return status, "text/html", b"<html></html>", {}
        return WORKER if path == "/" else PLUGINS

    with serving(answer) as url:
        session = workers.open_session("connect", FrozenMap(url=url), {})
        assert session.facts.scope_id == "connect:c-1"
        session.close()


@pytest.mark.parametrize("status", [401, 409, 500, 503])
def test_plugins_that_could_not_be_listed_are_an_error(status: int) -> None:
    """The group of the workers is proven with a plugin: a fault that passes does not skip that."""

    def answer(path: str, count: int) -> Answer:
        return WORKER if path == "/" else (status, "text/html", b"<html></html>", {})

    with serving(answer) as url, pytest.raises(ConnectError, match=f"/connector-plugins.*{status}"):
        workers.open_session("connect", FrozenMap(url=url, group_id="g"), {})


@pytest.mark.parametrize("status", [403, 404])
def test_a_user_who_may_not_see_plugins_can_connect(status: int) -> None:
    """What the user may not see is documented as not proven."""

    def answer(path: str, count: int) -> Answer:
        return WORKER if path == "/" else (status, "text/html", b"<html></html>", {})

    with serving(answer) as url:
        session = workers.open_session("connect", FrozenMap(url=url, group_id="g"), {})
        assert session.facts.scope_id == "connect:c-1/g"
        session.close()


def test_no_id_is_made_of_nothing() -> None:
    """The second half of the id is never left out."""
    with pytest.raises(ValueError, match="no id"):
        workers.make_scope("", None)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_busy_server_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, status: int, form: str
) -> None:
    """If it names a time, the question is repeated then."""
    pauses: list[float] = []
    monkeypatch.setattr(client, "sleep", pauses.append)
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    busy = {"Retry-After": "7" if form == "seconds" else date}

    def answer(path: str, count: int) -> Answer:
        if count <= 2:
            return status, "text/html", b"", busy
        return WORKER if path == "/" else PLUGINS

    with serving(answer) as url:
        workers.open_session("connect", FrozenMap(url=url), {}).close()
    assert len(pauses) == 1 and (pauses == [7.0] if form == "seconds" else 10 < pauses[0] <= 20)


def test_no_pause_is_no_busy_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that asks for no time at all is not asked without a pause."""
    pauses: list[float] = []
    monkeypatch.setattr(client, "sleep", pauses.append)

    def answer(path: str, count: int) -> Answer:
        if count <= 2:
            return 503, "text/html", b"", {"Retry-After": "0"}
        return WORKER if path == "/" else PLUGINS

    with serving(answer) as url:
        workers.open_session("connect", FrozenMap(url=url), {}).close()
    assert pauses == [client.LEAST_PAUSE]


def test_a_longer_pause_than_the_timeout_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a server that asks for an hour."""
    monkeypatch.setattr(client, "sleep", lambda _: pytest.fail("it waited"))
    busy: Answer = (503, "text/html", b"", {"Retry-After": "3600"})
    with serving(lambda *_: busy) as url, pytest.raises(ConnectError, match="503"):
        workers.open_session("connect", FrozenMap(url=url), {})


@pytest.mark.parametrize("status", [401, 404, 503])
def test_a_connection_that_is_opened_again_proves_the_system_again(status: int) -> None:
    """The answer about an object ends its connection. Once the first question of a new one is
    refused, nothing that it leads to counts: what is read has failed, and is not absent."""
    refused = threading.Event()

    def answer(path: str, count: int) -> Answer:
        if path.startswith("/connectors/orders"):
            body = b'{"error_code":404,"message":"Connector orders not found"}'
            return 404, "application/json", body, {"Connection": "close"}
        if path.startswith("/connectors?"):
            return 200, "application/json", b"{}", {}
        if path == "/" and refused.is_set():
            return status, "text/html", b"<html></html>", {}
        return WORKER if path == "/" else PLUGINS

    orders = Identity("connect", "kafka_connect_connector", "orders")
    with serving(answer) as url:
        session = workers.open_session("connect", FrozenMap(url=url), {})
        assert isinstance(session.read([orders])[orders], Absent)
        refused.set()
        reading = session.read([orders])[orders]
        session.close()
    assert isinstance(reading, Failed | Hidden)


def test_a_server_that_keeps_no_connection_is_named() -> None:
    """Who answered is proven for each connection, and there is none that lasts longer than that."""

    def answer(path: str, count: int) -> Answer:
        return (*(WORKER if path == "/" else PLUGINS)[:3], {"Connection": "close"})

    with serving(answer) as url, pytest.raises(ConnectError) as refused:
        workers.open_session("connect", FrozenMap(url=url), {})
    assert "closes each connection after one answer" in refused.value.message
    assert "keep-alive" in refused.value.advice
