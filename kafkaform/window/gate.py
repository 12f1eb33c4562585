"""Decide whether a request comes from the user who started the window.

The address that the command prints has a token. It is exchanged for a cookie, so that it does not
stay in the address bar. A browser sends cookies of this computer to every port of it, so the cookie
belongs to a path that nobody can guess: a server on another port is never asked for that path.

The Host header is compared because a name of somebody else's can be made to lead here (DNS
rebinding). Pages of other origins cannot read answers anyway; `Sec-Fetch-Site` keeps them from
asking at all (W3C Fetch Metadata).
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping

from msgspec import Struct

from ..core.secret import PartialRepr

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
    gate: Gate, target: str, headers: Mapping[str, str], hosts: list[str]
) -> Refused | Entered | PageRequest:
    """What becomes of a request. target: as in its first line; headers: lower-case name -> value;
    hosts: all values of its Host headers."""
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
    if headers.get("sec-fetch-site", "none") not in _OURS:
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
