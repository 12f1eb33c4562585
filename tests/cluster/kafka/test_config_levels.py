"""Configs of brokers, the cluster, groups and client metrics on a real broker.

Each test uses configs of its own, because a broker and the cluster have one set for all tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Change, OutcomeStatus
from kafkaform.core.resource import (
    Absent,
    CoverageKind,
    Depth,
    Failed,
    FaultClass,
    Hidden,
    Identity,
    Observed,
)
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.kinds.config.requests import send_alter_configs, sweep_configs
from kafkaform_kafka.kinds.config.resource_type import SCOPES
from kafkaform_kafka.kinds.context import Order
from kafkaform_kafka.protocol.cluster_facts import GROUP_CONFIG_LISTING, explain_absence
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.client import Unsupported
from kafkaform_kafka.wire.configs import alter_configs

from ...conftest import Broker
from ...kit.kafka.config_changes import PASSWORD, declared, planned
from ...kit.kafka.quota_user import account, connected
from ...kit.kafka.sessions import apply, batches, eventually, preflight, read

BROKER, CLUSTER = "kafka_broker_config", "kafka_cluster_config"
GROUP, METRICS = "kafka_group_config", "kafka_client_metrics"


def own(session: KafkaSession, kind: str, key: str) -> FrozenMap:
    """The object's own configs, none if it is not there."""
    reading = read(session, key, kind)
    if isinstance(reading, Absent):
        return FrozenMap()
    assert isinstance(reading, Observed), reading
    return FrozenMap(reading.attributes["config"])


def wish(kind: str, session: KafkaSession, key: str, wanted: FrozenMap, **more: Any) -> Change:
    """An additive change of what is live, so that tests do not disturb each other."""
    reading = read(session, key, kind)
    live = dict(reading.attributes) if isinstance(reading, Observed) else None
    block = wanted.with_items({"config_mode": "additive"})
    return planned(kind, block, live, facts=session.facts, **more)


def send(session: KafkaSession, change: Change) -> None:
    """Apply with the broker's consent first."""
    assert [verdict.fault for verdict in preflight(session, change)] == [None]
    assert [o.status for o in apply(session, change)] == [OutcomeStatus.APPLIED]


@pytest.fixture
def broker(exclusive_broker: Broker) -> Broker:
    """A broker and the cluster have one set of configs."""
    return exclusive_broker


@pytest.fixture
def undo(admin: KafkaSession) -> Iterator[list[tuple[str, str, str]]]:
    """(resource, name, key) of configs that are removed when the test is over."""
    keys: list[tuple[str, str, str]] = []
    yield keys
    for resource, name, key in keys:
        gone = {"resource": resource, "name": name, "set": {}, "delete": (key,)}
        node = name if resource == "broker" and name else None
        alter_configs(admin.context.wire, [gone], 10, validate_only=False, node=node)


def test_a_broker_overrules_the_cluster(
    admin: KafkaSession, undo: list[tuple[str, str, str]]
) -> None:
    """Each level has its own value, and a removal says what takes effect instead."""
    key = "log.cleaner.threads"
    undo += [("broker", "", key), ("broker", "1", key)]
    send(admin, wish(CLUSTER, admin, "default", declared(CLUSTER, config={key: "2"})))
    eventually(lambda: own(admin, CLUSTER, "default").get(key), lambda value: value == "2")
    send(admin, wish(BROKER, admin, "1", declared(BROKER, broker_id=1, config={key: "3"})))
    eventually(lambda: own(admin, BROKER, "1").get(key), lambda value: value == "3")
    one, shared = read(admin, "1", BROKER), read(admin, "default", CLUSTER)
    assert isinstance(one, Observed) and isinstance(shared, Observed)
    # What nothing sets here is in effect all the same.
    assert one.fallbacks["config.num.io.threads"] == shared.fallbacks["config.num.io.threads"]
    assert one.attributes["broker_id"] == 1
    assert one.fallbacks[f"config.{key}"] == "2"
    assert shared.fallbacks[f"config.{key}"] == "1"


