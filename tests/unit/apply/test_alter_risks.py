"""A change that the command line names tells what it could harm, like every other change."""

from __future__ import annotations

from kafkaform.plan.model import Plan
from kafkaform.render.plan_text import render_plan_text
from kafkaform_kafka.commands.alter import alter_topic

from ...kit.simulated.alterations import apply_alteration
from ...kit.simulated.engine import desired, house
from ...kit.simulated.managed_topics import MS

SAID = desired()


def alter(*configs: str) -> Plan:
    """What `alter topic a --add-config …` shows for a topic that is managed nowhere here."""
    where = house()
    with where.cluster.others() as others:
        others.create("a", 1, 1, MS)
    apply_alteration(where, alter_topic(["a"], list(configs)))
    (made,) = where.screen.plans
    return made


def test_a_shorter_retention_is_told_as_data_loss() -> None:
    """The danger comes first, and the times are in units."""
    text = " ".join(render_plan_text(alter("retention.ms=1")).split())
    assert "Dangers (1) ! data loss: a (kafka_topic.alter" in text
    assert "retention.ms 1 s → 1 ms: records older than that are deleted" in text


def test_what_harms_nothing_has_no_risk() -> None:
    """A longer retention deletes nothing, so nothing is measured."""
    made = alter("retention.ms=9999999999999")
    assert made.changes[0].findings == () and made.changes[0].impact is None
