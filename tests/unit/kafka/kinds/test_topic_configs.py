"""`kafka_topic_config`: overrides of a topic that is declared elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.change import Action, Change
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.kinds.kind import ALTER_TOPIC_CONFIGS
from kafkaform_kafka.kinds.topic import configs

from ....kit.kafka.changes import FACTS, change, facts

TYPE = configs.TYPE


def made(action: Action, before: Any, after: Any) -> Change:
    """A change of the overrides of `orders`."""
    whole = [None if c is None else {"topic": "orders", "config": c} for c in (before, after)]
    return change(action, *whole, kind="kafka_topic_config")


def test_a_create_sets_every_config() -> None:
    """All keys travel in one request, which Kafka does whole or not at all."""
    (step,) = TYPE.steps(made(Action.CREATE, None, {"retention.ms": "5"}), FACTS)
    assert step.request == ALTER_TOPIC_CONFIGS
    assert step.payload == {
        "resource": "topic",
        "name": "orders",
        "set": {"retention.ms": "5"},
        "delete": (),
    }


def test_an_update_sets_and_removes_what_differs() -> None:
    """Equal values are not written again."""
    before = {"retention.ms": "5", "segment.ms": "6", "flush.ms": "7"}
    (step,) = TYPE.steps(made(Action.UPDATE, before, {"retention.ms": "5", "flush.ms": "8"}), FACTS)
    assert step.payload["set"] == {"flush.ms": "8"}
    assert step.payload["delete"] == ("segment.ms",)


def test_a_delete_removes_the_overrides_after_everything_else() -> None:
    """Removals travel with the deletes, and other owners' overrides stay."""
    live = {"retention.ms": "5", "leader.replication.throttled.replicas": "0:1"}
    (step,) = TYPE.steps(made(Action.DELETE, live, None), FACTS)
    assert (step.request.part, step.request.phase) == (2, 40)
    assert step.payload["delete"] == ("retention.ms",)


def test_elr_keeps_no_override_of_a_topic() -> None:
    """With ELR the cluster refuses to lose its min.insync.replicas; a topic loses its own."""
    live = {"min.insync.replicas": "2"}
    (step,) = TYPE.steps(made(Action.DELETE, live, None), facts(elr=True))
    assert step.payload["delete"] == ("min.insync.replicas",)


def test_the_target_is_the_whole_map() -> None:
    """An override that is not declared is removed unless the object is being adopted."""
    declared = FrozenMap(topic="orders", config=FrozenMap({"retention.ms": "+5"}))
    assert TYPE.target(declared, None, FACTS, False)["config"] == {"retention.ms": "5"}


def test_keys() -> None:
    """Identity and import id are the topic's name."""
    assert TYPE.key(FrozenMap(topic="orders")) == TYPE.import_key("orders") == "orders"
    with pytest.raises(ValueError, match="topic"):
        TYPE.key(FrozenMap())