def test_values_come_back_in_their_canonical_form(
    admin: KafkaSession, undo: list[tuple[str, str, str]]
) -> None:
    """A list, a number with blanks and a fraction are no difference after they were applied."""
    config = {
        "log.cleanup.policy": "delete, compact",
        "message.max.bytes": " +2000000 ",
        "log.cleaner.min.cleanable.ratio": "0.250",
    }
    undo += [("broker", "", key) for key in config]
    block = declared(CLUSTER, config=config)
    send(admin, wish(CLUSTER, admin, "default", block))
    shown = {"log.cleanup.policy": "compact,delete", "message.max.bytes": "2000000"}
    eventually(
        lambda: own(admin, CLUSTER, "default"),
        lambda live: all(live.get(key) == value for key, value in shown.items()),
    )
    assert wish(CLUSTER, admin, "default", block).paths == ()


def test_a_fallback_in_other_units_is_converted(
    admin: KafkaSession, undo: list[tuple[str, str, str]]
) -> None:
    """Without log.retention.ms the hours count, which are shown as milliseconds."""
    undo.append(("broker", "", "log.retention.ms"))
    block = declared(CLUSTER, config={"log.retention.ms": "900000000"})
    send(admin, wish(CLUSTER, admin, "default", block))
    reading = eventually(
        lambda: read(admin, "default", CLUSTER),
        lambda r: isinstance(r, Observed) and "log.retention.ms" in r.attributes["config"],
    )
    assert isinstance(reading, Observed)
    assert reading.fallbacks["config.log.retention.ms"] == str(168 * 3600 * 1000)


def test_what_the_broker_knows_better_is_refused_in_the_dry_run(admin: KafkaSession) -> None:
    """A value that only the whole broker can judge fails before anything is sent."""
    change = wish(BROKER, admin, "1", declared(BROKER, broker_id=1, config={"num.io.threads": "9"}))
    (good,) = preflight(admin, change)
    assert good.fault is None
    many = declared(BROKER, broker_id=1, config={"num.io.threads": "9000"})
    (verdict,) = preflight(admin, wish(BROKER, admin, "1", many))
    assert verdict.fault is not None
    assert verdict.fault.kind is FaultClass.DEFINITE
    assert "num.io.threads" in verdict.fault.message
    assert "num.io.threads" not in own(admin, BROKER, "1")


def test_a_secret_is_set_and_never_told(
    admin: KafkaSession, undo: list[tuple[str, str, str]], prefix: str
) -> None:
    """Only its name comes back; an undeclared one can be removed by its name."""
    key = f"{prefix}.password"
    undo.append(("broker", "1", key))
    block = declared(BROKER, broker_id=1, secret_config={key: PASSWORD})
    change = wish(BROKER, admin, "1", block, version=(None, "1"))
    (batch,) = batches(admin, [change])
    assert [verdict.fault for verdict in admin.preflight(batch)] == [None]
    assert read(admin, "1", BROKER) == read(admin, "1", BROKER), "a dry run set it"
    (outcome,) = admin.apply(batch, {str(PASSWORD): Secret("hunter2")})
    assert outcome.status is OutcomeStatus.APPLIED
    seen = eventually(
        lambda: read(admin, "1", BROKER),
        lambda r: isinstance(r, Observed) and key in (r.attributes.get("secret_keys") or {}),
    )
    assert isinstance(seen, Observed)
    assert "hunter2" not in repr(seen)
    assert key not in seen.attributes["config"]
    same = wish(BROKER, admin, "1", block, version=("1", "1"))
    assert same.paths == ()
    assert batches(admin, [same]) == []


def test_what_hangs_on_no_secret_is_checked_by_the_broker(admin: KafkaSession, prefix: str) -> None:
    """A dry run leaves out the password and its keystore, and asks about the rest."""
    listener = f"listener.name.{prefix}.ssl.keystore"
    hidden = {f"{listener}.password": PASSWORD}
    config = {f"{listener}.location": "/no/such/file"}
    block = declared(BROKER, broker_id=1, config=config, secret_config=hidden)
    (passed,) = preflight(admin, planned(BROKER, block))
    assert passed.fault is None
    many = block.with_items({"config": FrozenMap({**config, "num.io.threads": "9000"})})
    (refused,) = preflight(admin, planned(BROKER, many))
    assert refused.fault is not None
    assert "num.io.threads" in refused.fault.message


