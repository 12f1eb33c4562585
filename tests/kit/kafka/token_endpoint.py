"""A token endpoint on the loopback address: OAuth 2.0 client credentials, with or without TLS."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote_plus

CLIENT, SECRET = "ci app", "s3cret:/?"
"""Both need the escapes of RFC 6749 §2.3.1."""


@dataclass
class Endpoint:
    """url: where it is; grant: makes the answer's members; asked: the forms that came; basic:
    False for a server that takes the secret in the body only; status: of every answer."""

    grant: Callable[[], dict[str, Any]]
    url: str = ""
    basic: bool = True
    status: int = 200
    location: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)

    def login_of(self, header: str, form: dict[str, str]) -> tuple[str, str]:
        if header.startswith("Basic ") and self.basic:
            user, _, secret = base64.b64decode(header[6:]).decode().partition(":")
            return unquote_plus(user), unquote_plus(secret)
        return form.get("client_id", ""), form.get("client_secret", "")


@contextmanager
def serving(grant: Callable[[], dict[str, Any]], tls: Path | None = None) -> Iterator[Endpoint]:
    """Serve until the block ends. tls: PEM of key and certificate in one file."""
    endpoint = Endpoint(grant)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            pairs = parse_qs(self.rfile.read(length).decode())
            form = {name: values[0] for name, values in pairs.items()}
            endpoint.asked.append(form)
            login = endpoint.login_of(self.headers.get("Authorization", ""), form)
            if endpoint.status != 200:
                self._answer(endpoint.status, {"error": "temporarily_unavailable"})
            elif login != (CLIENT, SECRET):
                self._answer(401, {"error": "invalid_client", "error_description": SECRET})
            else:
                self._answer(200, endpoint.grant())

        def do_GET(self) -> None:
            endpoint.asked.append({"method": "GET"})
            self._answer(200, endpoint.grant())

        def _answer(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            if endpoint.location:
                self.send_header("Location", endpoint.location)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if tls is None else "https"
    endpoint.url = f"{scheme}://127.0.0.1:{server.server_address[1]}/token"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join(5)
        server.server_close()
