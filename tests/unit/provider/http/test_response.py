"""The head of an answer: read as RFC 9112 has it, or refused."""

from __future__ import annotations

import socket
from contextlib import suppress
from http.client import HTTPException
from time import monotonic

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform.provider.http.response import MAX_HEADERS, MAX_LINE, ServerResponse

from ....kit.quick import examples

OK = b"HTTP/1.1 200 OK\r\n"
LIMIT = 100
"""Bytes of a body."""

Said = tuple[int, bytes | None, bool]
"""Status, body, and whether the connection can be used again."""


def read(data: bytes) -> Said:
    """What a server that says this and nothing more has answered."""
    near, far = socket.socketpair()
    with near, far:
        far.sendall(data)
        far.shutdown(socket.SHUT_WR)
        with ServerResponse(near, deadline=monotonic() + 60) as response:
            response.begin()
            body = response.read_up_to(LIMIT)
        return response.status, body, not response.will_close


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (OK + b"Content-Length: 2\r\n\r\n{}", (200, b"{}", True)),
        (b"HTTP/1.1 200\r\ncontent-length:2\r\n\r\n{}", (200, b"{}", True)),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}", (200, b"{}", True)),
        (b"HTTP/1.1 204 No Content\r\n\r\n", (204, b"", True)),
        (b"HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n", (404, b"", True)),
        (OK + b"Transfer-Encoding: Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", (200, b"{}", True)),
        (
            OK + b"Transfer-Encoding: chunked\r\n\r\n1;a=b\r\n{\r\n1\r\n}\r\n0\r\nA: b\r\n\r\n",
            (200, b"{}", True),
        ),
        (
            b"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\n{}",
            (200, b"{}", True),
        ),
        (OK + b"\r\n{}", (200, b"{}", False)),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", (200, b"{}", False)),
        (
            b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}",
            (200, b"{}", True),
        ),
        (OK + b"Connection: Close\r\nContent-Length: 2\r\n\r\n{}", (200, b"{}", False)),
        (b"HTTP/1.1 101 Switching\r\n\r\n", (101, b"", False)),
        (
            OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            (200, b"{}", False),
        ),
        (OK + b"Content-Length: 101\r\n\r\n" + b"x" * 101, (200, None, True)),
        (OK + b"\r\n" + b"x" * 500, (200, None, False)),
    ],
    ids=range(16),
)
def test_a_plain_answer_is_read(data: bytes, said: Said) -> None:
    """With its length, in chunks, or up to the end of the connection, which is then not used
    again; nor is it after an answer that two readers could end in different places."""
    assert read(data) == said


@pytest.mark.parametrize(
    "data",
    [
        b"",
        OK,
        OK + b"A: b\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        OK + b"A : b\r\n\r\n",
        OK + b"A: b\r\n c\r\n\r\n",
        OK + b"no colon\r\n\r\n",
        OK + b"Content-Length: -1\r\n\r\n",
        OK + b"Content-Length: +2\r\n\r\n{}",
        OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        OK + b"Content-Length: 3\r\n\r\n{}",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        OK + b"A: " + b"b" * MAX_LINE + b"\r\n\r\n",
        OK + b"A: b\r\n" * MAX_HEADERS + b"\r\n",
    ],
    ids=range(19),
)
def test_what_is_no_answer_is_refused(data: bytes) -> None:
    """What ends early, is endless, or could be understood in two ways."""
    with pytest.raises((HTTPException, ConnectionError)):
        read(data)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.binary()
    | st.lists(
        st.sampled_from(
            (b"HTTP/1.1 ", b"200 OK", b"100 C", b"\r\n", b"\r\n\r\n", b"A: ", b"Content-Length: 2")
            + (b"Transfer-Encoding: chunked", b"2\r\n{}\r\n", b"0\r\n\r\n", b"{}", b"\n", b"\xff")
        )
    ).map(b"".join)
)
def test_nothing_else_is_raised(data: bytes) -> None:
    """Whatever a server sends: a connection expects no other exception."""
    with suppress(HTTPException, OSError, ValueError):
        read(data)
