"""The system that the example manages: a store of text files behind HTTP, kept in memory.

It stands for the API that a provider's author finds, and knows nothing of kafkaform. Files have
a `uid`, which the store chooses anew whenever a file is created. A link is a second name for a
file. A write holds many operations, each of which is done or refused by itself.
"""

from __future__ import annotations

import argparse
import json
import re
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Item = dict[str, Any]
"""A file, a link, an operation or an answer, as JSON has it."""

DEFAULT_HEADERS = {"cache-control": "no-cache", "content-type": "text/plain; charset=utf-8"}
"""The headers that a file is served with where it has none of its own."""
MAX_CONTENT = 65_536
MAX_OPERATIONS = 50
PAGE = 20
_NAME = re.compile(r"[a-z0-9][a-z0-9._/-]{0,99}")


@dataclass(frozen=True, slots=True)
class User:
    """prefix: of the names that the user may see and change; None for no name at all."""

    name: str
    prefix: str | None = ""

    def may(self, name: str) -> bool:
        return self.prefix is not None and name.startswith(self.prefix)


class Store:
    """users: token -> user; store_id: chosen by the store if it is empty."""

    def __init__(self, users: Mapping[str, User], store_id: str = "") -> None:
        self.id = store_id or uuid.uuid4().hex
        self.users = users
        self.files: dict[str, Item] = {}
        self.links: dict[str, Item] = {}
        self._lock = threading.Lock()

    def describe(self, user: User) -> Item:
        return {"id": self.id, "user": user.name, "default_headers": DEFAULT_HEADERS}

    def page(self, user: User, kind: str, after: str, *, full: bool) -> Item:
        """One page. complete: False if there may be names that this user must not see."""
        with self._lock:
            there = self._all(kind)
            names = sorted(name for name in there if name > after and user.may(name))
            page = [there[name] if full else _summary(there[name]) for name in names[:PAGE]]
        last = names[PAGE - 1] if len(names) > PAGE else None
        return {"items": page, "next": last, "complete": user.prefix == ""}

    def read(self, user: User, kind: str, names: Sequence[str]) -> list[Item]:
        """One answer for each name. Who may not see a name does not learn whether it is there."""
        with self._lock:
            return [self._read(user, kind, name) for name in names]

    def write(
        self, user: User, operations: Sequence[Item], *, validate_only: bool = False
    ) -> list[Item]:
        """One answer for each operation; those that are refused change nothing."""
        with self._lock:
            return [self._write(user, operation, validate_only) for operation in operations]

    def _all(self, kind: str) -> dict[str, Item]:
        return self.files if kind == "file" else self.links

    def _read(self, user: User, kind: str, name: str) -> Item:
        if not user.may(name):
            return {"code": "forbidden"}
        item = self._all(kind).get(name)
        return {"code": "missing"} if item is None else {"code": "ok", "item": item}

    def _write(self, user: User, operation: Item, validate_only: bool) -> Item:
        code, message = self._refusal(user, operation)
        if code:
            return {"code": code, "message": message}
        if validate_only:
            return {"code": "ok"}
        return {"code": "ok", "item": self._do(operation)}

    def _refusal(self, user: User, operation: Item) -> tuple[str, str]:
        """The first reason against an operation, as code and message; empty if there is none."""
        do, kind, name = operation["do"], operation["kind"], operation["name"]
        there = self._all(kind).get(name)
        linked = [link for link, item in self.links.items() if item["target"] == name]
        content, headers = operation.get("content") or "", operation.get("headers") or {}
        reasons = (
            (not user.may(name), "forbidden", f"{user.name} may not change {name}"),
            (not _NAME.fullmatch(name), "invalid", f"{name!r} is no name"),
            (do == "create" and there, "exists", f"{name} exists already"),
            (do in ("update", "delete") and not there, "missing", f"there is no {name}"),
            (
                there and "uid" in operation and operation["uid"] != there["uid"],
                "replaced",
                f"{name} was deleted and created again",
            ),
            (len(content) > MAX_CONTENT, "invalid", f"more than {MAX_CONTENT} characters"),
            ("" in headers.values(), "invalid", "a header has an empty value"),
            (
                do == "put" and operation["target"] not in self.files,
                "dangling",
                f"there is no file {operation.get('target')}",
            ),
            (
                (do, kind) == ("delete", "file") and linked,
                "in_use",
                f"{', '.join(linked)} leads to {name}",
            ),
        )
        return next(((code, message) for broken, code, message in reasons if broken), ("", ""))

    def _do(self, operation: Item) -> Item:
        do, name, there = operation["do"], operation["name"], self._all(operation["kind"])
        if do == "delete":
            return there.pop(name)
        if do == "put":
            there[name] = {"name": name, "target": operation["target"]}
        elif do == "create":
            there[name] = {
                "name": name,
                "uid": uuid.uuid4().hex,
                "content": operation["content"],
                "headers": operation["headers"],
            }
        else:
            old = there[name]
            headers = {**old["headers"], **operation.get("headers", {})}
            there[name] = {
                **old,
                "content": operation.get("content", old["content"]),
                "headers": {key: value for key, value in headers.items() if value is not None},
            }
        return there[name]


def _summary(item: Item) -> Item:
    """What a listing of names tells."""
    return {key: item[key] for key in ("name", "uid") if key in item}


class Server(ThreadingHTTPServer):
    """Serves one store. Port 0 takes any that is free."""

    def __init__(self, store: Store, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.store = store

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    """Header and body leave together; else each answer waits for an acknowledgement."""

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(place.query).items()}
        self._handle(place.path, asked)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self._handle(self.path, json.loads(self.rfile.read(length) or b"{}"))

    def _handle(self, path: str, asked: Item) -> None:
        assert isinstance(self.server, Server)
        store = self.server.store
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        user = store.users.get(token)
        if user is None:
            self._send(401, {"message": "the token is unknown"})
        elif path == "/store":
            self._send(200, store.describe(user))
        elif path == "/list":
            full = asked["full"] == "1"
            self._send(200, store.page(user, asked["kind"], asked.get("after", ""), full=full))
        elif path == "/read":
            self._send(200, {"answers": store.read(user, asked["kind"], asked["names"])})
        elif path == "/write":
            self._write(store, user, asked)
        else:
            self._send(404, {"message": f"there is no {path}"})

    def _write(self, store: Store, user: User, asked: Item) -> None:
        if time.time() > asked["expires"]:
            # Whoever has given up on this request may rely on its not being done later.
            self._send(409, {"message": "the request has expired"})
        elif len(asked["operations"]) > MAX_OPERATIONS:
            self._send(413, {"message": f"more than {MAX_OPERATIONS} operations"})
        else:
            dry = asked["validate_only"]
            self._send(200, {"answers": store.write(user, asked["operations"], validate_only=dry)})

    def _send(self, status: int, answer: Item) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the demonstration shares its terminal."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a store of text files on this computer.")
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--token", default="admin-token", help="of a user who may do everything")
    options = parser.parse_args()
    with Server(Store({options.token: User("admin")}), options.port) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
