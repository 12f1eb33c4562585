"""A log in a file: each append is one write that is made durable with fsync. Old lines are in
segments beside it (`audit.segments`), and the file has those that follow.

After a failed write or fsync nothing more is appended: the kernel may have dropped the pages that
it could not write, and a second fsync would report success for them.

The log ends after the last record that is certain to be written whole. A power loss can leave any
part of the last append, in any order: a line without its end, but also zeros or garbage before
lines that look sound. None of it was durable, so nothing was sent because of it. It is left out
like a torn line, and kept aside before anything is appended. Records of earlier appends are judged
by the chain alone, so that a changed one is reported as such. All records of one append have the
same time.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from ...core.errors import KafkaformError
from ...core.objects import Folder
from ...core.storage import (
    PRIVATE_FILE,
    make_private_folder,
    make_storage_error,
    prove_room,
    sync_folder,
    write_new,
)
from ..event import LONG, Line, LongLine, digest_line, match_last_members
from ..segments import read_last_sealed, read_manifest, read_sealed
from ..sink import Torn, make_overtaken_error

Span = tuple[int, int]
"""The offsets at which a line begins and ends, without its newline."""


def find_end(file: BinaryIO, last: int, line: Callable[[int, int], Line]) -> int:
    """The offset after the newline of the last sound line.

    last: the offset after the newline of the last line; line: reads the line in a span.
    """
    before, spans = _find_last_append(file, last, line)
    for span in spans:
        content = line(*span)
        if not _is_whole(content):
            return span[0]
        if not _is_successor(before, content):
            # Both records are whole and do not follow each other. No power loss does that, so the
            # readers of the chain have to see it.
            return last
        before = content
    return last


def find_line_end(file: BinaryIO, before: int) -> int:
    """The offset after the last newline before this offset; 0 if there is none."""
    while before > 0:
        start = max(0, before - CHUNK)
        file.seek(start)
        newline = file.read(before - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        before = start
    return 0


def _find_line_after(file: BinaryIO, after: int, end: int) -> int:
    """The offset of the first line whose record has a number greater than `after`. end: that after
    the last line."""
    # Numbers grow from line to line, so a few looks are enough for a log of any size.
    low, high = 0, end
    while low < high:
        start = find_line_end(file, (low + high) // 2)
        stop = _find_newline(file, (low + high) // 2)
        seq = _read_seq(file, start, stop)
        if seq is None:
            # A line that is no record has no number. The readers of the chain have to see it,
            # unless sound records that nobody needs come after it.
            return _scan_for_line_after(file, after, end)
        low, high = (stop + 1, high) if seq <= after else (low, start)
    return low


def _scan_for_line_after(file: BinaryIO, after: int, end: int) -> int:
    start = offset = 0
    while start < end:
        stop = _find_newline(file, start)
        seq = _read_seq(file, start, stop)
        start = stop + 1
        if seq is not None and seq <= after:
            offset = start
    return offset


def _find_newline(file: BinaryIO, offset: int) -> int:
    """The offset of the first newline from here on, which is there."""
    file.seek(offset)
    while piece := file.read(CHUNK):
        if (newline := piece.find(b"\n")) >= 0:
            return offset + newline
        offset += len(piece)
    return offset


def _read_seq(file: BinaryIO, start: int, stop: int) -> int | None:
    """The number of the record in a line, None if it is no record."""
    file.seek(max(start, stop - CHUNK))
    members = match_last_members(file.read(stop - max(start, stop - CHUNK)))
    return int(members["seq"]) if members else None


def _find_last_append(
    file: BinaryIO, end: int, line: Callable[[int, int], Line]
) -> tuple[Line | None, list[Span]]:
    """The lines of the last append, and the line before them, if there is one."""
    spans: list[Span] = []
    time: bytes | None = None
    while end:
        span = (find_line_end(file, end - 1), end - 1)
        content = line(*span)
        written = _get_time(content)
        if None not in (time, written) and written != time:
            return content, spans[::-1]
        time = time or written
        spans.append(span)
        end = span[0]
    return None, spans[::-1]


def _get_time(line: Line) -> bytes | None:
    """The time of the record, None if the line is no record."""
    members = match_last_members(line)
    return members["rest"].rpartition(b'"time":')[2] if members else None


def _is_whole(line: Line) -> bool:
    members = match_last_members(line)
    return members is not None and digest_line(line, members) == members["hash"]


def _is_successor(before: Line | None, line: Line) -> bool:
    """True if this record names the one before it."""
    members = match_last_members(line)
    previous = match_last_members(before) if before is not None else None
    return members is None or previous is None or previous["hash"] == members["prev"]


CHUNK = 1 << 16
SMALLEST_ROOM = 1 << 20
_NUMBERS = tuple(f".{number}" for number in range(1, 100))


class _Descriptor:
    """An open file that is closed when nothing refers to it any more."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


