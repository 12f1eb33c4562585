"""Every code of the protocol is in the table, and what a broker answers is what the table says."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from kafka import errors as kafka_errors
from kafka.protocol import admin as admin_requests
from kafka.protocol import metadata as metadata_requests

from kafkaform import sandbox
from kafkaform.core.resource import FaultClass
from kafkaform.sandbox import jars
from kafkaform_kafka.protocol.apis import APIS
from kafkaform_kafka.protocol.faults import FOREIGN, error_codes, fault_of
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.client import Unsupported

from ...kit.kafka.logins import new_login
from ...kit.kafka.quota_user import account, limits, opened
from ...kit.kafka.sessions import apply, connect, eventually, new, read
from ...kit.kafka.versions import get_choice
from .classfile import enum_names

_D, _N, _A = FaultClass.DEFINITE, FaultClass.NOT_APPLIED, FaultClass.AMBIGUOUS
_P, _C = FaultClass.PERMISSION, FaultClass.CONVERGED

NO_OBJECTS = uuid.UUID("5d1f1b0c-7a1e-4f6e-9b53-0123456789ab")
TOPIC, BROKER, GROUP, METRICS = 2, 4, 32, 16
SET = 0
SCRAM_256 = 1
PATIENCE = 60.0


def made(kind: Any, value: Any) -> Any:
    """A protocol structure from plain data."""
    fields = {}
    for name, item in value.items():
        inner = getattr(kind.fields.get(name), "data_class", None)
        nested = inner is not None and isinstance(item, list)
        fields[name] = [made(inner, each) for each in item] if nested else item
    return kind(**fields)


def codes(answer: Any) -> Iterator[tuple[int, str | None]]:
    """Every error code of an answer, with the broker's words for it."""
    for name in answer.fields:
        value = getattr(answer, name, None)
        if name == "error_code" and value:
            yield value, getattr(answer, "error_message", None)
        for item in value if isinstance(value, list | tuple) else ():
            if hasattr(item, "fields"):
                yield from codes(item)


def ask(session: KafkaSession, api: str, body: dict[str, Any]) -> list[tuple[int, str | None]]:
    """The codes that the broker answers this request with."""
    module = metadata_requests if api == "Metadata" else admin_requests
    request = made(getattr(module, f"{api}Request"), body)
    return list(codes(session.context.wire.send(request, PATIENCE)))


# ── the table against the protocol ──────────────────────────────────────────────────────


@pytest.mark.usefixtures("broker")
def test_the_table_is_that_of_kafka_4_3() -> None:
    """The names and their order come from the very jar that the sandbox runs."""
    (jar,) = (path for path in jars.find_class_path(lambda _: None, _no_repository)
              if Path(path).name.startswith("kafka-clients"))  # fmt: skip
    names = enum_names(Path(jar), "org/apache/kafka/common/protocol/Errors")
    assert names.pop(1) == "NONE"
    assert [error_codes()[code].name for code in sorted(error_codes())] == names


def _no_repository(*_: object) -> Any:
    raise AssertionError("the jars are there: the run's broker was started from them")


def test_the_clients_table_has_the_same_numbers() -> None:
    """kafka-python ends at an older version; what it knows has the same meaning here."""
    renamed = {-1, 6, 10, 17, 39}
    theirs = {
        kind.errno: kind.message
        for kind in vars(kafka_errors).values()
        if isinstance(kind, type)
        and issubclass(kind, kafka_errors.BrokerResponseError)
        and kind.errno is not None
    }
    assert set(theirs) - {0} <= set(error_codes())
    different = {code for code, name in theirs.items() if code and error_codes()[code].name != name}
    assert different <= renamed


def test_every_code_has_a_likely_cause() -> None:
    """Why it happened is told with what to do; codes of other requests share a cause."""
    assert all(code.cause for code in error_codes().values())
    assert sum(code.cause != FOREIGN for code in error_codes().values()) > 50
    told = fault_of("CreateTopics", 89, "orders").message
    assert told.endswith(f" (likely cause: {error_codes()[89].cause})")


