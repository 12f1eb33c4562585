"""Reads the offsets of a group and the logs that it reads, each at the broker that knows them, and
sends what changes them to the coordinator of the group.

A group is listed by its coordinator only. One that no broker lists is absent if its coordinator
says so, or if Kafka's topic of groups does not exist; a coordinator that is down proves nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Step
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import FrozenMap

from ...protocol.faults import fault_of, lost_answer_fault, name_right
from ...wire import groups as wire
from ...wire.answers import ItemAnswer
from ...wire.groups import DescribedGroup, OffsetAnswers, ShareOffsets
from ...wire.topics import TopicRow, list_topics
from ...wire.usage import (
    CLASSIC,
    EARLIEST,
    LATEST,
    NEWEST,
    DatedOffset,
    GroupOffsets,
    GroupRow,
    GroupRows,
    Place,
    fetch_offsets,
    find_offsets,
    list_groups,
)
from ..context import ClusterContext, Order, Reads, Reply, Requests, attempt, live_nodes
from ..kind import (
    ALTER_SHARE_OFFSETS,
    COMMIT_OFFSETS,
    DELETE_GROUP,
    DELETE_OFFSETS,
    DELETE_SHARE_OFFSETS,
)
from ..topic.replica_moves import combine_faults
from .group_offsets import (
    GROUP_OFFSETS,
    GROUP_POSITIONS,
    OFFSETS,
    SHARE,
    TARGETS,
    GroupMember,
    LogRange,
    Reset,
    describe_members,
    find_foreign_offsets,
    make_group,
    make_position,
    parse_partition,
    parse_reset,
    render_partition,
)

GROUPS_TOPIC = "__consumer_offsets"
"""Kafka's topic of groups. The leader of one of its partitions coordinates the groups in it."""
DEAD = "Dead"
"""The state of a group that does not exist."""
_UNKNOWN_TOPIC, _TOPIC_DENIED, _GROUP_DENIED, _GONE = 3, 29, 30, 69
_UNAVAILABLE = 15
"""COORDINATOR_NOT_AVAILABLE, also while Kafka's topic of groups is being made."""


def sweep_groups(kind: str, _: ClusterContext, depth: Depth) -> Sweep:
    """Always empty: groups are only read by name."""
    return Sweep(kind, depth, (), Coverage(CoverageKind.VISIBLE_ONLY))


# ── groups ──────────────────────────────────────────────────────────────────────────────


class _Listing(Struct, frozen=True):
    """The groups of all live brokers."""

    rows: Mapping[str, tuple[str, GroupRow]]
    """Name -> the broker that coordinates it, and its row."""
    nodes: tuple[str, ...]
    fault: Fault | None
    """Why the list may lack groups."""


def _list_all(context: ClusterContext) -> _Listing:
    # A broker lists only the groups that it coordinates, so each one is asked.
    nodes = live_nodes(context)
    rows: dict[str, tuple[str, GroupRow]] = {}
    faults = []
    for node in nodes:
        call = partial(list_groups, context.wire, node, context.timeout)
        answer = attempt("ListGroups", call, node)
        if isinstance(answer, GroupRows) and answer.code:
            answer = fault_of("ListGroups", answer.code, "", None, node)
        if isinstance(answer, Fault):
            faults.append(answer)
        else:
            rows.update((row.name, (node, row)) for row in answer.groups)
    return _Listing(rows, nodes, faults[0] if faults else None)


def read_group_offsets(
    context: ClusterContext, ids: Sequence[Identity], _: str | None
) -> Mapping[Identity, Reading]:
    """These groups, each at its coordinator: no other broker knows them."""
    listing = _list_all(context)
    return {identity: _read_group(context, listing, identity) for identity in ids}


def _read_group(context: ClusterContext, listing: _Listing, identity: Identity) -> Reading:
    name = identity.key
    if name not in listing.rows:
        return _explain_absence(context, listing, identity)
    node, row = listing.rows[name]
    type_ = row.type.lower() if row.type else CLASSIC
    if type_ not in wire.DESCRIBERS:
        return Failed(identity, _make_unknown(f"groups of type {type_}", "kafkaform"))
    api, describe = wire.DESCRIBERS[type_]
    answers = attempt(api, partial(describe, context.wire, [name], node, context.timeout), node)
    group = _pick(api, answers, name, node)
    if isinstance(group, Fault):
        return _make_unread(identity, api, group)
    assert isinstance(group, DescribedGroup)
    if group.code == _GONE or group.state == DEAD:
        # Kafka 3.7 has a preview of KIP-848, lists no types, and describes classic groups only.
        if row.type is None and row.state not in (None, DEAD):
            return Failed(identity, _make_unknown("the type of this group", "the brokers"))
        return Absent(identity)
    offsets = _read_offsets(context, name, type_, node)
    if isinstance(offsets, Fault):
        return _make_unread(identity, "OffsetFetch", offsets)
    members = [GroupMember(row.member_id, row.client_id, row.host) for row in group.members]
    attributes = make_group(name, type_, offsets, members)
    return Observed(
        identity,
        attributes,
        details=FrozenMap(state=group.state),
        foreign=find_foreign_offsets(attributes),
    )


