"""What a change of replicas asks of the cluster, and what is said about it beforehand."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.change import Action, Change, Evidence, Repeat
from kafkaform.core.resource import Observed
from kafkaform_kafka.kinds import kind
from kafkaform_kafka.kinds.topic import resource_type as topics
from kafkaform_kafka.protocol.config_keys import parse_size
from kafkaform_kafka.session import KafkaSession

from ....kit.kafka.changes import FACTS, change, facts, topic
from ....kit.kafka.logins import Login
from ....kit.kafka.sessions import apply, eventually, grant, new, read


def moving(before: Any, after: Any, *, config: dict[str, str] | None = None) -> Change:
    """An update from one assignment to another."""
    old = topic(
        partitions=len(before), replication_factor=len(before[0]), replica_assignment=before
    )
    wished = {"replication_factor": len(after[0]), "replica_assignment": after}
    new_one = topic(partitions=len(after), **wished, config=config or {})
    return change(Action.UPDATE, old, new_one)


def test_only_the_partitions_that_change_are_sent() -> None:
    """The step may never be repeated blindly, is checked here, and says where it goes."""
    [step] = topics.TYPE.steps(moving([[1], [2]], [[1], [2, 3]]), FACTS) or [None]
    assert step is not None and step.request == kind.MOVE_REPLICAS
    assert (step.repeat, step.evidence, step.weight) == (Repeat.NEVER, Evidence.LOCAL, 1)
    assert step.payload["replicas"] == {"1": (2, 3)} and step.owes is None


def test_growth_comes_first_as_wide_as_the_topic_is() -> None:
    """The move waits for the step that adds the partitions, and moves those too."""
    growth, move = topics.TYPE.steps(moving([[1]], [[1, 2], [2, 3]]), FACTS)
    assert growth.payload["assignment"] == ((2,),) and growth.paths == (("partitions",),)
    assert move.after == (growth.id,)
    assert move.payload["replicas"] == {"0": (1, 2), "1": (2, 3)}


@pytest.mark.parametrize(
    ("before", "after", "brokers"),
    [
        ([[1]], [[1, 2]], (1, 2)),
        ([[1, 2]], [[1]], None),
        ([[1, 2]], [[2, 1]], None),
        ([[1], [3]], [[2], [3]], (1, 2)),
    ],
)
def test_only_what_copies_data_is_throttled(before: Any, after: Any, brokers: Any) -> None:
    """The ticket names the brokers that give and take, and is owed by the step."""
    [step] = topics.TYPE.steps(moving(before, after), facts(reassignment_throttle=1000))
    if brokers is None:
        assert step.owes is None and "throttle" not in step.payload
    else:
        listed = ",".join(map(str, brokers))
        assert step.owes == step.payload["throttle"] == f"orders/id-1/throttle/1000/{listed}"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (1000, 1000),
        ("50MiB", 50 * 1024**2),
        ("1.5 GB", 1_500_000_000),
        ("300KiB/s", 300 * 1024),
        ("0", None),
        ("fast", None),
        (True, None),
    ],
)
def test_sizes_are_read(text: Any, size: int | None) -> None:
    """Binary and decimal units; what is none is none."""
    assert parse_size(text) == size


def test_without_the_right_it_is_said_that_moves_are_unknown(
    broker: Any, admin: KafkaSession, ci: KafkaSession, stranger: Login, prefix: str
) -> None:
    """The list of moves needs Describe on Cluster; nobody guesses."""
    apply(admin, new(prefix))
    revoke = grant(broker, stranger, "Topic", prefix, "DESCRIBE", "DESCRIBE_CONFIGS")
    try:
        seen = eventually(lambda: read(ci, prefix), lambda r: isinstance(r, Observed))
        assert isinstance(seen, Observed) and seen.moving is None
        assert str(seen.details["moves"]).startswith("unknown: ")
    finally:
        revoke()