def test_a_refused_secret_is_not_repeated(admin: KafkaSession, prefix: str) -> None:
    """A broker's message may hold the value; the fault that is shown does not."""
    block = declared(BROKER, broker_id=1, secret_config={prefix: PASSWORD})
    (batch,) = batches(admin, [planned(BROKER, block)])
    refusal = SimpleNamespace(
        resource_type=4,
        resource_name="1",
        error_code=42,
        error_message="Invalid value hunter2 for x",
    )
    answer = SimpleNamespace(responses=[refusal], throttle_time_ms=0)
    wire: Any = SimpleNamespace(send=lambda *_: answer)
    order = Order(batch.steps, dry=False, secrets={str(PASSWORD): Secret("hunter2")})
    (reply,) = send_alter_configs(replace(admin.context, wire=wire), order)
    assert reply.fault is not None
    assert reply.fault.message.endswith(": Invalid value (sensitive) for x")


def test_a_group_and_a_topic_of_one_name_are_told_apart(
    admin: KafkaSession, undo: list[tuple[str, str, str]], prefix: str
) -> None:
    """A group has configs before it exists; both lie in one request, and each gets its answer."""
    undo.append(("group", prefix, "consumer.session.timeout.ms"))
    group = declared(GROUP, group=prefix, config={"consumer.session.timeout.ms": "50000"})
    before = read(admin, prefix, GROUP)
    assert isinstance(before, Absent)
    assert before.fallbacks["config.consumer.session.timeout.ms"] == "45000"
    topic = {"resource": "topic", "name": prefix, "set": {"retention.ms": "1"}, "delete": ()}
    shared = {"resource": "group", "name": prefix, "set": dict(group["config"]), "delete": ()}
    answers = alter_configs(admin.context.wire, [topic, shared], 10, validate_only=True)
    assert answers.items["topic", prefix].code == 3
    assert answers.items["group", prefix].code == 0
    send(admin, planned(GROUP, group))
    live = eventually(lambda: own(admin, GROUP, prefix), bool)
    assert live == {"consumer.session.timeout.ms": "50000"}
    reading = read(admin, prefix, GROUP)
    assert isinstance(reading, Observed)
    assert reading.fallbacks == before.fallbacks
    swept = admin.sweep(GROUP, Depth.NAMES)
    if why := explain_absence(GROUP_CONFIG_LISTING, admin.facts):
        assert swept.coverage.fault is not None and swept.coverage.fault.message == why
        return
    assert swept.coverage.kind is CoverageKind.COMPLETE
    assert prefix in [item.identity.key for item in swept.items]


def test_the_brokers_limits_for_groups_are_asked(admin: KafkaSession, prefix: str) -> None:
    """A session longer than the broker allows is refused with the broker's words."""
    block = declared(GROUP, group=prefix, config={"consumer.session.timeout.ms": "600000"})
    (verdict,) = preflight(admin, planned(GROUP, block))
    assert verdict.fault is not None
    assert "group.consumer.max.session.timeout.ms" in verdict.fault.message


def test_a_subscription_lives_and_dies(admin: KafkaSession, prefix: str) -> None:
    """Made, listed, changed and removed, after which nothing of it is left."""
    config = {"metrics": "org.apache.kafka.producer.", "interval.ms": "60000"}
    create = planned(METRICS, declared(METRICS, name=prefix, config=config))
    send(admin, create)
    eventually(lambda: own(admin, METRICS, prefix), lambda live: live == config)

    def list_names(depth: Depth = Depth.FULL) -> list[str]:
        return [item.identity.key for item in admin.sweep(METRICS, depth).items]

    # A broker answers both requests from memory, and the listing can lag behind the configs.
    eventually(list_names, lambda names: prefix in names)
    live = {"name": prefix, "config": config}
    matched = declared(METRICS, name=prefix, config={"match": "client_id=a.*"})
    send(admin, planned(METRICS, matched, live))
    eventually(lambda: own(admin, METRICS, prefix), lambda found: found == matched["config"])
    send(admin, planned(METRICS, None, {"name": prefix, "config": {"match": "client_id=a.*"}}))
    eventually(lambda: read(admin, prefix, METRICS), lambda r: isinstance(r, Absent))
    eventually(lambda: list_names(Depth.NAMES), lambda names: prefix not in names)


