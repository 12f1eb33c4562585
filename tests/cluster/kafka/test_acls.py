"""ACLs on a real broker: what a session makes, sees, deletes and is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from msgspec.structs import replace

from kafkaform.core.change import Action, Change, Outcome, OutcomeStatus
from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import (
    Absent,
    CoverageKind,
    Depth,
    Failed,
    FaultClass,
    Hidden,
    Identity,
    Observed,
    Reading,
)
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.connection.settings import KafkaSettings, make_librdkafka_config
from kafkaform_kafka.inspect.explanations import AccessQuery, build_access, explain_access
from kafkaform_kafka.protocol import acl as acls
from kafkaform_kafka.protocol.acl import SUPPORTED, Acl, list_reported_operations, parse_acl
from kafkaform_kafka.protocol.cluster_facts import acl_faults
from kafkaform_kafka.session import KafkaSession, open_session
from kafkaform_kafka.wire.security import AclRow, AclRows, create_acls
from kafkaform_kafka.wire.topics import list_topics

from ...conftest import Broker
from ...kit.kafka import sessions as cluster
from ...kit.kafka.logins import Login, new_login
from ...kit.kafka.sessions import apply, eventually, login, new, preflight, wait_everywhere
from ...kit.kafka.terraform import BLOCK, desired


def rule(name: str, **fields: str) -> Acl:
    return replace(Acl(f"User:{name}", "*", "Read", "Allow", "Topic", name, "Literal"), **fields)


def change(acl: Acl, action: Action) -> Change:
    made = action is Action.CREATE
    return Change(
        Identity("kafka", acls.KIND, acl.key),
        "kafka_acl.x",
        action,
        before=None if made else acl.attributes,
        after=acl.attributes if made else None,
    )


def make(session: KafkaSession, *rules: Acl) -> list[Outcome]:
    return apply(session, *(change(acl, Action.CREATE) for acl in rules))


def drop(session: KafkaSession, *rules: Acl) -> list[Outcome]:
    return apply(session, *(change(acl, Action.DELETE) for acl in rules))


def reads(session: KafkaSession, rules: Sequence[Acl], **more: Any) -> list[Reading]:
    ids = [Identity("kafka", acls.KIND, acl.key) for acl in rules]
    found = session.read(ids, **more)
    return [found[identity] for identity in ids]


def wait(session: KafkaSession, kind: type, *rules: Acl) -> None:
    def all_are(**more: Any) -> bool:
        return all(isinstance(reading, kind) for reading in reads(session, rules, **more))

    eventually(all_are, bool)
    wait_everywhere(session, lambda node: all_are(at=node))


EVERY = [
    (kind, operation, permission)
    for kind in acls.RESOURCE_TYPES
    for operation in ("All", *SUPPORTED[kind])
    for permission in acls.PERMISSIONS
]


def test_every_kind_of_rule_is_made_seen_and_deleted(admin: KafkaSession, prefix: str) -> None:
    """All resource types to 7 and operations to 15, allowed and denied, and no other is touched.
    A version that does not have one of them refuses it."""
    every = [
        rule(
            prefix,
            resource_type=kind,
            operation=operation,
            permission=permission,
            resource_name=acls.CLUSTER if kind == "Cluster" else prefix,
        )
        for kind, operation, permission in EVERY
    ]
    newer = [acl for acl in every if any(acl_faults(acl.resource_type, acl.operation, admin.facts))]
    assert {o.status for o in make(admin, *newer)} <= {OutcomeStatus.FAILED}
    rules = [acl for acl in every if acl not in newer]
    rules.append(rule(prefix, pattern_type="Prefixed", host="10.1.2.3"))
    assert {o.status for o in make(admin, *rules)} == {OutcomeStatus.APPLIED}
    wait(admin, Observed, *rules)
    for acl, reading in zip(rules, reads(admin, rules, at="1"), strict=True):
        assert isinstance(reading, Observed) and reading.attributes == acl.attributes
    sweep = admin.sweep(acls.KIND, Depth.FULL)
    assert sweep.coverage.kind is CoverageKind.COMPLETE
    assert {acl.key for acl in rules} <= {item.identity.key for item in sweep.items}
    assert {o.status for o in drop(admin, *rules)} == {OutcomeStatus.APPLIED}
    wait(admin, Absent, *rules)


def test_a_delete_hits_its_rule_alone(admin: KafkaSession, prefix: str) -> None:
    """Not the wildcard, not the prefix, not another host of the same name."""
    mine = rule(prefix)
    others = (
        rule(prefix, pattern_type="Prefixed"),
        rule(prefix, resource_name="*", operation="Describe"),
        rule(prefix, host="10.1.2.3"),
        rule(prefix, permission="Deny", operation="Delete"),
    )
    make(admin, mine, *others)
    wait(admin, Observed, mine, *others)
    assert [o.status for o in drop(admin, mine)] == [OutcomeStatus.APPLIED]
    wait(admin, Absent, mine)
    assert all(isinstance(r, Observed) for r in reads(admin, others))
    drop(admin, *others)


def test_a_rule_that_is_gone_is_told_as_gone(admin: KafkaSession, prefix: str) -> None:
    """Kafka calls it a success; here it is read once more before it counts."""
    (outcome,) = drop(admin, rule(prefix))
    assert outcome.fault and outcome.fault.kind is FaultClass.CONVERGED
    (verdict,) = preflight(admin, change(rule(prefix), Action.DELETE))
    assert verdict.fault and "no longer exists" in verdict.fault.message


def test_a_create_of_what_is_there_is_refused_in_the_dry_run(
    admin: KafkaSession, prefix: str
) -> None:
    """The broker would say yes without a word."""
    make(admin, rule(prefix))
    wait(admin, Observed, rule(prefix))
    (verdict,) = preflight(admin, change(rule(prefix), Action.CREATE))
    assert verdict.fault and "already exists" in verdict.fault.message
    drop(admin, rule(prefix))


def test_one_bad_rule_leaves_the_others_alone(admin: KafkaSession, prefix: str) -> None:
    """Errors are each rule's own, in order."""
    bad = rule(prefix, resource_type="Cluster", operation="Alter")
    outcomes = make(admin, rule(prefix), bad, rule(prefix, operation="Write"))
    assert [o.status.value for o in outcomes] == ["applied", "failed", "applied"]
    assert outcomes[1].fault and "kafka-cluster" in outcomes[1].fault.message
    drop(admin, rule(prefix), rule(prefix, operation="Write"))