def _make_unknown(noun: str, upgraded: str) -> Fault:
    return Fault(
        "UNKNOWN_TYPE", f"{noun} cannot be read", FaultClass.DEFINITE, advice=f"upgrade {upgraded}"
    )


def _pick(
    api: str,
    answers: Mapping[str, DescribedGroup | GroupOffsets | ShareOffsets] | Fault,
    name: str,
    node: str,
) -> DescribedGroup | GroupOffsets | ShareOffsets | Fault:
    """The row of this group in an answer, or the fault."""
    row = answers if isinstance(answers, Fault) else answers.get(name)
    if row is None:
        return lost_answer_fault(api, f"the group {name} is missing in it", node)
    if not isinstance(row, Fault) and row.code and row.code != _GONE:
        return fault_of(api, row.code, name, getattr(row, "message", None), node)
    return row


def _make_unread(identity: Identity, api: str, fault: Fault) -> Reading:
    if fault.kind is FaultClass.PERMISSION:
        return Hidden(identity, name_right(api, identity.key))
    return Failed(identity, fault)


def _read_offsets(
    context: ClusterContext, name: str, type_: str, node: str
) -> Mapping[Place, int] | Fault:
    """The offsets of a group in all topics that we can see."""
    api, call = (
        ("DescribeShareGroupOffsets", wire.describe_share_offsets)
        if type_ == SHARE
        else ("OffsetFetch", fetch_offsets)
    )
    answers = attempt(api, lambda: call(context.wire, [name], node, context.timeout), node)
    row = _pick(api, answers, name, node)
    if isinstance(row, Fault):
        return row
    if isinstance(row, ShareOffsets):
        starts = row.offsets.items()
        return {
            partition: item.start_offset
            for partition, item in starts
            if item.start_offset is not None
        }
    assert isinstance(row, GroupOffsets)
    return {partition: committed.offset for partition, committed in row.offsets.items()}


def _explain_absence(context: ClusterContext, listing: _Listing, identity: Identity) -> Reading:
    """Why no broker lists this group."""
    # DescribeGroups checks the right first. Then only the coordinator of the group answers for it,
    # with the state `Dead` or the code 69 for a group that does not exist.
    api, name = "DescribeGroups", identity.key
    for node in listing.nodes:
        call = partial(wire.describe_classic_groups, context.wire, [name], node, context.timeout)
        answers = attempt(api, call, node)
        row = None if isinstance(answers, Fault) else answers.get(name)
        if row is not None and row.code == _GROUP_DENIED:
            return Hidden(identity, name_right(api, name))
        if row is not None and (row.code == _GONE or (not row.code and row.state == DEAD)):
            return Absent(identity)
    if listing.fault is not None:
        return Failed(identity, listing.fault)
    # Brokers create the topic of all offsets for the first group: without it there is none, and no
    # coordinator that could say so.
    rows = attempt("Metadata", lambda: list_topics(context.wire, [GROUPS_TOPIC], context.timeout))
    if not isinstance(rows, Fault) and rows and rows[0].code == _UNKNOWN_TOPIC:
        return Absent(identity)
    return Failed(identity, fault_of("FindCoordinator", _UNAVAILABLE, name))


GROUP_READS = Reads(partial(sweep_groups, GROUP_OFFSETS), read_group_offsets)


# ── logs ────────────────────────────────────────────────────────────────────────────────


def read_positions(
    context: ClusterContext, ids: Sequence[Identity], _: str | None
) -> Mapping[Identity, Reading]:
    """Where the offsets of groups are and where resets lead. Details: `rows` as `make_position`
    makes them, and `problems`, sentences about partitions that were left out."""
    return {identity: _read_position(context, identity) for identity in ids}


