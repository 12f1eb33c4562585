"""Logins of HTTP: each kind arrives, tokens are renewed, TLS is verified, and nothing is shown."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.errors import ConnectError
from kafkaform.core.secret import Secret
from kafkaform.provider.http.client import HttpClient, Proof, open_login
from kafkaform.provider.http.exchange import Call, CallFailed, NotSent
from kafkaform.provider.http.settings import BasicLogin, BearerToken, HttpSettings
from kafkaform.provider.http.tokens import LoginToken, TokenEndpoint, TokenSource

from ....kit.http.proxy import Proxy, proxying
from ....kit.http.server import Served, serving
from ....kit.kafka import doors, token_endpoint
from ....kit.kafka.token_endpoint import CLIENT, SECRET

Connect = Callable[..., HttpClient]
PASSWORD = "hunter2-ü:x"


def test_user_and_password_arrive(server: Served, connect: Connect) -> None:
    """HTTP Basic in UTF-8, also with a colon in the password."""
    connect(server.url, auth=BasicLogin("ci", Secret(PASSWORD))).ask("GET", "/x", reads=True)
    (request,) = server.asked
    kind, _, text = request.login.partition(" ")
    assert (kind, base64.b64decode(text).decode()) == ("Basic", f"ci:{PASSWORD}")


def test_a_token_arrives(server: Served, connect: Connect) -> None:
    """As it is."""
    connect(server.url, auth=BearerToken(Secret("a.b.c"))).ask("GET", "/x", reads=True)
    assert [request.login for request in server.asked] == ["Bearer a.b.c"]


def test_one_token_of_oauth_serves_until_it_is_old(server: Served, connect: Connect) -> None:
    """Many calls at once fetch one token between them; when a fifth of its life is left, the next
    call fetches another."""
    granted: list[str] = []

    def grant() -> dict[str, Any]:
        granted.append(f"token-{len(granted)}")
        # The first one is old at once, the others live long.
        return {"access_token": granted[-1], "expires_in": 0 if len(granted) == 1 else 600}

    with token_endpoint.serving(grant) as endpoint:
        login = TokenEndpoint(endpoint.url, CLIENT, Secret(SECRET), ("read",))
        client = connect(server.url, auth=login)
        for _ in range(4):
            client.ask("GET", "/x", reads=True)
        assert endpoint.asked[0] == {"grant_type": "client_credentials", "scope": "read"}
    assert [one.login for one in server.asked] == ["Bearer token-0"] + 3 * ["Bearer token-1"]


def test_a_token_is_renewed_before_it_ends() -> None:
    """With a fifth of its life left, on a clock of our own."""
    now, fetched = [0.0], []

    def fetch() -> LoginToken:
        fetched.append(now[0])
        return LoginToken(Secret("t"), now[0] + 100)

    source = TokenSource(fetch, lambda: now[0])
    for now[0] in (0.0, 79.0, 80.0, 159.0, 160.0):
        source.get_token()
    assert fetched == [0.0, 80.0, 160.0]


def test_without_a_token_nothing_is_sent(server: Served, connect: Connect) -> None:
    """The call has not left, and the cause names the endpoint and the attributes."""
    with token_endpoint.serving(dict) as endpoint:
        login = TokenEndpoint(endpoint.url, CLIENT, Secret("wrong-secret"))
        with pytest.raises(NotSent) as caught:
            connect(server.url, auth=login).ask("PUT", "/x", {})
    assert "refused to give a token: HTTP 401, invalid_client" in caught.value.cause
    assert "oauth_client_secret" in caught.value.advice
    assert not server.asked


def test_headers_go_to_the_system_alone(server: Served, connect: Connect) -> None:
    """With each call, also with the proof and beside a login. Neither the token endpoint nor the
    host of a redirection gets them."""
    headers = {"target-sr-cluster": Secret("lsrc-77"), "X-Pool": Secret("pool-77")}
    with (
        serving() as elsewhere,
        token_endpoint.serving(lambda: {"access_token": "t", "expires_in": 600}) as endpoint,
    ):
        server.answers = lambda _: (307, {"message": f"see {elsewhere.url}"})
        login = TokenEndpoint(endpoint.url, CLIENT, Secret(SECRET))
        client = connect(server.url, auth=login, headers=headers)
        assert client.ask("GET", "/x", reads=True).status == 307
        assert client.ask("PUT", "/x", {}).status == 307
        assert not elsewhere.asked
        assert "77" not in repr(endpoint.asked)
    for request in server.asked:
        assert (request.headers["target-sr-cluster"], request.headers["x-pool"]) == (
            "lsrc-77",
            "pool-77",
        )
        assert request.login == "Bearer t"
    proof = Proof(Call("GET", "/id", reads=True), lambda _: None)
    connect(server.url, headers=headers, proof=proof).ask("PUT", "/y", {})
    ids = [request.headers["x-pool"] for request in server.asked if request.path == "/id"]
    assert ids and {*ids} == {"pool-77"}
    assert "77" not in repr(HttpSettings(("https://x",), headers=headers))


def test_nothing_shows_a_login() -> None:
    """Neither settings nor a header that leaves."""
    shown = ""
    for auth in (
        BasicLogin("ci", Secret(PASSWORD)),
        BearerToken(Secret(PASSWORD)),
        TokenEndpoint("https://x", "ci", Secret(PASSWORD)),
    ):
        shown += repr(HttpSettings(("https://x",), auth=auth, key=Secret(PASSWORD)))
        if not isinstance(auth, TokenEndpoint):
            shown += repr(open_login(auth)())
    assert "hunter2" not in shown
    assert base64.b64encode(f"ci:{PASSWORD}".encode()).decode() not in shown


# ── TLS ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def own() -> doors.Authority:
    """The company's authority, which no operating system knows."""
    return doors.authority("company")


