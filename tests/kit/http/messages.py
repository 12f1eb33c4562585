"""Messages of HTTP/1.1 as the proxy reads them: not with the library of the client under test."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http import HTTPStatus

LIMIT = 64 * 1024 * 1024
READS = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True)
class Asked:
    """One request as it came. data: all of it; body: what it carries."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    data: bytes

    def __str__(self) -> str:
        return f"{self.method} {self.target}"

    @property
    def writes(self) -> bool:
        return self.method not in READS


@dataclass(frozen=True)
class Given:
    """One answer as it came. head: with the empty line behind it; data: the body as it was sent,
    chunks and all."""

    status: int
    headers: dict[str, str]
    head: bytes
    data: bytes

    @property
    def whole(self) -> bytes:
        return self.head + self.data

    @property
    def closes(self) -> bool:
        """The server ends the connection after it."""
        return self.headers.get("connection", "").lower() == "close"


async def read_request(reader: asyncio.StreamReader) -> Asked | None:
    """The next request, None at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, headers = _split_head(head)
        body = await _read_body(reader, headers)
    except (asyncio.IncompleteReadError, OSError):
        return None
    method, target, _ = first.split(" ", 2)
    return Asked(method, target, headers, body, head + body)


async def read_answer(reader: asyncio.StreamReader, request: Asked) -> Given | None:
    """The answer to a request, None if the connection ends first."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, headers = _split_head(head)
        status = int(first.split(" ", 2)[1])
        bare = request.method == "HEAD" or status in (204, 304)
        data = b"" if bare else await _read_body(reader, headers, answer=True)
    except (asyncio.IncompleteReadError, OSError):
        return None
    return Given(status, headers, head, data)


def make_answer(status: int, body: bytes = b"", headers: tuple[str, ...] = ()) -> bytes:
    """An answer that keeps the connection. headers: whole lines."""
    reason = {one.value: one.phrase for one in HTTPStatus}.get(status, "Status")
    lines = (f"HTTP/1.1 {status} {reason}", f"Content-Length: {len(body)}", *headers, "", "")
    return "\r\n".join(lines).encode() + body


def _split_head(head: bytes) -> tuple[str, dict[str, str]]:
    first, *lines = head.decode("latin-1").strip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return first, {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _read_body(
    reader: asyncio.StreamReader, headers: dict[str, str], *, answer: bool = False
) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _read_chunks(reader)
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    # An answer without a length ends with its connection; a request without one has no body.
    return await reader.read(LIMIT) if answer else b""


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    found = b""
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        found += line + await reader.readexactly(size + 2)
        if size == 0:
            return found