def _read_position(context: ClusterContext, identity: Identity) -> Reading:
    reset = parse_reset(identity.key)
    group = Identity(identity.instance, GROUP_OFFSETS, reset.group)
    reading = read_group_offsets(context, [group], None)[group]
    if isinstance(reading, Hidden | Failed):
        return replace(reading, identity=identity)
    current = (
        {parse_partition(text): offset for text, offset in reading.attributes[OFFSETS].items()}
        if isinstance(reading, Observed)
        else {}
    )
    names = tuple(reset.list_topics()) or tuple(dict.fromkeys(topic for topic, _ in current))
    rows = attempt("Metadata", lambda: list_topics(context.wire, names, context.timeout))
    if isinstance(rows, Fault):
        return Failed(identity, rows)
    topics = {row.name: row for row in rows}
    counts = {row.name: len(row.leaders) for row in rows if not row.code}
    chosen = tuple(dict.fromkeys(reset.select_partitions(current, counts)))
    problems = [_explain_topic(name, topics.get(name)) for name in names]
    leaders: dict[Place, int] = {}
    for partition in chosen:
        topic, number = partition
        if topic in counts and number >= counts[topic]:
            problems.append(f"topic {topic} has no partition {number}")
        elif topic in counts and topics[topic].leaders[number] < 0:
            problems.append(f"partition {render_partition(partition)} has no leader")
        elif topic in counts:
            leaders[partition] = topics[topic].leaders[number]
    logs = _read_logs(context, leaders, current, reset)
    if isinstance(logs, Fault):
        return Failed(identity, logs)
    problems += [
        f"where the log of {render_partition(partition)} begins and ends is not known"
        for partition in leaders
        if partition not in logs
    ]
    times = _find_times(context, leaders, logs, reset)
    return Observed(
        identity,
        FrozenMap(),
        details=FrozenMap(
            rows=tuple(
                make_position(log, reset, times.get(log.partition, {}).get) for log in logs.values()
            ),
            problems=tuple(filter(None, problems)),
        ),
    )


def _explain_topic(name: str, row: TopicRow | None) -> str:
    """What is wrong with a topic, empty if nothing is."""
    if row is not None and row.code == _TOPIC_DENIED:
        return f"topic {name} cannot be seen: the right {name_right('Metadata', name)} is missing"
    return "" if row is not None and not row.code else f"there is no topic {name}"


def _read_logs(
    context: ClusterContext,
    leaders: Mapping[Place, int],
    current: Mapping[Place, int],
    reset: Reset,
) -> dict[Place, LogRange] | Fault:
    """The logs of these partitions, without those that could not be read."""
    starts = _look_up(context, leaders, dict.fromkeys(leaders, EARLIEST))
    ends = _look_up(context, leaders, dict.fromkeys(leaders, LATEST))
    timed: Mapping[Place, DatedOffset] | Fault = {}
    if reset.mode == "to-datetime":
        timed = _look_up(context, leaders, dict.fromkeys(leaders, reset.value))
    for answer in (starts, ends, timed):
        if isinstance(answer, Fault):
            return answer
    assert not (isinstance(starts, Fault) or isinstance(ends, Fault) or isinstance(timed, Fault))
    listed = reset.listed
    logs = {}
    for partition in sorted(starts.keys() & ends.keys()):
        at_time = timed.get(partition)
        if reset.mode == "to-datetime" and at_time is None:
            continue
        logs[partition] = LogRange(
            partition,
            current.get(partition),
            starts[partition].offset,
            ends[partition].offset,
            at_time.offset if at_time is not None and at_time.offset >= 0 else None,
            listed.get(partition),
        )
    return logs


def _look_up(
    context: ClusterContext, leaders: Mapping[Place, int], times: Mapping[Place, int]
) -> dict[Place, DatedOffset] | Fault:
    """ListOffsets at the leader of each partition."""
    led: dict[int, dict[Place, int]] = {}
    for partition, moment in times.items():
        led.setdefault(leaders[partition], {})[partition] = moment
    rows: dict[Place, DatedOffset] = {}
    for leader, moments in led.items():
        node = str(leader)
        call = partial(find_offsets, context.wire, moments, node, context.timeout)
        answer = attempt("ListOffsets", call, node)
        if isinstance(answer, Fault):
            return answer
        rows.update(answer)
    return rows


_ROUNDS = 12
"""Requests, at each leader, in which the time of a record is searched."""
_EXACT = 1_000
"""Milliseconds that the answer may be wrong."""
_MOST = 2_000
"""Partitions of which the times are searched."""


