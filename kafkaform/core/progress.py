"""Progress events: long work reports them, `cli` draws them, with an estimate of the time that is
left. Alone, because every layer reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec import Struct, field

from .clock import Clock, SystemClock
from .text import inline

PATIENCE, INTERVAL = 2.0, 10.0
"""Seconds for which a slow task says nothing, and then between two lines."""


class Progress(Struct, frozen=True):
    """How far one task is."""

    task: str
    """The id of the task, which is also that of its bar."""
    label: str
    """What is going on."""
    done: int
    """How much is done."""
    total: int | None
    """How much there is to do, None if nobody knows yet."""
    unit: str = ""
    """What is counted: objects, bytes, steps."""
    finished: bool = False
    """The task has ended."""
    even: bool = True
    """The parts take about equally long, so the pace so far predicts the rest."""
    ends: Mapping[str, int] = field(default_factory=dict)
    """How the parts that are done ended -> how many did, where not all end alike: `applied`, `not
    sent`. They add up to `done`."""


class Message(Struct, frozen=True):
    """One line for people while work goes on."""

    text: str
    """The line."""


Event = Progress | Message
Reporter = Callable[[Event], None]


def ignore_event(event: object) -> None:
    """A reporter that reports to nobody."""


_LISTENER: ContextVar[Reporter] = ContextVar("who is told of slow tasks", default=ignore_event)


@contextmanager
def report_slow_tasks(listener: Reporter) -> Iterator[None]:
    """Within the context, what takes long and has no listener of its own is told to this one."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


class SlowTask:
    """A task that says how far it is, but only once it has taken long: nobody must wait for a store
    and wonder whether anything happens."""

    def __init__(
        self, label: str, unit: str, listener: Reporter | None = None, clock: Clock | None = None
    ) -> None:
        """label: what is going on; unit: what is counted; listener: who is told, by default the one
        of `report_slow_tasks`."""
        self._label, self._unit = label, unit
        self._listener = listener or _LISTENER.get()
        self._clock = clock or SystemClock()
        self._due = self._clock.monotonic() + PATIENCE

    def report(self, count: int, total: int) -> None:
        """So much is done."""
        now = self._clock.monotonic()
        if now >= self._due:
            self._due = now + INTERVAL
            self._listener(Message(f"{self._label}: {count:,} of {total:,} {self._unit}"))


ENOUGH = 0.05
"""The share of a task that must be done before its pace can predict the rest."""
SOON = 5
"""Seconds; a shorter rest needs no estimate."""


class Pace:
    """Estimates the time left for each task from its pace so far."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun: dict[str, tuple[int, float]] = {}

    def render_time_left(self, event: Progress) -> str:
        """`, about 40 s left`, or nothing while that would be a guess or the end is near."""
        now = self._clock.monotonic()
        # Counted from the first event: a resumed task starts with work that took no time here.
        first, started = self._begun.setdefault(event.task, (event.done, now))
        if event.total is None or event.finished or not event.even:
            return ""
        completed, remaining = event.done - first, event.total - event.done
        if completed <= ENOUGH * (event.total - first) or now <= started:
            return ""
        seconds = round(remaining * (now - started) / completed)
        if seconds < SOON:
            return ""
        return f", about {seconds} s left" if seconds < 120 else f", about {seconds // 60} min left"


def render_end(event: Progress) -> str:
    """`1,200 steps, done`, or how its parts ended: `200 applied, 1,000 not sent`."""
    ends = ", ".join(f"{number:,} {inline(end)}" for end, number in event.ends.items() if number)
    return ends or f"{render_amount(event)}, done"


def render_amount(event: Progress) -> str:
    """`120 of 500 objects`, or `120 objects` while the total is unknown."""
    total = "" if event.total is None or event.finished else f" of {event.total:,}"
    counted = event.done if event.total is None or event.finished else event.total
    unit = event.unit.removesuffix("s") if counted == 1 else event.unit
    return f"{event.done:,}{total} {inline(unit)}".rstrip()
