"""The seam to the place of a log, and a log in memory for runs on simulated systems.

A sink stores lines and does not know what they say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from ..core.errors import Locked
from ..core.head import GENESIS, Head
from ..core.objects import Objects
from .chain import parse_line_head, read_glances
from .event import Glance, Line
from .segments import ArchivedRecords, SealLimits, SegmentManifest, find_start, read_archived


class Torn(Struct, frozen=True):
    """The rest of an append that a crash cut short."""

    file: str
    """The file that keeps its bytes now."""
    length: int
    """How many bytes it has."""
    sha256: str
    """Their digest, hexadecimal."""


class Tail(NamedTuple):
    """The end of a log."""

    after: int
    """The number of the record before its first line."""
    lines: Iterator[Line]
    """As `Sink.lines` yields them."""
    archived: ArchivedRecords
    """The records that cannot be read here."""

    @property
    def whole(self) -> bool:
        """True if it has all lines that can be read here."""
        return self.after <= self.archived.head.seq


class Sink(Protocol):
    """An append-only list of lines, written by one process at a time, under the state's lock.

    An implementation must return from `append` only when the lines are durable, and must refuse
    all further appends after one has failed. It must never change or remove a whole line.
    """

    @property
    def location(self) -> str:
        """The name of the log in messages."""

    @property
    def sealed(self) -> Objects | None:
        """The segments and checkpoints of the log (`segments`); None for a log that has neither."""

    def lines(self, after: int = 0) -> Iterator[Line]:
        """The whole lines without newlines, the first one first, without a torn last line.

        after: only lines of records with a higher number; what is before them is not read. Memory
        is bounded: long lines are not kept. Raises StorageError.
        """

    def tail(self, count: int) -> Tail:
        """The last `count` lines that are not archived, or some more; all of them if there are
        fewer. Raises StorageError, also while the lines are read."""

    def last(self) -> bytes | None:
        """The last whole line, None if there is none. Raises StorageError."""

    def claim(self) -> bytes | None:
        """The last whole line. From now on lines are appended after it, or not at all."""

    def pass_over_torn(self) -> None:
        """Leave out, from now on, lines at the end that were never durable. Raises StorageError.

        A power loss can leave any part of the last append, so that even whole lines of it are no
        records. Readers that look for tampering do not ask for this.
        """

    def set_aside(self, seq: int) -> tuple[Torn, ...]:
        """Make the log end with a whole line before record `seq` is written.

        What a crash left after the last whole line is moved away. The answer names everything that
        was moved and that no record mentions yet. Raises Locked if another run is writing.
        """

    def append(self, lines: Sequence[bytes]) -> None:
        """Write lines together, after the claimed end and all lines that were appended since, and
        make them durable. Raises Locked if the log ends elsewhere, StorageError."""

    def check_writable(self, size: int = 0) -> None:
        """Raises StorageError if `size` bytes could not be appended. Called before anything is
        sent."""


@runtime_checkable
class SealableSink(Sink, Protocol):
    """A log whose old lines can be sealed in segments; only the run that has the lock asks it."""

    @property
    def sealed(self) -> Objects:
        """The segments and checkpoints of the log."""

    def is_long(self, after: int, limits: SealLimits) -> bool:
        """Whether more lines follow line `after` than a log should have that is not sealed."""

    def read_unsealed(self, after: int) -> Iterator[tuple[int, bytes]]:
        """What can be sealed: lines after line `after` in portions that stay together, each with
        the number of its first line. The last append is left out, because its end may be torn, and
        the next one has to find it. Raises StorageError."""

    def compare_sealed(self, manifest: SegmentManifest) -> tuple[str, ...]:
        """The names of objects in place of sealed lines whose bytes are not those of the segments;
        no reader of the log looks at them. Raises StorageError."""

    def remove_sealed(
        self,
        manifest: SegmentManifest,
        ensure: Callable[[float], None],
        older: Callable[[str], bool],
    ) -> tuple[str, ...]:
        """Remove lines that are in segments, after they were compared with them.

        ensure: raises Locked unless the lock is still ours; older: whether the grace of a segment
        that was sealed at this time has passed. Returns what `compare_sealed` does of those; they
        stay. Raises StorageError, Locked.
        """


def read_present(sink: Sink, anchor: Head | None = None) -> Iterator[Glance]:
    """The records of a log without those that are archived, each checked. anchor: a head that the
    log must contain. Raises StorageError."""
    start = find_start(sink.sealed, anchor)
    return read_glances(sink.lines(start.seq), sink.location, anchor, start)


def find_tail(sink: Sink, count: int) -> Tail:
    """`Sink.tail` of a sink that finds its last line soon."""
    line, archived = sink.last(), read_archived(sink.sealed)
    end = GENESIS if line is None else parse_line_head(line, sink.location)
    after = max(end.seq - count, archived.head.seq)
    return Tail(after, sink.lines(after), archived)


def make_overtaken_error(location: str) -> Locked:
    """The error of a run that has, or had, the lock although another run wrote to its log."""
    return Locked(
        f"{location}: another run has written to this log since this run read it",
        "Run the command again: it first finds out what became of this run's requests.",
    )


class MemorySink:
    """One log, which nobody else can reach."""

    location = "the log in memory"
    sealed = None

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def lines(self, after: int = 0) -> Iterator[Line]:
        return iter(tuple(self._lines[after:]))

    def tail(self, count: int) -> Tail:
        return find_tail(self, count)

    def last(self) -> bytes | None:
        return self._lines[-1] if self._lines else None

    def claim(self) -> bytes | None:
        return self.last()

    def pass_over_torn(self) -> None:
        """Nothing in memory is torn."""

    def set_aside(self, seq: int) -> tuple[Torn, ...]:
        return ()

    def append(self, lines: Sequence[bytes]) -> None:
        self._lines.extend(lines)

    def check_writable(self, size: int = 0) -> None:
        """There is always room."""