class _Span(Struct, frozen=True):
    """Between which records, by offset and milliseconds since 1970, a record is."""

    first: tuple[int, int]
    last: tuple[int, int]

    def guess(self, offset: int, *, halve: bool) -> int:
        """The time at which to look next."""
        width, records = self.last[1] - self.first[1], self.last[0] - self.first[0]
        share = 0.5 if halve or records <= 0 else (offset - self.first[0]) / records
        nearest, latest = self.first[1] + 1, self.last[1] - 1
        return max(nearest, min(latest, self.first[1] + int(width * share)))

    def is_found(self, offset: int) -> bool:
        return self.first[0] == offset or self.last[1] - self.first[1] <= _EXACT


def _find_times(
    context: ClusterContext,
    leaders: Mapping[Place, int],
    logs: Mapping[Place, LogRange],
    reset: Reset,
) -> Mapping[Place, Mapping[int, int]]:
    """Partition -> offset -> time of its record, for offsets now and after the reset, as far as
    they can be found. Without a right or an answer nothing is known, and nothing depends on it."""
    # No request asks for the time of an offset, and to read the record needs more rights. A record
    # is not older than the one before it, unless producers choose times: so it can be searched.
    if len(logs) > _MOST:
        return {}
    times: dict[Place, dict[int, int]] = {}
    for pick in (lambda log: log.current, lambda log: TARGETS[reset.mode](log, reset.value)):
        offsets = {
            partition: offset
            for partition, log in logs.items()
            if (offset := pick(log)) is not None and log.start <= offset < log.end
        }
        for partition, moment in _search_times(context, leaders, logs, offsets).items():
            times.setdefault(partition, {})[offsets[partition]] = moment
    return times


def _search_times(
    context: ClusterContext,
    leaders: Mapping[Place, int],
    logs: Mapping[Place, LogRange],
    offsets: Mapping[Place, int],
) -> Mapping[Place, int]:
    first = _look_up(context, leaders, dict.fromkeys(offsets, 0))
    newest = _look_up(context, leaders, dict.fromkeys(offsets, NEWEST))
    if isinstance(first, Fault) or isinstance(newest, Fault):
        return {}
    spans: dict[Place, _Span] = {}
    for partition, row in first.items():
        newest_row = newest.get(partition)
        if row.ms is not None and newest_row is not None and newest_row.ms is not None:
            end = (logs[partition].end, newest_row.ms + 1)
            spans[partition] = _Span((row.offset, row.ms), end)
    for number in range(_ROUNDS):
        moments = {
            partition: span.guess(offsets[partition], halve=number % 2 == 1)
            for partition, span in spans.items()
            if not span.is_found(offsets[partition])
        }
        rows = _look_up(context, leaders, moments) if moments else {}
        if isinstance(rows, Fault) or not rows:
            break
        for partition, row in rows.items():
            if row.ms is not None and row.offset <= offsets[partition]:
                spans[partition] = replace(spans[partition], first=(row.offset, row.ms))
            else:
                last = logs[partition].end if row.offset < 0 else row.offset
                spans[partition] = replace(spans[partition], last=(last, moments[partition]))
    return {partition: span.first[1] for partition, span in spans.items()}


POSITION_REQUESTS = Requests(Reads(partial(sweep_groups, GROUP_POSITIONS), read_positions))


# ── what changes a group ────────────────────────────────────────────────────────────────

_PAUSE = 0.2
"""Seconds between two questions for a coordinator."""
Call = Callable[[ClusterContext, Step, str], Fault | None]
"""Sends the request of a step to a coordinator."""


def _send(call: Call, context: ClusterContext, order: Order) -> Sequence[Reply]:
    """One reply for each group."""
    # There is no dry run, so a fresh read replaces one.
    if order.dry:
        return _check_steps(context, order.steps)
    replies = []
    for step in order.steps:
        node = _find_coordinator(context, step.identity.key)
        fault = node if isinstance(node, Fault) else call(context, step, node)
        replies.append(Reply(step, fault))
    return replies


def _check_steps(context: ClusterContext, steps: Sequence[Step]) -> Sequence[Reply]:
    readings = read_group_offsets(context, [step.identity for step in steps], None)
    return [Reply(step, find_hurdle(step, readings[step.identity])) for step in steps]


_CREATING = (COMMIT_OFFSETS, ALTER_SHARE_OFFSETS)
"""Requests that create the group that they name."""


def find_hurdle(step: Step, reading: Reading) -> Fault | None:
    """The fault if the coordinator would refuse the request of this step."""
    api, name = step.request.name, step.identity.key
    if isinstance(reading, Failed):
        return reading.fault
    if isinstance(reading, Hidden):
        return fault_of("DescribeGroups", _GROUP_DENIED, name)
    if isinstance(reading, Absent):
        return None if step.request in _CREATING else fault_of(api, _GONE, name)
    members = reading.attributes["members"]
    if not members:
        return None
    return Fault(
        "NON_EMPTY_GROUP",
        f"the group {name} has {describe_members(members)}",
        FaultClass.DEFINITE,
        where=api,
        advice="stop them, and plan again",
    )


