"""Where a log is kept. A sink stores lines; it does not know what they say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from ..core.errors import Locked
from .line import Line


class Torn(Struct, frozen=True):
    """The rest of an append that a crash cut short. file: where its bytes are kept now;
    length: bytes; sha256: of those bytes."""

    file: str
    length: int
    sha256: str


class Sink(Protocol):
    """An append-only list of lines, written by one process at a time (under the state's lock).

    Must: return from `append` only when the lines are durable; refuse all further appends after
    one failed. Must not: change or remove a whole line, ever.
    """

    @property
    def location(self) -> str:
        """How messages name the log."""

    def lines(self) -> Iterator[Line]:
        """All whole lines without newlines, first one first; a torn last line is left out.
        Memory is bounded: long lines are not held. Raises StorageError."""

    def last(self) -> bytes | None:
        """The last whole line, None if there is none."""

    def claim(self) -> bytes | None:
        """The same; from now on lines are appended behind this one, or not at all."""

    def pass_over_torn(self) -> None:
        """Leave out, from now on, lines at the end that were never durable: a power loss can
        leave any part of the last append, so that whole lines of it are no records. Readers that
        look for tampering do not ask for this. Raises StorageError."""

    def set_aside(self, seq: int) -> tuple[Torn, ...]:
        """Make the log end with a whole line before record `seq` is written: move what a crash
        left behind it away, and name everything so moved that no record tells of yet. Raises
        Locked if another run is writing."""

    def append(self, lines: Sequence[bytes]) -> None:
        """Write lines together, behind the end that was claimed and the lines that were appended
        since, and make them durable. Raises Locked if the log ends otherwise, StorageError."""

    def check_writable(self, size: int = 0) -> None:
        """Refuse before anything is sent if `size` bytes could not be appended.
        Raises StorageError."""


def make_overtaken_error(location: str) -> Locked:
    """Another run has written to this log, although this one has the lock, or had it."""
    return Locked(
        f"{location}: another run goes on with this log since this one read it",
        "Run the command again: it first finds out what this run had under way.",
    )
