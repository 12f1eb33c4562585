"""How far a task is, and how long it will take yet."""

from __future__ import annotations

from ..core import progress as events
from ..core.clock import Clock
from .text import inline

ENOUGH = 0.05
"""The part of a task that must be done before its pace says anything about the rest."""
SOON = 5
"""Seconds below which nobody needs to be told how long it will take."""


class Pace:
    """How long each task will take yet, if it goes on as it went so far."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun: dict[str, tuple[int, float]] = {}

    def render_time_left(self, event: events.Progress) -> str:
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


def render_amount(event: events.Progress) -> str:
    """`120 of 500 objects`, or `120 objects` while the total is not known."""
    total = "" if event.total is None or event.finished else f" of {event.total:,}"
    counted = event.done if event.total is None or event.finished else event.total
    unit = event.unit.removesuffix("s") if counted == 1 else event.unit
    return f"{event.done:,}{total} {inline(unit)}".rstrip()