def _find_coordinator(context: ClusterContext, name: str) -> str | Fault:
    """The broker that coordinates a group. Without an answer nothing was sent that changes it."""
    until = time.monotonic() + context.timeout
    while True:
        call = partial(wire.find_coordinator, context.wire, name, context.timeout)
        answer = attempt("FindCoordinator", call)
        if isinstance(answer, Fault):
            return replace(answer, kind=FaultClass.NOT_APPLIED)
        if not answer.code:
            return answer.node
        if answer.code != _UNAVAILABLE or time.monotonic() >= until:
            fault = fault_of("FindCoordinator", answer.code, name, answer.message)
            ambiguous = fault.kind is FaultClass.AMBIGUOUS
            return replace(fault, kind=FaultClass.NOT_APPLIED) if ambiguous else fault
        time.sleep(_PAUSE)


def _commit(context: ClusterContext, step: Step, node: str) -> Fault | None:
    offsets = {parse_partition(text): offset for text, offset in step.payload[OFFSETS].items()}
    send = partial(wire.commit_offsets, context.wire, step.identity.key, offsets, node)
    return _judge_answers(context, step, node, offsets, send)


def _alter_share(context: ClusterContext, step: Step, node: str) -> Fault | None:
    offsets = {parse_partition(text): offset for text, offset in step.payload[OFFSETS].items()}
    send = partial(wire.alter_share_offsets, context.wire, step.identity.key, offsets, node)
    return _judge_answers(context, step, node, offsets, send)


def _delete_offsets(context: ClusterContext, step: Step, node: str) -> Fault | None:
    partitions = [parse_partition(text) for text in step.payload["partitions"]]
    send = partial(wire.delete_offsets, context.wire, step.identity.key, partitions, node)
    return _judge_answers(context, step, node, partitions, send)


def _judge_answers(
    context: ClusterContext,
    step: Step,
    node: str,
    partitions: Iterable[Place],
    send: Callable[[float], OffsetAnswers],
) -> Fault | None:
    """Send, and make one fault of those of all partitions."""
    api = step.request.name
    answers = attempt(api, lambda: send(context.timeout), node)
    if isinstance(answers, Fault):
        return answers
    faults = [
        _make_fault(api, step, partition[0], answers.get(partition), node)
        for partition in partitions
    ]
    return combine_faults(faults, "the others were changed")


def _make_fault(
    api: str, step: Step, topic: str, answer: ItemAnswer | None, node: str
) -> Fault | None:
    """The fault of one partition or topic."""
    if answer is None:
        return lost_answer_fault(api, f"{topic} is missing in it", node)
    if not answer.code:
        return None
    name = topic if answer.code in (_UNKNOWN_TOPIC, _TOPIC_DENIED) else step.identity.key
    fault = fault_of(api, answer.code, name, answer.message, node)
    if answer.code != _TOPIC_DENIED:
        return fault
    return replace(fault, advice=f"grant Read on Topic {topic}, or run as a principal that has it")


def _delete_share(context: ClusterContext, step: Step, node: str) -> Fault | None:
    api, topics = step.request.name, step.payload["topics"]
    call = partial(
        wire.delete_share_offsets, context.wire, step.identity.key, topics, node, context.timeout
    )
    answers = attempt(api, call, node)
    if isinstance(answers, Fault):
        return answers
    faults = [_make_fault(api, step, topic, answers.get(topic), node) for topic in topics]
    return combine_faults(faults, "the others were changed")


def _delete(context: ClusterContext, step: Step, node: str) -> Fault | None:
    api, name = step.request.name, step.identity.key
    call = partial(wire.delete_group, context.wire, name, node, context.timeout)
    answer = attempt(api, call, node)
    return answer if isinstance(answer, Fault) else _make_fault(api, step, name, answer, node)


_CALLS: Mapping[str, Call] = {
    COMMIT_OFFSETS.name: _commit,
    ALTER_SHARE_OFFSETS.name: _alter_share,
    DELETE_OFFSETS.name: _delete_offsets,
    DELETE_SHARE_OFFSETS.name: _delete_share,
    DELETE_GROUP.name: _delete,
}
"""API -> the function that sends its request."""
GROUP_REQUESTS = Requests(GROUP_READS, {api: partial(_send, call) for api, call in _CALLS.items()})
