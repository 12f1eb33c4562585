"""Render the progress of a task and estimate the time that is left. Alone, because only bars and
progress lines of a terminal use it."""

from __future__ import annotations

from ..core import progress as events
from ..core.clock import Clock
from .text import inline

ENOUGH = 0.05
"""The share of a task that must be done before its pace can predict the rest."""
SOON = 5
"""Seconds; a shorter rest needs no estimate."""


class Pace:
    """Estimates the time left for each task from its pace so far."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun: dict[str, tuple[int, float]] = {}

    def render_time_left(self, event: events.Progress) -> str:
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


def render_end(event: events.Progress) -> str:
    """`1,200 steps, done`, or how its parts ended: `200 applied, 1,000 not sent`."""
    ends = ", ".join(f"{number:,} {inline(end)}" for end, number in event.ends.items() if number)
    return ends or f"{render_amount(event)}, done"


def render_amount(event: events.Progress) -> str:
    """`120 of 500 objects`, or `120 objects` while the total is unknown."""
    total = "" if event.total is None or event.finished else f" of {event.total:,}"
    counted = event.done if event.total is None or event.finished else event.total
    unit = event.unit.removesuffix("s") if counted == 1 else event.unit
    return f"{event.done:,}{total} {inline(unit)}".rstrip()
