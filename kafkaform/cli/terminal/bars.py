"""Progress as bars on a terminal."""

from __future__ import annotations

from threading import Lock
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from ...core import progress as events
from ...core.clock import Clock
from ...render.pace import Pace, render_amount
from ...render.text import inline


class Terminal:
    """Bars that live only while there is work: each goes when it is done, all go before anybody
    writes to the terminal or asks a question there (`clear`)."""

    def __init__(self, stream: TextIO, clock: Clock) -> None:
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._pace = Pace(clock)
        self._lock = Lock()

    def __call__(self, event: events.Event) -> None:
        """Draw the bar of an event, or print its message above the bars."""
        with self._lock:
            if isinstance(event, events.Message):
                self._console.print(inline(event.text), soft_wrap=True)
            elif event.finished:
                self._end(event.task)
            else:
                self._draw(event)

    def clear(self) -> None:
        """Take all bars from the terminal; the next event draws them again."""
        with self._lock:
            self._take_away()

    def _take_away(self) -> None:
        if self._progress is not None:
            self._progress.stop()
        self._progress = None
        self._tasks.clear()

    def _draw(self, event: events.Progress) -> None:
        if self._progress is None:
            self._progress = _make_bars(self._console)
        label, task = inline(event.label), self._tasks.get(event.task)
        total, done, text = (
            event.total,
            event.done,
            f"{render_amount(event)}{self._pace.render_time_left(event)}",
        )
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
            self._take_away()


def _make_bars(console: Console) -> Progress:
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
    """`120 of 500 objects`, then the seconds since the task began."""

    def render(self, task: Task) -> Text:
        seconds = int(task.finished_time if task.finished_time is not None else task.elapsed or 0)
        return Text(f"{task.fields.get('amount', '')}  {seconds} s")
