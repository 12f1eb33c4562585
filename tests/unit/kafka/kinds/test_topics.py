"""`kafka_topic`: what a declaration means, what blocks a change, and which requests it becomes."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.change import Action, Evidence, PathChange, Repeat
from kafkaform.core.resource import Identity, Observed
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.kinds.kind import CREATE_TOPICS
from kafkaform_kafka.kinds.topic import resource_type as topics
from kafkaform_kafka.protocol.apis import MAX_RECORDS

from ....kit.kafka.changes import FACTS, change, facts, frozen, topic

TYPE = topics.TYPE
IDENTITY = Identity("kafka", "kafka_topic", "orders")


def observed(**attributes: Any) -> Observed:
    """A live topic."""
    whole = frozen(topic(**attributes))
    assert whole is not None
    return Observed(IDENTITY, whole, "id-1")


def target(
    declared: dict[str, Any], live: Observed | None, keep: bool = False, **values: Any
) -> FrozenMap:
    """The target of a declaration that always has a name."""
    attributes = frozen({"name": "orders", **declared})
    assert attributes is not None
    return TYPE.target(attributes, live, facts(**values), keep)


DEFAULTS: dict[str, Any] = {"default_partitions": 6, "default_replication_factor": 3}


def test_omitted_counts_of_a_new_topic_are_the_brokers_defaults() -> None:
    """A plan shows the number that a new topic will get."""
    made = target({}, None, **DEFAULTS)
    assert (made["partitions"], made["replication_factor"]) == (6, 3)


def test_omitted_counts_of_a_live_topic_stay() -> None:
    """Leaving a count out never changes a live topic."""
    made = target({}, observed(partitions=12), **DEFAULTS)
    assert (made["partitions"], made["replication_factor"]) == (12, 2)


def test_declared_counts_win() -> None:
    """What is written is what shall be."""
    assert target({"partitions": 4}, observed(partitions=12), **DEFAULTS)["partitions"] == 4


def test_unknown_defaults_stay_open() -> None:
    """Without the right to read defaults the number is not guessed."""
    assert target({}, None)["partitions"] is None


def test_an_assignment_sets_both_counts() -> None:
    """The number of lists is the partitions, their length the replication factor."""
    made = target({"replica_assignment": [[1, 2], [2, 3], [3, 1]]}, None)
    assert (made["partitions"], made["replication_factor"]) == (3, 2)


def test_an_omitted_assignment_is_not_compared() -> None:
    """Where the replicas are is nobody's business unless it is declared."""
    assert target({}, observed(replica_assignment=[[1]]))["replica_assignment"] is None


LIVE = {"retention.ms": "1", "cleanup.policy": "compact"}
THROTTLE = {"leader.replication.throttled.replicas": "0:1"}


@pytest.mark.parametrize(
    ("declared", "live", "keep", "values", "expected"),
    [
        ({"config": {"retention.ms": "+2"}}, LIVE, False, {}, {"retention.ms": "2"}),
        ({}, LIVE, False, {}, {}),
        ({"config": None}, LIVE, False, {}, {}),
        ({"config": {}, "config_mode": "additive"}, LIVE, False, {}, LIVE),
        ({"config": {}}, LIVE, True, {}, LIVE),
        ({"config": {"retention.ms": "2"}}, LIVE, True, {}, {**LIVE, "retention.ms": "2"}),
        ({"config": {"retention.ms": None}}, LIVE, False, {}, {"retention.ms": "1"}),
        ({"config": {"retention.ms": None}}, {}, False, {}, {}),
        ({"config": {}}, THROTTLE, False, {}, THROTTLE),
        ({"config": {}}, {"min.insync.replicas": "2"}, False, {}, {}),
        (
            {"config": {}},
            {"min.insync.replicas": "2"},
            False,
            {"elr": True},
            {},
        ),
    ],
)
def test_which_overrides_a_topic_shall_have(
    declared: dict[str, Any],
    live: dict[str, str],
    keep: bool,
    values: dict[str, Any],
    expected: dict[str, str],
) -> None:
    """config is the whole truth unless the mode, an adoption, null or another owner says not."""
    assert target(declared, observed(config=live), keep, **values)["config"] == expected


def test_a_target_has_the_shape_of_what_is_observed() -> None:
    """Settings of the block itself never show as differences."""
    made = target({"config_mode": "additive", "managed_replication_factor": True}, observed())
    assert set(made) == set(observed().attributes)


@pytest.mark.parametrize(
    ("name", "details", "expected"),
    [
        ("__consumer_offsets", {}, True),
        ("__cluster_metadata", {}, True),
        ("__remote_log_metadata", {"internal": False}, True),
        ("flagged", {"internal": True}, True),
        ("__debezium-heartbeat.inventory", {"internal": False}, False),
        ("__amazon_msk_canary", {}, False),
    ],
)
def test_internal_is_what_the_broker_flags_or_kafka_names(
    name: str, details: dict[str, Any], expected: bool
) -> None:
    """A prefix of a name says nothing: applications create topics that start with `__`."""
    assert TYPE.reserves is not None
    verdict = TYPE.reserves(name, FrozenMap(details))
    assert (verdict is not None) is expected
    assert verdict is None or (name in verdict[0] and "kafkaform state rm" in verdict[1])


