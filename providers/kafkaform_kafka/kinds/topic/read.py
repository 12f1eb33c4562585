"""Lists topics and reads them by name, with their configs and moves, in few requests.

A listing never proves that a topic is absent: only the error UNKNOWN_TOPIC_OR_PARTITION (3) does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import TypeVar

from msgspec.structs import replace

from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Facts,
    Failed,
    Fault,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ...protocol.cluster_facts import KafkaFacts
from ...protocol.config_keys import ALL_TOPIC_KEYS, BROKER_TIMES, config_value
from ...protocol.faults import code_name, fault_of, name_right
from ...wire.answers import ConfigEntry, ItemAnswer
from ...wire.client import Unsupported
from ...wire.configs import describe_configs
from ...wire.fast_decoding import describe_own
from ...wire.topics import TopicRow, list_topics
from ..context import LAG, ClusterContext, Reads, Requests, attempt, live_nodes
from . import configs
from . import resource_type as topics
from .placement import find_remarks
from .replica_moves import Moves, Placement, find_placement, list_moves, measure_progress

# A topic has some 35 configs, about 10 kB of answer with synonyms, which a broker builds in memory.
CONFIGS_AT_ONCE = 250
"""Topics in one DescribeConfigs request."""
IN_FLIGHT = 4
"""DescribeConfigs requests at the same time."""
# Not `is_default`: an override that equals the default is an override all the same.
OWN = 1
"""The source of a topic's own override (ConfigSource DYNAMIC_TOPIC_CONFIG)."""

ConfigAnswers = Mapping[str, ItemAnswer | Fault]
"""Topic -> its configs, or why they could not be read."""
T = TypeVar("T")


def read_configs(context: ClusterContext, names: Sequence[str], node: str | None) -> ConfigAnswers:
    """The configs of each topic, or why they could not be read."""
    items: dict[str, ItemAnswer | Fault] = {}
    with ThreadPoolExecutor(IN_FLIGHT, "describe-configs") as pool:
        chunks = split_chunks(list(dict.fromkeys(names)), CONFIGS_AT_ONCE)
        for answers in pool.map(partial(_read_chunk, context, node), chunks):
            items.update(answers)
    return items


def _read_chunk(context: ClusterContext, node: str | None, names: Sequence[str]) -> ConfigAnswers:
    answers = attempt("DescribeConfigs", lambda: _describe_own(context, names, node), node)
    if isinstance(answers, Fault):
        return dict.fromkeys(names, answers)
    left_out = ItemAnswer(-1, "the broker left it out of its answer")
    return {name: answers.get(name, left_out) for name in names}


def _describe_own(
    context: ClusterContext, names: Sequence[str], node: str | None
) -> Mapping[str, ItemAnswer]:
    try:
        return describe_own(context.wire, names, context.timeout, node)
    except Unsupported:
        return describe_configs(
            context.wire, "topic", names, context.timeout, source=OWN, node=node
        )


def read_fallbacks(context: ClusterContext, answers: ConfigAnswers, node: str | None) -> FrozenMap:
    """Config -> the value that takes effect without an override, from the synonyms (KIP-226)."""
    # The value comes from the broker, so it is the same for all topics: one topic with each key is
    # asked instead of all of them, since synonyms make answers large.
    sample = {
        entry.name: name
        for name, answer in answers.items()
        if not isinstance(answer, Fault)
        for entry in answer.configs or ()
        if entry.source == OWN
    }
    if not sample:
        return EMPTY
    fallbacks = attempt(
        "DescribeConfigs",
        lambda: describe_configs(
            context.wire,
            "topic",
            sorted(set(sample.values())),
            context.timeout,
            keys=sorted(sample),
            synonyms=True,
            node=node,
        ),
    )
    if isinstance(fallbacks, Fault):
        return EMPTY
    values = {
        entry.name: find_fallback(entry, context.facts)
        for answer in fallbacks.values()
        for entry in answer.configs or ()
        if entry.source == OWN
    }
    return FrozenMap({key: value for key, value in values.items() if value is not None})


