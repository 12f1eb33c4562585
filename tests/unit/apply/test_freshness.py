"""The world between plan and apply: what was touched stales the plan, nothing else does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.errors import PlanRefused
from kafkaform.core.resource import Desired, Lifecycle
from kafkaform.core.value import FrozenMap
from kafkaform.plan.model import Plan, seal_plan
from kafkaform.state.codec import encode
from kafkaform.state.model import put_row
from kafkaform_kafka.memory import refused_items

from ...kit.simulated.engine import (
    House,
    apply,
    desired,
    house,
    identity,
    moved,
    plan,
    removed,
    topic,
)
from ...kit.simulated.managed_topics import MS, built, complete, writes

FIRST = desired(topic("a", 2, MS), topic("b"), topic("n"))
ADOPT = Lifecycle(adopt=True)

Gap = Callable[[House, Any], None]


def hand(where: House, **members: Any) -> None:
    """Somebody else's run changes the row of `a`."""
    row = where.row("a")
    assert row is not None
    changed = put_row(where.state, replace(row, **members))
    where.backend.data = encode(replace(changed, serial=changed.serial + 1))


GAPS: dict[str, tuple[Desired, Gap, str]] = {
    "an update's config": (
        desired(topic("a", 2, {"retention.ms": "5"}), topic("b"), topic("n")),
        lambda where, others: others.alter("a", {"retention.ms": "6"}),
        r"config\.retention\.ms was 1 s \(1000\) and is 6 ms now \(changed outside kafkaform",
    ),
    "an override more on an authoritative topic": (
        desired(topic("a", 2, {"retention.ms": "5"}), topic("b"), topic("n")),
        lambda where, others: others.alter("a", {"segment.ms": "60000"}),
        r"config\.segment\.ms was not set and is 1 min \(60000\) now",
    ),
    "an override less": (
        desired(topic("a", 2, {**MS, "segment.ms": "60000"}), topic("b"), topic("n")),
        lambda where, others: others.alter("a", {"retention.ms": None}),
        r"config\.retention\.ms was 1 s \(1000\) and is not set now",
    ),
    "partitions that grow": (
        desired(topic("a", 3, MS), topic("b"), topic("n")),
        lambda where, others: others.grow("a", 5),
        "partitions was 2 and is 5 now",
    ),
    "an updated topic deleted": (
        desired(topic("a", 3, MS), topic("b"), topic("n")),
        lambda where, others: others.delete("a"),
        "no longer exists",
    ),
    "an updated topic recreated": (
        desired(topic("a", 3, MS), topic("b"), topic("n")),
        lambda where, others: others.recreate("a"),
        "deleted and recreated",
    ),
    "a created topic made by somebody": (
        desired(*FIRST.declared, topic("c")),
        lambda where, others: others.create("c"),
        "exists now",
    ),
    "a deleted topic gone": (
        desired(topic("n"), removed=(removed("kafka_topic.a", destroy=True),)),
        lambda where, others: others.delete("a"),
        "no longer exists",
    ),
    "a deleted topic recreated": (
        desired(topic("n"), removed=(removed("kafka_topic.a", destroy=True),)),
        lambda where, others: others.recreate("a"),
        "deleted and recreated",
    ),
    "a deleted topic in use again": (
        desired(topic("n"), removed=(removed("kafka_topic.a", destroy=True),)),
        lambda where, others: others.grow("a", 9),
        "partitions was 2 and is 9 now",
    ),
}


@pytest.mark.parametrize("what", GAPS)
def test_a_change_of_what_the_plan_touches_refuses_it(what: str) -> None:
    """The refusal names the object and what changed, and nothing was sent."""
    said, gap, problem = GAPS[what]
    where = built(FIRST)
    before = writes(where)

    def meanwhile(shown: Plan) -> None:
        with where.cluster.others() as others:
            gap(where, others)

    with pytest.raises(PlanRefused, match=rf"kafka_topic\.[ac]: .*{problem}"):
        apply(where, said, gap=meanwhile)
    assert writes(where) == before and not where.records("intent")[3:]


