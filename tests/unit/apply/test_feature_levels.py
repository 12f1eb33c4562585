"""Levels of features are planned, tried, logged, sent and recovered like any other change."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.errors import DryRunRefused, PlanRefused, UsageError
from kafkaform.plan.model import Plan
from kafkaform.render.plan_text import render_plan_text
from kafkaform.workflow.model import Applied
from kafkaform_kafka.commands.commanded import alter_features
from kafkaform_kafka.kinds.commanded.resource_types import FEATURE, FEATURE_API
from kafkaform_kafka.kinds.commanded.simulation import SUPPORTED, feature_key
from kafkaform_kafka.memory import Killed, killed_after, killed_before, lost_reply

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


def alter(where: House, *levels: str, gap: Any = None, **flags: bool) -> Applied:
    """What `alter features LEVELS` does."""
    wanted = alter_features(levels, **flags)  # type: ignore[arg-type]  # a tuple is as good
    return apply_alteration(where, wanted, gap)


def level(where: House, name: str) -> int:
    found = where.cluster.world.get(feature_key(name))
    return SUPPORTED[name][1] if found is None else int(found)


def shown(where: House) -> str:
    (made,) = where.screen.plans
    return " ".join(render_plan_text(made).split())


def test_a_downgrade_is_shown_tried_logged_and_owned_by_nobody() -> None:
    """The plan says what is lost; the dry run is the broker's; intent before outcome."""
    where = house()
    done = alter(where, "group.version=0", downgrade=True)
    assert level(where, "group.version") == 0
    assert done.report is not None and done.report.complete
    text = shown(where)
    assert "group.version 1 → 0" in text and "can no longer join their groups" in text
    assert where.cluster.requests[FEATURE_API] == 1
    assert len(where.records("validate")) == 1
    (intent,) = where.records("intent")
    assert intent.body["phase"] == f"1.100 {FEATURE_API}" and intent.body["repeat"] == "safe"
    assert not where.state.objects
    where.check_log()


def test_an_upgrade_switches_it_on_again() -> None:
    """Without a flag, because nothing is lost."""
    where = house()
    alter(where, "group.version=0", downgrade=True)
    where.clock.advance(3600)
    alter(where, "group.version=1")
    assert level(where, "group.version") == 1 and "takes something away" not in shown(where)


def test_several_features_go_in_one_request() -> None:
    """Levels depend on each other, so the controller judges them together."""
    where = house()
    alter(where, "group.version=0", "share.version=0", downgrade=True)
    assert (level(where, "group.version"), level(where, "share.version")) == (0, 0)
    assert where.cluster.requests[FEATURE_API] == 1 and len(where.records("intent")) == 2


def test_a_level_that_is_there_is_left_alone() -> None:
    """Nothing is sent, not even a record is written."""
    where = house()
    written = len(where.sink.records)
    assert alter(where, "group.version=1").report is None
    assert (where.cluster.requests[FEATURE_API], len(where.sink.records)) == (0, written)


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("metadata.version=3.9", {"downgrade": True}),
        ("metadata.version=3.9", {"unsafe": True}),
        ("group.version=2", {}),
    ],
)
def test_what_the_controller_refuses_is_not_sent(text: str, flags: dict[str, bool]) -> None:
    """The dry run finds out: a downgrade that loses metadata, a level that a broker lacks."""
    where = house()
    with pytest.raises(DryRunRefused):
        alter(where, text, **flags)
    assert where.cluster.requests[FEATURE_API] == 0 and not where.records("intent")


def test_one_refused_feature_holds_back_the_others() -> None:
    """As the controller does since Kafka 4.0."""
    where = house()
    with pytest.raises(DryRunRefused):
        alter(where, "group.version=0", "metadata.version=3.9", downgrade=True)
    assert level(where, "group.version") == 1


def test_a_downgrade_without_its_flag_is_no_plan() -> None:
    """The command ends before anything is planned."""
    where = house()
    with pytest.raises(UsageError, match="is a downgrade"):
        alter(where, "group.version=0")
    assert not where.cluster.requests[FEATURE_API] and not where.screen.plans


def test_a_level_that_changes_meanwhile_makes_the_plan_stale() -> None:
    """What was approved is the step from this level to that one."""
    where = house()

    def others(_: Plan) -> None:
        with where.cluster.others():
            where.cluster.commit({feature_key("metadata.version"): 29})

    with pytest.raises(PlanRefused):
        alter(where, "metadata.version=29", gap=others, downgrade=True)


def test_a_lost_answer_is_read() -> None:
    """The level proves what became of it: it is sent once."""
    where = house()
    where.cluster.faults.schedule(lost_reply(), FEATURE_API)
    done = alter(where, "group.version=0", downgrade=True)
    assert done.report is not None and done.report.complete
    assert ends(where) == [("outcome", "applied")]


@pytest.mark.parametrize("mishap", [killed_after(), killed_before()])
def test_a_run_that_died_is_recovered(mishap: Any) -> None:
    """The next run reads the level and closes the intent; another alter does the rest."""
    where = house()
    where.cluster.faults.schedule(mishap, FEATURE_API)
    with pytest.raises(Killed):
        alter(where, "group.version=0", downgrade=True)
    assert len(where.index.open_intents) == 1
    assert plan(where, SAID).pending[0].identity.kind == FEATURE
    apply(where, SAID)
    assert not where.index.open_intents
    alter(where, "group.version=0", downgrade=True)
    assert level(where, "group.version") == 0 and not where.state.objects
    where.check_log()
