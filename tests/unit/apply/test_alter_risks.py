"""A change that the command line names tells what it could harm, like every other change."""

from __future__ import annotations

from kafkaform.cli.terminal.run_command import advise
from kafkaform.plan.model import Plan
from kafkaform.render.plan_text import render_plan_text
from kafkaform.workflow.alter.planning import plan_alteration
from kafkaform.workflow.applying import run_apply
from kafkaform.workflow.connection import Connection
from kafkaform.workflow.run import ApplyRequest
from kafkaform_kafka.commands.alter import alter_topic

from ...kit.simulated.engine import KAFKA, Screen, desired, finish, house, space
from ...kit.simulated.managed_topics import MS

SAID = desired()


def alter(*configs: str) -> Plan:
    """What `alter topic a --add-config …` shows for a topic that is managed nowhere here."""
    where = house()
    with where.cluster.others() as others:
        others.create("a", 1, 1, MS)
    where.screen = Screen()
    found = Connection(where.providers[KAFKA], SAID.providers[KAFKA], {})
    wanted = alter_topic(["a"], list(configs))
    ask = ApplyRequest(
        approve=where.screen.approve,
        command="alter",
        instance=KAFKA,
        make=lambda scene: plan_alteration(scene, found, wanted),
        again=advise("alter"),
    )
    finish(lambda stop: run_apply(space(where, SAID), ask, progress=where.screen.report, stop=stop))
    (made,) = where.screen.plans
    return made


def test_a_shorter_retention_is_told_as_data_loss() -> None:
    """The risk comes first, and the times are in units."""
    text = " ".join(render_plan_text(alter("retention.ms=1")).split())
    assert "Risks (1) ! data loss: kafka_topic.alter" in text
    assert "records older than 1 ms are deleted" in text


def test_what_harms_nothing_has_no_risk() -> None:
    """A longer retention deletes nothing, so nothing is measured."""
    made = alter("retention.ms=9999999999999")
    assert made.changes[0].risks == () and made.changes[0].impact is None
