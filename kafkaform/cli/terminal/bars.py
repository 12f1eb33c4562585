"""Draw progress as bars on a terminal."""

from __future__ import annotations

from threading import Lock
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from ...core import progress as events
from ...core.clock import Clock
from ...core.progress import Pace, render_amount
from ...render.text import inline


class Terminal:
    """The bar of the work in progress. It goes when its task is done, and before anything is
    written to the terminal or asked there (`clear`)."""

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
        total, completed, text = (
            event.total,
            event.done,
            f"{render_amount(event)}{self._pace.render_time_left(event)}",
        )
        if task is None:
            task = self._progress.add_task(label, total=total, completed=completed, amount=text)
            self._tasks[event.task] = task
            self._progress.start()
        self._progress.update(
            task, description=label, total=total, completed=completed, amount=text
        )
        self._show_newest()

    def _show_newest(self) -> None:
        """Show one bar: that of the task that began last, which is a part of the others."""
        if self._progress is not None:
            newest = next(reversed(self._tasks.values()), None)
            for task in self._tasks.values():
                self._progress.update(task, visible=task == newest)

    def _end(self, name: str) -> None:
        task = self._tasks.pop(name, None)
        if self._progress is not None and task is not None:
            self._progress.remove_task(task)
            self._show_newest()
        if not self._tasks:
            self._take_away()


def _make_bars(console: Console) -> Progress:
    # rich would redirect stdout to stderr while bars are drawn: results would be wrapped, and
    # missing in the file that stdout is.
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        Amount(Column(no_wrap=True)),  # on a narrow terminal the bar shrinks before the numbers
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
