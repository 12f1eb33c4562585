"""kafkaform, which dies by SIGKILL at one of the calls that matter: writes, syncs, renames, links,
and what it sends: `python -m tests.kit.commands.struck TRACE [NUMBER HOW] -- ARGUMENTS...`.

Calls are counted from the moment when the state is locked. TRACE: a file that gets a line for
each call before it is made, with method and target of a request of HTTP; NUMBER: of the call, from
1; HOW: `before` it, `after` it, or `half`: with the first half of its bytes written. A request of
HTTP can be `lost`, too: it is carried out, and its answer is not read.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BEFORE, AFTER, HALF, LOST = "before", "after", "half", "lost"
FILES = (
    "write",
    "pwrite",
    "fsync",
    "fdatasync",
    "replace",
    "rename",
    "link",
    "unlink",
    "ftruncate",
    "posix_fallocate",
)
"""Functions of `os` that change what a disk holds or make it durable; pathlib calls them too."""
NETWORK = ("send", "sendall")
PAYLOADS = ("write", "pwrite", *NETWORK)
"""Calls with bytes, half of which can be written."""
MAX_HEAD = 500
"""Bytes."""
_HEAD = re.compile(rb"([A-Z]+ /\S*) HTTP/1")
"""What a request of HTTP begins with."""
_LENGTH = re.compile(rb"\r\ncontent-length: *[1-9]", re.IGNORECASE)
_PATIENCE = 30.0
"""Seconds for which an answer is waited for that is lost then."""


@dataclass(frozen=True)
class Strike:
    """When to die. request: a regular expression for method and target; only requests of HTTP that
    fit are counted then, and where one begins is where it is struck."""

    number: int
    how: str
    request: str = ""


@dataclass
class Counter:
    """trace: descriptor of the trace; strike: None to only count; fits: how many requests were like
    the strike's; doomed: the socket whose next bytes are a request's last, and the process's."""

    trace: int
    strike: Strike | None
    count: int = 0
    fits: int = 0
    begun: bool = False
    doomed: object = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    write: Callable[[int, bytes], int] = os.write

    def through(self, name: str, call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        """Make a call, and die at it if its turn has come."""
        if not self.begun:
            return call(*arguments, **more)
        with self.lock:
            if name in NETWORK and arguments[0] is self.doomed:
                _lose(call, arguments)
            self.count += 1
            what = _read_head(arguments) if name in NETWORK else ""
            how = self.strike.how if self.strike and self._hits(self.strike, what) else ""
            said = f"{self.count} {name} {how} {what}".rstrip()
            self.write(self.trace, f"{said}\n".encode())
            if how == BEFORE:
                _die()
            if how == HALF:
                _half(name, call, arguments)
                _die()
            if how == AFTER:
                call(*arguments, **more)
                _die()
            if how == LOST and not _LENGTH.search(bytes(arguments[1])):
                _lose(call, arguments)
            if how == LOST:
                self.doomed = arguments[0]
        return call(*arguments, **more)

    def _hits(self, strike: Strike, what: str) -> bool:
        if not strike.request:
            return strike.number == self.count
        if not re.fullmatch(strike.request, what):
            return False
        self.fits += 1
        return strike.number == self.fits


def arm(counter: Counter) -> None:
    """Put the counter around every call, in this process and for good."""
    for name in FILES:
        setattr(os, name, _around(counter, name, getattr(os, name)))
    for name in NETWORK:
        setattr(socket.socket, name, _around_network(counter, name, getattr(socket.socket, name)))
    lock = fcntl.flock

    def flock(descriptor: Any, operation: int) -> None:
        lock(descriptor, operation)
        counter.begun = counter.begun or bool(operation & fcntl.LOCK_EX)

    fcntl.flock = flock


def _around(counter: Counter, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments, **more: counter.through(name, call, *arguments, **more)


def _around_network(counter: Counter, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """Threads wake each other through sockets too, which nobody else sees."""

    def send(self: socket.socket, *arguments: Any) -> Any:
        if self.family not in (socket.AF_INET, socket.AF_INET6):
            return call(self, *arguments)
        return counter.through(name, call, self, *arguments)

    return send


def _read_head(arguments: Sequence[Any]) -> str:
    """Method and target if a request of HTTP begins here, else nothing."""
    found = _HEAD.match(memoryview(arguments[1])[:MAX_HEAD])
    return found[1].decode() if found else ""


def _half(name: str, call: Callable[..., Any], arguments: Sequence[Any]) -> None:
    if name not in PAYLOADS:
        return
    target, data, *rest = arguments
    call(target, memoryview(data)[: len(data) // 2], *rest)


def _lose(call: Callable[..., Any], arguments: Sequence[Any]) -> None:
    """Send the rest of a request, and die when its answer is there."""
    call(*arguments)
    select.select([arguments[0]], [], [], _PATIENCE)
    _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    while True:  # the signal ends the process before this says anything
        signal.pause()


def armed(trace: Path, strike: Strike | None) -> None:
    """Arm this process. trace: a file that this begins."""
    arm(Counter(os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), strike))


def main(words: Sequence[str]) -> None:
    split = words.index("--")
    trace, *strike = words[:split]
    armed(Path(trace), Strike(int(strike[0]), strike[1]) if strike else None)
    from kafkaform.cli.app import main as kafkaform

    kafkaform(list(words[split + 1 :]))


if __name__ == "__main__":
    main(sys.argv[1:])