@contextmanager
def secured(
    server: Served, own: doors.Authority, folder: Path, mutual: bool = False
) -> Iterator[Proxy]:
    """The server behind TLS. mutual: only for clients with a certificate."""
    certificate, key = own.issue("server")
    (folder / "server.pem").write_text(certificate + key)
    (folder / "ca.pem").write_text(own.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    if mutual:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(folder / "ca.pem")
    with proxying(server.port, context) as proxy:
        yield proxy


def test_an_unknown_authority_gets_nothing(
    server: Served, own: doors.Authority, tmp_path: Path, connect: Connect
) -> None:
    """The certificate is refused before the login leaves; ca_cert makes it known, as text and as
    a file."""
    with secured(server, own, tmp_path) as proxy:
        login = BasicLogin("ci", Secret(PASSWORD))
        with pytest.raises(NotSent) as caught:
            connect(proxy.url, auth=login).ask("PUT", "/x", {})
        assert "its certificate is refused" in caught.value.cause
        assert not proxy.passed
        for ca in (own.pem, str(tmp_path / "ca.pem")):
            assert connect(proxy.url, auth=login, ca=ca).ask("PUT", "/x", {}).status == 200


def test_a_certificate_of_another_host_is_refused(
    server: Served, own: doors.Authority, tmp_path: Path, connect: Connect
) -> None:
    """An authority that is known is not enough."""
    with secured(server, own, tmp_path) as proxy:
        elsewhere = proxy.url.replace("127.0.0.1", "localhost")
        with pytest.raises(NotSent, match="its certificate is refused"):
            connect(elsewhere, ca=own.pem).ask("PUT", "/x", {})


def test_our_certificate_is_the_login(
    server: Served, own: doors.Authority, tmp_path: Path, connect: Connect
) -> None:
    """Mutual TLS with a certificate and a key that are PEM text; without them no answer comes."""
    certificate, key = own.issue("ci", host=None)
    with secured(server, own, tmp_path, mutual=True) as proxy:
        client = connect(proxy.url, ca=own.pem, certificate=certificate, key=Secret(key))
        assert client.ask("PUT", "/x", {}).status == 200
        with pytest.raises(CallFailed):
            connect(proxy.url, ca=own.pem).ask("PUT", "/y", {})
    assert [request.path for request in server.asked] == ["/x"]


def test_certificates_that_cannot_be_loaded_are_named(connect: Connect) -> None:
    """Before anything is sent."""
    with pytest.raises(ConnectError, match="ca_cert /no/such/file cannot be read") as caught:
        connect("https://127.0.0.1:1", ca="/no/such/file")
    assert "correct the path" in caught.value.advice


# ── a proxy of the environment ──────────────────────────────────────────────────────────


def test_only_https_goes_through_the_proxy_of_the_environment(
    server: Served, own: doors.Authority, tmp_path: Path, connect: Connect, monkeypatch: Any
) -> None:
    """A tunnel shows the proxy nothing. Plain HTTP would show it the login, and is not led
    there."""
    with secured(server, own, tmp_path) as proxy, tunnel(proxy.port) as (port, seen):
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://user:pw@127.0.0.1:{port}")
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        assert connect(proxy.url, ca=own.pem).ask("PUT", "/x", {}).status == 200
        assert len(seen) == 1 and seen[0].startswith(b"CONNECT 127.0.0.1:")
        assert b"Basic " + base64.b64encode(b"user:pw") in seen[0]
        assert connect(server.url).ask("PUT", "/x", {}).status == 200
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert connect(proxy.url, ca=own.pem).ask("PUT", "/x", {}).status == 200
        assert len(seen) == 1


@contextmanager
def tunnel(port: int) -> Iterator[tuple[int, list[bytes]]]:
    """A proxy for one CONNECT at a time: its port, and the heads that came."""
    import socket
    import threading

    seen: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass
        target.close()

    def serve() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            head = b""
            while b"\r\n\r\n" not in head:
                head += near.recv(65536)
            seen.append(head)
            far = socket.create_connection(("127.0.0.1", port))
            near.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            for pair in ((near, far), (far, near)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], seen
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)
