"""One connection to one server, used by one thread at a time.

Nothing is repeated, followed or unpacked here: a compressed answer could grow without limit.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from time import monotonic
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from ...core.canonical import dumps
from ...core.redaction import mask_secrets
from .exchange import AnswerLost, Call, HttpAnswer, NotSent
from .response import ServerResponse
from .strict_json import NotJson, parse_json

FAILURES = (HTTPException, OSError, ValueError)
"""What `http.client` and the modules below it raise for a failed call."""
MAX_CAUSE = 300
"""Characters of a cause: it can repeat what a server sent."""
MAX_ERROR_BYTES = 1024 * 1024
"""Of the body of an error. What is larger is left unread: the status says enough."""

_WITH_BODY = frozenset({"PATCH", "POST", "PUT"})
_PRINTABLE = re.compile(r"[ -~]+")

_LOOK = "check url and the network, and whether the server runs"


class ServerConnection:
    """Sends calls to one address over one connection. url: of HttpSettings; context: for https;
    timeout: seconds for connecting, and again for each call from its first byte to the last one of
    its answer."""

    def __init__(
        self, url: str, context: ssl.SSLContext | None, timeout: float, max_bytes: int
    ) -> None:
        place = urlsplit(url)
        self._url = url
        self._base = place.path.rstrip("/")
        self._timeout = timeout
        self._max_bytes = max_bytes
        self.proven = 0.0
        """When the system proved itself with the last call (of `monotonic`), 0 after any other."""
        self._place = place.hostname or "", place.port, context, timeout
        self._constant = (
            f"Host: {place.netloc}\r\nUser-Agent: kafkaform\r\n"
            "Accept: application/json\r\nAccept-Encoding: identity\r\n"
        )
        """The headers of every call."""
        self._connection: HTTPConnection | None = None

    @property
    def connected(self) -> bool:
        """True if the connection of the last call still stands, and nothing came on it unasked."""
        sock = None if self._connection is None else self._connection.sock
        return sock is not None and not _has_input(sock)

    def connect(self) -> None:
        """Open a new connection. Raises NotSent."""
        self.close()
        try:
            # A new one each time: a closed one forgets the proxy that it led through.
            self._connection = _make_connection(*self._place)
            # The answer of a proxy, which comes first, has the same deadline.
            make_response = partial(ServerResponse, deadline=monotonic() + self._timeout)
            self._connection.response_class = make_response  # type: ignore[assignment]
            self._connection.connect()
        except FAILURES as error:
            self.close()
            cause = f"no connection: {_describe_cause(error)}"
            raise NotSent(cause, _LOOK, self._url) from None

    def send(self, call: Call, headers: Mapping[str, str]) -> HttpAnswer:
        """Send a call once, on the connection that stands. Raises AnswerLost."""
        self.proven = 0.0
        where = f"{self._url}, {call}"
        try:
            return self._exchange(call, headers)
        except NotJson as error:
            self.close()
            raise AnswerLost(f"the answer cannot be read: {error}", _LOOK, where) from None
        except FAILURES as error:
            self.close()
            lost = AnswerLost(_describe_cause(error), _LOOK, where)
            lost.timed_out = isinstance(error, TimeoutError)
            raise lost from None
        except BaseException:
            # Somebody interrupts: what is left of this answer must not become that of the next
            # call.
            self.close()
            raise

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()

    def _exchange(self, call: Call, headers: Mapping[str, str]) -> HttpAnswer:
        connection, request = self._connection, self._make_request(call, headers)
        assert connection is not None
        deadline = monotonic() + self._timeout
        connection.sock.settimeout(self._timeout)
        connection.sock.sendall(request)
        with ServerResponse(connection.sock, deadline=deadline) as response:
            response.begin()
            succeeded = 200 <= response.status < 300
            data = response.read_up_to(self._max_bytes if succeeded else MAX_ERROR_BYTES)
        if response.will_close or data is None:
            self.close()
        return _make_answer(response, data, self._max_bytes)

    def _make_request(self, call: Call, headers: Mapping[str, str]) -> bytes:
        """The call as it is sent. Raises ValueError."""
        body = b"" if call.body is None else dumps(call.body).encode("ascii")
        given = dict(headers)
        if call.body is not None:
            given["Content-Type"] = "application/json"
        if body or call.method in _WITH_BODY:
            given["Content-Length"] = f"{len(body)}"
        target = self._base + call.target
        parts = (call.method, target, *given.values())
        if not all(map(_PRINTABLE.fullmatch, parts)):
            raise ValueError("the call contains a character that a head cannot have")
        lines = "".join([f"{name}: {value}\r\n" for name, value in given.items()])
        head = f"{call.method} {target} HTTP/1.1\r\n{self._constant}{lines}\r\n"
        return head.encode("ascii") + body


def _make_answer(response: ServerResponse, data: bytes | None, limit: int) -> HttpAnswer:
    """data: the body, None if it is larger than the limit (bytes). Raises NotJson."""
    succeeded = 200 <= response.status < 300
    if data is None and succeeded:
        raise NotJson(f"it has more than {limit} bytes")
    if succeeded and response.headers.get("content-encoding", "identity") != "identity":
        raise NotJson("it is compressed, and nobody asked for that")
    try:
        value = parse_json(data) if data else None
    except NotJson:
        if succeeded:
            raise
        value = None
    return HttpAnswer(response.status, value, response.headers)


def _make_connection(
    host: str, port: int | None, context: ssl.SSLContext | None, timeout: float
) -> HTTPConnection:
    if context is None:
        # Never through a proxy of the environment: it would see the login.
        return HTTPConnection(host, port, timeout=timeout)
    proxy = "" if proxy_bypass(host) else getproxies().get("https", "")
    if not proxy:
        return HTTPSConnection(host, port, timeout=timeout, context=context)
    place = urlsplit(proxy if "//" in proxy else f"http://{proxy}")
    connection = HTTPSConnection(
        place.hostname or "", place.port or 3128, timeout=timeout, context=context
    )
    headers = {}
    if place.username:
        login = f"{unquote(place.username)}:{unquote(place.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
    connection.set_tunnel(host, port or 443, headers)
    return connection


def _has_input(sock: socket.socket) -> bool:
    """Whether something can be read at once, the end of the connection included."""
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([sock], [], [], 0)[0])
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def _describe_cause(error: BaseException) -> str:
    """One sentence, without secrets, of bounded length."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return "nothing came in time"
    reason = error.reason if isinstance(error, ssl.SSLError) else None
    text = reason or getattr(error, "strerror", None) or str(error) or type(error).__name__
    return mask_secrets(" ".join(str(text).split()))[:MAX_CAUSE]