def test_every_code_has_a_meaning_and_whatever_can_be_done_about_it() -> None:
    """Only where the object is as wanted there is nothing to do."""
    silent = {code.number for code in error_codes().values() if not code.advice}
    assert silent == {84, 85}
    assert all(
        code.meaning and "\n" not in code.meaning + code.advice for code in error_codes().values()
    )


def test_the_wrong_resource_is_not_asked_for() -> None:
    """One API serves topics, groups and the cluster: the code says which right is missing."""
    advice = [fault_of("IncrementalAlterConfigs", code, "x").advice for code in (29, 30, 31)]
    assert [text.split(",")[0] for text in advice] == [
        "grant AlterConfigs on Topic x",
        "grant AlterConfigs on Group x",
        "grant AlterConfigs on Cluster",
    ]


# ── what a broker answers ───────────────────────────────────────────────────────────────


def topic(name: str, **more: Any) -> dict[str, Any]:
    """One topic of a CreateTopics request."""
    usual = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    return {"name": name, **usual, **more}


def creating(*topics: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"topics": list(topics), "timeout_ms": 5000, "validate_only": True, **more}


def placed(*brokers: int) -> dict[str, Any]:
    """A topic with one partition on these brokers."""
    row = {"partition_index": 0, "broker_ids": list(brokers)}
    return {"num_partitions": -1, "replication_factor": -1, "assignments": [row]}


def deleting(*topics: dict[str, Any]) -> dict[str, Any]:
    return {"topics": list(topics), "timeout_ms": 5000}


def growing(*rows: tuple[str, int], **more: Any) -> dict[str, Any]:
    topics = [{"name": n, "count": c, "assignments": None, **more} for n, c in rows]
    return {"topics": topics, "timeout_ms": 5000, "validate_only": True}


def altering(kind: int, name: str, key: str, value: str, times: int = 1) -> dict[str, Any]:
    config = {"name": key, "config_operation": SET, "value": value}
    row = {"resource_type": kind, "resource_name": name, "configs": [config]}
    return {"resources": [row] * times, "validate_only": True}


def describing(kind: int, name: str) -> dict[str, Any]:
    row = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    return {"resources": [row]}


