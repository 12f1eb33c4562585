"""Where text goes: results to stdout, everything about the run to stderr."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable

from msgspec import Struct

from ...core.diagnostics import Diagnostics
from ...core.redaction import clean_diagnostics
from .outlet import is_lost
from .signals import wait_until_readable

DEFAULT_WIDTH, MAX_WIDTH = 100, 120


class Console(Struct, frozen=True):
    """colour: for stdout; errors_colour: for stderr; interactive: somebody can answer."""

    colour: bool
    errors_colour: bool
    interactive: bool
    width: int

    @staticmethod
    def make_standard(*, no_color: bool = False, interactive: bool = True) -> Console:
        """As the terminal is: NO_COLOR and pipes switch colour off."""
        plain = no_color or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        return Console(
            sys.stdout.isatty() and not plain,
            sys.stderr.isatty() and not plain,
            interactive and sys.stdin is not None and sys.stdin.isatty(),
            min(shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns, MAX_WIDTH),
        )

    def write(self, text: str) -> None:
        """Result text; a final newline is added if it lacks one."""
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()

    def write_bytes(self, data: bytes) -> None:
        """Result bytes as they are."""
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def write_lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def note(self, text: str) -> None:
        """One line about the run, on stderr."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def show_diagnostics(self, diagnostics: Diagnostics) -> None:
        """Errors and warnings, on stderr."""
        if diagnostics:
            from ...render.diagnostics import render_diagnostics  # noqa: PLC0415  # only faults need it

            told = clean_diagnostics(diagnostics)
            sys.stderr.write(render_diagnostics(told, colour=self.errors_colour, width=self.width))
            sys.stderr.flush()

    def ask(self, question: str) -> str:
        """The answer typed to a question, or an empty string at the end of input."""
        sys.stderr.write(question)
        sys.stderr.flush()
        if is_lost(sys.stderr):  # a question that nobody saw has no answer
            return ""
        if self.interactive:
            wait_until_readable(sys.stdin)
        return sys.stdin.readline().strip()
