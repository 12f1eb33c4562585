"""Elections: what is sent for a topic's leaders, and what many answers come to."""

from __future__ import annotations

import pytest

from kafkaform.core.change import Action, Change, Evidence, PathChange, Repeat, Step
from kafkaform.core.resource import Fault, FaultClass, Identity
from kafkaform_kafka.kinds.commanded.requests import find_hurdle
from kafkaform_kafka.kinds.commanded.resource_types import LEADERS, LEADERS_TYPE, make_leaders
from kafkaform_kafka.kinds.topic.replica_moves import combine_faults
from kafkaform_kafka.wire.topics import TopicRow

from ....kit.kafka.changes import FACTS

REFUSED = Fault("PREFERRED_LEADER_NOT_AVAILABLE", "not in sync", FaultClass.NOT_APPLIED)
LOST = Fault("NO_ANSWER", "no answer", FaultClass.AMBIGUOUS)


def election(before: dict[int, int], after: dict[int, int]) -> Change:
    return Change(
        Identity("kafka", LEADERS, "orders"),
        "kafka_topic_leaders.alter",
        Action.UPDATE,
        make_leaders("orders", before),
        make_leaders("orders", after),
        tuple(
            PathChange(("leaders", str(n)), before[n], after[n])
            for n in before
            if before[n] != after[n]
        ),
        incarnation="id",
    )


def step() -> Step:
    (only,) = LEADERS_TYPE.steps(election({0: 2, 1: 1, 2: 3}, {0: 1, 1: 1, 2: 2}), FACTS)
    return only


def test_only_what_changes_is_sent() -> None:
    """One request for a topic, after the moves, safe to repeat, without a dry run of its own."""
    one = step()
    assert one.payload["leaders"] == {"0": 1, "2": 2} and one.weight == 2
    assert (one.request.name, one.request.part, one.request.phase) == ("ElectLeaders", 1, 80)
    assert (one.repeat, one.evidence) == (Repeat.SAFE, Evidence.LOCAL)
    assert LEADERS_TYPE.steps(election({0: 1}, {0: 1}), FACTS) == ()


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (TopicRow("orders", 0, "id", replicas=((1, 2), (1, 2), (2, 3))), None),
        (TopicRow("orders", 0, "id", replicas=((1, 2), (2, 1), (2, 3))), None),
        (TopicRow("orders", 0, "id", replicas=((2, 1), (1, 2), (2, 3))), "MOVED"),
        (TopicRow("orders", 0, "id", replicas=((1, 2),)), "MOVED"),
        (TopicRow("orders", 0, "other", replicas=((1, 2), (1, 2), (2, 3))), "RECREATED"),
        (TopicRow("orders", 3), "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_first_replicas_must_be_the_planned_ones(row: TopicRow, code: str | None) -> None:
    """Kafka is told no broker, so who would lead is looked at before."""
    fault = find_hurdle(step(), row)
    assert (fault.code if fault else None) == code


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([None, None], None),
        ([REFUSED, None], "1 of 2 partitions were refused, the others lead: not in sync"),
        ([REFUSED, REFUSED], "not in sync"),
        ([REFUSED, LOST, None], "2 of 3 partitions were refused, the others lead: no answer"),
    ],
)
def test_faults_of_partitions_become_one(answers: list[Fault | None], said: str | None) -> None:
    """What is not clear comes first, so that the leaders are read again."""
    fault = combine_faults(answers, "the others lead")
    assert (fault.message if fault else None) == said