def find_fallback(entry: ConfigEntry, facts: Facts) -> Value:
    """The value that takes effect without this override, canonical; None if it is unknown."""
    if entry.below is not None:
        return config_value(entry.name, entry.below)
    # No synonym: log.retention.hours and others like it have another name and another unit.
    if entry.name in BROKER_TIMES:
        return (KafkaFacts.of(facts).topic_defaults or EMPTY).get(entry.name)
    row = ALL_TOPIC_KEYS.get(entry.name)
    return config_value(entry.name, row.default) if row else None


def split_chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


NAMES_AT_ONCE = 2_000
"""Topics in one Metadata request."""

_PAUSE = 0.1
"""Seconds between two looks at topics about which the brokers disagree."""

UNKNOWN_TOPIC = 3
_HIDDEN = 29
# No topic can have such a name, which proves its absence. The rules say what is wrong with it.
_ILLEGAL_NAME = 17
# Metadata leaves out topics that we may not describe, without an error, so no listing is complete.
_VISIBLE = Coverage(CoverageKind.VISIBLE_ONLY)


def sweep_topics(context: ClusterContext, depth: Depth) -> Sweep:
    """All topics that we may see, in one Metadata request; with depth FULL also their configs."""
    return list_and_read_topics(context, None if depth is Depth.FULL else ())


def list_and_read_topics(context: ClusterContext, ids: Sequence[Identity] | None) -> Sweep:
    """The names of all topics that we may see, and of these ids the topics that were listed. None:
    all topics in full."""
    # Moves first, as in `read_topics`.
    moves = list_moves(context) if ids is None or ids else {}
    listed = attempt("Metadata", lambda: list_topics(context.wire, None, context.timeout))
    if isinstance(listed, Fault):
        depth = Depth.FULL if ids is None else Depth.NAMES
        return Sweep(topics.KIND, depth, (), Coverage(CoverageKind.FAILED, listed))
    rows = {Identity(context.instance, topics.KIND, r.name): r for r in listed if r.code == 0}
    selected = rows if ids is None else {i: rows[i] for i in ids if i in rows}
    readings = _add_configs(context, selected, moves, None) if selected else {}
    full = {i: item for i, item in readings.items() if isinstance(item, Observed)}
    if ids is None:
        coverage = _judge_coverage(readings.values())
        return Sweep(topics.KIND, Depth.FULL, tuple(full.values()), coverage)
    # What could not be read is left to `read`, which also finds out whether brokers disagree.
    items = tuple(full.get(i) or _make_listed_topic(i, row) for i, row in rows.items())
    return Sweep(topics.KIND, Depth.NAMES, items, _VISIBLE, full=frozenset(full))


def _judge_coverage(readings: Iterable[Reading]) -> Coverage:
    # Error 3 here: somebody deleted the topic between the two requests of the listing.
    failed = (item for item in readings if isinstance(item, Failed))
    fault = next((item.fault for item in failed if not _is_disputed(item)), None)
    return _VISIBLE if fault is None else Coverage(CoverageKind.FAILED, fault)


def read_topics(
    context: ClusterContext, ids: Sequence[Identity], node: str | None
) -> Mapping[Identity, Reading]:
    """These topics with configs, replicas and moves. node: the broker to ask, None for any."""
    # Moves first: a move that ends in between then still counts as running. The other way round,
    # Metadata would show old and new replicas together, as if the replication factor were higher.
    moves = list_moves(context, node)
    rows, readings = read_topic_rows(context, ids, node)
    complete = {**readings, **_add_configs(context, rows, moves, node)} if rows else readings
    disputed = [
        i for i, item in complete.items() if isinstance(item, Failed) and _is_disputed(item)
    ]
    return {**complete, **_read_disputed(context, disputed, node)} if disputed else complete


def find_topics(
    context: ClusterContext, ids: Sequence[Identity], node: str | None
) -> Mapping[Identity, Reading]:
    """These topics as Metadata shows them, without configs and moves."""
    rows, readings = read_topic_rows(context, ids, node)
    return {**readings, **{i: _make_listed_topic(i, row) for i, row in rows.items()}}


