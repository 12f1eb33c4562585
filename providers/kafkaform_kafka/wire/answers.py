"""What a request with many items comes back with: one answer an item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class Synonym(Struct, frozen=True):
    """What one level says of a config, under this name or another one."""

    name: str
    value: str | None
    source: int


class ConfigEntry(Struct, frozen=True):
    """One config. source: 1 is a topic's own override, 5 the built-in default, others in
    between; below: the value that takes effect without this entry, if it was asked for and the
    broker lists one; sensitive: the broker does not tell the value; synonyms: all that is set at
    any level, if it was asked for, the one that wins first; kind: the protocol's type."""

    name: str
    value: str | None
    source: int
    below: str | None = None
    sensitive: bool = False
    read_only: bool = False
    synonyms: tuple[Synonym, ...] = ()
    kind: int = 0
    doc: str = ""


class ItemAnswer(Struct, frozen=True):
    """One item's answer. code: 0 is success; topic_id and what follows: only where the broker
    gave it, and only to those who may see it."""

    code: int
    message: str | None = None
    topic_id: str | None = None
    partitions: int | None = None
    replication_factor: int | None = None
    configs: tuple[ConfigEntry, ...] | None = None


class ItemAnswers(Struct, frozen=True):
    """items: name, topic id for deletes, or resource and name for configs -> answer; throttle:
    seconds the broker asks to wait."""

    items: Mapping[Any, ItemAnswer]
    throttle: float
