"""The answers to a request with many items, one for each item; and topic ids (KIP-516) as Kafka
writes them, 22 characters of base64url."""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Mapping
from sys import intern
from typing import Any

from msgspec import Struct


class Synonym(Struct, frozen=True):
    """The value of a config at one level, under this name or under another one."""

    # Another name, because a topic's `retention.ms` is the brokers' `log.retention.ms` (KIP-226).
    name: str
    value: str | None
    source: int
    """The config source's number in the protocol."""


class ConfigEntry(Struct, frozen=True):
    """One config of a resource."""

    name: str
    value: str | None
    # Whether a resource sets a config itself is decided by the source. `is_default` of old versions
    # is no answer to that: an override with the value of the default is an override.
    source: int
    """1 is a topic's own override, 5 the built-in default, the others are in between."""
    below: str | None = None
    """The value that takes effect without this entry, if synonyms were asked for."""
    sensitive: bool = False
    """The broker does not reveal the value: a password, or a key that it does not know."""
    read_only: bool = False
    synonyms: tuple[Synonym, ...] = ()
    """The values of all levels, the one that wins first, if they were asked for."""
    kind: int = 0
    """The number of its type in the protocol, 0 if it was not asked for."""
    doc: str = ""


class ItemAnswer(Struct, frozen=True):
    """The answer for one item."""

    code: int
    """0 is success."""
    message: str | None = None
    # The rest is filled for a new topic, and only for those who may describe its configs.
    topic_id: str | None = None
    partitions: int | None = None
    replication_factor: int | None = None
    configs: tuple[ConfigEntry, ...] | None = None


class ItemAnswers(Struct, frozen=True):
    """The answers for all items of a request."""

    items: Mapping[Any, ItemAnswer]
    """By name; by topic id for deletes; by resource and name for configs."""
    throttle: float
    """Seconds that the broker asks us to wait."""


_NO_ID = uuid.UUID(int=0)


def id_text(topic_id: uuid.UUID | None) -> str | None:
    """The text of an id; None for the all-zero id, which means that there is none."""
    # Metadata gives this id to a topic that is not there.
    if topic_id is None or topic_id == _NO_ID:
        return None
    return intern(base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode("ascii"))


def parse_id(text: str) -> uuid.UUID:
    """The id that this text means. Raises ValueError."""
    try:
        return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    except (binascii.Error, ValueError):
        raise ValueError(f"{text!r} is not a topic id") from None
