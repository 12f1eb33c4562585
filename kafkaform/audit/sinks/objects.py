"""A log in an object store: each append is one object that must not exist yet.

An object is named by the number of its first line. Two runs that go on from the same line want the
same name, and only one gets it: a run that lost the lock notices that at its next append (the
fence). Nothing is ever changed or removed. A listing only says what to fetch ahead. What it omits
is looked for by name, so that a listing that lags behind hides nothing.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from msgspec import Struct

from ...core.errors import KafkaformError, StorageError
from ...core.objects import ObjectExists, Objects
from ..event import Line, LongLine
from ..sink import Torn, make_overtaken_error

FOLDER = "log"
AT_ONCE = 8
"""How many objects are fetched ahead."""
HELD = 16 << 20
"""How many bytes of them are kept in memory; one object is, however large."""
LONG, ENOUGH = 1 << 20, 1 << 16
"""Bytes from which on a line is handed out piece by piece, and how much of its end is kept."""
MARK, MARKED = f"{FOLDER}/writable", b"kafkaform may write here\n"
EMPTY = (
    " If it never contained a line and no object follows it, delete it. The anchor of the state "
    "shows whether a record is missing then."
)
_SEGMENT = re.compile(rf"{FOLDER}/(\d{{20}})\.jsonl")


class ObjectSink(Struct):
    """A log in an object store."""

    objects: Objects
    """The objects of one state."""
    _next: int | None = None
    """The number of the next line, None before the end was claimed."""
    _broken: KafkaformError | None = None
    """The error of the append that failed."""

    @property
    def location(self) -> str:
        """The folder of the log, for messages."""
        return f"{self.objects.location}/{FOLDER}/"

    # ── reading ─────────────────────────────────────────────────────────────────────────

    def lines(self) -> Iterator[Line]:
        number = 1
        for first, data in self._fetch_segments():
            if first < number:
                raise self._make_damage_error(first, "it overlaps the object before it")
            for missing, segments in self._read_unlisted(number, first):
                number = yield from self._split_lines(missing, segments)
            number = yield from self._split_lines(first, data)
        for first, data in self._read_unlisted(number):
            yield from self._split_lines(first, data)

    def _read_unlisted(self, number: int, first: int | None = None) -> Iterator[tuple[int, bytes]]:
        """The objects from this line on that a listing omitted. first: up to this line, without a
        gap; None: as far as there are any."""
        while number != first:
            data = self._read_segment(number)
            if data is None:
                if first is not None:
                    raise self._make_damage_error(number, "it is missing")
                return
            yield number, data
            number += data.count(b"\n")

    def _split_lines(self, first: int, data: bytes) -> Generator[Line, None, int]:
        """The lines of one object; returns the number of the line after them."""
        number, start = first, 0
        while start < len(data):
            end = data.index(b"\n", start)
            yield self._make_line(first, data, start, end)
            number, start = number + 1, end + 1
        return number

    def _make_line(self, first: int, data: bytes, start: int, end: int) -> Line:
        if end - start < LONG:
            return data[start:end]
        read_part = partial(self._read_part, first, start, end)
        return LongLine(end - start, data[max(start, end - ENOUGH) : end], read_part)

    def _read_part(self, first: int, start: int, end: int) -> Iterator[bytes]:
        data = self._read_segment(first)
        if data is not None:
            yield data[start:end]

    def last(self) -> bytes | None:
        return self._find_last()[0]

    def claim(self) -> bytes | None:
        line, self._next = self._find_last()
        return line

    def _find_last(self) -> tuple[bytes | None, int]:
        """The last line, and the number of the one after it."""
        line, start = None, max(self._list_segments(), default=1)
        for first, data in self._read_unlisted(start):
            start = first + data.count(b"\n")
            line = data[data.rfind(b"\n", 0, -1) + 1 : -1]
        return line, start

    def _list_segments(self) -> Mapping[int, int]:
        """Number of the first line -> bytes, for each object that a listing shows, in order."""
        entries = ((_SEGMENT.fullmatch(e.key), e.size) for e in self.objects.names(FOLDER))
        return dict(sorted((int(match[1]), size) for match, size in entries if match))

    def _fetch_segments(self) -> Iterator[tuple[int, bytes]]:
        """The objects that the listing shows, in order; some are fetched ahead."""
        todo = deque(self._list_segments().items())
        ahead: deque[tuple[int, int, Future[bytes | None]]] = deque()
        pool = ThreadPoolExecutor(AT_ONCE)
        try:
            while todo or ahead:
                while todo and _has_room(ahead, todo[0][1]):
                    first, size = todo.popleft()
                    ahead.append((first, size, pool.submit(self._read_segment, first)))
                first, _, future = ahead.popleft()
                data = future.result()
                if data is None:
                    raise self._make_damage_error(first, "it is listed, but it cannot be read")
                yield first, data
        finally:
            pool.shutdown(cancel_futures=True)

    def _read_segment(self, first: int) -> bytes | None:
        """The lines of an object, None if it does not exist. Raises StorageError."""
        # Each append writes at least one whole line, so an empty object is damage, not an end.
        stored = self.objects.read(_render_key(first))
        if stored is None:
            return None
        if not stored.data:
            raise self._make_damage_error(first, "it is empty", EMPTY)
        if not stored.data.endswith(b"\n"):
            raise self._make_damage_error(first, "it does not end with a whole line")
        return stored.data

    def _make_damage_error(self, first: int, damage: str, hint: str = "") -> StorageError:
        return StorageError(
            f"the audit log is damaged: {self.objects.location}/{_render_key(first)}: {damage}",
            "Restore this object from a backup or from an earlier version in the bucket. kafkaform "
            f"never changes or removes an object of the log.{hint}",
        )

    # ── writing ─────────────────────────────────────────────────────────────────────────

    def append(self, lines: Sequence[bytes]) -> None:
        if self._broken is not None:
            raise self._broken
        try:
            self._append(lines)
        except KafkaformError as error:
            self._broken = error
            raise

    def _append(self, lines: Sequence[bytes]) -> None:
        if self._next is None:
            self.claim()
        number = self._next
        assert number is not None  # `claim` has set it
        try:
            self.objects.create(_render_key(number), b"".join(line + b"\n" for line in lines))
        except ObjectExists:
            raise make_overtaken_error(self.location) from None
        self._next = number + len(lines)

    def pass_over_torn(self) -> None:
        """Nothing to do: an object exists as a whole or not at all."""

    def set_aside(self, seq: int) -> tuple[Torn, ...]:
        """Nothing to do: an object exists as a whole or not at all."""
        return ()

    def check_writable(self, size: int = 0) -> None:
        # A store has room. What can be missing is the right to create objects.
        try:
            self.objects.create(MARK, MARKED)
        except ObjectExists:
            pass
        except StorageError as error:
            raise StorageError(
                f"the audit log could not be written, so nothing is sent: {error.message}",
                error.advice,
            ) from None


def _has_room(ahead: Sequence[tuple[int, int, object]], size: int) -> bool:
    """True if an object of this size can be fetched while those are kept in memory."""
    queued = sum(size for _, size, _ in ahead)
    return not ahead or (len(ahead) < AT_ONCE and queued + size <= HELD)


def _render_key(first: int) -> str:
    return f"{FOLDER}/{first:020d}.jsonl"
