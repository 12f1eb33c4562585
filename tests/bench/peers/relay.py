"""A relay between a tool and one broker: it counts requests, and can delay everything that passes.

The proxy of the tests (`tests/kit/proxy`) decodes every message, which costs more than some tools
need for their whole work. This one reads the eight bytes before a request and nothing else. So
that clients stay behind it, it replaces the broker's address in answers, byte for byte: a port in
four bytes behind the host's name is written the same in all versions of Metadata and
DescribeCluster.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from ...kit.proxy.frames import APIS
from ...kit.proxy.proxy import HOST

HEAD = struct.Struct(">ihh")
"""Length of a frame, API key, version."""
LENGTH = 4
SECONDS = 30.0
_LOGIN = frozenset({"SaslHandshake", "SaslAuthenticate", "ApiVersions"})


class Relay:
    """ports: of each broker -> where the relay listens for it; requests: how many of each API came
    since `take`."""

    def __init__(self, delay: float) -> None:
        self.delay = delay
        """Seconds that a round trip takes longer, half of it in each direction."""
        self.ports: dict[int, int] = {}
        self.transports: set[asyncio.BaseTransport] = set()
        """Of the connections that are open."""
        self._requests: Counter[int] = Counter()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self.ports.values())

    def take(self) -> dict[str, int]:
        """The requests of each API since the last call, by name."""
        taken, self._requests = self._requests, Counter()
        return {APIS.get(key, f"api {key}"): count for key, count in sorted(taken.items())}

    def count(self, key: int) -> None:
        self._requests[key] += 1

    def move_addresses(self, data: bytes) -> bytes:
        """An answer whose brokers are here."""
        for broker, port in self.ports.items():
            data = data.replace(_address(broker), _address(port))
        return data


def count_work(requests: dict[str, int]) -> int:
    """The requests without those of logging in."""
    return sum(count for api, count in requests.items() if api not in _LOGIN)


def _address(port: int) -> bytes:
    return HOST.encode() + port.to_bytes(4, "big")


class Frames:
    """Cuts a stream into frames, each with its length before it."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The frames that this data completes."""
        self._pending += data
        start = 0
        while len(self._pending) - start >= LENGTH:
            end = start + LENGTH + int.from_bytes(self._pending[start : start + LENGTH], "big")
            if len(self._pending) < end:
                break
            yield bytes(self._pending[start:end])
            start = end
        del self._pending[:start]


class _Pipe:
    """One direction: what is written comes out in the same order, so much later."""

    def __init__(self, out: asyncio.Transport, delay: float, start: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._out, self._delay, self._start = out, delay, start
        self._due: deque[tuple[float, bytes | None]] = deque()

    def write(self, data: bytes | None) -> None:
        """None closes it."""
        if not self._delay:
            self._pass(data)
            return
        due = max(self._loop.time(), self._start) + self._delay
        self._due.append((due, data))
        if len(self._due) == 1:
            self._loop.call_at(due, self._flush)

    def _flush(self) -> None:
        now = self._loop.time()
        while self._due and self._due[0][0] <= now:
            self._pass(self._due.popleft()[1])
        if self._due:
            self._loop.call_at(self._due[0][0], self._flush)

    def _pass(self, data: bytes | None) -> None:
        if self._out.is_closing():
            return
        if data is None:
            self._out.close()
        else:
            self._out.write(data)


class _Side(asyncio.Protocol):
    """One end of a connection. read: what is done with each piece of data."""

    def __init__(self, read: Callable[[bytes], None], end: Callable[[], None]) -> None:
        self._read, self._end = read, end

    def data_received(self, data: bytes) -> None:
        self._read(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._end()


class _Client(asyncio.Protocol):
    """A connection of the tool, and the one to the broker that is opened for it."""

    def __init__(self, relay: Relay, broker: int) -> None:
        self._relay, self._broker = relay, broker
        self._early: list[bytes] = []
        self._to_broker: _Pipe | None = None
        self._requests, self._answers = Frames(), Frames()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        loop = asyncio.get_running_loop()
        self._near: Any = transport
        # TCP's handshake costs a round trip before the first request can be sent.
        self._begun = loop.time() + self._relay.delay
        self._relay.transports.add(transport)
        self._task = loop.create_task(self._connect())

    async def _connect(self) -> None:
        loop, half = asyncio.get_running_loop(), self._relay.delay / 2
        back = _Pipe(self._near, half, self._begun)
        try:
            far, _ = await loop.create_connection(
                lambda: _Side(lambda data: self._answer(back, data), lambda: back.write(None)),
                HOST,
                self._broker,
            )
        except OSError:
            self._near.close()
            return
        self._far = far
        self._relay.transports.add(far)
        self._to_broker = _Pipe(far, half, self._begun)
        for data in self._early:
            self._to_broker.write(data)

    def data_received(self, data: bytes) -> None:
        for frame in self._requests.feed(data):
            self._relay.count(HEAD.unpack_from(frame)[1])
            if self._to_broker is None:
                self._early.append(frame)
            else:
                self._to_broker.write(frame)

    def _answer(self, back: _Pipe, data: bytes) -> None:
        for frame in self._answers.feed(data):
            back.write(self._relay.move_addresses(frame))

    def connection_lost(self, error: Exception | None) -> None:
        self._relay.transports.discard(self._near)
        if self._to_broker is not None:
            self._to_broker.write(None)
            self._relay.transports.discard(self._far)


@contextmanager
def relaying(brokers: Sequence[int], delay: float = 0.0) -> Iterator[Relay]:
    """Listen before the brokers on these ports until the block ends. delay: see `Relay`."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="relay", daemon=True)
    thread.start()
    relay = Relay(delay)

    async def listen() -> list[asyncio.Server]:
        servers = []
        for broker in brokers:
            server = await loop.create_server(partial(_Client, relay, broker), HOST, 0)
            relay.ports[broker] = server.sockets[0].getsockname()[1]
            servers.append(server)
        return servers

    async def end(servers: Sequence[asyncio.Server]) -> None:
        for server in servers:
            server.close()
        for transport in tuple(relay.transports):
            transport.close()
        ours = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in ours:
            task.cancel()
        await asyncio.gather(*ours, return_exceptions=True)

    servers = asyncio.run_coroutine_threadsafe(listen(), loop).result(SECONDS)
    try:
        yield relay
    finally:
        asyncio.run_coroutine_threadsafe(end(servers), loop).result(SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(SECONDS)
        loop.close()