def _is_disputed(reading: Reading) -> bool:
    """True for a topic that Metadata showed and DescribeConfigs does not know."""
    return isinstance(reading, Failed) and reading.fault.code == code_name(UNKNOWN_TOPIC)


def _read_disputed(
    context: ClusterContext, ids: Sequence[Identity], node: str | None
) -> Mapping[Identity, Reading]:
    """Topics on which the brokers agree before LAG is over, read again until they do."""
    # Brokers apply the metadata log late: one that lags behind does not know a topic that was just
    # created, or still shows one that was just deleted. What one broker has shown is gone only if
    # none shows it any more.
    deadline = time.monotonic() + LAG
    latest: dict[Identity, Reading] = {}
    disputed = list(ids)
    while disputed and time.monotonic() < deadline:
        time.sleep(_PAUSE)
        moves = list_moves(context, node)
        rows, readings = read_topic_rows(context, disputed, node)
        latest.update(readings)
        latest.update(_add_configs(context, rows, moves, node) if rows else {})
        absent = gone = {i for i in disputed if isinstance(latest[i], Absent)}
        for node_asked in live_nodes(context) if gone and node is None else ():
            unseen = read_topic_rows(context, sorted(gone), node_asked)[1]
            gone = {i for i in gone if isinstance(unseen.get(i), Absent)}
        disputed = [i for i in disputed if i in absent - gone or _is_disputed(latest[i])]
    return {i: reading for i, reading in latest.items() if i not in disputed}


def sweep_topic_configs(context: ClusterContext, depth: Depth) -> Sweep:
    """Always empty: overrides belong to their `kafka_topic` unless a block declares them, so they
    are only read by name."""
    return Sweep(configs.KIND, depth, (), _VISIBLE)


def read_topic_configs(
    context: ClusterContext, ids: Sequence[Identity], node: str | None
) -> Mapping[Identity, Reading]:
    """The overrides of these topics; absent for a topic without overrides."""
    answers = read_configs(context, [identity.key for identity in ids], node)
    below = configs.list_fallbacks(context.facts, read_fallbacks(context, answers, node))
    return {
        identity: _make_config_reading(context, identity, answers[identity.key], below)
        for identity in ids
    }


def read_topic_rows(
    context: ClusterContext, ids: Sequence[Identity], node: str | None
) -> tuple[Mapping[Identity, TopicRow], Mapping[Identity, Reading]]:
    """The topics that exist, and the readings of those that are absent, hidden or unreadable."""
    rows: dict[Identity, TopicRow] = {}
    readings: dict[Identity, Reading] = {}
    for chunk in split_chunks(ids, NAMES_AT_ONCE):
        names = [identity.key for identity in chunk]
        answer = attempt(
            "Metadata",
            partial(list_topics, context.wire, names, context.timeout, node=node),
            node,
        )
        if isinstance(answer, Fault):
            readings.update({identity: Failed(identity, answer) for identity in chunk})
            continue
        by_name = {row.name: row for row in answer}
        for identity in chunk:
            row = by_name.get(identity.key, TopicRow(identity.key, -1))
            if row.code == 0:
                rows[identity] = row
            else:
                readings[identity] = _make_unseen_reading(
                    identity, "Metadata", row.code, None, node
                )
    return rows, readings


def _make_unseen_reading(
    identity: Identity, api: str, code: int, message: str | None, node: str | None
) -> Reading:
    if code in (UNKNOWN_TOPIC, _ILLEGAL_NAME):
        return Absent(identity, lacks=configs.name_missing_topic(identity))
    # Without Describe a broker answers 29 for hidden and for missing topics alike, so that names
    # do not leak. It proves neither.
    if code == _HIDDEN:
        return Hidden(identity, name_right(api, identity.key))
    return Failed(identity, fault_of(api, code, identity.key, message, node or ""))


def _add_configs(
    context: ClusterContext,
    rows: Mapping[Identity, TopicRow],
    moves: Moves | Fault,
    node: str | None,
) -> Mapping[Identity, Reading]:
    answers = read_configs(context, [identity.key for identity in rows], node)
    below = configs.list_fallbacks(context.facts, read_fallbacks(context, answers, node))
    placements = {identity: find_placement(row, moves) for identity, row in rows.items()}
    far = _measure_moves(context, rows, moves) if node is None else {}
    return {
        identity: _add_move(
            _make_whole_reading(context, identity, row, answers[identity.key], below, node),
            placements[identity],
            far.get(row.name),
        )
        for identity, row in rows.items()
    }


