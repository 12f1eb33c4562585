"""What a request with many items comes back with: one answer an item."""

from __future__ import annotations

from collections.abc import Mapping

from kafkaform.core.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One config. source: 1 is a topic's own override, 5 the built-in default, others in
    between; below: the value that takes effect without this entry, if it was asked for and the
    broker lists one."""

    name: str
    value: str | None
    source: int
    below: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One item's answer. code: 0 is success; topic_id and what follows: only where the broker
    gave it, and only to those who may see it."""

    code: int
    message: str | None = None
    topic_id: str | None = None
    partitions: int | None = None
    replication_factor: int | None = None
    configs: tuple[Entry, ...] | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    """items: name, or topic id for deletes -> answer; throttle: seconds the broker asks to wait."""

    items: Mapping[str, Answer]
    throttle: float
