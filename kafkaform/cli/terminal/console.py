"""Write text: results to stdout, everything about the run to stderr, and no secret to either.

While a command runs, standard output and error are `Fenced`, whoever writes to them: kafkaform,
typer, rich, a log handler or a library.

If standard output fails (closed, a full disk, a reader that left), the command ends at once, as
long as it has changed nothing (`Unwritable`). After it can have sent something, the rest of its
output is dropped, everything is recorded, and its end reports the loss. If standard error fails,
its text is always dropped, because there is no place to report it.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, BinaryIO, TextIO

from msgspec import Struct, field

from ... import render
from ...core.diagnostics import Diagnostic, Diagnostics, Severity
from ...core.secret import KnownSecrets, clean_diagnostics, watch_secrets
from .signals import discard_typed_ahead, wait_until_readable

ELSEWHERE = "Give the command an output that can be written."
_KEPT = "surrogateescape"

DEFAULT_WIDTH, MAX_WIDTH = 100, 120
COLOUR_MODES = ("always", "auto", "never")
"""The values of --color."""
# --color holds for all consoles that the command makes.
_MODE = ContextVar("mode", default="auto")


class Unwritable(BaseException):
    """Standard output cannot be written."""

    # Not an Exception, so that no handler for errors of files catches it.

    def __init__(self, error: OSError) -> None:
        cause = "it is closed" if error.errno == errno.EBADF else error.strerror
        super().__init__(f"standard output cannot be written: {cause or type(error).__name__}")
        self.error = error

    @property
    def reader_left(self) -> bool:
        """The reader has closed its pipe, as `head` does."""
        return isinstance(self.error, BrokenPipeError)


class Fate(Struct):
    """What happens to one stream."""

    ends: bool = False
    """An error of the stream ends the command."""
    write_error: OSError | None = None
    """The first error of the stream."""

    def lose(self, stream: Any, error: OSError) -> None:
        """Give the stream up. Raises Unwritable if that ends the command."""
        self.write_error = error
        # Python flushes the buffer once more at its exit, would fail again and exit with 120.
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
        if self.ends:
            raise Unwritable(error)


class FencedBytes(Struct, frozen=True, eq=False, weakref=True):
    """The bytes of a text stream; they pass the filter as well."""

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


class Fenced(Struct, frozen=True, eq=False, weakref=True):
    """A text stream on which no secret can be written.

    It filters each piece separately: no code here writes half a word, and each line of a secret
    with several lines counts as a secret, too.
    """

    # Typer keeps streams in a weak dictionary, so they are hashable and can be referred to weakly.

    _stream: TextIO
    _known: KnownSecrets
    fate: Fate

    def write(self, text: str) -> int:
        cleaned = self._known.mask_secrets(text)
        with _note_faults(self._stream, self.fate):
            try:
                self._stream.write(cleaned)
            except UnicodeEncodeError:  # the encoding of the terminal or log lacks a character
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
    """Record an error of the stream inside the block, and end the command if it has to."""
    try:
        yield
    except OSError as error:
        if fate.write_error is None:
            fate.lose(stream, error)


class Outlet(Struct, frozen=True):
    """The fate of both streams of one command."""

    out: Fate = field(default_factory=lambda: Fate(ends=True))
    err: Fate = field(default_factory=Fate)


def outlive_output() -> None:
    """From now on, an error of standard output does not end the command, because what it sends has
    to be recorded, whether or not the output can be read."""
    if isinstance(sys.stdout, Fenced):
        sys.stdout.fate.ends = False


@contextmanager
def filter_output() -> Iterator[Outlet]:
    """Mask secrets in both streams inside the block, from the moment that they are read."""
    with watch_secrets() as secrets:
        before, outlet = (sys.stdout, sys.stderr), Outlet()
        fates = (outlet.out, outlet.err)
        sys.stdout, sys.stderr = (
            stream and Fenced(stream, secrets, fate)
            for stream, fate in zip(before, fates, strict=True)
        )
        try:
            yield outlet
        finally:
            sys.stdout, sys.stderr = before


def is_lost(stream: object) -> bool:
    """Whether the stream has failed, so that its text is dropped."""
    return isinstance(stream, Fenced) and stream.fate.write_error is not None


def make_unwritten_fault(error: OSError, detail: str) -> Diagnostic:
    """The error that standard output cannot be written, and what that means."""
    return Diagnostic(Severity.ERROR, str(Unwritable(error)), detail, advice=ELSEWHERE)


@contextmanager
def set_colour_mode(mode: str) -> Iterator[None]:
    """Make consoles of this mode, one of COLOUR_MODES, inside the block."""
    before = _MODE.set(mode)
    try:
        yield
    finally:
        _MODE.reset(before)


def _uses_colour(mode: str, stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether to write colours to a stream: the flag decides, then NO_COLOR (no-color.org), then
    FORCE_COLOR (force-color.org) and CLICOLOR_FORCE, then CLICOLOR (bixense.com/clicolors), then
    the terminal. Empty variables do not count."""
    if mode != "auto":
        return mode == "always"
    if environ.get("NO_COLOR"):
        return False
    if any(environ.get(name, "") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return environ.get("CLICOLOR") != "0" and environ.get("TERM") != "dumb" and stream.isatty()


class Console(Struct, frozen=True):
    """The standard streams of one command."""

    colour: bool
    """Colour is allowed on stdout."""
    errors_colour: bool
    """Colour is allowed on stderr."""
    interactive: bool
    """Somebody can answer questions."""
    width: int
    """Columns of the terminal."""

    @staticmethod
    def make_standard(*, no_color: bool = False, interactive: bool = True) -> Console:
        """The console of this process."""
        mode = "never" if no_color else _MODE.get()
        return Console(
            _uses_colour(mode, sys.stdout, os.environ),
            _uses_colour(mode, sys.stderr, os.environ),
            interactive and sys.stdin is not None and sys.stdin.isatty(),
            min(shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns, MAX_WIDTH),
        )

    def write(self, text: str) -> None:
        """Write result text, with a final newline."""
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()

    def write_bytes(self, data: bytes) -> None:
        """Write result bytes as they are."""
        # Text that is still in the buffer above was written first, so it must come first.
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def write_lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def note(self, text: str) -> None:
        """Write one line about the run to stderr."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def show_diagnostics(self, diagnostics: Diagnostics) -> None:
        """Write errors and warnings to stderr."""
        if diagnostics:
            cleaned = clean_diagnostics(diagnostics)
            sys.stderr.write(
                render.diagnostics.render_diagnostics(
                    cleaned, colour=self.errors_colour, width=self.width
                )
            )
            sys.stderr.flush()

    def ask(self, question: str) -> str:
        """Ask a question and return the answer, "" at the end of input.

        What was typed on a terminal before the question does not count.
        """
        if self.interactive:
            discard_typed_ahead(sys.stdin)
        sys.stderr.write(question)
        sys.stderr.flush()
        if is_lost(sys.stderr):  # a question that nobody saw has no answer
            return ""
        if self.interactive:
            wait_until_readable(sys.stdin)
        return sys.stdin.readline().strip()
