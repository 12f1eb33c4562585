"""An S3-compatible server on loopback: what kafkaform uses of the protocol, in one process.

`python -m tests.kit.stores.s3` serves until its standard input ends and prints its address first.
Signatures are not checked, but must be there. `faults` says what happens to the next requests.
"""

from __future__ import annotations

import bisect
import hashlib
import re
import socket
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "bucket"


@dataclass
class Stored:
    data: bytes
    etag: str
    modified: float


@dataclass
class Request:
    """One request as it came. key: "" for a listing."""

    method: str
    key: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    breaks: bool = False
    """Close the connection in place of the answer."""
    cut: bool = False
    """Close the connection in the middle of the body."""
    wait: float = 0.0
    """Seconds before the answer."""


Fault = Callable[["Bucket", Request], "Answer | None"]
"""Answers a request in the store's place; None: the store does."""


class Bucket:
    """The objects of one bucket, and what goes wrong with them."""

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}
        self.mutex = threading.Lock()
        self._names: set[str] = set()
        self._sorted: list[str] = []
        self.requests: Counter[str] = Counter()
        self.faults: deque[tuple[re.Pattern[str], Fault]] = deque()
        self.always: list[Fault] = []
        self.page = 1000
        self.clock: Callable[[], float] = time.time

    def next(self, pattern: str, fault: Fault) -> None:
        """This fault meets the next request whose "METHOD key" matches."""
        self.faults.append((re.compile(pattern), fault))

    def answer(self, request: Request) -> Answer:
        with self.mutex:
            self.requests[request.method if request.key else "LIST"] += 1
            fault = self._due(request)
        for each in ([fault] if fault else []) + self.always:
            answer = each(self, request)
            if answer is not None:
                return answer
        return self.serve(request)

    def _due(self, request: Request) -> Fault | None:
        for pending in self.faults:
            if pending[0].search(f"{request.method} {request.key}"):
                self.faults.remove(pending)
                return pending[1]
        return None

    def serve(self, request: Request) -> Answer:
        with self.mutex:
            if request.method == "GET" and not request.key:
                return self._list(request.query)
            return {"GET": self._get, "HEAD": self._get, "PUT": self._put, "DELETE": self._delete}[
                request.method
            ](request)

    def _get(self, request: Request) -> Answer:
        found = self.objects.get(request.key)
        if found is None:
            return refusal(404, "NoSuchKey")
        stamp = formatdate(found.modified, usegmt=True)
        return Answer(200, found.data, {"ETag": found.etag, "Last-Modified": stamp})

    def _put(self, request: Request) -> Answer:
        found = self.objects.get(request.key)
        if request.headers.get("if-none-match") == "*" and found is not None:
            return refusal(412, "PreconditionFailed")
        wanted = request.headers.get("if-match")
        if wanted is not None and found is None:
            return refusal(404, "NoSuchKey")
        if wanted is not None and found is not None and wanted != found.etag:
            return refusal(412, "PreconditionFailed")
        etag = f'"{hashlib.md5(request.body).hexdigest()}"'
        self.objects[request.key] = Stored(request.body, etag, self.clock())
        return Answer(200, b"", {"ETag": etag})

    def _delete(self, request: Request) -> Answer:
        self.objects.pop(request.key, None)
        return Answer(204)

    @property
    def keys(self) -> list[str]:
        """Names in order; tests put objects in and take them out as they like."""
        if self._names != self.objects.keys():
            self._names = set(self.objects)
            self._sorted = sorted(self.objects)
        return self._sorted

    def _list(self, query: dict[str, str]) -> Answer:
        after = query.get("continuation-token") or query.get("start-after", "")
        prefix = query.get("prefix", "")
        start = bisect.bisect_left(self.keys, prefix)
        if after:
            start = max(start, bisect.bisect_right(self.keys, after))
        shown = [k for k in self.keys[start : start + self.page] if k.startswith(prefix)]
        rest = self.keys[start + self.page : start + self.page + 1]
        more = bool(rest) and rest[0].startswith(prefix)
        items = "".join(_item(key, self.objects[key]) for key in shown)
        token = f"<NextContinuationToken>{escape(''.join(shown[-1:]))}</NextContinuationToken>"
        body = (
            '<?xml version="1.0" encoding="UTF-8"?>'
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{BUCKET}</Name><KeyCount>{len(shown)}</KeyCount><MaxKeys>{self.page}</MaxKeys>"
            f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
            f"{token if more else ''}{items}</ListBucketResult>"
        )
        return Answer(200, body.encode(), {"Content-Type": "application/xml"})


def _item(key: str, stored: Stored) -> str:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(stored.modified))
    return (
        f"<Contents><Key>{escape(key)}</Key><LastModified>{stamp}</LastModified>"
        f"<ETag>{escape(stored.etag)}</ETag><Size>{len(stored.data)}</Size></Contents>"
    )


def refusal(status: int, code: str) -> Answer:
    text = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"
    return Answer(status, text.encode(), {"Content-Type": "application/xml"})


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    bucket: Bucket

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = urlsplit(self.path)
        key = unquote(parts.path).removeprefix(f"/{BUCKET}").strip("/")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        ours = unquote(parts.path).startswith(f"/{BUCKET}")
        self._serve(ours, Request(self.command, key, query, headers, body))

    do_GET = do_HEAD = do_PUT = do_DELETE = _any

    def _serve(self, ours: bool, request: Request) -> None:
        """ours: whether it asks for the one bucket that there is."""
        if not ours:
            answer = refusal(404, "NoSuchBucket")
        elif "authorization" not in request.headers:
            answer = refusal(403, "AccessDenied")
        else:
            answer = self.bucket.answer(request)
        self._reply(answer)

    def _reply(self, answer: Answer) -> None:
        time.sleep(answer.wait)
        if answer.breaks:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if answer.cut:
            self.wfile.write(answer.body[: len(answer.body) // 2])
            self.close_connection = True
        elif self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that were killed or gave up are part of the tests."""


def started(bucket: Bucket) -> Server:
    handler = type("Bound", (Handler,), {"bucket": bucket})
    server = Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


@contextmanager
def serving(bucket: Bucket) -> Iterator[str]:
    """The address while the server runs."""
    server = started(bucket)
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "not-a-secret"}
"""Credentials that the double takes; it only looks whether there are any."""


def options(endpoint: str, **more: str) -> dict[str, str]:
    return {"endpoint": endpoint, "region": "us-east-1", "use_path_style": "true", **more}


if __name__ == "__main__":
    with serving(Bucket()) as address:
        print(address, flush=True)
        sys.stdin.read()
