"""One connection to one server, used by one thread at a time, through Python's `http.client`; and
why a connection failed, from one table for TLS and one for everything else.

Nothing is repeated, followed or unpacked here: a compressed answer could grow without limit. The
heads of answers are read without the parser for mail of `http.client`: 13 instead of 43 µs for
twelve headers. docs/decisions/033-one-http-stack.md has what urllib3 would take. Sources: RFC 9112
§4 to §6, RFC 9110 §5.
"""

from __future__ import annotations

import errno
import io
import re
import select
import socket
import ssl
from base64 import b64encode
from collections.abc import Mapping
from http.client import (
    BadStatusLine,
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
    LineTooLong,
    NotConnected,
    UnknownProtocol,
)
from time import monotonic
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from msgspec import Struct

from ...core.canonical import dumps
from ...core.secret import mask_secrets
from .exchange import AnswerLost, Call, HttpAnswer, NotJson, NotSent, parse_json

MAX_CAUSE = 300
"""Characters of a cause: it can repeat what a server sent."""
NO_CONNECTION, REFUSED_CERTIFICATE = "no connection: ", "its certificate is refused: "
"""Beginnings of causes."""
_LOOK = "check url and the network, and whether the server runs"
_PORT = "check host and port in url, and whether the server runs"
_LOGIN = "give client_cert and client_key"
_DOUBT = "; if it requires a client certificate, check that it trusts that of client_cert"
_OTHER_LOGIN = "give client_cert and client_key of an authority that the server trusts"
_ALERTS = (
    "CERTIFICATE_REQUIRED",
    "UNKNOWN_CA",
    "BAD_CERTIFICATE",
    "CERTIFICATE_UNKNOWN",
    "CERTIFICATE_EXPIRED",
    "CERTIFICATE_REVOKED",
    "UNSUPPORTED_CERTIFICATE",
    "HANDSHAKE_FAILURE",
)
"""Alerts by which a server refuses the certificate of its client, or the lack of one (RFC 8446
§6.2). With TLS 1.3 they come after the handshake; Java's servers send BAD_CERTIFICATE for none."""
_MIX_UPS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH")
"""OpenSSL's reasons for an answer that is not TLS."""
_TLS_RECORDS = ("\x15\x03", "\x16\x03")
"""How TLS answers to something else: an alert or a handshake (RFC 8446 §5.1)."""
_ERRORS: Mapping[int, str] = {
    errno.ECONNREFUSED: _PORT,
    errno.EHOSTUNREACH: "check the host in url, and the network",
    errno.ENETUNREACH: "check the host in url, and the network",
}
# The limits of Python's own client.
MAX_HEADERS = 100
MAX_LINE = 65536
"""Bytes of one header."""
_CONTINUE, _SWITCHING, _OK, _NO_CONTENT, _NOT_MODIFIED = 100, 101, 200, 204, 304
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LENGTH = re.compile(r"[0-9]{1,18}")
FAILURES = (HTTPException, OSError, ValueError)
"""What `http.client` and the modules below it raise for a failed call."""
SLACK = 0.1
"""Seconds that a call can take longer. To set the timeout of a socket lets another thread run, and
each answer would wait until it is this one's turn again."""
MAX_ERROR_BYTES = 1024 * 1024
"""Of the body of an error. What is larger is left unread: the status says enough."""
_CONSTANT = {
    "User-Agent": "kafkaform",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
}
"""The headers of every call."""
_UNREADABLE = "check url, and what answers there"


class HttpFailure(Struct, frozen=True):
    """cause: one sentence without its final stop, without secrets, of bounded length."""

    cause: str
    advice: str


_REASONS: Mapping[str, HttpFailure] = {
    "PROTOCOL_VERSION": HttpFailure(
        "the server has no version of TLS that is safe", "switch on TLS 1.2 or 1.3 at the server"
    ),
    "UNSUPPORTED_PROTOCOL": HttpFailure(
        "the server has no version of TLS that is safe", "switch on TLS 1.2 or 1.3 at the server"
    ),
    "UNRECOGNIZED_NAME": HttpFailure(
        "the server has no certificate for this host name", "check the host name in url"
    ),
}
"""Part of OpenSSL's reason -> what it means."""
_CLOSES = HttpFailure(
    "the server closes each connection after one answer, so nothing proves which system gives the "
    "next one",
    "let the server, or the proxy before it, keep connections open (HTTP keep-alive)",
)


