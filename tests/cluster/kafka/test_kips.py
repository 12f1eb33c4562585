"""What the KIPs promise of single requests, asked of a real broker (docs/kip-map.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol.metadata import MetadataRequest
from msgspec.structs import replace

from kafkaform.cli.command_tree import get_commands
from kafkaform.core.change import OutcomeStatus
from kafkaform.core.resource import (
    Absent,
    CoverageKind,
    Depth,
    Fault,
    FaultClass,
    Identity,
    Observed,
)
from kafkaform.plan.diff import compare
from kafkaform_kafka.connection.provider_block import CONFIG
from kafkaform_kafka.kinds.context import attempt
from kafkaform_kafka.kinds.topic import resource_type as topics
from kafkaform_kafka.protocol import acl as acls
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire import configs
from kafkaform_kafka.wire.client import Wire
from kafkaform_kafka.wire.topics import create_topics, delete_topics, list_topics

from ...kit.kafka.changes import frozen, topic
from ...kit.kafka.sessions import apply, connect, eventually, gone, new, read
from ...kit.kafka.terraform import BLOCK, faults

TIMEOUT = 20.0
INVALID_REQUEST, INVALID_CONFIG = 42, 40
NOBODY = "User:nobody-whom-any-test-knows"


@pytest.fixture
def wire(admin: KafkaSession) -> Wire:
    """The raw connection of the super user's session."""
    return admin.context.wire


@pytest.fixture
def live(admin: KafkaSession, prefix: str) -> Iterator[Observed]:
    """A topic with one partition, gone afterwards."""
    (made,) = apply(admin, new(prefix))
    assert made.status is OutcomeStatus.APPLIED
    yield seen(admin, prefix)
    left = read(admin, prefix)
    if isinstance(left, Observed):
        apply(admin, gone(prefix, left.incarnation))


def seen(session: KafkaSession, name: str) -> Observed:
    reading = eventually(lambda: read(session, name), lambda r: isinstance(r, Observed))
    assert isinstance(reading, Observed)
    return reading


def alter(wire: Wire, *changes: dict[str, Any]) -> Any:
    """IncrementalAlterConfigs of topics: name, set and delete of each."""
    usual: dict[str, Any] = {"resource": "topic", "set": {}, "delete": ()}
    whole = [{**usual, **change} for change in changes]
    return configs.alter_configs(wire, whole, TIMEOUT, validate_only=False)


def own_configs(wire: Wire, name: str) -> dict[str, str | None]:
    """The topic's own overrides."""
    answer = configs.describe_configs(wire, "topic", [name], TIMEOUT)[name]
    return {entry.name: entry.value for entry in answer.configs or () if entry.source == 1}


def test_there_is_no_zookeeper() -> None:
    """A cluster is reached by its brokers alone: no setting names another way."""
    assert "bootstrap_servers" in CONFIG.attributes
    assert not [name for name in CONFIG.list_names() if "zookeeper" in name.lower()]


def test_no_names_is_nothing_and_null_is_everything(wire: Wire, live: Observed) -> None:
    """Metadata: null asks for all topics, an empty list for none; no filter becomes the other."""
    assert not list_topics(wire, [], TIMEOUT)
    everything = list_topics(wire, None, TIMEOUT)
    assert live.identity.key in {row.name for row in everything}


def test_a_topic_named_twice_in_one_request_is_refused(wire: Wire, prefix: str) -> None:
    """CreateTopics: duplicates are an invalid request, once for both, and nothing is made."""
    row: dict[str, Any] = {
        "name": prefix,
        "partitions": 1,
        "replication_factor": 1,
        "assignment": None,
        "configs": {},
    }
    answers = create_topics(wire, [row, row], TIMEOUT, validate_only=False)
    assert {answer.code for answer in answers.items.values()} == {INVALID_REQUEST}


def test_an_assignment_and_counts_exclude_each_other() -> None:
    """KIP-4: a topic has either replicas by hand, or numbers."""
    text = (
        'resource "kafka_topic" "t" {\n  name = "t"\n  partitions = 1\n'
        "  replica_assignment = [[1]]\n}\n"
    )
    (fault,) = faults(BLOCK + text)
    assert "replica_assignment" in fault
    assert "partitions" in fault


