"""kafkaform, which dies by SIGKILL at one of the calls that matter: writes, syncs, renames, links,
and what it sends: `python -m tests.kit.commands.struck TRACE [NUMBER HOW] -- ARGUMENTS...`.

Calls are counted from the moment when the state is locked. TRACE: a file that gets a line for
each call before it is made; NUMBER: of the call, from 1; HOW: `before` it, `after` it, or `half`:
with the first half of its bytes written.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BEFORE, AFTER, HALF = "before", "after", "half"
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
PAYLOADS = ("write", "pwrite", "send", "sendall")
"""Calls with bytes, half of which can be written."""


@dataclass(frozen=True)
class Strike:
    """When to die."""

    number: int
    how: str


@dataclass
class Counter:
    """trace: descriptor of the trace; strike: None to only count."""

    trace: int
    strike: Strike | None
    count: int = 0
    begun: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    write: Callable[[int, bytes], int] = os.write

    def through(self, name: str, call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        """Make a call, and die at it if its turn has come."""
        if not self.begun:
            return call(*arguments, **more)
        with self.lock:
            self.count += 1
            hit = self.strike is not None and self.strike.number == self.count
            how = self.strike.how if hit and self.strike else ""
            self.write(self.trace, f"{self.count} {name} {how}\n".encode())
            if how == BEFORE:
                _die()
            if how == HALF:
                _half(name, call, arguments)
                _die()
            if how == AFTER:
                call(*arguments, **more)
                _die()
        return call(*arguments, **more)


def arm(counter: Counter) -> None:
    """Put the counter around every call, in this process and for good."""
    for name in FILES:
        setattr(os, name, _around(counter, name, getattr(os, name)))
    for name in ("send", "sendall"):
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


def _half(name: str, call: Callable[..., Any], arguments: Sequence[Any]) -> None:
    if name not in PAYLOADS:
        return
    target, data, *rest = arguments
    call(target, memoryview(data)[: len(data) // 2], *rest)


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
