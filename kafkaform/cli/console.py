"""Where text goes: results to stdout, everything about the run to stderr."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from ..core.diagnostics import Diagnostics
from ..render.diagnostics import render_diagnostics

MAX_WIDTH = 120


@dataclass(frozen=True, slots=True)
class Console:
    """colour: for stdout; errors_colour: for stderr; interactive: somebody can answer."""

    colour: bool
    errors_colour: bool
    interactive: bool
    width: int

    @staticmethod
    def standard(*, no_color: bool = False, interactive: bool = True) -> Console:
        """As the terminal is: NO_COLOR and pipes switch colour off."""
        plain = no_color or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        return Console(
            sys.stdout.isatty() and not plain,
            sys.stderr.isatty() and not plain,
            interactive and sys.stdin is not None and sys.stdin.isatty(),
            min(shutil.get_terminal_size((100, 24)).columns, MAX_WIDTH),
        )

    def out(self, text: str) -> None:
        """Result text; a final newline is added if it lacks one."""
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()

    def lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.out(line)

    def note(self, text: str) -> None:
        """One line about the run, on stderr."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def diagnostics(self, diagnostics: Diagnostics) -> None:
        """Errors and warnings, on stderr."""
        if diagnostics:
            sys.stderr.write(
                render_diagnostics(diagnostics, colour=self.errors_colour, width=self.width)
            )
            sys.stderr.flush()

    def ask(self, question: str) -> str:
        """The answer typed to a question, or an empty string at the end of input."""
        sys.stderr.write(question)
        sys.stderr.flush()
        return sys.stdin.readline().strip()
