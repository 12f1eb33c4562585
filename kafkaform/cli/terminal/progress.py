"""Draw progress events: as bars on a terminal, as a few lines in a log, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, TextIO

from msgspec import Struct, field

from ...core import progress as events
from ...core.clock import Clock
from ...core.progress import Pace, render_amount, render_end
from ...render.text import inline
from .. import terminal

if TYPE_CHECKING:
    from .bars import Terminal
LOG_INTERVAL = 10.0
"""Seconds between two lines of one task in a log."""


@contextmanager
def open_bars(
    stream: TextIO, clock: Clock, *, quiet: bool = False
) -> Iterator[Terminal | Log | Nothing]:
    """Draw on a stream, stderr as a rule, until the block ends: call what it yields with events,
    from any thread.

    quiet: draw nothing (`--quiet`, `--json`).
    """
    bars: Terminal | Log | Nothing
    if quiet:
        bars = Nothing()
    elif stream.isatty():
        bars = terminal.bars.Terminal(stream, clock)
    else:
        bars = Log(stream, Pace(clock), clock)
    try:
        yield bars
    finally:
        bars.clear()


class Nothing(Struct, frozen=True):
    """Draws nothing."""

    def __call__(self, event: events.Event) -> None:
        """Drop an event."""

    def clear(self) -> None:
        """There is nothing to take away."""


class Log(Struct, frozen=True):
    """Lines for a log file: each task at most once in `LOG_INTERVAL`, and when it is done."""

    stream: TextIO
    pace: Pace
    clock: Clock
    last: dict[str, float] = field(default_factory=dict)
    """When each task got its last line, or began."""
    closed: set[str] = field(default_factory=set)
    """The tasks that got their last line."""
    lock: Lock = field(default_factory=Lock)

    def __call__(self, event: events.Event) -> None:
        """Write the line of an event, if one is due."""
        with self.lock:
            if isinstance(event, events.Message):
                self._write(inline(event.text))
                return
            now, time_left = self.clock.monotonic(), self.pace.render_time_left(event)
            due = now - self.last.setdefault(event.task, now) >= LOG_INTERVAL
            if event.task in self.closed or not (event.finished or due):
                return
            self.last[event.task] = now
            if event.finished:
                self.closed.add(event.task)
            progress = render_end(event) if event.finished else f"{render_amount(event)}{time_left}"
            self._write(f"{inline(event.label)}: {progress}")

    def _write(self, text: str) -> None:
        # The name in front keeps foreign text from the start of a line: build servers obey some.
        self.stream.write(f"kafkaform: {text}\n")
        self.stream.flush()

    def clear(self) -> None:
        """A line that was written stays."""
