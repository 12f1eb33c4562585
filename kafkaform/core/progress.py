"""Typed progress events: long work reports, `cli` draws."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct


class Progress(Struct, frozen=True):
    """task: stable id of one bar; label: what is going on; total: None = not known yet;
    unit: "objects", "bytes", "steps"; done and finished move the bar; even: its parts take about
    as long as each other, so the pace so far tells how long the rest takes."""

    task: str
    label: str
    done: int
    total: int | None
    unit: str = ""
    finished: bool = False
    even: bool = True


class Message(Struct, frozen=True):
    """One line for people while work goes on."""

    text: str


Event = Progress | Message
Reporter = Callable[[Event], None]


def ignore_event(event: object) -> None:
    """Reports to nobody."""
