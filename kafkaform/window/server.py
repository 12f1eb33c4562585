"""Serve the window over HTTP on the loopback address, to one user and with strict limits.

Python's own server reads a request for as long as it takes. So the head of a request is read here,
within a size and a time, and only then handed to it. A request has no body, and a connection
carries one request.

The address that the command prints has a token. It is exchanged for a cookie, so that it does not
stay in the address bar. A browser sends cookies of this computer to every port of it, so the cookie
belongs to a path that nobody can guess: a server on another port never receives a request for it.
The Host header is compared because a foreign name can be made to lead here (DNS rebinding). Pages
of other origins cannot read answers anyway; `Sec-Fetch-Site` keeps them from asking at all (W3C
Fetch Metadata). A form that asks a cluster is sent by POST, and obeyed only if the browser says
that it comes from a page of ours. Its answer leads to a page, so loading that again asks nobody.

A path names a page, and for one item of a listing its id. Ids are looked up in listings; no text
from a path becomes the name of a file.
"""

from __future__ import annotations

import hmac
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any
from urllib.parse import parse_qsl

from msgspec import Struct

from ..core.errors import KafkaformError, UsageError
from ..core.secret import PartialRepr
from ..html.document import read_policy
from ..workflow.live_looks import Subject
from . import access, fleet, objects, overview, plans, related, runs
from .page import MENU, REPOSITORY_MENU, WindowPage, make_fault_page, render_page
from .sources import Query, Sources

ADDRESS = "127.0.0.1"
"""The only address on which the window listens."""
COOKIE = "kafkaform"
TOKEN_BYTES, PATH_BYTES = 32, 12
_OURS = ("same-origin", "none")
"""Values of Sec-Fetch-Site of requests from our pages and from the address bar."""


class Gate(PartialRepr, frozen=True):
    """The secrets of one start of the window."""

    _unshown = frozenset({"token", "cookie"})

    port: int
    token: str
    """Opens the window once for each browser."""
    cookie: str
    """What a browser that was let in sends."""
    root: str
    """The path of the overview: `/…/`."""

    @property
    def address(self) -> str:
        """What the user opens."""
        return f"http://{ADDRESS}:{self.port}/?token={self.token}"


class Refused(Struct, frozen=True):
    """A request that gets no page."""

    status: int
    message: str


class Entered(Struct, frozen=True):
    """A request with the right token: the browser gets the cookie and is led to the overview."""


class PageRequest(Struct, frozen=True):
    """A request for a page."""

    path: str
    """Below the root, without a slash at its beginning, still quoted."""
    query: str


def make_gate(port: int) -> Gate:
    """New secrets."""
    token, cookie = (secrets.token_urlsafe(TOKEN_BYTES) for _ in range(2))
    return Gate(port, token, cookie, f"/{secrets.token_hex(PATH_BYTES)}/")


def judge_request(
    gate: Gate, target: str, headers: Mapping[str, str], hosts: list[str], *, asks: bool = False
) -> Refused | Entered | PageRequest:
    """What becomes of a request. target: as in its first line; headers: lower-case name -> value;
    hosts: all values of its Host headers; asks: whether it asks a cluster something."""
    if hosts not in ([f"{ADDRESS}:{gate.port}"], [f"localhost:{gate.port}"]):
        return Refused(421, "this is not the address of this window")
    # An absolute address is for proxies, and a second slash would begin the name of a host.
    if not target.startswith("/") or target.startswith("//"):
        return Refused(400, "the request does not name a path")
    path, _, query = target.partition("?")
    if path == "/":
        return Entered() if _has_token(query, gate.token) else _make_stranger()
    if not _has_cookie(headers.get("cookie", ""), gate.cookie):
        return _make_stranger()
    site = headers.get("sec-fetch-site", "none")
    # An address that somebody was led to, or a browser that does not say, must not ask a cluster.
    if site not in _OURS or (asks and site != "same-origin"):
        return Refused(403, "another page asked for this one")
    if not path.startswith(gate.root):
        return Refused(404, "there is no such page")
    return PageRequest(path.removeprefix(gate.root), query)


def make_cookie(gate: Gate) -> str:
    """The value of the Set-Cookie header."""
    return f"{COOKIE}={gate.cookie}; Path={gate.root}; HttpOnly; SameSite=Strict"


def _make_stranger() -> Refused:
    return Refused(403, "open the address that `kafkaform serve` printed, with its token")