def test_a_topic_whose_id_is_unknown_is_never_deleted() -> None:
    """Without an id nothing is sent, because a name may mean another topic by now."""
    nameless = change(Action.DELETE, topic(), None, incarnation=None)
    assert TYPE.steps(nameless, FACTS) == ()


def test_a_create_is_one_request_with_everything() -> None:
    """Counts, assignment and configs go out at once, and a repeat must look first."""
    made = change(Action.CREATE, None, topic(config={"retention.ms": "5"}))
    (step,) = TYPE.steps(made, FACTS)
    assert step.id == "kafka/kafka_topic/orders#1"
    assert step.request == CREATE_TOPICS
    assert (step.repeat, step.evidence) == (Repeat.VERIFY, Evidence.REMOTE)
    assert step.payload == {
        "name": "orders",
        "partitions": 3,
        "replication_factor": 2,
        "assignment": None,
        "configs": {"retention.ms": "5"},
    }
    assert set(step.paths) == {item.path for item in made.paths}


def test_a_create_without_known_defaults_lets_the_broker_choose() -> None:
    """-1 is the wire's word for the default."""
    made = change(Action.CREATE, None, topic(partitions=None, replication_factor=None))
    (step,) = TYPE.steps(made, FACTS)
    assert (step.payload["partitions"], step.payload["replication_factor"]) == (-1, -1)


def test_growth_and_configs_are_two_requests_that_need_not_wait_for_each_other() -> None:
    """Each request makes its own paths true, and bookkeeping is none of them."""
    made = change(
        Action.UPDATE,
        topic(config={"retention.ms": "1", "segment.ms": "9"}),
        topic(partitions=5, config={"retention.ms": "2", "max.message.bytes": "3"}),
        extra=(PathChange(("owner",), None, "team-a"),),
    )
    grow, alter = TYPE.steps(made, FACTS)
    assert grow.payload == {"name": "orders", "count": 5, "assignment": None}
    assert grow.paths == (("partitions",),)
    assert alter.payload["set"] == {"retention.ms": "2", "max.message.bytes": "3"}
    assert alter.payload["delete"] == ("segment.ms",)
    assert set(alter.paths) == {
        ("config", "retention.ms"),
        ("config", "max.message.bytes"),
        ("config", "segment.ms"),
    }
    assert grow.after == alter.after == ()
    assert grow.id != alter.id


def test_growth_sends_the_assignment_of_the_new_partitions_only() -> None:
    """Live partitions stay where they are."""
    made = change(
        Action.UPDATE,
        topic(partitions=1, replica_assignment=[[1, 2]]),
        topic(partitions=3, replica_assignment=[[1, 2], [2, 3], [3, 1]]),
    )
    (step,) = TYPE.steps(made, FACTS)
    assert (step.payload["count"], step.payload["assignment"]) == (3, ((2, 3), (3, 1)))


def test_a_delete_names_the_topic_id() -> None:
    """The id that was reviewed is the id that is deleted."""
    (step,) = TYPE.steps(change(Action.DELETE, topic(), None), FACTS)
    assert step.payload == {"name": "orders", "topic_id": "id-1"}
    assert (step.request.part, step.evidence, step.repeat) == (2, Evidence.LOCAL, Repeat.SAFE)


@pytest.mark.parametrize("action", [Action.ADOPT, Action.IMPORT, Action.FORGET, Action.NOOP])
def test_bookkeeping_sends_nothing(action: Action) -> None:
    """Adopting, importing and forgetting never touch the cluster."""
    assert TYPE.steps(change(action, topic(), topic()), FACTS) == ()


def test_an_update_of_the_owner_alone_sends_nothing() -> None:
    """Owner and labels live in the state."""
    made = change(
        Action.UPDATE, topic(), topic(), extra=(PathChange(("labels", "team"), None, "a"),)
    )
    assert TYPE.steps(made, FACTS) == ()


@pytest.mark.parametrize(
    ("partitions", "configs", "count"), [(1, 0, 200), (50, 0, 200), (100, 9, 60), (1, 33, 200)]
)
def test_no_batch_of_full_weight_passes_a_cap_of_the_controller(
    partitions: int, configs: int, count: int
) -> None:
    """As many topics as the weight allows are under 10,000 records and 2,000 partitions."""
    config = {f"key.{number}": "1" for number in range(configs)}
    made = change(Action.CREATE, None, topic(partitions=partitions, config=config))
    (step,) = TYPE.steps(made, FACTS)
    fit = min(count, step.request.max_items, MAX_RECORDS // step.weight)
    assert fit * partitions <= topics.MAX_PARTITIONS
    assert fit * (1 + configs + partitions) <= MAX_RECORDS


def test_the_same_change_becomes_the_same_steps() -> None:
    """Approval covers the requests, so they must be reproducible."""
    made = change(Action.UPDATE, topic(), topic(config={"b": "1", "a": "2", "c": "3"}))
    again = change(Action.UPDATE, topic(), topic(config={"c": "3", "a": "2", "b": "1"}))
    assert TYPE.steps(made, FACTS)[0].payload == TYPE.steps(again, FACTS)[0].payload


def test_keys() -> None:
    """A topic's identity and its import id are its name."""
    assert TYPE.key(FrozenMap(name="orders")) == TYPE.import_key("orders") == "orders"
    for wrong in (FrozenMap(), FrozenMap(name="")):
        with pytest.raises(ValueError, match="name"):
            TYPE.key(wrong)
    assert TYPE.protect