ACL = {
    "resource_type": 2,
    "resource_name": "x",
    "resource_pattern_type": 3,
    "principal": "User:x",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
FILTER = {
    "resource_type_filter": 2,
    "resource_name_filter": "x",
    "pattern_type_filter": 3,
    "principal_filter": "User:x",
    "host_filter": "*",
    "operation": 3,
    "permission_type": 3,
}
QUOTA = {
    "entity": [{"entity_type": "user", "entity_name": "x"}],
    "ops": [{"key": "producer_byte_rate", "value": 1.0, "remove": False}],
}
USERS = {"components": [{"entity_type": "user", "match_type": 2, "match": None}], "strict": False}


def quota(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"entries": list(entries), "validate_only": True}


def limit(key: str, value: float = 1.0) -> dict[str, Any]:
    return {**QUOTA, "ops": [{"key": key, "value": value, "remove": False}]}


def user(iterations: int = 4096, mechanism: int = SCRAM_256, name: str = "x") -> dict[str, Any]:
    """A SCRAM credential."""
    given = {"name": name, "mechanism": mechanism, "iterations": iterations}
    return {**given, "salt": b"12345678", "salted_password": b"x" * 32}


def scram(deletions: list[Any], upsertions: list[Any]) -> dict[str, Any]:
    return {"deletions": deletions, "upsertions": upsertions}


def moving(name: str, replicas: list[int] | None) -> dict[str, Any]:
    row = {"name": name, "partitions": [{"partition_index": 0, "replicas": replicas}]}
    return {"timeout_ms": 5000, "topics": [row]}


def electing(name: str, kind: int = 0) -> dict[str, Any]:
    row = {"topic": name, "partitions": [0]}
    return {"election_type": kind, "topic_partitions": [row], "timeout_ms": 5000}


def updating(name: str, level: int, upgrade_type: int = 1) -> dict[str, Any]:
    row = {"feature": name, "max_version_level": level, "upgrade_type": upgrade_type}
    return {"timeout_ms": 5000, "feature_updates": [row], "validate_only": True}


def seeing(**topic: Any) -> dict[str, Any]:
    return {"topics": [topic], "allow_auto_topic_creation": False}


Case = tuple[str, int, FaultClass, dict[str, Any]]
LIVE = "{live}"
"""Stands for a topic that exists."""

AS_ADMIN: list[Case] = [
    ("CreateTopics", 17, _D, creating(topic("no spaces"))),
    ("CreateTopics", 17, _D, creating(topic("x" * 250))),
    ("CreateTopics", 36, _C, creating(topic(LIVE))),
    ("CreateTopics", 37, _D, creating(topic("x", num_partitions=0))),
    ("CreateTopics", 38, _D, creating(topic("x", replication_factor=2))),
    ("CreateTopics", 39, _D, creating(topic("x", **placed(77)))),
    ("CreateTopics", 39, _D, creating(topic("x", **placed(1, 1)))),
    ("CreateTopics", 40, _D, creating(topic("x", configs=[{"name": "y", "value": "z"}]))),
    ("CreateTopics", 42, _D, creating(topic("x"), topic("x"))),
    ("CreateTopics", 42, _D, creating(topic("x", **{**placed(1), "num_partitions": 1}))),
    ("CreateTopics", 44, _D, creating(topic("x", num_partitions=10_001))),
    ("DeleteTopics", 3, _C, deleting({"name": "no-such-topic"})),
    ("DeleteTopics", 100, _C, deleting({"name": None, "topic_id": NO_OBJECTS})),
    ("DeleteTopics", 42, _D, deleting({"name": "no-such"}, {"name": "no-such"})),
    ("CreatePartitions", 3, _D, growing(("no-such-topic", 2))),
    ("CreatePartitions", 37, _C, growing((LIVE, 1))),
    ("CreatePartitions", 39, _D, growing((LIVE, 2), assignments=[{"broker_ids": [77]}])),
    ("CreatePartitions", 42, _D, growing((LIVE, 2), (LIVE, 3))),
    ("IncrementalAlterConfigs", 3, _D, altering(TOPIC, "no-such", "retention.ms", "1")),
    ("IncrementalAlterConfigs", 40, _D, altering(TOPIC, LIVE, "retention.ms", "soon")),
    ("IncrementalAlterConfigs", 40, _D, altering(TOPIC, LIVE, "no.such.key", "1")),
    ("IncrementalAlterConfigs", 42, _D, altering(TOPIC, LIVE, "retention.ms", "1", times=2)),
    ("IncrementalAlterConfigs", 42, _D, altering(BROKER, "1", "log.dirs", "/x")),
    ("IncrementalAlterConfigs", 40, _D, altering(GROUP, "x", "no.such.key", "1")),
    ("IncrementalAlterConfigs", 42, _D, altering(METRICS, "x", "interval.ms", "1")),
    ("DescribeConfigs", 3, _D, describing(TOPIC, "no-such-topic")),
    ("DescribeConfigs", 17, _D, describing(TOPIC, "no spaces")),
    ("DescribeConfigs", 42, _D, describing(BROKER, "77")),
    ("CreateAcls", 42, _D, {"creations": [{**ACL, "resource_type": 4}]}),
    ("CreateAcls", 42, _D, {"creations": [{**ACL, "principal": "x"}]}),
    ("AlterClientQuotas", 42, _D, quota(limit("no_such_rate"))),
    ("AlterClientQuotas", 42, _D, quota(limit("producer_byte_rate", -1.0))),
    ("AlterClientQuotas", 42, _D, quota(QUOTA, QUOTA)),
    ("DescribeClientQuotas", 42, _D, {**USERS, "components": USERS["components"] * 2}),
    ("AlterUserScramCredentials", 91, _C, scram([{"name": "x", "mechanism": SCRAM_256}], [])),
    ("AlterUserScramCredentials", 92, _D, scram([], [user(), user(mechanism=2)])),
    ("AlterUserScramCredentials", 93, _D, scram([], [user(iterations=1)])),
    ("AlterUserScramCredentials", 93, _D, scram([], [user(name="")])),
    ("AlterUserScramCredentials", 33, _D, scram([], [user(mechanism=9)])),
    ("DescribeUserScramCredentials", 91, _D, {"users": [{"name": "no-such-user"}]}),
    ("DescribeUserScramCredentials", 92, _D, {"users": [{"name": "x"}, {"name": "x"}]}),
    ("AlterPartitionReassignments", 85, _C, moving(LIVE, None)),
    ("UpdateFeatures", 95, _D, updating("group.version", 99)),
    ("UpdateFeatures", 95, _D, updating("no.such.feature", 1)),
    ("UpdateFeatures", 95, _D, updating("group.version", 0)),
    ("AlterPartitionReassignments", 3, _D, moving("no-such-topic", [1])),
    ("AlterPartitionReassignments", 39, _D, moving(LIVE, [77])),
    ("ElectLeaders", 84, _C, electing(LIVE)),
    ("ElectLeaders", 3, _D, electing("no-such-topic")),
    ("ElectLeaders", 42, _D, electing(LIVE, kind=9)),
    ("Metadata", 3, _D, seeing(name="no-such-topic")),
    ("Metadata", 17, _D, seeing(name="no spaces")),
    ("Metadata", 100, _D, seeing(topic_id=NO_OBJECTS, name=None)),
    ("DescribeCluster", 114, _D, {"endpoint_type": 2}),
    ("DescribeCluster", 115, _D, {"endpoint_type": 9}),
    ("ListConfigResources", 35, _D, {"resource_types": [99], "min_version": 1}),
]  # fmt: skip

AS_NOBODY: list[Case] = [
    ("CreateTopics", 29, _P, creating(topic("x"))),
    ("DeleteTopics", 29, _P, deleting({"name": LIVE})),
    ("CreatePartitions", 29, _P, growing((LIVE, 2))),
    ("IncrementalAlterConfigs", 29, _P, altering(TOPIC, LIVE, "retention.ms", "1")),
    ("IncrementalAlterConfigs", 30, _P, altering(GROUP, "x", "consumer.session.timeout.ms", "1")),
    ("IncrementalAlterConfigs", 31, _P, altering(BROKER, "", "log.retention.ms", "1")),
    ("IncrementalAlterConfigs", 31, _P, altering(METRICS, "x", "interval.ms", "1000")),
    ("DescribeConfigs", 29, _P, describing(TOPIC, LIVE)),
    ("DescribeConfigs", 30, _P, describing(GROUP, "x")),
    ("DescribeConfigs", 31, _P, describing(BROKER, "1")),
    ("DescribeAcls", 31, _P, FILTER),
    ("CreateAcls", 31, _P, {"creations": [ACL]}),
    ("DeleteAcls", 31, _P, {"filters": [FILTER]}),
    ("DescribeClientQuotas", 31, _P, USERS),
    ("AlterClientQuotas", 31, _P, quota(QUOTA)),
    ("DescribeUserScramCredentials", 31, _P, {"users": [{"name": "x"}]}),
    ("AlterUserScramCredentials", 31, _P, scram([], [user()])),
    ("AlterPartitionReassignments", 31, _P, moving(LIVE, [1])),
    ("ListPartitionReassignments", 31, _P, {"timeout_ms": 5000, "topics": None}),
    ("ElectLeaders", 31, _P, electing(LIVE)),
    ("UpdateFeatures", 31, _P, updating("group.version", 1)),
    ("DescribeLogDirs", 31, _P, {"topics": None}),
    ("ListConfigResources", 31, _P, {"resource_types": [METRICS]}),
    ("DescribeGroups", 30, _P, {"groups": ["x"]}),
    ("DescribeTransactions", 53, _P, {"transactional_ids": ["x"]}),
    ("Metadata", 29, _P, seeing(name=LIVE)),
]

NOT_PROVOKED = {
    -1: "a fault inside the broker",
    5: "lasts for moments after a create or while a broker fails",
    7: "the controller would have to be kept from answering",
    8: "needs a broker that dies at the right moment",
    41: "needs a fail-over of the controller in the middle of a request",
    14: "needs a coordinator that has just started",
    22: "needs a member with an old generation, and offsets are committed without one",
    27: "needs a group in the middle of a rebalance",
    55: "needs a broker that stops in the middle of a request",
    56: "needs a broken disk",
    57: "AlterReplicaLogDirs alone answers it, and is not sent",
    60: "CreatePartitions during a move; needs three brokers and data that takes long to copy",
    61: "test_delegation_tokens.py provokes it",
    62: "test_delegation_tokens.py provokes it",
    63: "test_delegation_tokens.py provokes it",
    64: "test_delegation_tokens.py provokes it",
    65: "test_delegation_tokens.py provokes it",
    66: "brokers remove an expired token within moments",
    67: "answered for delegation tokens only, whose principals are checked before they are sent",
    69: "a group that ends between two requests is shown as dead",
    72: "needs a leader without the listener",
    80: "needs a preferred leader that is out of sync",
    83: "needs a partition without a live replica",
    96: "only brokers without KRaft answer it",
    97: "needs brokers with another principal builder",
    102: "answered to brokers, not to clients",
    104: "answered by the quorum, not to clients",
    107: "answered to brokers, not to clients",
    116: "answered by the quorum, not to clients",
    128: "ConsumerGroupHeartbeat alone answers it, and is not sent",
    129: "answered to clients that asked for it, which ours do not",
}
"""Admin codes that no test here gets out of a broker, and why."""

ELSEWHERE = {
    **dict.fromkeys((25, 68, 86), "tests/cluster/cli/test_group_offsets.py: groups with members"),
    34: "tests/cluster/kafka/test_connections.py: a login at a listener without one",
    54: "tests/cluster/kafka/test_policy.py: a broker without an authorizer",
    58: "tests/cluster/kafka/test_connections.py: a wrong password",
    73: "tests/cluster/kafka/test_policy.py: a broker that forbids deletions",
    89: "below: a controller mutation quota",
    105: "tests/cluster/cli/test_describe_transactions.py: a name that nobody has used",
}


@pytest.fixture(scope="module")
def live(broker: sandbox.Sandbox) -> Iterator[str]:
    """A topic with one partition."""
    session = connect(broker, "admin")
    name = f"codes-{uuid.uuid4().hex[:8]}"
    apply(session, new(name))
    eventually(lambda: read(session, name), lambda found: hasattr(found, "attributes"))
    yield name
    request = {"topics": [{"name": name}], "timeout_ms": 5000}
    assert ask(session, "DeleteTopics", request) == []
    session.close()


@pytest.fixture(scope="module")
def nobody(broker: sandbox.Sandbox) -> Iterator[KafkaSession]:
    """A session of a user of this file alone, whom no other test gives a right."""
    with new_login(broker) as user:
        session = connect(broker, user)
        yield session
        session.close()


OLDER: Mapping[tuple[str, int], tuple[str, bool, int]] = {
    ("DescribeConfigs", GROUP): ("4.0", False, 42),
    ("IncrementalAlterConfigs", GROUP): ("4.0", False, 42),
    ("IncrementalAlterConfigs", METRICS): ("3.7", True, 42),
    ("ListConfigResources", METRICS): ("3.7", False, 35),
    ("ListConfigResources", 99): ("4.1", False, 35),
}
"""Request and resource type -> the version that has it, whether also with ZooKeeper, and the code
without it. 35: the request does not exist there and is not sent; 42: the whole request is refused,
which is why `protocol/cluster_facts.py` has these features."""


def code_here(case: Case) -> int:
    """The code that the broker of this run answers with."""
    api, code, _, body = case
    rows = body.get("resources", ())
    types = [*(row["resource_type"] for row in rows), *body.get("resource_types", ())]
    for since, zookeeper, other in (OLDER[api, kind] for kind in types if (api, kind) in OLDER):
        if get_choice().lacks(since, zookeeper=zookeeper):
            return other
    return code


def filled(value: Any, name: str) -> Any:
    """The request with the name of the topic that exists."""
    if isinstance(value, dict):
        return {key: filled(item, name) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, name) for item in value]
    return name if value == LIVE else value


