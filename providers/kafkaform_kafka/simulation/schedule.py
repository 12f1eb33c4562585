"""Mishaps of requests as data, and the schedule that gives them to requests.

A mishap says what happens to the effect of a request and to its answer. Nothing is random, so a
failing schedule can be replayed exactly.
"""

from __future__ import annotations

from enum import Enum
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct


# Not an Exception: no handler for faults may catch the death of the process.
class Killed(BaseException):
    """The process died at this point of a request."""


class Unreachable(Exception):
    """The request did not reach the cluster."""


class Lost(Exception):
    """The request was sent and no answer came: its effect is unknown."""


class Ending(Enum):
    """How a request ends for its sender."""

    ANSWER = "answer"
    UNREACHABLE = "unreachable"
    LOST = "lost"
    KILLED = "killed"


class Mishap(Struct, frozen=True):
    """What happens to one request."""

    ending: Ending = Ending.ANSWER
    delay: float | None = 0
    """Seconds until the request takes effect; None if it never does."""
    reads: int = 0
    """It takes effect earlier after this many reads; 0 if it does not."""
    code: int = 0
    """The error code of the items that match, instead of an effect; 0 for none."""
    names: str = "*"
    """A glob for the names of the items that get `code`."""
    first: int = 0
    """The position of the first item that gets `code`."""
    retry_after: float = 0.0
    """Throttle time in seconds, with code 89."""
    elsewhere: Any = None
    """The SimulatedCluster that answers at the address from now on."""
    beneath: bool = False
    """True if open connections stay open and lead to `elsewhere`."""

    @property
    def sent(self) -> bool:
        """True if the request leaves the client."""
        return self.delay is not None or self.ending in (Ending.ANSWER, Ending.LOST)


def not_sent() -> Mishap:
    """The connection fails before the request is sent."""
    return Mishap(Ending.UNREACHABLE, delay=None)


def lost_reply() -> Mishap:
    """The request takes effect, and the answer is lost."""
    return Mishap(Ending.LOST)


def late_effect(seconds: float, reads: int = 0) -> Mishap:
    """No answer comes, and the request takes effect after some seconds or some reads."""
    return Mishap(Ending.LOST, delay=seconds, reads=reads)


def lost_request() -> Mishap:
    """No answer comes, and the request never takes effect."""
    return Mishap(Ending.LOST, delay=None)


def killed_before() -> Mishap:
    """The process dies before the request is sent."""
    return Mishap(Ending.KILLED, delay=None)


def killed_after(seconds: float = 0, reads: int = 0) -> Mishap:
    """The process dies before it gets the answer; the request takes effect after some seconds or
    some reads."""
    return Mishap(Ending.KILLED, delay=seconds, reads=reads)


def replaced_cluster(cluster: Any, *, executed: bool) -> Mishap:
    """The cluster dies with this request, and another one answers at its address. done: the request
    took effect before."""
    return Mishap(Ending.LOST, delay=0 if executed else None, elsewhere=cluster)


def led_elsewhere(cluster: Any) -> Mishap:
    """A proxy leads the open connection to another cluster, which gets this request."""
    return Mishap(elsewhere=cluster, beneath=True)


def throttled_items(retry_after: float, first: int = 0) -> Mishap:
    """The mutation quota is used up from item `first` on (THROTTLING_QUOTA_EXCEEDED, KIP-599)."""
    return Mishap(code=89, first=first, retry_after=retry_after)


def refused_items(code: int, names: str = "*") -> Mishap:
    """The items whose names match get this error code; the others succeed."""
    return Mishap(code=code, names=names)


NONE = Mishap()


class _Planned(Struct):
    """A mishap for the next `times` requests of an API, after `skip` others."""

    mishap: Mishap
    api: str
    skip: int
    times: int


class Schedule:
    """The mishaps of coming requests, in the order in which they were scheduled."""

    def __init__(self) -> None:
        self._planned: list[_Planned] = []

    def schedule(self, mishap: Mishap, api: str = "*", *, skip: int = 0, times: int = 1) -> None:
        """Schedule a mishap for the next `times` requests that match, after `skip` of them.

        api: a glob for names of requests, such as `CreateTopics`, `DescribeTopics`, `ListTopics`; a
        dry run is `CreateTopics:validate`, which `CreateTopics` does not match.
        """
        self._planned.append(_Planned(mishap, api, skip, times))

    def clear(self) -> None:
        """Remove all mishaps."""
        self._planned.clear()

    @property
    def pending(self) -> int:
        """The number of mishaps that have not happened yet."""
        return sum(planned.times for planned in self._planned)

    def take(self, api: str) -> Mishap:
        """The mishap of this request: the first one that is due, or NONE."""
        mishap = None
        for planned in self._planned:
            if not fnmatchcase(api, planned.api):
                continue
            if planned.skip:
                planned.skip -= 1
            elif mishap is None:
                mishap = planned
        if mishap is None:
            return NONE
        mishap.times -= 1
        if not mishap.times:
            self._planned.remove(mishap)
        return mishap.mishap
