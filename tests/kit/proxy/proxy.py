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
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from . import answers, rewrite
from .answers import Coming, Link, Passed, send
from .arming import HOST, ArmedProxy, reset, running_loop
from .faults import NEVER_ARRIVES, Fault
from .frames import TELLS_ADDRESSES, Asked, asked, moved, with_body

LIMIT = 64 * 1024 * 1024
SECONDS = 60.0
"""What takes longer is a failure of its own."""


@dataclass
class Proxy(ArmedProxy[Fault, Passed, Link]):
    """ports: of each broker -> where the proxy listens for it; leads: broker -> another one that
    its address leads to; opened: those whose TLS handshake was done; rows: what Metadata first said
    of a topic; tamper: changes every answer that no fault concerns; translate: changes every
    request. The rest is that of `ArmedProxy`."""

    ports: dict[int, int] = field(default_factory=dict)
    leads: dict[int, int] = field(default_factory=dict)
    rows: dict[tuple[int, str], Any] = field(default_factory=dict)
    tamper: Callable[[Asked, bytes], bytes] | None = None
    translate: Callable[[Asked], bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{next(iter(self.ports.values()))}"

    def lead_to(self, broker: int) -> None:
        """Break all connections; from now on they lead to this broker, which may be of another
        cluster."""
        first = next(iter(self.ports))
        self.leads[first], self.ports[broker] = broker, self.ports[first]
        self.cut()

    def take(self) -> Counter[str]:
        """How many requests of each API came since the last call, and forget them."""
        return Counter(passed.request.api for passed in self.disarm())

    def _arm(self, faults: Sequence[Fault]) -> None:
        super()._arm(faults)
        self.rows = {}

    def _find_fault(self, request: Asked) -> Fault | None:
        """The fault that strikes this request."""
        return self.meets(lambda fault: fault.concerns(request.api, dry=request.dry))

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
            fault = None if self.silent else self._find_fault(request)
            kind = fault.kind if fault else ""
            arrives = kind not in NEVER_ARRIVES and not self.silent
            passed = Passed(request, arrives, fault)
            self.passed.append(passed)
            if self.silent:
                continue
            if kind == "reset before":
                reset(link.near)
                return
            if kind == "wait" and not await self.may_pass():
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

    async def listen(proxy: Proxy) -> list[asyncio.Server]:
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

    with running_loop("proxy") as loop:
        proxy = Proxy(loop)
        servers = asyncio.run_coroutine_threadsafe(listen(proxy), loop).result(30)
        try:
            yield proxy
        finally:
            asyncio.run_coroutine_threadsafe(_end(servers), loop).result(30)


async def _end(servers: Sequence[asyncio.Server]) -> None:
    for server in servers:
        server.close()
    ours = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in ours:
        task.cancel()
    await asyncio.gather(*ours, return_exceptions=True)