def named(case: Case) -> str:
    return f"{case[0]}-{case[1]}"


def check(session: KafkaSession, case: Case, live: str) -> None:
    """The broker answers with that code, and the fault says what the table says."""
    api, newest, kind, body = case
    code = code_here(case)
    try:
        found = ask(session, api, filled(body, live))
    except Unsupported as error:
        found = [(35, str(error))]
    assert {number for number, _ in found} == {code}, found
    fault = fault_of(api, code, live, found[0][1])
    assert (fault.kind, fault.code) == (kind if code == newest else _D, error_codes()[code].name)
    assert error_codes()[code].meaning in fault.message or (
        code == 35 and APIS[api].since in fault.message
    )
    assert fault.advice or code in (84, 85)
    assert "\n" not in fault.advice


@pytest.mark.parametrize("case", AS_ADMIN, ids=named)
def test_a_refused_request_gets_the_documented_class(
    admin: KafkaSession, live: str, case: Case
) -> None:
    """Each is sent to a real broker; what can be checked without doing is only checked."""
    check(admin, case, live)


@pytest.mark.parametrize("case", AS_NOBODY, ids=named)
def test_a_request_without_the_right_names_it(nobody: KafkaSession, live: str, case: Case) -> None:
    """The advice is the very right that the broker wants."""
    check(nobody, case, live)
    if code_here(case) == case[1]:
        assert fault_of(case[0], case[1], live).advice.startswith("grant ")


