"""Lists topics and reads them by name, with their configs and moves, in few requests; creates,
grows and deletes them, once each.

A listing never proves that a topic is absent: only the error UNKNOWN_TOPIC_OR_PARTITION (3) does.

Each function that sends takes the steps of one request and replies to each of them in order,
whatever happens. In a dry run the broker checks the same request with `validate_only`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial

from msgspec.structs import replace

from kafkaform.core.change import Step
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Facts,
    Failed,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ...authority.own_rights import HeldRights, explain_missing, list_operations
from ...authority.own_rights import judge_steps as missing_rights
from ...protocol import apis
from ...protocol.cluster_facts import KafkaFacts
from ...protocol.config_keys import ALL_TOPIC_KEYS, BROKER_TIMES, config_value
from ...protocol.faults import code_name, fault_of, lost_answer_fault, name_right
from ...wire.answers import ConfigEntry, ItemAnswer, ItemAnswers
from ...wire.client import Unsupported
from ...wire.cluster import read_leadership
from ...wire.configs import describe_configs
from ...wire.fast_decoding import describe_own
from ...wire.topics import TopicRow, create_partitions, create_topics, delete_topics, list_topics
from ..context import (
    LAG,
    ClusterContext,
    Order,
    Reads,
    Reply,
    Requests,
    attempt,
    live_nodes,
    split_chunks,
)
from . import configs
from . import resource_type as topics
from .placement import find_remarks
from .replica_moves import (
    Moves,
    Placement,
    find_placement,
    list_moves,
    measure_progress,
    send_moves,
)

# A topic has some 35 configs, about 10 kB of answer with synonyms, which a broker builds in memory.
CONFIGS_AT_ONCE = 250
"""Topics in one DescribeConfigs request."""
IN_FLIGHT = 4
"""DescribeConfigs requests at the same time."""
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
UNKNOWN_EPOCH = -1
# Not `is_default`: an override that equals the default is an override all the same.
OWN = 1
"""The source of a topic's own override (ConfigSource DYNAMIC_TOPIC_CONFIG)."""

ConfigAnswers = Mapping[str, ItemAnswer | Fault]
"""Topic -> its configs, or why they could not be read."""


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
    names = {row.name for row in rows.values()}
    running = {} if isinstance(moves, Fault) else moves
    own = {name: topic_moves for name, topic_moves in running.items() if name in names}
    far = measure_progress(context, own) if node is None else {}
    return {
        identity: _add_move(
            _make_whole_reading(context, identity, row, answers[identity.key], below, node),
            placements[identity],
            far.get(row.name),
        )
        for identity, row in rows.items()
    }


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


