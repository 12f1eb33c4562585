"""Rules of topics that are fine alone and wrong together."""

from __future__ import annotations

from kafkaform.core.change import Action, Change, add_findings
from kafkaform.core.finding import Block, Finding
from kafkaform.core.resource import (
    Coverage,
    CoverageKind,
    Depth,
    Fault,
    FaultClass,
    Identity,
    Observed,
    Sweep,
)
from kafkaform.core.value import FrozenMap
from kafkaform.plan.rules import PROTECTED
from kafkaform_kafka.provider import PROVIDER

from ....kit.kafka.changes import change, topic
from ....kit.kafka.judgement import survey

VISIBLE = Coverage(CoverageKind.VISIBLE_ONLY)


def create(name: str, address: str = "kafka_topic.x") -> Change:
    """A create of a topic."""
    edit = change(Action.CREATE, None, topic(name))
    return Change(edit.identity, address, edit.action, None, edit.after, edit.paths)


def delete(name: str, address: str = "kafka_topic.x") -> Change:
    edit = change(Action.DELETE, topic(name), None)
    return Change(edit.identity, address, edit.action, edit.before, None, edit.paths)


def judge(
    *changes: Change, live: tuple[str, ...] = (), coverage: Coverage = VISIBLE
) -> list[tuple[str, Finding]]:
    """What is found about these changes on a cluster with these topics, by name."""
    items = tuple(
        Observed(Identity("kafka", "kafka_topic", name), FrozenMap(name=name)) for name in live
    )
    sweep = Sweep("kafka_topic", Depth.NAMES, items, coverage)
    pairs = survey(changes, {"kafka_topic": sweep})
    return [("" if identity is None else identity.key, finding) for identity, finding in pairs]


def collisions(pairs: list[tuple[str, Finding]]) -> dict[str, str]:
    """Topic -> the collision that blocks it; each block stops an apply."""
    blocks = {key: item for key, item in pairs if item.rule == "topic-name-collides"}
    assert all(item.block is Block.CONFLICT for item in blocks.values())
    return {key: item.text for key, item in blocks.items()}


def test_a_name_that_collides_with_a_live_topic_is_blocked() -> None:
    """a_b cannot be created while a.b lives."""
    assert collisions(judge(create("a_b"), live=("a.b", "c"))) == {
        "a_b": "a_b collides with the live topic a.b: Kafka's metric names treat '.' and '_' as "
        "the same"
    }


def test_a_name_that_collides_with_a_topic_deleted_by_the_plan_says_so() -> None:
    """Creates come first, so the deletion must be applied on its own."""
    gone = delete("a.b", "kafka_topic.y")
    ((_, finding),) = judge(create("a_b"), gone, live=("a.b",))
    assert "this plan deletes" in finding.text
    assert finding.fix == "Apply the deletion first (--target=ITS_ADDRESS), then plan again."
    kept = add_findings(gone, PROTECTED.find("it is protected"))
    ((_, finding),) = judge(create("a_b"), kept, live=("a.b",))
    assert "the live topic a.b" in finding.text


def test_two_new_topics_that_collide_are_both_blocked() -> None:
    """No broker sees this in a dry run, because neither topic is there yet."""
    names = collisions(judge(create("x.y"), create("x_y"), create("z")))
    assert set(names) == {"x.y", "x_y"}


def test_names_that_differ_otherwise_pass() -> None:
    """A live topic of the same name is not a collision: that is for the planner to judge."""
    assert judge(create("a.b"), create("a-b"), live=("a.b", "ab")) == []


def test_configs_declared_twice_are_blocked() -> None:
    """One topic's overrides have one declaration."""
    whole = {"topic": "orders", "config": {"retention.ms": "1"}}
    double = change(Action.NOOP, whole, whole, kind="kafka_topic_config")
    ((key, finding),) = judge(create("orders"), double)
    assert key == "orders" and finding.block is Block.CONFLICT
    assert (finding.rule, finding.text) == (
        "topic-configs-declared-twice",
        "kafka_topic.x also declares the configs of orders",
    )
    assert judge(delete("orders"), double) == []


def test_a_new_name_in_a_block_is_told_on_both_sides() -> None:
    """Kafka deletes one topic and creates the other, which nobody means."""
    pairs = judge(delete("old"), create("new"))
    assert {(key, item.rule) for key, item in pairs} == {
        ("old", "topic-renamed"),
        ("new", "topic-renamed"),
    }
    texts = {key: item.text for key, item in pairs}
    assert texts["old"] == (
        'Kafka cannot rename a topic: "new" is created beside it, without its records'
    )
    assert texts["new"] == (
        'Kafka cannot rename a topic: this one is created without the records of "old"'
    )
    assert judge(delete("old"), create("new", "kafka_topic.y")) == []


def test_only_creates_need_the_names() -> None:
    """A plan that creates nothing does not list the cluster."""
    assert PROVIDER.review_needs([create("a")])["kafka_topic"] is Depth.NAMES
    assert "kafka_topic" not in PROVIDER.review_needs([delete("a")])


def test_a_failed_listing_is_told() -> None:
    """Without the names a collision shows up later, and the user knows."""
    fault = Fault("TRANSPORT", "no answer", FaultClass.AMBIGUOUS)
    ((key, finding),) = judge(create("a"), coverage=Coverage(CoverageKind.FAILED, fault))
    assert (key, finding.rule) == ("", "topic-names-not-listed")
    assert judge(create("a")) == []
