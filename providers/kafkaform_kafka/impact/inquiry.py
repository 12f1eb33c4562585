"""What a look is about: topics that changes endanger, and what becomes of their records; and how
many offsets of theirs are asked for at once, until a deadline."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Finding, Harm
from kafkaform.core.resource import Facts, Fault, Identity

from ..inspect.source import (
    DescribeSource,
    Gap,
    NodeRequest,
    cut_batches,
    send_each,
)
from ..kinds.topic import configs
from ..kinds.topic.configs import (
    BROKER_CONFIG,
    CLUSTER_CONFIG,
    Retention,
    find_effective,
    find_new_retention,
)
from ..kinds.topic.resource_type import KIND as TOPIC
from ..review import list_follower_limits
from ..wire.usage import PARTITIONS_AT_ONCE, DatedOffset, Place, find_offsets

KEPT = Retention(None, None)
"""No limit deletes anything."""
_TIERED = "remote.storage.enable"


class Target(Struct, frozen=True):
    """One topic that a change endangers."""

    change: Change
    topic: str
    deleted: bool = False
    """All of its records go."""
    retention: Retention = KEPT
    """The new limits, if they can delete records."""

    @property
    def prefix(self) -> str:
        """The name of the topic, if the change is about another object."""
        return "" if self.change.identity.key == self.topic else f"{self.topic}: "


class Inquiry(Struct, frozen=True):
    """What all looks of one plan are about."""

    source: DescribeSource
    changes: Sequence[Change]
    """All changes that can do harm."""
    targets: Sequence[Target]
    """The topics that are looked at."""
    now: int
    """Milliseconds since 1970."""
    objects: int | None = None
    """How many topics each look is about at most; None for all."""
    sample: bool = False
    """Single records may be read."""


class Sighting(Struct, frozen=True):
    """What one look has seen."""

    findings: tuple[tuple[Identity | None, Finding], ...] = ()
    """Each with the object of its change; None if it is about the cluster."""
    gaps: tuple[str, ...] = ()
    """What it could not see, and why: clauses."""
    is_blank: bool = False
    """It has sent no request."""


def render_gap(gap: Gap) -> str:
    """What could not be seen, and why, as a clause."""
    return f"{gap.what}: {gap.fault.message}"


def list_targets(changes: Sequence[Change], facts: Facts) -> list[Target]:
    """The topics that these changes endanger, those of the gravest changes first."""
    # A deletion can be without a finding. Others without one hit only the disks.
    ordered = sorted(
        (change for change in changes if change.action is Action.DELETE or change.has_harm(*Harm)),
        key=lambda change: () if change.action is Action.DELETE else (change.findings[0].order,),
    )
    return [target for change in ordered for target in _list_topics(change, facts)]


def _list_topics(change: Change, facts: Facts) -> Iterator[Target]:
    kind, key = change.identity.kind, change.identity.key
    if kind == TOPIC and change.action is Action.DELETE:
        yield Target(change, key, deleted=True)
    elif kind in (TOPIC, configs.KIND):
        yield Target(change, key, retention=_find_limits(change, facts))
    elif kind in (CLUSTER_CONFIG, BROKER_CONFIG):
        limits = list_follower_limits(change, facts)
        yield from (Target(change, name, retention=limit) for name, limit in limits.items())


def _find_limits(change: Change, facts: Facts) -> Retention:
    if not change.has_harm(Harm.DATA_LOSS):
        return KEPT
    limits = find_new_retention(change, facts)
    # The size on the brokers' disks says nothing about what is in remote storage.
    tiered = find_effective(change, facts).after.get(_TIERED) == "true"
    return Retention(limits.ms, None) if tiered else limits


def ask_offsets(
    source: DescribeSource, leaders: Mapping[Place, int], questions: Sequence[Mapping[Place, int]]
) -> list[Mapping[Place, DatedOffset]]:
    """The answers to each of these questions; partitions without an answer are left out.

    leaders: partition -> broker that leads it; questions: partition -> time, as for `find_offsets`.
    """
    requests: list[NodeRequest[Mapping[Place, DatedOffset]]] = []
    askers: list[int] = []
    for number, times in enumerate(questions):
        led: dict[int, list[Place]] = defaultdict(list)
        for partition in sorted(times):
            if partition in leaders:
                led[leaders[partition]].append(partition)
        for leader, partitions in led.items():
            for batch in cut_batches(partitions, PARTITIONS_AT_ONCE):
                arguments = ({partition: times[partition] for partition in batch},)
                requests.append(NodeRequest("ListOffsets", str(leader), find_offsets, arguments))
                askers.append(number)
    rows: list[dict[Place, DatedOffset]] = [{} for _ in questions]
    for number, answer in zip(askers, send_each(source, requests), strict=True):
        rows[number] |= {} if isinstance(answer, Fault) else answer
    return list(rows)


Position = tuple[Place, int]
"""A partition and an offset in it."""
_YOUNGEST, _OLDEST = math.log(1000), math.log(5 * 365 * 86_400_000)
"""Logarithms of the ages that are searched, in milliseconds."""
_ROUNDS = 13
_CLOSE = 0.005
"""The relative error at which a search ends."""


class _Range(Struct):
    """The logarithms of the ages between which a record is."""

    low: float = _YOUNGEST
    high: float = _OLDEST
    bounded: bool = False
    """Some record is older, or is the one."""

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2


def date_positions(
    source: DescribeSource, leaders: Mapping[Place, int], positions: Sequence[Position], now: int
) -> Mapping[Position, int]:
    """Position -> the age of its record in milliseconds, about; positions for which the time does
    not suffice are left out. now: milliseconds since 1970."""
    # No request tells the time of an offset, but ListOffsets tells the first offset of a time. The
    # ages are searched on a logarithmic scale: "2 h" and "2 d" need the same precision.
    open_ranges = {position: _Range() for position in positions}
    ages: dict[Position, int] = {}
    for _ in range(_ROUNDS):
        layers = _make_layers(open_ranges)
        questions = [
            {
                partition: now - int(math.exp(open_ranges[partition, offset].middle))
                for partition, offset in row
            }
            for row in layers
        ]
        for row, answers in zip(layers, ask_offsets(source, leaders, questions), strict=True):
            for partition, offset in row:
                span = open_ranges[partition, offset]
                if partition in answers:
                    _narrow_range(span, offset, answers[partition], now)
                near = span.bounded and span.high - span.low < _CLOSE
                if near:
                    ages[partition, offset] = int(math.exp(span.high))
                if near or partition not in answers:
                    del open_ranges[partition, offset]
        if not open_ranges:
            break
    return ages


def _make_layers(positions: Mapping[Position, object]) -> list[list[Position]]:
    """The positions in lists that name each partition once, as a request has to."""
    layers: list[list[Position]] = []
    counts: dict[Place, int] = defaultdict(int)
    for partition, offset in positions:
        if counts[partition] == len(layers):
            layers.append([])
        layers[counts[partition]].append((partition, offset))
        counts[partition] += 1
    return layers


def _narrow_range(span: _Range, offset: int, row: DatedOffset, now: int) -> None:
    """row: the first record that is not older than the middle of the range."""
    age = span.middle if row.ms is None else math.log(max(1, now - row.ms))
    if row.offset < 0 or row.offset > offset:
        span.low = span.middle
        return
    span.bounded = True
    span.high = age
    if row.offset == offset and row.ms is not None:
        span.low = age
