"""A proxy in front of one broker, with TLS or without, that can hold a request back.

Clients must stay behind it, so it puts its own port where the broker's stands in the two answers
that tell clients where brokers are.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .counting import HOST, TELLS_ADDRESSES

SECONDS = 60.0
"""What takes longer is a failure of its own."""


@dataclass
class Gate:
    """broker: its port; holds: the key of the request to hold until the test lets it go; seen: the
    key of every request; opened: connections whose TLS handshake was done."""

    broker: int
    loop: asyncio.AbstractEventLoop
    port: int = 0
    holds: int | None = None
    passes: bool = True
    seen: list[int] = field(default_factory=list)
    opened: int = 0
    arrived: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    open: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    def hold(self, key: int) -> None:
        """Let the next request of this key wait."""
        self.holds = key
        self.arrived.clear()
        self.released.clear()

    def release(self, *, passes: bool) -> None:
        """Pass the held request on, or lose it."""
        self.passes = passes
        self.released.set()

    def cut(self) -> None:
        """Close all connections, and forget what was seen."""
        done = threading.Event()

        def abort() -> None:
            for writer in list(self.open):
                writer.transport.abort()
            self.seen.clear()
            self.opened = 0
            done.set()

        self.loop.call_soon_threadsafe(abort)
        assert done.wait(SECONDS)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client's connection to its end."""
        self.opened += 1
        self.open.add(writer)
        asked: dict[int, int] = {}
        try:
            back, there = await asyncio.open_connection(HOST, self.broker)
        except OSError:
            writer.transport.abort()
            return
        self.open.add(there)
        await asyncio.gather(
            self._requests(reader, there, asked), self._answers(back, writer, asked)
        )
        self.open -= {writer, there}

    async def _requests(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, asked: dict[int, int]
    ) -> None:
        async for frame in _frames(source):
            key, _version, correlation = struct.unpack_from(">hhi", frame)
            asked[correlation] = key
            self.seen.append(key)
            if key == self.holds:
                self.holds = None
                self.arrived.set()
                await self.loop.run_in_executor(None, self.released.wait, SECONDS)
                if not self.passes:
                    break
            _send(target, frame)
        target.close()

    async def _answers(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, asked: dict[int, int]
    ) -> None:
        real, ours = (HOST.encode() + struct.pack(">i", each) for each in (self.broker, self.port))
        async for frame in _frames(source):
            (correlation,) = struct.unpack_from(">i", frame)
            if asked.pop(correlation, None) in TELLS_ADDRESSES:
                frame = frame.replace(real, ours)
            _send(target, frame)
        target.close()


async def _frames(source: asyncio.StreamReader) -> AsyncIterator[bytes]:
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        while True:
            (size,) = struct.unpack(">i", await source.readexactly(4))
            yield await source.readexactly(size)


def _send(target: asyncio.StreamWriter, frame: bytes) -> None:
    if not target.is_closing():
        target.write(struct.pack(">i", len(frame)) + frame)


@contextmanager
def gated(broker: int, tls: ssl.SSLContext | None = None) -> Iterator[Gate]:
    """Listen in front of the broker on this port until the block ends. tls: what new connections
    are shown, which may change meanwhile; None for plain text."""
    loop = asyncio.new_event_loop()
    gate = Gate(broker, loop)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    made = asyncio.start_server(gate.serve, HOST, 0, ssl=tls)
    server = asyncio.run_coroutine_threadsafe(made, loop).result(SECONDS)
    gate.port = server.sockets[0].getsockname()[1]
    try:
        yield gate
    finally:
        loop.call_soon_threadsafe(server.close)
        gate.release(passes=False)
        gate.cut()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(SECONDS)