def explain_failure(error: BaseException, *, tls: bool, certified: bool) -> HttpFailure:
    """The failure of a connection to a server of HTTP. tls: the connection uses it; certified: it
    has a client certificate."""
    if isinstance(error, ssl.SSLCertVerificationError):
        cause = REFUSED_CERTIFICATE + error.verify_message
        return HttpFailure(cause, advise_certificate(error.verify_message))
    if isinstance(error, ssl.SSLError):
        failure = _explain_alert(_read_reason(error), certified=certified)
        if failure is not None:
            return failure
    if isinstance(error, TimeoutError):
        return HttpFailure("nothing came in time", _LOOK)
    if isinstance(error, NotConnected):
        return _CLOSES
    if isinstance(error, BadStatusLine) and str(error).startswith(_TLS_RECORDS):
        return HttpFailure("the server speaks TLS, and url says http", "write https:// in url")
    advice = _choose_advice(error)
    if tls and isinstance(error, ConnectionResetError | BrokenPipeError | ssl.SSLEOFError):
        # Who closes a connection at once can lose its own alert.
        advice += _DOUBT if certified else f"; if it requires a client certificate, {_LOGIN}"
    return HttpFailure(describe_cause(error), advice)


def _explain_alert(reason: str, *, certified: bool) -> HttpFailure | None:
    if any(name in reason for name in _MIX_UPS):
        return HttpFailure(
            "the server there does not speak TLS",
            "write the port of its https listener into url; or http://, if it has none and others "
            "on the network may read the traffic",
        )
    alert = next((name for name in _ALERTS if name in reason and "ALERT" in reason), None)
    if alert == "HANDSHAKE_FAILURE" and certified:
        return None
    if alert is not None and not certified:
        return HttpFailure("the server requires a client certificate", _LOGIN)
    if alert == "CERTIFICATE_EXPIRED":
        return HttpFailure("our client certificate has expired", "renew client_cert")
    if alert is not None:
        alert_text = alert.lower().replace("_", " ")
        return HttpFailure(f"the server refuses our client certificate: {alert_text}", _OTHER_LOGIN)
    return next((failure for name, failure in _REASONS.items() if name in reason), None)


def advise_certificate(
    refused: str, argument: str = "url", server: str = "server", elsewhere: str = ""
) -> str:
    """What to do about a certificate that OpenSSL does not accept. refused: OpenSSL's reason;
    argument: the one with the address; elsewhere: the other places of the name."""
    if "mismatch" in refused or "not valid for" in refused:
        return (
            f"write the name from the certificate into {argument}{elsewhere}, or have a "
            "certificate issued for this name"
        )
    if "expired" in refused or "not yet valid" in refused:
        return f"have the {server}'s certificate renewed, and check the clock of this computer"
    return f"give the certificate of the {server}'s authority in ca_cert"


def _choose_advice(error: BaseException) -> str:
    if isinstance(error, socket.gaierror):
        return "check the host name in url"
    if isinstance(error, OSError) and str(error).startswith("Tunnel connection failed"):
        return "check the proxy in https_proxy, and its login"
    number = error.errno if isinstance(error, OSError) else None
    return _ERRORS.get(number or 0, _LOOK)


def _read_reason(error: BaseException) -> str:
    """OpenSSL's name for the cause, empty if there is none."""
    return str(getattr(error, "reason", None) or "") if isinstance(error, ssl.SSLError) else ""


def describe_cause(error: BaseException) -> str:
    """One sentence, without secrets, of bounded length."""
    text = (
        _read_reason(error)
        or getattr(error, "strerror", None)
        or str(error)
        or type(error).__name__
    )
    return mask_secrets(" ".join(str(text).split()))[:MAX_CAUSE]


