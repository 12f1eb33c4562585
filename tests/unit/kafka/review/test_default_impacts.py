"""How much a lower default deletes of the topics that follow it."""

from __future__ import annotations

from kafkaform.core.change import Action, Change, PathChange, add_findings
from kafkaform.core.finding import Finding
from kafkaform.core.resource import Identity
from kafkaform.core.rule import Rule
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform_kafka import review
from kafkaform_kafka.kinds.topic.configs import Retention
from kafkaform_kafka.review import Spans
from kafkaform_kafka.rules.topics.config_rows import (
    COMPACTION_STARTED,
    EXPIRY_STARTED,
    RETENTION_CUT,
    SIZE_CUT,
)

from ....kit.kafka.changes import FACTS

PATHS = {
    RETENTION_CUT: "log.retention.ms",
    SIZE_CUT: "log.retention.bytes",
    COMPACTION_STARTED: "log.cleanup.policy",
}


def find(rule: Rule, *topics: str) -> Finding:
    return rule.find("text", ("config", PATHS[rule]), figures=FrozenMap(topics=topics))


def set_defaults(*findings: Finding) -> Change:
    """A change of three defaults, with what the rules found about it."""
    paths = (
        PathChange(("config", "log.retention.ms"), None, "1000"),
        PathChange(("config", "log.retention.bytes"), None, "50"),
        PathChange(("config", "log.cleanup.policy"), None, "compact,delete"),
    )
    identity = Identity("kafka", "kafka_cluster_config", "default")
    change = Change(identity, "defaults", Action.UPDATE, EMPTY, EMPTY, paths)
    return add_findings(change, *findings)


def test_each_topic_is_measured_by_the_limits_that_it_follows() -> None:
    """One can follow the age, another the size; what compaction deletes is not known before."""
    change = set_defaults(
        find(RETENTION_CUT, "a", "b"), find(SIZE_CUT, "b", "c"), find(COMPACTION_STARTED, "d")
    )
    assert review.list_follower_limits(change, FACTS) == {
        "a": Retention(1000, None),
        "b": Retention(1000, 50),
        "c": Retention(None, 50),
    }
    assert review.list_follower_limits(set_defaults(), FACTS) == {}


def test_topics_that_begin_to_expire_are_measured_by_their_own_limits() -> None:
    """Their overrides decide, and not only a default that changes at the same time."""
    figures = FrozenMap(topics=("a", "b"), limits=("retention.ms=70", "retention.bytes=-1"))
    started = EXPIRY_STARTED.find("text", ("config", "log.cleanup.policy"), figures=figures)
    figures = FrozenMap(topics=("c",), limits=("retention.ms=-1", "retention.bytes=9"))
    sized = EXPIRY_STARTED.find("text", ("config", "log.cleanup.policy"), figures=figures)
    change = set_defaults(started, sized, find(RETENTION_CUT, "d"))
    assert review.list_follower_limits(change, FACTS) == {
        "a": Retention(70, None),
        "b": Retention(70, None),
        "c": Retention(None, 9),
        "d": Retention(1000, None),
    }


SIZES = {("a", 0): 100, ("a", 1): 40, ("b", 0): 300}


def test_what_the_topics_lose_is_added_up() -> None:
    """Bytes by age and size, offsets by age alone."""
    old = review._measure_cut("a", Retention(1000, None), Spans((10, 4), (5, 1)), SIZES)
    assert (old.bytes, old.of_bytes, old.offsets, old.of_offsets) == (60, 140, 6, 14)
    large = review._measure_cut("b", Retention(None, 100), Spans((30,), (0,)), SIZES)
    assert (large.bytes, large.of_bytes, large.offsets) == (200, 300, None)
    both = review._make_cut_impact([old, old])
    assert both.figures == FrozenMap(bytes=120, of_bytes=280, offsets=12, of_offsets=28)
    assert both.text == "Deletes about 120 B of 280 B (12 of 28 offsets)."
    mixed = review._make_cut_impact([old, large])
    assert mixed.figures == FrozenMap(bytes=260, of_bytes=440)


def test_one_topic_that_cannot_be_measured_makes_the_sum_unknown() -> None:
    """It is never estimated."""
    old = review._measure_cut("a", Retention(1000, None), Spans((10, 4), (5, 1)), SIZES)
    assert review._make_cut_impact([old, None]).figures == EMPTY
    assert "unknown amount" in review._make_cut_impact([old, None]).text
