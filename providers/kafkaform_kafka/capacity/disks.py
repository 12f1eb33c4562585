"""Read the disks of brokers and how fast the partitions on them grow.

DescribeLogDirs has the size of each replica and, from Kafka 3.3 on, the room on its volume
(KIP-827). Growth comes from ListOffsets: the records that a partition got within the last day,
times the bytes of a record, which are the size of the log divided by its records. What a broker
does not say stays unknown.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from msgspec import Struct

from kafkaform.core.resource import Fault

from ..kinds.context import ClusterContext, attempt
from ..kinds.topic.read import split_chunks
from ..protocol.faults import fault_of
from ..wire.cluster import LogDirectories, LogDirectory, read_log_directories
from ..wire.configs import describe_configs
from ..wire.topics import TopicRow
from ..wire.usage import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    StampedOffset,
    group_by_leader,
    list_stamped_offsets,
)
from .projection import DAY_MS, KEYS, Disk, Growth, Place, is_tiered, read_limits

_IN_FLIGHT = 4
_TOPICS_AT_ONCE = 1_000
"""Topics in one DescribeConfigs request."""
_SAME_VOLUME = 1 << 20
"""Bytes by which the room may differ that two log directories of one volume report: a broker looks
at one after the other."""
_LEAST_MS, _LEAST_OF_OLD_MS = 3_600_000, 60_000
"""The shortest time of which records say how fast a partition grows: of a log that is whole, and of
one whose older records are deleted already."""
_OWN, _OF_BROKER = 1, 2
"""Config sources: the override of a topic, and the dynamic config of one broker."""
A = TypeVar("A")
T = TypeVar("T")


class DiskReading(Struct, frozen=True):
    """The disks of some brokers."""

    disks: tuple[Disk, ...]
    """By broker and directory; without those that failed."""
    faults: Mapping[int, Fault]
    """Broker -> why its disks are unknown."""
    failed: Mapping[int, tuple[str, ...]]
    """Broker -> its log directories that cannot be used."""


def read_disks(context: ClusterContext, brokers: Iterable[int], timeout: float) -> DiskReading:
    """The disks of these brokers, with all their replicas. timeout: seconds for each broker."""
    ordered = sorted(brokers)

    def ask(broker: int) -> LogDirectories | Fault:
        node = str(broker)
        call = partial(read_log_directories, context.wire, None, node, timeout)
        answer = attempt("DescribeLogDirs", call, node)
        if isinstance(answer, LogDirectories) and answer.code:
            return fault_of("DescribeLogDirs", answer.code, "", None, node)
        return answer

    answers = dict(zip(ordered, _map_parallel(ask, ordered), strict=True))
    rows = {b: answer.rows for b, answer in answers.items() if isinstance(answer, LogDirectories)}
    return DiskReading(
        tuple(disk for broker in rows for disk in _join_volumes(broker, rows[broker])),
        {b: answer for b, answer in answers.items() if isinstance(answer, Fault)},
        {b: paths for b in rows if (paths := tuple(row.path for row in rows[b] if row.code))},
    )


def _map_parallel(call: Callable[[A], T], arguments: Sequence[A]) -> list[T]:
    with ThreadPoolExecutor(_IN_FLIGHT, "capacity") as pool:
        return list(pool.map(call, arguments))


def _join_volumes(broker: int, rows: Iterable[LogDirectory]) -> Iterator[Disk]:
    """The disks of a broker. Log directories of the same volume report the same bytes, and share
    what is left of it."""
    volumes: list[list[LogDirectory]] = []
    for row in sorted((row for row in rows if not row.code), key=lambda row: row.path):
        shared = next((volume for volume in volumes if _is_same_volume(volume[0], row)), None)
        if shared is None:
            volumes.append([row])
        else:
            shared.append(row)
    for volume in volumes:
        sizes: dict[Place, int] = defaultdict(int)
        future: set[Place] = set()
        for log in (log for row in volume for log in row.logs):
            place = (log.topic, log.partition)
            sizes[place] += log.size
            if log.future:
                future.add(place)
        yield Disk(
            broker,
            tuple(row.path for row in volume),
            volume[0].total,
            volume[0].usable,
            dict(sizes),
            frozenset(future),
            cordoned=all(row.cordoned for row in volume),
        )


def _is_same_volume(first: LogDirectory, second: LogDirectory) -> bool:
    if None in (first.total, first.usable, second.total, second.usable):
        return False
    return (
        first.total == second.total
        and abs((first.usable or 0) - (second.usable or 0)) <= _SAME_VOLUME
    )


# ── growth ──────────────────────────────────────────────────────────────────────────────


class TopicSettings(Struct, frozen=True):
    """The configs of a topic that decide how much is on disks."""

    values: Mapping[str, str]
    """Key -> the value in effect."""
    own: frozenset[str]
    """Those that the topic overrides."""
    of_broker: frozenset[str]
    """Those that a broker overrides, so that the cluster's default does not count."""