class QuickResponse(HTTPResponse):
    """One answer; `http.client` reads its body."""

    fields: dict[str, str]
    """Its headers, names in lower case."""

    def begin(self) -> None:
        """Read the head. Raises HTTPException."""
        version, status, reason = self._read_status()  # type: ignore[attr-defined]  # untyped
        while _CONTINUE <= status < _OK and status != _SWITCHING:
            # The answer itself follows. Who sends this for ever meets the deadline of the call.
            read_headers(self.fp)
            version, status, reason = self._read_status()  # type: ignore[attr-defined]  # untyped
        if not version.startswith("HTTP/1."):
            raise UnknownProtocol(version)
        if status == _SWITCHING:
            raise HTTPException("the server speaks another protocol from here on")
        self.code = self.status = status
        self.reason = reason.strip()
        self.version = 10 if version == "HTTP/1.0" else 11
        self.fields = read_headers(self.fp)
        self._find_end()

    def _find_end(self) -> None:
        """How the body ends: with the last chunk, after a number of bytes, or with the
        connection."""
        coding = self.fields.get("transfer-encoding", "identity").lower()
        length = self.fields.get("content-length")
        self.chunked = coding == "chunked"
        self.chunk_left = None
        if coding not in ("chunked", "identity"):
            raise HTTPException("the answer has a transfer coding that was not requested")
        if length is not None and not _LENGTH.fullmatch(length):
            raise HTTPException("the answer has a length that is no number")
        self.length = None if self.chunked or length is None else int(length)
        if self.status in (_NO_CONTENT, _NOT_MODIFIED):
            self.length = 0
        wish = self.fields.get("connection", "").lower()
        stays = "keep-alive" in wish if self.version == 10 else "close" not in wish
        ends = self.chunked or self.length is not None
        # Two readers could find two ends of a body that has both, so nothing may follow it.
        doubtful = self.chunked and length is not None
        self.will_close = not stays or not ends or doubtful


def read_headers(stream: BinaryIO) -> dict[str, str]:
    """The headers up to the empty line, names in lower case. Raises HTTPException for what two
    readers could understand differently."""
    headers: dict[str, str] = {}
    for _ in range(MAX_HEADERS + 1):
        line = stream.readline(MAX_LINE + 1)
        if len(line) > MAX_LINE:
            raise LineTooLong("header line")
        if line in (b"\r\n", b"\n"):
            return headers
        name, colon, value = line.partition(b":")
        if not line.endswith(b"\n") or not colon or not _NAME.fullmatch(name):
            raise HTTPException("a line in the head of the answer is no header")
        key, text = name.decode("ascii").lower(), value.strip().decode("latin-1")
        # A proxy and this reader could believe different ones of two lengths, and so disagree where
        # the answer ends (RFC 9112, section 6.3).
        if headers.get(key, text) != text:
            if key == "content-length":
                raise HTTPException("the answer has two lengths")
            text = f"{headers[key]}, {text}"
        headers[key] = text
    raise HTTPException(f"the answer has more than {MAX_HEADERS} headers")


