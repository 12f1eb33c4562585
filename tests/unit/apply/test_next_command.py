"""A run that was refused says how to go on: by the command that began it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaform.apply.report import Rerun
from kafkaform.cli.terminal.screen import advise
from kafkaform.core.change import OutcomeStatus
from kafkaform.core.errors import DryRunRefused, KafkaformError, PlanRefused, exit_code
from kafkaform.plan.model import Mode, Options
from kafkaform_kafka.memory import lost_request, not_sent, refused_items

from ...kit.simulated.engine import apply, desired, topic
from ...kit.simulated.managed_topics import MS, between, built, statuses

REVIEWED = "Plan again and have the new plan reviewed."


@pytest.mark.parametrize(
    ("rerun", "command_text", "new_plan_advice"),
    [
        (advise("apply"), "`kafkaform apply`", "Run `kafkaform apply` again: it makes a new plan."),
        (advise("apply", Path("out.plan")), "`kafkaform apply out.plan`", REVIEWED),
        (advise("apply", Path("a b")), "`kafkaform apply 'a b'`", REVIEWED),
        (advise("apply", expect="12.34"), "`kafkaform apply --expect 12.34`", REVIEWED),
        (
            advise("apply", Path("p"), "12.34"),
            "`kafkaform apply p --expect 12.34`",
            REVIEWED,
        ),
        (
            advise("apply", options=Options(Mode.REFRESH, target=("kafka_topic.a[*]",))),
            "`kafkaform apply --refresh-only '--target=kafka_topic.a[*]'`",
            "Run `kafkaform apply --refresh-only '--target=kafka_topic.a[*]'` again: it makes a "
            "new plan.",
        ),
        (
            advise("alter"),
            "the same `kafkaform alter`",
            "Run the same `kafkaform alter` again: it makes a new plan.",
        ),
    ],
)
def test_each_way_to_begin_a_run_has_its_way_to_go_on(
    rerun: Rerun, command_text: str, new_plan_advice: str
) -> None:
    """A user without a saved plan does not get the advice to apply one again."""
    assert rerun.command_text == command_text and rerun.new_plan_advice == new_plan_advice
    assert rerun.repeat_advice == f"Run {command_text} again."


def test_what_could_not_be_read_midway_is_applied_in_part() -> None:
    """Not a refused plan: something was applied. The same command does the rest."""
    where = built(desired(topic("z")))

    def act() -> None:
        where.cluster.faults.schedule(refused_items(29, names="z"), "DescribeTopics")

    between(where, "CreateTopics", act)
    done = apply(where, desired(topic("z", 1, MS), topic("a")))
    assert statuses(done) == {"a#1": OutcomeStatus.APPLIED, "z#2": OutcomeStatus.SKIPPED}
    assert done.report is not None
    error = done.report.make_error(Rerun())
    assert error is not None and exit_code(error) == 5
    assert "1 step not sent: objects of the plan could not be read" in error.message
    assert error.advice.endswith("Run `kafkaform apply` again.")


def test_what_never_left_is_no_failure_and_not_unknown() -> None:
    """A request that could not be sent had no effect, and the last line says that."""
    where = built(desired(topic("z")))
    where.cluster.faults.schedule(not_sent(), "CreateTopics")
    done = apply(where, desired(topic("z"), topic("a")))
    assert done.report is not None
    error = done.report.make_error(Rerun())
    assert error is not None and exit_code(error) == 5 and error.message == "1 step not applied"


def test_a_plan_that_is_refused_before_anything_was_sent_is_refused() -> None:
    """Exit code 4 stays what it is."""
    where = built(desired(topic("z")))

    def gap(_: object) -> None:
        with where.cluster.others() as others:
            others.alter("z", {"retention.ms": "9"})

    with pytest.raises(KafkaformError) as caught:
        apply(where, desired(topic("z", 1, MS)), gap=gap)
    assert isinstance(caught.value, PlanRefused) and exit_code(caught.value) == 4
    assert caught.value.advice == "Run `kafkaform apply` again: it makes a new plan."


def test_whoever_does_not_answer_a_dry_run_is_asked_once() -> None:
    """Each further request would be waited for as long; nothing that was not checked is sent."""
    where = built(desired(topic("z"), topic("y")))
    where.cluster.faults.schedule(lost_request(), "CreateTopics:validate")
    before = where.cluster.requests.copy()
    with pytest.raises(DryRunRefused) as caught:
        apply(where, desired(topic("z", 1, MS), topic("y", 2), topic("a")))
    asked = where.cluster.requests - before
    assert [api for api in asked if api.endswith(":validate")] == ["CreateTopics:validate"]
    told = [item.detail for item in caught.value.diagnostics]
    assert len(told) == 3 and sum("not checked: no answer" in text for text in told) == 2