def read_settings(
    context: ClusterContext, names: Iterable[str], timeout: float
) -> Mapping[str, TopicSettings]:
    """The configs of these topics; without those that cannot be read. timeout: seconds for each
    request."""
    settings: dict[str, TopicSettings] = {}
    for chunk in split_chunks(tuple(names), _TOPICS_AT_ONCE):
        call = partial(describe_configs, context.wire, "topic", chunk, timeout, keys=KEYS)
        answers = attempt("DescribeConfigs", call)
        if isinstance(answers, Fault):
            continue
        for name, answer in answers.items():
            if not answer.code:
                entries = answer.configs or ()
                settings[name] = TopicSettings(
                    {entry.name: entry.value for entry in entries if entry.value is not None},
                    frozenset(entry.name for entry in entries if entry.source == _OWN),
                    frozenset(entry.name for entry in entries if entry.source == _OF_BROKER),
                )
    return settings


def read_growth(
    context: ClusterContext,
    rows: Sequence[TopicRow],
    settings: Mapping[str, TopicSettings],
    sizes: Mapping[Place, int],
    timeout: float,
) -> Mapping[Place, Growth]:
    """How each partition of these topics grows. settings: of these topics; sizes: bytes of the
    largest replica of each partition; timeout: seconds for each request."""
    now = int(time.time() * 1000)
    tiered = [row for row in rows if row.name in settings and is_tiered(settings[row.name].values)]
    requests = [
        (at, node, partitions)
        for at, asked in (
            (LATEST, rows),
            (EARLIEST, rows),
            (EARLIEST_LOCAL, tiered),
            (now - DAY_MS, rows),
        )
        for node, partitions in group_by_leader(asked)
    ]

    def ask(
        request: tuple[int, str, Mapping[str, Sequence[int]]],
    ) -> Mapping[Place, StampedOffset] | Fault:
        at, node, partitions = request
        call = partial(list_stamped_offsets, context.wire, partitions, at, node, timeout)
        return attempt("ListOffsets", call, node)

    offsets: dict[int, dict[Place, StampedOffset]] = defaultdict(dict)
    for (at, _, _), answer in zip(requests, _map_parallel(ask, requests), strict=True):
        if not isinstance(answer, Fault):
            offsets[at].update(answer)
    tiered_names = {row.name for row in tiered}
    growth: dict[Place, Growth] = {}
    for row in rows:
        limits = read_limits(settings[row.name].values) if row.name in settings else None
        for place in ((row.name, number) for number in range(len(row.replicas))):
            local = offsets[EARLIEST_LOCAL if row.name in tiered_names else EARLIEST]
            ends = offsets[LATEST].get(place), offsets[EARLIEST].get(place), local.get(place)
            log = None if None in ends else _Log(*(end.offset for end in ends if end is not None))
            first = offsets[now - DAY_MS].get(place)
            rate = (
                None
                if log is None or first is None or place not in sizes
                else compute_rate(sizes[place], log, first, now)
            )
            growth[place] = Growth(rate, limits)
    return growth


class _Log(Struct, frozen=True):
    """The offsets at the ends of the log of a partition."""

    end: int
    start: int
    local_start: int
    """Of what is on the disks of brokers."""


def compute_rate(size: int, log: _Log, first: StampedOffset, now: int) -> float | None:
    """Bytes a day that a partition gets; None if its records cover too short a time. size: bytes on
    disk; first: its first record of the last day; now: milliseconds since 1970."""
    records = log.end - log.local_start
    if records <= 0 or first.offset < 0:
        return 0.0
    if first.offset > log.start:
        span = DAY_MS
    else:
        # Its older records are deleted, or there are none.
        span = now - first.time
        least = _LEAST_OF_OLD_MS if log.start > 0 else _LEAST_MS
        if first.time < 0 or span < least:
            return None
    return (log.end - first.offset) * (size / records) * (DAY_MS / span)
