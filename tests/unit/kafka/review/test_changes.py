"""Changes that are fine alone and wrong together."""

from __future__ import annotations

from kafkaform.core.change import Action, Change
from kafkaform.core.legacy import Review
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
from kafkaform_kafka.provider import PROVIDER

from ....kit.kafka.changes import FACTS, change, topic

VISIBLE = Coverage(CoverageKind.VISIBLE_ONLY)


def create(name: str) -> Change:
    """A create of a topic."""
    return change(Action.CREATE, None, topic(name))


def judge(*changes: Change, live: tuple[str, ...] = (), coverage: Coverage = VISIBLE) -> Review:
    """The review of these changes on a cluster with these topics."""
    items = tuple(
        Observed(Identity("kafka", "kafka_topic", name), FrozenMap(name=name)) for name in live
    )
    sweep = Sweep("kafka_topic", Depth.NAMES, items, coverage)
    return PROVIDER.review(changes, {"kafka_topic": sweep}, FACTS)


def reasons(review: Review) -> dict[str, str]:
    """Blocked topic -> why; each block stops an apply and says what to do."""
    assert all(block.kind.stops and block.advice for block in review.blocks.values())
    return {identity.key: block.reason for identity, block in review.blocks.items()}


def test_a_name_that_collides_with_a_live_topic_is_blocked() -> None:
    """a_b cannot be created while a.b lives."""
    assert "live topic a.b" in reasons(judge(create("a_b"), live=("a.b", "c")))["a_b"]


def test_a_name_that_collides_with_a_topic_deleted_by_the_plan_says_so() -> None:
    """Creates come first, so the deletion must be applied on its own."""
    gone = change(Action.DELETE, topic("a.b"), None)
    review = judge(create("a_b"), gone, live=("a.b",))
    assert "this plan deletes" in reasons(review)["a_b"]
    assert (
        review.blocks[create("a_b").identity].advice
        == "apply the deletion first (--target=ITS_ADDRESS), then plan again"
    )


def test_two_new_topics_that_collide_are_both_blocked() -> None:
    """No broker sees this in a dry run, because neither topic is there yet."""
    assert set(reasons(judge(create("x.y"), create("x_y"), create("z")))) == {"x.y", "x_y"}


def test_names_that_differ_otherwise_pass() -> None:
    """A live topic of the same name is not a collision: that is for the planner to judge."""
    assert reasons(judge(create("a.b"), create("a-b"), live=("a.b", "ab"))) == {}


def test_configs_declared_twice_are_blocked() -> None:
    """One topic's overrides have one declaration."""
    double = change(
        Action.NOOP,
        {"topic": "orders", "config": {"retention.ms": "1"}},
        {"topic": "orders", "config": {"retention.ms": "1"}},
        kind="kafka_topic_config",
    )
    assert (
        "kafka_topic.x also declares the configs of orders"
        in reasons(judge(create("orders"), double))["orders"]
    )
    removed = change(Action.DELETE, topic("orders"), None)
    assert reasons(judge(removed, double)) == {}


def test_only_creates_need_the_names() -> None:
    """A plan that creates nothing does not list the cluster."""
    assert PROVIDER.review_needs([create("a")])["kafka_topic"] is Depth.NAMES
    assert "kafka_topic" not in PROVIDER.review_needs([change(Action.DELETE, topic(), None)])


def test_a_failed_listing_is_said() -> None:
    """Without the names a collision shows up later, and the user knows."""
    fault = Fault("TRANSPORT", "no answer", FaultClass.AMBIGUOUS)
    assert judge(create("a"), coverage=Coverage(CoverageKind.FAILED, fault)).warnings
    assert not judge(create("a")).warnings