def _measure_moves(
    context: ClusterContext, rows: Mapping[Identity, TopicRow], moves: Moves | Fault
) -> Mapping[str, str]:
    if isinstance(moves, Fault):
        return {}
    names = {row.name for row in rows.values()}
    return measure_progress(
        context, {name: topic_moves for name, topic_moves in moves.items() if name in names}
    )


def _add_move(reading: Reading, location: Placement, far: str | None) -> Reading:
    """The reading with its current replicas and the target of the move that is running."""
    if not isinstance(reading, Observed):
        return reading
    config = configs.get_config(reading.attributes)
    remarks = find_remarks(location.replicas, config, moving=location.moving is not None)
    stands = {"replication_factor": len(location.replicas[0])} if location.replicas else {}
    details = {**location.details, **({"progress": far} if far else {})}
    return replace(
        reading,
        attributes=reading.attributes.with_items(
            {**stands, "replica_assignment": location.replicas}
        ),
        moving=location.moving,
        ticket=location.ticket,
        details=reading.details.with_items(details),
        remarks=remarks,
    )


def _make_whole_reading(
    context: ClusterContext,
    identity: Identity,
    row: TopicRow,
    answer: ItemAnswer | Fault,
    below: FrozenMap,
    node: str | None,
) -> Reading:
    if isinstance(answer, Fault):
        return Failed(identity, answer)
    if answer.code == _HIDDEN:
        return Hidden(identity, name_right("DescribeConfigs", identity.key))
    if answer.code:
        # Also code 3: Metadata showed this topic a moment ago, so brokers disagree about it.
        return Failed(
            identity,
            fault_of("DescribeConfigs", answer.code, identity.key, answer.message, node or ""),
        )
    named, config = _make_listed_topic(identity, row), _select_own_configs(answer.configs or ())
    return Observed(
        identity,
        named.attributes.with_items({"config": config}),
        named.incarnation,
        fallbacks=below,
        details=named.details,
        foreign=configs.find_foreign_paths("topic", config, context.facts),
    )


def _make_listed_topic(identity: Identity, row: TopicRow) -> Observed:
    """A topic as Metadata shows it, without configs."""
    return Observed(
        identity,
        FrozenMap(
            {
                "name": identity.key,
                "partitions": len(row.replicas),
                "replication_factor": len(row.replicas[0]) if row.replicas else 0,
            }
        ),
        row.topic_id,
        details=FrozenMap(internal=row.internal, leaderless=row.leaderless, topic_id=row.topic_id),
    )


def _make_config_reading(
    context: ClusterContext, identity: Identity, answer: ItemAnswer | Fault, below: FrozenMap
) -> Reading:
    if isinstance(answer, Fault):
        return Failed(identity, answer)
    if answer.code:
        return _make_unseen_reading(identity, "DescribeConfigs", answer.code, answer.message, None)
    config = _select_own_configs(answer.configs or ())
    foreign = configs.find_foreign_paths("topic", config, context.facts)
    if not config:
        return Absent(identity, fallbacks=below)
    attributes = FrozenMap({"topic": identity.key, "config": config})
    observed = Observed(identity, attributes, fallbacks=below, foreign=foreign)
    return Absent(identity, observed, fallbacks=below) if len(foreign) == len(config) else observed


# Thousands of topics have the same overrides.
@lru_cache(maxsize=1024)
def _select_own_configs(entries: tuple[ConfigEntry, ...]) -> FrozenMap:
    """The topic's own overrides, canonical."""
    return FrozenMap(
        {
            entry.name: config_value(entry.name, entry.value)
            for entry in entries
            if entry.source == OWN
        }
    )


# IncrementalAlterConfigs is missing here: `kinds/config` sends it for all kinds of resources.
CONFIG_REQUESTS = Requests(Reads(sweep_topic_configs, read_topic_configs))
