"""The world that every tool is asked for: topics with configs, ACLs and quotas, from a few numbers.

A size is written `1000x3` (topics x partitions), `10000acls`, `20quotas`, or several of them with
`+` between.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

PREFIX = "peers."
"""Of all topics and users."""
DAY_MS = 86_400_000
OPERATIONS = ("Read", "Write", "Describe", "Alter", "Delete")
OTHER_OPERATION = "DescribeConfigs"
"""That of an ACL which the change of one percent replaces."""
STEP = 100
"""One object of so many changes."""

_PARTS = {
    "topics": re.compile(r"(\d+)x(\d+)"),
    "acls": re.compile(r"(\d+)acls"),
    "quotas": re.compile(r"(\d+)quotas"),
}


class Size(Struct, frozen=True):
    """How much of everything there is."""

    topics: int = 0
    partitions: int = 1
    """Of each topic."""
    acls: int = 0
    quotas: int = 0

    def __str__(self) -> str:
        parts = (
            f"{self.topics}x{self.partitions}" if self.topics else "",
            f"{self.acls}acls" if self.acls else "",
            f"{self.quotas}quotas" if self.quotas else "",
        )
        return "+".join(filter(None, parts))


class Topic(Struct, frozen=True):
    name: str
    partitions: int
    config: Mapping[str, str]


class Acl(Struct, frozen=True):
    """What a user may do with one topic, from any host."""

    user: str
    topic: str
    operation: str


class Quota(Struct, frozen=True):
    """Of a user, in bytes a second."""

    user: str
    producer_byte_rate: int


class World(Struct, frozen=True):
    """Every object that exists once a tool is done."""

    topics: tuple[Topic, ...] = ()
    acls: tuple[Acl, ...] = ()
    quotas: tuple[Quota, ...] = ()

    @property
    def objects(self) -> int:
        return len(self.topics) + len(self.acls) + len(self.quotas)


def parse_size(text: str) -> Size:
    """The size that is written so. Raises ValueError."""
    found: dict[str, int] = {}
    for part in text.split("+"):
        kind, match = next(
            ((kind, m) for kind, form in _PARTS.items() if (m := form.fullmatch(part))), ("", None)
        )
        if match is None or kind in found or not all(map(int, match.groups())):
            raise ValueError(f"{text!r} is no size: write 1000x3, 500acls or 100x1+50acls+20quotas")
        found[kind] = int(match[1])
        if kind == "topics":
            found["partitions"] = int(match[2])
    return Size(**found)


def make_world(size: Size) -> World:
    # As many ACLs for each topic as there are operations, then for another user.
    spread = size.topics or ceil(size.acls / len(OPERATIONS))
    many = len(OPERATIONS)
    return World(
        tuple(_make_topic(n, size.partitions) for n in range(size.topics)),
        tuple(
            Acl(
                f"{PREFIX}user-{n // many // spread}",
                _name(n // many % spread),
                OPERATIONS[n % many],
            )
            for n in range(size.acls)
        ),
        tuple(Quota(f"{PREFIX}user-{n}", (n % 9 + 1) << 20) for n in range(size.quotas)),
    )


def change_world(world: World) -> World:
    """The same world after the change of one percent: longer retention, another operation, twice
    the rate. An ACL with another operation is another ACL; everything else is changed in place."""
    return World(
        tuple(_change_some(world.topics, _keep_longer)),
        tuple(_change_some(world.acls, lambda acl: replace(acl, operation=OTHER_OPERATION))),
        tuple(_change_some(world.quotas, _double)),
    )


def _change_some(objects: Sequence[Any], change: Callable[[Any], Any]) -> Iterator[Any]:
    return (change(each) if n % STEP == 0 else each for n, each in enumerate(objects))


def _double(quota: Quota) -> Quota:
    return replace(quota, producer_byte_rate=quota.producer_byte_rate * 2)


def _name(number: int) -> str:
    return f"{PREFIX}topic-{number:05}"


def _make_topic(number: int, partitions: int) -> Topic:
    # Whole minutes of retention: topicctl has no finer unit.
    config = {
        "cleanup.policy": "delete",
        "max.message.bytes": "1048576",
        "retention.ms": str((number % 7 + 1) * DAY_MS),
    }
    return Topic(_name(number), partitions, config)


def _keep_longer(topic: Topic) -> Topic:
    longer = int(topic.config["retention.ms"]) + DAY_MS
    return replace(topic, config={**topic.config, "retention.ms": str(longer)})