def _has_token(query: str, token: str) -> bool:
    name, _, value = query.partition("=")
    return name == "token" and _equals(value, token)


def _has_cookie(header: str, cookie: str) -> bool:
    # Other programs on this computer have cookies, too, even of the same name, and browsers send
    # them all.
    pairs = (pair.strip().partition("=") for pair in header.split(";"))
    return any(name == COOKIE and _equals(value, cookie) for name, _, value in pairs)


def _equals(value: str, secret: str) -> bool:
    """Compare in a time that says nothing about the wanted text."""
    return hmac.compare_digest(value.encode("utf-8", "surrogatepass"), secret.encode())


_ID = re.compile(r"[0-9a-f]{20}")
FIELDS = 16
"""How many fields a query can have."""

PAGES: Mapping[str, Callable[[Sources, Query], WindowPage]] = {
    "": overview.make_page,
    "plans": plans.make_page,
    "objects": objects.make_page,
    "log": runs.make_page,
    "access": access.make_page,
    "drift": plans.make_drift_page,
    "fleet": fleet.make_page,
}
"""Path -> the page."""
ITEMS: Mapping[str, Callable[[Sources, str, Query], WindowPage | None]] = {
    "objects": objects.make_object_page,
    "log": runs.make_run_page,
    "records": runs.make_records_page,
    "fleet": fleet.make_table_page,
}
"""First part of a path -> the page of one thing, from its id; None if there is no such thing."""
DOCUMENTS: Mapping[str, Callable[[Sources, str, str], str | None]] = {
    "plans": plans.render_saved,
    "recorded": runs.render_recorded,
    "report": fleet.render_report,
}
"""First part of a path -> the page of one thing that is rendered elsewhere, from its id and the
root; None if there is no such thing."""


LOOKS: Mapping[str, Callable[[Sources, str], tuple[Subject, str] | None]] = {
    "objects": related.find_object_subject,
    related.DISKS: related.find_disks_subject,
}
"""First part of the path of a form that asks a cluster -> what it asks about, from its id, and the
page that shows the answer; None if there is no such thing."""


class Site(Struct, frozen=True):
    """All pages of a window, as the tables above have them."""

    menu: Mapping[str, str]
    pages: Mapping[str, Callable[[Sources, Query], WindowPage]]
    items: Mapping[str, Callable[[Sources, str, Query], WindowPage | None]]
    documents: Mapping[str, Callable[[Sources, str, str], str | None]]


_FOLDER = Site(MENU, PAGES, ITEMS, DOCUMENTS)
_LIVE = Site(
    {**MENU, related.DISKS: "Disks"},
    {**PAGES, related.DISKS: related.make_disks_page},
    ITEMS,
    DOCUMENTS,
)
_REPOSITORY = Site(
    REPOSITORY_MENU,
    {"": overview.make_repository_page, "fleet": fleet.make_page},
    {"fleet": fleet.make_table_page},
    {"report": fleet.render_report},
)


def find_page(sources: Sources, path: str, query: str, root: str) -> str | None:
    """The page of a path as HTML, None if there is none. root: the path of the overview.

    Raises KafkaformError if it cannot be read.
    """
    name, slash, page_id = path.partition("/")
    if sources.repository is not None and name == overview.FOLDERS:
        folder_id, _, inner = page_id.partition("/")
        folder = overview.open_folder(sources, folder_id, root)
        return find_page(folder, inner, query, f"{root}{name}/{folder_id}/") if folder else None
    site = _choose_site(sources)
    if not slash:
        make = site.pages.get(name)
        page = make(sources, _read_query(query)) if make else None
    elif not _ID.fullmatch(page_id):
        return None
    elif document := site.documents.get(name):
        return document(sources, page_id, root)
    else:
        item = site.items.get(name)
        page = item(sources, page_id, _read_query(query)) if item else None
    return render_page(page, root, site.menu, sources.trail) if page else None


def _choose_site(sources: Sources) -> Site:
    if sources.repository is not None:
        return _REPOSITORY
    return _FOLDER if sources.live is None else _LIVE


