"""A reviewed plan and a topic that another client has changed since, in a value that the plan does
not write: both ways to apply a review refuse it, and say what was and what is."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import NewPartitions

from ...kit.commands.folder import Folder

CONFIG = 'config = { "retention.ms" = "1000000" }'


def review_partitions(folder: Folder) -> str:
    """One more partition for the topic, saved as `more.kfplan`; the approval."""
    folder.declare("a", partitions=1, more=CONFIG)
    folder.done("apply", "-auto-approve")
    folder.declare("a", partitions=2, more=CONFIG)
    folder.done("plan", "-out=more.kfplan")
    return folder.approval()


def refuse_both(folder: Folder, token: str) -> list[str]:
    """What the two refusals say."""
    return [
        folder.fails(4, "apply", "more.kfplan"),
        folder.fails(4, "apply", "-auto-approve", "--expect", token),
    ]


def test_a_value_that_the_plan_hides_refuses_it(folder: Folder) -> None:
    """A retention that somebody shortened: the saved plan names it with both values, and who set it
    last; as it was again, both are applied."""
    token = review_partitions(folder)
    folder.alter("a", "retention.ms", "1000")
    saved, _ = refuse_both(folder, token)
    assert "the plan is stale: kafka_topic.a: config.retention.ms" in saved
    assert "1000000" in saved and "changed outside kafkaform" in saved
    folder.alter("a", "retention.ms", "1000000")
    folder.done("apply", "more.kfplan")


@pytest.mark.parametrize("key", ["segment.ms", "cleanup.policy"])
def test_a_value_that_nobody_declared_refuses_it(folder: Folder, key: str) -> None:
    """The block owns the whole map, so a key that somebody added is a difference of it."""
    token = review_partitions(folder)
    folder.alter("a", key, {"segment.ms": "7000000", "cleanup.policy": "compact"}[key])
    saved, _ = refuse_both(folder, token)
    assert f"config.{key}" in saved


def test_the_very_change_by_somebody_else_refuses_it(folder: Folder) -> None:
    """Towards the declaration: what was reviewed is not what an apply would do now."""
    token = review_partitions(folder)
    (done,) = folder.admin.create_partitions([NewPartitions(f"{folder.prefix}a", 2)]).values()
    done.result(timeout=60)
    folder.until(lambda: folder.topics()["a"] == 2)
    saved, expected = refuse_both(folder, token)
    assert "the plan is stale: kafka_topic.a: partitions" in saved
    assert "this is not the plan that was approved" in expected
