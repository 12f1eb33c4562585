"""Mishaps of requests, as data: what happens to the effect, and what to the answer.

A schedule hands each mishap to the request that it was meant for. Nothing is random, so a
failing schedule replays exactly.
"""

from __future__ import annotations

from enum import Enum
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct


class Killed(BaseException):
    """The process died at this point of a request; no handler for faults may catch it."""


class Unreachable(Exception):
    """The request certainly did not reach the cluster."""


class Lost(Exception):
    """The request was sent and no answer came: its effect is unknown."""


class Ending(Enum):
    """What the sender of a request gets."""

    ANSWER = "answer"
    UNREACHABLE = "unreachable"
    LOST = "lost"
    KILLED = "killed"


class Mishap(Struct, frozen=True):
    """delay: seconds until the effect lands, 0 = at once, None = never; reads: it lands sooner if
    so many reads were served meanwhile, 0 = no; code: error that the items whose name matches
    `names` get instead of an effect, 0 = none, from item number `first` of them on; retry_after:
    seconds, with code 89; elsewhere: the SimulatedCluster that answers at the address from
    here on; beneath: connections stay open all the same, and lead there."""

    ending: Ending = Ending.ANSWER
    delay: float | None = 0
    reads: int = 0
    code: int = 0
    names: str = "*"
    first: int = 0
    retry_after: float = 0.0
    elsewhere: Any = None
    beneath: bool = False

    @property
    def sent(self) -> bool:
        """True if the request leaves the client."""
        return self.delay is not None or self.ending in (Ending.ANSWER, Ending.LOST)


def not_sent() -> Mishap:
    """The connection fails before the request leaves."""
    return Mishap(Ending.UNREACHABLE, delay=None)


def lost_reply() -> Mishap:
    """The effect happens and the answer is lost."""
    return Mishap(Ending.LOST)


def late_effect(seconds: float, reads: int = 0) -> Mishap:
    """No answer comes, and the effect lands so many seconds later, or after so many reads."""
    return Mishap(Ending.LOST, delay=seconds, reads=reads)


def lost_request() -> Mishap:
    """No answer comes and nothing ever happens."""
    return Mishap(Ending.LOST, delay=None)


def killed_before() -> Mishap:
    """The process dies before the request leaves."""
    return Mishap(Ending.KILLED, delay=None)


def killed_after(seconds: float = 0, reads: int = 0) -> Mishap:
    """The process dies before it sees the answer; the effect lands after so many seconds, or
    after so many reads."""
    return Mishap(Ending.KILLED, delay=seconds, reads=reads)


def replaced_cluster(other: Any, *, done: bool) -> Mishap:
    """The cluster dies with this request, which it has carried out or not, and another one answers
    at its address."""
    return Mishap(Ending.LOST, delay=0 if done else None, elsewhere=other)


def led_elsewhere(other: Any) -> Mishap:
    """A proxy leads the open connection to another cluster, which gets this request."""
    return Mishap(elsewhere=other, beneath=True)


def throttled_items(retry_after: float, first: int = 0) -> Mishap:
    """The mutation quota is used up from item `first` on (THROTTLING_QUOTA_EXCEEDED)."""
    return Mishap(code=89, first=first, retry_after=retry_after)


def refused_items(code: int, names: str = "*") -> Mishap:
    """The items whose name matches get this error code; the others are served."""
    return Mishap(code=code, names=names)


NONE = Mishap()


class _Planned(Struct):
    mishap: Mishap
    api: str
    skip: int
    times: int


class Schedule:
    """Mishaps that are still to come, in the order in which they were planned."""

    def __init__(self) -> None:
        self._planned: list[_Planned] = []

    def schedule(self, mishap: Mishap, api: str = "*", *, skip: int = 0, times: int = 1) -> None:
        """The next `times` requests that match, after `skip` of them, meet this mishap.

        api: glob over request names such as `CreateTopics`, `DescribeTopics`, `ListTopics`; a
        dry run is `CreateTopics:validate`, which `CreateTopics` does not match.
        """
        self._planned.append(_Planned(mishap, api, skip, times))

    def clear(self) -> None:
        """Drop what is still to come."""
        self._planned.clear()

    @property
    def pending(self) -> int:
        """How many mishaps are still to come."""
        return sum(planned.times for planned in self._planned)

    def take(self, api: str) -> Mishap:
        """The mishap of this request: the first one planned for it and due."""
        found = None
        for planned in self._planned:
            if not fnmatchcase(api, planned.api):
                continue
            if planned.skip:
                planned.skip -= 1
            elif found is None:
                found = planned
        if found is None:
            return NONE
        found.times -= 1
        if not found.times:
            self._planned.remove(found)
        return found.mishap