def find_subject(sources: Sources, path: str, root: str) -> tuple[Subject, str] | None:
    """What the form with this path asks a cluster about, and the address of the page that shows the
    answer; None if there is no such form. root: the path of the overview.

    Raises KafkaformError if it cannot be read.
    """
    name, _, id = path.partition("/")
    if sources.repository is not None and name == overview.FOLDERS:
        folder_id, _, inner = id.partition("/")
        folder = overview.open_folder(sources, folder_id, root)
        return find_subject(folder, inner, f"{root}{name}/{folder_id}/") if folder else None
    if sources.repository is not None or name not in LOOKS or not _ID.fullmatch(id):
        return None
    look = LOOKS[name](sources, id)
    return (look[0], f"{root}{look[1]}") if look else None


def _read_query(query: str) -> Query:
    try:
        return dict(parse_qsl(query, max_num_fields=FIELDS, errors="backslashreplace"))
    except ValueError:  # too many fields
        return {}


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


class TooSlow(KafkaformError):
    """A page did not get its turn."""


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

    @contextmanager
    def take_turn(self) -> Iterator[None]:
        """Hold up other pages. Raises TooSlow if those before take too long."""
        if not self.making.acquire(timeout=PATIENCE_SECONDS):
            raise TooSlow("the pages before this one take too long", "Load it again later.")
        try:
            yield
        finally:
            self.making.release()

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
        request = self._judge()
        if isinstance(request, Entered):
            gate = self.server.gate
            self._lead_to(gate.root, **{"Set-Cookie": make_cookie(gate)})
        elif isinstance(request, PageRequest):
            self._send(*self._make_answer(partial(self._find_page, request)))
        else:
            self._refuse(request.status, request.message)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        if self.server.sources.live is None:
            self.send_error(501)
            return
        request = self._judge(asks=True)
        if isinstance(request, PageRequest):
            status, text = self._make_answer(partial(self._look, request))
            if status == 200:
                self._lead_to(text)
            else:
                self._send(status, text)
        elif isinstance(request, Entered):
            self._refuse(405, "the token is no form")
        else:
            self._refuse(request.status, request.message)

    def _judge(self, *, asks: bool = False) -> Refused | Entered | PageRequest:
        lengths = self.headers.get_all("content-length") or []
        # Browsers announce the length of an empty form.
        if lengths not in (["0"] if asks else [], []) or "transfer-encoding" in self.headers:
            return Refused(400, "a request has no body here")
        headers = {name.lower(): value for name, value in self.headers.items()}
        hosts = self.headers.get_all("host") or []
        return judge_request(self.server.gate, self.path, headers, hosts, asks=asks)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Called by the server for a request that it cannot read, or of another method."""
        if code == 501:
            self._refuse(405, f"only {' and '.join(METHODS)} are answered here")
        else:
            self._refuse(code, "the request cannot be read")

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: paths of requests are nobody else's business."""

    def _find_page(self, request: PageRequest) -> str | None:
        server = self.server
        with server.take_turn():
            return find_page(server.sources, request.path, request.query, server.gate.root)

    def _look(self, request: PageRequest) -> str | None:
        """Ask a cluster; the address of the page that shows the answer."""
        server, live_looks = self.server, self.server.sources.live
        with server.take_turn():
            look = find_subject(server.sources, request.path, server.gate.root)
        if look is None or live_looks is None:
            return None
        subject, address = look
        live_looks.ask(subject)
        return address

    def _make_answer(self, make: Callable[[], str | None]) -> tuple[int, str]:
        """Status, and what was made or the page that says why it was not."""
        try:
            text = make()
        except KafkaformError as error:
            status = 503 if isinstance(error, TooSlow) else 500
            return status, self._render_fault(error.message, error.advice)
        except Exception as error:  # noqa: BLE001  # the last line of defence
            self.server.on_fault(error)
            advice = "The terminal of `kafkaform serve` says what to report."
            return 500, self._render_fault("kafkaform failed unexpectedly", advice)
        return (404, self._render_fault("there is no such page")) if text is None else (200, text)

    def _lead_to(self, address: str, **headers: str) -> None:
        self.send_response(303)
        for name, value in {"Location": address, **headers}.items():
            self.send_header(name, value)
        self._end_headers("default-src 'none'", 0)

    def _refuse(self, status: int, message: str) -> None:
        """Answer without a link to anything, because this may be a stranger."""
        self._send(status, f"<!doctype html>\n<title>{status}</title>\n{message}\n", is_page=False)

    def _render_fault(self, message: str, advice: str = "") -> str:
        page = make_fault_page("This page cannot be shown", message, advice)
        return render_page(page, self.server.gate.root, _choose_site(self.server.sources).menu)

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
        # One limit for the whole head: a byte now and then must not keep the connection open.
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
