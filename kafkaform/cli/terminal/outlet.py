"""The one way out for text: what a command writes passes the filter of secrets.

While a command runs, standard output and error are `Fenced`, whoever writes to them: we, typer,
rich, a log handler or a library.

A stream that takes no more (closed, a full disk, a reader that left) ends a command only while
that changes nothing outside: `Unwritable`. Once something may have been sent the rest is
dropped, everything is recorded, and the end of the command tells. What standard error does not
take is dropped always: there is nobody to tell.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, TextIO

from msgspec import Struct, field

from ...core.diagnostics import Diagnostic, Severity
from ...core.redaction import KnownSecrets, watch_secrets

ELSEWHERE = "Give the command an output that can be written."
_KEPT = "surrogateescape"


class Unwritable(BaseException):
    """Standard output takes no more. Not an Exception, so that nobody who handles the faults of
    files takes it for one of theirs."""

    def __init__(self, error: OSError) -> None:
        why = "it is closed" if error.errno == errno.EBADF else error.strerror
        super().__init__(f"standard output cannot be written: {why or type(error).__name__}")
        self.error = error

    @property
    def reader_left(self) -> bool:
        """Whoever reads has seen enough: `| head`."""
        return isinstance(self.error, BrokenPipeError)


class Fate(Struct):
    """Of one stream. ends: a fault ends the command; lost: the first fault."""

    ends: bool = False
    lost: OSError | None = None

    def lose(self, stream: Any, error: OSError) -> None:
        """Raises Unwritable if the fault ends the command."""
        self.lost = error
        with suppress(OSError, ValueError):  # else Python would try once more at its end
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
        if self.ends:
            raise Unwritable(error)


class FencedBytes(Struct, eq=False, weakref=True):
    """The bytes below a text stream; those of text pass the filter too."""

    _stream: BinaryIO
    _known: KnownSecrets
    _fate: Fate

    def write(self, data: Any) -> int:
        text = bytes(data).decode("utf-8", _KEPT)
        with _note_faults(self._stream, self._fate):
            self._stream.write(self._known.mask_secrets(text).encode("utf-8", _KEPT))
        return len(data)

    def flush(self) -> None:
        with _note_faults(self._stream, self._fate):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Fenced(Struct, eq=False, weakref=True):
    """A text stream on which no secret can be written.

    It filters each piece by itself: nobody here writes half a word, and each line of a secret that
    has several lines is known as a secret, too. Typer keeps streams in a weak dictionary, so they
    are hashable and can be referred to weakly, as Python's own are.
    """

    _stream: TextIO
    _known: KnownSecrets
    fate: Fate

    def write(self, text: str) -> int:
        cleaned = self._known.mask_secrets(text)
        with _note_faults(self._stream, self.fate):
            try:
                self._stream.write(cleaned)
            except UnicodeEncodeError:  # a terminal or a log that does not take all characters
                code = self._stream.encoding
                self._stream.write(cleaned.encode(code, "backslashreplace").decode(code))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        with _note_faults(self._stream, self.fate):
            self._stream.flush()

    @property
    def buffer(self) -> FencedBytes:
        return FencedBytes(self._stream.buffer, self._known, self.fate)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _note_faults(stream: Any, fate: Fate) -> Iterator[None]:
    """Inside, a fault of the stream is its fate and nobody else's."""
    try:
        yield
    except OSError as error:
        if fate.lost is None:
            fate.lose(stream, error)


class Outlet(Struct, frozen=True):
    """What becomes of both streams of one command."""

    out: Fate = field(default_factory=lambda: Fate(ends=True))
    err: Fate = field(default_factory=Fate)


def outlive_output() -> None:
    """From now on a standard output that takes no more does not end the command: what was sent
    is recorded whoever reads of it."""
    if isinstance(sys.stdout, Fenced):
        sys.stdout.fate.ends = False


@contextmanager
def filter_output() -> Iterator[Outlet]:
    """Inside, secrets are known from the moment that they are read, and both streams fenced."""
    with watch_secrets() as known:
        before, outlet = (sys.stdout, sys.stderr), Outlet()
        fates = (outlet.out, outlet.err)
        sys.stdout, sys.stderr = (
            stream and Fenced(stream, known, fate)
            for stream, fate in zip(before, fates, strict=True)
        )
        try:
            yield outlet
        finally:
            sys.stdout, sys.stderr = before


def is_lost(stream: object) -> bool:
    """Whether what is written there gets nowhere."""
    return isinstance(stream, Fenced) and stream.fate.lost is not None


def make_unwritten_fault(error: OSError, detail: str) -> Diagnostic:
    """That standard output takes no more, and what that means."""
    return Diagnostic(Severity.ERROR, str(Unwritable(error)), detail, advice=ELSEWHERE)
