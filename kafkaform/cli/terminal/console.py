"""Write text: results to stdout, everything about the run to stderr."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

from msgspec import Struct

from ...core.diagnostics import Diagnostics
from ...core.secret import clean_diagnostics
from .outlet import is_lost
from .signals import discard_typed_ahead, wait_until_readable

DEFAULT_WIDTH, MAX_WIDTH = 100, 120
COLOUR_MODES = ("always", "auto", "never")
"""The values of --color."""
# --color holds for all consoles that the command makes.
_MODE = ContextVar("mode", default="auto")


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
            from ...render.diagnostics import render_diagnostics  # noqa: PLC0415  # only faults need it

            cleaned = clean_diagnostics(diagnostics)
            sys.stderr.write(
                render_diagnostics(cleaned, colour=self.errors_colour, width=self.width)
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
