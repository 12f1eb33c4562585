"""Heads of answers are read as `http.client` reads them, and what is ambiguous is refused."""

from __future__ import annotations

import socket
from http.client import HTTPException, HTTPResponse

import pytest

from kafkaform.provider.http.connection import MAX_HEADERS, MAX_LINE, QuickResponse

OK = b"HTTP/1.1 200 OK\r\n"
BODY = b"Content-Length: 2\r\n\r\n{}"
MANY = b"".join(b"A%d: b\r\n" % number for number in range(MAX_HEADERS - 2))
SOUND = {
    "a length": OK + b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    "chunks": OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "chunks with a trailer": OK + b"TRANSFER-ENCODING: Chunked\r\n\r\n1\r\n1\r\n0\r\nA: b\r\n\r\n",
    "the end of the connection": OK + b"Server: x\r\n\r\n[1]",
    "no headers": OK + b"\r\n[1]",
    "nothing": b"HTTP/1.1 204 No Content\r\n\r\n",
    "not modified": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    "a wish to close": OK + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}",
    "an old server": b"HTTP/1.0 404 Not Found\r\nContent-Length: 2\r\n\r\n{}",
    "an old server that stays": b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n" + BODY,
    "no reason": b"HTTP/1.1 500\r\nContent-Length: 0\r\n\r\n",
    "an answer before the answer": b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\n" + OK + BODY,
    "spaces around a value": OK + b"A: \t b c \r\nContent-Length:2\r\n\r\n{}",
    "bare line ends": b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}",
    "bytes beyond ASCII": OK + b"A: caf\xe9\r\nContent-Length: 2\r\n\r\n{}",
    "the same length twice": OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "many headers": OK + MANY + BODY,
}  # fmt: skip
REFUSED = {
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a length that is no number": OK + b"Content-Length: +2\r\n\r\n{}",
    "a length below zero": OK + b"Content-Length: -2\r\n\r\n{}",
    "a list of lengths": OK + b"Content-Length: 2, 2\r\n\r\n{}",
    "an unknown coding": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": OK + b"Content-Length : 2\r\n\r\n{}",
    "a folded line": OK + b"A: b\r\n Content-Length: 9\r\nContent-Length: 2\r\n\r\n{}",
    "no colon": OK + b"A b\r\nContent-Length: 2\r\n\r\n{}",
    "no name": OK + b": b\r\nContent-Length: 2\r\n\r\n{}",
    "a head that ends early": OK + b"Content-Length: 2\r\n",
    "a line that ends early": OK + b"Content-Len",
    "too many headers": OK + b"A: b\r\n" * (MAX_HEADERS + 1) + b"\r\n",
    "too long a header": OK + b"A: " + b"b" * MAX_LINE + b"\r\n\r\n",
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    "another version": b"HTTP/2.0 200 OK\r\n\r\n",
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "nothing at all": b"",
}


def read_answer(kind: type[HTTPResponse], data: bytes) -> tuple[HTTPResponse, bytes]:
    """The answer that a server sends which then closes, and its body."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        response = kind(ours, method="GET")
        response.begin()
        return response, response.read()


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_answer_is_read_as_by_the_library(name: str) -> None:
    found, body = read_answer(QuickResponse, SOUND[name])
    known, same = read_answer(HTTPResponse, SOUND[name])
    assert isinstance(found, QuickResponse)
    assert (found.status, found.reason, found.version) == (
        known.status,
        known.reason,
        known.version,
    )
    assert body == same
    assert found.fields == {key.lower(): value.strip() for key, value in known.getheaders()}


@pytest.mark.parametrize("name", REFUSED)
def test_an_answer_with_two_meanings_is_refused(name: str) -> None:
    with pytest.raises(HTTPException):
        read_answer(QuickResponse, REFUSED[name])


def test_nothing_is_read_after_a_body_with_two_ends() -> None:
    data = OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    found, body = read_answer(QuickResponse, data)
    assert body == b"{}" and found.will_close


def test_headers_that_occur_twice_are_one() -> None:
    found, _ = read_answer(QuickResponse, OK + b"A: b\r\na: c\r\nContent-Length: 0\r\n\r\n")
    assert isinstance(found, QuickResponse) and found.fields["a"] == "b, c"