def _read_line(file: BinaryIO, first: int, last: int) -> Line:
    """The whole line at these offsets."""
    file.seek(first)
    start = file.read(min(last - first, LONG))
    return start if len(start) == last - first else _read_long_line(file, start) or start


def _read_long_line(file: BinaryIO, start: bytes) -> LongLine | None:
    """The line that begins with `start`, read to its end; None if it was torn off."""
    size, end = len(start), start[-CHUNK:]
    first = file.tell() - size
    while piece := file.readline(LONG):
        size, end = size + len(piece), (end + piece)[-CHUNK:]
        if piece.endswith(b"\n"):
            # Not by its name: when it is read again, another file can have the name of the log.
            descriptor = _Descriptor(os.dup(file.fileno()))
            return LongLine(size - 1, end[:-1], partial(_read_span, descriptor, first, size - 1))
    return None


def _read_span(file: _Descriptor, first: int, size: int) -> Iterator[bytes]:
    """So many bytes from this offset on, as far as they exist."""
    while size and (piece := os.pread(file.number, min(size, LONG), first)):
        first, size = first + len(piece), size - len(piece)
        yield piece


class _Claim(Struct, frozen=True):
    """The place of the next append."""

    file: tuple[int, int] | None
    """Device and inode of the log, None if there is no file yet."""
    offset: int
    """The offset after its last line."""


