"""Progress events: long work reports them, `cli` draws them. Alone, because every layer reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field


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
