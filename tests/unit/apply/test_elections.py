"""Preferred elections are planned, logged, sent and recovered like any other change."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.cli.terminal.console import Console
from kafkaform.cli.terminal.screen import JsonScreen, TextScreen
from kafkaform.core.change import OutcomeStatus
from kafkaform.core.errors import Blocked, DryRunRefused, PlanRefused, UsageError
from kafkaform.core.value import FrozenMap
from kafkaform.plan.model import Plan
from kafkaform.render.plan_text import render_plan_text
from kafkaform.workflow.model import Applied
from kafkaform_kafka.commands.alter import elect_preferred
from kafkaform_kafka.kinds.commanded.resource_types import LEADERS, LEADERS_API
from kafkaform_kafka.kinds.topic.simulation import topic_key
from kafkaform_kafka.memory import (
    Killed,
    SimulatedTopic,
    killed_after,
    killed_before,
    lost_reply,
    refused_items,
)

from ...kit.simulated.alterations import apply_alteration
from ...kit.simulated.engine import (
    House,
    apply,
    desired,
    house,
    plan,
)
from ...kit.simulated.managed_topics import ends

SAID = desired()


def led_by_others(*, partitions: int = 3, brokers: int = 3) -> House:
    """A topic whose partitions 1 and 2 are led by their second replicas, made by others."""
    where = house(brokers=brokers)
    with where.cluster.others():
        made = where.cluster.outside.create("orders", partitions, 2)
    others = FrozenMap({str(n): made.assignment[n][1] for n in (1, 2)})
    commit(where, replace(made, leaders=others))
    where.clock.advance(3600)
    return where


def commit(where: House, topic: SimulatedTopic) -> None:
    with where.cluster.others():
        where.cluster.commit({topic_key(topic.name): topic})


def elect(where: House, *names: str, gap: Any = None) -> Applied:
    """What `alter topic NAMES --elect-preferred` does."""
    return apply_alteration(where, elect_preferred(names or ("orders",)), gap)


def leaders(where: House) -> tuple[int, ...]:
    return where.cluster.topics["orders"].led


def first(where: House) -> tuple[int, ...]:
    return tuple(row[0] for row in where.cluster.topics["orders"].assignment)


def test_an_election_is_shown_logged_and_owned_by_nobody() -> None:
    """The plan names the partitions; intent before outcome; the state has no object."""
    where = led_by_others()
    before, after = leaders(where), first(where)
    done = elect(where)
    (shown,) = where.screen.plans
    text = " ".join(render_plan_text(shown).split())
    assert "preferred leaders of 2 partitions" in text
    assert all(f'"{n}" = {before[n]} → {after[n]}' in text for n in (1, 2))
    assert leaders(where) == after and done.report is not None and done.report.complete
    kinds = [r.kind for r in where.sink.records]
    assert kinds.index("intent") < kinds.index("outcome")
    (intent,) = where.records("intent")
    assert intent.body["phase"] == f"1.80 {LEADERS_API}" and intent.body["repeat"] == "safe"
    assert [p["path"] for p in intent.body["paths"]] == ["leaders.1", "leaders.2"]
    assert not where.state.objects
    where.check_log()


def test_what_is_led_well_is_left_alone() -> None:
    """Nothing is sent, not even a record is written."""
    where = led_by_others()
    elect(where)
    where.clock.advance(3600)
    written = len(where.sink.records)
    assert elect(where).report is None
    assert (where.cluster.requests[LEADERS_API], len(where.sink.records)) == (1, written)


def test_who_cannot_lead_is_left_out_and_told() -> None:
    """A broker that is down leads nothing; the other partitions are elected."""
    where = led_by_others()
    down = first(where)[1]
    where.cluster.stop(down)
    elect(where)
    (shown,) = where.screen.plans
    assert f"1 (broker {down})" in render_plan_text(shown) and "cannot lead" in render_plan_text(
        shown
    )
    assert leaders(where)[2] == first(where)[2] and leaders(where)[1] != down


@pytest.mark.parametrize("mishap", [killed_after(), killed_before()])
def test_a_run_that_died_is_recovered(mishap: Any) -> None:
    """The next run reads who leads, closes the intent, and one more election does the rest."""
    where = led_by_others()
    where.cluster.faults.schedule(mishap, LEADERS_API)
    with pytest.raises(Killed):
        elect(where)
    assert len(where.index.open_intents) == 1
    assert plan(where, SAID).pending[0].identity.kind == LEADERS
    apply(where, SAID)
    assert [kind for kind, _ in ends(where)] == ["recover"]
    assert not where.index.open_intents
    elect(where)
    assert leaders(where) == first(where) and not where.state.objects
    where.check_log()


def test_a_lost_answer_is_read() -> None:
    """Who leads proves what became of it: it is sent once."""
    where = led_by_others()
    where.cluster.faults.schedule(lost_reply(), LEADERS_API)
    done = elect(where)
    assert done.report is not None and done.report.complete
    assert ends(where) == [("outcome", "applied")]


def test_other_leaders_may_change_meanwhile() -> None:
    """Only the leaders that the plan names must still be as they were."""
    where = led_by_others()

    def others(_: Plan) -> None:
        topic = where.cluster.topics["orders"]
        more = topic.leaders.with_items({"0": topic.assignment[0][1]})
        commit(where, replace(topic, leaders=more))

    assert elect(where, gap=others).report is not None

    def same(_: Plan) -> None:
        commit(where, replace(where.cluster.topics["orders"], leaders=FrozenMap()))

    with pytest.raises(PlanRefused):
        elect(where, gap=same)


def test_other_first_replicas_are_not_elected_unseen() -> None:
    """Kafka elects the first replica of that moment: if it is another, nothing is sent."""
    where = led_by_others()

    def moved(_: Plan) -> None:
        topic = where.cluster.topics["orders"]
        rows = (topic.assignment[0], (9, topic.led[1]), topic.assignment[2])
        commit(where, replace(topic, assignment=rows))

    with pytest.raises(DryRunRefused):
        elect(where, gap=moved)
    assert where.records("intent") == []


def test_no_advice_of_another_command() -> None:
    """An `alter` has neither a --exclude nor an approval that could be given to it."""
    where = led_by_others()
    where.cluster.faults.schedule(refused_items(5), "DescribeTopics", times=100)
    with pytest.raises(Blocked) as caught:
        elect(where)
    assert "--exclude" not in caught.value.advice
    where.cluster.faults.clear()
    elect(where)
    assert "Approval:" not in render_plan_text(where.screen.plans[0])
    console = Console(colour=False, errors_colour=False, interactive=False, width=80)
    for shown in (TextScreen(console, command="alter"), JsonScreen(console, command="alter")):
        with pytest.raises(UsageError) as refused_:
            shown.ask_approval(where.screen.plans[0])
        assert refused_.value.advice == "Use --auto-approve."


def test_a_missing_topic_is_refused() -> None:
    """As for every other `alter`; and an election is not mixed with other changes."""
    where = led_by_others()
    with pytest.raises(UsageError, match="there is no topic"):
        elect(where, "orderz")
    with pytest.raises(UsageError, match="cannot be combined"):
        elect_preferred(("orders",), other_changes=True)


def test_a_refused_election_fails() -> None:
    """The step is told as failed, under the name that Kafka gives."""
    where = led_by_others()
    where.cluster.faults.schedule(refused_items(80), LEADERS_API)
    done = elect(where)
    assert done.report is not None
    (result,) = done.report.results
    assert result.outcome.status is OutcomeStatus.FAILED
    assert result.outcome.fault is not None
    assert result.outcome.fault.code == "PREFERRED_LEADER_NOT_AVAILABLE"