def test_who_may_not_look_is_told_so(ci: KafkaSession, stranger: Login, prefix: str) -> None:
    """Nothing is ever absent for somebody who may not see ACLs, one's own included."""
    (few,) = reads(ci, [rule(stranger.user)])
    many = reads(ci, [rule(f"{prefix}{n}") for n in range(20)])
    for reading in (few, *many):
        assert isinstance(reading, Hidden) and reading.right == "Describe on Cluster"
    coverage = ci.sweep(acls.KIND, Depth.NAMES).coverage
    assert coverage.kind is CoverageKind.FAILED
    assert coverage.fault and coverage.fault.code == "CLUSTER_AUTHORIZATION_FAILED"
    with pytest.raises(KafkaformError, match="ACLs cannot be read") as caught:
        ci.query("kafka_acls", FrozenMap())
    assert "Describe on Cluster" in caught.value.advice


def read_own_rights(user: KafkaSettings) -> object:
    """The rights on the cluster that a new session of this user has."""
    session = open_session(user)
    session.close()
    return session.facts.recorded_values["rights"]


def test_who_may_not_change_is_told_before_and_after(
    admin: KafkaSession, user: KafkaSettings, prefix: str
) -> None:
    """With Describe alone the dry run names the right that is missing; so does the broker."""
    with role(admin, prefix, 'role = "custom"\n  operations = ["Describe"]\n  cluster = true'):
        # Each of several brokers learns of the right at its own time.
        eventually(partial(read_own_rights, user), lambda found: found == ("Describe",))
        session = open_session(user)
        for action in (Action.CREATE, Action.DELETE):
            wanted = change(rule(prefix), action)
            (verdict,) = preflight(session, wanted)
            (outcome,) = apply(session, wanted)
            for fault in (verdict.fault, outcome.fault):
                assert fault and fault.kind is FaultClass.PERMISSION
                assert "Alter on Cluster" in fault.advice
        session.close()


