"""Read the disks of brokers and how fast the partitions on them grow.

DescribeLogDirs has the size of each replica and, from Kafka 3.3 on, the room on its volume
(KIP-827). Growth comes from ListOffsets: the records that a partition got within the last day,
times the bytes of a record, which are the size of the log divided by its records. What a broker
does not say stays unknown.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol, TypeVar

from msgspec import Struct

from kafkaform.core.change import Change
from kafkaform.core.resource import Fault

from ..kinds.context import ClusterContext, split_chunks
from ..protocol.faults import fault_of
from ..wire.cluster import LogDirectories, LogDirectory, read_log_directories
from ..wire.configs import describe_configs
from ..wire.topics import TopicRow, list_topics
from ..wire.usage import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    DatedOffset,
    find_offsets,
    group_by_leader,
)
from .amounts import is_limited, is_size_priced
from .forecast import (
    DiskWorld,
    Forecast,
    Spread,
    TopicSettings,
    list_concerned_brokers,
    make_forecast,
    needs_room,
)
from .projection import DAY_MS, KEYS, Disk, LogGrowth, Place, is_tiered, read_limits

_IN_FLIGHT = 4
_TOPICS_AT_ONCE = 1_000
"""Topics in one DescribeConfigs request."""
_SAME_VOLUME = 1 << 20
"""Bytes by which the room may differ that two log directories of one volume report: a broker looks
at one after the other."""
_LEAST_MS, _LEAST_OF_OLD_MS = 3_600_000, 60_000
"""The shortest time of which records say how fast a partition grows: of a log that is whole, and of
one whose older records are deleted already."""
_NAMED = 5
"""Brokers in a sentence."""
_OWN, _OF_BROKER = 1, 2
"""Config sources: the override of a topic, and the dynamic config of one broker."""
A = TypeVar("A")
T = TypeVar("T")


class Asker(Protocol):
    """What asks one broker, and knows how long it may take."""

    @property
    def context(self) -> ClusterContext: ...

    def ask(
        self, api: str, call: Callable[..., T], *arguments: object, node: str | None = None
    ) -> T | Fault:
        """The answer to one request, or the fault."""


class DiskReading(Struct, frozen=True):
    """The disks of some brokers."""

    disks: tuple[Disk, ...]
    """By broker and directory; without those that failed."""
    faults: Mapping[int, Fault]
    """Broker -> why its disks are unknown."""
    failed: Mapping[int, tuple[str, ...]]
    """Broker -> its log directories that cannot be used."""


def read_disks(
    asker: Asker, brokers: Iterable[int], topics: Mapping[str, int] | None = None
) -> DiskReading:
    """The disks of these brokers, with the replicas of these topics. topics: name -> number of
    partitions; None for all."""
    ordered = sorted(brokers)

    def ask(broker: int) -> LogDirectories | Fault:
        node = str(broker)
        answer = asker.ask("DescribeLogDirs", read_log_directories, topics, node, node=node)
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
        logs = [log for row in volume for log in row.logs]
        yield Disk(
            broker,
            tuple(row.path for row in volume),
            volume[0].total,
            volume[0].usable,
            {(log.topic, log.partition): log.size for log in logs if not log.future},
            {(log.topic, log.partition): log.size for log in logs if log.future},
            cordoned=all(row.cordoned for row in volume),
            fewest=min(len(row.logs) for row in volume) if len(volume) > 1 else None,
        )


def _is_same_volume(first: LogDirectory, second: LogDirectory) -> bool:
    if None in (first.total, first.usable, second.total, second.usable):
        return False
    return (
        first.total == second.total
        and abs((first.usable or 0) - (second.usable or 0)) <= _SAME_VOLUME
    )


# ── growth ──────────────────────────────────────────────────────────────────────────────


def read_settings(asker: Asker, names: Iterable[str]) -> Mapping[str, TopicSettings]:
    """The configs of these topics; without those that cannot be read."""
    settings: dict[str, TopicSettings] = {}
    for chunk in split_chunks(tuple(names), _TOPICS_AT_ONCE):
        call = partial(describe_configs, keys=KEYS)
        answers = asker.ask("DescribeConfigs", call, "topic", chunk)
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
    asker: Asker,
    rows: Sequence[TopicRow],
    settings: Mapping[str, TopicSettings],
    sizes: Mapping[Place, int],
) -> Mapping[Place, LogGrowth]:
    """How each partition of these topics grows. settings: of these topics; sizes: bytes of the
    largest replica of each partition."""
    now = int(time.time() * 1000)
    tiered = [row for row in rows if row.name in settings and is_tiered(settings[row.name].values)]
    requests = [
        (at, node, {(name, n): at for name, numbers in partitions.items() for n in numbers})
        for at, queried in (
            (LATEST, rows),
            (EARLIEST, rows),
            (EARLIEST_LOCAL, tiered),
            (now - DAY_MS, rows),
        )
        for node, partitions in group_by_leader(queried)
    ]

    def ask(
        request: tuple[int, str, Mapping[Place, int]],
    ) -> Mapping[Place, DatedOffset] | Fault:
        _, node, times = request
        return asker.ask("ListOffsets", find_offsets, times, node, node=node)

    offsets: dict[int, dict[Place, DatedOffset]] = defaultdict(dict)
    for (at, _, _), answer in zip(requests, _map_parallel(ask, requests), strict=True):
        if not isinstance(answer, Fault):
            offsets[at].update(answer)
    tiered_names = {row.name for row in tiered}
    growth: dict[Place, LogGrowth] = {}
    for row in rows:
        limits = read_limits(settings[row.name].values) if row.name in settings else None
        # With tiered storage, a log begins long before what is on the disks of brokers (KIP-405).
        local_starts = offsets[EARLIEST_LOCAL if row.name in tiered_names else EARLIEST]
        for partition in ((row.name, number) for number in range(len(row.replicas))):
            answers = offsets[LATEST], offsets[EARLIEST], local_starts, offsets[now - DAY_MS]
            records = [answer[partition] for answer in answers if partition in answer]
            rate = None
            if len(records) == len(answers) and partition in sizes:
                end, start, local_start, first = records
                log = _Log(end.offset, start.offset, local_start.offset)
                rate = compute_rate(sizes[partition], log, first, now)
            growth[partition] = LogGrowth(rate, limits)
    return growth


class _Log(Struct, frozen=True):
    """The offsets at the ends of the log of a partition."""

    end: int
    start: int
    local_start: int
    """Of what is on the disks of brokers."""


def compute_rate(size: int, log: _Log, first: DatedOffset, now: int) -> float | None:
    """Bytes a day that a partition gets; None if its records cover too short a time. size: bytes on
    disk; first: its first record of the last day; now: milliseconds since 1970."""
    records = log.end - log.local_start
    if records <= 0 or first.offset < 0:
        return 0.0
    if first.offset > log.start:
        span = DAY_MS
    else:
        # Its older records are deleted, or there are none.
        span = now - (now if first.ms is None else first.ms)
        least = _LEAST_OF_OLD_MS if log.start > 0 else _LEAST_MS
        if span < least:
            return None
    # Brokers report written bytes by JMX alone, so each record counts with the average size of
    # those on disk.
    return (log.end - first.offset) * (size / records) * (DAY_MS / span)


# ── forecasts ─────────────────────────────────────────────────────────────────────────────


def read_forecast(asker: Asker, changes: Sequence[Change], limit: int | None) -> Forecast | None:
    """What the changes of a plan add to the disks and to the replicas of brokers; None, without any
    request, if none of them needs that. limit: the most topics whose growth is read, None for
    all."""
    facts = asker.context.facts
    weighed = [c for c in changes if needs_room(c, facts) or is_size_priced(c, facts)]
    if not weighed and not any(is_limited(change, facts) for change in changes):
        return None
    listed = asker.ask("Metadata", list_topics, None)
    if isinstance(listed, Fault):
        return Forecast({}, {}, (f"the disks of the brokers: {listed.message}",))
    rows = {row.name: row for row in listed if not row.code}
    spreads = {name: Spread(row.replicas, row.in_sync) for name, row in rows.items()}
    if not weighed:
        return make_forecast(DiskWorld((), spreads, {}, {}, {}), changes, facts)
    brokers = list_concerned_brokers(weighed, spreads, facts)
    reading = read_disks(asker, brokers)
    gaps = list(_explain_gaps(reading))
    sizes = measure_partitions(reading.disks)
    names = _rank_topics(sizes, rows, {change.identity.key for change in changes})
    chosen = names[:limit]
    if len(chosen) < len(names):
        gaps.append(
            f"how fast {len(names) - len(chosen):,} smaller topics on these disks grow: they count "
            "as they are"
        )
    settings = read_settings(asker, chosen)
    growth = read_growth(asker, [rows[name] for name in chosen], settings, sizes)
    return make_forecast(
        DiskWorld(reading.disks, spreads, settings, growth, sizes), changes, facts, gaps
    )


def _explain_gaps(reading: DiskReading) -> Iterator[str]:
    """What is unknown about disks, one clause for each cause."""
    brokers: dict[str, list[int]] = defaultdict(list)
    for broker, fault in reading.faults.items():
        brokers[fault.message].append(broker)
    for message, ids in brokers.items():
        ending = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
        yield f"the disks of broker {', '.join(map(str, ids[:_NAMED]))}{ending}: {message}"
    for broker, paths in reading.failed.items():
        yield f"{', '.join(paths)} of broker {broker}: the directory has failed"


def measure_partitions(disks: Iterable[Disk]) -> Mapping[Place, int]:
    """Partition -> bytes of its largest replica on these disks."""
    sizes: dict[Place, int] = {}
    for disk in disks:
        for partition, size in disk.replicas.items():
            sizes[partition] = max(size, sizes.get(partition, 0))
    return sizes


def _rank_topics(
    sizes: Mapping[Place, int], rows: Mapping[str, TopicRow], changed: Collection[str]
) -> list[str]:
    """The topics on the disks: first those that change, then the largest."""
    totals: Counter[str] = Counter()
    for (topic, _), size in sizes.items():
        if topic in rows:
            totals[topic] += size
    return sorted(totals, key=lambda name: (name not in changed, -totals[name], name))
