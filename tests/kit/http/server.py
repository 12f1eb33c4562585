"""A small HTTP server on loopback that answers with JSON and remembers what it was asked."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Request:
    """body: the JSON value that came, None without one; headers: all of them, names in lower
    case."""

    method: str
    path: str
    login: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass
class Served:
    """answers: status and JSON value for each request; asked: all of them, in order; most: how
    many there were at the same time; system: the id that `/id` gives."""

    answers: Callable[[Request], tuple[int, Any]]
    port: int = 0
    system: str = "one"
    asked: list[Request] = field(default_factory=list)
    busy: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def writes(self) -> list[Request]:
        return [request for request in self.asked if request.method != "GET"]

    def answer(self, request: Request) -> tuple[int, Any]:
        with self.lock:
            self.asked.append(request)
            self.busy += 1
            self.most = max(self.most, self.busy)
        try:
            if request.path == "/id":
                return 200, {"id": self.system}
            return self.answers(request)
        finally:
            with self.lock:
                self.busy -= 1


def echo(request: Request) -> tuple[int, Any]:
    """The usual answer: what was asked."""
    return 200, {"method": request.method, "path": request.path, "body": request.body}


class _Quiet(ThreadingHTTPServer):
    """A connection that its client resets is no news."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving(answers: Callable[[Request], tuple[int, Any]] = echo) -> Iterator[Served]:
    """Serve until the block ends."""
    served = Served(answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        """Header and body leave together; else each answer waits for an acknowledgement."""

        def do_GET(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            data = self.rfile.read(size)
            if len(data) < size:  # its sender died
                self.close_connection = True
                return
            body = json.loads(data) if size else None
            login = self.headers.get("Authorization", "")
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, self.path, login, body, headers)
            status, value = served.answer(request)
            said = b"" if value is None else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    server = _Quiet(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    served.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join(5)
        server.server_close()