def test_a_cluster_without_an_authorizer_says_so(
    admin: KafkaSession, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps no ACLs, which is not the same as having none: no rule is absent there."""
    monkeypatch.setattr(
        "kafkaform_kafka.kinds.acl.requests.describe_acls",
        lambda *_: AclRows(54, "No Authorizer is configured on the broker.", ()),
    )
    coverage = admin.sweep(acls.KIND, Depth.NAMES).coverage
    assert coverage.fault and coverage.fault.code == "SECURITY_DISABLED"
    assert "no authorizer" in coverage.fault.message
    assert all(isinstance(r, Failed) for r in reads(admin, [rule(prefix)]))
    (verdict,) = preflight(admin, change(rule(prefix), Action.CREATE))
    assert verdict.fault and verdict.fault.kind is FaultClass.DEFINITE


def test_a_rule_that_is_too_new_is_left_alone(
    admin: KafkaSession, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that does not know the newest operation of the broker lists it as a number and
    deletes around it."""
    kind, operation, name = "TransactionalID", "TwoPhaseCommit", prefix
    if any(acl_faults(kind, operation, admin.facts)):
        kind, operation, name = "User", "DescribeTokens", f"User:{prefix}"
    code = acls.OPERATIONS[operation]
    row = AclRow(acls.RESOURCE_TYPES[kind], name, 3, f"User:{prefix}", "*", code, 3)
    create_acls(admin.context.wire, [row], 10)
    known = rule(prefix, resource_type=kind, operation=operation, resource_name=name)
    wait(admin, Observed, known)
    monkeypatch.setattr(
        "kafkaform_kafka.kinds.acl.requests._OPERATION",
        {number: word for word, number in acls.OPERATIONS.items() if number < code},
    )
    mine = [
        item
        for item in admin.sweep(acls.KIND, Depth.FULL).items
        if item.attributes["resource_name"] == name
    ]
    assert [item.attributes["acl_operation"] for item in mine] == [str(code)]
    monkeypatch.undo()
    drop(admin, known)


def test_what_resources_know_is_what_the_broker_says(admin: KafkaSession, prefix: str) -> None:
    """A super user may do everything, and the broker lists what that is."""
    assert set(admin.facts.recorded_values["rights"]) == set(list_reported_operations("Cluster"))
    apply(admin, new(prefix))
    wire = admin.context.wire
    (row,) = eventually(
        lambda: list_topics(wire, [prefix], 10, operations=True), lambda rows: rows[0].code == 0
    )
    codes = {acls.OPERATIONS[word] for word in SUPPORTED["Topic"]}
    assert row.operations == codes


def test_a_data_source_lists_and_filters(admin: KafkaSession, prefix: str) -> None:
    """The rules that cover a topic, whoever they were made for."""
    rules = [rule(prefix), rule(prefix, resource_name=prefix[:5], pattern_type="Prefixed")]
    make(admin, *rules)
    wait(admin, Observed, *rules)
    given = {"resource_name": prefix, "resource_pattern_type_filter": "Match"}
    arguments = FrozenMap({**dict.fromkeys(acls.NAMES), **given})
    answer = admin.query("kafka_acls", arguments)
    assert answer["complete"] is True
    assert {parse_acl(found) for found in answer["list"]} >= {*rules}
    drop(admin, *rules)


# ── roles: what real clients need ───────────────────────────────────────────────────────


@pytest.fixture
def broker(exclusive_broker: Broker) -> Broker:
    """Wildcards and ACLs on the Cluster concern more than one test's names."""
    return exclusive_broker


@pytest.fixture
def user(broker: Any, prefix: str) -> Iterator[KafkaSettings]:
    """A user of this test's own, without rights."""
    with new_login(broker, prefix) as made:
        yield login(broker, made)


@contextmanager
def role(admin: KafkaSession, name: str, body: str) -> Iterator[list[Acl]]:
    """The rules of a role of this user, in force."""
    block = f'resource "kafka_access" "x" {{\n  principal = "User:{name}"\n  {body}\n}}\n'
    rules = [parse_acl(item.attributes) for item in desired(BLOCK + block).declared]
    assert rules and {o.status for o in make(admin, *rules)} == {OutcomeStatus.APPLIED}
    wait(admin, Observed, *rules)
    try:
        yield rules
    finally:
        drop(admin, *rules)
        wait(admin, Absent, *rules)


def produce(user: KafkaSettings, topic: str, transactional: str = "") -> None:
    """Write a record, idempotently. Raises KafkaException."""
    config: dict[str, Any] = {
        **make_librdkafka_config(user),
        "enable.idempotence": True,
        "delivery.timeout.ms": 8000,
        "log_level": 0,
        **({"transactional.id": transactional} if transactional else {}),
    }
    faults: list[Any] = []
    producer = Producer({**config, "error_cb": lambda error: faults.append(error)})
    if transactional:
        producer.init_transactions(8)
        producer.begin_transaction()
    producer.produce(topic, b"x", on_delivery=lambda error, _: error and faults.append(error))
    if producer.flush(10) or faults:
        raise KafkaException(faults[0] if faults else "no answer")
    if transactional:
        producer.commit_transaction(8)


def consume(user: KafkaSettings, topic: str, group: str) -> None:
    """Read a record as a member of a group. Raises KafkaException."""
    config = {"group.id": group, "auto.offset.reset": "earliest", "log_level": 0}
    consumer = Consumer({**make_librdkafka_config(user), **config})
    try:
        consumer.subscribe([topic])
        message = eventually(lambda: consumer.poll(0.5), lambda found: found is not None)
        if message.error():
            raise KafkaException(message.error())
        consumer.commit(message, asynchronous=False)
    finally:
        consumer.close()


def works(attempt: Callable[[], None], fault: type[Exception] = KafkaException) -> bool:
    try:
        attempt()
    except (fault, SystemError):  # the client's own, when a fatal error meets its callback
        return False
    return True


def test_a_producer_works_with_its_role_and_not_without(
    admin: KafkaSession, user: KafkaSettings, prefix: str
) -> None:
    """An idempotent producer needs nothing on the cluster."""
    apply(admin, new(prefix))
    with role(admin, prefix, f'role = "producer"\n  topics = ["{prefix}"]'):
        eventually(lambda: works(lambda: produce(user, prefix)), bool)
    assert not works(lambda: produce(user, prefix))


def test_a_transactional_producer_works_with_its_role(
    admin: KafkaSession, user: KafkaSettings, prefix: str
) -> None:
    """And a producer's role is not enough for it."""
    apply(admin, new(prefix))
    topics = f'topics = ["{prefix}"]'
    body = f'role = "transactional_producer"\n  {topics}\n  transactional_ids = ["{prefix}"]'
    with role(admin, prefix, body):
        eventually(lambda: works(lambda: produce(user, prefix, prefix)), bool)
    with role(admin, prefix, f'role = "producer"\n  {topics}'):
        assert not works(lambda: produce(user, prefix, prefix))


def test_a_consumer_works_with_its_role(
    broker: Any, admin: KafkaSession, user: KafkaSettings, prefix: str
) -> None:
    """And its topics alone are not enough for a group."""
    apply(admin, new(prefix))
    cluster.produce(broker, prefix, 3)
    topics = f'role = "consumer"\n  topics = ["{prefix}"]'
    with role(admin, prefix, f'{topics}\n  group = "{prefix}"'):
        eventually(lambda: works(lambda: consume(user, prefix, prefix)), bool)
    with role(admin, prefix, topics):
        assert not works(lambda: consume(user, prefix, prefix))


def test_a_streams_application_makes_and_cleans_its_own_topics(
    admin: KafkaSession, user: KafkaSettings, prefix: str
) -> None:
    """It creates, writes, reads and purges topics that begin with its application id and a dash,
    and no others."""
    own, other = f"{prefix}-store-changelog", f"{prefix}2-store-changelog"
    with role(admin, prefix, f'role = "streams"\n  group = "{prefix}"'):
        session = open_session(user)
        made, refused = apply(session, new(own), new(other))
        assert made.status is OutcomeStatus.APPLIED
        assert refused.fault and refused.fault.kind is FaultClass.PERMISSION
        eventually(lambda: works(lambda: produce(user, own)), bool)
        eventually(lambda: works(lambda: consume(user, own, prefix)), bool)
        client = AdminClient(make_librdkafka_config(user))
        (done,) = client.delete_records([TopicPartition(own, 0, 1)]).values()
        assert done.result(60).low_watermark == 1
        session.close()


def test_an_admin_may_do_all_that_kafkaform_does(
    admin: KafkaSession, user: KafkaSettings, prefix: str
) -> None:
    """Topics, configs, ACLs and quotas, without reading or writing a record."""
    with role(admin, prefix, 'role = "admin"\n  topics = ["*"]'):
        session = open_session(user)
        assert not preflight(session, new(prefix))[0].fault
        assert apply(session, new(prefix))[0].status is OutcomeStatus.APPLIED
        seen = eventually(
            lambda: cluster.read(session, prefix), lambda found: isinstance(found, Observed)
        )
        mine = rule(f"{prefix}x")
        assert make(session, mine)[0].status is OutcomeStatus.APPLIED
        wait(session, Observed, mine)
        assert drop(session, mine)[0].status is OutcomeStatus.APPLIED
        for kind in ("kafka_quota", acls.KIND, "kafka_topic"):
            assert session.sweep(kind, Depth.FULL).coverage.kind is not CoverageKind.FAILED
        assert not works(lambda: produce(user, prefix))
        gone = cluster.gone(prefix, seen.incarnation if isinstance(seen, Observed) else None)
        assert apply(session, gone)[0].status is OutcomeStatus.APPLIED
        session.close()


# ── the cluster is asked before a topic ─────────────────────────────────────────────────


def explained(session: KafkaSession, who: str, topic: str) -> FrozenMap:
    """What `explain access` says of deleting this topic."""
    access = build_access(
        session.sweep(acls.KIND, Depth.FULL), session.facts, ["User:admin"], False
    )
    wanted = AccessQuery("Topic", topic, ("Delete",), who)
    (answer,) = explain_access(access, wanted, "")["answers"]
    assert isinstance(answer, FrozenMap)
    return answer


def test_delete_on_the_cluster_deletes_a_topic_that_denies_it(
    admin: KafkaSession, user: KafkaSettings, prefix: str
) -> None:
    """The dry run, the explanation and the broker agree: a DENY on the topic stops nobody who has
    Delete on the cluster. Without it all three name the DENY."""
    (made,) = apply(admin, new(prefix))
    gone = cluster.gone(prefix, made.incarnation)
    deny = rule(prefix, operation="Delete", permission="Deny")
    sees = 'role = "custom"\n  operations = ["Describe"]\n  {}'
    whole = 'role = "custom"\n  operations = ["Delete"]\n  cluster = true'
    make(admin, deny)
    wait(admin, Observed, deny)
    with role(admin, prefix, sees.format(f'topics = ["{prefix}"]\n  cluster = true')):
        session = open_session(user)
        steps = [step for batch in cluster.batches(session, [gone]) for step in batch.steps]
        said = f'because of the ACL Deny User:{prefix} Delete on topic "{prefix}" from any host'
        (examined,) = eventually(lambda: session.examine(steps), bool)
        (checked,) = eventually(lambda: preflight(session, gone), lambda found: found[0].fault)
        for verdict in (examined, checked):
            assert verdict.fault and said in verdict.fault.message
            assert verdict.fault.advice.startswith("delete that ACL")
        assert explained(admin, f"User:{prefix}", prefix)["verdict"] == "denied"
        with role(admin, prefix, whole):
            eventually(lambda: session.examine(steps), lambda found: found == ())
            assert preflight(session, gone)[0].fault is None
            answer = explained(admin, f"User:{prefix}", prefix)
            assert (answer["verdict"], answer["on_cluster"]) == ("allowed", True)
            assert "Not its records" in str(answer["why"])
            client = AdminClient(make_librdkafka_config(user))
            (purged,) = client.delete_records([TopicPartition(prefix, 0, 0)]).values()
            with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
                purged.result(60)
            assert apply(session, gone)[0].status is OutcomeStatus.APPLIED
        session.close()
    drop(admin, deny)


def test_who_may_not_read_acls_is_judged_by_what_is_told(
    admin: KafkaSession, user: KafkaSettings, prefix: str
) -> None:
    """Delete on the cluster would give Describe on it, so without that it is not there either,
    unless a DENY hides it: the advice says what to do then."""
    (made,) = apply(admin, new(prefix))
    gone = cluster.gone(prefix, made.incarnation)
    with role(admin, prefix, f'role = "consumer"\n  topics = ["{prefix}"]'):
        session = open_session(user)
        steps = [step for batch in cluster.batches(session, [gone]) for step in batch.steps]
        (verdict,) = eventually(lambda: session.examine(steps), bool)
        assert verdict.fault and "Delete on Topic" in verdict.fault.message
        assert "if it has Delete on Cluster, grant Describe on Cluster" in verdict.fault.advice
        assert "or Delete on Cluster" in verdict.fault.advice
        session.close()
    apply(admin, gone)