class LocalSink(Struct):
    """A log in a local file. What a crash left of an append is kept in `.kafkaform` beside it."""

    path: Path
    """The log file."""
    _broken: KafkaformError | None = None
    """The error of the append that failed."""
    # An offset says nothing about the file that replaced the one in which it was found.
    _end: tuple[tuple[int, int], int] | None = None
    """Device and inode of the log, and the offset after the last line that counts, if there are
    whole lines after it."""
    _claimed: _Claim | None = None
    """The place of the next append."""
    # That the file exists does not say so: the run that made it may have been killed before it
    # could make the name durable.
    _named: bool = False
    """The name of the file is durable in its folder."""

    @property
    def location(self) -> str:
        """The path, for messages."""
        return str(self.path)

    @property
    def _folder(self) -> Path:
        return self.path.parent / ".kafkaform"

    # ── reading ─────────────────────────────────────────────────────────────────────────

    @property
    def sealed(self) -> Folder:
        """Segments and checkpoints, in a folder beside the file."""
        return Folder(self.path.with_suffix(""))

    def lines(self, after: int = 0) -> Iterator[Line]:
        # The file is opened before the manifest is read: what is cut off its beginning has been in
        # the manifest before that.
        with self._explain_errors("cannot read the audit log"):
            file = self._open_for_reading()
            manifest = read_manifest(self.sealed)
            yield from read_sealed(self.sealed, manifest, after)
            if file is not None:
                with file:
                    after = max(after, manifest.head.seq)
                    file.seek(_find_line_after(file, after, self._find_end(file)) if after else 0)
                    yield from self._read_lines(file)

    def _read_lines(self, file: BinaryIO) -> Iterator[Line]:
        """The lines from here on that count."""
        end = self._get_cut(file)
        while start := file.readline(LONG):
            line = start[:-1] if start.endswith(b"\n") else _read_long_line(file, start)
            if line is None or (end is not None and file.tell() > end):
                return
            yield line

    def pass_over_torn(self) -> None:
        with self._explain_errors("cannot read the audit log"):
            file = self._open_for_reading()
            if file is None:
                return
            with file:
                last = find_line_end(file, file.seek(0, os.SEEK_END))
                end = find_end(file, last, partial(_read_line, file))
                self._end = (_get_id(os.fstat(file.fileno())), end) if end < last else None

    def last(self) -> bytes | None:
        return self._find_last()[0]

    def claim(self) -> bytes | None:
        line, self._claimed = self._find_last()
        return line

    def _find_last(self) -> tuple[bytes | None, _Claim]:
        """The last line that counts, and the place of the next one."""
        with self._explain_errors("cannot read the audit log"):
            file = self._open_for_reading()
            claim, line = _Claim(None, 0), None
            if file is not None:
                with file:
                    end = self._find_end(file)
                    start = find_line_end(file, end - 1) if end else 0
                    file.seek(start)
                    line = file.read(end - start - 1) if end else None
                    claim = _Claim(_get_id(os.fstat(file.fileno())), end)
            if line is None:
                line = read_last_sealed(self.sealed, read_manifest(self.sealed))
            return line, claim

    def _find_end(self, file: BinaryIO) -> int:
        """The offset after the last line that counts."""
        cut = self._get_cut(file)
        return cut if cut is not None else find_line_end(file, file.seek(0, os.SEEK_END))

    def _get_cut(self, file: BinaryIO) -> int | None:
        """The offset after which whole lines do not count, None if all count."""
        if self._end is None or self._end[0] != _get_id(os.fstat(file.fileno())):
            return None
        return self._end[1]

    # ── writing ─────────────────────────────────────────────────────────────────────────

    def append(self, lines: Sequence[bytes]) -> None:
        if self._broken is not None:
            raise self._broken
        try:
            with self._explain_errors("cannot write the audit log"):
                self._append(b"".join(line + b"\n" for line in lines))
        except KafkaformError as error:
            self._broken = error
            raise

    def _append(self, data: bytes) -> None:
        if self._claimed is None:
            self.claim()
        claim = self._claimed
        assert claim is not None  # `claim` has set it
        with self._open_alone(create=claim.file is None) as descriptor:
            # Compared under the lock of the log itself: two runs whose state lock failed them must
            # not both append after the same line, or the chain forks.
            status = os.fstat(descriptor)
            if claim.file not in (None, _get_id(status)) or status.st_size != claim.offset:
                raise make_overtaken_error(self.location)
            _write(descriptor, data)
        self._claimed = _Claim(_get_id(status), claim.offset + len(data))
        if not self._named:
            sync_folder(self.path.parent)
            self._named = True

    def set_aside(self, seq: int) -> tuple[Torn, ...]:
        with self._explain_errors("cannot mend the end of the audit log"):
            torn = self._read_torn()
            if torn:
                make_private_folder(self._folder)
                sync_folder(self._folder.parent)
                with self._open_alone() as descriptor:
                    if self._read_torn() != torn:
                        # It was no crash: another run is writing right now.
                        raise make_overtaken_error(self.location)
                    self._keep_torn(torn, seq)
                    _cut_end(descriptor, len(torn))
                self._end = None
            return tuple(_describe_torn(path) for path in self._list_pieces(seq))

    def check_writable(self, size: int = 0) -> None:
        # Room is taken beside the log and given back, including that of runs that were killed.
        task = "the audit log could not be written, so nothing is sent"
        with self._explain_errors(task):
            if self.path.exists() or self.path.is_symlink():
                # A run that was killed between write and fsync leaves records that can be read and
                # are not durable. The state may be anchored at them next, so they are made durable.
                _write_all(self._open_for_writing(create=False), b"")
                sync_folder(self.path.parent)
            beside = self.path.parent.glob(f".{self.path.name}.*.tmp")
            for leftover in (*beside, *self._folder.glob(".torn-*.tmp")):
                leftover.unlink()
            prove_room(self.path, max(size, SMALLEST_ROOM))

    # ── what a crash left ───────────────────────────────────────────────────────────────

    def _read_torn(self) -> bytes:
        file = self._open_for_reading()
        if file is None:
            return b""
        with file:
            file.seek(self._find_end(file))
            return file.read()

    def _list_pieces(self, seq: int) -> list[Path]:
        # More than one, torn-SEQ.1 and so on, if the append of record SEQ, which was to mention the
        # first piece, was itself cut short.
        names = [f"torn-{seq}{end}" for end in ("", *_NUMBERS)]
        return [path for path in map(self._folder.joinpath, names) if path.exists()]

    def _keep_torn(self, torn: bytes, seq: int) -> None:
        pieces = self._list_pieces(seq)
        if any(path.read_bytes() == torn for path in pieces):
            return  # an earlier run kept the piece and was killed before it cut the log
        name = f"torn-{seq}.{len(pieces)}" if pieces else f"torn-{seq}"
        fresh = self._folder / f".{name}.{secrets.token_hex(6)}.tmp"
        write_new(fresh, torn)
        fresh.replace(self._folder / name)
        sync_folder(self._folder)

    # ── what two runs left ──────────────────────────────────────────────────────────────

    def keep_whole(self, name: str) -> Torn:
        """Keep a copy of the log as it is, under this name or the next free one."""
        with self._explain_errors("cannot keep a copy of the audit log"):
            make_private_folder(self._folder)
            sync_folder(self._folder.parent)
            fresh = self._folder / f".torn-{name}.{secrets.token_hex(6)}.tmp"
            with self.path.open("rb") as file:
                _write_pieces(fresh, iter(lambda: file.read(LONG), b""))
            copy = _describe_torn(fresh)
            for path in (self._folder / f"{name}{end}" for end in ("", *_NUMBERS)):
                if path.exists() and _describe_torn(path).sha256 != copy.sha256:
                    continue  # a copy of an earlier mend
                fresh.replace(path)
                sync_folder(self._folder)
                return _describe_torn(path)
            raise OSError(errno.EEXIST, f"there are too many copies called {name}")

    def replace_whole(self, lines: Iterable[bytes]) -> None:
        """Replace the whole log at once. The caller has kept a copy of it."""
        fresh = self.path.with_name(f".{self.path.name}.{secrets.token_hex(6)}.tmp")
        with self._explain_errors("cannot write the audit log"), self._open_alone():
            _write_pieces(fresh, (line + b"\n" for line in lines))
            fresh.replace(self.path)
            sync_folder(self.path.parent)
        self._claimed = None

    # ── files ───────────────────────────────────────────────────────────────────────────

    def _open_for_reading(self) -> BinaryIO | None:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        return os.fdopen(_require_regular(descriptor), "rb")

    def _open_for_writing(self, *, create: bool = True) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        return _require_regular(
            os.open(self.path, flags | (os.O_CREAT if create else 0), PRIVATE_FILE)
        )

    @contextlib.contextmanager
    def _open_alone(self, *, create: bool = False) -> Iterator[int]:
        """The log, open for writing by nobody else. Raises Locked."""
        # The lock of the state says the same, but somebody can remove its file while a run has it.
        descriptor = self._open_for_writing(create=create)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield descriptor
        except BlockingIOError:
            raise make_overtaken_error(self.location) from None
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _explain_errors(self, task: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise make_storage_error(task, self.path, error) from None


def _describe_torn(path: Path) -> Torn:
    data = path.read_bytes()
    return Torn(path.name, len(data), hashlib.sha256(data).hexdigest())


def _require_regular(descriptor: int) -> int:
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file")


def _write_pieces(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a new file piece by piece, and make its bytes durable."""
    with os.fdopen(_open_new(path), "wb") as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())


def _open_new(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    return os.open(path, flags, PRIVATE_FILE)


def _write_all(descriptor: int, data: bytes) -> None:
    """Write, make durable, and close."""
    try:
        _write(descriptor, data)
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    """Write and make durable."""
    remaining = memoryview(data)
    while remaining:
        # A write to a file can be short where the disk gets full or a signal arrives.
        remaining = remaining[os.write(descriptor, remaining) :]
    os.fsync(descriptor)


def _cut_end(descriptor: int, length: int) -> None:
    """Cut so many bytes off the end, and make that durable."""
    status = os.fstat(descriptor)
    # What is no record may be the text of another file that has this name, too. It is not ours.
    if status.st_nlink > 1:
        raise OSError(errno.EMLINK, "the file has another name (a hard link)")
    os.ftruncate(descriptor, status.st_size - length)
    os.fsync(descriptor)


def _get_id(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
