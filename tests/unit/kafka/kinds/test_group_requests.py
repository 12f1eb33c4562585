"""Offsets of groups as brokers answer them: what proves that there is no group, when a record was
written, and what a refusal says about the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kafkaform.core.change import Action, Change, PathChange
from kafkaform.core.resource import Absent, Failed, FaultClass, Hidden, Identity, Observed
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform_kafka.kinds.commanded.group_offsets import (
    GROUP_OFFSETS,
    GROUP_OFFSETS_TYPE,
    GROUP_POSITIONS,
    OFFSETS,
    Reset,
    make_group,
)
from kafkaform_kafka.kinds.commanded.group_requests import (
    GROUP_REQUESTS,
    read_group_offsets,
    read_positions,
)
from kafkaform_kafka.kinds.context import Order
from kafkaform_kafka.protocol.apis import MAX_OFFSETS
from kafkaform_kafka.wire.usage import NEWEST

from ....kit.kafka.changes import FACTS
from ....kit.kafka.scripted_wire import LOST, ScriptedWire, script
from ..inspect.activity.test_groups import committed, listed, topics

GROUP = Identity("kafka", GROUP_OFFSETS, "billing")
NOT_COORDINATOR, DENIED, NOT_FOUND, UNAVAILABLE, UNKNOWN_MEMBER, NO_TOPIC_RIGHT = (
    16,
    30,
    69,
    15,
    25,
    29,
)
FIRST, STEP, RECORDS = 1_700_000_000_000, 60_000, 100
"""The log of each partition: a record a minute."""


def describe(code: int, state: str = "") -> dict[str, Any]:
    """The answer to DescribeGroups for a group without members."""
    row = {"error_code": code, "group_id": "billing", "group_state": state, "members": []}
    return {"groups": [row]}


def look_up(request: Any) -> dict[str, Any]:
    """The first record from each time on; start and end of the log."""

    def find(moment: int) -> dict[str, int]:
        if moment == NEWEST:
            return {"offset": RECORDS - 1, "timestamp": FIRST + (RECORDS - 1) * STEP}
        if moment < 0:
            return {"offset": 0 if moment == -2 else RECORDS, "timestamp": -1}
        number = max(0, -(-(moment - FIRST) // STEP))
        found = number < RECORDS
        return {
            "offset": number if found else -1,
            "timestamp": FIRST + number * STEP if found else -1,
        }

    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    {
                        "error_code": 0,
                        "partition_index": part.partition_index,
                        **find(part.timestamp),
                    }
                    for part in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    }


LIVE: Mapping[str, Any] = {
    "ListGroups": {"2": listed(("billing", "Classic", "Empty")), "": listed()},
    "DescribeGroups": {"2": describe(0, "Empty")},
    "OffsetFetch": {"2": {"groups": [committed("billing", orders={0: 40, 1: 100})]}},
    "Metadata": topics(orders=(1, 2)),
    "ListOffsets": {"": look_up},
    "FindCoordinator": {"": {"error_code": 0, "node_id": 2}},
}


def connect(**answers: Any) -> tuple[Any, ScriptedWire]:
    """The context of a cluster of two brokers, of which the second coordinates the group."""
    source, wire = script({**LIVE, **answers}, ("1", "2"))
    return source.context, wire


def read(**answers: Any) -> Any:
    context, _ = connect(**answers)
    return read_group_offsets(context, [GROUP], None)[GROUP]


def test_a_group_is_read_at_its_coordinator() -> None:
    """Its offsets belong to others unless a plan names them."""
    reading = read()
    assert isinstance(reading, Observed)
    assert dict(reading.attributes[OFFSETS]) == {"orders:0": 40, "orders:1": 100}
    assert reading.foreign == {(OFFSETS, "orders:0"), (OFFSETS, "orders:1")}


NOBODY = {"ListGroups": {"": listed()}}
ABSENCES: tuple[tuple[Mapping[str, Any], type], ...] = (
    ({"DescribeGroups": {"1": describe(NOT_COORDINATOR), "2": describe(0, "Dead")}}, Absent),
    ({"DescribeGroups": {"1": describe(NOT_COORDINATOR), "2": describe(NOT_FOUND)}}, Absent),
    ({"DescribeGroups": {"": describe(DENIED)}}, Hidden),
    ({"DescribeGroups": {"": describe(NOT_COORDINATOR)}, "Metadata": topics()}, Absent),
    (
        {
            "DescribeGroups": {"": describe(NOT_COORDINATOR)},
            "Metadata": topics(__consumer_offsets=(1, -1)),
        },
        Failed,
    ),
    (
        {
            "ListGroups": {"1": listed(), "2": LOST},
            "DescribeGroups": {"1": describe(NOT_COORDINATOR), "2": LOST},
        },
        Failed,
    ),
)


@pytest.mark.parametrize(("answers", "kind"), ABSENCES)
def test_only_its_coordinator_proves_that_a_group_is_missing(
    answers: Mapping[str, Any], kind: type
) -> None:
    """Or the lack of Kafka's topic of groups; a coordinator that is down proves nothing."""
    assert type(read(**{**NOBODY, **answers})) is kind


