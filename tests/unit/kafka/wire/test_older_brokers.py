"""What is sent to brokers of older releases, and what their answers mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol import admin, consumer, metadata
from msgspec.structs import replace

from kafkaform.core.change import Action, Evidence
from kafkaform_kafka.connection.settings import KafkaSettings
from kafkaform_kafka.inspect.usage import _are_all_live
from kafkaform_kafka.kinds.context import Order
from kafkaform_kafka.kinds.topic.requests import send_create_partitions, send_create_topics
from kafkaform_kafka.protocol.cluster_facts import LEADER_AND_ISR
from kafkaform_kafka.provider import TYPES
from kafkaform_kafka.session import read_facts
from kafkaform_kafka.wire import cluster, configs, describe, security, topics, usage
from kafkaform_kafka.wire.client import RequestNotSent, Unsupported, Wire
from kafkaform_kafka.wire.security import SaltedPassword

from ....kit.kafka.changes import change, facts, topic
from ....kit.kafka.old_broker import VERSIONS, OldBroker

T = 1.0
ACL = security.AclRow(2, "t", 3, "User:u", "*", 3, 3)
TOPIC = {"name": "t", "partitions": 1, "replication_factor": 1, "assignment": None, "configs": {}}
DESCRIBED = admin.DescribeClusterResponse(
    cluster_id="c",
    controller_id=2,
    brokers=[
        admin.DescribeClusterResponse.DescribeClusterBroker(broker_id=n, host="h", port=n)
        for n in (1, 2)
    ],
)
ANSWERS: Mapping[int, Any] = {
    2: consumer.ListOffsetsResponse(topics=[]),
    3: metadata.MetadataResponse(brokers=[], topics=[]),
    9: consumer.OffsetFetchResponse(groups=[]),
    15: admin.DescribeGroupsResponse(groups=[]),
    16: admin.ListGroupsResponse(groups=[]),
    19: admin.CreateTopicsResponse(topics=[]),
    20: admin.DeleteTopicsResponse(responses=[]),
    29: admin.DescribeAclsResponse(resources=[]),
    30: admin.CreateAclsResponse(results=[]),
    31: admin.DeleteAclsResponse(filter_results=[]),
    32: admin.DescribeConfigsResponse(results=[]),
    35: admin.DescribeLogDirsResponse(results=[]),
    37: admin.CreatePartitionsResponse(results=[]),
    43: admin.ElectLeadersResponse(replica_election_results=[]),
    44: admin.IncrementalAlterConfigsResponse(responses=[]),
    45: admin.AlterPartitionReassignmentsResponse(responses=[]),
    46: admin.ListPartitionReassignmentsResponse(topics=[]),
    48: admin.DescribeClientQuotasResponse(entries=[]),
    49: admin.AlterClientQuotasResponse(entries=[]),
    50: admin.DescribeUserScramCredentialsResponse(results=[]),
    51: admin.AlterUserScramCredentialsResponse(results=[]),
    55: admin.DescribeQuorumResponse(topics=[]),
    60: DESCRIBED,
    74: admin.ListConfigResourcesResponse(config_resources=[]),
}
REQUESTS: Mapping[str, Callable[[Any], object]] = {
    "topics": lambda w: topics.list_topics(w, None, T, operations=True),
    "topics by name": lambda w: topics.list_topics(w, ["t"], T),
    "create": lambda w: topics.create_topics(w, [TOPIC], T, validate_only=True),
    "grow": lambda w: topics.create_partitions(
        w, [{"name": "t", "count": 2, "assignment": None}], T, validate_only=True
    ),
    "delete": lambda w: topics.delete_topics(w, ["AAAAAAAAAAAAAAAAAAAAAQ"], T),
    "all configs": lambda w: configs.describe_configs(w, "topic", ["t"], T, docs=True),
    "alter configs": lambda w: configs.alter_configs(
        w,
        [{"resource": "topic", "name": "t", "set": {"a": "1"}, "delete": ()}],
        T,
        validate_only=True,
    ),
    "acls": lambda w: security.describe_acls(w, T),
    "create acls": lambda w: security.create_acls(w, [ACL], T),
    "delete acls": lambda w: security.delete_acls(w, [ACL], T),
    "quotas": lambda w: configs.describe_quotas(w, T),
    "alter quotas": lambda w: configs.alter_quotas(
        w,
        [{"entity": {"user": "u"}, "set": {}, "remove": ("producer_byte_rate",)}],
        T,
        validate_only=True,
    ),
    "moves": lambda w: topics.list_reassignments(w, T),
    "move": lambda w: topics.alter_reassignments(w, {"t": {0: (1,)}}, T),
    "elect": lambda w: topics.elect_leaders(w, {"t": [0]}, T),
    "cluster": lambda w: cluster.describe_cluster(w, T),
    "groups": lambda w: usage.list_groups(w, "1", T),
    "committed": lambda w: usage.fetch_offsets(w, ["g"], "1", T),
    "members": lambda w: usage.describe_members(w, ["g"], "1", T),
    "offsets": lambda w: usage.list_offsets(w, {"t": [0]}, usage.LATEST, "1", T),
    "partitions": lambda w: describe.describe_topics(w, ["t"], T),
}
"""Requests that every release from 3.0 on has."""
USERS: Mapping[str, Callable[[Any], object]] = {
    "users": lambda w: security.describe_scram(w, None, T),
    "alter users": lambda w: security.alter_scram(
        w, [security.Upsertion("u", 1, 4096, SaltedPassword(b"s", b"p"))], [], T
    ),
}


@pytest.mark.parametrize("release", VERSIONS)
@pytest.mark.parametrize("name", REQUESTS)
def test_every_request_fits_every_release(name: str, release: str) -> None:
    """It can be written in a version of the oldest release, and the answer is understood."""
    broker = OldBroker(release, ANSWERS)
    REQUESTS[name](broker)
    assert len(broker.asked) == 1


@pytest.mark.parametrize("release", VERSIONS)
@pytest.mark.parametrize("name", USERS)
def test_users_are_missing_with_kraft_before_35(name: str, release: str) -> None:
    """With ZooKeeper they are on the wire in every release."""
    broker = OldBroker(release, ANSWERS)
    if release == "3.0":
        with pytest.raises(Unsupported):
            USERS[name](broker)
    else:
        USERS[name](broker)


def test_rights_of_users_are_not_sent_to_brokers_that_do_not_know_them() -> None:
    """Version 2 could only say UNKNOWN (KIP-373)."""
    with pytest.raises(Unsupported):
        security.create_acls(OldBroker("3.0", ANSWERS), [replace(ACL, resource_type=7)], T)  # type: ignore[arg-type]


def test_groups_with_configs_can_be_listed_since_41_only() -> None:
    """Version 0 has subscriptions to client metrics, and with ZooKeeper not even those."""
    with pytest.raises(Unsupported):
        configs.list_config_resources(OldBroker("3.9", ANSWERS), "group", T)  # type: ignore[arg-type]
    found = configs.list_config_resources(OldBroker("3.9", ANSWERS), "client_metrics", T)  # type: ignore[arg-type]
    assert found.names == ()
    with pytest.raises(Unsupported):
        zookeeper = OldBroker("3.9 with ZooKeeper", ANSWERS)
        configs.list_config_resources(zookeeper, "client_metrics", T)  # type: ignore[arg-type]


@pytest.mark.parametrize("release", VERSIONS)
def test_nobody_knows_whether_an_old_broker_is_fenced(release: str) -> None:
    """Before 4.0 the answer does not say: False would mean that all brokers are live, and a
    snapshot would record the configs of a stopped one as deleted."""
    broker: Any = OldBroker(release, ANSWERS)
    assert [row.fenced for row in describe.describe_brokers(broker, T)] == [None, None]
    context: Any = SimpleNamespace(wire=broker, timeout=T)
    assert not _are_all_live(SimpleNamespace(context=context))  # type: ignore[arg-type]


def test_no_log_directories_are_no_size() -> None:
    """Kafka before 3.2 answers so to a principal without Describe on the cluster."""
    broker: Any = OldBroker("3.0", ANSWERS)
    assert cluster.read_log_sizes(broker, {"t": 1}, "1", T) is None


@pytest.mark.parametrize("release", VERSIONS)
def test_an_old_broker_does_not_say_how_large_its_disks_are(release: str) -> None:
    """Before 3.3 (KIP-827): unknown is neither 0 bytes nor an error. The sizes of logs are told by
    every release."""
    row = admin.DescribeLogDirsResponse.DescribeLogDirsResult
    topic = row.DescribeLogDirsTopic
    log = topic.DescribeLogDirsPartition(
        partition_index=0, partition_size=7, offset_lag=0, is_future_key=False
    )
    directory = row(
        error_code=0,
        log_dir="/data",
        topics=[topic(name="t", partitions=[log])],
        total_bytes=100,
        usable_bytes=40,
        is_cordoned=False,
    )
    broker: Any = OldBroker(
        release, {35: admin.DescribeLogDirsResponse(error_code=0, results=[directory])}
    )
    [found] = cluster.read_log_directories(broker, None, "1", T).rows
    told = dict(broker.asked)[35] >= 4
    assert (found.total, found.usable) == ((100, 40) if told else (None, None))
    assert found.logs == (cluster.LogSize("t", 0, "1", 7),)


def make_settings() -> KafkaSettings:
    return KafkaSettings(instance="kafka", servers=("h:1",), protocol="PLAINTEXT")


OLD_FORMAT, READERS = "log.message.format.version", "remote.log.reader.threads"
USUAL = (
    "num.partitions",
    "default.replication.factor",
    "auto.create.topics.enable",
    "delete.topic.enable",
    "controller.quota.window.num",
    "controller.quota.window.size.seconds",
    "request.timeout.ms",
)
FACTS = [
    ("3.0", "3.0", False),
    ("3.0 with ZooKeeper", "3.0", True),
    ("3.9 with ZooKeeper", "3.9", True),
]


@pytest.mark.parametrize(("release", "kafka_version", "zookeeper"), FACTS)
def test_the_facts_name_release_and_zookeeper(
    release: str, kafka_version: str, zookeeper: bool
) -> None:
    """With ZooKeeper, requests for the controller are sent there from then on."""
    row = metadata.ApiVersionsResponse.ApiVersion
    marks = {0: 11, 11: 9, 24: 5} if release.startswith("3.9") else {}
    told = {**{api: high for api, (_, high) in VERSIONS[release].items()}, **marks}
    versions = metadata.ApiVersionsResponse(
        api_keys=[row(api_key=api, min_version=0, max_version=high) for api, high in told.items()]
    )
    broker: Any = OldBroker(release, {**ANSWERS, 18: versions})
    found = read_facts(broker, make_settings())
    assert found.recorded_values["kafka_version"] == kafka_version
    assert found.recorded_values["zookeeper"] is zookeeper is broker.sought
    executed = ("CreatePartitions", "CreateTopics") if release == "3.0" else ()
    assert found.recorded_values["executed_dry_runs"] == executed
    assert (LEADER_AND_ISR in told) == zookeeper


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ((), {}),
        (("num.partitions",), {}),
        (USUAL, {OLD_FORMAT: False}),
        ((*USUAL, OLD_FORMAT, f"{READERS}*"), {OLD_FORMAT: None, READERS: None}),
        ((*USUAL, READERS), {READERS: True}),
    ],
)
def test_the_facts_have_what_brokers_list_differently(
    listed: tuple[str, ...], expected: Mapping[str, bool | None]
) -> None:
    """Kafka 3.0 with ZooKeeper has log.message.format.version, and cannot change the readers of
    tiered storage without a restart. A star: the broker lists it as read-only. None: the broker and
    the table agree. A listing without what every broker has is not whole, and says nothing."""
    entry = admin.DescribeConfigsResponse.DescribeConfigsResult.DescribeConfigsResourceResult
    rows = [
        entry(name=name.rstrip("*"), value="1", read_only=name.endswith("*"), config_source=5)
        for name in listed
    ]
    result = admin.DescribeConfigsResponse.DescribeConfigsResult
    answer = admin.DescribeConfigsResponse(results=[result(resource_name="1", configs=rows)])
    release = "3.0 with ZooKeeper"
    row = metadata.ApiVersionsResponse.ApiVersion
    versions = metadata.ApiVersionsResponse(
        api_keys=[
            row(api_key=api, min_version=low, max_version=high)
            for api, (low, high) in VERSIONS[release].items()
        ]
    )
    broker: Any = OldBroker(release, {**ANSWERS, 18: versions, 32: answer})
    found = read_facts(broker, make_settings()).recorded_values["config_keys"]
    assert {name: found.get(name) for name in expected} == expected
    assert bool(found) == (set(USUAL) <= set(listed))


def test_requests_for_the_controller_go_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ZooKeeper any other broker answers NOT_CONTROLLER, also if a verification names it. The
    controller is looked up each time; what any broker takes goes where it went before."""
    wire = object.__new__(Wire)
    wire._forwards = True
    wire._missed = {}
    sent: list[tuple[int, str | None]] = []

    def send_once(_: Wire, request: Any, timeout: float, patience: float, node: str | None) -> Any:
        sent.append((request.API_KEY, node))
        return DESCRIBED

    monkeypatch.setattr(Wire, "_send_once", send_once)
    create = admin.CreateTopicsRequest(topics=[], timeout_ms=1, validate_only=False)
    listing = metadata.MetadataRequest(topics=None)
    wire.send(create, T)
    wire.seek_controller()
    wire.send(create, T)
    wire.send(create, T, "1")
    wire.send(listing, T)
    wire.send(listing, T, "1")
    to_controller = [(60, None), (19, "2")]
    assert sent == [(19, None), *to_controller, *to_controller, (3, None), (3, "1")]
    lost = admin.DescribeClusterResponse(controller_id=-1, brokers=[])
    monkeypatch.setattr(Wire, "_send_once", lambda *_: lost)
    with pytest.raises(RequestNotSent, match="no controller at the moment"):
        wire.send(create, T)


def test_no_dry_run_is_sent_that_would_be_executed() -> None:
    """Controllers of KRaft's preview ignore `validate_only` in some requests. A plan does not claim
    that the broker checks such a step; the apply sends it."""
    known = facts(executed_dry_runs=("CreatePartitions", "CreateTopics"))
    broker: Any = OldBroker("3.0", ANSWERS)
    context: Any = SimpleNamespace(wire=broker, timeout=T, facts=known, epochs=set())
    live = topic(partitions=1)
    for made, send in (
        (change(Action.CREATE, None, topic()), send_create_topics),
        (change(Action.UPDATE, live, {**live, "partitions": 2}), send_create_partitions),
    ):
        (step,) = TYPES["kafka_topic"].steps(made, known)
        assert step.evidence is Evidence.LOCAL
        (other,) = TYPES["kafka_topic"].steps(made, facts())
        assert other.evidence is Evidence.REMOTE
        assert [reply.fault for reply in send(context, Order((step,), dry=True))] == [None]
        assert broker.asked == []
        send(context, Order((step,), dry=False))
        assert broker.asked.pop()[0] in (19, 37)