def test_the_order_of_replicas_counts() -> None:
    """The first replica is the preferred leader, so another order is a difference."""
    schema = topics.TYPE.schema
    before, after = (frozen(topic(replica_assignment=[order])) for order in ([1, 2], [2, 1]))
    assert [item.path for item in compare(before, after, schema=schema)] == [
        ("replica_assignment",)
    ]


def test_one_item_fails_and_the_others_are_made(
    admin: KafkaSession, live: Observed, prefix: str
) -> None:
    """No request is a transaction: what somebody made before fails alone, the others are there
    with their own outcome."""
    names = [f"{prefix}.a", live.identity.key, f"{prefix}.b"]
    outcomes = apply(admin, *map(new, names))
    assert [outcome.status for outcome in outcomes] == [
        OutcomeStatus.APPLIED,
        OutcomeStatus.FAILED,
        OutcomeStatus.APPLIED,
    ]
    fault = outcomes[1].fault
    assert fault is not None
    assert (fault.code, fault.kind) == ("TOPIC_ALREADY_EXISTS", FaultClass.CONVERGED)
    for name, outcome in zip(names, outcomes, strict=True):
        if outcome.incarnation:
            assert seen(admin, name).incarnation == outcome.incarnation
            apply(admin, gone(name, outcome.incarnation))


def test_two_deletions_of_one_topic_end_in_one(
    broker: Any, admin: KafkaSession, prefix: str
) -> None:
    """Somebody who deletes the same topic at the same time is no failure: it is gone."""
    (made,) = apply(admin, new(prefix))
    seen(admin, prefix)
    other = connect(broker, "admin")
    first, second = (apply(who, gone(prefix, made.incarnation))[0] for who in (admin, other))
    other.close()
    assert first.status is OutcomeStatus.APPLIED
    assert second.fault is not None
    assert second.fault.kind is FaultClass.CONVERGED
    eventually(lambda: read(admin, prefix), lambda r: isinstance(r, Absent))


def test_a_deletion_twice_in_one_request_is_refused(wire: Wire, live: Observed) -> None:
    """DeleteTopics no longer ignores duplicates, and leaves the topic alone."""
    topic_id = str(live.incarnation)
    answers = delete_topics(wire, [topic_id, topic_id], TIMEOUT)
    assert {answer.code for answer in answers.items.values()} == {INVALID_REQUEST}
    assert isinstance(read_by(wire, live.identity.key), str)


def read_by(wire: Wire, name: str) -> str | None:
    (row,) = list_topics(wire, [name], TIMEOUT)
    return row.topic_id


def test_any_broker_answers(admin: KafkaSession, live: Observed) -> None:
    """Topics, configs and ACLs are told by every broker that is asked alone."""
    for node in admin.facts.nodes:
        eventually(
            lambda n=node: read(admin, live.identity.key, at=n),  # type: ignore[misc]
            lambda r: isinstance(r, Observed),
        )
        assert isinstance(read(admin, acl_key(), acls.KIND, at=node), Absent)


def acl_key() -> str:
    """An ACL that is not there."""
    return acls.Acl(NOBODY, "*", "Read", "Allow", "Topic", "none", "Literal").key


def test_no_acls_is_an_empty_answer_and_no_error(admin: KafkaSession) -> None:
    """An ACL that is not there is absent, proven by a complete listing."""
    assert isinstance(read(admin, acl_key(), acls.KIND), Absent)
    sweep = admin.sweep(acls.KIND, Depth.FULL)
    assert sweep.coverage.kind is CoverageKind.COMPLETE
    assert NOBODY not in {item.attributes["acl_principal"] for item in sweep.items}


def test_acls_without_the_right_are_an_error_and_no_empty_answer(ci: KafkaSession) -> None:
    """Who may not describe the cluster is told so, by the listing and by the reading."""
    sweep = ci.sweep(acls.KIND, Depth.FULL)
    assert sweep.items == ()
    assert sweep.coverage.kind is not CoverageKind.COMPLETE
    assert not isinstance(read(ci, acl_key(), acls.KIND), Absent | Observed)


def test_a_topic_asked_for_twice_is_told_once(admin: KafkaSession, live: Observed) -> None:
    """Duplicates among what is read are dropped before the request."""
    identity = live.identity
    assert list(admin.read([identity, identity])) == [identity]


