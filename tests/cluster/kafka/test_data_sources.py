"""Data sources on a real cluster: what is there, what is not, and what may not be seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkaform.core.errors import KafkaformError
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform_kafka.session import KafkaSession

from ...kit.kafka.logins import Login
from ...kit.kafka.sessions import apply, eventually, grant, new


def about(name: str) -> FrozenMap:
    return FrozenMap(name=name)


def refusal(session: KafkaSession, data: str, arguments: FrozenMap) -> KafkaformError:
    with pytest.raises(KafkaformError) as caught:
        session.query(data, arguments)
    return caught.value


def told(session: KafkaSession, data: str, arguments: FrozenMap) -> FrozenMap | None:
    """The answer, or None as long as it is refused."""
    try:
        return session.query(data, arguments)
    except KafkaformError:
        return None


def names(answer: FrozenMap) -> list[str]:
    return [topic["name"] for topic in answer["list"]]


def listed(session: KafkaSession, pattern: str, wanted: list[str]) -> FrozenMap:
    """The list, once it has these names."""
    return eventually(
        lambda: session.query("kafka_topics", about(pattern)), lambda a: names(a) == wanted
    )


@pytest.fixture
def allowed(broker: Any, stranger: Login) -> Any:
    """Grants the user without rights some on a topic until the end of the test."""
    undo: list[Callable[[], None]] = []
    yield lambda name, *operations: undo.append(grant(broker, stranger, "Topic", name, *operations))
    for revoke in undo:
        revoke()


# ── kafka_topic ─────────────────────────────────────────────────────────────────────────


def test_a_topic_is_told_whole(admin: KafkaSession, prefix: str) -> None:
    """Counts, placement and id, and its own overrides only, in canonical form."""
    (made,) = apply(admin, new(prefix, partitions=3, config={"retention.ms": "5000"}))
    answer = eventually(lambda: told(admin, "kafka_topic", about(prefix)), bool)
    assert answer == {
        "id": prefix,
        "partitions": 3,
        "replication_factor": 1,
        "replica_assignment": ((1,), (1,), (1,)),
        "config": {"retention.ms": "5000"},
        "topic_id": made.incarnation,
        "internal": False,
    }


@pytest.mark.parametrize("name", ["no-such-topic-at-all", "no/such name", ""])
def test_a_missing_topic_is_an_error_that_says_so(admin: KafkaSession, name: str) -> None:
    """A name that no topic can have is missing too."""
    error = refusal(admin, "kafka_topic", about(name))
    assert error.message == f'there is no topic "{name}"'
    assert "correct the name" in error.advice


def test_a_hidden_topic_is_not_called_missing(
    admin: KafkaSession, ci: KafkaSession, prefix: str
) -> None:
    """Whether it is there cannot be told; the right that is missing can."""
    apply(admin, new(prefix))
    for name in (prefix, "no-such-topic-at-all"):
        error = refusal(ci, "kafka_topic", about(name))
        assert error.message == (
            f'topic "{name}" does not exist or is hidden: Describe on Topic {name} is missing'
        )
        assert f"grant Describe on Topic {name}" in error.advice


def test_the_right_to_configs_is_told_apart(
    admin: KafkaSession, ci: KafkaSession, prefix: str, allowed: Any
) -> None:
    """Who sees the topic but not its configs gets no answer without them."""
    apply(admin, new(prefix))
    allowed(prefix, "DESCRIBE")
    error = eventually(
        lambda: refusal(ci, "kafka_topic", about(prefix)), lambda e: "DescribeC" in e.message
    )
    assert f"grant DescribeConfigs on Topic {prefix}" in error.advice


# ── kafka_topics ────────────────────────────────────────────────────────────────────────


def test_topics_are_listed_by_pattern(admin: KafkaSession, prefix: str) -> None:
    """The list has what fits, sorted, with own overrides, and never claims to be complete."""
    apply(admin, new(f"{prefix}-b", config={"flush.ms": "7"}), new(f"{prefix}-a", partitions=2))
    answer = listed(admin, f"{prefix}-*", [f"{prefix}-a", f"{prefix}-b"])
    assert answer["complete"] is False
    first, second = answer["list"]
    assert (first["partitions"], first["config"]) == (2, {})
    assert second["config"] == {"flush.ms": "7"}
    assert second["topic_name"] == second["name"]
    assert names(admin.query("kafka_topics", about(f"{prefix}-?"))) == names(answer)
    assert names(admin.query("kafka_topics", about(prefix))) == []


def test_without_a_pattern_every_visible_topic_is_listed(
    admin: KafkaSession, ci: KafkaSession, prefix: str
) -> None:
    """Left out, the pattern fits all; who may see nothing gets an empty list, not complete."""
    apply(admin, new(prefix))
    eventually(
        lambda: admin.query("kafka_topics", FrozenMap(name=None)), lambda a: prefix in names(a)
    )
    assert ci.query("kafka_topics", FrozenMap(name=None)) == {"list": (), "complete": False}


def test_configs_that_may_not_be_seen_are_null(
    admin: KafkaSession, ci: KafkaSession, prefix: str, allowed: Any
) -> None:
    """A topic that may be seen is in the list, even if its configs may not."""
    apply(admin, new(prefix, partitions=2, config={"flush.ms": "7"}))
    allowed(prefix, "DESCRIBE")
    (topic,) = listed(ci, f"{prefix}*", [prefix])["list"]
    assert (topic["partitions"], topic["config"], topic["internal"]) == (2, None, False)
    assert topic["topic_id"]


# ── kafka_cluster ───────────────────────────────────────────────────────────────────────


def test_the_cluster_is_the_one_that_was_asked(admin: KafkaSession, broker: Any) -> None:
    """Id, the address that the brokers give themselves, the leader of the quorum, the level."""
    answer = admin.query("kafka_cluster", EMPTY)
    host, port = broker.bootstrap.split(":")
    assert answer["cluster_id"] == broker.cluster_id
    (only,) = answer["brokers"]
    assert (only["id"], only["port"], only["rack"]) == (
        1,
        int(port),
        admin.facts.recorded_values["racks"]["1"],
    )
    assert only["host"] in (host, "127.0.0.1", "localhost")
    assert answer["controller_id"] == 1
    assert answer["metadata_version"] == admin.facts.recorded_values["metadata_version"] > 0


def test_the_controller_is_told_to_those_who_may_see_it(ci: KafkaSession) -> None:
    """Without Describe on Cluster it is null: a broker's own guess would be wrong."""
    # Another test may have let this user see it for a while.
    answer = eventually(
        lambda: ci.query("kafka_cluster", EMPTY), lambda found: found["controller_id"] is None
    )
    assert answer["controller_id"] is None
    assert answer["brokers"]


# ── faults ──────────────────────────────────────────────────────────────────────────────


def test_an_unknown_data_source_gets_the_near_name(admin: KafkaSession) -> None:
    """A typing error is answered with what was probably meant, another word with all there are."""
    error = refusal(admin, "kafka_topicss", EMPTY)
    assert error.message == "the kafka provider has no data source kafka_topicss"
    assert error.advice == 'Did you mean "kafka_topics"?'
    assert "kafka_cluster" in refusal(admin, "xyz", EMPTY).advice


@pytest.mark.parametrize("data", ["kafka_topic", "kafka_topics", "kafka_cluster"])
def test_a_failed_read_is_told_as_such(ci: KafkaSession, data: str) -> None:
    """An answer that did not come is no absence: the error says that nothing was read."""
    ci.close()
    error = refusal(ci, data, about("orders"))
    assert "cannot be read" in error.message
    assert error.advice
