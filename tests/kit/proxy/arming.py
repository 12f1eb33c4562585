"""What the proxies before a broker and before an HTTP server have in common: they count requests
until a fault strikes, hold what waits, and break connections."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

HOST = "127.0.0.1"
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: whoever closes such a socket resets the connection."""


class Striking(Protocol):
    """A fault. kind: what becomes of a request; nth: the first one that is struck, from 1; times:
    how many in a row."""

    @property
    def kind(self) -> str: ...
    @property
    def nth(self) -> int: ...
    @property
    def times(self) -> int: ...


class Linked(Protocol):
    """One connection: the client's end and the server's."""

    near: asyncio.StreamWriter
    far: asyncio.StreamWriter


F = TypeVar("F", bound=Striking)
P = TypeVar("P")
L = TypeVar("L", bound=Linked)


@dataclass
class Armed(Generic[F]):
    """A fault and how many requests that it concerns have come."""

    fault: F
    seen: int = 0

    def strikes(self) -> bool:
        """Count one more that it concerns."""
        self.seen += 1
        return self.fault.nth <= self.seen < self.fault.nth + self.fault.times


@dataclass
class ArmedProxy(Generic[F, P, L]):
    """passed: every request since the last `arm`; opened: connections since the last `cut`; fired:
    set when a fault strikes; silent: nothing is answered any more; first: what a question got
    first; watched: a file whose size is noted whenever a writing request is forwarded."""

    loop: asyncio.AbstractEventLoop
    links: list[L] = field(default_factory=list)
    opened: int = 0
    passed: list[P] = field(default_factory=list)
    fired: threading.Event = field(default_factory=threading.Event)
    armed: list[Armed[F]] = field(default_factory=list)
    silent: bool = False
    first: dict[Any, bytes] = field(default_factory=dict)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    passes: bool = True
    watched: Path | None = None

    @property
    def all_struck(self) -> bool:
        """True if every fault met a request."""
        return all(armed.seen >= armed.fault.nth for armed in self.armed)

    def arm(self, *faults: F) -> None:
        """Strike with these from now on, and forget what was."""
        self._do(self._arm, faults)

    def keep(self, *faults: F) -> None:
        """Strike with these from now on, and remember what was."""
        self._do(lambda: setattr(self, "armed", [Armed(fault) for fault in faults]))

    def disarm(self) -> list[P]:
        """Pass everything again, and let go what is held; all requests since `arm`."""
        passed = self.passed
        self._do(self._arm, ())
        return passed

    def release(self, *, passes: bool = True) -> None:
        """Let go what is held; a request that waits is passed on, or lost."""
        self._do(self._release, passes)

    def cut(self) -> None:
        """Break all connections, and forget what was."""
        self._do(self._cut)

    def meets(self, concerns: Callable[[F], bool]) -> F | None:
        """The fault that strikes a request. concerns: whether a fault is about it."""
        struck = [one.fault for one in self.armed if concerns(one.fault) and one.strikes()]
        if struck:
            self.silent = self.silent or struck[0].kind == "half open"
            self.fired.set()
        return struck[0] if struck else None

    async def may_pass(self) -> bool:
        """Wait to be released; whether the request is passed on."""
        await self.released.wait()
        return self.passes

    def abort(self) -> None:
        """Break all connections."""
        for link in self.links:
            link.near.transport.abort()
            link.far.transport.abort()

    def _do(self, call: Callable[..., None], *given: Any) -> None:
        done = threading.Event()

        def run() -> None:
            call(*given)
            done.set()

        self.loop.call_soon_threadsafe(run)
        assert done.wait(30)

    def _arm(self, faults: Sequence[F]) -> None:
        self.armed = [Armed(fault) for fault in faults]
        self.passed, self.first, self.silent = [], {}, False
        self.fired.clear()
        self._release(True)

    def _release(self, passes: bool) -> None:
        self.passes = passes
        self.released.set()
        self.released = asyncio.Event()

    def _cut(self) -> None:
        self.abort()
        self.passed, self.opened = [], 0


def reset(writer: asyncio.StreamWriter) -> None:
    """Break a connection with RST."""
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


@contextmanager
def running_loop(name: str) -> Iterator[asyncio.AbstractEventLoop]:
    """A loop in a thread of this name, until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name=name, daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
