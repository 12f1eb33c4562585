"""What becomes of an answer: it is kept back, changed, broken off."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from . import rewrite
from .arming import reset
from .faults import Fault
from .frames import Asked

GARBAGE = bytes(range(255, 191, -1))
OVERSIZED = struct.pack(">I", 2**31 - 1)


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


class Memory(Protocol):
    """What the proxy remembers. first: the answer that a question got first; rows: what Metadata
    first said of a topic; released: set when what is held is let go."""

    @property
    def first(self) -> Mapping[bytes, bytes]: ...
    @property
    def rows(self) -> Mapping[tuple[int, str], Any]: ...
    @property
    def released(self) -> asyncio.Event: ...


def send(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write a frame."""
    writer.write(struct.pack(">i", len(data)) + data)


def change(proxy: Memory, request: Asked, fault: Fault, data: bytes) -> bytes:
    """The answer with another content."""
    if fault.kind == "stale" and request.api == "Metadata":
        return rewrite.with_topics(request, data, proxy.rows)
    if fault.kind == "stale":
        return data[:4] + proxy.first.get(question(request), data)[4:]
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


async def _lose(proxy: Memory, link: Link, coming: Coming, data: bytes) -> None:
    """Nothing comes."""


async def _hold(proxy: Memory, link: Link, coming: Coming, data: bytes) -> None:
    assert coming.fault is not None
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(proxy.released.wait(), coming.fault.seconds)
    send(link.near, data)


async def _reset_after(proxy: Memory, link: Link, coming: Coming, data: bytes) -> None:
    reset(link.near)


async def _twice(proxy: Memory, link: Link, coming: Coming, data: bytes) -> None:
    send(link.near, data)
    send(link.near, data)


async def _cut(proxy: Memory, link: Link, coming: Coming, data: bytes) -> None:
    link.near.write(struct.pack(">i", len(data)) + data[: len(data) // 2])
    await link.near.drain()


async def _oversized(proxy: Memory, link: Link, coming: Coming, data: bytes) -> None:
    link.near.write(OVERSIZED + data)


async def _slow(proxy: Memory, link: Link, coming: Coming, data: bytes) -> None:
    assert coming.fault is not None
    for byte in struct.pack(">i", len(data)) + data:
        link.near.write(bytes((byte,)))
        await link.near.drain()
        await asyncio.sleep(coming.fault.seconds)


Give = Callable[[Memory, Link, Coming, bytes], Awaitable[None]]
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


def refusal(request: Asked, fault: Fault) -> bytes:
    code = 89 if fault.kind == "throttle" else fault.code
    return rewrite.refused(request, code, fault.seconds)


def question(request: Asked) -> bytes:
    """The request without its correlation id."""
    return request.data[:4] + request.data[8:]