def send_create_topics(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """CreateTopics; the replies have the topic ids and what the broker chose (KIP-525, KIP-516)."""
    if order.dry and _is_executed("CreateTopics", context):
        return [Reply(step) for step in order.steps]
    # The epoch of the controller at the dry run is what `_mark_perhaps_ours` compares with.
    if order.dry and not context.epochs:
        context.epochs.add(_read_epoch(context))
    answers = attempt(
        "CreateTopics",
        lambda: create_topics(
            context.wire, _list_payloads(order.steps), context.timeout, validate_only=order.dry
        ),
    )
    replies = _make_replies("CreateTopics", order.steps, answers, "name")
    if isinstance(answers, Fault) or order.dry:
        return replies
    return [
        reply
        if reply.fault
        else _make_created_reply(reply.step, answers.items[reply.step.payload["name"]])
        for reply in _mark_perhaps_ours(context, replies)
    ]


def _is_executed(api: str, context: ClusterContext) -> bool:
    """True if this cluster would execute the dry run of the request: none can be sent then."""
    # KRaft controllers of the preview releases do not look at `validate_only` in CreateTopics (3.0)
    # and in CreatePartitions (3.0 to 3.2). Seen with Kafka 3.0.2.
    return api in KafkaFacts.of(context.facts).executed_dry_runs


def _read_epoch(context: ClusterContext) -> int:
    """The epoch of the active controller, or UNKNOWN_EPOCH."""
    leadership = attempt("DescribeQuorum", lambda: read_leadership(context.wire, context.timeout))
    return (
        UNKNOWN_EPOCH if leadership is None or isinstance(leadership, Fault) else leadership.epoch
    )


def _mark_perhaps_ours(context: ClusterContext, replies: Sequence[Reply]) -> Sequence[Reply]:
    """The replies, with "already exists" as AMBIGUOUS if the controller has changed."""
    # If the controller dies, the broker forwards the request again, to the next one (KIP-590). That
    # one refuses with 36 what the first one has done, so 36 may be our own success.
    before = context.epochs - {UNKNOWN_EPOCH}
    if not before or not any(map(_says_exists, replies)):
        return replies
    if _read_epoch(context) in {UNKNOWN_EPOCH, *before}:
        return replies
    return [_make_unclear(reply) if _says_exists(reply) else reply for reply in replies]


def _says_exists(reply: Reply) -> bool:
    return reply.fault is not None and reply.fault.kind is FaultClass.CONVERGED


def _make_unclear(reply: Reply) -> Reply:
    assert reply.fault is not None
    text = f"{reply.fault.message}; the controller has changed since the dry run"
    return replace(reply, fault=replace(reply.fault, message=text, kind=FaultClass.AMBIGUOUS))


def send_create_partitions(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """CreatePartitions to an absolute count; CONVERGED if the topic has that count already."""
    if order.dry and _is_executed("CreatePartitions", context):
        return [Reply(step) for step in order.steps]
    answers = attempt(
        "CreatePartitions",
        lambda: create_partitions(
            context.wire, _list_payloads(order.steps), context.timeout, validate_only=order.dry
        ),
    )
    return _make_replies("CreatePartitions", order.steps, answers, "name")


def send_delete_topics(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """DeleteTopics by id (KIP-516)."""
    # The broker has no dry run for it, so a fresh read replaces one.
    if order.dry:
        return _check_deletes(context, order.steps)
    ids = [step.payload["topic_id"] for step in order.steps]
    answers = attempt("DeleteTopics", lambda: delete_topics(context.wire, ids, context.timeout))
    return _make_replies("DeleteTopics", order.steps, answers, "topic_id")


def _list_payloads(steps: Sequence[Step]) -> list[FrozenMap]:
    return [step.payload for step in steps]


def _make_replies(
    api: str, steps: Sequence[Step], answers: ItemAnswers | Fault, key: str
) -> Sequence[Reply]:
    if isinstance(answers, Fault):
        return [Reply(step, answers) for step in steps]
    return [Reply(step, _make_fault(api, step, answers, step.payload[key])) for step in steps]


def _make_fault(api: str, step: Step, answers: ItemAnswers, key: str) -> Fault | None:
    answer, name = answers.items.get(key), step.payload["name"]
    if answer is None:
        return lost_answer_fault(api, f"{name} is missing in the broker's answer")
    if answer.code == 0:
        return None
    return fault_of(api, answer.code, name, answer.message, wait=answers.throttle)


def _make_created_reply(step: Step, answer: ItemAnswer) -> Reply:
    # Without DescribeConfigs on the topic, the answer has neither counts nor configs (KIP-525).
    created: Mapping[str, object] = {
        "name": step.payload["name"],
        "partitions": answer.partitions,
        "replication_factor": answer.replication_factor,
        "config": None if answer.configs is None else _select_own_configs(answer.configs),
    }
    attributes = FrozenMap({name: value for name, value in created.items() if value is not None})
    return Reply(step, None, answer.topic_id, attributes)


def _check_deletes(context: ClusterContext, steps: Sequence[Step]) -> Sequence[Reply]:
    names = [step.payload["name"] for step in steps]
    rows = attempt(
        "Metadata", lambda: list_topics(context.wire, names, context.timeout, operations=True)
    )
    if isinstance(rows, Fault):
        return [Reply(step, rows) for step in steps]
    rows_by_name = {row.name: row for row in rows}
    missing = TopicRow("", UNKNOWN_TOPIC)
    facts = context.facts
    rights = HeldRights(frozenset(KafkaFacts.of(facts).rights), list_operations(rows))
    lacking = missing_rights(steps, explain_missing(context, steps, rights), facts.principal)
    refused = {verdict.step: verdict.fault for verdict in lacking}
    return [
        Reply(
            step, _find_delete_fault(step, rows_by_name.get(name, missing)) or refused.get(step.id)
        )
        for step, name in zip(steps, names, strict=True)
    ]


def _find_delete_fault(step: Step, row: TopicRow) -> Fault | None:
    name, expected = step.payload["name"], step.payload["topic_id"]
    if row.code:
        api = "DeleteTopics" if row.code == UNKNOWN_TOPIC else "Metadata"
        return fault_of(api, row.code, name)
    if row.topic_id != expected:
        return Fault(
            code="RECREATED",
            message=f"{name} was recreated outside kafkaform: its id is {row.topic_id}, not "
            f"{expected}",
            kind=FaultClass.DEFINITE,
            where="Metadata",
            advice="plan again and review the topic that exists now",
        )
    return None


REQUESTS = Requests(
    Reads(sweep_topics, read_topics, find_topics, list_and_read_topics),
    {
        apis.CREATE_TOPICS.name: send_create_topics,
        apis.CREATE_PARTITIONS.name: send_create_partitions,
        apis.DELETE_TOPICS.name: send_delete_topics,
        apis.ALTER_PARTITION_REASSIGNMENTS.name: send_moves,
    },
)
# IncrementalAlterConfigs is missing here: `kinds/config` sends it for all kinds of resources.
CONFIG_REQUESTS = Requests(Reads(sweep_topic_configs, read_topic_configs))
