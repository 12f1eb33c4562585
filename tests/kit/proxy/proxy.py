"""The proxy: an asyncio loop in a thread, a listener before each broker, faults on request.

A connection has two pumps. The one of requests decides what becomes of each; the one of answers
takes them in that order, which is the order in which a broker answers. Both listeners' addresses
stand in every answer that tells where brokers are, so that clients stay behind the proxy.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import rewrite
from .faults import NEVER_ARRIVES, Fault
from .frames import TELLS_ADDRESSES, Asked, asked, moved, with_body

HOST = "127.0.0.1"
LIMIT = 64 * 1024 * 1024
GARBAGE = bytes(range(255, 191, -1))
OVERSIZED = struct.pack(">I", 2**31 - 1)
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: whoever closes such a socket resets the connection."""


@dataclass
class Passed:
    """One request that came. forwarded: it reached the broker; fault: what it met; items: what of
    a writing one reached the broker; size: bytes of the log that is watched, at that moment;
    answered: by the broker."""

    request: Asked
    forwarded: bool
    fault: Fault | None = None
    items: tuple[Any, ...] = ()
    size: int = 0
    answered: bool = False


@dataclass
class Armed:
    """A fault and how many requests that it concerns have come."""

    fault: Fault
    seen: int = 0

    def strikes(self, request: Asked) -> bool:
        if not self.fault.concerns(request.api, dry=request.dry):
            return False
        self.seen += 1
        return self.fault.nth <= self.seen < self.fault.nth + self.fault.times


@dataclass
class Coming:
    """An answer that is due. ready: it, if no broker gives it."""

    passed: Passed
    fault: Fault | None
    ready: bytes | None = None


@dataclass
class Link:
    """One connection: the client's end and the broker's."""

    near: asyncio.StreamWriter
    far: asyncio.StreamWriter
    due: asyncio.Queue[Coming] = field(default_factory=asyncio.Queue)


