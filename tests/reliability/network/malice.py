"""Answers of a broker that means harm, or is broken: from a real answer, one that is not.

A mutation keeps the frame's length true and the correlation id right, so that the decoder sees
it, unless the length is the point.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from random import Random
from typing import Any

from ...kit.proxy.frames import Asked, answer, answered
from ...kit.proxy.rewrite import error

HEAD = 5
"""Bytes that stay: the correlation id, and a place for tags."""
BIG = 10 * 1024 * 1024
WEEKS = 2**31 - 1
MANY = 2_000_000

Mutation = Callable[[Random, Asked, bytes], bytes]


def _cut(random: Random, request: Asked, data: bytes) -> bytes:
    return data[: random.randint(HEAD, max(HEAD, len(data) - 1))]


def _longer(random: Random, request: Asked, data: bytes) -> bytes:
    return data + random.randbytes(random.randint(1, 99))


def _huge_count(random: Random, request: Asked, data: bytes) -> bytes:
    """An array or a text that says it has two thousand million members, somewhere."""
    at = random.randint(HEAD, len(data))
    count = random.choice((b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\x7f\xff\xff\xff"))
    return data[:at] + count + data[at + random.choice((0, len(count))) :]


def _flipped(random: Random, request: Asked, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random.randint(1, 8)):
        changed[random.randrange(HEAD - 1, len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _zeros(random: Random, request: Asked, data: bytes) -> bytes:
    at = random.randint(HEAD, len(data))
    return data[:at] + bytes(len(data) - at)


def _endless(random: Random, request: Asked, data: bytes) -> bytes:
    """A number of variable size that does not end for a megabyte."""
    return data[: random.randint(HEAD, len(data))] + b"\xff" * 1_000_000


def _noise(random: Random, request: Asked, data: bytes) -> bytes:
    return data[:4] + random.randbytes(len(data))


def _texts(text: Callable[[str], str]) -> Mutation:
    """Every text of the answer, or of one of its rows, changed so."""

    def mutate(random: Random, request: Asked, data: bytes) -> bytes:
        body = answer(request, data)
        return answered(request, _mapped(body, lambda v: text(v) if isinstance(v, str) else v))

    return mutate


def _big(random: Random, request: Asked, data: bytes) -> bytes:
    """One text of 10 MiB."""
    left = [random.randint(1, 6)]

    def grow(value: Any) -> Any:
        left[0] -= isinstance(value, str)
        return "x" * BIG if isinstance(value, str) and left[0] == 0 else value

    return answered(request, _mapped(answer(request, data), grow))


def _rows(change: Callable[[Random, tuple[Any, ...]], tuple[Any, ...]]) -> Mutation:
    """The rows of every list of the answer, changed so."""

    def mutate(random: Random, request: Asked, data: bytes) -> bytes:
        body = answer(request, data)
        lists = {
            field.name: change(random, value)
            for field in fields(body)
            if isinstance(value := getattr(body, field.name), tuple) and value
        }
        return answered(request, replace(body, **lists))

    return mutate


def _many(random: Random, request: Asked, data: bytes) -> bytes:
    """The same rows so often that they are 2 MB."""
    times = max(2, MANY // len(data))
    return _rows(lambda _, rows: rows * times)(random, request, data)


def _codes(random: Random, request: Asked, data: bytes) -> bytes:
    """Errors that nobody knows."""
    code = random.choice((-32768, -2, 134, 999, 32767))
    body = answer(request, data)

    def change(row: Any) -> Any:
        return replace(row, error_code=error(code)) if hasattr(row, "error_code") else row

    lists = {
        field.name: tuple(change(row) for row in value)
        for field in fields(body)
        if isinstance(value := getattr(body, field.name), tuple) and value
    }
    return answered(request, change(replace(body, **lists)))


def _weeks(random: Random, request: Asked, data: bytes) -> bytes:
    """A throttle of 24 days."""
    body = answer(request, data)
    if not hasattr(body, "throttle_time") or request.version < 1:
        return data
    place = data.find(bytes(4), 4)
    return data[:place] + struct.pack(">i", WEEKS) + data[place + 4 :] if place >= 0 else data


MUTATIONS: Mapping[str, Mutation] = {
    "cut": _cut,
    "longer": _longer,
    "huge count": _huge_count,
    "flipped": _flipped,
    "zeros": _zeros,
    "endless": _endless,
    "noise": _noise,
    "control characters": _texts(lambda text: f"\x00\x1b[2J{text}\u202e\r\n::error::"),
    "no texts": _texts(lambda text: ""),
    "one name": _texts(lambda text: "same"),
    "big": _big,
    "rows twice": _rows(lambda random, rows: rows * 2),
    "many rows": _many,
    "no rows": _rows(lambda random, rows: ()),
    "one row less": _rows(lambda random, rows: rows[1:]),
    "codes": _codes,
    "weeks": _weeks,
}


def mutated(kind: str, random: Random, request: Asked, data: bytes) -> bytes:
    """The answer as this mutation makes it; unreadable where it has no place for it."""
    return MUTATIONS[kind](random, request, data)


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with every leaf changed."""
    if is_dataclass(value) and not isinstance(value, type):
        changed = {f.name: _mapped(getattr(value, f.name), change) for f in fields(value)}
        return replace(value, **changed)
    if isinstance(value, tuple):
        return tuple(_mapped(item, change) for item in value)
    return change(value)