class ServerConnection:
    """Sends calls to one address over one connection. url: of HttpSettings; context: for https;
    timeout: seconds for connecting, and again for each call from its first byte to the last one of
    its answer; certified: the context has a certificate of ours."""

    def __init__(
        self,
        url: str,
        context: ssl.SSLContext | None,
        timeout: float,
        max_bytes: int,
        *,
        certified: bool = False,
    ) -> None:
        address = urlsplit(url)
        self._url = url
        self._base = address.path.rstrip("/")
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._certified = certified
        self._deadline = 0.0
        self.proven = 0.0
        """When the system proved itself with the last call (of `monotonic`), 0 after any other."""
        self._place = address.hostname or "", address.port, context, timeout
        self._connection: HTTPConnection | None = None

    @property
    def connected(self) -> bool:
        """True if the connection of the last call still stands, and nothing came on it unasked."""
        sock = None if self._connection is None else self._connection.sock
        return sock is not None and not _has_input(sock)

    def connect(self) -> None:
        """Open a new connection. Raises NotSent."""
        self.close()
        self._deadline = monotonic() + self._timeout
        try:
            # A new one each time: a closed one forgets the proxy that it led through.
            self._connection = _make_connection(*self._place)
            # It would open itself again, and lead to a system that has not said who it is.
            self._connection.auto_open = 0
            # The class of an answer is an attribute of a connection, so that it can be changed.
            self._connection.response_class = self._open_answer  # type: ignore[assignment]
            self._connection.connect()
        except FAILURES as error:
            self.close()
            failure = self._explain(error)
            raise NotSent(NO_CONNECTION + failure.cause, failure.advice, self._url) from None

    def send(self, call: Call, headers: Mapping[str, str]) -> HttpAnswer:
        """Send a call once, on the connection that stands. Raises AnswerLost."""
        self.proven = 0.0
        request_line = f"{self._url}, {call}"
        try:
            return self._exchange(call, {**_CONSTANT, **headers})
        except NotJson as error:
            self.close()
            cause = f"the answer cannot be read: {error}"
            raise AnswerLost(cause, _UNREADABLE, request_line) from None
        except FAILURES as error:
            self.close()
            failure = self._explain(error)
            fault = AnswerLost(failure.cause, failure.advice, request_line)
            fault.timed_out = isinstance(error, TimeoutError)
            raise fault from None
        except BaseException:
            # Somebody interrupts: what is left of this answer must not become that of the next
            # call.
            self.close()
            raise

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()

    def _explain(self, error: BaseException) -> HttpFailure:
        tls = self._url.startswith("https:")
        return explain_failure(error, tls=tls, certified=self._certified)

    def _exchange(self, call: Call, headers: Mapping[str, str]) -> HttpAnswer:
        connection = self._connection
        assert connection is not None
        body = None
        if call.body is not None:
            body = dumps(call.body).encode("ascii")
            headers = {**headers, "Content-Type": "application/json"}
        elif call.form is not None:
            body = call.form.reveal().encode("ascii")
            headers = {**headers, "Content-Type": "application/x-www-form-urlencoded"}
        self._deadline = monotonic() + self._timeout
        if connection.sock is not None and connection.sock.gettimeout() != self._timeout:
            # The answer before this one left what was left of its own time.
            connection.sock.settimeout(self._timeout)
        connection.request(call.method, self._base + call.target, body, headers)
        response = connection.getresponse()
        assert isinstance(response, QuickResponse)  # as `_open_answer` makes it
        answer_headers = response.fields
        succeeded = 200 <= response.status < 300
        data = self._read_body(response, self._max_bytes if succeeded else MAX_ERROR_BYTES)
        if data is None and succeeded:
            raise NotJson(f"it has more than {self._max_bytes} bytes")
        if succeeded and answer_headers.get("content-encoding", "identity") != "identity":
            raise NotJson("it is compressed, which was not requested")
        try:
            value = parse_json(data) if data and not call.opaque else None
        except NotJson:
            if succeeded:
                raise
            value = None
        return HttpAnswer(response.status, value, answer_headers)

    def _read_body(self, response: HTTPResponse, limit: int) -> bytes | None:
        """The body, None if it is longer than the limit."""
        data = response.read(limit + 1)
        if len(data) > limit:
            self.close()
            return None
        if response.length:
            # `read` says nothing of a body that ends early.
            raise IncompleteRead(data, response.length)
        return data

    def _open_answer(self, sock: socket.socket, *args: Any, **options: Any) -> HTTPResponse:
        """The answer, read until the deadline of its call."""
        response = QuickResponse(sock, *args, **options)
        timed = _TimedReader(response.fp.detach(), sock, self._deadline)
        response.fp = io.BufferedReader(timed)
        return response


class _TimedReader(io.RawIOBase):
    """Reads from a socket until a deadline (of `monotonic`).

    A socket's own timeout begins anew with each byte, so that a server that sends one now and then
    would hold a call for ever.
    """

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, deadline: float) -> None:
        self._raw = raw
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        remaining = self._deadline - monotonic()
        if remaining <= 0:
            raise TimeoutError("timed out")
        limit = self._sock.gettimeout()
        if limit is None or limit > remaining + SLACK:
            self._sock.settimeout(remaining)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _make_connection(
    host: str, port: int | None, context: ssl.SSLContext | None, timeout: float
) -> HTTPConnection:
    if context is None:
        # Never through a proxy of the environment: it would see the login.
        return HTTPConnection(host, port, timeout=timeout)
    proxy = "" if proxy_bypass(host) else getproxies().get("https", "")
    if not proxy:
        return HTTPSConnection(host, port, timeout=timeout, context=context)
    address = urlsplit(proxy if "//" in proxy else f"http://{proxy}")
    connection = HTTPSConnection(
        address.hostname or "", address.port or 3128, timeout=timeout, context=context
    )
    headers = {}
    if address.username:
        login = f"{unquote(address.username)}:{unquote(address.password or '')}"
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