def position(mode: str, value: int, *scopes: str) -> Any:
    context, _ = connect()
    identity = Identity("kafka", GROUP_POSITIONS, Reset("billing", mode, value, scopes).key)
    reading = read_positions(context, [identity], None)[identity]
    assert isinstance(reading, Observed)
    return reading.details


def test_a_reset_leads_to_a_record_whose_time_is_known() -> None:
    """As is the time of the one at which the group is; the end of a log has none."""
    rows = position("to-datetime", FIRST + 9 * STEP + 1, "orders")["rows"]
    assert [(row["offset"], row["target"]) for row in rows] == [(40, 10), (100, 10)]
    assert [row["target_time"] for row in rows] == [FIRST + 10 * STEP] * 2
    assert [row["time"] for row in rows] == [FIRST + 40 * STEP, None]


def test_what_cannot_be_reset_is_named() -> None:
    """A topic, a partition."""
    problems = position("to-earliest", 0, "nope", "orders:7")["problems"]
    assert problems == ("there is no topic nope", "topic orders has no partition 7")


def update(offsets: Mapping[int, int | None], type_: str = "classic") -> Change:
    """A change of offsets in one topic. offsets: partition -> the wanted one."""
    places = {("orders", number): 40 for number in offsets}
    kept = {("orders", n): offset for n, offset in offsets.items() if offset is not None}
    return Change(
        GROUP,
        "kafka_group_offsets.alter",
        Action.UPDATE,
        make_group("billing", type_, places),
        make_group("billing", type_, kept),
        tuple(
            PathChange((OFFSETS, f"orders:{number}"), 40, offset)
            for number, offset in offsets.items()
        ),
    )


def send(change: Change, **answers: Any) -> tuple[Any, ScriptedWire]:
    """The fault of the first step, and what was sent."""
    context, wire = connect(**answers)
    step = GROUP_OFFSETS_TYPE.steps(change, FACTS)[0]
    (reply,) = GROUP_REQUESTS.sends[step.request.name](context, Order((step,), dry=False))
    return reply.fault, wire


def answer_commit(code: int) -> Any:
    def answer(request: Any) -> dict[str, Any]:
        return {
            "topics": [
                {
                    "name": topic.name,
                    "partitions": [
                        {
                            "partition_index": part.partition_index,
                            "error_code": code if part.partition_index == 0 else 0,
                        }
                        for part in topic.partitions
                    ],
                }
                for topic in request.topics
            ]
        }

    return {"2": answer}


