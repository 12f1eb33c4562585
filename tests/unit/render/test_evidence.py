"""How a change was checked: one word for each, the weakest of its requests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, Change, Evidence, Verdict
from kafkaform.core.words import Words
from kafkaform.plan.model import Plan
from kafkaform.render.change_lines import CHECKED, render_change, render_evidence
from kafkaform.render.report import list_checked
from kafkaform.render.terraform import find_weakest_evidence
from kafkaform_kafka.kinds.topic import resource_type as topics

from ...kit.kafka.changes import FACTS, change, topic

ONE = "checked locally: AlterPartitionReassignments has no dry run"


def moving(config: dict[str, str]) -> Change:
    """A topic that gets another replica, and configs."""
    old = topic(partitions=1, replication_factor=1, replica_assignment=[[1]])
    new = topic(partitions=1, replication_factor=2, replica_assignment=[[1, 2]], config=config)
    update = change(Action.UPDATE, old, new)
    return replace(update, steps=topics.TYPE.steps(update, FACTS))


def test_a_topic_change_that_moves_replicas_tells_one_evidence() -> None:
    """Brokers check the configs and not the move: the change as a whole is checked locally, and
    the request that is the reason is named; plan, dry run and JSON agree. A plan says what will be
    checked, and only a dry run what was."""
    item = moving({"retention.ms": "1000"})
    names = [step.request.name for step in item.steps]
    assert names == ["IncrementalAlterConfigs", "AlterPartitionReassignments"]
    (line,) = [line.text for line in render_change(item) if "requests" in line.text]
    assert line == f"requests: {', '.join(names)} (will be {ONE})"
    verdicts = {step.id: Verdict(step.id, step.evidence) for step in item.steps}
    plan = cast(Plan, cast(Any, SimpleNamespace(effective=(item,))))
    (row,) = list_checked(plan, verdicts)
    assert (row.evidence, row.text, find_weakest_evidence(item)) == (Evidence.LOCAL, ONE, "local")


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ([("A", Evidence.REMOTE)], "checked by the broker"),
        ([("A", Evidence.REMOTE), ("B", Evidence.REMOTE)], "checked by the broker"),
        ([("A", Evidence.LOCAL), ("B", Evidence.LOCAL)], "checked locally"),
        (
            [("A", Evidence.LOCAL), ("B", Evidence.REMOTE), ("A", Evidence.LOCAL)],
            "checked locally: A has no dry run",
        ),
        (
            [("A", Evidence.NONE), ("B", Evidence.LOCAL)],
            "cannot be checked in advance: A has no dry run",
        ),
    ],
)
def test_the_weakest_request_speaks_for_the_change(
    found: list[tuple[str, Evidence]], told: str
) -> None:
    """It is named only where the others are checked better."""
    assert render_evidence(found, Words(node="broker"), CHECKED) == told


@pytest.mark.parametrize(
    ("evidence", "told"),
    [
        (Evidence.REMOTE, "the broker will check"),
        (Evidence.LOCAL, "will be checked locally"),
        (Evidence.NONE, "cannot be checked in advance"),
    ],
)
def test_nothing_is_called_checked_before_a_dry_run(evidence: Evidence, told: str) -> None:
    """A plan has only read what is there."""
    assert render_evidence([("A", evidence)], Words(node="broker")) == told