@dataclass
class Proxy:
    """ports: of each broker -> where the proxy listens for it; passed: every request since the
    last `arm`; fired: set when a fault strikes; watched: a file whose size is noted whenever a
    writing request is forwarded; tamper: changes every answer that no fault concerns."""

    loop: asyncio.AbstractEventLoop
    ports: dict[int, int] = field(default_factory=dict)
    passed: list[Passed] = field(default_factory=list)
    fired: threading.Event = field(default_factory=threading.Event)
    armed: list[Armed] = field(default_factory=list)
    silent: bool = False
    first: dict[bytes, bytes] = field(default_factory=dict)
    rows: dict[tuple[int, str], Any] = field(default_factory=dict)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    watched: Path | None = None
    tamper: Callable[[Asked, bytes], bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{next(iter(self.ports.values()))}"

    @property
    def all_struck(self) -> bool:
        """True if every fault met a request."""
        return all(armed.seen >= armed.fault.nth for armed in self.armed)

    def arm(self, *faults: Fault) -> None:
        """Strike with these from now on, and forget what was."""
        self._do(self._arm, faults)

    def keep(self, *faults: Fault) -> None:
        """Strike with these from now on, and remember what was."""
        self._do(lambda: setattr(self, "armed", [Armed(fault) for fault in faults]))

    def disarm(self) -> list[Passed]:
        """Pass everything again, and let go what is held; all requests since `arm`."""
        passed = self.passed
        self._do(self._arm, ())
        return passed

    def _do(self, call: Callable[..., None], *given: Any) -> None:
        done = threading.Event()
        self.loop.call_soon_threadsafe(lambda: (call(*given), done.set()))
        assert done.wait(30)

    def _arm(self, faults: Sequence[Fault]) -> None:
        self.armed = [Armed(fault) for fault in faults]
        self.passed, self.first, self.rows = [], {}, {}
        self.silent = False
        self.fired.clear()
        self.released.set()
        self.released = asyncio.Event()

    def meets(self, request: Asked) -> Fault | None:
        """The fault that strikes this request."""
        struck = [armed.fault for armed in self.armed if armed.strikes(request)]
        if struck:
            self.silent = self.silent or struck[0].kind == "half open"
            self.fired.set()
        return struck[0] if struck else None

    # ── connections ─────────────────────────────────────────────────────────────────────

    async def serve(
        self, reader: asyncio.StreamReader, near: asyncio.StreamWriter, broker: int
    ) -> None:
        """One connection from beginning to end."""
        if self.silent:
            await self._nothing(reader, near)
            return
        try:
            answers, far = await asyncio.open_connection(HOST, broker, limit=LIMIT)
        except OSError:
            near.close()
            return
        link = Link(near, far)
        pumps = [
            asyncio.ensure_future(pump)
            for pump in (self._requests(reader, link), self._answers(answers, link))
        ]
        try:
            # Only the end of the proxy cancels it, which asyncio would complain of.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            near.close()
            far.close()

    async def _nothing(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        """Take what comes and say nothing."""
        with contextlib.suppress(OSError, asyncio.CancelledError):
            while await reader.read(65536):
                pass
        near.close()

    async def _requests(self, reader: asyncio.StreamReader, link: Link) -> None:
        async for data in _frames(reader):
            request = asked(data)
            fault = None if self.silent else self.meets(request)
            kind = fault.kind if fault else ""
            arrives = kind not in NEVER_ARRIVES and not self.silent
            passed = Passed(request, arrives, fault)
            self.passed.append(passed)
            if self.silent:
                continue
            if kind == "reset before":
                _reset(link.near)
                return
            if fault is not None and kind == "late":
                _reset(link.near)
                await asyncio.sleep(fault.seconds)
                await self._forward(link, passed, fault)
                await link.due.join()
                return
            if fault is not None and kind in ("refuse", "throttle"):
                link.due.put_nowait(Coming(passed, None, _refusal(request, fault)))
            elif kind != "swallow":
                await self._forward(link, passed, fault)

    async def _forward(self, link: Link, passed: Passed, fault: Fault | None) -> None:
        request, data = passed.request, passed.request.data
        passed.items = rewrite.items(request) if request.writes else ()
        if fault is not None and fault.kind == "delay":
            await asyncio.sleep(fault.seconds)
        if fault is not None and fault.kind == "refuse one":
            data = with_body(request, rewrite.without_first(request))
            passed.items = passed.items[1:]
        if passed.items and self.watched is not None and self.watched.exists():
            passed.size = self.watched.stat().st_size
        _send(link.far, data)
        link.due.put_nowait(Coming(passed, fault))

    async def _answers(self, reader: asyncio.StreamReader, link: Link) -> None:
        frames = _frames(reader)
        while True:
            coming = await link.due.get()
            request, fault = coming.passed.request, coming.fault
            data = coming.ready
            if data is None:
                data = await anext(frames, None)
                if data is None:
                    return
                data = self._seen(request, data)
            coming.passed.answered = True
            link.due.task_done()
            if self.silent:
                continue
            if fault is None:
                _send(link.near, data if self.tamper is None else self.tamper(request, data))
            elif (give := GIVES.get(fault.kind)) is not None:
                await give(self, link, coming, data)
                if fault.kind in ENDS:
                    return
            else:
                _send(link.near, _changed(self, request, fault, data))

    def _seen(self, request: Asked, data: bytes) -> bytes:
        """The broker's answer with our addresses; remembered if nobody asked this before."""
        if request.api in TELLS_ADDRESSES:
            data = moved(request, data, self.ports, HOST)
        self.first.setdefault(_question(request), data)
        if request.api == "Metadata":
            for row in rewrite.topics(request, data):
                self.rows.setdefault((request.version, row.name), row)
        return data


# ── what becomes of an answer ───────────────────────────────────────────────────────────


def _changed(proxy: Proxy, request: Asked, fault: Fault, data: bytes) -> bytes:
    """The answer with another content."""
    if fault.kind == "stale" and request.api == "Metadata":
        return rewrite.with_topics(request, data, proxy.rows)
    if fault.kind == "stale":
        return data[:4] + proxy.first.get(_question(request), data)[4:]
    if fault.kind == "stranger":
        return struct.pack(">i", request.correlation + 1000) + data[4:]
    if fault.kind == "garbage":
        return data[:4] + (GARBAGE * (len(data) // len(GARBAGE) + 1))[: len(data)]
    if fault.kind == "pause":
        return rewrite.paused(request, data, fault.seconds)
    if fault.kind == "refuse one":
        return rewrite.first_refused(request, data, fault.code)
    if fault.kind == "say":
        return rewrite.said(request, data, fault.code)
    if fault.kind == "say whole":
        return rewrite.said_whole(request, data, fault.code)
    return data


async def _lose(proxy: Proxy, link: Link, coming: Coming, data: bytes) -> None:
    """Nothing comes."""


async def _hold(proxy: Proxy, link: Link, coming: Coming, data: bytes) -> None:
    assert coming.fault is not None
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(proxy.released.wait(), coming.fault.seconds)
    _send(link.near, data)


async def _reset_after(proxy: Proxy, link: Link, coming: Coming, data: bytes) -> None:
    _reset(link.near)


async def _twice(proxy: Proxy, link: Link, coming: Coming, data: bytes) -> None:
    _send(link.near, data)
    _send(link.near, data)


async def _cut(proxy: Proxy, link: Link, coming: Coming, data: bytes) -> None:
    link.near.write(struct.pack(">i", len(data)) + data[: len(data) // 2])
    await link.near.drain()


async def _oversized(proxy: Proxy, link: Link, coming: Coming, data: bytes) -> None:
    link.near.write(OVERSIZED + data)


async def _slow(proxy: Proxy, link: Link, coming: Coming, data: bytes) -> None:
    assert coming.fault is not None
    for byte in struct.pack(">i", len(data)) + data:
        link.near.write(bytes((byte,)))
        await link.near.drain()
        await asyncio.sleep(coming.fault.seconds)


Give = Callable[[Proxy, Link, Coming, bytes], Awaitable[None]]
GIVES: dict[str, Give] = {
    "lose": _lose,
    "late": _lose,
    "hold": _hold,
    "reset after": _reset_after,
    "twice": _twice,
    "cut": _cut,
    "oversized": _oversized,
    "slow": _slow,
}
ENDS = frozenset({"reset after", "cut"})
"""Kinds after which the connection is closed."""


def _refusal(request: Asked, fault: Fault) -> bytes:
    code = 89 if fault.kind == "throttle" else fault.code
    return rewrite.refused(request, code, fault.seconds)


def _question(request: Asked) -> bytes:
    """The request without its correlation id."""
    return request.data[:4] + request.data[8:]


async def _frames(reader: asyncio.StreamReader) -> Any:
    """The frames of one direction until it ends."""
    try:
        while True:
            (length,) = struct.unpack(">i", await reader.readexactly(4))
            yield await reader.readexactly(length)
    except (asyncio.IncompleteReadError, OSError):
        return


def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(struct.pack(">i", len(data)) + data)


def _reset(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


@contextmanager
def proxying(*brokers: int) -> Iterator[Proxy]:
    """Listen before the brokers on these ports until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="proxy", daemon=True)
    thread.start()
    proxy = Proxy(loop)

    async def listen() -> list[asyncio.Server]:
        servers = []
        for broker in brokers:
            server = await asyncio.start_server(
                lambda r, w, broker=broker: proxy.serve(r, w, broker), HOST, 0, limit=LIMIT
            )
            proxy.ports[broker] = server.sockets[0].getsockname()[1]
            servers.append(server)
        return servers

    servers = asyncio.run_coroutine_threadsafe(listen(), loop).result(30)
    try:
        yield proxy
    finally:
        asyncio.run_coroutine_threadsafe(_end(servers), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


async def _end(servers: Sequence[asyncio.Server]) -> None:
    for server in servers:
        server.close()
    ours = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in ours:
        task.cancel()
    await asyncio.gather(*ours, return_exceptions=True)
