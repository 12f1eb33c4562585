"""Rights of all steps at once, before anything is sent; requests that a broker is too old for."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.protocol.broker_version_data import BrokerVersionData

from kafkaform.core.change import Action, Change, Evidence, Repeat, Request, Step
from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import CoverageKind, Depth, Failed, Identity
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.authority.own_rights import HeldRights, judge_steps, list_step_topics
from kafkaform_kafka.connection.settings import make_client_config
from kafkaform_kafka.kinds.context import ClusterContext
from kafkaform_kafka.kinds.quota import resource_type as quotas
from kafkaform_kafka.protocol.apis import APIS
from kafkaform_kafka.protocol.faults import fault_of
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.client import Wire

from ....kit.kafka.changes import change, topic
from ....kit.kafka.logins import Login
from ....kit.kafka.sessions import apply, batches, connect, eventually, grant, login, new, read

ALL = frozenset({"Alter", "AlterConfigs", "Create", "Delete", "Describe", "DescribeConfigs"})
ME = "User:ci"


def step(api: str, part: int = 1, **payload: Any) -> Step:
    """A step that sends this payload."""
    name = str(payload.get("name", "x"))
    request = Request(api, part, 10, 100, 100)
    identity = Identity("kafka", "kafka_topic", name)
    body = FrozenMap(payload)
    return Step(f"{api}/{name}", identity, f"kafka_topic.{name}", request, body, 1, (),
                Repeat.SAFE, Evidence.REMOTE)  # fmt: skip


def acl(principal: str, permission: str = "Allow") -> Step:
    """A step that makes an ACL."""
    return step("CreateAcls", acl_principal=principal, acl_permission_type=permission)


def said(steps: list[Step], held: HeldRights, principal: str | None = ME) -> dict[str, str]:
    """step -> what is missing and what to do."""
    return {
        verdict.step: f"{verdict.fault.message} -> {verdict.fault.advice}"
        for verdict in judge_steps(steps, held, principal)
        if verdict.fault is not None
    }


STEPS = [
    (step("CreatePartitions", name="a", count=2), "Alter on Topic a"),
    (step("DeleteTopics", 2, name="a", topic_id="x"), "Delete on Topic a"),
    (step("IncrementalAlterConfigs", resource="topic", name="a"), "AlterConfigs on Topic a"),
    (step("IncrementalAlterConfigs", resource="broker", name=""), "AlterConfigs on Cluster"),
    (step("IncrementalAlterConfigs", resource="client_metrics", name="m"), "AlterConfigs on Clu"),
    (step("AlterClientQuotas"), "AlterConfigs on Cluster"),
    (step("AlterUserScramCredentials"), "Alter on Cluster"),
    (step("AlterPartitionReassignments", name="a"), "Alter on Cluster"),
    (acl("User:app"), "Alter on Cluster"),
    (step("DeleteAcls", 2), "Alter on Cluster"),
]


@pytest.mark.parametrize(("wanting", "right"), STEPS)
def test_a_missing_right_is_named_with_its_resource(wanting: Step, right: str) -> None:
    """The sentence says who lacks what, the advice what to grant."""
    held = HeldRights(frozenset({"Describe"}), {"a": frozenset({"Describe"})}, every_topic=False)
    (text,) = said([wanting], held).values()
    assert text.startswith(f"User:ci lacks {right}") and f"grant {right}" in text
    (unnamed,) = said([wanting], held, None).values()
    assert unnamed.startswith(f"the current user lacks {right}")
    assert said([wanting], HeldRights(ALL, {"a": ALL})) == {}


def test_what_the_cluster_does_not_tell_is_left_to_it() -> None:
    """Nobody is stopped on a guess: no operations, a topic that is not there, a group, a create."""
    steps = [wanting for wanting, _ in STEPS]
    assert said(steps, HeldRights(None, {})) == {}
    unknown = [
        step("CreateTopics", name="new"),
        step("IncrementalAlterConfigs", resource="group", name="g"),
        step("CreatePartitions", name="not-seen"),
    ]
    assert said(unknown, HeldRights(frozenset(), {})) == {}


def test_all_steps_are_judged_together() -> None:
    """Whoever must ask for rights asks once."""
    steps = [wanting for wanting, _ in STEPS]
    found = said(steps, HeldRights(frozenset(), {"a": frozenset({"Describe"})}, every_topic=False))
    assert set(found) == {each.id for each in steps}
    assert list_step_topics(steps) == ("a",)


def test_a_plan_that_gives_us_rights_is_not_judged_by_those_of_before() -> None:
    """Only ours count, and only what allows; the right to give rights must be there."""
    alter, held = step("AlterClientQuotas"), HeldRights(frozenset({"Alter"}), {})
    assert said([acl(ME), alter], held) == said([acl("User:*"), alter], held) == {}
    assert said([acl("User:app"), alter], held, None) == {}
    assert set(said([acl("User:app"), alter], held)) == {alter.id}
    assert set(said([acl(ME, "Deny"), alter], held)) == {alter.id}
    assert set(said([acl(ME), alter], HeldRights(frozenset(), {}))) == {acl(ME).id}


# ── a real broker ───────────────────────────────────────────────────────────────────────


def steps_of(session: KafkaSession, *changes: Change) -> list[Step]:
    return [each for batch in batches(session, changes) for each in batch.steps]


def test_a_broker_tells_which_rights_are_missing(
    broker: Any, admin: KafkaSession, ci: KafkaSession, stranger: Login, prefix: str
) -> None:
    """As the super user nothing; as a user who may only look, every step of the plan, the later
    ones too; with one right granted, one less."""
    name = f"{prefix}-a"
    (made,) = apply(admin, new(name))
    eventually(lambda: read(admin, name), lambda found: hasattr(found, "attributes"))
    before = topic(name, partitions=1, replication_factor=1)
    after = {**before, "partitions": 3, "config": {"retention.ms": "1000"}}
    update = change(Action.UPDATE, before, after, incarnation=made.incarnation)
    delete = change(Action.DELETE, before, None, incarnation=made.incarnation)
    steps = [*steps_of(admin, update), *steps_of(admin, delete)]
    assert len(steps) == 3
    assert admin.examine(steps) == ()
    assert ci.examine(steps) == ()  # the topic is hidden, which the plan has said before

    def lacking(*operations: str) -> list[str]:
        def ask() -> list[str]:
            found = ci.examine(steps)
            return sorted(v.fault.message.split()[2] for v in found if v.fault is not None)

        return eventually(ask, lambda found: found == list(operations))

    takes_back = [grant(broker, stranger, "Topic", name, "DESCRIBE")]
    try:
        lacking("Alter", "AlterConfigs", "Delete")
        takes_back.append(grant(broker, stranger, "Topic", name, "ALTER"))
        lacking("AlterConfigs", "Delete")
    finally:
        for take_back in takes_back:
            take_back()


def test_an_old_broker_is_refused_by_the_name_of_the_request(broker: Any) -> None:
    """A cluster of 2.5 has no quotas on the wire: the listing fails, and says since when."""
    session = connect(broker, "admin")
    given = session.context
    wire = Wire(make_client_config(login(broker, "admin")), 8)
    wire.reach_broker(8)
    for connection in wire._pool.connections.values():
        connection.broker_version_data = BrokerVersionData((2, 5))
    old = KafkaSession(ClusterContext(given.settings, wire, given.facts))
    try:
        coverage = old.sweep(quotas.KIND, Depth.FULL).coverage
        assert coverage.kind is CoverageKind.FAILED and coverage.fault is not None
        assert coverage.fault.code == "UNSUPPORTED_VERSION"
        said = "the broker does not support DescribeClientQuotas, which needs Kafka 2.6"
        assert said in coverage.fault.message
        assert "upgrade the cluster, or leave this change out" in coverage.fault.advice
        identity = Identity("kafka", quotas.KIND, "user=x")
        assert isinstance(old.read([identity])[identity], Failed)
    finally:
        old.close()
        session.close()


def test_a_broker_that_is_too_old_for_a_session(broker: Any) -> None:
    """A cluster of 2.5 does not say which cluster it is, so nothing else is asked."""
    config = {**make_client_config(login(broker, "admin")), "api_version": (2, 5)}
    with pytest.raises(ConnectError, match="DescribeCluster, which needs Kafka 2.8"):
        Wire(config, 8)


def test_every_request_that_is_newer_than_others_says_since_when() -> None:
    """The version stands in the sentence."""
    for api in filter(lambda api: api.since, APIS.values()):
        text = fault_of(api.name, 35, "").message
        assert f"{api.name}, which needs Kafka {api.since}" in text
