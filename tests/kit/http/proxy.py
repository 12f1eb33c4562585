"""The proxy: an asyncio loop in a thread, a listener before a server, with TLS or without, and
faults on request."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..proxy.arming import HOST, ArmedProxy, reset, running_loop
from .faults import NEVER_ARRIVES, Fault
from .messages import LIMIT, Asked, Given, make_answer, read_answer, read_request

GARBAGE = bytes(range(255, 191, -1))
ENDS = frozenset({"cut", "cut head", "endless"})
"""Kinds after which the connection is closed."""


@dataclass
class Passed:
    """One request that came. forwarded: it reached the server; fault: what it met; status: of the
    server's answer, 0 without one; size: bytes of the log that is watched, at that moment."""

    request: Asked
    forwarded: bool
    fault: Fault | None = None
    status: int = 0
    size: int = 0


@dataclass
class Link:
    """One connection: the client's end and the server's."""

    near: asyncio.StreamWriter
    back: asyncio.StreamReader
    far: asyncio.StreamWriter


@dataclass
class Proxy(ArmedProxy[Fault, Passed, Link]):
    """port: where it listens; target: the port of the server; tamper: changes the body of every
    answer that no fault concerns. The rest is that of `ArmedProxy`."""

    target: int = 0
    scheme: str = "http"
    port: int = 0
    tamper: Callable[[Asked, Given], bytes] | None = None

    @property
    def url(self) -> str:
        return f"{self.scheme}://{HOST}:{self.port}"

    def lead_to(self, port: int, *, cut: bool = True) -> None:
        """From now on new connections lead to this port, and after a cut there are no others."""
        self.target = port
        if cut:
            self.cut()

    def take(self) -> Counter[str]:
        """How many requests came with each method since the last call, and forget them."""
        return Counter(passed.request.method for passed in self.disarm())

    def _find_fault(self, request: Asked) -> Fault | None:
        """The fault that strikes this request."""
        return self.meets(lambda fault: fault.concerns(str(request), request.body))

    # ── connections ─────────────────────────────────────────────────────────────────────

    async def serve(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        """One connection from beginning to end."""
        self.opened += 1
        try:
            back, far = await asyncio.open_connection(HOST, self.target, limit=LIMIT)
        except OSError:
            near.close()
            return
        link = Link(near, back, far)
        self.links.append(link)
        try:
            # Only the end of the proxy cancels it, which asyncio would complain of.
            with contextlib.suppress(asyncio.CancelledError, OSError):
                while (request := await read_request(reader)) and await self._pass(request, link):
                    pass
        finally:
            near.close()
            far.close()
            self.links.remove(link)

    async def _pass(self, request: Asked, link: Link) -> bool:
        """What becomes of one request; whether the connection goes on."""
        fault = None if self.silent else self._find_fault(request)
        kind = fault.kind if fault else ""
        passed = Passed(request, kind not in NEVER_ARRIVES and not self.silent, fault)
        self.passed.append(passed)
        if self.silent or kind == "swallow":
            return True
        if fault is not None and kind in ("refuse", "redirect"):
            link.near.write(_invent(fault))
            return True
        if kind in ("reset before", "late"):
            reset(link.near)
            if fault is None or kind == "reset before":
                return False
        if kind == "wait" and not await self.may_pass():
            passed.forwarded = False
            return False
        if fault is not None and kind in ("late", "delay"):
            await asyncio.sleep(fault.seconds)
        answer = await self._forward(passed, link)
        if kind == "late" or answer is None:
            return False
        given = self._change(request, answer, fault)
        if fault is None or not await self._give(given, link, fault):
            link.near.write(given)
            await link.near.drain()
        return kind not in ENDS and not answer.closes and not link.near.is_closing()

    async def _forward(self, passed: Passed, link: Link) -> Given | None:
        if passed.request.writes and self.watched is not None and self.watched.exists():
            passed.size = self.watched.stat().st_size
        link.far.write(passed.request.data)
        answer = await read_answer(link.back, passed.request)
        if answer is not None:
            passed.status = answer.status
            self.first.setdefault(str(passed.request), answer.whole)
        return answer

    def _change(self, request: Asked, answer: Given, fault: Fault | None) -> bytes:
        """The answer as it is given, whole."""
        kind = fault.kind if fault else ""
        if fault is not None and kind == "say":
            return _invent(fault)
        if fault is not None and kind == "tamper":
            return make_answer(answer.status, fault.body, fault.headers)
        if kind == "stale":
            return self.first[str(request)]
        if kind == "garbage":
            size = len(answer.data)
            return answer.head + (GARBAGE * (size // len(GARBAGE) + 1))[:size]
        if fault is None and self.tamper is not None:
            return make_answer(answer.status, self.tamper(request, answer))
        return answer.whole

    async def _give(self, data: bytes, link: Link, fault: Fault) -> bool:
        """Give an answer in a way of its own; False if the kind has none."""
        near, kind = link.near, fault.kind
        if kind == "hold":
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.released.wait(), fault.seconds or None)
            return False
        if kind == "lose":
            return True
        if kind == "reset after":
            reset(near)
        elif kind == "twice":
            near.write(data + data)
        elif kind == "cut head":
            near.write(data[:9])
        elif kind == "cut":
            head = data.index(b"\r\n\r\n") + 4
            near.write(data[: head + (len(data) - head) // 2])
        elif kind == "endless":
            near.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while not near.is_closing():
                near.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
                await near.drain()
        elif kind == "slow":
            for byte in data:
                near.write(bytes((byte,)))
                await near.drain()
                await asyncio.sleep(fault.seconds)
        else:
            return False
        await near.drain()
        return True


def _invent(fault: Fault) -> bytes:
    """The answer that no server gave."""
    if fault.kind == "redirect":
        return make_answer(307, b"", (f"Location: {fault.location}",))
    return make_answer(fault.status, fault.body, fault.headers)


@contextmanager
def proxying(port: int, tls: ssl.SSLContext | None = None) -> Iterator[Proxy]:
    """Listen before the server on this port until the block ends. tls: what new connections are
    shown; None for plain text."""

    async def listen(proxy: Proxy) -> asyncio.Server:
        server = await asyncio.start_server(proxy.serve, HOST, 0, limit=LIMIT, ssl=tls)
        proxy.port = server.sockets[0].getsockname()[1]
        return server

    with running_loop("http proxy") as loop:
        proxy = Proxy(loop, target=port, scheme="https" if tls else "http")
        server = asyncio.run_coroutine_threadsafe(listen(proxy), loop).result(30)
        try:
            yield proxy
        finally:
            asyncio.run_coroutine_threadsafe(_end(server, proxy), loop).result(30)


async def _end(server: asyncio.Server, proxy: Proxy) -> None:
    server.close()
    proxy.abort()
    ours = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in ours:
        task.cancel()
    await asyncio.gather(*ours, return_exceptions=True)
    # What was closed or reset is taken apart in the next rounds of the loop.
    for _ in range(3):
        await asyncio.sleep(0)