def test_one_resource_without_configs_does_not_hide_another(
    admin: KafkaSession, live: Observed
) -> None:
    """Errors of DescribeConfigs belong to their resource."""
    ids = [Identity("kafka", "kafka_topic", name) for name in (live.identity.key, "not.there")]
    readings = admin.read(ids)
    assert isinstance(readings[ids[0]], Observed)
    assert isinstance(readings[ids[1]], Absent)


def test_a_resource_named_twice_is_refused(wire: Wire, live: Observed) -> None:
    """IncrementalAlterConfigs: one resource twice is an invalid request, and nothing is set."""
    name = live.identity.key
    answers = alter(
        wire,
        {"name": name, "set": {"retention.ms": "1000"}},
        {"name": name, "set": {"segment.ms": "1000"}},
    )
    assert {answer.code for answer in answers.items.values()} == {INVALID_REQUEST}
    assert own_configs(wire, name) == {}


def test_all_configs_of_a_resource_or_none(wire: Wire, live: Observed, prefix: str) -> None:
    """One key that the broker refuses takes the others of its resource along, and no other
    resource."""
    create_topics(
        wire,
        [
            {
                "name": f"{prefix}.other",
                "partitions": 1,
                "replication_factor": 1,
                "assignment": None,
                "configs": {},
            }
        ],
        TIMEOUT,
        validate_only=False,
    )
    name, other = live.identity.key, f"{prefix}.other"
    eventually(lambda: read_by(wire, other), bool)
    wanted = {"retention.ms": "1000"}
    answers = alter(
        wire,
        {"name": name, "set": {**wanted, "no.such.key": "1"}},
        {"name": other, "set": wanted},
    )
    codes = {key[1]: answer.code for key, answer in answers.items.items()}
    assert codes == {name: INVALID_CONFIG, other: 0}
    eventually(lambda: own_configs(wire, other), lambda found: found == wanted)
    assert own_configs(wire, name) == {}
    delete_topics(wire, [str(read_by(wire, other))], TIMEOUT)


def test_an_empty_text_is_a_value(wire: Wire, live: Observed) -> None:
    """KIP-248 removed a config by an empty text; now it is a value, and a removal is a removal."""
    name, key = live.identity.key, "follower.replication.throttled.replicas"
    alter(wire, {"name": name, "set": {key: ""}})
    eventually(lambda: own_configs(wire, name), lambda found: found == {key: ""})
    alter(wire, {"name": name, "delete": (key,)})
    eventually(lambda: own_configs(wire, name), lambda found: found == {})


def test_an_acl_without_the_right_names_it(ci: KafkaSession) -> None:
    """Making an ACL needs Alter on the cluster: who lacks it is told so, and nothing is made."""
    rule = acls.parse_acl_key(acl_key())
    change = replace(
        new("unused"),
        identity=Identity("kafka", acls.KIND, rule.key),
        after=rule.attributes,
        paths=(),
    )
    (outcome,) = apply(ci, change)
    assert outcome.fault is not None
    assert outcome.fault.kind is FaultClass.PERMISSION
    assert "Alter" in outcome.fault.advice
    assert "Cluster" in outcome.fault.advice


def test_no_request_is_sent_without_patience() -> None:
    """A timeout of zero would return before anything is known, so there is none."""
    for text in ("0s", "-1s"):
        block = BLOCK.replace("}", f'  operation_timeout = "{text}"\n}}')
        assert faults(block, checked=True), text


def test_force_is_auto_approve() -> None:
    """KIP-248's flag is understood."""
    command = get_commands().commands["apply"]
    (option,) = [option for option in command.params if "--auto-approve" in option.opts]
    assert "--force" in option.opts


def test_a_request_that_the_broker_does_not_know_is_named(wire: Wire) -> None:
    """Versions are negotiated; what only another broker knows is told by name, and not sent."""
    request = MetadataRequest(topics=[])
    request._min_version = MetadataRequest.max_version + 1
    fault = attempt("Metadata", lambda: wire.send(request, TIMEOUT))
    assert isinstance(fault, Fault)
    assert (fault.code, fault.kind) == ("UNSUPPORTED_VERSION", FaultClass.DEFINITE)
    assert "Metadata" in f"{fault.message} {fault.where}"
