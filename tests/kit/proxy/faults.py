"""What the proxy can do to a request or its answer, as data.

Nothing here lies about what cannot be: an error that says "not done" is given without the
request reaching the broker, one that leaves it open ("not in time", "no controller any more")
both with and without.
"""

from __future__ import annotations

from dataclasses import dataclass

ANY, DRY, REAL = "any", "dry", "real"
FOR_EVER = 10**9

KINDS = {
    "swallow": "the request never arrives, and nobody says so",
    "reset before": "the connection is reset, and the request never arrives",
    "wait": "the request waits until it is released, and is passed on or lost",
    "delay": "the request arrives late",
    "late": "the connection is reset, and the request arrives later all the same",
    "refuse": "the broker gives all items this error and does none of them",
    "refuse one": "the broker gives the first item this error and does the others",
    "throttle": "the broker does nothing and asks to come again (89)",
    "lose": "the request is carried out, and the answer never comes",
    "hold": "the request is carried out, and the answer comes late, or never",
    "reset after": "the request is carried out, and the connection is reset",
    "twice": "the answer comes twice",
    "say": "the request is carried out, and the answer gives every item this error",
    "say whole": "the request is carried out, and the answer as a whole is this error",
    "pause": "the answer asks to send nothing for a while (throttle_time_ms)",
    "stale": "the answer is the one that the same question, or the same topic, got first",
    "cut": "the answer ends in its middle, and so does the connection",
    "garbage": "the answer has the right length and makes no sense",
    "oversized": "the answer says that it is 2 GiB long",
    "stranger": "the answer is to another request",
    "slow": "the answer comes byte by byte",
    "half open": "from here on nothing is answered, on no connection, and none is closed",
}
"""Kind -> what becomes of the request."""

NEVER_ARRIVES = frozenset({"swallow", "reset before", "refuse", "throttle", "half open"})


@dataclass(frozen=True)
class Fault:
    """api: whose requests; kind: one of KINDS; phase: of those with a dry run, which are meant;
    nth: the first one that is struck, from 1; times: how many in a row; code: the error that is
    given; seconds: how long something takes, a byte where it is slow."""

    api: str
    kind: str
    phase: str = ANY
    nth: int = 1
    times: int = 1
    code: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        code = f" {self.code}" if self.code else ""
        which = f"{self.phase} {self.nth}" + (f"x{self.times}" if self.times > 1 else "")
        return f"{self.api} ({which}): {self.kind}{code}"

    def concerns(self, api: str, *, dry: bool) -> bool:
        return api == self.api and self.phase in (ANY, DRY if dry else REAL)
