"""A forge's REST API on a loopback address: it keeps what is sent to it, and writes down each
request. Another server, the storage of artifacts, must never see the token."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "pw-of-the-forge"


@dataclass(frozen=True)
class Asked:
    """A request, as it arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any

    @property
    def has_token(self) -> bool:
        return any(TOKEN in text for text in self.headers.values())


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


Route = Callable[[Asked, re.Match[str]], Answer]


@dataclass
class Web:
    """A server whose routes are `METHOD path-pattern`. asked: every request so far."""

    routes: dict[str, Route] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    address: str = ""

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        for pattern, route in self.routes.items():
            method, _, path = pattern.partition(" ")
            if method == asked.method and (found := re.fullmatch(path, asked.path)):
                return route(asked, found)
        return Answer(404, {"message": "Not Found"})

    def writes(self) -> list[tuple[str, str]]:
        """What was changed, in order."""
        return [(one.method, one.path) for one in self.asked if one.method != "GET"]


def page(items: list[Any], asked: Asked) -> Answer:
    """The page of a list that was asked for."""
    size, number = int(asked.query.get("per_page", 20)), int(asked.query.get("page", 1))
    return Answer(body=items[size * (number - 1) : size * number])


@contextmanager
def serving(web: Web) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            where = urlsplit(self.path)
            query = {name: texts[-1] for name, texts in parse_qs(where.query).items()}
            body = json.loads(data) if data else None
            asked = Asked(self.command, unquote(where.path), query, dict(self.headers), body)
            answer = web.answer(asked)
            sent = (
                answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            )
            self.send_response(answer.status)
            for name, text in answer.headers.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST = do_PATCH = do_PUT = handle_any

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the tests read what commands print."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        web.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield
        server.shutdown()
        thread.join()