@pytest.mark.parametrize(
    "members",
    [
        {"protected": "no"},
        {"owners": ("kafka_topic.a", "kafka_topic.z")},
        {"secret_version": "2"},
    ],
)
def test_a_row_that_somebody_changed_refuses_a_saved_plan(members: dict[str, Any]) -> None:
    """Owners, protection and secret version are what was reviewed."""
    where = built(FIRST)
    said = desired(topic("a", 3, MS), topic("b"), topic("n"))
    saved = plan(where, said)
    hand(where, **members)
    with pytest.raises(PlanRefused, match="record in the state changed"):
        apply(where, said, saved=saved)


def test_a_later_object_of_that_name_is_not_forgotten() -> None:
    """A plan that forgets an object says nothing about the one that took its place."""
    where = built(FIRST)

    def without_b(destroy: bool) -> Desired:
        gone = (removed("kafka_topic.b", destroy=destroy),)
        return desired(topic("a", 2, MS), topic("n"), removed=gone)

    said = without_b(False)
    saved = plan(where, said)
    assert complete(apply(where, without_b(True)))
    assert complete(apply(where, FIRST))
    with pytest.raises(PlanRefused, match="belongs to another object now"):
        apply(where, said, saved=saved)
    assert where.row("b") is not None


def test_other_peoples_changes_do_not_stale_a_plan() -> None:
    """New topics, other topics' configs and rows, and a higher serial are not our business."""
    where = built(FIRST)
    said = desired(topic("a", 3, MS), topic("b"), topic("n"))
    saved = plan(where, said)
    assert complete(apply(where, desired(topic("a", 2, MS), topic("b", 4), topic("n"))))
    with where.cluster.others() as others:
        others.create("stranger")
        others.alter("n", {"retention.ms": "1"})
    assert complete(apply(where, said, saved=saved))
    assert where.cluster.topics["a"].partitions == 3
    assert where.cluster.topics["b"].partitions == 4


def test_an_unreadable_object_refuses() -> None:
    """Nobody knows what would be overwritten."""
    where = built(FIRST)

    def meanwhile(shown: Plan) -> None:
        where.cluster.faults.schedule(refused_items(29, names="a"), "DescribeTopics")

    with pytest.raises(PlanRefused, match="could not be read") as refusal:
        apply(where, desired(topic("a", 3, MS), topic("b"), topic("n")), gap=meanwhile)
    (told,) = refusal.value.diagnostics
    assert "stale" not in told.summary and told.advice.endswith("Run `kafkaform apply` again.")


def test_a_cause_is_told_once() -> None:
    """A dead broker fails all reads alike."""
    where = built(FIRST)

    def meanwhile(shown: Plan) -> None:
        where.cluster.faults.schedule(refused_items(29), "DescribeTopics")

    said = desired(topic("a", 3, MS), topic("b", 4), topic("n"))
    with pytest.raises(PlanRefused, match="kafka_topic.a, kafka_topic.b: ") as refusal:
        apply(where, said, gap=meanwhile)
    assert str(refusal.value).count("right on the topic") == 1


@pytest.mark.parametrize(
    ("said", "outside"),
    [
        (desired(topic("a", 2, MS), topic("b"), topic("n")), "delete"),
        (desired(topic("a", 2, MS, lifecycle=ADOPT), topic("b"), topic("n")), "recreate"),
    ],
)
def test_deleted_and_recreated_topics_can_be_applied(said: Desired, outside: str) -> None:
    """A row that is still there does not make its own repair stale."""
    where = built(FIRST)
    with where.cluster.others() as others:
        getattr(others, outside)("a")
    assert complete(apply(where, said))
    row, live = where.row("a"), where.cluster.topics["a"]
    assert row is not None and row.incarnation == live.id
    assert plan(where, said).changes == ()


def test_a_moved_topic_can_be_applied() -> None:
    """A renamed block changes owners in the state, with or without a change of the topic."""
    where = built(FIRST)
    said = desired(
        topic("a", 3, MS, address="kafka_topic.new"),
        topic("b"),
        topic("n"),
        moved=(moved("kafka_topic.a", "kafka_topic.new"),),
    )
    assert complete(apply(where, said))
    row = where.row("a")
    assert row is not None and row.owners == ("kafka_topic.new",)
    later = desired(topic("a", 3, MS, address="kafka_topic.new"), topic("b"), topic("n"))
    assert plan(where, later).changes == ()


# ── foreign and altered plans ───────────────────────────────────────────────────────────