def test_a_broker_that_is_down_is_never_absent(admin: KafkaSession) -> None:
    """It alone tells its configs, so nothing is known while it does not answer."""
    reading = read(admin, "7", BROKER)
    assert isinstance(reading, Failed)
    assert "broker 7 is not live" in reading.fault.message
    assert admin.sweep(BROKER, Depth.NAMES).coverage.kind is CoverageKind.VISIBLE_ONLY
    assert admin.sweep(CLUSTER, Depth.NAMES).coverage.kind is CoverageKind.COMPLETE


@pytest.mark.parametrize("kind", [GROUP, METRICS])
def test_a_broker_that_cannot_list_says_so(admin: KafkaSession, kind: str) -> None:
    """Before Kafka 4.1 groups with configs cannot be listed (KIP-1142): that is no empty list."""

    def refuse(*_: Any) -> None:
        raise Unsupported("ListConfigResources")

    wire: Any = SimpleNamespace(send=refuse)
    scope = next(each for each in SCOPES if each.kind == kind)
    swept = sweep_configs(scope, replace(admin.context, wire=wire), Depth.NAMES)
    assert swept.items == ()
    assert swept.coverage.kind is CoverageKind.FAILED
    assert swept.coverage.fault is not None
    assert swept.coverage.fault.code == "UNSUPPORTED_VERSION"


def test_elr_alone_makes_no_cluster_config(admin: KafkaSession) -> None:
    """min.insync.replicas of a new cluster was declared by nobody (KIP-966)."""
    assert admin.facts.recorded_values["elr"] is True
    reading = read(admin, "default", CLUSTER)
    if isinstance(reading, Observed):  # another test set something meanwhile
        assert ("config", "min.insync.replicas") in reading.foreign
        assert len(reading.attributes["config"]) > 1


@pytest.mark.parametrize(
    ("kind", "key", "right"),
    [
        (BROKER, "1", "DescribeConfigs on Cluster"),
        (CLUSTER, "default", "DescribeConfigs on Cluster"),
        (GROUP, "g", "DescribeConfigs on Group g"),
        (METRICS, "m", "DescribeConfigs on Cluster"),
    ],
)
def test_what_may_not_be_seen_is_hidden(ci: KafkaSession, kind: str, key: str, right: str) -> None:
    """With the right that is missing, as ACLs call it; and no listing claims to be complete."""
    assert read(ci, key, kind) == Hidden(Identity("kafka", kind, key), right)
    coverage = ci.sweep(kind, Depth.NAMES).coverage
    assert coverage.kind is not CoverageKind.COMPLETE


def test_a_missing_right_to_alter_is_named(broker: Any, ci: KafkaSession, prefix: str) -> None:
    """In the dry run, for the kind of resource that it is; with secrets, from the facts."""
    group = declared(GROUP, group=prefix, config={"consumer.session.timeout.ms": "50000"})
    (refused,) = preflight(ci, planned(GROUP, group))
    assert refused.fault is not None
    assert f"AlterConfigs on Group {prefix}" in refused.fault.advice
    block = declared(CLUSTER, config={"background.threads": "12"})
    (denied,) = preflight(ci, planned(CLUSTER, block))
    assert denied.fault is not None
    assert "AlterConfigs on Cluster" in denied.fault.advice
    change = planned(CLUSTER, declared(CLUSTER, secret_config={"p": PASSWORD}))
    with account(broker, prefix, "DESCRIBE") as settings:
        session = eventually(
            lambda: connected(settings), lambda found: bool(found.facts.recorded_values["rights"])
        )
        (verdict,) = preflight(session, change)
        session.close()
    assert verdict.fault is not None
    assert verdict.fault.kind is FaultClass.PERMISSION
    assert "AlterConfigs on Cluster" in verdict.fault.advice
