"""What the proxy can do to a request or its answer, as data.

Nothing here lies about what cannot be: an error that says "not done" is given without the request
reaching the server, one that leaves it open (502) both with and without.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

FOR_EVER = 10**9

KINDS = {
    "swallow": "the request never arrives, and nobody says so",
    "reset before": "the connection is reset, and the request never arrives",
    "wait": "the request waits until it is released, and is passed on or lost",
    "delay": "the request arrives late",
    "late": "the connection is reset, and the request arrives later all the same",
    "refuse": "the request never arrives, and is answered with this status",
    "redirect": "the request never arrives, and the answer leads to another address",
    "lose": "the request is carried out, and the answer never comes",
    "hold": "the request is carried out, and the answer comes once it is released, or late",
    "reset after": "the request is carried out, and the connection is reset",
    "twice": "the answer comes twice",
    "say": "the request is carried out, and the answer is this status",
    "tamper": "the request is carried out, and the answer has another body",
    "stale": "the answer is the one that the same question got first",
    "cut head": "the answer ends in its first line, and so does the connection",
    "cut": "the answer ends in the middle of its body, and so does the connection",
    "garbage": "the answer has the right length and makes no sense",
    "endless": "the answer's body does not end",
    "slow": "the answer comes byte by byte",
    "half open": "from here on nothing is answered, on no connection, and none is closed",
}
"""Kind -> what becomes of the request."""

NEVER_ARRIVES = frozenset({"swallow", "reset before", "refuse", "redirect", "half open"})


@dataclass(frozen=True)
class Fault:
    """what: glob over `METHOD /path?query`; holds: what the body of the request has in it; kind:
    one of KINDS; nth: the first one that is struck, from 1; times: how many in a row; status, body
    and headers: of an answer that the server does not give; location: of a redirection; seconds:
    how long something takes, a byte where it is slow."""

    what: str
    kind: str
    nth: int = 1
    times: int = 1
    status: int = 503
    body: bytes = b"{}"
    location: str = ""
    headers: tuple[str, ...] = ()
    seconds: float = 0.0
    holds: bytes = b""

    def __post_init__(self) -> None:
        assert self.kind in KINDS, self.kind

    def __str__(self) -> str:
        which = str(self.nth) + (f"x{self.times}" if self.times > 1 else "")
        status = f" {self.status}" if self.kind in ("refuse", "say") else ""
        return f"{self.what} ({which}): {self.kind}{status}"

    def concerns(self, line: str, body: bytes) -> bool:
        return fnmatchcase(line, self.what) and self.holds in body
