"""Listeners on loopback, with TLS or without, that answer every request in the same way."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .kafka.doors import Authority

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}"

Answer = Callable[[bytes], bytes]


def make_context(
    authority: Authority,
    folder: Path,
    *,
    host: str = "127.0.0.1",
    days: int = 30,
    mutual: bool = False,
    newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
) -> ssl.SSLContext:
    """The context of a server. host: for whom its certificate is; days: until it expires; mutual:
    clients need a certificate; newest: the newest version of TLS."""
    certificate, key = authority.issue("server", host, days)
    (folder / "server.pem").write_text(certificate + key)
    (folder / "authority.pem").write_text(authority.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = newest
    context.load_cert_chain(folder / "server.pem")
    if mutual:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(folder / "authority.pem")
    return context


def _say_nothing(_: bytes) -> bytes:
    return b""


@contextmanager
def listening(
    context: ssl.SSLContext | None = None, answer: Answer = lambda _: OK
) -> Iterator[str]:
    """host:port of a listener. answer: what it says to the bytes of a request; what is not HTTP
    ends the connection."""
    ending = threading.Event()

    def serve(plain: socket.socket, answer: Answer = answer) -> None:
        with contextlib.suppress(OSError):
            plain.settimeout(5)
            near = plain
            if context is not None:
                near = secure = context.wrap_socket(
                    plain, server_side=True, do_handshake_on_connect=False
                )
                try:
                    secure.do_handshake()
                except ssl.SSLError:
                    # To close with unread bytes would take the alert back.
                    near = socket.socket(fileno=secure.detach())
                    near.settimeout(5)
                    answer = _say_nothing
            with near:
                while request := near.recv(1 << 16):
                    said = answer(request)
                    near.sendall(said)
                    if said and not said.startswith(b"HTTP"):
                        break

    def accept(server: socket.socket) -> None:
        while not ending.is_set():
            with contextlib.suppress(TimeoutError):
                connection, _ = server.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        thread = threading.Thread(target=accept, args=(server,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            ending.set()
            thread.join()
