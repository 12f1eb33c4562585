"""The proxy: an asyncio loop in a thread, a listener before each broker, with TLS or without, and
faults on request.

A connection has two pumps. The one of requests decides what becomes of each; the one of answers
takes them in that order, which is the order in which a broker answers. Both listeners' addresses
stand in every answer that tells where brokers are, so that clients stay behind the proxy.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import answers, rewrite
from .answers import Coming, Link, Passed, reset, send
from .faults import NEVER_ARRIVES, Fault
from .frames import TELLS_ADDRESSES, Asked, asked, moved, with_body

HOST = "127.0.0.1"
LIMIT = 64 * 1024 * 1024
SECONDS = 60.0
"""What takes longer is a failure of its own."""


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
class Proxy:
    """ports: of each broker -> where the proxy listens for it; leads: broker -> another one that
    its address leads to; passed: every request since the last `arm`; opened: connections since
    the last `cut`, whose TLS handshake was done; fired: set when a fault strikes; watched: a file
    whose size is noted whenever a writing request is forwarded; tamper: changes every answer that
    no fault concerns; translate: changes every request."""

    loop: asyncio.AbstractEventLoop
    ports: dict[int, int] = field(default_factory=dict)
    leads: dict[int, int] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    opened: int = 0
    passed: list[Passed] = field(default_factory=list)
    fired: threading.Event = field(default_factory=threading.Event)
    armed: list[Armed] = field(default_factory=list)
    silent: bool = False
    first: dict[bytes, bytes] = field(default_factory=dict)
    rows: dict[tuple[int, str], Any] = field(default_factory=dict)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    passes: bool = True
    watched: Path | None = None
    tamper: Callable[[Asked, bytes], bytes] | None = None
    translate: Callable[[Asked], bytes] | None = None

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

    def release(self, *, passes: bool = True) -> None:
        """Let go what is held; a request that waits is passed on, or lost."""
        self._do(self._release, passes)

    def cut(self) -> None:
        """Break all connections, and forget what was."""
        self._do(self._cut)

    def lead_to(self, broker: int) -> None:
        """Break all connections; from now on they lead to this broker, which may be of another
        cluster."""
        first = next(iter(self.ports))
        self.leads[first], self.ports[broker] = broker, self.ports[first]
        self.cut()

    def take(self) -> Counter[str]:
        """How many requests of each API came since the last call, and forget them."""
        return Counter(passed.request.api for passed in self.disarm())

    def _do(self, call: Callable[..., None], *given: Any) -> None:
        done = threading.Event()
        self.loop.call_soon_threadsafe(lambda: (call(*given), done.set()))
        assert done.wait(30)

    def _arm(self, faults: Sequence[Fault]) -> None:
        self.armed = [Armed(fault) for fault in faults]
        self.passed, self.first, self.rows = [], {}, {}
        self.silent = False
        self.fired.clear()
        self._release(True)

    def _release(self, passes: bool) -> None:
        self.passes = passes
        self.released.set()
        self.released = asyncio.Event()

    def _cut(self) -> None:
        for link in self.links:
            link.near.transport.abort()
            link.far.transport.abort()
        self.passed, self.opened = [], 0

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
        self.opened += 1
        if self.silent:
            await self._nothing(reader, near)
            return
        try:
            back, far = await asyncio.open_connection(
                HOST, self.leads.get(broker, broker), limit=LIMIT
            )
        except OSError:
            near.close()
            return
        link = Link(near, far)
        self.links.append(link)
        pumps = [
            asyncio.ensure_future(pump)
            for pump in (self._requests(reader, link), self._answers(back, link))
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
            self.links.remove(link)

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
                reset(link.near)
                return
            if kind == "wait" and not await self._may_pass():
                passed.forwarded = False
                return
            if fault is not None and kind == "late":
                reset(link.near)
                await asyncio.sleep(fault.seconds)
                await self._forward(link, passed, fault)
                await link.due.join()
                return
            if fault is not None and kind in ("refuse", "throttle"):
                link.due.put_nowait(Coming(passed, None, answers.refusal(request, fault)))
            elif kind != "swallow":
                await self._forward(link, passed, fault)

    async def _may_pass(self) -> bool:
        """Wait to be released; whether the request is passed on."""
        await self.released.wait()
        return self.passes

    async def _forward(self, link: Link, passed: Passed, fault: Fault | None) -> None:
        request = passed.request
        data = request.data if self.translate is None else self.translate(request)
        passed.items = rewrite.items(request) if request.writes else ()
        if fault is not None and fault.kind == "delay":
            await asyncio.sleep(fault.seconds)
        if fault is not None and fault.kind == "refuse one":
            data = with_body(request, rewrite.without_first(request))
            passed.items = passed.items[1:]
        if passed.items and self.watched is not None and self.watched.exists():
            passed.size = self.watched.stat().st_size
        send(link.far, data)
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
                send(link.near, data if self.tamper is None else self.tamper(request, data))
            elif (give := answers.GIVES.get(fault.kind)) is not None:
                await give(self, link, coming, data)
                if fault.kind in answers.ENDS:
                    return
            else:
                send(link.near, answers.change(self, request, fault, data))

    def _seen(self, request: Asked, data: bytes) -> bytes:
        """The broker's answer with our addresses; remembered if nobody asked this before."""
        if request.api in TELLS_ADDRESSES:
            data = moved(request, data, self.ports, HOST)
        self.first.setdefault(answers.question(request), data)
        if request.api == "Metadata":
            for row in rewrite.topics(request, data):
                self.rows.setdefault((request.version, row.name), row)
        return data


async def _frames(reader: asyncio.StreamReader) -> Any:
    """The frames of one direction until it ends."""
    try:
        while True:
            (length,) = struct.unpack(">i", await reader.readexactly(4))
            yield await reader.readexactly(length)
    except (asyncio.IncompleteReadError, OSError):
        return


@contextmanager
def proxying(*brokers: int, tls: ssl.SSLContext | None = None) -> Iterator[Proxy]:
    """Listen before the brokers on these ports until the block ends. tls: what new connections
    are shown, which may change meanwhile; None for plain text."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="proxy", daemon=True)
    thread.start()
    proxy = Proxy(loop)

    async def listen() -> list[asyncio.Server]:
        servers = []
        for broker in brokers:
            server = await asyncio.start_server(
                lambda r, w, broker=broker: proxy.serve(r, w, broker),
                HOST,
                0,
                limit=LIMIT,
                ssl=tls,
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