def test_a_plan_of_another_state_is_refused() -> None:
    """Lineages never mix."""
    one, two = built(FIRST), built(FIRST)
    said = desired(topic("a", 3, MS), topic("b"), topic("n"))
    with pytest.raises(PlanRefused, match="another state"):
        apply(two, said, saved=plan(one, said))


def test_a_plan_of_another_cluster_is_refused() -> None:
    """The same bootstrap address, another cluster behind it."""
    where = built(FIRST)
    said = desired(topic("a", 3, MS), topic("b"), topic("n"))
    saved = plan(where, said)
    where.cluster.id = "another"
    with pytest.raises(PlanRefused, match="another"):
        apply(where, said, saved=saved)


def _other_payload(saved: Plan) -> Plan:
    (change,) = saved.effective
    step = replace(change.steps[0], payload=FrozenMap(name="b", count=9, assignment=None))
    return replace(saved, changes=(replace(change, steps=(step,)),))


def _no_steps(saved: Plan) -> Plan:
    (change,) = saved.effective
    return replace(saved, changes=(replace(change, steps=()),))


def _other_path(saved: Plan) -> Plan:
    (change,) = saved.effective
    paths = (replace(change.paths[0], after=9),)
    return replace(saved, changes=(replace(change, paths=paths),))


@pytest.mark.parametrize(
    ("alter", "sealed"),
    [
        (_other_payload, False),
        (_other_payload, True),
        (_no_steps, False),
        (_no_steps, True),
        (_other_path, False),
    ],
)
def test_a_plan_that_was_altered_is_refused(alter: Callable[[Plan], Plan], sealed: bool) -> None:
    """Requests must follow from the changes, even where somebody made a new approval for them."""
    where = built(FIRST)
    said = desired(topic("a", 3, MS), topic("b"), topic("n"))
    altered = alter(plan(where, said))
    if sealed:
        altered = seal_plan(altered)
    with pytest.raises(PlanRefused, match="altered"):
        apply(where, said, saved=altered)


# ── deletes need a proof ────────────────────────────────────────────────────────────────


def test_a_row_that_was_written_by_hand_deletes_nothing() -> None:
    """A topic that kafkaform never made, adopted or imported survives a forged row."""
    where = built(FIRST)
    with where.cluster.others() as others:
        foreign = others.create("foreign")
    row = where.row("a")
    assert row is not None
    forged = replace(
        row, identity=identity("foreign"), owners=("kafka_topic.f",), incarnation=foreign.id
    )
    where.backend.data = encode(put_row(where.state, forged))
    said = desired(*FIRST.declared, removed=(removed("kafka_topic.f", destroy=True),))
    with pytest.raises(PlanRefused, match="audit log does not show"):
        apply(where, said)
    assert "foreign" in where.cluster.topics


def test_a_row_that_points_to_another_incarnation_deletes_nothing() -> None:
    """The proof must be of this very topic, not of an earlier one of that name."""
    where = built(FIRST)
    with where.cluster.others() as others:
        again = others.recreate("a")
    hand(where, incarnation=again.id)
    said = desired(topic("b"), topic("n"), removed=(removed("kafka_topic.a", destroy=True),))
    with pytest.raises(PlanRefused, match="audit log does not show"):
        apply(where, said)
    assert where.cluster.topics["a"].id == again.id


@pytest.mark.parametrize("outside", ["create", "recreate"])
def test_what_was_adopted_can_be_deleted(outside: str) -> None:
    """An adoption is proof, also of a topic that was recreated outside, also with writes."""
    where = built(FIRST) if outside == "recreate" else house()
    with where.cluster.others() as others:
        others.recreate("a") if outside == "recreate" else others.create("a")
    wish = topic("a", 3, {"retention.ms": "9"}, lifecycle=ADOPT)
    assert complete(apply(where, desired(wish, topic("n"), topic("b"))))
    row = where.row("a")
    assert row is not None and row.attributes["partitions"] == 3
    assert row.attributes["config"] == {"retention.ms": "9"}
    gone = desired(topic("n"), topic("b"), removed=(removed("kafka_topic.a", destroy=True),))
    assert complete(apply(where, gone))
    assert "a" not in where.cluster.topics and where.row("a") is None
