"""Draws progress events: bars on a terminal, a line now and then in a log, or nothing."""

from __future__ import annotations

from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from ...core import progress as events
from ...core.clock import Clock
from ...render.pace import Pace, render_amount
from ...render.text import inline

if TYPE_CHECKING:
    from .bars import Terminal

LOG_INTERVAL = 10.0
"""Seconds between two lines of one task in a log."""


class Bars:
    """Call it with events while inside its `with` block; safe to call from many threads.

    stream: where to draw, stderr as a rule; quiet: draw nothing (`--quiet`, `--json`).
    """

    def __init__(self, stream: TextIO, clock: Clock, *, quiet: bool = False) -> None:
        self._lock = Lock()
        self._canvas: Terminal | Log | None = None
        if quiet:
            return
        if stream.isatty():
            from .bars import Terminal  # noqa: PLC0415  # rich is slow to load

            self._canvas = Terminal(stream, clock)
        else:
            self._canvas = Log(stream, clock)

    def __call__(self, event: events.Event) -> None:
        if self._canvas is None:
            return
        with self._lock:
            if isinstance(event, events.Message):
                self._canvas.say(inline(event.text))
            else:
                self._canvas.draw(event)

    def __enter__(self) -> Bars:
        return self

    def clear(self) -> None:
        """Take all bars from the terminal; the next event draws them again."""
        if self._canvas is not None:
            with self._lock:
                self._canvas.clear()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._canvas is not None:
            self._canvas.close()


class Log:
    """Lines for a log file: each task at most once in `LOG_INTERVAL`, and when it is done."""

    def __init__(self, stream: TextIO, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock
        self._pace = Pace(clock)
        self._last: dict[str, float] = {}
        self._closed: set[str] = set()

    def close(self) -> None:
        self._stream.flush()

    def clear(self) -> None:
        """A line that was written stays."""

    def say(self, text: str) -> None:
        # The name in front keeps foreign text from the start of a line of a build log.
        self._stream.write(f"kafkaform: {text}\n")
        self._stream.flush()

    def draw(self, event: events.Progress) -> None:
        now, left = self._clock.monotonic(), self._pace.render_time_left(event)
        due = now - self._last.setdefault(event.task, now) >= LOG_INTERVAL
        if event.task in self._closed or not (event.finished or due):
            return
        self._last[event.task] = now
        if event.finished:
            self._closed.add(event.task)
        rest = ", done" if event.finished else left
        self.say(f"{inline(event.label)}: {render_amount(event)}{rest}")
