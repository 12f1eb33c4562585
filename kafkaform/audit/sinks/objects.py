"""A log in an object store: each append is one object that must not exist yet.

An object is named by the number of its first line. Two runs that go on from the same line want the
same name, and only one gets it: a run that lost the lock notices that at its next append (the
fence). No object is ever changed. Old ones are removed after their lines were sealed in a segment
(`audit.sink`), and readers take these lines from there. A listing only says what to fetch
ahead. What it omits is looked for by name, so that a listing that lags behind hides nothing.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain, islice

from msgspec import Struct

from ...core.errors import KafkaformError, StorageError
from ...core.objects import ObjectExists, Objects, Subfolder
from ...core.progress import SlowTask
from ..records import Line, split_lines
from ..sink import (
    ArchivedRecords,
    SealLimits,
    Segment,
    SegmentManifest,
    Tail,
    Torn,
    make_overtaken_error,
    read_last_sealed,
    read_manifest,
    read_sealed,
    read_segment,
)

FOLDER = "log"
AT_ONCE = 32
"""How many objects are read, or removed, at the same time."""
HELD = 16 << 20
"""How many bytes of them are kept in memory; one object is, however large."""
MARK, MARKED = f"{FOLDER}/writable", b"kafkaform may write here\n"
EMPTY = (
    " If it never contained a line and no object follows it, delete it. The anchor of the state "
    "shows whether a record is missing then."
)
_PIECE = re.compile(rf"{FOLDER}/(\d{{20}})\.jsonl")


class _Gone(Exception):
    """A piece is listed, but it is not there any more."""

    def __init__(self, first: int, number: int) -> None:
        """first: the number of its first line; number: of the next line that is needed."""
        super().__init__()
        self.first, self.number = first, number


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

    @property
    def sealed(self) -> Objects:
        """Segments and checkpoints, in the folder of the log."""
        return Subfolder(self.objects, FOLDER)

    # ── reading ─────────────────────────────────────────────────────────────────────────

    def lines(self, after: int = 0) -> Iterator[Line]:
        # Pieces are listed before the manifest is read: it has all that was sealed and removed
        # before the listing. What is removed after that is found in the manifest as it is then.
        pieces = self._list_pieces(after)
        yield from self._read_lines(after, read_manifest(self.sealed), pieces)

    def tail(self, count: int) -> Tail:
        # What is not sealed yet stays for a grace afterwards, so the manifest can be read first.
        manifest = read_manifest(self.sealed)
        pieces = self._list_pieces(manifest.head.seq)
        archived = ArchivedRecords(manifest.archived, manifest.archive)
        end = max(pieces, default=manifest.head.seq)
        number = max(end - count, archived.head.seq) + 1
        # From the beginning of a piece on: the same listing then shows all that is needed.
        start = max((first for first in pieces if first <= number), default=number)
        return Tail(start - 1, self._read_lines(start - 1, manifest, pieces), archived)

    def _read_lines(
        self, after: int, manifest: SegmentManifest, pieces: Mapping[int, int]
    ) -> Iterator[Line]:
        """The lines after this number. pieces: a listing that has, or omits, those that begin after
        it and are not sealed."""
        number = after + 1
        task = SlowTask(f"Reading the audit log from {self.location}", "objects")
        while True:
            if number <= manifest.head.seq:
                total = len(manifest.segments) + sum(f > manifest.head.seq for f in pieces)
                report = partial(task.report, total=total)
                yield from read_sealed(self.sealed, manifest, number - 1, report)
                number = manifest.head.seq + 1
            elif after > manifest.head.seq and number not in pieces:
                # The line is in the middle of a piece, or the log ends before it.
                pieces = self._list_pieces(manifest.head.seq)
            unsealed = {f: size for f, size in pieces.items() if f > manifest.head.seq}
            try:
                yield from self._read_pieces(unsealed, number, task)
                return
            except _Gone as gone:
                first, number = gone.first, gone.number
            manifest = read_manifest(self.sealed)
            if manifest.head.seq < first:
                raise self._make_damage_error(first, "it is listed, but it cannot be read")

    def _read_pieces(
        self, listed: Mapping[int, int], number: int, task: SlowTask
    ) -> Iterator[Line]:
        """The lines from this number on. listed: first line -> bytes of each piece that a listing
        shows. Raises _Gone."""
        start = max((first for first in listed if first <= number), default=number)
        wanted, number = number, start
        needed = {first: size for first, size in listed.items() if first >= start}
        for count, (first, data) in enumerate(self._fetch_pieces(needed), 1):
            task.report(count, len(needed))
            if first < number:
                raise self._make_damage_error(first, "it overlaps the object before it")
            if data is None:
                raise _Gone(first, max(number, wanted))
            for unlisted, lines in chain(self._read_unlisted(number, first), ((first, data),)):
                yield from self._split_lines(unlisted, lines, wanted)
                number = unlisted + lines.count(b"\n")
        for first, data in self._read_unlisted(number):
            yield from self._split_lines(first, data, wanted)

    def _read_unlisted(self, number: int, first: int | None = None) -> Iterator[tuple[int, bytes]]:
        """The objects from this line on that a listing omitted. first: up to this line, without a
        gap; None: as far as there are any."""
        while number != first:
            data = self._read_piece(number)
            if data is None:
                if first is not None:
                    raise self._make_damage_error(number, "it is missing")
                return
            yield number, data
            number += data.count(b"\n")

    def _split_lines(self, first: int, data: bytes, wanted: int) -> Iterator[Line]:
        """The lines of one object from the wanted number on."""
        lines = split_lines(data, partial(self._read_piece, first))
        yield from islice(lines, max(0, wanted - first), None)

    def last(self) -> bytes | None:
        return self._find_last()[0]

    def claim(self) -> bytes | None:
        line, self._next = self._find_last()
        return line

    def _find_last(self) -> tuple[bytes | None, int]:
        """The last line, and the number of the one after it."""
        manifest = read_manifest(self.sealed)
        line, start = None, max(self._list_pieces(manifest.head.seq), default=manifest.head.seq + 1)
        for first, data in self._read_unlisted(start):
            start = first + data.count(b"\n")
            line = data[data.rfind(b"\n", 0, -1) + 1 : -1]
        return line if line is not None else read_last_sealed(self.sealed, manifest), start

    def _list_pieces(self, after: int) -> Mapping[int, int]:
        """Number of the first line -> bytes, for each object that a listing shows, in order; only
        those that begin after this line."""
        names = self.objects.names(FOLDER, render_key(after) if after else None)
        entries = ((_PIECE.fullmatch(entry.key), entry.size) for entry in names)
        return dict(sorted((int(match[1]), size) for match, size in entries if match))

    def _fetch_pieces(self, listed: Mapping[int, int]) -> Iterator[tuple[int, bytes | None]]:
        """These objects in order, None for one that is gone; some are fetched ahead."""
        todo = deque(listed.items())
        ahead: deque[tuple[int, int, Future[bytes | None]]] = deque()
        pool = ThreadPoolExecutor(AT_ONCE)
        try:
            while todo or ahead:
                while todo and _has_room(ahead, todo[0][1]):
                    first, size = todo.popleft()
                    ahead.append((first, size, pool.submit(self._read_piece, first)))
                first, _, future = ahead.popleft()
                yield first, future.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _read_piece(self, first: int) -> bytes | None:
        """The lines of an object, None if it does not exist. Raises StorageError."""
        # Each append writes at least one whole line, so an empty object is damage, not an end.
        stored = self.objects.read(render_key(first))
        if stored is None:
            return None
        if not stored.data:
            raise self._make_damage_error(first, "it is empty", EMPTY)
        if not stored.data.endswith(b"\n"):
            raise self._make_damage_error(first, "it does not end with a whole line")
        return stored.data

    def _make_damage_error(self, first: int, damage: str, hint: str = "") -> StorageError:
        return StorageError(
            f"the audit log is damaged: {self.objects.location}/{render_key(first)}: {damage}",
            "Restore this object from a backup or from an earlier version in the bucket. kafkaform "
            f"never changes an object of the log.{hint}",
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
            self.objects.create(render_key(number), b"".join(line + b"\n" for line in lines))
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

    # ── sealing ─────────────────────────────────────────────────────────────────────────

    def is_long(self, after: int, limits: SealLimits) -> bool:
        return len(self._list_pieces(after)) > limits.pieces

    def read_unsealed(self, after: int) -> Iterator[tuple[int, bytes]]:
        listed = [*self._list_pieces(after).items()][:-1]
        number = after + 1
        for first, data in self._fetch_pieces(dict(listed)):
            # Nothing is sealed beyond a gap: the listing may lag behind, and if it does not, the
            # next reader of the log says what is missing.
            if first != number or data is None:
                return
            yield first, data
            number += data.count(b"\n")

    def compare_sealed(self, manifest: SegmentManifest) -> tuple[str, ...]:
        return tuple(self._walk_strays(manifest, lambda segment: True, None))

    def remove_sealed(
        self,
        manifest: SegmentManifest,
        ensure: Callable[[float], None],
        older: Callable[[str], bool],
    ) -> tuple[str, ...]:
        return tuple(self._walk_strays(manifest, lambda segment: older(segment.time), ensure))

    def _walk_strays(
        self,
        manifest: SegmentManifest,
        wanted: Callable[[Segment], bool],
        ensure: Callable[[float], None] | None,
    ) -> Iterator[str]:
        """The names of objects that are in place of sealed lines and have other bytes. wanted: look
        only at these segments; ensure: remove all objects with the same bytes, while the lock is
        still ours; None: remove nothing."""
        listed = [first for first in self._list_pieces(0) if first <= manifest.head.seq]
        task = SlowTask(f"Comparing {self.location} with its segments", "objects")
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for segment in manifest.segments:
                firsts = [first for first in listed if segment.first <= first <= segment.last]
                if not firsts or segment.archived is not None or not wanted(segment):
                    continue
                # Read once more: where these objects are removed, nothing else has their lines.
                lines = read_segment(self.sealed, segment)
                ends = [-1, *(match.start() for match in re.finditer(b"\n", lines))]
                starts = [ends[first - segment.first] + 1 for first in firsts]
                for begin in range(0, len(firsts), AT_ONCE):
                    if ensure is not None:
                        ensure(0.0)
                    task.report(listed.index(firsts[begin]), len(listed))
                    chosen = slice(begin, begin + AT_ONCE)
                    check = partial(self._check_piece, lines, removes=ensure is not None)
                    yield from filter(None, pool.map(check, starts[chosen], firsts[chosen]))

    def _check_piece(self, lines: bytes, start: int, first: int, *, removes: bool) -> str | None:
        """The name of an object whose bytes are not those of the lines from this offset on; None if
        they are, or if it is gone."""
        stored = self.objects.read(render_key(first))
        if stored is None:
            return None
        if not stored.data.endswith(b"\n") or not lines.startswith(stored.data, start):
            return render_key(first)
        if removes:
            self.objects.delete(render_key(first))
        return None


def _has_room(ahead: Sequence[tuple[int, int, object]], size: int) -> bool:
    """True if an object of this size can be fetched while those are kept in memory."""
    queued = sum(size for _, size, _ in ahead)
    return not ahead or (len(ahead) < AT_ONCE and queued + size <= HELD)


def render_key(first: int) -> str:
    """The name of the object whose first line has this number."""
    return f"{FOLDER}/{first:020d}.jsonl"
