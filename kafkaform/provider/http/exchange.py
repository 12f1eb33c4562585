"""A call and what became of it: an answer, nothing sent, or an answer that was lost.

NotSent and AnswerLost are the line that decides about safety: after the first, the server has not
seen the call; after the second, it may have executed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

from msgspec import Struct

NO_QUERY: Mapping[str, str] = {}


class Call(Struct, frozen=True):
    """One request of HTTP."""

    method: str
    """`GET`, `PUT` …"""
    path: str
    """Below the url of the settings, with a leading slash, from `join_path`."""
    body: Any = None
    """What is sent as JSON; None for nothing."""
    query: Mapping[str, str] = NO_QUERY
    """The parameters of the URL."""
    reads: bool = False
    """It changes nothing, so it can be sent twice."""

    @property
    def target(self) -> str:
        """Path and query as they are sent."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class HttpAnswer(Struct, frozen=True):
    """What the server answered, whatever its status."""

    status: int
    """Status of HTTP. Redirections are answers, too: they are not followed."""
    body: Any = None
    """The JSON value as from `parse_json`. None for an empty body, and for the body of an error
    that is not JSON, such as a proxy's page."""
    headers: Mapping[str, str] = NO_QUERY
    """Names in lower case."""

    @property
    def succeeded(self) -> bool:
        """True for 2xx."""
        return 200 <= self.status < 300


class CallFailed(Exception):
    """A call without an answer that can be used. cause: a sentence without its final stop, without
    secrets."""

    def __init__(self, cause: str, advice: str = "", location: str = "") -> None:
        """location: the server and the call."""
        super().__init__(cause)
        self.cause = cause
        self.advice = advice
        self.where = location


class NotSent(CallFailed):
    """The server has not seen the call: no connection, no TLS, no login token, or nobody could say
    which system answers there. answer: what it said instead of its name, if it said something."""

    answer: HttpAnswer | None = None


class AnswerLost(CallFailed):
    """From the first byte on: the call may have been executed. timed_out: nothing came in time."""

    timed_out = False


def join_path(*segments: str) -> str:
    """The path with these segments, each percent-encoded whole: no name reaches another path."""
    return "".join([f"/{_quote_segment(segment)}" for segment in segments])


# Most segments occur in every call of a kind.
@lru_cache(maxsize=4096)
def _quote_segment(segment: str) -> str:
    # A server or proxy that takes "." and ".." away as steps must not see them as such.
    return {".": "%2E", "..": "%2E%2E"}.get(segment) or quote(segment, safe="")
