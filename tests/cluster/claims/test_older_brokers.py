"""What the rules say about older brokers: what they refuse, because they do not have it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from kafkaform.sandbox import Sandbox
from kafkaform_kafka.kinds.acl import resource_type as acls
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.security import AclRow, create_acls

from ...kit.kafka.clusters import own_sandbox
from ...kit.kafka.sessions import connect
from ...kit.kafka.topic_clients import Clients, wait_for
from ...kit.kafka.versions import Choice
from .broker_configs import GROUP, METRICS, alter

KAFKA_3_6, KAFKA_3_9 = Choice("3.6.2"), Choice("3.9.2")
ZOOKEEPER, KAFKA_4 = Choice("3.9.2", zookeeper=True), Choice("4.3.1")
ALLOW = LITERAL = 3
INVALID_REQUEST = 42
SECONDS = 15.0


@pytest.fixture(scope="module")
def box(own_brokers: None, request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """One broker of the version that a test asks for."""
    with own_sandbox(f"tests-older-{os.getpid()}", choice=request.param) as box:
        yield box


@pytest.fixture
def session(box: Sandbox) -> Iterator[KafkaSession]:
    session = connect(box)
    yield session
    session.close()


def compare(*cases: tuple[Choice, Any]) -> pytest.MarkDecorator:
    """The brokers of a test, each with what is expected of it."""
    names = [choice.title for choice, _ in cases]
    return pytest.mark.parametrize(
        ("box", "expected"), cases, ids=names, indirect=["box"], scope="module"
    )


@compare((KAFKA_3_6, "NOT_ENOUGH_REPLICAS"), (KAFKA_3_9, ""), (KAFKA_4, ""))
def test_before_kafka_3_7_acks_all_needs_more_replicas_than_there_are(
    box: Sandbox, expected: str
) -> None:
    """`topic-min-insync-unreachable`: acks=1 is accepted there, too."""
    clients = Clients(box.bootstrap, box.admin_password)
    assert clients.create("above", min_insync_replicas=2) == ""
    wait_for(lambda: clients.write("above", "1", "a", acks="1") == "")
    assert clients.write("above", "2", "a") == expected


@compare(
    (KAFKA_3_6, INVALID_REQUEST),
    (KAFKA_3_9, INVALID_REQUEST),
    (ZOOKEEPER, INVALID_REQUEST),
    (KAFKA_4, 0),
)
def test_older_brokers_refuse_acls_with_newer_operations(
    session: KafkaSession, expected: int
) -> None:
    """`acl-too-new`: TwoPhaseCommit, which is of Kafka 4.1."""
    kind, operation = acls.RESOURCE_TYPES["TransactionalID"], acls.OPERATIONS["TwoPhaseCommit"]
    row = AclRow(kind, "any", LITERAL, "User:any", "*", operation, ALLOW)
    (answer,) = create_acls(session.context.wire, [row], SECONDS)
    assert answer.code == expected


@compare(
    (KAFKA_3_6, "Unknown resource type"),
    (KAFKA_3_9, "Unknown resource type"),
    (ZOOKEEPER, "Unknown resource type"),
    (KAFKA_4, ""),
)
def test_older_brokers_have_no_configs_of_groups(session: KafkaSession, expected: str) -> None:
    """`group-config-unsupported`."""
    answer = alter(session, GROUP, "any", {"consumer.session.timeout.ms": "50000"})
    assert expected in answer and bool(answer) == bool(expected)


@compare(
    (KAFKA_3_6, "Unknown resource type"),
    (KAFKA_3_9, ""),
    (ZOOKEEPER, "only supported for topics and brokers"),
    (KAFKA_4, ""),
)
def test_older_brokers_and_zookeeper_have_no_client_metrics(
    session: KafkaSession, expected: str
) -> None:
    """`client-metrics-unsupported`."""
    answer = alter(session, METRICS, "any", {"interval.ms": "1000"})
    assert expected in answer and bool(answer) == bool(expected)
