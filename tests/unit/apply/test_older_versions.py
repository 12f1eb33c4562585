"""Plans, tokens and runs of before approvals covered all of a plan: readable, never applied, and
what they left open is recovered."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kafkaform.core.errors import PlanRefused
from kafkaform.plan.codec import decode, encode
from kafkaform.plan.model import RULE, Plan
from kafkaform.render.plan_text import render_plan_text
from kafkaform_kafka.memory import Killed, killed_after

from ...kit.simulated.engine import House, apply, desired, house, plan, topic
from ...kit.simulated.managed_topics import built, complete, writes
from .older import older, rewritten

SAID = desired(topic("a", 2))


def test_a_plan_of_the_first_rules_is_shown_and_not_applied(tmp_path: Path) -> None:
    """Its file has no rule at all; nothing is sent, and the advice is to plan again."""
    where = house()
    old = older(plan(where, SAID))
    data = encode(old)
    assert b'"rule"' not in data and decode(data, "plan.json") == old
    assert "1 to add" in render_plan_text(old)
    with pytest.raises(PlanRefused, match="rules of another version") as refused:
        apply(where, SAID, saved=old)
    assert "Plan again" in refused.value.advice and writes(where) == {}


def test_a_plan_of_later_rules_is_not_applied() -> None:
    """Nobody here knows what its approval covers."""
    where = house()
    with pytest.raises(PlanRefused, match="rules of another version"):
        apply(where, SAID, saved=replace(plan(where, SAID), rule=RULE + 1))
    assert writes(where) == {}


def test_a_short_token_is_refused() -> None:
    """16 digits of the configuration, as the first rules wrote it: before the lock is taken and
    anything is read."""
    where = house()
    made = plan(where, SAID)
    for approval in (made.approval, "0" * 64):
        with pytest.raises(PlanRefused, match="first 16 digits") as refused:
            apply(where, SAID, expect=f"{approval}.{made.configuration[:16]}")
        assert "Plan again" in refused.value.advice
    assert writes(where) == {} and where.sink.records == []


def test_every_digit_of_the_configuration_counts() -> None:
    """Another configuration whose digest begins alike is another one."""
    where = house()
    made = plan(where, SAID)
    for place in (16, 40, 63):
        digit = "0" if made.configuration[place] != "0" else "1"
        forged = made.configuration[:place] + digit + made.configuration[place + 1 :]
        with pytest.raises(PlanRefused, match="the configuration differs"):
            apply(where, SAID, expect=f"{made.approval}.{forged}")
    assert writes(where) == {}


def test_an_applied_approval_of_another_configuration_is_no_success() -> None:
    """What was applied under one configuration is not applied already under any other."""
    where = house()
    made = plan(where, SAID)
    assert complete(apply(where, SAID, expect=made.token))
    assert apply(where, SAID, expect=made.token).already
    with pytest.raises(PlanRefused):
        apply(where, SAID, expect=f"{made.approval}.{'0' * 64}")


def interrupted() -> tuple[House, Plan]:
    """A run under the first rules that died after it had sent its first request."""
    where = built(desired(topic("z")))
    said = desired(topic("z"), topic("a", 2), topic("b", depends_on=("kafka_topic.a",)))
    where.cluster.faults.schedule(killed_after(), "CreateTopics")
    with pytest.raises(Killed):
        apply(where, said)
    made = where.screen.plans[-1]
    rewritten(where, made, older(made))
    return where, older(made)


def test_a_run_that_an_older_version_left_open_is_recovered() -> None:
    """Its intents are closed by reading, under whatever rules it was approved; its approval is
    not resumed, and a new plan does the rest."""
    where, old = interrupted()
    said = desired(topic("z"), topic("a", 2), topic("b", depends_on=("kafka_topic.a",)))
    assert [r.body["approval"] for r in where.index.open_intents] == [old.approval]
    with pytest.raises(PlanRefused, match="rules of another version"):
        apply(where, said, expect=old.token)
    assert where.index.open_intents == () and set(where.cluster.topics) == {"a", "z"}
    assert complete(apply(where, said)) and set(where.cluster.topics) == {"a", "b", "z"}
    assert plan(where, said).changes == ()
