"""The answer to one call, read from its connection.

`http.client` reads the head of an answer with a parser of mails, which takes longer than everything
else that it does. Here the head is a dict at once, and what is not plain HTTP/1.1 (RFC 9112) is
refused. Bodies are read by `http.client`.
"""

from __future__ import annotations

import io
import re
import socket
from collections.abc import Mapping
from http.client import HTTPException, HTTPResponse, IncompleteRead, RemoteDisconnected
from time import monotonic
from typing import Any

MAX_LINE = 64 * 1024
"""Bytes of the status line, and of a header."""
MAX_HEADERS = 100

_STATUS = re.compile(rb"HTTP/1\.([0-9]) ([1-5][0-9]{2})(?: .*)?\r?\n", re.DOTALL)
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*\r?\n", re.DOTALL)
_LENGTH = re.compile(r"[0-9]{1,18}", re.ASCII)
_WITHOUT_BODY = frozenset({204, 304})


class ServerResponse(HTTPResponse):
    """An answer. deadline: of `monotonic`; reading ends with TimeoutError then."""

    headers: Mapping[str, str]  # type: ignore[assignment]
    """Names in lower case."""
    will_close: bool
    """The connection cannot be used again."""

    def __init__(self, sock: socket.socket, method: str | None = None, *, deadline: float) -> None:
        super().__init__(sock, method=method)
        self.fp = io.BufferedReader(_TimedReader(self.fp.detach(), sock, deadline))

    def begin(self) -> None:
        """Read the head. Raises HTTPException for one that has another form, OSError."""
        keeps, status = self._read_status_line()
        while 100 <= status < 200 and status != 101:
            # The answer proper follows (RFC 9110 §15.2).
            self._read_headers()
            keeps, status = self._read_status_line()
        self.status = self.code = status
        self.headers = said = self._read_headers()
        coding = said.get("transfer-encoding")
        if coding is not None and coding.lower() != "chunked":
            raise HTTPException("the answer has a transfer-encoding that nobody knows")
        self.chunked, self.chunk_left = coding is not None, None
        given = said.get("content-length")
        if given is not None and not _LENGTH.fullmatch(given):
            raise HTTPException("the answer has a content-length that is no number")
        self.length = None if given is None or self.chunked else int(given)
        if status in _WITHOUT_BODY:
            self.chunked, self.length = False, 0
        # With two lengths, somebody in between can see another end than we do (RFC 9112 §6.3).
        clear = self.length is not None or (self.chunked and given is None)
        wish = said.get("connection", "" if keeps else "close").lower()
        self.will_close = not clear or "close" in wish

    def read_up_to(self, limit: int) -> bytes | None:
        """The body, None if it is longer than the limit (bytes)."""
        data = self.read(limit + 1)
        if len(data) > limit:
            return None
        if self.length:
            # `read` says nothing of a body that ends early.
            raise IncompleteRead(data, self.length)
        return data

    def _read_status_line(self) -> tuple[bool, int]:
        """Whether the connection stays open if the head says nothing else; and the status."""
        line = self._read_line()
        if not line:
            raise RemoteDisconnected("the server ended the connection without an answer")
        match = _STATUS.fullmatch(line)
        if match is None:
            raise HTTPException("the answer is not HTTP/1.1")
        return match[1] != b"0", int(match[2])

    def _read_headers(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for _ in range(MAX_HEADERS):
            line = self._read_line()
            if line in (b"\r\n", b"\n"):
                return found
            match = _HEADER.fullmatch(line)
            if match is None:
                raise HTTPException("the answer has a header that cannot be read")
            name, value = match[1].decode("ascii").lower(), match[2].decode("latin-1")
            # RFC 9110 §5.3.
            found[name] = f"{found[name]}, {value}" if name in found else value
        raise HTTPException(f"the answer has more than {MAX_HEADERS} headers")

    def _read_line(self) -> bytes:
        line = self.fp.readline(MAX_LINE + 1)
        if len(line) > MAX_LINE:
            raise HTTPException(f"the answer has a line of more than {MAX_LINE} bytes")
        return line


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
        left = self._deadline - monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
