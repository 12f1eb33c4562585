"""A log in a file: each append is one write that is made durable with fsync. Old lines are in
segments beside it (`audit.sink`), and the file has those that follow.

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
from ..records import LONG, Line, read_line
from ..sink import (
    SEGMENTS,
    SealLimits,
    SegmentManifest,
    Tail,
    Torn,
    find_tail,
    make_overtaken_error,
    read_last_sealed,
    read_manifest,
    read_sealed,
)
from .spans import (
    find_end,
    find_last_append,
    find_line_after,
    find_line_end,
    find_newline,
    read_line_at,
    read_long_line,
    read_seq,
)

MANY = 256
"""Lines that are written together."""
SMALLEST_ROOM = 1 << 20
_NUMBERS = tuple(f".{number}" for number in range(1, 100))


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
        """Segments and checkpoints, in a folder beside the file; a link in its place is refused."""
        return Folder(self._sealed_path, is_named=False)

    @property
    def _sealed_path(self) -> Path:
        return self.path.with_suffix("")

    def lines(self, after: int = 0) -> Iterator[Line]:
        # The file is opened before the manifest is read: what is cut off its beginning has been in
        # the manifest before that.
        with self._explain_errors("cannot read the audit log"), contextlib.ExitStack() as stack:
            file = self._open_for_reading()
            if file is not None:
                stack.enter_context(file)
            manifest = read_manifest(self.sealed)
            yield from read_sealed(self.sealed, manifest, after)
            if file is not None:
                after = max(after, manifest.head.seq)
                file.seek(find_line_after(file, after, self._find_end(file)) if after else 0)
                yield from self._read_lines(file)

    def _read_lines(self, file: BinaryIO) -> Iterator[Line]:
        """The lines from here on that count."""
        end = self._get_cut(file)
        while start := file.readline(LONG):
            line = start[:-1] if start.endswith(b"\n") else read_long_line(file, start)
            if line is None or (end is not None and file.tell() > end):
                return
            yield line

    def tail(self, count: int) -> Tail:
        return find_tail(self, count)

    def pass_over_torn(self) -> None:
        with self._explain_errors("cannot read the audit log"):
            file = self._open_for_reading()
            if file is None:
                return
            with file:
                last = find_line_end(file, file.seek(0, os.SEEK_END))
                end = find_end(file, last, partial(read_line_at, file))
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
            kept = self._folder.glob(".torn-*.tmp")
            for leftover in (*beside, *kept, *self._list_sealed_leftovers()):
                leftover.unlink()
            prove_room(self.path, max(size, SMALLEST_ROOM))

    def _list_sealed_leftovers(self) -> Iterable[Path]:
        if self._sealed_path.is_symlink():  # what is there is not ours
            return ()
        return tuple(self._sealed_path.rglob(".*.tmp"))

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

    # ── sealing ─────────────────────────────────────────────────────────────────────────

    def is_long(self, after: int, limits: SealLimits) -> bool:
        with self._explain_errors("cannot read the audit log"):
            file = self._open_for_reading()
            if file is None:
                return False
            with file:
                end = self._find_end(file)
                return end - find_line_after(file, after, end) > limits.live

    def read_unsealed(self, after: int) -> Iterator[tuple[int, bytes]]:
        with self._explain_errors("cannot read the audit log"):
            file = self._open_for_reading()
            if file is None:
                return
            with file:
                end = self._find_end(file)
                _, spans = find_last_append(file, end, partial(read_line_at, file))
                stop = spans[0][0] if spans else 0
                file.seek(find_line_after(file, after, end))
                while file.tell() < stop:
                    after += 1
                    yield after, file.readline()

    def compare_sealed(self, manifest: SegmentManifest) -> tuple[str, ...]:
        with self._explain_errors("cannot read the audit log"):
            file = self._open_for_reading()
            if file is None:
                return ()
            with file:
                cut = find_line_after(file, manifest.head.seq, self._find_end(file))
                return () if not cut or self._is_sealed(file, cut, manifest) else (self.path.name,)

    def remove_sealed(
        self,
        manifest: SegmentManifest,
        ensure: Callable[[float], None],
        older: Callable[[str], bool],
    ) -> tuple[str, ...]:
        # Readers that have the file open keep it, so there is no grace.
        with self._explain_errors("cannot shorten the audit log"):
            file = self._open_for_reading()
            if file is None:
                return ()
            with file, self._open_alone() as descriptor:
                size, end = os.fstat(descriptor).st_size, self._find_end(file)
                cut = find_line_after(file, manifest.head.seq, end)
                same = _get_id(os.fstat(file.fileno())) == _get_id(os.fstat(descriptor))
                if not 0 < cut < size == end or not same:
                    return ()
                if not self._is_sealed(file, cut, manifest):
                    return (self.path.name,)
                ensure(0.0)
                sealed = self._sealed_path
                for folder in (sealed / SEGMENTS, sealed, self.path.parent):
                    sync_folder(folder)
                self._keep_end(file, cut)
        return ()

    def _is_sealed(self, file: BinaryIO, cut: int, manifest: SegmentManifest) -> bool:
        """Whether the bytes before this offset are the last sealed lines."""
        first = read_seq(file, 0, find_newline(file, 0))
        if first is None:
            return False
        file.seek(0)
        for line in read_sealed(self.sealed, manifest, first - 1):
            whole = read_line(line) + b"\n"
            if file.read(len(whole)) != whole:
                return False
        return file.tell() == cut

    def _keep_end(self, file: BinaryIO, cut: int) -> None:
        """Replace the file at once by one without the bytes before this offset."""
        fresh = self.path.with_name(f".{self.path.name}.{secrets.token_hex(6)}.tmp")
        file.seek(cut)
        _write_pieces(fresh, iter(lambda: file.read(LONG), b""))
        fresh.replace(self.path)
        sync_folder(self.path.parent)
        self._claimed = None

    # ── files ───────────────────────────────────────────────────────────────────────────

    def _open_for_reading(self) -> BinaryIO | None:
        try:
            # Through a link, it could be any file of the user. A pipe of that name must not block.
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
    descriptor = _open_new(path)
    try:
        gathered: list[bytes] = []
        for piece in pieces:
            gathered.append(piece)
            if sum(map(len, gathered)) >= LONG or len(gathered) == MANY:
                _write_whole(descriptor, b"".join(gathered))
                gathered = []
        _write(descriptor, b"".join(gathered))
    finally:
        os.close(descriptor)


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
    _write_whole(descriptor, data)
    os.fsync(descriptor)


def _write_whole(descriptor: int, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        # A write to a file can be short where the disk gets full or a signal arrives.
        remaining = remaining[os.write(descriptor, remaining) :]


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