@pytest.mark.parametrize(
    ("code", "kind", "advice"),
    [
        (UNKNOWN_MEMBER, FaultClass.DEFINITE, "stop its members first"),
        (NO_TOPIC_RIGHT, FaultClass.PERMISSION, "grant Read on Topic orders"),
        (DENIED, FaultClass.PERMISSION, "grant Read on Group billing"),
        (NOT_COORDINATOR, FaultClass.AMBIGUOUS, "reads the object first"),
    ],
)
def test_a_refusal_of_a_commit(code: int, kind: FaultClass, advice: str) -> None:
    """Says what it means, and how many partitions it is about."""
    fault, wire = send(update({0: 1, 1: 2}), OffsetCommit=answer_commit(code))
    assert fault.kind is kind and advice in fault.advice
    assert "1 of 2 partitions" in fault.message
    ((_, node, request),) = [sent for sent in wire.sent if sent[0] == "OffsetCommit"]
    assert node == "2" and (request.generation_id_or_member_epoch, request.member_id) == (-1, "")


def test_a_commit_that_works() -> None:
    """Has no fault."""
    assert send(update({0: 1, 1: 2}), OffsetCommit=answer_commit(0))[0] is None


@pytest.mark.parametrize("answer", [LOST, {"error_code": NOT_COORDINATOR}])
def test_without_a_coordinator_nothing_is_sent(answer: Any) -> None:
    """So the request certainly had no effect."""
    fault, wire = send(update({0: 1}), FindCoordinator={"": answer})
    assert fault.kind is FaultClass.NOT_APPLIED
    assert "OffsetCommit" not in [api for api, _, _ in wire.sent]


def test_a_lost_commit_is_unclear() -> None:
    """The offsets are read before anything else is decided."""
    fault, _ = send(update({0: 1}), OffsetCommit={"2": LOST})
    assert fault.kind is FaultClass.AMBIGUOUS


def test_offsets_of_many_partitions_are_cut() -> None:
    """The coordinator writes each request as one batch."""
    steps = GROUP_OFFSETS_TYPE.steps(update(dict.fromkeys(range(MAX_OFFSETS + 1), 5)), FACTS)
    assert [len(step.payload[OFFSETS]) for step in steps] == [MAX_OFFSETS, 1]
    assert all(step.weight <= MAX_OFFSETS for step in steps)


def test_offsets_that_are_set_and_removed_are_two_requests() -> None:
    """Of a share group, they are removed by topic."""
    steps = GROUP_OFFSETS_TYPE.steps(update({0: 1, 1: None}), FACTS)
    assert [step.request.name for step in steps] == ["OffsetCommit", "OffsetDelete"]
    steps = GROUP_OFFSETS_TYPE.steps(update({0: None, 1: None}, "share"), FACTS)
    assert [step.request.name for step in steps] == ["DeleteShareGroupOffsets"]
    assert steps[0].payload["topics"] == ("orders",)


def test_a_dry_run_names_the_members() -> None:
    """Nothing is sent."""
    member = {"member_id": "m-1", "client_id": "app", "client_host": "/10.0.0.7"}
    busy = {
        "error_code": 0,
        "group_id": "billing",
        "group_state": "Stable",
        "members": [member],
    }
    context, wire = connect(DescribeGroups={"2": {"groups": [busy]}})
    (step,) = GROUP_OFFSETS_TYPE.steps(update({0: 1}), FACTS)
    (reply,) = GROUP_REQUESTS.sends[step.request.name](context, Order((step,), dry=True))
    assert reply.fault is not None and reply.fault.code == "NON_EMPTY_GROUP"
    assert "1 member: app at 10.0.0.7 (m-1)" in reply.fault.message
    assert not {"OffsetCommit", "FindCoordinator"} & {api for api, _, _ in wire.sent}


def test_a_group_that_is_gone_is_deleted() -> None:
    """The answer only says that it is not there, so it is read."""
    change = Change(GROUP, "kafka_group_offsets.alter", Action.DELETE, EMPTY, None)
    rows = [{"group_id": "billing", "error_code": NOT_FOUND}]
    fault, _ = send(change, DeleteGroups={"2": {"results": rows}})
    assert fault.kind is FaultClass.CONVERGED
    assert FrozenMap(change.before or EMPTY) == EMPTY
