"""Serve the window over HTTP on the loopback address, to one user and with strict limits.

Python's own server reads a request for as long as it takes. So the head of a request is read here,
within a size and a time, and only then handed to it. A request has no body, and a connection
carries one request.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any

from ..core.errors import KafkaformError, UsageError
from ..html.document import read_policy
from .gate import ADDRESS, Entered, Gate, PageRequest, judge_request, make_cookie, make_gate
from .page import make_fault_page, render_page
from .routes import find_page
from .sources import Sources

HEAD_BYTES = 16_384
"""The largest head of a request."""
HEAD_SECONDS = 10.0
"""How long a client may take to send it."""
SEND_SECONDS = 60.0
"""How long a client may take to receive an answer."""
CONNECTIONS = 16
"""How many requests are answered or waited for at once."""
PATIENCE_SECONDS = 120.0
"""How long a request waits for those before it."""
LOOK_SECONDS = 1.0
"""How long a signal that another thread got can go unnoticed."""
METHODS = ("GET", "HEAD")
HEADERS = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
"""What every answer says."""
Fault = Callable[[BaseException], None]


class WindowServer(ThreadingHTTPServer):
    """The server of one window."""

    # A connection that is still open does not keep the command from ending.
    daemon_threads = True
    block_on_close = False

    def __init__(self, sources: Sources, port: int, on_fault: Fault) -> None:
        """Listen. port: 0 for any free one; on_fault: is told of unexpected errors. Raises
        UsageError if the port cannot be used."""
        try:
            super().__init__((ADDRESS, port), _RequestHandler)
        except OSError as error:
            raise UsageError(
                f"cannot listen on port {port} of {ADDRESS}: {error.strerror}",
                "Choose another --port, or leave it out for a free one.",
            ) from None
        self.sources, self.on_fault = sources, on_fault
        self.gate: Gate = make_gate(self.server_address[1])
        # Pages read whole logs, so one is made at a time, and memory stays bounded.
        self.making = threading.Lock()
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        # The filter of secrets belongs to the command, and a new thread would not have it.
        self._context = copy_context()

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be started, so none will release it
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            self._context.copy().run(super().process_request_thread, request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection failed, as they do when a browser loses interest: nobody is told."""


class _RequestHandler(BaseHTTPRequestHandler):
    """One request."""

    server: WindowServer
    server_version, sys_version = "kafkaform", ""

    def handle(self) -> None:
        head = _read_head(self.connection)
        self.connection.settimeout(SEND_SECONDS)
        if head is None:
            # What the server's own parser would have set.
            self.command, self.requestline = "GET", ""
            self.request_version = self.protocol_version
            self._refuse(431, "the head of the request is too large or came too slowly")
            return
        self.rfile = BytesIO(head)
        self.handle_one_request()

    def do_GET(self) -> None:
        if "content-length" in self.headers or "transfer-encoding" in self.headers:
            self._refuse(400, "a request has no body here")
            return
        gate = self.server.gate
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = judge_request(gate, self.path, headers, self.headers.get_all("host") or [])
        if isinstance(request, Entered):
            self._lead_in()
        elif isinstance(request, PageRequest):
            self._send(*self._make_answer(request))
        else:
            self._refuse(request.status, request.message)

    do_HEAD = do_GET

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Called by the server for a request that it cannot read, or of another method."""
        if code == 501:
            self._refuse(405, f"only {' and '.join(METHODS)} are answered here")
        else:
            self._refuse(code, "the request cannot be read")

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: paths of requests are nobody else's business."""

    def _make_answer(self, request: PageRequest) -> tuple[int, str]:
        """Status and page."""
        server = self.server
        if not server.making.acquire(timeout=PATIENCE_SECONDS):
            return 503, self._render_fault("the pages before this one take too long")
        try:
            page = find_page(server.sources, request.path, request.query, server.gate.root)
            if page is None:
                return 404, self._render_fault("there is no such page")
            return 200, page
        except KafkaformError as error:
            return 500, self._render_fault(error.message, error.advice)
        except Exception as error:  # noqa: BLE001  # the last line of defence
            server.on_fault(error)
            advice = "The terminal of `kafkaform serve` says what to report."
            return 500, self._render_fault("kafkaform failed unexpectedly", advice)
        finally:
            server.making.release()

    def _lead_in(self) -> None:
        self.send_response(303)
        self.send_header("Location", self.server.gate.root)
        self.send_header("Set-Cookie", make_cookie(self.server.gate))
        self._end_headers("default-src 'none'", 0)

    def _refuse(self, status: int, message: str) -> None:
        """Answer without a link to anything, because this may be a stranger."""
        self._send(status, f"<!doctype html>\n<title>{status}</title>\n{message}\n", is_page=False)

    def _render_fault(self, message: str, advice: str = "") -> str:
        page = make_fault_page("This page cannot be shown", message, advice)
        return render_page(page, self.server.gate.root)

    def _send(self, status: int, page: str, *, is_page: bool = True) -> None:
        body = page.encode("utf-8", "backslashreplace")
        self.send_response(status)
        self._end_headers(read_policy(page) if is_page else "default-src 'none'", len(body))
        if self.command != "HEAD":
            self.wfile.write(body)

    def _end_headers(self, policy: str, size: int) -> None:
        for name, value in HEADERS:
            self.send_header(name, value)
        # A policy in a page cannot forbid that the page is framed, the one of a header can.
        self.send_header("Content-Security-Policy", f"{policy}; frame-ancestors 'none'")
        self.send_header("Content-Length", str(size))
        self.end_headers()


def _read_head(connection: socket.socket) -> bytes | None:
    """The head of a request; None if it is too large, or does not come in time."""
    deadline = time.monotonic() + HEAD_SECONDS
    head = b""
    while b"\r\n\r\n" not in head and b"\n\n" not in head:
        remaining = deadline - time.monotonic()
        if remaining <= 0 or len(head) > HEAD_BYTES:
            return None
        connection.settimeout(remaining)
        try:
            piece = connection.recv(HEAD_BYTES)
        except TimeoutError:
            return None
        if not piece:
            return head
        head += piece
    return head if len(head) <= HEAD_BYTES else None


def serve(server: WindowServer) -> None:
    """Answer requests until an exception, such as that of a signal, ends it."""
    # Not in this thread: where a connection is accepted and handed to a thread, an exception of a
    # signal can get lost, and the command would go on. Here it does nothing but wait, and looks up
    # now and then, because the system can give the signal to another thread.
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        while True:
            time.sleep(LOOK_SECONDS)
