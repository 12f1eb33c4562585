"""Draws progress events: bars on a terminal, a line now and then in a log, or nothing."""

from __future__ import annotations

from threading import Lock
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from ..core import progress as events
from ..core.clock import Clock
from .text import inline

LOG_INTERVAL = 10.0
"""Seconds between two lines of one task in a log."""
ENOUGH = 0.05
"""The part of a task that must be done before its pace says anything about the rest."""
SOON = 5
"""Seconds below which nobody needs to be told how long it will take."""


class Bars:
    """Call it with events while inside its `with` block; safe to call from many threads.

    stream: where to draw, stderr as a rule; quiet: draw nothing (`--quiet`, `--json`).
    """

    def __init__(self, stream: TextIO, clock: Clock, *, quiet: bool = False) -> None:
        self._lock = Lock()
        self._canvas: Terminal | Log | None = None
        if not quiet:
            self._canvas = (Terminal if stream.isatty() else Log)(stream, clock)

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


class Terminal:
    """Bars that live only while there is work: each goes when it is done, all go before anybody
    writes to the terminal or asks a question there (`clear`)."""

    def __init__(self, stream: TextIO, clock: Clock) -> None:
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._pace = Pace(clock)

    def close(self) -> None:
        self.clear()

    def clear(self) -> None:
        if self._progress is not None:
            self._progress.stop()
        self._progress = None
        self._tasks.clear()

    def say(self, text: str) -> None:
        self._console.print(text, soft_wrap=True)

    def draw(self, event: events.Progress) -> None:
        if event.finished:
            self._end(event.task)
            return
        if self._progress is None:
            self._progress = _bars(self._console)
        label, task = inline(event.label), self._tasks.get(event.task)
        total, done, text = event.total, event.done, f"{amount(event)}{self._pace.left(event)}"
        if task is None:
            task = self._progress.add_task(label, total=total, completed=done, amount=text)
            self._tasks[event.task] = task
            self._progress.start()
        self._progress.update(task, description=label, total=total, completed=done, amount=text)

    def _end(self, name: str) -> None:
        task = self._tasks.pop(name, None)
        if self._progress is not None and task is not None:
            self._progress.remove_task(task)
        if not self._tasks:
            self.clear()


def _bars(console: Console) -> Progress:
    # Redirected, results on stdout would be wrapped, and lost if stdout is a file.
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        Amount(Column(no_wrap=True)),  # the bar gives way first
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


class Amount(ProgressColumn):
    """`120 of 500 topics`, then the seconds since the task began."""

    def render(self, task: Task) -> Text:
        seconds = int(task.finished_time if task.finished_time is not None else task.elapsed or 0)
        return Text(f"{task.fields.get('amount', '')}  {seconds} s")


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
        now, left = self._clock.monotonic(), self._pace.left(event)
        due = now - self._last.setdefault(event.task, now) >= LOG_INTERVAL
        if event.task in self._closed or not (event.finished or due):
            return
        self._last[event.task] = now
        if event.finished:
            self._closed.add(event.task)
        rest = ", done" if event.finished else left
        self.say(f"{inline(event.label)}: {amount(event)}{rest}")


class Pace:
    """How long each task will take yet, if it goes on as it went so far."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun: dict[str, tuple[int, float]] = {}

    def left(self, event: events.Progress) -> str:
        """`, about 40 s left`; nothing while that would be a guess, or where it is soon over."""
        now = self._clock.monotonic()
        first, begun = self._begun.setdefault(event.task, (event.done, now))
        if event.total is None or event.finished or not event.even:
            return ""
        done, rest = event.done - first, event.total - event.done
        if done <= ENOUGH * (event.total - first) or now <= begun:
            return ""
        seconds = round(rest * (now - begun) / done)
        if seconds < SOON:
            return ""
        return f", about {seconds} s left" if seconds < 120 else f", about {seconds // 60} min left"


def amount(event: events.Progress) -> str:
    """`120 of 500 topics`, or `120 topics` while the total is not known."""
    total = "" if event.total is None or event.finished else f" of {event.total:,}"
    counted = event.done if event.total is None or event.finished else event.total
    unit = event.unit.removesuffix("s") if counted == 1 else event.unit
    return f"{event.done:,}{total} {inline(unit)}".rstrip()
