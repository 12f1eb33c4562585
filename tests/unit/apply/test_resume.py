"""Applying an approval again goes on where its run stopped, and never does a thing twice."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from kafkaform.core.errors import PlanRefused
from kafkaform.core.resource import Lifecycle
from kafkaform.plan.model import Plan
from kafkaform.workflow.model import Applied
from kafkaform_kafka.memory import (
    Killed,
    Mishap,
    killed_after,
    killed_before,
    not_sent,
    refused_items,
)

from ...kit.simulated.engine import House, apply, desired, house, plan, removed, topic
from ...kit.simulated.managed_topics import MS, built, complete, statuses, writes

FIRST = desired(topic("z"), topic("d"), topic("f"))
SAID = desired(
    topic("z", 2, MS),
    topic("a"),
    topic("b", depends_on=("kafka_topic.a",)),
    topic("f", lifecycle=Lifecycle(prevent_destroy=True)),
    removed=(removed("kafka_topic.d", destroy=True),),
)


def part_done() -> tuple[House, Plan]:
    """Bookkeeping of `f` and the create of `a` are applied, then the process died."""
    where = built(FIRST)
    saved = plan(where, SAID)
    where.cluster.faults.schedule(killed_after(), "CreateTopics", skip=1)
    with pytest.raises(Killed):
        apply(where, SAID, saved=saved)
    return where, saved


@pytest.mark.parametrize("how", ["plan", "expect", "both"])
def test_an_open_run_is_resumed_by_its_approval(how: str) -> None:
    """What the open run applied is not sent again; what is left is, and the run is complete."""
    where, saved = part_done()
    sent = writes(where)["CreateTopics"]
    done = apply(
        where,
        SAID,
        saved=saved if how != "expect" else None,
        expect=saved.token if how != "plan" else None,
    )
    assert complete(done) and "Resuming run" in where.screen.notes[0]
    assert writes(where)["CreateTopics"] == sent
    assert where.cluster.topics.keys() == {"z", "a", "b", "f"}
    assert where.index.open_run is None and plan(where, SAID).changes == ()


ORDER = (
    "CreateTopics",
    "CreatePartitions",
    "IncrementalAlterConfigs",
    "CreateTopics",
    "DeleteTopics",
)


@pytest.mark.parametrize("mishap", [killed_after(), killed_before()], ids=repr)
def test_a_resumed_run_that_dies_is_resumed_again(mishap: Mishap) -> None:
    """Deaths add up to one run, whatever request they end, also between two steps of a change."""
    where = built(FIRST)
    saved, before = plan(where, SAID), writes(where)
    for api in ORDER:
        where.cluster.faults.schedule(mishap, api)
        with pytest.raises(Killed):
            apply(where, SAID, saved=saved)
        if not mishap.sent:
            where.cluster.faults.clear()
            where.cluster.faults.schedule(killed_after(), api)
            with pytest.raises(Killed):
                apply(where, SAID, saved=saved)
    assert complete(apply(where, SAID, saved=saved))
    sent = {api: count - before.get(api, 0) for api, count in writes(where).items()}
    assert sent == Counter(ORDER)
    assert plan(where, SAID).changes == ()


def test_a_run_in_part_is_resumed() -> None:
    """A run that ended with a failure is open too."""
    where = built(FIRST)
    saved = plan(where, SAID)
    where.cluster.faults.schedule(refused_items(44, names="b"), "CreateTopics", skip=1)
    assert not complete(apply(where, SAID, saved=saved))
    done = apply(where, SAID, saved=saved)
    assert complete(done) and plan(where, SAID).changes == ()
    assert set(statuses(done)) == {"a#1", "b#1", "f#state", "z#1", "z#2", "d#1"}


def test_a_complete_run_says_that_it_was_applied() -> None:
    """The same approval a second time sends nothing and is no error."""
    where = built(FIRST)
    saved = plan(where, SAID)
    first = apply(where, SAID, saved=saved)
    assert complete(first)
    before = writes(where)
    again: Applied = apply(where, SAID, saved=saved)
    assert (again.already, again.report) == (first.run, None)
    assert writes(where) == before


def test_a_complete_run_that_no_longer_holds_is_stale() -> None:
    """Somebody undid a part of it: the old plan does not silently do it again."""
    where = built(FIRST)
    saved = plan(where, SAID)
    assert complete(apply(where, SAID, saved=saved))
    with where.cluster.others() as others:
        others.delete("a")
    with pytest.raises(PlanRefused):
        apply(where, SAID, saved=saved)
    assert "a" not in where.cluster.topics


def test_what_somebody_undid_between_is_not_skipped() -> None:
    """A step of the open run counts as done only while a fresh reading shows it."""
    where, saved = part_done()
    with where.cluster.others() as others:
        others.delete("a")
    with pytest.raises(PlanRefused, match="kafka_topic.a"):
        apply(where, SAID, saved=saved)


def test_a_run_under_another_approval_closes_the_open_one() -> None:
    """After another plan was applied, the old approval is planned and checked anew."""
    where, saved = part_done()
    assert complete(apply(where, desired(*SAID.declared, topic("n"), removed=SAID.removed)))
    with pytest.raises(PlanRefused):
        apply(where, SAID, saved=saved)


def test_another_configuration_is_not_the_approved_one() -> None:
    """Same changes, other files: --expect names both."""
    where = built(FIRST)
    saved = plan(where, SAID)
    other = desired(*SAID.declared, removed=SAID.removed, timeout=5)
    edited = replace(other, digest="f" * 64)
    with pytest.raises(PlanRefused, match="configuration differs"):
        apply(where, edited, expect=saved.token)


def test_an_open_run_is_resumed_whatever_the_configuration_declares_now() -> None:
    """A saved plan says itself what to do; of the folder it needs the connection alone."""
    where = house()
    said = desired(topic("a"))
    saved = plan(where, said)
    where.cluster.faults.schedule(not_sent(), "CreateTopics")
    assert not complete(apply(where, said, saved=saved))
    assert complete(apply(where, desired(), saved=saved))
    assert set(where.cluster.topics) == {"a"}