def test_a_used_up_quota_says_how_long_to_wait(broker: sandbox.Sandbox, prefix: str) -> None:
    """89 comes with the broker's own time, and nothing has been done."""
    dry = creating(topic(f"{prefix}-a", num_partitions=40))
    with account(broker, prefix) as user, limits(broker) as quota, opened(user) as session:
        quota.set(({"user": prefix}, {"controller_mutation_rate": 1.0}))
        assert ask(session, "CreateTopics", dry) == []
        request = made(admin_requests.CreateTopicsRequest, dry)
        answer = session.context.wire.send(request, PATIENCE)
    assert [code for code, _ in codes(answer)] == [89]
    fault = fault_of("CreateTopics", 89, "x", wait=answer.throttle_time_ms / 1000)
    assert fault.kind is _N and fault.retry_after > 1
    assert "wait as long as the broker asks" in fault.advice


def test_every_admin_code_is_provoked_or_has_a_reason_why_not() -> None:
    """Nothing is left out by oversight."""
    provoked = {code for _, code, _, _ in (*AS_ADMIN, *AS_NOBODY)}
    known = provoked | set(NOT_PROVOKED) | set(ELSEWHERE)
    others = {
        code for code, entry in error_codes().items() if entry.advice == error_codes()[1].advice
    }
    assert provoked & set(NOT_PROVOKED) == set()
    admin_codes = {code.number for code in error_codes().values()} - others
    assert admin_codes <= known | {7, 41, 96, 116}
